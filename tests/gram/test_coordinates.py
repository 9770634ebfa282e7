"""Sums of coordinates are sums of kernel values, with more digits."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer._gram import precision
from mercer._gram.coordinates import PRODUCT_TILE, Coordinates
from mercer._gram.moments import SUMS, MomentsOf
from mercer._gram.precision import Precision, factor_of, with_coordinates
from mercer._solvers.moments.ridge import decompose_moments
from mercer._solvers.smoother import center_variance
from mercer.kernels import RBF
from mercer.rows._base import Block

KERNEL = RBF(gamma=0.4)


@pytest.fixture
def rows(rng, frozen):
    return frozen(rng.normal(size=(80, 3))), frozen(rng.normal(size=(80, 2))), frozen(rng.uniform(0.2, 2.0, 80))


def both(X, Y, w, Z, origin):
    """Moments of kernel values, and of coordinates."""
    R = np.linalg.cholesky(KERNEL.block(Z, Z)).T
    where = Coordinates.at(R, origin)
    block = Block(X, Y, w, 0)
    return MomentsOf(KERNEL, Z)(block), replace(MomentsOf(KERNEL, Z, coordinates=where)(block), coordinates=where)


@pytest.mark.parametrize(("n", "m"), [(10, 1), (10, 7), (10, PRODUCT_TILE[1] + 3), (PRODUCT_TILE[0] + 5, 3)])
def test_coordinates_are_the_inverse_factor_times_the_row(rng, n, m):
    R = np.triu(rng.normal(size=(m, m))) + 3 * np.sqrt(m) * np.eye(m)
    K, origin = rng.normal(size=(n, m)), rng.normal(size=m)
    found = Coordinates.at(R, origin).of_rows(K.copy(), np.empty)
    assert_allclose(found @ R, K - origin, atol=1e-12)


def test_sums_of_coordinates_are_sums_of_kernel_values(rows):
    X, Y, w = rows
    plain, other = both(X, Y, w, X[:6], np.linspace(0.1, 0.6, 6))
    again = other.of_kernel_values()
    for part in SUMS:
        assert_allclose(getattr(again, part), getattr(plain, part), rtol=1e-10)
    coef = np.arange(12.0).reshape(6, 2)
    found, expected = (moments.against_targets(coef, np.ones(2))[0] for moments in (other, plain))
    assert_allclose(found, expected, rtol=1e-9)
    assert_allclose(expected, coef.T @ plain.C + np.outer(np.ones(2), plain.t), rtol=1e-12)


def test_coordinates_stay_when_rows_come_go_and_fade(rows):
    X, Y, w = rows
    whole = both(X, Y, w, X[:6], np.zeros(6))[1]
    for moments in (whole + whole, whole - whole.scaled(0.5), whole.scaled(0.3)):
        assert moments.coordinates is whole.coordinates
    assert_allclose((whole + whole.scaled(0.5) - whole).G, 0.5 * whole.G, atol=1e-12 * np.abs(whole.G).max())


@pytest.mark.parametrize("intercept", [True, False])
def test_the_fit_does_not_depend_on_the_coordinates(rows, intercept):
    X, Y, w = rows
    Z, origin = X[:6], np.full(6, 0.4 if intercept else 0.0)
    plain, other = (
        decompose_moments(moments, KERNEL.block(Z, Z), intercept=intercept) for moments in both(X, Y, w, Z, origin)
    )
    assert_allclose(other.kernel_square, plain.kernel_square, rtol=1e-10)
    for a, b in zip(plain.solve(0.1), other.solve(0.1)):
        assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    left = [s.loo_map(np.array([0.1]))(KERNEL.block(X, Z), Y, w) for s in (plain, other)]
    assert_allclose(*left, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_variance_does_not_depend_on_the_coordinates(rows, intercept):
    X, Y, w = rows
    Z, origin = X[:6], np.full(6, 0.4 if intercept else 0.0)
    plain, other = (
        center_variance(moments, KERNEL.block(Z, Z), 0.1, intercept=intercept)(KERNEL.block(X, Z), np.ones(80))
        for moments in both(X, Y, w, Z, origin)
    )
    assert_allclose(plain, other, rtol=1e-8)


@pytest.mark.parametrize(
    ("d", "gamma", "needed"), [(2, 0.01, True), (2, 0.1, True), (3, 0.3, True), (20, 0.05, False)]
)
def test_coordinates_are_taken_where_kernel_values_lose_digits(rng, d, gamma, needed):
    X = rng.normal(size=(2000, d))
    kernel, Z = RBF(gamma=gamma), X[:100]
    factor = factor_of(kernel.block(Z, Z), tolerance=1e-10)
    Z, double = Z[factor.kept], Precision(np.float64, np.nan, "float64")
    factor = replace(factor, kept=np.arange(len(factor.kept)))
    found = with_coordinates(double, kernel, Z, factor, X, alpha_share=1e-7, intercept=True)
    assert (found.coordinates is not None) == needed
    assert ("in coordinates" in found.words) == needed
    assert "inf" not in found.words


@pytest.mark.parametrize(("d", "gamma"), [(2, 0.01), (3, 0.3), (20, 0.05), (20, 1.0)])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_bound_without_rows_is_above_that_with_rows(rng, d, gamma, intercept):
    X = rng.normal(size=(2000, d))
    kernel = RBF(gamma=gamma)
    factor = factor_of(kernel.block(X[:100], X[:100]), tolerance=1e-10)
    Z, factor = X[factor.kept], replace(factor, kept=np.arange(len(factor.kept)))
    exact = precision._probed(kernel, Z, factor, X, 1e-7, intercept=intercept)
    # Beyond one, all digits are lost, also those of the bounds.
    assert precision.PROBE_MARGIN * precision._without_rows(kernel, Z, factor, X, 1e-7) >= min(exact, 1.0)


def test_rows_are_not_summed_where_the_bound_without_them_is_enough(rng, monkeypatch):
    monkeypatch.setattr(precision, "_probed", None)
    X = rng.normal(size=(2000, 20)).astype(np.float32)
    kernel, Z = RBF(gamma=0.5), X[:100]
    factor = factor_of(kernel.block(Z.astype(float), Z.astype(float)))
    double = Precision(np.float64, np.nan, "float64")
    assert with_coordinates(double, kernel, Z, factor, X, alpha_share=1e-7, intercept=True) is double
