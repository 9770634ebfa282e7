"""Every row as a center: fits and leave-one-out outputs, from one spectrum or one factor for each alpha."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mercer._linalg import map_in_threads
from mercer._solvers.inverse_root import Projected
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.spectrum import (
    Coefficients,
    Observations,
    Rooted,
    Spectrum,
    fitted,
    output_error,
    solve,
)
from mercer._types import Array, Indices
from mercer.rows._progress import Advance, nothing


@dataclass(frozen=True)
class SpectrumFit:
    """Observations at the points of a spectrum; ``fold`` (n,) numbers the rows that are held out together."""

    spectrum: Spectrum
    observations: Observations
    fold: Indices | None = None

    @property
    def opposite(self) -> "SpectrumFit | None":
        """Leave-one-out with the weights held out under the opposite reading, counts or importance."""
        opposite = self.observations.opposite
        return None if opposite is None else SpectrumFit(self.spectrum, opposite)

    def loo_outputs(self, alphas: Array) -> Array:
        return loo_outputs(self.spectrum, self.observations, alphas, self.fold)

    def solve(self, alpha: float) -> Coefficients:
        return solve(self.spectrum, self.observations, alpha)

    def fold_models(self, folds: Sequence[int], alpha: float, loo: Array) -> dict[int, Coefficients]:
        """The models without each of some folds; ``loo`` (n, q) are their held-out outputs."""
        return _fold_models(self.spectrum, self.observations, self.fold, folds, alpha, loo)

    def fitted(self, alpha: float) -> Array:
        return fitted(self.spectrum, self.observations, alpha)

    def degrees_of_freedom(self, alphas: Array) -> Array:
        return self.spectrum.degrees_of_freedom(alphas)

    def error(self, alpha: float, loo: Array) -> float:
        return output_error(self.spectrum, self.observations, loo, alpha)


@dataclass(frozen=True)
class AlphaFit:
    """What follows from the factor for one alpha: leave-one-out and fitted outputs (n, q), coefficients."""

    loo: Array
    loo_opposite: Array | None
    fitted: Array
    solution: Coefficients
    degrees_of_freedom: float
    error: float


@dataclass(frozen=True)
class RootFit:
    """Observations at the points of a kernel matrix; fits for few alphas, one Cholesky factor each.

    ``workers`` factors are computed in parallel, each on one thread: results do not depend on their number.
    ``fits`` holds what was computed; ``advance`` is called with 1 for every factor.
    """

    projected: Projected
    observations: Observations
    fold: Indices | None = None
    workers: int = 1
    fits: dict[float, AlphaFit] = field(default_factory=dict, repr=False)
    advance: Advance = nothing

    def compute(self, alphas: Array) -> None:
        """Factor for these alphas."""
        new = [alpha for alpha in map(float, alphas) if alpha not in self.fits]
        if new:
            self.fits.update(zip(new, map_in_threads(self._computed, new, most=self.workers)))

    @property
    def spectrum(self) -> Projected:
        """What all alphas have in common."""
        return self.projected

    @property
    def opposite(self) -> "RootFit | None":
        """Leave-one-out with the weights held out under the opposite reading, counts or importance."""
        if self.observations.opposite_unit is None:
            return None
        other = {
            alpha: replace(fit, loo=fit.loo_opposite)
            for alpha, fit in self.fits.items()
            if fit.loo_opposite is not None
        }
        return replace(self, fits=other)

    def loo_outputs(self, alphas: Array) -> Array:
        self.compute(alphas)
        return np.stack([self.fits[float(alpha)].loo for alpha in alphas])

    def solve(self, alpha: float) -> Coefficients:
        return self._at(alpha).solution

    def fitted(self, alpha: float) -> Array:
        return self._at(alpha).fitted

    def degrees_of_freedom(self, alphas: Array) -> Array:
        return np.array([self._at(float(alpha)).degrees_of_freedom for alpha in alphas])

    def error(self, alpha: float, loo: Array) -> float:
        return self._at(alpha).error

    def fold_models(self, folds: Sequence[int], alpha: float, loo: Array) -> dict[int, Coefficients]:
        """The models without each of some folds; one more factor for all of them."""
        if not folds:
            return {}
        return _fold_models(self.projected.root(alpha), self.observations, self.fold, folds, alpha, loo)

    def _at(self, alpha: float) -> AlphaFit:
        self.compute(np.array([alpha]))
        return self.fits[alpha]

    def _computed(self, alpha: float) -> AlphaFit:
        root, observations, one = self.projected.root(alpha), self.observations, np.array([alpha])
        opposite, loo = observations.opposite, loo_outputs(root, observations, one, self.fold)[0]
        fit = AlphaFit(
            loo,
            None if opposite is None else loo_outputs(root, opposite, one)[0],
            fitted(root, observations, alpha),
            solve(root, observations, alpha),
            float(root.degrees_of_freedom(one)[0]),
            output_error(root, observations, loo, alpha),
        )
        self.advance(1)
        return fit


def _fold_models(
    rooted: Rooted,
    observations: Observations,
    fold: Indices | None,
    folds: Sequence[int],
    alpha: float,
    loo: Array,
) -> dict[int, Coefficients]:
    """Models without a fold: fits with targets in the fold replaced by their held-out outputs (n, q)."""

    def replaced(f: int) -> Observations:
        return replace(observations, Y=np.where((np.asarray(fold) == f)[:, None], loo, observations.Y))

    return {f: solve(rooted, replaced(f), alpha) for f in folds}
