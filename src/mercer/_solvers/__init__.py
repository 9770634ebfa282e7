"""Solvers: from kernel matrices and targets to coefficients, with rank and error bounds."""

from mercer._solvers.directions.discriminants import Directions, discriminant_directions, variance_shares
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.smoother import CenterVariance, HeldOut, Smoother, center_variance, make_smoother
from mercer._solvers.spectrum import (
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
    "CenterVariance",
    "Coefficients",
    "Directions",
    "HeldOut",
    "Observations",
    "Smoother",
    "Spectrum",
    "center_variance",
    "decompose",
    "degrees_of_freedom",
    "discriminant_directions",
    "fitted",
    "gcv",
    "loo_outputs",
    "make_smoother",
    "solve",
    "variance_shares",
]
