"""Tables of rows answer alike, whatever holds them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer.rows._table import (
    as_table,
    column_names,
    holds_numbers,
    holds_objects,
    is_frame,
    is_sparse,
    is_table,
    join,
    n_rows,
    numbers,
    take,
)

A = np.arange(15.0).reshape(5, 3)
WORDS = ["a", "b", "c", "d", "e"]


def pandas_frame(A):
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    return pd.DataFrame(A, columns=list("xyz"), index=np.arange(len(A))[::-1])


def polars_frame(A):
    pl = pytest.importorskip("polars", reason="polars is not installed: no frames of polars here")
    return pl.DataFrame(A, schema=list("xyz"))


def objects(A):
    return [tuple(row) for row in A]


def views(A):
    return {"numbers": A[:, :2], "words": [WORDS[int(row[0]) // 3] for row in A]}


ARRAYS = [np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csr_array]
KINDS = [*ARRAYS, pandas_frame, polars_frame, objects, views]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
SELECTIONS = [slice(1, 4), slice(0), np.array([4, 1, 1]), np.array([], dtype=np.intp)]


def assert_same(found, expected):
    """Equal rows in equal tables."""
    assert type(found) is type(expected)
    if isinstance(found, dict):
        assert found.keys() == expected.keys()
        for name in found:
            assert_same(found[name], expected[name])
    else:
        assert_array_equal(numbers(found.toarray() if is_sparse(found) else found), plain(expected))


def plain(X):
    return numbers(X.toarray() if is_sparse(X) else X)


@every_kind
@pytest.mark.parametrize("rows", SELECTIONS, ids=["slice", "nothing", "positions", "no positions"])
def test_some_rows_of_a_table_are_the_table_of_some_rows(kind, rows):
    assert_same(take(kind(A), rows), kind(A[rows]))


@every_kind
def test_a_table_has_as_many_rows_as_its_array(kind):
    assert n_rows(kind(A)) == 5
    assert is_table(kind(A))


@pytest.mark.parametrize("kind", [k for k in KINDS if "frame" not in k.__name__], ids=lambda kind: kind.__name__)
def test_pieces_of_a_table_join_to_the_table(kind):
    assert_same(join("X", [take(kind(A), slice(0, 2)), take(kind(A), slice(2, 5))]), kind(A))


@every_kind
def test_numbers_of_a_table_are_its_array(kind):
    found = numbers(kind(A))
    assert_array_equal(found["numbers"] if kind is views else plain(found), A[:, :2] if kind is views else A)


def test_nothing_of_nothing_is_nothing():
    assert take(None, np.array([0])) is None
    assert join("y", [None, None]) is None


def test_tables_are_told_apart():
    for kind in KINDS:
        X = kind(A)
        assert is_sparse(X) == (kind in (sparse.csr_matrix, sparse.csr_array))
        assert is_frame(X) == (kind in (pandas_frame, polars_frame))
        assert holds_objects(X) == (kind in (objects, views))
        # Types of polars have no kind: what its frames hold is seen when they are read.
        assert holds_numbers(X) == (kind in (*ARRAYS, pandas_frame))


def test_columns_have_names_in_frames_only():
    for kind in KINDS:
        assert column_names(kind(A)) == (("x", "y", "z") if "frame" in kind.__name__ else None)


def test_lists_of_numbers_are_tables_of_numbers_in_every_view():
    X = as_table({"a": A.tolist(), "b": WORDS, "c": sparse.coo_matrix(A)})
    assert_array_equal(X["a"], A)
    assert X["b"] is WORDS
    assert X["c"].format == "csr"


def test_views_of_different_rows_are_refused():
    with pytest.raises(
        ValueError, match="views must have the same number of rows, at least one, but 'a' has 5 rows, 'b' has 4"
    ):
        n_rows({"a": A, "b": A[:4]})
    with pytest.raises(ValueError, match="there is none"):
        n_rows({})
    with pytest.raises(ValueError, match="X has the views a, b in some blocks and different ones in others"):
        join("X", [{"a": A, "b": A}, {"a": A}])
