"""Kernels on real vectors, dense or CSR."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, kve
from sklearn.base import clone

from mercer.errors import KernelError
from mercer.gate import real
from mercer.kernels.base import Differentiable, Kernel
from mercer.kernels.pairs import (
    Exponents,
    FoldedCenters,
    Matrix,
    Slopes,
    absolute_exponents,
    absolute_slopes,
    as_matrices,
    as_matrix,
    inner_products,
    integer_power,
    mirror,
    scale_columns,
    squared_exponents,
    squared_norms,
    squared_slopes,
    with_near_pairs,
)
from mercer.kernels.parameters import finite, integer, nonnegative, positive
from mercer.kernels.spread import median_distance, variance
from mercer.rows.table import dense, is_sparse
from mercer.types import Floats

Gamma = float | str | ArrayLike

# gamma="loo" tries these multiples of 1 / median distance, smoothest first.
GRID = 2.0 ** np.linspace(-7.0, 5.0, 15)

# Inner products of rows whose squared mean exceeds this many variances lose digits.
FAR = 100.0

# ANOVA and AllSubsets process this many rows at a time, to stay in the cache.
CACHED_ROWS = 32


class DotProduct(Differentiable, Kernel):
    """A function of x'z; abstract."""

    @abstractmethod
    def _profile(self, G: Floats) -> Floats:
        """Kernel values from the inner products G; may overwrite G."""

    @abstractmethod
    def _slope(self, G: Floats) -> Floats:
        """Derivatives of kernel values with respect to the inner products G; may overwrite G."""

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        X, Z = as_matrices(X, Z)
        return self._profile(inner_products(X, Z))

    def gradient(self, X: Matrix, Z: Matrix, coef: Floats) -> Floats:
        X, Z = (dense(A) for A in as_matrices(X, Z))
        W = self._slope(inner_products(X, Z))
        return np.stack([W @ (c[:, None] * Z) for c in coef.T])

    def diag(self, X: Matrix) -> Floats:
        return self._profile(squared_norms(as_matrix(X)))


class Linear(DotProduct):
    """k(x, z) = (x - o)'(z - o): the inner product, for linear methods; the origin o is 0 unless given.

    Gives the linear method at the cost of n coefficients; useful if features outnumber rows (Mika 2002, section
    2.3.3), or as part of a sum. With a free intercept the origin only affects accuracy: estimators move it to the
    mean of the rows if that is far from zero.

    Parameters
    ----------
    origin : array of shape (d,), optional
        None: zero.

    Examples
    --------
    >>> Linear().block([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def __init__(self, origin: ArrayLike | None = None) -> None:
        self.origin = origin

    def around(self, X: Matrix) -> Kernel:
        """With its origin at the mean of the rows, if that is ten standard deviations from the current origin."""
        if is_sparse(X) or type(self) is not Linear:
            return self
        X = self._moved(as_matrix(X))
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64).sum()
            # Rows that are all equal say nothing about others.
            near = variance == 0.0 or mean @ mean <= FAR * variance
        if near:
            return self
        return Linear(mean if self.origin is None else mean + np.asarray(self.origin))

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        X, Z = as_matrices(X, Z)
        return super().block(self._moved(X), self._moved(Z))

    def gradient(self, X: Matrix, Z: Matrix, coef: Floats) -> Floats:
        X, Z = as_matrices(X, Z)
        return super().gradient(self._moved(X), self._moved(Z), coef)

    def diag(self, X: Matrix) -> Floats:
        return super().diag(self._moved(as_matrix(X)))

    def _moved(self, X: Matrix) -> Matrix:
        """X minus the origin."""
        if self.origin is None:
            return X
        origin = real("origin", self.origin).astype(X.dtype)
        if origin.shape != (X.shape[1],):
            raise KernelError(
                f"origin has shape {origin.shape}, but rows have {X.shape[1]} features; pass one number for each "
                "feature"
            )
        if not np.isfinite(origin).all():
            raise KernelError(f"origin={self.origin!r}; its numbers must be finite")
        return dense(X) - origin

    def _profile(self, G: Floats) -> Floats:
        return G

    def _slope(self, G: Floats) -> Floats:
        return np.ones_like(G)


class Affine(DotProduct):
    """A function of gamma x'z + coef0; abstract."""

    gamma: float | str
    coef0: float

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> list[Kernel]:
        """The kernel, or for gamma="scale" a copy with the number."""
        if not isinstance(self.gamma, str):
            return [self]
        if self.gamma != "scale":
            raise unknown_word(self, self.gamma, '"scale"')
        return [clone(self).set_params(gamma=_scale_gamma(X, weight, 2))]

    def _profile(self, G: Floats) -> Floats:
        return self._of_affine(self._affine(G))

    def _slope(self, G: Floats) -> Floats:
        W = self._affine_slope(self._affine(G))
        W *= nonnegative("gamma", self.gamma)
        return W

    def _affine(self, G: Floats) -> Floats:
        """gamma G + coef0, in place."""
        if isinstance(self.gamma, str):
            raise unsettled(self, self.gamma)
        G *= nonnegative("gamma", self.gamma)
        G += finite("coef0", self.coef0)
        return G

    @abstractmethod
    def _of_affine(self, G: Floats) -> Floats:
        """Kernel values from G = gamma x'z + coef0; may overwrite G."""

    @abstractmethod
    def _affine_slope(self, G: Floats) -> Floats:
        """Their derivatives with respect to G; may overwrite G."""


