"""Uncertainty of a regression at rows in memory: standard deviations and leave-one-out intervals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._gram import Budget, cross, gram, kernel_blocks, own_values
from mercer._gram.moments import Moments
from mercer._scores.uncertainty.intervals import LooResults, prediction_intervals, relative_std, residual_intervals
from mercer._scores.uncertainty.neighbor_residuals import NearbyResiduals
from mercer._solvers.moments.leave_one_out import orbit_of
from mercer._solvers.smoother import CenterVariance, Smoother, center_variance, make_smoother
from mercer._solvers.spectrum import Penalty
from mercer._types import Array
from mercer.errors import NumericalWarning, warn
from mercer.kernels import Kernel
from mercer.rows import Block
from mercer.rows._table import in_double, n_rows, take
from mercer.rows._virtual import Copies


@dataclass(frozen=True)
class Uncertainty:
    """A fitted function f with its ``loo_results``; every row is a center, or there are moments of all rows.

    ``rows`` are those that were held out, ``bias`` (q,) is a factor of their residuals, ``negative`` the clipped
    part of an indefinite kernel matrix. The kernel matrix of the centers is factored once, if needed: O(m³ / 3).
    ``copies`` of rows joined the fit, and leave with them.
    """

    kernel: Kernel
    centers: Any
    alpha: float
    penalty: Penalty
    intercept: bool
    loo_results: LooResults
    negative: float
    moments: Callable[[], Moments]
    rows: Callable[[], Any]
    bias: Callable[[], Array]
    budget: Budget
    copies: Copies | None = None

    def std(self, X: Any, noise: Array) -> Array:
        """Standard deviation (n, q) of a new observation at rows X, with noise (q,)."""
        parts = [self._relative_std(take(X, rows), K) for rows, K in self._blocks(X)]
        return np.concatenate([np.zeros(0), *parts])[:, None] * noise

    def intervals(self, X: Any, F: Array, coverage: float) -> Array:
        """Ends (n, q, 2) at rows X with outputs F (n, q)."""
        ends = np.empty((*F.shape, 2))
        for rows, K in self._blocks(X):
            ends[rows] = self._ends(take(X, rows), K, F[rows], coverage)
        return ends

    def _ends(self, X: Any, K: Array, F: Array, coverage: float) -> Array:
        scale, size = self._scale(X, K), self._sizes
        if self.loo_results.point is None:
            return residual_intervals(F, self.loo_results, size, scale, coverage)
        return prediction_intervals(F, self._smoother.weights(K), self.loo_results, size, scale, coverage)

    def _scale(self, X: Any, K: Array) -> Array:
        """The scale (n, q) of residuals at new rows; one if kernel values of the held-out rows are not known."""
        if self._unknown:
            return np.ones((len(K), self.loo_results.residual.shape[1]))
        return self._relative_std(X, K)[:, None] * self._nearby.scale(X)

    @cached_property
    def _sizes(self) -> Array:
        """Leave-one-out residuals (r, q) in units of the scale at their rows, which was found without them."""
        sizes = np.abs(self.loo_results.residual) if self._unknown else self._nearby.sizes
        return sizes * self.bias()

    @property
    def _unknown(self) -> bool:
        return self.loo_results.point is None and self.kernel.takes_values

    @cached_property
    def _nearby(self) -> NearbyResiduals:
        """The held-out rows with their standard deviation for the model without them, in units of the noise."""
        loo_results = self.loo_results
        if loo_results.point is not None:
            variance = self._smoother.variance_without(loo_results.held_out)
            X = take(self.centers, loo_results.point)
        else:
            X = self.rows()
            parts = [self._without(take(X, rows), K, loo_results.unit[rows]) for rows, K in self._blocks(X)]
            variance = np.concatenate(parts)
        return NearbyResiduals(self.kernel, X, loo_results, relative_std(variance, loo_results))

    def _without(self, X: Any, K: Array, unit: Array) -> Array:
        """Variance of f (n,) at training rows with kernel rows K, for models without ``unit`` of their weight."""
        of, own = self._center_variance, own_values(self.kernel, X)
        if self.copies is None:
            return of(K, own, unit)
        block = self.copies(Block(X, None, unit, 0))
        every = np.asarray(cross(self.kernel, block.X, self.kernel.centers(self.centers)), dtype=np.float64)
        return of.together(every, own, np.asarray(block.weight), orbit_of(self.copies))

    def _relative_std(self, X: Any, K: Array) -> Array:
        """Standard deviation (n,) of a new observation at rows X, in units of its noise."""
        return relative_std(self._variance(K, own_values(self.kernel, X)), self.loo_results)

    def _variance(self, K: Array, own: Array) -> Array:
        """Variance of f (n,) for kernel rows K (n, m) and k(x, x) (n,), in units of that of the noise."""
        return (self._center_variance if self.loo_results.point is None else self._smoother.variance)(K, own)

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
        K = np.asarray(gram(self.kernel, in_double(self.centers), budget=self.budget), dtype=np.float64)
        smoother = make_smoother(
            K, self.loo_results.held_out.point_weight, self.alpha, penalty=self.penalty, intercept=self.intercept
        )
        _warn_of_shift(smoother.factor.shift)
        return smoother

    def _blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Slices of rows and their kernel rows, small enough that weights for all training rows also fit."""
        m = n_rows(self.centers)
        n_weights = 0 if self.loo_results.point is None else len(self.loo_results.point)
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
