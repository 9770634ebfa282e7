"""Row by row is all rows at once, and what is approximated is what the page says."""

from dataclasses import replace
from itertools import pairwise as pairs
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from numpy.testing import assert_allclose

from mercer._linalg.updates import removal_costs
from mercer._solvers import recursive
from mercer._solvers.recursive import (
    ROWS_AT_ONCE,
    Recursion,
    forward_gains,
    learn_rows,
    loo_outputs,
    remove,
    start,
)
from mercer.kernels import RBF, Linear, Polynomial
from mercer.kernels._precomputed import FromCallable, pairwise


def problem(rng, n, *, d=2, q=1):
    X = rng.uniform(-2, 2, size=(n, d))
    Y = np.column_stack([np.sin(2 * X[:, 0] + j) * X[:, 1] for j in range(q)]) + 0.1 * rng.normal(size=(n, q))
    return X, Y


def run(recursion, X, Y, weight=None, *, blocks=(), kept=0):
    """State and outputs after all rows, in blocks that end at the given rows."""
    weight = np.ones(len(Y)) if weight is None else weight
    state, outputs = start(Y.shape[1], kept=kept), []
    edges = [0, *blocks, len(Y)]
    for first, last in pairs(edges):
        rows = slice(first, last)
        state, before = learn_rows(recursion, state, X[rows], Y[rows], weight[rows])
        outputs.append(before)
    return state, np.concatenate(outputs)


def evaluate(recursion, state, X):
    coef, intercept = state.solve()
    return recursion.kernel.block(X, state.centers) @ coef + intercept


def ridge(Phi, Y, weight, penalty):
    """Intercept first: least squares on features whose penalty is |a|², by QR."""
    m = Phi.shape[1]
    top = np.sqrt(weight)[:, None] * np.column_stack([np.ones(len(Phi)), Phi])
    bottom = np.sqrt(penalty) * np.column_stack([np.zeros(m), np.eye(m)])
    right = np.vstack([np.sqrt(weight)[:, None] * Y, np.zeros((m, Y.shape[1]))])
    Q, R = np.linalg.qr(np.vstack([top, bottom]))
    return scipy.linalg.solve_triangular(R, Q.T @ right)


def coordinates(kernel, X, centers):
    L = np.linalg.cholesky(kernel.block(centers, centers))
    return scipy.linalg.solve_triangular(L, kernel.block(X, centers).T, lower=True).T


def fit_on_centers(kernel, X, Y, weight, penalty, centers, X_new):
    """All rows at once, with these centers."""
    a = ridge(coordinates(kernel, X, centers), Y, weight, penalty)
    return a[0] + coordinates(kernel, X_new, centers) @ a[1:]


