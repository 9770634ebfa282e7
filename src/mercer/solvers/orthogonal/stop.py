"""How many centers: the least number whose criterion is close to the best on the path."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.solvers.orthogonal.path import SparsePath, Steps, left_out, states
from mercer.solvers.spectrum import Observations

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Stop = Literal["loo", "gcv", "bic", "residual", "improvement"]
STOPS = get_args(Stop)
# From left-out outputs (a, n, q) to one number each (a,).
Judge = Callable[[Array], Array]

# Numbers of centers at which outputs of left-out rows are judged, evenly spaced in their logarithm.
CHECKPOINTS = 48
# Steps over which the improvement is averaged.
PATIENCE = 5


def checkpoints(p: int) -> Indices:
    """At most so many numbers between 1 and p, both among them."""
    return np.unique(np.round(np.geomspace(1, p, min(CHECKPOINTS, p))).astype(np.intp))


def judged(steps: Steps, observations: Observations, judge: Judge) -> tuple[Indices, Array]:
    """Numbers of centers, and the criterion of the left-out outputs at each."""
    numbers = checkpoints(len(steps.order))
    wanted = set(numbers.tolist())
    scores = [
        float(judge(left_out(steps, state, observations)[None])[0]) for state in states(steps) if state.m in wanted
    ]
    return numbers, np.array(scores)


def number_of_centers(
    path: SparsePath, stop: Stop | None, tolerance: float, judgement: tuple[Indices, Array]
) -> int:
    """How many centers of the path are kept.

    "loo", "gcv", "bic": the least number whose criterion is within ``tolerance`` (relative) of the least.
    "residual": the first at which no residual is larger than ``tolerance``. "improvement": the first at which
    the mean decrease of the objective over five steps is below ``tolerance`` of it. None: all.
    """
    if stop is None:
        return len(path)
    if stop == "residual":
        return _first(path.max_residual <= tolerance, len(path))
    if stop == "improvement":
        return _first(_improvement(path.objective) < tolerance, len(path))
    numbers, scores = judgement if stop == "loo" else (np.arange(1, len(path) + 1), _curve(path, stop))
    if np.isnan(scores).all():
        raise NumericalError(
            f'stop="{stop}": the criterion is not a number for any number of centers; bring the features to one '
            "scale with a StandardScaler, or lower the parameters of the kernel"
        )
    least = np.nanmin(scores)
    return int(numbers[np.flatnonzero(scores <= least + tolerance * abs(least))[0]])


def _curve(path: SparsePath, stop: Stop) -> Array:
    """Criteria in the unit of a variance, so that a relative tolerance means the same for all."""
    if stop == "gcv":
        return path.gcv
    return np.asarray(np.exp((path.bic - path.bic.min()) / path.n_counted))


def _improvement(objective: Array) -> Array:
    """Mean relative decrease over the last steps, infinite before there are enough."""
    mean = np.full(len(objective), np.inf)
    if len(objective) > PATIENCE:
        before = np.maximum(objective[:-PATIENCE], np.finfo(np.float64).tiny)
        mean[PATIENCE:] = (objective[:-PATIENCE] - objective[PATIENCE:]) / before / PATIENCE
    return mean


def _first(reached: NDArray[np.bool_], p: int) -> int:
    where = np.flatnonzero(reached)
    return int(where[0]) + 1 if len(where) else p
