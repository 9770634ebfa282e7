"""Boosting by linear programs: the value of the whole program, the meaning of nu, any weak learner."""

import numpy as np
import pytest
import scipy.sparse
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from mercer import LPBoostClassifier
from mercer._estimators.programs.boosting import Stump
from mercer._solvers.programs.nonsmooth.soft_margin import soft_margin
from mercer.datasets import make_banana, make_waveform
from mercer.errors import NumericalWarning
from mercer.files import TRUSTED_TYPES


def stumps(X):
    """Predictions (n, t) of every stump on the rows."""
    columns = [np.ones(len(X))]
    for feature in X.T:
        levels = np.unique(feature)
        for cut in 0.5 * (levels[1:] + levels[:-1]):
            columns.append(np.where(feature > cut, 1.0, -1.0))
    H = np.column_stack(columns)
    return np.column_stack([H, -H])


class BestStump(ClassifierMixin, BaseEstimator):
    """The stump with the largest edge, of all cuts between rows."""

    def fit(self, X, y, sample_weight):
        edges = {}
        for j in range(X.shape[1]):
            levels = np.unique(X[:, j])
            for cut in 0.5 * (levels[1:] + levels[:-1]):
                edges[j, cut] = sample_weight @ (y * np.where(X[:, j] > cut, 1, -1))
        self.stump_ = max(edges, key=lambda stump: abs(edges[stump]))
        return self

    def predict(self, X):
        return np.where(X[:, self.stump_[0]] > self.stump_[1], 1, -1)


@pytest.mark.parametrize("nu", [0.15, 0.3, 0.6])
def test_column_generation_finds_the_value_of_the_whole_program(nu):
    X, y = make_banana(60, random_state=0)
    y = np.where(y == y.max(), 1.0, -1.0)
    whole = soft_margin(stumps(X) * y[:, None], np.full(60, 1.0 / (nu * 60)))
    model = LPBoostClassifier(BestStump(), nu=nu, tol=1e-9).fit(X, y)
    assert_allclose(model.margin_, whole.value, atol=1e-8)
    assert model.gap_ <= 1e-9


def test_multipliers_solve_the_primal_program():
    """rho - sum bound xi of the combination is the value of the dual."""
    rng = np.random.default_rng(0)
    H, bound = np.sign(rng.normal(size=(40, 15))), np.full(40, 1.0 / (0.4 * 40))
    found = soft_margin(H, bound)
    margins = np.sort(H @ found.column)
    # The best rho is one of the margins.
    values = [rho - bound[0] * np.maximum(rho - margins, 0.0).sum() for rho in margins]
    assert_allclose(max(values), found.value, atol=1e-9)
    assert_allclose(found.column.sum(), 1.0)
    assert_allclose(found.row.sum(), 1.0)


@pytest.mark.slow
def test_nu_bounds_the_share_of_margin_errors():
    X, y = make_waveform(200, random_state=0)
    for nu in (0.1, 0.3):
        model = LPBoostClassifier(nu=nu, tol=1e-6, random_state=0).fit(X, y)
        margins = np.where(y == model.classes_[1], 1.0, -1.0) * model.decision_function(X)
        levels = np.unique(margins)
        values = [rho - np.maximum(rho - margins, 0.0).sum() / (nu * 200) for rho in levels]
        rho = levels[int(np.argmax(values))]
        assert (margins < rho - 1e-9).mean() <= nu


def test_a_weight_of_two_is_two_equal_rows():
    X, y = make_banana(80, random_state=0)
    weight = np.random.default_rng(0).integers(0, 3, 80).astype(float)
    one = LPBoostClassifier(random_state=0).fit(X, y, weight)
    again = np.repeat(np.arange(80), weight.astype(int))
    two = LPBoostClassifier(random_state=0).fit(X[again], y[again])
    assert_allclose(one.decision_function(X), two.decision_function(X))


