"""Canonical correlations against the generalized eigenproblem of the textbooks, and the laws of several views."""

from itertools import permutations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from mercer._gram.moments import Moments
from mercer._linalg.eigen import centered
from mercer._solvers.directions.canonical import (
    axes_of_grams,
    axes_of_moments,
    canonical_directions,
    correlations_of_scores,
    rematched,
    scores_along,
)
from mercer.kernels import RBF, Linear, Polynomial

N = 60
KERNELS = RBF(gamma=0.2), Polynomial(degree=2, gamma=0.5), Linear()


@pytest.fixture
def grams(rng, frozen):
    z = rng.normal(size=(N, 2))
    views = [np.hstack([z @ rng.normal(size=(2, 2)), rng.normal(size=(N, 2))]) for _ in KERNELS]
    return [frozen(kernel.block(X, X)) for kernel, X in zip(KERNELS, views)]


SHARE = np.full(N, 1.0 / N)


def solved(grams, alpha, most, share=SHARE):
    axes, _ = axes_of_grams(grams, share, [1e-12] * len(grams))
    return canonical_directions(axes, alpha, most)


def scores(grams, found):
    return [K @ coef + shift for K, coef, shift in zip(grams, found.coef, found.intercept)]


def textbook(grams, alpha):
    """Values of sum_{a != b} K_a K_b c = value (K_a² + alpha trace(K_a) K_a) c on the range of centered K_a."""
    K = [centered(each) for each in grams]
    bases = []
    for each in K:
        values, vectors = np.linalg.eigh(each)
        bases.append(vectors[:, values > 1e-10 * values[-1]])
    both = list(zip(K, bases))
    left = np.block([[(A is not B) * (P.T @ A @ B @ Q) for B, Q in both] for A, P in both])
    right = scipy.linalg.block_diag(*[P.T @ (A @ A + alpha * np.trace(A) * A) @ P for A, P in zip(K, bases)])
    return np.sort(scipy.linalg.eigh(left, right, eigvals_only=True))[::-1] / (len(grams) - 1)


@pytest.mark.parametrize("views", [2, 3])
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_objectives_are_those_of_the_generalized_eigenproblem(grams, views, alpha):
    found = solved(grams[:views], alpha, 5)
    assert_allclose(found.objective, textbook(grams[:views], alpha)[:5], rtol=1e-7)


def test_variates_have_variance_one_and_the_stated_correlations(grams):
    found = solved(grams, 0.01, 4)
    variates = scores(grams, found)
    for v, each in enumerate(variates):
        assert_allclose(each.mean(axis=0), 0.0, atol=1e-10)
        assert_allclose(each.var(axis=0), 1.0, rtol=1e-9)
        for w, other in enumerate(variates):
            assert_allclose(found.correlations[:, v, w], (each * other).mean(axis=0), atol=1e-9)


def test_the_objective_of_two_views_is_below_their_correlation(grams):
    found = solved(grams[:2], 0.1, 1)
    assert found.objective[0] < found.correlations[0, 0, 1] <= 1.0


def test_without_regularization_any_rows_agree_perfectly(rng):
    grams = [RBF(gamma=1.0).block(X, X) for X in rng.normal(size=(2, 40, 3))]
    found = solved(grams, 1e-12, 10, np.full(40, 1 / 40))
    assert_allclose(found.objective, 1.0, atol=1e-6)
    assert_allclose(found.correlations[:, 0, 1], 1.0, atol=1e-6)


def test_components_are_nested(grams):
    few, many = (solved(grams, 0.01, most) for most in (2, 6))
    for one, other in zip(few.coef, many.coef):
        assert_allclose(one, other[:, :2], atol=1e-8 * np.abs(one).max())


def test_two_views_are_the_same_problem_as_several(grams):
    """A third view that is constant has no part, and leaves the other two alone."""
    two, three = solved(grams[:2], 0.01, 3), solved([*grams[:2], np.ones((N, N))], 0.01, 3)
    assert_allclose(2.0 * three.objective, two.objective, rtol=1e-10)
    for one, other in zip(two.coef, three.coef):
        assert_allclose(one, other, atol=1e-8 * np.abs(one).max())
    assert_allclose(three.coef[2], 0.0)