class Polynomial(Affine):
    """k(x, z) = (gamma x'z + coef0)^degree: products of features, up to ``degree`` of them.

    Mika (2002), Eq. (2.36). ``coef0=0`` compares all monomials of exactly this degree, ``coef0 > 0`` all up to it.

    Parameters
    ----------
    degree : int
        At least 1.
    gamma : float or "scale"
        "scale" is 1 / (d Var X), as in scikit-learn's ``SVC``.
    coef0 : float
        Positive semidefinite if nonnegative.

    Examples
    --------
    >>> Polynomial(degree=2).block([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    def __init__(self, degree: int = 3, gamma: float | str = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def positive_semidefinite(self) -> bool:
        return finite("coef0", self.coef0) >= 0

    def _of_affine(self, G: Floats) -> Floats:
        return integer_power(G, integer("degree", self.degree, least=1))

    def _affine_slope(self, G: Floats) -> Floats:
        degree = integer("degree", self.degree, least=1)
        W = np.ones_like(G) if degree == 1 else integer_power(G, degree - 1)
        W *= degree
        return W


class Sigmoid(Affine):
    """k(x, z) = tanh(gamma x'z + coef0), not positive semidefinite in general; Mika (2002), Table 2.2.

    Parameters
    ----------
    gamma : float or "scale"
        "scale" is 1 / (d Var X), as in scikit-learn's ``SVC``.
    coef0 : float
        The threshold; the thesis calls it theta.

    Examples
    --------
    >>> Sigmoid(gamma=0.5).block([[1.0, 2.0]], [[0.0, 1.0]]).round(4)
    array([[0.7616]])
    """

    def __init__(self, gamma: float | str = "scale", coef0: float = 0.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def positive_semidefinite(self) -> bool:
        return False

    def _of_affine(self, G: Floats) -> Floats:
        return np.tanh(G, out=G)

    def _affine_slope(self, G: Floats) -> Floats:
        G = np.tanh(G, out=G)
        return np.subtract(1.0, np.square(G, out=G), out=G)


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
        K = self._profile(self._distances(X, Z, _feature_gamma(self, self.gamma, X)))
        if X is Z:
            np.fill_diagonal(mirror(K), 1.0)
        return K

    def gradient(self, X: Matrix, Z: Matrix, coef: Floats) -> Floats:
        X, Z = (dense(A) for A in as_matrices(X, Z))
        gamma = _feature_gamma(self, self.gamma, X)
        return self._slopes(X, Z, gamma, self._slope(self._exponents(X, Z, gamma)), coef)

    def weighted(self, relevance: ArrayLike) -> "Weighted":
        """With one gamma for each feature, in the ratios of ``relevance`` (d,); their scale is to be chosen."""
        return Weighted(self, relevance)

    def relatives(self, X: Matrix, Z: Matrix) -> Callable[[Kernel], Floats]:
        """With the distances for gamma = 1, if gamma is one number."""
        X, Z = as_matrices(X, Z)
        if np.ndim(self.gamma) > 0:
            return super().relatives(X, Z)
        T = self._distances(X, Z, 1.0)
        return lambda kernel: kernel._profile(T * _feature_gamma(kernel, kernel.gamma, X))

    def at(self, Z: Matrix) -> Callable[..., Floats]:
        Z = as_matrix(Z)
        if self._exponents is not squared_exponents or is_sparse(Z):
            return super().at(Z)
        return partial(self._at, Z, FoldedCenters.of(Z, _feature_gamma(self, self.gamma, Z)))

    def _at(self, Z: Floats, folded: FoldedCenters, X: Matrix, room: Floats | None = None) -> Floats:
        if is_sparse(X):
            return self.block(X, Z)
        X, _ = as_matrices(X, Z)
        T = folded.exponents(X, room)
        return self._profile(with_near_pairs(T, X, Z, folded.gamma) if self._kink else T)

    def _distances(self, X: Matrix, Z: Matrix, gamma: float | Floats) -> Floats:
        """-gamma times distances (n, m)."""
        T = self._exponents(X, Z, gamma)
        return with_near_pairs(T, X, Z, gamma) if self._kink else T

    def diag(self, X: Matrix) -> Floats:
        X = as_matrix(X)
        _feature_gamma(self, self.gamma, X)
        return np.ones(X.shape[0], X.dtype)

    def _gammas(self, X: Matrix, weight: ArrayLike | None) -> Floats:
        """The numbers that the string stands for, ascending."""
        if self.gamma == "scale":
            return np.array([_scale_gamma(X, weight, self._length_power)])
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


def gammas_around(kernel: Kernel, median: Callable[[], float], allowed: str) -> Floats:
    """1 / the median distance for gamma="median", a grid of its multiples for "loo"; ``allowed`` are all words."""
    if kernel.gamma not in ("median", "loo"):
        raise unknown_word(kernel, kernel.gamma, allowed)
    return (GRID if kernel.gamma == "loo" else np.ones(1)) / median()


class Weighted(Kernel):
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

    @property
    def settled(self) -> bool:
        return False

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> list[Kernel]:
        """Those of the kernel for rows whose features are multiplied by lengths of this relevance."""
        relevance = np.asarray(self.relevance, dtype=np.float64)
        X = as_matrix(X)
        lengths = relevance ** (1.0 / self.kernel._length_power)
        inner = self.kernel.candidates(scale_columns(X, lengths.astype(X.dtype)), weight)
        return [clone(kernel).set_params(gamma=(kernel.gamma * relevance).tolist()) for kernel in inner]

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        raise unsettled(self.kernel, str(self.kernel.gamma))

    def diag(self, X: Matrix) -> Floats:
        raise unsettled(self.kernel, str(self.kernel.gamma))


class ANOVA(Kernel):
    """k(x, z) = sum over all sets of ``degree`` features of prod_j x_j z_j: products of different features.

    Summed over all degrees 0..d it is :class:`AllSubsets`. By recursion over features, O(n m d degree) for a
    block; CSR rows are made dense. Shawe-Taylor and Cristianini (2004), chapter 9.

    Parameters
    ----------
    degree : int
        From 0 (the constant 1) to d.

    Examples
    --------
    >>> ANOVA(degree=2).block([[1.0, 2.0, 3.0]], [[1.0, 1.0, 1.0]])
    array([[11.]])
    """

    def __init__(self, degree: int = 2) -> None:
        self.degree = degree

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        X, Z = (dense(A) for A in as_matrices(X, Z))
        degree = self._degree(X)
        K = np.empty((len(X), len(Z)), np.result_type(X, Z))
        for i in range(0, len(X), CACHED_ROWS):
            rows = X[i : i + CACHED_ROWS]
            K[i : i + CACHED_ROWS] = _elementary(rows.T[:, :, None], Z.T[:, None, :], degree)
        return K

    def diag(self, X: Matrix) -> Floats:
        X = dense(as_matrix(X))
        return _elementary(X.T, X.T, self._degree(X))

    def _degree(self, X: Floats) -> int:
        degree = integer("degree", self.degree, least=0)
        if degree > X.shape[1]:
            raise KernelError(f"degree={degree}, but rows have {X.shape[1]} features; use degree <= {X.shape[1]}")
        return degree


class AllSubsets(Kernel):
    """k(x, z) = prod_j (1 + x_j z_j): the products of features over all sets of them, the empty one included.

    The sum of ``ANOVA(degree)`` over all degrees; of rows of 0 and 1, 2 to the number of common ones. O(n m d) for
    a block; CSR rows are made dense. Shawe-Taylor and Cristianini (2004), chapter 9.

    Examples
    --------
    >>> AllSubsets().block([[1.0, 2.0]], [[3.0, 4.0]])
    array([[36.]])
    """

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        X, Z = (dense(A) for A in as_matrices(X, Z))
        K = np.ones((len(X), len(Z)), np.result_type(X, Z))
        for i in range(0, len(X), CACHED_ROWS):
            rows = slice(i, i + CACHED_ROWS)
            for x, z in zip(X[rows].T, Z.T):
                K[rows] *= 1.0 + np.outer(x, z)
        return K

    def diag(self, X: Matrix) -> Floats:
        X = dense(as_matrix(X))
        return np.asarray(np.prod(1.0 + np.square(X), axis=1))


def _elementary(X: Floats, Z: Floats, degree: int) -> Floats:
    """Elementary symmetric polynomial of the products X[j] * Z[j] over features j."""
    shape = np.broadcast_shapes(X.shape[1:], Z.shape[1:])
    e = [np.ones(shape, np.result_type(X, Z))] + [np.zeros(shape, np.result_type(X, Z)) for _ in range(degree)]
    for x, z in zip(X, Z):
        t = x * z
        for s in range(degree, 0, -1):
            e[s] += t * e[s - 1]
    return e[degree]


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


def _scale_gamma(X: Matrix, weight: ArrayLike | None, length_power: int) -> float:
    """1 / (d s^length_power) with the standard deviation s of all entries, or 1 if they are constant."""
    spread = variance(X, weight) ** (length_power / 2)
    return 1.0 / (as_matrix(X).shape[1] * spread) if spread > 0 else 1.0


def _feature_gamma(kernel: Kernel, gamma: Gamma, X: Matrix) -> float | Floats:
    """gamma as one number, or one for each column of X, in the precision of X."""
    if isinstance(gamma, str):
        raise unsettled(kernel, gamma)
    values = np.asarray(nonnegative("gamma", gamma)) if np.ndim(gamma) == 0 else real("gamma", gamma)
    if values.ndim > 0 and values.shape != (X.shape[1],):
        raise KernelError(
            f"gamma has shape {values.shape}, but rows have {X.shape[1]} features; pass one number, or one for "
            "each feature"
        )
    if not (np.isfinite(values) & (values >= 0)).all():
        raise KernelError(f"gamma={gamma!r}; its numbers must be finite and >= 0")
    values = _in_precision(values, X.dtype)
    return values if values.ndim else float(values)


def _in_precision(gamma: Floats, dtype: Any) -> Floats:
    """gamma in the type of the rows, if it neither overflows nor underflows there."""
    with np.errstate(over="ignore", under="ignore"):
        values = gamma.astype(dtype)
    if not np.isfinite(values).all() or ((values == 0) & (gamma > 0)).any():
        raise KernelError(
            f"gamma={gamma.tolist()} cannot be represented in {np.dtype(dtype).name}, the type of the rows; scale "
            "the features with a StandardScaler, or pass float64"
        )
    return values


def unsettled(kernel: Kernel, word: str) -> KernelError:
    """The error for a word where a number is needed."""
    return KernelError(
        f'gamma="{word}" of {type(kernel).__name__} is not a number yet; pass a number, or use one of '
        "kernel.candidates(X)"
    )


def unknown_word(kernel: Kernel, word: object, known: str) -> KernelError:
    """The error for a word that means nothing."""
    return KernelError(f'gamma="{word}" is not known to {type(kernel).__name__}; pass a number or {known}')
