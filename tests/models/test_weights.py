"""A weight of two is a row twice, a weight of zero a row absent, also in all that leave-one-out chooses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._scores import CALIBRATIONS, CLASSIFICATION_CRITERIA, THRESHOLDS
from mercer.kernels import RBF

FIXED = {"kernel": RBF(gamma=0.5), "alpha": 1.0}
TWICE = np.r_[np.arange(60), 3, 8, 8, 21]
CLASSIFIERS = [
    {},
    {"kernel": "laplacian"},
    {"penalty": "coef"},
    {"class_weight": "balanced"},
    *({"criterion": name} for name in CLASSIFICATION_CRITERIA[1:]),
    *({"calibration": name} for name in CALIBRATIONS[1:]),
    *({"threshold": name} for name in THRESHOLDS),
]


def assert_same_fit(found, exact, X):
    assert found.alpha_ == pytest.approx(exact.alpha_, rel=1e-9)
    assert_allclose(found.gamma_, exact.gamma_, rtol=1e-10)
    assert_allclose(found.degrees_of_freedom_, exact.degrees_of_freedom_, rtol=1e-8)
    for method in ("predict_proba", "predict"):
        if hasattr(exact, method):
            assert_allclose(getattr(found, method)(X), getattr(exact, method)(X), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("choice", CLASSIFIERS, ids=str)
def test_weight_two_is_a_row_twice(two_classes, choice):
    X, y = two_classes
    weighted = KernelFisherClassifier(**choice).fit(X, y, sample_weight=np.bincount(TWICE))
    repeated = KernelFisherClassifier(**choice).fit(X[TWICE], y[TWICE])
    assert_same_fit(weighted, repeated, X)
    assert_allclose(repeated.loo_decision_, weighted.loo_decision_[TWICE], rtol=1e-6, atol=1e-7)
    assert_allclose(repeated.loo_score_, weighted.loo_score_)
    assert_allclose(repeated.loo_score_, weighted.loo_score_)


@pytest.mark.slow
def test_weight_two_is_a_row_twice_for_three_classes(three_classes):
    X, y = three_classes
    twice = np.r_[np.arange(75), 3, 40, 40, 70]
    weighted = KernelFisherClassifier().fit(X, y, sample_weight=np.bincount(twice))
    repeated = KernelFisherClassifier().fit(X[twice], y[twice])
    assert_same_fit(weighted, repeated, X)
    assert_allclose(repeated.loo_decision_, weighted.loo_decision_[twice], rtol=1e-6, atol=1e-7)
    assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("choice", [{}, {"penalty": "coef"}, {"fit_intercept": False}], ids=str)
def test_weight_two_is_a_row_twice_in_regression(curve, choice):
    X, y = curve
    twice = np.r_[np.arange(50), 3, 8, 8, 21]
    weighted = KernelRidgeRegressor(**choice).fit(X, y, sample_weight=np.bincount(twice))
    repeated = KernelRidgeRegressor(**choice).fit(X[twice], y[twice])
    assert_same_fit(weighted, repeated, X)
    assert_allclose(repeated.loo_prediction_, weighted.loo_prediction_[twice], rtol=1e-6, atol=1e-8)
    assert_allclose(weighted.noise_std_, repeated.noise_std_, rtol=1e-8)
    assert_allclose(weighted.predict_interval(X), repeated.predict_interval(X), rtol=1e-6, atol=1e-7)
    assert_allclose(weighted.predict_std(X), repeated.predict_std(X), rtol=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("choice", CLASSIFIERS, ids=str)
def test_weight_zero_is_a_row_absent(two_classes, choice):
    X, y = two_classes
    weight = np.where(np.arange(60) % 5 == 2, 0.0, 1.0)
    used = weight > 0
    weighted = KernelFisherClassifier(**choice).fit(X, y, sample_weight=weight)
    absent = KernelFisherClassifier(**choice).fit(X[used], y[used])
    assert_same_fit(weighted, absent, X)
    assert_allclose(weighted.loo_decision_[used], absent.loo_decision_, rtol=1e-6, atol=1e-8)
    # Being left out is the usual state of a row that takes no part.
    assert_allclose(weighted.loo_decision_[~used], weighted.decision_function(X[~used]), rtol=1e-9)


@pytest.mark.slow
def test_weight_zero_is_a_row_absent_in_regression(curve):
    X, y = curve
    weight = np.where(np.arange(50) % 5 == 2, 0.0, 1.0)
    used = weight > 0
    weighted = KernelRidgeRegressor().fit(X, y, sample_weight=weight)
    absent = KernelRidgeRegressor().fit(X[used], y[used])
    assert_same_fit(weighted, absent, X)
    assert_allclose(weighted.loo_prediction_[used], absent.loo_prediction_, rtol=1e-8)
    assert_allclose(weighted.loo_prediction_[~used], weighted.predict(X[~used]), rtol=1e-8)
    assert_allclose(weighted.predict_interval(X), absent.predict_interval(X), rtol=1e-8)


def test_class_that_only_weightless_rows_have_does_not_exist(two_classes):
    X, y = two_classes
    other = np.where(np.arange(60) < 4, 7, y)
    model = KernelFisherClassifier(**FIXED).fit(X, other, sample_weight=np.where(other == 7, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 1]


def test_weightless_rows_of_kernel_values_are_absent_columns(two_classes):
    X, y = two_classes
    K, weight = RBF(gamma=0.5).block(X, X), np.where(np.arange(60) % 5 == 2, 0.0, 1.0)
    values = KernelFisherClassifier("precomputed", alpha=1.0).fit(K, y, sample_weight=weight)
    rows = KernelFisherClassifier(**FIXED).fit(X, y, sample_weight=weight)
    assert_allclose(values.predict_proba(K), rows.predict_proba(X), rtol=1e-8)


def test_balanced_gives_all_classes_the_same_weight(three_classes):
    X, y = three_classes
    factor = len(y) / (3 * np.bincount(y))
    balanced = KernelFisherClassifier(class_weight="balanced", **FIXED).fit(X, y)
    as_dict = KernelFisherClassifier(class_weight=dict(enumerate(factor)), **FIXED).fit(X, y)
    assert_allclose(balanced.predict_proba(X), as_dict.predict_proba(X), rtol=1e-10)
    assert_allclose(balanced.priors_, 1 / 3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("choice", [{}, {"penalty": "coef"}, {"centers": np.linspace(-2, 2, 9)[:, None]}], ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_row_of_weight_zero_leaves_with_its_group(rng, choice, intercept):
    """Others of its group know its target: without them, as without the group."""
    X = rng.uniform(-2, 2, 36)[:, None]
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=36)
    group = np.arange(36) // 6
    # One row, all of a group, and one equal to a row of another group.
    absent = np.r_[2, np.arange(12, 18), 30]
    X[30], y[30] = X[0], y[0]
    weight = np.ones(36)
    weight[absent] = 0.0
    model = KernelRidgeRegressor(RBF(gamma=2.0), alpha=0.01, fit_intercept=intercept, **choice)
    loo = model.fit(X, y, sample_weight=weight, groups=group).loo_prediction_
    if model.penalty == "coef":
        # A row that leaves stays a center.
        model.set_params(centers=X[weight > 0])
    for g in range(6):
        rest = (group != g) & (weight > 0)
        without = model.fit(X[rest], y[rest]).predict(X[group == g])
        # Moments know half of the digits of a kernel matrix.
        assert_allclose(loo[group == g], without, rtol=1e-7, atol=1e-9)


def test_row_of_weight_zero_leaves_with_its_group_where_values_are_given(two_classes):
    X, y = two_classes
    group, weight = np.arange(60) % 6, np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    kernel, given = RBF(gamma=0.5), KernelFisherClassifier("precomputed", alpha=1.0)
    rows = KernelFisherClassifier(kernel, alpha=1.0).fit(X, y, sample_weight=weight, groups=group)
    values = given.fit(kernel.block(X, X), y, sample_weight=weight, groups=group)
    assert_allclose(values.loo_outputs_, rows.loo_outputs_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("centers", ["all", 5])
def test_groups_part_rows_that_have_weight(curve, centers):
    X, y = curve
    group = np.arange(50) // 10
    model = KernelRidgeRegressor(RBF(gamma=0.5), alpha=0.1, centers=centers)
    with pytest.raises(
        ValueError, match="all rows of positive weight are in one fold; cv or groups must define at least two"
    ):
        model.fit(X, y, sample_weight=np.where(group == 2, 1.0, 0.0), groups=group)


def test_class_weights_below_one_are_row_weights(three_classes):
    X, y = three_classes
    factor = np.array([0.9, 0.5, 0.2])
    by_class = KernelFisherClassifier(class_weight=dict(enumerate(factor)), **FIXED).fit(X, y)
    by_row = KernelFisherClassifier(**FIXED).fit(X, y, sample_weight=factor[y])
    assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), rtol=1e-10)


def test_row_of_a_heavy_class_leaves_with_all_of_its_weight(two_classes):
    X, y = two_classes
    model = KernelFisherClassifier(class_weight={0: 1.0, 1: 3.0}, **FIXED).fit(X, y)
    for i in (0, 1):
        rest = np.arange(60) != i
        weight = np.where(y == 1, 3.0, 1.0)[rest]
        without = KernelFisherClassifier(weights="importance", **FIXED).fit(X[rest], y[rest], sample_weight=weight)
        assert_allclose(model.loo_outputs_[i], without.transform(X[i : i + 1])[0], rtol=1e-9)


def test_one_number_is_the_weight_of_all_rows(two_classes):
    X, y = two_classes
    number = KernelFisherClassifier(**FIXED).fit(X, y, sample_weight=0.5)
    array = KernelFisherClassifier(**FIXED).fit(X, y, sample_weight=np.full(60, 0.5))
    assert_allclose(number.predict_proba(X), array.predict_proba(X))
