"""Sparse least squares: few columns of a kernel matrix, selected one by one on an orthonormal basis (OLS)."""

from mercer._solvers.orthogonal.basis import OrthogonalBasis
from mercer._solvers.orthogonal.candidates import CandidateColumns, Points, SparsePenalty
from mercer._solvers.orthogonal.orders import Selection, SelectionRule, choose_order
from mercer._solvers.orthogonal.path import SparsePath, SparseSolution, follow, solution_at
from mercer._solvers.orthogonal.prune import prune
from mercer._solvers.orthogonal.ridges import RidgeFit
from mercer._solvers.orthogonal.stop import STOPS, number_of_centers

__all__ = [
    "STOPS",
    "CandidateColumns",
    "OrthogonalBasis",
    "Points",
    "RidgeFit",
    "Selection",
    "SelectionRule",
    "SparsePath",
    "SparsePenalty",
    "SparseSolution",
    "choose_order",
    "follow",
    "number_of_centers",
    "prune",
    "solution_at",
]
