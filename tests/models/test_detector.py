"""Novelty detection: the programs of others, the rate on new rows, any kernel."""

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from sklearn.svm import OneClassSVM

from mercer import KernelNoveltyDetector
from mercer._solvers.programs.nonsmooth.sequential_minimal_optimization import solve_pairs
from mercer.kernels import RBF, FromCallable, Linear, Polynomial


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(150, 3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["ball", "plane"])
@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_where_the_diagonal_is_constant_it_is_the_one_class_machine(rows, form, nu):
    model = KernelNoveltyDetector(RBF(gamma=0.4), form=form, nu=nu).fit(rows)
    other = OneClassSVM(gamma=0.4, nu=nu, tol=1e-10).fit(rows)
    assert_allclose(np.sort(model.support_), np.sort(other.support_))
    a = model.dual_coef_[np.argsort(model.support_)]
    b = other.dual_coef_[0][np.argsort(other.support_)] / (nu * 150)
    assert_allclose(a, b, atol=1e-6)


def test_the_ball_of_other_kernels_is_that_of_a_general_solver(rows):
    K, bound = Polynomial(degree=2).block(rows[:25], rows[:25]), np.full(25, 1.0 / (0.3 * 25))
    found = solve_pairs(2.0 * K, K.diagonal(), bound)
    result = scipy.optimize.minimize(
        lambda a: (a @ K @ a - K.diagonal() @ a, 2.0 * K @ a - K.diagonal()),
        np.full(25, 1.0 / 25),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, b) for b in bound],
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1.0, "jac": np.ones_like},
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert_allclose(found.objective, result.fun, rtol=1e-7)
    assert found.gap <= 1e-8 * abs(found.objective)


def test_the_hard_ball_touches_the_outermost_rows():
    X = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0], [1.0, -0.5]])
    model = KernelNoveltyDetector(Linear(), nu=1e-9, rate=0.5).fit(X)
    assert_allclose(model.radius_, 2.0, rtol=1e-6)
    assert_allclose(model.dual_coef_ @ X[model.support_], [2.0, 0.0], atol=1e-6)
    assert_allclose(model.score_samples([[2.0, 0.0], [5.0, 0.0]]), [0.0, -9.0], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_so_many_new_rows_are_called_novel(rate):
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = KernelNoveltyDetector(rate=rate).fit(rng.normal(size=(150, 3)))
        found.append(np.mean(model.predict(rng.normal(size=(2000, 3))) < 0))
    assert abs(np.mean(found) - rate) < 0.02


def test_a_weight_of_two_is_two_equal_rows(rows):
    weight = np.random.default_rng(1).integers(0, 3, 150).astype(float)
    one = KernelNoveltyDetector().fit(rows, sample_weight=weight)
    two = KernelNoveltyDetector().fit(np.repeat(rows, weight.astype(int), axis=0))
    assert_allclose(one.decision_function(rows), two.decision_function(rows), atol=1e-9)


@pytest.mark.slow
def test_kernel_values_and_functions(rows):
    kernel = RBF(gamma=0.4)
    expected = KernelNoveltyDetector(kernel).fit(rows).score_samples(rows[:20] + 1.0)
    K, new = kernel.block(rows, rows), kernel.block(rows[:20] + 1.0, rows)
    given = KernelNoveltyDetector("precomputed").fit(K).score_samples(new)
    called = KernelNoveltyDetector(FromCallable(lambda X, Z: kernel.block(np.array(X), np.array(Z))))
    assert_allclose(given, expected, atol=1e-9)
    assert_allclose(called.fit(list(rows)).score_samples(list(rows[:20] + 1.0)), expected, atol=1e-6)


def test_far_away_everything_is_novel(rows):
    for kernel in ("rbf", Polynomial(degree=2), Linear()):
        model = KernelNoveltyDetector(kernel).fit(rows)
        assert (model.predict(rows + 100.0) == -1).all()


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"form": "cube"}, "form"),
        ({"rate": 0.0}, "rate"),
        ({"nu": 2.0}, "nu"),
        ({"kernel": RBF(gamma="loo")}, "no targets by which leave-one-out could choose"),
    ],
)
def test_what_is_refused(rows, settings, what):
    with pytest.raises(ValueError, match=what):
        KernelNoveltyDetector(**settings).fit(rows)


def test_a_matrix_with_a_varying_diagonal_needs_a_plane(rows):
    K = Polynomial(degree=2).block(rows, rows)
    with pytest.raises(ValueError, match="normalize the matrix, or use form="):
        KernelNoveltyDetector("precomputed").fit(K)
    KernelNoveltyDetector("precomputed", form="plane").fit(K)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shift", [1e2, 1e5])
def test_the_ball_moves_with_the_rows(rows, shift):
    here, there = (KernelNoveltyDetector(Linear()).fit(rows + by) for by in (0.0, shift))
    assert_allclose(there.radius_, here.radius_, rtol=1e-4)
    assert there.gap_ < 1e-6 * here.radius_**2


def test_what_is_set_after_the_fit_does_not_change_it(rows):
    model = KernelNoveltyDetector(form="plane").fit(rows)
    expected = model.predict(rows)
    model.form = "ball"
    assert (model.predict(rows) == expected).all()
