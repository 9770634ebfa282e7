"""What a choice by leave-one-out asks of a solver, whatever its loss and penalty.

A solver factors a problem once; fits and left-out outputs for every alpha then follow from the factors. What
chooses alpha knows solvers by these protocols only.
"""

from typing import Protocol, Self

from mercer.solvers.spectrum import Coefficients
from mercer.types import Array, Floats


class AlphaFits(Protocol):
    """Fits for every alpha at fixed kernel and centers, as far as they are compared."""

    def left_out(self, alphas: Array) -> Floats:
        """Output (a, n, q) of each row for the model fitted without it."""
        ...


class Decomposed(Protocol):
    """A decomposition, as far as it is reported."""

    @property
    def rank(self) -> int:
        """Directions that carry the function."""
        ...

    @property
    def negative(self) -> float:
        """The clipped negative part, in units of the largest eigenvalue."""
        ...


class Factored(AlphaFits, Protocol):
    """Fits for every alpha, one of which becomes the model: its solution, and the proof."""

    @property
    def spectrum(self) -> Decomposed:
        """What all fits are made from."""
        ...

    @property
    def doubted(self) -> Self | None:
        """The same fits if weights meant the other thing, counts or importance; None where there is no doubt."""
        ...

    def solve(self, alpha: float) -> Coefficients:
        """Coefficients (m, q) and intercept (q,)."""
        ...

    def fitted(self, alpha: float) -> Array:
        """Output (n, q) of each row."""
        ...

    def degrees_of_freedom(self, alphas: Array) -> Array:
        """Traces (a,) of the smoothers."""
        ...

    def error(self, alpha: float, loo: Array) -> float:
        """What rounding may do to outputs, in units of the spread of the targets; ``loo`` (n, q) are left out."""
        ...
