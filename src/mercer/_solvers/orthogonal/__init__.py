"""Sparse least squares: few columns of a kernel matrix, selected one by one on an orthonormal basis (OLS)."""

from mercer._solvers.orthogonal.orders import SelectionRule
from mercer._solvers.orthogonal.path import SparsePath
from mercer._solvers.orthogonal.stop import STOPS

__all__ = ["STOPS", "SelectionRule", "SparsePath"]
