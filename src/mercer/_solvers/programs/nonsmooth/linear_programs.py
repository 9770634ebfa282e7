r"""Non-smooth losses and the penalty lasso |v|_1: linear programs by column generation.

The dual program has a variable for every row and a pair of constraints, |Phi_j'beta| <= lasso, for every column,
of which few are active: Mika (2002), Eq. (3.56) and section 3.5.6. It is solved for some columns, and those whose
constraint is violated are added, until none is: the result is that of the whole program. The small programs are
solved by the interior point method, whose cost grows with the square of the number of columns only, and the last
one, with the columns that have coefficients, again by the simplex method of HiGHS: a vertex of the solutions.
"""

from dataclasses import replace

import numpy as np
import scipy.optimize

from mercer._solvers.programs.nonsmooth.dual_boxes import Boxes
from mercer._solvers.programs.nonsmooth.interior_point import interior_point
from mercer._solvers.programs.program import Program, Solution, concluded
from mercer._types import Array, Indices

# Programs without a start begin with all columns, if there are no more than this; and the most that a round adds.
ALL_COLUMNS_AT_ONCE, ENTERING_COLUMNS = 200, 40
MOST_COLUMN_ROUNDS = 500
# Columns without coefficients leave in the first rounds only: later they would come back again and again.
ROUNDS_WITH_REMOVAL = 20
# A constraint is violated beyond this share of lasso.
CONSTRAINT_SLACK = 1e-6


def generate_columns(program: Program, start: Array | None = None) -> Solution:
    """The solution of a program whose loss is not smooth and whose penalty is lasso alone.

    It begins with the columns that have coefficients in ``start`` (m + 1,).
    """
    boxes = Boxes.of(program)
    beta = boxes.shift + boxes.at_rows(boxes.sign * np.where(boxes.cost < 0.0, boxes.bound, 0.0))
    some = np.zeros(0, dtype=np.intp) if start is None else np.flatnonzero(start[:-1])
    some = np.arange(program.m) if program.m <= ALL_COLUMNS_AT_ONCE and not len(some) else some
    more = np.zeros(0, dtype=np.intp) if len(some) else _violated(program, beta, some)
    coef, intercept = np.zeros(0), 0.0
    for rounds in range(1, MOST_COLUMN_ROUNDS + 1):
        if rounds > 1:
            more = _violated(program, beta, some)
            if len(more) == 0:
                break
        some = np.concatenate([some, more])
        part = interior_point(replace(program, Phi=program.Phi[:, some]))
        beta, coef, intercept = part.beta, part.coef, part.intercept
        used = coef != 0.0
        leave = rounds <= ROUNDS_WITH_REMOVAL and program.m > ALL_COLUMNS_AT_ONCE and used.sum() < len(some) // 2
        some, coef = (some[used], coef[used]) if leave else (some, coef)
    found = concluded(program, _at(some, coef, program.m), intercept, beta, rounds)
    vertex = _vertex(program, boxes, some[coef != 0.0], rounds)
    return vertex if vertex is not None and vertex.gap <= found.gap else found


def _violated(program: Program, beta: Array, some: Indices) -> Indices:
    """Columns whose constraint is violated, the worst first."""
    excess = np.abs(program.Phi.T @ beta) - program.lasso
    excess[some] = -np.inf
    worst = np.argsort(-excess, kind="stable")[:ENTERING_COLUMNS]
    return worst[excess[worst] > CONSTRAINT_SLACK * program.lasso]


def _at(some: Indices, coef: Array, m: int) -> Array:
    every = np.zeros(m)
    every[some] = coef
    return every


def _vertex(program: Program, boxes: Boxes, some: Indices, rounds: int) -> Solution | None:
    """The solution with some columns by the simplex method; None if it does not find one."""
    A = program.Phi[boxes.row][:, some].T * boxes.sign
    moved = program.Phi[:, some].T @ boxes.shift
    result = scipy.optimize.linprog(
        boxes.cost,
        A_ub=np.vstack([A, -A]) if len(some) else None,
        b_ub=np.concatenate([program.lasso - moved, program.lasso + moved]) if len(some) else None,
        A_eq=boxes.sign[None] if program.has_intercept else None,
        b_eq=[-boxes.shift.sum()] if program.has_intercept else None,
        bounds=[(0.0, bound) for bound in boxes.bound.tolist()],
        method="highs",
    )
    if result.status != 0:
        return None
    marginals = result.ineqlin.marginals if len(some) else np.zeros(0)
    coef = marginals[len(some) :] - marginals[: len(some)]
    intercept = -float(result.eqlin.marginals[0]) if program.has_intercept else 0.0
    beta = boxes.beta(np.asarray(result.x, dtype=np.float64))
    return concluded(program, _at(some, coef, program.m), intercept, beta, rounds)
