"""Decompositions on threads of their own, in place where LAPACK can, and left at once by Ctrl-C.

Long calls release the interpreter's lock: those of ``numpy.linalg``, and those of LAPACK by address, see
``mercer._linalg.fortran``. Work on many columns is divided into strips of fixed width, for as many threads as
there are: the bits of the result do not depend on their number.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from mercer._linalg.fortran import run
from mercer._linalg.threads import (
    INTERRUPTIBLE_ROWS,
    check_awaited,
    interruptible,
    map_in_threads,
    one_blas_thread,
)
from mercer._types import Array, Indices
from mercer.errors import NumericalError

# Columns in a strip: wide enough for fast products, narrow enough for several threads.
STRIP_COLUMNS = 256
# Larger matrices are factored in panels of this many rows: the rest is read and written once for each of them.
PANEL_ROWS = 2048
ORTHOGONALIZED_ROWS = 512
# Columns that LAPACK reduces together, at most: what its workspace must have for each row and column.
LAPACK_BLOCK = 64


def eigenvectors(A: Array) -> tuple[Array, int]:
    """Ascending eigenvalues (n,), and 0 if all were found; eigenvectors replace A (n, n), symmetric, column-major.

    Of A the lower triangle is read; workspace for two more matrices. 9 n³.
    """
    n = len(A)
    values, work, places = np.empty(n), np.empty(1 + 6 * n + 2 * n * n), np.empty(3 + 5 * n, dtype=np.intc)
    return values, _long_call("dsyevd", "V", "L", n, A, max(n, 1), values, work, len(work), places, len(places))


def singular_values(A: Array) -> tuple[Array, Array, Array, int]:
    """U (n, k), sigma (k,), V' (k, m), k = min(n, m), of A (n, m), column-major, destroyed; 0 if it succeeded."""
    n, m = A.shape
    k = min(n, m)
    U, sigma, Vt = np.empty((n, k), order="F"), np.empty(k), np.empty((k, m), order="F")
    work, places = np.empty(1 + 4 * k * k + 7 * k + LAPACK_BLOCK * (n + m)), np.empty(8 * k, dtype=np.intc)
    matrices = (A, max(n, 1), sigma, U, max(n, 1), Vt, max(k, 1))
    return U, sigma, Vt, _long_call("dgesdd", "S", n, m, *matrices, work, len(work), places)


def cholesky_upper(A: Array) -> int:
    """R with A = R'R in the upper triangle of A (n, n), column-major; 0 if it succeeded; n³ / 3.

    Large matrices panel by panel, the rest updated by products in threads; their lower triangle is overwritten.
    """
    n = len(A)
    if n <= PANEL_ROWS:
        return _long_call("dpotrf", "U", n, A, max(n, 1))
    for start in range(0, n, ORTHOGONALIZED_ROWS):
        stop = min(start + ORTHOGONALIZED_ROWS, n)
        if _call("dpotrf", "U", stop - start, A[start:, start:stop], n):
            return stop
        _update_upper(A, start, stop)
    return 0


def _update_upper(A: Array, start: int, stop: int) -> None:
    """Rows P of the factor from ``start`` to ``stop``, and A - P'P in the upper triangle of the rest."""
    n, k, one = len(A), stop - start, np.ones(1)
    P = A[start:stop]
    parts = [slice(first, min(first + STRIP_COLUMNS, n)) for first in range(stop, n, STRIP_COLUMNS)]

    def solve(columns: slice) -> None:
        C = A[start:, columns]
        _call("dtrsm", "L", "U", "T", "N", k, C.shape[1], one, A[start:, start:stop], n, C, n)

    def update(columns: slice) -> None:
        check_awaited()
        # The transpose is in row-major order, as products are.
        C = A[stop : columns.stop, columns].T
        C -= P[:, columns].T @ P[:, stop : columns.stop]

    map_in_threads(solve, parts)
    # The longest strips first, so that no thread is left with one of them.
    map_in_threads(update, parts[::-1])


def cholesky_lower(A: Array) -> int:
    """L with A = LL' in the lower triangle of A (n, n), column-major; 0 if it succeeded; n³ / 3."""
    return _long_call("dpotrf", "L", len(A), A, max(len(A), 1))


