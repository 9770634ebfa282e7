"""Hidden Markov models with discriminants: what they learn, and the laws of estimators."""

import io
import pickle
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GroupKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from mercer import KernelFisherClassifier, OnlineFisherClassifier, PairwiseClassifier, SparseFisherClassifier
from mercer.datasets import make_words
from mercer.files import TRUSTED_TYPES
from mercer.kernels import RBF
from mercer.sequences import (
    HiddenMarkovClassifier,
    read_sequences,
)
from mercer.sequences import (
    _alignment as alignment,
)
from mercer.sequences import (
    _emissions as emissions,
)
from mercer.sequences import (
    _frames as frames,
)
from mercer.sequences import (
    _recognizer as recognizer,
)
from mercer.sequences._emissions import BATCH, Mixtures, batches, folds
from mercer.sequences._frames import stacked
from mercer.sequences._paths import hmm
from mercer.sequences._training import best_slope, drawn

SIMPLE = QuadraticDiscriminantAnalysis()


@pytest.fixture(scope="module")
def words():
    return make_words(60, random_state=0)


@pytest.fixture(scope="module")
def new_words():
    return make_words(60, random_state=1)


def model_of(estimator=SIMPLE, **choices):
    return HiddenMarkovClassifier(estimator, **({"n_states": 3, "n_mixtures": 1, "random_state": 0} | choices))


@pytest.fixture(scope="module")
def fitted(words):
    return model_of().fit(*words)


KERNEL = KernelFisherClassifier(RBF(gamma=1.0), alpha=0.1, centers=30, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    ["mixtures", LogisticRegression(), QuadraticDiscriminantAnalysis(), make_pipeline(StandardScaler(), KERNEL)],
    ids=["mixtures", "logistic", "quadratic", "pipeline"],
)
def test_any_classifier_with_probabilities_learns_words(estimator, words, new_words):
    model = model_of(estimator, n_rounds=1).fit(*words)
    assert model.score(*new_words) > 0.9
    P = model.predict_proba(new_words[0])
    assert_allclose(P.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(new_words[0]))


@pytest.mark.slow
def test_pairs_of_states_learn_words(words, new_words):
    pairs = PairwiseClassifier(SparseFisherClassifier(RBF(gamma=1.0), alpha=0.1, max_centers=5), coupling="odds")
    model = model_of(pairs, n_states=2, n_rounds=0, held_out=0).fit(words[0][:20], words[1][:20])
    assert len(model.models_.emissions.classifier.pairs_) == 15
    assert model.score(*new_words) > 0.6


@pytest.mark.slow
def test_paths_visit_the_states_in_order(fitted, new_words):
    path = fitted.align(new_words[0][0], new_words[1][0])
    assert_array_equal(np.unique(path), [0, 1, 2])
    assert (np.diff(path) >= 0).all()
    assert len(path) == len(new_words[0][0])


def test_words_may_have_their_own_numbers_of_states(words):
    model = model_of(n_states={"up": 1, "turn": 2}, n_rounds=0).fit(*words)
    assert dict(zip(model.classes_.tolist(), model.states_.tolist())) == {"down": 5, "turn": 2, "up": 1}
    with pytest.raises(ValueError, match="there is no word 'left' among the classes"):
        model_of(n_states={"left": 1}).fit(*words)
    with pytest.raises(ValueError, match="n_states of 'up'"):
        model_of(n_states={"up": 0}).fit(*words)
    with pytest.raises(ValueError, match="or a dict of them by word"):
        model_of(n_states=[3, 3, 3]).fit(*words)


@pytest.mark.slow
def test_paths_find_the_sounds():
    # Without noise and overlap the sounds of "up" are told apart by their rings.
    X, y = make_words(60, noise=0.01, random_state=2)
    model = model_of(QuadraticDiscriminantAnalysis(reg_param=0.01)).fit(X, y)
    x = next(x for x, word in zip(X, y) if word == "up")
    outer = np.hypot(*x.T) > 1.5
    assert (outer == (model.align(x, "up") == 1)).mean() > 0.9


