"""Factors reproduce their matrices, and say what was changed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from mercer._linalg import (
    Reflector,
    eigen,
    eigen_psd,
    factor_spd,
    limit_threads,
    singular,
    supervised_pivots,
)
from mercer._linalg.lapack import (
    PANEL_ROWS,
    STRIP_COLUMNS,
    cholesky_upper,
    inverse_upper,
    multiply,
    orthogonalized,
    solve_triangular,
)
from mercer._linalg.pivoted import PIVOT_PANEL
from mercer._linalg.rank import (
    forms_upper,
    in_coordinates,
    norms_upper,
    rank_factor,
    square_upper,
    times_upper,
)
from mercer._linalg.threads import INTERRUPTIBLE_ROWS
from mercer.errors import NumericalError

EPS = np.finfo(np.float64).eps
# Rows of a matrix that is factored in panels.
LARGE = PANEL_ROWS + 7


def semidefinite(rng, n, rank):
    Z = rng.normal(size=(n, rank))
    return Z @ Z.T


def full(lower):
    """The symmetric matrix with this lower triangle."""
    return np.tril(lower) + np.tril(lower, -1).T


def householder(s):
    """I - 2 v v' with v along s + |s| e_1 or s - |s| e_1, the longer of the two."""
    v = s.copy()
    v[0] += np.copysign(np.linalg.norm(s), s[0])
    return np.eye(len(s)) - 2 * np.outer(v, v) / (v @ v)


def test_cholesky_factor_solves_without_shift(rng):
    A, B = semidefinite(rng, 20, 30), rng.normal(size=(20, 3))
    factor = factor_spd(A.copy())
    assert factor.shift == 0.0
    assert_allclose(A @ factor.solve(B), B, atol=1e-10)
    assert_allclose((factor.half_solve(B) ** 2).sum(axis=0), (B * np.linalg.solve(A, B)).sum(axis=0), rtol=1e-9)


def test_singular_matrix_is_factored_with_a_shift_that_is_told(rng):
    A = semidefinite(rng, 30, 3)
    factor = factor_spd(A.copy())
    lower = np.tril(factor.lower)
    assert factor.shift <= 1e6 * 30 * EPS * np.diagonal(A).max()
    assert_allclose(lower @ lower.T, A + factor.shift * np.eye(30), atol=1e-11)


def test_indefinite_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="indefinite"):
        factor_spd(np.diag([1.0, -0.5]))


def test_matrix_without_rows_is_its_own_factor():
    factor = factor_spd(np.zeros((0, 0)))
    assert factor.shift == 0.0
    assert factor.half_solve(np.zeros((0, 3))).shape == (0, 3)


def test_matrices_without_eigenvalues_are_refused_with_a_remedy(monkeypatch):
    # LAPACK says with a positive number that it did not converge.
    monkeypatch.setattr(eigen, "eigenvectors", lambda A: (np.zeros(len(A)), 1))
    monkeypatch.setattr(eigen, "singular_values", lambda A: (A, A[0], A, 1))
    with pytest.raises(NumericalError, match=r"eigenvalues of a matrix of shape \(2, 2\).*scale the features"):
        eigen_psd(np.eye(2))
    with pytest.raises(NumericalError, match=r"singular values of a matrix of shape \(2, 2\).*scale the features"):
        singular(np.eye(2), noise=0.0)


def test_eigen_reproduces_the_matrix_and_its_rank(rng):
    A = semidefinite(rng, 20, 7)
    eigen = eigen_psd(A.copy(order="F"))
    assert eigen.rank == np.count_nonzero(eigen.values)
    assert eigen.negative == 0.0
    assert_allclose((eigen.vectors * eigen.values) @ eigen.vectors.T, A, atol=1e-12)


@pytest.mark.parametrize("decomposed", [eigen_psd, lambda A: singular(A, noise=0.0)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(decomposed, value):
    with pytest.raises(NumericalError, match="not finite"):
        decomposed(np.diag([1.0, value]))


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_very_large_and_small_matrices_have_the_eigenvectors_of_usual_ones(rng, size):
    A = semidefinite(rng, 12, 12)
    usual, extreme = eigen_psd(A.copy(order="F")), eigen_psd(np.asfortranarray(A * size))
    assert_allclose(extreme.values, usual.values * size, rtol=1e-10)
    assert_allclose(np.abs((extreme.vectors * usual.vectors).sum(axis=0)), 1.0, rtol=1e-10)


def large(n=2 * STRIP_COLUMNS + 100):
    """A matrix of three strips."""
    X = np.random.default_rng(3).normal(size=(n, 4))
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2))


