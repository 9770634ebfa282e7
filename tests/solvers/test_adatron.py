"""The kernel adatron solves the dual of a support vector machine without intercept, and says how well."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import LinearSVC

from mercer._solvers.programs import Program, solve
from mercer._solvers.programs.adatron import adatron
from mercer._solvers.programs.losses import Hinge
from mercer.errors import KernelError


@pytest.fixture(scope="module")
def rows():
    """X (60, 2), its Gaussian kernel matrix, and noisy labels -1 and +1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=60) > 0.0, 1.0, -1.0)
    return X, np.exp(-((X[:, None] - X) ** 2).sum(axis=-1)), y


def primal(K, y, C, alpha):
    beta = alpha * y
    return 0.5 * beta @ K @ beta + C * np.maximum(0.0, 1.0 - y * (K @ beta)).sum()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_it_agrees_with_the_interior_point_method(rows, C):
    _, K, y = rows
    found = adatron(K, y, C)
    # Coordinates in which the norm of f is that of the coefficients; no intercept, weight C on each row.
    L = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
    other = solve(Program(Hinge(), L, y, np.full(len(y), C), ridge=1.0, has_intercept=False))
    assert found.converged
    assert_allclose(found.objective, other.objective, rtol=1e-6)
    assert_allclose(K @ (found.alpha * y), L @ other.coef, atol=2e-3)


def test_it_agrees_with_liblinear_on_the_linear_kernel(rows):
    X, _, y = rows
    found = adatron(X @ X.T, y, 0.5)
    # C = 0.5; LinearSVC without intercept and with the hinge loss has the same program.
    other = LinearSVC(C=0.5, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=1_000_000).fit(X, y)
    assert_allclose(X.T @ (found.alpha * y), other.coef_[0], atol=1e-3)


def test_the_gap_is_that_of_the_primal_program(rows):
    _, K, y = rows
    early = adatron(K, y, 10.0, most_epochs=3)
    assert not early.converged
    assert "not solved in 3 epochs" in early.status
    assert_allclose(early.gap, primal(K, y, 10.0, early.alpha) - early.objective, rtol=1e-9)
    late = adatron(K, y, 10.0)
    assert early.objective < late.objective <= primal(K, y, 10.0, late.alpha)
    assert late.gap <= 1e-8 * late.objective


def test_every_epoch_ascends_and_stays_in_the_box(rows):
    _, K, y = rows
    objectives = [adatron(K, y, 2.0, most_epochs=n).objective for n in range(1, 12)]
    assert np.all(np.diff(objectives) >= 0.0)
    alpha = adatron(K, y, 2.0).alpha
    assert alpha.min() == 0.0
    assert alpha.max() == 2.0


def test_it_goes_on_from_where_it_stopped(rows):
    _, K, y = rows
    found = adatron(K, y, 1.0)
    assert adatron(K, y, 1.0, start=found.alpha).epochs == 1


def test_one_row_has_the_margin_one_and_a_row_of_zeros_the_whole_box():
    assert_allclose(adatron(np.array([[4.0]]), np.array([-1.0]), 10.0).alpha, [0.25])
    assert_allclose(adatron(np.diag([4.0, 0.0]), np.array([-1.0, 1.0]), 10.0).alpha, [0.25, 10.0])


def test_the_input_is_left_alone(rows, frozen):
    _, K, y = rows
    adatron(frozen(K), frozen(y), 1.0, start=frozen(np.zeros(len(y))))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.array([0.0, 1.0])}, "y has the label 0"),
        ({"y": np.ones(3)}, "one number for each of 2 rows"),
        ({"K": np.ones((2, 3))}, r"K has shape \(2, 3\); pass a square matrix"),
        ({"C": 0.0}, "C=0"),
        ({"most_epochs": 0}, "most_epochs=0"),
    ],
)
def test_errors_name_the_thing(changes, message):
    given = {"K": np.eye(2), "y": np.array([1.0, -1.0]), "C": 1.0} | changes
    with pytest.raises(ValueError, match=message):
        adatron(given.pop("K"), given.pop("y"), given.pop("C"), **given)


def test_a_negative_diagonal_is_no_kernel():
    with pytest.raises(KernelError, match=r"k\(x, x\) of row 1 is -1"):
        adatron(np.diag([1.0, -1.0]), np.array([1.0, -1.0]), 1.0)
