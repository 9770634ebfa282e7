"""Sequences as users pass them: lists of arrays of frames, checked; or Parquet files with a row for each frame."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import gate
from mercer.rows.parquet import ParquetRows
from mercer.rows.table import in_double, in_single
from mercer.types import Array, Indices

# Integers below are exact in float64.
EXACT = 2.0**53


def read_sequences(
    path: str | Path, y: str, *, sequence: str, file: str | Path | None = None
) -> tuple[list[Array], NDArray[Any]]:
    """Sequences (T_i, d) and their labels from Parquet files with a row for each frame, in order.

    Parameters
    ----------
    path : str or Path
        A file, or a folder of files in the order of their names.
    y : str
        The column of labels, the same in all frames of a sequence.
    sequence : str
        The column with the number of the sequence: consecutive rows with the same number are one. All other
        columns are features.
    file : str or Path, default=None
        Frames are written to this file in NumPy's format, and arrays are parts of it that the system reads when
        they are used; a file of this name is replaced. None: all frames are in memory.

    Returns
    -------
    X : list of arrays of shape (T_i, d)
        In float32 if all features are, otherwise in float64.
    y : ndarray of shape (n,)
    """
    if file is not None and Path(path).resolve() in (Path(file).resolve(), *Path(file).resolve().parents):
        raise ValueError(f"file={str(file)!r} is among the files that are read; write frames to another place")
    named = ParquetRows(path, target=y).feature_names
    if sequence not in named:
        raise ValueError(f"there is no column {sequence!r} among {list(named)} of {path}")
    features = [name for name in named if name != sequence]
    frames = ParquetRows(path, target=y, columns=features)
    if frames.n_rows == 0:
        raise ValueError(f"{path} has no rows; pass files with a row for each frame")
    X, labels = _read_frames(frames, file)
    number = np.concatenate([block.X[:, 0] for block in ParquetRows(path, columns=[sequence]).blocks()])
    if np.abs(number).max(initial=0.0) >= EXACT:
        raise ValueError(f"numbers of sequences in {sequence!r} are 2^53 or more; number them from 0")
    starts = np.flatnonzero(np.r_[True, number[1:] != number[:-1]])
    if len(np.unique(number[starts])) < len(starts):
        raise ValueError(f"frames of a sequence are apart; sort the rows by {sequence!r}, in the order of time")
    words = np.split(labels, starts[1:])
    mixed = [i for i, own in enumerate(words) if (own != own[0]).any()]
    if mixed:
        raise ValueError(f"sequence {number[starts[mixed[0]]]:g} has several labels; pass one for all its frames")
    return np.split(X, starts[1:]), labels[starts]


def _read_frames(frames: ParquetRows, file: str | Path | None) -> tuple[Array, NDArray[Any]]:
    """Features (n, d), in memory once or in a file, and labels (n,)."""
    X, labels = None, []
    for block in frames.blocks():
        if X is None:
            X = _room((frames.n_rows, block.X.shape[1]), block.X.dtype, file)
        X[block.first : block.first + block.n_rows] = block.X
        labels.append(block.y)
    assert X is not None
    return X, gate.joined("y", labels)


def _room(shape: tuple[int, int], dtype: Any, file: str | Path | None) -> Array:
    """An array to be filled, in memory or in a file that is mapped to memory."""
    if file is None:
        return np.empty(shape, dtype)
    # Not overwritten: arrays that are mapped to a file of this name stay what they are.
    Path(file).unlink(missing_ok=True)
    return np.lib.format.open_memmap(file, "w+", dtype, shape)


def checked_sequences(X: Any, *, width: int | None = None) -> list[Array]:
    """Sequences (T_i, d) of finite numbers, all of the same width, which may be known, and of one type."""
    if np.ndim(X) == 2 if isinstance(X, np.ndarray) else not isinstance(X, Sequence):
        raise ValueError(
            f"X is one {type(X).__name__} of frames; pass a list of sequences, each an array of shape (T, d): [X]"
        )
    if len(X) == 0:
        raise ValueError("there are no sequences; pass at least one")
    found = [_checked(f"sequence {i}", each, width or np.shape(X[0])[-1]) for i, each in enumerate(X)]
    return found if in_single(*found) else [in_double(each) for each in found]


def one_sequence(X: Any, *, width: int) -> list[Array]:
    """A list of one sequence (T, d), which was passed without a list."""
    if (np.ndim(X[0]) if isinstance(X, list | tuple) and len(X) else np.ndim(X) - 1) > 1:
        raise ValueError(
            f"X is a list of {len(X)} sequences; pass one sequence at a time, an array of shape (T, d): X[0]"
        )
    return checked_sequences([X], width=width)


def _checked(name: str, X: Any, width: int) -> Array:
    """A sequence of finite numbers; those in float32 stay so, and those in a file are not copied."""
    frames = gate.finite(name, X)
    if in_single(X):
        frames = np.asarray(X)
    if frames.ndim != 2:
        raise ValueError(f"{name} has shape {frames.shape}; pass frames as (T, d)")
    if frames.shape[1] != width:
        raise ValueError(
            f"{name} has frames of {frames.shape[1]} numbers, and others {width}; pass the same features"
        )
    return frames


def read_groups(groups: Any, n: int) -> Indices:
    """The number (n,) of the group of each sequence; None: each is one."""
    if groups is None:
        return np.arange(n)
    found = np.unique(gate.labels("groups", groups), return_inverse=True)[1]
    if found.shape != (n,):
        raise ValueError(f"X has {n} sequences and groups {len(found)} entries; pass one for each sequence")
    return found.astype(np.intp)
