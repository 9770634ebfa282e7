"""Fits with a few hundred random centers, quick enough to be made again and again while a kernel is learned.

A width costs one small eigendecomposition for all alphas; once one is known, only its neighbors are tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer._expansion import Expansion
from mercer._fitting.selection.comparison import ComparisonProblem
from mercer._fitting.selection.problem import ExactProblem
from mercer._fitting.selection.search import best_of, climb
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.moments.nested_centers import coefficients
from mercer._types import Array, Indices
from mercer.kernels._base import Kernel, grid_shape

# Random rows as centers; fits to fewer rows are exact. There are more where more would lower the criterion of the
# best kernel below this share, as the second half of the first ones did.
PRELIMINARY_CENTERS, MORE_CENTERS = 300, 600
CRITERION_LOWERED = 0.8
# Multiples of the best of a few alphas far apart.
FINER_FACTORS = 10.0 ** np.linspace(-0.5, 0.5, 5)
# Multiples of the alpha of a similar fit.
FAR_FACTORS = 10.0 ** np.linspace(-1.0, 1.0, 9)


@dataclass(frozen=True)
class RoughFit:
    """A fit with few centers, its leave-one-out outputs (n, q), the position of its kernel among all, its alpha,
    and the largest number of centers.
    """

    expansion: Expansion
    loo: Array
    position: int
    alpha: float
    most_centers: int


def fit_roughly(
    kernels: Sequence[Kernel],
    problem: ExactProblem,
    order: Indices,
    previous: RoughFit | None = None,
    *,
    climbs: bool = True,
) -> RoughFit:
    """The best of all kernels, with the first points of a random order as centers.

    If there is a fit to begin with, from its kernel to better neighbors, with as many centers; if the search does
    not ``climb``, with the kernel in its place and an alpha near its own. O(u m² + m³) for each kernel, u points
    and m centers.
    """
    most_centers = PRELIMINARY_CENTERS if previous is None else previous.most_centers
    comparison = ComparisonProblem(problem, order[:most_centers], None, halves=previous is None)
    # Every third one, and then the neighbors of the best.
    start = set(range(min(1, len(kernels) - 1), len(kernels), 3)) if previous is None else {previous.position}
    if previous is not None and not climbs:
        return _solve(comparison, kernels[previous.position], previous.alpha * FAR_FACTORS, previous.position)
    tried = climb(start, grid_shape(kernels), partial(comparison.trials_at, kernels))
    best = best_of(tried)
    fit = _solve(comparison, tried[best].kernel, tried[best].alpha * FINER_FACTORS, best)
    if previous is not None or tried[best].extrapolated > CRITERION_LOWERED * tried[best].least:
        return fit
    return fit_roughly(kernels, problem, order, replace(fit, most_centers=MORE_CENTERS))


def _solve(comparison: ComparisonProblem, kernel: Kernel, alphas: Array, position: int) -> RoughFit:
    """The fit with a kernel in some position, at the best of some alphas."""
    problem, observations = comparison.problem, comparison.problem.observations
    K = comparison.values([kernel])(kernel)
    nested = comparison.nested(kernel, K)
    fit = nested.first()
    share = problem.criterion.share
    alpha = alphas[[np.argmin(comparison.losses([fit], [alphas])[0] @ share)]]
    coef, intercept = coefficients(nested, K, comparison.centers, observations.point_target, float(alpha[0]))
    loo = loo_outputs(fit, observations, alpha, problem.fold)[0]
    expansion = Expansion(kernel, kernel.centers(problem.X, comparison.centers), coef, intercept)
    return RoughFit(expansion, loo, position, float(alpha[0]), len(comparison.centers))
