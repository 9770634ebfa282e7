"""Choice of alpha by leave-one-out, for every solver: the criterion for all alphas, and the fit at its minimum."""

from collections.abc import Callable

import numpy as np

from mercer._fitting.result import ChosenSolution
from mercer._fitting.selection.path import ALPHAS, TuningPath
from mercer._fitting.selection.protocols import AlphaFits, FactoredFits
from mercer._gram.blocks import cuts
from mercer._types import Array, Floats
from mercer.kernels._base import Kernel

# From leave-one-out outputs (a, n, q) to one number for each alpha (a,).
OutputCriterion = Callable[[Floats], Array]

# Alphas around a good one are tried in steps of this factor.
ALPHA_STEP = 10.0**0.4
ALPHA_PAIR = ALPHA_STEP ** np.array([-0.5, 0.5])
ALPHAS_DOWN = ALPHA_STEP ** np.array([-1.0, 0.0])


def alphas_to_try(alpha: float | None, unit: float, shares: Array = ALPHAS) -> Array:
    """The alpha given, or (a,) multiples of a unit, which is 0 where all fits are constant."""
    return np.array([alpha]) if alpha is not None else shares * (unit or 1.0)


def alpha_path(
    kernel: Kernel,
    fits: AlphaFits,
    alphas: Array,
    criterion: OutputCriterion,
    *,
    at_once: int,
    n_points: int,
    n_centers: int | None = None,
) -> TuningPath:
    """The criterion of every alpha (a,), ``at_once`` of them at a time."""
    scores, _ = _scores_of(fits, alphas, criterion, at_once)
    return TuningPath([kernel], alphas[None], scores[None], n_points, n_centers)


def choose_alpha(
    kernel: Kernel,
    fits: FactoredFits,
    alphas: Array,
    criterion: OutputCriterion,
    *,
    at_once: int,
    n_points: int,
    n_centers: int | None = None,
    recompute_loo: bool,
    paths: tuple[TuningPath, ...] = (),
    release: Callable[[], None],
) -> ChosenSolution:
    """The fit at the alpha with the smallest criterion.

    Leave-one-out outputs at that alpha are recomputed (``recompute_loo``) or, if that costs as much as for all
    alphas, taken from the comparison, provided it was made in one step. ``paths`` are those of kernels compared
    before; ``release`` is called when outputs of other alphas have been freed.
    """
    scores, outputs = _scores_of(fits, alphas, criterion, at_once)
    path = TuningPath([kernel], alphas[None], scores[None], n_points, n_centers)
    best = path.best[1]
    kept = not recompute_loo and len(outputs) == len(alphas)
    loo = np.array(outputs[best] if kept else fits.loo_outputs(alphas[best : best + 1])[0], dtype=np.float64)
    del outputs
    release()
    return _solution(fits, (*paths, path), loo)


def choose_near(
    kernel: Kernel,
    fits: FactoredFits,
    start: float,
    criterion: OutputCriterion,
    *,
    given: bool,
    bounds: tuple[float, float],
    n_points: int,
    paths: tuple[TuningPath, ...] = (),
    down: bool = False,
) -> ChosenSolution:
    """The fit at the best of a few alphas near ``start``, or at ``start`` if it was given."""
    scores = scores_near(lambda alphas: criterion(fits.loo_outputs(alphas)), start, bounds, given=given, down=down)
    path = TuningPath([kernel], *scores, n_points)
    best = path.alphas[path.best]
    return _solution(fits, (*paths, path), np.array(fits.loo_outputs(np.array([best]))[0], dtype=np.float64))


def scores_near(
    criterion: Callable[[Array], Array],
    start: float,
    bounds: tuple[float, float],
    *,
    given: bool = False,
    down: bool = False,
) -> tuple[Array, Array]:
    """A few alphas (1, a) around ``start``, or that one if it was given, and their criterion (1, a).

    Two alphas beyond an end are tried as long as the end is the best, within ``bounds``; one beyond the lower end
    only if that is where better ones are to be expected (``down``).
    """
    tried: dict[float, float] = {}
    to_try = [start] if given else _inside(start * (ALPHAS_DOWN if down else ALPHA_PAIR), bounds)
    while to_try:
        tried |= dict(zip(to_try, criterion(np.array(to_try)).tolist()))
        beyond = [] if given else _beyond(tried, bounds)
        to_try = [alpha for alpha in beyond if alpha not in tried and not (down and alpha > min(tried))]
        to_try = to_try[-1:] if down else to_try
    alphas = np.array([sorted(tried)])
    return alphas, np.array([[tried[alpha] for alpha in alphas[0].tolist()]])


def _inside(alphas: Array, bounds: tuple[float, float]) -> list[float]:
    """The alphas, those outside of the bounds moved there."""
    return sorted(set(np.clip(alphas, *bounds).tolist()))


def _beyond(tried: dict[float, float], bounds: tuple[float, float]) -> list[float]:
    """Two more alphas beyond an end that is the best so far."""
    alphas = sorted(tried)
    best = min(alphas, key=lambda alpha: (not np.isfinite(tried[alpha]), tried[alpha], -alpha))
    if best not in (alphas[0], alphas[-1]):
        return []
    step = ALPHA_STEP if best == alphas[-1] else 1.0 / ALPHA_STEP
    return _inside(best * np.array([step, step**2]), bounds)


def _scores_of(fits: AlphaFits, alphas: Array, criterion: OutputCriterion, at_once: int) -> tuple[Array, Floats]:
    """The criterion (a,) of every alpha, and leave-one-out outputs of those evaluated last."""
    scores = np.empty(0)
    for some in cuts(len(alphas), at_once):
        # Outputs of only one step are in memory.
        outputs: Floats = np.empty((0, 0, 0))
        outputs = fits.loo_outputs(alphas[some])
        scores = np.append(scores, criterion(outputs))
    return scores, outputs


def _solution(fits: FactoredFits, paths: tuple[TuningPath, ...], loo: Array) -> ChosenSolution:
    """The fit chosen by the last path, with its leave-one-out outputs (n, q)."""
    last, opposite = paths[-1], fits.opposite
    alpha = float(last.alphas[last.best])
    one = np.array([alpha])
    found = fits.solve(alpha)
    return ChosenSolution(
        kernel=last.kernels[0],
        alpha=alpha,
        coef=found.coef,
        intercept=found.intercept,
        fitted=fits.fitted(alpha),
        loo=loo,
        degrees_of_freedom=float(fits.degrees_of_freedom(one)[0]),
        rank=fits.spectrum.rank,
        negative=fits.spectrum.negative,
        error=fits.error(alpha, loo),
        paths=paths,
        loo_opposite=None if opposite is None else np.asarray(opposite.loo_outputs(one)[0], dtype=np.float64),
    )
