"""Solvers: from kernel matrices and targets to coefficients, with their proof."""

from mercer.solvers.discriminants import Directions, discriminants, variance_shares
from mercer.solvers.leave_out import leave_out
from mercer.solvers.smoother import Smoother, smoother
from mercer.solvers.spectrum import (
    Coefficients,
    Observations,
    Spectrum,
    decompose,
    degrees_of_freedom,
    fitted,
    gcv,
    solve,
)

__all__ = [
    "Coefficients",
    "Directions",
    "Observations",
    "Smoother",
    "Spectrum",
    "decompose",
    "degrees_of_freedom",
    "discriminants",
    "fitted",
    "gcv",
    "leave_out",
    "smoother",
    "solve",
    "variance_shares",
]
