"""Programs: a loss, a penalty, and the solver for both."""

from mercer.solvers.programs.descent import descend
from mercer.solvers.programs.interior import interior_point
from mercer.solvers.programs.linear import generate_columns
from mercer.solvers.programs.losses import CornerLoss, Huber
from mercer.solvers.programs.newton import newton
from mercer.solvers.programs.program import Program, Solution
from mercer.types import Array

__all__ = ["Program", "Solution", "solve"]


def solve(program: Program, start: Array | None = None) -> Solution:
    """The solution by the method for its loss and penalty; ``start`` (m + 1,) is used by those that can."""
    if isinstance(program.loss, CornerLoss):
        return generate_columns(program, start) if program.ridge == 0.0 else interior_point(program)
    found = newton(program, start) if program.lasso == 0.0 else descend(program, start)
    if found.converged or not isinstance(program.loss, Huber):
        return found
    return min(found, interior_point(program), key=lambda solution: solution.gap)
