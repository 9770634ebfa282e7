r"""Newton steps of smooth losses from passes over rows: least squares to working targets.

Near outputs f a loss is c/2 (z - f)² with its curvature c there and z = f - slope / c, up to a constant and terms
of third order. So the moments of rows with targets z and weights w c are all that a Newton step needs, for every
penalty at once, and leaving a row out of them is leaving it out of the step (Rad and Maleki 2020). Kernel values
are computed once for all outputs.

Between such steps, passes for the gradient alone cost O(n m) instead of O(n m²): kernel values and two products.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer._gram.blocks import AgainstCenters
from mercer._gram.moments import PRODUCT_ROWS, Moments, MomentsOf, pieces, target_columns
from mercer._solvers.programs.losses import SmoothLoss
from mercer._solvers.spectrum import Coefficients
from mercer._types import Array
from mercer.rows._base import Block
from mercer.rows._sampling.row_matching import weight_of

# Curvatures are at least this share of those of parabolas above the loss, so that working targets are finite; of
# losses whose curvature is zero in places, at least the second one, so that steps are not too long.
LEAST_CURVATURE, WHERE_FLAT = 1e-9, 1e-4


def working(loss: SmoothLoss, y: Array, f: Array) -> tuple[Array, Array]:
    """Targets z (b,) and curvatures c (b,) of least squares like the loss at outputs f (b,)."""
    least = WHERE_FLAT if loss.jumps else LEAST_CURVATURE
    curvature = np.maximum(loss.curvature(y, f), least * loss.majorant(y, f))
    return f - loss.slope(y, f) / curvature, curvature


@dataclass(frozen=True)
class LossMoments:
    """The sum of the losses of all outputs, and the moments of each (q); those of disjoint rows add."""

    value: float
    moments: tuple[Moments, ...]

    def __add__(self, other: "LossMoments") -> "LossMoments":
        return LossMoments(self.value + other.value, tuple(a + b for a, b in zip(self.moments, other.moments)))

    def __iadd__(self, other: "LossMoments") -> "LossMoments":
        """Add to the arrays of this object, which must not be shared."""
        own = list(self.moments)
        for output, more in enumerate(other.moments):
            own[output] += more
        return LossMoments(self.value + other.value, tuple(own))


@dataclass(frozen=True)
class Reweighted:
    """The fold block -> LossMoments at coefficients (m, q) and intercepts (q,), for one loss each.

    ``encode`` makes targets (b, q), as losses take them; ``sums`` has kernel, centers and precision.
    """

    encode: Callable[[Block], Block]
    sums: MomentsOf
    losses: tuple[SmoothLoss, ...]
    at: Coefficients

    def __call__(self, block: Block) -> LossMoments:
        parts = [self._piece(self.encode(block.cut(*ends))) for ends in pieces(block.n_rows, PRODUCT_ROWS)]
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total

    def _piece(self, block: Block) -> LossMoments:
        K, Y, weight = self.sums.columns(block), target_columns(block), weight_of(block)
        slopes, shift = self._function
        F = np.asarray(K, dtype=np.float64) @ slopes + shift
        moments = []
        for output, loss in enumerate(self.losses):
            z, curvature = working(loss, Y[:, output], F[:, output])
            last = output == len(self.losses) - 1
            piece = self.sums.sums(K if last else self.sums.copied(K), z[:, None], weight * curvature)
            self.sums.check(piece, block)
            moments.append(piece.in_double())
        return LossMoments(total_loss(self.losses, Y, weight, F), tuple(moments))

    @cached_property
    def _function(self) -> tuple[Array, Array]:
        """Coefficients (m, q) of the columns, and constants (q,)."""
        coef, intercept, where = self.at.coef, self.at.intercept, self.sums.coordinates
        if where is None:
            return coef, intercept
        return where.slopes(coef), where.origin @ coef + intercept


@dataclass(frozen=True)
class LossSlopes:
    """Sums (l,) of the losses of all outputs at several points, and at the first one the gradient.

    ``coef`` (m, q) are derivatives by coefficients, ``intercept`` (q,) by intercepts.
    """

    values: Array
    coef: Array
    intercept: Array

    def __add__(self, other: "LossSlopes") -> "LossSlopes":
        return LossSlopes(self.values + other.values, self.coef + other.coef, self.intercept + other.intercept)


@dataclass(frozen=True)
class SlopesOf(AgainstCenters):
    """The fold block -> LossSlopes at coefficients and intercepts, and on the way from ``since``.

    Products are computed in the precision of the rows.
    """

    encode: Callable[[Block], Block]
    losses: tuple[SmoothLoss, ...]
    at: Coefficients
    since: Coefficients
    parts: Array

    def __call__(self, block: Block) -> LossSlopes:
        parts = [self._piece(self.encode(block.cut(*ends))) for ends in pieces(block.n_rows, PRODUCT_ROWS)]
        return sum(parts[1:], start=parts[0])

    def _piece(self, block: Block) -> LossSlopes:
        K, Y, weight = self.values(block.X), target_columns(block), weight_of(block)
        F, start = (
            np.asarray(K @ end.coef.astype(K.dtype), dtype=np.float64) + end.intercept
            for end in (self.at, self.since)
        )
        slopes = np.empty_like(F)
        for output, loss in enumerate(self.losses):
            slopes[:, output] = weight * loss.slope(Y[:, output], F[:, output])
        points = [F - (1.0 - part) * (F - start) for part in self.parts]
        values = np.array([total_loss(self.losses, Y, weight, point) for point in points])
        coef = np.asarray(K.T @ slopes.astype(K.dtype), dtype=np.float64)
        return LossSlopes(values, coef, slopes.sum(axis=0))


def total_loss(losses: tuple[SmoothLoss, ...], Y: Array, weight: Array, F: Array) -> float:
    """The weighted sum of the losses of all outputs F (b, q) for targets (b, q)."""
    return sum(float(weight @ loss.value(y, f)) for loss, y, f in zip(losses, Y.T, F.T))
