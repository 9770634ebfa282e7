"""Solvers for non-smooth losses, and programs over weights."""
