r"""Results of forward selection for every number of centers, from moments alone.

With centered moments G (c, c) and C (c, q) of c candidates, total variation v = tr V and K = k(candidates,
candidates), least squares on the candidates S with the penalty alpha c'K_SS c and a free intercept leaves

    J(S) = v - tr C_S' H_SS^-1 C_S,   H = G + alpha K.

For an order of the candidates, one Cholesky factor H_SS = L L' gives the solutions for all its initial segments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._gram.blocks import cross, cuts
from mercer._gram.moments import Moments
from mercer._linalg import CholeskyFactor, factor_spd
from mercer._types import Array, Indices
from mercer.errors import NumericalError
from mercer.kernels import Kernel
from mercer.rows._table import take

# Size of a block of kernel values for leave-one-out: sums along the path stay in the cache.
CACHED_NUMBERS = 2**16


@dataclass(frozen=True)
class CenterPath:
    """The centers 1 … p in the order of their selection, and the fit with the first m of them, for every m.

    ``order`` (p,): positions in the sample, -1 for cluster means. ``objective`` (p,): the penalized sum of
    squares J at ``alpha``; ``gain`` (p,): its decrease by each center; ``rss`` (p,): the sum of squares without
    the penalty; ``degrees_of_freedom`` (p,): with the charge for the selection; ``score`` (p,): the criterion.
    """

    order: Indices
    alpha: float
    objective: Array
    gain: Array
    rss: Array
    degrees_of_freedom: Array
    score: Array


@dataclass(frozen=True)
class CenterProblem:
    """Centered moments G, C of the candidates, K (c, c) among them, total variation, total weight, means."""

    G: Array
    C: Array
    K: Array
    total: float
    n: float
    kernel_mean: Array
    target_mean: Array
    # Trace of G before centering: rounding errors are relative to it.
    diagonal: Array

    @classmethod
    def of(cls, moments: Moments, K: Array) -> "CenterProblem":
        G, C, V = moments.centered()
        means = moments.s / moments.n, moments.t / moments.n
        return cls(G, C, K, float(np.trace(V)), moments.n, *means, moments.G.diagonal())

    @property
    def unit(self) -> float:
        """The natural unit of alpha: tr G / tr K, at least a small part of the uncentered trace."""
        trace = float(np.trace(self.K))
        return max(float(np.trace(self.G)), 1e-6 * float(self.diagonal.sum())) / (trace if trace > 0 else 1.0)

    def penalized(self, alpha: float, order: Indices | None = None) -> Array:
        """H = G + alpha K, of some candidates or of all."""
        if order is None:
            return self.G + alpha * self.K
        return self.G[np.ix_(order, order)] + alpha * self.K[np.ix_(order, order)]


@dataclass(frozen=True)
class Beginnings:
    """Solutions for the first m of p ordered candidates, m = 1 … p, at one alpha.

    ``z`` = L^-1 C_S (p, q): the coefficients of the first m are L[:m, :m]^-T z[:m]. ``smooth`` (p,) = tr (H_SS^-1
    G_SS), the degrees of freedom of the slopes when S is not chosen by the targets.
    """

    order: Indices
    alpha: float
    factor: CholeskyFactor
    z: Array
    objective: Array
    rss: Array
    smooth: Array


# One number for each initial segment, (p,).
Score = Callable[[CenterProblem, Beginnings], Array]


def follow(problem: CenterProblem, order: Indices, alpha: float) -> Beginnings | None:
    """The solutions along an order, O(p³); None if H is not positive definite to working precision.

    With M = L^-1 K_SS L^-T the penalties c'Kc of the first m are the quadratic forms of z in M[:m, :m],
    which only need its lower triangle.
    """
    try:
        factor = factor_spd(problem.penalized(alpha, order))
    except NumericalError:
        return None
    if factor.shift:
        return None
    z = factor.half_solve(problem.C[order])
    M = factor.both_sides(problem.K[np.ix_(order, order)])
    square, diagonal = (z**2).sum(axis=1), M.diagonal()
    objective = problem.total - np.cumsum(square)
    penalty = np.cumsum(2.0 * (z * (M @ z)).sum(axis=1) - diagonal * square)
    smooth = np.cumsum(1.0 - alpha * diagonal)
    return Beginnings(order, alpha, factor, z, objective, np.maximum(objective - alpha * penalty, 0.0), smooth)


def scored_path(
    problem: CenterProblem, order: Indices, alpha: float, score: Score, cost: float
) -> CenterPath | None:
    """The path along an order of the candidates; None if :func:`follow` has none."""
    steps = follow(problem, order, alpha)
    if steps is None:
        return None
    gain = -np.diff(steps.objective, prepend=problem.total)
    degrees, scores = degrees_of_freedom(steps, cost), score(problem, steps)
    return CenterPath(order, alpha, steps.objective, gain, steps.rss, degrees, scores)


def degrees_of_freedom(steps: Beginnings, cost: float) -> Array:
    """1 + cost tr (H_SS^-1 G_SS) (p,): the intercept, and each slope ``cost`` times.

    A center selected by the targets fits their noise more than a given one: Friedman (1991),
    "Multivariate adaptive regression splines", section 3.6.
    """
    return 1.0 + cost * steps.smooth


def gcv(cost: float) -> Score:
    """n rss / (n - df)², infinite if the degrees of freedom are exhausted; Andelić (2007), Eq. (3.85)."""

    def score(problem: CenterProblem, steps: Beginnings) -> Array:
        left = problem.n - degrees_of_freedom(steps, cost)
        values: Array = problem.n * steps.rss / np.where(left > 0, left, np.nan) ** 2
        return np.where(np.isnan(values), np.inf, values)

    return score


def loo(
    kernel: Kernel, X: Any, Y: Array, weight: Array, candidates: Callable[[Indices], Any], cost: float
) -> Score:
    """Weighted mean squared leave-one-out residual (PRESS) of the rows X (b, d), Y (b, q), which are in the data.

    A row's leverage w_i (1/n + |L^-1 (k_i - mean)|²) counts ``cost`` times except for the intercept, so that cost
    = 1 is exact leave-one-out for centers given in advance. O(b p (p + q)) for each alpha.
    """

    def score(problem: CenterProblem, steps: Beginnings) -> Array:
        centers, total = candidates(steps.order), np.zeros(len(steps.order))
        for rows in cuts(len(weight), max(1, CACHED_NUMBERS // len(total))):
            total += _squared_loo_errors(
                problem, steps, cross(kernel, take(X, rows), centers), Y[rows], weight[rows], cost
            )
        mean: Array = np.where(np.isnan(total), np.inf, total) / weight.sum()
        return mean

    return score


def _squared_loo_errors(
    problem: CenterProblem, steps: Beginnings, K: NDArray[Any], Y: Array, weight: Array, cost: float
) -> Array:
    """Weighted sum of squared leave-one-out residuals (p,) of some rows; NaN if a leverage reaches 1."""
    Q = steps.factor.half_solve((K - problem.kernel_mean[steps.order]).T)
    leverage = weight * (1.0 / problem.n + cost * np.cumsum(Q**2, axis=0))
    root = np.sqrt(weight) / np.where(leverage < 1, 1.0 - leverage, np.nan)
    total = np.zeros(len(Q))
    for y, z in zip((Y - problem.target_mean).T, steps.z.T):
        error = root * (y - np.cumsum(Q * z[:, None], axis=0))
        total += np.einsum("pi,pi->p", error, error)
    return total