def test_joined_words_are_decoded(fitted, new_words):
    X, y = new_words
    found = fitted.segment(np.concatenate(X[:6]), insertion_penalty=1.0)
    assert [word for word, _ in found] == y[:6].tolist()
    starts = np.cumsum([0, *map(len, X[:5])])
    assert np.abs(np.subtract([t for _, t in found], starts)).max() <= 3
    assert fitted.decode(X[0], {None: ["up"], "up": [None]}) == ["up"]
    assert fitted.decode(X[0], {None: ["up"], "up": [None]}, silence="up") == []
    with pytest.raises(ValueError, match="there is no word 'pause' among the classes"):
        fitted.decode(X[0], silence="pause")
    with pytest.raises(ValueError, match=r"there is no word \['up', 'down'\]"):
        fitted.decode(X[0], silence=["up", "down"])
    with pytest.raises(TypeError, match="the grammar is a list; pass a dict"):
        fitted.decode(X[0], ["up", "down"])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "decode", "align", "score"])
def test_models_that_are_not_fitted_say_so(method, words):
    given = (words[0], words[1]) if method == "score" else (words[0][0], "up") if method == "align" else words[:1]
    with pytest.raises(NotFittedError):
        getattr(model_of(), method)(*given)


def test_impossible_sentences_are_refused(fitted):
    with pytest.raises(ValueError, match="fits into 3 frames"):
        fitted.decode(np.zeros((3, 2)), {None: ["up"], "up": ["down"], "down": [None]})


@pytest.mark.slow
def test_held_out_sequences_choose_the_rounds_and_the_slope(words):
    model = model_of(n_rounds=3).fit(*words)
    assert 1 <= len(model.held_out_losses_) <= 4
    assert all(0.0 < loss < np.log(3) for loss in model.held_out_losses_)
    assert 0 < model.slope_ <= 1
    without = model_of(held_out=0, n_rounds=1).fit(*words)
    assert without.slope_ == 1.0
    assert without.held_out_losses_ == ()


@pytest.mark.slow
def test_the_default_chooses_its_kernel_once(words, monkeypatch):
    asked = []

    class Spy(KernelFisherClassifier):
        def fit(self, X, y=None, **choices):
            asked.append(self.kernel)
            return super().fit(X, y, **choices)

    monkeypatch.setattr(recognizer, "KernelFisherClassifier", Spy)
    monkeypatch.setattr(recognizer, "CENTERS_OF_STATES", 20)
    model = model_of(None, n_rounds=1).fit(words[0][:30], words[1][:30])
    assert len(asked) == 3
    assert isinstance(asked[0], str)
    gamma = model.models_.emissions.classifier.kernel_.gamma
    assert [kernel.gamma for kernel in asked[1:]] == [gamma] * 2


def test_held_out_groups_stay_whole_and_words_keep_sequences(rng):
    word, group = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 1, 2, 2, 3])
    for _ in range(20):
        held = drawn(word, group, 0.5, rng)
        assert len(held) <= 3
        assert not set(group[held]) & set(np.delete(group, held))
        assert set(np.delete(word, held)) == {0, 1}
    assert len(drawn(word, group, 0.0, rng)) == 0
    # Large groups are held out if small ones are too little, and not if they are too much.
    word, group = np.arange(200) % 2, np.minimum(np.arange(200), 20)
    for _ in range(20):
        assert len(drawn(word, group, 0.2, rng)) == 20
        assert len(drawn(word, np.repeat([0, 1, 2], [90, 60, 50]), 0.2, rng)) in (50, 60)
        assert len(drawn(word[:91], np.repeat([0, 1, 2, 3], [30, 30, 30, 1]), 0.2, rng)) in (30, 31)
    assert len(drawn(word, np.arange(200) % 2 + word, 0.2, rng)) == 0


