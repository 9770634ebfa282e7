"""How many centers: the smallest number whose criterion is close to the best on the path."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from mercer._gram.blocks import cuts
from mercer._linalg.tolerance import smallest
from mercer._solvers.orthogonal.path import SparsePath
from mercer._solvers.spectrum import Observations
from mercer._types import Array, Indices
from mercer.errors import NumericalError

Stop = Literal["loo", "gcv", "bic", "residual", "improvement"]
STOPS = get_args(Stop)
# Numbers of centers at which leave-one-out outputs are evaluated, evenly spaced in their logarithm.
CHECKPOINTS = 48
# Outputs that are judged together: calls cost more than the work.
OUTPUTS_AT_ONCE = 2**15
# Steps over which the improvement is averaged.
MEAN_STEPS = 5


@dataclass(frozen=True)
class Judgement:
    """Numbers of centers (c,), the criterion at each, and the standard error of its excess over the minimum."""

    numbers: Indices
    scores: Array
    errors: Array

    @property
    def smoothed(self) -> "Judgement":
        """With the median of each criterion and its two neighbors: a single good number may be luck."""
        scores = np.where(np.isnan(self.scores), np.inf, self.scores)
        return replace(self, scores=median_filter(scores, 3, mode="nearest"))


def checkpoints(p: int) -> Indices:
    """At most this many numbers between 1 and p, both included."""
    if p == 0:
        raise NumericalError(
            "no row can become a center, since the kernel matrix has no positive pivot; use a kernel that is "
            "positive semidefinite, or change its parameters"
        )
    return np.unique(np.round(np.geomspace(1, p, min(CHECKPOINTS, p))).astype(np.intp))


def judged(
    numbers: Indices,
    outputs: Array,
    observations: Observations,
    losses_of: Callable[[Array], Array],
    share: Array,
) -> Judgement:
    """The criterion of held-out outputs (c, n, q) with these numbers of centers (c,).

    ``losses_of`` maps outputs (a, n, q) to losses (a, n) of rows, which are weighted by their shares (n,).
    """
    at_once = max(1, OUTPUTS_AT_ONCE // observations.Y.size)
    losses = np.concatenate([losses_of(outputs[some]) for some in cuts(len(outputs), at_once)])
    scores = losses @ share
    best = np.argmin(np.where(np.isnan(scores), np.inf, scores))
    # Losses that are not finite have no finite error.
    with np.errstate(invalid="ignore", over="ignore"):
        errors = paired_errors((losses - losses[best]) * share, observations)
    return Judgement(numbers, scores, errors)


def paired_errors(parts: Array, observations: Observations) -> Array:
    """Standard errors (c,) of the sums of parts (c, n) over rows, each counted as many times as it has copies."""
    copies = observations.weight / observations.unit
    n = copies.sum()
    apart = parts / copies - parts.sum(axis=1, keepdims=True) / n
    return np.asarray(np.sqrt(apart**2 @ copies * n / max(n - 1.0, 1.0)))


def number_of_centers(
    path: SparsePath,
    stop: Stop | None,
    tolerance: float,
    judgement: Judgement | None = None,
    standard_errors: float = 0.0,
) -> int:
    """How many centers of the path are kept by the ``judgement`` of held-out rows, for "loo" (None: by PRESS).

    "loo", "gcv", "bic": the smallest number whose criterion is within ``tolerance`` (relative) of the minimum, or
    for "loo" within ``standard_errors`` times the standard error of the difference, paired over the rows.
    "residual": the first at which no residual exceeds ``tolerance``. "improvement": the first at which the mean
    relative decrease of the objective over five steps is below ``tolerance``. None: all.
    """
    if stop is None:
        return len(path)
    if stop == "residual":
        return _first(path.max_residual <= tolerance, len(path))
    if stop == "improvement":
        return _first(_improvement(path.objective) < tolerance, len(path))
    if stop != "loo" or judgement is None:
        judgement = Judgement(np.arange(1, len(path) + 1), _curve(path, stop), np.zeros(len(path)))
    scores = judgement.scores
    if np.isnan(scores).all():
        raise NumericalError(
            f'stop="{stop}": the criterion is NaN for every number of centers; scale the features with a '
            "StandardScaler, or lower the kernel's parameters"
        )
    least = np.nanmin(scores)
    within = np.maximum(standard_errors * judgement.errors, tolerance * abs(least))
    return int(judgement.numbers[np.flatnonzero(scores <= least + within)[0]])


def _curve(path: SparsePath, stop: Stop) -> Array:
    """Criteria in units of a variance, so that a relative tolerance has the same meaning for all."""
    if stop != "bic":
        return path.gcv if stop == "gcv" else path.loo
    return np.asarray(np.exp((path.bic - path.bic.min()) / path.n_counted))


def _improvement(objective: Array) -> Array:
    """Mean relative decrease over the last steps, infinite before there are enough."""
    mean = np.full(len(objective), np.inf)
    if len(objective) > MEAN_STEPS:
        before = np.maximum(objective[:-MEAN_STEPS], smallest(np.float64))
        mean[MEAN_STEPS:] = (objective[:-MEAN_STEPS] - objective[MEAN_STEPS:]) / before / MEAN_STEPS
    return mean


def _first(reached: NDArray[np.bool_], p: int) -> int:
    where = np.flatnonzero(reached)
    return int(where[0]) + 1 if len(where) else p
