r"""Losses of one output: convex functions of f for a target y, with what solvers need of them.

Real targets:

    squared       (y - f)² / 2
    absolute      |y - f|
    huber         (y - f)² / (2 delta) up to |y - f| = delta, |y - f| - delta / 2 beyond
    epsilon       max(0, |y - f| - epsilon)
    pinball       quantile (y - f) above f, (quantile - 1) (y - f) below

Classes y = -1, +1:

    hinge         max(0, 1 - y f)
    squared_hinge max(0, 1 - y f)² / 2
    logistic      log(1 + exp(-y f))

Non-smooth losses are up (t - f - epsilon)_+ + down (f - t - epsilon)_+ for some target t: Mika (2002), Table 2.1
and sections 3.4.7, 3.4.8. Conjugates are those in f: sup_f g f - loss(y, f).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import entr, expit

from mercer._types import Array


@dataclass(frozen=True)
class Kinks:
    """up (t - f - epsilon)_+ + down (f - t - epsilon)_+ for every row: t, up, down (n,) and epsilon >= 0.

    With a ``bend`` the kinks are replaced by arcs, as those of Huber's loss: the conjugate gets bend / 2 g².
    """

    target: Array
    up: Array
    down: Array
    epsilon: float = 0.0
    bend: float = 0.0


class Loss(ABC):
    """A convex loss; abstract. Methods take targets and outputs of the same shape."""

    @property
    def tolerance(self) -> float:
        """How far from the target an output may be without a slope."""
        return 0.0

    @abstractmethod
    def value(self, y: Array, f: Array) -> Array:
        """The loss."""

    @abstractmethod
    def slope(self, y: Array, f: Array) -> Array:
        """Its derivative in f, or one of them at a kink."""

    @abstractmethod
    def conjugate(self, y: Array, g: Array) -> Array:
        """sup_f g f - loss(y, f) for slopes g, infinite where no f has such a slope."""


class SmoothLoss(Loss):
    """A loss with a derivative that is Lipschitz continuous; abstract."""

    # Whether the curvature jumps.
    jumps: ClassVar[bool] = True

    @abstractmethod
    def curvature(self, y: Array, f: Array) -> Array:
        """The second derivative in f; at a jump, that of one side."""

    def majorant(self, y: Array, f: Array) -> Array:
        """The curvature of a parabola that touches the loss at f and is above it everywhere."""
        return np.full_like(f, self.steepest)

    @property
    @abstractmethod
    def steepest(self) -> float:
        """The largest curvature."""


@dataclass(frozen=True)
class Squared(SmoothLoss):
    """(y - f)² / 2."""

    jumps = False
    steepest = 1.0

    def value(self, y: Array, f: Array) -> Array:
        return 0.5 * (y - f) ** 2

    def slope(self, y: Array, f: Array) -> Array:
        return f - y

    def curvature(self, y: Array, f: Array) -> Array:
        return np.ones_like(f)

    def conjugate(self, y: Array, g: Array) -> Array:
        return g * y + 0.5 * g**2


@dataclass(frozen=True)
class Huber(SmoothLoss):
    """(y - f)² / (2 delta) up to a residual of delta, linear with slope one beyond."""

    delta: float = 1.0

    @property
    def steepest(self) -> float:
        return 1.0 / self.delta

    def value(self, y: Array, f: Array) -> Array:
        size = np.abs(y - f)
        near = np.minimum(size, self.delta)
        return np.asarray(near**2 / (2.0 * self.delta) + (size - near))

    def slope(self, y: Array, f: Array) -> Array:
        return np.clip((f - y) / self.delta, -1.0, 1.0)

    def curvature(self, y: Array, f: Array) -> Array:
        return (np.abs(y - f) <= self.delta) / self.delta

    def majorant(self, y: Array, f: Array) -> Array:
        return 1.0 / np.maximum(np.abs(y - f), self.delta)

    def conjugate(self, y: Array, g: Array) -> Array:
        return np.where(np.abs(g) <= 1.0, g * y + 0.5 * self.delta * g**2, np.inf)

    def kinks(self, y: Array) -> Kinks:
        """The absolute loss with arcs for kinks."""
        return Kinks(y, np.ones_like(y), np.ones_like(y), bend=self.delta)


@dataclass(frozen=True)
class SquaredHinge(SmoothLoss):
    """max(0, 1 - y f)² / 2 for y = -1, +1."""

    steepest = 1.0

    def value(self, y: Array, f: Array) -> Array:
        return 0.5 * np.maximum(1.0 - y * f, 0.0) ** 2

    def slope(self, y: Array, f: Array) -> Array:
        return -y * np.maximum(1.0 - y * f, 0.0)

    def curvature(self, y: Array, f: Array) -> Array:
        return (y * f < 1.0).astype(np.float64)

    def conjugate(self, y: Array, g: Array) -> Array:
        return np.where(y * g <= 0.0, y * g + 0.5 * g**2, np.inf)

    def kinks(self, y: Array) -> Kinks:
        """Arcs without end in place of kinks."""
        return Kinks(y, np.where(y > 0.0, np.inf, 0.0), np.where(y < 0.0, np.inf, 0.0), bend=1.0)


@dataclass(frozen=True)
class Logistic(SmoothLoss):
    """log(1 + exp(-y f)) for y = -1, +1."""

    jumps = False
    steepest = 0.25

    def value(self, y: Array, f: Array) -> Array:
        return np.logaddexp(0.0, -y * f)

    def slope(self, y: Array, f: Array) -> Array:
        return -y * expit(-y * f)

    def curvature(self, y: Array, f: Array) -> Array:
        return expit(f) * expit(-f)

    def conjugate(self, y: Array, g: Array) -> Array:
        part = -y * g
        # Infinite outside of [0, 1]: there one of both parts is negative.
        return np.asarray(-entr(part) - entr(1.0 - part))


class NonSmoothLoss(Loss):
    """A loss that is linear but for kinks; abstract."""

    @abstractmethod
    def kinks(self, y: Array) -> Kinks:
        """The same loss in the common form."""

    def value(self, y: Array, f: Array) -> Array:
        form = self.kinks(y)
        above, below = form.target - f - form.epsilon, f - form.target - form.epsilon
        return form.up * np.maximum(above, 0.0) + form.down * np.maximum(below, 0.0)

    def slope(self, y: Array, f: Array) -> Array:
        form = self.kinks(y)
        return form.down * (f - form.target > form.epsilon) - form.up * (form.target - f > form.epsilon)

    def conjugate(self, y: Array, g: Array) -> Array:
        form = self.kinks(y)
        inside = (g >= -form.up) & (g <= form.down)
        return np.where(inside, g * form.target + form.epsilon * np.abs(g), np.inf)


@dataclass(frozen=True)
class EpsilonInsensitive(NonSmoothLoss):
    """max(0, |y - f| - epsilon); for epsilon zero the absolute loss."""

    epsilon: float = 0.0

    @property
    def tolerance(self) -> float:
        return self.epsilon

    def kinks(self, y: Array) -> Kinks:
        return Kinks(y, np.ones_like(y), np.ones_like(y), self.epsilon)


@dataclass(frozen=True)
class Pinball(NonSmoothLoss):
    """quantile (y - f) above f, (1 - quantile) (f - y) below."""

    quantile: float = 0.5

    def kinks(self, y: Array) -> Kinks:
        return Kinks(y, np.full_like(y, self.quantile), np.full_like(y, 1.0 - self.quantile))


@dataclass(frozen=True)
class Hinge(NonSmoothLoss):
    """max(0, 1 - y f) for y = -1, +1."""

    def kinks(self, y: Array) -> Kinks:
        return Kinks(y, (y > 0.0).astype(np.float64), (y < 0.0).astype(np.float64))


@dataclass(frozen=True)
class Rounded(SmoothLoss):
    """A loss with arcs for kinks: the least of loss(y, z) + (f - z)² / (2 bend) over z.

    The envelope of Moreau (1965); that of |y - f| is Huber's loss.
    """

    loss: NonSmoothLoss
    bend: float

    @property
    def steepest(self) -> float:
        return 1.0 / self.bend

    @property
    def tolerance(self) -> float:
        return self.loss.tolerance

    def value(self, y: Array, f: Array) -> Array:
        form, beyond = self._beyond(y, f)
        slope = np.clip(beyond / self.bend, -form.down, form.up)
        return slope * beyond - 0.5 * self.bend * slope**2

    def slope(self, y: Array, f: Array) -> Array:
        form, beyond = self._beyond(y, f)
        return -np.clip(beyond / self.bend, -form.down, form.up)

    def curvature(self, y: Array, f: Array) -> Array:
        form, beyond = self._beyond(y, f)
        inside = (beyond < self.bend * form.up) & (beyond > -self.bend * form.down) & (beyond != 0.0)
        return np.asarray(inside / self.bend)

    def conjugate(self, y: Array, g: Array) -> Array:
        return self.loss.conjugate(y, g) + 0.5 * self.bend * g**2

    def kinks(self, y: Array) -> Kinks:
        """The same loss in the common form."""
        return replace(self.loss.kinks(y), bend=self.bend)

    def _beyond(self, y: Array, f: Array) -> tuple[Kinks, Array]:
        """The common form, and how far targets are above f (n,), less the tolerance."""
        form = self.loss.kinks(y)
        above = form.target - f
        return form, np.sign(above) * np.maximum(np.abs(above) - form.epsilon, 0.0)
