"""Leaving rows out is refitting without them: closed forms against one linear system for every row.

The oracle works in extended precision, from its matrix on, so that what differs is the method's.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer._solvers import leave_one_out
from mercer._solvers.inverse_root import Projected
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.spectrum import Observations, decompose
from mercer.rows._distinct import distinct_rows, every_row

ALPHAS = 10.0 ** np.arange(-10, 7, 2)
LONG = np.longdouble
EPS = np.finfo(np.float64).eps


def eliminate(A, B):
    """A^-1 B for stacks of matrices in their own precision; rows times a number, of a definite A: no pivots."""
    A, B = A.copy(), B.copy()
    for j in range(A.shape[1]):
        factor = A[:, j + 1 :, j] / A[:, j, j, None]
        A[:, j + 1 :] -= factor[..., None] * A[:, j, None]
        B[:, j + 1 :] -= factor[..., None] * B[:, j, None]
    for j in reversed(range(A.shape[1])):
        B[:, j] = (B[:, j] - (A[:, j, j + 1 :, None] * B[:, j + 1 :]).sum(axis=1)) / A[:, j, j, None]
    return B


def refit(K, observations, alpha, kept, *, intercept):
    """f at the points (m, u, q) for each of the weights kept (m, n): (W K + alpha I) c + W 1 b = W y, 1'c = 0."""
    u, Y = len(K), observations.Y.astype(LONG)
    at = np.eye(u, dtype=LONG)[observations.rows.point]
    w = kept @ at
    A = np.zeros((len(kept), u + 1, u + 1), LONG)
    A[:, :u, :u] = w[:, :, None] * K.astype(LONG) + LONG(alpha) * np.eye(u)
    A[:, :u, u] = intercept * w
    A[:, u, :u], A[:, u, u] = intercept, not intercept
    B = np.zeros((len(kept), u + 1, Y.shape[1]), LONG)
    B[:, :u] = at.T @ (kept[:, :, None] * Y)
    solution = eliminate(A, B)
    return K.astype(LONG) @ solution[:, :u] + solution[:, u:]


def refit_without(K, observations, alphas, *, intercept=True, fold=None):
    """Outputs (a, n, q) of each row when its unit of weight, or all of its fold, is taken away."""
    n, weight = len(observations.Y), observations.weight.astype(LONG)
    if fold is None:
        kept = weight - np.diag(observations.unit.astype(LONG))
    else:
        kept = weight * (fold[:, None] != fold)
    own = observations.rows.point
    return np.array([refit(K, observations, a, kept, intercept=intercept)[range(n), own] for a in alphas])


def squared(K):
    """The matrix that stands for K where the penalty is c'c and every row stays a center."""
    return K.astype(LONG) @ K.astype(LONG).T


def assert_close(found, exact, tolerance):
    """Errors for every alpha, in units of the largest output or of the targets, whose size is one."""
    error = np.abs(found - exact).max(axis=(1, 2)) / np.maximum(np.abs(exact).max(axis=(1, 2)), 1.0)
    assert (error.astype(float) <= tolerance).all(), error


def narrow_rbf(rng, u):
    """Condition about ten."""
    X = rng.normal(size=(u, 4))
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2))