@pytest.mark.slow
def test_slopes_of_overconfident_likelihoods_are_small(rng):
    word = rng.integers(2, size=500)
    logs = np.column_stack([np.zeros(500), rng.normal(2.0 * word - 1.0)])
    equal = np.log([0.5, 0.5])
    slope, loss = best_slope(10.0 * logs, word, equal)
    assert_allclose(best_slope(20.0 * logs, word, equal), (slope / 2.0, loss), rtol=1e-3)
    assert slope < 0.3
    assert loss < np.log(2)
    # Slopes just below one are likely, too; with forty times the sequences they are not.
    assert best_slope(0.1 * logs, word, equal)[0] > 0.95
    assert best_slope(0.1 * np.tile(logs, (40, 1)), np.tile(word, 40), equal)[0] > 0.99


def test_slopes_grow_with_the_number_of_sequences_without_errors():
    """One right word proves little, a hundred more; likelihoods that differ widely do no harm."""
    right, equal = np.array([[0.0, -20.0]]), np.log([0.5, 0.5])
    found = [best_slope(np.repeat(right, n, axis=0), np.zeros(n, dtype=int), equal)[0] for n in (1, 5, 20, 100)]
    assert_array_equal(found, np.sort(found))
    sure = 1.0 / (1.0 + np.exp(-20.0 * np.array(found)))
    assert 0.6 < sure[0] < 0.9
    assert sure[-1] > 0.99
    wide = np.repeat([[0.0, -20.0], [0.0, -2000.0]], 10, axis=0)
    assert best_slope(wide, np.zeros(20, dtype=int), equal)[0] > 0.05


@pytest.mark.slow
def test_probabilities_are_as_sure_as_the_words_are_right():
    X, y = make_words(340, random_state=0)
    model = model_of(n_rounds=0).fit(X[:40], y[:40])
    P = model.predict_proba(X[40:])
    assert (model.predict(X[40:]) == y[40:]).mean() > 0.97
    assert P.max(axis=1).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rare_words_are_recognized(seed):
    X, y = make_words(640, random_state=seed)
    up, down = (np.flatnonzero(y[:400] == word)[:n] for word, n in (("up", 90), ("down", 10)))
    rows = np.r_[up, down]
    model = model_of(n_rounds=0).fit([X[i] for i in rows], y[rows])
    new = [X[i] for i in range(400, 640) if y[i] == "down"]
    assert (model.predict(new) == "down").mean() > 0.9


@pytest.mark.slow
def test_constant_features_change_nothing(rng, new_words):
    """A constant has no variance, in any unit."""
    X, y = [x + rng.normal(size=x.shape) for x in new_words[0]], new_words[1]
    longer = [np.column_stack([np.full(len(x), 7.3), x, np.zeros(len(x))]) for x in X]
    mixtures = model_of("mixtures", n_mixtures=2)
    plain, more = clone(mixtures).fit(X, y), clone(mixtures).fit(longer, y)
    for a, b, word in zip(X, longer, y):
        assert_array_equal(plain.align(a, word), more.align(b, word))
    assert_allclose(more.predict_proba(longer), plain.predict_proba(X), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.1, 1e20, 1e90])
def test_rounding_of_constants_is_no_feature(value, new_words):
    X, y = new_words
    longer = [np.column_stack([x, value * (1.0 + 3e-16 * (np.arange(len(x)) % 2))]) for x in X]
    plain, more = (model_of("mixtures").fit(each, y) for each in (X, longer))
    assert_allclose(more.predict_proba(longer), plain.predict_proba(X), atol=1e-8)


def test_a_word_far_away_does_not_blind_others(rng):
    """Least variances are those within words: a pause of digital silence is far from all speech."""
    y = np.repeat([0, 3, 1000], 20)
    X = [label + rng.normal(size=(10, 1)) for label in y]
    assert model_of("mixtures", n_states=2).fit(X, y).score(X, y) == 1.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6])
def test_features_that_are_constant_in_each_word_tell_words_apart_in_any_unit(scale, rng):
    y = np.repeat([0, 1], 10)
    X = [np.column_stack([rng.normal(size=12), np.full(12, scale * label)]) for label in y]
    assert model_of("mixtures", n_states=2).fit(X, y).score(X, y) == 1.0


