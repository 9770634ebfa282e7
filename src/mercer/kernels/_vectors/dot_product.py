"""Kernels that are functions of x'z."""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer._types import Floats
from mercer._validation import real
from mercer.errors import KernelError
from mercer.kernels._base import Differentiable, Kernel
from mercer.kernels._matrices import Matrix, as_matrices, as_matrix, inner_products, integer_power, squared_norms
from mercer.kernels._parameters import finite, integer, nonnegative
from mercer.kernels._vectors.gamma import scale_gamma, unknown_word, unresolved
from mercer.rows._table import dense, is_sparse

# Inner products of rows whose squared mean exceeds this many variances lose digits.
FAR_FROM_ORIGIN = 100.0


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

    def centered_on(self, X: Matrix) -> Kernel:
        """With its origin at the mean of the rows, if that is ten standard deviations from the current origin."""
        if is_sparse(X) or type(self) is not Linear:
            return self
        X = self._moved(as_matrix(X))
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64).sum()
            # Rows that are all equal say nothing about others.
            near = variance == 0.0 or mean @ mean <= FAR_FROM_ORIGIN * variance
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
        return [clone(self).set_params(gamma=scale_gamma(X, weight, 2))]

    def _profile(self, G: Floats) -> Floats:
        return self._of_affine(self._affine(G))

    def _slope(self, G: Floats) -> Floats:
        W = self._affine_slope(self._affine(G))
        W *= nonnegative("gamma", self.gamma)
        return W

    def _affine(self, G: Floats) -> Floats:
        """gamma G + coef0, in place."""
        if isinstance(self.gamma, str):
            raise unresolved(self, self.gamma)
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
