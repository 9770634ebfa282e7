r"""How the fitted value at a new x depends on each observed value, and its variance.

With A = K + alpha W^-1 the fit is f(x) = sum_g l_g(x) y_g, where

    l(x) = A^-1 k + A^-1 1 (1 - 1'A^-1 k) / (1'A^-1 1),     k = k(X, x).

Under a Gaussian process prior of variance sigma²/alpha times the kernel, a flat prior on the
intercept and noise sigma²/w, the posterior variance of f(x) is

    sigma²/alpha (k(x, x) - k'A^-1 k + (1 - 1'A^-1 k)² / (1'A^-1 1)).
"""

from dataclasses import dataclass

import numpy as np

from mercer._gram.moments import Moments
from mercer._gram.precision import DEPENDENT_CENTERS
from mercer._linalg import CholeskyFactor, factor_spd
from mercer._linalg.rank import RankFactor, in_coordinates, rank_factor, whiten
from mercer._linalg.tolerance import rounding_unit
from mercer._solvers.moments.orbits import Orbit
from mercer._solvers.spectrum import Penalty
from mercer._types import Array, Floats, Indices

# The least 1 - leverage that moments of all rows can tell from zero.
LEAST_ONE_MINUS_LEVERAGE = 1e-12


@dataclass(frozen=True)
class HeldOut:
    """Rows that are held out: the point of each (n,), the share (n,) of the point's weight that is, and the fold
    (n,) of rows that are held out together, or None; the weight (u,) of each point.
    """

    point: Indices
    share: Array
    fold: Indices | None
    point_weight: Array


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

    def inverse_columns(self, points: Indices) -> Array:
        """Columns (u, r) of A^-1, for :meth:`weights_of`; O(r u²)."""
        unit = np.zeros((len(self.factor.lower), len(points)))
        unit[points, np.arange(len(points))] = 1.0
        return self.factor.solve(unit)

    def weights_of(self, Kx: Array, columns: Array, points: Indices) -> Array:
        """l_p(x) (n,) for kernel rows Kx (n, u), a point p for each, with its column (u, n) of A^-1."""
        Kx = self._rows(Kx)
        weights = np.einsum("iu,ui->i", Kx, columns)
        if self.ones is not None:
            weights = weights + self._lack(Kx, self.ones) * self.ones[points]
        return np.asarray(weights)

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

    def variance_without(self, held: "HeldOut") -> Array:
        """Posterior variance (n,) of f at the point of each row for the model without the row, or its fold.

        With C = W^-1 - W^-1 alpha P W^-1, P = A^-1 - A^-1 1 1'A^-1 / (1'A^-1 1), the posterior covariance of the
        points, and a share S of their weight that is held out, it is C ((1 - S) + S alpha P W^-1)^-1: of single
        rows a quotient of numbers, of folds a system of their size. O(u³ / 3).
        """
        half = self.factor.inverse()
        if held.fold is not None:
            return self._variance_without_folds(half, held, held.fold)
        inverse = np.einsum("ij,ij->j", half, half)
        if self.ones is not None:
            # Of a point that alone determines the intercept the difference is zero, up to rounding.
            inverse = np.maximum(inverse - self.ones**2 / self.ones.sum(), rounding_unit(np.float64) * inverse)
        one_minus_leverage = (self.alpha * inverse / held.point_weight)[held.point]
        kept = one_minus_leverage + (1.0 - one_minus_leverage) * (1.0 - held.share)
        return np.asarray(np.maximum(1.0 - one_minus_leverage, 0.0) / held.point_weight[held.point] / kept)

    def _variance_without_folds(self, half: Array, held: "HeldOut", fold: Indices) -> Array:
        variance = np.empty(len(fold))
        for own in np.split(np.argsort(fold, kind="stable"), np.cumsum(np.bincount(fold))[:-1]):
            if len(own) == 0:
                continue
            points, entry = np.unique(held.point[own], return_inverse=True)
            left = self.alpha * (half[:, points].T @ half[:, points])
            if self.ones is not None:
                left -= self.alpha * np.outer(self.ones[points], self.ones[points]) / self.ones.sum()
            w, share = held.point_weight[points], np.bincount(entry, held.share[own])
            covariance = np.diag(1.0 / w) - left / np.outer(w, w)
            kept = np.diag(1.0 - share) + share[:, None] * left / w
            without = np.linalg.solve(kept.T, covariance).diagonal()
            variance[own] = np.maximum(without, 0.0)[entry]
        return variance

    def _rows(self, Kx: Array) -> Array:
        return Kx if self.inner is None else Kx @ self.inner.T

    def _lack(self, Kx: Array, ones: Array) -> Array:
        """One minus the sum of weights, in units of A^-1 1."""
        return np.asarray((1.0 - Kx @ ones) / ones.sum())


