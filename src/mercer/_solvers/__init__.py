"""Solvers: from kernel matrices and targets to coefficients, with rank and error bounds."""

from mercer._solvers.directions.discriminants import Directions
from mercer._solvers.spectrum import Observations, decompose

__all__ = ["Directions", "Observations", "decompose"]
