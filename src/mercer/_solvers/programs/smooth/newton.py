r"""Smooth losses with a quadratic penalty: Newton's method, from sums over rows at a point.

    min over v, b   sum_i w_i loss(y_i, f_i) + ridge / 2 |v|²,    f = Phi v + b

A step needs the value, the gradient and the Hessian of the first term: sums over rows, weighted by slopes and
curvatures, which a pass over any rows computes as well as a matrix in memory. Losses whose curvature jumps (Huber,
squared hinge) are solved in finitely many steps, as their active rows settle.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercer._linalg import factor_spd
from mercer._linalg.lapack import solve_triangular
from mercer._solvers.programs.losses import SmoothLoss
from mercer._solvers.programs.program import Program, Solution, bordered, concluded
from mercer._types import Array, Indices

MOST_NEWTON_STEPS = 100
MOST_NEWTON_HALVINGS = 40
# Where less than this share of the largest possible curvature is left, the parabola above the loss is used.
VANISHING_CURVATURE = 1e-9
# A decrement of this share of the objective of f = 0 is the last.
LAST_DECREMENT = 1e-14
# A ridge below this share of the mean diagonal of the Hessian is lost in rounding errors: its root is factored.
SMALL_RIDGE = 1e-10
# What is added to the diagonal of a Hessian without ridge, as a share of that mean.
HESSIAN_DIAGONAL = 1e-12


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
    found = concluded(program, theta[:-1], float(theta[-1]), None, steps)
    return min(found, _refined(program, found), key=lambda each: each.objective)


def _refined(program: Program, found: Solution) -> Solution:
    """The solution after a step whose system is factored by reflections, if the ridge is small."""
    loss, f = program.loss, program.outputs(found.coef, found.intercept)
    assert isinstance(loss, SmoothLoss)
    curvature = curvatures(loss, program.y, program.weight, f)
    if not has_small_ridge(program, program.Phi, curvature):
        return found
    S, some, flat = np.sqrt(curvature), np.flatnonzero(curvature), np.flatnonzero(curvature == 0.0)
    Q, inverse_root = orthogonal_root(program, program.Phi, some, S)
    target, beta = f[some] + found.beta[some] / curvature[some], found.beta[flat]
    pull = np.append(beta @ program.Phi[flat], beta.sum())
    theta = inverse_root @ (Q.T @ (S[some] * target) + pull @ inverse_root)
    return concluded(program, theta[:-1], float(theta[-1]), None, found.steps + 1)


def has_small_ridge(program: Program, Phi: Array, curvature: Array) -> bool:
    """Whether the ridge is lost in the Hessian of losses with weighted curvatures (n,) and columns Phi (n, a)."""
    trace = float(np.einsum("ij,ij->i", Phi, Phi) @ curvature + curvature.sum())
    return bool(0.0 < program.ridge < SMALL_RIDGE * trace / (Phi.shape[1] + 1))


def orthogonal_root(program: Program, Phi: Array, rows: Indices, S: Array) -> tuple[Array, Array]:
    """S G R^-1 (r, a + 1) of some rows G = (Phi, 1) with root curvatures S (n,), and R^-1, for the Hessian R'R.

    By reflections: they keep twice the digits of what only a small ridge determines, and those of rows with small
    weights below others with large ones. If the rows do not determine the intercept it is fixed, and the last row
    of R^-1 is zero.
    """
    fixed = not (program.has_intercept and len(rows))
    G = np.column_stack([Phi[rows], np.full(len(rows), float(not fixed))]) * S[rows, None]
    ridge = program.ridge or HESSIAN_DIAGONAL * float(np.einsum("ij,ij->", G, G) / (Phi.shape[1] + 1) or 1.0)
    A = np.vstack([G, np.diag(np.append(np.full(Phi.shape[1], np.sqrt(ridge)), float(fixed)))])
    order = np.argsort(-np.abs(A).max(axis=1), kind="stable")
    Q, R = np.linalg.qr(A[order])
    inverse_root = solve_triangular(R, np.eye(len(R)))
    inverse_root[-1] *= not fixed
    return Q[np.argsort(order)[: len(rows)]], inverse_root


def minimize(
    evaluate: Evaluate, theta: Array, *, ridge: float, scale: float, has_intercept: bool = True
) -> tuple[Array, int]:
    """theta at the minimum of the sums plus the penalty, and the number of evaluations."""
    penalty = np.append(np.full(len(theta) - 1, ridge), 0.0)
    point, steps = _penalized(evaluate(theta), theta, penalty), 1
    for _ in range(MOST_NEWTON_STEPS):
        step = _step(point, has_intercept=has_intercept)
        decrement = float(point.gradient @ step)
        if decrement <= LAST_DECREMENT * scale:
            return theta - step, steps
        for halving in range(MOST_NEWTON_HALVINGS):
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
    return most if curvature.sum() < VANISHING_CURVATURE * most.sum() else curvature


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
