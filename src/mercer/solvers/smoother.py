r"""How the fitted value at a new x depends on each observed value, and how sure it is.

With A = K + alpha W^-1 the fit is f(x) = sum_g l_g(x) y_g, where

    l(x) = A^-1 k + A^-1 1 (1 - 1'A^-1 k) / (1'A^-1 1),     k = k(X, x).

Under a Gaussian process prior of variance sigma²/alpha times the kernel, a flat prior on the
intercept and noise sigma²/w, the posterior variance of f(x) is

    sigma²/alpha (k(x, x) - k'A^-1 k + (1 - 1'A^-1 k)² / (1'A^-1 1)).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.linalg import CholeskyFactor, eigen_psd, factor_spd

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Smoother:
    """The Cholesky factor of K + alpha / w (u, u), and A^-1 1 (u,), which is None without an intercept."""

    factor: CholeskyFactor
    alpha: float
    ones: Array | None

    def weights(self, Kx: Array) -> Array:
        """l(x) (n, u) for kernel rows Kx (n, u); O(n u²)."""
        L = self.factor.solve(Kx.T).T
        if self.ones is not None:
            L = L + np.outer(self._lack(Kx), self.ones)
        return L

    def variance(self, Kx: Array, own: Array) -> Array:
        """Posterior variance of f (n,) in units of sigma², for kernel rows Kx (n, u) and k(x, x) (n,)."""
        explained = (self.factor.half_solve(Kx.T) ** 2).sum(axis=0)
        variance = np.maximum(own - explained, 0.0)
        if self.ones is not None:
            variance = variance + self._lack(Kx) ** 2 * self.ones.sum()
        return np.asarray(variance / self.alpha)

    def _lack(self, Kx: Array) -> Array:
        assert self.ones is not None
        lack: Array = (1.0 - Kx @ self.ones) / self.ones.sum()
        return lack


def make_smoother(K: Array, weight: Array, alpha: float, *, intercept: bool) -> Smoother:
    """The smoother of K (u, u); one Cholesky factorization. Of an indefinite K the positive part is taken."""
    shift = np.diag(alpha / weight)
    try:
        factor = factor_spd(K + shift)
    except np.linalg.LinAlgError:
        eigen = eigen_psd(np.array(K, order="F"))
        factor = factor_spd((eigen.vectors * eigen.values) @ eigen.vectors.T + shift)
    return Smoother(factor, alpha, factor.solve(np.ones(len(K))) if intercept else None)
