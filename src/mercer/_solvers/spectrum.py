r"""Penalized least squares with a free intercept, for every penalty, from one decomposition.

The problem, over coefficients c and intercept b of f(x) = sum_j c_j k(x, z_j) + b:

    min  sum_i w_i (y_i - f(x_i))²  +  alpha c'Kc        penalty "rkhs"
    min  sum_i w_i (y_i - f(x_i))²  +  alpha c'c         penalty "coef"

With s = sqrt(w), S = diag(s), H the projector on the complement of s and the decomposition
H S K S H = U diag(lambda) U', the dual variables are gamma = U (lambda + alpha)^-1 U' S y, the
residuals r = alpha S^-1 gamma: Mika (2002), Eqs. (3.37), (3.63), (3.64). The second penalty is the
first for the kernel matrix K K'; its singular values are used, so that the condition number is
not squared.

Equal rows share one *point*: w and y at a point are the sum and the mean over its rows.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mercer._linalg import Reflector, eigen_psd, singular
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array, Floats, Indices
from mercer.rows._distinct import Distinct

Penalty = Literal["rkhs", "coef"]

# A penalty is far above the error of K if that is at most this share of it.
FAR_ABOVE = 1e-3


@dataclass(frozen=True)
class Observations:
    """Targets Y (n, q) with weights (n,) at the points ``rows.point``; ``unit`` (n,) is held out with a row.

    ``opposite_unit`` (n,) is the unit under the opposite reading of the weights, counts or importance; None: no
    ambiguity.
    """

    Y: Array
    weight: Array
    unit: Array
    rows: Distinct
    opposite_unit: Array | None = None

    @property
    def opposite(self) -> "Observations | None":
        """The same with the units under the opposite reading of the weights."""
        return None if self.opposite_unit is None else replace(self, unit=self.opposite_unit, opposite_unit=None)

    @cached_property
    def n_counted(self) -> float:
        """Number of rows, each counted as often as it occurs."""
        return float((self.weight / self.unit).sum())

    @cached_property
    def point_weight(self) -> Array:
        """Total weight of each point (u,)."""
        return np.bincount(self.rows.point, self.weight, minlength=self.rows.n_points).astype(float)

    @cached_property
    def point_count(self) -> Indices:
        """Rows at each point (u,)."""
        return np.bincount(self.rows.point, minlength=self.rows.n_points)

    @cached_property
    def point_target(self) -> Array:
        """Weighted mean target of each point (u, q), exact if its rows agree."""
        first = self.Y[self.rows.first]
        more = np.zeros_like(first)
        np.add.at(more, self.rows.point, self.weight[:, None] * (self.Y - first[self.rows.point]))
        return first + more / self.point_weight[:, None]

    def at_points(self, points: Indices) -> "tuple[Observations, Indices]":
        """Observations at some of the points, and their rows."""
        position = np.full(self.rows.n_points, -1, dtype=np.intp)
        position[points] = np.arange(len(points))
        rows = np.flatnonzero(position[self.rows.point] >= 0)
        point = position[self.rows.point[rows]]
        distinct = Distinct(np.searchsorted(rows, self.rows.first[points]), point)
        return Observations(self.Y[rows], self.weight[rows], self.unit[rows], distinct), rows


class Eigenvalues:
    """Result of a decomposition: eigenvalues (r,), clipped at zero; abstract."""

    values: Array

    @property
    def trace(self) -> float:
        """Sum of the eigenvalues: the natural unit of alpha."""
        return float(self.values.sum())


def inverse_shifted(values: Array, alphas: Array) -> Array:
    """1 / (value + alpha) (a, r) for every alpha."""
    return 1.0 / (values + np.asarray(alphas)[:, None])


class Resolvent(ABC):
    """alpha P = alpha (H S K S H + alpha)^-1 on the complement of s = sqrt(weight): S times residuals from S y.

    Abstract. ``root_weight`` is s (u,).
    """

    root_weight: Array
    has_intercept: bool

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers per point that a block of P is computed from."""

    @property
    @abstractmethod
    def features(self) -> Array | None:
        """S F (u, m) if the fit is f = F a + b with the penalty alpha a'a and few columns; None otherwise."""

    @abstractmethod
    def one_minus_leverage(self, alphas: Array) -> Array:
        """alpha P_gg (a, u): one minus the diagonals of the smoothers."""

    @abstractmethod
    def one_minus_leverage_block(self, points: Indices, alphas: Array) -> Array:
        """alpha P (a, f, g, g) for f times g points (f, g)."""

    @abstractmethod
    def residual(self, SY: Array, alphas: Array) -> Array:
        """alpha P S y (a, u, q) for S y (u, q)."""


