"""Sums of products of different features."""

import numpy as np

from mercer._types import Floats
from mercer.errors import KernelError
from mercer.kernels._base import Kernel
from mercer.kernels._matrices import Matrix, as_matrices, as_matrix
from mercer.kernels._parameters import integer
from mercer.rows._table import dense

# This many rows at a time stay in the cache.
ROWS_IN_CACHE = 32


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
        for i in range(0, len(X), ROWS_IN_CACHE):
            rows = X[i : i + ROWS_IN_CACHE]
            K[i : i + ROWS_IN_CACHE] = _elementary(rows.T[:, :, None], Z.T[:, None, :], degree)
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
        for i in range(0, len(X), ROWS_IN_CACHE):
            rows = slice(i, i + ROWS_IN_CACHE)
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