def test_frames_that_never_change_are_words_without_information():
    model = model_of("mixtures", n_states=2, held_out=0).fit([np.ones((6, 2))] * 4, [0, 0, 0, 1])
    assert_allclose(model.predict_proba([np.ones((6, 2))]), [[0.75, 0.25]], atol=0.02)


@pytest.mark.slow
def test_columns_of_frames_keep_their_names(words):
    named = [pd.DataFrame(x, columns=["a", "b"]) for x in words[0]]
    model = model_of(n_rounds=0).fit(named, words[1])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert_array_equal(model.predict(named), model.predict(words[0]))
    turned = [frame[["b", "a"]] for frame in named]
    for ask in (model.predict, lambda X: model.decode(X[0]), lambda X: model.align(X[0], "up")):
        with pytest.raises(ValueError, match="the columns are b, a, but the model was fitted on a, b"):
            ask(turned)
    assert model.fit(turned, words[1]).feature_names_in_.tolist() == ["b", "a"]
    assert not hasattr(model.fit(*words), "feature_names_in_")


def test_parameters_of_the_default_estimator_can_be_set():
    model = model_of(None).set_params(estimator__centers=20, n_states=2)
    assert isinstance(model.estimator, KernelFisherClassifier)
    assert model.estimator.centers == 20
    assert model.n_states == 2
    model = model_of(None)
    with pytest.raises(ValueError, match="nope"):
        model.set_params(estimator__nope=1)
    assert model.estimator is None


@pytest.mark.slow
def test_the_default_is_the_same_if_its_parameters_are_named(words):
    X, y = words[0][:20], words[1][:20]
    plain = model_of(None, n_rounds=0).fit(X, y)
    named = model_of(None, n_rounds=0).set_params(estimator__alpha="loo").fit(X, y)
    assert_allclose(named.predict_proba(words[0]), plain.predict_proba(words[0]))


def test_dates_are_words(words):
    dates = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="datetime64[ns]")
    label = dates[np.unique(words[1], return_inverse=True)[1]]
    model = model_of(n_rounds=0).fit(words[0], label)
    found = model.decode(np.concatenate(words[0][:3]), insertion_penalty=1.0)
    assert_array_equal(found, label[:3])
    assert model.decode(words[0][0], {None: [label[0]], label[0]: [None]}, silence=label[0]) == []


class Recorder(LinearDiscriminantAnalysis):
    def fit(self, X, y, groups=None):
        self.groups_ = groups
        return super().fit(X, y)


class OrderRecorder(LinearDiscriminantAnalysis):
    def fit(self, X, y):
        self.given_ = X, y
        return super().fit(X, y)


class RowByRow(OrderRecorder):
    def partial_fit(self, X, y):
        raise NotImplementedError


def by_word(words):
    order = np.argsort(words[1], kind="stable")
    return [words[0][i] for i in order], words[1][order]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("wrap", [lambda own: own, lambda own: make_pipeline(own)], ids=["alone", "pipeline"])
def test_classifiers_that_learn_row_by_row_get_frames_in_a_random_order(words, wrap):
    X, y = by_word(words)
    kept, mixed = (
        model_of(wrap(recorder), held_out=0, n_rounds=0).fit(X, y).models_.emissions.classifier
        for recorder in (OrderRecorder(), RowByRow())
    )
    (frames, state), (Z, shuffled) = (
        getattr(each, "steps", [(None, each)])[-1][1].given_ for each in (kept, mixed)
    )
    assert_array_equal(frames, np.concatenate(X))
    # The same frames with the same states, which come together from the first rows to the last.
    assert_array_equal(
        np.unique(np.column_stack([Z, shuffled]), axis=0), np.unique(np.column_stack([frames, state]), axis=0)
    )
    assert all(len(np.unique(part)) == 9 for part in np.array_split(shuffled, 5))


