"""Leave-one-out outputs with m centers for every alpha, in one more pass over rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer._gram.blocks import AgainstCenters, check_finite, overflow
from mercer._gram.moments import pieces, target_columns
from mercer._gram.products import Parts, combine
from mercer._solvers.moments.orbits import Orbit
from mercer._solvers.moments.ridge import MOST_NOISE, LooMap, MomentSpectrum
from mercer._solvers.spectrum import Coefficients
from mercer._types import Array, Floats, Indices
from mercer.kernels._base import Kernel
from mercer.rows._base import Block
from mercer.rows._table import in_single
from mercer.rows._virtual import Copies, rows_for_each

# Rows whose kernel values and coordinates are in memory at a time.
ROWS_IN_MEMORY = 2048
# Rows whose influence on themselves gives the degrees of freedom of a fit with copies.
INFLUENCE_ROWS = 2000

# The sum of fold(block) over the blocks of rows in memory.
Reduce = Callable[[Block, Callable[[Block], Any]], Any]
# Positions of some rows of the sample, and fits with centers that were selected without their targets.
ReselectedFits = Callable[[], Iterator[tuple[Indices, "MomentFit"]]]


@dataclass(frozen=True)
class LooOutputsOf(AgainstCenters):
    """The fold block -> Parts: exact leave-one-out outputs of its rows (a, b, q) for every alpha.

    The ``unit`` in the block is the weight held out with a row; ``copies`` of the row leave with it. A row of
    weight zero has its plain output. Kernel values in float64 are multiplied in float64, those in float32 in
    float32 if the spectrum's ``noise`` allows it. O(b m (m + a q)): twice the work of the moments.
    """

    spectrum: MomentSpectrum
    alphas: Array
    copies: Copies | None = None

    def __call__(self, block: Block) -> Parts:
        """Outputs of the rows of the block, in pieces of few rows: two matrices (b, m) are in memory at a time."""
        size = max(1, ROWS_IN_MEMORY // rows_for_each(self.copies))
        return Parts([self._piece(block.cut(*ends)) for ends in pieces(block.n_rows, size)], axis=1)

    def _piece(self, block: Block) -> Floats:
        block = block if self.copies is None else self.copies(block)
        K, Y = self.values(block.X), target_columns(block)
        loo_map = self._single if K.dtype == np.float32 else self._double
        if self.copies is None:
            outputs = loo_map(K, Y, removed_weight(block))
        else:
            outputs = loo_map.together(K, Y, removed_weight(block), orbit_of(self.copies))
        if not np.isfinite(outputs).all():
            check_finite(self.kernel, K)
            raise overflow(self.kernel, outputs.dtype)
        return outputs

    @cached_property
    def _single(self) -> LooMap:
        accurate = self.spectrum.noise(self.alphas) <= MOST_NOISE
        return self.spectrum.loo_map(self.alphas, np.float32) if accurate else self._double

    @cached_property
    def _double(self) -> LooMap:
        return self.spectrum.loo_map(self.alphas)


@dataclass(frozen=True)
class InfluenceOf(AgainstCenters):
    """The fold block -> what the targets of its rows move their own outputs (a,), in sum: degrees of freedom."""

    spectrum: MomentSpectrum
    alphas: Array
    copies: Copies

    def __call__(self, block: Block) -> Array:
        loo_map, size = self.spectrum.loo_map(self.alphas), max(1, ROWS_IN_MEMORY // self.copies.size)
        total = np.zeros(len(self.alphas))
        for ends in pieces(block.n_rows, size):
            part = self.copies(block.cut(*ends))
            moved = loo_map.influence(self.values(part.X), np.asarray(part.weight), orbit_of(self.copies))
            total += moved.sum(axis=1)
        return total


def orbit_of(copies: Copies) -> Orbit:
    """How rows leave with their copies."""
    return Orbit(copies.size, differences=copies.mu is not None)


def removed_weight(block: Block) -> Array:
    """The weight (b,) that is held out with each row: its unit, or all of it."""
    if block.weight is None:
        return np.ones(block.n_rows)
    return block.weight if block.unit is None else block.unit


@dataclass(frozen=True)
class MomentFit:
    """Fits with m centers from the moments of all rows, and a sample of the rows for leave-one-out.

    ``reduce`` sums over rows in memory. ``fold`` (n,) numbers the rows of the sample that are held out together,
    and ``spectrum_without`` returns the spectrum without a fold. ``opposite_unit`` (n,) are the units under the
    opposite reading of weights. ``unrepresented`` is an error of outputs besides rounding, ``cells`` the number of
    kernel values in memory at a time. Without ``residuals`` nothing follows from fitted outputs, and they are not
    computed. The moments include ``copies`` of the rows. Rows whose targets selected the centers have the outputs
    of fits ``reselected``.
    """

    kernel: Kernel
    centers: Any
    spectrum: MomentSpectrum
    sample: Block
    reduce: Reduce
    cells: int
    fold: Indices | None = None
    spectrum_without: Callable[[int], MomentSpectrum] | None = None
    opposite_unit: Array | None = None
    unrepresented: float = 0.0
    residuals: bool = True
    copies: Copies | None = None
    reselected: ReselectedFits | None = None

    @property
    def opposite(self) -> "MomentFit | None":
        """Leave-one-out with the weights held out under the opposite reading, counts or importance."""
        if self.opposite_unit is None:
            return None
        other = replace(
            self,
            sample=replace(self.sample, unit=self.opposite_unit),
            fold=None,
            spectrum_without=None,
            opposite_unit=None,
        )
        return other if self.reselected is None else replace(other, reselected=self._reselected_opposite)

    def of_rows(self, rows: Indices) -> "MomentFit":
        """The same fits, with leave-one-out for some rows of the sample."""
        fold = None if self.fold is None else self.fold[rows]
        opposite_unit = None if self.opposite_unit is None else self.opposite_unit[rows]
        return replace(self, sample=self.sample.take(rows), fold=fold, opposite_unit=opposite_unit)

    def loo_outputs(self, alphas: Array) -> Floats:
        outputs = self._loo_outputs(alphas)
        if self.reselected is not None:
            for rows, fits in self.reselected():
                outputs[:, rows] = fits.loo_outputs(alphas)
        return outputs

    def _loo_outputs(self, alphas: Array) -> Floats:
        """Outputs (a, n, q) with the centers of the model, whatever selected them."""
        if self.fold is not None and self.spectrum_without is not None:
            return self._fold_outputs(alphas, self.fold, self.spectrum_without)
        return self._outputs(self.spectrum, alphas, self.sample, self.copies)

    def _reselected_opposite(self) -> Iterator[tuple[Indices, "MomentFit"]]:
        assert self.reselected is not None
        for rows, fits in self.reselected():
            other = fits.opposite
            assert other is not None
            yield rows, other

    def solve(self, alpha: float) -> Coefficients:
        return Coefficients(*self.spectrum.solve(alpha))

    def fitted(self, alpha: float) -> Array:
        """Outputs (n, q), or (0, q) without ``residuals``."""
        coef, intercept = self.spectrum.solve(alpha)
        if not self.residuals:
            return np.empty((0, len(intercept)))
        return combine(self.kernel, self.sample.X, self.centers, coef, cells=self.cells) + intercept

    def degrees_of_freedom(self, alphas: Array) -> Array:
        """Traces (a,) of the smoothers; with copies, which are not observed, from some rows of the sample."""
        if self.copies is None:
            return self.spectrum.degrees_of_freedom(alphas)
        fold = InfluenceOf(self.kernel, self.centers, self.spectrum, alphas, self.copies)
        n = self.sample.n_rows
        some = np.unique(np.linspace(0, n - 1, min(n, INFLUENCE_ROWS)).astype(np.intp))
        rows = replace(self.sample.take(some), X=self.kernel.subset(self.sample.X, some)).with_weight()
        weight = float(np.asarray(rows.weight).sum())
        return np.asarray(self.reduce(rows, fold) * (self.spectrum.n / weight))

    def error(self, alpha: float, loo: Array) -> float:
        """The bound of the spectrum, for kernel values in the precision of rows and centers."""
        single = in_single(self.sample.X, self.centers)
        return self.spectrum.error(alpha, np.float32 if single else np.float64) + self.unrepresented

    def _outputs(
        self, spectrum: MomentSpectrum, alphas: Array, rows: Block, copies: Copies | None = None
    ) -> Floats:
        fold = LooOutputsOf(self.kernel, self.centers, spectrum, alphas, copies)
        return np.asarray(self.reduce(rows, fold).joined)

    def _fold_outputs(self, alphas: Array, fold: Indices, without: Callable[[int], MomentSpectrum]) -> Floats:
        """Outputs (a, n, q) of the rows of the sample for the models without their fold; O(m³) per fold."""
        outputs = np.empty((len(alphas), self.sample.n_rows, self.sample.y.shape[1]))
        for f in np.unique(fold):
            members = np.flatnonzero(fold == f)
            # These rows are already removed: no weight of them is held out.
            gone = replace(self.sample.take(members), weight=np.ones(len(members)), unit=np.zeros(len(members)))
            outputs[:, members] = self._outputs(without(f), alphas, gone)
        return outputs
