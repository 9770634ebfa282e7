"""With every row a center, roots for few alphas choose and fit like the spectrum for all of them."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer._fitting.exact as exact
import mercer._fitting.selection.all_points as all_points
from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._fitting.selection.alpha import ALPHA_STEP, choose_near
from mercer._solvers.exact_fits import RootFit, SpectrumFit
from mercer.errors import NumericalWarning
from mercer.kernels import RBF, Laplacian, Linear, Sigmoid

N = 150


@pytest.fixture(params=[1, 2], ids=["1 target", "2 targets"])
def rows(request):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, 3))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])[:, : request.param] + 0.3 * rng.normal(size=(N, 1))


def few_points(monkeypatch, most):
    """The spectrum decides up to so many points."""
    for module in (exact, all_points):
        monkeypatch.setattr(module, "INTERRUPTIBLE_ROWS", most)


@pytest.fixture
def used(monkeypatch):
    """Names of the solvers that were asked for leave-one-out outputs, in order; roots from 100 points."""
    names = []
    few_points(monkeypatch, 100)
    for solver in (RootFit, SpectrumFit):
        loo_outputs = solver.loo_outputs
        monkeypatch.setattr(
            solver,
            "loo_outputs",
            lambda self, alphas, loo_outputs=loo_outputs: (
                names.append(type(self).__name__) or loo_outputs(self, alphas)
            ),
        )
    return names


def by_both(monkeypatch, model, *args, **options):
    """Two fits, the second with the spectrum."""
    roots = model.fit(*args, **options)
    coef, state = roots.dual_coef_.copy(), roots._fitted.every
    few_points(monkeypatch, 10**6)
    model.fit(*args, **options)
    return coef, state, model


ZEROS = np.random.default_rng(6).integers(0, 3, N).astype(float)
OPTIONS = {
    "default": ({}, {}),
    "no intercept": ({"fit_intercept": False}, {}),
    "counts": ({"weights": "counts"}, {"sample_weight": ZEROS}),
    "importance": ({"weights": "importance"}, {"sample_weight": 1.5 * ZEROS}),
    "groups": ({}, {"groups": np.arange(N) % 13}),
    "groups and zeros": ({}, {"groups": np.arange(N) % 13, "sample_weight": ZEROS}),
    "folds": ({"cv": 5}, {}),
}
options = pytest.mark.parametrize(("parameters", "given"), OPTIONS.values(), ids=OPTIONS)


@pytest.mark.sampled(7)
@options
def test_for_a_given_alpha_roots_give_the_fit_of_the_spectrum(monkeypatch, used, rows, parameters, given):
    model = KernelRidgeRegressor(RBF(gamma=0.3), alpha=0.1, random_state=0, **parameters)
    coef, found, expected = by_both(monkeypatch, model, *rows, **given)
    assert set(used[: len(used) // 2]) == {"RootFit"}
    assert used[-1] == "SpectrumFit"
    # K is of condition 100 / alpha = 1e3.
    assert_allclose(coef, expected.dual_coef_, atol=1e-11 * np.abs(coef).max())
    assert_allclose(found["loo_prediction_"], expected.loo_prediction_, atol=1e-11)
    assert found["degrees_of_freedom_"] == pytest.approx(expected.degrees_of_freedom_, rel=1e-11)
    assert found["loo_score_"] == pytest.approx(expected.loo_score_, rel=1e-11)


@pytest.mark.sampled(4)
@options
def test_alpha_by_roots_is_within_a_step_of_the_best_of_all(monkeypatch, used, rows, parameters, given):
    model = KernelRidgeRegressor(RBF(gamma=0.3), random_state=0, **parameters)
    _, found, expected = by_both(monkeypatch, model, *rows, **given)
    assert used[0] == "RootFit"
    # The minimum is between neighbors of the best of alphas in steps of 10^0.25 and 10^0.4.
    assert abs(np.log10(found["alpha_"] / expected.alpha_)) <= 0.25 + 0.4


@pytest.mark.parametrize("goal", [1e-6, 3e-4, 1.0, 1.7, 40.0, 1e5])
def test_alphas_are_tried_until_one_inside_is_the_best(goal, rows):
    class Fits:
        opposite = None
        spectrum = type("Spectrum", (), {"rank": None, "negative": 0.0})
        asked = 0

        def loo_outputs(self, alphas):
            self.asked += len(alphas)
            return np.log10(alphas / goal)[:, None, None]

        def solve(self, alpha):
            return type("Solution", (), {"coef": None, "intercept": None})

        fitted = degrees_of_freedom = error = lambda self, alpha, loo=None: np.zeros(1)

    def near(given):
        fits = Fits()
        criterion = lambda outputs: outputs[:, 0, 0] ** 2  # noqa: E731
        bounds = (1e-5, 1e3)
        return choose_near(RBF(), fits, 1.0, criterion, given=given, bounds=bounds, n_points=7), fits

    found, fits = near(given=False)
    best = np.clip(goal, 1e-5, 1e3)
    assert abs(np.log10(found.alpha / best)) <= np.log10(ALPHA_STEP)
    assert 1e-5 <= found.paths[-1].alphas.min() <= found.paths[-1].alphas.max() <= 1e3
    # One pair more than the way there takes, and one output at the end.
    assert fits.asked <= abs(np.log10(best)) / np.log10(ALPHA_STEP) + 2 + 4 + 1
    assert near(given=True)[0].alpha == 1.0


class Indefinite(Laplacian):
    """Claims to be positive semidefinite, as its parent is."""

    def block(self, X, Z):
        return super().block(X, Z) - 0.2 * np.asarray(X) @ np.asarray(Z).T

    def diag(self, X):
        return super().diag(X) - 0.2 * np.einsum("ij,ij->i", X, X)


# A kernel that claims to be positive semidefinite has rounding errors as large as its negative eigenvalues.
@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("ignore:rounding errors:mercer.errors.NumericalWarning")
@pytest.mark.parametrize("alpha", [0.01, "loo"])
@pytest.mark.parametrize("gamma", [0.3, "loo"])
def test_a_kernel_that_is_not_what_it_says_is_fitted_by_the_spectrum(monkeypatch, used, rows, alpha, gamma):
    model = KernelRidgeRegressor(Indefinite(gamma=gamma), alpha=alpha, random_state=0)
    coef, found, expected = by_both(monkeypatch, model, *rows)
    assert used[-1] == "SpectrumFit"
    assert found["gamma_"] == expected.gamma_
    assert found["alpha_"] == expected.alpha_
    assert_array_equal(coef, expected.dual_coef_)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "kernel", [Sigmoid(gamma=0.5, coef0=-1.0), Sigmoid(gamma=0.5) + RBF(gamma="loo")], ids=str
)
@pytest.mark.parametrize("centers", ["all", 60])
def test_kernels_that_are_not_positive_semidefinite_are_compared_too(used, rows, kernel, centers):
    model = KernelRidgeRegressor(kernel, centers=centers, random_state=0)
    if centers == "all":
        with pytest.warns(NumericalWarning, match="not positive semidefinite"):
            model.fit(*rows)
    else:
        model.fit(*rows)
    assert model.loo_score_ > 0


def test_a_given_alpha_near_the_rounding_errors_of_the_kernel_is_fitted_by_the_spectrum(monkeypatch, used, rows):
    model = KernelRidgeRegressor(RBF(gamma=1.0), alpha=1e-14, random_state=0)
    with pytest.warns(match="rounding errors may change outputs"):
        coef, _, expected = by_both(monkeypatch, model, *rows)
    assert set(used) == {"SpectrumFit"}
    assert_array_equal(coef, expected.dual_coef_)


def test_the_penalty_on_coefficients_is_fitted_by_singular_values(used, rows):
    KernelRidgeRegressor(penalty="coef", random_state=0).fit(*rows)
    assert set(used) == {"SpectrumFit"}


def test_a_kernel_and_alpha_given_are_not_compared(monkeypatch, used, rows):
    def fail(*args):
        raise AssertionError("kernels were compared")

    monkeypatch.setattr("mercer._fitting.selection.comparison.ComparisonProblem.trials", fail)
    KernelRidgeRegressor(Linear(), alpha=0.1).fit(*rows)


def in_single(rows):
    X, Y = rows
    return X.astype(np.float32), Y.astype(np.float32)


def test_rows_in_float32_are_fitted_like_those_in_float64(used, rows):
    X, Y = in_single(rows)
    single = KernelRidgeRegressor(RBF(gamma=0.3), random_state=0).fit(X, Y)
    double = KernelRidgeRegressor(RBF(gamma=0.3), random_state=0).fit(X.astype(float), Y.astype(float))
    assert set(used) == {"RootFit"}
    assert single.alpha_ == pytest.approx(double.alpha_, rel=1e-4)
    assert_allclose(single.loo_prediction_, double.loo_prediction_, atol=1e-4)


def test_an_alpha_near_the_rounding_errors_of_float32_is_chosen_by_the_spectrum(monkeypatch, used, rows):
    model = KernelRidgeRegressor(RBF(gamma=0.02), random_state=0)
    coef, found, expected = by_both(monkeypatch, model, *in_single(rows))
    assert used[0] == "RootFit"
    assert used[-1] == "SpectrumFit"
    assert found["alpha_"] == expected.alpha_
    assert_array_equal(coef, expected.dual_coef_)


def checkerboard(rng, n, side):
    X = rng.uniform(size=(n, 2))
    return X, (side * X).astype(int).sum(axis=1) % 2


@pytest.mark.slow
def test_up_to_two_thousand_rows_kernels_climb_with_all_points_where_these_matter(used, rng, monkeypatch):
    X, y = checkerboard(rng, 500, 8)
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    few_points(monkeypatch, 10**6)
    assert model.loo_score_ <= KernelFisherClassifier(random_state=0).fit(X, y).loo_score_ * 1.01


@pytest.mark.slow
def test_fits_of_the_climb_are_used_by_the_choice_of_alpha(used, rng, monkeypatch):
    factored, computed = [], RootFit._computed
    monkeypatch.setattr(
        RootFit,
        "_computed",
        lambda self, alpha: factored.append((self.projected.trace, alpha)) or computed(self, alpha),
    )
    model = KernelFisherClassifier("rbf", random_state=0).fit(*checkerboard(rng, 500, 8))
    assert len({trace for trace, _ in factored}) > 1
    assert len(set(factored)) == len(factored)
    # Two alphas while kernels climbed, and two more that show that the best is inside.
    last = factored[-1][0]
    assert model.alpha_ in (alphas := [alpha for trace, alpha in factored if trace == last])
    assert len(alphas) <= 4


@pytest.mark.slow
def test_a_wide_kernel_in_single_precision_is_fitted_as_well_with_many_rows_as_with_few():
    """Its penalties are below what a Cholesky factor of float32 values can have: the spectrum decides."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(650, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=650)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        single, double = (KernelRidgeRegressor(RBF(gamma=1e-6)).fit(X.astype(t), y) for t in ("f4", "f8"))
    # The fit is linear, and the noise has a hundredth of the variance.
    assert single.loo_score_ > 0.98
    assert single.loo_score_ == pytest.approx(double.loo_score_, abs=1e-3)


@pytest.mark.slow
def test_kernels_are_chosen_alike_in_single_and_double_precision():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(700, 2)).astype(np.float32)
    y = np.sin(12 * X[:, 0]) * np.sin(12 * X[:, 1]) + 0.03 * rng.normal(size=700)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        single, double = (KernelRidgeRegressor(random_state=0).fit(X.astype(t), y) for t in ("f4", "f8"))
    assert single.gamma_ == pytest.approx(double.gamma_, rel=1e-4)
    assert "by fits to 700 rows" in single.report_.searched


@pytest.mark.slow
@pytest.mark.parametrize(("penalty", "once"), [("rkhs", True), ("coef", False)])
def test_kernels_are_compared_with_few_centers_only_where_factors_of_all_rows_follow(monkeypatch, penalty, once):
    asked = []
    compare = exact.compare_kernels
    monkeypatch.setattr(
        exact,
        "compare_kernels",
        lambda *args, **how: asked.append(how["first_stage_only"]) or compare(*args, **how),
    )
    X = np.random.default_rng(0).uniform(size=(620, 2))
    KernelRidgeRegressor(penalty=penalty, random_state=0).fit(X, X[:, 0])
    assert asked == [once]
