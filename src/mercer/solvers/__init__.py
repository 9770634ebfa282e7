"""Solvers: from kernel matrices and targets to coefficients, with their proof."""

from mercer.solvers.discriminants import Directions, discriminant_directions, variance_shares
from mercer.solvers.left_out import leave_out
from mercer.solvers.smoother import Smoother, make_smoother, posterior_variance
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
    "discriminant_directions",
    "fitted",
    "gcv",
    "leave_out",
    "make_smoother",
    "posterior_variance",
    "solve",
    "variance_shares",
]
