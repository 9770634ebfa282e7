"""Search over candidate kernels: along one parameter after the other, or from good ones to their neighbors."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np

from mercer._fitting.selection.path import CRITERION_TIE


class TrialSummary(Protocol):
    """What is known of a kernel that was tried: its smallest criterion, and the place of its alpha among all."""

    @property
    def least(self) -> float: ...
    @property
    def alpha_position(self) -> int: ...


TrialLike = TypeVar("TrialLike", bound=TrialSummary)
# From positions of kernels to what is known of them.
TrialsOf = Callable[[list[int]], Sequence[TrialLike]]
# What a search minimizes: the criterion, or its extrapolation to more centers.
Value = Callable[[Any], float]
least, extrapolated = attrgetter("least"), attrgetter("extrapolated")
# Times that every parameter of a grid is varied; later ones hardly change anything.
GRID_ROUNDS = 3


def along_axes(shape: tuple[int, ...], trials_of: TrialsOf[TrialLike]) -> dict[int, TrialLike]:
    """Trials along every parameter in turn, the others at their best so far, until none improves.

    One parameter: all of its values. Several: from the middle of the grid, 15 + 15 + ... instead of 15 x 15 x ...
    """
    tried: dict[int, TrialLike] = {}
    best = int(np.ravel_multi_index([length // 2 for length in shape], shape))
    for _ in range(GRID_ROUNDS if len(shape) > 1 else 1):
        before = best
        for axis in range(len(shape)):
            best = _best_after(_line(best, axis, shape), tried, trials_of)
        if best == before:
            break
    return tried


def climb(
    start: set[int],
    shape: tuple[int, ...],
    trials_of: TrialsOf[TrialLike],
    value: Value = least,
    known: Mapping[int, TrialLike] = MappingProxyType({}),
) -> dict[int, TrialLike]:
    """Trials of kernels ``start``, and then of neighbors of the one of least value until none has less.

    Those ``known`` are not tried again.
    """
    tried = dict(known)
    to_try = start if not known else neighbors(best_of(tried, value), shape) | start
    while to_try - tried.keys():
        to_try = neighbors(_best_after(to_try, tried, trials_of, value), shape)
    return tried


def best_of(tried: Mapping[int, TrialSummary], value: Value = least) -> int:
    """The position of least value; of equals, up to rounding, that with the largest alpha, then the first."""
    smallest = min(value(trial) for trial in tried.values())
    equal = [
        g for g in tried if value(tried[g]) <= smallest * (1.0 + CRITERION_TIE) or value(tried[g]) == smallest
    ]
    return min(equal, key=lambda g: (-tried[g].alpha_position, g))


def neighbors(g: int, shape: tuple[int, ...]) -> set[int]:
    """Positions in the grid that differ from one by one step along one axis."""
    position = np.array(np.unravel_index(g, shape))
    steps = np.vstack([np.eye(len(shape), dtype=int), -np.eye(len(shape), dtype=int)])
    near = [position + step for step in steps]
    return {int(np.ravel_multi_index(p, shape)) for p in near if (p >= 0).all() and (p < shape).all()}


def _line(g: int, axis: int, shape: tuple[int, ...]) -> set[int]:
    """All positions that differ from one along an axis only."""
    position = np.array(np.unravel_index(g, shape))
    line = np.repeat(position[:, None], shape[axis], axis=1)
    line[axis] = np.arange(shape[axis])
    return set(np.asarray(np.ravel_multi_index(tuple(line), shape)).tolist())


def _best_after(
    to_try: set[int], tried: dict[int, TrialLike], trials_of: TrialsOf[TrialLike], value: Value = least
) -> int:
    """The best position when those ``to_try`` have been tried too."""
    new = sorted(to_try - tried.keys())
    tried.update(zip(new, trials_of(new)))
    return best_of(tried, value)
