"""Factors that follow their matrix are the factors of that matrix."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from mercer._linalg.updates import (
    border,
    cheapest_columns,
    independent_rows,
    insert_columns,
    keep_columns,
    removal_costs,
    stack_diagonal,
    stack_rows,
)


def upper(rng, p):
    return np.linalg.qr(rng.normal(size=(2 * p, p)), mode="r")


@pytest.mark.parametrize("p", [1, 5, 70])
@pytest.mark.parametrize("b", [0, 1, 40, 200])
def test_rows_on_top_of_a_factor_add_their_products(rng, p, b):
    R, A = upper(rng, p), rng.normal(size=(b, p))
    stacked = stack_rows(R, A)
    assert_allclose(np.tril(stacked, -1), 0.0)
    assert_allclose(stacked.T @ stacked, R.T @ R + A.T @ A, atol=1e-11)


def test_a_diagonal_adds_its_squares(rng):
    R, d = upper(rng, 40), np.r_[0.0, rng.uniform(size=38), 0.0]
    stacked = stack_diagonal(R, d)
    assert_allclose(stacked.T @ stacked, R.T @ R + np.diag(d**2), atol=1e-12)


def test_inputs_are_left_as_they_were(rng, frozen):
    R, A = frozen(np.asfortranarray(upper(rng, 6))), frozen(np.asfortranarray(rng.normal(size=(3, 6))))
    stack_rows(R, A)
    stack_diagonal(R, frozen(np.ones(6)))
    S = frozen(A @ A.T)
    independent_rows(S, np.zeros(3), 3)
    cheapest_columns(R, frozen(rng.normal(size=(6, 1))), 2)


def test_small_directions_survive_rows_that_dwarf_them(rng):
    # Products of these rows lose the direction of size 1e-9; orthogonal transformations do not.
    p = 20
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    A = rng.normal(size=(300, p)) @ (np.r_[np.ones(p - 1), 1e-9][:, None] * Q.T)
    R = np.zeros((p, p))
    for rows in np.split(A, 30):
        R = stack_rows(R, rows)
    least = np.linalg.svd(A, compute_uv=False)[-1]
    assert_allclose(np.linalg.svd(R, compute_uv=False)[-1], least, rtol=1e-4)
    assert np.linalg.eigvalsh(A.T @ A)[0] < 0 or np.sqrt(np.linalg.eigvalsh(A.T @ A)[0]) > 2 * least


def test_a_column_that_is_inserted_is_zero_but_for_a_row_of_its_own(rng):
    R = upper(rng, 5)
    grown = insert_columns(R, 3, np.array([2.0, 3.0]))
    A = np.zeros((7, 7))
    A[:5, [0, 1, 2, 5, 6]] = R
    A[5, 3], A[6, 4] = 2.0, 3.0
    assert_allclose(grown.T @ grown, A.T @ A, atol=1e-12)
    assert_allclose(np.tril(grown, -1), 0.0)


def test_a_bordered_factor_is_the_factor_of_the_grown_matrix(rng):
    A = np.cov(rng.normal(size=(8, 30)))
    L = np.linalg.cholesky(A[:5, :5])
    rows = scipy.linalg.solve_triangular(L, A[:5, 5:], lower=True).T
    corner = np.linalg.cholesky(A[5:, 5:] - rows @ rows.T)
    assert_allclose(border(L, rows, corner), np.linalg.cholesky(A), atol=1e-12)


def test_some_columns_keep_their_factor(rng):
    R, kept = upper(rng, 8), np.array([0, 3, 4, 7])
    S, Q = keep_columns(R, kept)
    assert_allclose(Q @ S, R[:, kept], atol=1e-12)
    assert_allclose(Q.T @ Q, np.eye(4), atol=1e-12)
    assert (np.diagonal(S) > 0).all()


def test_independent_rows_are_those_that_earlier_ones_do_not_span(rng):
    Z = rng.normal(size=(6, 3))
    Z[2] = Z[0] - Z[1]
    Z[4] = 1e-3 * rng.normal(size=3) + Z[1]
    taken, V = independent_rows(Z @ Z.T, np.full(6, 1e-4), 10)
    assert taken.tolist() == [0, 1, 3]
    assert_allclose((V @ V.T)[np.ix_(taken, taken)], (Z @ Z.T)[np.ix_(taken, taken)], atol=1e-12)
    assert_allclose(V[:3, 2], 0.0)
    assert_allclose(np.tril(V[taken]), V[taken])


def test_no_more_rows_are_taken_than_there_is_room_for(rng):
    taken, V = independent_rows(np.eye(5), np.zeros(5), 2)
    assert taken.tolist() == [0, 1]
    assert V.shape == (5, 2)


def test_what_a_column_costs_is_what_the_fit_without_it_loses(rng):
    A, Y = rng.normal(size=(40, 6)), rng.normal(size=(40, 2))
    Q, R = np.linalg.qr(A)

    def lost(kept):
        return np.sum((Y - A[:, kept] @ np.linalg.lstsq(A[:, kept], Y)[0]) ** 2)

    U = np.linalg.inv(R).T
    full = lost(np.arange(6))
    rises = [lost(np.delete(np.arange(6), j)) - full for j in range(6)]
    assert_allclose(removal_costs(U, Q.T @ Y), rises, rtol=1e-8)
    gone, costs = cheapest_columns(U, Q.T @ Y, 3)
    for step in range(3):
        before, after = np.setdiff1d(range(6), gone[:step]), np.setdiff1d(range(6), gone[: step + 1])
        best = min(lost(np.setdiff1d(before, [j])) for j in before)
        assert_allclose(lost(after), best, rtol=1e-10)
        assert_allclose(costs[step], best - lost(before), rtol=1e-7)
