"""Frames of sequences with their neighbors: all at once, or block by block when they are read."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Indices
from mercer.rows._base import BLOCK_ROWS, Block, LocalRows

# Columns whose values differ by at most this many roundings of the largest are constant.
FRAME_ROUNDING = 4.0


def stacked(sequences: Sequence[Array], context: int) -> Array:
    """All frames (n, (2 context + 1) d) with their neighbors; the ends of sequences are repeated."""
    if context == 0:
        return np.asarray(np.concatenate(sequences))
    n, d = sum(map(len, sequences)), sequences[0].shape[1]
    frames = np.empty((n, (2 * context + 1) * d), dtype=sequences[0].dtype)
    for X, rows in zip(sequences, split(frames, sequences)):
        rows[:] = _with_neighbors(X, np.arange(len(X)), context)
    return frames


def split(values: Array, sequences: Sequence[Array]) -> list[Array]:
    """Values of all frames (n, ...), sequence by sequence."""
    return np.split(values, np.cumsum([len(X) for X in sequences])[:-1])


@dataclass(frozen=True, eq=False)
class FrameRows(LocalRows):
    """Frames with their neighbors as rows, with the state (n,) of each: only a block of them is in memory.

    ``number`` (n,) are the numbers of the frames, counted over all sequences; None: all of them.
    """

    sequences: Sequence[Array]
    state: Indices
    context: int
    number: Indices | None = None
    _: KW_ONLY
    block_rows: int = BLOCK_ROWS

    @property
    def n_rows(self) -> int:
        return len(self.state) if self.number is None else len(self.number)

    def some(self, rows: Indices) -> "FrameRows":
        """Some of the frames."""
        return replace(self, number=rows if self.number is None else self.number[rows])

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            stop = min(start + self.block_rows, self.n_rows)
            frames = np.arange(start, stop) if self.number is None else self.number[start:stop]
            yield Block(self._stacked(frames), self.state[frames], None, start)

    @cached_property
    def _ends(self) -> Indices:
        """Frames up to the end of each sequence."""
        return np.cumsum([len(X) for X in self.sequences])

    def _stacked(self, frames: Indices) -> Array:
        """Frames of these numbers with their neighbors."""
        place = np.searchsorted(self._ends, frames, side="right")
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        parts = []
        for i, own in zip(place[starts], np.split(frames, starts[1:])):
            X = self.sequences[i]
            parts.append(_with_neighbors(X, own - self._ends[i] + len(X), self.context))
        return np.concatenate(parts)


def _with_neighbors(X: Array, frames: Indices, context: int) -> Array:
    """Some frames of a sequence (T, d) with their neighbors."""
    places = np.clip(frames[:, None] + np.arange(-context, context + 1), 0, len(X) - 1)
    return np.asarray(X[places].reshape(len(frames), -1))


def constant(low: Array, high: Array, kind: Any) -> NDArray[np.bool_]:
    """Whether columns with these least and largest values (d,) have only rounding errors of a type of numbers."""
    # Powers of two divide without rounding: the largest value is between 1/2 and 1.
    size = -np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    found: NDArray[np.bool_] = np.ldexp(high, size) - np.ldexp(low, size) <= FRAME_ROUNDING * np.finfo(kind).eps
    return found
