"""Named columns: what data frames become, and what may be done with their rows."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from mercer.rows._columns import NamedColumns, read_columns
from mercer.rows._distinct import distinct_rows
from mercer.rows._sources.checksum import checksums
from mercer.rows._table import join, n_rows, take

FRAME = pd.DataFrame(
    {
        "age": [31, 45, 31, 45],
        "height": [1.7, np.nan, 1.7, np.nan],
        "job": ["cook", None, "cook", "smith"],
        "smokes": [True, False, True, False],
        "town": pd.Categorical(["here", "there", "here", None]),
    }
)


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_every_library_of_frames_gives_the_same_columns(make):
    table = read_columns(make(FRAME))
    assert list(table.columns) == list(FRAME.columns)
    assert_array_equal(table.columns["age"], [31.0, 45.0, 31.0, 45.0])
    assert_array_equal(table.columns["height"], [1.7, np.nan, 1.7, np.nan])
    assert table.columns["job"].tolist() == ["cook", None, "cook", "smith"]
    assert table.columns["smokes"].tolist() == [True, False, True, False]
    assert table.columns["town"].tolist() == ["here", "there", "here", None]


def test_types_with_missing_values_of_their_own_are_read():
    frame = pd.DataFrame(
        {
            "count": pd.array([1, None], dtype="Int64"),
            "flag": pd.array([True, None], dtype="boolean"),
            "text": pd.array(["a", None], dtype="string"),
            "day": pd.to_datetime(["2020-01-01", None]),
        }
    )
    table = read_columns(frame)
    assert_array_equal(table.columns["count"], [1.0, np.nan])
    assert [table.columns[name].tolist()[1] for name in ("flag", "text", "day")] == [None, None, None]


def test_categories_that_are_numbers_are_names():
    table = read_columns(pd.DataFrame({"code": pd.Categorical([3, 1, None])}))
    assert table.columns["code"].tolist() == [3, 1, None]
    assert table.of_numbers() == []


def test_array_of_objects_has_positions_as_names():
    table = read_columns(np.array([[1, "a"], [2.5, "b"]], dtype=object))
    assert_array_equal(table.columns[0], [1.0, 2.5])
    assert table.columns[1].tolist() == ["a", "b"]


def test_rows_are_taken_and_joined():
    table = read_columns(FRAME)
    assert n_rows(table) == 4
    both = join("X", [take(table, slice(0, 1)), take(table, np.array([3, 1]))])
    assert isinstance(both, NamedColumns)
    assert both.columns["job"].tolist() == ["cook", "smith", None]
    assert_array_equal(both.columns["age"], [31.0, 45.0, 45.0])


def test_columns_are_joined_by_name_whatever_their_order():
    table = read_columns(FRAME)
    other = table.only(list(FRAME.columns)[::-1])
    assert join("X", [table, other]).columns["age"].tolist() == [31.0, 45.0, 31.0, 45.0] * 2
    with pytest.raises(ValueError, match="age, height, job, smokes, town in some blocks and job in others"):
        join("X", [table, table.only(["job"])])


def test_column_without_values_joins_numbers_and_names():
    empty = read_columns(pd.DataFrame({"a": [None, None]}, dtype=object))
    assert_array_equal(
        join("X", [read_columns(pd.DataFrame({"a": [1.0]})), empty]).columns["a"], [1, np.nan, np.nan]
    )
    assert join("X", [empty, read_columns(pd.DataFrame({"a": ["x"]}))]).columns["a"].tolist() == [None, None, "x"]
    assert np.isnan(empty.numbers()).all()


def test_equal_rows_are_one_point_and_missing_values_are_equal():
    table = read_columns(FRAME)
    assert distinct_rows(table).n_points == 3
    assert distinct_rows(table.only(["age", "height"])).point.tolist() == [0, 1, 0, 1]


def test_checksum_sees_every_value():
    table = read_columns(FRAME)
    (before,) = checksums(0, table)
    assert checksums(0, read_columns(FRAME)) == [before]
    for name, value in (("age", 32), ("job", "baker"), ("smokes", False)):
        changed = FRAME.copy()
        changed.loc[0, name] = value
        assert checksums(0, read_columns(changed)) != [before]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: read_columns(FRAME, ["age", "income"]), "column 'income' is needed.*'age', 'height'"),
        (lambda: read_columns(FRAME).only(["x", "y"]), "columns 'x', 'y' are needed"),
        (lambda: read_columns(pd.DataFrame({"a": [1.0, np.inf]})), "column 'a' contains infinity"),
        (lambda: read_columns(pd.DataFrame([[1, 2]], columns=["a", "a"])), "several columns named 'a'"),
        (lambda: read_columns(FRAME).numbers(), r"column 'job' contains 'cook'.*Nominal\(\), \['job'\]"),
        (lambda: read_columns(pd.DataFrame({"a": [datetime.date(2020, 1, 1)]})).numbers(), "must be numeric"),
    ],
)
def test_columns_that_cannot_be_used_are_named(act, message):
    with pytest.raises(ValueError, match=message):
        act()
