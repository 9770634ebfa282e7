"""Intervals, standard deviations and novelty through pipelines, searches and transformed targets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.errors import IntervalWarning
from mercer.kernels import RBF

KERNEL = RBF(gamma=0.5)


def searched(model):
    return GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2)


@pytest.fixture
def scaled(curve):
    """The rows of the curve as a scaler gives them, and a regressor fitted to these."""
    X, y = curve
    Z = StandardScaler().fit_transform(X)
    return Z, searched(KernelRidgeRegressor(KERNEL)).fit(Z, y).best_estimator_


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: make_pipeline(StandardScaler(), searched(model)),
        lambda model: make_pipeline(StandardScaler(), make_pipeline(searched(model))),
        lambda model: FrozenEstimator(make_pipeline(StandardScaler(), searched(model))),
    ],
)
def test_a_regressor_inside_answers_as_by_itself(wrap, curve, scaled):
    X, y = curve
    Z, own = scaled
    model = wrap(KernelRidgeRegressor(KERNEL))
    model = FrozenEstimator(model.estimator.fit(X, y)) if isinstance(model, FrozenEstimator) else model.fit(X, y)
    assert_array_equal(mercer.predict_interval(model, X, 0.8), own.predict_interval(Z, 0.8))
    assert_array_equal(mercer.predict_std(model, X), own.predict_std(Z))
    assert_array_equal(mercer.predict_interval(own, Z), own.predict_interval(Z))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("there", "back"), [(np.exp, np.log), (lambda y: -2.0 * y, lambda y: -0.5 * y)])
def test_ends_of_intervals_are_transformed_back(curve, there, back):
    X, y = curve
    model = TransformedTargetRegressor(
        KernelRidgeRegressor(KERNEL), func=back, inverse_func=there, check_inverse=False
    )
    model.fit(X, there(y))
    own = KernelRidgeRegressor(KERNEL).fit(X, y)
    ends = mercer.predict_interval(make_pipeline("passthrough", model), X)
    assert_allclose(ends, np.sort(there(own.predict_interval(X)), axis=1), rtol=1e-9)
    assert (ends[:, 0] < ends[:, 1]).all()


def test_several_transformed_targets_are_refused(curve):
    X, y = curve
    model = TransformedTargetRegressor(KernelRidgeRegressor(KERNEL), transformer=StandardScaler())
    with pytest.raises(ValueError, match="intervals of 2 targets"):
        mercer.predict_interval(model.fit(X, np.column_stack([y, -y])), X)


def test_a_classifier_inside_tells_what_is_new(two_classes):
    X, y = two_classes
    own = KernelFisherClassifier(KERNEL).fit(StandardScaler().fit_transform(X), y)
    model = FixedThresholdClassifier(
        KernelFisherClassifier(KERNEL), threshold=0.7, response_method="predict_proba"
    )
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    assert_array_equal(mercer.novelty(model, X), own.novelty(model[0].transform(X)))


def test_models_without_an_answer_are_named(curve):
    X, y = curve
    with pytest.raises(TypeError, match="Ridge has no predict_interval; pass a fitted KernelRidgeRegressor"):
        mercer.predict_interval(make_pipeline(StandardScaler(), Ridge()).fit(X, y), X)
    with pytest.raises(
        TypeError, match="KernelRidgeRegressor has no novelty; pass a fitted KernelFisherClassifier"
    ):
        mercer.novelty(KernelRidgeRegressor(KERNEL).fit(X, y), X)
    with pytest.raises(NotFittedError):
        mercer.predict_std(make_pipeline(StandardScaler(), KernelRidgeRegressor()), X)


def test_infinite_ends_stay_infinite(curve):
    X, y = curve[0][:8], curve[1][:8]
    model = TransformedTargetRegressor(KernelRidgeRegressor(RBF(gamma=0.5)), transformer=StandardScaler())
    with pytest.warns(IntervalWarning, match="infinite"):
        ends = mercer.predict_interval(model.fit(X, y), X, 0.95)
    assert_array_equal(ends, np.tile([-np.inf, np.inf], (8, 1)))


def test_intervals_contain_what_an_inverse_that_turns_around_takes(curve):
    X, y = curve
    model = TransformedTargetRegressor(
        KernelRidgeRegressor(RBF(gamma=0.5), alpha=0.1), func=np.square, inverse_func=np.sqrt, check_inverse=False
    ).fit(X, np.abs(y))
    with np.errstate(invalid="ignore"):
        lower, upper = mercer.predict_interval(model, X, coverage=0.95).T
    assert np.all(np.isfinite(lower))
    assert np.all(lower <= upper)
    assert np.mean((np.abs(y) >= lower - 0.05) & (np.abs(y) <= upper)) > 0.9


def test_intervals_for_which_the_inverse_is_undefined_are_refused(curve):
    X, y = curve
    model = TransformedTargetRegressor(
        KernelRidgeRegressor(RBF(gamma=0.5), alpha=0.1),
        func=np.negative,
        inverse_func=np.sqrt,
        check_inverse=False,
    ).fit(X, np.abs(y) + 10.0)
    with pytest.raises(ValueError, match="undefined between the ends of"):
        mercer.predict_interval(model, X)


def test_standard_deviations_are_transformed_back_by_a_factor_only(curve):
    X, y = curve
    inner = KernelRidgeRegressor(RBF(gamma=0.5), alpha=0.1)
    scaled = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, 100.0 * y)
    expected = scaled.regressor_.predict_std(X) * np.std(100.0 * y)
    assert_allclose(mercer.predict_std(scaled, X), expected, rtol=1e-9)
    bent = TransformedTargetRegressor(inner, func=np.sinh, inverse_func=np.arcsinh).fit(X, y)
    with pytest.raises(ValueError, match="not a shift and a factor; use predict_interval"):
        mercer.predict_std(bent, X)


def test_a_search_without_refit_is_told_to_refit(curve):
    X, y = curve
    search = GridSearchCV(KernelRidgeRegressor(RBF(gamma=0.5)), {"alpha": [0.1, 1.0]}, refit=False).fit(X, y)
    with pytest.raises(TypeError, match="refit=True"):
        mercer.predict_interval(search, X)


def test_a_column_of_targets_has_intervals_that_are_transformed_back(curve):
    X, y = curve
    model = TransformedTargetRegressor(KernelRidgeRegressor(KERNEL, alpha=0.1), transformer=StandardScaler())
    flat = mercer.predict_interval(clone(model).fit(X, y), X[:3])
    column = mercer.predict_interval(clone(model).fit(X, y[:, None]), X[:3])
    assert_allclose(np.squeeze(column), flat, rtol=1e-9)
