"""Kernel ridge regression: leave-one-out, several targets, standard deviations and intervals."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as ProcessRBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_predict

from mercer import KernelRidgeRegressor
from mercer._estimators.fitted import with_state
from mercer._estimators.nested_score import NestedScore
from mercer._scores.uncertainty.intervals import jackknife_plus
from mercer.datasets import make_sinc
from mercer.errors import IntervalWarning
from mercer.kernels import RBF, Linear, Sigmoid

FIXED = {"kernel": RBF(gamma=0.5), "alpha": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize("choice", [{}, {"fit_intercept": False}], ids=str)
def test_left_out_predictions_are_those_of_refitting(curve, choice):
    X, y = curve
    model = KernelRidgeRegressor(**FIXED, **choice).fit(X, y)
    exact = cross_val_predict(KernelRidgeRegressor(**FIXED, **choice), X, y, cv=LeaveOneOut())
    assert_allclose(model.loo_prediction_, exact, rtol=1e-9, atol=1e-12)
    assert_allclose(model.loo_score_, r2_score(y, exact), rtol=1e-9)


@pytest.mark.slow
def test_left_out_predictions_of_the_chosen_model_are_those_of_refitting(curve):
    X, y = curve
    model = KernelRidgeRegressor().fit(X, y)
    exact = cross_val_predict(KernelRidgeRegressor(model.kernel_, alpha=model.alpha_), X, y, cv=LeaveOneOut())
    assert_allclose(model.loo_prediction_, exact, rtol=1e-6, atol=1e-8)


def test_without_intercept_it_is_kernel_ridge(curve):
    X, y = curve
    exact = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5).fit(X, y)
    model = KernelRidgeRegressor(fit_intercept=False, **FIXED).fit(X, y)
    assert model.intercept_ == 0.0
    assert_allclose(model.predict(X), exact.predict(X), rtol=1e-9, atol=1e-12)


def test_linear_kernel_finds_a_line_and_its_intercept(rng):
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.5] + 7.0
    model = KernelRidgeRegressor("linear", alpha=1e-8).fit(X, y)
    assert_allclose(model.predict(np.zeros((1, 3))), 7.0, rtol=1e-6)
    assert_allclose(model.predict(np.eye(3)) - 7.0, [1.0, -2.0, 0.5], rtol=1e-5)


def test_several_targets_are_each_on_its_own(rng, curve):
    X, y = curve
    Y = np.column_stack([y, 100 * np.cos(X[:, 0]), rng.normal(size=50)])
    both = KernelRidgeRegressor(**FIXED).fit(X, Y)
    assert both.predict(X).shape == (50, 3)
    F, std = both.predict(X), both.predict_std(X)
    ends = both.predict_interval(X)
    for q in range(3):
        alone = KernelRidgeRegressor(**FIXED).fit(X, Y[:, q])
        assert_allclose(F[:, q], alone.predict(X), rtol=1e-10, atol=1e-12)
        assert_allclose(both.loo_prediction_[:, q], alone.loo_prediction_, rtol=1e-10)
        assert_allclose(std[:, q], alone.predict_std(X), rtol=1e-10)
        assert_allclose(ends[:, q], alone.predict_interval(X), rtol=1e-9)


def test_scale_of_a_target_does_not_decide_for_the_others(rng, curve):
    X, y = curve
    noise = rng.normal(size=50)
    small, large = (KernelRidgeRegressor().fit(X, np.column_stack([y, s * noise])) for s in (1.0, 1e6))
    assert_allclose(small.alpha_, large.alpha_, rtol=1e-9)
    assert small.gamma_ == large.gamma_


def test_one_column_of_targets_stays_a_column(curve):
    X, y = curve
    column = KernelRidgeRegressor(**FIXED).fit(X, y[:, None])
    assert column.predict(X).shape == (50, 1)
    assert column.predict_interval(X).shape == (50, 1, 2)
    assert_allclose(column.predict(X)[:, 0], KernelRidgeRegressor(**FIXED).fit(X, y).predict(X))


def test_standard_deviation_is_that_of_a_gaussian_process(rng, curve):
    X, y = curve
    new = rng.uniform(-5, 5, size=(20, 1))
    model = KernelRidgeRegressor(fit_intercept=False, **FIXED).fit(X, y)
    process = GaussianProcessRegressor(ProcessRBF(1.0), alpha=0.3, optimizer=None).fit(X, y)
    mean, std = process.predict(new, return_std=True)
    found, found_std = model.predict(new), model.predict_std(new)
    assert_allclose(found, mean, rtol=1e-8, atol=1e-12)
    # The process has noise of variance alpha, the model noise_std_²; the new observation has noise, too.
    assert_allclose(found_std, model.noise_std_ * np.sqrt(1 + std**2 / 0.3), rtol=1e-8)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_standard_deviation_is_never_below_the_noise_and_grows_with_distance(curve, penalty):
    X, y = curve
    model = KernelRidgeRegressor(penalty=penalty).fit(X, y)
    near = model.predict_std(X)
    assert (near >= model.noise_std_).all()
    if penalty == "rkhs":
        far = model.predict_std(np.array([[100.0]]))
        assert far[0] > near.max()


def test_noise_is_found(rng):
    X, y = make_sinc(200, noise=0.1, random_state=0)
    model = KernelRidgeRegressor().fit(X, y)
    # The standard error of a standard deviation from 200 rows is a twentieth of it.
    assert 0.08 < model.noise_std_ < 0.12


def test_standard_deviation_with_the_penalty_on_coefficients_is_that_of_its_own_kernel(rng, curve):
    X, y = curve

    def squared(A, B):
        return RBF(gamma=0.5).block(A, X) @ RBF(gamma=0.5).block(B, X).T

    coef = KernelRidgeRegressor(penalty="coef", **FIXED).fit(X, y)
    rkhs = KernelRidgeRegressor(squared, alpha=0.3).fit(X, y)
    new = rng.uniform(-4, 4, size=(10, 1))
    for method in ("predict", "predict_std"):
        found, exact = getattr(coef, method)(new), getattr(rkhs, method)(new)
        assert_allclose(found, exact, rtol=1e-6)
    assert_allclose(coef.predict_interval(new), rkhs.predict_interval(new), rtol=1e-6, atol=1e-8)


def relative_std(model, X):
    return model.predict_std(X) / model.noise_std_


def without(X, y, rest, away, new):
    """Outputs at new rows, and residuals and relative deviations of held-out rows, for the model without them."""
    model = KernelRidgeRegressor(**FIXED).fit(X[rest], y[rest])
    return model.predict(new), y[away] - model.predict(X[away]), relative_std(model, X[away])


@pytest.mark.slow
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_interval_is_the_scaled_jackknife_plus_of_refitting(curve, coverage):
    X, y = curve[0][:25], curve[1][:25]
    new = np.linspace(-6, 6, 7)[:, None]
    outputs, residual, std = np.empty((7, 25)), np.empty(25), np.empty(25)
    for i in range(25):
        outputs[:, i], residual[[i]], std[[i]] = without(X, y, np.arange(25) != i, [i], new)
    model = KernelRidgeRegressor(**FIXED).fit(X, y)
    widths = relative_std(model, new)[:, None] * residual / std
    exact = jackknife_plus(outputs, widths, np.ones(25), coverage)
    assert_allclose(model.predict_interval(new, coverage=coverage), exact, rtol=1e-8)


def test_interval_of_folds_is_the_scaled_cross_validation_plus_of_refitting(curve):
    X, y = curve
    new = np.linspace(-6, 6, 7)[:, None]
    outputs, residual, std = np.empty((7, 50)), np.empty(50), np.empty(50)
    for rest, away in KFold(5).split(X):
        f, residual[away], std[away] = without(X, y, rest, away, new)
        outputs[:, away] = f[:, None]
    model = KernelRidgeRegressor(cv=KFold(5), **FIXED).fit(X, y)
    widths = relative_std(model, new)[:, None] * residual / std
    exact = jackknife_plus(outputs, widths, np.ones(50), 0.8)
    assert_allclose(model.predict_interval(new, coverage=0.8), exact, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, np.resize([1.0, 2.0, 1.0], 50)], ids=["ones", "counts"])
def test_interval_with_centers_is_the_scaled_jackknife_of_refitting(curve, weight):
    X, y = curve
    new, Z, one = np.linspace(-6, 6, 7)[:, None], np.linspace(-2, 2, 9)[:, None], np.ones(50)
    weight = one if weight is None else weight
    chosen = FIXED | {"centers": Z, "weights": "counts"}
    sizes = np.empty(50)
    for i in range(50):
        rest = np.flatnonzero(weight - (np.arange(50) == i) > 0)
        model = KernelRidgeRegressor(**chosen).fit(X[rest], y[rest], (weight - (np.arange(50) == i))[rest])
        sizes[i] = abs(y[i] - model.predict(X[[i]])[0]) / relative_std(model, X[[i]])[0]
    model = KernelRidgeRegressor(**chosen).fit(X, y, weight)
    size = jackknife_plus(np.zeros((1, 50)), sizes, weight, 0.8)[0, 1]
    half = size * relative_std(model, new)
    expected = model.predict(new)[:, None] + np.outer(half, [-1.0, 1.0])
    assert_allclose(model.predict_interval(new, coverage=0.8), expected, rtol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("centers", ["all", 30])
def test_intervals_widen_away_from_the_data(rng, centers):
    X = rng.uniform(-3, 3, size=(200, 1))
    X = X[(X[:, 0] < -0.5) | (X[:, 0] > 1.0)]
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    model = KernelRidgeRegressor(RBF(gamma=2.0), alpha=0.1, centers=centers, random_state=0).fit(X, y)
    inside, gap, far = np.diff(model.predict_interval([[2.0], [0.25], [30.0]]))[:, 0]
    assert 1.2 * inside < gap < far
    # Of a row far away nothing is known but the prior: the width is in proportion to the standard deviation.
    std = model.predict_std([[2.0], [30.0]])
    assert_allclose(far / inside, std[1] / std[0], rtol=0.15)


def test_intervals_count_the_selection_bias(curve):
    X, y = curve
    model = KernelRidgeRegressor(centers=np.linspace(-2, 2, 9)[:, None], **FIXED).fit(X, y)
    width = np.diff(model.predict_interval(X))
    # Residuals of models chosen without the rows are twice as large.
    honest = y - 2.0 * (y - model.loo_prediction_)
    ones, outer = np.ones(len(y)), np.zeros(len(y), dtype=int)
    nested = NestedScore(model, X, np.arange(len(y)), y, None, ones, outer, None, {"predicted": honest})
    priced = with_state(model, replace(model._fitted, nested=nested))
    assert_allclose(np.diff(priced.predict_interval(X)), 2.0 * width, rtol=1e-10)
    many = with_state(model, replace(model._fitted, nested=replace(nested, y=np.zeros(301))))
    assert_allclose(np.diff(many.predict_interval(X)), width, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("centers", ["all", 30])
def test_intervals_are_wide_where_the_noise_is_large(rng, centers):
    X = rng.uniform(0, 3, size=(400, 1))
    y = np.sin(2 * X[:, 0]) + (0.05 + 0.3 * X[:, 0]) * rng.normal(size=400)
    model = KernelRidgeRegressor(centers=centers, random_state=0).fit(X, y)
    small, large = np.diff(model.predict_interval([[0.3], [2.7]]))[:, 0]
    # The deviations of the noise are 0.14 and 0.86.
    assert 3.0 < large / small < 9.0


@pytest.mark.slow
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_intervals_cover_about_what_they_say(coverage):
    X, y = make_sinc(1150, noise=0.2, random_state=1)
    model = KernelRidgeRegressor().fit(X[:150], y[:150])
    lower, upper = model.predict_interval(X[150:], coverage=coverage).T
    covered = np.mean((lower <= y[150:]) & (y[150:] <= upper))
    # Two standard errors of a share of 150 training and 1000 test rows, about 0.04 each way.
    assert abs(covered - coverage) < 2 * np.sqrt(coverage * (1 - coverage) * (1 / 150 + 1 / 1000))


@pytest.mark.slow
def test_higher_coverage_contains_lower(curve):
    X, y = curve
    model = KernelRidgeRegressor().fit(X, y)
    ends = [model.predict_interval(X, coverage=c) for c in (0.5, 0.8, 0.95)]
    for inner, outer in pairwise(ends):
        assert (outer[:, 0] <= inner[:, 0]).all()
        assert (outer[:, 1] >= inner[:, 1]).all()


def test_interval_asks_for_no_more_than_the_rows_can_say(curve):
    X, y = curve
    model = KernelRidgeRegressor(**FIXED).fit(X, y)
    # Fifty residuals know nothing of one row in a hundred.
    with pytest.warns(
        IntervalWarning, match=r"50 rows .* coverage=0.9803; ask for less, or fit to at least 99 rows"
    ):
        assert np.isinf(model.predict_interval(X, coverage=0.99)).all()
    assert np.isfinite(model.predict_interval(X, coverage=0.9803)).all()


def test_intervals_of_precomputed_kernels_with_centers_have_one_width(curve):
    X, y = curve
    K = RBF(gamma=0.5).block(X, X)
    model = KernelRidgeRegressor("precomputed", alpha=0.3, centers=np.array([3, 11, 40])).fit(K, y)
    widths = np.diff(model.predict_interval(K))[:, 0]
    assert_allclose(widths, widths[0], rtol=1e-12)


def test_sum_of_kernels_is_a_kernel(curve):
    X, y = curve
    model = KernelRidgeRegressor(RBF(gamma=0.5) + Linear(), alpha=0.3).fit(X, y)
    K = RBF(gamma=0.5).block(X, X) + X @ X.T
    exact = KernelRidgeRegressor("precomputed", alpha=0.3).fit(K, y)
    assert_allclose(model.predict(X), exact.predict(K), rtol=1e-8)


def test_constant_target_is_predicted(curve):
    X, _ = curve
    model = KernelRidgeRegressor().fit(X, np.full(50, 3.5))
    assert_allclose(model.predict(X), 3.5)
    assert_allclose(model.noise_std_, 0.0, atol=1e-10)


def test_report_tells_r2(curve):
    model = KernelRidgeRegressor().fit(*curve)
    assert f"R² {model.loo_score_:.4f}" in str(model.report_)
    assert "holding out each row" in str(model.report_)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 5e-4)])
def test_prediction_at_new_rows_keeps_directions_that_vanish_at_the_training_rows(rng, dtype, tolerance):
    X, new = rng.uniform(-3, 3, size=(100, 1)), rng.uniform(-4, 4, size=(50, 1))
    y, alpha = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=100), 1e-2
    K, Kx = (np.exp(-0.5 * (A - X.T) ** 2) for A in (X, new))
    exact = Kx @ np.linalg.solve(K + alpha * np.eye(100), y)
    model = KernelRidgeRegressor(RBF(gamma=0.5), alpha=alpha, fit_intercept=False).fit(X.astype(dtype), y)
    # Where K u = lambda u, k(x)'u may be as large as sqrt(lambda): dropping lambda < eps costs sqrt(eps) / alpha.
    assert_allclose(model.predict(new.astype(dtype)), exact, rtol=0, atol=tolerance)


def test_uncertainty_of_an_indefinite_kernel_is_refused(rng):
    X = rng.normal(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelRidgeRegressor(Sigmoid(gamma=1.0, coef0=-1.0), alpha=0.1).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="positive semidefinite kernel"):
        model.predict_std(X)


def test_small_weights_leave_the_noise_finite(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    model = KernelRidgeRegressor().fit(X, y, sample_weight=np.full(60, 1 / 60))
    assert model.noise_std_ < 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("centers", ["all", 4])
@pytest.mark.parametrize("parameters", [{"penalty": "coef"}, {"fit_intercept": False}], ids=repr)
def test_uncertainty_is_that_of_the_fit_whatever_is_set_afterwards(curve, centers, parameters):
    X, y = curve
    # So few centers that their kernel matrix is well conditioned, and moments are those of kernel values.
    model = KernelRidgeRegressor(RBF(gamma=10.0), alpha=0.1, centers=centers, random_state=0).fit(X, y)
    std, interval = model.predict_std(X), model.predict_interval(X)
    model.set_params(**parameters)
    assert_allclose(model.predict_std(X), std, rtol=1e-12)
    assert_allclose(model.predict_interval(X), interval, rtol=1e-12)


def test_uncertainty_of_a_lean_copy_without_moments_is_refused(curve):
    X, y = curve
    lean = KernelRidgeRegressor(RBF(gamma=1.0), alpha=0.1, centers=20, random_state=0).fit(X, y).lean()
    with pytest.raises(ValueError, match=r"lean copy .* use the model it is a copy of"):
        lean.predict_std(X)
    with pytest.raises(ValueError, match=r"lean copy .* use the model it is a copy of"):
        lean.predict_interval(X)


@pytest.mark.parametrize("centers", ["all", 20])
def test_a_lean_copy_of_a_lean_copy_is_one(curve, centers):
    X, y = curve
    lean = KernelRidgeRegressor(RBF(gamma=1.0), alpha=0.1, centers=centers, random_state=0).fit(X, y).lean()
    assert_array_equal(lean.lean().predict(X), lean.predict(X))


def test_a_lean_copy_that_has_no_intervals_makes_no_fits(monkeypatch):
    X, y = make_sinc(80, random_state=0)
    model = KernelRidgeRegressor(centers=20, random_state=0).fit(X, y)
    model.lean()
    assert model._fitted.nested.found is None


@pytest.mark.slow
def test_rows_in_a_regular_order_have_neighbors_of_every_kind(rng):
    """Every second row is noisy, and a feature says which: with 1200 rows some of them are neighbors of all."""
    noisy = np.arange(1200) % 2
    X = np.column_stack([rng.uniform(-1.0, 1.0, 1200), noisy])
    y = np.sin(3.0 * X[:, 0]) + np.where(noisy, 1.0, 0.05) * rng.normal(size=1200)
    model = KernelRidgeRegressor(RBF(gamma=2.0), alpha=1.0).fit(X, y)
    quiet, loud = np.diff(model.predict_interval([[0.0, 0.0], [0.0, 1.0]], coverage=0.9))[:, 0]
    assert loud > 5.0 * quiet


@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("centers", ["auto", 8])
def test_a_constant_target_is_predicted(curve, value, centers):
    X = curve[0]
    model = KernelRidgeRegressor(RBF(gamma=0.5), centers=centers).fit(X, np.full(len(X), value))
    assert model.loo_score_ == 1.0