@pytest.mark.slow
def test_online_discriminants_learn_words_that_come_sorted(words, new_words):
    stream = OnlineFisherClassifier(RBF(gamma=1.0), max_centers=60, window=300)
    model = model_of(OneVsRestClassifier(stream), held_out=0, n_rounds=0).fit(*by_word(words))
    assert model.score(*new_words) > 0.8


def test_frames_of_a_sequence_are_one_group(words):
    X, y = words[0][:20], words[1][:20]
    lengths = [len(x) for x in X]
    for groups in (np.arange(20), np.repeat([3, 5], 10)):
        given = None if len(set(groups)) == 20 else groups
        model = model_of(Recorder(), held_out=0, n_rounds=0).fit(X, y, groups=given)
        found = model.models_.emissions.classifier.groups_
        pairs = set(zip(np.repeat(groups, lengths).tolist(), found.tolist()))
        assert len(pairs) == len(set(groups)) == len(set(found))


def test_folds_do_not_follow_the_order_of_words():
    """Twenty words in turn: a fold of every twentieth sequence would be all of a word."""
    word = np.tile(np.arange(20), 4)
    fold = folds(np.arange(80), word)
    assert np.bincount(fold).tolist() == [4] * 20
    assert all(len(set(word[fold == f])) == 4 for f in range(20))


@pytest.mark.slow
def test_predictions_are_the_most_probable_words(rng):
    X = [rng.normal(0.3 * (i % 5 == 0), 1.0, size=(8, 2)) for i in range(60)]
    y = np.where(np.arange(60) % 5 == 0, "rare", "often")
    model = model_of("mixtures").fit(X, y)
    assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


@pytest.mark.slow
def test_frames_far_from_the_origin_have_the_same_mixtures(words):
    X, y = words[0][:20], words[1][:20]
    near, far = (model_of("mixtures").fit([x + shift for x in X], y) for shift in (0.0, 1e6))
    assert_allclose(far.predict_proba([x + 1e6 for x in X]), near.predict_proba(X), atol=1e-4)


def test_of_few_speakers_one_is_held_out(rng):
    word, group = np.tile([0, 1], 8), np.repeat(np.arange(4), 4)
    assert len(drawn(word, group, 0.2, rng)) == 4


def test_pairs_pass_groups_on(words):
    X, _ = words
    model = PairwiseClassifier(Recorder()).fit(
        np.concatenate(X[:3]), np.repeat([0, 1, 0], [len(x) for x in X[:3]])
    )
    assert model.estimators_[0].groups_ is None
    groups = np.repeat([0, 1, 2], [len(x) for x in X[:3]])
    model.fit(np.concatenate(X[:3]), np.minimum(groups, 1), groups=groups)
    assert_array_equal(model.estimators_[0].groups_, groups)


@pytest.mark.slow
def test_cloning_refitting_and_pickling_change_nothing(fitted, words, new_words):
    expected = fitted.decision_function(new_words[0])
    assert_array_equal(clone(fitted).fit(*words).decision_function(new_words[0]), expected)
    assert_array_equal(model_of().fit(*words).fit(*words).decision_function(new_words[0]), expected)
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(new_words[0]), expected)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("estimator", ["mixtures", KERNEL], ids=["mixtures", "kernel"])
def test_skops_loads_what_it_saved(estimator, words, new_words):
    model = model_of(estimator, held_out=0, n_rounds=0).fit(words[0][:20], words[1][:20])
    file = io.BytesIO(skops.io.dumps(model))
    again = skops.io.load(file, trusted=TRUSTED_TYPES)
    assert_array_equal(again.decision_function(new_words[0]), model.decision_function(new_words[0]))


def test_one_sequence_of_each_word_is_enough(words):
    X, y = words
    first = [np.flatnonzero(y == word)[0] for word in np.unique(y)]
    model = model_of("mixtures").fit([X[i] for i in first], y[first])
    assert model.held_out_losses_ == ()
    assert_array_equal(model.predict([X[i] for i in first]), y[first])
    assert len(model.predict([X[0]])) == 1


