"""What is known of a row: little where no training rows are, as much as usual where they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana, make_ringnorm, make_twonorm
from mercer.errors import NumericalWarning
from mercer.kernels import RBF, Linear, Sigmoid
from mercer.rows import Tally, reading_of
from mercer.scores.evidence import Training
from mercer.scores.knowledge import learn


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
    knowledge, trust = learn(kernel, training_of(X), 0.1)
    assert (trust > 0.9).mean() > 0.9
    assert knowledge.trust(far(X, rng)).mean() < 0.15
    new, _ = make_banana(300, random_state=1)
    assert (knowledge.novelty(new) > 0.0).mean() < 0.05


def test_left_out_rows_are_known_like_new_rows_by_the_others(rng):
    X, kernel = rng.normal(size=(60, 2)), RBF(gamma=0.5)
    knowledge, trust = learn(kernel, training_of(X), 0.5)
    parts = knowledge.parts(X)
    # Every row is a landmark: the variance is that of the Gaussian process, without the row 1 / (alpha P_ii) - 1.
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
    weighted, _ = learn(RBF(gamma=1.0), training_of(X, repeat.astype(float)), 0.1)
    repeated, _ = learn(RBF(gamma=1.0), training_of(np.repeat(X, repeat, axis=0)), 0.1)
    new = 3.0 * rng.normal(size=(50, 2))
    assert_allclose(weighted.novelty(new), repeated.novelty(new), rtol=1e-6, atol=1e-6)


def test_the_order_of_rows_does_not_matter(rng):
    X, _ = make_banana(150, random_state=0)
    order = rng.permutation(150)
    one, trust = learn(RBF(gamma=1.0), training_of(X), 0.1)
    other, shuffled = learn(RBF(gamma=1.0), training_of(X[order]), 0.1)
    new = 3.0 * rng.normal(size=(50, 2))
    assert_allclose(one.novelty(new), other.novelty(new), atol=1e-8)
    assert_allclose(trust[order], shuffled, atol=1e-8)


def test_dependent_landmarks_do_no_harm(rng):
    """A kernel so wide that 200 landmarks have the rank of a few."""
    X = rng.normal(size=(400, 3))
    knowledge, _ = learn(RBF(gamma=1e-5), training_of(X), 1e-6)
    assert len(knowledge.mean) < 60
    assert np.isfinite(knowledge.novelty(far(X, rng))).all()


def test_rows_in_float32_are_known_alike(rng):
    X, y = make_banana(300, random_state=0)
    model = KernelFisherClassifier(RBF(gamma=1.0), alpha=0.1)
    new = np.vstack([X, far(X, rng)])
    double, single = (model.fit(X.astype(kind), y).predict_proba(new.astype(kind)) for kind in ("f8", "f4"))
    assert_allclose(single, double, atol=2e-3)


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


@pytest.mark.parametrize("make", [make_banana, make_twonorm])
def test_predictions_are_the_most_probable_classes_near_and_far(make, rng):
    X, y = make(200, random_state=0)
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    new = np.vstack([X, far(X, rng)])
    P = model.predict_proba(new)
    assert_array_equal(model.predict(new), model.classes_[P.argmax(axis=1)])
    assert_array_equal(model.decision_function(new) > 0.0, P[:, 1] > P[:, 0])
    assert_allclose(np.exp(model.predict_log_proba(new)), P)


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
    near, away = (learn(Linear(), training_of(X + shift), 0.3)[0].novelty(new + shift) for shift in (0.0, 5.0))
    assert_allclose(near, away, atol=1e-6)


def test_indefinite_kernels_have_no_novelty(rng):
    X, y = make_banana(100, random_state=0)
    with pytest.warns(NumericalWarning, match="not positive semidefinite"):
        model = KernelFisherClassifier(Sigmoid(gamma=1.0, coef0=-1.0), alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="there is no novelty for kernel=Sigmoid"):
        model.novelty(X)


def test_a_fit_in_passes_knows_its_rows_too(rng):
    X, y = make_banana(3000, random_state=0)
    model = KernelFisherClassifier(RBF(gamma=1.0), centers=50, random_state=0).fit(X, y)
    assert (model.novelty(X) > 0.0).mean() < 0.03
    assert (model.novelty(far(X, rng)) > 3.0).all()
    more = model.partial_fit(X + 30.0, y)
    # Rows of which many were added are no longer new.
    assert (more.novelty(X[:200] + 30.0) > 0.0).mean() < 0.2
