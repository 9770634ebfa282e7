"""Rows in Parquet files, read as they are needed."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.rows.base import BLOCK_ROWS, Block, LocalRows, check_block_rows, regroup

# Bytes read ahead in each column. With it, and without `pre_buffer`, memory does not grow with the row groups.
BUFFER = 2**16


@dataclass(frozen=True)
class _Layout:
    """What the files say about themselves: their paths and rows, the columns of X and their common type."""

    files: tuple[Path, ...]
    counts: tuple[int, ...]
    features: tuple[str, ...]
    dtype: type[np.floating[Any]]


@dataclass(frozen=True)
class ParquetRows(LocalRows):
    """Rows of a Parquet file, or of all files ``*.parquet`` in a folder in the order of their names.

    Blocks are read with pyarrow as they are needed: memory does not depend on the number of rows, nor on the row
    groups, and any cut of the same rows into files gives the same sums. Only paths, options and sizes are stored
    and pickled. X is float32 if all of its columns are, float64 otherwise.

    Parameters
    ----------
    path : str or Path
        A file or a folder.
    target : str or sequence of str, optional
        The column that is y (b,), or the columns that are y (b, q).
    weight : str, optional
        The column of weights.
    columns : sequence of str, optional
        The columns of X, in this order; all but target and weight if not given.
    rows : (int, int), optional
        The first row and the one after the last, counted over all files; all rows if not given. The blocks
        count from the first of them.
    block_rows : int
        Rows in a block; the last one has fewer.
    """

    path: str | Path
    _: KW_ONLY
    target: str | Sequence[str] | None = None
    weight: str | None = None
    columns: Sequence[str] | None = None
    rows: tuple[int, int] | None = None
    block_rows: int = BLOCK_ROWS

    def __post_init__(self) -> None:
        check_block_rows(self.block_rows)
        start, stop = self._range
        if not 0 <= start <= stop <= sum(self._layout.counts):
            raise ValueError(f"rows={self.rows}; {self.path} has rows 0 to {sum(self._layout.counts) - 1}")

    @property
    def n_rows(self) -> int:
        start, stop = self._range
        return stop - start

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of X."""
        return self._layout.features

    def blocks(self) -> Iterator[Block]:
        return regroup(self._read(), self.block_rows)

    def between(self, start: int, stop: int) -> "ParquetRows":
        """Rows start to stop - 1 of these, without looking at the files again."""
        low = self._range[0]
        part = copy.copy(self)
        # The copy has the layout of the original, which `replace` would read from the files.
        object.__setattr__(part, "rows", (low + start, low + stop))
        part.__post_init__()
        return part

    @cached_property
    def _layout(self) -> _Layout:
        files = _files(Path(self.path))
        schemas, counts = zip(*map(_describe, files))
        features = self._features(schemas[0])
        _check_present((*features, *self._labels), schemas[0], files[0])
        names = None if self.columns is None else {*features, *self._labels}
        _check_alike(files, [_restricted(schema, names) for schema in schemas])
        return _Layout(files, counts, features, _common_type(features, schemas[0]))

    @property
    def _targets(self) -> tuple[str, ...]:
        if self.target is None:
            return ()
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)

    @property
    def _labels(self) -> tuple[str, ...]:
        """The columns that are not X."""
        return self._targets if self.weight is None else (*self._targets, self.weight)

    @property
    def _range(self) -> tuple[int, int]:
        return (0, sum(self._layout.counts)) if self.rows is None else self.rows

    def _features(self, schema: dict[str, Any]) -> tuple[str, ...]:
        if self.columns is None:
            return tuple(name for name in schema if name not in self._labels)
        both = sorted(set(self.columns) & set(self._labels))
        if both:
            raise ValueError(
                f"column {both[0]!r} is target or weight, and in columns too; leave it out of columns"
            )
        return tuple(self.columns)

    def _read(self) -> Iterator[Block]:
        """Blocks of any size."""
        start, stop = self._range
        columns = list(dict.fromkeys((*self._layout.features, *self._labels)))
        before, first = 0, 0
        for file, n in zip(self._layout.files, self._layout.counts):
            for batch in _batches(file, start - before, min(stop - before, n), columns, self.block_rows):
                yield self._block(batch, first)
                first += batch.num_rows
            before += n

    def _block(self, batch: Any, first: int) -> Block:
        """X, y and weight of a table of pyarrow."""
        X = np.empty((batch.num_rows, len(self._layout.features)), dtype=self._layout.dtype)
        for j, name in enumerate(self._layout.features):
            X[:, j] = self._values(batch, name, first)
        y = [self._values(batch, name, first) for name in self._targets]
        weight = None if self.weight is None else self._values(batch, self.weight, first).astype(np.float64)
        return Block(X, self._target_of(y), weight, first)

    def _target_of(self, y: list[NDArray[Any]]) -> NDArray[Any] | None:
        if self.target is None:
            return None
        return y[0] if isinstance(self.target, str) else np.column_stack(y)

    def _values(self, batch: Any, name: str, first: int) -> NDArray[Any]:
        column = batch.column(name)
        if column.null_count:
            last = first + batch.num_rows - 1
            raise ValueError(
                f"column {name!r} of {self.path} has {column.null_count} nulls in rows {first} to {last}; "
                "fill them or leave those rows out"
            )
        array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return array


