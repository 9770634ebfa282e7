"""Adaptive margin machines: a linear program with a solution, regularized by what a row does without."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer._solvers.programs.adaptive_margin import adaptive_margin


def gaussian(X, Z):
    """Kernel values for the width sigma = 0.7."""
    return np.exp(-((X[:, None] - Z) ** 2).sum(axis=-1) / (2.0 * 0.7**2))


def draw(rng, n):
    """Rows (n, 2) and the noisy side of a line."""
    X = rng.normal(size=(n, 2))
    return X, np.where(X @ [1.0, 0.5] + 0.8 * rng.normal(size=n) > 0.0, 1.0, -1.0)


@pytest.fixture(scope="module")
def toys():
    """Eight sets of 40 rows and 1000 new ones."""
    rngs = [np.random.default_rng(seed) for seed in range(8)]
    return [(*draw(rng, 40), *draw(rng, 1000)) for rng in rngs]


def errors(toys, share):
    """Mean training error, test error, largest coefficient and number of coefficients."""
    rows = []
    for X, y, X_new, y_new in toys:
        alpha = adaptive_margin(gaussian(X, X), y, share).alpha
        train, test = (
            (label * (gaussian(Z, X) @ (alpha * y)) <= 0.0).mean() for Z, label in ((X, y), (X_new, y_new))
        )
        rows.append([train, test, alpha.max(), (alpha > 1e-9).sum()])
    return np.mean(rows, axis=0)


def test_without_a_share_rows_are_learned_by_heart(toys):
    train, _, largest, _ = errors(toys, 0.0)
    assert train == 0.0
    assert largest > 100.0


def test_the_leave_one_out_machine_has_fewer_coefficients_and_errors(toys):
    _, test, _, used = errors(toys, 0.0)
    train_of_others, test_of_others, _, used_of_others = errors(toys, 1.0)
    assert train_of_others > 0.0
    assert test_of_others < test
    assert used_of_others < used


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 5.0])
def test_the_solution_is_feasible_and_no_better_one_exists(toys, share):
    X, y, _, _ = toys[0]
    K = gaussian(X, X)
    found = adaptive_margin(K, y, share)
    margins = y * (K @ (found.alpha * y)) - share * np.diag(K) * found.alpha
    assert found.alpha.min() >= 0.0
    assert_allclose(found.slack, np.maximum(0.0, 1.0 - margins), atol=1e-9)
    # alpha = 0 costs one for each row.
    assert found.slack.sum() <= len(y)
    assert abs(found.gap) < 1e-6


def test_a_row_that_does_without_itself_needs_the_others():
    """With K = I no row is near another: all slack stays where nothing of the own value is left."""
    y = np.array([1.0, -1.0, 1.0])
    assert_allclose(adaptive_margin(np.eye(3), y, 1.0).slack, 1.0)
    assert_allclose(adaptive_margin(np.eye(3), y, 0.5).slack, 0.0, atol=1e-9)
    assert_allclose(adaptive_margin(np.eye(3), y, 0.5).alpha, 2.0)


def test_errors_name_the_thing():
    with pytest.raises(ValueError, match=r"share=-1; it must be a number >= 0"):
        adaptive_margin(np.eye(2), np.array([1.0, -1.0]), -1)
    with pytest.raises(ValueError, match="y has the label 2"):
        adaptive_margin(np.eye(2), np.array([1.0, 2.0]))
