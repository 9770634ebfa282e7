"""Scores without selection bias."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from mercer import KernelFisherClassifier, KernelRidgeRegressor, SparseFisherClassifier, SparseKernelRegressor
from mercer._estimators.nested_score import ALL_FIFTHS, MOST_NESTED_ROWS, nested_score_of
from mercer._scores.training_rows import Training
from mercer.centers import Uniform
from mercer.datasets import make_banana
from mercer.errors import WeightWarning
from mercer.files import TRUSTED_TYPES
from mercer.kernels import RBF
from mercer.rows._sampling.weights import Tally, reading_of

# One kernel, of which alpha is chosen: what is tested of these is how rows are dealt to folds, not the search.
MEDIAN = RBF(gamma="median")
MODELS = [KernelFisherClassifier(), SparseFisherClassifier(), KernelRidgeRegressor(), SparseKernelRegressor()]


def training_of(X, y):
    n, ones = len(y), np.ones(len(y))
    return Training(X, np.zeros((n, 1)), ones, ones, reading_of("counts", Tally.of(ones, n)), None)


def rows_for(model, n=40, seed=0):
    rng = np.random.default_rng(seed)
    X, y = make_banana(n, random_state=seed)
    return X, y if hasattr(model, "predict_proba") else X[:, 0] + 0.5 * rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_each_fold_is_predicted_by_a_model_chosen_without_it(model):
    X, y = rows_for(model)
    fitted = clone(model).set_params(random_state=0).fit(X, y)
    outer, predicted = fitted._fitted.nested.outer, y.copy()
    assert len(np.unique(outer)) == 10
    for fold in range(10):
        without = clone(model).set_params(random_state=0).fit(X[outer != fold], y[outer != fold])
        predicted[outer == fold] = without.predict(X[outer == fold])
    if hasattr(model, "predict_proba"):
        expected = accuracy_score(y, predicted)
    else:
        # In place of the variance of these rows that to be expected of new ones.
        expected = 1.0 - np.mean((y - predicted) ** 2) / np.var(y, ddof=1)
    assert fitted.nested_score() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("model", [KernelFisherClassifier, KernelRidgeRegressor])
def test_where_nothing_is_chosen_the_score_is_that_of_leave_one_out(model):
    model = model(RBF(gamma=0.5), alpha=0.1)
    fitted = model.fit(*rows_for(model))
    assert not fitted._fitted.chooses
    assert fitted.nested_score() == fitted.loo_score_


@pytest.mark.slow
def test_on_noise_the_best_score_is_too_high_and_the_honest_one_is_not():
    best, honest = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 3)), rng.integers(2, size=40)
        model = KernelFisherClassifier(random_state=0).fit(X, y)
        best.append(model.loo_score_)
        honest.append(model.nested_score())
    # Without signal an accuracy of 40 rows has the standard deviation 0.08, the mean of 15 draws 0.02.
    assert np.mean(best) > 0.5 + 0.06
    assert abs(np.mean(honest) - 0.5) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: type(model).__name__)
def test_counts_are_repeated_rows(model):
    X, y = rows_for(model)
    count = np.random.default_rng(1).integers(1, 3, 40)
    model.set_params(weights="counts", random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=count).nested_score()
    first = np.r_[np.arange(40), np.repeat(np.arange(40), count - 1)]
    assert clone(model).set_params(weights="auto").fit(X[first], y[first]).nested_score() == weighted


@pytest.mark.slow
def test_rows_of_a_group_are_predicted_together():
    X, y = make_banana(60, random_state=0)
    group = np.arange(60) // 4
    model = KernelFisherClassifier(random_state=0).fit(X, y, groups=group)
    outer = model._fitted.nested.outer
    assert all(len(np.unique(outer[group == g])) == 1 for g in range(15))
    assert 0.5 < model.nested_score() <= 1.0


@pytest.mark.slow
def test_the_only_row_of_a_class_stays():
    X, y = make_banana(40, random_state=0)
    y[7] = 5
    model = KernelFisherClassifier(random_state=0, priors=[0.4, 0.4, 0.2]).fit(X, y)
    assert_array_equal(np.flatnonzero(model._fitted.nested.outer < 0), [7])
    assert model.nested_score() > 0.7


def test_every_class_is_known_without_any_fold():
    X, y = make_banana(40, random_state=0)
    for seed in range(20):
        labels = y.copy()
        labels[np.random.default_rng(seed).permutation(40)[:2]] = 5
        outer = nested_score_of(KernelFisherClassifier(), RBF(), training_of(X, labels), labels, None).outer
        assert len(np.unique(outer[labels == 5])) == 2


@pytest.mark.slow
def test_what_happens_after_the_fit_does_not_change_the_score():
    X, y = make_banana(40, random_state=0)
    model, other = KernelFisherClassifier().fit(X, y), KernelFisherClassifier().fit(X, y)
    other.set_params(alpha=1e3)
    expected = model.nested_score()
    X[:] = 0.0
    assert other.nested_score() == expected


@pytest.mark.slow
def test_the_score_is_stored_with_the_model():
    X, y = make_banana(40, random_state=0)
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    later = skops.io.loads(skops.io.dumps(model), trusted=TRUSTED_TYPES)
    with pytest.raises(ValueError, match="computed before"):
        model.lean().nested_score()
    expected = model.nested_score()
    assert later.nested_score() == pickle.loads(pickle.dumps(model)).nested_score() == expected
    assert model.lean().nested_score() == expected


@pytest.mark.slow
def test_rows_that_are_added_are_not_chosen_by():
    X, y = make_banana(80, random_state=0)
    model = KernelFisherClassifier(centers=20, random_state=0).fit(X[:60], y[:60])
    assert model._fitted.nested is not None
    model.partial_fit(X[60:], y[60:])
    with pytest.raises(ValueError, match="not in batches"):
        model.nested_score()


@pytest.mark.slow
def test_of_many_rows_three_fifths_are_predicted_by_models_chosen_without_them():
    X, y = make_banana(ALL_FIFTHS + 10, random_state=0)
    model = KernelFisherClassifier(MEDIAN, centers=Uniform(20)).fit(X, y)
    outer, right = model._fitted.nested.outer, []
    assert_array_equal(np.unique(outer, return_counts=True), [[-1, 0, 1, 2], [404, 202, 202, 202]])
    for fold in range(3):
        without = clone(model).fit(X[outer != fold], y[outer != fold])
        right += (without.predict(X[outer == fold]) == y[outer == fold]).tolist()
    assert model.nested_score() == pytest.approx(np.mean(right), abs=1e-12)


@pytest.mark.slow
def test_on_noise_the_score_of_many_rows_is_not_that_of_the_best_choice():
    """Neither is too high, although labels chose the centers, a third of the rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(ALL_FIFTHS + 10, 3)), rng.integers(2, size=ALL_FIFTHS + 10)
    model = KernelFisherClassifier(RBF(gamma=3.0), centers=300).fit(X, y)
    assert model.loo_score_ != model.nested_score()
    # Three standard errors of 606 and of all rows.
    assert abs(model.nested_score() - 0.5) < 3 * 0.5 / 606**0.5
    assert abs(model.loo_score_ - 0.5) < 3 * 0.5 / len(y) ** 0.5


