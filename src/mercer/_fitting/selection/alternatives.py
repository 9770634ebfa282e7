"""Which of several kinds of kernels, or units of features: the first, unless another is certainly better."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer._fitting.selection.path import Trial, TuningPath, path_of
from mercer._fitting.selection.search import along_axes, best_of, climb
from mercer.kernels._base import Kernel, grid_shape
from mercer.kernels._vectors.units import RankNormal

# The widths of each kind that are tried first, and their distance.
FIRST_WIDTH, WIDTHS_APART = 1, 3

Kinds = Sequence[Sequence[Kernel]]
TrialsOf = Callable[[Sequence[Kernel]], Sequence[Trial]]
# Other fits of the kernels of trials.
Again = Callable[[Sequence[Trial]], Sequence[Trial]]


@dataclass(frozen=True)
class Alternative:
    """The candidates of the best kind, fits of those that were tried better, and the comparisons of all kinds."""

    candidates: Sequence[Kernel]
    tried: dict[int, Trial]
    paths: tuple[TuningPath, ...]


def best_alternative(
    kinds: Kinds,
    roughly: TrialsOf,
    better: TrialsOf,
    every: Again | None = None,
    *,
    n_points: int,
    n_centers: tuple[int, int],
) -> Alternative:
    """The best kind, each given by its candidates, and the first if none is better than it by more than a standard
    error of paired losses.

    A few widths of every kind are tried ``roughly``, with neighbors where a kind is not certainly worse than the
    best one, or the first. The best width of these is tried with ``every`` point as a center, together with the
    best kind of each other class, since rough kernels gain more by centers than smooth ones; or by ``better`` fits
    if that is not possible. At last neighbors in the best kind are tried by ``better`` fits. ``n_centers``: those
    of rough and better fits.
    """
    rough = [_tried(kernels, roughly) for kernels in kinds]
    least = min((tried[best_of(tried)] for tried in rough), key=lambda trial: trial.least)
    close = [c for c, tried in enumerate(rough) if c == 0 or not least.worse(tried[best_of(tried)].losses)]
    if every is not None:
        close = sorted({*close, *_best_of_classes(rough)})
    for c in close:
        rough[c] = _climbed(kinds[c], roughly, rough[c])
    widths = [rough[c][best_of(rough[c])] for c in close]
    again = [] if every is None else every(widths)
    if not all(np.isfinite(trial.least) for trial in again):
        every, again = None, []
    again = again or better([trial.kernel for trial in widths])
    best = dict(zip(close, again))
    chosen = max(close, key=lambda c: (best[0].certain_gain(best[c]), -c))
    start = best_of(rough[chosen])
    known = dict(zip([start], [best[chosen]] if every is None else better([kinds[chosen][start]])))
    tried = _climbed(kinds[chosen], better, known)
    others = [best[c] for c in close if c != chosen]
    compared = [
        ([trial for tried in rough for trial in _ordered(tried)], n_centers[0]),
        *([] if every is None else [(again, None)]),
        ([*(others if every is None else ()), *_ordered(tried)], n_centers[1]),
    ]
    return Alternative(
        kinds[chosen],
        tried,
        tuple(path_of(_to_show(trials, kinds[chosen]), n_points, m) for trials, m in compared),
    )


def _best_of_classes(rough: Sequence[dict[int, Trial]]) -> list[int]:
    """The kind with the best trial of each class of kernels, whatever their units."""
    best: dict[type, tuple[float, int]] = {}
    for c, tried in enumerate(rough):
        trial = tried[best_of(tried)]
        kernel = trial.kernel.kernel if isinstance(trial.kernel, RankNormal) else trial.kernel
        best[type(kernel)] = min((trial.least, c), best.get(type(kernel), (np.inf, c)))
    return [c for _, c in best.values()]


def _to_show(trials: Sequence[Trial], chosen: Sequence[Kernel]) -> list[Trial]:
    """The trials, without the scores of ranks that the chosen kernel does not need."""
    if isinstance(chosen[0], RankNormal):
        return list(trials)
    return [
        replace(trial, kernel=RankNormal(trial.kernel.kernel)) if isinstance(trial.kernel, RankNormal) else trial
        for trial in trials
    ]


def _climbed(kernels: Sequence[Kernel], trials_of: TrialsOf, known: dict[int, Trial]) -> dict[int, Trial]:
    """With neighbors of the best width, until none is better."""
    return climb(set(), grid_shape(kernels), partial(_some, kernels, trials_of), known=known)


def _ordered(tried: dict[int, Trial]) -> list[Trial]:
    return [tried[g] for g in sorted(tried)]


def _some(kernels: Sequence[Kernel], trials_of: TrialsOf, some: list[int]) -> Sequence[Trial]:
    return trials_of([kernels[g] for g in some])


def _tried(kernels: Sequence[Kernel], trials_of: TrialsOf) -> dict[int, Trial]:
    """Some widths; several parameters along their axes."""
    shape = grid_shape(kernels)
    if len(shape) > 1 or len(kernels) <= WIDTHS_APART:
        return along_axes(shape, partial(_some, kernels, trials_of))
    some = list(range(FIRST_WIDTH, len(kernels), WIDTHS_APART))
    return dict(zip(some, _some(kernels, trials_of, some)))
