r"""Soft margins of convex combinations of weak learners: a linear program, one column at a time.

    min over u, beta   beta,   sum_i u_i y_i h_j(x_i) <= beta for every j,   sum u = 1,   0 <= u_i <= bound_i

whose multipliers a_j >= 0, sum a = 1, maximize rho - sum_i bound_i xi_i with y_i sum_j a_j h_j(x_i) >= rho - xi_i:
Demiriz, Bennett and Shawe-Taylor (2002), Linear programming boosting via column generation. A weak learner whose
edge sum_i u_i y_i h(x_i) is larger than beta is a column that helps; without one, the program is solved.
"""

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from mercer._types import Array
from mercer.errors import NumericalError


@dataclass(frozen=True)
class SoftMargin:
    """Weights u (n,) of the rows, beta, which is the value of the program, and weights a (t,) of the columns."""

    row: Array
    value: float
    column: Array


def soft_margin(H: Array, bound: Array) -> SoftMargin:
    """The program for columns y h (n, t) and bounds (n,) of the weights, whose sum is at least one."""
    n, t = H.shape
    result = scipy.optimize.linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.column_stack([H.T, -np.ones(t)]),
        b_ub=np.zeros(t),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[*((0.0, most) for most in bound.tolist()), (None, None)],
        method="highs",
    )
    if result.status != 0 or result.x is None:
        raise NumericalError(
            f"the linear program of {n} rows and {t} weak learners was not solved: {result.message}"
        )
    a = np.maximum(-np.asarray(result.ineqlin.marginals, dtype=np.float64), 0.0)
    row: Array = np.maximum(result.x[:-1], 0.0)
    return SoftMargin(row, float(result.x[-1]), a / (a.sum() or 1.0))
