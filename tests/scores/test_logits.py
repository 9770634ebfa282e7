"""The logistic map of scores is at its optimum, and its targets are smoothed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from mercer._scores.probabilities.logits import LEAST_SLOPE, LOGIT_DECREMENT, fit_logits, smoothed_targets


def scored(rng, n, k, *, signal=1.0):
    """Relative scores (1, n, k - 1), labels and weights."""
    label = rng.permutation(np.arange(n) % k)
    scores = signal * np.eye(k)[label] + rng.normal(size=(n, k))
    return (scores[:, 1:] - scores[:, :1])[None], label, rng.uniform(0.2, 3.0, n)


def gradient(fit, R, label, weight):
    """Of the weighted log-loss in slope and offsets, by its definition."""
    k = R.shape[-1] + 1
    logits = np.column_stack([np.zeros(len(label)), fit.slope[0] * R[0] + fit.offset[0]])
    E = weight[:, None] * (softmax(logits, axis=1) - smoothed_targets(label, weight, k))[:, 1:]
    return np.r_[(E * R[0]).sum(), E.sum(axis=0)]


def test_targets_count_one_more_row_right_and_one_wrong():
    label, weight = np.array([0, 0, 1, 2]), np.array([1.0, 2.0, 1.0, 1.0])
    assert_allclose(smoothed_targets(label, weight, 3)[1], [4 / 5, 1 / 10, 1 / 10])
    assert_allclose(smoothed_targets(label, weight, 3).sum(axis=1), 1.0)


def test_targets_count_as_many_more_rows_as_are_asked_for():
    label, weight = np.array([0, 0, 1, 2]), np.array([1.0, 2.0, 1.0, 1.0])
    # (3 + 2/3) / (3 + 4/3) of the first class are right.
    assert_allclose(smoothed_targets(label, weight, 3, 2 / 3)[1], [11 / 13, 1 / 13, 1 / 13])


@pytest.mark.parametrize("k", [2, 3, 7])
def test_gradient_vanishes_at_the_optimum(rng, k):
    R, label, weight = scored(rng, 80, k)
    found = gradient(fit_logits(R, label, weight), R, label, weight)
    # Newton's decrement g'H^-1 g <= e n, e = LOGIT_DECREMENT, bounds |g| by sqrt(e n |H|); |H| <= n (1 + max R²).
    assert np.linalg.norm(found) <= np.sqrt(LOGIT_DECREMENT) * weight.sum() * (1 + np.abs(R).max())


def test_two_class_fit_is_logistic_regression_on_smoothed_targets(rng):
    R, label, weight = scored(rng, 100, 2)
    T = smoothed_targets(label, weight, 2)
    rows, classes = np.r_[R[0], R[0]], np.repeat([0, 1], 100)
    exact = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    exact.fit(rows, classes, sample_weight=np.r_[weight * T[:, 0], weight * T[:, 1]])
    fit = fit_logits(R, label, weight)
    # The square root of the tolerance on Newton's decrement, in units of each parameter's own spread.
    assert_allclose(fit.slope, exact.coef_[0], rtol=3e-4)
    assert_allclose(fit.offset[0], exact.intercept_, atol=3e-4)


@pytest.mark.parametrize("k", [2, 4])
def test_weight_two_is_a_row_twice(rng, k):
    R, label, _ = scored(rng, 40, k)
    twice = np.r_[np.arange(40), 3, 8]
    repeated = fit_logits(R[:, twice], label[twice], np.ones(42))
    weighted = fit_logits(R, label, np.bincount(twice).astype(float))
    assert_allclose(weighted.slope, repeated.slope, rtol=1e-9)
    assert_allclose(weighted.offset, repeated.offset, rtol=1e-9, atol=1e-12)


def test_batch_is_a_loop(rng):
    sets = [scored(rng, 30, 3, signal=s)[0] for s in (0.0, 1.0, 5.0)]
    label, weight = np.arange(30) % 3, np.ones(30)
    batch = fit_logits(np.concatenate(sets), label, weight)
    for i, R in enumerate(sets):
        single = fit_logits(R, label, weight)
        assert_allclose(batch.slope[i], single.slope[0], rtol=1e-9)
        assert_allclose(batch.offset[i], single.offset[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [2, 5])
def test_bits_of_a_set_of_scores_do_not_depend_on_other_sets(rng, k):
    R, label, weight = scored(rng, 50, k)
    others = rng.normal(size=(700, *R.shape[1:]))
    alone, among = fit_logits(R, label, weight), fit_logits(np.concatenate([R, others]), label, weight)
    assert among.slope[0] == alone.slope[0]
    assert among.offset[0].tolist() == alone.offset[0].tolist()


@pytest.mark.parametrize("distance", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize("rare", [3, 30])
def test_optimum_is_found_for_a_rare_class_far_away(rng, distance, rare):
    label = np.repeat([0, 1], [3000, rare])
    R = (distance * label + rng.normal(size=len(label)))[None, :, None]
    weight = np.ones(len(label))
    found = gradient(fit_logits(R, label, weight), R, label, weight)
    # As above, in units of the spread of the scores, which are what a step is computed in.
    assert np.linalg.norm(found / [R.std(), 1.0]) <= np.sqrt(LOGIT_DECREMENT) * weight.sum()


def test_row_without_weight_may_have_any_score(rng):
    R, label, weight = scored(rng, 60, 3)
    weight[0], R[0, 0] = 0.0, 1e30
    plain, extreme = fit_logits(R[:, 1:], label[1:], weight[1:]), fit_logits(R, label, weight)
    assert_allclose(extreme.slope, plain.slope, rtol=1e-9)
    assert_allclose(extreme.offset, plain.offset, rtol=1e-9, atol=1e-12)


def test_slope_of_scores_that_run_against_the_labels_is_at_its_floor():
    label = np.arange(20) % 2
    fit = fit_logits(np.where(label == 1, -1.0, 1.0)[None, :, None], label, np.ones(20))
    assert fit.slope[0] == LEAST_SLOPE


def test_constant_scores_give_the_shares_of_the_classes():
    label = np.repeat([0, 1, 2], [10, 20, 30])
    fit = fit_logits(np.full((1, 60, 2), 0.7), label, np.ones(60))
    logits = np.r_[0.0, fit.slope[0] * 0.7 + fit.offset[0]]
    shares = smoothed_targets(label, np.ones(60), 3).mean(axis=0)
    assert_allclose(softmax(logits), shares, rtol=1e-4)


def test_separable_scores_have_a_finite_optimum():
    label = np.repeat([0, 1], 10)
    R = np.where(label == 1, 1.0, -1.0)[None, :, None]
    fit = fit_logits(R, label, np.ones(20))
    # Both classes at their smoothed targets 11/12.
    assert_allclose(fit.slope[0], np.log(11), rtol=1e-4)
    assert_allclose(fit.offset[0], 0.0, atol=1e-9)


def test_affine_change_of_scores_changes_no_logit(rng):
    R, label, weight = scored(rng, 60, 2)
    plain, moved = fit_logits(R, label, weight), fit_logits(1000 * R + 5, label, weight)
    before, after = plain.slope * R + plain.offset, moved.slope * (1000 * R + 5) + moved.offset
    assert_allclose(after, before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [3, 6])
def test_classes_of_equal_weight_have_equal_shares_to_the_last_digit(rng, k):
    label = rng.permutation(np.arange(20 * k) % k)
    fit = fit_logits(np.zeros((1, 20 * k, k - 1)), label, np.ones(20 * k))
    assert fit.offset[0].tolist() == [0.0] * (k - 1)
