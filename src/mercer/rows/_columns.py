"""Rows with named columns of numbers, Booleans and other values, as data frames have them.

pandas, polars and pyarrow are not imported: data frames are recognized by their methods.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Indices
from mercer._validation import EXACT_INTEGERS, MISSING_TYPES, first_text, format_value, not_dates

# Types of columns that hold names, whatever the names are: categories of pandas, polars and pyarrow.
CATEGORIES = ("category", "Categorical", "Enum", "dictionary")
# How types of columns begin that are not numbers, or have gaps, in frames of pandas, pyarrow and engines.
RAW_TYPES = (
    *("string", "large_string", "binary", "large_binary", "fixed_size_binary", "object", "null"),
    *("date", "time", "duration", "decimal", "Int", "UInt", "Float"),
)


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """n rows as columns (n,), by name: float64 numbers, NaN where missing; Booleans; objects, None where missing.

    A table like an array or a sparse matrix: rows are taken by slices and positions.
    """

    columns: dict[Any, NDArray[Any]]

    @property
    def shape(self) -> tuple[int, int]:
        return len(next(iter(self.columns.values()))), len(self.columns)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())

    def __getitem__(self, rows: Indices | slice) -> "NamedColumns":
        """Some of the rows."""
        return NamedColumns({name: column[rows] for name, column in self.columns.items()})

    def only(self, names: Sequence[Any]) -> "NamedColumns":
        """Some of the columns, in this order."""
        absent = [name for name in names if name not in self.columns]
        if absent or not len(names):
            raise missing_columns(absent, list(self.columns))
        return NamedColumns({name: self.columns[name] for name in names})

    def numbers(self) -> Array:
        """All columns as one array (n, d), if they are numbers or Booleans; NaN where missing."""
        return np.column_stack([_as_numbers(name, column) for name, column in self.columns.items()])

    def objects(self) -> NDArray[Any]:
        """All values as objects: one column as (n,), several as (n, d)."""
        values = [column.astype(object) for column in self.columns.values()]
        return values[0] if len(values) == 1 else np.column_stack(values)

    def of_numbers(self) -> list[Any]:
        """The names of the columns of numbers."""
        return [name for name, column in self.columns.items() if column.dtype.kind == "f"]


def joined_columns(name: str, tables: Sequence[NamedColumns]) -> NamedColumns:
    """The rows of several tables; columns are found by name."""
    names = list(tables[0].columns)
    for part in tables:
        if set(part.columns) != set(names):
            raise ValueError(
                f"{name} has the columns {', '.join(map(str, names))} in some blocks and "
                f"{', '.join(map(str, part.columns))} in others; pass blocks with the same columns"
            )
    return NamedColumns({key: _stacked(key, [part.columns[key] for part in tables]) for key in names})


def has_columns(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars, a table of pyarrow, or what this module makes of them."""
    return isinstance(X, NamedColumns) or (hasattr(X, "columns") and (hasattr(X, "to_numpy") or _of_arrow(X)))


