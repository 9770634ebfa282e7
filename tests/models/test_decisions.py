"""Labels, probabilities, decision values and variates of a classifier agree with each other."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logit
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from mercer import KernelFisherClassifier
from mercer._scores import CALIBRATIONS, THRESHOLDS
from mercer.kernels import RBF

FIXED = {"kernel": RBF(gamma=0.5), "alpha": 1.0}


def labels_of(model, decision):
    best = (decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
    return model.classes_[best]


def assert_consistent(model, rows):
    """Probabilities are some, and labels and decision values follow them."""
    P = model.predict_proba(rows)
    assert np.isfinite(P).all()
    assert np.isfinite(model.decision_function(rows)).all()
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(model.predict(rows), model.classes_[P.argmax(axis=1)])
    assert_array_equal(model.predict(rows), labels_of(model, model.decision_function(rows)))


# Kernels that vanish and that grow far away.
@pytest.mark.sampled(4)
@pytest.mark.parametrize("kernel", [RBF(gamma=0.5), "linear"], ids=str)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("threshold", ["bayes", *THRESHOLDS])
def test_label_of_two_is_the_more_probable_everywhere(two_classes, far_rows, kernel, calibration, threshold):
    X, y = two_classes
    model = KernelFisherClassifier(kernel, alpha=1.0, calibration=calibration, threshold=threshold).fit(X, y)
    assert_consistent(model, np.vstack([X, far_rows]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kernel", [RBF(gamma=0.5), "linear"], ids=str)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("threshold", ["bayes", "least_squares"])
def test_label_of_three_is_the_most_probable_everywhere(three_classes, far_rows, kernel, calibration, threshold):
    X, y = three_classes
    model = KernelFisherClassifier(kernel, alpha=1.0, calibration=calibration, threshold=threshold).fit(X, y)
    assert_consistent(model, np.vstack([X, far_rows]))


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_decision_of_two_classes_is_the_log_odds(two_classes, calibration):
    X, y = two_classes
    model = KernelFisherClassifier(calibration=calibration, **FIXED).fit(X, y)
    assert_allclose(model.decision_function(X), logit(model.predict_proba(X)[:, 1]), rtol=1e-8, atol=1e-10)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_decision_of_three_classes_is_the_log_probability(three_classes, calibration):
    X, y = three_classes
    model = KernelFisherClassifier(calibration=calibration, **FIXED).fit(X, y)
    assert_allclose(np.exp(model.decision_function(X)), model.predict_proba(X), rtol=1e-8, atol=1e-12)
    assert_allclose(model.predict_log_proba(X), model.decision_function(X), rtol=1e-8, atol=1e-8)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("threshold", ["bayes", *THRESHOLDS])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_threshold_parts_the_projection(two_classes, calibration, threshold):
    X, y = two_classes
    model = KernelFisherClassifier(calibration=calibration, threshold=threshold, **FIXED).fit(X, y)
    assert_array_equal(model.predict(X) == 1, model.transform(X)[:, 0] > model.threshold_)


def test_least_squares_threshold_is_zero(two_classes):
    X, y = two_classes
    model = KernelFisherClassifier(threshold="least_squares", **FIXED).fit(X, y)
    assert_allclose(model.threshold_, 0.0, atol=1e-12)


def test_left_out_values_have_the_shape_and_rule_of_new_rows(classes):
    X, y = classes
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    assert model.loo_decision_.shape == model.decision_function(X).shape
    assert model.loo_proba_.shape == model.predict_proba(X).shape
    predicted = model.classes_[model.loo_proba_.argmax(axis=1)]
    assert_array_equal(predicted, labels_of(model, model.loo_decision_))
    assert_allclose(model.loo_score_, np.mean(predicted == y))


@pytest.mark.slow
def test_left_out_outputs_are_those_of_models_fitted_without_the_row(classes):
    X, y = classes
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    outputs = model.dual_coef_.shape[1]
    assert outputs == (1 if len(model.classes_) == 2 else 3)
    for i in range(0, len(X), 7):
        rest = np.arange(len(X)) != i
        without = KernelFisherClassifier(**FIXED).fit(X[rest], y[rest])
        k = RBF(gamma=0.5).block(X[i : i + 1], without.X_fit_)
        assert_allclose(model.loo_outputs_[i], (k @ without.dual_coef_ + without.intercept_)[0], rtol=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_priors_shift_the_logits_by_their_ratio_to_the_shares(classes, calibration):
    X, y = classes
    share = np.bincount(y) / len(y)
    priors = np.arange(1.0, len(share) + 1) / np.arange(1.0, len(share) + 1).sum()
    plain, moved = (
        KernelFisherClassifier(priors=p, calibration=calibration, **FIXED).fit(X, y) for p in (None, priors)
    )
    odds = moved.predict_proba(X) / plain.predict_proba(X) * (share / priors)
    assert_allclose(odds, np.tile(odds[:, :1], len(share)), rtol=1e-8)
    assert_allclose(plain.priors_, share)
    assert_allclose(moved.priors_, priors)


def test_priors_equal_to_the_shares_change_nothing(three_classes):
    X, y = three_classes
    plain = KernelFisherClassifier(**FIXED).fit(X, y)
    same = KernelFisherClassifier(priors=np.bincount(y) / len(y), **FIXED).fit(X, y)
    assert_allclose(same.predict_proba(X), plain.predict_proba(X), rtol=1e-12)


@pytest.mark.slow
def test_fewer_components_are_the_first_of_more(rng):
    y = np.arange(100) % 5
    X = rng.normal(size=(100, 3)) + rng.normal(size=(5, 3))[y]
    models = [KernelFisherClassifier(n_components=r).fit(X, y) for r in (1, 2, 3, None)]
    Z = models[-1].transform(X)
    assert Z.shape == (100, 4)
    for r, model in zip((1, 2, 3), models):
        assert model.alpha_ == models[-1].alpha_
        assert_allclose(model.transform(X), Z[:, :r], rtol=1e-12, atol=1e-14)
        assert_array_equal(model.eigenvalues_, models[-1].eigenvalues_[:r])
        assert list(model.get_feature_names_out()) == [f"kernelfisherclassifier{i}" for i in range(r)]


def test_prediction_sees_the_kept_components_only(three_classes):
    X, y = three_classes
    model = KernelFisherClassifier(n_components=1, **FIXED).fit(X, y)
    order = np.argsort(model.transform(X)[:, 0])
    plain = replace(model.rule_.posterior, limit=np.inf, counted=1.0)
    decision = replace(model.rule_, posterior=plain).decision(model._outputs(X))[order]
    # Log-odds are linear in the one variate: their second differences over its first vanish.
    z = model.transform(X)[order, 0]
    odds = decision[:, 1:] - decision[:, :1]
    slope, offset = np.polyfit(z, odds, 1)
    assert_allclose(odds, np.outer(z, slope) + offset, atol=1e-8)


def test_eigenvalues_are_squared_correlations_in_descending_order(classes):
    X, y = classes
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    assert (np.diff(model.eigenvalues_) <= 0).all()
    assert ((model.eigenvalues_ > 0) & (model.eigenvalues_ < 1)).all()
    assert_allclose(model.explained_variance_ratio_.sum(), 1.0)


def test_binary_eigenvalue_is_the_squared_correlation_of_variate_and_label(two_classes):
    X, y = two_classes
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    # Of a shrunken fit the covariance with the label over the label's variance.
    z = model.transform(X)[:, 0]
    assert_allclose(model.eigenvalues_, np.cov(z, 2.0 * y - 1)[0, 1] / np.var(2.0 * y - 1, ddof=1), rtol=1e-10)


@pytest.mark.sampled(1)
def test_report_tells_what_was_chosen(classes):
    X, y = classes
    model = KernelFisherClassifier("rbf").fit(X, y)
    text = str(model.report_)
    assert str(model.kernel_) in text
    assert f"{model.alpha_:.4g}" in text
    assert f"accuracy {model.loo_score_:.4f}" in text
    assert re.search(rf"15 widths by fits with {len(y)} centers to {len(y)} rows, then 35 alphas", text)
    assert model.gamma_ == model.kernel_.gamma
    assert model.tuning_paths_[0].scores.shape == (15, 35)
    g, a = model.tuning_paths_[0].best
    assert model.tuning_paths_[0].kernels[g].gamma == model.gamma_
    # All rows were centers; what is added to their kernel matrix moves outputs in the tenth digit.
    assert_allclose(model.tuning_paths_[0].alphas[g, a], model.alpha_, rtol=1e-6)


@pytest.mark.slow
def test_default_probabilities_of_digits_have_a_lower_loss_than_isotonic_ones():
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))
    train, test = rows[:900], rows[900:]
    losses = [
        log_loss(
            y[test],
            KernelFisherClassifier(RBF(gamma=5e-4), alpha=0.1, calibration=calibration)
            .fit(X[train], y[train])
            .predict_proba(X[test]),
        )
        for calibration in ("logistic", "isotonic")
    ]
    # On three splits the ratio was 0.71 to 0.78.
    assert losses[0] < 0.9 * losses[1]


def test_least_squares_labels_of_three_equal_classes_are_the_largest_outputs(rng):
    y = np.arange(90) % 3
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]])[y] + np.array([0.2, 1.0, 1.5])[y][:, None] * rng.normal(
        size=(90, 2)
    )
    model = KernelFisherClassifier(threshold="least_squares", **FIXED).fit(X, y)
    assert_array_equal(model.predict(X), model._outputs(X).argmax(axis=1))


@pytest.fixture(scope="module")
def rare():
    """Three classes of very different sizes, and new rows near and far."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=150, p=[0.75, 0.2, 0.05])
    X = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])[y] + rng.normal(size=(150, 2)) * np.array([0.5, 1.0, 0.7])[
        y
    ].reshape(-1, 1)
    return X, y, np.vstack([2.0 * rng.normal(size=(500, 2)) + 0.4, 20.0 * rng.normal(size=(20, 2))])


def test_least_squares_labels_of_unequal_classes_are_the_largest_outputs_near_and_far(rare):
    X, y, new = rare
    model = KernelFisherClassifier(threshold="least_squares", random_state=0).fit(X, y)
    assert_array_equal(model.predict(new), model._outputs(new).argmax(axis=1))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_caution_does_not_move_a_threshold(rare, threshold):
    X, y, new = rare
    model = KernelFisherClassifier(threshold=threshold, random_state=0).fit(X, y == 1)
    f = model.transform(new)[:, 0]
    clear = np.abs(f - model.threshold_) > 1e-9
    assert_array_equal(model.predict(new)[clear], (f > model.threshold_)[clear])
    assert_allclose(model.predict_proba([[1e3, 1e3]]), 0.5, atol=1e-6)