def _parquet() -> Any:
    """The module that reads Parquet."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow, which is missing: pip install mercer[parquet]") from error
    return pyarrow.parquet


def _open(file: Path) -> Any:
    return _parquet().ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)


def _files(path: Path) -> tuple[Path, ...]:
    """The file, or those of the folder; names that begin with a dot or an underscore are not data."""
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}")
    files = tuple(sorted(file for file in path.glob("*.parquet") if file.name[0] not in "._"))
    if not files:
        raise FileNotFoundError(f"there are no files *.parquet in the folder {str(path)!r}")
    return files


def _describe(file: Path) -> tuple[dict[str, Any], int]:
    """Types of the columns by name, and the number of rows: from the end of the file, without its data."""
    with _open(file) as opened:
        schema = opened.schema_arrow
        return dict(zip(schema.names, schema.types)), int(opened.metadata.num_rows)


def _check_present(names: Sequence[str], schema: dict[str, Any], file: Path) -> None:
    for name in names:
        if name not in schema:
            raise ValueError(f"there is no column {name!r} in {str(file)!r}; its columns are {', '.join(schema)}")


def _restricted(schema: dict[str, Any], names: set[str] | None) -> dict[str, Any]:
    return {name: kind for name, kind in schema.items() if names is None or name in names}


def _check_alike(files: tuple[Path, ...], schemas: Sequence[dict[str, Any]]) -> None:
    """All files have the same columns, of the same types."""
    for file, schema in zip(files, schemas):
        for name in schemas[0] | schema:
            here, there = schema.get(name, "missing"), schemas[0].get(name, "missing")
            if here != there:
                raise ValueError(
                    f"column {name!r} is {here} in {str(file)!r} and {there} in {str(files[0])!r}; "
                    "write the files with one schema, or select columns they share with columns=[...]"
                )


def _common_type(features: tuple[str, ...], schema: dict[str, Any]) -> type[np.floating[Any]]:
    """float32 if all columns are, float64 for all other numbers."""
    if not features:
        raise ValueError("there is no column left for X; name at least one with columns=[...]")
    for name in features:
        if not _is_number(str(schema[name])):
            raise ValueError(
                f"column {name!r} is of type {schema[name]}, not a number; leave it out with columns=[...]"
            )
    return np.float32 if {str(schema[name]) for name in features} == {"float"} else np.float64


def _is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint")) or kind in ("bool", "halffloat", "float", "double")


def _batches(file: Path, start: int, stop: int, columns: list[str], size: int) -> Iterator[Any]:
    """Tables of the rows start to stop - 1 of one file, read group by group, and only groups with such rows."""
    start = max(start, 0)
    if start >= stop:
        return
    with _open(file) as opened:
        groups, position = _groups(opened.metadata, start, stop)
        # The cores belong to the threads that work on the blocks.
        for batch in opened.iter_batches(size, row_groups=groups, columns=columns, use_threads=False):
            low, high = max(start - position, 0), min(stop - position, batch.num_rows)
            position += batch.num_rows
            if low < high:
                yield batch.slice(low, high - low)


def _groups(metadata: Any, start: int, stop: int) -> tuple[list[int], int]:
    """The row groups with rows start to stop - 1, and the first row of the first of them."""
    ends = np.cumsum([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)])
    first = int(np.searchsorted(ends, start, side="right"))
    last = int(np.searchsorted(ends, stop, side="left"))
    return list(range(first, last + 1)), int(ends[first - 1]) if first else 0
