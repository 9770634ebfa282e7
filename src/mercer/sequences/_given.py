"""Sequences as users pass them: lists of arrays of frames, checked."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mercer import _validation
from mercer._types import Array, Indices
from mercer.rows._table import column_names, in_double, in_single, is_frame, is_sparse

# Frames are not larger: squares of them, and sums of squares, are finite.
LARGEST = 1e100
WANTED = "pass a list of sequences, each an array of shape (T, d)"


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
        path = _validation.format_value(X)
        raise ValueError(f"X is {path}; {WANTED}; read files by read_sequences({path}, ...)")
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
    frames = _validation.finite(name, X)
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
        raise ValueError(
            f"{name} is {_validation.format_value(X)}, of type {type(X).__name__}; pass an array of frames (T, d)"
        )
    if is_sparse(X):
        raise ValueError(f"{name} is a sparse {type(X).__name__}; pass an array of frames (T, d): X.toarray()")
    if 0 in shape:
        raise ValueError(f"{name} has shape {shape}; pass at least one row of at least one number, as (T, d)")
    if len(shape) != 2:
        raise ValueError(f"{name} has shape {shape}; pass frames as (T, d)")


def _check_width(name: str, frames: Array, fitted: int | None, first: int) -> None:
    """Frames are as wide as those that a model was fitted on, or else as those of the first sequence."""
    d, expected_width = frames.shape[1], first if fitted is None else fitted
    if d != expected_width:
        others = "others" if fitted is None else "the model was fitted on frames of"
        raise ValueError(
            f"{name} has frames of {d} numbers, and {others} {expected_width}; pass the same features"
        )


def read_groups(groups: Any, n: int) -> Indices:
    """The number (n,) of the group of each sequence; None: each is one."""
    if groups is None:
        return np.arange(n)
    found = np.unique(_validation.label_column("groups", groups), return_inverse=True)[1]
    if len(found) != n:
        raise ValueError(
            f"there are {n} sequences, and in groups {len(found)} entries; pass one for each sequence"
        )
    return found.astype(np.intp)
