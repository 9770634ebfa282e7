"""Choice of kernels by leave-one-out: all on few points, the best and their neighbors on more."""

from collections.abc import Callable, Sequence

from mercer.kernels.base import Composition, Kernel, Wrapped
from mercer.linalg import map_in_threads
from mercer.tuning.path import TuningPath, joined

# The path of one kernel over its alphas, and the one path of several kernels.
Trial = Callable[[Kernel], TuningPath]
Search = Callable[[Sequence[Kernel]], TuningPath]


def search(kernels: Sequence[Kernel], trial: Trial, *, each: int = 1, most: int | None = None) -> TuningPath:
    """Try every kernel, at most this many in parallel, on ``each`` BLAS threads."""
    return joined(map_in_threads(trial, kernels, each=each, most=most))


def climb(kernels: Sequence[Kernel], start: set[int], search: Search) -> TuningPath:
    """Kernels ``start``, and then neighbors of the best until none is better: more rows favor narrower kernels."""
    tried: dict[int, TuningPath] = {}
    wanted = start
    while wanted:
        tried |= dict(zip(sorted(wanted), search([kernels[g] for g in sorted(wanted)]).single()))
        best = min(tried, key=lambda g: tried[g].least[0])
        wanted = neighbors(kernels, best) - tried.keys()
    return joined([tried[g] for g in sorted(tried)])


def neighbors(kernels: Sequence[Kernel], g: int) -> set[int]:
    """Positions of the candidates next to one; none in a grid of several dimensions."""
    return {h for h in (g - 1, g + 1) if 0 <= h < len(kernels)} if in_line(kernels[g]) else set()


def in_line(kernel: Kernel) -> bool:
    """Whether the candidates of such a kernel lie in a line: those of sums and products are a grid."""
    return in_line(kernel.kernel) if isinstance(kernel, Wrapped) else not isinstance(kernel, Composition)
