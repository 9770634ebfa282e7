"""Rows in Parquet files, read as they are needed."""

import copy
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from os.path import isdir, isfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer._types import Indices
from mercer._validation import format_value
from mercer.rows._base import BLOCK_ROWS, Block, LocalRows, check_block_rows, regroup
from mercer.rows._columns import is_categorical_type, is_raw_type, listed_names, read_columns
from mercer.rows._optional import optional

# Bytes read ahead per column. With this, and without `pre_buffer`, memory does not grow with the row groups.
BUFFER = 2**16
# How names begin under which pandas stores an index without a name: it numbers rows, and says nothing of them.
INDEX = "__index_level_"
# Nested column types.
NESTED = ("list", "large_list", "fixed_size_list", "struct", "map")
# How types begin whose values raw columns hold alike, whatever the type of the first file.
TYPES_OF_VALUES = {
    "number": ("int", "uint", "halffloat", "float", "double", "decimal"),
    "text": ("string", "large_string", "dictionary<values=string", "dictionary<values=large_string"),
    "date": ("date",),
}
# What X of a block may be.
PARQUET_FORMS = ("array", "columns", "raw", "list")


@dataclass(frozen=True)
class _Layout:
    """Metadata of the files: their paths and row counts, the columns of X and their common type.

    ``kinds`` are the names of the types of all columns that are read, of each file.
    """

    files: tuple[Path, ...]
    counts: tuple[int, ...]
    features: tuple[str, ...]
    dtype: type[np.floating[Any]]
    kinds: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class ParquetRows(LocalRows):
    """Rows of a Parquet file, or of all files ``*.parquet`` in a folder in the order of their names.

    Blocks are read with pyarrow as needed: memory does not depend on the number of rows, nor on the row groups,
    and any split of the same rows into files gives the same sums. Only paths, options and sizes are stored and
    pickled. X is float32 if all of its columns are, float64 otherwise. Page checksums are verified if the files
    have them, and errors name a file that cannot be read or whose rows or columns have changed.

    Parameters
    ----------
    path : str or Path
        A file or a folder.
    target : str or sequence of str, optional
        The column that is y (b,), or the columns that are y (b, q).
    weight : str, optional
        The column of weights.
    columns : sequence of str, optional
        The columns of X, in this order; default: all but target, weight and an index of pandas without a name.
    rows : (int, int), optional
        The first row and the one after the last, numbered across all files; default: all rows. Row numbers of
        blocks start at the first of them.
    block_rows : int
        Number of rows per block; the last block may be smaller.
    form : {"array", "columns", "raw", "list"}
        What X of a block is: an array of numbers (b, d); named columns of numbers and names, for kernels
        :class:`~mercer.kernels.OnColumns`; columns of any values, also dates, for models of raw tables, whose
        files may have integers and others floats, or no value at all; or a list of the values of one column, such
        as strings.
    """

    path: str | Path
    _: KW_ONLY
    target: str | Sequence[str] | None = None
    weight: str | None = None
    columns: Sequence[str] | None = None
    rows: tuple[int, int] | None = None
    block_rows: int = BLOCK_ROWS
    form: Literal["array", "columns", "raw", "list"] = "array"

    def __post_init__(self) -> None:
        check_block_rows(self.block_rows)
        if self.form not in PARQUET_FORMS:
            raise ValueError(f'form={self.form!r}; it must be "array", "columns", "raw" or "list"')
        start, stop = self._range
        if not 0 <= start <= stop <= sum(self._layout.counts):
            raise ValueError(
                f"rows={self.rows}; it must lie within rows 0 to {sum(self._layout.counts) - 1} of {self.path}"
            )

    @property
    def n_rows(self) -> int:
        start, stop = self._range
        return stop - start

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of X."""
        return self._layout.features

    @property
    def types(self) -> dict[str, str]:
        """The names of the types of the columns of X, of files with several the one that tells most.

        Categories that files store as numbers or text are still categories.
        """
        kinds = self._layout.kinds
        with _open(self._layout.files[0]) as opened:
            written = {name: kind for name, kind in _arrow_types(opened) if is_categorical_type(kind)}
        tell = {name: max((kind[name] for kind in kinds), key=_tells) for name in self._layout.features}
        return tell | {name: kind for name, kind in written.items() if name in tell}

    @property
    def has_gaps(self) -> bool:
        """Whether columns of X have nulls, as far as the footers of the files say."""
        features = set(self._layout.features)
        return any(name in features for file in self._layout.files for name in _names_with_nulls(file))

    def blocks(self) -> Iterator[Block]:
        return regroup(self._read(), self.block_rows)

    def between(self, start: int, stop: int) -> "ParquetRows":
        """Rows start to stop - 1 of these, without reading the metadata again."""
        low = self._range[0]
        part = copy.copy(self)
        # The copy reuses the layout, which `replace` would read from the files again.
        object.__setattr__(part, "rows", (low + start, low + stop))
        part.__post_init__()
        return part

    @cached_property
    def _layout(self) -> _Layout:
        files = _files(self.path, of_objects=self.form == "list")
        columns, counts = zip(*map(_describe, files))
        schemas = [dict(pairs) for pairs in columns]
        features = self._features(schemas[0])
        used = tuple(dict.fromkeys((*features, *self._labels)))
        for file, pairs in zip(files, columns):
            _check_single(used, pairs, file)
        _check_present(used, schemas[0], files[0])
        raw = features if self.form == "raw" else ()
        _check_alike(files, schemas, None if self.columns is None else used, raw)
        kinds = tuple({name: schema[name] for name in used} for schema in schemas)
        _check_labels(listed_names(self.target), self.weight, kinds[0])
        if self.form == "list":
            _check_one(features)
        dtype = _common_type(features, kinds[0]) if self.form == "array" else np.float64
        return _Layout(files, counts, features, dtype, kinds)

    @property
    def _labels(self) -> list[str]:
        """The columns that are not X."""
        return listed_names(self.target) + listed_names(self.weight)

    @property
    def _range(self) -> tuple[int, int]:
        return (0, sum(self._layout.counts)) if self.rows is None else self.rows

    def _features(self, schema: dict[str, str]) -> tuple[str, ...]:
        if self.columns is None:
            return tuple(name for name in schema if name not in self._labels and not name.startswith(INDEX))
        both = sorted(set(self.columns) & set(self._labels))
        if both:
            raise ValueError(
                f"column {both[0]!r} is the target or weight and also in columns; remove it from columns"
            )
        return tuple(self.columns)

    def _read(self) -> Iterator[Block]:
        """Blocks of any size."""
        start, stop = self._range
        before, first = 0, 0
        for file, n, kinds in zip(self._layout.files, self._layout.counts, self._layout.kinds):
            ends = max(start - before, 0), min(stop - before, n)
            for batch in _batches(file, n, kinds, *ends, self.block_rows):
                yield self._block(batch, first)
                first += batch.num_rows
            before += n

    def _block(self, batch: Any, first: int) -> Block:
        """X, y and weight of a pyarrow table."""
        y = [self._values(batch, name, first) for name in listed_names(self.target)]
        weight = None if self.weight is None else self._values(batch, self.weight, first).astype(np.float64)
        target = y[0] if isinstance(self.target, str) else None if self.target is None else np.column_stack(y)
        return Block(self._features_of(batch, first), target, weight, first)

    def _features_of(self, batch: Any, first: int) -> Any:
        """X of a pyarrow table: an array, named columns, or a list."""
        features = self._layout.features
        if self.form in ("columns", "raw"):
            return read_columns(batch, features, keep_dates=self.form == "raw")
        if self.form == "list":
            return _without_nulls(self.path, batch, features[0], first).to_pylist()
        X = np.empty((batch.num_rows, len(features)), dtype=self._layout.dtype)
        for j, name in enumerate(features):
            X[:, j] = self._values(batch, name, first)
        return X

    def _values(self, batch: Any, name: str, first: int) -> NDArray[Any]:
        column = _without_nulls(self.path, batch, name, first)
        with _naming(f"column {name!r} of {self.path}"):
            array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return array


def _without_nulls(path: str | Path, batch: Any, name: str, first: int) -> Any:
    """A column of a pyarrow table, whose first row has the number ``first``."""
    column = batch.column(name)
    if column.null_count:
        last = first + batch.num_rows - 1
        raise ValueError(
            f"column {name!r} of {path} has {column.null_count} nulls in rows {first} to {last}; fill "
            "them or drop those rows"
        )
    return column


def _parquet() -> Any:
    """The module that reads Parquet."""
    with optional("parquet", "Parquet files need pyarrow"):
        import pyarrow.parquet
    return pyarrow.parquet


def _open(file: Path) -> Any:
    parquet = _parquet()
    with _naming(repr(str(file))):
        return parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True)


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Add to errors of pyarrow what could not be read; those that may vanish on a retry remain OSError."""
    try:
        yield
    except MemoryError as error:
        error.add_note(f"while reading {what}")
        raise
    except Exception as error:
        kind = type(error) if isinstance(error, OSError) else ValueError
        raise kind(
            f"{what} cannot be read: {error}; the file is not a Parquet file, is damaged, or was changed or "
            "removed while it was in use: write it again"
        ) from error


