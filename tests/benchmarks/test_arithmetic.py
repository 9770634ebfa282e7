"""What the benchmark scripts compute themselves is right."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def test_a_step_is_growth_beyond_the_rows(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    cost = importlib.import_module("cost")
    assert cost.step_and_power([1000, 2000], [1.0, 8.0]) == pytest.approx((4.0, 3.0))
    assert cost.step_and_power([5000, 5001], [1.0, 0.25]) == (pytest.approx(0.25, rel=1e-3), None)


def test_the_bare_loop_solves_the_normal_equations(monkeypatch, rng):
    monkeypatch.syspath_prepend(SCRIPTS)
    common = importlib.import_module("common")
    X, y = rng.normal(size=(common.BLOCK + 100, 3)), rng.choice([-1, 1], common.BLOCK + 100)
    Z = X[:20]
    K, K_centers = rbf_kernel(X, Z, gamma=0.3), rbf_kernel(Z, gamma=0.3)
    expected = np.linalg.solve(K.T @ K + 2.0 * K_centers, K.T @ y)
    # The condition number of the matrix is near 1e6, so rounding may move the solution by some 1e-9.
    assert_allclose(common.bare_fit(X, y, Z, gamma=0.3, alpha=2.0), expected, rtol=1e-8)