class Rooted(Resolvent):
    """P = U diag(inverse) U' with U (u, r), as far as a solution needs it; abstract.

    ``kernel_mean`` (u,) is zero without an intercept; ``noise`` bounds the rounding errors of S K S, ``negative``
    is the clipped negative part of its eigenvalues in units of the largest.
    """

    vectors: Array
    kernel_mean: Array
    noise: float
    negative: float

    @abstractmethod
    def inverse(self, alphas: Array) -> Array:
        """The diagonals (a, r) for every alpha."""

    @abstractmethod
    def smoothed(self, SY: Array, alpha: float) -> Array:
        """(I - alpha P) S y for S y (u, q) orthogonal to s."""

    @abstractmethod
    def coefficients(self, coordinates: Array, alpha: float) -> Array:
        """coef (u, q) of coordinates diag(inverse) U'S y (r, q)."""

    @abstractmethod
    def degrees_of_freedom(self, alphas: Array) -> Array:
        """Traces (a,) of the smoothers I - alpha P, intercept included."""

    @abstractmethod
    def error(self, alpha: float) -> float:
        """Bound on the relative error of residuals, caused by errors of K."""

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def features(self) -> None:
        return None

    def one_minus_leverage(self, alphas: Array) -> Array:
        return np.asarray(alphas)[:, None] * _row_norms(self.vectors, self.inverse(alphas))

    def one_minus_leverage_block(self, points: Indices, alphas: Array) -> Array:
        U = self.vectors[points]
        damped = U * (np.asarray(alphas)[:, None] * self.inverse(alphas))[:, None, None, :]
        return np.asarray(damped @ U.transpose(0, 2, 1))

    def residual(self, SY: Array, alphas: Array) -> Array:
        z, damping = self.vectors.T @ SY, np.asarray(alphas)[:, None] * self.inverse(alphas)
        residual = np.empty((len(damping), *SY.shape))
        for target in range(SY.shape[1]):
            residual[:, :, target] = (damping * z[:, target]) @ self.vectors.T
        return residual


@dataclass(frozen=True)
class Spectrum(Eigenvalues, Rooted):
    """H S K S H = U diag(values) U' over u points, for every alpha.

    ``right`` maps coordinates to coefficients for the penalty c'c; for c'Kc it is S U and not stored.
    """

    values: Array
    vectors: Array
    right: Array | None
    root_weight: Array
    kernel_mean: Array
    rank: int
    indefinite: NDArray[np.bool_]
    negative: float
    noise: float
    has_intercept: bool

    def inverse(self, alphas: Array) -> Array:
        return inverse_shifted(self.values, alphas)

    def smoothed(self, SY: Array, alpha: float) -> Array:
        shrink = self.values / (self.values + alpha)
        return self.vectors @ (shrink[:, None] * (self.vectors.T @ SY))

    def coefficients(self, coordinates: Array, alpha: float) -> Array:
        """A null direction of K keeps its coordinate while alpha is far above the error of K: it may matter at new
        rows. Otherwise, and if the kernel is indefinite, it would be that error, amplified.
        """
        if self.right is not None:
            return self.right @ coordinates
        dropped = self.indefinite | ((self.values == 0.0) & (self.noise > FAR_ABOVE * alpha))
        coordinates = np.where(dropped[:, None], 0.0, coordinates)
        return self.root_weight[:, None] * (self.vectors @ coordinates)

    def degrees_of_freedom(self, alphas: Array) -> Array:
        values = self.values[:, None]
        trace: Array = (values / (values + np.asarray(alphas))).sum(axis=0)
        return trace + self.has_intercept

    def error(self, alpha: float) -> float:
        if self.right is not None:
            # With singular values, errors are relative to the square root of alpha.
            return self.noise / float(np.sqrt(alpha))
        return max(self.noise, self.negative * float(self.values.max(initial=0.0))) / alpha


@dataclass(frozen=True)
class Coefficients:
    """coef (u, q) and intercept (q,) of the solution for one alpha."""

    coef: Array
    intercept: Array


