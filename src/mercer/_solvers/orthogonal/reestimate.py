r"""The penalty of orthogonal least squares from its own path: generalized cross-validation, or evidence.

With orthogonal columns of squares d_k, orthonormal coefficients z_k and n observations, everything is O(m):

    tr = sum d_k / (d_k + alpha),    rss = |y|² - sum |z_k|² (1 - (alpha / (d_k + alpha))²).

Andelić (2007), Eqs. (3.85) to (3.89); the fixed-point iteration there may diverge to infinity or zero, so the
criterion is minimized over log alpha instead.
"""

from typing import Literal

import numpy as np

from mercer._linalg.tolerance import smallest
from mercer._solvers.orthogonal.candidates import Points
from mercer._types import Array

Estimate = Literal["gcv", "evidence"]

# alpha is searched between these multiples of the largest d.
LEAST_PENALTY, LARGEST_PENALTY = 1e-10, 1e4
# Points of the grid, and how often it is refined around the least one: the criterion may have several minima.
PENALTY_GRID, PENALTY_REFINEMENTS = 29, 3


def reestimate(d: Array, z: Array, points: Points, estimate: Estimate, cost: float) -> float:
    """The alpha that minimizes the criterion for the centers so far."""
    n, total, square = points.n, float((points.target**2).sum()), (z**2).sum(axis=1)
    low, high = np.log(LEAST_PENALTY * d.max()), np.log(LARGEST_PENALTY * d.max())
    for _ in range(1 + PENALTY_REFINEMENTS):
        grid = np.linspace(low, high, PENALTY_GRID)
        alphas = np.exp(grid)
        if estimate == "evidence":
            values = negative_evidence(d, square, total, n, z.shape[1], alphas)
        else:
            values = orthogonal_gcv(d, square, total, n, alphas, cost)
        best = int(values.argmin())
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, PENALTY_GRID - 1)]
    return float(alphas[best])


def orthogonal_gcv(d: Array, square: Array, total: float, n: float, alphas: Array, cost: float = 1.0) -> Array:
    """n rss / (n - 1 - cost tr)² (a,)."""
    shrink = d / (d + alphas[:, None])
    left = n - 1.0 - cost * shrink.sum(axis=1)
    rss = np.maximum(total - (1.0 - (1.0 - shrink) ** 2) @ square, 0.0)
    return np.where(left > 0, n * rss / np.where(left > 0, left, 1.0) ** 2, np.inf)


def negative_evidence(d: Array, square: Array, total: float, n: float, q: int, alphas: Array) -> Array:
    """-2 log likelihood (a,) of y ~ N(0, s² (1 + QQ'/alpha)) at its best s, up to a constant; MacKay (1992)."""
    misfit = np.maximum(total - (d / (d + alphas[:, None])) @ square, smallest(np.float64))
    return np.asarray((n - 1.0) * q * np.log(misfit) + q * np.log1p(d / alphas[:, None]).sum(axis=1))
