r"""The kernel adatron: a support vector machine without intercept, one coordinate of its dual after the other.

    max over alpha   sum_i alpha_i - alpha' Y K Y alpha / 2,    0 <= alpha_i <= C,    f = K (alpha y)

Without an intercept the dual has no equality constraint, so a single coordinate can move, and its best value is
known: alpha_i + (1 - y_i f_i) / K_ii, brought into the box. The bound on the leave-one-out error in
``scores/bounds.py`` holds for such machines only.

Friess, Cristianini and Campbell (1998), "The kernel-adatron algorithm", ICML.
"""

from dataclasses import dataclass

import numpy as np

from mercer import _validation
from mercer._types import Array


@dataclass(frozen=True)
class BoxMachine:
    """Dual variables alpha (m,), the dual objective, its duality gap, the number of epochs, and how it ended.

    The machine is f(x) = sum_i alpha_i y_i k(x, x_i), without an intercept.
    """

    alpha: Array
    objective: float
    gap: float
    epochs: int
    converged: bool
    status: str


def adatron(
    K: Array, y: Array, C: float, *, tolerance: float = 1e-8, most_epochs: int = 10_000, start: Array | None = None
) -> BoxMachine:
    """The bias-free machine by cyclic exact ascent; it ends at a duality gap of ``tolerance`` times the objective.

    K (m, m) is a positive semidefinite kernel matrix, y (m,) are labels -1 and +1, ``start`` (m,) are dual
    variables to begin with. The primal program is min |f|² / 2 + C sum_i max(0, 1 - y_i f_i). An epoch costs
    O(m²); kernels with nearly dependent rows and a large C need many.
    """
    K, y = _validation.square("K", K), _validation.signs("y", y)
    y = _validation.as_long("y", y, len(K))
    C = _validation.check_number("C", C, "a positive number", above=0.0)
    tolerance = _validation.check_number("tolerance", tolerance, "a positive number", above=0.0)
    steps = _steps(K)
    alpha = np.zeros(len(y)) if start is None else np.clip(_validation.as_long("start", start, len(y)), 0.0, C)
    most_epochs = _validation.check_int("most_epochs", most_epochs, "an integer >= 1", least=1)
    epochs, converged = 0, False
    while epochs < most_epochs and not converged:
        alpha, epochs = _epoch(K, y, C, steps, alpha), epochs + 1
        objective, gap = _proof(K, y, C, alpha)
        converged = gap <= tolerance * objective
    status = f"{'solved' if converged else 'not solved'} in {epochs} epochs: duality gap {gap:.1e}"
    return BoxMachine(alpha, objective, gap, epochs, converged, status)


def _steps(K: Array) -> Array:
    """1 / K_ii (m,); infinite for rows without length, whose alpha goes to C."""
    own = _validation.squared_lengths(K)
    return np.asarray(np.divide(1.0, own, out=np.full(len(own), np.inf), where=own > 0.0))


def _epoch(K: Array, y: Array, C: float, steps: Array, alpha: Array) -> Array:
    """alpha (m,) after every coordinate was set to its best value once, in order."""
    alpha = alpha.copy()
    f = K @ (alpha * y)
    for i in range(len(y)):
        slope = 1.0 - y[i] * f[i]
        best = alpha[i] if slope == 0.0 else min(max(alpha[i] + steps[i] * slope, 0.0), C)
        if best != alpha[i]:
            f += K[i] * (y[i] * (best - alpha[i]))
            alpha[i] = best
    return alpha


def _proof(K: Array, y: Array, C: float, alpha: Array) -> tuple[float, float]:
    """The dual objective, and the gap sum_i C max(0, 1 - y_i f_i) - alpha_i (1 - y_i f_i) of terms >= 0."""
    slope = 1.0 - y * (K @ (alpha * y))
    gap = C * np.maximum(slope, 0.0) - alpha * slope
    return float(alpha @ (1.0 + slope)) / 2.0, float(gap.sum())