def test_short_sequences_skip_states(fitted, words):
    X, y = words
    assert fitted.predict([X[0][:1], X[0][:2]]).shape == (2,)
    assert (np.diff(fitted.align(X[0][:2], "up")) > 0).all()
    # A word whose longest sequence is short has fewer states.
    short = [x[:2] for x in X[:30]] + X[30:]
    labels = np.r_[np.full(30, "short"), y[30:]]
    model = model_of().fit(short, labels)
    assert model.states_[model.classes_.tolist().index("short")] == 2
    assert (model.predict(short[:30]) == "short").mean() > 0.5


def test_words_without_states_of_their_own_are_refused(fitted, new_words):
    with pytest.raises(ValueError, match="no word 'left' among the classes"):
        fitted.align(new_words[0][0], "left")
    assert fitted.score([new_words[0][0]], ["left"]) == 0.0


def test_wrong_input_is_refused(words, fitted):
    X, y = words[0][:10], words[1][:10]
    broken = [np.where(np.arange(len(x))[:, None] == 0, np.nan, x) if i == 4 else x for i, x in enumerate(X)]
    with pytest.raises(ValueError, match="sequence 4 contains NaN"):
        model_of().fit(broken, y)
    with pytest.raises(ValueError, match="sequence 1 has frames of 1 numbers, and others 2"):
        model_of().fit([X[0], X[1][:, :1]], y[:2])
    with pytest.raises(ValueError, match="10 sequences and y 9 labels"):
        model_of().fit(X, y[:9])
    with pytest.raises(ValueError, match="groups 9 entries"):
        model_of().fit(X, y, groups=np.arange(9))
    with pytest.raises(ValueError, match="pass a list of sequences"):
        fitted.predict(X[0])
    for several in (X[:2], [X[0], X[0]], np.array([X[0], X[0]])):
        for method in (fitted.segment, fitted.decode, fitted.emissions, lambda given: fitted.align(given, "up")):
            with pytest.raises(ValueError, match=r"list of 2 sequences; pass one sequence at a time.*X\[0\]"):
                method(several)
    assert fitted.segment(X[0].tolist()) == fitted.segment(X[0])
    with pytest.raises(ValueError, match="frames of 3 numbers, and the model was fitted on frames of 2"):
        fitted.predict([np.ones((4, 3))])
    with pytest.raises(ValueError, match="pass at least one"):
        fitted.predict([])
    with pytest.raises(ValueError, match="at least one row"):
        fitted.predict([np.ones((0, 2))])
    with pytest.raises(ValueError, match="one class, 'up'"):
        model_of().fit(X, ["up"] * 10)


def test_wrong_parameters_are_refused(words):
    for name, value in [
        ("n_states", 0),
        ("topology", "ring"),
        ("held_out", 1.0),
        ("context", -1),
        ("n_mixtures", 0),
    ]:
        with pytest.raises(ValueError, match=f"{name}="):
            model_of(**{name: value}).fit(*words)
    with pytest.raises(ValueError, match="estimator='gaussians'"):
        model_of("gaussians").fit(*words)
    with pytest.raises(TypeError, match="no predict_proba"):
        model_of(LinearSVC()).fit(*words)


def test_ergodic_words_may_return_to_their_states(words):
    model = model_of(topology="ergodic", held_out=0, n_rounds=0).fit(*words)
    assert (model.models_.chains[0].step > 0).all()
    assert model.score(*words) > 0.8


def test_context_shows_neighbors_of_the_same_sequence():
    X = [np.array([[1.0], [2.0], [3.0]]), np.array([[7.0]])]
    assert_array_equal(stacked(X, 1), [[1, 1, 2], [1, 2, 3], [2, 3, 3], [7, 7, 7]])


def test_many_sequences_are_asked_about_a_few_at_a_time_and_have_the_same_emissions(fitted, words):
    X, _ = words
    assert [len(some) for some in batches(X)] == [60]
    times = 2 * BATCH // sum(map(len, X)) + 1
    many = times * [*X]
    parts = list(batches(many))
    assert [len(x) for some in parts for x in some] == [len(x) for x in many]
    assert all(sum(map(len, some)) <= BATCH for some in parts)
    assert len(parts) == 3
    assert [len(some) for some in batches([X[0], np.concatenate(many), X[1]])] == [1, 1, 1]
    expected = fitted.decision_function(X)
    assert_allclose(fitted.decision_function(many), np.tile(expected, (times, 1)), rtol=1e-9)