@pytest.mark.parametrize("order", list(permutations(range(3)))[1:])
def test_the_order_of_views_does_not_matter(grams, order):
    found, other = solved(grams, 0.01, 3), solved([grams[v] for v in order], 0.01, 3)
    assert_allclose(other.objective, found.objective, rtol=1e-10)
    for place, v in enumerate(order):
        assert_allclose(other.coef[place], found.coef[v], atol=1e-8 * np.abs(found.coef[v]).max())


@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_alpha_has_no_unit(grams, factor):
    found = solved(grams[:2], 0.01, 3)
    axes, _ = axes_of_grams([factor * grams[0], grams[1]], SHARE, [factor * 1e-12, 1e-12])
    other = canonical_directions(axes, 0.01, 3)
    assert_allclose(other.objective, found.objective, rtol=1e-9)
    assert_allclose(other.coef[0] * factor, found.coef[0], rtol=1e-6, atol=1e-8 * np.abs(found.coef[0]).max())


def test_the_largest_coefficient_is_positive(grams):
    stacked = np.vstack([coef / np.linalg.norm(coef, axis=0) for coef in solved(grams, 0.01, 5).coef])
    assert (stacked[np.abs(stacked).argmax(axis=0), np.arange(5)] > 0.0).all()


def test_moments_of_coordinates_give_what_kernel_matrices_do(grams, rng):
    phi = [np.linalg.cholesky(K + 1e-9 * np.trace(K) * np.eye(N)) for K in grams]
    grams = [L @ L.T for L in phi]
    rows, w = np.hstack(phi), rng.uniform(0.5, 2.0, size=N)
    empty = np.zeros(0)
    moments = Moments(w.sum(), w @ rows, empty, (w[:, None] * rows).T @ rows, np.zeros((3 * N, 0)), empty, N)
    axes = axes_of_moments(moments, [N] * 3, [1e-11] * 3)
    found, expected = canonical_directions(axes, 0.01, 3), solved(grams, 0.01, 3, w / w.sum())
    assert_allclose(found.objective, expected.objective, rtol=1e-8)
    sides = [L @ coef + shift for L, coef, shift in zip(phi, found.coef, found.intercept)]
    for one, other in zip(sides, scores(grams, expected)):
        assert_allclose(np.abs(one), np.abs(other), atol=1e-6)
    matched = rematched(axes, scores_along(axes, phi, w / w.sum()), [np.arange(N)] * 3)
    assert_allclose(canonical_directions(matched, 0.01, 3).objective, found.objective, rtol=1e-8)


@pytest.mark.slow
def test_few_values_of_large_blocks_are_those_of_a_whole_decomposition(rng):
    z = rng.normal(size=(400, 2))
    views = [np.hstack([z + rng.normal(size=(400, 2)), rng.normal(size=(400, 4))]) for _ in range(2)]
    grams, share = [RBF(gamma=0.3).block(X, X) for X in views], np.full(400, 1 / 400)
    few, every = solved(grams, 0.01, 2, share), solved(grams, 0.01, None, share)
    assert_allclose(few.objective, every.objective[:2], rtol=1e-10)
    for one, other in zip(few.coef, every.coef):
        assert_allclose(one, other[:, :2], atol=1e-7 * np.abs(one).max())


def test_correlations_of_scores_are_pearsons_and_means_over_pairs(rng):
    parts = rng.normal(size=(3, 30, 2))
    parts[2, :, 1] = 7.0
    expected = np.mean([np.corrcoef(parts[a, :, 0], parts[b, :, 0])[0, 1] for a, b in ((0, 1), (0, 2), (1, 2))])
    found = correlations_of_scores(list(parts))
    assert found[0] == pytest.approx(expected)
    assert found[1] == pytest.approx(np.corrcoef(parts[0, :, 1], parts[1, :, 1])[0, 1] / 3.0)
