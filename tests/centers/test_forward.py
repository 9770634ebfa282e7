"""Forward selection in Gram space is greedy refitting, only faster."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._gram.moments import MomentsOf
from mercer.centers import CandidateRows, ForwardSelection, Uniform
from mercer.centers._forward import moments_of_sample
from mercer.datasets import make_clusters, make_ringnorm, make_sinc, make_twonorm
from mercer.kernels import RBF
from mercer.rows._base import Block

KERNEL = RBF(gamma=0.3)
ALPHA = 0.05


def seeded(seed=0):
    return np.random.default_rng(seed)


def classes(n_classes, n=90):
    label = np.arange(n) % n_classes
    X = seeded(3).normal(size=(n, 2)) + 1.5 * np.eye(n_classes, 2)[label]
    return CandidateRows(X, np.eye(n_classes)[label], 0.5 + seeded(4).uniform(size=n), label)


def regression(n=90):
    X = seeded(5).normal(size=(n, 2))
    return CandidateRows(X, np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2]), np.ones(n))


SAMPLES = {"two classes": classes(2), "four classes": classes(4), "regression": regression()}
every_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


def refit(sample, S, alpha):
    """Coefficients, objective, sum of squares and trace of the smoother, by the normal equations."""
    w, K = sample.weight, KERNEL.block(sample.X, sample.X[S])
    A = np.column_stack([K, np.ones(len(w))])
    P = np.zeros((len(S) + 1, len(S) + 1))
    P[:-1, :-1] = alpha * KERNEL.block(sample.X[S], sample.X[S])
    inverse = np.linalg.inv(A.T @ (w[:, None] * A) + P)
    coef = inverse @ A.T @ (w[:, None] * sample.Y)
    rss = (w[:, None] * (sample.Y - A @ coef) ** 2).sum()
    return coef, rss + np.trace(coef.T @ P @ coef), rss, np.trace(inverse @ A.T @ (w[:, None] * A))


def greedy(sample, m, alpha):
    """Add the row with which refitting gives the least objective, m times."""
    S = []
    for _ in range(m):
        left = [j for j in range(len(sample.weight)) if j not in S]
        S.append(min(left, key=lambda j: refit(sample, [*S, j], alpha)[1]))
    return S


@pytest.mark.slow
@every_sample
@pytest.mark.parametrize("alpha", [1e-3, 0.05, 5.0])
def test_forward_selection_is_greedy_refitting(sample, alpha):
    centers = ForwardSelection(alpha=alpha).select(KERNEL, sample, 7, seeded())
    assert_array_equal(centers.indices, greedy(sample, 7, alpha))


@every_sample
@pytest.mark.parametrize("alpha", [None, ALPHA])
def test_the_path_is_that_of_refitting(sample, alpha):
    path = ForwardSelection(alpha=alpha, cost=1.0).select(KERNEL, sample, 12, seeded()).path
    refitted = [refit(sample, path.order[:m], path.alpha) for m in range(1, 13)]
    assert_allclose(path.objective, [r[1] for r in refitted], rtol=1e-7)
    assert_allclose(path.rss, [r[2] for r in refitted], rtol=1e-7)
    assert_allclose(path.degrees_of_freedom, [r[3] for r in refitted], rtol=1e-7)
    n = sample.weight.sum()
    assert_allclose(path.score, [n * r[2] / (n - r[3]) ** 2 for r in refitted], rtol=1e-6)


@every_sample
def test_gains_are_the_decreases_and_the_trace_is_their_share(sample):
    centers = ForwardSelection(alpha=ALPHA).select(KERNEL, sample, 12, seeded())
    mean = sample.weight @ sample.Y / sample.weight.sum()
    total = (sample.weight @ (sample.Y - mean) ** 2).sum()
    assert (centers.path.gain > 0).all()
    assert_allclose(centers.path.objective, total - np.cumsum(centers.path.gain), rtol=1e-10)
    assert_allclose(centers.trace, centers.path.gain / total, rtol=1e-10)


@every_sample
def test_at_cost_one_the_score_is_exact_leave_one_out(sample):
    selector = ForwardSelection(criterion="loo", alpha=ALPHA, cost=1.0)
    path = selector.select(KERNEL, sample, 5, seeded()).path
    S, w = path.order, sample.weight
    K = np.column_stack([KERNEL.block(sample.X, sample.X[S]), np.ones(len(w))])
    left_out = []
    for i in range(len(w)):
        kept = CandidateRows(sample.X, sample.Y, np.where(np.arange(len(w)) == i, 0.0, w))
        left_out.append(sample.Y[i] - K[i] @ refit(kept, S, ALPHA)[0])
    assert_allclose(path.score[-1], w @ (np.array(left_out) ** 2).sum(axis=1) / w.sum(), rtol=1e-8)


@every_sample
def test_a_longer_path_begins_with_the_shorter_one(sample):
    short, long = (ForwardSelection(alpha=ALPHA).select(KERNEL, sample, m, seeded()).path for m in (6, 25))
    assert_array_equal(short.order, long.order[:6])
    assert_allclose(short.score, long.score[:6], rtol=1e-8)


@pytest.mark.parametrize("criterion", ["gcv", "loo"])
@every_sample
def test_without_a_number_the_path_stops_at_the_least_score(sample, criterion):
    centers = ForwardSelection(criterion=criterion).select(KERNEL, sample, None, seeded())
    m = centers.path.score.argmin() + 1
    assert_array_equal(centers.indices, centers.path.order[:m])
    assert len(centers.rows) == len(centers.trace) == m


@every_sample
def test_one_pass_over_the_same_rows_chooses_the_same_centers(sample):
    def one_pass(candidates):
        fold = MomentsOf(KERNEL, candidates)
        cut = [slice(0, 13), slice(13, 60), slice(60, 90)]
        first, *more = (fold(Block(sample.X[i], sample.Y[i], sample.weight[i], i.start)) for i in cut)
        return sum(more, start=first)

    here, there = (
        ForwardSelection().select(KERNEL, sample, 10, seeded(), moments) for moments in (None, one_pass)
    )
    assert_array_equal(here.indices, there.indices)
    assert_allclose(here.path.score, there.path.score, rtol=1e-8)


def test_all_rows_of_the_data_count_not_only_the_sample():
    X, y = make_ringnorm(3000, random_state=0)
    everything = CandidateRows(X, y[:, None].astype(float), np.ones(3000), (y > 0).astype(int))
    part = CandidateRows(X[:200], everything.Y[:200], np.ones(200), everything.label[:200])
    kernel = RBF(gamma=0.05)
    centers = ForwardSelection(alpha=ALPHA).select(
        kernel, part, 5, seeded(), lambda rows: moments_of_sample(kernel, everything, rows)
    )
    K = kernel.block(X, X[centers.indices])
    coef = np.linalg.lstsq(np.column_stack([K, np.ones(3000)]), y, rcond=None)[0]
    rss = ((y - K @ coef[:-1] - coef[-1]) ** 2).sum()
    assert rss <= centers.path.rss[-1] <= 1.01 * rss


def without_own_votes(sample, drawn, m, alpha):
    """Greedy refitting on the rows that are not drawn, with centers among those that are."""
    voters = CandidateRows(
        sample.X, sample.Y, np.where(np.isin(np.arange(len(sample.weight)), drawn), 0.0, sample.weight)
    )
    S = []
    for _ in range(m):
        left = [j for j in drawn if j not in S]
        S.append(min(left, key=lambda j: refit(voters, [*S, j], alpha)[1]))
    return S


@pytest.mark.sampled(2)
@every_sample
def test_candidates_have_no_vote_if_they_are_few(sample):
    selector = ForwardSelection(n_candidates=40, n_means=0, alpha=ALPHA)
    centers = selector.select(KERNEL, sample, 6, seeded())
    assert len(centers.unseen) == 40
    assert_array_equal(centers.indices, without_own_votes(sample, centers.unseen, 6, ALPHA))


@every_sample
def test_every_row_votes_if_most_are_candidates(sample):
    assert len(ForwardSelection(n_candidates=50).select(KERNEL, sample, 6, seeded()).unseen) == 0


def test_copies_of_a_candidate_have_no_vote_either():
    sample = classes(2)
    twice = np.repeat(np.arange(90), 2)
    copies = CandidateRows(sample.X[twice], sample.Y[twice], sample.weight[twice], sample.label[twice])
    centers = ForwardSelection(n_candidates=40, n_means=0).select(KERNEL, copies, 6, seeded())
    assert_array_equal(np.bincount(centers.unseen // 2, minlength=90) % 2, 0)
    assert len(centers.unseen) == 80


def test_leave_one_out_without_a_vote_knows_the_noise():
    """Labels are noise: whatever is chosen, the squared error of new rows is at least their variance."""
    X, y = seeded(0).normal(size=(1200, 5)), seeded(1).choice([-1.0, 1.0], 1200)
    sample, kernel = CandidateRows(X, y[:, None], np.ones(1200)), RBF(gamma=0.5)
    blind, voting = (
        ForwardSelection(n_candidates=c, n_means=0, criterion="loo", cost=1.0).select(kernel, sample, 60, seeded())
        for c in (400, 1200)
    )
    assert blind.path.score[-1] > 0.98 > 0.95 > voting.path.score[-1]


def test_means_are_chosen_where_they_help_and_said_not_to_be_rows():
    X, y = make_clusters(1000, random_state=0)
    sample = CandidateRows(X, y[:, None].astype(float), np.ones(1000), (y > 0).astype(int))
    centers = ForwardSelection(n_candidates=200, n_means=60).select(RBF(gamma=0.03), sample, 30, seeded())
    assert centers.indices is None
    of_rows = centers.path.order >= 0
    assert 0 < of_rows.sum() < 30
    assert_array_equal(centers.rows[of_rows], X[centers.path.order[of_rows]])


def test_means_that_were_found_before_are_taken_for_every_kernel(monkeypatch):
    X, y = make_clusters(1000, random_state=0)
    sample = CandidateRows(X, y[:, None].astype(float), np.ones(1000), (y > 0).astype(int))
    selector = ForwardSelection(n_candidates=200, n_means=60)
    prepared = selector.prepared(KERNEL, sample, seeded())
    assert len(prepared.means) == 60
    monkeypatch.setattr("mercer.centers._forward.KMeans.select", lambda *_: pytest.fail("clustered again"))
    for gamma in (0.03, 0.3):
        centers = selector.select(RBF(gamma=gamma), prepared, 30, seeded())
        means = centers.rows[centers.path.order < 0]
        assert len(means) > 0
        assert {row.tobytes() for row in means} <= {row.tobytes() for row in prepared.means}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_candidates_that_add_nothing_but_noise_are_not_chosen(dtype):
    X, y = make_sinc(300, random_state=0, dtype=dtype)
    sample = CandidateRows(X.reshape(300, -1), y.reshape(300, -1).astype(float), np.ones(300))
    centers = ForwardSelection().select(RBF(gamma=0.1), sample, 300, seeded())
    assert len(centers.rows) < 60
    assert np.isfinite(centers.path.score).all()


def test_a_constant_target_needs_one_center():
    sample = CandidateRows(seeded().normal(size=(30, 2)), np.ones((30, 1)), np.ones(30))
    assert len(ForwardSelection().select(KERNEL, sample, None, seeded()).rows) == 1


def test_weights_that_count_less_than_one_row_cannot_say_how_many_centers():
    sample = regression()
    light = CandidateRows(sample.X, sample.Y, sample.weight / 1000.0)
    with pytest.raises(ValueError, match=r"weights sum to 0\.09"):
        ForwardSelection().select(KERNEL, light, None, seeded())
    assert len(ForwardSelection().select(KERNEL, light, 4, seeded()).rows) == 4


def test_an_unknown_criterion_is_named():
    with pytest.raises(ValueError, match='criterion=\'aic\'; it must be "gcv" or "loo"'):
        ForwardSelection(criterion="aic").select(KERNEL, regression(), 3, seeded())


def error(kernel, centers, sample, X, y, alphas):
    """Least test error of ridge regression on the centers over alphas."""
    K, K_test = kernel.block(sample.X, centers.rows), kernel.block(X, centers.rows)
    mean, target = K.mean(axis=0), sample.Y[:, 0].mean()
    G, P = (K - mean).T @ (K - mean), kernel.block(centers.rows, centers.rows)
    C = (K - mean).T @ (sample.Y[:, 0] - target)
    coefs = [np.linalg.solve(G + alpha * P, C) for alpha in alphas]
    return min(np.mean(np.sign((K_test - mean) @ coef + target) != y) for coef in coefs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "gamma", "m", "margin"), [(make_ringnorm, 0.05, 30, 0.9), (make_clusters, 0.03, 60, 0.8)]
)
def test_centers_chosen_by_the_labels_beat_centers_drawn(make, gamma, m, margin):
    kernel, errors = RBF(gamma=gamma), {Uniform: [], ForwardSelection: []}
    for seed in range(4):
        X, y = make(6000, random_state=seed)
        sample = CandidateRows(X[:2000], y[:2000, None].astype(float), np.ones(2000), (y[:2000] > 0).astype(int))
        for kind in errors:
            centers = kind().select(kernel, sample, m, seeded(seed))
            errors[kind].append(error(kernel, centers, sample, X[2000:], y[2000:], [0.01, 0.1, 1.0]))
    # On ringnorm 0.80 times the error of centers drawn was seen.
    assert np.mean(errors[ForwardSelection]) < margin * np.mean(errors[Uniform])


def test_counting_the_selection_stops_before_the_noise_is_fitted():
    X, y = make_twonorm(400, random_state=0)
    sample = CandidateRows(X, y[:, None].astype(float), np.ones(400), (y > 0).astype(int))
    free, charged = (
        len(ForwardSelection(cost=cost).select(RBF(gamma=1 / 72), sample, None, seeded()).rows)
        for cost in (1.0, 2.5)
    )
    assert charged < 0.25 * free
