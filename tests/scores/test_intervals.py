"""Jackknife+ is its definition: sorted leave-one-out predictions, by refitting."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer.rows import distinct_rows
from mercer.scores import LeftOut, jackknife_plus, prediction_intervals
from mercer.solvers import Observations, decompose, leave_out, make_smoother, solve


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
    loo = leave_out(spectrum, observations, np.array([alpha]), fold)[0]
    solution = solve(spectrum, observations, alpha)
    F = rbf(Z, points) @ solution.coef + solution.intercept
    L = make_smoother(rbf(points, points), observations.point_weight, alpha, intercept=True).weights(
        rbf(Z, points)
    )
    leaving = unit if fold is None else weight
    share = leaving / observations.point_weight[rows.point]
    found = LeftOut(y[:, None] - loo, weight, np.ones(14), rows.point, share, fold).outputs_without(F[:, 0], L, 0)
    for i in range(14):
        away = unit * (np.arange(14) == i) if fold is None else weight * (fold == fold[i])
        coef, intercept = refit(rbf(X, X), y, weight - away, alpha)
        assert_allclose(found[:, i], rbf(Z, X) @ coef + intercept, rtol=1e-9, atol=1e-9)


def test_intervals_of_several_targets_are_those_of_each(rng):
    F, L = rng.normal(size=(4, 2)), rng.normal(size=(4, 9))
    residual, weight = rng.normal(size=(9, 2)), rng.uniform(0.5, 2.0, 9)
    left_out = LeftOut(residual, weight, np.ones(9), np.arange(9), np.full(9, 0.5), None)
    both = prediction_intervals(F, L, left_out, 0.8)
    for q in (0, 1):
        alone = LeftOut(residual[:, [q]], weight, np.ones(9), np.arange(9), np.full(9, 0.5), None)
        assert_allclose(both[:, [q]], prediction_intervals(F[:, [q]], L, alone, 0.8))
