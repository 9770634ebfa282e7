"""Calibration: each posterior is the model it is named after."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.isotonic import IsotonicRegression

from mercer._scores import CALIBRATIONS
from mercer._scores.probabilities.calibration import cross_calibrate
from mercer._scores.probabilities.logit_maps import parts


def calibrate(method, R, label, weight, basis=None):
    """The posterior from all rows."""
    return cross_calibrate(method, R, label, weight, parts(R, label), basis).posterior


def scored(rng, n, k):
    label = rng.permutation(np.arange(n) % k)
    scores = 1.5 * np.eye(k)[label] + rng.normal(size=(n, k))
    return scores[:, 1:] - scores[:, :1], label


@pytest.mark.sampled(11)
@pytest.mark.parametrize("method", CALIBRATIONS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_probabilities_sum_to_one_and_follow_the_logits(rng, method, k):
    R, label = scored(rng, 100, k)
    posterior = calibrate(method, R, label, np.ones(100))
    P = posterior.probabilities(R)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert ((P > 0) & (P < 1)).all()
    assert_allclose(np.log(P[:, 1:] / P[:, :1]), posterior.logits(R), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("k", [2, 4])
def test_gaussian_is_linear_discriminant_analysis(rng, k):
    R, label = scored(rng, 100, k)
    exact = LinearDiscriminantAnalysis(solver="lsqr").fit(R, label)
    found = calibrate("gaussian", R, label, np.ones(100))
    # The covariance has 1e-10 of itself added.
    assert_allclose(found.probabilities(R), exact.predict_proba(R), rtol=1e-7)


@pytest.mark.parametrize("method", ["logistic", "gaussian", "isotonic"])
def test_map_of_two_classes_is_strictly_increasing(rng, method):
    R, label = scored(rng, 60, 2)
    posterior = calibrate(method, R, label, np.ones(60))
    grid = np.linspace(R.min() - 2, R.max() + 2, 1001)[:, None]
    assert (np.diff(posterior.logits(grid)[:, 0]) > 0).all()
    assert (np.diff(posterior.probabilities(grid)[:, 1]) > 0).all()


def test_isotonic_is_a_mixture_of_isotonic_regression_and_the_logistic_map(rng):
    R, label = scored(rng, 64, 2)
    weight = rng.choice([1.0, 2.0], 64)
    steps = IsotonicRegression(out_of_bounds="clip").fit(R[:, 0], label, sample_weight=weight)
    smooth = 1 / (1 + np.sqrt(weight.sum()))
    logistic = calibrate("logistic", R, label, weight).probabilities(R)[:, 1]
    found = calibrate("isotonic", R, label, weight).probabilities(R)[:, 1]
    assert_allclose(found, smooth * logistic + (1 - smooth) * steps.predict(R[:, 0]), rtol=1e-10)


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_threshold_is_where_two_classes_are_equally_probable(rng, method):
    R, label = scored(rng, 60, 2)
    posterior = calibrate(method, R, label, np.ones(60)).shifted(np.array([0.3]))
    assert_allclose(posterior.probabilities(np.array([[posterior.threshold()]])), 0.5, atol=1e-8)


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_shift_is_added_to_the_logits(rng, method):
    R, label = scored(rng, 60, 3)
    posterior, shift = calibrate(method, R, label, np.ones(60)), np.array([0.5, -1.0])
    assert_allclose(posterior.shifted(shift).logits(R), posterior.logits(R) + shift, rtol=1e-14)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("method", CALIBRATIONS)
@pytest.mark.parametrize("k", [2, 3])
def test_weight_two_is_a_row_twice(rng, method, k):
    R, label = scored(rng, 50, k)
    twice = np.r_[np.arange(50), 3, 8, 8]
    repeated = calibrate(method, R[twice], label[twice], np.ones(53))
    weighted = calibrate(method, R, label, np.bincount(twice).astype(float))
    assert_allclose(weighted.probabilities(R), repeated.probabilities(R), rtol=1e-8)


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_relabeling_three_classes_permutes_the_probabilities(rng, method):
    scores, label = rng.normal(size=(90, 3)), np.arange(90) % 3
    scores += 1.5 * np.eye(3)[label]
    order = np.array([2, 0, 1])
    # Class c gets the number new[c] = order^-1(c).
    relabeled = np.argsort(order)[label]
    R, Q = (A[:, 1:] - A[:, :1] for A in (scores, scores[:, order]))
    P = calibrate(method, R, label, np.ones(90)).probabilities(R)
    permuted = calibrate(method, Q, relabeled, np.ones(90)).probabilities(Q)
    # Newton's steps carry a ridge of 1e-10 that depends on which class comes first.
    assert_allclose(permuted, P[:, order], rtol=1e-6)


def test_gaussian_map_increases_where_left_out_scores_run_against_the_labels():
    label = np.arange(20) % 2
    R = np.where(label == 1, -1.0, 1.0)[:, None] + 0.1 * np.linspace(-1, 1, 20)[:, None]
    posterior = calibrate("gaussian", R, label, np.ones(20))
    assert (np.diff(posterior.logits(np.linspace(-2, 2, 9)[:, None])[:, 0]) > 0).all()


def test_probability_of_the_first_class_keeps_its_digits():
    posterior = calibrate("logistic", *scored(np.random.default_rng(0), 100, 3), np.ones(100))
    far = np.array([[1.0, 2.0], [300.0, 10.0], [-300.0, -10.0]])
    logits = posterior.logits(far)
    exact = np.exp(-np.logaddexp(np.logaddexp(0.0, logits[:, 0]), logits[:, 1]))
    assert 0 < exact[1] < 1e-100
    # An exponent of some hundreds has its last digit at 1e-14 of the probability.
    assert_allclose(posterior.probabilities(far)[:, 0], exact, rtol=1e-12)


@pytest.mark.parametrize("weak", [1.0, 1e-8])
def test_gaussian_in_a_subspace_is_linear_discriminant_analysis_there(rng, weak):
    """Scores of four classes that have two coordinates, one of them small."""
    label = np.arange(200) % 4
    Z = (np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])[label] + rng.normal(size=(200, 2))) * [
        1.0,
        weak,
    ]
    back = np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    basis = np.linalg.pinv(back[:, 1:])
    found = calibrate("gaussian", Z @ back[:, 1:], label, np.ones(200), basis)
    exact = LinearDiscriminantAnalysis(solver="lsqr").fit(Z / [1.0, weak], label).predict_proba(Z / [1.0, weak])
    assert_allclose(found.probabilities(Z @ back[:, 1:]), exact, rtol=1e-5)


def test_scores_without_coordinates_give_the_shares(rng):
    label = np.repeat([0, 1, 2], [10, 20, 30])
    found = calibrate("gaussian", np.zeros((60, 2)), label, np.ones(60), np.zeros((2, 0)))
    assert_allclose(found.probabilities(np.zeros((1, 2)))[0], [1 / 6, 1 / 3, 1 / 2])


@pytest.mark.parametrize("k", [2, 4])
def test_quadratic_is_quadratic_discriminant_analysis_with_shrunk_covariances(rng, k):
    R, label = scored(rng, 200, k)
    R *= np.linspace(0.5, 2.0, k)[label][:, None]
    means = np.stack([R[label == c].mean(axis=0) for c in range(k)])
    common = np.cov((R - means[label]).T, bias=True).reshape(k - 1, k - 1)
    densities = []
    for c in range(k):
        own = R[label == c]
        shrunk = (len(own) * np.cov(own.T, bias=True).reshape(k - 1, k - 1) + k * common) / (len(own) + k)
        densities.append(np.log(len(own)) + multivariate_normal(means[c], shrunk).logpdf(R))
    found = calibrate("quadratic", R, label, np.ones(200)).probabilities(R)
    # The common covariance has 1e-10 of the scores' variance added.
    assert_allclose(found, softmax(np.stack(densities, axis=1), axis=1), rtol=1e-6)


def test_quadratic_ranking_turns_around_far_out(rng):
    """One class is wider than the other, so both ends belong to it."""
    label = np.arange(200) % 2
    R = (np.where(label == 1, 1.0, -1.0) + np.where(label == 1, 0.3, 1.0) * rng.normal(size=200))[:, None]
    posterior = calibrate("quadratic", R, label, np.ones(200))
    assert_array_equal(posterior.probabilities(np.array([[-5.0], [1.0], [9.0]])).argmax(axis=1), [0, 1, 0])
    assert -1.0 < posterior.threshold() < 1.0


def test_threshold_is_infinite_where_one_class_is_always_more_probable(rng):
    label = np.arange(200) % 2
    R = (0.1 * label + np.where(label == 1, 0.5, 1.0) * rng.normal(size=200))[:, None]
    never = calibrate("quadratic", R, label, np.ones(200)).shifted(np.array([-50.0]))
    assert never.threshold() == np.inf
    R = (0.1 * label + np.where(label == 1, 1.0, 0.5) * rng.normal(size=200))[:, None]
    always = calibrate("quadratic", R, label, np.ones(200)).shifted(np.array([50.0]))
    assert always.threshold() == -np.inf


@pytest.mark.parametrize("n_first", [1, 2])
@pytest.mark.parametrize("method", CALIBRATIONS)
def test_classes_of_one_or_two_rows_have_probabilities(rng, method, n_first):
    R, label = scored(rng, 60, 3)
    some = np.flatnonzero((label != 0) | (np.cumsum(label == 0) <= n_first))
    P = calibrate(method, R[some], label[some], np.ones(len(some))).probabilities(R)
    assert ((P > 0) & (P < 1)).all()
