r"""Bounds on the error of kernel classifiers, and the quantities they are made of.

Functions f(x) = sum_i c_i k(x, x_i) **without an intercept**, with outputs f (m,) at the rows of a kernel matrix K
(m, m) and labels y (m,) of -1 and +1; an output of zero counts as an error. A penalized intercept is a kernel plus
one.

Bounds by complexity hold with probability 1 - delta over the rows, for a class of functions that was fixed before:
so must be the margin, the norm or the sum of coefficients that describe it. Computed for values chosen by the same
rows, they are heuristics. For usual numbers of rows they exceed one and say nothing; ``RiskBound.vacuous`` says
when.

Bounds on the leave-one-out error hold for each set of rows, for machines that maximize -alpha' Y K Y alpha / 2 +
sum_i J(alpha_i) over a box 0 <= alpha <= C, such as :func:`adatron`, and for no others: not with an
intercept, and not for machines that minimize the bound.

Shawe-Taylor (2015), "Kernel methods for learning", and Shawe-Taylor and Cristianini (2004), "Kernel Methods for
Pattern Analysis", chapter 4; Herbrich (2002), "Learning Kernel Classifiers", section 2.5; Mika (2002), section
4.2.
"""

from dataclasses import dataclass

import numpy as np

from mercer import _validation
from mercer._linalg.eigen import centered, symmetric_eigen
from mercer._solvers.programs.adaptive_margin import MarginMachine, adaptive_margin
from mercer._solvers.programs.adatron import adatron
from mercer._types import Array
from mercer.errors import KernelError

__all__ = [
    "MarginMachine",
    "RiskBound",
    "adaptive_margin",
    "adatron",
    "boosting_bound",
    "eigenvalue_deviation",
    "function_norm",
    "functional_margins",
    "geometric_margins",
    "hoeffding",
    "leading_eigenvalues",
    "leave_one_out_bound",
    "margin_bound",
    "mcdiarmid",
    "novelty_bound",
    "rademacher",
    "rademacher_bound",
    "rademacher_finite",
    "support_vector_bound",
]

# s'Ks below zero by more than this share of the trace is no rounding error.
QUADRATIC_FORM_ROUNDING = 1e-8


