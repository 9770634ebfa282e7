"""Quasi-Newton steps in coordinates in which the Hessian was the identity at the first point (L-BFGS)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._types import Array

# Parts of a step whose values are compared; all of it is taken if that loses at most this share of the gain.
LENGTHS: Array = 0.5 ** np.arange(8.0)
SUFFICIENT_SHARE = 0.3
# Objectives that are sums over many rows are equal if they differ by less than this share.
SUM_ROUNDING = 1e-9


@dataclass(frozen=True)
class Sloped:
    """A point u (p,), the gradient (p,) there, and the objective (l,) at LENGTHS of the way to it."""

    u: Array
    gradient: Array
    values: Array

    @property
    def value(self) -> float:
        return float(self.values[0])


# From a point, and the one before it, to what is known there.
Evaluate = Callable[[Array, Array], Sloped]


def part_of(values: Array, before: float, rounding: float = SUM_ROUNDING) -> float:
    """The part of a step to be taken, by objectives (l,) at LENGTHS of it and the one before.

    All of it, if that lowers the objective about as much as the best; otherwise the best.
    """
    least = float(values.min())
    if values[0] <= least + max(SUFFICIENT_SHARE * (before - least), rounding * abs(before)):
        return 1.0
    return float(LENGTHS[values.argmin()])


def descend(
    evaluate: Evaluate, start: Sloped, *, enough: float, most: int, rounding: float = SUM_ROUNDING
) -> Array:
    """A point (p,) where half of the squared gradient is at most ``enough``, after at most ``most`` evaluations.

    ``rounding`` is the relative error of objectives: a step that is lost in it is the last.
    """
    best, pairs = start, list[tuple[Array, Array]]()
    trial = best.u - best.gradient
    for _ in range(most):
        found = evaluate(trial, best.u)
        part = part_of(found.values, best.value, rounding)
        if part < 1.0:
            trial = best.u + part * (trial - best.u)
            continue
        step, change = found.u - best.u, found.gradient - best.gradient
        if float(step @ change) > 0.0:
            pairs.append((step, change))
        lost = best.value - found.value <= rounding * abs(best.value)
        best = found
        if lost or 0.5 * float(best.gradient @ best.gradient) <= enough:
            return best.u
        trial = best.u - _product(best.gradient, pairs)
    return best.u


def _product(gradient: Array, pairs: list[tuple[Array, Array]]) -> Array:
    """The inverse Hessian times a gradient, from steps and changes of the gradient; the identity to begin with."""
    product, shares = gradient.copy(), []
    for step, change in reversed(pairs):
        share = float(step @ product) / float(step @ change)
        product -= share * change
        shares.append(share)
    for (step, change), share in zip(pairs, reversed(shares)):
        product += (share - float(change @ product) / float(step @ change)) * step
    return product
