"""The candidates compared, for all solvers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer._types import Array, Indices
from mercer.kernels._base import Kernel

# alpha="loo" tries these multiples of the trace of the centered kernel matrix.
ALPHAS = 10.0 ** np.linspace(-8.0, 0.5, 35)
# Kernels are compared with fewer of them, and then with these multiples of the best one.
COARSE_ALPHAS = ALPHAS[1::3]
NEAR_ALPHA = 10.0 ** np.linspace(-0.75, 0.75, 3)
# Criteria that differ by less than this share are equal: rounding must not decide.
CRITERION_TIE = 1e-6
# Differences below this share of the criterion do not matter, however certain they are.
INSIGNIFICANT_SHARE = 1e-4
# As many new rows would not show a difference below this share of the standard error of the criterion itself.
INVISIBLE_SHARE = 0.1


@dataclass(frozen=True)
class Trial:
    """A kernel for alphas (a,): the criterion (a,), at its minimum the losses (n,) of rows with shares (n,).

    ``least_with_half`` is the smallest criterion with half of the centers, if that was computed.
    """

    kernel: Kernel
    alphas: Array
    scores: Array
    losses: Array
    share: Array
    least_with_half: float | None = None

    @classmethod
    def of(cls, kernel: Kernel, alphas: Array, losses: Array, share: Array) -> "Trial":
        """From the losses (a, n) for every alpha."""
        scores = losses @ share
        scores = np.where(np.isfinite(scores), scores, np.inf)
        # A copy: the losses of all alphas are not kept.
        return cls(kernel, alphas, scores, losses[_last_of_least(scores)].copy(), share)

    def of_rows(self, rows: Indices) -> "Trial":
        """At the same alpha, evaluated on some of the rows."""
        share = self.share[rows] / self.share[rows].sum()
        alpha = np.array([self.alpha])
        return Trial(self.kernel, alpha, np.array([self.losses[rows] @ share]), self.losses[rows], share)

    @property
    def extrapolated(self) -> float:
        """The criterion to expect of twice as many centers, if they help by the factor of the last ones."""
        return self.least * self._factor

    def extrapolated_to(self, doublings: float) -> float:
        """The criterion to expect of 2^doublings times as many centers, if each doubling helps half as much as the
        one before: 1/2 + 1/4 + ... of the last factor.
        """
        return self.least * float(self._factor ** (1.0 - 0.5**doublings))

    @property
    def _factor(self) -> float:
        """By which the last half of the centers lowered the criterion; 1 if it did not."""
        helped = self.least_with_half is not None and 0.0 < self.least < self.least_with_half < np.inf
        return self.least / self.least_with_half if helped and self.least_with_half is not None else 1.0

    @property
    def least(self) -> float:
        """The smallest criterion, infinite if none is finite."""
        return float(self.scores.min())

    @property
    def alpha(self) -> float:
        """The alpha with the smallest criterion; of equals, up to rounding, the largest."""
        return float(self.alphas[_last_of_least(self.scores)])

    @property
    def alpha_position(self) -> int:
        """The position of that alpha among all."""
        return _last_of_least(self.scores)

    def worse(self, losses: Array) -> bool:
        """Whether other losses (n,) of the same rows are larger by more than one paired standard error."""
        return not float(self.share @ (losses - self.losses)) <= max(
            self.error(losses), INSIGNIFICANT_SHARE * abs(self.least)
        )

    def certain_gain(self, other: "Trial") -> float:
        """By how much another trial is better, 0 if not by more than one paired standard error."""
        gain = float(self.share @ (self.losses - other.losses))
        return gain if gain > max(self.error(other.losses), INSIGNIFICANT_SHARE * abs(self.least)) else 0.0

    def visibly_worse(self, losses: Array) -> bool:
        """Whether they are larger by an amount that as many new rows could show."""
        more = float(self.share @ (losses - self.losses))
        return not more <= INVISIBLE_SHARE * _standard_error(self.losses, self.share)

    def error(self, losses: Array) -> float:
        """Standard error of the mean difference to other losses (n,) of the same rows."""
        return _standard_error(losses - self.losses, self.share)


def _standard_error(losses: Array, share: Array) -> float:
    """Of the weighted mean of losses (n,) with shares (n,)."""
    return float(np.sqrt(share**2 @ (losses - share @ losses) ** 2))


def _last_of_least(scores: Array) -> int:
    """The last position of the smallest score, up to rounding."""
    return int(np.flatnonzero(scores <= scores.min() * (1.0 + CRITERION_TIE) + np.finfo(np.float64).tiny)[-1])


@dataclass(frozen=True)
class TuningPath:
    """The candidates compared: kernels (g), their alphas (g, a), the criterion (g, a), the number of points.

    ``n_centers`` is the number of centers if not every point was one, for several kernels the largest.
    ``marginal_deviance`` (g, a) is minus twice the log marginal likelihood of the models with every point as a
    center, if requested.
    """

    kernels: list[Kernel]
    alphas: Array
    scores: Array
    n_points: int
    n_centers: int | None = None
    marginal_deviance: Array | None = None

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


def joined(paths: Sequence[TuningPath]) -> TuningPath:
    """One path from several with equally many alphas and points."""
    centers = [path.n_centers for path in paths if path.n_centers is not None]
    deviances = [path.marginal_deviance for path in paths if path.marginal_deviance is not None]
    return replace(
        paths[0],
        n_centers=max(centers, default=None),
        kernels=[kernel for path in paths for kernel in path.kernels],
        alphas=np.concatenate([path.alphas for path in paths]),
        scores=np.concatenate([path.scores for path in paths]),
        marginal_deviance=np.concatenate(deviances) if deviances else None,
    )


def path_of(trials: Iterable[Trial], n_points: int, n_centers: int | None) -> TuningPath:
    """The path of trials with as many alphas each."""
    trials = list(trials)
    return TuningPath(
        kernels=[trial.kernel for trial in trials],
        alphas=np.stack([trial.alphas for trial in trials]),
        scores=np.stack([trial.scores for trial in trials]),
        n_points=n_points,
        n_centers=n_centers,
    )
