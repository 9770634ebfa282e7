"""Every row as a center: fits and leave-one-out outputs for every alpha from one spectrum."""

from dataclasses import dataclass, replace

import numpy as np

from mercer.solvers.left_out import leave_out
from mercer.solvers.spectrum import (
    Coefficients,
    Observations,
    Spectrum,
    degrees_of_freedom,
    fitted,
    output_error,
    solve,
)
from mercer.types import Array, Indices


@dataclass(frozen=True)
class SpectrumFit:
    """Observations at the points of a spectrum; ``fold`` (n,) numbers the rows that are held out together."""

    spectrum: Spectrum
    observations: Observations
    fold: Indices | None = None

    @property
    def doubted(self) -> "SpectrumFit | None":
        """Leave-one-out with the weights held out under the other meaning, counts or importance."""
        doubted = self.observations.doubted
        return None if doubted is None else SpectrumFit(self.spectrum, doubted)

    def left_out(self, alphas: Array) -> Array:
        return leave_out(self.spectrum, self.observations, alphas, self.fold)

    def solve(self, alpha: float) -> Coefficients:
        return solve(self.spectrum, self.observations, alpha)

    def without(self, f: int, alpha: float, loo: Array) -> Coefficients:
        """The model without a fold: the fit with targets in the fold replaced by their held-out outputs."""
        own = np.where((np.asarray(self.fold) == f)[:, None], loo, self.observations.Y)
        return solve(self.spectrum, replace(self.observations, Y=own), alpha)

    def fitted(self, alpha: float) -> Array:
        return fitted(self.spectrum, self.observations, alpha)

    def degrees_of_freedom(self, alphas: Array) -> Array:
        return degrees_of_freedom(self.spectrum, alphas)

    def error(self, alpha: float, loo: Array) -> float:
        return output_error(self.spectrum, self.observations, loo, alpha)
