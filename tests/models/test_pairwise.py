"""Classifiers of pairs, and what is coupled from them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mercer import KernelFisherClassifier, OnlineFisherClassifier, PairwiseClassifier
from mercer._estimators import pairwise as pairwise_module
from mercer._scores.probabilities.coupling import couple_odds
from mercer.kernels import RBF, FromCallable, pairwise

FIXED = KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0)


def test_pairs_see_their_rows_only(three_classes):
    X, y = three_classes
    model = PairwiseClassifier(FIXED).fit(X, y)
    for (i, j), one in zip(model.pairs_, model.estimators_):
        rows = np.isin(y, [i, j])
        alone = KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0).fit(X[rows], y[rows])
        assert_allclose(one.predict_log_proba(X), alone.predict_log_proba(X))


def test_two_classes_are_one_pair(two_classes):
    X, y = two_classes
    model, alone = PairwiseClassifier(FIXED).fit(X, y), KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0).fit(X, y)
    for name in ("predict_proba", "predict_log_proba", "decision_function", "predict"):
        assert_allclose(getattr(model, name)(X), getattr(alone, name)(X), atol=1e-10)


def test_odds_are_coupled_by_the_formula(three_classes):
    X, y = three_classes
    model = PairwiseClassifier(FIXED, coupling="odds").fit(X, y)
    S = np.zeros((len(y), 3, 3))
    for (i, j), one in zip(model.pairs_, model.estimators_):
        S[:, j, i] = one.decision_function(X)
        S[:, i, j] = -S[:, j, i]
    assert_allclose(model.predict_proba(X), np.exp(couple_odds(S)), atol=1e-12)


@pytest.mark.parametrize("coupling", ["least_squares", "odds"])
def test_logarithms_of_coupled_pairs_do_not_underflow(three_classes, coupling):
    X, y = three_classes
    model = PairwiseClassifier(OnlineFisherClassifier("linear", alpha=1.0), coupling=coupling).fit(X, y)
    far = np.array([[1e4, -1e4]])
    assert model.predict_proba(far).min() == 0.0
    assert np.isfinite(model.predict_log_proba(far)).all()


@pytest.mark.parametrize("coupling", ["least_squares", "odds"])
@pytest.mark.parametrize("k", [2, 6])
def test_densities_far_apart_are_coupled_to_their_posterior(rng, coupling, k):
    """Pairs of densities are consistent: the classifier of all classes has the same probabilities."""
    y = np.repeat(np.arange(k), 20)
    X = rng.normal(size=(20 * k, 2)) + 30.0 * y[:, None]
    # Variances are smoothed by those of all rows, which pairs do not have.
    densities = GaussianNB(var_smoothing=0.0)
    found = PairwiseClassifier(densities, coupling=coupling).fit(X, y).predict_log_proba(X)
    expected = densities.fit(X, y).predict_log_proba(X)
    assert expected.min() < -1000
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_log_odds_of_two_classes_are_differences_of_logarithms(rng):
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 1)) + 30.0 * y[:, None]
    model = PairwiseClassifier(GaussianNB()).fit(X, y)
    log_p = model.predict_log_proba(X)
    assert_allclose(log_p[:, 1] - log_p[:, 0], model.decision_function(X))


@pytest.mark.parametrize("coupling", ["least_squares", "odds"])
def test_probabilities_are_honest_about_classes_that_overlap(rng, coupling):
    """The densities are known: three unit Gaussians on a line."""
    y = rng.integers(3, size=1500)
    X = rng.normal(size=(1500, 1)) + 1.5 * y[:, None]
    new = np.linspace(-2, 5, 50)[:, None]
    density = np.exp(-0.5 * (new - 1.5 * np.arange(3)) ** 2)
    truth = density / density.sum(axis=1, keepdims=True)
    found = PairwiseClassifier(LogisticRegression(), coupling=coupling).fit(X, y).predict_proba(new)
    assert np.abs(found - truth).max() < 0.06


@pytest.mark.slow
def test_batches_equal_one_fit(three_classes):
    X, y = three_classes
    base = KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0, centers=X[::5], loo_rows=None)
    whole, parts = PairwiseClassifier(base).fit(X, y), PairwiseClassifier(base)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 4):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-8)


def test_a_pair_without_rows_has_no_opinion(three_classes):
    X, y = three_classes
    model = PairwiseClassifier(OnlineFisherClassifier(), coupling="odds")
    model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2, 3])
    assert not hasattr(model.estimators_[model.pairs_.index((2, 3))], "classes_")
    assert np.isfinite(model.predict_proba(X)).all()
    assert set(model.predict(X[y < 2])) <= {0, 1}
    with pytest.raises(ValueError, match=r"contains \[7\].*pass all labels"):
        model.partial_fit(X[:2], [7, 7])


@pytest.mark.slow
def test_kernel_values_objects_and_frames_are_parted_by_pairs(three_classes):
    X, y = three_classes
    expected = PairwiseClassifier(FIXED).fit(X, y).predict_proba(X[:9])
    K = RBF(gamma=0.5).block(X, X)
    values = PairwiseClassifier(KernelFisherClassifier("precomputed", alpha=1.0)).fit(K, y)
    assert_allclose(values.predict_proba(K[:9]), expected, atol=1e-10)
    frame = pd.DataFrame(X, columns=["a", "b"])
    framed = PairwiseClassifier(FIXED).fit(frame, y)
    assert_allclose(framed.predict_proba(frame[:9]), expected, atol=1e-10)
    assert_array_equal(framed.feature_names_in_, ["a", "b"])
    kernel = FromCallable(pairwise(lambda x, z: float(np.exp(-0.5 * np.sum((x - z) ** 2)))), psd=True)
    listed = PairwiseClassifier(KernelFisherClassifier(kernel, alpha=1.0)).fit(list(X), y)
    assert_allclose(listed.predict_proba(list(X[:9])), expected, atol=1e-10)


def test_kernel_values_of_other_rows_are_refused(three_classes):
    X, y = three_classes
    K, n = RBF(gamma=0.5).block(X, X), len(y)
    model = PairwiseClassifier(KernelFisherClassifier("precomputed", alpha=1.0))
    for values in (K[:, :-1], np.hstack([K, K])):
        with pytest.raises(ValueError, match=rf"square matrix K\(train, train\).*\({n}, {values.shape[1]}\)"):
            model.fit(values, y)
    model.fit(K, y)
    assert model.n_features_in_ == n
    for values in (K[:3, :-1], np.hstack([K, K])[:3]):
        for rows in (values, pd.DataFrame(values), values.tolist(), [(values,)]):
            with pytest.raises(ValueError, match=f"X has {values.shape[1]} features.*had {n}"):
                model.predict(rows)


@pytest.mark.parametrize("estimator", [FIXED, LogisticRegression()], ids=["takes_groups", "takes_none"])
def test_groups_are_read_as_by_one_classifier(three_classes, estimator):
    X, y = three_classes
    of_rows = np.arange(len(y)) // 6
    wrong = [
        np.ma.masked_array(of_rows, mask=of_rows == 0),
        np.column_stack([of_rows, of_rows]),
        np.array([1, "a"] * (len(y) // 2) + [2] * (len(y) % 2), dtype=object),
        np.full(len(y), np.nan),
        np.zeros(len(y)),
        of_rows[1:],
    ]
    for groups in wrong:
        with pytest.raises((ValueError, TypeError, IndexError)) as alone:
            KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0).fit(X, y, groups=groups)
        with pytest.raises(alone.type) as of_pairs:
            PairwiseClassifier(estimator).fit(X, y, groups=groups)
        assert str(of_pairs.value) == str(alone.value)


def test_a_pair_whose_rows_with_weight_are_one_group_holds_out_rows(three_classes):
    X, y = three_classes
    groups = np.where(y == 2, 1, 0)
    weight = np.ones(len(y))
    groups[0], weight[0] = 2, 0.0
    model = PairwiseClassifier(FIXED).fit(X, y, sample_weight=weight, groups=groups)
    one = model.estimators_[model.pairs_.index((0, 1))]
    rows = np.isin(y, [0, 1])
    alone = KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0).fit(X[rows], y[rows], sample_weight=weight[rows])
    assert_allclose(one.predict_log_proba(X), alone.predict_log_proba(X))


@pytest.mark.slow
def test_parameters_of_the_default_classifier_can_be_set_and_searched(three_classes):
    X, y = three_classes
    model = PairwiseClassifier().set_params(estimator__kernel__gamma=0.5, estimator__alpha=1.0, coupling="odds")
    expected = PairwiseClassifier(FIXED, coupling="odds").fit(X, y).predict_proba(X)
    assert_allclose(model.fit(X, y).predict_proba(X), expected)
    assert PairwiseClassifier().set_params(coupling="odds").estimator is None
    kept = PairwiseClassifier(LogisticRegression()).set_params(estimator__C=3.0)
    assert kept.estimator.C == 3.0
    search = GridSearchCV(PairwiseClassifier(), {"estimator__alpha": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.estimators_[0].alpha_ == search.best_params_["estimator__alpha"]


def test_a_coupling_set_after_the_fit_is_used_or_refused(three_classes):
    X, y = three_classes
    model = PairwiseClassifier(FIXED).fit(X, y)
    expected = PairwiseClassifier(FIXED, coupling="odds").fit(X, y).predict_proba(X)
    assert_allclose(model.set_params(coupling="odds").predict_proba(X), expected)
    model.set_params(coupling="nonsense")
    for name in ("predict", "predict_proba", "predict_log_proba"):
        with pytest.raises(ValueError, match="coupling='nonsense' is not known"):
            getattr(model, name)(X)


def test_classes_of_later_batches_are_those_of_the_first(three_classes):
    X, y = three_classes
    model = PairwiseClassifier(OnlineFisherClassifier(RBF(gamma=0.5), alpha=1.0))
    model.partial_fit(X, y, classes=[0, 1, 2]).partial_fit(X[:9], y[:9], classes=[2, 1, 0])
    with pytest.raises(ValueError, match=r"classes=\[5, 6\] differ from those of the first call, \[0, 1, 2\]"):
        model.partial_fit(X, y, classes=[5, 6])


def test_whole_weights_are_repeats(three_classes):
    X, y = three_classes
    weight = np.arange(len(y)) % 3
    counting = KernelFisherClassifier(**FIXED.get_params(deep=False) | {"weights": "counts"})
    weighted = PairwiseClassifier(counting).fit(X, y, sample_weight=weight)
    repeated = PairwiseClassifier(FIXED).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("coupling", ["least_squares", "odds"])
@pytest.mark.parametrize(
    "estimator",
    [CalibratedClassifierCV(LinearSVC(), cv=3, ensemble=False), DecisionTreeClassifier(random_state=0)],
    ids=["without_logarithms", "zero_probabilities"],
)
def test_probabilities_of_any_classifier_are_coupled(three_classes, estimator, coupling):
    X, y = three_classes
    model = PairwiseClassifier(estimator, coupling=coupling).fit(X, y)
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.8


def test_what_cannot_be_coupled_is_refused(three_classes):
    X, y = three_classes
    with pytest.raises(TypeError, match="no predict_log_proba"):
        PairwiseClassifier(LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="coupling='votes' is not known"):
        PairwiseClassifier(coupling="votes").fit(X, y)
    assert not hasattr(PairwiseClassifier(LogisticRegression()), "partial_fit")


def test_labels_of_rows_without_weight_are_no_classes(three_classes):
    X, y = three_classes
    labels, weight = y.copy(), np.ones(len(y))
    labels[0], weight[0] = 99, 0.0
    estimator = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=X[::10])
    model = PairwiseClassifier(estimator).partial_fit(X, labels, sample_weight=weight)
    assert_array_equal(model.classes_, np.unique(y))
    before = model.predict_proba(X)
    model.partial_fit(X[:3], labels[:3], sample_weight=np.zeros(3) + [0.0, 1.0, 1.0])
    assert model.predict_proba(X).shape == before.shape


def test_rows_outside_memory_are_refused_in_fits(three_classes, tmp_path):
    X, y = three_classes
    for rows in (lambda: iter([(X, y)]), [(X, y)], str(tmp_path / "rows.parquet")):
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match="PairwiseClassifier needs the rows in memory"):
                getattr(PairwiseClassifier(), method)(rows, y)


def test_many_rows_are_coupled_a_few_at_a_time(three_classes, monkeypatch):
    """Log-odds of all pairs are k times the size of the probabilities; pairs are asked about more rows at once."""
    X, y = three_classes
    asked = []

    class Spy(KernelFisherClassifier):
        def predict_log_proba(self, X):
            asked.append(X.n_rows if hasattr(X, "n_rows") else len(X))
            return super().predict_log_proba(X)

    model = PairwiseClassifier(Spy(RBF(gamma=0.5), alpha=1.0), coupling="odds").fit(X, y)
    at_once, seen = model.predict_proba(X), []

    def couple(odds):
        seen.append(odds.shape)
        return couple_odds(odds)

    monkeypatch.setattr(pairwise_module, "couple_odds", couple)
    monkeypatch.setattr(pairwise_module, "BLOCK_SIZE", 1)
    monkeypatch.setattr(pairwise_module, "COUPLED", 7 * 9)
    monkeypatch.setattr(pairwise_module, "ASKED", 50)
    for rows in (X, [(X,)], pd.DataFrame(X)):
        asked.clear()
        assert_allclose(model.predict_proba(rows), at_once, atol=1e-12)
        assert max(seen) == (7, 3, 3)
        assert sum(shape[0] for shape in seen) == len(X)
        assert max(asked) == 50
        assert len(asked) == 3 * -(-len(X) // 50)
        seen.clear()
    with pytest.raises(ValueError, match="0 sample"):
        model.predict_proba(X[:0])


def test_groups_that_no_classifier_of_a_pair_takes_are_refused():
    X, y = np.arange(12.0)[:, None], np.arange(12) % 3
    with pytest.raises(ValueError, match="groups are for a classifier whose fit takes them"):
        PairwiseClassifier(LogisticRegression()).fit(X, y, groups=np.arange(len(y)) % 5)
