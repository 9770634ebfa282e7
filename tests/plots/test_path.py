"""The picture of the leave-one-out path."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier
from mercer.kernels import RBF, Laplacian, Linear
from mercer.plots import LooPathDisplay
from mercer.plots._path import _corners


def star(ax):
    """Where the minimum is marked."""
    (line,) = [line for line in ax.lines if line.get_marker() == "*"]
    return line.get_xydata()[0]


def test_it_draws_on_the_axes_given(two):
    figure, ax = plt.subplots()
    display = LooPathDisplay.from_estimator(two[0], ax=ax)
    assert (display.ax_, display.figure_) == (ax, figure)


def test_the_star_of_a_map_is_what_the_model_took(two):
    model = two[0]
    ax = LooPathDisplay.from_estimator(model).ax_
    np.testing.assert_allclose(star(ax), [model.alpha_, model.gamma_])


def test_a_map_has_log_axes_named_scales_and_all_scores(two):
    display = LooPathDisplay.from_estimator(two[0])
    ax = display.ax_
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alpha", "gamma")
    assert display.colorbar_.ax.get_ylabel() == "Leave-one-out Brier score"
    np.testing.assert_array_equal(ax.collections[0].get_array(), two[0].tuning_paths_[0].scores)


def test_one_kernel_is_a_curve_over_alpha(two):
    _, X, y = two
    model = KernelFisherClassifier(RBF(gamma=0.02), criterion="log_loss").fit(X, y)
    display = LooPathDisplay.from_estimator(model)
    assert display.colorbar_ is None
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("alpha", "Leave-one-out log-loss")
    np.testing.assert_allclose(star(display.ax_), [model.alpha_, model.tuning_paths_[0].scores.min()])


def test_one_alpha_is_a_curve_over_gamma(two):
    _, X, y = two
    model = KernelFisherClassifier("rbf", alpha=1.0).fit(X, y)
    ax = LooPathDisplay.from_estimator(model).ax_
    assert ax.get_xlabel() == "gamma"
    np.testing.assert_allclose(star(ax), [model.gamma_, model.tuning_paths_[0].scores.min()])


def test_one_kernel_and_one_alpha_are_a_point(two):
    _, X, y = two
    model = KernelFisherClassifier(RBF(gamma=0.02), alpha=1.0).fit(X, y)
    np.testing.assert_allclose(star(LooPathDisplay.from_estimator(model).ax_)[0], 1.0)


def test_a_part_of_a_sum_keeps_its_name(two):
    _, X, y = two
    model = KernelFisherClassifier(RBF() + Linear()).fit(X, y)
    assert LooPathDisplay.from_estimator(model).ax_.get_ylabel() == "rbf__gamma"


@pytest.mark.slow
def test_kernels_that_differ_in_two_numbers_are_counted(two):
    _, X, y = two
    model = KernelFisherClassifier(RBF() + Laplacian()).fit(X[:40], y[:40])
    ax = LooPathDisplay.from_estimator(model).ax_
    assert (ax.get_ylabel(), ax.get_yscale()) == ("kernel number", "linear")
    assert star(ax)[1] == model.tuning_paths_[0].best[0]


def test_a_regressor_shows_its_squared_error(regressor):
    display = LooPathDisplay.from_estimator(regressor)
    assert display.colorbar_.ax.get_ylabel() == "Leave-one-out squared error / variance"


@pytest.mark.slow
def test_the_model_is_found_inside_a_pipeline_and_a_search(two):
    _, X, y = two
    pipeline = make_pipeline(StandardScaler(), KernelFisherClassifier("rbf"))
    search = GridSearchCV(pipeline, {"kernelfisherclassifier__penalty": ["rkhs"]}, cv=2).fit(X, y)
    path = LooPathDisplay.from_estimator(search).path
    assert path is search.best_estimator_[-1].tuning_paths_[0]


def test_of_several_kinds_of_kernels_the_chosen_one_is_drawn(two):
    X, y = two[1:]
    model = KernelFisherClassifier().fit(X * np.geomspace(1.0, 30.0, 20), y)
    display = LooPathDisplay.from_estimator(model)
    assert display.ax_.get_ylabel() in ("gamma", "largest gamma")
    assert len({type(kernel) for kernel in display.path.kernels}) == 1
    assert type(display.path.kernels[0]) is type(model.kernel_)


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        LooPathDisplay.from_estimator(KernelFisherClassifier())


def test_corners_of_a_regular_grid_lie_between_its_centers():
    x, y = np.meshgrid(np.arange(4.0), np.arange(3.0))
    np.testing.assert_allclose(_corners(x), np.broadcast_to(np.arange(5.0) - 0.5, (4, 5)))
    np.testing.assert_allclose(_corners(y), np.broadcast_to(np.arange(4.0)[:, None] - 0.5, (4, 5)))


@pytest.mark.parametrize("alphas", [[0.1, 1.0, 10.0], [[0.1, 1.0, 10.0], [0.2, 2.0, 20.0]]], ids=["shared", "own"])
def test_known_values_are_drawn_with_their_minimum(alphas):
    kernels = [RBF(gamma=0.5), RBF(gamma=2.0)]
    scores = [[0.3, 0.2, 0.4], [0.3, 0.1, 0.4]]
    display = LooPathDisplay.from_predictions(kernels, alphas, scores, criterion="error")
    assert star(display.ax_).tolist() == [np.broadcast_to(alphas, (2, 3))[1, 1], 2.0]
    assert display.colorbar_.ax.get_ylabel() == "error"
    plt.close(display.figure_)