def decompose(
    K: Floats,
    weight: Array,
    *,
    penalty: Penalty = "rkhs",
    intercept: bool = True,
) -> Spectrum:
    """The spectrum of K (u, u) under row weights (u,) > 0; O(u³) once for every alpha and target."""
    s = np.sqrt(weight)
    reflector = Reflector.onto_first_axis(s) if intercept else None
    mean, noise = kernel_mean(K, weight, intercept=intercept), rounding(K, s)
    if penalty == "rkhs":
        eigen = eigen_psd(projected(K, s, reflector), noise=noise)
        values, U, right, rank = eigen.values, eigen.vectors, None, eigen.rank
        indefinite, negative = eigen.indefinite, eigen.negative
    else:
        A = np.asarray(K, dtype=np.float64) * s[:, None]
        U, sigma, V, rank = singular(reflector.apply(A) if reflector else A, noise=rounding(K, np.sqrt(s)))
        values, right, indefinite, negative = sigma**2, V * sigma, np.zeros(len(sigma), dtype=bool), 0.0
    vectors = reflector.expand(U) if reflector else U
    return Spectrum(values, vectors, right, s, mean, rank, indefinite, negative, noise, intercept)


def projected(K: Floats, s: Array, reflector: Reflector | None) -> Array:
    """S K S in a basis of the complement of s, the lower triangle in column-major order; a copy."""
    A = np.asarray(K if (s == 1.0).all() else K * s * s[:, None], dtype=np.float64)
    return reflector.both_sides(A) if reflector else np.array(A.T, order="F")


def kernel_mean(K: Floats, weight: Array, *, intercept: bool) -> Array:
    """Weighted mean (u,) of the rows of K, zero without an intercept."""
    return np.asarray((weight @ K) / weight.sum()) if intercept else np.zeros(len(weight))


def rounding(K: Floats, s: Array) -> float:
    """Bound on the norm of the rounding errors of K in S K S: independent, of the size of its diagonal."""
    largest = float(np.abs(np.diagonal(K) * s**2).max())
    return 4.0 * float(rounding_unit(K.dtype)) * float(np.sqrt(len(K))) * largest


def solve(resolvent: Rooted, observations: Observations, alpha: float) -> Coefficients:
    """Coefficients and intercept for one alpha > 0; O(u² q)."""
    inverse = resolvent.inverse(np.array([alpha]))[0]
    coef = resolvent.coefficients(inverse[:, None] * coordinates(resolvent, observations), alpha)
    intercept = _mean_target(resolvent, observations) - resolvent.kernel_mean @ coef
    return Coefficients(coef, intercept)


def fitted(resolvent: Rooted, observations: Observations, alpha: float) -> Array:
    """f at every row (n, q) for one alpha, without the kernel matrix."""
    mean, s = _mean_target(resolvent, observations), resolvent.root_weight[:, None]
    smooth = resolvent.smoothed(s * (observations.point_target - mean), alpha)
    f: Array = mean + smooth / s
    return f[observations.rows.point]


def output_error(resolvent: Rooted, observations: Observations, loo: Array, alpha: float) -> float:
    """Bound on the error of outputs in units of the spread of the targets; the worst of q.

    An error E of S K S changes the dual variables gamma by (A + alpha)^-1 E gamma, and residuals alpha gamma / s
    by a relative error of |E| / alpha. ``loo`` (n, q) are leave-one-out outputs, whose residuals are the largest.
    """
    w, Y = observations.weight, observations.Y
    spread = np.sqrt(w @ (Y - w @ Y / w.sum()) ** 2)
    residual = np.sqrt(w @ (Y - loo) ** 2)
    share = residual / np.where(spread > 0.0, spread, np.inf)
    return resolvent.error(alpha) * float(share.max(initial=0.0))


def coordinates(spectrum: Rooted, observations: Observations) -> Array:
    """U'S y (r, q)."""
    return spectrum.vectors.T @ (spectrum.root_weight[:, None] * observations.point_target)


def _mean_target(spectrum: Rooted, observations: Observations) -> Array:
    """Weighted mean of the targets (q,), zero without an intercept."""
    if not spectrum.has_intercept:
        return np.zeros(observations.Y.shape[1])
    return np.asarray(observations.weight @ observations.Y / observations.weight.sum())


def _row_norms(U: Array, inverse: Array, step: int = 1024) -> Array:
    """P_gg = sum_j U_gj² inverse_aj (a, u), squaring a block of columns at a time."""
    P = np.zeros((len(inverse), len(U)))
    for j in range(0, U.shape[1], step):
        P += inverse[:, j : j + step] @ (U[:, j : j + step] ** 2).T
    return P