def invert_lower(L: Array) -> None:
    """L^-1 in the lower triangle of L (n, n), column-major; n³ / 3."""
    _long_call("dtrtri", "L", "N", len(L), L, max(len(L), 1))


def cholesky_pivoted(A: Array, limit: float) -> tuple[Indices, int]:
    """Pivots (n,), rank r: A[pivots][:, pivots] = R'R with R (r, n) in the upper triangle of A, column-major."""
    n = len(A)
    pivots, rank = np.empty(n, dtype=np.intc), np.zeros(1, dtype=np.intc)
    _long_call("dpstrf", "U", n, A, n, pivots, rank, np.array([limit]), np.empty(2 * n))
    return np.asarray(pivots, dtype=np.intp) - 1, int(rank[0])


def inverse_upper(R: Array) -> Array:
    """R^-1 (n, n) of the upper triangle of R (n, n), both column-major, with zeros below; n³ / 3."""
    _check_regular(R)
    n, one = len(R), np.ones(1)
    inverse = np.zeros((n, n), order="F")

    def strip(columns: slice) -> None:
        C, k = inverse[:, columns], columns.stop
        C[columns] = np.eye(C.shape[1])
        _call("dtrsm", "L", "U", "N", "N", k, C.shape[1], one, R, n, C, n)

    map_in_threads(strip, strips(n)[::-1])
    return inverse


def _check_regular(R: Array) -> None:
    if not R.diagonal().all():
        raise NumericalError(f"a triangular matrix of shape {R.shape} is singular; scale the features")


def solve_triangular(R: Array, B: Array, *, lower: bool = False, transposed: bool = False) -> Array:
    """R^-1 B or R'^-1 B (n, p) for triangular R (n, n), as a new column-major array; n² p."""
    X = np.array(B, dtype=np.float64, order="F")
    R = np.asarray(R, dtype=np.float64)
    if not R.flags.f_contiguous:
        # The transpose of a triangle in row-major order is the other triangle, and column-major.
        R, lower, transposed = np.ascontiguousarray(R).T, not lower, not transposed
    _check_regular(R)
    n, one = len(R), np.ones(1)
    uplo, trans = "L" if lower else "U", "T" if transposed else "N"

    def strip(columns: slice) -> None:
        C = X[:, columns]
        _call("dtrsm", "L", uplo, trans, "N", n, C.shape[1], one, R, max(n, 1), C, max(n, 1))

    map_in_threads(strip, strips(X.shape[1]))
    return X


def orthogonalized(A: Array) -> tuple[Array, Array]:
    """Q (n, m) with orthonormal columns and triangular R (m, m) of A = QR (n, m), n >= m; 4 n m²."""
    qr: Callable[..., Any] = partial(scipy.linalg.qr, mode="economic", check_finite=False)
    with one_blas_thread():
        Q, R = interruptible(qr, A) if len(A) > INTERRUPTIBLE_ROWS else qr(A)
    return Q, R


def multiply(A: Array, B: Array) -> Array:
    """A B (n, p) of large matrices A (n, m) and B (m, p); 2 n m p."""
    product = np.empty((len(A), B.shape[1]))

    def strip(rows: slice) -> None:
        check_awaited()
        np.matmul(A[rows], B, out=product[rows])

    map_in_threads(strip, strips(len(A)))
    return product


def strips(p: int) -> list[slice]:
    """Slices of p columns or rows, as many as a strip has."""
    return [slice(start, min(start + STRIP_COLUMNS, p)) for start in range(0, p, STRIP_COLUMNS)]


def _call(name: str, *args: Any) -> int:
    """Call a function by its Fortran name, for at most a second; 0 if it succeeded, or does not say so."""
    check_awaited()
    with one_blas_thread():
        return run(name, args)


def _long_call(name: str, *args: Any) -> int:
    """Call a function that takes long for large matrices, and cannot be divided."""
    if max(arg.shape[0] for arg in args if isinstance(arg, np.ndarray) and arg.ndim == 2) <= INTERRUPTIBLE_ROWS:
        return _call(name, *args)
    with one_blas_thread():
        return interruptible(run, name, args)
