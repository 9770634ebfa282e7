"""Models that learn from a stream: what they promise beyond scikit-learn's contract."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelFisherClassifier, KernelRidgeRegressor, OnlineFisherClassifier, OnlineKernelRegressor
from mercer.datasets import make_banana, make_ringnorm, make_sinc, make_waveform
from mercer.files import TRUSTED_TYPES
from mercer.kernels import RBF, FromCallable, Linear, pairwise
from mercer.rows import StreamRows

GAMMA = RBF(gamma=0.5)


def scikit_learn_contract(*estimators):
    """The checks of scikit-learn for each of the estimators."""

    def decorate(test):
        # The check of array API input skips itself unless scipy was told to dispatch.
        test = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")(test)
        # Labels of some checks are noise: what weights mean then makes a difference, and a warning says so.
        test = pytest.mark.filterwarnings("ignore::mercer.errors.WeightWarning")(test)
        return parametrize_with_checks(estimators)(test)

    return decorate


@scikit_learn_contract(OnlineFisherClassifier(GAMMA, max_centers=40))
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@scikit_learn_contract(
    OnlineFisherClassifier(),
    OnlineFisherClassifier("linear", when_full="refuse"),
    OnlineFisherClassifier(calibration="isotonic", window=200),
    OnlineKernelRegressor(),
    OnlineKernelRegressor("laplacian", alpha=1.0),
    OnlineKernelRegressor(Linear(), max_centers=40, when_full="refuse"),
)
def test_scikit_learn_contract_of_all_others(estimator, check):
    check(estimator)


def in_blocks(model, X, y, edges, **keywords):
    for first, last in zip([0, *edges], [*edges, len(y)]):
        model.partial_fit(X[first:last], y[first:last], **keywords)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("edges", [(), (1, 7, 100), range(1, 300)])
@pytest.mark.parametrize("name", ["two", "three"])
def test_outputs_do_not_depend_on_how_a_stream_is_cut(rng, edges, name):
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 0] > 1 if name == "three" else 0)
    labels = np.unique(y)
    whole = OnlineFisherClassifier(GAMMA).partial_fit(X, y, classes=labels)
    cut = in_blocks(OnlineFisherClassifier(GAMMA), X, y, edges, classes=labels)
    assert_allclose(cut.X_fit_, whole.X_fit_)
    assert_allclose(cut.intercept_, whole.intercept_, atol=1e-8)
    assert_allclose(cut._details.scores.outputs, whole._details.scores.outputs, atol=1e-8)
    assert cut.n_rows_seen_ == 300


def test_every_row_a_center_is_the_batch_classifier(three_classes):
    X, y = three_classes
    batch = KernelFisherClassifier(GAMMA, alpha=0.3).fit(X, y)
    online = OnlineFisherClassifier(GAMMA, alpha=0.3, nu=1e-9).fit(X, y)
    # Centers that others span to rounding are left out, which changes the function by no more.
    assert_allclose(online._outputs(X), batch._outputs(X), atol=1e-6)
    # All rows were predicted before: the batch has more caution to offer, not other evidence.
    plain = replace(batch.rule_.posterior, limit=np.inf, counted=1.0)
    expected = replace(batch.rule_, posterior=plain).probabilities(batch._outputs(X))
    assert_allclose(online.predict_proba(X), expected, atol=1e-3)


def test_every_row_a_center_is_the_batch_regression(curve):
    X, y = curve
    batch = KernelRidgeRegressor(RBF(gamma=5.0), alpha=0.3).fit(X, y)
    online = in_blocks(OnlineKernelRegressor(RBF(gamma=5.0), alpha=0.3, nu=1e-9), X, y, (1, 20))
    assert_allclose(online.predict(X), batch.predict(X), atol=1e-6)


def test_several_targets_are_learned_as_each_alone(curve):
    X, y = curve
    Y = np.column_stack([y, np.cos(y)])
    both = OnlineKernelRegressor(GAMMA).fit(X, Y)
    assert both.predict(X).shape == (50, 2)
    for j in range(2):
        assert_allclose(OnlineKernelRegressor(GAMMA).fit(X, Y[:, j]).predict(X), both.predict(X)[:, j], atol=1e-9)


def test_the_prequential_error_is_that_of_rows_before_they_are_learned(curve):
    X, y = curve
    model, losses = OnlineKernelRegressor(GAMMA, window=10), []
    model.partial_fit(X[:1], y[:1])
    assert np.isnan(model.prequential_error_)
    for i in range(1, len(y)):
        losses.append((model.predict(X[i : i + 1])[0] - y[i]) ** 2)
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert_allclose(model.prequential_error_, np.mean(losses), rtol=1e-8)
    assert_allclose(model.recent_error_, np.mean(losses[-10:]), rtol=1e-8)
    whole = OnlineKernelRegressor(GAMMA, window=10).partial_fit(X, y)
    assert_allclose(whole.prequential_error_, model.prequential_error_, rtol=1e-8)


@pytest.mark.slow
def test_the_prequential_error_of_labels_is_that_of_predict(rng):
    X, y = make_banana(120, random_state=1)
    model, wrong = OnlineFisherClassifier(GAMMA, window=30), []
    model.partial_fit(X[:1], y[:1], classes=[-1, 1])
    for i in range(1, len(y)):
        wrong.append(model.predict(X[i : i + 1])[0] != y[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert_allclose(model.prequential_error_, np.mean(wrong))
    assert_allclose(model.recent_error_, np.mean(wrong[-30:]))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_probabilities_of_a_stream_are_honest(method):
    X, y = make_waveform(2000, random_state=0)
    X_new, y_new = make_waveform(4000, random_state=1)
    model = getattr(OnlineFisherClassifier(max_centers=200), method)(X, y)
    P = model.predict_proba(X_new)[:, 1]
    sure = P > 0.8
    assert sure.sum() > 200
    assert abs(np.mean(y_new[sure] == 1) - P[sure].mean()) < 0.05
    assert brier_score_loss(y_new, P) < 0.08
    assert np.mean(model.predict(X_new) != y_new) < 0.11


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_probabilities_of_a_rare_class_tell_rows_apart_although_centers_are_replaced(seed):
    rng = np.random.default_rng(seed)
    means, cluster = 1.5 * rng.normal(size=(30, 5)), rng.integers(30, size=4000)
    X, y = means[cluster] + rng.normal(size=(4000, 5)), (cluster == 0).astype(int)
    model = OnlineFisherClassifier(RBF(gamma=0.2), max_centers=40).fit(X[:3000], y[:3000])
    share = np.full(1000, y[:3000].mean())
    assert log_loss(y[3000:], model.predict_proba(X[3000:])) < 0.85 * log_loss(y[3000:], share)


@pytest.mark.slow
def test_a_moving_stream_is_followed_where_the_past_is_forgotten():
    X, y = make_ringnorm(6000, random_state=0)
    y = np.where(np.arange(6000) < 3000, y, -y)
    keeps = OnlineFisherClassifier(max_centers=100).partial_fit(X, y)
    follows = OnlineFisherClassifier(max_centers=100, decay=0.998).partial_fit(X, y)
    assert follows.recent_error_ < 0.1
    assert keeps.recent_error_ > 1.5 * follows.recent_error_


def test_partial_fit_goes_on_after_fit(rng):
    X, y = make_banana(400, random_state=0)
    model = OnlineFisherClassifier(GAMMA).fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert model.n_rows_seen_ == 400
    assert_allclose(model._outputs(X), OnlineFisherClassifier(GAMMA).fit(X, y)._outputs(X), atol=1e-8)
    assert OnlineFisherClassifier(GAMMA).fit(X, y).fit(X[:50], y[:50]).n_rows_seen_ == 50


def test_a_row_of_weight_zero_is_not_learned(rng):
    X, y = make_banana(200, random_state=0)
    weight = rng.integers(0, 3, size=200)
    model = OnlineFisherClassifier(GAMMA).partial_fit(X, y, sample_weight=weight)
    fewer = OnlineFisherClassifier(GAMMA).partial_fit(
        X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0]
    )
    assert_allclose(model.predict_proba(X), fewer.predict_proba(X))


def test_prediction_changes_nothing(rng):
    X, y = make_banana(100, random_state=0)
    model = OnlineFisherClassifier().fit(X, y)
    before = pickle.dumps(model)
    model.predict(X), model.predict_proba(X), model.decision_function(X), model.predict_log_proba(X)
    assert pickle.dumps(model) == before


def test_memory_does_not_grow_with_the_stream(rng):
    model, sizes = OnlineFisherClassifier(GAMMA, max_centers=30, window=100), []
    for _ in range(8):
        X = rng.normal(size=(256, 4))
        model.partial_fit(X, (X[:, 0] > 0).astype(int), classes=[0, 1])
        sizes.append(len(pickle.dumps(model)))
    assert max(sizes[2:]) <= min(sizes[2:]) + 100


def test_labels_may_be_words_and_come_late():
    X, y = make_banana(60, random_state=0)
    words = np.where(y == 1, "one", "other")
    first = np.flatnonzero(words == "one")[:3]
    model = OnlineFisherClassifier(GAMMA).partial_fit(X[first], words[first], classes=["other", "one", "third"])
    model.partial_fit(X, words)
    assert_array_equal(model.classes_, ["one", "other", "third"])
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0)
    assert P[:, 2].max() < 0.2


def test_sparse_rows_and_objects_are_streams_too(rng):
    X, y = make_banana(120, random_state=0)
    dense = in_blocks(OnlineFisherClassifier(GAMMA), X, y, (50,), classes=[-1, 1])
    sparse = in_blocks(OnlineFisherClassifier(GAMMA), scipy.sparse.csr_array(X), y, (50,), classes=[-1, 1])
    assert_allclose(sparse.decision_function(scipy.sparse.csr_array(X)), dense.decision_function(X), atol=1e-6)
    words = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(90)]
    label = np.array([word.count("a") > 1 for word in words])
    shared = FromCallable(pairwise(lambda v, w: sum(v.count(c) * w.count(c) for c in "abcd")), psd=True)
    model = in_blocks(OnlineFisherClassifier(shared), words, label, (40,), classes=[False, True])
    assert np.mean(model.predict(words) == label) > 0.9
    assert len(model.X_fit_) <= 4


def test_a_parameter_may_change_between_calls(rng):
    X, y = make_sinc(600, random_state=0)
    model = OnlineKernelRegressor(RBF(gamma=1.0), max_centers=3).partial_fit(X[:300], y[:300])
    few = model.recent_error_
    model.set_params(max_centers=50, window=200).partial_fit(X[300:], y[300:])
    assert len(model.X_fit_) > 3
    assert model.recent_error_ < few


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha=0.0; it must be a number above 0"),
        ({"nu": 2.0}, "nu=2.0; it must be a number above 0 and at most 1"),
        ({"max_centers": 0}, "max_centers=0; it must be a positive integer"),
        ({"decay": 1.1}, r"decay=1.1; it must be a number above 0 and at most 1"),
        ({"when_full": "panic"}, "when_full='panic' is not known"),
        ({"window": 2.5}, "window=2.5; it must be a positive integer"),
        ({"calibration": "gaussian"}, "calibration='gaussian' is not known"),
        ({"kernel": "precomputed"}, "has no values for future rows"),
        ({"kernel": RBF(gamma="loo")}, "stands for 15 kernels"),
    ],
    ids=str,
)
def test_parameters_are_refused_by_name(two_classes, parameters, message):
    X, y = two_classes
    with pytest.raises(ValueError, match=message):
        OnlineFisherClassifier(**parameters).fit(X, y)


def test_a_refused_first_call_begins_no_stream(two_classes):
    X, y = two_classes
    model = OnlineFisherClassifier(GAMMA, alpha=-1.0)
    with pytest.raises(ValueError, match="alpha"):
        model.partial_fit(X, y)
    model.set_params(alpha=1.0)
    with pytest.raises(ValueError, match=r"label 1 is not among the classes \[0, 2\]"):
        model.partial_fit(X, y, classes=[0, 2])
    assert_array_equal(model.partial_fit(X, y).classes_, [0, 1])


def one_by_one(model, X, y, **choices):
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], **choices)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 7, 60, 99])
def test_first_rows_one_by_one_are_one_call(n):
    X, y = make_banana(300, random_state=0)
    single = one_by_one(OnlineFisherClassifier(), X[:n], y[:n], classes=[-1, 1])
    at_once = OnlineFisherClassifier().partial_fit(X[:n], y[:n], classes=[-1, 1])
    assert single.gamma_ == at_once.gamma_
    assert_array_equal(single.predict_proba(X), at_once.predict_proba(X))
    assert single.n_rows_seen_ == n
    regressor = one_by_one(OnlineKernelRegressor(), X[:n], y[:n])
    assert_array_equal(regressor.predict(X), OnlineKernelRegressor().partial_fit(X[:n], y[:n]).predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [OnlineFisherClassifier(), OnlineKernelRegressor()], ids=repr)
def test_kernel_stays_after_a_hundred_rows(estimator):
    X, y = make_banana(150, random_state=0)
    choices = {"classes": [-1, 1]} if hasattr(estimator, "predict_proba") else {}
    single = one_by_one(clone(estimator), X, y, **choices)
    begun = clone(estimator).partial_fit(X[:100], y[:100], **choices)
    gamma = begun.gamma_
    begun = one_by_one(begun, X[100:], y[100:])
    assert single.gamma_ == begun.gamma_ == gamma
    assert_array_equal(single.predict(X), begun.predict(X))
    assert single.prequential_error_ == begun.prequential_error_


@pytest.mark.slow
def test_rows_one_by_one_are_predicted_better_and_better():
    X, y = make_banana(600, random_state=0)
    model = one_by_one(OnlineFisherClassifier(), X, y, classes=[-1, 1])
    # Blocks see later calibrations; the model is the same.
    assert model.score(X, y) >= OnlineFisherClassifier().partial_fit(X, y).score(X, y) - 0.02


def test_first_batch_of_many_rows_settles_the_kernel_alone():
    X, y = make_banana(400, random_state=0)
    model = OnlineFisherClassifier().partial_fit(X[:200], y[:200])
    gamma = model.gamma_
    assert model.partial_fit(10.0 * X[200:], y[200:]).gamma_ == gamma


def test_equal_rows_are_held_until_others_come_but_not_for_ever(two_classes):
    X, y = two_classes
    equal, label = np.repeat(X[:1], 150, axis=0), np.arange(150) % 2
    model = OnlineFisherClassifier().partial_fit(equal, label)
    assert_allclose(model.predict_proba(X[:1]), 0.5, atol=0.05)
    at_once = OnlineFisherClassifier().partial_fit(np.vstack([equal, X]), np.r_[label, y])
    assert_array_equal(model.partial_fit(X, y).predict_proba(X), at_once.predict_proba(X))
    with pytest.raises(ValueError, match=r"n_samples = 1200, only 1 are distinct; pass the parameters"):
        OnlineKernelRegressor().partial_fit(np.ones((1200, 2)), np.arange(1200.0))


def test_words_of_a_fit_need_rows_that_differ(two_classes):
    X, y = two_classes
    with pytest.raises(ValueError, match=r"n_samples = 4, only 1 are distinct; pass the parameters"):
        OnlineFisherClassifier().fit(np.repeat(X[:1], 4, axis=0), y[:4])


def overlap(A, B):
    """Letters that two strings share, of those that either has."""
    return np.array([[len(set(a) & set(b)) / len(set(a) | set(b)) for b in B] for a in A])


@pytest.mark.parametrize(
    "kind", [list, lambda words: np.array(words, dtype=object), np.array], ids=["list", "object", "str"]
)
def test_strings_are_learned_one_by_one(kind):
    words = ["abba", "cold", "banana", "clock", "baa", "lock", "nab", "old", "ban", "dock"]
    y = np.arange(10) % 2
    model = one_by_one(OnlineFisherClassifier(overlap), kind(words), y, classes=[0, 1])
    assert_array_equal(model.predict(kind(words)), y)
    assert_array_equal(OnlineFisherClassifier(overlap).fit(kind(words), y).predict(kind(words)), y)
    regressor = one_by_one(OnlineKernelRegressor(overlap), kind(words), y.astype(float))
    assert np.abs(regressor.predict(kind(words)) - y).max() < 0.5


def test_later_calls_keep_classes_and_targets(two_classes):
    X, y = two_classes
    model = OnlineFisherClassifier(GAMMA).partial_fit(X, y)
    with pytest.raises(ValueError, match="differ from those of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    regressor = OnlineKernelRegressor(GAMMA).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y has shape \(b, 2\), but that of the first rows has \(b,\)"):
        regressor.partial_fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize(
    "estimator", [OnlineFisherClassifier(max_centers=20), OnlineKernelRegressor(max_centers=20)], ids=repr
)
def test_a_stream_goes_on_from_a_file(estimator):
    X, y = make_banana(700, random_state=0)
    estimator.partial_fit(X[:300], y[:300])
    loaded = skops.io.loads(skops.io.dumps(estimator), trusted=TRUSTED_TYPES)
    for model in (estimator, loaded):
        model.partial_fit(X[300:], y[300:])
    assert_array_equal(loaded.predict(X), estimator.predict(X))
    assert loaded.recent_error_ == estimator.recent_error_


@pytest.mark.parametrize("as_rows", [np.asarray, scipy.sparse.csr_array])
def test_rows_without_content_leave_the_intercept(as_rows):
    X, y = as_rows(np.zeros((20, 3))), np.arange(20) % 4 == 0
    model = OnlineFisherClassifier("linear").partial_fit(X, y)
    assert_allclose(model.decision_function(X), model.decision_function(X)[0])
    assert_array_equal(model.predict(X), False)
    assert_allclose(OnlineKernelRegressor("linear").fit(X, y).predict(X), 0.25)


@pytest.mark.parametrize(("name", "value"), [("priors", [0.8, 0.2]), ("threshold", "equal_error")])
def test_parameters_of_decisions_hold_from_the_next_call_on(name, value):
    """Calibration of the last window is that of a model that had them from the start."""
    X, y = make_banana(200, random_state=0)
    changed, same = OnlineFisherClassifier(GAMMA), OnlineFisherClassifier(GAMMA, **{name: value})
    for model in (changed, same):
        model.partial_fit(X[:100], y[:100])
    changed.set_params(**{name: value}).partial_fit(X[100:], y[100:])
    same.partial_fit(X[100:], y[100:])
    assert_array_equal(changed.predict_proba(X), same.predict_proba(X))


def test_a_calibration_without_densities_is_required_in_every_call():
    X, y = make_banana(60, random_state=0)
    model = OnlineFisherClassifier(GAMMA).partial_fit(X, y).set_params(calibration="gaussian")
    with pytest.raises(ValueError, match="calibration='gaussian'"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("model", [OnlineFisherClassifier(GAMMA), OnlineKernelRegressor(GAMMA)])
def test_streams_of_named_columns_continue_and_start_over(model):
    """Names are those of the stream, whether the first rows came in memory or not."""
    X, y = make_banana(80, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for first in ((frame, y), ([(frame, y)],)):
        fitted = clone(model).partial_fit(*first).partial_fit([(frame, y)])
        assert fitted.feature_names_in_.tolist() == ["a", "b"]
        assert fitted.n_rows_seen_ == 160
        with pytest.raises(ValueError, match="the columns are b, a, but the model was fitted on a, b"):
            fitted.partial_fit([(frame[["b", "a"]], y)])
    other = frame.rename(columns={"a": "c"})
    assert fitted.fit([(other, y)]).feature_names_in_.tolist() == ["c", "b"]


def test_blocks_of_a_stream_are_learned_as_rows_in_memory():
    """Balanced weights are those of all rows, and a block may have no weight."""
    X, y = make_banana(120, random_state=0)
    order = np.argsort(y[:60], kind="stable")
    X[:60], y[:60] = X[:60][order], y[:60][order]
    weight = np.where((np.arange(120) >= 40) & (np.arange(120) < 80), 0.0, 1.0)
    model = OnlineFisherClassifier(GAMMA, class_weight="balanced")
    held = clone(model).fit(X, y, weight)
    for classes in (None, [-1, 1]):
        rows = StreamRows([(X, y, weight)], block_rows=20)
        assert_allclose(clone(model).partial_fit(rows, classes=classes).dual_coef_, held.dual_coef_, rtol=1e-9)
    blocks = clone(model).fit(StreamRows([(X, y, weight)], block_rows=20))
    assert_allclose(blocks.predict_proba(X), held.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("size", [1, 50])
def test_small_blocks_are_joined_before_the_kernel_is_determined(size):
    X, y = make_banana(300, random_state=0)
    first = OnlineKernelRegressor().fit(X[:100], y[:100])
    blocks = [(X[i : i + size], y[i : i + size]) for i in range(0, 300, size)]
    assert OnlineKernelRegressor().fit(StreamRows(blocks, block_rows=size)).gamma_ == first.gamma_


def test_given_class_weights_need_no_pass_before():
    X, y = make_banana(100, random_state=0)
    model = OnlineFisherClassifier(GAMMA, class_weight={-1: 1.0, 1: 2.0})
    assert model.partial_fit(iter([(X, y)]), classes=[-1, 1]).n_rows_seen_ == 100