DECOMPOSITIONS = {
    "eigen": lambda A: (eigen_psd(A).values, eigen_psd(A.copy(order="F")).vectors),
    "singular": lambda A: singular(A, noise=0.0)[:3],
    "cholesky": lambda A: (factor_spd(A).lower, factor_spd(A).solve(A)),
    "rank": lambda A: (rank_factor(A, tolerance=1e-10).R,),
    "triangular": lambda A: (solve_triangular(np.triu(A) + np.eye(len(A)), A),),
}


@pytest.mark.slow
@pytest.mark.parametrize("limit", [limit_threads, threadpool_limits])
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_bits_of_a_decomposition_do_not_depend_on_the_number_of_threads(name, limit):
    results = []
    for threads in (1, 2, 5):
        with limit(threads):
            results.append(DECOMPOSITIONS[name](large()))
    for other in results[1:]:
        assert all((a == b).all() for a, b in zip(results[0], other, strict=True))


def test_singular_triangles_are_refused(rng):
    R = np.triu(rng.normal(size=(5, 5)))
    R[2, 2] = 0.0
    with pytest.raises(NumericalError, match=r"shape \(5, 5\) is singular"):
        solve_triangular(R, np.eye(5))


@pytest.mark.parametrize("n", [7, INTERRUPTIBLE_ROWS + 1])
def test_orthogonalized_columns_span_the_same_space(rng, n):
    A = rng.normal(size=(n, 5))
    Q, R = orthogonalized(A)
    assert_allclose(Q.T @ Q, np.eye(5), atol=1e-13)
    assert_allclose(Q @ np.triu(R), A, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, STRIP_COLUMNS, 2 * STRIP_COLUMNS + 7])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_in_strips_are_products(rng, n, order):
    A, B = (np.array(rng.normal(size=shape), order=order) for shape in ((n, 5), (5, 3)))
    assert_allclose(multiply(A, B), A @ B, rtol=1e-13, atol=1e-14)
    assert_allclose(multiply(A.T, A), A.T @ A, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (5, 2 * STRIP_COLUMNS + 1), (0, 4), (4, 0)])
def test_triangular_systems_are_solved_in_any_order_of_memory(rng, lower, transposed, order, shape):
    R = rng.normal(size=(shape[0], shape[0])) + 10.0 * np.eye(shape[0])
    triangle = np.tril(R) if lower else np.triu(R)
    B = np.array(rng.normal(size=shape), order=order)
    # What is in the other triangle is not read.
    X = solve_triangular(np.array(R, order=order), B, lower=lower, transposed=transposed)
    assert_allclose((triangle.T if transposed else triangle) @ X, B, atol=1e-12)


def test_values_below_the_noise_are_zero(rng):
    U, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    A = (U * [1e-7, 1e-5, 0.5, 2.0]) @ U.T
    eigen = eigen_psd(np.asfortranarray((A + A.T) / 2), noise=1e-6)
    assert eigen.rank == 3
    assert_allclose(eigen.values, [0.0, 1e-5, 0.5, 2.0], rtol=1e-9)


def test_negative_part_is_in_units_of_the_largest():
    eigen = eigen_psd(np.asfortranarray(np.diag([-0.5, 1.0, 2.0])))
    assert eigen.negative == 0.25
    assert eigen.values.tolist() == [0.0, 1.0, 2.0]


def test_empty_matrix_has_rank_zero():
    assert eigen_psd(np.empty((0, 0))).rank == 0


def test_singular_values_reproduce_the_matrix_and_its_rank(rng):
    A = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 9))
    U, sigma, V, rank = singular(A.copy(), noise=1e-12)
    assert rank == 2
    assert_allclose((U * sigma) @ V.T, A, atol=1e-13)