def test_three_classes_and_names():
    X = np.random.default_rng(0).normal(size=(150, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0.5).astype(int) + (X[:, 0] > -0.5)]
    model = LPBoostClassifier(random_state=0).fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.95
    assert_array_equal(model.classes_, ["a", "b", "c"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner", [DecisionTreeClassifier(max_depth=2, random_state=0), LogisticRegression(C=0.1), None]
)
def test_any_weak_learner_with_weights(learner):
    X, y = make_waveform(200, random_state=0)
    new, truth = make_waveform(1000, random_state=1)
    model = LPBoostClassifier(learner, random_state=0).fit(X, y)
    assert model.score(new, truth) > 0.8
    f = model.decision_function(new)
    assert np.abs(f).max() <= 1.0 + 1e-9
    sparse = LPBoostClassifier(learner, random_state=0).fit(scipy.sparse.csr_array(X), y)
    assert sparse.score(scipy.sparse.csr_array(new), truth) > 0.8


def test_learners_that_are_wrong_most_of_the_time_are_used_the_other_way_round():
    class Wrong(DecisionTreeClassifier):
        def predict(self, X, check_input=True):
            return -super().predict(X, check_input)

    X, y = make_banana(100, random_state=0)
    y = np.where(y == y.max(), 1, -1)
    right = LPBoostClassifier(DecisionTreeClassifier(max_depth=1), random_state=0).fit(X, y)
    wrong = LPBoostClassifier(Wrong(max_depth=1), random_state=0).fit(X, y)
    assert_allclose(wrong.decision_function(X), right.decision_function(X))


def test_what_is_refused():
    X, y = make_banana(30, random_state=0)
    with pytest.raises(ValueError, match="does not take sample_weight"):
        LPBoostClassifier(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        LPBoostClassifier().fit(X, np.ones(30))
    for settings in ({"nu": 0.0}, {"nu": 1.5}, {"tol": -1.0}, {"max_estimators": 0}):
        (name,) = settings
        with pytest.raises(ValueError, match=name):
            LPBoostClassifier(**settings).fit(X, y)


@pytest.mark.filterwarnings("ignore:no combination of these weak learners")
def test_too_few_learners_are_a_warning():
    X, y = make_waveform(100, random_state=0)
    with pytest.warns(NumericalWarning, match="3 weak learners were added"):
        model = LPBoostClassifier(nu=0.1, max_estimators=3, random_state=0).fit(X, y)
    assert model.gap_ > 0.01
    assert len(model.ensembles_[0].learners) <= 3


def test_learners_too_weak_for_nu_are_a_warning(rng):
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=200) > 0.0
    with pytest.warns(NumericalWarning, match="f is constant; raise nu"):
        LPBoostClassifier(LogisticRegression(), nu=0.05).fit(X, y)
    assert LPBoostClassifier(LogisticRegression(), nu=0.6).fit(X, y).score(X, y) > 0.8


def test_the_gap_is_that_of_the_next_learner(rng):
    X = rng.normal(size=(120, 2))
    model = LPBoostClassifier(max_estimators=1).fit(X, X[:, 0] > 0.0)
    assert model.gap_ + model.margin_[0] <= 1.0 + 1e-9
    assert model.score(X, X[:, 0] > 0.0) == 1.0


def test_predictions_that_are_no_labels_are_refused():
    class Loud(DecisionTreeClassifier):
        def predict(self, X, check_input=True):
            return 100 * super().predict(X, check_input)

    X, y = make_banana(40, random_state=0)
    with pytest.raises(ValueError, match="fitted to labels -1 and 1"):
        LPBoostClassifier(Loud(max_depth=1)).fit(X, y)


@pytest.mark.slow
def test_numbers_in_an_array_of_objects_are_numbers():
    X, y = make_banana(120, random_state=0)
    model, other = LPBoostClassifier().fit(X, y), LPBoostClassifier().fit(X.astype(object), y)
    assert_array_equal(other.decision_function(X.astype(object)), model.decision_function(X))


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_stumps_are_trees_with_one_question(kind, rng):
    X = rng.normal(size=(60, 3)).round(1)
    y = np.where(X[:, 1] + 0.5 * rng.normal(size=60) > 0, 1, -1)
    tree = DecisionTreeClassifier(max_depth=1).fit(kind(X), y)
    assert_array_equal(Stump.of(tree).predict(kind(X)), tree.predict(kind(X)))


@pytest.mark.parametrize("holes", [0, 20])
def test_stumps_know_where_missing_values_go(holes, rng):
    X, y = rng.normal(size=(60, 1)), np.repeat([-1, 1], 30)
    X[30 : 30 + holes] = np.nan
    tree = DecisionTreeClassifier(max_depth=1).fit(X, y)
    rows = np.array([[np.nan], [0.0], [5.0], [-5.0]])
    assert_array_equal(Stump.of(tree).predict(rows), tree.predict(rows))


def test_a_stump_without_a_question_has_one_label():
    X, y = np.ones((6, 2)), np.array([-1, 1, 1, 1, 1, -1])
    tree = DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert_array_equal(Stump.of(tree).predict(X), tree.predict(X))


def test_infinite_values_are_refused():
    X, y = make_banana(60, random_state=0)
    with pytest.raises(ValueError, match="infinity"):
        LPBoostClassifier().fit(X, y).predict([[np.inf, 0.0]])


def test_the_default_comes_back_by_the_trusted_types():
    X, y = make_banana(60, random_state=0)
    model = LPBoostClassifier().fit(X, y)
    loaded = skops.io.loads(skops.io.dumps(model), trusted=TRUSTED_TYPES)
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