def dependence(kernel, X, nu, max_centers):
    """Centers by approximate linear dependence and the coordinates (n, m) each row had when it came."""
    centers, rows = [], []
    for i, x in enumerate(X):
        phi = coordinates(kernel, x[None], X[centers])[0] if centers else np.zeros(0)
        left = kernel.diag(x[None])[0] - phi @ phi
        if left > nu and len(centers) < max_centers:
            centers.append(i)
            phi = np.r_[phi, np.sqrt(left)]
        rows.append(phi)
    Phi = np.array([np.r_[phi, np.zeros(len(centers) - len(phi))] for phi in rows])
    return centers, Phi


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_every_row_a_center_is_kernel_ridge_regression(rng, alpha):
    X, Y = problem(rng, 60, q=2)
    weight = rng.uniform(0.5, 2.0, size=60)
    recursion = Recursion(RBF(gamma=3.0), alpha, 1e-9, 100)
    state, _ = run(recursion, X, Y, weight, blocks=(7, 30))
    K = RBF(gamma=3.0).block(X, X)
    system = np.block([[K + alpha * np.diag(1 / weight), np.ones((60, 1))], [np.ones((1, 60)), np.zeros((1, 1))]])
    exact = np.linalg.solve(system, np.vstack([Y, np.zeros((1, 2))]))
    assert state.m == 60
    assert_allclose(evaluate(recursion, state, X), K @ exact[:-1] + exact[-1], atol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "kernel", [RBF(gamma=0.5), Polynomial(degree=3, gamma=1.0, coef0=1.0), Linear()], ids=repr
)
def test_centers_that_came_first_give_the_fit_of_all_rows(rng, kernel):
    X, Y = problem(rng, 700, q=2)
    recursion = Recursion(kernel, 0.1, 1e-4, 25, when_full="refuse")
    first, _ = run(recursion, X[:40], Y[:40])
    full = replace(recursion, max_centers=first.m)
    centers = np.asarray(first.centers)
    X = np.vstack([centers, X])
    Y = np.vstack([np.zeros((len(centers), 2)), Y])
    state, _ = run(full, X, Y)
    exact = fit_on_centers(kernel, X, Y, np.ones(len(X)), 0.1, centers, X)
    assert_allclose(state.centers, centers)
    assert_allclose(evaluate(full, state, X), exact, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("decay", [1.0, 0.99])
@pytest.mark.parametrize(("nu", "max_centers"), [(1e-2, 1000), (1e-4, 20)])
def test_earlier_rows_have_no_part_of_later_centers_and_all_else_is_exact(rng, nu, max_centers, decay):
    X, Y = problem(rng, 300, q=2)
    weight = rng.uniform(0.5, 2.0, size=300)
    recursion = Recursion(RBF(gamma=1.0), 0.3, nu, max_centers, decay, when_full="refuse")
    state, _ = run(recursion, X, Y, weight)
    centers, Phi = dependence(recursion.kernel, X, nu, max_centers)
    faded = weight * decay ** np.arange(299.0, -1.0, -1.0)
    a = ridge(Phi, Y, faded, recursion.penalty(300))
    assert_allclose(state.centers, X[centers])
    assert_allclose(
        evaluate(recursion, state, X), a[0] + coordinates(recursion.kernel, X, X[centers]) @ a[1:], atol=1e-8
    )


@pytest.mark.slow
def test_what_is_approximated_vanishes_with_the_tolerance(rng):
    X, Y = problem(rng, 400)
    kernel, errors = RBF(gamma=0.5), []
    for nu in (1e-1, 1e-3, 1e-5):
        recursion = Recursion(kernel, 0.1, nu, 1000)
        state, _ = run(recursion, X, Y)
        exact = fit_on_centers(kernel, X, Y, np.ones(400), 0.1, np.asarray(state.centers), X)
        errors.append(np.abs(evaluate(recursion, state, X) - exact).max())
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[2] < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("when_full", ["refuse", "replace"])
@pytest.mark.parametrize(("decay", "max_centers"), [(1.0, 1000), (1.0, 20), (0.995, 20), (0.9, 20)])
def test_blocks_are_rows_one_by_one(rng, decay, max_centers, when_full):
    n = 2 * ROWS_AT_ONCE + 50
    X, Y = problem(rng, n, q=2)
    # The rows move on, so that centers are replaced.
    X = X + np.linspace(0.0, 4.0, n)[:, None]
    weight = rng.uniform(0.5, 2.0, size=n)
    recursion = Recursion(RBF(gamma=1.0), 0.1, 1e-3, max_centers, decay, when_full)
    state, before = run(recursion, X, Y, weight)
    singly, before_singly = run(recursion, X, Y, weight, blocks=range(1, n))
    cut, before_cut = run(recursion, X, Y, weight, blocks=(3, 100, 101, 400))
    for other, outputs in ((singly, before_singly), (cut, before_cut)):
        assert_allclose(other.centers, state.centers)
        assert_allclose(evaluate(recursion, other, X), evaluate(recursion, state, X), atol=1e-8)
        assert_allclose(outputs, before, atol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("decay", [1.0, 0.97])
def test_outputs_are_those_of_the_model_before_the_row(rng, decay):
    X, Y = problem(rng, 60)
    recursion = Recursion(RBF(gamma=1.0), 0.1, 1e-3, 15, decay, when_full="refuse")
    _, before = run(recursion, X, Y)
    assert np.isnan(before[0]).all()
    for i in (1, 2, 10, 30, 59):
        model, _ = run(recursion, X[:i], Y[:i], blocks=range(1, i))
        assert_allclose(before[i], evaluate(recursion, model, X[i : i + 1])[0], atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e2, 1e3])
def test_blocks_are_rows_one_by_one_where_kernel_values_are_huge(rng, offset):
    X, Y = problem(rng, 40, d=3)
    recursion = Recursion(Polynomial(degree=3), alpha=0.1, nu=1e-3, max_centers=50)
    _, together = run(recursion, X + offset, Y)
    _, alone = run(recursion, X + offset, Y, blocks=range(1, 40))
    # Errors grow with the root of the largest kernel value over alpha, the condition of the rows, not its square.
    largest = (3 * (offset + 3.0) ** 2) ** 3
    assert_allclose(together, alone, atol=np.finfo(float).eps * np.sqrt(40 * largest / 0.1))


def test_weight_two_is_the_row_twice(rng):
    X, Y = problem(rng, 50)
    weight = rng.integers(1, 4, size=50)
    recursion = Recursion(RBF(gamma=1.0), 0.1, 1e-6, 100)
    weighted, _ = run(recursion, X, Y, weight.astype(float))
    repeated, _ = run(recursion, X.repeat(weight, axis=0), Y.repeat(weight, axis=0))
    assert repeated.m == weighted.m
    assert_allclose(evaluate(recursion, repeated, X), evaluate(recursion, weighted, X), atol=1e-8)


def test_the_objective_is_the_minimum(rng):
    X, Y = problem(rng, 50, q=2)
    recursion = Recursion(RBF(gamma=3.0), 0.1, 1e-9, 100)
    state, _ = run(recursion, X, Y)
    coef, _ = state.solve()
    K = RBF(gamma=3.0).block(state.centers, state.centers)
    loss = ((Y - evaluate(recursion, state, X)) ** 2).sum(axis=0)
    assert_allclose(state.objective, loss + 0.1 * np.einsum("jq,jk,kq->q", coef, K, coef), rtol=1e-9)
    assert_allclose(state.total_weight, 50.0)


def test_removing_a_center_costs_what_the_objective_rises(rng):
    X, Y = problem(rng, 200, q=2)
    recursion = Recursion(RBF(gamma=1.0), 0.1, 1e-2, 12, when_full="refuse")
    state, _ = run(recursion, X, Y)
    costs = removal_costs(*recursive._dual_basis(state))
    for j in range(state.m):
        without = remove(recursion, state, np.array([j]))
        assert_allclose(without.objective.sum() - state.objective.sum(), costs[j], rtol=1e-6)


def test_removed_centers_leave_the_fit_of_all_rows_on_the_others(rng):
    X, Y = problem(rng, 300)
    kernel = RBF(gamma=1.0)
    first, _ = run(Recursion(kernel, 0.1, 1e-2, 12), X[:100], Y[:100])
    recursion = Recursion(kernel, 0.1, 1e-2, 12, when_full="refuse")
    centers = np.asarray(first.centers)
    X, Y = np.vstack([centers, X]), np.vstack([np.zeros((12, 1)), Y])
    state, _ = run(recursion, X, Y)
    fewer = remove(recursion, state, np.array([2, 7]))
    kept = np.delete(centers, [2, 7], axis=0)
    exact = fit_on_centers(kernel, X, Y, np.ones(len(X)), 0.1, kept, X)
    assert_allclose(fewer.centers, kept)
    assert_allclose(evaluate(recursion, fewer, X), exact, atol=1e-8)


def test_gains_are_what_the_best_coordinate_takes_off_the_objective(rng):
    A, E = rng.normal(size=(12, 5)), rng.normal(size=(12, 2))
    S, weight = A @ A.T, rng.uniform(0.5, 2.0, size=12)

    def best_gain(S, E):
        """By regression on each row's coordinate alone; the winner, its gain, and what is left."""
        found = []
        for j in range(12):
            s = S[:, j] / np.sqrt(max(S[j, j], 1e-9))
            c = (weight * s) @ E / (0.3 + weight @ s**2)
            left = E - np.outer(s, c)
            rest = (weight[:, None] * left**2).sum() + 0.3 * (c**2).sum()
            found.append(((weight[:, None] * E**2).sum() - rest, j, S - np.outer(s, s), left))
        return max(found, key=lambda gain: gain[0])

    tolerance = np.full(12, 1e-6)
    rows, gains = forward_gains(S, E, weight, penalty=0.3, tolerance=tolerance, least=0.0, most=3)
    for row, gain in zip(rows, gains):
        expected, j, S, E = best_gain(S, E)
        assert row == j
        assert_allclose(gain, expected, rtol=1e-8)
    few, _ = forward_gains(A @ A.T, E, weight, penalty=0.3, tolerance=tolerance, least=1e9, most=3)
    assert len(few) == 0


@pytest.mark.slow
def test_left_out_outputs_are_those_of_refitting(rng):
    X, Y = problem(rng, 30)
    weight = rng.integers(1, 4, size=30).astype(float)
    recursion = Recursion(RBF(gamma=3.0), 0.1, 1e-9, 100)
    state, _ = run(recursion, X, Y, weight, kept=30)
    assert state.m == 30
    loo = loo_outputs(recursion, state, X, Y, np.ones(30))
    for i in (0, 11, 29):
        fewer = weight - np.eye(30)[i]
        others = fewer > 0
        model, _ = run(recursion, X[others], Y[others], fewer[others])
        assert_allclose(loo[i], evaluate(recursion, model, X[i : i + 1])[0], atol=1e-8)


def recorded(choose, made):
    def chosen(*arguments, **names):
        made.append(choose(*arguments, **names))
        return made[-1]

    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("decay", [1.0, 0.999])
def test_left_out_rows_take_away_what_they_contributed_where_centers_were_replaced(rng, monkeypatch, decay):
    n, kept = 3 * ROWS_AT_ONCE + 40, 400
    X, Y = problem(rng, n, q=2)
    # The rows move on, so that centers are replaced.
    X = X + np.linspace(0.0, 4.0, n)[:, None]
    recursion = Recursion(RBF(gamma=1.0), 0.1, 1e-3, 20, decay)
    made = {"forward_gains": [], "cheapest_columns": []}
    for name, results in made.items():
        monkeypatch.setattr(recursive, name, recorded(getattr(recursive, name), results))
    state, _ = run(recursion, X, Y, kept=kept)
    assert (state.centers[:, 0] > X[: 2 * ROWS_AT_ONCE, 0].max()).any()
    loo = loo_outputs(recursion, state, X[-kept:], Y[-kept:], np.ones(kept))
    for i in (n - kept, n - 300, n - 45, n - 10):
        # The same choices of centers for a row with next to no weight.
        for name, results in made.items():
            monkeypatch.setattr(recursive, name, Mock(side_effect=results))
        model, _ = run(recursion, X, Y, np.where(np.arange(n) == i, 1e-12, 1.0))
        assert_allclose(model.centers, state.centers)
        assert_allclose(loo[i - n], evaluate(recursion, model, X[i : i + 1])[0], atol=1e-6)


@pytest.mark.slow
def test_the_printed_start_gives_half_of_the_solution(rng):
    """Andelić (2007), Algorithm 4 from P_0 = P_m; the same rows here come out whole."""
    X = rng.uniform(-5, 5, size=(400, 1))
    Y = np.sinc(X / np.pi) + 0.02 * rng.normal(size=(400, 1))
    kernel = RBF(gamma=0.3)
    centers, _ = dependence(kernel, X, 1e-2, 100)
    K = kernel.block(X, X[centers])
    Z = K @ np.linalg.inv(kernel.block(X[centers], X[centers]))
    P, beta = np.linalg.inv(Z.T @ Z), np.zeros((len(centers), 1))
    for z, y in zip(Z, Y):
        gain = P @ z / (1 + z @ P @ z)
        beta += np.outer(gain, y - z @ beta)
        P -= np.outer(gain, z @ P)
    best = Z @ np.linalg.lstsq(Z, Y)[0]
    slope = ((Z @ beta).T @ best / (best.T @ best)).item()
    assert_allclose(slope, 0.5, atol=0.02)

    recursion = Recursion(kernel, 1e-6, 1e-2, 100)
    ours = evaluate(recursion, run(recursion, X, Y)[0], X)
    assert_allclose((ours.T @ best / (best.T @ best)).item(), 1.0, atol=0.01)


@pytest.mark.slow
def test_digits_survive_where_the_explicit_inverse_has_lost_them(rng):
    X, Y = problem(rng, 400)
    kernel, alpha, nu = RBF(gamma=0.5), 1e-6, 1e-9
    centers, _ = dependence(kernel, X, nu, 1000)
    K = kernel.block(X[centers], X[centers])
    inverse = np.ones((1, 1))
    for j in range(1, len(centers)):
        r = inverse @ K[:j, j]
        left = 1.0 - K[:j, j] @ r
        inverse = np.block([[left * inverse + np.outer(r, r), -r[:, None]], [-r[None], np.ones((1, 1))]]) / left
    assert np.abs(inverse @ K - np.eye(len(K))).max() > 0.1

    recursion = Recursion(kernel, alpha, nu, 1000)
    state, _ = run(recursion, X, Y)
    assert state.m == len(centers) > 50
    assert_allclose(state.L @ state.L.T, K, atol=1e-13)
    exact = fit_on_centers(kernel, X, Y, np.ones(400), alpha, X[centers], X)
    singly, _ = run(recursion, X, Y, blocks=range(1, 400))
    assert_allclose(evaluate(recursion, singly, X), evaluate(recursion, state, X), atol=1e-6)
    assert_allclose(evaluate(recursion, state, X), exact, atol=1e-3)


@pytest.mark.parametrize("when_full", ["refuse", "replace"])
def test_a_full_dictionary_and_its_memory_do_not_grow(rng, when_full):
    X, Y = problem(rng, 6 * ROWS_AT_ONCE, d=6)
    recursion = Recursion(RBF(gamma=1.0), 0.1, 1e-3, 30, 0.999, when_full)
    state = start(1)
    sizes = set()
    for rows in np.split(np.arange(len(X)), 6):
        state, _ = learn_rows(recursion, state, X[rows], Y[rows], np.ones(len(rows)))
        sizes.add(
            (state.m, state.L.nbytes, state.R.nbytes, np.asarray(state.centers).nbytes, state.recent is None)
        )
    assert len(sizes - {next(iter(sizes))}) == 0
    assert state.m == 30


@pytest.mark.slow
def test_centers_follow_rows_that_move_where_they_may_be_replaced(rng):
    n = 4000
    X = rng.uniform(-1, 1, size=(n, 1)) + np.linspace(0, 10, n)[:, None]
    Y = np.sin(3 * X)
    errors = {}
    for when_full in ("refuse", "replace"):
        recursion = Recursion(RBF(gamma=2.0), 1e-2, 1e-3, 12, 0.995, when_full)
        _, before = run(recursion, X, Y)
        errors[when_full] = np.mean((before - Y)[n // 2 :] ** 2)
    assert errors["replace"] < 0.3 * errors["refuse"]


@pytest.mark.slow
def test_the_penalty_is_kept_while_rows_are_forgotten(rng):
    # Rows that no longer say anything of most centers: without a penalty their coefficients would drift away.
    X, Y = problem(rng, 300)
    recursion = Recursion(RBF(gamma=1.0), 0.1, 1e-3, 100, 0.98)
    state, _ = run(recursion, X, Y)
    still, _ = learn_rows(recursion, state, np.full((2000, 2), 0.5), np.ones((2000, 1)), np.ones(2000))
    assert np.abs(still.solve()[0]).max() <= 10.0
    assert_allclose(evaluate(recursion, still, np.full((1, 2), 0.5)), 1.0, atol=1e-2)
    assert 0.9 * recursion.alpha <= min(recursion.penalty(n) for n in range(100)) <= recursion.alpha


def test_sparse_rows_and_objects_are_learned_like_arrays(rng):
    X, Y = problem(rng, 80)
    dense = Recursion(RBF(gamma=1.0), 0.1, 1e-3, 20)
    expected = evaluate(dense, run(dense, X, Y, blocks=(9,))[0], X)
    sparse = scipy.sparse.csr_matrix(X)
    assert_allclose(evaluate(dense, run(dense, sparse, Y, blocks=(9,))[0], sparse), expected, atol=1e-8)
    kernel = FromCallable(pairwise(lambda x, z: np.exp(-np.sum((np.asarray(x) - np.asarray(z)) ** 2))))
    objects = replace(dense, kernel=kernel)
    rows = [tuple(x) for x in X]
    assert_allclose(evaluate(objects, run(objects, rows, Y, blocks=(9,))[0], rows), expected, atol=1e-8)


def test_a_row_that_the_model_repeats_has_no_output_without_itself(rng):
    """Where all but the last row are forgotten, its residual and one minus its leverage are zero."""
    X, Y = problem(rng, 4)
    recursion = Recursion(RBF(gamma=1.0), 0.1, 1e-3, 10, 1e-300)
    state, _ = run(recursion, X, Y, kept=4)
    outputs = loo_outputs(recursion, state, X, Y, np.array([0.0, 0.0, 0.0, 1.0]))
    assert np.isnan(outputs[-1]).all()
