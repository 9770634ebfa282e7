"""Fits to rows in memory with m centers and any smaller number of them, to compare kernels and numbers of centers.

With kernel values K (u, m) of the points against centers whose own kernel matrix is R'R, the coordinates Phi = K
R^-1 turn the penalty c'R'Rc into a'a, and the first columns of Phi are those of the first centers alone. One
product Phi'Phi serves all numbers of centers; each takes one small eigendecomposition, for all alphas.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer._linalg import eigen_psd, factor_spd
from mercer._linalg.cholesky import CholeskyFactor
from mercer._linalg.lapack import solve_triangular
from mercer._linalg.tolerance import rounding_unit
from mercer._solvers.spectrum import Eigenvalues, Resolvent, inverse_shifted
from mercer._types import Array, Floats, Indices
from mercer.errors import NumericalError

# Added to the kernel matrix of the centers, in units of its diagonal: they may depend on each other.
CENTER_SHIFT = 1e-10


@dataclass(frozen=True)
class LowRank(Eigenvalues, Resolvent):
    """alpha P = I - s s'/s's - Z (diag(values) + alpha)^-1 Z' with Z'Z = diag(values), Z (u, m) orthogonal to s.

    Without an intercept the second term is missing.
    """

    values: Array
    Z: Array
    root_weight: Array
    has_intercept: bool

    @property
    def width(self) -> int:
        return int(self.Z.shape[1])

    @property
    def features(self) -> Array:
        return self.Z

    def one_minus_leverage(self, alphas: Array) -> Array:
        exact: Array = self._constant() - inverse_shifted(self.values, alphas) @ (self.Z**2).T
        # A point that alone determines a direction: its leverage is 1 up to rounding.
        return np.asarray(np.maximum(exact, rounding_unit(np.float64)))

    def one_minus_leverage_block(self, points: Indices, alphas: Array) -> Array:
        s, Z = self.root_weight[points], self.Z[points]
        constant = self.has_intercept * s[:, :, None] * s[:, None, :] / self._weight
        fitted = (Z * inverse_shifted(self.values, alphas)[:, None, None, :]) @ Z.transpose(0, 2, 1)
        return np.eye(points.shape[1]) - constant - fitted

    def residual(self, SY: Array, alphas: Array) -> Array:
        s = self.root_weight
        rest = SY - np.outer(s, s @ SY / self._weight) if self.has_intercept else SY
        a, q = len(alphas), SY.shape[1]
        slopes = inverse_shifted(self.values, alphas).T[:, :, None] * (self.Z.T @ SY)[:, None, :]
        fitted = (self.Z @ slopes.reshape(self.width, a * q)).reshape(len(s), a, q)
        return rest - fitted.transpose(1, 0, 2)

    @cached_property
    def _weight(self) -> float:
        return float(self.root_weight @ self.root_weight)

    def _constant(self) -> Array:
        """One minus the leverage of the intercept (u,)."""
        return 1.0 - self.has_intercept * self.root_weight**2 / self._weight


@dataclass(frozen=True)
class NestedCenters:
    """S Phi (u, m) without its component along s, and the products of its columns (m, m)."""

    SPhi: Array
    G: Array
    root_weight: Array
    has_intercept: bool

    @classmethod
    def of(cls, K: Floats, K_zz: Floats | None, weight: Array, *, intercept: bool = True) -> "NestedCenters":
        """From kernel values K (u, m) under weights (u,) and those of the centers, None for the penalty c'c.

        Directions of K_zz below 1e-10 of its diagonal are penalized as if they were not. Those in which it is
        negative are not used, and then fits with the first centers are approximate. O(u m²).
        """
        s = np.sqrt(weight)
        Phi = np.array(K, dtype=np.float64) if K_zz is None else _coordinates(K, K_zz)
        if intercept:
            Phi -= weight @ Phi / weight.sum()
        Phi *= s[:, None]
        return cls(Phi, Phi.T @ Phi, s, intercept)

    def first(self, m: int | None = None) -> LowRank:
        """The fits with the first m centers, None: all; O(m³ + u m²)."""
        some = slice(m)
        eigen = eigen_psd(np.array(self.G[some, some], order="F"))
        kept = eigen.values > 0.0
        Z = self.SPhi[:, some] @ eigen.vectors[:, kept]
        return LowRank(eigen.values[kept], Z, self.root_weight, self.has_intercept)


def coefficients(
    nested: NestedCenters, K: Floats, centers: Indices, Y: Array, alpha: float
) -> tuple[Array, Array]:
    """Coefficients (m, q) of the centers and the intercept (q,) for targets Y (u, q) at the points.

    ``nested`` is that of the same kernel values K (u, m), whose rows ``centers`` are those of the centers.
    """
    values, s = np.asarray(K, dtype=np.float64), nested.root_weight
    G = nested.G + alpha * np.eye(len(nested.G))
    slopes = factor_spd(G).solve(nested.SPhi.T @ (s[:, None] * Y))
    factor, V = _factor(values[centers])
    coef = solve_triangular(factor.lower, slopes, lower=True, transposed=True)
    coef = coef if V is None else V @ (V.T @ coef)
    mean = s**2 @ (Y - values @ coef) / (s @ s)
    return coef, mean if nested.has_intercept else np.zeros_like(mean)


def _coordinates(K: Floats, K_zz: Floats) -> Array:
    """K R^-1 (u, m) for R'R = K_zz up to the shift."""
    values, A = np.asarray(K, dtype=np.float64), np.asarray(K_zz, dtype=np.float64)
    factor, V = _factor(A)
    return factor.half_solve_rows(values if V is None else (values @ V) @ V.T)


def _factor(A: Array) -> tuple[CholeskyFactor, Array | None]:
    """That of A up to the shift, or of the part of A in the directions V (m, p) in which it is positive, and V."""
    try:
        return factor_spd(_shifted(A)), None
    except NumericalError:
        # An indefinite kernel, or rounding: as in a fit with every row as a center.
        eigen = eigen_psd(np.array(A, order="F"))
        V = eigen.vectors[:, eigen.values > 0.0]
        return factor_spd(_shifted((V * eigen.values[eigen.values > 0.0]) @ V.T)), V


def _shifted(A: Array) -> Array:
    """A copy that is positive definite if A is semidefinite."""
    A = A.copy()
    A[np.diag_indices_from(A)] += CENTER_SHIFT * float(A.diagonal().max(initial=0.0)) or 1.0
    return A
