r"""The penalty of orthogonal least squares from its own path: generalized cross-validation, or evidence.

With orthogonal columns of squares d_k, orthonormal coefficients z_k and n observations, everything is O(m):

    tr = sum d_k / (d_k + alpha),    rss = |y|² - sum |z_k|² (1 - (alpha / (d_k + alpha))²).

Andelić (2007), Eqs. (3.85) to (3.89); the fixed-point iteration there may diverge to infinity or zero, so the
criterion is minimized over log alpha instead.
"""

from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.solvers.orthogonal.candidates import Points
from mercer.types import Array

Estimate = Literal["gcv", "evidence"]

# alpha is searched between these multiples of the largest d.
LEAST, MOST = 1e-10, 1e4
# Points of the grid from which the search starts: the criterion may have several minima.
GRID = 29


def reestimate(d: Array, z: Array, points: Points, estimate: Estimate, cost: float) -> float:
    """The alpha that minimizes the criterion for the centers so far."""
    n, total, square = points.n, float((points.target**2).sum()), (z**2).sum(axis=1)
    q = z.shape[1]

    def value(log_alpha: float) -> float:
        alpha = np.exp(log_alpha)
        if estimate == "evidence":
            return negative_evidence(d, square, total, n, q, alpha)
        return orthogonal_gcv(d, square, total, n, alpha, cost)

    grid = np.linspace(np.log(LEAST * d.max()), np.log(MOST * d.max()), GRID)
    best = int(np.argmin([value(x) for x in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
    return float(np.exp(minimize_scalar(value, bounds=(low, high), method="bounded").x))


def orthogonal_gcv(d: Array, square: Array, total: float, n: float, alpha: float, cost: float = 1.0) -> float:
    """n rss / (n - 1 - cost tr)²."""
    shrink = d / (d + alpha)
    left = n - 1.0 - cost * shrink.sum()
    rss = max(total - float(square @ (1.0 - (1.0 - shrink) ** 2)), 0.0)
    return n * rss / left**2 if left > 0 else np.inf


def negative_evidence(d: Array, square: Array, total: float, n: float, q: int, alpha: float) -> float:
    """-2 log likelihood of y ~ N(0, s² (1 + QQ'/alpha)) at its best s, up to a constant; MacKay (1992)."""
    misfit = max(total - float(square @ (d / (d + alpha))), np.finfo(np.float64).tiny)
    return float((n - 1.0) * q * np.log(misfit) + q * np.log1p(d / alpha).sum())
