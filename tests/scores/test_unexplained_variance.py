"""What is known of a row: little where no training rows are, as much as usual where they are."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from mercer import KernelFisherClassifier
from mercer._scores.training_rows import Training
from mercer._scores.uncertainty.unexplained_variance import _kept, _without_rows, learn_unexplained_variance
from mercer.datasets import make_banana, make_ringnorm, make_twonorm
from mercer.errors import NumericalWarning
from mercer.kernels import RBF, FromCallable, Linear, Sigmoid, pairwise
from mercer.rows._sampling.weights import Tally, reading_of


def training_of(X, weight=None):
    n = len(X)
    weight = np.ones(n) if weight is None else weight
    return Training(X, np.zeros((n, 1)), weight, weight, reading_of("counts", Tally.of(weight, n)), None)


def far(X, rng, n=200):
    """Rows ten spreads from the mean, in all directions."""
    direction = rng.normal(size=(n, X.shape[1]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return X.mean(axis=0) + 10.0 * np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()) * direction


@pytest.mark.parametrize("kernel", [RBF(gamma=2.0), RBF(gamma=0.1), RBF(gamma=1e-4), Linear()], ids=str)
def test_nothing_is_known_far_from_all_rows_whatever_the_width(kernel, rng):
    X, _ = make_banana(300, random_state=0)
    unexplained, trust = learn_unexplained_variance(kernel, training_of(X), 0.1)
    assert (trust > 0.9).mean() > 0.9
    assert unexplained.trust(far(X, rng)).mean() < 0.15
    new, _ = make_banana(300, random_state=1)
    assert (unexplained.novelty(new) > 0.0).mean() < 0.05


def test_left_out_rows_are_known_like_new_rows_by_the_others(rng):
    X, kernel = rng.normal(size=(60, 2)), RBF(gamma=0.5)
    unexplained, trust = learn_unexplained_variance(kernel, training_of(X), 0.5)
    parts = unexplained.parts(X)
    # Every row is a center: the variance is that of the Gaussian process, without the row 1 / (alpha P_ii) - 1.
    assert_allclose(parts.unspanned, 0.0, atol=1e-6)
    K = kernel.block(X, X)
    H = np.eye(60) - 1.0 / 60.0
    P = np.linalg.pinv(H @ (K + 0.5 * np.eye(60)) @ H)
    variance = 1.0 / (0.5 * P.diagonal()) - 1.0
    prior = (H @ K @ H).diagonal()
    known = np.maximum(1.0 - 0.5 * variance / np.maximum(prior, prior.mean()), 0.0) / variance
    expected = np.minimum(known / (0.5 * np.sort(known)[0]), 1.0)
    assert_allclose(trust, expected, rtol=0.02)


def test_weights_are_repeated_rows(rng):
    X, _ = make_banana(80, random_state=0)
    repeat = rng.integers(1, 4, 80)
    weighted, _ = learn_unexplained_variance(RBF(gamma=1.0), training_of(X, repeat.astype(float)), 0.1)
    repeated, _ = learn_unexplained_variance(RBF(gamma=1.0), training_of(np.repeat(X, repeat, axis=0)), 0.1)
    new = 3.0 * rng.normal(size=(50, 2))
    assert_allclose(weighted.novelty(new), repeated.novelty(new), rtol=1e-6, atol=1e-6)


def test_the_order_of_rows_does_not_matter(rng):
    X, _ = make_banana(150, random_state=0)
    order = rng.permutation(150)
    one, trust = learn_unexplained_variance(RBF(gamma=1.0), training_of(X), 0.1)
    other, shuffled = learn_unexplained_variance(RBF(gamma=1.0), training_of(X[order]), 0.1)
    new = 3.0 * rng.normal(size=(50, 2))
    assert_allclose(one.novelty(new), other.novelty(new), atol=1e-8)
    assert_allclose(trust[order], shuffled, atol=1e-8)


def test_dependent_centers_do_no_harm(rng):
    """A kernel so wide that 200 centers have the rank of a few."""
    X = rng.normal(size=(400, 3))
    unexplained, _ = learn_unexplained_variance(RBF(gamma=1e-5), training_of(X), 1e-6)
    assert len(unexplained.mean) < 60
    assert np.isfinite(unexplained.novelty(far(X, rng))).all()


def test_rows_in_float32_are_known_alike(rng):
    X, y = make_banana(300, random_state=0)
    model = KernelFisherClassifier(RBF(gamma=1.0), alpha=0.1)
    new = np.vstack([X, far(X, rng)])
    double, single = (model.fit(X.astype(kind), y).predict_proba(new.astype(kind)) for kind in ("f8", "f4"))
    assert_allclose(single, double, atol=2e-3)


@pytest.mark.slow
def test_probabilities_tend_to_the_shares_far_from_all_rows():
    X, y = load_iris(return_X_y=True)
    model = KernelFisherClassifier(random_state=0).fit(X[:, 2:], y)
    assert_allclose(model.predict_proba([[100.0, 100.0]]), 1.0 / 3.0, atol=1e-6)
    # Beside setosa, but where no flower is.
    assert model.predict_proba([[0.0, 0.0]]).max() < 0.6
    assert model.predict_proba([[1.4, 0.2]])[0, 0] > 0.95


def test_probabilities_tend_to_given_priors_far_from_all_rows(rng):
    X, y = make_banana(200, random_state=0)
    model = KernelFisherClassifier(priors=[0.2, 0.8], random_state=0).fit(X, y)
    assert_allclose(model.predict_proba(far(X, rng)).mean(axis=0), [0.2, 0.8], atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_banana, make_twonorm])
def test_predictions_are_the_most_probable_classes_near_and_far(make, rng):
    X, y = make(200, random_state=0)
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    new = np.vstack([X, far(X, rng)])
    P = model.predict_proba(new)
    assert_array_equal(model.predict(new), model.classes_[P.argmax(axis=1)])
    assert_array_equal(model.decision_function(new) > 0.0, P[:, 1] > P[:, 0])
    assert_allclose(np.exp(model.predict_log_proba(new)), P)


@pytest.mark.slow
def test_where_isolated_rows_are_usual_they_are_trusted(rng):
    """Rows of the wide class of ringnorm have no neighbors, and that shows their class."""
    X, y = make_ringnorm(300, random_state=0)
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    new, labels = make_ringnorm(1000, random_state=1)
    assert model.score(new, labels) > 0.97


def test_kernel_values_are_known_like_the_rows_they_belong_to(rng):
    X, y = make_banana(100, random_state=0)
    new, kernel, weight = np.vstack([X, far(X, rng)]), RBF(gamma=1.0), rng.integers(0, 3, 100)
    rows = KernelFisherClassifier(kernel, alpha=0.1).fit(X, y, sample_weight=weight)
    given = KernelFisherClassifier("precomputed", alpha=0.1).fit(kernel.block(X, X), y, sample_weight=weight)
    assert_allclose(given.predict_proba(kernel.block(new, X)), rows.predict_proba(new), rtol=1e-6)
    assert (given.novelty(kernel.block(far(X, rng), X)) > 2.0).all()


def test_the_origin_of_a_linear_kernel_does_not_matter(rng):
    X, new = rng.normal(size=(100, 3)), 3.0 * rng.normal(size=(50, 3))
    near, away = (
        learn_unexplained_variance(Linear(), training_of(X + shift), 0.3)[0].novelty(new + shift)
        for shift in (0.0, 5.0)
    )
    assert_allclose(near, away, atol=1e-6)


def test_indefinite_kernels_have_no_novelty(rng):
    X, y = make_banana(100, random_state=0)
    with pytest.warns(NumericalWarning, match="not positive semidefinite"):
        model = KernelFisherClassifier(Sigmoid(gamma=1.0, coef0=-1.0), alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="there is no novelty for kernel=Sigmoid"):
        model.novelty(X)


@pytest.mark.slow
def test_a_fit_in_passes_knows_its_rows_too(rng):
    X, y = make_banana(3000, random_state=0)
    model = KernelFisherClassifier(RBF(gamma=1.0), centers=50, random_state=0).fit(X, y)
    assert (model.novelty(X) > 0.0).mean() < 0.03
    assert (model.novelty(far(X, rng)) > 3.0).all()
    more = model.partial_fit(X + 30.0, y)
    # Rows of which many were added are no longer new.
    assert (more.novelty(X[:200] + 30.0) > 0.0).mean() < 0.2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_noisy_rows_know_nothing_of_rows_infinitely_far_away(seed, penalty):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0.0) ^ (rng.random(200) < 0.35)
    model = KernelFisherClassifier(penalty=penalty, random_state=0).fit(X, y)
    assert model.novelty([[1e6, 1e6]]) > 10.0
    assert_allclose(model.predict_proba([[1e6, 1e6]])[0, 1], y.mean(), atol=1e-6)
    assert (model.novelty(rng.normal(size=(1000, 2))) > 0.0).mean() < 0.05


@pytest.mark.slow
def test_rows_of_a_group_know_nothing_of_each_other_when_it_is_left_out(rng):
    """Groups of five nearly equal rows: a new row has no such twins."""
    group = np.repeat(np.arange(40), 5)
    X = rng.normal(size=(40, 3))[group] + 1e-3 * rng.normal(size=(200, 3))
    y = X[:, 0] > 0.0
    model = KernelFisherClassifier(random_state=0).fit(X, y, groups=group)
    assert (model.novelty(rng.normal(size=(1000, 3))) > 0.0).mean() < 0.1


@pytest.mark.parametrize("n", [150, 700])
def test_left_out_folds_are_refitted(rng, n):
    X, kernel, fold = rng.normal(size=(n, 2)), RBF(gamma=0.5), np.arange(n) % 7
    training = replace(training_of(X), fold=fold)
    unexplained, _ = learn_unexplained_variance(kernel, training, 0.5)
    phi = unexplained.coordinates(X)(slice(len(X)))[1]
    psi = np.column_stack([phi, np.ones(n)])
    for number in (0, 3):
        rest = psi[fold != number]
        penalty = 0.5 * np.eye(psi.shape[1])
        penalty[-1, -1] = 0.0
        covariance = np.linalg.inv(rest.T @ rest + penalty)
        rows = fold == number
        expected = np.einsum("ij,jk,ik->i", psi[rows], covariance, psi[rows])
        none = np.zeros(0, dtype=int)
        kept = unexplained.pieces(X), _kept(unexplained, X)
        found = _without_rows(unexplained, *kept, training, np.arange(n), none, np.zeros(0))
        assert_allclose(found.leverage[rows], expected, rtol=1e-6)


def test_many_coordinates_are_computed_anew_instead_of_kept(rng, monkeypatch):
    training = replace(training_of(rng.normal(size=(700, 2))), fold=np.arange(700) % 7)
    kept, trust = learn_unexplained_variance(RBF(gamma=0.5), training, 0.5)
    monkeypatch.setattr("mercer._scores.uncertainty.unexplained_variance.MOST_KEPT", 1)
    fitted_again, again = learn_unexplained_variance(RBF(gamma=0.5), training, 0.5)
    assert_array_equal(trust, again)
    assert kept.usual == fitted_again.usual


def test_rows_in_a_regular_order_are_all_represented(rng):
    """Subjects under two conditions, one after the other: the last feature of every second row is 4."""
    subject = np.repeat(rng.normal(size=(400, 2)), 2, axis=0)
    condition = np.tile([0.0, 4.0], 400)
    unexplained, _ = learn_unexplained_variance(
        RBF(gamma=0.5), training_of(np.column_stack([subject, condition])), 0.5
    )
    assert 0.3 < (unexplained.centers[:, 2] == 0.0).mean() < 0.7


@pytest.mark.parametrize("n", [150, 350, 1500])
def test_new_rows_are_as_usual_however_many_there_are(rng, n):
    unexplained, _ = learn_unexplained_variance(RBF(gamma=1.0), training_of(rng.normal(size=(n, 4))), 0.3)
    assert (unexplained.novelty(rng.normal(size=(2000, 4))) > 0.0).mean() < 0.03


def test_a_function_on_rows_is_known_like_the_kernel_that_it_is(rng):
    """k(x, x) varies, and is asked for: its mean would stand for rows that are shorter or longer."""
    X, new = rng.normal(size=(80, 2)), 10.0 ** rng.uniform(-2.0, 3.0, size=(50, 1)) * rng.normal(size=(50, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=80) > 0.0).astype(int)
    given = KernelFisherClassifier(FromCallable(lambda A, B: np.asarray(A) @ np.asarray(B).T, psd=True), alpha=0.1)
    rows = KernelFisherClassifier("linear", alpha=0.1).fit(X, y)
    assert_allclose(given.fit(X, y).novelty(new), rows.novelty(new), atol=1e-5)
    assert_allclose(given.predict_proba(new), rows.predict_proba(new), atol=1e-6)


def test_values_with_a_diagonal_that_varies_have_no_novelty(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = KernelFisherClassifier("precomputed", alpha=0.1).fit(X @ X.T, y)
    with pytest.raises(ValueError, match="diagonal is not constant"):
        model.novelty(X @ X.T)


def test_the_order_of_kernel_values_does_not_matter(rng):
    X, y = make_banana(350, random_state=0)
    K, order = RBF(gamma=0.5).block(X, X), rng.permutation(350)
    new = RBF(gamma=0.5).block(3.0 * rng.normal(size=(50, 2)), X)
    one = KernelFisherClassifier("precomputed", alpha=0.1).fit(K, y)
    other = KernelFisherClassifier("precomputed", alpha=0.1).fit(K[np.ix_(order, order)], y[order])
    # The last pivots are chosen among rows of which hardly anything is new: rounding decides.
    near = one.novelty(new) < 3.0
    assert near.sum() > 10
    assert_allclose(one.novelty(new)[near], other.novelty(new[:, order])[near], atol=0.05)


@pytest.mark.parametrize("name", ["linear", "poly"])
def test_a_row_beyond_all_numbers_does_not_spoil_the_others(name, rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = KernelFisherClassifier(name, random_state=0).fit(X + y[:, None], y)
    P = model.predict_proba([[1.0, 0.0], [1e155 if name == "linear" else 1e60, 0.0]])
    assert_allclose(P[0], model.predict_proba([[1.0, 0.0]])[0])
    assert_allclose(P[1], model.priors_, atol=0.01)


def test_no_objects_have_no_novelty():
    words = ["a", "ab", "abc", "b", "bc", "bcd"]
    kernel = FromCallable(pairwise(lambda a, b: float(len(set(a) & set(b)))), psd=True)
    model = KernelFisherClassifier(kernel, alpha=0.1).fit(words, [0, 0, 0, 1, 1, 1])
    assert model.novelty([]).shape == (0,)
