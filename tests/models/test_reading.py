"""Whole-number weights leak no label: what they mean is said, or found by a rule and checked."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import log_loss

from mercer import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.centers import ForwardSelection
from mercer.datasets import make_banana
from mercer.errors import WeightWarning
from mercer.kernels import RBF

RULE = RBF(gamma=0.5)
CENTERS = np.random.default_rng(5).normal(size=(40, 3))
CLASSIFIERS = [
    KernelFisherClassifier(),
    KernelFisherClassifier(centers=CENTERS),
    SparseFisherClassifier(),
    OnlineFisherClassifier(),
]
REGRESSORS = [KernelRidgeRegressor(), KernelRidgeRegressor(centers=CENTERS), SparseKernelRegressor()]
ALL = [*CLASSIFIERS, *REGRESSORS, OnlineKernelRegressor()]


def named(model):
    return f"{type(model).__name__} {'with centers' if hasattr(getattr(model, 'centers', None), 'shape') else ''}"


@pytest.fixture
def noise(rng):
    """Rows, labels and targets that have nothing to do with each other, and whole numbers as weights."""
    n = 150
    return rng.normal(size=(n, 3)), rng.integers(0, 2, n), rng.normal(size=n), rng.integers(500, 1500, n)


@pytest.fixture
def fresh(rng):
    return rng.normal(size=(1000, 3)), rng.integers(0, 2, 1000), rng.normal(size=1000)


@pytest.mark.slow
@pytest.mark.parametrize("model", CLASSIFIERS, ids=named)
def test_large_whole_weights_leak_no_labels(noise, fresh, model):
    X, y, _, weight = noise
    model = clone(model).fit(X, y, sample_weight=weight)
    # Chance has a standard deviation of 0.04 on 150 rows, and the best of some hundred models is above it.
    assert getattr(model, "loo_score_", 0.5) < 0.68
    # The loss of a coin is log 2 = 0.693.
    assert log_loss(fresh[1], model.predict_proba(fresh[0])) < 0.78


@pytest.mark.slow
@pytest.mark.parametrize("model", REGRESSORS, ids=named)
def test_large_whole_weights_leak_no_targets(noise, fresh, model):
    X, _, t, weight = noise
    model = clone(model).fit(X, t, sample_weight=weight)
    assert model.loo_score_ < 0.15
    if hasattr(model, "predict_interval"):
        low, high = model.predict_interval(fresh[0], coverage=0.9).T
        # 0.9 from 150 residuals: a standard deviation of 0.025.
        assert 0.82 < np.mean((low <= fresh[2]) & (fresh[2] <= high)) < 0.98


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=named)
def test_unit_of_large_whole_weights_does_not_matter(noise, fresh, model):
    X, y, _, weight = noise
    model = clone(model).set_params(kernel=RULE, alpha=100.0)
    whole = clone(model).fit(X, y, sample_weight=weight)
    scaled = clone(model).set_params(alpha=0.1).fit(X, y, sample_weight=weight / 1000)
    assert_allclose(whole.predict_proba(fresh[0]), scaled.predict_proba(fresh[0]), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        SparseKernelRegressor(stop="gcv"),
        SparseKernelRegressor(stop="bic"),
        SparseKernelRegressor(alpha="gcv"),
        SparseKernelRegressor(selection="orthogonal", stop="gcv"),
        KernelRidgeRegressor(centers=ForwardSelection(criterion="gcv"), random_state=0),
        KernelRidgeRegressor(centers=ForwardSelection(), random_state=0),
    ],
    ids=str,
)
def test_unit_of_importance_does_not_change_the_centers(noise, model):
    """Degrees of freedom are compared to the number of rows, and not to the sum of their weights."""
    X, _, t, weight = (each[:50] for each in noise)
    fits = [
        clone(model).set_params(kernel=RULE).fit(X, t, sample_weight=weight / unit) for unit in (1.0, 1e3, 1e6)
    ]
    for fit in fits[1:]:
        assert_allclose(fit.X_fit_, fits[0].X_fit_)
        assert_allclose(fit.loo_score_, fits[0].loo_score_, atol=1e-6)
        assert_allclose(fit.loo_score_, fits[0].loo_score_, atol=1e-6)


def test_online_calibration_of_batches_knows_no_unit_of_weights(noise, fresh):
    X, y, _, weight = noise
    model = OnlineFisherClassifier(RULE, alpha=100.0).partial_fit(X, y, sample_weight=weight)
    scaled = OnlineFisherClassifier(RULE, alpha=0.1).partial_fit(X, y, sample_weight=weight / 1000)
    assert_allclose(model.predict_proba(fresh[0]), scaled.predict_proba(fresh[0]), atol=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=named)
def test_both_readings_are_at_hand_and_a_doubt_is_told(noise, model):
    X, y, t, _ = noise
    target, weight = (y if hasattr(model, "predict_proba") else t), np.arange(150) % 4 + 1
    fits = [
        clone(model).set_params(weights=word, kernel=RULE, alpha=0.01).fit(X, target, weight)
        for word in ("counts", "importance")
    ]
    auto = clone(model).set_params(kernel=RULE, alpha=0.01)
    with pytest.warns(WeightWarning) as told:
        auto.fit(X, target, sample_weight=weight)
    text = str(told[0].message)
    assert len(told) == 1
    assert "read as counts of equal rows (one copy is held out at a time): the leave-one-out score is" in text
    assert "use weights='importance'; otherwise use weights='counts'" in text
    if hasattr(auto, "loo_score_"):
        counts, importance = (fit.loo_score_ for fit in fits)
        assert auto.loo_score_ == counts
        assert f"score is {counts:.3f}." in text
        # Of four rows three have copies that stay and know the answer.
        assert counts > importance + 0.1
    if isinstance(model, KernelRidgeRegressor):
        assert f"it would be {fits[1].loo_score_:.3f}." in text


def test_doubt_about_larger_numbers_is_told_too(noise):
    X, y, _, _ = noise
    weight = np.where(np.arange(150) % 10, 40, 1)
    with pytest.warns(WeightWarning, match=r"read as importance .* use weights='counts'; otherwise"):
        KernelFisherClassifier(RULE, alpha=0.01).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("centers", ["all", 40])
def test_nothing_is_told_where_readings_agree(centers):
    X, y = make_banana(300, random_state=0)
    weight = np.bincount(np.random.default_rng(0).integers(300, size=300), minlength=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelFisherClassifier(RULE, alpha=1.0, centers=centers, random_state=0)
        model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("model", ALL, ids=named)
def test_counts_that_are_none_are_refused(noise, model):
    X, y, t, _ = noise
    target = t if hasattr(model, "predict_interval") or "Regressor" in type(model).__name__ else y
    refused = clone(model).set_params(weights="counts")
    with pytest.raises(ValueError, match=r"sample_weight contains 1\.25, .* integers"):
        refused.fit(X, target, sample_weight=np.append(np.ones(149), 1.25))
    with pytest.raises(ValueError, match=r"sample_weight contains 9007199254740992\.0, "):
        refused.fit(X, target, sample_weight=np.append(np.ones(148), [2.0**53, 2.0**53]))
    with pytest.raises(
        ValueError, match="weights='copies' is not known; it must be one of 'auto', 'counts', 'imp"
    ):
        clone(model).set_params(weights="copies").fit(X, target)


def test_floats_beyond_all_fractions_are_no_counts(noise):
    X, y, _, weight = noise
    plain = KernelFisherClassifier(RULE, alpha=1.0).fit(X, y, sample_weight=weight / 1000)
    huge = KernelFisherClassifier(RULE, alpha=2.0**60).fit(X, y, sample_weight=weight / 1000 * 2.0**60)
    assert_allclose(huge.loo_proba_, plain.loo_proba_, atol=1e-6)


def streams(noise, weight, batches, meaning="auto"):
    X, _, t, _ = noise
    model = KernelRidgeRegressor(RULE, alpha=0.1, centers=CENTERS, weights=meaning)
    for rows in np.array_split(np.arange(150), batches):
        model.partial_fit(X[rows], t[rows], sample_weight=weight[rows])
    return model


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::mercer.errors.WeightWarning")
@pytest.mark.parametrize("last", [1, 2, 11, 0.5])
@pytest.mark.parametrize("batches", [2, 5])
def test_meaning_is_that_of_all_rows_whatever_their_batches(noise, last, batches):
    """A batch may turn counts into importance, and importance into counts: two everywhere is a unit."""
    weight = np.append(np.full(149, 2.0), last)
    whole, parts = streams(noise, weight, 1), streams(noise, weight, batches)
    assert_allclose(parts.loo_prediction_, whole.loo_prediction_, atol=1e-9)
    assert_allclose(parts.noise_std_, whole.noise_std_, rtol=1e-9)
    counts = last == 1
    same = streams(noise, weight, batches, "counts" if counts else "importance")
    assert_allclose(parts.loo_prediction_, same.loo_prediction_, atol=1e-9)


@pytest.mark.filterwarnings("ignore::mercer.errors.WeightWarning")
@pytest.mark.parametrize("extra", [0.5, 11.0, 1e3])
def test_rows_removed_take_their_weight_from_the_meaning(noise, extra):
    X, _, t, _ = noise
    weight = np.append(np.arange(149) % 3 + 1.0, extra)
    model = streams(noise, weight, 1).remove(X[149:], t[149:], sample_weight=weight[149:])
    never = KernelRidgeRegressor(RULE, alpha=0.1, centers=CENTERS, weights="counts")
    never.fit(X[:149], t[:149], sample_weight=weight[:149])
    assert_allclose(model.loo_prediction_, never.loo_prediction_, atol=1e-8)


def test_decay_leaves_no_counts(noise):
    X, _, t, _ = noise
    model = streams(noise, np.arange(150) % 3 + 1.0, 1, "counts")
    with pytest.raises(
        ValueError, match=r'decay=0.5 leaves fractions of rows, which are not counts; use weights="auto"'
    ):
        model.partial_fit(X, t, decay=0.5)
    with pytest.raises(ValueError, match=r"sample_weight contains 0.5, "):
        model.partial_fit(X, t, sample_weight=np.full(150, 0.5))
    assert model.moments_.n_rows == 150


@pytest.mark.filterwarnings("ignore::mercer.errors.WeightWarning")
@pytest.mark.parametrize("gone", [20.0, 50.0])
@pytest.mark.parametrize("loo_rows", [10_000, 60])
def test_weights_of_which_a_part_is_removed_do_not_become_counts(rng, gone, loo_rows):
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    weight = np.where(np.arange(100) < 50, 50.0, 1.0)
    model = KernelRidgeRegressor(RBF(gamma=20.0), centers=X[:40], alpha=0.1, loo_rows=loo_rows, random_state=0)
    model.fit(X, y, sample_weight=weight).remove(X[:50], y[:50], sample_weight=np.full(50, gone))
    assert model.loo_score_ < 0.1
