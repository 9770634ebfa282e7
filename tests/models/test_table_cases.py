"""Frames with every kind of column, and with whatever goes wrong in one, from every source that can hold them."""

import enum
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from mercer import KernelFisherClassifier
from mercer.kernels import RBF

# Few rows choose centers, and tell how sure probabilities are: a fit takes a twentieth of a second.
FIXED = {"kernel": RBF(gamma=0.05), "alpha": 1.0, "centers": 20, "random_state": 0, "loo_rows": 20}
N = 60
HALF = N // 2
TEXTS = f"{N} texts, compared by their letters"


@dataclass(frozen=True)
class Refused:
    """Neither columns nor probabilities, but an error whose words say what to do."""

    words: str


@dataclass(frozen=True)
class Answer:
    """What one source says that others do not, and the good reason for it."""

    because: str
    expected: str | Refused


@dataclass(frozen=True)
class Unfit:
    """The source cannot hold the frame: what its own error says."""

    words: str


@dataclass(frozen=True)
class Case:
    """A frame with its labels, and what becomes of it.

    ``expected`` is what ``columns_`` says of the last column, or the error of the fit; ``new`` makes new rows of
    the frame, and ``refused`` is the error of their prediction. ``elsewhere``: sources that answer in another way.
    """

    name: str
    make: Callable[[], tuple[pd.DataFrame, np.ndarray]]
    expected: str | Refused
    new: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame
    refused: Refused | None = None
    elsewhere: Mapping[str, Answer | Unfit] = field(default_factory=dict)


def base(n=N):
    """Numbers and categories, and labels that depend on both."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=n), "job": rng.choice(["cook", "smith", "nurse"], n)})
    return frame, np.where((frame["x"] > 0.0) ^ (frame["job"] == "cook"), "ill", "well")


def with_column(values, n=N):
    """The base with one more column, the odd one."""

    def make():
        frame, y = base(n)
        column = values() if callable(values) else values
        return frame.assign(odd=column if not isinstance(column, list) else objects(column)), y

    return make


def objects(values):
    """A column of objects, each as it is."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return pd.Series(column, dtype=object)


def changed(change):
    """The base after a change of the frame."""
    return lambda: (change(base()[0]), base()[1])


BERLIN = timezone(timedelta(hours=2))
COLOR = enum.Enum("COLOR", ["RED", "BLUE"])
NA_WORDS = ["NA", "n/a", "", "?", "-", "null", " None ", "unknown"]
DAYS = pd.date_range("2020-01-01", periods=N)


def arrow_typed(values, kind):
    """A column of pandas in memory of Arrow."""
    return pd.Series(pd.array(values, dtype=pd.ArrowDtype(kind)))


def half(one, other):
    return [one, other] * HALF


OF_ARROW = ("polars", "pyarrow", "Parquet")
TEXT_OF_OBJECTS = "Dask makes text of objects"
INDEX_OF_ARROW = "a table of pyarrow has the index as a column, unless it is made with preserve_index=False"
IN_PARTS = Answer(
    "Arrow holds intervals as two numbers", Refused("column 'odd' contains .*give each part a column")
)
MIXED_NAMES = Unfit("column names of mixed type")
NAMES_AS_TEXTS = {
    "polars": Answer("names of polars are texts", "3 categories"),
    "pyarrow": Answer("names of pyarrow are texts", "3 categories"),
    "Parquet": MIXED_NAMES,
}


def unfit_for_arrow(words):
    return dict.fromkeys(OF_ARROW, Unfit(words))


