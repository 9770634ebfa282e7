"""How many rows the evidence counts for: folds whose rows say the same, weights that differ, counts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._scores.training_rows import Training
from mercer.datasets import make_banana
from mercer.errors import IntervalWarning
from mercer.kernels import RBF
from mercer.rows._sampling.weights import Tally, reading_of


def training(Y, *, group=None, fold=None, weight=None, meaning="importance"):
    weight = np.ones(len(Y)) if weight is None else weight
    reading = reading_of(meaning, Tally.of(weight, len(Y)))
    X, Y = np.zeros((len(Y), 1)), np.asarray(Y, dtype=float)[:, None]
    return Training(X, Y, weight, weight, reading, group if fold is None else fold, group=group)


def test_rows_of_a_fold_with_one_label_are_one_row():
    Y = np.random.default_rng(0).choice([-1, 1], 12)
    evidence = training(np.repeat(Y, 6), group=np.repeat(np.arange(12), 6)).evidence
    assert_allclose(evidence, np.full(72, 1 / 6))


def test_rows_of_folds_with_all_labels_are_rows():
    Y = np.tile([-1, 1], 30)
    assert_allclose(training(Y, group=np.arange(60) // 10).evidence, np.ones(60))


def test_folds_at_random_cost_little():
    rng = np.random.default_rng(0)
    numbers = [
        training(rng.choice([-1, 1], 100), group=rng.permutation(100) % 5).evidence.sum() for _ in range(200)
    ]
    assert np.mean(numbers) > 80.0


def test_weights_count_for_their_effective_number():
    weight = np.repeat(np.random.default_rng(0).exponential(size=50), 2)
    evidence = training(np.tile([-1, 1], 50), weight=weight).evidence
    assert evidence.sum() == pytest.approx(weight.sum() ** 2 / (weight @ weight))


def test_counts_are_repeated_rows():
    rng = np.random.default_rng(0)
    Y, count, fold = rng.choice([-1, 1], 40), rng.integers(1, 5, 40), np.arange(40) // 4
    for folds in (None, fold):
        weighted = training(Y, group=folds, weight=count.astype(float), meaning="counts").evidence
        repeated = training(np.repeat(Y, count), group=None if folds is None else np.repeat(folds, count)).evidence
        assert_allclose(weighted, np.bincount(np.repeat(np.arange(40), count), repeated))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("as_counts", [False, True])
def test_equal_rows_of_a_group_are_the_row_alone(k, as_counts):
    X, y = make_banana(30, random_state=0)
    if k == 3:
        y = np.where(X[:, 0] > np.median(X[:, 0]), y, 2)
    new = make_banana(50, random_state=1)[0] * 3.0
    alone = KernelFisherClassifier(RBF(gamma=0.3), alpha=0.5).fit(X, y)
    groups, rows = np.arange(30), np.arange(30)
    model = KernelFisherClassifier(RBF(gamma=0.3), alpha=2.0, weights="counts")
    if as_counts:
        model.fit(X, y, sample_weight=np.full(30, 4.0), groups=groups)
    else:
        rows = np.repeat(rows, 4)
        model.fit(X[rows], y[rows], groups=groups[rows])
    assert_allclose(model.loo_proba_, alone.loo_proba_[rows], atol=1e-9)
    assert_allclose(model.predict_proba(new), alone.predict_proba(new), atol=1e-9)
    assert_allclose(model.novelty(new), alone.novelty(new), atol=1e-8)


@pytest.mark.slow
def test_near_copies_of_noise_are_no_surer_than_the_points_alone():
    copies, points, seen = [], [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        C, t, group = rng.normal(size=(12, 5)), np.arange(12) % 2, np.repeat(np.arange(12), 6)
        new, truth = rng.normal(size=(500, 5)), rng.integers(2, size=500)
        model = KernelFisherClassifier(random_state=0)
        model.fit(C[group] + 0.01 * rng.normal(size=(72, 5)), t[group], groups=group)
        copies.append(np.mean((model.predict_proba(new)[:, 1] - truth) ** 2))
        seen.append(np.mean((model.loo_proba_[:, 1] - t[group]) ** 2))
        points.append(np.mean((model.fit(C, t).predict_proba(new)[:, 1] - truth) ** 2))
    assert np.mean(copies) < np.mean(points) + 0.01
    assert np.mean(seen) > 0.24


def test_expected_r_squared_of_rows_in_groups_is_that_of_the_rows_alone():
    rng = np.random.default_rng(0)
    y, predicted, group = rng.normal(size=12), rng.normal(size=12), np.repeat(np.arange(12), 5)
    model = KernelRidgeRegressor()
    alone = model._expected_score(y, predicted, np.ones(12))
    assert model._expected_score(y[group], predicted[group], np.ones(60), group) == pytest.approx(alone, abs=1e-12)


def test_residuals_that_a_fold_shares_count_once_in_intervals():
    rng, group = np.random.default_rng(0), np.repeat(np.arange(12), 5)
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    model = KernelRidgeRegressor(RBF(gamma=0.5), alpha=1.0).fit(X[group], y[group], groups=group)
    assert_allclose(model.loo_results_.independent, np.full(60, 0.2))
    with pytest.warns(IntervalWarning, match="12 rows"):
        assert np.isinf(model.predict_interval(X, coverage=0.95)).all()


def test_folds_without_groups_cost_nothing():
    Y = np.repeat(np.random.default_rng(0).choice([-1, 1], 12), 6)
    assert_allclose(training(Y, fold=np.repeat(np.arange(12), 6)).evidence, np.ones(72))


def test_groups_count_whatever_the_folds_are():
    Y, group = np.repeat(np.random.default_rng(0).choice([-1, 1], 12), 6), np.repeat(np.arange(12), 6)
    assert_allclose(training(Y, group=group, fold=group // 3).evidence, np.full(72, 1 / 6))
