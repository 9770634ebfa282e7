"""Sequences from Parquet files with a row for each frame."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mercer import _validation
from mercer._types import Array, Indices
from mercer.rows._base import Block
from mercer.rows._sources.parquet import ParquetRows


@overload
def read_sequences(
    path: str | Path,
    y: str,
    *,
    sequence: str,
    columns: Sequence[str] | None = None,
    groups: None = None,
    file: str | Path | None = None,
) -> tuple[list[Array], NDArray[Any]]: ...


@overload
def read_sequences(
    path: str | Path,
    y: str,
    *,
    sequence: str,
    columns: Sequence[str] | None = None,
    groups: str,
    file: str | Path | None = None,
) -> tuple[list[Array], NDArray[Any], NDArray[Any]]: ...


def read_sequences(
    path: str | Path,
    y: str,
    *,
    sequence: str,
    columns: Sequence[str] | None = None,
    groups: str | None = None,
    file: str | Path | None = None,
) -> tuple[Any, ...]:
    """Sequences (T_i, d) and their labels from Parquet files with a row for each frame, in order.

    Files are read batch by batch: besides the frames, one batch is in memory.

    Parameters
    ----------
    path : str or Path
        A file, or a folder of files in the order of their names.
    y : str
        The column of labels, the same in all frames of a sequence.
    sequence : str
        The column with the number or the name of the sequence: consecutive rows with the same value are one.
    columns : sequence of str, default=None
        The columns that are features, in this order. None: all but those of y, sequence and groups.
    groups : str, default=None
        The column of groups, such as persons or speakers, the same in all frames of a sequence.
    file : str or Path, default=None
        Frames are written to this file in NumPy's format, and arrays are parts of it that the system reads when
        they are used. A file of this name is replaced when all frames are written, and stays as it was after an
        error. None: all frames are in memory.

    Returns
    -------
    X : list of arrays of shape (T_i, d)
        In float32 if all features are, otherwise in float64.
    y : ndarray of shape (n,)
    groups : ndarray of shape (n,)
        Only if a column of groups is named.
    """
    marks = _marks(y, sequence, groups)
    if isinstance(columns, str):
        raise ValueError(f"columns={columns!r}; it must be a list of names: [{columns!r}]")
    place = None if file is None else _place(file, path)
    features = ParquetRows(path, target=marks, columns=columns).feature_names
    # All features are read with the first mark, and one with each of the others: there must be one.
    sources = [
        ParquetRows(path, target=mark, columns=features[:1] if i else features) for i, mark in enumerate(marks)
    ]
    if sources[0].n_rows == 0:
        raise ValueError(f"{path} has no rows; pass files with a row for each frame")
    X, starts, (_, *found) = _read(sources, marks, place)
    return np.split(X, starts[1:]), *found


def _marks(y: Any, sequence: Any, groups: Any) -> list[str]:
    """The columns of numbers, of labels and, if there is one, of groups."""
    named = {"y": y, "sequence": sequence} | ({} if groups is None else {"groups": groups})
    for name, column in named.items():
        if not isinstance(column, str):
            raise ValueError(f"{name}={_validation.format_value(column)}; it must be the name of one column")
    if sequence == y:
        raise ValueError(f"sequence={sequence!r} is the column of labels, too; name one that numbers sequences")
    return [sequence, y] if groups is None else [sequence, y, groups]


def _place(file: str | Path, path: str | Path) -> Path:
    """Where frames are written: what a link leads to."""
    place = Path(file).resolve()
    if Path(path).resolve() in (place, *place.parents):
        raise ValueError(f"file={str(file)!r} is among the files that are read; write frames to another place")
    if place.is_dir():
        raise ValueError(f"file={str(file)!r} is a folder; name a file in it")
    return place


def _read(
    sources: Sequence[ParquetRows], columns: Sequence[str], place: Path | None
) -> tuple[Array, Indices, list[NDArray[Any]]]:
    """All frames (n, d), in memory or in a file; the first row (s,) of each sequence, and its marks (s,)."""
    (example,) = sources[0].between(0, 1).blocks()
    shape, dtype = (sources[0].n_rows, example.X.shape[1]), example.X.dtype
    if place is None:
        X = np.empty(shape, dtype)
        return X, *_cut(sources, columns, lambda block: _put(X, block))
    with _replacing(place, shape, dtype) as append:
        found = _cut(sources, columns, append)
    return np.load(place, mmap_mode="r+"), *found


def _put(X: Array, block: Block) -> None:
    X[block.first : block.first + block.n_rows] = block.X


@contextmanager
def _replacing(place: Path, shape: tuple[int, int], dtype: Any) -> Iterator[Callable[[Block], Any]]:
    """A function that appends blocks to a file, which gets its name when all are written, and goes after an error.

    Arrays that are mapped to an older file of this name stay what they are.
    """
    part = place.with_name(f"{place.name}.{token_hex(4)}.part")
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    try:
        with part.open("xb") as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            yield lambda block: stream.write(np.ascontiguousarray(block.X).data)
        os.replace(part, place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _cut(
    sources: Sequence[ParquetRows], columns: Sequence[str], keep: Callable[[Block], Any]
) -> tuple[Indices, list[NDArray[Any]]]:
    """The first row (s,) of each sequence, and its marks (s,); blocks of frames are kept on the way."""
    starts, marks = [], []
    before: list[NDArray[Any] | None] = [None] * len(sources)
    for blocks in zip(*(source.blocks() for source in sources), strict=True):
        keep(blocks[0])
        values, first = [block.y for block in blocks], blocks[0].first
        for column, own in zip(columns, values):
            _refuse_missing(column, own, first)
        begins = _begins(values, before, first)
        starts.append(first + begins)
        marks.append([own[begins] for own in values])
        before = [own[-1:] for own in values]
    found = [np.concatenate(parts) for parts in zip(*marks)]
    _check_numbers(columns[0], found[0])
    return np.concatenate(starts), found


def _refuse_missing(column: str, values: NDArray[Any], first: int) -> None:
    """Reject NaN and NaT; nulls are refused where they are read."""
    if values.dtype.kind in "fMm" and np.isnan(values).any():
        row = first + int(np.isnan(values).argmax())
        raise ValueError(f"column {column!r} has no value in row {row}; fill it, or drop the row")


def _begins(values: list[NDArray[Any]], before: list[NDArray[Any] | None], first: int) -> Indices:
    """Rows of a block at which sequences begin; within them, labels and groups must not change."""
    own, *others = map(_changes, values, before)
    for what, changes in zip(("labels", "groups"), others):
        wrong = np.flatnonzero(changes & ~own)
        if len(wrong):
            number = _validation.format_value(values[0][wrong[:1]].tolist()[0])
            raise ValueError(
                f"sequence {number} has several {what}, another one in row {first + wrong[0]}; pass one for all "
                "its frames, and other numbers for other sequences"
            )
    return np.flatnonzero(own)


def _changes(values: NDArray[Any], before: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Whether each value (b,) differs from the one before it; that of the first is (1,), or there is none."""
    if before is None:
        return np.append(True, _changes(values[1:], values[:1]))
    return np.asarray(values != np.concatenate([before, values[:-1]]), dtype=bool)


def _check_numbers(column: str, numbers: NDArray[Any]) -> None:
    """Numbers of sequences are exact, and each occurs once."""
    if numbers.dtype.kind == "f" and np.abs(numbers).max() >= _validation.EXACT_INTEGERS:
        raise ValueError(f"numbers of sequences in {column!r} are 2^53 or more; write integers or strings")
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError(f"frames of a sequence are apart; sort the rows by {column!r}, in the order of time")
