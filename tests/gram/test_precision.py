"""The precision of the products is known before the pass, and never too low."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from mercer._gram.moments import MomentsOf
from mercer._gram.precision import MOST_CHANGE_BY_SINGLE, factor_of, product_precision
from mercer._solvers.moments.ridge import decompose_moments
from mercer.kernels import RBF, Linear
from mercer.rows import MemoryRows


def problem(rng, d, n=6000):
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, (np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)).astype(np.float32)


def among(kernel, Z):
    return kernel.block(Z.astype(float), Z.astype(float))


@pytest.mark.parametrize(("d", "gamma", "m"), [(2, 0.3, 100), (3, 0.01, 200), (5, 0.1, 300), (20, 0.005, 300)])
def test_products_that_would_break_the_fit_are_in_float64(rng, d, gamma, m):
    X, _ = problem(rng, d)
    kernel, Z = RBF(gamma=gamma), X[:m]
    found = product_precision(kernel, Z, factor_of(among(kernel, Z)), X[-2048:])
    assert found.dtype == np.float64
    assert found.error > MOST_CHANGE_BY_SINGLE
    assert "float64: float32 could change" in found.words


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("d", "gamma", "m"), [(20, 0.05, 200), (20, 0.1, 300), (2, 20.0, 60)])
def test_products_in_float32_where_allowed_give_the_same_fit(rng, d, gamma, m):
    X, y = problem(rng, d)
    kernel, Z = RBF(gamma=gamma), X[:m]
    K = among(kernel, Z)
    found = product_precision(kernel, Z, factor_of(K), X[-2048:])
    assert found.dtype == np.float32
    rows = MemoryRows(X, y)
    single, double = (
        decompose_moments(rows.reduce(MomentsOf(kernel, Z, dtype)), K) for dtype in (np.float32, np.float64)
    )
    assert single.negative == 0.0
    for share in (1e-8, 1e-4, 1e-2):
        a, b = (s.solve(share * s.trace) for s in (single, double))
        outputs = [kernel.block(X, Z) @ coef + intercept for coef, intercept in (a, b)]
        assert np.sqrt(np.mean((outputs[0] - outputs[1]) ** 2)) < 5e-3 * y.std()


def test_error_is_the_largest_ratio_of_quadratic_forms(rng):
    X, _ = problem(rng, 20)
    kernel, Z, probe = RBF(gamma=0.05), X[:200], X[-2048:]
    K = among(kernel, Z)
    G32, G64 = (
        MemoryRows(probe, np.zeros(2048)).reduce(MomentsOf(kernel, Z, dtype)).centered()[0]
        for dtype in (np.float32, np.float64)
    )
    alpha = 1e-8 * np.trace(np.linalg.solve(K, G64))
    exact = np.abs(scipy.linalg.eigh(G32 - G64, G64 + alpha * K, eigvals_only=True)).max()
    # The power method comes from below, and the trace from a part of the rows.
    assert_allclose(product_precision(kernel, Z, factor_of(K), probe).error, exact, rtol=0.15)


def test_larger_alphas_allow_larger_errors(rng):
    X, _ = problem(rng, 10)
    kernel, Z = RBF(gamma=0.05), X[:300]
    found = [
        product_precision(kernel, Z, factor_of(among(kernel, Z)), X[-2048:], alpha_share=share)
        for share in (1e-8, 1e-4, 1e-2)
    ]
    assert found[0].error > found[1].error > found[2].error
    assert [precision.dtype for precision in found] == [np.float64, np.float64, np.float32]


def test_float64_rows_and_few_rows_are_not_asked(rng):
    X, _ = problem(rng, 3)
    kernel, Z = RBF(gamma=1.0), X[:50]
    double = product_precision(kernel, Z.astype(float), factor_of(among(kernel, Z)), X.astype(float))
    few = product_precision(kernel, Z, factor_of(among(kernel, Z)), X[:99])
    assert double.dtype == few.dtype == np.float64
    assert "like the kernel values" in double.words
    assert "99 rows are too few" in few.words


def test_values_without_error_have_none(rng):
    X = rng.integers(-2, 3, size=(400, 3)).astype(np.float32)
    found = product_precision(Linear(), X[:3], factor_of(among(Linear(), X[:3])), X)
    assert found.error < 1e-6
    assert found.dtype == np.float32
