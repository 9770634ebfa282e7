r"""Penalized least squares with m centers from moments, for every penalty, and rows left out of it.

The problem, over coefficients c (m) and a free intercept b:

    min  sum_i w_i (y_i - k_i'c - b)²  +  alpha c'Kc,      K = k(centers, centers)

has the normal equations (G + alpha K) c = C with the centered moments G and C (Mika 2002, Eq. 3.57 and
section 3.5.1). A pivoted Cholesky factor K = R'R drops centers that others stand for, c = R^-1 a turns the
penalty into a'a, and one eigendecomposition of R'^-1 G R^-1 gives the solution for every alpha, and with
one more pass the output of every row for the model without it: its leverage is
w (1/n + sum_j phi_j² / (lambda_j + alpha)), phi = B'(k - mean).

Precision. Where G is summed from products in float32 its rounding errors, enlarged by one over the eigenvalues
of K, make the matrix indefinite, and (lambda + alpha)^-1 blows up without a word; ``mercer.gram.precision`` looks
before the pass whether that is so. Products in float64 of kernel values in float32 keep G a Gram matrix, of
slightly other features: then it can not happen. MNIST (gamma 0.02, inputs / 255, centered), test
errors in % for alpha = 1e-8, 1e-4, 1e-2, 0.1, 1, 10, and CPU seconds of the pass:

    m      values   products                                             seconds
    2000   float64  float64    2.77   2.77   2.78   2.83   3.18   4.53      8.8
    2000   float32  float64    2.77   2.77   2.78   2.83   3.18   4.53      7.4    the choice: eta = 2.4
    2000   float32  float32    2.78   2.78   2.78   2.82   3.19   4.53      4.5
    6000   float32  float64    1.92   1.92   1.91   2.04   2.42   3.91       54    the choice: eta = 19
    6000   float32  float32   15.78  32.98   5.89   3.80   2.42   3.91       31    G indefinite; by LDL'

Centers that depend on others to half of the digits are dropped, since the errors of G grow by what is left of
them, and so are directions b whose eigenvalue b'Gb is below its own rounding error: there B'C is rounding, too,
and would be divided by alpha. Three inputs, 300 centers, float64 and alpha = 1e-12 of the trace: the error of
the fit is 657 with these directions and 0.04 without.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.gram.moments import Moments
from mercer.gram.precision import DEPENDENT
from mercer.linalg import eigen_psd
from mercer.linalg.rank import RankFactor, rank_factor

Array = NDArray[np.float64]

# Eigenvalues of so few rounding errors say nothing: with 1 to 10 no fit blows up, with 100 some lose accuracy.
ROUNDING = 4.0 * np.finfo(np.float64).eps
# Rows leave in float32 while at most this share of a coordinate is rounding: outputs are 0.1 % off, the worst 1 %.
MOST_NOISE = 0.1


@dataclass(frozen=True)
class MomentSpectrum:
    """Basis B (m, r) with B'GB = diag(values) and B'KB = I, and the moments in that basis.

    ``kept`` are the centers that carry the function; ``negative`` is the most negative eigenvalue beyond
    its rounding error, in units of the largest: 0 is the proof that G was a Gram matrix. ``kernel_square`` (m,)
    are the means of k(., z_j)². Without an intercept the other means are zero.
    """

    values: Array
    basis: Array
    projected: Array
    kernel_mean: Array
    kernel_square: Array
    target_mean: Array
    n: float
    kept: NDArray[np.intp]
    negative: float
    intercept: bool

    @property
    def rank(self) -> int:
        """Directions r in which the moments say more than rounding."""
        return len(self.values)

    @property
    def trace(self) -> float:
        """Sum of the eigenvalues: the natural unit of alpha."""
        return float(self.values.sum())

    def solve(self, alpha: float) -> tuple[Array, Array]:
        """coef (m, q), zero for centers that were dropped, and intercept (q,)."""
        coef = self.basis @ (self.projected / (self.values + alpha)[:, None])
        return coef, self.target_mean - self.kernel_mean @ coef

    def degrees_of_freedom(self, alphas: Array) -> Array:
        """Traces (a,) of the smoothers, with one for the intercept."""
        shares = self.values / (self.values + np.asarray(alphas)[:, None])
        traces: Array = shares.sum(axis=1) + float(self.intercept)
        return traces

    def left_out(self, K: NDArray[np.floating], Y: Array, unit: Array, alphas: Array) -> NDArray[np.floating]:
        """Outputs (a, b, q) of b rows of the data for the model without ``unit`` (b,) of their weight.

        K (b, m) are the kernel values of the rows.
        """
        return self.leaving(alphas, K.dtype)(K, Y, unit)

    def noise(self, alphas: Array) -> float:
        """Share of phi'a / sqrt(lambda + alpha) that is rounding where K B is computed in float32; the worst of r.

        An entry of K B is off by about eps |(k_l b_l)_l|, while the n rows have the mean square lambda / n.
        """
        variance = np.finfo(np.float32).eps ** 2 * (self.kernel_square @ self.basis**2)
        return float(np.sqrt((self.n * variance / (self.values + np.min(alphas))).max(initial=0.0)))

    def leaving(self, alphas: Array, dtype: Any = np.float64) -> "Leaving":
        """What rows need in order to leave, prepared for many blocks of them."""
        inverse = 1.0 / (self.values[:, None] + np.asarray(alphas, dtype=np.float64))
        slopes = inverse[:, :, None] * self.projected[:, None, :]
        return Leaving(
            basis=self.basis.astype(dtype),
            shift=(self.kernel_mean @ self.basis).astype(dtype),
            inverse=inverse.astype(dtype),
            slopes=slopes.reshape(len(slopes), inverse.shape[1] * len(self.target_mean)).astype(dtype),
            target_mean=self.target_mean.astype(dtype),
            constant=1.0 / self.n if self.intercept else 0.0,
        )


@dataclass(frozen=True)
class Leaving:
    """The map from kernel rows (b, m) to the outputs of the models without these rows, for a alphas.

    With phi = B'k - shift the fitted outputs are phi'slopes and the leverages of a unit of weight
    constant + phi²'inverse: three products for all alphas and targets, in the precision of the basis.
    """

    basis: NDArray[np.floating]
    shift: NDArray[np.floating]
    inverse: NDArray[np.floating]
    slopes: NDArray[np.floating]
    target_mean: NDArray[np.floating]
    constant: float

    def __call__(self, K: NDArray[np.floating], Y: Array, unit: Array) -> NDArray[np.floating]:
        """Outputs (a, b, q) at targets Y (b, q) if ``unit`` (b,) of each row's weight leaves; 0: fitted ones.

        f_(-i)(x_i) = y_i - (y_i - f(x_i)) / (1 - u_i h_i), from the rank-one downdate of the normal
        equations by u_i, whatever weight of the row stays. O(b m r) and one (b, r) matrix.
        """
        dtype = self.basis.dtype
        phi = np.asarray(K, dtype=dtype) @ self.basis
        phi -= self.shift
        residual = (phi @ self.slopes).reshape(len(phi), self.inverse.shape[1], Y.shape[1])
        residual += self.target_mean
        targets = Y.astype(dtype)[:, None, :]
        np.subtract(targets, residual, out=residual)
        phi *= phi
        stays = phi @ self.inverse
        stays += self.constant
        stays *= -unit[:, None].astype(dtype)
        stays += 1.0
        # A row that alone determines a direction: its leverage is 1 but for rounding.
        np.maximum(stays, np.finfo(dtype).eps, out=stays)
        residual /= stays[:, :, None]
        return np.ascontiguousarray(np.subtract(targets, residual, out=residual).transpose(1, 0, 2))


def decompose_moments(
    moments: Moments, K: NDArray[np.floating] | RankFactor | None, *, intercept: bool = True
) -> MomentSpectrum:
    """The spectrum for the penalty c'Kc, K (m, m) of the centers or its factor, or c'c where K is None.

    O(m³) once for every alpha and target. Without an intercept nothing is centered.
    """
    factor = _penalty_factor(K, len(moments.s))
    used = moments if intercept else moments.without_means()
    G, C, _ = used.restricted(factor.kept).centered()
    eigen = eigen_psd(_in_basis(factor, G))
    basis = scipy.linalg.solve_triangular(factor.R, eigen.vectors, check_finite=False)
    # The error of b'Gb, which centering has not made smaller.
    error = ROUNDING * (moments.G.diagonal()[factor.kept] @ basis**2)
    certain = eigen.values > error
    negative = 0.0 if _nonnegative(basis, G, error) else eigen.negative
    basis = basis[:, certain]
    return MomentSpectrum(
        values=eigen.values[certain],
        basis=_spread(basis, factor.kept, len(moments.s)),
        projected=basis.T @ C,
        kernel_mean=used.s / used.n,
        kernel_square=moments.G.diagonal() / moments.n,
        target_mean=used.t / used.n,
        n=moments.n,
        kept=factor.kept,
        negative=negative,
        intercept=intercept,
    )


def _nonnegative(basis: Array, G: Array, error: Array) -> bool:
    """Whether the first direction b, of the least eigenvalue, has a b'Gb that may be zero."""
    b = basis[:, :1]
    return bool((b.T @ G @ b >= -10.0 * error[:1]).all())


def _spread(basis: Array, kept: NDArray[np.intp], m: int) -> Array:
    """Rows of zeros for the centers that are not kept."""
    full = np.zeros((m, basis.shape[1]))
    full[kept] = basis
    return full


def _penalty_factor(K: NDArray[np.floating] | RankFactor | None, m: int) -> RankFactor:
    """K = R'R of the centers that are needed; the identity for None."""
    if K is None:
        return RankFactor(np.eye(m), np.arange(m))
    if isinstance(K, RankFactor):
        return K
    return rank_factor(np.asarray(K, dtype=np.float64), tolerance=DEPENDENT)


def _in_basis(factor: RankFactor, G: Array) -> Array:
    """R'^-1 G R^-1, symmetric."""
    A = scipy.linalg.solve_triangular(factor.R, G, trans="T", check_finite=False)
    A = scipy.linalg.solve_triangular(factor.R, A.T, trans="T", check_finite=False)
    return np.asfortranarray(0.5 * (A + A.T))
