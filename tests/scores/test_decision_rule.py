"""The rule made of left-out scores: rows of weight zero leave no trace in it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

from mercer._scores.decision_rule import ClassFit, Scatter, make_rule


@pytest.mark.parametrize("rule", ["equal_error", "soft_margin", "error"])
def test_weight_zero_is_a_row_absent_under_every_threshold(rule):
    # Two weightless rows lie in the gap, and one beyond all others.
    r, y = np.array([-2.0, -1.0, 1.0, 2.0, 0.6, 0.8, 9.0]), np.array([-1.0, -1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    label, weight = (y > 0).astype(int), np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])

    def cut(rows):
        scatter = Scatter.of(r[rows, None], y[rows, None], weight[rows])
        fit = ClassFit(r[rows, None], y[rows, None], label[rows], weight[rows], scatter)
        return make_rule(
            fit, n_components=1, calibration="logistic", threshold=rule, prior_shift=np.zeros(1)
        ).rule.posterior.threshold()

    assert_allclose(cut(slice(None)), cut(slice(4)), atol=1e-6)


@pytest.mark.slow
def test_probabilities_of_held_out_rows_are_as_sure_as_those_of_new_rows():
    # A map of seven classes has 48 parameters: on the rows it is fitted to, its log-loss is far too low.
    def drawn(rng, n):
        label = rng.permutation(np.arange(n) % 7)
        return np.eye(7)[label] * rng.uniform(0.2, 1.0, 7)[None] + 0.4 * rng.normal(size=(n, 7)), label

    gaps, plain = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        F, label = drawn(rng, 2300)
        some, new, weight = slice(300), slice(300, None), np.ones(300)
        Y = np.eye(7)[label[some]]
        fit = ClassFit(F[some], Y, label[some], weight, Scatter.of(F[some], Y, weight))
        shift = np.zeros(6)
        found = make_rule(fit, n_components=6, calibration="logistic", threshold="bayes", prior_shift=shift)
        on_new = log_loss(label[new], found.rule.probabilities(F[new]))
        gaps.append(log_loss(label[some], found.probabilities(F[some], None)) - on_new)
        plain.append(log_loss(label[some], found.rule.probabilities(F[some])) - on_new)
    error = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) <= 2.0 * error + 0.01
    assert np.mean(plain) < np.mean(gaps) - 2.0 * error