@pytest.mark.slow
@given(s=st.lists(st.floats(0.01, 100), min_size=1, max_size=12), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_reflector_is_the_matrix_that_carries_s_to_the_first_axis(s, seed):
    s, rng = np.array(s), np.random.default_rng(seed)
    n, H, reflector = len(s), householder(s), Reflector.onto_first_axis(s)
    assert_allclose((H @ s)[1:], 0.0, atol=1e-13 * np.linalg.norm(s))
    A, B, V = semidefinite(rng, n, n), rng.normal(size=(n, 5)), rng.normal(size=(n - 1, 4))
    if n > 1:
        assert_allclose(full(reflector.both_sides(A)), (H @ A @ H)[1:, 1:], atol=1e-12 * np.abs(A).sum())
    assert_allclose(reflector.apply(B), (H @ B)[1:], atol=1e-12)
    assert_allclose(reflector.expand(V), H @ np.vstack([np.zeros((1, 4)), V]), atol=1e-12)


def test_expanded_columns_are_orthonormal_and_orthogonal_to_s(rng):
    s = rng.uniform(0.1, 3.0, 15)
    U = Reflector.onto_first_axis(s).expand(np.eye(14))
    assert_allclose(U.T @ U, np.eye(14), atol=1e-14)
    assert_allclose(s @ U, 0.0, atol=1e-14 * np.linalg.norm(s))


@pytest.mark.parametrize("m", [0, 1, 5, STRIP_COLUMNS, 2 * STRIP_COLUMNS + 3])
def test_matrix_in_coordinates_is_symmetric_and_turns_back(rng, m):
    R = np.triu(rng.normal(size=(m, m))) + 3 * np.sqrt(m) * np.eye(m)
    G = rng.normal(size=(m, m))
    G = G + G.T
    A = in_coordinates(R, G)
    assert_array_equal(A, A.T)
    assert_allclose(R.T @ A @ R, G, atol=1e-12 * max(m, 1))


@pytest.mark.parametrize("m", [1, STRIP_COLUMNS, 2 * STRIP_COLUMNS + 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_product_with_an_upper_triangle_is_the_product(rng, m, dtype):
    K, U = rng.normal(size=(7, m)).astype(dtype), np.triu(rng.normal(size=(m, m))).astype(dtype)
    found = times_upper(K, U)
    assert found.dtype == dtype
    assert_allclose(found, K @ U, atol=50 * np.sqrt(m) * np.finfo(dtype).eps)


@pytest.mark.parametrize("m", [0, 1, 2 * STRIP_COLUMNS + 3])
def test_products_of_upper_triangles_are_the_products(rng, m):
    R, B = np.triu(rng.normal(size=(m, m))), np.triu(rng.normal(size=(m, m)))
    assert_allclose(np.triu(square_upper(R)), np.triu(R.T @ R), atol=1e-12 * m)
    assert_allclose(norms_upper(R), (R**2).sum(axis=0), rtol=1e-12)
    assert_allclose(norms_upper(R, B), ((R @ B) ** 2).sum(axis=0), rtol=1e-10)
    assert_allclose(forms_upper(R, R.T @ R), ((R @ R) ** 2).sum(axis=0), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_large_factors_in_panels_are_those_of_lapack(rng, threads):
    n = LARGE
    A = semidefinite(rng, n, 20) + n * np.eye(n)
    R = np.array(A, order="F")
    with limit_threads(threads):
        assert cholesky_upper(R) == 0
        inverse = inverse_upper(R)
    R = np.triu(R)
    assert_allclose(R, np.linalg.cholesky(A).T, atol=1e-12 * n)
    assert_array_equal(inverse, np.triu(inverse))
    assert_allclose(R[-300:] @ inverse, np.eye(n)[-300:], atol=1e-12)


@pytest.mark.parametrize("place", [0, 600, LARGE - 1])
def test_large_matrices_that_are_not_definite_have_no_factor(place):
    A = np.eye(LARGE, order="F")
    A[place, place] = -1.0
    assert cholesky_upper(A) != 0


@pytest.mark.parametrize("n", [0, 1, STRIP_COLUMNS + 3])
def test_inverse_of_an_upper_triangle_ignores_what_is_below(rng, n):
    R = np.asfortranarray(rng.normal(size=(n, n)) + 3 * np.sqrt(n) * np.eye(n))
    assert_allclose(np.triu(R) @ inverse_upper(R), np.eye(n), atol=1e-12)


@pytest.mark.parametrize(
    ("n", "steps"), [(30, range(30)), (PIVOT_PANEL + 9, [0, 1, 40, *range(PIVOT_PANEL - 2, PIVOT_PANEL + 9)])]
)
def test_supervised_pivots_are_the_best_of_all_subsets_one_larger(rng, n, steps):
    """Of more pivots than one panel, those at its end and in the next one."""
    A, C = rng.normal(size=(2 * n, n)), rng.normal(size=(n, 2))
    H = A.T @ A
    given = H.copy()
    order = list(supervised_pivots(H, C, np.zeros(len(H))))
    assert sorted(order) == list(range(len(H)))
    assert_array_equal(H, given)

    def explained(S):
        return np.sum(C[S] * np.linalg.solve(given[np.ix_(S, S)], C[S]))

    for i in steps:
        others = sorted(set(range(len(H))) - set(order[:i]))
        gains = [explained([*order[:i], j]) for j in others]
        assert others[int(np.argmax(gains))] == order[i]
