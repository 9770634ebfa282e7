"""Transformed copies of rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer.rows import Block
from mercer.rows._virtual import Copies, as_copies, transformed


def double(X):
    return 2.0 * X


def negative(X):
    return -X


def test_every_row_is_followed_by_its_copies_which_share_its_weight():
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    block = Copies((double, negative))(
        Block(X, np.array(["a", "b"]), np.array([3.0, 6.0]), 10, np.array([3.0, 3.0]))
    )
    assert_array_equal(block.X, [[1, 2], [2, 4], [-1, -2], [3, 4], [6, 8], [-3, -4]])
    assert_array_equal(block.y, ["a"] * 3 + ["b"] * 3)
    assert_array_equal(block.weight, [1, 1, 1, 2, 2, 2])
    assert_array_equal(block.unit, [1, 1, 1, 1, 1, 1])
    assert block.first == 30


def test_orbits_name_the_row_of_each_copy():
    orbits = Copies((double,)).orbits(3)
    assert_array_equal(orbits.number, [0, 0, 1, 1, 2, 2])
    assert_array_equal(orbits.own, [True, False] * 3)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_copies_have_the_type_of_the_rows(kind):
    X = np.ones((3, 2), dtype=kind)
    assert transformed(lambda X: X.astype(np.float64) + 1.0, X, "f").dtype == kind
    assert Copies((double,)).rows(X).dtype == kind


def test_copies_of_sparse_rows_are_sparse_and_of_lists_are_lists():
    X = sparse.csr_matrix(np.eye(3))
    found = Copies((double, lambda X: X.toarray() - 1.0)).rows(X)
    assert_array_equal(found.toarray()[:3], [[1, 0, 0], [2, 0, 0], [0, -1, -1]])
    assert Copies((lambda words: [word.upper() for word in words],)).rows(["a", "b"]) == ["a", "A", "b", "B"]


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (lambda X: X[:1], r"f returned an array of shape \(1, 2\) for rows of shape \(2, 2\)"),
        (lambda X: X[:, :1], r"returned an array of shape \(2, 1\)"),
        (lambda X: X * np.nan, "returned values that are not finite"),
        (lambda X: "moved", "returned str instead of rows of real numbers"),
    ],
)
def test_a_transformation_returns_one_finite_row_for_each(transform, message):
    with pytest.raises(ValueError, match=message):
        transformed(transform, np.ones((2, 2)), "f")


def test_objects_may_be_in_arrays_and_tuples():
    upper = Copies((lambda words: [word.upper() for word in words],))
    assert list(upper.rows(("a", "b"))) == ["a", "A", "b", "B"]
    capitals = Copies((lambda words: np.char.upper(words.astype(str)).astype(object),))
    assert capitals.rows(np.array(["a", "b"], dtype=object)).tolist() == ["a", "A", "b", "B"]


def test_a_function_that_returns_nothing_or_fails_is_named():
    with pytest.raises(ValueError, match="f returned None"):
        transformed(lambda X: X.sort(), np.ones((2, 2)), "f")
    with pytest.raises(KeyError) as caught:
        transformed(lambda X: {}["a"], np.ones((2, 2)), "f")
    assert "in f" in caught.value.__notes__


def test_a_function_may_overwrite_its_argument():
    X = np.ones((2, 2))

    def double_in_place(X):
        X *= 2.0
        return X

    assert_array_equal(transformed(double_in_place, X, "f"), 2.0)
    assert_array_equal(X, 1.0)


def test_objects_keep_their_number():
    with pytest.raises(ValueError, match="f returned list of 1 rows for 2 rows"):
        transformed(lambda words: words[:1], ["a", "b"], "f")


@pytest.mark.parametrize("given", ["shift", 3, [1.0], double])
def test_invariances_are_a_list_of_functions(given):
    with pytest.raises(TypeError, match="pass a list of functions"):
        as_copies(given)


def test_no_invariances_are_no_copies():
    assert as_copies(None) is None
    assert as_copies([]) is None
