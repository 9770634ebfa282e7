"""Jackknife+ is its definition: sorted leave-one-out predictions, by refitting."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer._scores.uncertainty.intervals import (
    LooResults,
    jackknife_plus,
    least_rows,
    prediction_intervals,
    selection_bias,
)
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.smoother import HeldOut, make_smoother
from mercer._solvers.spectrum import Observations, decompose, solve
from mercer.rows._distinct import distinct_rows


def by_sorting(outputs, residual, coverage):
    """Barber et al. (2021), Eqs. (1.2) and (1.3), for one x; coverage is a fraction."""
    n, miss = len(residual), 1 - coverage
    low, high = floor(miss * (n + 1)), ceil((1 - miss) * (n + 1))
    lower = np.sort(outputs - np.abs(residual))[low - 1] if low >= 1 else -np.inf
    upper = np.sort(outputs + np.abs(residual))[high - 1] if high <= n else np.inf
    return [lower, upper]


@given(n=st.integers(1, 40), percent=st.integers(1, 99), seed=st.integers(0, 1000))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_jackknife_plus_is_its_definition(n, percent, seed):
    rng = np.random.default_rng(seed)
    outputs, residual = rng.normal(size=(3, n)), rng.normal(size=n)
    found = jackknife_plus(outputs, residual, np.ones(n), percent / 100)
    assert_array_equal(found, [by_sorting(row, residual, Fraction(percent, 100)) for row in outputs])


@given(repeats=st.lists(st.integers(1, 3), min_size=2, max_size=15), percent=st.integers(1, 99))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_weights_are_repeats(repeats, percent):
    rng = np.random.default_rng(0)
    n = len(repeats)
    outputs, residual = rng.normal(size=(3, n)), rng.normal(size=n)
    weighted = jackknife_plus(outputs, residual, np.array(repeats, float), percent / 100)
    rows = np.repeat(np.arange(n), repeats)
    repeated = jackknife_plus(outputs[:, rows], residual[rows], np.ones(len(rows)), percent / 100)
    assert_array_equal(weighted, repeated)


def rbf(X, Z):
    return np.exp(-2.0 * (X - Z.T) ** 2)


def refit(K, y, weight, alpha):
    """Coefficients and intercept of weighted kernel ridge with rows of weight zero left out."""
    used = np.flatnonzero(weight)
    n = len(used)
    A = np.ones((n + 1, n + 1))
    A[:n, :n] = K[np.ix_(used, used)] + alpha * np.diag(1 / weight[used])
    A[n, n] = 0.0
    solution = np.linalg.solve(A, np.r_[y[used], 0.0])
    coef = np.zeros(len(K))
    coef[used] = solution[:n]
    return coef, solution[n]


@pytest.mark.parametrize("fold", [None, np.arange(14) % 4], ids=["rows", "folds"])
def test_outputs_without_a_row_are_those_of_refitting(rng, fold):
    # The last two rows are copies of the first two.
    X = rng.normal(size=(12, 1))
    X, Z, alpha = np.vstack([X, X[:2]]), rng.normal(size=(5, 1)), 0.1
    y, weight = rng.normal(size=14), rng.uniform(0.3, 2.0, 14)
    rows, unit = distinct_rows(X), np.minimum(weight, 1.0)
    observations = Observations(y[:, None], weight, unit, rows)
    points = X[rows.first]
    spectrum = decompose(rbf(points, points), observations.point_weight)
    loo = loo_outputs(spectrum, observations, np.array([alpha]), fold)[0]
    solution = solve(spectrum, observations, alpha)
    F = rbf(Z, points) @ solution.coef + solution.intercept
    L = make_smoother(rbf(points, points), observations.point_weight, alpha, intercept=True).weights(
        rbf(Z, points)
    )
    leaving = unit if fold is None else weight
    share = leaving / observations.point_weight[rows.point]
    loo_results = LooResults(y[:, None] - loo, weight, np.ones(14), leaving, rows.point, share, fold)
    found = loo_results.outputs_without(F[:, 0], L, 0)
    for i in range(14):
        away = unit * (np.arange(14) == i) if fold is None else weight * (fold == fold[i])
        coef, intercept = refit(rbf(X, X), y, weight - away, alpha)
        assert_allclose(found[:, i], rbf(Z, X) @ coef + intercept, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("fold", [None, np.arange(14) % 4], ids=["rows", "folds"])
@pytest.mark.parametrize("intercept", [True, False])
def test_variance_without_a_row_is_that_of_refitting(rng, fold, intercept):
    # The last two rows are copies of the first two.
    X, alpha = rng.normal(size=(12, 1)), 0.1
    X = np.vstack([X, X[:2]])
    weight = rng.uniform(0.3, 2.0, 14)
    rows, unit = distinct_rows(X), np.minimum(weight, 1.0)
    point_weight, points = np.bincount(rows.point, weight), X[rows.first]
    share = (unit if fold is None else weight) / point_weight[rows.point]
    smoother = make_smoother(rbf(points, points), point_weight, alpha, intercept=intercept)
    found = smoother.variance_without(HeldOut(rows.point, share, fold, point_weight))
    for i in range(14):
        away = unit * (np.arange(14) == i) if fold is None else weight * (fold == fold[i])
        rest = np.flatnonzero(weight - away > 1e-12)
        without = make_smoother(rbf(X[rest], X[rest]), (weight - away)[rest], alpha, intercept=intercept)
        expected = without.variance(rbf(X[[i]], X[rest]), np.ones(1))
        assert_allclose(found[i], expected[0], rtol=1e-9)


@pytest.mark.parametrize(("alpha", "weight"), [(1e-9, 1.0), (1e-12, 1.0), (1e-6, 1e8), (1e-12, 1e8)])
def test_variance_without_a_row_is_exact_where_the_fit_interpolates(rng, alpha, weight):
    # One minus the leverage is 1e-9 to 1e-20 here: computed as a difference it would have seven digits or none.
    X, weight = rng.normal(size=(8, 1)), np.full(8, weight)
    K = np.exp(-0.5 * np.abs(X - X.T))
    smoother = make_smoother(K, weight, alpha, intercept=True)
    found = smoother.variance_without(HeldOut(np.arange(8), np.ones(8), None, weight))
    for i in range(8):
        rest = np.arange(8) != i
        without = make_smoother(K[np.ix_(rest, rest)], weight[rest], alpha, intercept=True)
        assert_allclose(found[i], without.variance(K[[i]][:, rest], np.ones(1))[0], rtol=1e-10)


def test_intervals_of_several_targets_are_those_of_each(rng):
    F, L = rng.normal(size=(4, 2)), rng.normal(size=(4, 9))
    residual, weight = rng.normal(size=(9, 2)), rng.uniform(0.5, 2.0, 9)
    size, scale = rng.uniform(size=(9, 2)), rng.uniform(size=(4, 2))
    ones, half = np.ones(9), np.full(9, 0.5)
    loo_results = LooResults(residual, weight, ones, half, np.arange(9), half, None)
    both = prediction_intervals(F, L, loo_results, size, scale, 0.8)
    for q in (0, 1):
        alone = LooResults(residual[:, [q]], weight, ones, half, np.arange(9), half, None)
        found = prediction_intervals(F[:, [q]], L, alone, size[:, [q]], scale[:, [q]], 0.8)
        assert_allclose(both[:, [q]], found)


def test_selection_bias_is_a_quotient_of_medians_and_never_below_one():
    residual = np.array([[1.0, 2.0, 0.0], [-2.0, 3.0, 0.0]])
    nested = np.array([[3.0, 1.0, 1.0], [90.0, 1.0, 1.0], [-1.0, 2.0, 1.0]])
    count = np.array([1.0, 2.0])
    loo_results = LooResults(residual, count, count, np.ones(2), np.arange(2), 1.0 / count, None)
    # Targets that are predicted exactly have no residuals that could be too small.
    assert_array_equal(selection_bias(loo_results, nested), [1.5, 1.0, 1.0])


@pytest.mark.parametrize(("coverage", "least"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99)])
def test_least_number_of_rows_has_finite_intervals(coverage, least):
    assert least_rows(coverage) == least
    for n, finite in ((least, True), (least - 1, False)):
        ends = jackknife_plus(np.zeros((1, n)), np.ones(n), np.ones(n), coverage)
        assert np.isfinite(ends).all() == finite
