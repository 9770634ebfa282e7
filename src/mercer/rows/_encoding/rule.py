"""The rule of columns: what each is, found without targets."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer._types import Array
from mercer._validation import format_value
from mercer.rows._columns import (
    NamedColumns,
    categorical_names,
    columns_of,
    has_columns,
    is_missing,
    names_of_columns,
)
from mercer.rows._encoding.columns import (
    KIND_WORDS,
    PERIODS,
    CategoryColumn,
    DateColumn,
    DroppedColumn,
    EncodedColumn,
    NumberColumn,
    TableEncoding,
    TextColumn,
)
from mercer.rows._encoding.values import (
    Column,
    as_days,
    as_numbers,
    distinct_values,
    is_date,
    is_mark,
    ngram_directions,
    number_of,
    read_raw,
)
from mercer.rows._sampling.random_sample import Sampler, survey
from mercer.rows._sources.memory import MemoryRows

# Of more rows than this, what columns are is found on a random sample of this size, whatever targets and seeds.
ROWS_OF_RULE = 10_000
RULE_DRAW = Sampler(ROWS_OF_RULE, seed=0)
# What a column may be said to be.
COLUMN_TYPES = tuple(KIND_WORDS)
# Columns of more values than this are texts, unless they are said to be categories: then the most frequent count.
MOST_CATEGORIES, MOST_NAMED_CATEGORIES = 30, 300
# Numbers that differ by less than this share of the largest differ by rounding.
ROUNDING_OF_NUMBERS = 1e-15
# Texts that are nearly all the same have no smaller variance than this.
LEAST_TEXT_VARIANCE = 1e-4


@dataclass(frozen=True, eq=False)
class RawTable:
    """The columns of a table that are kept, with the names (d,) of all, and which have a ``categorical`` type."""

    names: list[Any]
    table: NamedColumns
    categorical: Set[Any]

    @classmethod
    def of(cls, X: Any, kinds: Mapping[Any, str]) -> "RawTable":
        """The columns of a frame or an array, without those that ``kinds`` drop."""
        names = names_of_columns(X) if has_columns(X) else list(range(X.shape[1]))
        return cls(names, read_raw(X, kept_columns(names, kinds)), categorical_names(X))

    def sampled(self, weight: Array | None) -> "tuple[RawTable, Array | None]":
        """The rows that the rule sees, and their weights: all, or as many as it needs, drawn at random."""
        n = self.table.shape[0]
        if n <= ROWS_OF_RULE:
            return self, weight
        rows = survey(MemoryRows(np.arange(n), weight=weight), RULE_DRAW).sample().index
        return replace(self, table=self.table[rows]), None if weight is None else weight[rows]


def kept_columns(names: Sequence[Any], kinds: Mapping[Any, str]) -> list[Any]:
    """The names of columns, all of which ``kinds`` know, that are not dropped."""
    unknown = [name for name in kinds if name not in names]
    if unknown:
        there = format_value(list(names))
        raise ValueError(f"columns names {unknown[0]!r}, but the columns are {there}; pass their names")
    kept = [name for name in names if kinds.get(name) != "drop"]
    if not kept:
        raise ValueError("all columns are dropped; keep at least one")
    return kept


def is_raw(X: Any) -> bool:
    """Whether rows are a table that is not yet numbers, or not complete: with text, categories, dates or gaps."""
    if has_columns(X):
        names = names_of_columns(X)
        if not names:
            raise ValueError("the data frame has no columns; pass one with at least one column")
        return not all(_is_plain(column) for _, column in columns_of(X, names))
    array = as_raw(X)
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.size == 0:
        return False
    if array.dtype.kind == "O":
        return any(isinstance(value, str) or is_missing(value) or number_of(value) is None for value in array.flat)
    return array.dtype.kind in "US" or (array.dtype.kind == "f" and not has_numbers_only(array))


def encoding_of(raw: RawTable, weight: Array | None, kinds: Mapping[Any, str]) -> TableEncoding:
    """What each column becomes: what ``kinds`` say by its name, otherwise the first of these that applies.

    missing everywhere, or one value    not used
    a categorical type                  category if there are at most 300 values, with missing; otherwise text
    numbers, also written ones          number
    dates, also written ones            date
    Booleans, other values              category if there are at most 30; otherwise text

    Of many rows a random sample tells.
    """
    raw, weight = raw.sampled(weight)
    used = slice(None) if weight is None else np.flatnonzero(weight > 0.0)
    w = np.ones(raw.table.shape[0]) if weight is None else weight[used]
    columns = [RawColumn.of(name, c[used], w, name in raw.categorical) for name, c in raw.table.columns.items()]
    found = {column.name: _encoded(column, kinds.get(column.name)) for column in columns}
    all_columns = (found.get(name, DroppedColumn(name, "you have dropped it")) for name in raw.names)
    encoding = TableEncoding(tuple(all_columns))
    if not encoding.names:
        words = str(encoding).replace("\n", ", ")
        raise ValueError(f"no column of X can be used: {words}; pass at least one that has two values")
    return encoding


def has_numbers_only(array: Column) -> bool:
    """Whether no number of an array is NaN, without a second array."""
    with np.errstate(invalid="ignore", over="ignore"):
        return not np.isnan(array.sum(axis=0)).any()


def _is_plain(column: Column) -> bool:
    """Whether all values of a column are numbers, or Booleans, and none is missing."""
    return column.dtype.kind == "b" or (column.dtype.kind == "f" and not np.isnan(column).any())


def as_raw(X: Any) -> Any:
    """A list of rows as an array, of objects unless all are numbers; anything else as it is."""
    if not isinstance(X, list | tuple) or not X or not isinstance(X[0], list | tuple | np.ndarray):
        return X
    try:
        array = np.asarray(X)
        return array if array.dtype.kind in "fiubc" else np.asarray(X, dtype=object)
    except (ValueError, TypeError):
        return X


@dataclass(frozen=True, eq=False)
class RawColumn:
    """The distinct ``values`` (k,) of a column, None, NaN or NaT if missing, and the ``weight`` (k,) they have.

    ``written``: some are text.
    """

    name: Any
    values: Column
    weight: Array
    categorical: bool
    written: bool

    @classmethod
    def of(cls, name: Any, column: Column, w: Array, categorical: bool) -> "RawColumn":
        if column.dtype.kind in "fM":
            # In order, so that sums do not depend on that of the rows.
            values, place = np.unique(column, return_inverse=True)
        else:
            found, place = distinct_values(name, column)
            values = np.empty(len(found), dtype=object)
            values[:] = found
        written = column.dtype.kind == "O" and any(isinstance(value, str) for value in column)
        return cls(name, values, np.bincount(place, w).astype(np.float64), categorical, written)

    @cached_property
    def present(self) -> list[str]:
        """The values that are not missing, as text."""
        return [value for value in distinct_values(self.name, self.values)[0] if value is not None]

    @cached_property
    def n_present(self) -> int:
        """How many values are not missing."""
        kind = self.values.dtype.kind
        if kind not in "fM":
            return len(self.present)
        return int(np.count_nonzero(~(np.isnan if kind == "f" else np.isnat)(self.values)))

    @property
    def some_missing(self) -> bool:
        return self.n_present < len(self.values)


def _encoded(column: RawColumn, kind: str | None) -> EncodedColumn:
    """What a column becomes, if it is of this kind; None: the rule says."""
    if column.n_present == 0:
        return DroppedColumn(column.name, "all values are missing")
    if column.n_present == 1 and not column.some_missing:
        return DroppedColumn(column.name, "all values are equal")
    makers = {"number": _number, "date": _date, "category": _category, "text": _text}
    return makers[kind or _kind(column)](column)


def _kind(column: RawColumn) -> str:
    """The kind of a column by the rule."""
    if column.values.dtype.kind in "fM" and not column.categorical:
        return {"f": "number", "M": "date"}[column.values.dtype.kind]
    known = [value for value in column.present if not is_mark(value)]
    if known and not column.categorical and all(number_of(value) is not None for value in known):
        return "number"
    if known and not column.categorical and all(map(is_date, known)):
        return "date"
    most = MOST_NAMED_CATEGORIES if column.categorical else MOST_CATEGORIES
    return "category" if len(column.values) <= most else "text"


def _number(column: RawColumn) -> EncodedColumn:
    x = as_numbers(column.name, column.values)
    known = ~np.isnan(x)
    if not known.any():
        return DroppedColumn(column.name, "all values are missing")
    if known.all() and np.ptp(x) <= ROUNDING_OF_NUMBERS * np.abs(x).max():
        return DroppedColumn(column.name, "all values are equal but for rounding")
    mean, spread = _mean_and_spread(x[known], column.weight[known])
    return NumberColumn(column.name, mean, spread, not bool(known.all()), column.written)


def _date(column: RawColumn) -> EncodedColumn:
    days = as_days(column.name, column.values)
    known = ~np.isnan(days)
    x = days[known]
    if not known.any():
        return DroppedColumn(column.name, "all values are missing")
    mean, spread = _mean_and_spread(x, column.weight[known])
    # A period that is passed through, in steps that are shorter.
    length = float(np.ptp(x))
    passed = {
        "time of year": length > PERIODS["time of year"],
        "day of week": length > PERIODS["day of week"] and len(np.unique(np.floor(x) % 7.0)) > 1,
        "time of day": len(np.unique(x % 1.0)) > 1,
    }
    periods = tuple(period for period in PERIODS if passed[period])
    return DateColumn(column.name, mean, spread, periods, not bool(known.all()))


def _category(column: RawColumn) -> EncodedColumn:
    values, _ = distinct_values(column.name, column.values)
    names = [(value is None, str(value)) for value in values]
    places = sorted(range(len(values)), key=names.__getitem__)
    if len(places) > MOST_NAMED_CATEGORIES:
        frequent = sorted(places, key=lambda j: -column.weight[j])[:MOST_NAMED_CATEGORIES]
        places = sorted(frequent, key=names.__getitem__)
    shares = column.weight[places] / column.weight.sum()
    return CategoryColumn(column.name, tuple(values[j] for j in places), tuple(shares.tolist()))


def _text(column: RawColumn) -> EncodedColumn:
    if len(column.present) < 2:
        return _category(column)
    words, _ = distinct_values(column.name, column.values)
    order = sorted(range(len(words)), key=lambda j: (words[j] is None, str(words[j])))
    weight = column.weight[order]
    Z, share = ngram_directions([words[j] for j in order]), weight / weight.sum()
    variance = float(share @ np.sum(Z**2, axis=1) - np.sum((share @ Z) ** 2))
    scale = 1.0 / max(variance, LEAST_TEXT_VARIANCE) ** 0.5
    return TextColumn(column.name, scale, len(column.present))


def _mean_and_spread(x: Array, weight: Array) -> tuple[float, float]:
    """Weighted mean and standard deviation of numbers of any size; the latter is 1 if all are equal."""
    unit = float(np.abs(x).max())
    if np.ptp(x) == 0.0:
        return float(x[0]), 1.0
    share = weight / weight.sum()
    mean = float(share @ (x / unit))
    spread = float(np.sqrt(share @ (x / unit - mean) ** 2)) * unit
    return mean * unit, spread if spread > 0.0 else 1.0


def check_kinds(kinds: Any) -> Mapping[Any, str]:
    """What columns are said to be, by name."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise ValueError(
            f'columns={format_value(kinds)}; pass a dict from names to kinds, {{"month": "category"}}'
        )
    for name, kind in kinds.items():
        if not isinstance(kind, str) or kind not in COLUMN_TYPES:
            raise ValueError(
                f"columns[{name!r}]={format_value(kind)}; it must be one of {', '.join(map(repr, COLUMN_TYPES))}"
            )
    return kinds
