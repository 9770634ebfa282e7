"""The interface that a choice by leave-one-out requires of a solver, for any loss and penalty.

A solver factors a problem once; fits and leave-one-out outputs for every alpha then follow from the factors. The
code that chooses alpha uses solvers only through these protocols.
"""

from typing import Protocol, Self

from mercer._solvers.spectrum import Coefficients
from mercer._types import Array, Floats


class AlphaFits(Protocol):
    """Fits for every alpha at fixed kernel and centers, as far as they are compared."""

    def loo_outputs(self, alphas: Array) -> Floats:
        """Output (a, n, q) of each row for the model fitted without it."""
        ...


class Decomposition(Protocol):
    """A decomposition, as far as it is reported."""

    @property
    def rank(self) -> int | None:
        """Number of directions in which the function varies; None: not computed."""
        ...

    @property
    def negative(self) -> float:
        """The clipped negative part, in units of the largest eigenvalue."""
        ...


class FactoredFits(AlphaFits, Protocol):
    """Fits for every alpha, one of which becomes the model: its solution, rank and error bounds."""

    @property
    def spectrum(self) -> Decomposition:
        """The decomposition on which all fits are based."""
        ...

    @property
    def opposite(self) -> Self | None:
        """The same fits under the opposite reading of weights, counts or importance; None: unambiguous."""
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
        """Bound on rounding errors of outputs, relative to the spread of the targets; ``loo`` (n, q)."""
        ...
