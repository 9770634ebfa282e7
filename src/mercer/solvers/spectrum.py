r"""Penalized least squares with a free intercept, for every penalty, from one decomposition.

The problem, over coefficients c and intercept b of f(x) = sum_j c_j k(x, z_j) + b:

    min  sum_i w_i (y_i - f(x_i))²  +  alpha c'Kc        penalty "rkhs"
    min  sum_i w_i (y_i - f(x_i))²  +  alpha c'c         penalty "coef"

With s = sqrt(w), S = diag(s), H the projector on the complement of s and the decomposition
H S K S H = U diag(lambda) U', the dual variables are gamma = U (lambda + alpha)^-1 U' S y, the
residuals r = alpha S^-1 gamma, and the diagonal of the smoother gives every leave-one-out
output: Mika (2002), Eqs. (3.37), (3.63), (3.64) and section 4.4, whose printed rank-two update
needs the row of the intercept as well. The second penalty is the first for the kernel
matrix K S K' (its singular values are used, so that the condition number is not squared).

Rows that are equal share one *point*: w and y at a point are the sum and the mean over its
rows. Leaving out takes ``unit`` of the weight of a row, so that a row of weight two and the
same row twice give the same numbers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mercer.linalg import Reflector, eigen_psd, singular
from mercer.rows import Distinct, fold_members

Array = NDArray[np.float64]
Penalty = Literal["rkhs", "coef"]


@dataclass(frozen=True)
class Observations:
    """Targets Y (n, q) with weights (n,) at the points ``rows.point``; ``unit`` (n,) is what leaves with a row."""

    Y: Array
    weight: Array
    unit: Array
    rows: Distinct

    @cached_property
    def point_weight(self) -> Array:
        """Total weight of each point (u,)."""
        total: Array = np.bincount(self.rows.point, self.weight, minlength=self.rows.n_points).astype(float)
        return total

    @cached_property
    def point_target(self) -> Array:
        """Weighted mean target of each point (u, q)."""
        total = np.zeros((self.rows.n_points, self.Y.shape[1]))
        np.add.at(total, self.rows.point, self.weight[:, None] * self.Y)
        mean: Array = total / self.point_weight[:, None]
        return mean

    def at_points(self, points: NDArray[np.intp]) -> "tuple[Observations, NDArray[np.intp]]":
        """What was observed at some of the points, and which rows that are."""
        position = np.full(self.rows.n_points, -1, dtype=np.intp)
        position[points] = np.arange(len(points))
        rows = np.flatnonzero(position[self.rows.point] >= 0)
        distinct = Distinct(points, position[self.rows.point[rows]])
        return Observations(self.Y[rows], self.weight[rows], self.unit[rows], distinct), rows


@dataclass(frozen=True)
class Spectrum:
    """H S K S H = U diag(values) U' over u points.

    ``right`` maps coordinates to coefficients for the penalty c'c; for c'Kc it is S U and not stored.
    """

    values: Array
    vectors: Array
    right: Array | None
    root_weight: Array
    kernel_mean: Array
    rank: int
    negative: float
    has_intercept: bool

    @property
    def trace(self) -> float:
        """Sum of the eigenvalues: the natural unit of alpha."""
        return float(self.values.sum())

    def coefficients(self, coordinates: Array) -> Array:
        """coef (u, q) of coordinates (r, q) in the basis U."""
        # A null direction of K adds nothing to f; dropping it keeps the coefficients small.
        coordinates = np.where(self.values[:, None] > 0.0, coordinates, 0.0)
        if self.right is not None:
            return self.right @ coordinates
        coef: Array = self.root_weight[:, None] * (self.vectors @ coordinates)
        return coef


@dataclass(frozen=True)
class Coefficients:
    """coef (u, q) and intercept (q,) of the solution for one alpha."""

    coef: Array
    intercept: Array


def decompose(
    K: NDArray[np.floating], weight: Array, *, penalty: Penalty = "rkhs", intercept: bool = True
) -> Spectrum:
    """The spectrum of K (u, u) under row weights (u,) > 0; O(u³) once for every alpha and target."""
    s = np.sqrt(weight)
    kernel_mean = (weight @ K) / weight.sum() if intercept else np.zeros(len(s))
    reflector = Reflector.onto_first_axis(s) if intercept else None
    parts = _rkhs_parts if penalty == "rkhs" else _coef_parts
    values, vectors, right, rank, negative = parts(K, s, reflector)
    return Spectrum(values, vectors, right, s, kernel_mean, rank, negative, intercept)


Parts = tuple[Array, Array, Array | None, int, float]


def _rkhs_parts(K: NDArray[np.floating], s: Array, reflector: Reflector | None) -> Parts:
    A = np.asarray(K if (s == 1.0).all() else K * s * s[:, None], dtype=np.float64)
    B = reflector.both_sides(A) if reflector else np.array(A.T, order="F")
    eigen = eigen_psd(B, noise=_noise(K, A))
    U = reflector.expand(eigen.vectors) if reflector else eigen.vectors
    return eigen.values, U, None, eigen.rank, eigen.negative


def _coef_parts(K: NDArray[np.floating], s: Array, reflector: Reflector | None) -> Parts:
    A = np.asarray(K, dtype=np.float64) * s[:, None]
    U, sigma, V, rank = singular(reflector.left(A) if reflector else A, noise=_noise(K, A))
    return sigma**2, reflector.expand(U) if reflector else U, V * sigma, rank, 0.0


def _noise(K: NDArray[np.floating], A: Array) -> float:
    """Bound on the norm of the rounding errors of K as they stand in A: independent, of its diagonal's size."""
    largest = float(np.abs(np.diagonal(A)).max())
    return 4.0 * float(np.finfo(K.dtype).eps) * float(np.sqrt(len(A))) * largest


