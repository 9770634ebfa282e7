"""Centers from a Cholesky factorization of the kernel matrix with random pivots."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer._gram.blocks import cross, self_similarity
from mercer._linalg import limit_threads, rejection_cholesky
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array, Floats, Indices
from mercer.centers._base import CandidateRows, Extent
from mercer.centers._pool import Pool, RowSelector
from mercer.errors import KernelError
from mercer.kernels import Kernel

# Proposals in one block, as a share of the number of centers, and their minimum.
BLOCK_SHARE = 0.1
LEAST_BLOCK = 16
# A diagonal entry counts as zero below this many units of rounding.
DIAGONAL_ROUNDING = 100.0


class RPCholesky(RowSelector):
    """Pivots of A = W^(1/2) K W^(1/2), drawn one after another in proportion to its remaining diagonal.

    The columns at the pivots approximate the matrix nearly as well as its best approximation of a slightly lower
    rank; labels are not used. The accelerated form proposes a block of pivots at a time and rejects some, which
    does not change their distribution but allows matrix products. Works for any kernel; O(c m²) time, O(c m)
    memory for c rows in the sample. Chen, Epperly, Tropp and Webber (2024), "Randomly pivoted Cholesky"; Epperly,
    Tropp and Webber (2024), "Embrace rejection".

    ``trace`` of the centers is the share of tr A that each adds to the approximation. There are fewer centers than
    requested if only rounding errors of A remain.

    Parameters
    ----------
    n_centers : int or None
        Number of centers, unless passed to ``select``.
    block_size : int or None
        Pivots proposed at a time; None: a tenth of the centers, at least 16.
    """

    def __init__(self, n_centers: int | None = None, *, block_size: int | None = None) -> None:
        self.n_centers = n_centers
        self.block_size = block_size

    def n_bytes(self, n_centers: int, extent: Extent) -> float:
        """The factor (m, c), and as much again while columns are added to it."""
        return super().n_bytes(n_centers, extent) + 2.0 * min(extent.value, 8.0) * n_centers * extent.n

    def _points(
        self, kernel: Kernel, sample: CandidateRows, pool: Pool, m: int, rng: np.random.Generator
    ) -> tuple[Indices, Array]:
        X = kernel.subset(sample.X, pool.index)
        block = self.block_size or max(LEAST_BLOCK, int(np.ceil(BLOCK_SHARE * m)))
        root = np.sqrt(pool.weight).astype(self_similarity(kernel, X).dtype)
        with limit_threads(1):
            return random_pivots(kernel, X, root, m, rng, block=block)


def random_pivots(
    kernel: Kernel, X: Any, root: Floats, m: int, rng: np.random.Generator, *, block: int
) -> tuple[Indices, Array]:
    """At most m pivots of A = diag(root) k(X, X) diag(root), and the share of tr A that each explains."""
    diagonal = np.maximum(root**2 * self_similarity(kernel, X), 0.0).astype(root.dtype)
    if not diagonal.any():
        raise KernelError(
            f"{kernel!r} has k(x, x) <= 0 for every row and cannot be factored; use a positive definite kernel"
        )
    floor = DIAGONAL_ROUNDING * rounding_unit(root.dtype) * diagonal
    left, pivots, F = diagonal.copy(), np.empty(m, dtype=np.intp), np.empty((m, len(root)), root.dtype)
    k = 0
    while k < m and (left > floor).any():
        proposed = _propose(np.where(left > floor, left, 0.0), block, rng)
        H = _within(kernel, X, root, F[:k], proposed)
        accepted, L = rejection_cholesky(H, floor[proposed], rng)
        a = min(len(accepted), m - k)
        chosen = proposed[accepted[:a]]
        new = slice(k, k + a)
        F[new] = solve_triangular(L[:a, :a], _columns(kernel, X, root, F[:k], chosen), lower=True)
        pivots[new], k = chosen, k + a
        left = np.maximum(left - (F[new] ** 2).sum(axis=0), 0.0)
        # Accepted pivots are exhausted; remainders at the rounding level are set to zero.
        left[chosen] = left[proposed[H.diagonal() <= floor[proposed]]] = 0.0
    return pivots[:k], (F[:k] ** 2).sum(axis=1, dtype=np.float64) / diagonal.sum(dtype=np.float64)


def _propose(left: NDArray[Any], block: int, rng: np.random.Generator) -> Indices:
    """Points drawn in proportion to the remaining diagonal, in this order; repeated points would be rejected."""
    cumulated = np.cumsum(left, dtype=np.float64)
    drawn: Indices = np.searchsorted(cumulated, rng.uniform(0.0, cumulated[-1], block), side="right")
    drawn = np.minimum(drawn, np.flatnonzero(left)[-1])
    _, first = np.unique(drawn, return_index=True)
    return np.asarray(drawn[np.sort(first)])


def _within(kernel: Kernel, X: Any, root: NDArray[Any], F: NDArray[Any], points: Indices) -> Array:
    """Residual of A at some points, (b, b)."""
    some, r = kernel.subset(X, points), root[points]
    K = cross(kernel, some, kernel.centers(some))
    return np.asarray(K * np.outer(r, r) - F[:, points].T @ F[:, points], dtype=np.float64)


def _columns(kernel: Kernel, X: Any, root: NDArray[Any], F: NDArray[Any], points: Indices) -> NDArray[Any]:
    """Residual columns of A at some points, as rows (a, c)."""
    K = cross(kernel, X, kernel.centers(X, points)).T
    return np.asarray(K * np.outer(root[points], root) - F[:, points].T @ F)
