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
from mercer.rows.table import n_rows
from mercer.scores.intervals import LeftOut, prediction_intervals, predictive_std, residual_intervals
from mercer.solvers import Smoother, center_variance, make_smoother
from mercer.solvers.spectrum import Penalty
from mercer.types import Array


@dataclass(frozen=True)
class Uncertainty:
    """A fitted function f with the evidence ``left_out``; every row is a center, or there are moments of all rows.

    ``negative`` is the clipped part of an indefinite kernel matrix. The kernel matrix of the centers is factored
    once, when it is needed: O(m³ / 3).
    """

    kernel: Kernel
    centers: Any
    alpha: float
    penalty: Penalty
    intercept: bool
    left_out: LeftOut
    negative: float
    moments: Callable[[], Moments]
    budget: Budget

    def std(self, X: Any, noise: Array) -> Array:
        """Standard deviation (n, q) of a new observation at rows X, with noise (q,)."""
        parts = [
            self._variance(K, np.asarray(self_similarity(self.kernel, X[rows]), np.float64))
            for rows, K in self._blocks(X)
        ]
        return predictive_std(noise, np.concatenate(parts), self.left_out)

    def intervals(self, X: Any, F: Array, coverage: float) -> Array:
        """Ends (n, q, 2) at rows X with outputs F (n, q)."""
        if self.left_out.point is None:
            return residual_intervals(F, self.left_out, coverage)
        ends = np.empty((*F.shape, 2))
        for rows, K in self._blocks(X):
            ends[rows] = prediction_intervals(F[rows], self._smoother.weights(K), self.left_out, coverage)
        return ends

    @cached_property
    def _variance(self) -> Callable[[Array, Array], Array]:
        """From kernel rows (n, m) and k(x, x) (n,) to the variance of f (n,), in units of that of the noise."""
        if self.left_out.point is not None:
            return self._smoother.variance
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
        assert self.left_out.point is not None
        weight = np.bincount(self.left_out.point, self.left_out.weight).astype(np.float64)
        smoother = make_smoother(K, weight, self.alpha, penalty=self.penalty, intercept=self.intercept)
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
