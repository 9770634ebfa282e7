"""Sequences as users pass them: lists of arrays of frames, checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer import gate
from mercer.types import Array, Indices


def read_sequences(X: Any, *, width: int | None = None) -> list[Array]:
    """Sequences (T_i, d) of finite numbers, all of the same width, which may be known."""
    if np.ndim(X) == 2 if isinstance(X, np.ndarray) else not isinstance(X, Sequence):
        raise ValueError(
            f"X is one {type(X).__name__} of frames; pass a list of sequences, each an array of shape (T, d): [X]"
        )
    if len(X) == 0:
        raise ValueError("there are no sequences; pass at least one")
    return [_checked(f"sequence {i}", each, width or np.shape(X[0])[-1]) for i, each in enumerate(X)]


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