def test_more_rows_than_are_kept_have_no_nested_score():
    X, y = make_banana(MOST_NESTED_ROWS + 1, random_state=0)
    model = KernelFisherClassifier(MEDIAN, alpha=1.0, centers=Uniform(20), loo_rows=None).fit(X, y)
    with pytest.raises(ValueError, match="4 to 10,000 rows"):
        model.nested_score()


def test_rows_that_are_centers_are_kept_once():
    X, y = make_banana(40, random_state=0)
    model = KernelFisherClassifier(MEDIAN).fit(
        np.r_[X, X[:5]], np.r_[y, y[:5]], sample_weight=np.r_[0.0, np.ones(44)]
    )
    assert model._fitted.nested.X is model.X_fit_
    kept = model._fitted.nested.X[model._fitted.nested.row]
    assert_array_equal(np.sort(kept, axis=0), np.sort(np.r_[X[1:], X[:5]], axis=0))


@pytest.mark.slow
def test_warnings_of_the_fit_are_not_repeated():
    X, y = make_banana(40, random_state=0)
    weight = np.where(np.arange(40) < 20, 9, 1)
    with pytest.warns(WeightWarning):
        model = KernelFisherClassifier(random_state=0).fit(
            X, y * (-1) ** (np.arange(40) % 3), sample_weight=weight
        )
    assert 0.0 <= model.nested_score() <= 1.0


@pytest.mark.slow
def test_a_notebook_that_shows_a_model_does_not_compute_its_score():
    X, y = make_banana(60, random_state=0)
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    assert f"{model.loo_score_:.4g}" in model._repr_html_()
    assert model._fitted.nested.found is None


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
def test_noise_of_equally_large_classes_is_not_predicted_worse_than_by_chance(k):
    """Without the row itself its class is the smaller one: folds have equal shares, too."""
    scores = []
    for seed in range(12):
        X, y = np.random.default_rng(seed).normal(size=(20 * k, 3)), np.arange(20 * k) % k
        scores.append(KernelFisherClassifier(MEDIAN).fit(X, y).nested_score())
    # Four standard errors of a mean of 240 k rows.
    assert abs(np.mean(scores) - 1.0 / k) < 4.0 * (1.0 / k * (1.0 - 1.0 / k) / (240 * k)) ** 0.5 + 0.02


@pytest.mark.parametrize("n", [12, 26, 64])
def test_folds_of_equally_large_classes_have_equal_shares(n):
    """One row more of a class in a fold, and the other class is larger without it."""
    X, y = np.random.default_rng(0).normal(size=(n, 3)), np.arange(n) % 2
    outer = nested_score_of(KernelFisherClassifier(), RBF(), training_of(X, y), y, None).outer
    assert_array_equal(np.bincount(outer[y == 0]), np.bincount(outer[y == 1]))
    groups = np.repeat(np.arange(n), 3)
    outer = KernelFisherClassifier(MEDIAN).fit(X[groups], y[groups], groups=groups)._fitted.nested.outer
    assert_array_equal(np.bincount(outer[y[groups] == 0]), np.bincount(outer[y[groups] == 1]))


