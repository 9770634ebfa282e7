"""Sparse least squares: greedy selection on an orthonormal basis, its path, rows left out with their center."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from mercer._linalg import supervised_pivots
from mercer._solvers import Observations
from mercer._solvers.orthogonal.basis import OrthogonalBasis
from mercer._solvers.orthogonal.candidates import CandidateColumns, Points
from mercer._solvers.orthogonal.folds import folds_of, held_out
from mercer._solvers.orthogonal.orders import SelectionRule, choose_order
from mercer._solvers.orthogonal.path import (
    along,
    fitted_at,
    follow,
    follow_orthogonal,
    loo_outputs,
    path_of,
    solution_at,
    state_at,
    states,
)
from mercer._solvers.orthogonal.prune import prune
from mercer._solvers.orthogonal.reestimate import negative_evidence, orthogonal_gcv, reestimate
from mercer._solvers.orthogonal.ridges import RidgeFit, marginal_deviance
from mercer._solvers.orthogonal.roots import independent
from mercer._solvers.orthogonal.stop import Judgement, number_of_centers, paired_errors
from mercer.datasets import make_ringnorm
from mercer.kernels import RBF, Precomputed
from mercer.rows._distinct import distinct_rows, every_row

ALPHA = 0.3
PENALTIES = ["rkhs", "coef", "diagonal", "orthogonal"]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)


@pytest.fixture(scope="module")
def problem():
    """Sixty rows of ringnorm, five of them twice, with two targets."""
    X, y = make_ringnorm(60, random_state=0)
    X = np.vstack([X, X[:5]])
    Y = np.column_stack([np.append(y, y[:5]), X[:, 0] ** 2]).astype(float)
    rows = distinct_rows(X)
    observations = Observations(Y, np.ones(65), np.ones(65), rows)
    return CandidateColumns((RBF(gamma=0.05),), X[rows.first], np.arange(60)), observations


def design(candidates, centers, penalty):
    """[1, K_S] at the points, the diagonal added for the penalty of that name."""
    K = candidates.shifted(ALPHA if penalty == "diagonal" else 0.0).columns(np.asarray(centers))
    return np.column_stack([np.ones(len(K)), K])


def penalty_matrix(candidates, observations, centers, penalty):
    """The matrix of the penalty over intercept and coefficients, from its definition."""
    m = len(centers)
    M = np.zeros((m + 1, m + 1))
    if penalty == "rkhs":
        M[1:, 1:] = candidates.among(np.asarray(centers), np.asarray(centers))
    elif penalty == "coef":
        M[1:, 1:] = np.eye(m)
    elif penalty == "orthogonal":
        root = np.sqrt(observations.point_weight)[:, None]
        R = np.linalg.qr(root * design(candidates, centers, penalty), mode="r")
        U = (R / np.diagonal(R)[:, None])[1:, 1:]
        M[1:, 1:] = U.T @ U
    return ALPHA * M


def solved(A, weight, Y, M):
    """Intercept and coefficients by the normal equations."""
    return np.linalg.solve(A.T @ (weight[:, None] * A) + M, A.T @ (weight[:, None] * Y))


@every_penalty
def test_coefficients_solve_the_penalized_normal_equations(problem, penalty):
    candidates, observations = problem
    centers = np.array([3, 50, 11, 27, 40, 8])
    steps = follow(candidates, observations, centers, ALPHA, penalty)
    for m in (1, 4, 6):
        found = solution_at(steps, observations, m)
        A = design(candidates, centers[:m], penalty)
        M = penalty_matrix(candidates, observations, centers[:m], penalty)
        expected = solved(A, observations.point_weight, observations.point_target, M)
        assert_allclose(np.vstack([found.intercept, found.coef]), expected, rtol=1e-9, atol=1e-12)


@every_penalty
def test_a_row_leaves_with_its_center_as_if_refitted(problem, penalty):
    candidates, observations = problem
    centers = np.array([3, 50, 11, 27, 40, 8])
    steps = follow(candidates, observations, centers, ALPHA, penalty)
    M = penalty_matrix(candidates, observations, centers, penalty)
    A = design(candidates, centers, penalty)
    closed = loo_outputs(steps, state_at(steps, 6), observations)
    point = observations.rows.point
    for i in range(65):
        weight = observations.point_weight.copy()
        weight[point[i]] -= 1.0
        alone = weight[point[i]] == 0
        stays = np.array([True, *((centers != point[i]) | ~alone)])
        target = observations.point_target
        if not alone:
            other = np.flatnonzero((point == point[i]) & (np.arange(65) != i))
            target = target.copy()
            target[point[i]] = observations.Y[other[0]]
        coef = solved(A[:, stays], weight, target, M[np.ix_(stays, stays)])
        assert_allclose(closed[i], A[point[i], stays] @ coef, rtol=1e-8, atol=1e-10)


@every_penalty
def test_the_path_is_what_every_beginning_gives_alone(problem, penalty):
    candidates, observations = problem
    steps = follow(candidates, observations, np.array([3, 50, 11, 27]), ALPHA, penalty)
    path = path_of(steps, observations, cost=2.0)
    n, point = 65.0, observations.rows.point
    for m in (1, 3, 4):
        A = design(candidates, steps.order[:m], penalty)
        w, M = observations.point_weight, penalty_matrix(candidates, observations, steps.order[:m], penalty)
        coef = solved(A, w, observations.point_target, M)
        residual = observations.Y - (A @ coef)[point]
        rss = (residual**2).sum()
        H = A @ np.linalg.solve(A.T @ (w[:, None] * A) + M, A.T * w)
        df = 1.0 + 2.0 * (np.trace(H) - 1.0)
        assert path.rss[m - 1] == pytest.approx(rss)
        assert path.objective[m - 1] == pytest.approx(rss + np.einsum("iq,ij,jq->", coef, M, coef))
        assert path.degrees_of_freedom[m - 1] == pytest.approx(df)
        assert path.gcv[m - 1] == pytest.approx(n * rss / (n - df) ** 2)
        assert path.bic[m - 1] == pytest.approx(n * np.log(rss / n) + df * np.log(n))
        assert path.max_residual[m - 1] == pytest.approx(np.abs(residual).max())
        left = observations.Y - loo_outputs(steps, state_at(steps, m), observations)
        assert path.loo[m - 1] == pytest.approx((left**2).sum() / n)


def test_growing_states_are_those_of_each_number_alone(problem):
    candidates, observations = problem
    steps = follow(candidates, observations, np.arange(10), ALPHA, "rkhs")
    for state in states(steps):
        alone = state_at(steps, state.m)
        for name in ("F", "leverage", "t", "u", "c"):
            assert_allclose(getattr(state, name), getattr(alone, name), rtol=1e-10, atol=1e-12)


def naive_gain_order(candidates, observations, penalty, most):
    """Solve anew for every candidate at every step; Mika (2002), Figure 3.3."""
    chosen = []
    w, Y = observations.point_weight, observations.point_target

    def objective(centers):
        A = design(candidates, centers, penalty)
        M = penalty_matrix(candidates, observations, centers, penalty)
        coef = solved(A, w, Y, M)
        return w @ ((Y - A @ coef) ** 2).sum(axis=1) + np.einsum("iq,ij,jq->", coef, M, coef)

    for _ in range(most):
        rest = [j for j in range(len(candidates)) if j not in chosen]
        chosen.append(min(rest, key=lambda j: objective([*chosen, j])))
    return chosen


@pytest.mark.sampled(1)
@pytest.mark.parametrize("penalty", ["rkhs", "coef", "diagonal"])
@pytest.mark.parametrize("n_candidates", [None, 1000])
def test_gain_is_the_largest_decrease_of_the_objective(problem, penalty, n_candidates, rng):
    candidates, observations = problem
    choice = SelectionRule("gain", n_candidates, penalty)
    order = choose_order(candidates, Points.of(observations), choice, ALPHA, 6, rng)
    assert_array_equal(order.centers, naive_gain_order(candidates, observations, penalty, 6))


def test_few_random_candidates_gain_less_but_are_all_different(problem, rng):
    candidates, observations = problem
    few = choose_order(candidates, Points.of(observations), SelectionRule("gain", 5), ALPHA, 20, rng).centers
    all_ = choose_order(candidates, Points.of(observations), SelectionRule("gain"), ALPHA, 20, rng).centers
    assert len(set(few)) == 20
    objective = [
        path_of(follow(candidates, observations, o, ALPHA, "rkhs"), observations, 1.0).objective
        for o in (few, all_)
    ]
    assert objective[0][0] > objective[1][0]


def pseudodiscriminant(K, y, epsilon, m):
    """Andelić (2007), Algorithm 1, as printed, from the residual y - mean: centers, coefficients, K†, K."""
    n = len(y)
    columns, inverse = np.ones((n, 1)), np.ones((1, n)) / n
    e, chosen = y - y.mean(), []
    for _ in range(m):
        free = np.setdiff1d(np.arange(n), chosen)
        i = int(free[np.abs(e[free]).argmax()])
        k = K[:, i].copy()
        k[i] += epsilon
        h = inverse @ k
        q = k - columns @ h
        e = e - (q @ y) / (q @ q) * q
        inverse = np.vstack([inverse - np.outer(h, q) / (q @ q), q / (q @ q)])
        columns = np.column_stack([columns, k])
        chosen.append(i)
    return chosen, inverse @ y, inverse, columns


def rows_in_the_plane(n, rng):
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    y = np.sign(np.sin(4.0 * X[:, 0]) + X[:, 1]) + 0.0
    return X, y, Observations(y[:, None], np.ones(n), np.ones(n), distinct_rows(X))


def plain_candidates(X, kernel):
    """Rows as they are, not sorted."""
    return CandidateColumns((kernel,), X, np.arange(len(X)))


def unsorted(y):
    from mercer.rows._distinct import every_row

    return Observations(y[:, None], np.ones(len(y)), np.ones(len(y)), every_row(len(y)))


def test_residual_selection_is_the_pseudodiscriminant_where_that_is_stable(rng):
    X, y, _ = rows_in_the_plane(80, rng)
    candidates, observations = plain_candidates(X, RBF(gamma=5.0)), unsorted(y)
    chosen, coef, *_ = pseudodiscriminant(RBF(gamma=5.0).block(X, X), y, 0.1, 15)
    order = choose_order(
        candidates, Points.of(observations), SelectionRule("residual", penalty="diagonal"), 0.1, 15, rng
    ).centers
    assert_array_equal(order, chosen)
    found = solution_at(follow(candidates, observations, order, 0.1, "diagonal"), observations, 15)
    assert_allclose(np.append(found.intercept, found.coef), coef, rtol=1e-8)


def test_the_printed_recursion_loses_its_inverse_silently_and_ours_does_not(rng):
    X, y, _ = rows_in_the_plane(600, rng)
    kernel = RBF(gamma=1.0 / (2 * 0.3**2))
    chosen, coef, inverse, columns = pseudodiscriminant(kernel.block(X, X), y, 0.0, 60)
    best = np.linalg.lstsq(columns, y, rcond=None)[0]
    least = np.linalg.norm(y - columns @ best)
    assert np.linalg.cond(columns) < 1e7
    assert np.abs(inverse @ columns - np.eye(61)).max() > 1.0
    assert np.linalg.norm(coef - best) > 1e-2 * np.linalg.norm(best)
    # The residual does not show it.
    assert np.linalg.norm(y - columns @ coef) < least * (1.0 + 1e-4)
    candidates, observations = plain_candidates(X, kernel), unsorted(y)
    found = solution_at(follow(candidates, observations, chosen, 0.0, "diagonal"), observations, 60)
    ours = np.append(found.intercept, found.coef)
    assert np.linalg.norm(y - columns @ ours) <= least * (1.0 + 1e-12)
    assert_allclose(ours, best, rtol=1e-6)


@pytest.mark.parametrize("condition", 10.0 ** np.arange(2, 15, 2))
def test_the_basis_stays_orthonormal_whatever_the_condition(condition, rng):
    U = np.linalg.qr(rng.normal(size=(200, 40)))[0]
    V = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    A = U @ np.diag(np.geomspace(1.0, 1.0 / condition, 40)) @ V
    basis = OrthogonalBasis(200, tolerance=1e-16)
    assert all(basis.append(a) for a in A.T)
    assert np.abs(basis.Q.T @ basis.Q - np.eye(40)).max() < 1e-14
    assert np.abs(basis.Q @ basis.R - A).max() < 1e-14
    y = rng.normal(size=(200, 1))
    expected = np.linalg.lstsq(A, y, rcond=None)[0]
    # Perturbation of least squares: condition times the precision, with a residual that is not small.
    found = np.linalg.solve(basis.R, basis.Q.T @ y)
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < 1e-14 * condition * max(1.0, condition * 1e-2)
    assert np.linalg.norm(y - A @ found) <= np.linalg.norm(y - A @ expected) * (1.0 + 1e-3)


@pytest.mark.parametrize("condition", 10.0 ** np.arange(2, 15, 2))
@pytest.mark.parametrize("penalty", ["coef", "diagonal"])
def test_coefficients_are_those_of_dense_least_squares_at_every_condition(condition, penalty, rng):
    n, m = 80, 20
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    K = (V * np.geomspace(1.0, 1.0 / condition, n)) @ V.T
    K, y, alpha = 0.5 * (K + K.T), rng.normal(size=n), 1e-3 / condition
    candidates, observations = CandidateColumns((Precomputed(),), K, np.arange(n)), unsorted(y)
    steps = follow(candidates, observations, np.arange(m), alpha, penalty)
    A = np.column_stack([np.ones(n), K[:, :m]])
    root = np.zeros((m, m + 1))
    if penalty == "coef":
        root[:, 1:] = np.sqrt(alpha) * np.eye(m)
    else:
        A[np.arange(m), np.arange(1, m + 1)] += alpha
    full, target = np.vstack([A, root]), np.append(y, np.zeros(m))
    expected = np.linalg.lstsq(full, target, rcond=None)[0]
    found = solution_at(steps, observations, m)
    ours = np.append(found.intercept, found.coef)
    kappa = np.linalg.cond(full)
    assert np.linalg.norm(ours - expected) <= 1e-14 * kappa**2 * np.linalg.norm(expected)
    assert np.linalg.norm(target - full @ ours) <= np.linalg.norm(target - full @ expected) * (1.0 + 1e-8)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("selection", ["gain", "residual", "orthogonal"])
@pytest.mark.parametrize(
    ("gamma", "dtype"),
    [(1e-6, np.float64), *[(gamma, dtype) for gamma in (1e-3, 1.0, 1e3) for dtype in (np.float64, np.float32)]],
)
def test_selection_survives_kernels_of_any_width_in_either_precision(selection, gamma, dtype, rng):
    X, y, _ = rows_in_the_plane(120, rng)
    candidates, observations = plain_candidates(X.astype(dtype), RBF(gamma=gamma)), unsorted(y)
    penalty = "orthogonal" if selection == "orthogonal" else "rkhs"
    rule = SelectionRule("gain" if selection == "orthogonal" else selection, penalty=penalty)
    order = choose_order(candidates, Points.of(observations), rule, None, 60, rng)
    steps = follow(candidates, observations, order.centers, 1e-6, penalty)
    path = path_of(steps, observations, 1.0)
    assert len(set(order.centers)) == len(order.centers) >= 1
    assert np.isfinite(path.loo).all()
    assert (np.diff(path.objective) <= 1e-9 * path.objective[0]).all()


def test_copies_of_a_center_are_refused(rng):
    X, y, _ = rows_in_the_plane(30, rng)
    X = np.repeat(X, 2, axis=0)
    candidates, observations = plain_candidates(X, RBF(gamma=2.0)), unsorted(np.repeat(y, 2))
    for selection in ("gain", "residual"):
        order = choose_order(candidates, Points.of(observations), SelectionRule(selection), 1e-8, 60, rng).centers
        kept, _ = independent(candidates, order)
        assert len(np.unique(X[kept], axis=0)) == len(kept)
    steps = follow(candidates, observations, np.arange(60), 1e-3, "rkhs")
    assert len(steps.order) <= 30


def test_penalties_of_orthogonal_least_squares_are_the_textbook_s(problem):
    candidates, observations = problem
    points, centers = Points.of(observations), np.array([3, 50, 11, 27, 40])
    Q = np.linalg.qr(points.weighted(candidates.columns(centers)))
    d, z = np.diagonal(Q.R) ** 2, Q.Q.T @ points.target
    A = Q.Q * np.sqrt(d)
    P = np.eye(60) - A @ np.linalg.solve(A.T @ A + 0.7 * np.eye(5), A.T)
    y, n = points.target, observations.weight.sum()
    naive = n * np.sum((P @ y) ** 2) / (np.trace(P) - 60 + n - 1) ** 2
    square, total = (z**2).sum(axis=1), float((y**2).sum())
    alphas = np.array([0.7])
    assert orthogonal_gcv(d, square, total, n, alphas) == pytest.approx(naive)
    C = np.eye(60) + A @ A.T / 0.7
    misfit = np.sum(y * np.linalg.solve(C, y))
    expected = (n - 1) * 2 * np.log(misfit) + 2 * np.linalg.slogdet(C)[1]
    assert negative_evidence(d, square, total, n, 2, alphas) == pytest.approx(expected)


@pytest.mark.parametrize("estimate", ["gcv", "evidence"])
def test_the_penalty_is_re_estimated_at_the_least_of_its_criterion(problem, estimate):
    candidates, observations = problem
    points = Points.of(observations)
    Q = np.linalg.qr(points.weighted(candidates.columns(np.arange(25))))
    d, z = np.diagonal(Q.R) ** 2, Q.Q.T @ points.target
    square, total, n = (z**2).sum(axis=1), float((points.target**2).sum()), points.weight.sum()

    def value(alphas):
        if estimate == "gcv":
            return orthogonal_gcv(d, square, total, n, alphas)
        return negative_evidence(d, square, total, n, 2, alphas)

    best = value(np.array([reestimate(d, z, points, estimate, 1.0)]))
    assert best <= value(np.geomspace(1e-6, 1e3, 400)).min() * (1.0 + 1e-6)


@pytest.mark.parametrize("given", [None, 1e-3, 3.0])
def test_order_recursive_least_squares_takes_the_largest_residual_of_the_penalized_fit(rng, given):
    X, y, _ = rows_in_the_plane(80, rng)
    observations, K = unsorted(y), RBF(gamma=0.5).block(X, X)
    choice = SelectionRule("residual", penalty="orthogonal")
    order = choose_order(plain_candidates(X, RBF(gamma=0.5)), Points.of(observations), choice, given, 8, rng)
    assert given is None or (order.alpha == given).all()
    # Andelić (2007), Algorithm 2, by explicit projections.
    t, Q = y - y.mean(), np.zeros((80, 0))
    residual = t
    for j, alpha in zip(order.centers, order.alpha):
        free = np.setdiff1d(np.arange(80), order.centers[: Q.shape[1]])
        assert j == free[np.abs(residual[free]).argmax()]
        k = K[:, j] - K[:, j].mean()
        Q = np.column_stack([Q, k - Q @ np.linalg.lstsq(Q, k, rcond=None)[0]])
        residual = t - Q @ (Q.T @ t / (alpha + (Q**2).sum(axis=0)))


def test_a_penalty_that_changes_from_step_to_step_fits_as_if_it_had_been_constant(problem, rng):
    candidates, observations = problem
    choice = SelectionRule("gain", penalty="orthogonal")
    order = choose_order(candidates, Points.of(observations), choice, None, 8, rng)
    changing = follow_orthogonal(candidates, observations, order.centers, order.alpha)
    for m in (1, 5, 8):
        constant = follow(candidates, observations, order.centers[:m], order.alpha[m - 1], "orthogonal")
        states_ = state_at(changing, m), state_at(constant, m)
        outputs = [
            (fitted_at(s, state, observations), loo_outputs(s, state, observations))
            for s, state in zip((changing, constant), states_)
        ]
        assert_allclose(outputs[0], outputs[1], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("penalty", ["rkhs", "coef", "orthogonal"])
def test_centers_have_the_left_out_outputs_and_the_gcv_of_every_alpha(problem, penalty):
    candidates, observations = problem
    centers = np.arange(0, 40, 3)
    fits = RidgeFit.of(candidates, observations, centers, penalty)
    others = np.flatnonzero(~np.isin(observations.rows.point, centers))
    alphas = np.array([1e-3, 1.0, 50.0])
    for alpha, found, gcv in zip(alphas, fits.loo_outputs(alphas, others), fits.gcv(alphas, 1.5)):
        steps = follow(candidates, observations, centers, alpha, penalty)
        expected = loo_outputs(steps, state_at(steps, len(centers)), observations)[others]
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
        assert gcv == pytest.approx(path_of(steps, observations, 1.5).gcv[-1], rel=1e-6)
    assert fits.unit > 0.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("penalty", ["rkhs", "coef", "diagonal"])
@pytest.mark.parametrize("n_folds", [3, 100])
def test_held_out_rows_are_predicted_by_refits_with_centers_selected_without_their_fold(problem, penalty, n_folds):
    candidates, observations = problem
    rule, point = SelectionRule("residual", penalty=penalty), observations.rows.point
    folds = folds_of(candidates, observations, n_folds, np.random.default_rng(0))
    assert_array_equal(np.sort(np.concatenate([fold.rows for fold in folds])), np.arange(65))
    orders = [fold.order(rule, ALPHA, 6, np.random.default_rng(0)) for fold in folds]
    fits = [
        (fold.rows, along(fold.candidates, observations, order, ALPHA, penalty))
        for fold, order in zip(folds, orders)
    ]
    (outputs,) = held_out(fits, [observations], np.array([2, 6, 50]))
    assert_array_equal(outputs[2], outputs[1])
    for fold in folds:
        others = np.setdiff1d(np.arange(60), point[fold.rows])
        there = CandidateColumns(candidates.kernels, candidates.X[others], np.arange(len(others)))
        at_others = observations.at_points(others)[0]
        centers = others[
            choose_order(there, Points.of(at_others), rule, ALPHA, 6, np.random.default_rng(0)).centers
        ]
        for m, found in zip((2, 6), outputs):
            M = penalty_matrix(candidates, observations, centers[:m], penalty)
            A = design(candidates, centers[:m], penalty)[point]
            for i in fold.rows:
                coef = solved(A, (np.arange(65) != i).astype(float), observations.Y, M)
                assert_allclose(found[i], A[i] @ coef, rtol=1e-8, atol=1e-9)


def test_a_fold_has_as_many_candidates_as_there_are(problem, rng):
    candidates, observations = problem
    few = replace(candidates, pool=np.arange(0, 60, 3))
    for fold in folds_of(few, observations, 3, rng):
        assert len(fold.candidates) == len(fold.others) == 20
        assert not np.isin(fold.candidates.pool, observations.rows.point[fold.rows]).any()
        others, every = np.setdiff1d(np.arange(60), observations.rows.point[fold.rows]), np.arange(20)
        assert_allclose(fold.others.columns(every), fold.candidates.columns(every)[others], rtol=1e-12)


def test_folds_have_the_shares_of_all_classes():
    y = np.repeat([-1.0, 1.0], [20, 40])
    X = np.random.default_rng(0).normal(size=(60, 2))
    folds = folds_of(plain_candidates(X, RBF(gamma=0.5)), unsorted(y), 5, np.random.default_rng(0))
    assert [(y[fold.rows] < 0).sum() for fold in folds] == [4] * 5
    assert [(y[fold.rows] > 0).sum() for fold in folds] == [8] * 5


def ranked(score, y):
    """The probability that a row of +1 has the larger score than one of -1."""
    return np.mean(score[y > 0][:, None] > score[y < 0])


@pytest.mark.parametrize("heavy", [1.0, 1e8, 1e10, 1e12])
def test_a_heavy_row_leaves_as_if_it_had_not_been_there(rng, heavy):
    X, y, kernel = rng.normal(size=(30, 2)), rng.normal(size=30), RBF(gamma=0.5)
    weight = np.where(np.arange(30) == 7, heavy, 1.0)
    observations = Observations(y[:, None], weight, weight, distinct_rows(X))
    candidates = CandidateColumns((kernel,), X[observations.rows.first], np.arange(30))
    others = np.flatnonzero(np.arange(30) != observations.rows.point[7])[:6]
    steps = follow(candidates, observations, others, 1e-3, "rkhs")
    found = loo_outputs(steps, state_at(steps, 6), observations)[7, 0]
    rest, Z = np.arange(30) != 7, X[observations.rows.first][steps.order]
    K, mean = kernel.block(X, Z), kernel.block(X[rest], Z).mean(axis=0)
    G = (K[rest] - mean).T @ (K[rest] - mean) + 1e-3 * kernel.block(Z, Z)
    exact = (K[7] - mean) @ np.linalg.solve(G, (K[rest] - mean).T @ y[rest]) + y[rest].mean()
    # One minus the leverage is one over the weight, which loses as many digits as the weight has.
    assert_allclose(found, exact, atol=1e-8 + 1e-15 * heavy)


def test_a_kept_center_would_know_the_label_of_the_row_that_left(rng):
    found = []
    for _ in range(5):
        # Labels are noise: nothing can be known about them.
        X, y = rng.normal(size=(200, 5)), rng.choice([-1.0, 1.0], 200)
        candidates, observations = plain_candidates(X, RBF(gamma=0.5)), unsorted(y)
        order = choose_order(candidates, Points.of(observations), SelectionRule("gain"), 0.01, 100, rng).centers
        steps = follow(candidates, observations, order, 0.01, "rkhs")
        state = state_at(steps, len(steps.order))
        kept = y - (y - fitted_at(steps, state, observations)[:, 0]) / (1.0 - state.leverage - 1 / 200)
        found.append([ranked(kept, y), ranked(loo_outputs(steps, state, observations)[:, 0], y)])
    with_center, without = np.mean(found, axis=0)
    assert with_center > 0.7
    assert without < 0.58


def test_backward_elimination_drops_what_is_missed_least(problem):
    candidates, observations = problem
    centers = np.array([3, 50, 11, 27, 40, 8])
    order = prune(follow(candidates, observations, centers, ALPHA, "coef"), 6)
    staying = list(centers)
    for gone in order[::-1][:-1]:
        objective = {
            j: path_of(
                follow(candidates, observations, [i for i in staying if i != j], ALPHA, "coef"), observations, 1.0
            ).objective[-1]
            for j in staying
        }
        assert gone == min(objective, key=objective.get)
        staying.remove(gone)


def test_a_single_good_number_of_centers_may_be_luck(problem):
    candidates, observations = problem
    path = path_of(follow(candidates, observations, np.arange(30), ALPHA, "rkhs"), observations, 1.0)
    scores = np.array([1.0, 0.8, 0.4, 0.7, 0.6, np.nan, 0.5, 0.5])
    judgement = Judgement(np.array([1, 2, 3, 5, 8, 12, 20, 30]), scores, np.zeros(8))
    assert number_of_centers(path, "loo", 0.0, judgement) == 3
    assert number_of_centers(path, "loo", 0.0, judgement.smoothed) == 20


def test_the_number_of_centers_follows_its_rule(problem):
    candidates, observations = problem
    steps = follow(candidates, observations, np.arange(30), ALPHA, "rkhs")
    path = path_of(steps, observations, 1.0)
    judgement = Judgement(np.array([1, 5, 30]), np.array([1.0, 0.505, 0.5]), np.zeros(3))
    unsure = replace(judgement, errors=np.array([0.1, 0.006, 0.0]))
    assert number_of_centers(path, "loo", 0.0, unsure, 1.0) == 5
    assert number_of_centers(path, "loo", 0.0, unsure) == 30
    assert number_of_centers(path, None, 0.0, judgement) == 30
    assert number_of_centers(path, "loo", 0.02, judgement) == 5
    assert number_of_centers(path, "loo", 0.0, judgement) == 30
    assert number_of_centers(path, "gcv", 0.0, judgement) == path.gcv.argmin() + 1
    assert number_of_centers(path, "bic", 0.0, judgement) == path.bic.argmin() + 1
    limit = path.max_residual[7]
    m = number_of_centers(path, "residual", limit, judgement)
    assert path.max_residual[m - 1] <= limit
    assert (path.max_residual[: m - 1] > limit).all()
    slow = number_of_centers(path, "improvement", 0.02, judgement)
    assert (path.objective[slow - 6] - path.objective[slow - 1]) / path.objective[slow - 6] / 5 < 0.02


def test_error_of_a_difference_is_that_of_pairs(rng):
    n = 40
    parts = rng.normal(size=(3, n)) / n
    single = Observations(np.zeros((n, 1)), np.full(n, 2.0), np.full(n, 2.0), every_row(n))
    assert_allclose(paired_errors(parts, single), parts.std(axis=1, ddof=1) * np.sqrt(n), rtol=1e-12)
    copies = rng.integers(1, 4, n)
    repeated = Observations(np.zeros((copies.sum(), 1)), *np.ones((2, copies.sum())), every_row(copies.sum()))
    counted = replace(single, weight=copies.astype(float), unit=np.ones(n))
    expected = paired_errors(np.repeat(parts, copies, axis=1), repeated)
    assert_allclose(paired_errors(parts * copies, counted), expected, rtol=1e-12)


def test_evidence_is_the_likelihood_of_all_contrasts_of_the_rows(problem):
    candidates, observations = problem
    at_row = observations.rows.point
    K = candidates.columns(np.arange(60))[np.ix_(at_row, at_row)]
    T = scipy.linalg.null_space(np.ones((1, 65)))
    alphas = np.array([0.01, 1.0])
    for alpha, found in zip(alphas, marginal_deviance(candidates, observations, alphas)):
        C, y = T.T @ (np.eye(65) + K / alpha) @ T, T.T @ observations.Y
        misfit = np.sum(y * np.linalg.solve(C, y), axis=0)
        assert found == pytest.approx(64 * np.log(misfit).sum() + 2 * np.linalg.slogdet(C)[1])


def test_pivots_of_the_gram_matrix_are_those_of_the_columns(problem, rng):
    candidates, observations = problem
    points = Points.of(observations)
    A = points.weighted(candidates.columns(np.arange(60)))
    expected = [
        j
        for j, _ in zip(
            supervised_pivots(A.T @ A + ALPHA * np.eye(60), A.T @ points.target, np.zeros(60)), range(5)
        )
    ]
    order = choose_order(candidates, points, SelectionRule("gain", penalty="coef"), ALPHA, 5, rng).centers
    assert_array_equal(order, expected)


def test_one_point_has_one_center_whatever_the_widths(problem, rng):
    candidates, observations = problem
    wide = CandidateColumns((RBF(gamma=0.05), RBF(gamma=0.5), RBF(gamma=0.005)), candidates.X, candidates.pool)
    for choice in (
        SelectionRule("gain", penalty="coef"),
        SelectionRule("residual", penalty="coef"),
        SelectionRule("gain", penalty="orthogonal"),
        SelectionRule("residual", penalty="orthogonal"),
    ):
        alpha = None if choice.penalty == "orthogonal" else ALPHA
        order = choose_order(wide, Points.of(observations), choice, alpha, 20, rng).centers
        assert len(set(wide.point(order))) == len(order) == 20
        assert len(set(wide.kernel_number(order))) > 1
    K = wide.columns(np.array([61]))
    assert_allclose(K[:, 0], RBF(gamma=0.5).block(candidates.X, candidates.X[[1]])[:, 0])


def test_triangular_root_of_the_kernel_matrix(problem):
    candidates, _ = problem
    kept, P = independent(candidates, np.arange(20))
    assert_array_equal(kept, np.arange(20))
    assert_allclose(P.T @ P, candidates.among(kept, kept), atol=1e-12)
    assert_allclose(P, scipy.linalg.cholesky(candidates.among(kept, kept)), atol=1e-12)
