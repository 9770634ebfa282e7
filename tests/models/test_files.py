"""A fitted model comes back from a file as it went in."""

import io
import pickle

import joblib
import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.metrics.pairwise import linear_kernel

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.centers import ForwardSelection, KMeans
from mercer.files import TRUSTED_TYPES
from mercer.kernels import RBF, FromCallable, Laplacian, Linear, Matern, Normalized, Polynomial

MODELS = [
    KernelFisherClassifier(),
    KernelFisherClassifier("laplacian", calibration="isotonic"),
    KernelFisherClassifier(2.0 * RBF(gamma=0.5) + Linear(), calibration="gaussian", threshold="error"),
    KernelFisherClassifier(Normalized(Polynomial(degree=2)) * Matern(gamma=0.3), penalty="coef"),
    KernelFisherClassifier((Linear() + Laplacian(gamma=1.0)) ** 2, cv=3, class_weight={0: 1.0, 1: 2.0}),
    KernelFisherClassifier(RBF(gamma=np.array([0.5, 1.0])), n_components=1, priors=[0.2, 0.3, 0.5]),
    KernelFisherClassifier(RBF(gamma=0.5), centers=ForwardSelection(8), random_state=0),
    KernelRidgeRegressor(RBF(gamma=0.5), centers=KMeans(8), random_state=0),
    KernelRidgeRegressor(),
    KernelRidgeRegressor("matern", fit_intercept=False),
    KernelRidgeRegressor(RBF(gamma=0.5) * Linear(), cv=3),
]
PRECOMPUTED = KernelFisherClassifier("precomputed", alpha=1.0)
FUNCTION = KernelFisherClassifier(FromCallable(linear_kernel, psd=True), alpha=1.0)


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def through_skops(model):
    return skops.io.loads(skops.io.dumps(model), trusted=TRUSTED_TYPES)


def all_outputs(model, X):
    """Everything that can be asked of a fitted model at rows X, and what it keeps of its own."""
    yield model.predict(X)
    if is_classifier(model):
        yield from (model.predict_proba(X), model.transform(X), model.loo_decision_)
    else:
        yield from (model.predict_interval(X), model.predict(X, return_std=True)[1], model.loo_prediction_)
    yield np.array([str(model.report_)])


@pytest.fixture(params=MODELS, ids=lambda model: " ".join(repr(model).split()))
def fitted(request, three_classes):
    X, y = three_classes
    two = getattr(request.param, "threshold", "bayes") != "bayes"
    return clone(request.param).fit(X, y > 0 if two else y)


@pytest.mark.parametrize("through", [through_pickle, through_joblib, through_skops])
def test_model_from_a_file_is_equal_to_the_bit(fitted, three_classes, through):
    X, _ = three_classes
    twin = through(fitted)
    assert repr(twin) == repr(fitted)
    for found, exact in zip(all_outputs(twin, X), all_outputs(fitted, X), strict=True):
        assert_array_equal(found, exact)


def test_trusted_types_are_all_that_a_file_needs(fitted):
    untrusted = skops.io.get_untrusted_types(data=skops.io.dumps(fitted))
    assert set(untrusted) - set(TRUSTED_TYPES) == set()


def test_model_of_kernel_values_comes_back(three_classes):
    X, y = three_classes
    model = PRECOMPUTED.fit(X @ X.T, y)
    for through in (through_pickle, through_joblib, through_skops):
        assert_array_equal(through(model).predict_proba(X @ X.T), model.predict_proba(X @ X.T))


def test_model_of_a_function_comes_back_but_the_function_is_not_ours_to_trust(three_classes):
    X, y = three_classes
    model = FUNCTION.fit(X, y)
    assert_array_equal(through_pickle(model).predict_proba(X), model.predict_proba(X))
    untrusted = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    assert all("mercer" not in name for name in set(untrusted) - set(TRUSTED_TYPES))


def test_trusted_types_are_importable_names_of_this_library():
    assert all(name.startswith("mercer.") for name in TRUSTED_TYPES)
    assert len(set(TRUSTED_TYPES)) == len(TRUSTED_TYPES)


def test_unfitted_model_comes_back():
    model = KernelFisherClassifier(RBF(gamma=0.5) + Linear())
    for through in (through_pickle, through_joblib, through_skops):
        assert repr(through(model)) == repr(model)
