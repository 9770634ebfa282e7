"""LAPACK and BLAS without the interpreter's lock: in threads of their own, in place, and left at once by Ctrl-C.

Functions of ``scipy.linalg`` for symmetric and triangular matrices keep the lock, so that no other thread runs and
signals wait. Here the same library is called at the addresses that SciPy publishes for Cython,
``scipy.linalg.cython_lapack``. Work on many columns is divided into strips of fixed width, for as many threads as
there are: the bits of the result do not depend on their number.
"""

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import cython_blas, cython_lapack

from mercer.errors import NumericalError
from mercer.linalg.threads import SMALL, check_awaited, interruptible, map_in_threads, one_blas_thread
from mercer.types import Array, Indices

# Where functions are, by name, and which of them do not say whether they succeeded.
FUNCTIONS: dict[str, Any] = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
SILENT = {"dgemm", "dtrsm", "dlatrd"}
# Columns in a strip: wide enough for fast products, narrow enough for several threads.
STRIP = 256
# Larger matrices are factored in panels of so many rows: the rest is read and written once for each of them.
TALL = 2048
ROWS = 512
# Fewer columns are updated in less time than threads need to start.
MANY = 1024
# Reflectors in a panel, applied at once, and columns left for the last one.
PANEL = 32
LAST = 128
# Numbers of workspace for each column to which reflectors are applied.
WORK = 64


def tridiagonalize(A: Array) -> tuple[Array, Array, Array]:
    """Diagonal d (n,), off-diagonal e (n - 1,) and scalars tau of the reflectors Q in A = Q T Q'.

    A (n, n) symmetric, column-major, of which the lower triangle is read; the reflectors replace it. 4/3 n³.
    """
    n = len(A)
    d, e, tau, W = np.empty(n), np.empty(n), np.empty(n), np.empty((n, PANEL), order="F")
    start = 0
    # As in LAPACK's dsytrd, with the update of the rest divided among threads.
    while n - start > LAST:
        stop = start + PANEL
        _call("dlatrd", "L", n - start, PANEL, A[start:, start:], n, e[start:], tau[start:], W, n)
        _update(A, start, W[: n - start])
        j = np.arange(start, stop)
        d[j], A[j + 1, j] = A[j, j], e[j]
        start = stop
    work = np.empty(PANEL * LAST)
    _call("dsytrd", "L", n - start, A[start:, start:], n, d[start:], e[start:], tau[start:], work, len(work))
    return d, e[: n - 1], tau


def _update(A: Array, start: int, W: Array) -> None:
    """A - V W' - W V' in the lower triangle of the rest of A, for the panel V that begins at column ``start``."""
    n, stop = len(A), start + PANEL
    left = np.asfortranarray(np.hstack([A[stop:, start:stop], W[PANEL:]]))
    right = np.asfortranarray(np.hstack([left[:, PANEL:], left[:, :PANEL]]))
    rest, minus, plus = A[stop:, stop:], -np.ones(1), np.ones(1)

    def strip(columns: slice) -> None:
        C, (first, p), k = rest[columns.start :, columns], (columns.start, columns.stop - columns.start), n - stop
        _call("dgemm", "N", "T", len(C), p, 2 * PANEL, minus, left[first:], k, right[columns], k, plus, C, n)

    map_in_threads(strip, _strips(n - stop), most=None if n - stop > MANY else 1)


def tridiagonal_eigen(d: Array, e: Array) -> tuple[Array, int]:
    """Eigenvectors Z (n, n) of the tridiagonal matrix, whose eigenvalues replace d; 0 if all were found."""
    n = len(d)
    Z, work, places = (
        np.empty((n, n), order="F"),
        np.empty(1 + 4 * n + n * n),
        np.empty(3 + 5 * n, dtype=_integer()),
    )
    return Z, _long_call("dstedc", "I", n, d, e.copy(), Z, n, work, len(work), places, len(places))


def reflect_back(A: Array, tau: Array, Z: Array) -> None:
    """Q Z (n, p) in the place of Z, column-major, for the reflectors Q of :func:`tridiagonalize`; 2 n² p."""
    n = len(A)

    def strip(columns: slice) -> None:
        C = Z[:, columns]
        work = np.empty(WORK * (C.shape[1] + WORK + 1))
        _call("dormtr", "L", "L", "N", n, C.shape[1], A, n, tau, C, n, work, len(work))

    map_in_threads(strip, _strips(Z.shape[1]))


def singular_values(A: Array) -> tuple[Array, Array, Array, int]:
    """U (n, k), sigma (k,), V' (k, m), k = min(n, m), of A (n, m), column-major, destroyed; 0 if it succeeded."""
    n, m = A.shape
    k = min(n, m)
    U, sigma, Vt = np.empty((n, k), order="F"), np.empty(k), np.empty((k, m), order="F")
    places, best = np.empty(8 * k, dtype=_integer()), np.empty(1)
    matrices = ("S", n, m, A, max(n, 1), sigma, U, max(n, 1), Vt, max(k, 1))
    _call("dgesdd", *matrices, best, -1, places)
    work = np.empty(int(best[0]))
    return U, sigma, Vt, _long_call("dgesdd", *matrices, work, len(work), places)


