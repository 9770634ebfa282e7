r"""Smooth losses with a quadratic penalty: Newton's method, from sums over rows at a point.

    min over v, b   sum_i w_i loss(y_i, f_i) + ridge / 2 |v|²,    f = Phi v + b

A step needs the value, the gradient and the Hessian of the first term: sums over rows, weighted by slopes and
curvatures, which a pass over any rows computes as well as a matrix in memory. Losses whose curvature jumps (Huber,
squared hinge) are solved in finitely many steps, as their active rows settle.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercer.linalg import factor_spd
from mercer.solvers.programs.losses import SmoothLoss
from mercer.solvers.programs.program import Program, Solution, bordered, concluded
from mercer.types import Array

MOST_STEPS = 100
MOST_HALVINGS = 40
# Where less than this share of the largest possible curvature is left, the parabola above the loss is used.
FLAT = 1e-9
# A decrement of this share of the objective of f = 0 is the last.
DECREMENT = 1e-14


@dataclass(frozen=True)
class LossSums:
    """LossSums over rows at a point theta = (v, b): value, gradient (m + 1,), Hessian (m + 1, m + 1)."""

    value: float
    gradient: Array
    hessian: Array


# From theta (m + 1,) to the sums there.
Evaluate = Callable[[Array], LossSums]


def newton(program: Program, start: Array | None = None) -> Solution:
    """The solution from ``start`` (m + 1,), coefficients and intercept; O(n m² + m³) for each step."""
    theta, steps = minimize(
        in_memory(program),
        np.zeros(program.m + 1) if start is None else start,
        ridge=program.ridge,
        scale=program.scale,
        has_intercept=program.has_intercept,
    )
    return concluded(program, theta[:-1], float(theta[-1]), None, steps)


def minimize(
    evaluate: Evaluate, theta: Array, *, ridge: float, scale: float, has_intercept: bool = True
) -> tuple[Array, int]:
    """theta at the minimum of the sums plus the penalty, and the number of evaluations."""
    penalty = np.append(np.full(len(theta) - 1, ridge), 0.0)
    point, steps = _penalized(evaluate(theta), theta, penalty), 1
    for _ in range(MOST_STEPS):
        step = _step(point, has_intercept=has_intercept)
        decrement = float(point.gradient @ step)
        if decrement <= DECREMENT * scale:
            return theta - step, steps
        for halving in range(MOST_HALVINGS):
            trial = theta - 0.5**halving * step
            new, steps = _penalized(evaluate(trial), trial, penalty), steps + 1
            if new.value <= point.value - 1e-4 * 0.5**halving * decrement:
                break
        else:
            return theta, steps
        theta, point = trial, new
    return theta, steps


def in_memory(program: Program) -> Evaluate:
    """The sums of a program whose columns are in memory."""
    loss, Phi, y, weight = program.loss, program.Phi, program.y, program.weight
    assert isinstance(loss, SmoothLoss)

    def evaluate(theta: Array) -> LossSums:
        f = program.outputs(theta[:-1], float(theta[-1]))
        return sums_of(loss, Phi, y, weight, f)

    return evaluate


def curvatures(loss: SmoothLoss, y: Array, weight: Array, f: Array) -> Array:
    """Weighted curvatures (n,) at outputs f (n,); where hardly any is left, those of parabolas above the loss."""
    curvature, most = weight * loss.curvature(y, f), weight * loss.majorant(y, f)
    return most if curvature.sum() < FLAT * most.sum() else curvature


def sums_of(loss: SmoothLoss, Phi: Array, y: Array, weight: Array, f: Array) -> LossSums:
    """The sums over some rows with outputs f (n,)."""
    slope, hessian = weight * loss.slope(y, f), bordered(Phi, curvatures(loss, y, weight, f))
    gradient = np.append(Phi.T @ slope, slope.sum())
    return LossSums(float(weight @ loss.value(y, f)), gradient, hessian)


def _penalized(sums: LossSums, theta: Array, penalty: Array) -> LossSums:
    hessian = sums.hessian
    hessian[np.diag_indices_from(hessian)] += penalty
    value = sums.value + 0.5 * float(penalty @ theta**2)
    return replace(sums, value=value, gradient=sums.gradient + penalty * theta)


def _step(point: LossSums, *, has_intercept: bool) -> Array:
    """Newton's step (m + 1,), to be subtracted."""
    if has_intercept:
        return factor_spd(point.hessian).solve(point.gradient)
    return np.append(factor_spd(point.hessian[:-1, :-1]).solve(point.gradient[:-1]), 0.0)
