"""The candidates compared and the result chosen, for all solvers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mercer.kernels.base import Kernel
from mercer.solvers.spectrum import Coefficients
from mercer.types import Array

# alpha="loo" tries these multiples of the trace of the centered kernel matrix.
ALPHAS = 10.0 ** np.linspace(-8.0, 0.5, 35)
# Kernels are compared on at most this many points: all of them on the first number, then the best and their
# neighbors in the grid on the second; the penalty is chosen on all points.
SCREEN_POINTS = 1000
FINAL_POINTS = 3000
FINALISTS = 3


@dataclass(frozen=True)
class TuningPath:
    """The candidates compared: kernels (g), their alphas (g, a), the criterion (g, a), the number of points.

    ``n_centers`` is the number of centers if not every point was one, for several kernels the largest.
    ``surprise`` (g, a) is minus twice the log evidence of the models with every point as a center, if requested.
    """

    kernels: list[Kernel]
    alphas: Array
    scores: Array
    n_points: int
    n_centers: int | None = None
    surprise: Array | None = None

    @property
    def best(self) -> tuple[int, int]:
        """Position of the smallest score; ties (to nine digits) go to the largest alpha, then the first kernel."""
        if not np.isfinite(self.scores).any():
            raise ValueError(
                "the leave-one-out criterion is not finite for any alpha; scale the features and targets"
            )
        least = np.nanmin(self.scores)
        g, a = np.nonzero(self.scores <= least + 1e-9 * abs(least))
        chosen = np.lexsort((g, -a))[0]
        return int(g[chosen]), int(a[chosen])

    @property
    def least(self) -> Array:
        """The smallest score of each kernel (g,), infinite if all are NaN."""
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
    """One path from several with equally many alphas and points."""
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
    """The chosen kernel and alpha, coef (m, q), intercept (q,), fitted and leave-one-out outputs of n rows (n, q).

    ``negative`` is the clipped negative part in units of the largest eigenvalue, ``error`` a bound on rounding
    errors of outputs, in units of the spread of the targets. ``paths`` ends with the chosen kernel alone;
    comparisons of kernels come before. ``otherwise`` (n, q) are the leave-one-out outputs under the other meaning
    of weights, counts or importance, if that is in doubt; ``without`` holds models without a fold.
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
