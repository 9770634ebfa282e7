"""Sequences as users pass them: lists of arrays of frames, checked; or Parquet files with a row for each frame."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import gate
from mercer.rows.parquet import ParquetRows
from mercer.types import Array, Indices

# Integers below are exact in float64.
EXACT = 2.0**53


def read_sequences(path: str | Path, y: str, *, sequence: str) -> tuple[list[Array], NDArray[Any]]:
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
    """
    frames = ParquetRows(path, target=y)
    if sequence not in frames.feature_names:
        raise ValueError(f"there is no column {sequence!r} among {list(frames.feature_names)} of {path}")
    if frames.n_rows == 0:
        raise ValueError(f"{path} has no rows; pass files with a row for each frame")
    X, number, labels = _read_frames(frames, frames.feature_names.index(sequence))
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


def _read_frames(frames: ParquetRows, place: int) -> tuple[Array, Array, NDArray[Any]]:
    """Features (n, d), numbers of sequences (n,), which are column ``place`` of the file, and labels (n,).

    Features are in memory once.
    """
    n, others = frames.n_rows, np.delete(np.arange(len(frames.feature_names)), place)
    X, number, labels = np.empty((n, len(others))), np.empty(n), []
    for block in frames.blocks():
        rows = slice(block.first, block.first + block.n_rows)
        X[rows], number[rows] = block.X[:, others], block.X[:, place]
        labels.append(block.y)
    return X, number, gate.joined("y", labels)


def checked_sequences(X: Any, *, width: int | None = None) -> list[Array]:
    """Sequences (T_i, d) of finite numbers, all of the same width, which may be known."""
    if np.ndim(X) == 2 if isinstance(X, np.ndarray) else not isinstance(X, Sequence):
        raise ValueError(
            f"X is one {type(X).__name__} of frames; pass a list of sequences, each an array of shape (T, d): [X]"
        )
    if len(X) == 0:
        raise ValueError("there are no sequences; pass at least one")
    return [_checked(f"sequence {i}", each, width or np.shape(X[0])[-1]) for i, each in enumerate(X)]


def one_sequence(X: Any, *, width: int) -> list[Array]:
    """A list of one sequence (T, d), which was passed without a list."""
    if (np.ndim(X[0]) if isinstance(X, list | tuple) and len(X) else np.ndim(X) - 1) > 1:
        raise ValueError(
            f"X is a list of {len(X)} sequences; pass one sequence at a time, an array of shape (T, d): X[0]"
        )
    return checked_sequences([X], width=width)


def _checked(name: str, X: Any, width: int) -> Array:
    frames = gate.finite(name, X)
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