def _files(path: str | Path, *, of_objects: bool) -> tuple[Path, ...]:
    """The file, or those in the folder; names that begin with a dot or an underscore are ignored."""
    # Not Path.is_file, which raises an error for a text that is too long for a name.
    if isfile(path):
        return (Path(path),)
    if not isdir(path):
        text = format_value(str(path))
        remedy = f"; a string is read as the path of a Parquet file: for one text, pass a list, [{text}]"
        raise FileNotFoundError(
            f"there is no file or folder {text}{remedy if of_objects and isinstance(path, str) else ''}"
        )
    files = tuple(sorted(file for file in Path(path).glob("*.parquet") if file.name[0] not in "._"))
    if not files:
        raise FileNotFoundError(f"there are no files *.parquet in the folder {str(path)!r}")
    return files


def _describe(file: Path) -> tuple[list[tuple[str, str]], int]:
    """Names and types of the columns, and the number of rows, from the footer of the file."""
    with _open(file) as opened:
        schema, n = opened.schema_arrow, int(opened.metadata.num_rows)
        with _naming(repr(str(file))):
            _check_rows(int(_ends(opened.metadata)[-1]), n)
            _check_types(opened)
            return [(name, str(kind)) for name, kind in zip(schema.names, schema.types)], n


def _names_with_nulls(file: Path) -> Iterator[str]:
    """The names of columns of which a row group has nulls, by its statistics."""
    with _open(file) as opened:
        for group in map(opened.metadata.row_group, range(opened.metadata.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                found = column.statistics
                if found is not None and found.has_null_count and found.null_count > 0:
                    yield column.path_in_schema


def _check_rows(found: int, expected: int) -> None:
    """The number of rows found equals the number in the footer of the file."""
    if found != expected:
        raise ValueError(f"expected {expected} rows, found {found}")


def _check_types(opened: Any) -> None:
    """Arrow stores its own schema in the files it writes, so that a wrong byte in either one is detected."""
    there = _arrow_types(opened)
    for name, kind in zip(opened.schema_arrow.names, map(str, opened.schema_arrow.types)):
        # Several columns may have one name.
        kinds = [stored_kind for stored_name, stored_kind in there if stored_name == name]
        if kinds and not {"", _family(kind)} & set(map(_family, kinds)):
            raise ValueError(f"column {name!r} is {kind} in the Parquet schema and {kinds[0]} in the Arrow schema")


def _arrow_types(opened: Any) -> list[tuple[str, str]]:
    """Names and types of the columns before they were written, if Arrow has stored them."""
    import pyarrow

    stored = (opened.metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return []
    schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(b64decode(stored)))
    return [(name, str(kind)) for name, kind in zip(schema.names, schema.types)]


def _family(kind: str) -> str:
    """What a type is read as, empty if that depends on the reader: integers may become wider ones."""
    if kind.startswith(("int", "uint")):
        return "int"
    return kind if kind in ("bool", "halffloat", "float", "double", "string", "large_string") else ""


def _check_single(names: Sequence[str], columns: list[tuple[str, str]], file: Path) -> None:
    counts = Counter(name for name, _ in columns)
    for name in names:
        if counts[name] > 1:
            raise ValueError(
                f"{str(file)!r} has {counts[name]} columns named {name!r}; rename them, or exclude them with "
                "columns=[...]"
            )


def _check_present(names: Sequence[str], schema: dict[str, str], file: Path) -> None:
    for name in names:
        if name not in schema:
            raise ValueError(f"there is no column {name!r} in {str(file)!r}; its columns are {', '.join(schema)}")


def _check_alike(
    files: tuple[Path, ...], schemas: Sequence[dict[str, str]], names: Sequence[str] | None, raw: Sequence[str]
) -> None:
    """All files have the same columns with the same types; ``names``: only these matter.

    Types of ``raw`` columns may differ if their values are alike.
    """
    first: dict[str, tuple[Path, str]] = {}
    for file, schema in zip(files, schemas):
        for name in names or schemas[0] | schema:
            here = schema.get(name, "missing")
            known, there = first.get(name, (files[0], schemas[0].get(name, "missing")))
            if here != there and not (name in raw and _are_alike(here, there)):
                raise ValueError(
                    f"column {name!r} is {here} in {str(file)!r} and {there} in {str(known)!r}; write the files "
                    "with one schema, or select common columns: ParquetRows(path, columns=[...])"
                )
            if here != "null":
                first.setdefault(name, (file, here))


def _are_alike(here: str, there: str) -> bool:
    """Whether raw columns of these types hold values of one kind; of the type null there are none."""
    if "missing" in (here, there):
        return False
    return "null" in (here, there) or "" != _held(here) == _held(there)


def _held(kind: str) -> str:
    """What raw columns of a type hold, empty if only columns of the same type hold it."""
    if kind.startswith("timestamp"):
        return "moment in UTC" if "tz=" in kind else "moment"
    return next((held for held, starts in TYPES_OF_VALUES.items() if kind.startswith(starts)), "")


def _tells(kind: str) -> tuple[bool, bool]:
    """Whether a type says that columns are categories, and that they are no complete numbers."""
    return is_categorical_type(kind), is_raw_type(kind)


def _check_labels(targets: Sequence[str], weight: str | None, schema: dict[str, str]) -> None:
    """Targets have one value for each row, and weights are numbers."""
    for name in targets:
        if schema[name].startswith(NESTED):
            raise ValueError(
                f"column {name!r} is of type {schema[name]}, not one value for each row; for several targets, "
                "pass the names of several columns"
            )
    if weight is not None and not (_is_number(schema[weight]) or schema[weight].startswith("decimal")):
        raise ValueError(f"column {weight!r} is of type {schema[weight]}, which is not numeric; cast it")


def _check_one(features: tuple[str, ...]) -> None:
    """Rows that are objects are in one column."""
    if len(features) != 1:
        raise ValueError(
            f"a row is one object, but X has {len(features)} columns, {', '.join(features)}; name one of them: "
            'ParquetRows(path, columns=[...], target=..., form="list"), or use kernels OnColumns'
        )


def _common_type(features: tuple[str, ...], schema: dict[str, str]) -> type[np.floating[Any]]:
    """float32 if all columns are, float64 for all other numeric types."""
    if not features:
        raise ValueError("there are no columns for X; name at least one with columns=[...]")
    for name in features:
        if not _is_number(schema[name]):
            raise ValueError(
                f"column {name!r} is of type {schema[name]}, which is not numeric; cast it to float64, or exclude "
                'it with columns=[...]; kernels on strings and on named columns, and ParquetRows(form="raw") for '
                "models of raw tables, take it as it is"
            )
    return np.float32 if {schema[name] for name in features} == {"float"} else np.float64


def _is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint")) or kind in ("bool", "halffloat", "float", "double")


def _batches(file: Path, n_rows: int, columns: dict[str, str], start: int, stop: int, size: int) -> Iterator[Any]:
    """Tables of the rows start to stop - 1 of one file, read group by group, and only groups with such rows.

    The file must have ``n_rows`` rows and these columns with these types.
    """
    if start >= stop:
        return
    with _open(file) as opened:
        _check_unchanged(opened, file, n_rows, columns)
        groups, position, end = _groups(opened.metadata, start, stop)
        # Leave the cores to the threads that process the blocks.
        batches = opened.iter_batches(size, row_groups=groups, columns=list(columns), use_threads=False)
        while True:
            with _naming(f"rows {position} to {min(position + size, end) - 1} of {str(file)!r}"):
                batch = next(batches, None)
                if batch is None:
                    _check_rows(position, end)
                    return
            low, high = max(start - position, 0), min(stop - position, batch.num_rows)
            position += batch.num_rows
            if low < high:
                yield batch.slice(low, high - low)


def _check_unchanged(opened: Any, file: Path, n_rows: int, columns: dict[str, str]) -> None:
    """The file has not changed since its metadata were read."""
    if opened.metadata.num_rows != n_rows:
        raise ValueError(
            f"{str(file)!r} has {opened.metadata.num_rows} rows now and had {n_rows} before; do not change files "
            "until the fit is done"
        )
    schema = dict(zip(opened.schema_arrow.names, map(str, opened.schema_arrow.types)))
    for name, kind in columns.items():
        if schema.get(name) != kind:
            raise ValueError(
                f"column {name!r} of {str(file)!r} is {schema.get(name, 'missing')} now and was {kind} before; do "
                "not change files until the fit is done"
            )


def _groups(metadata: Any, start: int, stop: int) -> tuple[list[int], int, int]:
    """The row groups with rows start to stop - 1, their first row, and the one after their last."""
    ends = _ends(metadata)
    first = int(np.searchsorted(ends[1:], start, side="right"))
    last = int(np.searchsorted(ends[1:], stop, side="left"))
    return list(range(first, last + 1)), int(ends[first]), int(ends[last + 1])


def _ends(metadata: Any) -> Indices:
    """Zero, and the row after the last of every row group."""
    counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    return np.cumsum([0, *counts], dtype=np.intp)
