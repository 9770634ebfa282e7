"""Kernels that are functions of the distance of two vectors."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, kve
from sklearn.base import clone

from mercer._types import Floats
from mercer.errors import KernelError
from mercer.kernels._base import Differentiable, Kernel
from mercer.kernels._length_scales import median_distance
from mercer.kernels._matrices import (
    Exponents,
    FoldedCenters,
    Matrix,
    Slopes,
    absolute_exponents,
    absolute_slopes,
    as_matrices,
    as_matrix,
    mirror,
    scale_columns,
    squared_exponents,
    squared_slopes,
    with_near_pairs,
)
from mercer.kernels._parameters import finite, positive
from mercer.kernels._vectors.gamma import Gamma, feature_gamma, gammas_around, scale_gamma, unresolved
from mercer.rows._table import dense, is_sparse


class Stationary(Differentiable, Kernel):
    """A function of gamma times a distance, 1 at distance 0; abstract.

    gamma is a number, one number per feature, or a string:

    * "median": 1 / the median distance between distinct rows,
    * "scale": 1 / (d Var X), as in scikit-learn's ``SVC``,
    * "loo": a grid of multiples of "median", from which leave-one-out chooses.
    """

    gamma: Gamma
    # The distance, its derivatives, and the power of a length that it scales with.
    _exponents: ClassVar[Exponents] = staticmethod(squared_exponents)
    _slopes: ClassVar[Slopes] = staticmethod(squared_slopes)
    _length_power: ClassVar[int] = 2

    @property
    def _kink(self) -> bool:
        """Whether the kernel is a function of the distance, not of its square, where that is zero."""
        return False

    @abstractmethod
    def _profile(self, T: Floats) -> Floats:
        """Kernel values from T = -gamma times distance; may overwrite T."""

    @abstractmethod
    def _slope(self, T: Floats) -> Floats:
        """Derivatives of kernel values with respect to T, zero where there is none; may overwrite T."""

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> list[Kernel]:
        """One kernel for "median" and "scale", one for every number of the grid for "loo"."""
        if not isinstance(self.gamma, str):
            return [self]
        return [clone(self).set_params(gamma=float(gamma)) for gamma in self._gammas(X, weight)]

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        X, Z = as_matrices(X, Z)
        K = self._profile(self._distances(X, Z, feature_gamma(self, self.gamma, X)))
        if X is Z:
            np.fill_diagonal(mirror(K), 1.0)
        return K

    def gradient(self, X: Matrix, Z: Matrix, coef: Floats) -> Floats:
        X, Z = (dense(A) for A in as_matrices(X, Z))
        gamma = feature_gamma(self, self.gamma, X)
        return self._slopes(X, Z, gamma, self._slope(self._exponents(X, Z, gamma)), coef)

    def weighted(self, relevance: ArrayLike) -> "Weighted":
        """With one gamma for each feature, in the ratios of ``relevance`` (d,); their scale is to be chosen."""
        return Weighted(self, relevance)

    def blocks_for_widths(self, X: Matrix, Z: Matrix) -> Callable[[Kernel], Floats]:
        """With the distances for a largest gamma of 1."""
        X, Z = as_matrices(X, Z)
        gamma = feature_gamma(self, self.gamma, X)
        most = float(np.max(gamma))
        T = self._distances(X, Z, 1.0 if most == 0.0 or np.ndim(gamma) == 0 else gamma / most)
        return lambda kernel: kernel._profile(T * float(np.max(feature_gamma(kernel, kernel.gamma, X))))

    def evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        Z = as_matrix(Z)
        if self._exponents is not squared_exponents or is_sparse(Z):
            return super().evaluator(Z)
        return partial(self._evaluate, Z, FoldedCenters.of(Z, feature_gamma(self, self.gamma, Z)))

    def _evaluate(self, Z: Floats, folded: FoldedCenters, X: Matrix, workspace: Floats | None = None) -> Floats:
        if is_sparse(X):
            return self.block(X, Z)
        X, _ = as_matrices(X, Z)
        T = folded.exponents(X, workspace)
        return self._profile(with_near_pairs(T, X, Z, folded.gamma) if self._kink else T)

    def _distances(self, X: Matrix, Z: Matrix, gamma: float | Floats) -> Floats:
        """-gamma times distances (n, m)."""
        T = self._exponents(X, Z, gamma)
        return with_near_pairs(T, X, Z, gamma) if self._kink else T

    def diag(self, X: Matrix) -> Floats:
        X = as_matrix(X)
        feature_gamma(self, self.gamma, X)
        return np.ones(X.shape[0], X.dtype)

    def _gammas(self, X: Matrix, weight: ArrayLike | None) -> Floats:
        """The numbers that the string stands for, ascending."""
        if self.gamma == "scale":
            return np.array([scale_gamma(X, weight, self._length_power)])
        return gammas_around(self, lambda: median_distance(X, weight, self._exponents), '"median", "scale", "loo"')


class Exponential(Stationary):
    """exp(-gamma times a distance), which the subclass defines."""

    def _profile(self, T: Floats) -> Floats:
        return np.exp(T, out=T)

    def _slope(self, T: Floats) -> Floats:
        return self._profile(T)


class RBF(Exponential):
    """k(x, z) = exp(-gamma |x - z|^2), the Gaussian or squared exponential kernel.

    With one gamma for each feature, exp(-sum_j gamma_j (x_j - z_j)^2). gamma = 1 / (2 sigma^2) = 1 / c with the c
    of Mika (2002), Eq. (2.35). O(n m d) for a block: one matrix product and one exponential.

    Parameters
    ----------
    gamma : float, array of shape (d,), "median", "scale" or "loo"
        Inverse squared length, or one for each feature; 0 switches a feature off. "median" is 1 / the median
        squared distance between distinct rows, "scale" is 1 / (d Var X) as in scikit-learn's ``SVC``, "loo" a grid
        around "median" from which leave-one-out chooses.

    Examples
    --------
    >>> RBF(gamma=0.5).block([[0.0], [2.0]], [[0.0]]).round(4)
    array([[1.    ],
           [0.1353]])
    >>> RBF(gamma="median").candidates([[0.0], [2.0]])
    [RBF(gamma=0.25)]
    """

    def __init__(self, gamma: Gamma = "loo") -> None:
        self.gamma = gamma


class Laplacian(Exponential):
    """k(x, z) = exp(-gamma |x - z|_1): with the sum of absolute differences, as in scikit-learn.

    With the Euclidean length in the exponent it would be ``Matern(nu=0.5)``.

    Parameters
    ----------
    gamma : float, array of shape (d,), "median", "scale" or "loo"
        Inverse length, or one for each feature. "median" is 1 / the median of |x - z|_1 over distinct rows,
        "scale" is 1 / (d sqrt(Var X)), "loo" a grid around "median".

    Examples
    --------
    >>> Laplacian(gamma=1.0).block([[0.0, 0.0]], [[1.0, -1.0]]).round(4)
    array([[0.1353]])
    """

    _exponents: ClassVar[Exponents] = staticmethod(absolute_exponents)
    _slopes: ClassVar[Slopes] = staticmethod(absolute_slopes)
    _length_power = 1

    def __init__(self, gamma: Gamma = "loo") -> None:
        self.gamma = gamma


class Matern(Stationary):
    """k(x, z) = 2^(1-nu) / Gamma(nu) r^nu K_nu(r) with r = 2 sqrt(nu gamma) |x - z|: nu sets the smoothness.

    nu = 1/2 is exp(-r), nu -> inf is ``RBF(gamma)``; functions in the kernel's space are about nu times
    differentiable. gamma = 1 / (2 l^2) with the ``length_scale`` l of scikit-learn.

    Parameters
    ----------
    nu : float
        Above 0 and at most 100, or inf. 0.5, 1.5, 2.5 and inf have closed forms, others need a Bessel function.
    gamma : float, array of shape (d,), "median", "scale" or "loo"
        As for :class:`RBF`.

    Examples
    --------
    >>> Matern(nu=0.5, gamma=0.5).block([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    """

    def __init__(self, nu: float = 1.5, gamma: Gamma = "loo") -> None:
        self.nu = nu
        self.gamma = gamma

    @property
    def _kink(self) -> bool:
        return self._order() < 1.0

    def _profile(self, T: Floats) -> Floats:
        nu = self._order()
        if nu == np.inf:
            return np.exp(T, out=T)
        r: Floats = np.sqrt(T * (-4.0 * nu))
        if nu == 0.5:
            return np.exp(-r)
        if nu == 1.5:
            return (1.0 + r) * np.exp(-r)
        if nu == 2.5:
            return (1.0 + r + r * r / 3.0) * np.exp(-r)
        return _bessel(r, nu)

    def _slope(self, T: Floats) -> Floats:
        # r^nu K_nu(r) has the derivative -r^nu K_(nu-1)(r), and r dr = -2 nu dT.
        nu = self._order()
        if nu > 1.0:
            inner = np.inf if nu == np.inf else nu - 1.0
            W = Matern(inner)._profile(T if nu == np.inf else T * (nu / inner))
            W *= 1.0 if nu == np.inf else nu / inner
            return W
        r: Floats = np.sqrt(T * (-4.0 * nu))
        apart = r > 0
        safe = np.where(apart, r, 1.0)
        W = np.exp(-safe) / safe if nu == 0.5 else _bessel_slope(safe, nu)
        return np.where(apart, W, 0.0).astype(T.dtype)

    def _order(self) -> float:
        nu = np.inf if np.ndim(self.nu) == 0 and self.nu == np.inf else finite("nu", self.nu)
        if not (0 < nu <= 100 or nu == np.inf):
            raise KernelError(f"nu={nu}; use 0 < nu <= 100, or nu=inf, which is the RBF kernel")
        return nu


class RationalQuadratic(Stationary):
    """k(x, z) = (1 + gamma |x - z|^2 / power)^(-power), a mixture of Gaussian kernels of all widths.

    power -> inf is ``RBF(gamma)``. gamma = 1 / (2 l^2) and power = alpha of scikit-learn.

    Parameters
    ----------
    power : float
        Positive.
    gamma : float, array of shape (d,), "median", "scale" or "loo"
        As for :class:`RBF`.

    Examples
    --------
    >>> RationalQuadratic(power=2.0, gamma=2.0).block([[0.0]], [[1.0]])
    array([[0.25]])
    """

    def __init__(self, power: float = 1.0, gamma: Gamma = "loo") -> None:
        self.power = power
        self.gamma = gamma

    def _profile(self, T: Floats) -> Floats:
        power = positive("power", self.power)
        return _power_of(T, power, power)

    def _slope(self, T: Floats) -> Floats:
        power = positive("power", self.power)
        return _power_of(T, power, power + 1.0)


class InverseMultiquadric(Stationary):
    """k(x, z) = 1 / sqrt(1 + gamma |x - z|^2): decays slowly, so that distant rows still count.

    (|x - z|^2 + c^2)^(-1/2) of Mika (2002), Table 2.2, is sqrt(gamma) times this, with gamma = 1 / c^2.

    Parameters
    ----------
    gamma : float, array of shape (d,), "median", "scale" or "loo"
        As for :class:`RBF`.

    Examples
    --------
    >>> InverseMultiquadric(gamma=3.0).block([[0.0]], [[1.0]])
    array([[0.5]])
    """

    def __init__(self, gamma: Gamma = "loo") -> None:
        self.gamma = gamma

    def _profile(self, T: Floats) -> Floats:
        np.sqrt(np.subtract(1.0, T, out=T), out=T)
        return np.divide(1.0, T, out=T)

    def _slope(self, T: Floats) -> Floats:
        W = self._profile(T)
        W *= 0.5 * W * W
        return W


class OfUnknownScale(Kernel):
    """A stationary kernel, the scale of whose gammas is to be chosen; abstract."""

    kernel: Stationary

    @property
    def resolved(self) -> bool:
        return False

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        raise unresolved(self.kernel, str(self.kernel.gamma))

    def diag(self, X: Matrix) -> Floats:
        raise unresolved(self.kernel, str(self.kernel.gamma))


class Weighted(OfUnknownScale):
    """A stationary kernel with one gamma for each feature, in given ratios, whose scale is not known.

    Its candidates are kernels of the given class with numbers. Features of relevance 0 are switched off.

    Parameters
    ----------
    kernel : Stationary
        With gamma="median", "scale" or "loo".
    relevance : array of shape (d,)
        Nonnegative, not all zero.

    Examples
    --------
    >>> Weighted(RBF("median"), [1.0, 0.0]).candidates([[0.0, 0.0], [2.0, 5.0]])
    [RBF(gamma=[0.25, 0.0])]
    """

    def __init__(self, kernel: Stationary, relevance: ArrayLike) -> None:
        self.kernel = kernel
        self.relevance = relevance

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> list[Kernel]:
        """Those of the kernel for rows whose features are multiplied by lengths of this relevance."""
        relevance = np.asarray(self.relevance, dtype=np.float64)
        X = as_matrix(X)
        lengths = relevance ** (1.0 / self.kernel._length_power)
        inner = self.kernel.candidates(scale_columns(X, lengths.astype(X.dtype)), weight)
        return [clone(kernel).set_params(gamma=(kernel.gamma * relevance).tolist()) for kernel in inner]


def _power_of(T: Floats, unit: float, exponent: float) -> Floats:
    """(1 - T / unit)^(-exponent), in place."""
    T *= -1.0 / unit
    np.log1p(T, out=T)
    T *= -exponent
    return np.exp(T, out=T)


def _bessel_slope(r: Floats, nu: float) -> Floats:
    """2 nu 2^(1-nu) / Gamma(nu) r^(nu-1) K_(1-nu)(r), for nu <= 1 and r > 0."""
    r64 = r.astype(np.float64)
    with np.errstate(divide="ignore"):
        logarithm = (2 - nu) * np.log(2.0) + np.log(nu) - gammaln(nu) + (nu - 1) * np.log(r64)
        return np.asarray(np.exp(logarithm + np.log(kve(1.0 - nu, r64)) - r64))


def _bessel(r: Floats, nu: float) -> Floats:
    """2^(1-nu) / Gamma(nu) r^nu K_nu(r), in logarithms; its expansion at 0 where K_nu overflows."""
    r64 = r.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = (1 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(r64) + np.log(kve(nu, r64)) - r64
    near = 1.0 - r64 * r64 / (4.0 * max(nu - 1.0, 1.0))
    return np.where(np.isfinite(kve(nu, r64)), np.exp(logarithm), near).astype(r.dtype)
