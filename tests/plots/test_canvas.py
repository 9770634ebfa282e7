"""What all pictures share: axes, colors, densities."""

import sys
from itertools import combinations, product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from scipy.integrate import trapezoid
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier, KernelPCA, PairwiseClassifier
from mercer.plots import DiscriminantDisplay, LeaveOneOutDisplay, LooPathDisplay, RelevanceDisplay
from mercer.plots._canvas import color, curve, density, marker, span_of


def test_without_matplotlib_the_error_names_the_extra(two, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install mercer\[plots\]"):
        LooPathDisplay.from_estimator(two[0])


def test_a_density_has_area_one(rng):
    values = rng.standard_normal(200)
    grid = np.linspace(-8, 8, 2001)
    assert trapezoid(density(values, grid), grid) == pytest.approx(1.0, abs=1e-6)


def test_equal_scores_are_a_peak_and_not_an_error():
    grid = np.linspace(*span_of(np.ones(5)), 300)
    assert grid[density(np.ones(5), grid).argmax()] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("kind", ["density", "histogram"])
def test_curves_end_at_the_span_and_have_area_one(rng, kind):
    values = rng.standard_normal(500)
    x, height = curve(values, (-6.0, 6.0), kind)
    assert (x[0], x[-1]) == (-6.0, 6.0)
    assert trapezoid(height, x) == pytest.approx(1.0, abs=1e-3)


def test_an_unknown_kind_is_named(rng):
    with pytest.raises(ValueError, match="kind='violin' is not known"):
        curve(rng.standard_normal(5), (-1.0, 1.0), "violin")


def lab(code):
    """CIELAB (1976) coordinates of a color in sRGB, white point D65."""
    rgb = np.array(to_rgb(code))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    relative = to_xyz @ linear / to_xyz.sum(axis=1)
    x, y, z = np.where(relative > (6 / 29) ** 3, np.cbrt(relative), relative / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_twenty_classes_have_colors_that_can_be_told_apart():
    # A difference of 2.3 is just noticeable; the closest of the seven colors of Okabe and Ito differ by 26.
    points = [lab("white")] + [lab(color(c)) for c in range(20)]
    assert min(np.linalg.norm(a - b) for a, b in combinations(points, 2)) > 25


def test_no_two_of_a_hundred_classes_look_the_same():
    assert len({(color(c), marker(c)) for c in range(100)}) == 100


def test_a_new_figure_is_made_only_without_axes(two):
    figure, ax = plt.subplots()
    LooPathDisplay.from_estimator(two[0], ax=ax)
    assert plt.get_fignums() == [figure.number]


# The displays, and the models that errors say they apply to.
TAKEN = {
    DiscriminantDisplay: "KernelFisherClassifier, SparseFisherClassifier, OnlineFisherClassifier or another "
    "classifier with transform",
    LeaveOneOutDisplay: "KernelFisherClassifier",
    LooPathDisplay: "KernelFisherClassifier or KernelRidgeRegressor",
    RelevanceDisplay: "KernelFisherClassifier or KernelRidgeRegressor",
}


def drawn(display, model, X, y):
    """A picture of a model, from its rows if the display needs them."""
    rows = (X, y) if display in (DiscriminantDisplay, LeaveOneOutDisplay) else ()
    return display.from_estimator(model, *rows)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("display", TAKEN)
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: make_pipeline(StandardScaler(), m)])
@pytest.mark.parametrize("fitted", [True, False])
def test_models_that_a_display_does_not_apply_to_are_not_called_unfitted(display, wrap, fitted, two):
    _, X, y = two
    model = wrap(PairwiseClassifier())
    model = model.fit(X, y) if fitted else model
    with pytest.raises(TypeError) as error:
        drawn(display, model, X, y)
    named = f"{display.__name__} does not apply to PairwiseClassifier; pass a fitted {TAKEN[display]}, alone or"
    assert named in str(error.value)


@pytest.mark.slow
def test_models_of_sequences_and_components_have_none_of_these_pictures(two):
    pytest.importorskip("hmmlearn")
    from mercer.datasets import make_words
    from mercer.sequences import HiddenMarkovClassifier

    _, X, y = two
    sequences, words = make_words(12, random_state=0)
    recognizer = HiddenMarkovClassifier(random_state=0).fit(sequences, words)
    for display, model in product(TAKEN, (recognizer, KernelPCA().fit(X))):
        with pytest.raises(TypeError, match=f"does not apply to {type(model).__name__}; pass a fitted Kernel"):
            drawn(display, model, X, y)


@pytest.mark.parametrize("display", TAKEN)
def test_only_models_that_a_display_applies_to_are_called_unfitted(display, two):
    _, X, y = two
    search = GridSearchCV(make_pipeline(StandardScaler(), KernelFisherClassifier()), {})
    for model in (KernelFisherClassifier(), search):
        with pytest.raises(NotFittedError, match="This KernelFisherClassifier instance is not fitted yet"):
            drawn(display, model, X, y)


@pytest.mark.slow
def test_models_are_found_however_they_are_wrapped(two):
    model, X, y = two
    search = GridSearchCV(KernelFisherClassifier(alpha=1.0), {"kernel": ["rbf"]}).fit(X, y)
    for wrapped in (FrozenEstimator(model), make_pipeline(make_pipeline(model)), make_pipeline(search)):
        LooPathDisplay.from_estimator(wrapped)
    # A search that fits no model at the end has none to draw, though it was given a fitted one.
    with pytest.raises(NotFittedError):
        LooPathDisplay.from_estimator(GridSearchCV(model, {}, refit=False))
