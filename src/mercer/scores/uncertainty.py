"""Uncertainty of a regression at rows in memory: standard deviations and leave-one-out intervals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.errors import NumericalWarning, warn
from mercer.gram import Budget, gram, kernel_blocks, self_similarity
from mercer.gram.moments import Moments
from mercer.kernels import Kernel
from mercer.rows.table import n_rows, take
from mercer.scores.intervals import LeftOut, prediction_intervals, relative_std, residual_intervals
from mercer.scores.scale import LocalScale, choose_scale
from mercer.solvers import CenterVariance, HeldOut, Smoother, center_variance, make_smoother
from mercer.solvers.spectrum import Penalty
from mercer.types import Array, Indices

# The scale of residuals near a row is that of at most so many left-out rows.
MOST_NEIGHBORS = 1000


@dataclass(frozen=True)
class Uncertainty:
    """A fitted function f with the evidence ``left_out``; every row is a center, or there are moments of all rows.

    ``rows`` are those that were left out, ``price`` (q,) is a factor of their residuals, ``negative`` the clipped
    part of an indefinite kernel matrix. The kernel matrix of the centers is factored once, if needed: O(m³ / 3).
    """

    kernel: Kernel
    centers: Any
    alpha: float
    penalty: Penalty
    intercept: bool
    left_out: LeftOut
    negative: float
    moments: Callable[[], Moments]
    rows: Callable[[], Any]
    price: Callable[[], Array]
    budget: Budget

    def std(self, X: Any, noise: Array) -> Array:
        """Standard deviation (n, q) of a new observation at rows X, with noise (q,)."""
        parts = [self._relative_std(take(X, rows), K) for rows, K in self._blocks(X)]
        std: Array = np.concatenate(parts)[:, None] * noise
        return std

    def intervals(self, X: Any, F: Array, coverage: float) -> Array:
        """Ends (n, q, 2) at rows X with outputs F (n, q)."""
        ends = np.empty((*F.shape, 2))
        for rows, K in self._blocks(X):
            ends[rows] = self._ends(take(X, rows), K, F[rows], coverage)
        return ends

    def _ends(self, X: Any, K: Array, F: Array, coverage: float) -> Array:
        scale, size = self._scale(X, K), self._sizes
        if self.left_out.point is None:
            return residual_intervals(F, self.left_out, size, scale, coverage)
        return prediction_intervals(F, self._smoother.weights(K), self.left_out, size, scale, coverage)

    def _scale(self, X: Any, K: Array) -> Array:
        """The scale (n, q) of residuals at new rows; one if kernel values of the left-out rows are not known."""
        if self._unknown:
            return np.ones((len(K), self.left_out.residual.shape[1]))
        std = self._relative_std(X, K)[:, None]
        return std * (1.0 if self._local.constant else self._local(self._distances(X)))

    @property
    def _unknown(self) -> bool:
        return self.left_out.point is None and self.kernel.takes_values

    @cached_property
    def _sizes(self) -> Array:
        """Left-out residuals (r, q) in units of the scale at their rows, which was found without them."""
        size = np.abs(self.left_out.residual) * self.price()
        if self._unknown:
            return size
        size /= self._left_out_std[:, None]
        if self._local.constant:
            return size
        for rows, D in self._distance_blocks(self._left_out_rows):
            size[rows] /= self._local(D, self._held(np.arange(n_rows(self._left_out_rows))[rows]))
        return size

    @cached_property
    def _local(self) -> LocalScale:
        """The scale of residuals near a row, from some of the left-out rows."""
        chosen, left_out = self._neighbors, self.left_out
        size = np.abs(left_out.residual[chosen]) / self._left_out_std[chosen, None]
        D = self._distances(take(self._left_out_rows, chosen))
        return choose_scale(D, self._held(chosen), size, left_out.count[chosen])

    @cached_property
    def _left_out_std(self) -> Array:
        """Standard deviation (r,) of each left-out row for the model without it, in units of its noise."""
        if self.left_out.point is not None:
            return relative_std(self._smoother.variance_without(self._held_out), self.left_out)
        X, unit = self._left_out_rows, self.left_out.unit
        parts = [self._center_variance(K, self._own(take(X, rows)), unit[rows]) for rows, K in self._blocks(X)]
        return relative_std(np.concatenate(parts), self.left_out)

    @cached_property
    def _neighbors(self) -> Indices:
        """Some of the left-out rows, evenly spaced."""
        r = len(self.left_out.residual)
        return np.arange(r)[:: -(-r // MOST_NEIGHBORS)]

    @cached_property
    def _left_out_rows(self) -> Any:
        point = self.left_out.point
        return self.rows() if point is None else take(self.centers, point)

    def _held(self, rows: Indices) -> Array:
        """What each neighbor counts for (n, h) when one of these left-out rows, or its fold, is held out."""
        count, fold, chosen = self.left_out.count, self.left_out.fold, self._neighbors
        held = np.repeat(count[None, chosen], len(rows), axis=0)
        if fold is not None:
            held[fold[rows][:, None] == fold[chosen]] = 0.0
            return held
        same = rows[:, None] == chosen
        held[same] = np.maximum(held[same] - 1.0, 0.0)
        return held

    def _distances(self, X: Any) -> Array:
        """Squared distances (n, h) of the kernel to the neighbors."""
        return np.concatenate([D for _, D in self._distance_blocks(X)])

    def _distance_blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        Z = take(self._left_out_rows, self._neighbors)
        own = self._own(Z)
        for rows, K in kernel_blocks(self.kernel, X, Z, len(own)):
            D = self._own(take(X, rows))[:, None] + own - 2.0 * K
            yield rows, np.maximum(D, 0.0)

    def _relative_std(self, X: Any, K: Array) -> Array:
        """Standard deviation (n,) of a new observation at rows X, in units of its noise."""
        return relative_std(self._variance(K, self._own(X)), self.left_out)

    def _own(self, X: Any) -> Array:
        return np.asarray(self_similarity(self.kernel, X), np.float64)

    @property
    def _held_out(self) -> HeldOut:
        left_out = self.left_out
        assert left_out.point is not None
        assert left_out.share is not None
        weight = np.bincount(left_out.point, left_out.weight).astype(np.float64)
        return HeldOut(left_out.point, left_out.share, left_out.fold, weight)

    def _variance(self, K: Array, own: Array) -> Array:
        """Variance of f (n,) for kernel rows K (n, m) and k(x, x) (n,), in units of that of the noise."""
        return (self._center_variance if self.left_out.point is None else self._smoother.variance)(K, own)

    @cached_property
    def _center_variance(self) -> CenterVariance:
        """The variance of f with fewer centers than rows."""
        self._refuse_kernel_values()
        K = gram(self.kernel, self.centers, budget=self.budget) if self.penalty == "rkhs" else None
        variance = center_variance(self.moments(), K, self.alpha, intercept=self.intercept)
        _warn_of_shift(variance.penalized.shift)
        return variance

    @cached_property
    def _smoother(self) -> Smoother:
        """The smoother: the weight of each center in a prediction."""
        self._refuse_kernel_values()
        if self.negative > 0:
            raise ValueError(
                f"uncertainty needs a positive semidefinite kernel, but {self.kernel} is not one; use another "
                "kernel"
            )
        # Rounding errors of float32 would make the matrix indefinite for small alpha.
        single = getattr(self.centers, "dtype", None) == np.float32
        centers = self.centers.astype(np.float64) if single else self.centers
        K = np.asarray(gram(self.kernel, centers, budget=self.budget), dtype=np.float64)
        smoother = make_smoother(
            K, self._held_out.point_weight, self.alpha, penalty=self.penalty, intercept=self.intercept
        )
        _warn_of_shift(smoother.factor.shift)
        return smoother

    def _blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Slices of rows and their kernel rows, small enough that weights for all training rows also fit."""
        m = n_rows(self.centers)
        n_weights = 0 if self.left_out.point is None else len(self.left_out.point)
        for rows, K in kernel_blocks(self.kernel, X, self.centers, m, width=max(m, n_weights)):
            yield rows, np.asarray(K, dtype=np.float64)

    def _refuse_kernel_values(self) -> None:
        if self.kernel.takes_values:
            raise ValueError(
                'uncertainty needs kernel values among the training rows, which kernel="precomputed" does not '
                "keep; pass the kernel itself"
            )


def _warn_of_shift(shift: float) -> None:
    """Warn if a factorization needed a shift of the diagonal."""
    if shift > 0:
        warn(
            f"the kernel matrix is singular to working precision; {shift:.1e} was added to its diagonal",
            NumericalWarning,
        )
