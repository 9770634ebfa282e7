r"""Penalized least squares with m centers from moments, for every penalty, and rows left out of it.

The problem, over coefficients c (m) and a free intercept b:

    min  sum_i w_i (y_i - k_i'c - b)²  +  alpha c'Kc,      K = k(centers, centers)

has the normal equations (G + alpha K) c = C with the centered moments G and C (Mika 2002, Eq. 3.57 and
section 3.5.1). A pivoted Cholesky factor K = R'R drops centers that others stand for, c = R^-1 a turns the
penalty into a'a, and one eigendecomposition of R'^-1 G R^-1 gives the solution for every alpha, and with
one more pass the output of every row for the model without it: its leverage is
w (1/n + sum_j phi_j² / (lambda_j + alpha)), phi = B'(k - mean).

Precision. Where G is summed from products in float32 its rounding errors, enlarged by one over the eigenvalues
of K, make the matrix indefinite, and (lambda + alpha)^-1 blows up without a word. Products in float64 of
kernel values in float32 keep G a Gram matrix, of slightly other features: then it can not happen. Centers
that depend on others to half of the digits are dropped, since the errors of G grow by what is left of them.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.gram.moments import Moments
from mercer.linalg import eigen_psd
from mercer.linalg.rank import RankFactor, rank_factor

Array = NDArray[np.float64]

# Centers whose squared distance from the span of the others is below this share of their norm are dropped.
DEPENDENT = 1e-8


@dataclass(frozen=True)
class MomentSpectrum:
    """Basis B (m, r) with B'GB = diag(values) and B'KB = I, and the moments in that basis.

    ``kept`` (r,) are the centers that carry the function; ``negative`` is the most negative value that was set to
    zero, in units of the largest.
    """

    values: Array
    basis: Array
    projected: Array
    kernel_mean: Array
    target_mean: Array
    n: float
    kept: NDArray[np.intp]
    negative: float

    @property
    def trace(self) -> float:
        """Sum of the eigenvalues: the natural unit of alpha."""
        return float(self.values.sum())

    def solve(self, alpha: float) -> tuple[Array, Array]:
        """coef (m, q), zero for centers that were dropped, and intercept (q,)."""
        coef = self.basis @ (self.projected / (self.values + alpha)[:, None])
        return coef, self.target_mean - self.kernel_mean @ coef

    def left_out(self, K: Array, Y: Array, weight: Array, alphas: Array) -> Array:
        """Outputs (a, b, q) of b rows of the data for the model without them, from their kernel rows K (b, m)."""
        phi = (K - self.kernel_mean) @ self.basis
        inverse = 1.0 / (self.values + np.asarray(alphas)[:, None])
        leverage = weight * (1.0 / self.n + inverse @ (phi**2).T)
        fitted = self.target_mean + (phi * inverse[:, None, :]) @ self.projected
        outputs: Array = Y - (Y - fitted) / (1.0 - leverage)[..., None]
        return outputs


def decompose_moments(moments: Moments, K: NDArray[np.floating]) -> MomentSpectrum:
    """The spectrum for K (m, m) of the centers; O(m³) once for every alpha and target."""
    factor = rank_factor(np.asarray(K, dtype=np.float64), tolerance=DEPENDENT)
    G, C, _ = moments.restricted(factor.kept).centered()
    eigen = eigen_psd(_in_basis(factor, G))
    basis = np.zeros((len(moments.s), len(eigen.values)))
    basis[factor.kept] = scipy.linalg.solve_triangular(factor.R, eigen.vectors, check_finite=False)
    return MomentSpectrum(
        values=eigen.values,
        basis=basis,
        projected=basis[factor.kept].T @ C,
        kernel_mean=moments.s / moments.n,
        target_mean=moments.t / moments.n,
        n=moments.n,
        kept=factor.kept,
        negative=eigen.negative,
    )


def _in_basis(factor: RankFactor, G: Array) -> Array:
    """R'^-1 G R^-1, symmetric."""
    A = scipy.linalg.solve_triangular(factor.R, G, trans="T", check_finite=False)
    A = scipy.linalg.solve_triangular(factor.R, A.T, trans="T", check_finite=False)
    return np.asfortranarray(0.5 * (A + A.T))
