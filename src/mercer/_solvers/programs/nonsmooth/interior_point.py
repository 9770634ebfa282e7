r"""Non-smooth losses: a primal-dual interior point method with Mehrotra's predictor and corrector.

    min over v, b   sum_i up_i (t_i - f_i - epsilon)_+ + down_i (f_i - t_i - epsilon)_+
                    + lasso |v|_1 + ridge / 2 |v|²,    f = Phi v + b

The dual variables of the rows lie in boxes; those of the columns, Phi'beta - ridge v, within lasso. A step solves
one system with Phi'E Phi + F, E and F diagonal, so it costs as much as one of Newton's method for a smooth loss:
O(n m² + m³), some ten to thirty times. Absolute, epsilon-insensitive, pinball and hinge loss, each with ridge,
lasso or both: Mika (2002), Eqs. (3.50), (3.55), support vector machines and quantile regression. Huber's loss with
arcs so short that Newton's method would crawl from one to the next is solved in the same way.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer._linalg import CholeskyFactor, factor_spd
from mercer._solvers.programs.nonsmooth.dual_boxes import Boxes
from mercer._solvers.programs.program import SOLVED_GAP, Program, Solution, bordered, concluded
from mercer._types import Array

MOST_INTERIOR_STEPS = 100
# Steps end at this share of the way to the boundary.
SHARE_OF_WAY = 0.995
# The least distance to the boundary, as a share of the range.
BOUNDARY_DISTANCE = 1e-15
# A coefficient is zero if it is smaller, in units of the largest, than this share of the way of its column to its
# bound, in units of the bound.
ZERO_COEFFICIENT = 1e-5


class _Inside(NamedTuple):
    """x (N,) with multipliers of 0 <= x and x <= bound; v = plus - minus (m,) with slacks of both bounds; b."""

    x: Array
    low: Array
    high: Array
    plus: Array
    minus: Array
    above: Array
    below: Array
    b: float

    @property
    def v(self) -> Array:
        return self.plus - self.minus

    def moved(self, step: "_Inside", length: float) -> "_Inside":
        parts = [own + length * way for own, way in zip(self[:-1], step[:-1])]
        return _Inside._make([*parts, self.b + length * step.b])


def interior_point(program: Program) -> Solution:
    """The solution of a program whose loss is not smooth."""
    method = _Method(program, Boxes.of(program))
    point, best = method.start(), None
    for step in range(MOST_INTERIOR_STEPS):
        point = method.next(point)
        found = method.solution(point, step + 1)
        if best is None or found.gap < best.gap:
            best = found
        if best.gap <= SOLVED_GAP * program.scale or (step > 10 and found.gap > 1e3 * best.gap):
            break
    assert best is not None
    return best


@dataclass(frozen=True)
class _Method:
    program: Program
    boxes: Boxes

    def start(self) -> _Inside:
        """In the middle of the boxes, with multipliers that balance f = 0."""
        boxes, m = self.boxes, self.program.m
        x = 0.5 * boxes.bound
        excess = boxes.excess(np.zeros(len(boxes.shift)), x)
        free = np.abs(excess).mean() + 1e-3
        low, high = np.maximum(excess, 0.0) + free, np.maximum(-excess, 0.0) + free
        slack = np.full(m, self.program.lasso)
        size = np.full(m, float(x @ low / len(x)) / self.program.lasso if self.program.lasso > 0.0 else 0.0)
        return _Inside(x, low, high, size, size.copy(), slack, slack.copy(), 0.0)

    def next(self, point: _Inside) -> _Inside:
        """One predictor and one corrector step."""
        system = _NewtonSystem.at(self, point)
        way = system.step(0.0, None)
        mu = self._complementarity(point)
        ahead = self._complementarity(point.moved(way, self._length(point, way)))
        way = system.step(mu * (ahead / mu) ** 3, way)
        return self._inside(point.moved(way, SHARE_OF_WAY * self._length(point, way)))

    def _inside(self, point: _Inside) -> _Inside:
        """The point, whose x would round to an end of its range, a little inside."""
        margin = BOUNDARY_DISTANCE * self.boxes.bound
        return point._replace(x=np.clip(point.x, margin, self.boxes.bound - margin))

    def solution(self, point: _Inside, steps: int) -> Solution:
        coef = point.v
        if self.program.lasso > 0.0:
            slack = np.minimum(point.above, point.below) / self.program.lasso
            largest = np.abs(coef).max(initial=0.0) or 1.0
            coef = np.where(np.abs(coef) / largest < ZERO_COEFFICIENT * slack, 0.0, coef)
        return concluded(self.program, coef, point.b, self.boxes.beta(point.x), steps)

    def _complementarity(self, point: _Inside) -> float:
        """The mean product of what must be complementary."""
        room = self.boxes.bound - point.x
        total = float(point.x @ point.low + room @ point.high)
        count = 2 * len(room)
        if self.program.lasso > 0.0:
            total += float(point.plus @ point.above + point.minus @ point.below)
            count += 2 * self.program.m
        return total / count

    def _length(self, point: _Inside, way: _Inside) -> float:
        """The largest step up to one that stays inside."""
        pairs = list(zip(point[:-1], way[:-1]))[: 7 if self.program.lasso > 0.0 else 3]
        pairs.append((self.boxes.bound - point.x, -way.x))
        return min(1.0, *(_to_boundary(value, change) for value, change in pairs))


def _to_boundary(value: Array, change: Array) -> float:
    falling = change < 0.0
    return float((value[falling] / -change[falling]).min(initial=np.inf))


@dataclass(frozen=True)
class _NewtonSystem:
    """The linear system of the steps at a point, factored once for both of them."""

    method: _Method
    point: _Inside
    factor: CholeskyFactor
    D: Array
    W: Array
    residual: Array

    @classmethod
    def at(cls, method: _Method, point: _Inside) -> "_NewtonSystem":
        program, boxes = method.program, method.boxes
        D = point.low / point.x + point.high / (boxes.bound - point.x) + boxes.curve
        W = point.plus / point.above + point.minus / point.below if program.lasso > 0.0 else np.ones(program.m)
        A, m = bordered(program.Phi, boxes.at_rows(1.0 / D)), program.m
        A[np.arange(m), np.arange(m)] += program.ridge + (1.0 / W if program.lasso > 0.0 else 0.0)
        residual = boxes.excess(program.outputs(point.v, point.b), point.x) - point.low + point.high
        return cls(method, point, factor_spd(A if program.has_intercept else A[:m, :m]), D, W, residual)

    def step(self, mu: float, way: _Inside | None) -> _Inside:
        """The step to complementarity mu, corrected for the products of the predicted ``way``."""
        program, boxes, point = self.method.program, self.method.boxes, self.point
        room, beta = boxes.bound - point.x, boxes.beta(point.x)
        low = (mu - (0.0 if way is None else way.x * way.low)) / point.x - point.low
        high = (mu + (0.0 if way is None else way.x * way.high)) / room - point.high
        rho = low - high - self.residual
        kappa, u = boxes.at_rows(boxes.sign * rho / self.D), program.Phi.T @ beta - program.ridge * point.v
        columns = self._columns(mu, way, u) if program.lasso > 0.0 else None
        dv, db = self._solved(program.Phi.T @ kappa + (u if columns is None else columns.right), beta + kappa)
        dx = (rho - boxes.sign * (program.Phi @ dv + db)[boxes.row]) / self.D
        zero = np.zeros(program.m)
        plus, minus, above, below = (dv, zero, zero, zero) if columns is None else columns.step(dv)
        dlow, dhigh = low - point.low / point.x * dx, high + point.high / room * dx
        return _Inside(dx, dlow, dhigh, plus, minus, above, below, db)

    def _solved(self, right: Array, sums: Array) -> tuple[Array, float]:
        """The steps of v and b for the right side (m,) of the columns, and that of the intercept, a sum."""
        if not self.method.program.has_intercept:
            return self.factor.solve(right), 0.0
        solved = self.factor.solve(np.append(right, sums.sum()))
        return solved[:-1], float(solved[-1])

    def _columns(self, mu: float, way: _Inside | None, u: Array) -> "_Columns":
        lasso, point = self.method.program.lasso, self.point
        plus = (mu - (0.0 if way is None else way.plus * way.above)) / point.above - point.plus
        minus = (mu - (0.0 if way is None else way.minus * way.below)) / point.below - point.minus
        return _Columns(self.W, plus, minus, lasso - u - point.above, lasso + u - point.below, point)


@dataclass(frozen=True)
class _Columns:
    """Steps of plus and minus (m,) if the slacks do not change, what is missing of the slacks (m,), the point."""

    W: Array
    plus: Array
    minus: Array
    above: Array
    below: Array
    point: _Inside

    @property
    def eta(self) -> Array:
        """The step (m,) of v if u did not change; with u it is eta + W du."""
        point = self.point
        return (
            self.plus - point.plus / point.above * self.above - self.minus + point.minus / point.below * self.below
        )

    @property
    def right(self) -> Array:
        """Their part of the right side (m,)."""
        return self.eta / self.W

    def step(self, dv: Array) -> tuple[Array, Array, Array, Array]:
        """The steps of plus, minus, and both slacks (m,), for that of v."""
        point, du = self.point, (dv - self.eta) / self.W
        above, below = self.above - du, self.below + du
        plus, minus = self.plus - point.plus / point.above * above, self.minus - point.minus / point.below * below
        return plus, minus, above, below
