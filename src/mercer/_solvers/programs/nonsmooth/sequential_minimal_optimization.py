r"""Quadratic programs over weights with a sum, two of them at a time.

    min over a   a'Qa / 2 - p'a,    sum a = 1,    0 <= a_i <= bound_i

The smallest ball around rows and the plane that separates them from the origin are such programs. The weight moves
from the row where that gains most to second order (Fan, Chen and Lin 2005), until the gap is small: what the best
weights for the linear part would gain, a bound of what any weights could.
"""

from dataclasses import dataclass

import numpy as np

from mercer._types import Array, Indices

MOST_MOVES = 200_000
# Moves between two computations of the gradient and of the gap from the weights.
UNTIL_CHECK = 500
# Curvatures below this share of the largest are rounding errors.
FLAT_CURVATURE = 1e-12


@dataclass(frozen=True)
class PairSolution:
    """Weights a (n,), the objective, the gap, and the number of moves."""

    weight: Array
    objective: float
    gap: float
    moves: int


def solve_pairs(Q: Array, p: Array, bound: Array, tolerance: float = 1e-9) -> PairSolution:
    """The solution with a gap of at most the tolerance times the spread of p and the size of Q.

    The bounds (n,) must sum to one at least. O(n) for each move.
    """
    a, scale = _filled(np.argsort(-p, kind="stable"), bound), _scale(Q, p)
    moves = 0
    while True:
        gradient: Array = Q @ a - p
        gap = float(gradient @ (a - _filled(np.argsort(gradient, kind="stable"), bound)))
        if gap <= tolerance * scale or moves >= MOST_MOVES:
            return PairSolution(a, 0.5 * float(a @ Q @ a) - float(p @ a), gap, moves)
        moved = _move(Q, a, gradient, bound, 0.01 * tolerance * scale)
        moves += moved
        if moved == 0:
            return PairSolution(a, 0.5 * float(a @ Q @ a) - float(p @ a), gap, moves)


def _filled(order: Indices, bound: Array) -> Array:
    """Weights (n,) with sum one: as much as is allowed in this order."""
    before = np.cumsum(bound[order]) - bound[order]
    a = np.zeros(len(bound))
    a[order] = np.clip(1.0 - before, 0.0, bound[order])
    return a


def _scale(Q: Array, p: Array) -> float:
    return float(np.abs(Q.diagonal()).max() + np.ptp(p)) or 1.0


def _move(Q: Array, a: Array, gradient: Array, bound: Array, least: float) -> int:
    """Some moves, which change weights and gradient in place; how many."""
    diagonal = Q.diagonal()
    flat = FLAT_CURVATURE * float(np.abs(diagonal).max()) or FLAT_CURVATURE
    for moves in range(UNTIL_CHECK):
        to = int(np.where(a < bound, gradient, np.inf).argmin())
        gain = np.where(a > 0.0, gradient - gradient[to], 0.0)
        if not gain.max() > least:
            return moves
        curvature = np.maximum(diagonal + diagonal[to] - 2.0 * Q[:, to], flat)
        source = int(np.where(gain > 0.0, gain**2 / curvature, -np.inf).argmax())
        step = min(gain[source] / curvature[source], a[source], bound[to] - a[to])
        a[to] = bound[to] if step == bound[to] - a[to] else a[to] + step
        a[source] = 0.0 if step == a[source] else a[source] - step
        gradient += step * (Q[:, to] - Q[:, source])
    return UNTIL_CHECK
