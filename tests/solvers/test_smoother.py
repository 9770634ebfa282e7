"""What a prediction takes from each observation, and how sure it is."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from mercer._solvers.smoother import make_smoother
from mercer._solvers.spectrum import Observations, decompose, solve
from mercer.rows._distinct import every_row


def rbf(X, Z):
    return np.exp(-0.5 * ((X[:, None] - Z) ** 2).sum(axis=2))


@pytest.fixture
def rows(rng):
    return rng.normal(size=(30, 2)), rng.normal(size=(12, 2))


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_times_targets_are_the_prediction(rng, rows, intercept, alpha):
    X, Z = rows
    y, weight = rng.normal(size=(30, 1)), rng.uniform(0.2, 3.0, 30)
    observations = Observations(y, weight, weight, every_row(30))
    found = solve(decompose(rbf(X, X), weight, intercept=intercept), observations, alpha)
    L = make_smoother(rbf(X, X), weight, alpha, intercept=intercept).weights(rbf(Z, X))
    # Both solve with a matrix of condition |K| / alpha.
    assert_allclose(L @ y, rbf(Z, X) @ found.coef + found.intercept, atol=1e-13 + 1e-14 / alpha)


def test_weights_sum_to_one_where_there_is_an_intercept(rows):
    X, Z = rows
    L = make_smoother(rbf(X, X), np.ones(30), 0.1, intercept=True).weights(rbf(Z, X))
    assert_allclose(L.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_variance_is_that_of_a_gaussian_process(rows, alpha):
    X, Z = rows
    process = GaussianProcessRegressor(RBF(1.0), alpha=alpha, optimizer=None).fit(X, np.zeros(30))
    _, std = process.predict(Z, return_std=True)
    found = make_smoother(rbf(X, X), np.ones(30), alpha, intercept=False).variance(rbf(Z, X), np.ones(12))
    assert_allclose(found * alpha, std**2, rtol=1e-9, atol=1e-13)


def test_variance_with_intercept_is_the_limit_of_a_wide_prior_on_it(rows):
    X, Z = rows
    wide = 1e6
    flat = make_smoother(rbf(X, X), np.ones(30), 0.1, intercept=True).variance(rbf(Z, X), np.ones(12))
    prior = make_smoother(rbf(X, X) + wide, np.ones(30), 0.1, intercept=False)
    # The prior differs by 1 / wide, and costs six digits.
    assert_allclose(prior.variance(rbf(Z, X) + wide, np.full(12, 1.0 + wide)), flat, rtol=1e-5)


def test_variance_is_never_negative_and_grows_away_from_the_rows(rows):
    X, _ = rows
    found = make_smoother(rbf(X, X), np.ones(30), 1e-10, intercept=True)
    at_rows = found.variance(rbf(X, X), np.ones(30))
    assert (at_rows >= 0).all()
    assert found.variance(rbf(X[:1] + 50.0, X), np.ones(1))[0] > at_rows.max()


def test_row_of_weight_two_is_an_observation_of_half_the_noise(rows):
    X, Z = rows
    twice = np.vstack([X, X[:1]])
    weight = np.r_[2.0, np.ones(29)]
    apart = make_smoother(rbf(twice, twice), np.ones(31), 0.5, intercept=True)
    merged = make_smoother(rbf(X, X), weight, 0.5, intercept=True)
    own = np.ones(12)
    assert_allclose(apart.variance(rbf(Z, twice), own), merged.variance(rbf(Z, X), own), rtol=1e-10)
