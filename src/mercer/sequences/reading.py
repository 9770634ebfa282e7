"""Sequences as users pass them: lists of arrays of frames, checked; or Parquet files with a row for each frame."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mercer import gate
from mercer.rows.base import Block
from mercer.rows.parquet import ParquetRows
from mercer.rows.table import column_names, in_double, in_single, is_frame, is_sparse
from mercer.types import Array, Indices

# Frames are not larger: squares of them, and sums of squares, are finite.
LARGEST = 1e100
WANTED = "pass a list of sequences, each an array of shape (T, d)"


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

    Files are read batch by batch: beside the frames, one batch is in memory.

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
    # All features are read beside the first mark, and one beside each of the others: there must be one.
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
            raise ValueError(f"{name}={gate.shown(column)}; it must be the name of one column")
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
            number = gate.shown(values[0][wrong[:1]].tolist()[0])
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
    if numbers.dtype.kind == "f" and np.abs(numbers).max() >= gate.EXACT:
        raise ValueError(f"numbers of sequences in {column!r} are 2^53 or more; write integers or strings")
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError(f"frames of a sequence are apart; sort the rows by {column!r}, in the order of time")


def checked_sequences(X: Any, *, width: int | None = None, most: float = LARGEST) -> list[Array]:
    """Sequences (T_i, d) of finite numbers up to ``most``, all of the same width and of one type.

    ``width`` is that of the frames that a model was fitted on. Columns of data frames have the same names.
    """
    listed = _listed(X)
    frame_names(listed)
    found = [_checked(f"sequence {i}", each, most) for i, each in enumerate(listed)]
    for i, frames in enumerate(found):
        _check_width(f"sequence {i}", frames, width, found[0].shape[1])
    return found if in_single(*found) else [in_double(each) for each in found]


def one_sequence(X: Any, *, width: int) -> list[Array]:
    """A list of one sequence (T, d), which was passed without a list."""
    if _dimensions(X) > 2:
        raise ValueError(
            f"X is a list of {len(X)} sequences; pass one sequence at a time, an array of shape (T, d): X[0]"
        )
    frames = _checked("X", X, LARGEST)
    _check_width("X", frames, width, width)
    return [frames]


def frame_names(X: Any) -> tuple[Any, ...] | None:
    """Names of the columns of sequences that are data frames, the same for all; None: none is a data frame."""
    named = [(i, column_names(each)) for i, each in enumerate(_listed(X)) if is_frame(each)]
    for i, names in named:
        if names != named[0][1]:
            here, there = (", ".join(map(str, each or ())) for each in (names, named[0][1]))
            raise ValueError(
                f"sequence {i} has the columns {here}, and sequence {named[0][0]} {there}; pass the same columns "
                "in the same order: frame[[...]]"
            )
    return named[0][1] if named else None


def _listed(X: Any) -> list[Any]:
    """The sequences of a list, or of an array or a series that holds them."""
    if isinstance(X, str | bytes | os.PathLike):
        raise ValueError(f"X is {gate.shown(X)}; {WANTED}; read files by read_sequences({gate.shown(X)}, ...)")
    kind, dimensions = type(X).__name__, len(getattr(X, "shape", ()))
    if dimensions == 2:
        raise ValueError(f"X is one {kind} of frames; {WANTED}: [X]")
    if not isinstance(X, Sequence) and dimensions == 0:
        remedy = ": list(X.values())" if isinstance(X, Mapping) else ": list(X)" if isinstance(X, Iterable) else ""
        raise ValueError(f"X is of type {kind}; {WANTED}{remedy}")
    if len(X) == 0:
        raise ValueError("there are no sequences; pass at least one")
    return list(X)


def _dimensions(X: Any) -> int:
    """Number of dimensions; for lists, and arrays or series of objects, one more than that of the first entry."""
    shape = getattr(X, "shape", ())
    if (isinstance(X, list | tuple) or len(shape) == 1) and len(X):
        return 1 + _dimensions(next(iter(X)))
    return len(shape)


def _checked(name: str, X: Any, most: float) -> Array:
    """A sequence of finite numbers; those in float32 stay so, and those in a file are not copied."""
    _check_shape(name, X)
    frames = gate.finite(name, X)
    if in_single(X):
        frames = np.asarray(X)
    largest = max(float(frames.max()), -float(frames.min()))
    if largest > most:
        raise ValueError(
            f"{name} has values up to {largest:.1e}; beyond {most:.0e}, squares overflow; standardize the frames"
        )
    return frames


def _check_shape(name: str, X: Any) -> None:
    try:
        shape = np.shape(X)
    except ValueError as problem:
        raise ValueError(f"frames of {name} differ in length; pass frames as (T, d)") from problem
    if len(shape) == 0:
        raise ValueError(f"{name} is {gate.shown(X)}, of type {type(X).__name__}; pass an array of frames (T, d)")
    if is_sparse(X):
        raise ValueError(f"{name} is a sparse {type(X).__name__}; pass an array of frames (T, d): X.toarray()")
    if 0 in shape:
        raise ValueError(f"{name} has shape {shape}; pass at least one row of at least one number, as (T, d)")
    if len(shape) != 2:
        raise ValueError(f"{name} has shape {shape}; pass frames as (T, d)")


def _check_width(name: str, frames: Array, fitted: int | None, first: int) -> None:
    """Frames are as wide as those that a model was fitted on, or else as those of the first sequence."""
    d, wanted = frames.shape[1], first if fitted is None else fitted
    if d != wanted:
        those = "" if fitted is None else ", those that the model was fitted on"
        raise ValueError(f"{name} has frames of {d} numbers, and others {wanted}{those}; pass the same features")


def read_groups(groups: Any, n: int) -> Indices:
    """The number (n,) of the group of each sequence; None: each is one."""
    if groups is None:
        return np.arange(n)
    found = np.unique(gate.label_column("groups", groups), return_inverse=True)[1]
    if len(found) != n:
        raise ValueError(
            f"there are {n} sequences, and in groups {len(found)} entries; pass one for each sequence"
        )
    return found.astype(np.intp)
