"""Kernel logistic regression with every row a center: the minimum, and what leaving rows out of it changes."""

import numpy as np
import pytest
import scipy.optimize
from scipy.special import expit

from mercer._solvers.logistic import LogisticFits
from mercer._solvers.spectrum import Coefficients, Observations
from mercer.errors import NumericalError
from mercer.kernels import RBF
from mercer.rows._distinct import Distinct


def problem(n=60, seed=0, separation=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    score = separation * (np.sin(2.0 * X[:, 0]) + X[:, 1]) + rng.logistic(size=n) * (separation < 10.0)
    Y = np.where(score > 0.0, 1.0, -1.0)[:, None]
    return RBF(gamma=0.5).block(X, X), Y


def observed(Y, point=None, weight=None, unit=None):
    n = len(Y)
    point = np.arange(n) if point is None else point
    first = np.unique(point, return_index=True)[1]
    weight = np.ones(n) if weight is None else weight
    return Observations(Y, weight, weight if unit is None else unit, Distinct(first, point))


def minimum(K, y, weight, alpha, *, intercept=True):
    """Outputs at the minimum, by a general method; y = -1, +1."""
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def objective(theta):
        f = root @ theta[:-1] + intercept * theta[-1]
        slope = -weight * y * expit(-y * f)
        gradient = np.append(root.T @ slope + alpha * theta[:-1], intercept * slope.sum())
        return weight @ np.logaddexp(0.0, -y * f) + 0.5 * alpha * theta[:-1] @ theta[:-1], gradient

    found = scipy.optimize.minimize(
        objective, np.zeros(len(K) + 1), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}
    )
    return root @ found.x[:-1] + intercept * found.x[-1]


@pytest.mark.parametrize("alpha", [1e-2, 0.3, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_minimum(alpha, intercept):
    K, Y = problem()
    fit = LogisticFits(K, observed(Y), intercept).at(alpha)
    f = K @ fit.solution.coef + fit.solution.intercept
    np.testing.assert_allclose(f[:, 0], minimum(K, Y[:, 0], np.ones(60), alpha, intercept=intercept), atol=2e-4)
    np.testing.assert_allclose(fit.fitted, f, atol=1e-6)
    if not intercept:
        assert fit.solution.intercept == 0.0


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_rows_left_out(alpha):
    """One step without a row comes close to a fit without it: within a few percent of what the row changes."""
    K, Y = problem()
    fit = LogisticFits(K, observed(Y), intercept=True).at(alpha)
    without = []
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        part = LogisticFits(K[np.ix_(rest, rest)], observed(Y[rest]), intercept=True).at(alpha).solution
        without.append(K[i, rest] @ part.coef + part.intercept)
    changes = np.array(without) - fit.fitted
    assert np.abs(fit.loo - without).max() < 0.15 * np.abs(changes).max()
    loss = [np.logaddexp(0.0, -Y * f).mean() for f in (fit.fitted, fit.loo, np.array(without))]
    assert abs(loss[1] - loss[2]) < 0.06 * (loss[2] - loss[0])


def test_folds_left_out():
    K, Y = problem()
    fold = np.arange(60) % 20
    fit = LogisticFits(K, observed(Y), intercept=True, fold=fold).at(1.0)
    changes, errors = [], []
    for each in range(20):
        held, rest = np.flatnonzero(fold == each), np.flatnonzero(fold != each)
        part = LogisticFits(K[np.ix_(rest, rest)], observed(Y[rest]), intercept=True).at(1.0).solution
        f = K[np.ix_(held, rest)] @ part.coef + part.intercept
        changes.append(f - fit.fitted[held])
        errors.append(f - fit.loo[held])
    assert np.abs(errors).max() < 0.15 * np.abs(changes).max()


def test_a_weight_of_two_is_the_row_twice():
    K, Y = problem(n=40)
    twice = np.concatenate([np.arange(40), np.arange(10)])
    weight = np.where(np.arange(40) < 10, 2.0, 1.0)
    weighted = LogisticFits(K, observed(Y, weight=weight, unit=np.ones(40)), intercept=True).at(0.2)
    repeated = LogisticFits(K, observed(Y[twice], point=twice), intercept=True).at(0.2)
    np.testing.assert_allclose(repeated.loo, weighted.loo[twice], atol=1e-9)
    np.testing.assert_allclose(repeated.solution.coef, weighted.solution.coef, atol=1e-9)


def test_copies_with_different_labels():
    """Rows at one point share an output, and each is left out with its own label."""
    K, Y = problem(n=30)
    point = np.concatenate([np.arange(30), [0]])
    both = np.concatenate([Y, -Y[:1]])
    fit = LogisticFits(K, observed(both, point=point), intercept=True).at(0.2)
    assert fit.fitted[0] == fit.fitted[-1]
    # Without a row its point goes over to the label that stays.
    assert (fit.loo[0, 0] - fit.fitted[0, 0]) * both[0, 0] < 0.0
    assert (fit.loo[-1, 0] - fit.fitted[-1, 0]) * both[-1, 0] < 0.0


def test_from_another_alpha():
    K, Y = problem()
    fits = LogisticFits(K, observed(Y), intercept=True)
    near = fits.at(0.25, fits.at(1.0).solution)
    np.testing.assert_allclose(near.loo, fits.at(0.25).loo, atol=1e-3)


def test_classes_that_can_be_separated():
    """Large outputs, hardly any curvature: everything stays finite."""
    K, Y = problem(separation=1e6)
    fit = LogisticFits(K, observed(Y), intercept=True).at(1e-6)
    assert (fit.fitted * Y > 0).all()
    assert np.isfinite(fit.loo).all()


def test_a_matrix_that_is_not_definite():
    K, Y = problem()
    with pytest.raises(NumericalError, match=r"alpha=1\.0e-03 is too small"):
        LogisticFits(K - 2.0 * np.eye(60), observed(Y), intercept=True).at(1e-3)


def test_from_outputs_that_are_certain_and_wrong():
    """Where hardly any curvature is left, steps are too long: the fit begins again."""
    K, Y = problem()
    fits = LogisticFits(K, observed(Y), intercept=True)
    cold = fits.at(1e-3)
    far = Coefficients(-1e3 * cold.solution.coef, -1e3 * cold.solution.intercept)
    np.testing.assert_allclose(fits.at(1e-3, far).loo, cold.loo, atol=1e-2)
