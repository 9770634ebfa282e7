r"""Directions in which rows vary and noise does not: oriented kernel PCA, from moments of rows and of noise.

With the covariance S of phi(x) over rows and the second moment N of the noise, both in the span of m centers,

    max_w  w'Sw / (w'Nw + mu w'w),                                                                       (1)

one direction after another (Mika 2002, section 3.4.2). N is a sum, with weights, of covariances of phi over rows
that are noise, and of tangent covariances, means of (phi(Tx) - phi(x))(phi(Tx) - phi(x))' over the rows. In
coordinates R'^-1 k of kernel rows k against centers, with their kernel matrix R'R, lengths are those of feature
space: mu w'w is mu times the identity there, and mu c'Kc in coefficients c (Eq. 3.34).

N has a low rank, and small eigenvalues count most in (1). So it is always summed in these coordinates and in
float64: its error is a rounding error of its trace, whatever the condition number of K.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._fitting.selection.centers import EncodedMoments
from mercer._fitting.subspaces.components import RowValidator, Subspace, SubspaceState
from mercer._gram.moments import Moments, MomentsOf
from mercer._gram.precision import ORIGIN_ROWS
from mercer._linalg.eigen import signs
from mercer._linalg.lapack import solve_triangular
from mercer._solvers.directions.rayleigh import rayleigh
from mercer._types import Array
from mercer.rows import Rows
from mercer.rows._resolve import first_block
from mercer.rows._sources.repeated import RepeatedRows

# mu as a share of the noise variance, all directions together. With it, digits that were not in the fit have
# nearly the ratios of those that were; with a tenth of it, the ratios of the latter are a third too large.
SHARE = 1e-3
# Errors of kernel values, in units in the last place.
UNITS_OF_ROUNDING = 10.0
# Matrices (m, m) of a fit: those of kernel PCA, two moments of noise, the coordinates, and the ratio.
HELD = 12


@dataclass(frozen=True)
class NoiseRows:
    """Rows that are noise, their weight, and their validation, None: they are valid."""

    rows: Rows
    weight: float
    check: Callable[[Any], Any] | None


@dataclass(frozen=True)
class OrientedSubspace:
    """Directions of unit length with the variance of rows along them, that of the noise (r,), and the ratios (r,)
    of the first to the second plus ``mu``, largest first.
    """

    subspace: Subspace
    noise: Array
    ratio: Array
    mu: float


@dataclass(frozen=True)
class OrientedState:
    """Moments of rows and of what transformations change in them, and the covariance (m, m) of noise rows.

    Rows can be added and removed; the noise rows stay. ``weight`` is the sum of the weights of all noise.
    """

    rows: SubspaceState
    sampled: Array
    weight: float

    def added(self, rows: Rows, verbose: int) -> "OrientedState":
        """With more rows."""
        return replace(self, rows=self.rows.added(rows, verbose))

    def removed(self, rows: Rows, verbose: int) -> "OrientedState":
        """Without some rows that were added before."""
        return replace(self, rows=self.rows.removed(rows, verbose))

    def noise(self) -> Array:
        """N (m, m)."""
        changes = self.rows.additive.changes
        return self.sampled if changes is None else self.sampled + changes.G / changes.n

    def solved(self, share: float, most: int | None) -> OrientedSubspace:
        """``most`` directions, None: all with a variance; mu is a ``share`` of the noise variance."""
        state, S, N = self.rows, self.rows.covariance(), self.noise()
        total = float(np.trace(N))
        self._require_variance(total)
        mu = share * total
        found = rayleigh(S, N, mu=mu, most=most)
        vectors = found.vectors / np.linalg.norm(found.vectors, axis=0)
        variance = np.einsum("ij,ij->j", vectors, S @ vectors)
        certain = variance > state.rounding
        vectors, variance = vectors[:, certain], variance[certain]
        noise = np.maximum(np.einsum("ij,ij->j", vectors, N @ vectors), 0.0)
        words = f"{state.words}; mu is {share:.3g} of the noise variance"
        if found.n_removed:
            words += f"; {found.n_removed} directions without noise were removed"
        subspace = replace(self._along(vectors, variance), words=words)
        return OrientedSubspace(subspace, noise, found.values[certain], mu)

    def _along(self, vectors: Array, variance: Array) -> Subspace:
        """Directions with coordinates (m, r); the largest score of a center is positive.

        Coefficients have no sign to rely on where centers are nearly dependent.
        """
        R = self.rows.factor.R
        found = self.rows.along(solve_triangular(R, vectors), variance)
        sign = signs(R.T @ vectors - found.shift)
        return replace(found, basis=found.basis * sign, shift=found.shift * sign)

    def _require_variance(self, total: float) -> None:
        """Reject noise that is a rounding error of kernel values, which R'^-1 has amplified."""
        state = self.rows
        error = UNITS_OF_ROUNDING * float(np.finfo(state.dtype).eps) * abs(state.own)
        amplified = float(np.square(state.coordinates_around(np.zeros(0)).inverse).sum())
        if not total > self.weight * error**2 * amplified:
            raise ValueError(
                f"the noise has no variance in feature space (its total is {total:.2g}, up to rounding errors): "
                "transformations must change rows, and noise rows must differ; without noise, use KernelPCA"
            )


def start_oriented(state: SubspaceState, samples: tuple[NoiseRows, ...], verbose: int) -> OrientedState:
    """Moments of the noise rows, in a pass over each sample."""
    m = len(state.factor.R)
    sampled = np.zeros((m, m))
    for sample in samples:
        sampled += sample.weight * _covariance(state, sample, verbose)
    weight = sum(T.weight for T in state.transformations) + sum(sample.weight for sample in samples)
    return OrientedState(state, sampled, weight)


def _covariance(state: SubspaceState, sample: NoiseRows, verbose: int) -> Array:
    """That of noise rows (m, m), in the coordinates in which lengths are those of feature space."""
    rows, check = RepeatedRows(sample.rows), RowValidator(sample.check)
    first_rows = check(replace(first_block(rows), weight=None)).cut(0, ORIGIN_ROWS)
    values = MomentsOf(state.kernel, state.centers).values
    where = state.coordinates_around(values(first_rows.X).mean(axis=0, dtype=np.float64))
    fold = MomentsOf(state.kernel, state.centers, np.float64, where)
    found: Moments = rows.reduce(EncodedMoments(check, fold), phase="noise rows", verbose=verbose)
    return found.centered()[0] / found.n
