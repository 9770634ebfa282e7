"""The fit with m centers from moments, against the dense normal equations and against refitting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._gram.moments import MomentsOf
from mercer._linalg.rank import RankFactor
from mercer._solvers.moments.ridge import decompose_moments
from mercer.kernels import RBF
from mercer.rows._base import Block

ALPHAS = [1e-8, 1e-4, 1e-2, 1.0, 1e3]
KERNEL = RBF(gamma=0.4)


def dense_fit(K, Kz, Y, w, alpha):
    """coef and intercept of the bordered normal equations."""
    A = np.block(
        [[K.T @ (w[:, None] * K) + alpha * Kz, (K.T @ w)[:, None]], [(w @ K)[None], np.array([[w.sum()]])]]
    )
    solution = np.linalg.lstsq(A, np.vstack([K.T @ (w[:, None] * Y), w @ Y]), rcond=1e-15)[0]
    return solution[:-1], solution[-1]


@pytest.fixture
def problem(rng):
    X, Y, w = rng.normal(size=(60, 3)), rng.normal(size=(60, 2)), rng.uniform(0.3, 1.0, 60)
    return X, Y, w, X[:12]


def spectrum_of(X, Y, w, Z, kernel=KERNEL):
    moments = MomentsOf(kernel, Z)(Block(X, Y, w, 0))
    return decompose_moments(moments, kernel.block(Z.astype(float), Z.astype(float)))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_solution_is_that_of_the_normal_equations(problem, alpha):
    X, Y, w, Z = problem
    coef, intercept = spectrum_of(*problem).solve(alpha)
    K = KERNEL.block(X, Z)
    exact, exact_intercept = dense_fit(K, KERNEL.block(Z, Z), Y, w, alpha)
    assert_allclose(K @ coef + intercept, K @ exact + exact_intercept, atol=1e-9)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_rows_left_out_are_those_of_refitting_with_the_same_centers(problem, alpha):
    X, Y, w, Z = problem
    K, Kz = KERNEL.block(X, Z), KERNEL.block(Z, Z)
    found = spectrum_of(*problem).loo_map(np.array([alpha]))(K, Y, w)[0]
    for i in range(60):
        coef, intercept = dense_fit(K, Kz, Y, np.where(np.arange(60) == i, 0.0, w), alpha)
        assert_allclose(found[i], K[i] @ coef + intercept, rtol=1e-8, atol=1e-8)


def test_repeated_centers_are_dropped(problem):
    X, Y, w, Z = problem
    twice = spectrum_of(X, Y, w, np.vstack([Z, Z[:5]]))
    assert len(twice.kept) == 12
    coef, intercept = twice.solve(0.1)
    once, once_intercept = spectrum_of(*problem).solve(0.1)
    both = np.vstack([Z, Z[:5]])
    assert_allclose(
        KERNEL.block(X, both) @ coef + intercept, KERNEL.block(X, Z) @ once + once_intercept, atol=1e-9
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "gamma"), [(1, 1.0), (2, 0.3), (3, 0.1)])
def test_no_alpha_is_too_small(rng, d, gamma, dtype):
    X = rng.normal(size=(4000, d)).astype(dtype)
    y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(4000, 1))
    kernel, Z = RBF(gamma=gamma), X[:300]
    spectrum = spectrum_of(X, y, None, Z, kernel)
    assert spectrum.negative == 0.0
    new = rng.normal(size=(2000, d)).astype(dtype)
    for share in (1e-16, 1e-12, 1e-8, 1e-6):
        coef, intercept = spectrum.solve(share * spectrum.trace)
        error = kernel.block(new, Z) @ coef + intercept - np.sin(2 * new[:, :1])
        assert np.sqrt(np.mean(error**2)) < 0.2


def test_constant_kernel_leaves_the_intercept(problem):
    X, Y, w, Z = problem
    spectrum = spectrum_of(X, Y, w, Z, RBF(gamma=0.0))
    coef, intercept = spectrum.solve(1.0)
    assert spectrum.rank == 0
    assert_array_equal(coef, np.zeros((12, 2)))
    assert_allclose(intercept, w @ Y / w.sum())
    left = spectrum.loo_map([1.0])(np.ones((60, 12)), Y, w)[0]
    assert_allclose(left, (w @ Y - w[:, None] * Y) / (w.sum() - w)[:, None])


def test_float32_products_are_what_blows_up(rng):
    X = rng.normal(size=(4000, 2)).astype(np.float32)
    kernel, Z = RBF(gamma=0.3), X[:300]
    K = kernel.block(Z.astype(float), Z.astype(float))
    block = Block(X, np.sin(2 * X[:, :1]), None, 0)
    negative = [
        decompose_moments(MomentsOf(kernel, Z, dtype)(block), K).negative for dtype in (np.float32, np.float64)
    ]
    assert negative[0] > 1e-2
    assert negative[1] == 0.0


def test_without_intercept_nothing_is_centered(problem):
    X, Y, w, Z = problem
    K, Kz = KERNEL.block(X, Z), KERNEL.block(Z, Z)
    moments = MomentsOf(KERNEL, Z)(Block(X, Y, w, 0))
    spectrum = decompose_moments(moments, Kz, intercept=False)
    coef, intercept = spectrum.solve(0.1)
    exact = np.linalg.solve(K.T @ (w[:, None] * K) + 0.1 * Kz, K.T @ (w[:, None] * Y))
    assert_allclose(K @ coef, K @ exact, atol=1e-9)
    assert_array_equal(intercept, np.zeros(2))
    for i in range(0, 60, 7):
        without = np.where(np.arange(60) == i, 0.0, w)[:, None]
        refit = np.linalg.solve(K.T @ (without * K) + 0.1 * Kz, K.T @ (without * Y))
        assert_allclose(spectrum.loo_map([0.1])(K, Y, w)[0, i], K[i] @ refit, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_no_kernel_matrix_means_the_penalty_of_the_coefficients(problem, intercept):
    X, Y, w, Z = problem
    K = KERNEL.block(X, Z)
    spectrum = decompose_moments(MomentsOf(KERNEL, Z)(Block(X, Y, w, 0)), None, intercept=intercept)
    coef, offset = spectrum.solve(0.3)
    if intercept:
        exact, exact_offset = dense_fit(K, np.eye(12), Y, w, 0.3)
    else:
        exact, exact_offset = np.linalg.solve(K.T @ (w[:, None] * K) + 0.3 * np.eye(12), K.T @ (w[:, None] * Y)), 0
    assert_allclose(K @ coef + offset, K @ exact + exact_offset, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_degrees_of_freedom_are_the_trace_of_the_smoother(problem, intercept):
    X, _, w, Z = problem
    K, Kz = KERNEL.block(X, Z), KERNEL.block(Z, Z)
    moments = MomentsOf(KERNEL, Z)(Block(X, np.eye(60), w, 0))
    spectrum = decompose_moments(moments, Kz, intercept=intercept)
    traces = []
    for alpha in ALPHAS:
        coef, offset = spectrum.solve(alpha)
        traces.append(np.trace(K @ coef + offset))
    assert_allclose(spectrum.degrees_of_freedom(ALPHAS), traces, rtol=1e-9)
    assert spectrum.rank == 12


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", ALPHAS[1:])
def test_one_alpha_has_the_same_fit_and_the_same_facts_as_all(problem, penalty, intercept, alpha):
    X, Y, w, Z = problem
    K, Kz = KERNEL.block(X, Z), KERNEL.block(Z, Z) if penalty == "rkhs" else None
    moments = MomentsOf(KERNEL, Z)(Block(X, Y, w, 0))
    one = decompose_moments(moments, Kz, intercept=intercept, alpha=alpha)
    every = decompose_moments(moments, Kz, intercept=intercept)
    assert one.triangular
    assert not every.triangular
    assert (one.rank, one.negative) == (every.rank, every.negative) == (12, 0.0)
    assert_allclose(one.degrees_of_freedom([alpha]), every.degrees_of_freedom([alpha]), rtol=1e-10)
    for found, expected in zip(one.solve(alpha), every.solve(alpha)):
        assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    left = [spectrum.loo_map(np.array([alpha]))(K, Y, w) for spectrum in (one, every)]
    assert_allclose(*left, rtol=1e-8, atol=1e-9)
    # The sum over directions is the same in every basis; the largest of them is one of twelve.
    assert 1 / 12 < one.error(alpha) / every.error(alpha) < 12


@pytest.mark.parametrize("share", [1e-14, 1e-7, 1e-2])
def test_one_alpha_drops_the_directions_that_all_would_drop(rng, share):
    X = rng.uniform(-1, 1, size=(400, 2))
    kernel, Z = RBF(gamma=0.5), X[:80]
    moments = MomentsOf(kernel, Z)(Block(X, np.sin(3 * X[:, :1]), None, 0))
    # All centers, however dependent.
    factor = RankFactor(np.linalg.cholesky(kernel.block(Z, Z) + 1e-13 * np.eye(80)).T, np.arange(80))
    every = decompose_moments(moments, factor)
    one = decompose_moments(moments, factor, alpha=share * every.trace)
    assert every.rank < 80
    assert one.rank == every.rank
    assert_array_equal(one.solve(share * every.trace)[0], every.solve(share * every.trace)[0])


def test_one_alpha_of_indefinite_sums_is_told_from_that_of_a_gram_matrix(problem):
    X, Y, w, Z = problem
    less = MomentsOf(KERNEL, Z)(Block(X, Y, w, 0)) - MomentsOf(KERNEL, Z)(Block(3 * X[:20], Y[:20], w[:20], 0))
    every = decompose_moments(less, KERNEL.block(Z, Z))
    one = decompose_moments(less, KERNEL.block(Z, Z), alpha=2 * every.trace)
    assert every.negative > 0
    assert (one.negative, one.rank) == (every.negative, every.rank)
