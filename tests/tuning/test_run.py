"""The way of a fit is open: it needs no estimator, and another fit is a function and two lines."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mercer._fitting.run as run
from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._fitting.data import RowSchema, TrainingData
from mercer._fitting.spec import FitSpec
from mercer._scores.targets import RealTargets
from mercer.kernels import RBF
from mercer.rows import MemoryRows

SPEC = FitSpec(RBF(gamma=0.5), alpha=0.1, penalty="rkhs", weights="auto", centers="auto", max_memory=None)


@pytest.fixture
def curve():
    X = np.linspace(-2.0, 2.0, 50)[:, None]
    return X, np.sin(2.0 * X[:, 0])


def data_of(X, y):
    return TrainingData(MemoryRows(X, y), RowSchema(X.shape[1]), lambda y, *_: RealTargets(()), has_classes=False)


def test_a_fit_needs_no_estimator(curve):
    X, y = curve
    found = run.run(SPEC, data_of(X, y), np.random.default_rng(0))
    expected = KernelRidgeRegressor(RBF(gamma=0.5), alpha=0.1).fit(X, y)
    assert_array_equal(found.solution.coef[:, 0], expected.dual_coef_)
    assert found.decision.strategy == run.EXACT


@pytest.mark.parametrize("centers", ["auto", 10])
def test_the_report_says_which_fit_was_made_and_why(curve, centers):
    X, y = curve
    report = KernelRidgeRegressor(RBF(gamma=0.5), alpha=0.1, centers=centers).fit(X, y).report_
    decided = run.decide(run.Situation(replace(SPEC, centers=centers), data_of(X, y), np.random.default_rng(0)))
    assert report.strategy == f"{decided.strategy}: {decided.reason}"


def test_another_fit_is_used_by_every_family_that_asks_for_it(curve, monkeypatch):
    X, y = curve
    made = []

    def again(situation):
        made.append(situation.spec.kernel)
        return run.STRATEGIES[run.EXACT](situation)

    monkeypatch.setitem(run.STRATEGIES, "again", again)
    reason = ("again", lambda situation: "a test asks for it")
    monkeypatch.setattr(run, "REASONS", (reason, *run.REASONS))
    for model, target in (
        (KernelRidgeRegressor(RBF(gamma=0.5)), y),
        (KernelFisherClassifier(RBF(gamma=0.5)), y > 0),
    ):
        assert "again: a test asks for it" in str(model.fit(X, target).report_)
    assert len(made) == 2


@pytest.mark.parametrize("centers", ["auto", "all", 20])
def test_free_memory_is_measured_once_for_a_fit_and_is_not_part_of_the_model(curve, monkeypatch, centers):
    measured = []
    monkeypatch.setattr("mercer._gram.budget.free_memory", lambda: measured.append(1) or 2.0**33)
    model = KernelRidgeRegressor(RBF(gamma=0.5), centers=centers).fit(*curve)
    assert len(measured) == 1
    assert b"Budget" not in pickle.dumps(model)
