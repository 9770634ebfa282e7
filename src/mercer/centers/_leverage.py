"""Centers drawn by leverage: how much a smooth fit at a row depends on that row."""

from typing import Any

import numpy as np
from scipy.optimize import brentq

from mercer._gram.blocks import BLOCK_SIZE, cross, gram_bytes, kernel_blocks, self_similarity
from mercer._linalg import eigen_psd, limit_threads
from mercer._types import Array, Indices
from mercer.centers._base import CandidateRows, Extent
from mercer.centers._pool import Pool, RowSelector, draw_stratified
from mercer.kernels import Kernel


class Leverage(RowSelector):
    """Rows drawn without replacement in proportion to approximate ridge leverage scores.

    The score of row i is l_i = (A (A + alpha I)^-1)_ii with A = W^(1/2) K W^(1/2), at most 1: large where rows are
    rare and unlike others. Two stages: a uniform subset S of s rows represents all rows,

        l_i = (A_ii - A_iS (A_SS + (s / c) alpha I)^-1 A_Si) / alpha,

    and the centers are drawn by these scores. Works for any kernel; O(c s² + s³) time for c rows in the sample,
    bounded memory. Musco and Musco (2017), "Recursive sampling for the Nyström method", section 3, one level.

    ``trace`` of the centers is their score.

    Parameters
    ----------
    n_centers : int or None
        Number of centers, unless passed to ``select``.
    alpha : float or None
        Ridge parameter of the scores; None: such that the degrees of freedom, sum_i l_i, are half the number of
        centers.
    n_subset : int
        Number of rows s of the subset; at most twice the number of centers are used.
    """

    def __init__(self, n_centers: int | None = None, *, alpha: float | None = None, n_subset: int = 2000) -> None:
        self.n_centers = n_centers
        self.alpha = alpha
        self.n_subset = n_subset

    def n_bytes(self, n_centers: int, extent: Extent) -> float:
        """The subset's decomposition, or its basis and four blocks of kernel values."""
        s = min(self.n_subset, 2 * n_centers, extent.n)
        blocks = 8.0 * s * s + 32.0 * min(BLOCK_SIZE, extent.n * s)
        return super().n_bytes(n_centers, extent) + max(gram_bytes(s), blocks)

    def _points(
        self, kernel: Kernel, sample: CandidateRows, pool: Pool, m: int, rng: np.random.Generator
    ) -> tuple[Indices, Array]:
        X, root = kernel.subset(sample.X, pool.index), np.sqrt(pool.weight)
        subset = draw_stratified(pool, min(self.n_subset, 2 * m), rng)
        with limit_threads(1):
            scores = leverage_scores(kernel, X, root, subset, degrees=m / 2.0, alpha=self.alpha)
        drawn = _draw(scores, m, rng)
        return drawn, scores[drawn]


def leverage_scores(
    kernel: Kernel, X: Any, root: Array, subset: Indices, *, degrees: float, alpha: float | None = None
) -> Array:
    """Scores l (c,) of all rows X from a subset; without alpha, with the one for about this many degrees."""
    some, share = kernel.subset(X, subset), len(subset) / len(root)
    A_SS = cross(kernel, some, kernel.centers(some)) * np.outer(root[subset], root[subset])
    eigen = eigen_psd(np.array(A_SS, dtype=np.float64, order="F"))
    if alpha is None:
        alpha = _alpha_for(eigen.values / share, min(degrees, eigen.rank / 2.0))
    # Columns of B satisfy B B' = (A_SS + share alpha I)^-1.
    B = eigen.vectors / np.sqrt(eigen.values + share * alpha)
    captured = np.empty(len(root))
    for rows, K in kernel_blocks(kernel, X, kernel.centers(X, subset), len(subset)):
        captured[rows] = (((K * root[subset]) @ B) ** 2).sum(axis=1)
    with np.errstate(over="ignore"):
        scores: Array = root**2 * (self_similarity(kernel, X) - captured) / alpha
    return np.clip(scores, 0.0, 1.0)


def _alpha_for(values: Array, degrees: float) -> float:
    """The alpha with sum_i values_i / (values_i + alpha) = degrees, for 0 < degrees < number of values > 0."""

    def excess(log_alpha: float) -> float:
        return float((values / (values + np.exp(log_alpha))).sum() - degrees)

    positive, total = values[values > 0], values.sum()
    if not len(positive):
        return 1.0
    # The sum is above rank * least / (least + alpha), and below total / alpha.
    low = np.log(positive[0]) + np.log(max(len(positive) / degrees - 1.0, 1e-3)) - 1.0
    return float(np.exp(brentq(excess, low, np.log(total / degrees) + 1.0)))


def _draw(scores: Array, m: int, rng: np.random.Generator) -> Indices:
    """m rows without replacement, drawn one by one in proportion to their scores; rows of score zero last."""
    with np.errstate(divide="ignore"):
        keys = rng.exponential(size=len(scores)) / scores
    return np.argsort(keys, kind="stable")[:m]