@dataclass(frozen=True)
class RiskBound:
    """A bound on a probability: the sum of what was observed, what the class can fit, and what chance can do."""

    observed: float
    complexity: float
    chance: float

    @property
    def value(self) -> float:
        return self.observed + self.complexity + self.chance

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than that a probability is at most one."""
        return self.value >= 1.0


def function_norm(K: Array, coef: Array) -> float:
    """|f| = sqrt(c'Kc) of f = sum_i c_i k(., x_i), from K (m, m) and coefficients c (m,). Cost O(m²)."""
    K = _validation.square("K", K)
    coef = _validation.as_long("coef", coef, len(K))
    return float(_roots(K, coef[None])[0])


def functional_margins(f: Array, y: Array) -> Array:
    """y_i f_i (m,), positive where the output f (m,) has the sign of the label y (m,)."""
    y = _validation.signs("y", y)
    return y * _validation.as_long("f", f, len(y))


def geometric_margins(f: Array, y: Array, norm: float) -> Array:
    """y_i f_i / |f| (m,): distances from f = 0 in the space of the kernel, negative on the wrong side."""
    return functional_margins(f, y) / _positive("norm", norm)


def rademacher(
    K: Array, norm: float, *, draws: int = 1000, random_state: int | np.random.Generator | None = None
) -> float:
    """(2 norm / m) E sqrt(s'Ks), s (m,) random signs: the empirical Rademacher complexity of |f| <= norm.

    Its standard error is at most ``rademacher_bound(K, norm) / sqrt(draws)``. Cost O(draws m²), memory O(draws m).
    """
    K = _validation.square("K", K)
    drawn = _roots(K, _draw_signs(len(K), draws, random_state))
    return float(2.0 * _positive("norm", norm) / len(K) * drawn.mean())


def rademacher_bound(K: Array, norm: float) -> float:
    """(2 norm / m) sqrt(tr K), never less than what ``rademacher`` estimates (Jensen's inequality)."""
    K = _validation.square("K", K)
    return float(2.0 * _positive("norm", norm) / len(K) * np.sqrt(_validation.squared_lengths(K).sum()))


def rademacher_finite(
    H: Array, *, draws: int = 1000, random_state: int | np.random.Generator | None = None
) -> float:
    """(2 / m) E max_h |s'h|: the complexity, as above, of p functions with outputs H (m, p) and their negatives.

    It is also that of their convex hull. Cost O(draws m p).
    """
    H = _validation.finite("H", H)
    H = H.reshape(len(H), -1)
    drawn = np.abs(_draw_signs(len(H), draws, random_state) @ H).max(axis=1)
    return float(2.0 / len(H) * drawn.mean())


def margin_bound(
    K: Array, y: Array, f: Array, *, norm: float, margin: float, delta: float = 0.05, contraction: float = 2.0
) -> RiskBound:
    """P(y f(x) <= 0) <= (sum_i slack_i + 2 contraction sqrt(tr K)) / (m margin) + 3 sqrt(ln(2/delta) / 2m).

    slack_i = max(0, margin - y_i f_i / norm), with outputs f (m,) of a function **without intercept** whose norm
    is at most ``norm``. ``margin`` **must be fixed before the rows are seen**; 1 / norm of a fitted machine is
    not, and makes the bound a heuristic. The default contraction 2 gives the middle term 4 / (m margin) sqrt(tr K)
    as it is printed, for complexities with absolute values; for those of ``rademacher``, without, 1 is enough
    (Ledoux and Talagrand 1991). Shawe-Taylor and Cristianini (2004), chapter 4.
    """
    margin = _positive("margin", margin)
    slack = np.maximum(0.0, margin - geometric_margins(f, y, norm))
    m = len(_validation.as_long("y", y, len(_validation.square("K", K))))
    complexity = _positive("contraction", contraction) / margin * rademacher_bound(K, 1.0)
    return RiskBound(float(slack.mean()) / margin, complexity, _chance(m, delta))


def boosting_bound(f: Array, y: Array, *, total: float, complexity: float, delta: float = 0.05) -> RiskBound:
    """P(y f(x) <= 0)  <=  (1/m) sum_i max(0, 1 - y_i f_i) + total R(H) + 3 sqrt(ln(2/delta) / 2m).

    f = sum_h a_h h with sum |a_h| <= ``total``, **fixed before the rows are seen**; ``complexity`` is R(H), the
    empirical Rademacher complexity of a class H that is closed under negation, as ``rademacher_finite`` estimates
    it. Shawe-Taylor (2015), "Final boosting bound".
    """
    slack = np.maximum(0.0, 1.0 - functional_margins(f, y))
    complexity = _validation.check_number("complexity", complexity, "a number >= 0", least=0.0)
    return RiskBound(float(slack.mean()), _positive("total", total) * complexity, _chance(len(slack), delta))


def novelty_bound(
    distance2: Array, *, radius2: float, margin: float, largest: float, delta: float = 0.05
) -> RiskBound:
    """P(d²(x) > radius² + margin) <= (mean slack + 6 largest / sqrt(m)) / margin + 3 sqrt(ln(2/delta) / 2m).

    d² (m,) are squared distances of rows from a center that is a mean of rows in the space of the kernel, slack_i
    = max(0, d²_i - radius²), and ``largest`` is a bound on k(x, x) for **every** x that may come, not only for
    these rows. The constant needs radius² <= largest, which the smallest sphere around rows fulfills; ``margin``
    must be fixed before the rows are seen. Shawe-Taylor (2015), "Novelty detection".
    """
    d2 = _validation.finite("distance2", distance2)
    m = len(_validation.as_long("distance2", d2, len(d2)))
    margin, largest = _positive("margin", margin), _positive("largest", largest)
    radius2 = _validation.check_number(
        "radius2", radius2, f"between 0 and largest={largest:g}", least=0.0, most=largest
    )
    slack = np.maximum(0.0, d2 - radius2)
    return RiskBound(float(slack.mean()) / margin, 6.0 * largest / (margin * np.sqrt(m)), _chance(m, delta))


def leave_one_out_bound(K: Array, y: Array, alpha: Array) -> float:
    """A bound on the leave-one-out error: the share of rows with y_i sum_(j != i) alpha_j y_j K_ij <= 0.

    alpha (m,) maximizes the dual of a box-constrained machine **without intercept**, as ``adatron`` does; with an
    intercept the bound is false. Cost O(m²). Herbrich (2002), Theorem 2.37.
    """
    K = _validation.square("K", K)
    y = _validation.as_long("y", _validation.signs("y", y), len(K))
    alpha = _dual_variables(_validation.as_long("alpha", alpha, len(K)))
    others = y * (K @ (alpha * y)) - np.diag(K) * alpha
    return float((others <= 0.0).mean())


def support_vector_bound(alpha: Array) -> float:
    """The share of alpha_i > 0, at least ``leave_one_out_bound``; for the same machines. Vapnik (1995)."""
    return float((_dual_variables(_validation.finite("alpha", alpha)) > 0.0).mean())


def mcdiarmid(changes: Array, delta: float) -> float:
    """t such that P(g >= E g + t) <= delta, where g changes by at most changes_i if row i is exchanged.

    t = sqrt(sum_i changes_i² ln(1/delta) / 2). One-sided; for both sides, delta / 2. McDiarmid (1989); Mika
    (2002), Theorem 4.1.
    """
    changes = _validation.finite("changes", changes)
    return float(np.sqrt(changes @ changes * np.log(1.0 / _probability(delta)) / 2.0))


def hoeffding(m: int, delta: float, *, width: float = 1.0) -> float:
    """t such that P(|mean - E mean| >= t) <= delta, for m independent values in an interval of length ``width``.

    t = width sqrt(ln(2/delta) / 2m). For the error of a model on m new rows, width is 1. Hoeffding (1963).
    """
    m, width = _validation.check_int("m", m, "an integer >= 1", least=1), _positive("width", width)
    return float(width * np.sqrt(np.log(2.0 / _probability(delta)) / (2.0 * m)))


def leading_eigenvalues(K: Array, k: int) -> float:
    """The sum of the k largest eigenvalues of the covariance of rows in the space of the kernel.

    They are those of the centered kernel matrix, divided by m - 1. Cost O(m³).
    """
    K = _validation.square("K", K)
    m = _validation.check_int("the number of rows", len(K), "at least 2", least=2)
    k = _validation.check_int("k", k, "an integer >= 1", least=1)
    values, _ = symmetric_eigen(centered(K))
    return float(values[-k:].sum()) / (m - 1)


def eigenvalue_deviation(m: int, largest: float, delta: float = 0.05) -> float:
    """t that a sum of eigenvalues of the covariance of m rows exceeds its mean by with probability <= delta.

    t = largest sqrt(32 m ln(1/delta)) / (m - 2), for any fixed set of places in the order of the eigenvalues, such
    as the first k, and for the other side likewise. ``largest`` is a bound on k(x, x), or on the squared distance
    from the mean, for **every** x that may come. The expectation is that of m rows, not the eigenvalue of the
    whole distribution. Since the sum never exceeds the trace, at most ``largest`` m / (m - 1), it says something
    for m above 32 ln(1/delta) only. Exchanging one row changes the sum by at most 8 largest / (m - 2). Mika
    (2002), Theorems 4.2 and 4.4.
    """
    m = _validation.check_int("m", m, "an integer >= 3", least=3)
    return mcdiarmid(np.full(m, 8.0 * _positive("largest", largest) / (m - 2)), delta)


def _chance(m: int, delta: float) -> float:
    """3 sqrt(ln(2 / delta) / (2 m)): McDiarmid's inequality for the error and for its complexity."""
    return 3.0 * mcdiarmid(np.full(m, 1.0 / m), _probability(delta) / 2.0)


def _roots(K: Array, S: Array) -> Array:
    """sqrt(s'Ks) (p,) for the rows s of S (p, m)."""
    squares = np.einsum("ij,ij->i", S @ K, S)
    allowed = QUADRATIC_FORM_ROUNDING * float(np.abs(np.diag(K)).sum()) * float((S * S).max(initial=0.0))
    if len(squares) and squares.min() < -allowed:
        raise KernelError(f"s'Ks is {squares.min():.3g} for some s; pass a positive semidefinite kernel matrix")
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _draw_signs(m: int, draws: int, random_state: int | np.random.Generator | None) -> Array:
    """Independent signs (draws, m)."""
    draws = _validation.check_int("draws", draws, "an integer >= 1", least=1)
    return np.random.default_rng(_validation.seed(random_state)).choice(np.array([-1.0, 1.0]), size=(draws, m))


def _dual_variables(alpha: Array) -> Array:
    if alpha.min() < 0.0:
        raise ValueError(
            f"alpha has the entry {alpha.min():.3g}; pass dual variables >= 0, not alpha times labels"
        )
    return alpha


def _positive(name: str, value: float) -> float:
    return _validation.check_number(name, value, "a positive number", above=0.0)


def _probability(delta: float) -> float:
    return _validation.check_number("delta", delta, "between 0 and 1", above=0.0, below=1.0)