def make_smoother(
    K: Array, weight: Array, alpha: float, *, penalty: Penalty = "rkhs", intercept: bool
) -> Smoother:
    """The smoother of K (u, u); one Cholesky factorization. K must be positive semidefinite for c'Kc."""
    A = K if penalty == "rkhs" else K @ K.T
    factor = factor_spd(A + np.diag(alpha / weight))
    ones = factor.solve(np.ones(len(K))) if intercept else None
    return Smoother(factor, alpha, ones, None if penalty == "rkhs" else K)


@dataclass(frozen=True)
class CenterVariance:
    """Posterior variance of f with m centers, in units of sigma².

    For kernel rows k (m,) minus their mean, k_c'(G + alpha K)^-1 k_c + 1/n, plus, for the penalty c'Kc, the part
    of the prior that the centers cannot express, (k(x, x) - k'K^-1 k) / alpha: the deterministic training
    conditional of Quiñonero-Candela and Rasmussen (2005), section 5. For c'c there is no such part.
    """

    penalized: CholeskyFactor
    among: RankFactor | None
    kernel_mean: Array
    constant: float
    alpha: float

    def __call__(self, Kx: Array, own: Array, unit: Array | None = None) -> Array:
        """(n,) for kernel rows Kx (n, m) and k(x, x) (n,); without the weight ``unit`` (n,) of each; O(n m²)."""
        within = (self.penalized.half_solve(self._coordinates(Kx - self.kernel_mean)) ** 2).sum(axis=0)
        variance: Array = within + self.constant
        if unit is not None:
            variance /= np.maximum(1.0 - unit * variance, LEAST_ONE_MINUS_LEVERAGE)
        if self.among is not None:
            known = (self._coordinates(Kx) ** 2).sum(axis=0)
            variance += np.maximum(own - known, 0.0) / self.alpha
        return variance

    def together(self, Kx: Array, own: Array, unit: Array, orbit: Orbit) -> Array:
        """(f,) for the rows of orbits with kernel rows Kx (f size, m), without the weights ``unit`` (f size,)."""
        half = self.penalized.half_solve
        phi = orbit.features(half(self._coordinates(Kx)).T, half(self._coordinates(self.kernel_mean[None]))[:, 0])
        V = phi @ phi.transpose(0, 2, 1) + self.constant * (orbit.counts @ orbit.counts.T)
        variance: Array = V[:, 0, 0] + np.einsum("fs,fs->f", orbit.pull(V, unit.reshape(V.shape[:2])), V[:, :, 0])
        if self.among is not None:
            known = (self._coordinates(Kx[:: orbit.size]) ** 2).sum(axis=0)
            variance += np.maximum(own - known, 0.0) / self.alpha
        return variance

    def _coordinates(self, Kx: Array) -> Array:
        """Columns (r, n) in which the penalty is the identity."""
        return Kx.T if self.among is None else whiten(self.among.R, Kx[:, self.among.kept].T)


def center_variance(moments: Moments, K: Floats | None, alpha: float, *, intercept: bool) -> CenterVariance:
    """The variance of the fit with the penalty c'Kc, K (m, m) of the centers, or c'c for None; O(m³)."""
    where, used = moments.coordinates, moments if intercept else moments.without_means()
    if where is not None:
        among: RankFactor | None = RankFactor(where.R, np.arange(len(moments.s)))
        A, mean = used.centered()[0], where.kernel_sum(used.n, used.s) / used.n
    elif K is not None:
        among = rank_factor(np.asarray(K, dtype=np.float64), tolerance=DEPENDENT_CENTERS)
        A, mean = in_coordinates(among.R, used.restricted(among.kept).centered()[0]), used.s / used.n
    else:
        among, A, mean = None, used.centered()[0], used.s / used.n
    return CenterVariance(
        penalized=factor_spd(A + alpha * np.eye(len(A))),
        among=among,
        kernel_mean=mean,
        constant=1.0 / used.n if intercept else 0.0,
        alpha=alpha,
    )
