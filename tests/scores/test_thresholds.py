"""Each threshold has the property that defines it, by trying all cuts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from mercer._scores import THRESHOLDS

LAW = settings(max_examples=60, deadline=None, derandomize=True)
SCORES = st.lists(
    st.tuples(st.integers(-8, 8), st.sampled_from([-1.0, 1.0]), st.sampled_from([0.5, 1.0, 2.0])),
    min_size=2,
    max_size=20,
).filter(lambda rows: len({y for _, y, _ in rows}) == 2)


def columns(rows):
    r, y, weight = np.array(rows, dtype=float).T
    return r / 4, y, weight


def all_cuts(r):
    """One cut in every gap between scores, and one on each side."""
    values = np.unique(r)
    return np.r_[values[0] - 1, (values[1:] + values[:-1]) / 2, values[-1] + 1]


def misses(cut, r, y, weight):
    """Weight of positives at or below the cut, and of negatives above it."""
    return weight @ ((y > 0) & (r <= cut)), weight @ ((y < 0) & (r > cut))


def rate_gap(cut, r, y, weight):
    positive, negative = misses(cut, r, y, weight)
    return abs(positive / weight[y > 0].sum() - negative / weight[y < 0].sum())


@pytest.mark.slow
@given(SCORES)
@LAW
def test_equal_error_has_the_least_difference_of_miss_rates(rows):
    r, y, weight = columns(rows)
    least = min(rate_gap(cut, r, y, weight) for cut in all_cuts(r))
    assert_allclose(rate_gap(THRESHOLDS["equal_error"](r, y, weight), r, y, weight), least, atol=1e-12)


@pytest.mark.slow
@given(SCORES)
@LAW
def test_error_has_the_least_error_in_the_widest_gap(rows):
    r, y, weight = columns(rows)
    cuts = all_cuts(r)
    error = np.array([sum(misses(cut, r, y, weight)) for cut in cuts])
    gap = np.r_[0.0, np.diff(np.unique(r)), 0.0]
    found = THRESHOLDS["error"](r, y, weight)
    assert_allclose(sum(misses(found, r, y, weight)), error.min())
    above, below = r[r > found], r[r < found]
    width = above.min() - below.max() if len(above) and len(below) else 0.0
    assert_allclose(width, gap[error == error.min()].max())


def test_least_squares_cuts_at_zero(rng):
    assert THRESHOLDS["least_squares"](rng.normal(size=9), np.resize([-1.0, 1.0], 9), np.ones(9)) == 0.0


@pytest.mark.parametrize(("shift", "share"), [(0.5, 0.5), (2.0, 0.5), (2.0, 0.2)])
def test_soft_margin_is_a_support_vector_machine_on_the_score(rng, shift, share):
    y = np.where(rng.random(150) < share, 1.0, -1.0)
    r = rng.normal(size=150) + shift * y
    weight = rng.choice([1.0, 2.0], 150)
    svm = SVC(kernel="linear", C=1.0, tol=1e-8).fit(r[:, None], y, sample_weight=weight)
    assert_allclose(THRESHOLDS["soft_margin"](r, y, weight), -svm.intercept_[0] / svm.coef_[0, 0], atol=1e-3)


@pytest.mark.parametrize("rule", THRESHOLDS)
def test_weight_two_is_a_row_twice(rng, rule):
    y = np.resize([-1.0, 1.0], 30)
    r = rng.normal(size=30) + y
    twice = np.r_[np.arange(30), 4, 7, 7]
    weighted = THRESHOLDS[rule](r, y, np.bincount(twice).astype(float))
    assert_allclose(weighted, THRESHOLDS[rule](r[twice], y[twice], np.ones(33)), atol=1e-6)


@pytest.mark.parametrize("rule", ["least_squares", "equal_error", "error"])
def test_threshold_is_measured_in_units_of_the_score(rng, rule):
    y = np.resize([-1.0, 1.0], 30)
    r = rng.normal(size=30) + y
    one, hundred = (THRESHOLDS[rule](scale * r, y, np.ones(30)) for scale in (1.0, 100.0))
    assert_allclose(hundred, 100 * one, rtol=1e-10)


@pytest.mark.parametrize("rule", ["equal_error", "soft_margin", "error"])
def test_scores_that_can_be_parted_are(rule):
    r, y = np.array([-3.0, -1.0, 2.0, 2.5, 7.0]), np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
    assert -1.0 < THRESHOLDS[rule](r, y, np.ones(5)) < 2.0


def test_soft_margin_is_not_moved_by_the_scale_of_one_far_score(rng):
    y = np.resize([-1.0, 1.0], 100)
    r = np.r_[rng.normal(size=99) + y[:99], 12.0]
    svm = SVC(kernel="linear", C=1.0, tol=1e-8).fit(r[:, None], y)
    exact = -svm.intercept_[0] / svm.coef_[0, 0]
    assert_allclose(THRESHOLDS["soft_margin"](r, y, np.ones(100)), exact, atol=1e-3)
