"""Kernel matrices to look at: whether one is positive semidefinite, distances and centered values, products."""

from mercer._gram import centered, check_psd, combine, cross, distances

__all__ = ["centered", "check_psd", "combine", "cross", "distances"]
