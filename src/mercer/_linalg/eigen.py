"""Eigenvalues and singular values of matrices that should be positive semidefinite, with their rank and errors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._linalg.lapack import eigenvectors, singular_values
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array
from mercer.errors import NumericalError

# LAPACK's products of entries of a matrix neither overflow nor underflow while the largest is in this range.
LAPACK_RANGE = (1e-140, 1e140)


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


def eigen_psd(A: Array, *, noise: float = 0.0) -> SymmetricEigen:
    """Eigendecomposition of symmetric A (n, n), destroyed; ``noise`` is the norm of independent errors in A.

    Errors shared by rows and columns may be sqrt(n) times as large: up to that size no value counts as indefinite.
    Tridiagonal form, divide and conquer, and back (LAPACK ``syevd``): about 9 n³ operations on one thread, and
    3 n² numbers of memory.
    """
    if A.shape[0] == 0:
        return SymmetricEigen(np.zeros(0), A, 0, np.zeros(0, dtype=bool), 0.0)
    values, vectors = symmetric_eigen(A)
    least, largest = float(values[0]), float(np.abs(values).max())
    # The second term is the backward error of the eigensolver itself.
    error = noise + rounding_unit(np.float64, 4.0) * largest
    rank = int((values > error).sum())
    indefinite = values < -10.0 * error - np.sqrt(len(values)) * noise
    values[values <= error] = 0.0
    return SymmetricEigen(values, vectors, rank, indefinite, -least / largest if indefinite.any() else 0.0)


def centered(K: Array, share: Array | None = None) -> Array:
    """Symmetric kernel values (n, n) around the mean of rows, with shares (n,) of it, in feature space; a copy."""
    mean: Array = K.mean(axis=0) if share is None else K @ share
    return K - mean - mean[:, None] + (mean.mean() if share is None else share @ mean)


def signed(vectors: Array) -> Array:
    """With the entry that is largest in absolute value positive in each column (n, k)."""
    return vectors * signs(vectors)


def signs(vectors: Array) -> Array:
    """1 or -1 (k,): the sign of the entry that is largest in absolute value in each column (n, k)."""
    if vectors.size == 0:
        return np.ones(vectors.shape[1])
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.where(largest < 0.0, -1.0, 1.0)


def symmetric_eigen(A: Array) -> tuple[Array, Array]:
    """Eigenvalues (n,) in ascending order and eigenvectors (n, n) of symmetric A, destroyed."""
    A = np.require(A, np.float64, ["F", "W"])
    unit = _unit("eigenvalues", A)
    if unit != 1.0:
        A /= unit
    values, failed = eigenvectors(A)
    if failed:
        raise _not_found("eigenvalues", A)
    return values * unit, A


def _unit(what: str, A: Array) -> float:
    """A power of two by which A is divided to stay in the range of LAPACK; mostly one."""
    largest = max(float(A.max(initial=0.0)), -float(A.min(initial=0.0)))
    if not np.isfinite(largest):
        raise _not_found(what, A)
    inside = largest == 0.0 or LAPACK_RANGE[0] <= largest <= LAPACK_RANGE[1]
    return 1.0 if inside else float(2.0 ** np.floor(np.log2(largest)))


def _not_found(what: str, A: Array) -> NumericalError:
    return NumericalError(
        f"the {what} of a matrix of shape {A.shape} could not be computed: its values are not finite, or differ "
        "too much in size for float64; scale the features"
    )


def singular(A: Array, *, noise: float) -> tuple[Array, Array, Array, int]:
    """U (n, n), sigma (n,), V (m, n) and rank of A (n, m), m >= n; A = U diag(sigma) V'."""
    A = np.asfortranarray(A)
    _unit("singular values", A)
    U, sigma, Vt, failed = singular_values(A)
    if failed:
        raise _not_found("singular values", A)
    below = sigma <= noise + rounding_unit(np.float64, 4.0) * (sigma[0] if len(sigma) else 0.0)
    sigma[below] = 0.0
    return U, sigma, Vt.T, int(len(sigma) - below.sum())
