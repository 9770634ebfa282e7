"""centers="auto": all rows where they are few or matter, and otherwise as many centers as are enough."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer._fitting.memory as memory
import mercer._fitting.run as run
from mercer import KernelFisherClassifier
from mercer._fitting.memory import SearchStage
from mercer.datasets import make_ringnorm
from mercer.errors import NumericalWarning
from mercer.kernels import RBF, Sigmoid


@pytest.fixture
def small(monkeypatch):
    """The question is asked from 300 rows on, with few rows and centers in every stage."""
    monkeypatch.setattr(run, "EVERY_ROW", 300)
    monkeypatch.setattr(
        memory, "SEARCH_STAGES", (SearchStage(400, 60), SearchStage(600, 120), SearchStage(800, 240))
    )


def checkerboard(rng, n, side):
    X = rng.uniform(size=(n, 2))
    return X, (side * X).astype(int).sum(axis=1) % 2


@pytest.mark.slow
def test_ringnorm_needs_few_centers(small):
    X, y = make_ringnorm(1000, random_state=0)
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    assert len(model.X_fit_) <= 1000 / 4


@pytest.mark.slow
def test_a_checkerboard_needs_all_rows(small, rng):
    X, y = checkerboard(rng, 700, 8)
    assert len(KernelFisherClassifier(random_state=0).fit(X, y).X_fit_) == 700


def test_few_rows_are_all_centers_and_nobody_asks(small):
    X, y = make_ringnorm(300, random_state=0)
    assert len(KernelFisherClassifier(random_state=0).fit(X, y).X_fit_) == 300


@pytest.mark.slow
def test_a_fit_with_enough_centers_is_repeated_to_the_bit(small):
    X, y = make_ringnorm(700, random_state=0)
    once, again = (KernelFisherClassifier(random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(once.X_fit_, again.X_fit_)
    np.testing.assert_array_equal(once.dual_coef_, again.dual_coef_)


def noise(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)), rng.integers(0, 2, n)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "centers"), [(1000, 100), (2001, "auto"), (12_000, 100)])
def test_targets_that_are_noise_are_left_out_no_better_than_new_rows_are_predicted(n, centers):
    model = KernelFisherClassifier(RBF(gamma=0.1), centers=centers, random_state=0).fit(*noise(n))
    # Three standard errors, and nothing for the choice of alpha, which hardly gains here.
    rows = len(model.loo_index_)
    assert model.loo_score_ < 0.5 + 3.0 * 0.5 / np.sqrt(rows)


@pytest.mark.slow
def test_weights_count_as_repeated_rows_where_few_centers_are_enough():
    X, y = make_ringnorm(1500, random_state=0)
    repeat = np.random.default_rng(0).integers(1, 4, len(y))
    weighted = KernelFisherClassifier(RBF(gamma=0.05), alpha=1.0, weights="counts", random_state=0)
    weighted.fit(X, y, sample_weight=repeat)
    repeated = KernelFisherClassifier(RBF(gamma=0.05), alpha=1.0, random_state=0)
    repeated.fit(np.repeat(X, repeat, axis=0), np.repeat(y, repeat))
    assert len(weighted.X_fit_) == len(repeated.X_fit_)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["indefinite", "folds", "float32"])
def test_all_rows_are_centers_where_few_would_be_another_model(case):
    X, y = make_ringnorm(2100, random_state=0)
    parameters = {"alpha": 1.0, "kernel": Sigmoid(gamma=0.01) if case == "indefinite" else RBF(gamma=0.05)}
    if case == "folds":
        parameters["cv"] = 10
    X = X.astype(np.float32) if case == "float32" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        model = KernelFisherClassifier(**parameters, random_state=0).fit(X, y)
    assert len(model.X_fit_) == 2100


@pytest.mark.slow
@pytest.mark.parametrize("case", ["double", "float32", "folds"])
def test_rows_stay_centers_beyond_a_limit_only_where_so_many_matter(monkeypatch, case):
    monkeypatch.setattr("mercer._fitting.run.EXACT_ROWS", 2100)
    monkeypatch.setattr("mercer._fitting.run.MATTERING_ROWS", 2600)
    # A pattern of 38 x 38 fields.
    X = np.random.default_rng(0).uniform(size=(2400, 2))
    y = (np.sin(120.0 * X).prod(axis=1) > 0).astype(int)
    model = KernelFisherClassifier(RBF(gamma=4000.0), alpha=0.1, cv=5 if case == "folds" else None, random_state=0)
    model.fit(X.astype(np.float32) if case == "float32" else X, y)
    assert (len(model.X_fit_) == 2400) == (case == "double")
