"""The picture of the discriminant projection."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text
from scipy.integrate import trapezoid
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier
from mercer.plots import DiscriminantDisplay


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_it_draws_on_the_axes_given(two):
    figure, ax = plt.subplots()
    display = DiscriminantDisplay.from_estimator(*two, ax=ax)
    assert (display.ax_, display.figure_) == (ax, figure)


@pytest.mark.parametrize("kind", ["density", "histogram"])
def test_two_classes_are_two_curves_and_the_threshold(two, kind):
    model = two[0]
    ax = DiscriminantDisplay.from_estimator(*two, kind=kind).ax_
    assert len(ax.lines) == 3
    assert ax.lines[-1].get_xdata()[0] == model.threshold_
    assert legend_of(ax) == ["class -1", "class 1", f"threshold {model.threshold_:.2g}"]


def test_the_areas_under_the_curves_are_the_class_shares(two):
    y = two[2]
    ax = DiscriminantDisplay.from_estimator(*two).ax_
    for line, share in zip(ax.lines, [np.mean(y == -1), np.mean(y == 1)]):
        # The margin of 8 % cuts the tails of the density.
        assert trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(share, rel=0.02)


def boxes(ax):
    """Where the names of classes are drawn, in pixels, without the lines that lead to their means."""
    ax.figure.canvas.draw()
    return [Text.get_window_extent(text) for text in ax.texts]


def crowded(n_classes):
    """Variates (n, 2) and names of so many classes, some of which lie on each other."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(n_classes), 40)
    means = 3.0 * rng.standard_normal((n_classes, 2))
    return means[label] + rng.standard_normal((len(label), 2)), np.array([f"class {c}" for c in label])


def test_three_classes_are_points_whose_names_lead_to_their_means(three):
    model, X, y = three
    ax = DiscriminantDisplay.from_estimator(*three).ax_
    variates = model.transform(X)
    assert [text.get_text() for text in ax.texts] == list(model.classes_)
    for text, name in zip(ax.texts, model.classes_):
        np.testing.assert_allclose(text.xy, variates[y == name].mean(axis=0))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Discriminant variate 1", "Discriminant variate 2")


def test_names_of_classes_hide_no_points(three):
    model, X, _ = three
    ax = DiscriminantDisplay.from_estimator(*three).ax_
    named = boxes(ax)
    pixels = ax.transData.transform(model.transform(X))
    assert sum(box.count_contains(pixels) for box in named) == 0


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [3, 10, 15, 20])
def test_names_of_classes_stay_inside_and_do_not_meet(n_classes):
    variates, y = crowded(n_classes)
    ax = DiscriminantDisplay.from_predictions(y, variates).ax_
    named = boxes(ax)
    assert len(named) == n_classes
    for i, box in enumerate(named):
        assert not any(box.overlaps(other) for other in named[:i])
        assert ax.bbox.padded(1).contains(box.x0, box.y0)
        assert ax.bbox.padded(1).contains(box.x1, box.y1)


@pytest.mark.slow
def test_one_variate_of_three_classes_is_three_densities(three):
    _, X, y = three
    model = KernelFisherClassifier(n_components=1).fit(X, y)
    ax = DiscriminantDisplay.from_estimator(model, X, y).ax_
    assert legend_of(ax) == [f"class {name}" for name in model.classes_]


def test_a_pipeline_shows_the_threshold_of_its_last_step(two):
    _, X, y = two
    pipeline = make_pipeline(StandardScaler(), KernelFisherClassifier()).fit(X, y)
    assert DiscriminantDisplay.from_estimator(pipeline, X, y).threshold == pipeline[-1].threshold_


def test_it_draws_the_linear_discriminant_of_scikit_learn(two):
    _, X, y = two
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert DiscriminantDisplay.from_estimator(model, X, y).threshold is None


def test_predictions_and_estimator_give_the_same_picture(two):
    model, X, y = two
    first = DiscriminantDisplay.from_estimator(model, X, y)
    second = DiscriminantDisplay.from_predictions(y, model.transform(X), threshold=model.threshold_)
    for a, b in zip(first.ax_.lines, second.ax_.lines):
        np.testing.assert_array_equal(a.get_xydata(), b.get_xydata())


def test_labels_and_rows_must_be_as_many(two):
    model, X, y = two
    with pytest.raises(ValueError, match="70 labels and 80 rows"):
        DiscriminantDisplay.from_estimator(model, X, y[:70])
