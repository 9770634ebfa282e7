"""Bounds are never below what they bound, over many draws, and have the constants of their references."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from mercer._solvers.programs.adatron import adatron
from mercer.bounds import (
    boosting_bound,
    eigenvalue_deviation,
    function_norm,
    functional_margins,
    geometric_margins,
    hoeffding,
    leading_eigenvalues,
    leave_one_out_bound,
    margin_bound,
    mcdiarmid,
    novelty_bound,
    rademacher,
    rademacher_bound,
    rademacher_finite,
    support_vector_bound,
)
from mercer.errors import KernelError


def gaussian(X, Z):
    return np.exp(-((X[:, None] - Z) ** 2).sum(axis=-1))


def draw(rng, n):
    """Rows (n, 2) and noisy labels of an exclusive or."""
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def left_out_error(K, y, C, alpha):
    """The share of rows that machines fitted to the other rows get wrong; each begins with the alpha of all."""
    wrong = 0
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        K_others = K[np.ix_(others, others)]
        refitted = adatron(K_others, y[others], C, tolerance=1e-5, start=alpha[others])
        wrong += y[i] * (K[i, others] @ (refitted.alpha * y[others])) <= 0.0
    return wrong / len(y)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(20))
def test_leave_one_out_error_is_below_its_bound_and_that_below_the_share_of_support_vectors(seed):
    rng = np.random.default_rng(seed)
    X, y = draw(rng, 20)
    K, C = gaussian(X, X), 10.0 ** rng.uniform(-1.0, 0.7)
    found = adatron(K, y, C)
    assert found.converged
    bound = leave_one_out_bound(K, y, found.alpha)
    assert left_out_error(K, y, C, found.alpha) <= bound <= support_vector_bound(found.alpha)


def test_with_an_intercept_the_leave_one_out_bound_is_false():
    """Labels are noise: without a row its class is the smaller one, and the intercept turns against it."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(16, 2)), np.tile([-1.0, 1.0], 8)
    K = gaussian(0.3 * X, 0.3 * X)
    coef, intercept = with_intercept(K, y)
    bound = (y * (K @ coef + intercept) - np.diag(K) * np.abs(coef) <= 0.0).mean()
    wrong = []
    for i in range(16):
        others = np.arange(16) != i
        coef, intercept = with_intercept(K[np.ix_(others, others)], y[others])
        wrong.append(y[i] * (K[i, others] @ coef + intercept) <= 0.0)
    assert np.mean(wrong) > bound


def with_intercept(K, y):
    """Coefficients (m,) and intercept of a support vector machine."""
    machine = SVC(C=0.1, kernel="precomputed", tol=1e-8).fit(K, y)
    coef = np.zeros(len(y))
    coef[machine.support_] = machine.dual_coef_[0]
    return coef, machine.intercept_[0]


def test_leave_one_out_bound_is_the_share_of_rows_the_others_get_wrong(rng):
    X, y = draw(rng, 30)
    K, alpha = gaussian(X, X), rng.uniform(size=30)
    wrong = [y[i] * sum(alpha[j] * y[j] * K[i, j] for j in range(30) if j != i) <= 0.0 for i in range(30)]
    assert leave_one_out_bound(K, y, alpha) == np.mean(wrong)


def test_complexity_by_drawing_is_below_the_bound_by_the_trace(rng):
    for n in (5, 30, 100):
        K = gaussian(*[rng.normal(size=(n, 2))] * 2)
        drawn, bound = rademacher(K, 3.0, draws=2000, random_state=0), rademacher_bound(K, 3.0)
        # The mean of sqrt(s'Ks) is at most the root of its mean, up to the error of the draws.
        assert 0.5 * bound < drawn <= bound * (1.0 + 1.0 / np.sqrt(2000))
        assert drawn == rademacher(K, 3.0, draws=2000, random_state=0)


def test_complexity_is_exact_where_the_rows_are_orthogonal():
    assert_allclose(rademacher(np.eye(25), 2.0, draws=3, random_state=0), rademacher_bound(np.eye(25), 2.0))
    assert_allclose(rademacher_bound(np.eye(25), 2.0), 2.0 * 2.0 / 5.0)


