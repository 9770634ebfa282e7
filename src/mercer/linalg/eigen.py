"""Eigenvalues and singular values of matrices that should be positive semidefinite, with their rank and errors."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.linalg.threads import limit_threads
from mercer.types import Array


@dataclass(frozen=True)
class SymmetricEigen:
    """A = U diag(values) U' with values >= 0 in ascending order.

    ``rank`` counts the values above the error of A; the others are set to zero. ``indefinite`` (n,)
    marks those too far below zero for that error, ``negative`` is the most negative of them in units of the
    largest value.
    """

    values: Array
    vectors: Array
    rank: int
    indefinite: NDArray[np.bool_]
    negative: float


def eigen_psd(A: Array, *, noise: float = 0.0, threads: int | None = None) -> SymmetricEigen:
    """Eigendecomposition of symmetric A (n, n), destroyed; ``noise`` is the norm of independent errors in A.

    Errors shared by rows and columns may be sqrt(n) times as large: up to that size no value counts as indefinite.
    Divide and conquer (LAPACK ``syevd``): about 9 n³ operations and 3 n² numbers of memory.
    """
    if A.shape[0] == 0:
        return SymmetricEigen(np.zeros(0), A, 0, np.zeros(0, dtype=bool), 0.0)
    with limit_threads(threads):
        values, vectors = symmetric_eigen(A)
    least, largest = float(values[0]), float(np.abs(values).max())
    # The second term is the backward error of the eigensolver itself.
    error = noise + 4.0 * np.finfo(np.float64).eps * largest
    rank = int((values > error).sum())
    indefinite = values < -10.0 * error - np.sqrt(len(values)) * noise
    values[values <= error] = 0.0
    return SymmetricEigen(values, vectors, rank, indefinite, -least / largest if indefinite.any() else 0.0)


def symmetric_eigen(A: Array) -> tuple[Array, Array]:
    """Eigenvalues (n,) in ascending order and eigenvectors (n, n) of symmetric A, destroyed."""
    try:
        values, vectors = scipy.linalg.eigh(A, driver="evd", overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as problem:
        raise _not_found("eigenvalues", A) from problem
    return values, vectors


def _not_found(what: str, A: Array) -> NumericalError:
    return NumericalError(
        f"the {what} of a matrix of shape {A.shape} could not be computed: its values are not finite, or differ "
        "too much in size for float64; scale the features"
    )


def singular(A: Array, *, noise: float) -> tuple[Array, Array, Array, int]:
    """U (n, n), sigma (n,), V (m, n) and rank of A (n, m), m >= n; A = U diag(sigma) V'."""
    try:
        U, sigma, Vt = scipy.linalg.svd(A, full_matrices=False, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError as problem:
        raise _not_found("singular values", A) from problem
    below = sigma <= noise + 4.0 * np.finfo(np.float64).eps * (sigma[0] if len(sigma) else 0.0)
    sigma[below] = 0.0
    return U, sigma, Vt.T, int(len(sigma) - below.sum())