def random_features(rng, u):
    """Condition below a thousand: fewer features than rows, and a ridge."""
    Z = rng.normal(size=(u, max(u // 2, 1)))
    return Z @ Z.T / Z.shape[1] + 0.05 * np.eye(u)


def observed(rng, u, n, *, conflicting=True, q=2):
    """n rows at u points, weights on both sides of one."""
    point = np.r_[np.arange(u), rng.integers(u, size=n - u)]
    Y = rng.normal(size=(n, q))
    weight = rng.uniform(0.2, 3.0, n)
    rows = distinct_rows(point[:, None].astype(float))
    return Observations(Y if conflicting else Y[point], weight, np.minimum(weight, 1.0), rows)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("matrix", [narrow_rbf, random_features])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [3, 5, 12, 30])
def test_leave_one_out_equals_refitting(rng, n, intercept, matrix):
    K, observations = matrix(rng, n), observed(rng, n, n)
    found = loo_outputs(decompose(K, observations.point_weight, intercept=intercept), observations, ALPHAS)
    assert_close(found, refit_without(K, observations, ALPHAS, intercept=intercept), 1e-8)


@pytest.mark.slow
def test_leave_one_out_equals_refitting_for_sixty_rows(rng):
    K, observations = narrow_rbf(rng, 60), observed(rng, 60, 60)
    alphas = ALPHAS[[0, 4, 8]]
    found = loo_outputs(decompose(K, observations.point_weight), observations, alphas)
    assert_close(found, refit_without(K, observations, alphas), 1e-8)


@pytest.mark.parametrize("conflicting", [True, False], ids=["conflicting targets", "equal targets"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("u", "n"), [(2, 5), (8, 12), (20, 30)])
def test_leave_one_out_of_copies_equals_refitting(rng, u, n, intercept, conflicting):
    K, observations = narrow_rbf(rng, u), observed(rng, u, n, conflicting=conflicting)
    found = loo_outputs(decompose(K, observations.point_weight, intercept=intercept), observations, ALPHAS)
    assert_close(found, refit_without(K, observations, ALPHAS, intercept=intercept), 1e-8)


def test_leave_one_out_where_all_rows_are_one_point_is_the_mean_of_the_others(rng):
    Y = rng.normal(size=(4, 1))
    observations = Observations(Y, np.ones(4), np.ones(4), distinct_rows(np.zeros((4, 1))))
    for penalty in ("rkhs", "coef"):
        spectrum = decompose(np.ones((1, 1)), observations.point_weight, penalty=penalty)
        found = loo_outputs(spectrum, observations, np.array([0.3]))[0]
        assert_allclose(found, (Y.sum() - Y) / 3, rtol=1e-14)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("u", "n"), [(3, 3), (12, 12), (10, 15)])
def test_leave_one_out_with_the_penalty_on_coefficients_keeps_the_center(rng, u, n, intercept):
    K, observations = narrow_rbf(rng, u), observed(rng, u, n)
    spectrum = decompose(K, observations.point_weight, penalty="coef", intercept=intercept)
    found = loo_outputs(spectrum, observations, ALPHAS)
    assert_close(found, refit_without(squared(K), observations, ALPHAS, intercept=intercept), 1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_leave_one_out_of_an_ill_conditioned_matrix_loses_what_alpha_leaves_open(rng, intercept):
    x = np.sort(rng.normal(size=(20, 1)), axis=0)
    K, observations = np.exp(-0.1 * (x - x.T) ** 2), observed(rng, 20, 20)
    alphas = ALPHAS[2:]
    found = loo_outputs(decompose(K, observations.point_weight, intercept=intercept), observations, alphas)
    exact = refit_without(K, observations, alphas, intercept=intercept)
    # An error of K that is eps |K| moves the solution by eps |K| / alpha, and more than eps in any case.
    assert_close(found, exact, 50 * EPS * (1 + np.linalg.norm(K, 2) * 3.0 / alphas))


def test_leave_one_out_of_float32_values_is_as_good_as_they_are(rng):
    K, observations = narrow_rbf(rng, 30).astype(np.float32), observed(rng, 30, 30)
    spectrum = decompose(K, observations.point_weight)
    alphas = spectrum.trace * np.array([1e-2, 1e-1, 1.0, 10.0])
    # Eigenvalues below 4 eps32 sqrt(n) max diag count as zero; alpha damps the change by 1 / alpha.
    noise = 4 * np.finfo(np.float32).eps * np.sqrt(30) * observations.point_weight.max()
    assert_close(
        loo_outputs(spectrum, observations, alphas), refit_without(K, observations, alphas), 1e-8 + noise / alphas
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize(("u", "n", "folds"), [(12, 12, 3), (12, 12, 12), (20, 30, 4)])
def test_leaving_folds_out_equals_refitting_without_them(rng, u, n, folds, penalty, intercept):
    K, observations = narrow_rbf(rng, u), observed(rng, u, n)
    # The last rows are copies of first rows: their folds differ from those of their originals.
    fold = np.arange(n) % folds
    spectrum = decompose(K, observations.point_weight, penalty=penalty, intercept=intercept)
    found = loo_outputs(spectrum, observations, ALPHAS, fold)
    G = K if penalty == "rkhs" else squared(K)
    assert_close(found, refit_without(G, observations, ALPHAS, intercept=intercept, fold=fold), 1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_leaving_out_all_copies_of_a_row_together_equals_refitting(rng, intercept):
    K, observations = narrow_rbf(rng, 10), observed(rng, 10, 25)
    fold = observations.rows.point // 2
    spectrum = decompose(K, observations.point_weight, intercept=intercept)
    found = loo_outputs(spectrum, observations, ALPHAS, fold)
    assert_close(found, refit_without(K, observations, ALPHAS, intercept=intercept, fold=fold), 1e-8)


def test_folds_of_one_row_are_leave_one_out_where_no_weight_exceeds_one(rng):
    K, observations = narrow_rbf(rng, 15), observed(rng, 15, 20)
    weight = observations.weight / observations.weight.max()
    observations = Observations(observations.Y, weight, weight, observations.rows)
    spectrum = decompose(K, observations.point_weight)
    singles = loo_outputs(spectrum, observations, ALPHAS, np.arange(20))
    assert_allclose(singles, loo_outputs(spectrum, observations, ALPHAS), rtol=1e-9, atol=1e-9)


def test_folds_with_equally_many_points_are_solved_for_together(rng, monkeypatch):
    K, observations = narrow_rbf(rng, 60), observed(rng, 60, 60)
    shapes, solver = [], np.linalg.solve

    def counted(A, B):
        shapes.append(A.shape)
        return solver(A, B)

    monkeypatch.setattr(np.linalg, "solve", counted)
    fold = np.r_[np.arange(40) // 2, 20 + np.arange(20) // 5]
    loo_outputs(decompose(K, observations.point_weight), observations, ALPHAS[:1], fold)
    assert shapes == [(1, 20, 2, 2), (1, 4, 5, 5)]


def test_stacks_of_folds_in_little_memory_are_the_same(rng, monkeypatch):
    K, observations = narrow_rbf(rng, 30), observed(rng, 30, 40)
    spectrum, fold = decompose(K, observations.point_weight), rng.permutation(40) // 3
    whole = loo_outputs(spectrum, observations, ALPHAS, fold)
    for numbers in (1, 1000, 5000):
        monkeypatch.setattr(leave_one_out, "STACK_SIZE", numbers)
        assert_close(loo_outputs(spectrum, observations, ALPHAS, fold), whole, 1e-12)


def test_names_of_folds_do_not_matter(rng):
    K, observations = narrow_rbf(rng, 12), observed(rng, 12, 12)
    spectrum = decompose(K, observations.point_weight)
    fold = np.arange(12) % 3
    assert_array_equal(
        loo_outputs(spectrum, observations, ALPHAS, fold),
        loo_outputs(spectrum, observations, ALPHAS, np.array([70, -2, 5])[fold]),
    )


def test_unmerged_copies_give_the_same_as_merged_ones(rng):
    K, merged = narrow_rbf(rng, 8), observed(rng, 8, 12)
    point = merged.rows.point
    apart = Observations(merged.Y, merged.weight, merged.unit, every_row(12))
    found = loo_outputs(decompose(K[np.ix_(point, point)], apart.point_weight), apart, ALPHAS[2:])
    exact = loo_outputs(decompose(K, merged.point_weight), merged, ALPHAS[2:])
    # Conflicting copies ask for coefficients of size 1 / alpha on a singular matrix.
    assert_close(found, exact, 1e-10 + 500 * EPS / ALPHAS[2:])


@pytest.mark.slow
@given(
    u=st.integers(2, 10),
    copies=st.integers(0, 6),
    q=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
    exponent=st.floats(-8, 5),
    intercept=st.booleans(),
    in_folds=st.booleans(),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_leaving_out_equals_refitting_for_any_shape(u, copies, q, seed, exponent, intercept, in_folds):
    rng = np.random.default_rng(seed)
    n = u + copies
    K, base = random_features(rng, u), observed(rng, u, n, q=q)
    unit = base.weight * rng.choice([0.3, 0.9], n)
    observations = Observations(base.Y, base.weight, unit, base.rows)
    fold = rng.permutation(n) // 2 if in_folds and n > 2 else None
    alphas = np.array([10.0**exponent])
    spectrum = decompose(K, observations.point_weight, intercept=intercept)
    found = loo_outputs(spectrum, observations, alphas, fold)
    assert_close(found, refit_without(K, observations, alphas, intercept=intercept, fold=fold), 1e-8)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("matrix", [narrow_rbf, random_features])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("in_folds", [True, False])
@pytest.mark.parametrize(("u", "n"), [(3, 3), (12, 12), (12, 20)])
def test_leaving_out_by_the_factor_for_one_alpha_equals_refitting(rng, u, n, in_folds, intercept, matrix):
    K, observations = matrix(rng, u), observed(rng, u, n)
    fold = np.arange(n) % 3 if in_folds and n > 3 else None
    exact = refit_without(K, observations, ALPHAS, intercept=intercept, fold=fold)
    projected = Projected.of(K, observations.point_weight, intercept=intercept)
    found = [loo_outputs(projected.root(alpha), observations, np.array([alpha]), fold)[0] for alpha in ALPHAS]
    assert_close(np.array(found), exact, 1e-8)
