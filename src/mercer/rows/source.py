"""From what users have to rows, and a few of them to look at."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.rows.base import BLOCK_ROWS, Block, Rows, is_frame, is_sparse, join
from mercer.rows.memory import MemoryRows
from mercer.rows.parquet import ParquetRows
from mercer.rows.stream import StreamRows

ACCEPTED = (
    "an array, a memory map, a sparse matrix, a frame, a list of rows, the path of a Parquet file or of a folder "
    "of them, an iterable of tuples (X,), (X, y) or (X, y, weight), a function that returns one, or Rows"
)


def as_rows(X: Any, y: Any = None, weight: Any = None, *, block_rows: int = BLOCK_ROWS) -> Rows:
    """Rows from whatever holds them; of a Parquet path, ``y`` and ``weight`` are names of columns.

    Examples
    --------
    >>> as_rows([[1.0, 2.0], [3.0, 4.0]], y=[0, 1]).n_rows
    2
    """
    if isinstance(X, str | Path):
        _refuse_values(y, weight)
        return ParquetRows(X, target=y, weight=weight, block_rows=block_rows)
    if isinstance(X, Rows) or callable(X) or _is_stream(X):
        _refuse_labels(y, weight)
        return X if isinstance(X, Rows) else StreamRows(X, block_rows=block_rows)
    if _is_table(X):
        return MemoryRows(_sliceable(X), y, weight, block_rows=block_rows)
    raise TypeError(f"rows can not be read from {type(X).__name__}; give {ACCEPTED}")


def first_block(rows: Rows) -> Block:
    """The first rows: what they look like. A pass is begun, which an iterator allows only once."""
    first = next(rows.blocks(), None)
    if first is None:
        raise ValueError("there are no rows to look at")
    return first


@dataclass(frozen=True)
class Sample:
    """Some of the rows, in their order: X, y, weight as in a block, and their numbers ``index``."""

    X: Any
    y: Any
    weight: NDArray[np.float64] | None
    index: NDArray[np.intp]

    @property
    def n_rows(self) -> int:
        return len(self.index)


def sample(rows: Rows, n: int, rng: np.random.Generator) -> Sample:
    """n rows drawn uniformly without replacement in one pass; all of them if there are no more than n.

    Every row draws a number, and the n least win. Which rows they are depends on the generator only, not on
    the source of the rows, nor on its blocks. O(n) memory and one random number a row.
    """
    if n < 1:
        raise ValueError(f"a sample of {n} rows was asked for; it has at least one")
    held = _Held.none()
    for block in rows.blocks():
        held = held.with_rows_of(block, rng.random(block.n_rows))
        if len(held.key) >= 2 * n:
            held = held.least(n)
    if not held.parts:
        raise ValueError("there are no rows to draw from")
    return held.least(n).sample()


@dataclass(frozen=True)
class _Held:
    """Rows still in the draw: parts of blocks, their numbers and keys, and the key at which rows lose."""

    parts: tuple[Block, ...]
    index: NDArray[np.intp]
    key: NDArray[np.float64]
    bound: float

    @classmethod
    def none(cls) -> "_Held":
        return cls((), np.empty(0, dtype=np.intp), np.empty(0), np.inf)

    def with_rows_of(self, block: Block, key: NDArray[np.float64]) -> "_Held":
        chosen = np.flatnonzero(key < self.bound)
        if len(chosen) == 0:
            return self
        index = np.concatenate([self.index, block.first + chosen])
        # A copy: a view would keep the whole block.
        return _Held((*self.parts, block.take(chosen)), index, np.concatenate([self.key, key[chosen]]), self.bound)

    def least(self, n: int) -> "_Held":
        """With the n least keys only, in the order of the rows."""
        if len(self.key) <= n:
            return self
        keep = np.sort(np.argpartition(self.key, n - 1)[:n])
        key = self.key[keep]
        return _Held((join(self.parts).take(keep),), self.index[keep], key, float(key.max()))

    def sample(self) -> Sample:
        block = join(self.parts)
        return Sample(block.X, block.y, block.weight, self.index)


def _is_stream(X: Any) -> bool:
    """An iterator, or a sequence of tuples that begin with a table."""
    if isinstance(X, Iterator):
        return True
    if isinstance(X, Sequence):
        return len(X) > 0 and isinstance(X[0], tuple) and len(X[0]) > 0 and len(np.shape(X[0][0])) >= 2
    return isinstance(X, Iterable) and not _is_table(X)


def _is_table(X: Any) -> bool:
    return (hasattr(X, "shape") and len(X.shape) > 0) or is_frame(X) or isinstance(X, Sequence)


def _sliceable(X: Any) -> Any:
    """Sparse matrices as CSR, lists of lists of numbers as arrays; the rest as it is."""
    if is_sparse(X):
        return X.tocsr()
    if isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], list | tuple):
        return np.asarray(X)
    return X


def _refuse_values(y: Any, weight: Any) -> None:
    for name, column in (("y", y), ("weight", weight)):
        if not (column is None or isinstance(column, str) or (name == "y" and _all_words(column))):
            raise TypeError(
                f"{name} of a Parquet path is the name of a column, not of type {type(column).__name__}"
            )


def _all_words(names: Any) -> bool:
    return isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)


def _refuse_labels(y: Any, weight: Any) -> None:
    if y is not None or weight is not None:
        raise ValueError("a stream, and Rows, carry y and weight in their blocks; leave y and weight out")
