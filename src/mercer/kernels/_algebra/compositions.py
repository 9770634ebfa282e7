"""Kernels made from others: constants, exponentials, Gaussians of distances in feature space, maps of the rows."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer._types import Array, Floats
from mercer._validation import square
from mercer.errors import KernelError
from mercer.kernels._base import Kernel, Pointwise, Wrapped
from mercer.kernels._input_kinds import InputKind
from mercer.kernels._length_scales import median_distance
from mercer.kernels._matrices import Matrix, as_matrices, as_matrix, inner_products, mirror, precision_of
from mercer.kernels._parameters import nonnegative
from mercer.kernels._vectors.gamma import Gamma, gammas_around, unresolved
from mercer.rows._table import dense, n_rows, take

# Eigenvalues of a matrix above minus this share of the largest are rounding errors of zero.
EIGENVALUE_ROUNDING = 1e-12
# Matrices whose entries differ from those of their transpose by less, relative to the largest, are symmetric.
SYMMETRY_TOLERANCE = 1e-8


class Constant(Kernel):
    """k(x, z) = value, for any rows: the constant function joins those that a sum of kernels can fit.

    Parameters
    ----------
    value : float
        At least 0.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() + Constant(2.0)).block([[1.0]], [[3.0], [4.0]])
    array([[5., 6.]])
    """

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    @property
    def input_kind(self) -> InputKind:
        return "objects"

    @property
    def symmetric(self) -> bool:
        return True

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        return np.full((n_rows(X), n_rows(Z)), nonnegative("value", self.value), precision_of(X))

    def diag(self, X: Matrix) -> Floats:
        return np.full(n_rows(X), nonnegative("value", self.value), precision_of(X))


class Exp(Wrapped, Pointwise):
    """k(x, z) = exp(l(x, z)): all powers of l, the p-th divided by p!.

    exp(l / sigma²) is ``Exp(l * (1 / sigma**2))``. ``Normalized(Exp(l))`` is a Gaussian of the distances in the
    feature space of l; see :class:`GaussianOf`. Shawe-Taylor and Cristianini (2004), Proposition 3.24.

    Parameters
    ----------
    kernel : Kernel
        The kernel l; its values must not be large.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Exp(Linear()).block([[1.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 2.7183]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _combined(self, values: Iterable[Floats]) -> Floats:
        (K,) = values
        return np.exp(K, out=K)


class GaussianOf(Wrapped):
    """k(x, z) = exp(-gamma |phi(x) - phi(z)|²), |phi(x) - phi(z)|² = l(x, x) - 2 l(x, z) + l(z, z).

    The Gaussian kernel in the feature space of any kernel l: of strings, sets, trees, columns. Shawe-Taylor and
    Cristianini (2004), section 3.4.

    Parameters
    ----------
    kernel : Kernel
        The kernel l, with numbers as parameters or words that stand for one number, such as gamma="median".
    gamma : float, "median" or "loo"
        Inverse squared length. "median" is 1 / the median squared distance between distinct rows, "loo" a grid
        around it from which leave-one-out chooses.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> GaussianOf(Linear(), gamma=0.5).block([[0.0], [2.0]], [[0.0]]).round(4)
    array([[1.    ],
           [0.1353]])
    """

    def __init__(self, kernel: Kernel, gamma: Gamma = "loo") -> None:
        self.kernel = kernel
        self.gamma = gamma

    @property
    def resolved(self) -> bool:
        return self.kernel.resolved and not isinstance(self.gamma, str)

    @property
    def averages(self) -> bool:
        return False

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> list[Kernel]:
        """One kernel for "median", one for every number of the grid for "loo"."""
        inner = self.kernel.candidates(X, weight)
        if len(inner) > 1:
            raise KernelError(f"{self.kernel!r} stands for {len(inner)} kernels; set its parameters to numbers")
        if not isinstance(self.gamma, str):
            return [GaussianOf(inner[0], self.gamma)]
        gammas = gammas_around(self, lambda: _median_squared_distance(inner[0], X, weight), '"median", "loo"')
        return [GaussianOf(clone(inner[0]), float(gamma)) for gamma in gammas]

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        K = self._profile(squared_distances(self.kernel, X, Z))
        if X is Z:
            np.fill_diagonal(K, 1.0)
        return K

    def evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        return partial(self._evaluate, self.kernel.evaluator(Z), self.kernel.diag(Z))

    def blocks_for_widths(self, X: Matrix, Z: Matrix) -> Callable[[Kernel], Floats]:
        """With the squared distances, since candidates differ in gamma only."""
        D = squared_distances(self.kernel, X, Z)
        return lambda kernel: kernel._profile(D.copy())

    def diag(self, X: Matrix) -> Floats:
        return np.ones_like(self.kernel.diag(X))

    def _evaluate(
        self, evaluate: Callable[..., Floats], own: Floats, X: Matrix, workspace: Floats | None = None
    ) -> Floats:
        return self._profile(_squared_distances(evaluate(X, workspace), self.kernel.diag(X), own))

    def _profile(self, D: Floats) -> Floats:
        """Kernel values from squared distances, in their memory."""
        if isinstance(self.gamma, str):
            raise unresolved(self, self.gamma)
        D *= -nonnegative("gamma", self.gamma)
        return np.exp(D, out=D)


class Bilinear(Kernel):
    """k(x, z) = x'Bz with a symmetric matrix B: features that are alike, weighted or mixed.

    B = S S' compares words by their meaning (semantic kernels), B = the inverse of a covariance in its units.
    Positive semidefinite if B is. Shawe-Taylor and Cristianini (2004), Proposition 3.22. O(n d² + n m d).

    Parameters
    ----------
    matrix : array of shape (d, d)
        The matrix B.

    Examples
    --------
    >>> Bilinear([[1.0, 0.5], [0.5, 1.0]]).block([[1.0, 0.0]], [[0.0, 2.0]])
    array([[1.]])
    """

    def __init__(self, matrix: ArrayLike) -> None:
        self.matrix = matrix

    @property
    def positive_semidefinite(self) -> bool:
        values = np.linalg.eigvalsh(self._matrix())
        return bool(values[0] >= -EIGENVALUE_ROUNDING * np.abs(values).max())

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        X, Z = as_matrices(X, Z)
        K = inner_products(X @ self._fitting(X), Z)
        return mirror(K) if X is Z else K

    def diag(self, X: Matrix) -> Floats:
        X = dense(as_matrix(X))
        return np.asarray(np.einsum("ij,ij->i", X @ self._fitting(X), X))

    def _matrix(self) -> Array:
        B = square("matrix", self.matrix)
        if np.abs(B - B.T).max() > SYMMETRY_TOLERANCE * np.abs(B).max():
            raise KernelError(
                "matrix is not symmetric, so that k(x, z) and k(z, x) would differ; pass (B + B.T) / 2"
            )
        return 0.5 * (B + B.T)

    def _fitting(self, X: Matrix) -> Floats:
        B = self._matrix()
        if len(B) != X.shape[1]:
            raise KernelError(f"matrix has shape {B.shape}, but rows have {X.shape[1]} features")
        return B.astype(X.dtype)


class Mapped(Wrapped):
    """k(x, z) = l(f(x), f(z)): a kernel l that sees something else of the rows; abstract."""

    @abstractmethod
    def _seen(self, X: Matrix) -> Matrix:
        """The rows as the inner kernel takes them."""

    @property
    def averages(self) -> bool:
        return False

    def check_rows(self, X: Matrix) -> None:
        """What the inner kernel sees is checked when it is compared."""

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        left = self._seen(X)
        return self.kernel.block(left, left if Z is X else self._seen(Z))

    def diag(self, X: Matrix) -> Floats:
        return self.kernel.diag(self._seen(X))

    def evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        return partial(self._evaluate, self.kernel.evaluator(self._seen(Z)))

    def blocks_for_widths(self, X: Matrix, Z: Matrix) -> Callable[[Kernel], Floats]:
        values = self.kernel.blocks_for_widths(self._seen(X), self._seen(Z))
        return lambda kernel: values(kernel.kernel)

    def _evaluate(self, evaluate: Callable[..., Floats], X: Matrix, workspace: Floats | None = None) -> Floats:
        return evaluate(self._seen(X), workspace)


class After(Mapped):
    """k(x, z) = l(f(x), f(z)): a kernel after a function of the rows.

    Parameters
    ----------
    kernel : Kernel
        The kernel l.
    function : callable
        Takes n rows, as an array, list or columns, and returns n rows that l takes. It has no fitted state: the
        equal rows must give equal results. Fitted models share it.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> After(Linear(), np.log).block([[1.0], [np.e]], [[np.e]])
    array([[0.],
           [1.]])
    """

    def __init__(self, kernel: Kernel, function: Callable[[Any], Any]) -> None:
        self.kernel = kernel
        self.function = function

    @property
    def input_kind(self) -> InputKind:
        return "objects"

    @property
    def reads(self) -> tuple[Any, ...] | None:
        return None

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> Sequence[Kernel]:
        """One for every candidate of the inner kernel after the function."""
        return super().candidates(self._seen(X), weight)

    def _seen(self, X: Matrix) -> Matrix:
        moved = self.function(X)
        if n_rows(moved) != n_rows(X):
            raise KernelError(f"the function made {n_rows(moved)} rows of {n_rows(X)}; return one for each row")
        return moved


class Conformal(Wrapped):
    """k(x, z) = f(x) l(x, z) f(z): rows count more where f is large.

    f(x) = l(x, x)^(-1/2) is :class:`Normalized`; with the constant kernel as l, f(x) f(z). Amari and Wu (1999),
    Improving support vector machine classifiers by modifying kernel functions, magnify distances near a boundary.

    Parameters
    ----------
    kernel : Kernel
        The kernel l. Not ``Precomputed``, whose centers are positions.
    function : callable
        Takes n rows and returns n finite numbers f(x). Fitted models share it.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> Conformal(RBF(gamma=1.0), lambda X: np.asarray(X)[:, 0]).block([[2.0]], [[2.0], [3.0]]).round(4)
    array([[4.    , 2.2073]])
    """

    def __init__(self, kernel: Kernel, function: Callable[[Any], ArrayLike]) -> None:
        self.kernel = kernel
        self.function = function

    @property
    def averages(self) -> bool:
        return False

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        return self._times(self.kernel.block(X, Z), X, self._factor(Z))

    def diag(self, X: Matrix) -> Floats:
        own = self.kernel.diag(X)
        return np.asarray(own * np.square(self._factor(X)), dtype=own.dtype)

    def evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        return partial(self._evaluate, self.kernel.evaluator(Z), self._factor(Z))

    def blocks_for_widths(self, X: Matrix, Z: Matrix) -> Callable[[Kernel], Floats]:
        values, factor = self.kernel.blocks_for_widths(X, Z), self._factor(Z)
        return lambda kernel: self._times(values(kernel.kernel), X, factor)

    def _evaluate(
        self, evaluate: Callable[..., Floats], factor: Floats, X: Matrix, workspace: Floats | None = None
    ) -> Floats:
        return self._times(evaluate(X, workspace), X, factor)

    def _times(self, K: Floats, X: Matrix, factor: Floats) -> Floats:
        K *= np.outer(self._factor(X), factor).astype(K.dtype, copy=False)
        return K

    def _factor(self, X: Matrix) -> Floats:
        factor = np.asarray(self.function(X), dtype=np.float64)
        if factor.shape != (n_rows(X),) or not np.isfinite(factor).all():
            raise KernelError(
                f"the function returned shape {factor.shape} for {n_rows(X)} rows, or values that are not finite; "
                "return one number for each row"
            )
        return factor


def squared_distances(kernel: Kernel, X: Matrix, Z: Matrix) -> Floats:
    """|phi(x) - phi(z)|² = k(x, x) - 2 k(x, z) + k(z, z) (n, m) in feature space, none of them negative."""
    own = kernel.diag(X)
    return _squared_distances(kernel.block(X, Z), own, own if Z is X else kernel.diag(Z))


def _squared_distances(K: Floats, left: Floats, right: Floats) -> Floats:
    """left_i - 2 K_ij + right_j, in the memory of K."""
    K *= -2.0
    K += np.add.outer(left, right)
    return np.maximum(K, 0.0, out=K)


def _median_squared_distance(kernel: Kernel, X: Matrix, weight: ArrayLike | None) -> float:
    """The weighted median over pairs of distinct rows, of at most 1000 of them."""
    rows, table = kernel.distinct(X), X

    def exponents(X: Matrix, Z: Matrix, gamma: float | Floats) -> Floats:
        left, right = (take(table, rows.first[points[:, 0].astype(np.intp)]) for points in (X, Z))
        return np.asarray(-gamma * squared_distances(kernel, left, right))

    return median_distance(rows.point[:, None], weight, exponents)