def test_context_is_used(words, new_words):
    model = model_of(context=1, held_out=0, n_rounds=0).fit(*words)
    assert model.models_.emissions.classifier.n_features_in_ == 6
    assert model.score(*new_words) > 0.9


def test_densities_are_those_of_scikit_learn(rng):
    X = rng.normal(size=(50, 3))
    mixture = GaussianMixture(2, covariance_type="diag", random_state=0).fit(X)
    ours = Mixtures(mixture.weights_[None], mixture.means_[None], mixture.covariances_[None])
    assert_allclose(ours.log_density(X)[:, 0], mixture.score_samples(X), rtol=1e-10)


MEANS = np.array([[[-1.0, 0.0], [1.0, 0.0]], [[0.0, -1.0], [0.0, 1.0]]])


def test_statistics_of_mixtures_are_those_of_hmmlearn(rng):
    _, ended = hmm._classes()
    plain = ended.__mro__[1]
    X, lengths = rng.normal(size=(40, 2)), [25, 15]
    found = []
    priors = {"covars_prior": -1.5, "covars_weight": 0.0}
    for cls in (plain, ended):
        model = cls(2, 2, n_iter=3, tol=-np.inf, random_state=0, params="stmcw", init_params="", **priors)
        model.log_end = np.zeros(2)
        model.startprob_, model.transmat_ = np.array([0.7, 0.3]), np.array([[0.8, 0.2], [0.1, 0.9]])
        model.weights_, model.means_, model.covars_ = np.full((2, 2), 0.5), MEANS, np.ones((2, 2, 2))
        found.append(model.fit(X, lengths))
    for name in ("weights_", "means_", "covars_", "transmat_"):
        assert_allclose(getattr(found[1], name), getattr(found[0], name), rtol=1e-8)


def test_without_hmmlearn_the_error_names_the_extra(monkeypatch, words):
    monkeypatch.setitem(sys.modules, "hmmlearn.base", None)
    hmm._classes.cache_clear()
    with pytest.raises(ImportError, match=r"pip install mercer\[sequences\]"):
        model_of().fit(*words)


def as_table(words, order=None):
    X, y = words
    lengths = [len(x) for x in X]
    columns = {
        "a": np.concatenate(X)[:, 0],
        "n": np.repeat(np.arange(len(X)), lengths),
        "b": np.concatenate(X)[:, 1],
    }
    columns["word"] = np.repeat(y, lengths)
    return {name: values if order is None else values[order] for name, values in columns.items()}


def written(path, table):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(table), path)
    return path


def test_frames_in_files_become_the_same_sequences(words, tmp_path):
    path = written(tmp_path / "frames.parquet", as_table(words))
    X, y = read_sequences(path, "word", sequence="n")
    assert_array_equal(y, words[1])
    for found, expected in zip(X, words[0], strict=True):
        assert_array_equal(found, expected)


