r"""Smooth losses with a quadratic penalty: Newton's method.

    min over v, b   sum_i w_i loss(y_i, f_i) + ridge / 2 |v|²,    f = Phi v + b

Losses whose curvature jumps (Huber, squared hinge) are solved in finitely many steps, as their active rows settle.
"""

from dataclasses import dataclass

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
class ObjectiveAt:
    """The objective at a point theta = (v, b): value, gradient (m + 1,), Hessian (m + 1, m + 1)."""

    value: float
    gradient: Array
    hessian: Array

    @classmethod
    def of(cls, program: Program, theta: Array) -> "ObjectiveAt":
        """That of a program whose loss is smooth; O(n m²)."""
        f, penalty = program.outputs(theta[:-1], theta[-1]), np.append(np.full(program.m, program.ridge), 0.0)
        beta, hessian = program.slopes(f), bordered(program.Phi, curvatures(program, f))
        hessian[np.diag_indices_from(hessian)] += penalty
        gradient = penalty * theta - np.append(program.Phi.T @ beta, beta.sum())
        return cls(program.objective_of(f, theta[:-1]), gradient, hessian)


def newton(program: Program, start: Array | None = None) -> Solution:
    """The solution from ``start`` (m + 1,), coefficients and intercept; O(n m² + m³) for each step."""
    theta, steps = _minimum(program, np.zeros(program.m + 1) if start is None else start)
    found = concluded(program, theta[:-1], float(theta[-1]), None, steps)
    return min(found, _refined(program, found), key=lambda each: each.objective)


def _refined(program: Program, found: Solution) -> Solution:
    """The solution after a step whose system is factored by reflections, if the ridge is small."""
    f = program.outputs(found.coef, found.intercept)
    curvature = curvatures(program, f)
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


def _minimum(program: Program, theta: Array) -> tuple[Array, int]:
    """theta at the minimum of the objective, and the number of evaluations."""
    point, steps = ObjectiveAt.of(program, theta), 1
    for _ in range(MOST_NEWTON_STEPS):
        step = _step(point, has_intercept=program.has_intercept)
        decrement = float(point.gradient @ step)
        if decrement <= LAST_DECREMENT * program.scale:
            return theta - step, steps
        for halving in range(MOST_NEWTON_HALVINGS):
            trial = theta - 0.5**halving * step
            new, steps = ObjectiveAt.of(program, trial), steps + 1
            if new.value <= point.value - 1e-4 * 0.5**halving * decrement:
                break
        else:
            return theta, steps
        theta, point = trial, new
    return theta, steps


def curvatures(program: Program, f: Array) -> Array:
    """Weighted curvatures (n,) at outputs f (n,); where hardly any is left, those of parabolas above the loss."""
    loss, y, weight = program.loss, program.y, program.weight
    assert isinstance(loss, SmoothLoss)
    curvature, most = weight * loss.curvature(y, f), weight * loss.majorant(y, f)
    return most if curvature.sum() < VANISHING_CURVATURE * most.sum() else curvature


def _step(point: ObjectiveAt, *, has_intercept: bool) -> Array:
    """Newton's step (m + 1,), to be subtracted."""
    if has_intercept:
        return factor_spd(point.hessian).solve(point.gradient)
    return np.append(factor_spd(point.hessian[:-1, :-1]).solve(point.gradient[:-1]), 0.0)
