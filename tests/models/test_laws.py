"""Symmetries: what may change about the data without changing the model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.kernels import RBF, Laplacian, Linear

LAW = settings(max_examples=15, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)
FIXED = {"kernel": RBF(gamma=0.5), "alpha": 1.0}


def rows(seed, n=40, k=2):
    """Rows in two dimensions, and their classes 0 … k - 1."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % k
    return rng, rng.normal(size=(n, 2)) + 2 * rng.normal(size=(k, 2))[label], label


@pytest.mark.slow
@given(seed=SEEDS, k=st.integers(2, 4))
@LAW
def test_order_of_rows_does_not_matter(seed, k):
    rng, X, y = rows(seed, k=k)
    order = rng.permutation(len(y))
    model, shuffled = (KernelFisherClassifier(**FIXED).fit(X[some], y[some]) for some in (slice(None), order))
    assert_allclose(shuffled.loo_outputs_, model.loo_outputs_[order], atol=1e-8)
    assert_allclose(shuffled.loo_proba_, model.loo_proba_[order], atol=1e-8)
    assert_allclose(shuffled.predict_proba(X), model.predict_proba(X), atol=1e-8)


@pytest.mark.slow
@given(seed=SEEDS)
@settings(LAW, max_examples=5)
def test_order_of_rows_does_not_matter_to_what_is_chosen(seed):
    rng, X, _ = rows(seed)
    y, order = X[:, 0] + 0.3 * rng.normal(size=40), rng.permutation(40)
    model, shuffled = (KernelRidgeRegressor().fit(X[some], y[some]) for some in (slice(None), order))
    assert_allclose(shuffled.gamma_, model.gamma_, rtol=1e-12)
    assert_allclose(shuffled.alpha_, model.alpha_, rtol=1e-8)
    # The least alpha tried is 1e-8 of the trace, the rounding of the matrix 1e-16.
    assert_allclose(shuffled.predict(X), model.predict(X), atol=1e-6)
    assert_allclose(shuffled.loo_prediction_, model.loo_prediction_[order], atol=1e-6)


@pytest.mark.slow
@given(seed=SEEDS, calibration=st.sampled_from(["logistic", "gaussian", "quadratic", "isotonic"]))
@LAW
def test_names_of_classes_do_not_matter(seed, calibration):
    rng, X, y = rows(seed, n=45, k=3)
    order = rng.permutation(3)
    model, renamed = (
        KernelFisherClassifier(calibration=calibration, **FIXED).fit(X, labels) for labels in (y, order[y])
    )
    assert_allclose(renamed.predict_proba(X)[:, order], model.predict_proba(X), atol=1e-6)
    assert_allclose(np.abs(renamed.transform(X)), np.abs(model.transform(X)), atol=1e-6)


