"""Programs: a loss, a penalty, and the solver for both."""

from collections.abc import Sequence

import numpy as np

from mercer._solvers.programs.losses import Huber, Logistic, NonSmoothLoss
from mercer._solvers.programs.nonsmooth.intercepts import to_middle
from mercer._solvers.programs.nonsmooth.interior_point import interior_point
from mercer._solvers.programs.nonsmooth.linear_programs import generate_columns
from mercer._solvers.programs.program import Program, Solution, concluded
from mercer._solvers.programs.smooth.lasso_descent import descend
from mercer._solvers.programs.smooth.newton import newton
from mercer._solvers.programs.smooth.simultaneous import Programs, solve_together
from mercer._types import Array

__all__ = ["Program", "Solution", "solve", "solve_all"]

# What solutions that are found together may still gain, as a share of the objective of f = 0.
LEAST_GAIN_TOGETHER = 1e-12


def solve(program: Program, start: Array | None = None) -> Solution:
    """The solution by the method for its loss and penalty; ``start`` (m + 1,) is used by those that can."""
    if isinstance(program.loss, NonSmoothLoss):
        mean, around = program.around_mean()
        found = generate_columns(around, start) if program.ridge == 0.0 else interior_point(around)
        intercept = found.intercept - float(mean @ found.coef)
        if program.has_intercept:
            f = program.outputs(found.coef, intercept)
            intercept += to_middle(program.loss.kinks(program.y), program.weight, f)
        return concluded(program, found.coef, intercept, found.beta, found.steps)
    found = newton(program, start) if program.lasso == 0.0 else descend(program, start)
    if found.converged or not isinstance(program.loss, Huber):
        return found
    return min(found, interior_point(program), key=lambda solution: solution.gap)


def solve_all(
    programs: Sequence[Program], starts: Sequence[Array | None], enough: float = LEAST_GAIN_TOGETHER
) -> list[Solution]:
    """The solutions of programs that differ in their targets only; ``enough`` is what they may still gain."""
    first = programs[0]
    if not isinstance(first.loss, Logistic) or first.lasso != 0.0:
        return [solve(program, start) for program, start in zip(programs, starts)]
    known = [np.zeros(first.m + 1) if start is None else start for start in starts]
    Y = np.column_stack([program.y for program in programs])
    weight = np.broadcast_to(first.weight[:, None], Y.shape)
    together = Programs(first.loss, first.Phi, Y, weight, first.ridge, first.has_intercept)
    theta, steps = solve_together(together, np.column_stack(known), enough)
    found = [
        concluded(program, each[:-1], float(each[-1]), None, steps) for program, each in zip(programs, theta.T)
    ]
    return [each if each.converged else newton(p, v) for each, p, v in zip(found, programs, theta.T)]
