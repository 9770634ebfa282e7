"""The rule made of left-out scores: rows of weight zero leave no trace in it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.scores import ClassFit, Scatter, make_rule


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
        ).posterior.threshold()

    assert_allclose(cut(slice(None)), cut(slice(4)), atol=1e-6)
