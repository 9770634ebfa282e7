"""Where to cut a score in two, from leave-one-out scores; Mika (2002), sections 3.2.2, 5.2.1 and 5.3.

Each rule takes scores r (n,), y (n,) of -1 and +1 and weights (n,), and returns the cut t:
r > t is the positive class. "bayes" is not among them: it uses the posterior.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from mercer._linalg.tolerance import smallest
from mercer._types import Array

SOFT_MARGIN_C = 1.0


def least_squares(r: Array, y: Array, weight: Array) -> float:
    """Zero: the intercept of the least-squares fit, Mika (2002), Eq. (3.13)."""
    return 0.0


def equal_error(r: Array, y: Array, weight: Array) -> float:
    """The cut at which both classes have the same error rate."""
    cuts, miss, false = _rates(r, y, weight)
    return float(cuts[np.argmin(np.abs(miss - false))])


def least_error(r: Array, y: Array, weight: Array) -> float:
    """The cut with the smallest weighted error; ties are resolved in favor of the widest gap between scores."""
    cuts, miss, false = _rates(r, y, weight)
    positive, negative = weight[y > 0].sum(), weight[y < 0].sum()
    error = miss * positive + false * negative
    best = np.flatnonzero(error <= error.min() + 1e-12 * weight.sum())
    # The outermost cuts lie beyond all scores; their gap carries no evidence.
    gap = np.concatenate([[0.0], np.diff(np.unique(r)), [0.0]])
    return float(cuts[best[np.argmax(gap[best])]])


def soft_margin(r: Array, y: Array, weight: Array) -> float:
    """The zero of s r + b from  min s²/2 + C sum w max(0, 1 - y (s r + b)): an SVM of one feature.

    The rule of the benchmarks in Mika (2002), section 5.3.2, which leaves C open; here C = 1.
    """
    scale = max(float(np.abs(r).max()), smallest(np.float64))
    unit = r / scale

    def objective(log_s: float) -> float:
        s = np.exp(log_s)
        b = _hinge_offset(s * unit, y, weight)
        hinge = np.maximum(0.0, 1.0 - y * (s * unit + b))
        return float(0.5 * (s / scale) ** 2 + SOFT_MARGIN_C * weight @ hinge)

    s = np.exp(minimize_scalar(objective, bounds=(-7.0, 9.0), method="bounded", options={"xatol": 1e-6}).x)
    if s < 1e-2:
        # No slope is worth its margin: use the cut with the smallest error.
        return least_error(r, y, weight)
    return float(-_hinge_offset(s * unit, y, weight) / s * scale)


def _hinge_offset(f: Array, y: Array, weight: Array) -> float:
    """argmin over b of sum w max(0, 1 - y (f + b)): the kink at which the slope changes sign."""
    kinks = y - f
    order = np.argsort(kinks, kind="stable")
    slope = -weight[y > 0].sum() + np.cumsum(weight[order])
    right = int(np.searchsorted(slope, 0.0))
    flat = slope[right] == 0.0 and right + 1 < len(kinks)
    kink = kinks[order]
    return float(0.5 * (kink[right] + kink[right + 1]) if flat else kink[right])


def _rates(r: Array, y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Cuts between neighboring scores, the share of positives at or below, of negatives above each."""
    values, position = np.unique(r, return_inverse=True)
    positive = np.bincount(position, weight * (y > 0), minlength=len(values))
    negative = np.bincount(position, weight * (y < 0), minlength=len(values))
    margin = 1.0 + abs(values[-1] - values[0])
    edges = np.concatenate([[values[0] - margin], values, [values[-1] + margin]])
    miss = np.concatenate([[0.0], np.cumsum(positive)]) / positive.sum()
    false = 1.0 - np.concatenate([[0.0], np.cumsum(negative)]) / negative.sum()
    return 0.5 * (edges[:-1] + edges[1:]), miss, false


THRESHOLDS: dict[str, Callable[[Array, Array, Array], float]] = {
    "least_squares": least_squares,
    "equal_error": equal_error,
    "soft_margin": soft_margin,
    "error": least_error,
}
