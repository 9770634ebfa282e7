"""Kernels by leave-one-out: all of them on a part of the points, the best and their neighbors on a larger part."""

from collections.abc import Callable, Sequence

from mercer.kernels.base import Composition, Kernel, Wrapped
from mercer.linalg import map_in_threads
from mercer.tuning.path import TuningPath, joined

# The path of one kernel over its alphas, and the one path of several kernels.
Trial = Callable[[Kernel], TuningPath]
Search = Callable[[Sequence[Kernel]], TuningPath]


def search(kernels: Sequence[Kernel], trial: Trial, *, each: int = 1, most: int | None = None) -> TuningPath:
    """Every kernel tried, at most so many of them side by side, on ``each`` BLAS threads."""
    return joined(map_in_threads(trial, kernels, each=each, most=most))


def climb(kernels: Sequence[Kernel], start: set[int], search: Search) -> TuningPath:
    """Kernels ``start``, and then neighbors of the best until none is better: more rows want narrower kernels."""
    tried: dict[int, TuningPath] = {}
    wanted = start
    while wanted:
        tried |= dict(zip(sorted(wanted), search([kernels[g] for g in sorted(wanted)]).single()))
        best = min(tried, key=lambda g: tried[g].least[0])
        wanted = neighbors(kernels, best) - tried.keys()
    return joined([tried[g] for g in sorted(tried)])


def neighbors(kernels: Sequence[Kernel], g: int) -> set[int]:
    """Numbers of the candidates beside one; in a grid of several dimensions numbers tell no neighbors."""
    return {h for h in (g - 1, g + 1) if 0 <= h < len(kernels)} if in_line(kernels[g]) else set()


def in_line(kernel: Kernel) -> bool:
    """Whether the candidates of such a kernel lie in a line: those of sums and products are a grid."""
    return in_line(kernel.kernel) if isinstance(kernel, Wrapped) else not isinstance(kernel, Composition)
