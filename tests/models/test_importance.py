"""Weights that are no counts, alphas at the edge, and models that have seen no signal."""

from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_sample_weight

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.datasets import make_banana, make_sinc
from mercer.errors import KernelError, NumericalWarning
from mercer.kernels import RBF


@pytest.fixture
def rare(rng):
    y = (np.arange(120) % 8 == 0).astype(int)
    return rng.normal(size=(120, 2)) + 1.5 * y[:, None], y


def test_balanced_row_weights_are_balanced_class_weights(rare):
    X, y = rare
    by_row = KernelFisherClassifier().fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    by_class = KernelFisherClassifier(class_weight="balanced").fit(X, y)
    assert_allclose(by_row.predict_proba(X), by_class.predict_proba(X), rtol=1e-6)
    assert_allclose(by_row.loo_decision_, by_class.loo_decision_, rtol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("calibration", ["logistic", "gaussian", "quadratic", "isotonic"])
@pytest.mark.parametrize("factor", [1e-6, 1 / 120, 2.5])
def test_unit_of_weights_does_not_matter(rare, rng, factor, calibration):
    X, y = rare
    weight = rng.uniform(0.5, 1.5, 120)
    kernel = RBF(gamma=0.3)
    once = KernelFisherClassifier(kernel, alpha=0.5, calibration=calibration).fit(X, y, sample_weight=weight)
    scaled = KernelFisherClassifier(kernel, alpha=0.5 * factor, calibration=calibration)
    scaled.fit(X, y, sample_weight=factor * weight)
    assert_allclose(scaled.predict_proba(X), once.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("factor", [1 / 80, 2.5])
def test_unit_of_weights_does_not_matter_to_uncertainty(factor):
    X, y = make_sinc(80, random_state=0)
    far = np.array([[0.0], [30.0]])
    once = KernelRidgeRegressor(RBF(gamma=0.3), alpha=0.1).fit(X, y)
    scaled = KernelRidgeRegressor(RBF(gamma=0.3), alpha=0.1 * factor).fit(X, y, sample_weight=np.full(80, factor))
    assert_allclose(scaled.predict(far), once.predict(far), rtol=1e-6)
    assert_allclose(scaled.predict_std(far), once.predict_std(far), rtol=1e-6)
    assert_allclose(scaled.predict_interval(far), once.predict_interval(far), rtol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [-10, -8, -6, -4, -2, 0, 3])
def test_new_rows_are_predicted_for_every_alpha(exponent, dtype):
    X, y = make_banana(200, random_state=0, dtype=dtype)
    X_new, y_new = make_banana(500, random_state=1, dtype=dtype)
    short = dtype == np.float32 and exponent <= -6
    lost = pytest.warns(NumericalWarning, match="more digits") if short else nullcontext()
    with lost:
        model = KernelFisherClassifier(RBF(gamma=0.3), alpha=10.0**exponent).fit(X, y)
    assert model.score(X_new, y_new) > 0.8


@pytest.mark.sampled(7)
@pytest.mark.parametrize("calibration", ["logistic", "gaussian", "quadratic", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_noise_is_not_taken_for_certainty(rng, n_classes, calibration):
    X, y = rng.normal(size=(150, 3)), np.arange(150) % n_classes
    model = KernelFisherClassifier(RBF(gamma=0.3), alpha=1e4, calibration=calibration).fit(X, y)
    P = model.predict_proba(rng.normal(size=(50, 3)))
    assert_allclose(P, 1 / n_classes, atol=0.1)


@pytest.mark.slow
def test_many_small_classes_keep_their_confidence(rng):
    y = np.repeat(np.arange(26), 10)
    means = rng.normal(size=(26, 8)) * 4
    model = KernelFisherClassifier(RBF(gamma="median")).fit(means[y] + rng.normal(size=(260, 8)), y)
    assert model.loo_score_ > 0.9
    assert np.median(model.loo_proba_.max(axis=1)) > 0.7


def test_width_of_the_default_kernel_can_be_searched():
    X, y = make_banana(80, random_state=0)
    search = GridSearchCV(KernelFisherClassifier(alpha=0.1), {"kernel__gamma": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["kernel__gamma"] in (0.1, 1.0)


def test_matrix_that_is_not_symmetric_is_refused(rng):
    with pytest.raises(KernelError, match="not symmetric"):
        KernelFisherClassifier("precomputed").fit(rng.normal(size=(20, 20)), np.arange(20) % 2)


def test_threshold_of_two_classes_is_forgotten_with_three(rng):
    X = rng.normal(size=(60, 2))
    model = KernelFisherClassifier(RBF(gamma=1.0), alpha=1.0).fit(X, np.arange(60) % 2)
    assert model.fit(X, np.arange(60) % 3).threshold_ is None


def test_small_fit_leaves_the_global_random_state_alone():
    X, y = make_banana(40, random_state=0)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    KernelFisherClassifier().fit(X, y)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
