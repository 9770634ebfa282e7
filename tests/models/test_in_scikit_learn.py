"""The estimators inside the tools of scikit-learn, and folds that leave together."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.inspection import partial_dependence
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._fitting.memory import SearchStage
from mercer.kernels import RBF, as_kernel

FIXED = {"kernel": RBF(gamma=0.5), "alpha": 1.0}


def outputs_without(X, y, fold):
    """Outputs of every row of the model refitted without its fold."""
    outputs = np.empty(len(y))
    for out in np.unique(fold):
        away = fold == out
        outputs[away] = KernelFisherClassifier(**FIXED).fit(X[~away], y[~away]).transform(X[away])[:, 0]
    return outputs


def folds_of(splitter, X, y):
    fold = np.empty(len(y), int)
    for number, (_, test) in enumerate(splitter.split(X, y)):
        fold[test] = number
    return fold


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("cv", "splitter"),
    [(4, StratifiedKFold(4)), (KFold(3), KFold(3)), (KFold(3, shuffle=True, random_state=0),) * 2],
    ids=["number", "splitter", "shuffled"],
)
def test_folds_leave_together(two_classes, cv, splitter):
    X, y = two_classes
    model = KernelFisherClassifier(cv=cv, **FIXED).fit(X, y)
    assert_allclose(model.loo_outputs_[:, 0], outputs_without(X, y, folds_of(splitter, X, y)), rtol=1e-9)
    assert f"holding out {splitter.get_n_splits(X, y)} folds" in str(model.report_)


def test_splits_may_be_listed(two_classes):
    X, y = two_classes
    listed = KernelFisherClassifier(cv=list(KFold(3).split(X)), **FIXED).fit(X, y)
    assert_array_equal(listed.loo_outputs_, KernelFisherClassifier(cv=KFold(3), **FIXED).fit(X, y).loo_outputs_)


@pytest.mark.slow
def test_groups_leave_together(two_classes):
    X, y = two_classes
    groups = np.arange(60) // 6
    names = np.array([f"patient {g}" for g in groups])
    for model in (KernelFisherClassifier(**FIXED), KernelFisherClassifier(cv=LeaveOneGroupOut(), **FIXED)):
        model.fit(X, y, groups=names)
        assert_allclose(model.loo_outputs_[:, 0], outputs_without(X, y, groups), rtol=1e-9)


@pytest.mark.slow
def test_groups_of_copies_choose_another_model_than_single_rows(rng):
    x = np.repeat(rng.normal(size=(25, 2)), 4, axis=0)
    X, y = x + 1e-3 * rng.normal(size=x.shape), np.repeat(rng.permutation(np.arange(25) % 2), 4)
    alone = KernelFisherClassifier().fit(X, y)
    together = KernelFisherClassifier().fit(X, y, groups=np.arange(100) // 4)
    # Labels without signal: near copies predict each other, groups do not.
    assert alone.loo_score_ == 1.0
    assert together.loo_score_ < 0.8


def test_regression_knows_groups(curve):
    X, y = curve
    groups = np.arange(50) % 5
    model = KernelRidgeRegressor(**FIXED).fit(X, y, groups=groups)
    exact = cross_val_predict(KernelRidgeRegressor(**FIXED), X, y, groups=groups, cv=LeaveOneGroupOut())
    assert_allclose(model.loo_prediction_, exact, rtol=1e-8)


@pytest.mark.slow
def test_cross_validation_scores_are_reasonable(classes, curve):
    assert cross_val_score(KernelFisherClassifier(), *classes, cv=3).mean() > 0.55
    assert cross_val_score(KernelRidgeRegressor(), *curve, cv=KFold(3, shuffle=True, random_state=0)).mean() > 0.7


@pytest.mark.slow
def test_cross_validation_splits_kernel_values_on_both_sides(two_classes):
    X, y = two_classes
    K = RBF(gamma=0.5).block(X, X)
    values = cross_val_predict(KernelFisherClassifier("precomputed", alpha=1.0), K, y, method="predict_proba")
    rows = cross_val_predict(KernelFisherClassifier(**FIXED), X, y, method="predict_proba")
    assert_allclose(values, rows, rtol=1e-8)


def test_grid_search_reaches_into_the_kernel(two_classes):
    X, y = two_classes
    search = GridSearchCV(
        KernelFisherClassifier(kernel=RBF(gamma=1.0)),
        {"kernel__gamma": [1e5, 0.3, 1e6]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_ == {"kernel__gamma": 0.3}
    assert search.best_estimator_.gamma_ == 0.3


def test_grid_search_sets_parts_of_a_sum(two_classes):
    X, y = two_classes
    kernel = RBF(gamma=1.0) + RBF(gamma=0.1)
    search = GridSearchCV(KernelFisherClassifier(kernel, alpha=1.0), {"kernel__rbf_2__gamma": [0.1, 0.2]}, cv=3)
    search.fit(X, y)
    assert search.best_estimator_.kernel_.parts[1][1].gamma in (0.1, 0.2)


def test_pipeline_scales_and_predicts(two_classes):
    X, y = two_classes
    pipeline = make_pipeline(StandardScaler(), KernelFisherClassifier()).fit(X * [1.0, 1e5], y)
    unscaled = make_pipeline(StandardScaler(), KernelFisherClassifier()).fit(X, y)
    assert_allclose(pipeline.predict_proba(X * [1.0, 1e5]), unscaled.predict_proba(X), rtol=1e-6)


def test_variates_can_be_pandas_columns(three_classes):
    X, y = three_classes
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(75) + 100)
    model = KernelFisherClassifier(**FIXED).set_output(transform="pandas").fit(frame, y)
    Z = model.transform(frame)
    assert Z.columns.tolist() == ["kernelfisherclassifier0", "kernelfisherclassifier1"]
    assert Z.index.tolist() == frame.index.tolist()
    assert_array_equal(model.fit_transform(frame, y), Z)


@pytest.fixture
def small_search(monkeypatch):
    """Kernels are compared on 25 points with 12 centers, the best on 40 with 20."""
    monkeypatch.setattr("mercer._fitting.memory.SEARCH_STAGES", (SearchStage(25, 12), SearchStage(40, 20)))


@pytest.mark.slow
@pytest.mark.usefixtures("small_search")
def test_search_on_part_of_the_rows_depends_on_random_state_only(two_classes):
    X, y = two_classes
    first, again, other = (KernelFisherClassifier(random_state=seed).fit(X, y) for seed in (0, 0, 1))
    assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert_array_equal(first.tuning_paths_[0].scores, again.tuning_paths_[0].scores)
    assert not np.array_equal(first.tuning_paths_[0].scores, other.tuning_paths_[0].scores)


@pytest.mark.usefixtures("small_search")
def test_search_on_part_of_the_rows_leaves_the_penalty_to_all(curve):
    X, y = curve
    model = KernelRidgeRegressor("rbf", random_state=0).fit(X, y)
    assert model.tuning_paths_[0].n_points == 25
    assert model.tuning_paths_[0].n_centers == 12
    assert model.tuning_paths_[0].scores.shape == (15, 12)
    assert len(model.dual_coef_) == len(model.loo_prediction_) == 50
    # Given its kernel, the model is the one that sees all rows.
    exact = KernelRidgeRegressor(model.kernel_).fit(X, y)
    assert_allclose(model.alpha_, exact.alpha_)
    assert_allclose(model.predict(X), exact.predict(X))


@pytest.mark.usefixtures("small_search")
def test_search_on_part_of_the_rows_knows_copies_weights_and_groups(two_classes):
    X, y = two_classes
    twice = np.r_[np.arange(60), np.arange(30)]
    groups, weight = np.arange(90) % 9, np.linspace(0.5, 2.0, 90)
    model = KernelFisherClassifier(random_state=0).fit(X[twice], y[twice], sample_weight=weight, groups=groups)
    assert model.tuning_paths_[0].n_points == 25
    assert model.loo_decision_.shape == (90,)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", [KernelFisherClassifier(), KernelRidgeRegressor()], ids=str)
def test_fitting_again_forgets_the_first_fit(model, two_classes, rng):
    X, y = two_classes
    other = rng.normal(size=(20, 3))
    again = clone(model).fit(other, np.arange(20) % 2).fit(X, y)
    assert_array_equal(again.predict(X), clone(model).fit(X, y).predict(X))
    assert again.n_features_in_ == 2


def test_fit_leaves_the_parameters_alone(two_classes):
    X, y = two_classes
    model = KernelFisherClassifier(RBF())
    before = repr(model)
    model.fit(X, y)
    assert repr(model) == before
    assert model.kernel.gamma == "loo"


def test_regressor_knows_several_targets_as_well_as_a_wrapper_does(rng):
    X = rng.normal(size=(30, 2))
    Y = rng.normal(size=(30, 2))
    wrapped = MultiOutputRegressor(KernelRidgeRegressor(**FIXED)).fit(X, Y)
    assert_allclose(KernelRidgeRegressor(**FIXED).fit(X, Y).predict(X), wrapped.predict(X), rtol=1e-10)


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("small_search")
@pytest.mark.parametrize("seed", [0, None])
def test_random_states_of_numpy_are_what_they_are_to_scikit_learn(two_classes, seed):
    X, y = two_classes

    def fitted():
        np.random.seed(7)  # noqa: NPY002
        random_state = None if seed is None else np.random.RandomState(seed)
        return KernelFisherClassifier(random_state=random_state).fit(X, y)

    assert_array_equal(fitted().tuning_paths_[0].scores, fitted().tuning_paths_[0].scores)


@pytest.mark.slow
def test_a_kernel_and_its_parameter_are_searched_together(two_classes):
    X, y = two_classes
    grid = {"kernel": ["rbf", "laplacian"], "kernel__gamma": [0.1, 1.0]}
    search = GridSearchCV(KernelFisherClassifier(alpha=0.1), grid, cv=2).fit(X, y)
    best = search.best_params_
    assert str(search.best_estimator_.kernel_) == str(
        as_kernel(best["kernel"]).set_params(gamma=best["kernel__gamma"])
    )


def test_a_number_of_folds_does_not_part_groups(two_classes):
    X, y = two_classes
    groups = np.arange(60) // 5
    number = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, cv=4).fit(X, y, groups=groups)
    splitter = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert_array_equal(number.loo_outputs_, splitter.loo_outputs_)


@pytest.mark.parametrize("kind", [KernelFisherClassifier, KernelRidgeRegressor])
def test_partial_dependence_takes_raw_frames(kind):
    rng = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame(
        {
            "age": rng.uniform(18.0, 66.0, n),
            "pay": np.where(rng.random(n) < 0.2, np.nan, rng.exponential(3.0, n)),
            "job": rng.choice(["cook", "nurse", None], n),
            "unit": pd.Categorical(rng.choice(["a", "b"], n)),
            "since": pd.date_range("2022-01-01", periods=n, freq="4D"),
        }
    )
    model = kind(RBF("loo")).fit(frame, (frame["age"] > 40.0) ^ (frame["job"] == "cook"))
    answer = model.predict if kind is KernelRidgeRegressor else lambda X: model.predict_proba(X)[:, 1]
    dates = pd.date_range("2022-02-01", periods=2)
    for name, options in (
        ("age", {}),
        ("pay", {}),
        ("unit", {"categorical_features": ["unit"]}),
        ("job", {"custom_values": {"job": ["cook", "nurse"]}}),
        ("since", {"custom_values": {"since": dates}}),
    ):
        found = partial_dependence(model, frame, [name], grid_resolution=3, **options)
        means = [answer(frame.assign(**{name: value})).mean() for value in found["grid_values"][0]]
        assert_allclose(found["average"][0], means, atol=1e-9)
    assert np.ptp(partial_dependence(model, frame, ["age"], grid_resolution=5)["average"]) > 0.2
