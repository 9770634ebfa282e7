"""Which rows are the same, and which leave together."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer.rows._distinct import distinct_rows, every_row

TABLES = st.lists(
    st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5]), min_size=2, max_size=2), min_size=1, max_size=15
)


def first_equal(rows):
    """For every row the position of the first row equal to it."""
    return [next(j for j, other in enumerate(rows) if list(other) == list(row)) for row in rows]


@pytest.mark.slow
@given(TABLES)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_distinct_rows_are_the_first_of_equals(table):
    X = np.array(table)
    kinds = [X, X.astype(np.float32), np.asfortranarray(X), sparse.csr_matrix(X), [tuple(row) for row in table]]
    for rows in kinds:
        found = distinct_rows(rows)
        assert_array_equal(found.first[found.point], first_equal(table))
        assert len(np.unique(found.first)) == found.n_points
        assert found.n_points == len(set(map(tuple, table)))


def test_stored_zeros_and_order_of_columns_do_not_part_sparse_rows():
    X = sparse.csr_matrix(
        (np.array([1.0, 2.0, 0.0, 2.0, 1.0]), np.array([0, 2, 1, 2, 0]), np.array([0, 2, 5])), shape=(2, 3)
    )
    assert distinct_rows(X).n_points == 1
    # Reading rows leaves them as they were.
    assert X.nnz == 5


@pytest.mark.parametrize("X", [["a", "b", "a"], np.array(["a", "b", "a"]), [("a",), ("b",), ("a",)]])
def test_objects_that_are_equal_are_one_point(X):
    assert distinct_rows(X).point.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "row",
    [["a"], ["a", [1, {2}]], {"a", "b"}, {"a": [1.0]}, ("a", [1]), (np.ones(2),)],
    ids=lambda row: type(row).__name__,
)
def test_objects_without_a_hash_are_compared_by_content(row):
    other = type(row)()
    assert distinct_rows([row, copy.deepcopy(row), other, row]).point.tolist() == [0, 0, 1, 0]


def test_lists_and_tuples_are_different_rows():
    assert distinct_rows([["a"], ("a",)]).n_points == 2


class Unhashable:
    __hash__ = None


def test_other_objects_without_a_hash_are_compared_by_identity():
    row = Unhashable()
    assert distinct_rows([row, Unhashable(), row]).point.tolist() == [0, 1, 0]


def test_every_row_is_its_own_point():
    assert every_row(3).first.tolist() == every_row(3).point.tolist() == [0, 1, 2]


def test_arrays_of_different_shape_are_different_rows():
    assert distinct_rows([np.ones((2, 2)), np.ones((4, 1)), np.ones((2, 2))]).point.tolist() == [0, 1, 0]