COLUMNS = [
    # Nothing, one value, and hardly more.
    Case("all missing", with_column([None] * N), "not used: all values are missing"),
    Case("all NaN", with_column(np.full(N, np.nan)), "not used: all values are missing"),
    Case("all NaT", with_column(lambda: pd.Series([pd.NaT] * N)), "not used: all values are missing"),
    Case("only words for missing", with_column([NA_WORDS[j % 8] for j in range(N)]), "8 categories"),
    Case("one text", with_column(["a"] * N), "not used: all values are equal"),
    Case("one number", with_column(np.full(N, 3.0)), "not used: all values are equal"),
    Case("one number but for one NaN", with_column(np.array([np.nan, *[3.0] * (N - 1)])), "a number, or missing"),
    Case("one text but for one None", with_column([None] + ["a"] * (N - 1)), "2 categories, one of them missing"),
    Case("one number but for one other", with_column(np.array([4.0, *[3.0] * (N - 1)])), "a number"),
    # Numbers.
    Case("float16", with_column(np.arange(N).astype(np.float16)), "a number"),
    Case(
        "float32 with a gap",
        with_column(np.array([np.nan, *range(1, N)], dtype=np.float32)),
        "a number, or missing",
    ),
    Case("int8", with_column(np.arange(N).astype(np.int8)), "a number"),
    Case("uint64", with_column(np.arange(N).astype(np.uint64)), "a number"),
    Case("zeros of both signs", with_column(np.array(half(0.0, -0.0))), "not used: all values are equal"),
    Case(
        "objects that are whole numbers",
        with_column(list(range(N))),
        "a number",
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, "a written number")},
    ),
    Case(
        "objects that are numbers of many types",
        with_column([[j, float(j), np.int8(j), np.float32(j)][j % 4] for j in range(N)]),
        "a number",
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, "a written number")},
    ),
    Case(
        "Int64 with gaps",
        with_column(lambda: pd.Series([None, *range(1, N)], dtype="Int64")),
        "a number, or missing",
    ),
    Case(
        "Float64 with gaps",
        with_column(lambda: pd.Series([None, *range(1, N)], dtype="Float64")),
        "a number, or missing",
    ),
    Case(
        "sparse numbers",
        with_column(lambda: pd.Series(pd.arrays.SparseArray(np.arange(N) % 3 * 1.0))),
        "a number",
        elsewhere=unfit_for_arrow("numpy.dtype|Sparse pandas data"),
    ),
    Case(
        "sparse numbers that are mostly missing",
        with_column(lambda: pd.Series(pd.arrays.SparseArray([1.0, 2.0] + [np.nan] * (N - 2)))),
        "a number, or missing",
        elsewhere=unfit_for_arrow("numpy.dtype|Sparse pandas data"),
    ),
    Case(
        "decimals",
        with_column([Decimal(j) / 4 for j in range(N)]),
        "a number",
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, "a written number")},
    ),
    Case(
        "decimals with gaps",
        with_column([None, *(Decimal(j) / 4 for j in range(1, N))]),
        "a number, or missing",
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, "a written number, or missing")},
    ),
    Case(
        "fractions",
        with_column([Fraction(j, 3) for j in range(N)]),
        "a number",
        elsewhere=unfit_for_arrow("did not recognize Python value") | {"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case("numbers as text", with_column([f"{j}.50" for j in range(N)]), "a written number"),
    Case(
        "numbers as text with words for missing",
        with_column([*NA_WORDS, *map(str, range(8, N))]),
        "a written number, or missing",
    ),
    Case("numbers as text with spaces", with_column([f" {j} " for j in range(N)]), "a written number"),
    Case("numbers as text with units", with_column([f"{j % 20} kg" for j in range(N)]), "20 categories"),
    Case("numbers as text with separators", with_column([f"{j},{j:03}" for j in range(N)]), TEXTS),
    Case("infinity as text", with_column(["inf", *map(str, range(1, N))]), TEXTS),
    Case(
        "numbers and their text",
        with_column([j if j % 2 else str(j) for j in range(N)]),
        "a written number",
        elsewhere=unfit_for_arrow("Expected bytes"),
    ),
    Case("long whole numbers as text", with_column([str(2**60 + j) for j in range(N)]), TEXTS),
    Case(
        "whole numbers beyond 2^53",
        with_column(np.arange(N) + 2**60),
        Refused(r"column 'odd' contains integers beyond 2\^53.*convert them to strings"),
    ),
    Case(
        "objects beyond 2^53",
        with_column([2**70 + j for j in range(N)]),
        Refused(r"column 'odd' contains integers beyond 2\^53.*convert them to strings"),
        elsewhere=unfit_for_arrow("too large") | {"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case(
        "Int64 beyond 2^53 with gaps",
        with_column(lambda: pd.Series([None, *(2**60 + j for j in range(1, N))], dtype="Int64")),
        Refused(r"column 'odd' contains integers beyond 2\^53.*convert them to strings"),
    ),
    Case(
        "an infinite number",
        with_column(np.array([np.inf, *range(1, N)])),
        Refused("column 'odd' contains infinity"),
    ),
    Case(
        "an infinite object",
        with_column([-np.inf, None, *range(2, N)]),
        Refused("column 'odd' contains infinity"),
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, f"{N - 1} texts, compared by their letters")},
    ),
    Case(
        "an infinite decimal",
        with_column([Decimal("inf"), *map(Decimal, range(1, N))]),
        Refused("column 'odd' contains infinity"),
        elsewhere=unfit_for_arrow("integer") | {"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case(
        "complex numbers",
        with_column(np.arange(N) * 1j),
        Refused(r"column 'odd' contains .*; an argument must be a string, a number.*give each part a column"),
        elsewhere=unfit_for_arrow("Unsupported numpy type"),
    ),
    # Durations and dates.
    Case("durations", with_column(lambda: pd.Series(pd.to_timedelta(np.arange(N), "h"))), "a number"),
    Case(
        "durations with gaps",
        with_column(lambda: pd.Series([pd.NaT, *pd.to_timedelta(np.arange(1, N), "h")])),
        "a number, or missing",
    ),
    Case(
        "durations of Python",
        with_column([timedelta(hours=j) for j in range(N)]),
        "a number",
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case("dates", with_column(DAYS), "days and day of week"),
    Case("dates with gaps", with_column(lambda: pd.Series([pd.NaT, *DAYS[1:]])), "days, day of week and missing"),
    Case(
        "dates of Python", with_column([date(2020, 1, 1) + timedelta(j) for j in range(N)]), "days and day of week"
    ),
    Case(
        "dates of Python with gaps",
        with_column([None, *(date(2020, 1, 1) + timedelta(j) for j in range(1, N))]),
        "days, day of week and missing",
    ),
    Case(
        "dates of the years 1 and 9999",
        with_column(half(date(1, 1, 1), date(9999, 12, 31))),
        "days, time of year and day of week",
    ),
    Case(
        "dates with a time zone",
        with_column(lambda: pd.Series(DAYS.tz_localize("Europe/Berlin"))),
        "days and day of week",
    ),
    Case(
        "dates with two time zones",
        with_column([datetime(2020, 1, 1, tzinfo=[BERLIN, UTC][j % 2]) + timedelta(j) for j in range(N)]),
        "days, day of week and time of day",
    ),
    Case(
        "dates with and without a time zone",
        with_column([datetime(2020, 1, 1, tzinfo=[None, UTC][j % 2]) + timedelta(j) for j in range(N)]),
        "days and day of week",
    ),
    Case("dates as text", with_column([str(day.date()) for day in DAYS]), "days and day of week"),
    Case(
        "dates as text with words for missing",
        with_column(["NA", *(str(day.date()) for day in DAYS[1:])]),
        "days, day of week and missing",
    ),
    Case("dates of another form as text", with_column([day.strftime("%d.%m.%Y") for day in DAYS]), TEXTS),
    Case(
        "dates and text",
        with_column([date(2020, 1, 1 + j % 9) if j % 2 else "soon" for j in range(N)]),
        "10 categories",
        elsewhere=unfit_for_arrow("Expected bytes"),
    ),
    Case("times of day", with_column([time(j % 24) for j in range(N)]), "24 categories"),
    Case(
        "periods",
        with_column(lambda: pd.Series(pd.period_range("2020-01", periods=N, freq="M"))),
        TEXTS,
        elsewhere={source: Answer("Arrow holds periods as numbers of months", "a number") for source in OF_ARROW},
    ),
    Case(
        "intervals",
        with_column(lambda: pd.Series(pd.cut(np.arange(N), 4))),
        "4 categories",
        elsewhere={"polars": IN_PARTS, "pyarrow": IN_PARTS, "Parquet": Unfit("Unsupported cast")},
    ),
    # Categories and Booleans.
    Case("categories", with_column(pd.Categorical(half("a", "b"))), "2 categories"),
    Case(
        "ordered categories",
        with_column(pd.Categorical(["low", "mid", "high"] * (N // 3), ["low", "mid", "high"], ordered=True)),
        "3 categories",
    ),
    Case("unused categories", with_column(pd.Categorical(half("a", "b"), list("abcd"))), "2 categories"),
    Case(
        "categories with gaps",
        with_column(pd.Categorical(["a", "b", None] * (N // 3))),
        "3 categories, one of them missing",
    ),
    Case(
        "categories that are numbers",
        with_column(pd.Categorical([1, 2, 3] * (N // 3))),
        "3 categories",
        elsewhere={"polars": Answer("categories of polars are texts: others become values", "a number")},
    ),
    Case(
        "categories that are dates",
        with_column(pd.Categorical(DAYS[:3].repeat(N // 3))),
        "3 categories",
        elsewhere={"polars": Answer("categories of polars are texts: others become values", "days")},
    ),
    Case("categories that are Booleans", with_column(pd.Categorical(half(True, False))), "2 categories"),
    Case(
        "300 categories",
        with_column(pd.Categorical(np.arange(600) % 300), 600),
        "300 categories",
        elsewhere={"polars": Answer("categories of polars are texts: others become values", "a number")},
    ),
    Case(
        "301 categories",
        with_column(pd.Categorical([f"c{j % 301}" for j in range(602)]), 602),
        "301 texts, compared by their letters",
    ),
    Case(
        "10,000 categories",
        with_column(pd.Categorical([f"id {j}" for j in range(10_000)]), 10_000),
        "10000 texts, compared by their letters",
    ),
    Case("Booleans", with_column(np.arange(N) % 2 == 0), "2 categories"),
    Case("Booleans with gaps", with_column([True, False, None] * (N // 3)), "3 categories, one of them missing"),
    Case(
        "nullable Booleans",
        with_column(lambda: pd.Series([True, False, None] * (N // 3), dtype="boolean")),
        "3 categories, one of them missing",
    ),
    Case("Booleans as text", with_column(half("true", "false")), "2 categories"),
    Case("Booleans as words", with_column(half("yes", "no")), "2 categories"),
    Case(
        "Booleans and 0 and 1",
        with_column([True, False, 0, 1] * (N // 4)),
        "4 categories",
        elsewhere=unfit_for_arrow("Could not convert 0"),
    ),
    # Text, and what is nothing else.
    Case(
        "text with gaps",
        with_column(lambda: pd.Series(["a", "b", None] * (N // 3), dtype="string")),
        "3 categories, one of them missing",
    ),
    Case("text with spaces at its ends", with_column(["a", " a", "a ", "b"] * (N // 4)), "4 categories"),
    Case("text of two cases", with_column(half("a", "A")), "2 categories"),
    Case("many texts", with_column([f"id {j}" for j in range(N)]), TEXTS),
    Case("texts of 100,000 letters", with_column([f"{j} " * 25_000 for j in range(N)]), TEXTS),
    Case("texts of all scripts", with_column([chr(200 + 37 * j) for j in range(N)]), TEXTS),
    Case("emoji", with_column(["🦜", "👩‍👩‍👧", "🇩🇪", "é"] * (N // 4)), "4 categories"),
    Case(
        "half a letter",
        with_column(half("\ud83d", "b")),
        "2 categories",
        elsewhere=unfit_for_arrow("surrogates") | {"Dask": Unfit("surrogates")},
    ),
    Case("a letter zero", with_column(half("a\0b", "b")), "2 categories"),
    Case(
        "text and numbers", with_column(half("a", 1)), "2 categories", elsewhere=unfit_for_arrow("Expected bytes")
    ),
    Case(
        "values of seven types",
        with_column([["a", 1, 2.5, True, None, date(2020, 1, 1), b"c"][j % 7] for j in range(N)]),
        "7 categories, one of them missing",
        elsewhere=unfit_for_arrow("Expected bytes"),
    ),
    Case(
        "bytes",
        with_column(half(b"a", b"\xff")),
        "2 categories",
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, Refused("can't decode byte 0xff"))},
    ),
    Case("names of files", with_column([f"/data/{j:03}.png" for j in range(N)]), TEXTS),
    Case(
        "identifiers",
        with_column([uuid.UUID(int=j) for j in range(N)]),
        TEXTS,
        elsewhere={"polars": Answer("polars has the bytes of identifiers", TEXTS)},
    ),
    Case(
        "members of an enumeration",
        with_column(half(COLOR.RED, COLOR.BLUE)),
        "2 categories",
        elsewhere=unfit_for_arrow("did not recognize Python value"),
    ),
    Case(
        "lists",
        with_column([[1, j] for j in range(N)]),
        Refused(r"column 'odd' contains .*; an argument must be a string, a number.*give each part a column"),
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case(
        "tuples",
        with_column([(1, j) for j in range(N)]),
        Refused(r"column 'odd' contains .*; an argument must be a string, a number.*give each part a column"),
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case(
        "dicts",
        with_column([{"a": j} for j in range(N)]),
        Refused(r"column 'odd' contains .*; an argument must be a string, a number.*give each part a column"),
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case(
        "sets",
        with_column([{j} for j in range(N)]),
        Refused(r"column 'odd' contains .*; an argument must be a string, a number.*give each part a column"),
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case(
        "arrays",
        with_column([np.arange(3) + j for j in range(N)]),
        Refused(r"column 'odd' contains .*; an argument must be a string, a number.*give each part a column"),
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, TEXTS)},
    ),
    Case(
        "lists in few rows",
        with_column(["a", None, ["b"], *["c"] * (N - 3)]),
        Refused(r"column 'odd' contains .*; an argument must be a string, a number.*give each part a column"),
        elsewhere=unfit_for_arrow("Expected bytes")
        | {"Dask": Answer(TEXT_OF_OBJECTS, "4 categories, one of them missing")},
    ),
    # Columns of pandas in memory of Arrow.
    Case(
        "whole numbers of Arrow with gaps",
        with_column(lambda: arrow_typed([None, *range(1, N)], pa.int64())),
        "a number, or missing",
    ),
    Case(
        "text of Arrow with gaps",
        with_column(lambda: arrow_typed(["a", "b", None] * (N // 3), pa.string())),
        "3 categories, one of them missing",
    ),
    Case(
        "Booleans of Arrow with gaps",
        with_column(lambda: arrow_typed([True, False, None] * (N // 3), pa.bool_())),
        "3 categories, one of them missing",
    ),
    Case(
        "dates of Arrow with gaps",
        with_column(lambda: arrow_typed([None, *DAYS[1:]], pa.timestamp("us"))),
        "days, day of week and missing",
    ),
    Case(
        "dates of Arrow with a time zone",
        with_column(
            lambda: arrow_typed(
                [None, *DAYS[1:].tz_localize("Europe/Berlin")], pa.timestamp("us", "Europe/Berlin")
            )
        ),
        "days, day of week and missing",
    ),
    Case(
        "days of Arrow",
        with_column(lambda: arrow_typed([None, *(day.date() for day in DAYS[1:])], pa.date32())),
        "days, day of week and missing",
    ),
    Case(
        "durations of Arrow with gaps",
        with_column(lambda: arrow_typed([None, *(timedelta(hours=j) for j in range(1, N))], pa.duration("us"))),
        "a number, or missing",
    ),
    Case(
        "decimals of Arrow with gaps",
        with_column(lambda: arrow_typed([None, *(Decimal(j) for j in range(1, N))], pa.decimal128(10, 2))),
        "a number, or missing",
    ),
    Case(
        "categories of Arrow",
        with_column(lambda: arrow_typed(half("a", "b"), pa.dictionary(pa.int32(), pa.string()))),
        "2 categories",
    ),
    Case(
        "lists of Arrow",
        with_column(lambda: arrow_typed([[1, j] for j in range(N)], pa.list_(pa.int64()))),
        Refused(r"column 'odd' contains .*; an argument must be a string, a number.*give each part a column"),
    ),
]

FRAMES = [
    # Names and indices.
    Case(
        "two columns of one name",
        changed(lambda frame: pd.concat([frame, frame[["x"]]], axis=1)),
        Refused("several columns named 'x'; rename all but one"),
        elsewhere=unfit_for_arrow("non-unique|Duplicate column names"),
    ),
    Case(
        "names that are numbers",
        changed(lambda frame: frame.set_axis([0, 1], axis=1)),
        "3 categories",
        elsewhere=NAMES_AS_TEXTS,
    ),
    Case(
        "names of several types",
        changed(lambda frame: frame.set_axis([0, "job"], axis=1)),
        Refused("must convert them all to strings"),
        elsewhere={
            "polars": Answer("names of polars are texts", "3 categories"),
            "pyarrow": MIXED_NAMES,
            "Parquet": MIXED_NAMES,
            "Dask": Answer("names of several types are asked for by name only", "3 categories"),
        },
    ),
    Case(
        "names that are empty",
        changed(lambda frame: frame.set_axis(["x", ""], axis=1)),
        "3 categories",
        elsewhere={"polars": Answer("polars names columns that have no name", "3 categories")},
    ),
    Case(
        "a name that is None",
        changed(lambda frame: frame.set_axis(pd.Index(["x", None], dtype=object), axis=1)),
        Refused("must convert them all to strings"),
        elsewhere={
            "polars": Answer("names of polars are texts", "3 categories"),
            "pyarrow": MIXED_NAMES,
            "Parquet": MIXED_NAMES,
            "Dask": Unfit("not found in columns"),
        },
    ),
    Case(
        "names that are dates",
        changed(lambda frame: frame.set_axis(DAYS[:2], axis=1)),
        "3 categories",
        elsewhere=NAMES_AS_TEXTS,
    ),
    Case(
        "names with dots, spaces and emoji",
        changed(lambda frame: frame.set_axis(["a.b c", "🦜\n[1]"], axis=1)),
        "3 categories",
    ),
    Case(
        "columns of two levels",
        changed(lambda frame: frame.set_axis(pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]), axis=1)),
        "3 categories",
        elsewhere={
            "polars": Answer("names of polars are texts", "3 categories"),
            "pyarrow": Answer("names of pyarrow are texts", "3 categories"),
            "Parquet": Unfit("MultiIndex"),
            "Dask": Unfit("MultiIndex"),
        },
    ),
    Case(
        "an index of texts",
        changed(lambda frame: frame.set_axis([f"row {j}" for j in range(N)])),
        "3 categories",
        elsewhere={"pyarrow": Answer(INDEX_OF_ARROW, TEXTS)},
    ),
    Case(
        "an index that is one number",
        changed(lambda frame: frame.set_axis([7] * N)),
        "3 categories",
        elsewhere={"pyarrow": Answer(INDEX_OF_ARROW, "not used: all values are equal")},
    ),
    Case("an index from the end", changed(lambda frame: frame.set_axis(range(N, 0, -1))), "3 categories"),
    Case(
        "an index of dates with a name",
        changed(lambda frame: frame.set_axis(DAYS.rename("day"))),
        "3 categories",
        elsewhere={
            "pyarrow": Answer(INDEX_OF_ARROW, "days and day of week"),
            "Parquet": Answer("an index with a name is a column of the file", "days and day of week"),
        },
    ),
    Case(
        "an index of two levels",
        changed(lambda frame: frame.set_axis(pd.MultiIndex.from_product([range(2), range(HALF)]))),
        "3 categories",
        elsewhere={"pyarrow": Answer(INDEX_OF_ARROW, "a number"), "Dask": Unfit("MultiIndex")},
    ),
    # Sizes.
    Case("no rows", lambda: (base()[0][:0], base()[1][:0]), Refused("minimum of 1 is required|pass at least one")),
    Case("no columns", lambda: (base()[0][[]], base()[1]), Refused("at least one|0 feature")),
    Case(
        "one row",
        lambda: (base()[0][:1], base()[1][:1]),
        Refused("no column of X can be used.*pass at least one that has two values"),
    ),
    Case("two rows", lambda: (base()[0][:2].assign(job=["a", "b"]), np.array(["ill", "well"])), "2 categories"),
    Case(
        "500 columns",
        lambda: (
            pd.concat([pd.DataFrame({f"c{j}": np.arange(N) % (j + 2) for j in range(498)}), base()[0]], axis=1),
            base()[1],
        ),
        "3 categories",
    ),
    Case(
        "nothing to use",
        lambda: (pd.DataFrame({"a": ["x"] * N, "b": [None] * N}), base()[1]),
        Refused("no column of X can be used.*pass at least one that has two values"),
    ),
    # New rows.
    Case("a category not known in training", base, "3 categories", lambda frame: frame[:9].assign(job="pilot")),
    Case(
        "spaces around a known category",
        base,
        "3 categories",
        lambda frame: frame.assign(job=" " + frame["job"] + " "),
    ),
    Case(
        "a category type only in new rows", base, "3 categories", lambda frame: frame.astype({"job": "category"})
    ),
    Case("numbers where categories were", base, "3 categories", lambda frame: frame[:9].assign(job=1.5)),
    Case(
        "numbers as text where numbers were",
        base,
        "3 categories",
        lambda frame: frame.assign(x=frame["x"].map(repr)),
    ),
    Case(
        "text where numbers were",
        base,
        "3 categories",
        lambda frame: frame.assign(x="old"),
        refused=Refused("column 'x' holds numbers, but contains 'old'; pass a number, or None"),
    ),
    Case(
        "text where written numbers were",
        with_column([str(j) for j in range(N)]),
        "a written number",
        lambda frame: frame.assign(odd="old"),
    ),
    Case(
        "text where dates were",
        with_column(DAYS),
        "days and day of week",
        lambda frame: frame.assign(odd="soon"),
        refused=Refused("column 'odd' holds dates, but contains 'soon'; pass a date"),
    ),
    Case(
        "dates as text where dates were",
        with_column(DAYS),
        "days and day of week",
        lambda frame: frame.assign(odd=frame["odd"].astype(str)),
    ),
    Case(
        "truths as 0 and 1",
        with_column(np.arange(N) % 2 == 0),
        "2 categories",
        lambda frame: frame.assign(odd=frame["odd"].astype(int)),
    ),
    Case(
        "nothing but gaps",
        with_column(DAYS),
        "days and day of week",
        lambda frame: pd.DataFrame({name: [None] * 3 for name in frame}, dtype=object),
    ),
    Case(
        "NaN everywhere",
        base,
        "3 categories",
        lambda frame: pd.DataFrame({name: np.full(3, np.nan) for name in frame}),
    ),
    Case(
        "an infinite new number",
        base,
        "3 categories",
        lambda frame: frame.assign(x=np.inf),
        refused=Refused("column 'x' contains infinity.*drop such rows"),
    ),
    Case(
        "a whole new number beyond 2^53",
        base,
        "3 categories",
        lambda frame: frame.assign(x=2**60),
        refused=Refused(r"column 'x' contains integers beyond 2\^53"),
    ),
    Case(
        "a list in new rows",
        base,
        "3 categories",
        lambda frame: frame[:9].assign(job=objects([["cook"]] * 9)),
        refused=Refused("column 'job' contains .*; an argument must be a string"),
        elsewhere={"Dask": Answer(TEXT_OF_OBJECTS, "3 categories")},
    ),
    Case("a huge new number", base, "3 categories", lambda frame: frame.assign(x=1e300)),
    Case("one new row", base, "3 categories", lambda frame: frame[7:8]),
    Case(
        "no new rows",
        base,
        "3 categories",
        lambda frame: frame[:0],
        refused=Refused("minimum of 1 is required|pass at least one"),
    ),
    Case("columns in another order", base, "3 categories", lambda frame: frame[frame.columns[::-1]]),
    Case(
        "columns that were not there",
        base,
        "3 categories",
        lambda frame: frame.assign(more=objects([[1]] * len(frame))),
    ),
    Case(
        "a column that is not there",
        base,
        "3 categories",
        lambda frame: frame[["job"]],
        refused=Refused("column 'x' is needed.*pass a data frame that has|no column 'x' in .*its columns are job"),
    ),
    Case(
        "a renamed column",
        base,
        "3 categories",
        lambda frame: frame.rename(columns={"job": "Job"}),
        refused=Refused(
            "column 'job' is needed.*pass a data frame that has|no column 'job' in .*its columns are x, Job"
        ),
    ),
    Case(
        "a column twice in new rows",
        base,
        "3 categories",
        lambda frame: pd.concat([frame, frame[["x"]]], axis=1),
        refused=Refused("several columns named 'x'; rename all but one"),
        elsewhere=unfit_for_arrow("non-unique|Duplicate column names"),
    ),
    Case(
        "new rows of another index",
        base,
        "3 categories",
        lambda frame: frame.set_axis([f"row {j}" for j in range(N)]),
    ),
    Case(
        "an unused column that is not there",
        with_column([None] * N),
        "not used: all values are missing",
        lambda frame: frame[["x", "job"]],
    ),
]

CASES = {case.name: case for case in [*COLUMNS, *FRAMES]}


def in_pandas(frame, y, path):
    return frame if y is None else (frame, y)


def in_polars(frame, y, path):
    table = pl.from_pandas(frame)
    return table if y is None else (table, y)


def in_arrow(frame, y, path):
    table = pa.Table.from_pandas(frame)
    return table if y is None else (table, y)


def in_file(frame, y, path):
    file = path / ("new.parquet" if y is None else "rows.parquet")
    (frame if y is None else frame.assign(y=y)).to_parquet(file)
    return file if y is None else (file, "y")


def on_dask(frame, y, path):
    dask = pytest.importorskip("dask.dataframe")
    table = dask.from_pandas(frame if y is None else frame.assign(y=y), npartitions=1, sort=False)
    return table if y is None else (table, "y")


SOURCES = {"polars": in_polars, "pyarrow": in_arrow, "Parquet": in_file, "Dask": on_dask}


@pytest.fixture(scope="module")
def of_pandas():
    """The model of the frame of a case, fitted once, and the probabilities of its new rows."""
    fitted = {}

    def of(case):
        if case.name not in fitted:
            frame, y = case.make()
            model = KernelFisherClassifier(**FIXED).fit(frame, y)
            fitted[case.name] = model, None if case.refused else model.predict_proba(case.new(frame))
        return fitted[case.name]

    return of


def test_there_is_one_case_of_each_name():
    assert len(CASES) == len(COLUMNS) + len(FRAMES)


@pytest.mark.parametrize("name", CASES)
def test_a_frame_is_fitted_or_refused_with_a_remedy(name, of_pandas):
    case = CASES[name]
    if isinstance(case.expected, Refused):
        with pytest.raises((ValueError, TypeError), match=case.expected.words):
            of_pandas(case)
        return
    model, P = of_pandas(case)
    frame, _ = case.make()
    assert [column.name for column in model.columns_.columns] == list(frame.columns)
    assert model.columns_.columns[-1].words == case.expected
    assert np.isfinite(model.columns_.encode(frame)).all()
    new = case.new(frame)
    if case.refused:
        with pytest.raises((ValueError, TypeError), match=case.refused.words):
            model.predict_proba(new)
    else:
        assert P.shape == (len(new), 2)
        assert np.isfinite(P).all()


@pytest.mark.sampled(200)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", CASES)
def test_every_source_gives_the_model_of_the_frame(name, source, of_pandas, tmp_path):
    case, put = CASES[name], SOURCES[source]
    special = case.elsewhere.get(source)
    frame, y = case.make()
    if isinstance(special, Unfit):
        with pytest.raises(Exception, match=special.words):
            raise_if_put(put, frame, y, case, tmp_path)
        return
    expected = case.expected if special is None else special.expected
    estimator = KernelFisherClassifier(**FIXED)
    given = put(frame, y, tmp_path)
    if isinstance(expected, Refused):
        with pytest.raises((ValueError, TypeError), match=expected.words):
            estimator.fit(*given)
        return
    model = estimator.fit(*given)
    assert model.columns_.columns[-1].words == expected
    new = put(case.new(frame), None, tmp_path)
    if special is not None:
        assert np.isfinite(np.asarray(model.predict_proba(new))).all()
        return
    same, P = of_pandas(case)
    assert model.columns_ == same.columns_
    if case.refused:
        for rows in (new, case.new(frame)):
            with pytest.raises((ValueError, TypeError), match=case.refused.words):
                np.asarray(model.predict_proba(rows))
    else:
        assert_array_equal(np.asarray(model.predict_proba(new)), P)
        assert_array_equal(model.predict_proba(case.new(frame)), P)


def raise_if_put(put, frame, y, case, path):
    """Frame and new rows in a source, which cannot hold one of them."""
    put(frame, y, path)
    put(case.new(frame), None, path)