def test_complexity_of_a_ball_is_that_of_many_functions_on_its_surface(rng):
    """In the plane the supremum over a circle is nearly that over 200 of its directions."""
    X = rng.normal(size=(40, 2))
    angle = np.linspace(0.0, np.pi, 200)
    H = X @ np.array([np.cos(angle), np.sin(angle)])
    ball = rademacher(X @ X.T, 1.0, draws=500, random_state=3)
    assert_allclose(rademacher_finite(H, draws=500, random_state=3), ball, rtol=1e-3)


def test_margins_do_not_depend_on_the_scale_of_the_function(rng):
    X, y = draw(rng, 30)
    K, coef = gaussian(X, X), rng.normal(size=30)
    f, norm = K @ coef, function_norm(K, coef)
    assert_allclose(functional_margins(3.0 * f, y), 3.0 * functional_margins(f, y))
    assert_allclose(geometric_margins(3.0 * f, y, function_norm(K, 3.0 * coef)), geometric_margins(f, y, norm))


def test_a_geometric_margin_is_a_distance():
    """The linear kernel: the row (2, 0) is 2 away from the line x_1 = 0, whatever the length of w."""
    X = np.array([[2.0, 0.0], [0.0, 1.0]])
    coef = np.array([5.0, 0.0])
    margins = geometric_margins(X @ X.T @ coef, np.array([1.0, 1.0]), function_norm(X @ X.T, coef))
    assert_allclose(margins, [2.0, 0.0])


@pytest.mark.parametrize("seed", range(5))
def test_the_margin_bound_is_above_the_test_error(seed):
    """With the tighter contraction too, and with few features and a wide margin it says something."""
    rng = np.random.default_rng(seed)
    (X, y), (X_new, y_new) = well_separated(rng, 1500), well_separated(rng, 5000)
    w = (y @ X) / len(y)
    f, norm = X @ w, float(np.linalg.norm(w))
    error = (y_new * (X_new @ w) <= 0.0).mean()
    for contraction in (1.0, 2.0):
        bound = margin_bound(X @ X.T, y, f, norm=norm, margin=0.5, contraction=contraction)
        assert error <= bound.value
        assert not bound.vacuous


def well_separated(rng, n):
    """Rows (n, 2) on two caps of the unit circle."""
    y = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
    angle = rng.normal(scale=0.4, size=n)
    return y[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), y


def test_the_margin_bound_has_the_printed_constants():
    """K = I: slack / (m margin) + 4 / (margin sqrt(m)) + 3 sqrt(ln(2 / delta) / (2 m))."""
    y = np.ones(100)
    bound = margin_bound(np.eye(100), y, np.full(100, 0.2), norm=2.0, margin=0.4, delta=0.1)
    assert_allclose(bound.observed, 0.75)
    assert_allclose(bound.complexity, 4.0 / (0.4 * 10.0))
    assert_allclose(bound.chance, 3.0 * np.sqrt(np.log(20.0) / 200.0))
    assert bound.vacuous
    half = margin_bound(np.eye(100), y, np.full(100, 0.2), norm=2.0, margin=0.4, delta=0.1, contraction=1.0)
    assert_allclose(half.complexity, 0.5 * bound.complexity)


def test_the_first_term_of_a_canonical_machine_is_its_mean_hinge_loss(rng):
    X, y = draw(rng, 40)
    K = gaussian(X, X)
    coef = adatron(K, y, 1.0).alpha * y
    f, norm = K @ coef, function_norm(K, coef)
    bound = margin_bound(K, y, f, norm=norm, margin=1.0 / norm)
    assert_allclose(bound.observed, np.maximum(0.0, 1.0 - y * f).mean())


def test_the_boosting_bound_is_above_the_test_error(rng):
    """Stumps with signs of coordinates: two functions, whose complexity is small."""
    X, X_new = rng.normal(size=(2, 1000, 2))
    H, H_new = np.sign(X), np.sign(X_new)
    y, y_new = (np.where(rng.uniform(size=1000) < 0.95, 1.0, -1.0) * h[:, 0] for h in (H, H_new))
    a = np.array([1.0, 0.1])
    complexity = rademacher_finite(H, random_state=0)
    bound = boosting_bound(H @ a, y, total=1.1, complexity=complexity)
    assert (y_new * (H_new @ a) <= 0.0).mean() <= bound.value < 1.0
    assert_allclose(bound.complexity, 1.1 * complexity)


