"""The picture of training and leave-one-out scores."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF
from mercer.plots import LeaveOneOutDisplay


def test_it_draws_on_the_axes_given(two):
    figure, ax = plt.subplots()
    display = LeaveOneOutDisplay.from_estimator(*two, ax=ax)
    assert (display.ax_, display.figure_) == (ax, figure)


def test_two_classes_show_outputs(two):
    model, X, _ = two
    display = LeaveOneOutDisplay.from_estimator(*two)
    np.testing.assert_array_equal(display.train_scores, model.transform(X)[:, 0])
    np.testing.assert_array_equal(display.loo_scores, model.loo_outputs_[:, 0])
    assert display.ax_.get_xlabel() == "Output (targets -1 and +1)"


@pytest.mark.parametrize("kind", ["density", "histogram"])
def test_every_class_has_a_line_and_an_area(two, kind):
    ax = LeaveOneOutDisplay.from_estimator(*two, kind=kind).ax_
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [
        "class -1, training",
        "class -1, leave-one-out",
        "class 1, training",
        "class 1, leave-one-out",
        "threshold",
    ]


def test_the_legend_says_the_leave_one_out_accuracy_of_the_model(two):
    model, X, y = two
    title = LeaveOneOutDisplay.from_estimator(*two).ax_.get_legend().get_title().get_text()
    assert title == f"accuracy: training {model.score(X, y):.1%}, leave-one-out {model.loo_score_:.1%}"


@pytest.mark.slow
def test_margins_of_more_classes_are_positive_where_labels_are_right(three):
    model, X, y = three
    display = LeaveOneOutDisplay.from_estimator(*three)
    assert (display.train_scores > 0).mean() == pytest.approx(model.score(X, y))
    assert (display.loo_scores > 0).mean() == pytest.approx(model.loo_score_)


def test_more_classes_stand_one_above_the_other(three):
    model = three[0]
    ax = LeaveOneOutDisplay.from_estimator(*three).ax_
    assert [text.get_text() for text in ax.get_yticklabels()] == list(model.classes_)
    assert len(ax.get_legend().get_texts()) == 3


def test_a_pipeline_is_drawn_with_its_scaled_rows(two):
    _, X, y = two
    pipeline = make_pipeline(StandardScaler(), KernelFisherClassifier()).fit(X, y)
    display = LeaveOneOutDisplay.from_estimator(pipeline, X, y)
    np.testing.assert_array_equal(display.loo_scores, pipeline[-1].loo_outputs_[:, 0])


def test_rows_that_were_not_fitted_are_refused(two):
    model, X, y = two
    with pytest.raises(ValueError, match="pass the rows on which the model was fitted"):
        LeaveOneOutDisplay.from_estimator(model, X[:50], y[:50])


def test_scores_without_a_threshold_have_no_accuracy(two):
    model, X, y = two
    display = LeaveOneOutDisplay.from_predictions(y, model.transform(X)[:, 0], model.loo_outputs_[:, 0])
    assert display.ax_.get_legend().get_title().get_text() == ""


def test_rows_left_out_may_be_some_of_those_fitted():
    X, y = make_banana(300, random_state=0)
    model = KernelFisherClassifier(RBF(gamma=1.0), centers=X[:20], loo_rows=100, random_state=0).fit(X, y)
    display = LeaveOneOutDisplay.from_estimator(model, X, y)
    assert len(display.train_scores) == len(display.loo_scores) == 100
