"""Kernel matrices to look at: whether one is positive semidefinite, distances and centered values, products."""

from mercer._gram import centered, check_psd, combine, cross, distances
from mercer._gram.geometry import Definiteness

__all__ = ["Definiteness", "centered", "check_psd", "combine", "cross", "distances"]
