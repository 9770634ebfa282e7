r"""The program behind every method, its dual, and solutions that carry their duality gap.

    min over v, b   sum_i w_i loss(y_i, f_i) + lasso |v|_1 + ridge / 2 |v|²,    f = Phi v + b

The columns of Phi (n, m) are kernel values against centers, or coordinates in which the norm of f is that of v.
With dual variables beta = -w slope, of which the intercept makes the sum zero, the dual is

    max over beta   - sum_i w_i conj(y_i, -beta_i / w_i) - sum_j pen*(Phi_j' beta)

where pen* is zero up to lasso and (|u| - lasso)² / (2 ridge) beyond. Any beta in its domain is a bound: the gap of
a solution is recomputed from it, never taken from the way it was found.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercer._solvers.programs.losses import Loss
from mercer._types import Array

# A gap of this share of the objective counts as none; solvers stop at a tenth of it.
CONVERGED_GAP = 1e-7
SOLVED_GAP = 0.1 * CONVERGED_GAP


@dataclass(frozen=True)
class Program:
    """Columns Phi (n, m), targets y (n,) and weights (n,) of rows, a loss, and the weights of both penalties."""

    loss: Loss
    Phi: Array
    y: Array
    weight: Array
    ridge: float
    lasso: float = 0.0
    has_intercept: bool = True

    @property
    def m(self) -> int:
        return int(self.Phi.shape[1])

    def around_mean(self) -> tuple[Array, "Program"]:
        """The means (m,) of the columns, zero without intercept, and the program with columns around them.

        Its solution differs in the intercept only; columns that hardly vary would be hard to tell from it.
        """
        if not (self.has_intercept and self.weight.any()):
            return np.zeros(self.m), self
        mean: Array = self.weight @ self.Phi / self.weight.sum()
        return mean, replace(self, Phi=self.Phi - mean)

    def outputs(self, coef: Array, intercept: float) -> Array:
        """f (n,)."""
        return self.Phi @ coef + intercept

    def objective(self, coef: Array, intercept: float) -> float:
        return self.objective_of(self.outputs(coef, intercept), coef)

    def objective_of(self, f: Array, coef: Array) -> float:
        """The objective from outputs (n,) that are known."""
        return float(self.weight @ self.loss.value(self.y, f)) + self.penalty(coef)

    def penalty(self, coef: Array) -> float:
        return self.lasso * float(np.abs(coef).sum()) + 0.5 * self.ridge * float(coef @ coef)

    def dual(self, beta: Array) -> float:
        """The dual objective for beta (n,), which is made feasible first: a lower bound of every objective."""
        beta = self._feasible(beta)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = np.where(self.weight > 0.0, -beta / self.weight, 0.0)
        beyond = np.maximum(np.abs(self.Phi.T @ beta) - self.lasso, 0.0)
        cost = 0.0 if self.ridge == 0.0 else float(beyond @ beyond) / (2.0 * self.ridge)
        return -float(self.weight @ self.loss.conjugate(self.y, slope)) - cost

    def _feasible(self, beta: Array) -> Array:
        """beta with sum zero, and for lasso alone within its bounds, by shortening: zero is always feasible."""
        if self.has_intercept:
            positive, negative = beta[beta > 0.0].sum(), -beta[beta < 0.0].sum()
            least = min(positive, negative)
            with np.errstate(divide="ignore", invalid="ignore"):
                beta = np.where(beta > 0.0, beta * (least / positive), beta * (least / negative))
            beta = np.nan_to_num(beta)
        if self.ridge == 0.0:
            largest = float(np.abs(self.Phi.T @ beta).max(initial=0.0))
            beta = beta * min(1.0, self.lasso / largest if largest > 0.0 else 1.0)
        return beta

    def slopes(self, f: Array) -> Array:
        """beta (n,) at outputs f (n,)."""
        return -self.weight * self.loss.slope(self.y, f)

    @cached_property
    def scale(self) -> float:
        """The objective of the best constant near zero: what gaps are compared with."""
        return float(self.weight @ self.loss.value(self.y, np.zeros_like(self.y))) or 1.0

    @cached_property
    def largest_outputs(self) -> Array:
        """Bounds (n,) of the outputs of this program, and of those without some of its rows or columns.

        The penalty of a solution is at most the objective of f = 0, which bounds Phi v. The slopes of the losses
        sum to zero, so that some f is below, and some above, an end of the range of targets, which bounds b.
        """
        moved = np.full(len(self.y), np.inf)
        if self.lasso > 0.0:
            moved = np.abs(self.Phi).max(axis=1, initial=0.0) * (self.scale / self.lasso)
        if self.ridge > 0.0:
            norm = np.sqrt(np.einsum("ij,ij->i", self.Phi, self.Phi))
            moved = np.minimum(moved, norm * np.sqrt(2.0 * self.scale / self.ridge))
        if not self.has_intercept:
            return moved
        some = self.weight[self.weight > 0.0]
        # Of the logistic loss, whose slopes never vanish, the log-odds of the classes.
        ends = np.abs(self.y).max(initial=0.0) + self.loss.tolerance + float(np.log(some.sum() / some.min()))
        return np.asarray(moved + moved.max(initial=0.0) + ends)


def bordered(Phi: Array, weight: Array) -> Array:
    """[Phi, 1]' diag(weight) [Phi, 1] (m + 1, m + 1) for weights >= 0; rows without weight cost nothing."""
    some, m = weight > 0.0, Phi.shape[1]
    part, weight = (Phi, weight) if some.all() else (Phi[some], weight[some])
    scaled = part * np.sqrt(weight)[:, None]
    A = np.empty((m + 1, m + 1))
    A[:m, :m] = scaled.T @ scaled
    A[:m, m] = A[m, :m] = weight @ part
    A[m, m] = weight.sum()
    return A


@dataclass(frozen=True)
class Solution:
    """Coefficients (m,), intercept, dual variables (n,), the objective, its duality gap, and how it ended."""

    coef: Array
    intercept: float
    beta: Array
    objective: float
    gap: float
    steps: int
    status: str

    @property
    def converged(self) -> bool:
        return self.status.startswith("solved")


def concluded(program: Program, coef: Array, intercept: float, beta: Array | None, steps: int) -> Solution:
    """The solution with its gap; beta (n,) of the solver, or None for the slopes at the outputs."""
    f = program.outputs(coef, intercept)
    objective = program.objective_of(f, coef)
    beta = program.slopes(f) if beta is None else beta
    gap = objective - program.dual(beta)
    within = gap <= CONVERGED_GAP * program.scale
    status = f"solved in {steps} steps" if within else f"not solved in {steps} steps"
    return Solution(coef, intercept, beta, objective, gap, steps, f"{status}: duality gap {gap:.1e}")
