"""What was tried and what was chosen, whoever tried it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mercer.kernels.base import Kernel
from mercer.solvers.spectrum import Coefficients
from mercer.types import Array

# alpha="loo" tries these multiples of the trace of the centered kernel matrix.
ALPHAS = 10.0 ** np.linspace(-8.0, 0.5, 35)
# Kernels are compared on at most so many points: all of them on the first number, then the best and their
# neighbors in the grid on the second; the penalty is chosen on all points.
SCREEN_POINTS = 1000
FINAL_POINTS = 3000
FINALISTS = 3


@dataclass(frozen=True)
class TuningPath:
    """What was tried: kernels (g), their alphas (g, a), the criterion (g, a), on how many points.

    ``n_centers`` is the number of centers where not every point was one, of several kernels the largest.
    ``surprise`` (g, a) is minus twice the log evidence of the models with every point a center, if asked for.
    """

    kernels: list[Kernel]
    alphas: Array
    scores: Array
    n_points: int
    n_centers: int | None = None
    surprise: Array | None = None

    @property
    def best(self) -> tuple[int, int]:
        """Position of the least score; among equals (to nine digits) the largest alpha, then the first kernel."""
        if not np.isfinite(self.scores).any():
            raise ValueError(
                "the leave-one-out criterion is not finite for any alpha; scale the inputs and targets"
            )
        least = np.nanmin(self.scores)
        g, a = np.nonzero(self.scores <= least + 1e-9 * abs(least))
        chosen = np.lexsort((g, -a))[0]
        return int(g[chosen]), int(a[chosen])

    @property
    def least(self) -> Array:
        """The least score of each kernel (g,), infinite where none is a number."""
        least: Array = np.where(np.isnan(self.scores), np.inf, self.scores).min(axis=1)
        return least

    def leaders(self) -> set[int]:
        """Positions of the best few kernels."""
        return {int(g) for g in np.argsort(self.least, kind="stable")[:FINALISTS]}

    def single(self) -> "list[TuningPath]":
        """One path for each kernel."""
        return [self._only(g) for g in range(len(self.kernels))]

    def _only(self, g: int) -> "TuningPath":
        one = slice(g, g + 1)
        surprise = None if self.surprise is None else self.surprise[one]
        return replace(
            self, kernels=self.kernels[one], alphas=self.alphas[one], scores=self.scores[one], surprise=surprise
        )


def joined(paths: Sequence[TuningPath]) -> TuningPath:
    """One path of several with as many alphas, tried on as many points."""
    centers = [path.n_centers for path in paths if path.n_centers is not None]
    surprise = [path.surprise for path in paths if path.surprise is not None]
    return replace(
        paths[0],
        n_centers=max(centers, default=None),
        kernels=[kernel for path in paths for kernel in path.kernels],
        alphas=np.concatenate([path.alphas for path in paths]),
        scores=np.concatenate([path.scores for path in paths]),
        surprise=np.concatenate(surprise) if surprise else None,
    )


@dataclass(frozen=True)
class Tuned:
    """The chosen kernel and alpha, coef (m, q), intercept (q,), outputs of n rows fitted and left out (n, q).

    ``negative`` is the clipped negative part in units of the largest eigenvalue, ``error`` what rounding may do to
    outputs, in units of the spread of the targets. ``paths`` ends with the chosen kernel alone; kernels that were
    compared come before. ``otherwise`` (n, q) are the left-out outputs if weights meant the other thing, counts or
    importance, where that is in doubt; ``without`` holds models without a fold.
    """

    kernel: Kernel
    alpha: float
    coef: Array
    intercept: Array
    fitted: Array
    loo: Array
    degrees_of_freedom: float
    rank: int
    negative: float
    error: float
    paths: tuple[TuningPath, ...]
    otherwise: Array | None = None
    without: Mapping[int, Coefficients] = field(default_factory=dict)
