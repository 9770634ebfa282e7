"""Functions of LAPACK at the addresses that SciPy publishes for Cython: in place, without the interpreter's lock.

Functions of ``scipy.linalg`` for symmetric and triangular matrices keep the lock, so that no other thread runs and
signals wait; those of ``numpy.linalg`` release it, but hold copies of their arguments and results. So the library
of SciPy is called at the addresses in ``scipy.linalg.cython_blas`` and ``cython_lapack``, if the signature with
the address is the one expected here. Otherwise functions of NumPy and SciPy stand in: the results are the same up
to rounding, but Ctrl-C may have to wait for one call.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import blas, cython_blas, cython_lapack, lapack

from mercer._types import Array

# The arguments of each function, by its module; "d" is how Cython names the type of the numbers.
SIGNATURES = {
    "cython_blas": {
        "dtrsm": "char *, char *, char *, char *, int *, int *, d *, d *, int *, d *, int *",
    },
    "cython_lapack": {
        "dgesdd": "char *, int *, int *, d *, int *, d *, d *, int *, d *, int *, d *, int *, int *, int *",
        "dpotrf": "char *, int *, d *, int *, int *",
        "dpstrf": "char *, int *, d *, int *, int *, int *, d *, d *, int *",
        "dsyevd": "char *, char *, int *, d *, int *, d *, d *, int *, int *, int *, int *",
        "dtrtri": "char *, char *, int *, d *, int *, int *",
    },
}
MODULES = {"cython_blas": cython_blas, "cython_lapack": cython_lapack}
# Functions that do not say whether they succeeded.
WITHOUT_STATUS = {"dtrsm"}
# The largest number that a C int holds.
LARGEST_C_INT = 2**31 - 1


def run(name: str, args: tuple[Any, ...]) -> int:
    """Call a function by its Fortran name, with its arguments but the last one; 0 if it succeeded."""
    called = address(name)
    if called is None or any(isinstance(arg, int) and arg > LARGEST_C_INT for arg in args):
        return STAND_INS[name](*args)
    info = np.zeros(1, dtype=np.intc)
    given = args if name in WITHOUT_STATUS else (*args, info)
    # Numbers and letters must stay in memory until the function returns.
    held = [np.array([arg], dtype=np.intc) if isinstance(arg, int) else arg for arg in given]
    called(*(arg.encode() if isinstance(arg, str) else arg.ctypes.data for arg in held))
    return int(info[0])


@cache
def address(name: str) -> Callable[..., None] | None:
    """The function, called without the interpreter's lock; None if SciPy has none with the signature expected."""
    module = next(module for module, functions in SIGNATURES.items() if name in functions)
    capsule = getattr(MODULES[module], "__pyx_capi__", {}).get(name)
    arguments = SIGNATURES[module][name]
    # True only if the name of the capsule, its signature, is the text given.
    if not _of_capsule("IsValid", ctypes.c_int)(capsule, _text(module, arguments)):
        return None
    pointer = _of_capsule("GetPointer", ctypes.c_void_p)(capsule, _text(module, arguments))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p for _ in arguments.split(", ")])(pointer)


def _text(module: str, arguments: str) -> bytes:
    """The signature as Cython writes it."""
    number = f"__pyx_t_5scipy_6linalg_{len(module)}{module}_d *"
    words = [number if word == "d *" else word for word in arguments.split(", ")]
    return f"void ({', '.join(words)})".encode()


def _of_capsule(what: str, result: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, ctypes.py_object, ctypes.c_char_p)((f"PyCapsule_{what}", ctypes.pythonapi))


def _dtrsm(
    side: str, uplo: str, trans: str, diag: str, m: int, p: int, one: Array, R: Array, ldr: int, B: Array, ldb: int
) -> int:
    """R^-1 B or R'^-1 B in the place of B (m, p)."""
    if m and p:
        B[:m] = blas.dtrsm(float(one[0]), R[:m, :m], B[:m], lower=uplo == "L", trans_a=trans == "T")
    return 0


def _dgesdd(
    job: str, n: int, m: int, A: Array, lda: int, sigma: Array, U: Array, ldu: int, Vt: Array, *work: Any
) -> int:
    """Singular values and vectors of A (n, m)."""
    try:
        U[:], sigma[:], Vt[:] = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        return 1
    return 0


def _dpotrf(uplo: str, n: int, A: Array, lda: int) -> int:
    """The Cholesky factor in the place of A (n, n), with zeros in the other triangle."""
    A = A[:n] if uplo == "L" else A[:n].T
    try:
        A[:] = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return 1
    return 0


def _dpstrf(uplo: str, n: int, A: Array, lda: int, pivots: Any, rank: Any, limit: Array, work: Array) -> int:
    """The factor with complete pivoting in the upper triangle of A (n, n)."""
    A[:], pivots[:], rank[0], info = lapack.dpstrf(A, tol=float(limit[0]))
    return int(info)


def _dsyevd(jobz: str, uplo: str, n: int, A: Array, lda: int, values: Array, *work: Any) -> int:
    """Eigenvalues (n,), and eigenvectors in the place of A (n, n)."""
    try:
        values[:], A[:] = np.linalg.eigh(A)
    except np.linalg.LinAlgError:
        return 1
    return 0


def _dtrtri(uplo: str, diag: str, n: int, L: Array, ldl: int) -> int:
    """L^-1 in the lower triangle of L (n, n)."""
    if n == 0:
        return 0
    L[:], info = lapack.dtrtri(L, lower=1)
    return int(info)


STAND_INS: dict[str, Callable[..., int]] = {
    "dtrsm": _dtrsm,
    "dgesdd": _dgesdd,
    "dpotrf": _dpotrf,
    "dpstrf": _dpstrf,
    "dsyevd": _dsyevd,
    "dtrtri": _dtrtri,
}
