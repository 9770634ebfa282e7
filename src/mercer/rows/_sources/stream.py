"""Rows from an iterable of blocks."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from mercer.rows._base import BLOCK_ROWS, Block, LocalRows, check_block_rows, check_lengths, regroup
from mercer.rows._columns import read_columns
from mercer.rows._table import as_table, column_names, numbers, targets, weights

END_OF_STREAM = object()

Source = Iterable[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]]


@dataclass
class _Passes:
    """Results of passes over a stream: whether one was started, column names, the number of rows."""

    begun: bool = False
    n_rows: int | None = None
    names: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class StreamRows(LocalRows):
    """Rows from tuples (X,), (X, y) or (X, y, weight), in a list or from a function that returns an iterator.

    Large blocks are split and small ones joined, so that any batching of the same rows gives the same sums. An
    iterator is accepted, but only for one pass: the second raises an error. ``n_rows`` is known after one pass,
    and so are ``feature_names`` if blocks are data frames, which must all have the same columns. Picklable if
    ``source`` is.

    Parameters
    ----------
    source : iterable of tuples, or function that returns one
        X as for :class:`mercer.rows.MemoryRows`, or lists of lists of numbers; if dense and sparse blocks are
        joined, the result has the format of the first.
    block_rows : int
        Number of rows per block; the last block may be smaller.
    raw : bool
        Whether data frames are read as named columns of any values, rather than as numbers.

    Examples
    --------
    >>> import numpy as np
    >>> rows = StreamRows(lambda: ((np.full((2, 1), i), [i, i]) for i in range(5)), block_rows=4)
    >>> [block.n_rows for block in rows.blocks()]
    [4, 4, 2]
    """

    source: Source
    _: KW_ONLY
    block_rows: int = BLOCK_ROWS
    raw: bool = False
    _passes: _Passes = field(default_factory=_Passes, init=False, repr=False)

    def __post_init__(self) -> None:
        check_block_rows(self.block_rows)

    @property
    def n_rows(self) -> int | None:
        return self._passes.n_rows

    @property
    def feature_names(self) -> tuple[Any, ...] | None:
        """Column names, after a pass over data frames."""
        return self._passes.names

    @property
    def once(self) -> bool:
        """Whether the source is an iterator, which cannot be restarted."""
        return isinstance(self.source, Iterator) and not callable(self.source)

    def blocks(self) -> Iterator[Block]:
        # Not a generator itself: a second pass over an iterator raises an error here, not at the first block.
        return regroup(self._numbered(self._begin()), self.block_rows)

    def _begin(self) -> Iterator[tuple[Any, ...]]:
        if self.once and self._passes.begun:
            raise ValueError(
                "this iterator was already consumed and cannot be restarted; pass a function that returns the "
                "iterator"
            )
        self._passes.begun = True
        return iter(self.source() if callable(self.source) else self.source)

    def _numbered(self, items: Iterator[tuple[Any, ...]]) -> Iterator[Block]:
        first = 0
        self._passes.names = None
        for position in itertools.count():
            item = _next(items, position, first)
            if item is END_OF_STREAM:
                break
            self._passes.names = _same_names(item, position, self._passes.names)
            block = _block(item, position, first, raw=self.raw)
            first += block.n_rows
            yield block
        self._passes.n_rows = first


def _next(items: Iterator[Any], position: int, first: int) -> Any:
    """The item at this position, END_OF_STREAM after the last; errors of the source get a note."""
    try:
        return next(items, END_OF_STREAM)
    except Exception as error:
        error.add_note(f"in block {position} of the stream, after {first} rows")
        raise


def _block(item: Any, position: int, first: int, *, raw: bool) -> Block:
    """The block of the tuple at this position of the stream."""
    if not isinstance(item, tuple) or not 1 <= len(item) <= 3:
        raise TypeError(
            f"block {position} of the stream is {_kind(item)}; pass tuples (X,), (X, y) or (X, y, weight)"
        )
    X, y, weight = item + (None,) * (3 - len(item))
    check_lengths(X, y, weight, where=f" in block {position} of the stream")
    X = read_columns(X, keep_dates=True) if raw else numbers(as_table(X))
    return Block(X, targets(y), weights(weight), first)


def _same_names(item: Any, position: int, names: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Column names so far, which must be those of this item if it is a data frame."""
    own = column_names(item[0]) if isinstance(item, tuple) and item else None
    if own is not None and names is not None and own != names:
        raise ValueError(
            f"block {position} of the stream has the columns {', '.join(map(str, own))}, but previous blocks have "
            f"{', '.join(map(str, names))}; pass the same columns in the same order"
        )
    return names if own is None else own


def _kind(item: Any) -> str:
    return f"a tuple of {len(item)}" if isinstance(item, tuple) else f"of type {type(item).__name__}"