@pytest.mark.slow
def test_frames_are_mapped_to_memory_in_their_own_type(words, tmp_path):
    table = as_table(words)
    single = {name: table[name].astype(np.float32) for name in ("a", "b")}
    path = written(tmp_path / "frames.parquet", table | single)
    X, y = read_sequences(path, "word", sequence="n", file=tmp_path / "frames.npy")
    assert isinstance(X[0].base, np.memmap)
    assert X[0].dtype == np.float32
    whole = model_of(KERNEL, n_rounds=1).fit([x.astype(np.float32) for x in words[0]], words[1])
    model = model_of(KERNEL, n_rounds=1).fit(X, y)
    assert model.models_.emissions.classifier.X_fit_.dtype == np.float32
    assert_array_equal(model.decision_function(X), whole.decision_function(X))
    double = model_of(KERNEL, n_rounds=1).fit(*words)
    assert_allclose(model.predict_proba(X), double.predict_proba(words[0]), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("context", [0, 2])
@pytest.mark.parametrize("groups", [None, np.arange(30) % 7])
def test_many_frames_are_read_block_by_block(words, monkeypatch, context, groups):
    """The same model as with all frames beside their neighbors in memory, also when folds are held out."""
    X, y = words[0][:30], words[1][:30]
    choices = {"context": context, "held_out": 0, "n_rounds": 0}
    expected = model_of(KERNEL, **choices).fit(X, y, groups)
    with monkeypatch.context() as patch:
        patch.setattr(emissions, "MANY_FRAMES", 10)
        patch.setattr(emissions, "stacked", None)
        patch.setattr(emissions, "FrameRows", partial(frames.FrameRows, block_rows=100))
        found = model_of(KERNEL, **choices).fit(X, y, groups)
    assert_allclose(found.decision_function(words[0]), expected.decision_function(words[0]), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("choices", [{"cv": GroupKFold(3)}, {"centers": "all"}])
def test_a_classifier_that_needs_all_frames_gets_them(words, monkeypatch, choices):
    monkeypatch.setattr(emissions, "MANY_FRAMES", 10)
    model = model_of(clone(KERNEL).set_params(**choices), n_rounds=0).fit(words[0][:30], words[1][:30])
    assert model.score(*words) > 0.8


def test_blocks_of_frames_are_parts_of_all_frames(words):
    X, state = words[0], np.arange(sum(map(len, words[0])))
    rows = frames.FrameRows(X, state, 3, block_rows=50)
    every = stacked(X, 3)
    assert_array_equal(np.concatenate([block.X for block in rows.blocks()]), every)
    part = np.flatnonzero(state % 3 == 1)
    assert_array_equal(np.concatenate([block.X for block in rows.some(part).blocks()]), every[part])
    assert_array_equal(np.concatenate([block.y for block in rows.some(part).some([4, 2]).blocks()]), part[[4, 2]])


def test_mixtures_of_many_frames_are_learned_from_some_sequences(words, monkeypatch):
    monkeypatch.setattr(alignment, "MOST_FRAMES", 100)
    turns = [np.full((10, 1), i % 2) for i in range(20)]
    assert {x[0, 0] for x in alignment._few(turns, np.random.default_rng(0))} == {0, 1}
    assert model_of().fit(*words).score(*words) > 0.9


def test_a_file_of_frames_is_replaced_and_what_is_mapped_to_it_stays(words, tmp_path):
    path, file = written(tmp_path / "frames.parquet", as_table(words)), tmp_path / "frames.npy"
    X, _ = read_sequences(path, "word", sequence="n", file=file)
    before = X[-1].copy()
    few = written(tmp_path / "few.parquet", as_table((words[0][:3], words[1][:3])))
    Z, _ = read_sequences(few, "word", sequence="n", file=file)
    assert_array_equal(X[-1], before)
    assert_array_equal(np.load(file), np.concatenate(Z))
    for place in (path, tmp_path / "frames.parquet" / "x.npy"):
        with pytest.raises(ValueError, match="among the files that are read"):
            read_sequences(path, "word", sequence="n", file=place)
    assert len(read_sequences(path, "word", sequence="n")[0]) == 60


def test_frames_in_files_that_are_no_sequences_are_refused(words, tmp_path):
    table = as_table(words)
    path = written(tmp_path / "frames.parquet", table)
    with pytest.raises(ValueError, match="no column 'm'"):
        read_sequences(path, "word", sequence="m")
    apart = written(tmp_path / "apart.parquet", as_table(words, np.r_[5 : len(table["a"]), :5]))
    with pytest.raises(ValueError, match="sort the rows by 'n'"):
        read_sequences(apart, "word", sequence="n")
    mixed = written(tmp_path / "mixed.parquet", table | {"word": np.r_[["other"], table["word"][1:]]})
    with pytest.raises(ValueError, match="sequence 0 has several labels"):
        read_sequences(mixed, "word", sequence="n")
