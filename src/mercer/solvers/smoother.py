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

from mercer.linalg import CholeskyFactor, factor_spd
from mercer.solvers.ridge import MomentSpectrum
from mercer.solvers.spectrum import Penalty

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Smoother:
    """The Cholesky factor of A (u, u), and A^-1 1 (u,), which is None without an intercept.

    For the penalty c'c the kernel is k(x)'k(z), the inner product of kernel rows: ``inner`` is then K.
    """

    factor: CholeskyFactor
    alpha: float
    ones: Array | None
    inner: Array | None

    def weights(self, Kx: Array) -> Array:
        """l(x) (n, u) for kernel rows Kx (n, u); O(n u²)."""
        Kx = self._rows(Kx)
        L = self.factor.solve(Kx.T).T
        if self.ones is not None:
            L = L + np.outer(self._lack(Kx, self.ones), self.ones)
        return L

    def variance(self, Kx: Array, own: Array) -> Array:
        """Posterior variance of f (n,) in units of sigma², for kernel rows Kx (n, u) and k(x, x) (n,)."""
        if self.inner is not None:
            own = (Kx**2).sum(axis=1)
        Kx = self._rows(Kx)
        explained = (self.factor.half_solve(Kx.T) ** 2).sum(axis=0)
        variance = np.maximum(own - explained, 0.0)
        if self.ones is not None:
            variance = variance + self._lack(Kx, self.ones) ** 2 * self.ones.sum()
        return np.asarray(variance / self.alpha)

    def _rows(self, Kx: Array) -> Array:
        rows: Array = Kx if self.inner is None else Kx @ self.inner.T
        return rows

    def _lack(self, Kx: Array, ones: Array) -> Array:
        """What is missing from a sum of weights of one, in units of A^-1 1."""
        lack: Array = (1.0 - Kx @ ones) / ones.sum()
        return lack


def make_smoother(
    K: Array, weight: Array, alpha: float, *, penalty: Penalty = "rkhs", intercept: bool
) -> Smoother:
    """The smoother of K (u, u); one Cholesky factorization. K must be positive semidefinite for c'Kc."""
    A = K if penalty == "rkhs" else K @ K.T
    factor = factor_spd(A + np.diag(alpha / weight))
    ones = factor.solve(np.ones(len(K))) if intercept else None
    return Smoother(factor, alpha, ones, None if penalty == "rkhs" else K)


def posterior_variance(spectrum: MomentSpectrum, Kx: Array, own: Array | None, alpha: float) -> Array:
    """Posterior variance of f (n,) with m centers, in units of sigma², for kernel rows Kx (n, m); O(n m r).

    phi_c'(Lambda + alpha)^-1 phi_c + 1/n, and with k(x, x) (n,) the part of the prior that the centers can not
    express, (k(x, x) - |phi|²) / alpha: the deterministic training conditional of Quiñonero-Candela and Rasmussen
    (2005), section 5. For the penalty c'c nothing is beyond the centers, and ``own`` is None.
    """
    phi = Kx @ spectrum.basis
    beyond = 0.0 if own is None else np.maximum(own - (phi**2).sum(axis=1), 0.0) / alpha
    centered = phi - spectrum.kernel_mean @ spectrum.basis
    within = (centered**2) @ (1.0 / (spectrum.values + alpha))
    variance: Array = within + beyond + (1.0 / spectrum.n if spectrum.intercept else 0.0)
    return variance
