"""The triangular root P of the penalty |P c|², all at once or grown with the centers."""

from collections.abc import Sequence

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer._solvers.orthogonal.candidates import CandidateColumns, SparsePenalty
from mercer._types import Array, Indices


class GrowingRoot:
    """P (m, m) of the centers so far, for the penalties "rkhs" (P'P = K_SS), "coef" (P = 1), and none."""

    def __init__(self, candidates: CandidateColumns, penalty: SparsePenalty) -> None:
        self._candidates = candidates
        self._penalty = penalty
        self._centers: list[int] = []
        self._P = np.zeros((0, 0))

    def columns(self, j: Indices) -> tuple[Array, Array]:
        """The columns (m, b) that candidates would add to P, and their diagonal entries (b,)."""
        j = np.asarray(j)
        m = len(self._centers)
        if self._penalty != "rkhs":
            return np.zeros((m, len(j))), np.full(len(j), float(self._penalty == "coef"))
        K = self._candidates.among(np.array(self._centers, dtype=np.intp), j) if m else np.zeros((0, len(j)))
        above = scipy.linalg.solve_triangular(self._P, K, trans=1, check_finite=False) if m else K
        own = self._candidates.own(j)
        left = own - np.einsum("mb,mb->b", above, above)
        # A remainder of k(z, z) below its rounding error counts as zero.
        return above, np.sqrt(np.where(left > self._candidates.floor * own, left, 0.0))

    def is_new(self, own: Array) -> NDArray[np.bool_]:
        """Whether P stays regular with these diagonal entries (b,)."""
        return (own > 0) if self._penalty == "rkhs" else np.ones(len(own), dtype=bool)

    def append(self, j: int) -> None:
        above, own = self.columns(np.array([j]))
        m = len(self._P)
        P = np.zeros((m + 1, m + 1))
        P[:m, :m], P[:m, m], P[m, m] = self._P, above[:, 0], own[0]
        self._P = P
        self._centers.append(j)


def independent(candidates: CandidateColumns, order: Sequence[int] | Indices) -> tuple[Indices, Array]:
    """The ordered centers whose k(., z) is not a linear combination of previous ones, and P of their K_SS.

    A Cholesky factorization without pivoting that skips: O(m³).
    """
    K = candidates.among(np.asarray(order), np.asarray(order))
    P, info = scipy.linalg.lapack.dpotrf(K, lower=0, clean=1)
    if info == 0 and (P.diagonal() ** 2 > candidates.floor * K.diagonal()).all():
        return np.asarray(order, dtype=np.intp), P
    kept: list[int] = []
    P = np.zeros_like(K)
    for j in range(len(K)):
        m = len(kept)
        above = (
            scipy.linalg.solve_triangular(P[:m, :m], K[kept, j], trans=1, check_finite=False) if m else np.zeros(0)
        )
        left = K[j, j] - above @ above
        if left > candidates.floor * K[j, j]:
            P[:m, m], P[m, m] = above, np.sqrt(left)
            kept.append(j)
    return np.asarray(order, dtype=np.intp)[kept], P[: len(kept), : len(kept)]


def root_of(
    candidates: CandidateColumns, order: Indices, penalty: SparsePenalty, A: Array
) -> tuple[Indices, Array]:
    """Positions of the centers that are kept, and P of them, for weighted columns A (u, m) of the centers."""
    if penalty == "rkhs":
        kept, P = independent(candidates, order)
        position = {int(j): i for i, j in enumerate(order)}
        return np.array([position[int(j)] for j in kept], dtype=np.intp), P
    every = np.arange(len(order))
    if penalty == "orthogonal":
        # Where rows are missing, columns may depend on those before.
        length = np.abs(np.diagonal(np.linalg.qr(A, mode="r")))
        kept = np.flatnonzero(length > candidates.tolerance * length.max(initial=0.0))
        R = np.asarray(np.linalg.qr(A[:, kept], mode="r"))
        return kept, R / R.diagonal()[:, None]
    return every, np.eye(len(order)) * float(penalty == "coef")
