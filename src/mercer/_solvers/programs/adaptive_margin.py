r"""Adaptive margin machines: rows are to be classified by the others, a linear program.

    min over alpha, slack   sum_i slack_i
    with   y_i (sum_j alpha_j y_j k(x_i, x_j) - share alpha_i y_i k(x_i, x_i)) >= 1 - slack_i,   alpha, slack >= 0

With share 1 it is the leave-one-out machine: no row takes part in its own output. With share 0 nothing is
regularized: where K is invertible, slack is zero and alpha is huge. New rows are classified by
sum_i alpha_i y_i k(x, x_i), with the full kernel and without an intercept. The sum of slack is not a bound on the
leave-one-out error: the bound of Theorem 2.37 is not proved for machines that minimize it.

Herbrich (2002), "Learning Kernel Classifiers", Eqs. (2.56) to (2.58); Weston and Herbrich (2000), "Adaptive margin
support vector machines", in Advances in Large Margin Classifiers.
"""

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from mercer import _validation
from mercer._types import Array
from mercer.errors import NumericalError


@dataclass(frozen=True)
class MarginMachine:
    """Coefficients alpha (m,) >= 0, slack (m,) recomputed from them, and the duality gap of their sum."""

    alpha: Array
    slack: Array
    gap: float


def adaptive_margin(K: Array, y: Array, share: float = 1.0) -> MarginMachine:
    """The adaptive margin machine of a kernel matrix K (m, m) and labels y (m,) of -1 and +1.

    ``share`` >= 0 is how much of its own kernel value a row does without. There always is a solution; it need not
    be unique. A linear program with 2 m variables and a dense matrix (m, m), by HiGHS.
    """
    K, y = _validation.square("K", K), _validation.signs("y", y)
    y = _validation.as_long("y", y, len(K))
    share = _validation.check_number("share", share, "a number >= 0", least=0.0)
    M = y[:, None] * (K - share * np.diag(np.diag(K))) * y
    alpha, dual = _solved(M)
    slack = np.maximum(0.0, 1.0 - M @ alpha)
    return MarginMachine(alpha, slack, float(slack.sum() - dual.sum()))


def _solved(M: Array) -> tuple[Array, Array]:
    """alpha (m,) and dual variables (m,) of  min sum slack,  M alpha + slack >= 1;  M is (m, m)."""
    m = len(M)
    cost = np.repeat([0.0, 1.0], m)
    result = scipy.optimize.linprog(cost, A_ub=np.hstack([-M, -np.eye(m)]), b_ub=-np.ones(m), method="highs")
    if result.status != 0:
        raise NumericalError(f"HiGHS did not solve the program of {m} rows: {result.message}; raise share")
    alpha: Array = np.maximum(np.asarray(result.x, dtype=np.float64)[:m], 0.0)
    return alpha, -np.asarray(result.ineqlin.marginals, dtype=np.float64)