@pytest.mark.slow
def test_a_class_that_only_one_group_has_leaves_that_group_unpredicted():
    X, _ = make_banana(40, random_state=0)
    group = np.repeat(np.arange(5), 8)
    model = KernelFisherClassifier(random_state=0).fit(X, group == 3, groups=group)
    assert_array_equal(np.unique(group[model._fitted.nested.outer < 0]), [3])
    assert 0.0 <= model.nested_score() <= 1.0


def test_a_score_that_cannot_be_computed_says_why(monkeypatch):
    X, y = make_banana(40, random_state=0)
    model = KernelFisherClassifier(random_state=0).fit(X, y)

    def fail(self, fold):
        raise ValueError("no such fold")

    monkeypatch.setattr(type(model._fitted.nested), "_chosen_without", fail)
    with pytest.raises(ValueError, match="no such fold"):
        model.nested_score()


def test_weights_mean_the_same_without_a_fold():
    X, y = make_banana(60, random_state=0)
    weight = 1.0 + np.arange(60) % 3
    weight[0] = 12.0
    model = KernelFisherClassifier("rbf", random_state=0).fit(X, y, sample_weight=weight)
    assert model._fitted.nested.model.weights == "importance"
    assert KernelFisherClassifier("rbf", random_state=0).fit(X, y)._fitted.nested.model.weights == "counts"


@pytest.mark.slow
def test_threads_that_ask_for_a_score_compute_it_once(monkeypatch):
    X, y = make_banana(60, random_state=0)
    model, calls = KernelFisherClassifier(random_state=0).fit(X, y), []
    anew, made = type(model._fitted.nested), type(model._fitted.nested)._predicted
    monkeypatch.setattr(anew, "_predicted", lambda self: calls.append(1) or made(self))
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda _: model.nested_score(), range(4)))
    assert len(calls) == 1
    assert len(set(scores)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_groups_whose_numbers_tell_their_class_are_predicted_as_others_are(shift):
    """Dealt by number, each fold would have one class, the rarer one without it."""
    scores = []
    for seed in range(6):
        rng, group = np.random.default_rng(seed), np.repeat(np.arange(40), 3)
        X, y = rng.normal(size=(120, 3)), group % 2
        X[:, 0] += shift * y
        other = rng.permutation(40)[group]
        scores.append(
            [
                KernelFisherClassifier(MEDIAN, random_state=0).fit(X, y, groups=g).nested_score()
                for g in (group, other)
            ]
        )
    by_number, by_name = np.mean(scores, axis=0)
    # Four standard errors of a mean of 720 rows.
    assert abs(by_number - by_name) < 4.0 * 0.5 / 720**0.5
    assert by_number > 0.4


@pytest.mark.slow
def test_a_class_that_only_one_group_has_is_not_missed():
    rng, group = np.random.default_rng(0), np.arange(60) // 6
    X, y = rng.normal(size=(60, 2)), rng.integers(2, size=60)
    y[group == 0] = 2
    for more in ({"priors": [0.3, 0.3, 0.4]}, {"n_components": 2}):
        model = KernelFisherClassifier(random_state=0, **more).fit(X, y, groups=group)
        assert 0.0 <= model.nested_score() <= 1.0
        assert_array_equal(np.unique(group[model._fitted.nested.outer < 0])[0], 0)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["logistic", "gaussian", "quadratic", "isotonic"])
@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("kind", [KernelFisherClassifier, SparseFisherClassifier])
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_few_rows_of_many_classes_are_not_known(calibration, each, kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10 * each, 2)), np.arange(10 * each) % 10
    # The search does not know the calibration.
    kernel = "rbf" if calibration == "logistic" else MEDIAN
    model = kind(kernel, calibration=calibration, random_state=0).fit(X, y)
    if each == 2:
        assert model.nested_score() <= 0.2
    assert model.predict_proba(rng.normal(size=(200, 2))).max() < 0.25
    if each == 1:
        assert model.loo_score_ == 0.0


def test_large_counts_are_not_repeated():
    X, y = make_banana(40, random_state=0)
    weight = np.full(40, 1e9)
    weight[0] += 1
    model = KernelFisherClassifier(weights="counts", random_state=0).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="no rows for a nested score"):
        model.nested_score()


@pytest.mark.slow
def test_a_constant_target_is_not_better_than_it_is():
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert KernelRidgeRegressor(random_state=0).fit(X, np.ones(40)).nested_score() in (0.0, 1.0)


def test_a_number_of_centers_that_rows_decide_on_is_chosen_and_a_given_one_is_not():
    X, y = make_banana(400, random_state=0)
    given = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=X[:20]).fit(X, y)
    assert given.nested_score() == given.loo_score_
    decided = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1).fit([(X[:200], y[:200]), (X[200:], y[200:])])
    with pytest.raises(ValueError, match="no rows for a nested score"):
        decided.nested_score()
