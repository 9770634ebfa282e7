"""Least-squares fits of several outputs with weights of their own, and coordinates in which they are round."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer._solvers.moments.leave_one_out import MomentFit
from mercer._solvers.moments.ridge import MomentSpectrum
from mercer._solvers.programs.smooth.working_targets import LossSlopes
from mercer._solvers.spectrum import Coefficients
from mercer._types import Array, Floats


@dataclass(frozen=True)
class OutputFits:
    """Least-squares fits of several outputs, with weights of their own, for every alpha."""

    fits: Sequence[MomentFit]

    @property
    def spectrum(self) -> MomentSpectrum:
        """That of the output with the largest trace."""
        return max((fit.spectrum for fit in self.fits), key=lambda spectrum: spectrum.trace)

    @property
    def opposite(self) -> "OutputFits | None":
        others = [fit.opposite for fit in self.fits]
        known = [fit for fit in others if fit is not None]
        return OutputFits(known) if len(known) == len(others) else None

    def loo_outputs(self, alphas: Array) -> Floats:
        return np.concatenate([fit.loo_outputs(alphas) for fit in self.fits], axis=-1)

    def solve(self, alpha: float) -> Coefficients:
        found = [fit.solve(alpha) for fit in self.fits]
        coef, intercept = np.column_stack([each.coef for each in found]), [each.intercept for each in found]
        return Coefficients(coef, np.concatenate(intercept))

    def fitted(self, alpha: float) -> Array:
        return np.concatenate([fit.fitted(alpha) for fit in self.fits], axis=1)

    def degrees_of_freedom(self, alphas: Array) -> Array:
        return np.asarray(np.max([fit.degrees_of_freedom(alphas) for fit in self.fits], axis=0))

    def error(self, alpha: float, loo: Array) -> float:
        return max(fit.error(alpha, loo) for fit in self.fits)


@dataclass(frozen=True)
class Basis:
    """Coordinates u around a point in which the Hessian of least squares, over ``scale``, is the identity.

    For every output a basis (m, r) of coefficients, and a row (r,) by which the intercept follows them.
    """

    at: Coefficients
    bases: Sequence[Array]
    means: Sequence[Array]
    constants: Sequence[float]
    scale: float

    @classmethod
    def of(cls, fits: OutputFits, alpha: float, at: Coefficients, scale: float) -> "Basis":
        bases, means, constants = [], [], []
        for fit in fits.fits:
            length = np.sqrt(scale / fit.spectrum.total(alpha))
            bases.append(fit.spectrum.basis * length)
            means.append(fit.spectrum.mean * length)
            constants.append(float(np.sqrt(scale / fit.spectrum.n)))
        return cls(at, bases, means, constants, scale)

    @property
    def size(self) -> int:
        return sum(basis.shape[1] + 1 for basis in self.bases)

    def coefficients(self, u: Array) -> Coefficients:
        """The point with coordinates u, those of each output one after the other, its constant last."""
        coef, intercept = self.at.coef.copy(), self.at.intercept.copy()
        for output, part in enumerate(self._split(u)):
            coef[:, output] += self.bases[output] @ part[:-1]
            intercept[output] += self.constants[output] * part[-1] - self.means[output] @ part[:-1]
        return Coefficients(coef, intercept)

    def gradient(self, slopes: LossSlopes) -> Array:
        """Derivatives by u of the objective over its scale."""
        parts = []
        for output, (basis, mean) in enumerate(zip(self.bases, self.means)):
            down = slopes.intercept[output]
            parts.append(basis.T @ slopes.coef[:, output] - mean * down)
            parts.append(np.array([self.constants[output] * down]))
        return np.concatenate(parts) / self.scale

    def _split(self, u: Array) -> list[Array]:
        return np.split(u, np.cumsum([basis.shape[1] + 1 for basis in self.bases])[:-1])