def test_the_novelty_bound_is_above_the_share_of_new_rows_outside(rng):
    X, X_new = rng.uniform(-0.5, 0.5, size=(2, 3000, 2))
    center = X.mean(axis=0)
    d2, d2_new = (((Z - center) ** 2).sum(axis=1) for Z in (X, X_new))
    bound = novelty_bound(d2, radius2=0.2, margin=0.25, largest=0.5)
    assert (d2_new > 0.2 + 0.25).mean() <= bound.value < 1.0
    assert_allclose(bound.complexity, 6.0 * 0.5 / (0.25 * np.sqrt(3000.0)))


def test_inequalities_hold_in_simulation(rng):
    means = rng.integers(2, size=(20_000, 50)).mean(axis=1)
    assert (np.abs(means - 0.5) >= hoeffding(50, 0.1)).mean() <= 0.1
    assert (means - 0.5 >= mcdiarmid(np.full(50, 1.0 / 50.0), 0.1)).mean() <= 0.1
    assert_allclose(hoeffding(50, 0.1, width=3.0), mcdiarmid(np.full(50, 3.0 / 50.0), 0.05))


def test_leading_eigenvalues_are_those_of_the_covariance(rng):
    X = rng.normal(size=(30, 4)) * [3.0, 2.0, 1.0, 0.5] + 5.0
    values = np.sort(np.linalg.eigvalsh(np.cov(X.T)))
    for k in (1, 2, 4):
        assert_allclose(leading_eigenvalues(X @ X.T, k), values[-k:].sum())


def test_eigenvalues_change_by_less_than_the_bound_when_a_row_is_exchanged(rng):
    X = on_the_sphere(rng, 40)
    K = X @ X.T
    for i in range(20):
        other = X.copy()
        other[i] = -X[i]
        for k in (1, 2):
            change = abs(leading_eigenvalues(other @ other.T, k) - leading_eigenvalues(K, k))
            assert change <= 8.0 / 38.0


@pytest.mark.slow
def test_eigenvalues_deviate_from_their_mean_by_less_than_the_bound(rng):
    sums = [leading_eigenvalues(X @ X.T, 1) for X in (on_the_sphere(rng, 200) for _ in range(60))]
    assert np.abs(sums - np.mean(sums)).max() < eigenvalue_deviation(200, 1.0, 0.1)
    assert_allclose(eigenvalue_deviation(1000, 1.0, 0.05), np.sqrt(32.0 * 1000.0 * np.log(20.0)) / 998.0)


def on_the_sphere(rng, n):
    X = rng.normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1)[:, None]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: support_vector_bound(np.array([0.5, -1.0])), "alpha has the entry -1"),
        (lambda: leave_one_out_bound(np.eye(2), np.array([1.0, 3.0]), np.ones(2)), "y has the label 3"),
        (lambda: margin_bound(np.eye(2), np.ones(2), np.ones(2), norm=0.0, margin=1.0), "norm=0"),
        (lambda: margin_bound(np.eye(3), np.ones(2), np.ones(2), norm=1.0, margin=1.0), "each of 3 rows"),
        (lambda: hoeffding(10, 1.0), "delta=1.0; it must be between 0 and 1"),
        (lambda: novelty_bound(np.ones(3), radius2=2.0, margin=1.0, largest=1.0), "between 0 and largest=1"),
        (lambda: rademacher(np.eye(2), 1.0, draws=0), "draws=0"),
        (lambda: eigenvalue_deviation(2, 1.0), "m=2; it must be an integer >= 3"),
    ],
)
def test_errors_name_the_thing(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_indefinite_matrix_is_no_kernel():
    with pytest.raises(KernelError, match="positive semidefinite"):
        rademacher(np.array([[0.0, 1.0], [1.0, 0.0]]), 1.0, random_state=0)
    with pytest.raises(KernelError, match=r"k\(x, x\) of row 0 is -1"):
        rademacher_bound(-np.eye(2), 1.0)
