"""Cholesky factors with complete pivoting: how many columns a semidefinite matrix really has, and which."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RankFactor:
    """A[kept, kept] = R'R with R (r, r) upper triangular; the other rows of A are in the span of those kept."""

    R: Array
    kept: NDArray[np.intp]


def rank_factor(A: Array, *, tolerance: float) -> RankFactor:
    """Rows of A (m, m) until what is left of the diagonal is below ``tolerance`` times its largest; O(m r²)."""
    limit = tolerance * float(A.diagonal().max())
    C, pivots, rank, _ = lapack.dpstrf(A, tol=limit, lower=0)
    return RankFactor(np.triu(C[:rank, :rank]), np.asarray(pivots[:rank] - 1, dtype=np.intp))
