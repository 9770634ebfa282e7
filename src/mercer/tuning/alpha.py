"""Choice of alpha by leave-one-out, for every solver: the criterion for all alphas, and the fit at its minimum."""

from collections.abc import Callable

import numpy as np

from mercer.gram.blocks import cuts
from mercer.kernels.base import Kernel
from mercer.tuning.path import ALPHAS, Tuned, TuningPath
from mercer.tuning.solver import AlphaFits, Factored
from mercer.types import Array, Floats

# From leave-one-out outputs (a, n, q) to one number for each alpha (a,).
Judge = Callable[[Floats], Array]


def alphas_to_try(alpha: float | None, unit: float, shares: Array = ALPHAS) -> Array:
    """The alpha given, or (a,) multiples of a unit, which is 0 where all fits are constant."""
    return np.array([alpha]) if alpha is not None else shares * (unit or 1.0)


def alpha_path(
    kernel: Kernel,
    fits: AlphaFits,
    alphas: Array,
    judge: Judge,
    *,
    at_once: int,
    n_points: int,
    n_centers: int | None = None,
) -> TuningPath:
    """The criterion of every alpha (a,), ``at_once`` of them at a time."""
    scores, _ = _judged(fits, alphas, judge, at_once)
    return TuningPath([kernel], alphas[None], scores[None], n_points, n_centers)


def choose_alpha(
    kernel: Kernel,
    fits: Factored,
    alphas: Array,
    judge: Judge,
    *,
    at_once: int,
    n_points: int,
    n_centers: int | None = None,
    again: bool,
    paths: tuple[TuningPath, ...] = (),
    release: Callable[[], None],
) -> Tuned:
    """The fit at the alpha with the smallest criterion.

    Leave-one-out outputs at that alpha are recomputed (``again``) or, if that costs as much as for all alphas,
    taken from the comparison, provided it was made in one step. ``paths`` are those of kernels compared before;
    ``release`` is called when outputs of other alphas have been freed.
    """
    scores, outputs = _judged(fits, alphas, judge, at_once)
    path = TuningPath([kernel], alphas[None], scores[None], n_points, n_centers)
    best = path.best[1]
    kept = not again and len(outputs) == len(alphas)
    loo = np.array(outputs[best] if kept else fits.left_out(alphas[best : best + 1])[0], dtype=np.float64)
    del outputs
    release()
    return _tuned(fits, (*paths, path), loo)


def _judged(fits: AlphaFits, alphas: Array, judge: Judge, at_once: int) -> tuple[Array, Floats]:
    """The criterion (a,) of every alpha, and leave-one-out outputs of those evaluated last."""
    scores = np.empty(0)
    for some in cuts(len(alphas), at_once):
        # Outputs of only one step are in memory.
        outputs: Floats = np.empty((0, 0, 0))
        outputs = fits.left_out(alphas[some])
        scores = np.append(scores, judge(outputs))
    return scores, outputs


def _tuned(fits: Factored, paths: tuple[TuningPath, ...], loo: Array) -> Tuned:
    """The fit chosen by the last path, with its leave-one-out outputs (n, q)."""
    last, doubted = paths[-1], fits.doubted
    alpha = float(last.alphas[last.best])
    one = np.array([alpha])
    solution = fits.solve(alpha)
    return Tuned(
        kernel=last.kernels[0],
        alpha=alpha,
        coef=solution.coef,
        intercept=solution.intercept,
        fitted=fits.fitted(alpha),
        loo=loo,
        degrees_of_freedom=float(fits.degrees_of_freedom(one)[0]),
        rank=fits.spectrum.rank,
        negative=fits.spectrum.negative,
        error=fits.error(alpha, loo),
        paths=paths,
        otherwise=None if doubted is None else np.asarray(doubted.left_out(one)[0], dtype=np.float64),
    )