def solve(spectrum: Spectrum, observations: Observations, alpha: float) -> Coefficients:
    """Coefficients and intercept for one alpha > 0; O(u² q)."""
    coordinates = _coordinates(spectrum, observations) / (spectrum.values + alpha)[:, None]
    coef = spectrum.coefficients(coordinates)
    intercept = _mean_target(spectrum, observations) - spectrum.kernel_mean @ coef
    return Coefficients(coef, intercept)


def fitted(spectrum: Spectrum, observations: Observations, alpha: float) -> Array:
    """f at every row (n, q) for one alpha, without the kernel matrix."""
    shrink = spectrum.values / (spectrum.values + alpha)
    smooth = spectrum.vectors @ (shrink[:, None] * _coordinates(spectrum, observations))
    f: Array = _mean_target(spectrum, observations) + smooth / spectrum.root_weight[:, None]
    return f[observations.rows.point]


def degrees_of_freedom(spectrum: Spectrum, alphas: Array) -> Array:
    """Trace of the smoother for every alpha (a,), the intercept counted."""
    values = spectrum.values[:, None]
    trace: Array = (values / (values + np.asarray(alphas))).sum(axis=0)
    return trace + spectrum.has_intercept


def gcv(spectrum: Spectrum, observations: Observations, alphas: Array) -> Array:
    """Generalized cross-validation sum w r² n / (n - df)² for every alpha (a, q), n = sum w."""
    z = _coordinates(spectrum, observations)
    keep = np.asarray(alphas) / (spectrum.values[:, None] + np.asarray(alphas))
    within = observations.Y - observations.point_target[observations.rows.point]
    scatter = (keep**2).T @ z**2 + observations.weight @ within**2
    n = observations.weight.sum()
    score: Array = scatter * n / (n - degrees_of_freedom(spectrum, alphas)[:, None]) ** 2
    return score


def leave_out(
    spectrum: Spectrum, observations: Observations, alphas: Array, fold: NDArray[np.intp] | None = None
) -> Array:
    """Outputs for each row of the model fitted without it (a, n, q), exact, for every alpha > 0.

    ``fold`` (n,) names the rows that leave together; None: each row alone. O(u² a q), and
    O(n u a) times the size of a fold with folds.
    """
    if fold is None:
        return _leave_one_out(spectrum, observations, np.asarray(alphas))
    members = fold_members(fold)
    outputs = np.empty((len(alphas), *observations.Y.shape))
    for path, alpha in zip(outputs, alphas):
        residual = _residual(spectrum, observations, float(alpha))
        for rows in members:
            path[rows] = observations.Y[rows] - _block_residual(spectrum, observations, alpha, rows, residual)
    return outputs


def _leave_one_out(spectrum: Spectrum, observations: Observations, alphas: Array) -> Array:
    """y - r / (1 - h unit/w) with 1 - h = alpha P_gg, h the smoother's diagonal at the row's point."""
    inverse = 1.0 / (spectrum.values + alphas[:, None])
    leverage_left = alphas[:, None] * _row_norms(spectrum.vectors, inverse)
    point = observations.rows.point
    kept = 1.0 - observations.unit / observations.point_weight[point]
    left = leverage_left[:, point]
    denominator = left + (1.0 - left) * kept
    z = _coordinates(spectrum, observations)
    outputs = np.empty((len(alphas), *observations.Y.shape))
    for target in range(z.shape[1]):
        dual = (inverse * z[:, target]) @ spectrum.vectors.T
        residual = alphas[:, None] * dual / spectrum.root_weight
        within = observations.Y[:, target] - observations.point_target[point, target]
        outputs[:, :, target] = observations.Y[:, target] - (residual[:, point] + within) / denominator
    return outputs


def _row_norms(U: Array, inverse: Array, step: int = 1024) -> Array:
    """P_gg = sum_j U_gj² inverse_aj (a, u), squaring a block of columns at a time."""
    P = np.zeros((len(inverse), len(U)))
    for j in range(0, U.shape[1], step):
        P += inverse[:, j : j + step] @ (U[:, j : j + step] ** 2).T
    return P


def _residual(spectrum: Spectrum, observations: Observations, alpha: float) -> Array:
    """y - f at every row (n, q), free of cancellation where alpha is small."""
    z = _coordinates(spectrum, observations) / (spectrum.values + alpha)[:, None]
    at_points = alpha * (spectrum.vectors @ z) / spectrum.root_weight[:, None]
    point = observations.rows.point
    r: Array = at_points[point] + observations.Y - observations.point_target[point]
    return r


def _block_residual(
    spectrum: Spectrum, observations: Observations, alpha: float, rows: NDArray[np.intp], residual: Array
) -> Array:
    """Residuals of a block of rows when all of them leave: (I - B W + alpha P W) e = r."""
    point = observations.rows.point[rows]
    U = spectrum.vectors[point] / spectrum.root_weight[point, None]
    weight = observations.weight[rows]
    P = (U / (spectrum.values + alpha)) @ U.T
    share = (point[:, None] == point) * (weight / observations.point_weight[point])
    A = np.eye(len(rows)) - share + alpha * P * weight
    return np.linalg.solve(A, residual[rows])


def _coordinates(spectrum: Spectrum, observations: Observations) -> Array:
    """U'S y (r, q)."""
    z: Array = spectrum.vectors.T @ (spectrum.root_weight[:, None] * observations.point_target)
    return z


def _mean_target(spectrum: Spectrum, observations: Observations) -> Array:
    """Weighted mean of the targets (q,), zero where there is no intercept."""
    if not spectrum.has_intercept:
        return np.zeros(observations.Y.shape[1])
    mean: Array = observations.weight @ observations.Y / observations.weight.sum()
    return mean
