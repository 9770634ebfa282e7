"""Programs: a loss, a penalty, and the solver for both."""

from mercer.solvers.programs.descent import descend
from mercer.solvers.programs.intercepts import to_middle
from mercer.solvers.programs.interior import interior_point
from mercer.solvers.programs.linear import generate_columns
from mercer.solvers.programs.losses import CornerLoss, Huber
from mercer.solvers.programs.newton import newton
from mercer.solvers.programs.program import Program, Solution, concluded
from mercer.types import Array

__all__ = ["Program", "Solution", "solve"]


def solve(program: Program, start: Array | None = None) -> Solution:
    """The solution by the method for its loss and penalty; ``start`` (m + 1,) is used by those that can."""
    if isinstance(program.loss, CornerLoss):
        mean, around = program.around_mean()
        found = generate_columns(around, start) if program.ridge == 0.0 else interior_point(around)
        intercept = found.intercept - float(mean @ found.coef)
        if program.has_intercept:
            f = program.outputs(found.coef, intercept)
            intercept += to_middle(program.loss.corners(program.y), program.weight, f)
        return concluded(program, found.coef, intercept, found.beta, found.steps)
    found = newton(program, start) if program.lasso == 0.0 else descend(program, start)
    if found.converged or not isinstance(program.loss, Huber):
        return found
    return min(found, interior_point(program), key=lambda solution: solution.gap)