def names_of_columns(X: Any) -> list[Any]:
    """The names of the columns of a data frame, each once."""
    names = list(X.column_names if _of_arrow(X) else X.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the data frame has several columns named {twice!r}; rename all but one")
    return names


def categorical_names(X: Any) -> set[Any]:
    """The columns of a data frame that have a categorical type."""
    if not has_columns(X) or isinstance(X, NamedColumns):
        return set()
    return {name for name in names_of_columns(X) if _is_categorical(_get(X, name))}


def read_columns(X: Any, names: Sequence[Any] | None = None, *, keep_dates: bool = False) -> NamedColumns:
    """Columns of a data frame, or of an array of objects (n, d), whose names are positions; None: all of them.

    ``keep_dates``: columns of NumPy's dates stay such; otherwise they are objects.
    """
    if isinstance(X, NamedColumns):
        return X if names is None else X.only(names)
    if not has_columns(X):
        if not keep_dates:
            not_dates("X", X)
        array = np.asarray(X, dtype=object)
        array = array[:, None] if array.ndim == 1 else array
        table = NamedColumns({j: _column(j, array[:, j]) for j in range(array.shape[1])})
        return table if names is None else table.only(names)
    there = names_of_columns(X)
    absent = [name for name in names or () if name not in there]
    if absent or not there:
        raise missing_columns(absent, there)
    return NamedColumns(dict(columns_of(X, there if names is None else names, keep_dates=keep_dates)))


def columns_of(X: Any, names: Sequence[Any], *, keep_dates: bool = False) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Names and columns of a data frame, read one after the other."""
    return ((name, _column(name, _get(X, name), keep_dates=keep_dates)) for name in names)


def columns_of_array(X: NDArray[Any]) -> NamedColumns:
    """The columns of an array of numbers, Booleans or dates, by position; dates stay such."""
    return NamedColumns({j: _column(j, column, keep_dates=True) for j, column in enumerate(X.T)})


def are_names(values: Any) -> bool:
    """Whether these are names of columns, rather than values or one name."""
    return isinstance(values, list | tuple) and all(isinstance(name, str) for name in values)


def column_words(values: Any) -> list[str]:
    """The column names among arguments that may also be values."""
    return listed_names(values) if isinstance(values, str) or are_names(values) else []


def listed_names(names: Any) -> list[str]:
    """One name or several as a list; None: no name."""
    return [names] if isinstance(names, str) else list(names or ())


def missing_columns(absent: Sequence[Any], there: Sequence[Any]) -> ValueError:
    """The error for columns that are needed and are not there."""
    if not absent:
        return ValueError(
            f"no columns are named, but at least one is needed; there are {format_value(list(there))}"
        )
    words = ("columns", "are") if len(absent) > 1 else ("column", "is")
    return ValueError(
        f"{words[0]} {', '.join(map(repr, absent))} {words[1]} needed, but the rows have "
        f"{', '.join(map(repr, there))}; pass a data frame that has them, in any order"
    )


def _of_arrow(X: Any) -> bool:
    return hasattr(X, "column_names") and hasattr(X, "num_rows")


def _get(X: Any, name: Any) -> Any:
    """A column of a data frame."""
    return X.column(name) if _of_arrow(X) else X[name]


def _type_of(values: Any) -> Any:
    return getattr(values, "dtype", getattr(values, "type", None))


def _is_categorical(values: Any) -> bool:
    return is_categorical_type(_type_of(values))


def is_categorical_type(kind: Any) -> bool:
    """Whether a type of columns is categorical."""
    return str(kind).split("(")[0].split("<")[0] in CATEGORIES


def is_raw_type(kind: Any) -> bool:
    """Whether columns of a type are not numbers, or may be missing."""
    return is_categorical_type(kind) or str(kind) == "str" or str(kind).startswith(RAW_TYPES)


def _column(name: Any, values: Any, *, keep_dates: bool = False) -> NDArray[Any]:
    """One column (n,) of a data frame or an array."""
    if _is_categorical(values):
        return _names(_listed(values))
    if keep_dates and getattr(_type_of(values), "tz", None) is not None and hasattr(values, "dt"):
        # Dates of pandas with a time zone, which NumPy does not have.
        values = values.dt.tz_convert(None)
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.dtype.kind == "M" and keep_dates:
        return array.astype("M8[us]")
    if array.dtype.kind == "m" and keep_dates:
        return array.astype("m8[us]") / np.timedelta64(1, "D")
    # Values of several parts may have come as rows of numbers.
    if array.dtype.kind not in "fiub" or array.ndim > 1:
        array = _of_objects(name, _listed(values))
    if array.dtype.kind not in "fiu":
        return array
    numbers = array.astype(np.float64)
    # Whole numbers with gaps have come as float64.
    whole = array.dtype.kind in "iu" or str(_type_of(values)).lower().startswith(("int", "uint"))
    if whole and np.nanmax(np.abs(numbers), initial=0.0) > EXACT_INTEGERS:
        raise inexact(name)
    if np.isinf(numbers).any():
        raise ValueError(f"column {name!r} contains infinity, or a value too large for float64; drop such rows")
    # One representation of NaN: equal rows are found by their bytes.
    numbers[np.isnan(numbers)] = np.nan
    return numbers


def inexact(name: Any) -> ValueError:
    """The error for whole numbers that float64 cannot hold."""
    return ValueError(
        f"column {name!r} contains integers beyond 2^53, which float64 cannot tell apart; convert them to "
        "strings if they are names"
    )


def _listed(values: Any) -> list[Any]:
    """The values of a column as objects of Python."""
    ways = ("to_pylist", "to_list", "tolist")
    return list(next(getattr(values, way) for way in ways if hasattr(values, way))())


def _of_objects(name: Any, values: list[Any]) -> NDArray[Any]:
    """Numbers or Booleans, if all values that are not missing are such; other values as they are."""
    there = [value for value in values if not is_missing(value)]
    truths = [isinstance(value, bool | np.bool_) for value in there]
    if there and all(truths) and len(there) == len(values):
        return np.array(values, dtype=bool)
    if there and not any(truths) and all(map(_is_real, there)):
        if any(isinstance(value, Integral) and abs(int(value)) > EXACT_INTEGERS for value in there):
            raise inexact(name)
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    return _names(values)


def _is_real(value: Any) -> bool:
    """Whether a value is a number; NumPy's durations call themselves such."""
    return isinstance(value, Real) and not isinstance(value, np.timedelta64)


def _names(values: list[Any]) -> NDArray[Any]:
    """Objects (n,), None where they are missing."""
    column = np.empty(len(values), dtype=object)
    column[:] = [None if is_missing(value) else value for value in values]
    return column


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or NA."""
    if isinstance(value, str):
        return False
    if type(value).__name__ in MISSING_TYPES:
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, Real | np.datetime64 | np.timedelta64) and bool(value != value)


def _as_numbers(name: Any, column: NDArray[Any]) -> Array:
    """A column of numbers or Booleans in float64; one without any value is missing everywhere."""
    if column.dtype.kind in "fb":
        return column.astype(np.float64, copy=False)
    there = [value for value in column.tolist() if value is not None]
    if all(isinstance(value, bool) for value in there):
        return np.array([np.nan if value is None else float(value) for value in column.tolist()])
    not_dates(f"column {name!r}", there)
    example = first_text(there)
    raise ValueError(
        f"column {name!r} contains {format_value(there[0] if example is None else example)}, but its kernel takes "
        f"numbers; compare names by equality: OnColumns(Nominal(), [{name!r}])"
    )


def _stacked(name: Any, parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Several parts of a column; where their types differ, numbers are among objects."""
    if len({part.dtype.kind for part in parts}) == 1:
        return np.concatenate(parts)
    return _of_objects(name, [value for part in parts for value in part.tolist()])
