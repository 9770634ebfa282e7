r"""Smooth programs with the same columns, solved together: quasi-Newton steps for all of them at once.

    min over v, b   sum_i w_ij loss(y_ij, f_i) + ridge / 2 |v|²,    f = Phi v + b,    for every j

Outputs of several classes, and fits without some of the rows, differ in targets and weights only. A gradient of
all of them is two matrix products, O(n m p), where a Newton step of each would be O(n m² p). In the metric of one
Hessian, with curvatures that are means over the programs, few gradients are needed (L-BFGS).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._linalg import factor_spd
from mercer._solvers.programs.losses import SmoothLoss
from mercer._solvers.programs.program import bordered
from mercer._solvers.programs.smooth.newton import VANISHING_CURVATURE
from mercer._types import Array, Indices

# Gradients in the first metric, how many times more in each of the next ones, which have the curvatures found so
# far, and how many metrics there are.
FIRST_GRADIENTS, GRADIENT_GROWTH, MOST_METRICS = 20, 2, 6
# Steps and changes of gradients that are remembered.
KEPT_STEPS = 20
# A step is shortened by this factor, at most so often, until it gains this share of what its slope promises.
STEP_SHORTENING, MOST_CUTS, SUFFICIENT_GAIN = 0.3, 12, 1e-4
# Objectives are equal if they differ by less than this share.
OBJECTIVE_ROUNDING = 1e-14


class ColumnSlopes(NamedTuple):
    """Objectives (p,) and their gradients (k, p)."""

    value: Array
    gradient: Array


# From points (k, p) of the programs with these numbers (p,) to what is known there.
Evaluate = Callable[[Array, Indices], ColumnSlopes]
# From gradients (k, p) to steps (k, p): a product with an inverse Hessian.
Metric = Callable[[Array], Array]


@dataclass(frozen=True)
class Programs:
    """Columns Phi (n, m), one smooth loss and ridge; targets Y (n, p) and weights (n, p) of each program."""

    loss: SmoothLoss
    Phi: Array
    Y: Array
    weight: Array
    ridge: float
    has_intercept: bool = True

    def outputs(self, theta: Array) -> Array:
        """f (n, p) for coefficients and intercepts theta (m + 1, p)."""
        return np.asarray(self.Phi @ theta[:-1] + theta[-1])

    def slopes(self, theta: Array, some: Indices) -> ColumnSlopes:
        """Objectives and gradients of some of the programs."""
        f, Y, weight = self.outputs(theta), self.Y[:, some], self.weight[:, some]
        value = np.einsum("ij,ij->j", weight, self.loss.value(Y, f))
        value += 0.5 * self.ridge * np.einsum("ij,ij->j", theta[:-1], theta[:-1])
        slope = weight * self.loss.slope(Y, f)
        constant = slope.sum(axis=0) if self.has_intercept else np.zeros(len(some))
        return ColumnSlopes(value, np.vstack([self.Phi.T @ slope + self.ridge * theta[:-1], constant]))

    def metric(self, theta: Array) -> Metric:
        """The inverse of the Hessian with the mean curvatures of all programs at points (m + 1, p)."""
        f = self.outputs(theta)
        most = (self.weight * self.loss.majorant(self.Y, f)).mean(axis=1)
        curvature = np.maximum(
            (self.weight * self.loss.curvature(self.Y, f)).mean(axis=1), VANISHING_CURVATURE * most
        )
        H = bordered(self.Phi, curvature)
        H[np.diag_indices_from(H)] += np.append(np.full(self.Phi.shape[1], self.ridge), 0.0)
        if not self.has_intercept:
            H[-1, :], H[:, -1] = 0.0, 0.0
            H[-1, -1] = 1.0
        half = factor_spd(H).inverse()
        return lambda gradient: half.T @ (half @ gradient)


def solve_together(programs: Programs, start: Array, enough: float) -> tuple[Array, int]:
    """Coefficients and intercepts (m + 1, p) from ``start``, and the number of gradients.

    Half of the squared gradient in the metric, about what is still to be gained, is then at most the part
    ``enough`` of the objective of f = 0.
    """
    theta, steps, most = start, 0, FIRST_GRADIENTS
    scale = np.einsum("ij,ij->j", programs.weight, programs.loss.value(programs.Y, np.zeros_like(programs.Y)))
    for _ in range(MOST_METRICS):
        found = descend(programs.slopes, theta, programs.metric(theta), enough * scale, most)
        theta, steps, most = found.at, steps + found.steps, GRADIENT_GROWTH * most
        if found.done:
            break
    return theta, steps


class Descent(NamedTuple):
    """Points (k, p), the number of gradients, and whether there is enough of them for all."""

    at: Array
    steps: int
    done: bool


def descend(evaluate: Evaluate, start: Array, metric: Metric, enough: Array, most: int) -> Descent:
    """Minimize convex functions, column by column, until half of the squared gradients is at most ``enough`` (p,).

    ``metric`` is about the inverse Hessian of all of them; at most ``most`` gradients are computed.
    """
    at, active = start.copy(), np.arange(start.shape[1])
    point = _Iterate.of(start, evaluate(start, active), metric)
    pairs, steps = list[_Secant](), 1
    while True:
        going = (0.5 * point.square > enough[active]) & point.moved
        at[:, active[~going]] = point.at[:, ~going]
        if not going.any():
            return Descent(at, steps, done=True)
        if steps >= most:
            at[:, active] = point.at
            return Descent(at, steps, done=False)
        active, point, pairs = active[going], point.some(going), [pair.some(going) for pair in pairs[-KEPT_STEPS:]]
        new, more = _searched(evaluate, active, point, _direction(point, pairs, metric), metric)
        pairs.append(_Secant.of(point, new))
        point, steps = new, steps + more


@dataclass(frozen=True)
class _Iterate:
    """Points (k, p), values (p,) and gradients (k, p) there, steps (k, p) of the metric, and which ones moved."""

    at: Array
    value: Array
    gradient: Array
    step: Array
    moved: NDArray[np.bool_]

    @classmethod
    def of(
        cls, at: Array, found: ColumnSlopes, metric: Metric, moved: NDArray[np.bool_] | None = None
    ) -> "_Iterate":
        moved = np.ones(at.shape[1], dtype=bool) if moved is None else moved
        return cls(at, found.value, found.gradient, metric(found.gradient), moved)

    @property
    def square(self) -> Array:
        """Squared lengths (p,) of the gradients."""
        return _inner(self.gradient, self.step)

    def some(self, columns: NDArray[np.bool_]) -> "_Iterate":
        if columns.all():
            return self
        at, gradient, step = (part[:, columns] for part in (self.at, self.gradient, self.step))
        return _Iterate(at, self.value[columns], gradient, step, self.moved[columns])


@dataclass(frozen=True)
class _Secant:
    """Steps and changes of the gradients (k, p), their products (p,), and squared lengths (p,) of the changes."""

    step: Array
    change: Array
    product: Array
    square: Array

    @classmethod
    def of(cls, old: _Iterate, new: _Iterate) -> "_Secant":
        step, change = new.at - old.at, new.gradient - old.gradient
        return cls(step, change, _inner(step, change), _inner(change, new.step - old.step))

    def some(self, columns: NDArray[np.bool_]) -> "_Secant":
        if columns.all():
            return self
        return _Secant(*(part[..., columns] for part in (self.step, self.change, self.product, self.square)))


def _direction(point: _Iterate, pairs: Sequence[_Secant], metric: Metric) -> Array:
    """The way down (k, p): the inverse Hessian times the gradients, from the pairs and the metric."""
    if not pairs:
        return -point.step
    way, shares = point.gradient.copy(), []
    for pair in reversed(pairs):
        share = _ratio(_inner(pair.step, way), pair.product)
        way -= share * pair.change
        shares.append(share)
    last = pairs[-1]
    way = metric(way) * np.where(last.square > 0.0, _ratio(last.product, last.square), 1.0)
    for pair, share in zip(pairs, reversed(shares)):
        way += (share - _ratio(_inner(pair.change, way), pair.product)) * pair.step
    return -way


def _searched(
    evaluate: Evaluate, active: Indices, point: _Iterate, way: Array, metric: Metric
) -> tuple[_Iterate, int]:
    """The points at the end of the way, or of a part of it that gains enough, and how often that was tried."""
    slope, length = _inner(point.gradient, way), np.ones(len(active))
    for tried in range(1, MOST_CUTS + 1):  # noqa: B007
        at = point.at + length * way
        found = evaluate(at, active)
        allowed = point.value + SUFFICIENT_GAIN * length * slope + OBJECTIVE_ROUNDING * np.abs(point.value)
        short = found.value <= allowed
        if short.all():
            break
        length = np.where(short, length, STEP_SHORTENING * length)
    moved = short & (slope < 0.0)
    at, value, gradient = (
        np.where(moved, new, old)
        for new, old in ((at, point.at), (found.value, point.value), (found.gradient, point.gradient))
    )
    return _Iterate.of(at, ColumnSlopes(value, gradient), metric, moved), tried


def _inner(A: Array, B: Array) -> Array:
    """Inner products (p,) of columns."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


def _ratio(a: Array, b: Array) -> Array:
    """a / b, zero where b is not positive."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)
