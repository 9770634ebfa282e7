"""From user input to rows, and the first block of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer.rows._base import BLOCK_ROWS, Block, Rows
from mercer.rows._columns import (
    are_names,
    categorical_names,
    column_words,
    has_columns,
    is_categorical_type,
    is_raw_type,
    names_of_columns,
)
from mercer.rows._encoding.rule import is_raw
from mercer.rows._engines.base import EngineRows
from mercer.rows._engines.dask import current_client, dask_rows, parquet_on_dask, types_on_dask
from mercer.rows._engines.ray import is_running, parquet_on_ray, ray_rows, types_on_ray
from mercer.rows._engines.spark import spark_rows, types_on_spark
from mercer.rows._sources.memory import MemoryRows
from mercer.rows._sources.parquet import ParquetRows
from mercer.rows._sources.stream import StreamRows
from mercer.rows._table import as_table, is_table

ACCEPTED = (
    "an array, a memory map, a sparse matrix, a data frame, a list of rows, the path of a Parquet file or of a "
    "folder of them, an iterable of tuples (X,), (X, y) or (X, y, weight), a function that returns one, a "
    "collection of Dask, Ray or Spark, or Rows"
)
# Packages of engines, and the functions that make rows from their collections.
ENGINES: dict[str, Callable[..., EngineRows]] = {"dask": dask_rows, "ray": ray_rows, "pyspark": spark_rows}
# And what types the columns have, by name; None: they have no names.
TYPES: dict[str, Callable[[Any], Mapping[Any, Any] | None]] = {
    "dask": types_on_dask,
    "ray": types_on_ray,
    "pyspark": types_on_spark,
}


@dataclass(frozen=True)
class ColumnTypes:
    """The names of the columns of a source, which have a categorical type, and whether they are a raw table."""

    names: tuple[Any, ...]
    categorical: frozenset[Any]
    is_raw: bool


def as_rows(X: Any, y: Any = None, weight: Any = None, *, block_rows: int = BLOCK_ROWS, raw: bool = False) -> Rows:
    """Rows from any source; for a Parquet path, ``y`` and ``weight`` are column names.

    The data determine where the work runs: collections of an engine are processed there, and Parquet files are
    read by the current Dask client, or by Ray, if there is one. For Ray datasets and Spark DataFrames, ``y`` and
    ``weight`` are column names. ``raw``: blocks have named columns of any values.

    Examples
    --------
    >>> as_rows([[1.0, 2.0], [3.0, 4.0]], y=[0, 1]).n_rows
    2
    """
    if isinstance(X, str | Path):
        form = "raw" if raw else "array"
        return _where_files_are_read(parquet_rows(X, y, weight, block_rows=block_rows, form=form))
    engine = _engine_of(X)
    if engine is not None:
        return ENGINES[engine](X, y, weight, block_rows=block_rows, raw=raw)
    if is_out_of_core(X):
        _refuse_labels(y, weight)
        return _where_files_are_read(X) if isinstance(X, Rows) else StreamRows(X, block_rows=block_rows, raw=raw)
    if is_table(X):
        return MemoryRows(as_table(X), y, weight, block_rows=block_rows)
    raise TypeError(f"rows cannot be read from {type(X).__name__}; pass {ACCEPTED}")


def parquet_rows(path: str | Path, y: Any = None, weight: Any = None, **options: Any) -> ParquetRows:
    """Rows of a Parquet path, whose ``y`` and ``weight`` must be names of columns."""
    _refuse_values(y, weight)
    return ParquetRows(path, target=y, weight=weight, **options)


def is_out_of_core(X: Any) -> bool:
    """Whether rows must be read from X block by block: a path, a stream, a collection of an engine, Rows."""
    return isinstance(X, str | Path | Rows) or callable(X) or _engine_of(X) is not None or _is_stream(X)


def column_types(X: Any, y: Any = None, weight: Any = None, *, ask: bool = False) -> ColumnTypes | None:
    """The columns of X in files, in frames of an engine, or in frames of a stream; None if they have no names.

    Only types are looked at, and what Parquet files say of gaps: no row is read but those of the first of a list
    of frames. ``ask``: a function that makes a stream is asked for its first frame. ParquetRows of named columns
    are a raw table whatever their types.
    """
    named = isinstance(X, ParquetRows) and X.form in ("columns", "raw")
    if isinstance(X, str | Path):
        X = parquet_rows(X, y, weight, form="raw")
    engine = _engine_of(X)
    if isinstance(X, ParquetRows):
        found: Mapping[Any, Any] | None = X.types if X.form in ("columns", "raw") else None
    elif engine is None:
        return _types_of_stream(X, ask)
    else:
        found = TYPES[engine](X)
    if found is None:
        return None
    labels = {*column_words(y), *column_words(weight)}
    types = {name: kind for name, kind in found.items() if name not in labels}
    categorical = frozenset(name for name, kind in types.items() if is_categorical_type(kind))
    gaps = isinstance(X, ParquetRows) and X.has_gaps
    return ColumnTypes(tuple(types), categorical, named or gaps or any(map(is_raw_type, types.values())))


def feature_names(X: Any, y: Any = None, weight: Any = None) -> tuple[str, ...] | None:
    """Column names of X in Parquet files, data frames of an engine or Rows; None if there are none."""
    if isinstance(X, str | Path):
        return ParquetRows(X, target=y, weight=weight).feature_names
    if isinstance(X, Rows):
        names: tuple[str, ...] | None = getattr(X, "feature_names", None)
        return names
    if _engine_of(X) is None or not hasattr(X, "columns"):
        return None
    labels = {*column_words(y), *column_words(weight)}
    return tuple(name for name in X.columns if name not in labels)


def first_block(rows: Rows) -> Block:
    """The first block, for inspection. This starts a pass, which an iterator allows only once."""
    first = next(rows.blocks(), None)
    if first is None:
        raise ValueError("the source has no rows; pass at least one")
    return first


def _engine_of(X: Any) -> str | None:
    """The package that a collection, or a list of its lazy parts, is from; None for data of this process."""
    one = X[0] if isinstance(X, list | tuple) and len(X) > 0 else X
    package = type(one).__module__.split(".")[0]
    return package if package in ENGINES else None


def _types_of_stream(X: Any, ask: bool) -> ColumnTypes | None:
    """The columns of the first frame of a stream, None if it is none, or nobody may look."""
    if callable(X) and ask:
        X = [next(iter(X()), None)]
    first = X[0] if isinstance(X, Sequence) and X else None
    frame = first[0] if isinstance(first, tuple) and first else None
    if not has_columns(frame):
        return None
    return ColumnTypes(tuple(names_of_columns(frame)), frozenset(categorical_names(frame)), is_raw(frame))


def _where_files_are_read(rows: Rows) -> Rows:
    """Parquet files are read by the workers of the current Dask client, by Ray if it is running, or locally."""
    if not isinstance(rows, ParquetRows):
        return rows
    if current_client() is not None:
        return parquet_on_dask(rows)
    return parquet_on_ray(rows) if is_running() else rows


def _is_stream(X: Any) -> bool:
    """An iterator, or a sequence of tuples that begin with a table."""
    if isinstance(X, Iterator):
        return True
    if isinstance(X, Sequence):
        return len(X) > 0 and isinstance(X[0], tuple) and len(X[0]) > 0 and len(np.shape(X[0][0])) >= 2
    return isinstance(X, Iterable) and not is_table(X)


def _refuse_values(y: Any, weight: Any) -> None:
    for name, column in (("y", y), ("weight", weight)):
        if not (column is None or isinstance(column, str) or (name == "y" and are_names(column))):
            raise TypeError(
                f"{name} is of type {type(column).__name__}; for a Parquet path, pass the name of a column"
            )


def _refuse_labels(y: Any, weight: Any) -> None:
    if y is not None or weight is not None:
        raise ValueError("streams and Rows contain y and weight in their blocks; do not pass y and weight")
