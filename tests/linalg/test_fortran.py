"""LAPACK by address where the signature is the one expected; otherwise NumPy and SciPy, with equal results."""

import ctypes

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import cython_lapack

from mercer import KernelFisherClassifier
from mercer._linalg import factor_spd, fortran
from mercer._linalg.eigen import symmetric_eigen
from mercer._linalg.lapack import (
    PANEL_ROWS,
    STRIP_COLUMNS,
    cholesky_lower,
    cholesky_pivoted,
    cholesky_upper,
    inverse_upper,
    invert_lower,
    singular_values,
    solve_triangular,
)
from mercer.datasets import make_banana

NAMES = [name for functions in fortran.SIGNATURES.values() for name in functions]


@pytest.fixture(autouse=True)
def _addresses_anew():
    fortran.address.cache_clear()
    yield
    fortran.address.cache_clear()


@pytest.fixture
def without_addresses(monkeypatch):
    def forbid():
        monkeypatch.setattr(fortran, "address", lambda name: None)

    return forbid


def matrix(n):
    """Symmetric, positive definite, column-major, with eigenvalues from 1 to 2."""
    Q, _ = np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))
    return np.asfortranarray(Q @ (np.linspace(1.0, 2.0, n)[:, None] * Q.T))


def upper(n):
    return np.asfortranarray(np.linalg.cholesky(matrix(n)).T)


def in_place(function, A, *more):
    """The matrix after the call, and what the function returned."""
    A = A.copy(order="F")
    return A, function(A, *more)


def pivoted(n):
    A, (pivots, rank) = in_place(cholesky_pivoted, matrix(n) + np.diag(np.arange(n)), 0.0)
    return np.triu(A), pivots, rank


def eigen(n):
    values, vectors = symmetric_eigen(matrix(n) + np.diag(np.arange(n)))
    return values, vectors * np.sign(vectors[0])


def singular(n):
    U, sigma, Vt, failed = singular_values(matrix(n) + np.diag(np.arange(n)))
    return (U * sigma) @ Vt, sigma, failed


ROUTINES = {
    "cholesky_upper": lambda n: np.triu(in_place(cholesky_upper, matrix(n))[0]),
    "cholesky_lower": lambda n: np.tril(in_place(cholesky_lower, matrix(n))[0]),
    "not definite": lambda n: in_place(cholesky_upper, -matrix(n))[1] > 0,
    "invert_lower": lambda n: np.tril(in_place(invert_lower, upper(n).T)[0]),
    "inverse_upper": lambda n: inverse_upper(upper(n)),
    "cholesky_pivoted": pivoted,
    "solve_triangular": lambda n: solve_triangular(upper(n), matrix(n)),
    "solve_triangular, transposed": lambda n: solve_triangular(upper(n), matrix(n), transposed=True),
    "solve_triangular, lower": lambda n: solve_triangular(upper(n).T, matrix(n)[:, :3], lower=True),
    "eigen": eigen,
    "singular values": singular,
    "factor_spd": lambda n: factor_spd(matrix(n)).solve(matrix(n)),
}


def agree(found, expected, tolerance):
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
        assert_allclose(one, other, rtol=0, atol=tolerance)


# Of an empty matrix nobody asks for eigenvectors.
CASES = [
    (name, n)
    for name in ROUTINES
    for n in (0, 1, 2 * STRIP_COLUMNS + 3)
    if n or name not in ("eigen", "not definite")
]


@pytest.mark.parametrize(("name", "n"), CASES)
def test_routines_without_addresses_are_those_with_them(name, n, without_addresses):
    expected = ROUTINES[name](n)
    without_addresses()
    # Rounding errors of n additions of numbers of size n at most.
    agree(ROUTINES[name](n), expected, 1e-15 * max(n, 1) ** 2)


def test_factors_in_panels_without_addresses_are_those_with_them(without_addresses):
    A = np.asfortranarray(np.eye(PANEL_ROWS + 7) + 1.0 / PANEL_ROWS)
    expected = np.triu(in_place(cholesky_upper, A)[0])
    without_addresses()
    assert_allclose(np.triu(in_place(cholesky_upper, A)[0]), expected, atol=1e-13)
    A[PANEL_ROWS + 6, PANEL_ROWS + 6] = -1.0
    assert cholesky_upper(A) != 0


def test_a_default_fit_without_addresses_has_the_same_outputs(without_addresses):
    (X, y), new = make_banana(700, random_state=0), make_banana(50, random_state=1)[0]
    expected = KernelFisherClassifier(random_state=0).fit(X, y).decision_function(new)
    without_addresses()
    found = KernelFisherClassifier(random_state=0).fit(X, y).decision_function(new)
    assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
def test_this_scipy_has_all_signatures(name):
    assert fortran.address(name) is not None


def test_every_function_has_a_stand_in():
    assert set(fortran.STAND_INS) == set(NAMES)


def capsule(signature):
    """A capsule of that name, which must stay in memory, with an address of nothing that one could call."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(1, signature, None)


EXPECTED = fortran._text("cython_lapack", fortran.SIGNATURES["cython_lapack"]["dpotrf"])
OTHERS = {
    "wider integers": EXPECTED.replace(b"int *", b"int64_t *"),
    "one argument more": EXPECTED.replace(b"char *", b"char *, char *"),
    "another result": EXPECTED.replace(b"void", b"int"),
}


def assert_not_called():
    assert fortran.address("dpotrf") is None
    L, failed = in_place(cholesky_lower, matrix(5))
    assert not failed
    assert_allclose(np.tril(L) @ np.tril(L).T, matrix(5), atol=1e-14)


@pytest.mark.parametrize("other", OTHERS)
def test_a_function_with_another_signature_is_not_called(other, monkeypatch):
    monkeypatch.setattr(cython_lapack, "__pyx_capi__", {"dpotrf": capsule(EXPECTED)})
    assert fortran.address("dpotrf") is not None
    fortran.address.cache_clear()
    monkeypatch.setattr(cython_lapack, "__pyx_capi__", {"dpotrf": capsule(OTHERS[other])})
    assert_not_called()


@pytest.mark.parametrize("published", [{}, {"dpotrf": None}], ids=["missing", "not a capsule"])
def test_a_function_that_is_missing_is_not_called(published, monkeypatch):
    monkeypatch.setattr(cython_lapack, "__pyx_capi__", published)
    assert_not_called()


def test_a_scipy_that_publishes_nothing_is_enough(monkeypatch):
    monkeypatch.delattr(cython_lapack, "__pyx_capi__")
    assert fortran.address("dsyevd") is None


def test_numbers_that_no_integer_of_lapack_holds_are_left_to_numpy(monkeypatch):
    monkeypatch.setattr(fortran, "LARGEST_C_INT", 100)
    values, vectors = symmetric_eigen(matrix(20))
    assert_allclose(vectors @ (values[:, None] * vectors.T), matrix(20), atol=1e-14)
