"""Maps from scores to logits: what they compute, and which one is chosen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax

from mercer._scores.probabilities import logit_maps
from mercer._scores.probabilities.calibration import cross_calibrate
from mercer._scores.probabilities.logit_maps import (
    MAP_FOLDS,
    Map,
    bent,
    choose_bound,
    choose_map,
    one_slope,
    parts,
    summing_to_one,
    with_matrix,
)
from mercer._scores.probabilities.logits import fit_logits, smoothed_targets


def noisy(rng, n, k, noise=0.4):
    """Scores (n, k - 1) relative to the first class: indicators and noise, in a sum of one."""
    label = rng.permutation(np.arange(n) % k)
    F = np.eye(k)[label] + noise * rng.normal(size=(n, k))
    F -= (F.sum(axis=1, keepdims=True) - 1.0) / k
    return F[:, 1:] - F[:, :1], label


def chosen(R, label, weight) -> Map:
    """The map for all rows."""
    return choose_map(R, label, weight, parts(R, label)).map


def true_probabilities(rng, n, k):
    """Scores that are the probabilities by which the labels were drawn, and the labels."""
    P = rng.dirichlet(np.full(k, 0.3), n)
    label = (P.cumsum(axis=1) > rng.uniform(size=(n, 1))).argmax(axis=1)
    return P[:, 1:] - P[:, :1], label


def uneven(rng, n):
    """Scores of four classes of which one is much less noisy than the others."""
    label = rng.integers(0, 4, n)
    F = np.eye(4)[label] + np.array([0.1, 0.6, 0.6, 0.6]) * rng.normal(size=(n, 4))
    return F[:, 1:] - F[:, :1], label


def log_loss(logits, label):
    full = np.column_stack([np.zeros(len(logits)), logits])
    return -log_softmax(full, axis=1)[np.arange(len(label)), label].mean()


def test_scores_are_restored_from_their_differences(rng):
    F = rng.dirichlet(np.ones(4), 10)
    assert_allclose(summing_to_one(F[:, 1:] - F[:, :1]), F, atol=1e-15)


def test_bent_scores_are_logarithms_of_softplus(rng):
    F = 2.0 * rng.dirichlet(np.ones(4), 10) - 0.25
    S = np.log(np.log1p(np.exp(F / 0.2)))
    assert_allclose(bent(F[:, 1:] - F[:, :1], 0.2), S[:, 1:] - S[:, :1], atol=1e-12)


def test_a_wide_bend_is_a_straight_line(rng):
    R, _ = noisy(rng, 20, 3)
    # The derivative of log log(1 + exp(x)) at zero is 1 / (2 log 2), the next term is smaller by F / bend.
    assert_allclose(bent(R, 1e6) * 1e6 * 2 * np.log(2), R, rtol=1e-4, atol=1e-6)


def test_bent_scores_are_finite_and_ordered_wherever_scores_are():
    first = np.concatenate([-np.logspace(6, -6, 50), np.logspace(-6, 6, 50)])
    S = bent(np.column_stack([first, np.zeros(100)]), 0.05)
    assert np.isfinite(S).all()
    assert (np.diff(S[:, 0]) > 0).all()


@pytest.mark.parametrize("bend", [np.inf, 0.2])
def test_matrix_minimizes_the_penalized_log_loss(rng, bend):
    R, label = noisy(rng, 90, 3)
    weight, spread = rng.uniform(0.5, 2.0, 90), 0.3
    S, T = bent(R, bend), smoothed_targets(label, weight, 3, 2 / 3)
    slope = one_slope(R, label, weight, bend).slope[0, 0]
    X = np.column_stack([np.zeros(90), S])
    X -= X.mean(axis=1, keepdims=True)

    def loss(theta):
        M, b = theta[:9].reshape(3, 3), theta[9:]
        deviation = M - np.trace(M) / 3 * np.eye(3)
        fit = -(weight[:, None] * T * log_softmax(X @ M + b, axis=1)).sum()
        return fit + (deviation**2).sum() / (2 * (spread * slope) ** 2)

    best = minimize(loss, np.r_[slope * np.eye(3).ravel(), np.zeros(3)], options={"gtol": 1e-7, "maxiter": 1000}).x
    logits = X @ best[:9].reshape(3, 3) + best[9:]
    # Derivatives by differences are known to 1e-8 of the loss, some hundreds of nats.
    found = with_matrix(one_slope(R, label, weight, bend), R, label, weight, spread).logits(R)
    assert_allclose(found, logits[:, 1:] - logits[:, :1], atol=1e-4)


def test_matrix_without_spread_is_one_slope(rng):
    R, label = noisy(rng, 120, 4)
    plain = one_slope(R, label, np.ones(120), 0.2)
    assert_allclose(plain.slope, plain.slope[0, 0] * np.eye(3))
    # Deviations are of the order of spread² times the gradient, at most n.
    found = with_matrix(plain, R, label, np.ones(120), 1e-5)
    assert_allclose(found.logits(R), plain.logits(R), atol=1e-5)


def test_parts_hold_equal_rows_together_and_share_every_class(rng):
    R, label = noisy(rng, 60, 3)
    twice = np.r_[np.arange(60), np.arange(20)]
    part = parts(R[twice], label[twice])
    assert_array_equal(part[60:], part[:20])
    for c in range(3):
        assert set(part[label[twice] == c]) == set(range(MAP_FOLDS))


def test_parts_hold_groups_together_and_do_not_depend_on_the_order_of_rows(rng):
    R, label = noisy(rng, 120, 3)
    group, order = np.arange(120) // 3, rng.permutation(120)
    part = parts(R, label, group)
    assert all(len(set(part[group == g])) == 1 for g in range(40))
    assert set(part) == set(range(MAP_FOLDS))
    assert_array_equal(parts(R[order], label[order], group[order]), part[order])


def test_a_map_without_a_part_is_the_one_fitted_to_the_others(rng):
    R, label = uneven(rng, 300)
    part, weight = parts(R, label), np.ones(300)
    found = choose_map(R, label, weight, part)
    assert len(found.without) == MAP_FOLDS
    rest = part != 2
    plain = one_slope(R[rest], label[rest], weight[rest], found.map.bend)
    kinds = [plain] + [
        with_matrix(plain, R[rest], label[rest], weight[rest], s / 4) for s in logit_maps.MATRIX_SPREADS
    ]
    assert min(np.abs(kind.logits(R) - found.without[2].logits(R)).max() for kind in kinds) < 1e-2


def test_classes_of_few_rows_are_in_no_part(rng):
    R, label = noisy(rng, 60, 3)
    few = np.flatnonzero((label != 2) | (np.cumsum(label == 2) < MAP_FOLDS))
    part = parts(R[few], label[few])
    assert (part[label[few] == 2] == -1).all()
    assert (part[label[few] != 2] >= 0).all()


@pytest.mark.parametrize("n_each", [1, 2, MAP_FOLDS - 1])
def test_map_of_few_rows_is_one_straight_slope(rng, n_each):
    R, label = noisy(rng, 4 * n_each, 4)
    found = chosen(R, label, np.ones(len(label)))
    simple = one_slope(R, label, np.ones(len(label)))
    assert found.bend == np.inf
    assert_allclose(found.slope, simple.slope, rtol=1e-12)
    assert_allclose(found.offset, simple.offset, rtol=1e-12)


def test_map_of_constant_scores_is_one_straight_slope():
    found = chosen(np.full((60, 2), 0.3), np.arange(60) % 3, np.ones(60))
    assert found.bend == np.inf
    assert_allclose(found.slope, found.slope[0, 0] * np.eye(2))


def test_scores_of_a_model_without_signal_are_not_turned_around(rng):
    """Leave-one-out shares of classes are lower for the class that was left out."""
    label = rng.permutation(np.arange(60) % 4)
    F = (np.bincount(label) - np.eye(4)[label]) / 59 + 1e-3 * rng.normal(size=(60, 4))
    found = chosen(F[:, 1:] - F[:, :1], label, np.ones(60))
    P = np.exp(log_softmax(np.column_stack([np.zeros(60), found.logits(F[:, 1:] - F[:, :1])]), axis=1))
    assert_allclose(P, 0.25, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-8, 1e6, 1e8])
def test_maps_do_not_depend_on_the_unit_of_scores(rng, unit):
    label = np.arange(600) % 3
    R = rng.normal(size=(600, 2)) + 1.5 * np.eye(3)[label][:, 1:] @ np.array([[1.0, 0.5], [0.0, 2.0]])
    one, other = (chosen(c * R, label, np.ones(600)) for c in (1.0, unit))
    assert_allclose(other.logits(unit * R), one.logits(R), rtol=1e-4, atol=1e-4)


def test_scores_that_are_probabilities_are_bent(rng):
    R, label = true_probabilities(rng, 2000, 4)
    new, truth = true_probabilities(rng, 20000, 4)
    found = chosen(R, label, np.ones(2000))
    F = summing_to_one(new)
    best = -np.log(F[np.arange(len(truth)), truth]).mean()
    straight = log_loss(one_slope(R, label, np.ones(len(label))).logits(new), truth)
    assert found.bend < np.inf
    # Two thirds of what one slope loses against the truth are gained.
    assert log_loss(found.logits(new), truth) - best < (straight - best) / 3


def test_matrix_tells_noisy_scores_from_others(rng):
    R, label = uneven(rng, 600)
    new, truth = uneven(rng, 5000)
    found, simple = chosen(R, label, np.ones(600)), one_slope(R, label, np.ones(len(label)))
    assert np.abs(found.slope[0, 1]) > 0
    assert log_loss(found.logits(new), truth) < 0.9 * log_loss(simple.logits(new), truth)


@pytest.mark.slow
def test_scores_that_fit_one_slope_keep_it(rng):
    """Draws of softmax labels at logits of four times the scores: no map is truly better."""
    kept = 0
    for _ in range(20):
        R = rng.normal(size=(300, 2)) / 2
        logits = np.column_stack([np.zeros(300), 4 * R])
        label = (logits + rng.gumbel(size=(300, 3))).argmax(axis=1)
        found = chosen(R, label, np.ones(300))
        new = rng.normal(size=(5000, 2)) / 2
        truth = (np.column_stack([np.zeros(5000), 4 * new]) + rng.gumbel(size=(5000, 3))).argmax(axis=1)
        kept += log_loss(found.logits(new), truth) < 1.02 * log_loss(
            one_slope(R, label, np.ones(len(label))).logits(new), truth
        )
    assert kept >= 18


@pytest.mark.slow
def test_chosen_map_does_not_depend_on_copies_or_on_the_order_of_classes(rng):
    R, label = uneven(rng, 200)
    twice = np.r_[np.arange(200), 3, 8, 8]
    weighted = chosen(R, label, np.bincount(twice).astype(float))
    repeated = chosen(R[twice], label[twice], np.ones(203))
    assert weighted.bend == repeated.bend
    # What is left of Newton's decrement, 1e-12 for a row, is its square in the logits.
    assert_allclose(weighted.logits(R), repeated.logits(R), atol=1e-6)
    F, order = summing_to_one(R), np.array([2, 3, 0, 1])
    Q = F[:, order][:, 1:] - F[:, order][:, :1]
    renamed = chosen(Q, np.argsort(order)[label], np.ones(200))
    P, plain = (
        np.exp(log_softmax(np.column_stack([np.zeros(200), L]), axis=1))
        for L in (renamed.logits(Q), chosen(R, label, np.ones(200)).logits(R))
    )
    assert_allclose(P, plain[:, order], atol=1e-6)


def test_separable_scores_have_finite_logits(rng):
    R, label = noisy(rng, 100, 5, noise=0.001)
    found = chosen(R, label, np.ones(100))
    assert np.isfinite(found.logits(R)).all()
    assert (np.column_stack([np.zeros(100), found.logits(R)]).argmax(axis=1) == label).all()


def test_matrices_and_bends_are_not_tried_where_they_would_take_too_long(rng, monkeypatch):
    R, label = uneven(rng, 600)
    monkeypatch.setattr(logit_maps, "MOST_WORK", 600 * 4**3 - 1)
    bends = chosen(R, label, np.ones(600))
    assert_allclose(bends.slope, bends.slope[0, 0] * np.eye(3))
    monkeypatch.setattr(logit_maps, "MOST_WORK", 600 * 4**2 - 1)
    R, label = true_probabilities(rng, 600, 4)
    assert chosen(R, label, np.ones(600)).bend == np.inf


@pytest.mark.parametrize("k", [2, 3, 10])
def test_one_slope_has_two_more_rows_on_each_side_in_all_classes(rng, k):
    R, label = noisy(rng, 20 * k, k)
    found, fit = one_slope(R, label, np.ones(20 * k)), fit_logits(R[None], label, np.ones(20 * k), 2 / k)
    assert_allclose(found.logits(R), fit.slope[0] * R + fit.offset[0], rtol=1e-12)


def heavy_scores(rng, n=60, size=1e4):
    """Scores (n, 1) of two classes by their sign with an error of a fifth, some of them very large."""
    label = np.arange(n) % 2
    right = rng.uniform(size=n) > 0.2
    score = np.where((label == 1) == right, 1.0, -1.0) * rng.uniform(0.5, 1.5, n)
    return np.where(rng.uniform(size=n) < 0.15, size, 1.0)[:, None] * score[:, None], label


def test_a_few_large_scores_do_not_hide_what_most_of_them_say(rng):
    R, label = heavy_scores(rng)
    posterior = cross_calibrate("logistic", R, label, np.ones(len(R)), parts(R, label)).posterior
    right = np.mean((R[:, 0] > 0) == (label == 1))
    assert np.mean(posterior.probabilities(R).argmax(axis=1) == label) >= right - 0.05
    ordinary = np.abs(R[:, 0]) < 2.0
    P = posterior.probabilities(R[ordinary])[np.arange(ordinary.sum()), label[ordinary]]
    assert -np.log(P).mean() < 0.6


def test_scores_of_one_size_are_not_cut_off(rng):
    R, label = heavy_scores(rng, size=1.0)
    weight = np.ones(len(R))
    assert choose_bound(R, label, weight, parts(R, label)) == np.inf
    assert cross_calibrate("logistic", R, label, weight, parts(R, label)).posterior.limit == np.inf


def test_large_scores_that_are_right_are_not_cut_off(rng):
    r = rng.standard_t(1.5, size=400)
    label = (rng.uniform(size=400) < 1.0 / (1.0 + np.exp(-r))).astype(int)
    R = r[:, None]
    assert choose_bound(R, label, np.ones(400), parts(R, label)) == np.inf


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("n_groups", [8, 10, 20])
def test_few_groups_of_several_classes_are_in_parts(rng, k, n_groups):
    R, label = noisy(rng, 300, k)
    group = rng.permutation(np.arange(300) % n_groups)
    part = parts(R, label, group)
    assert (part >= 0).all()
    assert all(len(np.unique(part[group == g])) == 1 for g in range(n_groups))
    assert all(len(np.unique(label[part != p])) == k for p in range(part.max() + 1))


def test_a_class_of_one_group_is_in_no_part(rng):
    R, label = noisy(rng, 300, 2)
    group = np.where(label == 0, np.arange(300), 300)
    part = parts(R, label, group)
    assert (part[label == 1] == -1).all()
