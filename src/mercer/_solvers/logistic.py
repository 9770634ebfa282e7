r"""Kernel logistic regression for one alpha, with every row a center: the minimum, and a step without rows.

    min over c, b   sum_i w_i log(1 + exp(-y_i f_i)) + alpha / 2 c'Kc,   f = K c + b,   y_i = -1, +1

Near outputs f the loss is least squares to working targets z with weights w e, e its curvature. With
S = sqrt(w e), minus the slopes g of the losses and v = S^-1 dc, a step solves

    (S K S + alpha) v + S db = S^-1 (g - alpha c),   1'(c + dc) = 0.

The last step is a fit of least squares to all of it; leaving a row out of that is leaving it out of the step (Rad
and Maleki 2020), for single rows, parts of a weight, and folds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from mercer._linalg.lapack import cholesky_lower, solve_triangular
from mercer._solvers.exact_fits import AlphaFit, RootFit
from mercer._solvers.inverse_root import Projected
from mercer._solvers.programs.smooth.working_targets import LEAST_CURVATURE
from mercer._solvers.spectrum import Coefficients, Observations
from mercer._types import Array, Indices
from mercer.errors import NumericalError

# Steps that promise less than this for a unit of weight are left to the last one, which is exact.
LAST_LOGISTIC_DECREMENT = 1e-6
MOST_LOGISTIC_STEPS, MOST_LOGISTIC_HALVINGS = 50, 20


@dataclass(frozen=True)
class LogisticFits:
    """Kernel logistic regressions of two classes, for any alpha.

    K (u, u) at the points of ``observations``, whose targets (n, 1) are -1 and +1; ``fold`` (n,) numbers the rows
    that are held out together.
    """

    K: Array
    observations: Observations
    intercept: bool
    fold: Indices | None = None

    def at(self, alpha: float, start: Coefficients | None = None) -> AlphaFit:
        """The fit for one alpha, perhaps from the solution for another one."""
        nothing = Coefficients(np.zeros((len(self.K), 1)), np.zeros(1))
        found = _LogisticPoint.of(self, alpha, start or nothing).minimum()
        if found is None and start is not None:
            # From outputs that are certain, and wrong, steps lead nowhere: hardly any curvature is left there.
            found = _LogisticPoint.of(self, alpha, nothing).minimum()
        if found is None:
            raise NumericalError(f"Newton steps of the logistic loss end before the minimum for alpha={alpha:.1e}")
        return self._last_step(alpha, found.f)

    def _last_step(self, alpha: float, f: Array) -> AlphaFit:
        """Least squares to working targets at outputs f (u,)."""
        given, p = self.observations, expit(f)
        curvature, point = np.maximum(p * (1.0 - p), LEAST_CURVATURE), given.rows.point
        slope, own = _shares(given.Y) - p[point], curvature[point]
        working = replace(
            given,
            Y=(f[point] + slope / own)[:, None],
            weight=given.weight * own,
            unit=given.unit * own,
            opposite_unit=None if given.opposite_unit is None else given.opposite_unit * own,
        )
        fits = RootFit(Projected.of(self.K, working.point_weight, intercept=self.intercept), working, self.fold)
        fits.compute(np.array([alpha]))
        return fits.fits[alpha]


def _shares(Y: Array) -> Array:
    """The shares (u,) of the second class for mean targets (u, 1)."""
    return np.asarray(0.5 * (Y[:, 0] + 1.0))


@dataclass(frozen=True)
class _LogisticStep:
    """Changes of coefficients (u,), of K c (u,) and of the intercept; minus the slope of the objective."""

    coef: Array
    product: Array
    intercept: float
    decrement: float


@dataclass(frozen=True)
class _LogisticPoint:
    """Coefficients c and K c (u,), and the intercept, for shares (u,) of the second class and weights (u,)."""

    K: Array
    shares: Array
    weight: Array
    alpha: float
    has_intercept: bool
    coef: Array
    product: Array
    intercept: float

    @classmethod
    def of(cls, fits: LogisticFits, alpha: float, start: Coefficients) -> "_LogisticPoint":
        given, coef = fits.observations, start.coef[:, 0]
        shares, product = _shares(given.point_target), fits.K @ coef
        at = coef, product, float(start.intercept[0])
        return cls(fits.K, shares, given.point_weight, alpha, fits.intercept, *at)

    @property
    def f(self) -> Array:
        return self.product + self.intercept

    @property
    def value(self) -> float:
        """The objective."""
        f = self.f
        loss = np.logaddexp(0.0, f) - self.shares * f
        return float(self.weight @ loss + 0.5 * self.alpha * self.coef @ self.product)

    def minimum(self) -> "_LogisticPoint | None":
        """The point that steps lead to, from which one more is exact; None: they do not get there."""
        here = self
        for _ in range(MOST_LOGISTIC_STEPS):
            step = here.step()
            there = here.after(step)
            if step.decrement <= LAST_LOGISTIC_DECREMENT * here.weight.sum():
                return there
            if there is here:
                return None
            here = there
        return None

    def step(self) -> _LogisticStep:
        """Newton's."""
        p = expit(self.f)
        slope = self.weight * (self.shares - p)
        S = np.sqrt(self.weight * np.maximum(p * (1.0 - p), LEAST_CURVATURE))
        solve = _solver(self.K, S, self.alpha)
        gradient = self.alpha * self.coef - slope
        v, intercept = solve(-gradient / S), 0.0
        if self.has_intercept:
            column = solve(S)
            intercept = float(S @ v + self.coef.sum()) / float(S @ column)
            v -= intercept * column
        coef = S * v
        product = self.K @ coef
        decrement = float(intercept * slope.sum() - gradient @ product)
        return _LogisticStep(coef, product, intercept, decrement)

    def after(self, step: _LogisticStep) -> "_LogisticPoint":
        """The point that a step leads to, or a part of it that lowers the objective."""
        before, part = self.value, 1.0
        for _ in range(MOST_LOGISTIC_HALVINGS):
            there = replace(
                self,
                coef=self.coef + part * step.coef,
                product=self.product + part * step.product,
                intercept=self.intercept + part * step.intercept,
            )
            if there.value <= before - 1e-4 * part * step.decrement:
                return there
            part *= 0.5
        return self


def _solver(K: Array, S: Array, alpha: float) -> Callable[[Array], Array]:
    """The function b -> (S K S + alpha)^-1 b for b (u,)."""
    L = np.asfortranarray((K * S * S[:, None]).T)
    L[np.diag_indices_from(L)] += alpha
    if cholesky_lower(L):
        raise NumericalError(f"alpha={alpha:.1e} is too small for a Cholesky factor of the kernel matrix")

    def solve(b: Array) -> Array:
        half = solve_triangular(L, b[:, None], lower=True)
        return solve_triangular(L, half, lower=True, transposed=True)[:, 0]

    return solve
