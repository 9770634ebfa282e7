"""What leave-one-out minimizes, against the metrics of scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import brier_score_loss, log_loss, r2_score

from mercer._scores.class_outputs import class_targets, relative
from mercer._scores.criteria import CLASSIFICATION_CRITERIA, classification_criterion, squared_criterion
from mercer._scores.probabilities.logits import fit_logits, softmax


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def case(request, rng):
    """Label, weight, targets, and outputs for two alphas."""
    k = request.param
    label = np.arange(45) % k
    Y = class_targets(label, k)
    return label, rng.uniform(0.2, 3.0, 45), Y, Y + rng.normal(size=(2, *Y.shape))


def probabilities(outputs, label, weight):
    R = relative(outputs)
    fit = fit_logits(R[None], label, weight)
    return softmax(fit.slope[0] * R + fit.offset[0])


def test_log_loss_is_that_of_the_logistic_probabilities(case):
    label, weight, Y, outputs = case
    found = classification_criterion("log_loss", label, weight, Y)(outputs)
    exact = [log_loss(label, probabilities(F, label, weight), sample_weight=weight) for F in outputs]
    assert_allclose(found, exact, rtol=1e-9)


def test_brier_is_the_mean_squared_distance_to_the_label(case):
    label, weight, Y, outputs = case
    found = classification_criterion("brier", label, weight, Y)(outputs)
    own = np.eye(label.max() + 1)[label]
    exact = [weight @ ((probabilities(F, label, weight) - own) ** 2).sum(axis=1) / weight.sum() for F in outputs]
    assert_allclose(found, exact, rtol=1e-9)


def test_brier_of_two_classes_is_twice_the_binary_score(rng):
    label, weight = np.arange(40) % 2, np.ones(40)
    Y = class_targets(label, 2)
    F = Y + rng.normal(size=Y.shape)
    (found,) = classification_criterion("brier", label, weight, Y)(F[None])
    assert_allclose(found, 2 * brier_score_loss(label, probabilities(F, label, weight)[:, 1]), rtol=1e-9)


def test_error_is_the_weighted_share_of_wrong_labels(case):
    label, weight, Y, outputs = case
    found = classification_criterion("error", label, weight, Y)(outputs)
    predicted = outputs[..., 0] > 0 if Y.shape[1] == 1 else outputs.argmax(axis=-1)
    # A small part of the squared residuals decides between equal counts.
    assert_allclose(found, (predicted != label) @ weight / weight.sum(), atol=1e-4)


def test_squared_is_one_minus_r2(case):
    label, weight, Y, outputs = case
    exact = [1 - r2_score(Y, F, sample_weight=weight) for F in outputs]
    assert_allclose(squared_criterion(Y, weight)(outputs), exact, rtol=1e-12)
    assert_allclose(classification_criterion("squared", label, weight, Y)(outputs), exact, rtol=1e-12)


def test_squared_of_a_constant_target_is_its_mean_square():
    assert_allclose(squared_criterion(np.ones((4, 1)), np.ones(4))(np.zeros((1, 4, 1))), 1.0)


@pytest.mark.parametrize("name", CLASSIFICATION_CRITERIA)
def test_weight_two_is_a_row_twice(case, name):
    label, _, Y, outputs = case
    twice = np.r_[np.arange(45), 0, 7, 7]
    weighted = classification_criterion(name, label, np.bincount(twice).astype(float), Y)(outputs)
    repeated = classification_criterion(name, label[twice], np.ones(48), Y[twice])(outputs[:, twice])
    assert_allclose(weighted, repeated, rtol=1e-9)


def test_relative_outputs_are_differences_to_the_first_class():
    assert relative(np.array([[1.0, 3.0, 0.5]])).tolist() == [[2.0, -0.5]]
    assert relative(np.array([[0.25]])).tolist() == [[0.25]]


@pytest.mark.parametrize("name", CLASSIFICATION_CRITERIA)
def test_shares_without_the_own_row_are_no_better_than_the_shares(name):
    label = np.repeat([0, 1, 2], [10, 20, 30])
    Y = class_targets(label, 3)
    # A kernel without signal: the left-out output of a row is the mean of the others, which knows its class.
    outputs = np.stack([(Y.sum(axis=0) - Y) / 59, np.tile(Y.mean(axis=0), (60, 1))])
    without, shares = classification_criterion(name, label, np.ones(60), Y)(outputs)
    assert without >= shares * (1 - 1e-6)