def cholesky_upper(A: Array) -> int:
    """R with A = R'R in the upper triangle of A (n, n), column-major; 0 if it succeeded; n³ / 3.

    Large matrices panel by panel, the rest updated by products in threads; their lower triangle is overwritten.
    """
    n = len(A)
    if n <= TALL:
        return _long_call("dpotrf", "U", n, A, max(n, 1))
    for start in range(0, n, ROWS):
        stop = min(start + ROWS, n)
        if _call("dpotrf", "U", stop - start, A[start:, start:stop], n):
            return stop
        _update_upper(A, start, stop)
    return 0


def _update_upper(A: Array, start: int, stop: int) -> None:
    """Rows P of the factor from ``start`` to ``stop``, and A - P'P in the upper triangle of the rest."""
    n, k, one, minus = len(A), stop - start, np.ones(1), -np.ones(1)
    strips = [slice(first, min(first + STRIP, n)) for first in range(stop, n, STRIP)]

    def solve(columns: slice) -> None:
        C = A[start:, columns]
        _call("dtrsm", "L", "U", "T", "N", k, C.shape[1], one, A[start:, start:stop], n, C, n)

    def update(columns: slice) -> None:
        P, C = A[start:, columns], A[stop:, columns]
        rows, p = columns.stop - stop, C.shape[1]
        _call("dgemm", "T", "N", rows, p, k, minus, A[start:, stop:], n, P, n, one, C, n)

    map_in_threads(solve, strips)
    # The longest strips first, so that no thread is left with one of them.
    map_in_threads(update, strips[::-1])


def cholesky_lower(A: Array) -> int:
    """L with A = LL' in the lower triangle of A (n, n), column-major; 0 if it succeeded; n³ / 3."""
    return _long_call("dpotrf", "L", len(A), A, max(len(A), 1))


def invert_lower(L: Array) -> None:
    """L^-1 in the lower triangle of L (n, n), column-major; n³ / 3."""
    _long_call("dtrtri", "L", "N", len(L), L, max(len(L), 1))


def cholesky_pivoted(A: Array, limit: float) -> tuple[Indices, int]:
    """Pivots (n,), rank r: A[pivots][:, pivots] = R'R with R (r, n) in the upper triangle of A, column-major."""
    n = len(A)
    pivots, rank = np.empty(n, dtype=_integer()), np.zeros(1, dtype=_integer())
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

    map_in_threads(strip, _strips(n)[::-1])
    return inverse


def symmetric_reduced(A: Array, R: Array) -> None:
    """R'^-1 A R^-1 in the upper triangle of A (n, n), symmetric, for upper triangular R; both column-major; n³."""
    _long_call("dsygst", 1, "U", len(A), A, max(len(A), 1), R, max(len(R), 1))


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

    map_in_threads(strip, _strips(X.shape[1]))
    return X


def orthogonalized(A: Array) -> tuple[Array, Array]:
    """Q (n, m) with orthonormal columns and triangular R (m, m) of A = QR (n, m), n >= m; 4 n m²."""
    run: Callable[..., Any] = partial(scipy.linalg.qr, mode="economic", check_finite=False)
    with one_blas_thread():
        Q, R = interruptible(run, A) if len(A) > SMALL else run(A)
    return Q, R


def multiply(A: Array, B: Array) -> Array:
    """A B (n, p) of large matrices A (n, m) and B (m, p); 2 n m p."""
    product = np.empty((len(A), B.shape[1]))

    def strip(rows: slice) -> None:
        check_awaited()
        np.matmul(A[rows], B, out=product[rows])

    map_in_threads(strip, _strips(len(A)))
    return product


def _strips(p: int) -> list[slice]:
    return [slice(start, min(start + STRIP, p)) for start in range(0, p, STRIP)]


def _call(name: str, *args: Any) -> int:
    """Call a function by its Fortran name, for at most a second; 0 if it succeeded, or does not say so."""
    check_awaited()
    with one_blas_thread():
        return _run(name, args)


def _long_call(name: str, *args: Any) -> int:
    """Call a function that takes long for large matrices, and cannot be divided."""
    if max(arg.shape[0] for arg in args if isinstance(arg, np.ndarray) and arg.ndim == 2) <= SMALL:
        return _call(name, *args)
    with one_blas_thread():
        return interruptible(_run, name, args)


def _run(name: str, args: tuple[Any, ...]) -> int:
    info = np.zeros(1, dtype=_integer())
    given = args if name in SILENT else (*args, info)
    # Numbers and letters must stay in memory until the function returns.
    held = [np.array([arg], dtype=_integer()) if isinstance(arg, int) else arg for arg in given]
    _function(name)(*(arg.encode() if isinstance(arg, str) else arg.ctypes.data for arg in held))
    return int(info[0])


@cache
def _function(name: str) -> Callable[..., None]:
    """The function at its address, which ctypes calls without the interpreter's lock."""
    capsule = FUNCTIONS[name]
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    signature = name_of(capsule)
    n_arguments = signature.decode().split("(", 1)[1].count(",") + 1
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address_of(capsule, signature))


@cache
def _integer() -> Any:
    """The type of LAPACK's integers, which depends on how SciPy was built: how many bytes it writes for one."""
    version = [np.full(1, -1, dtype=np.int64) for _ in range(3)]
    _function("ilaver")(*(part.ctypes.data for part in version))
    halves = version[0].view(np.int32)
    return np.int32 if (halves == -1).any() else np.int64