@pytest.mark.slow
@given(seed=SEEDS)
@LAW
def test_exchange_of_two_classes_mirrors_the_decision(seed):
    _, X, y = rows(seed)
    model, mirrored = (KernelFisherClassifier(**FIXED).fit(X, labels) for labels in (y, 1 - y))
    assert_allclose(mirrored.transform(X), -model.transform(X), atol=1e-10)
    assert_allclose(mirrored.decision_function(X), -model.decision_function(X), rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@given(seed=SEEDS, shift=st.tuples(st.floats(-100, 100), st.floats(-100, 100)))
@LAW
def test_translation_does_not_matter_to_kernels_of_differences(seed, shift):
    _, X, y = rows(seed)
    for kernel in (RBF(gamma=0.5), Laplacian(gamma=0.5), RBF(gamma="median")):
        here, there = (KernelFisherClassifier(kernel, alpha=1.0).fit(X + s, y) for s in (0.0, np.array(shift)))
        # Rows rounded at 100 eps, and fitted with alpha one.
        assert_allclose(there.predict_proba(X + shift), here.predict_proba(X), atol=1e-8)


@pytest.mark.slow
@given(seed=SEEDS, angle=st.floats(0, 6.3))
@LAW
def test_rotation_does_not_matter_to_kernels_of_distances_and_products(seed, angle):
    _, X, y = rows(seed)
    Q = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for kernel in (RBF(gamma=0.5), Linear()):
        here, there = (KernelFisherClassifier(kernel, alpha=1.0).fit(Z, y) for Z in (X, X @ Q))
        assert_allclose(there.predict_proba(X @ Q), here.predict_proba(X), atol=1e-8)


@pytest.mark.slow
@given(seed=SEEDS, exponent=st.integers(-3, 3))
@settings(LAW, max_examples=5)
def test_unit_of_length_does_not_matter_where_gamma_is_chosen(seed, exponent):
    _, X, y = rows(seed)
    unit = 10.0**exponent
    here, there = (KernelFisherClassifier("rbf").fit(s * X, y) for s in (1.0, unit))
    assert_allclose(there.gamma_ * unit**2, here.gamma_, rtol=1e-9)
    assert_allclose(there.predict_proba(unit * X), here.predict_proba(X), atol=1e-5)
    here, there = (KernelFisherClassifier().fit(s * X, y) for s in (1.0, unit))
    assert_allclose(there.predict_proba(unit * X), here.predict_proba(X), atol=1e-5)


@pytest.mark.slow
@given(seed=SEEDS, scale=st.floats(0.01, 100), intercept=st.booleans(), penalty=st.sampled_from(["rkhs", "coef"]))
@LAW
def test_weights_and_alpha_count_in_the_same_unit(seed, scale, intercept, penalty):
    rng, X, _ = rows(seed)
    y, weight = rng.normal(size=40), rng.uniform(0.2, 3.0, 40)
    choice = {"kernel": RBF(gamma=0.5), "penalty": penalty, "fit_intercept": intercept}
    one = KernelRidgeRegressor(alpha=0.5, **choice).fit(X, y, sample_weight=weight)
    other = KernelRidgeRegressor(alpha=0.5 * scale, **choice).fit(X, y, sample_weight=scale * weight)
    assert_allclose(other.predict(X), one.predict(X), atol=1e-9)


@given(seed=SEEDS, scale=st.floats(-1000, 1000).filter(lambda s: abs(s) > 1e-3), shift=st.floats(-1000, 1000))
@settings(LAW, max_examples=8)
def test_unit_and_origin_of_the_target_do_not_matter(seed, scale, shift):
    rng, X, _ = rows(seed)
    y = X[:, 0] + 0.3 * rng.normal(size=40)
    here, there = (KernelRidgeRegressor(RBF(gamma=0.5)).fit(X, t) for t in (y, scale * y + shift))
    size = abs(scale) + abs(shift)
    assert_allclose(there.alpha_, here.alpha_, rtol=1e-6)
    assert_allclose(there.predict(X), scale * here.predict(X) + shift, atol=1e-6 * size)
    assert_allclose(there.noise_std_, abs(scale) * here.noise_std_, atol=1e-6 * size)


@pytest.mark.slow
@given(seed=SEEDS, scale=st.floats(0.01, 100))
@LAW
def test_scale_of_the_kernel_and_alpha_count_in_the_same_unit(seed, scale):
    _, X, y = rows(seed)
    one = KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0).fit(X, y)
    other = KernelFisherClassifier(scale * RBF(gamma=0.5), alpha=scale).fit(X, y)
    assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-9)


@pytest.mark.slow
@given(seed=SEEDS, k=st.integers(2, 4))
@LAW
def test_prediction_of_rows_is_that_of_each_row(seed, k):
    _, X, y = rows(seed, k=k)
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    each = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(0, 40, 9)])
    assert_allclose(each, model.predict_proba(X)[::9], rtol=1e-10)


@pytest.mark.parametrize("model", [KernelFisherClassifier(**FIXED), KernelRidgeRegressor(**FIXED)], ids=str)
def test_copies_of_all_rows_change_nothing_but_the_weight_of_the_penalty(model):
    _, X, y = rows(0)
    once = model.set_params(alpha=1.0).fit(X, y).dual_coef_.copy()
    twice = model.set_params(alpha=2.0).fit(np.vstack([X, X]), np.r_[y, y]).dual_coef_
    assert_allclose(twice, once, rtol=1e-10)
