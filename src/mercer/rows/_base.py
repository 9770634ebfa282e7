"""Rows from any source: an object that yields blocks of rows, as often as needed, and sums over them."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from mercer._linalg.threads import stream_in_threads
from mercer._types import Array, Indices
from mercer._validation import same_type
from mercer.rows._progress import progress
from mercer.rows._table import HasRows, join, n_rows, take

# Adding up blocks costs little compared with the blocks themselves: twice the rows of one matrix product.
BLOCK_ROWS = 8192


@dataclass(frozen=True)
class Block(HasRows):
    """Some rows in sequence: X (b rows), y (b, ...) or None, weight (b,) or None, the number of the first.

    X is a table of rows, or a dict of tables that are views of the same rows; see :mod:`mercer.rows._table`.
    ``unit`` (b,) is the part of its weight that is held out with a row, None: all of it.
    """

    X: Any
    y: Any
    weight: Array | None
    first: int
    unit: Array | None = None

    def with_weight(self) -> "Block":
        """The same, with weights of one if there were none."""
        return self if self.weight is not None else replace(self, weight=np.ones(self.n_rows))

    def cut(self, start: int, stop: int) -> "Block":
        """Rows start to stop - 1 of the block."""
        if start == 0 and stop == self.n_rows:
            return self
        return replace(self.take(slice(start, stop)), first=self.first + start)

    def take(self, rows: Indices | slice) -> "Block":
        """Some rows of the block, as a block whose rows are not in sequence; ``first`` is kept."""
        X, y, weight, unit = (take(part, rows) for part in (self.X, self.y, self.weight, self.unit))
        return Block(X, y, weight, self.first, unit)


class Summable(Protocol):
    """Objects that can be summed: ``+`` makes a new object, ``+=``, if defined, may modify the left one."""

    def __add__(self, other: Self, /) -> Self: ...


Sum = TypeVar("Sum", bound=Summable)


class Rows(ABC):
    """Blocks of rows that can be read any number of times; abstract."""

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """Number of rows, None if it is not known before the first pass."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The blocks in the order of the rows; each call starts over."""

    @abstractmethod
    def reduce(self, fold: Callable[[Block], Sum], *, phase: str = "", verbose: int = 0) -> Sum:
        """fold(block) summed over all blocks, in the order of the blocks regardless of which finishes first.

        ``fold`` must be picklable. ``phase`` names the pass in the progress shown by ``verbose``.
        """


class PartlyRead(Protocol):
    """Rows of which some can be read without the others."""

    def some(self, rows: Indices, /) -> Rows: ...


class NoRows(ValueError):
    """A pass has found no rows."""


class LocalRows(Rows):
    """Rows whose blocks this process reads, and sums in its own threads; abstract."""

    def reduce(self, fold: Callable[[Block], Sum], *, phase: str = "", verbose: int = 0) -> Sum:
        """fold(block) summed over all blocks, in threads that have one BLAS thread each.

        Uses as many threads as BLAS may use; the calling thread reads the blocks and adds up. At most two blocks
        per thread are in memory, and the sum is computed in the order of the blocks, so that its bits do not
        depend on the number of threads. An error in ``fold`` is raised at once, with a note that names the rows.
        """
        results = stream_in_threads(partial(fold_block, fold), self.blocks())
        with progress(phase, self.n_rows, verbose=verbose) as advance, closing(results):
            return not_empty(add_up(results, advance))


def fold_block(fold: Callable[[Block], Sum], block: Block) -> tuple[int, Sum]:
    """Number of rows of the block, and fold(block); an error names the rows."""
    try:
        return block.n_rows, fold(block)
    except Exception as error:
        error.add_note(f"in rows {block.first} to {block.first + block.n_rows - 1}")
        raise


def add_up(results: Iterable[tuple[int, Sum]], advance: Callable[[int], None]) -> Sum | None:
    """The sum from left to right, None if empty; only objects created here are modified."""
    total: Sum | None = None
    add: Callable[[Sum, Sum], Sum] = operator.add
    for n, part in results:
        if total is None:
            total = part
        else:
            total, add = add(total, part), operator.iadd
        advance(n)
    return total


def not_empty(total: Sum | None) -> Sum:
    """A sum over at least one block."""
    if total is None:
        raise NoRows("there are no rows to sum over; pass at least one, of a function in a new iterator each time")
    return total


def regroup(blocks: Iterable[Block], block_rows: int) -> Iterator[Block]:
    """The same rows in blocks of ``block_rows``, the last one smaller: large blocks split, small joined."""
    held: list[Block] = []
    missing = block_rows
    for block in blocks:
        start, stop = 0, block.n_rows
        while stop - start >= missing:
            whole = join_blocks([*held, block.cut(start, start + missing)])
            start, held, missing = start + missing, [], block_rows
            yield whole
        if start < stop:
            held.append(block.cut(start, stop))
            missing -= stop - start
    if held:
        yield join_blocks(held)


def of_at_least(blocks: Iterable[Block], n: int) -> Iterator[Block]:
    """Blocks of at least n rows, except for the last; those without any weight are skipped."""
    small: list[Block] = []
    for block in blocks:
        if block.weight is not None and not np.any(block.weight):
            continue
        small.append(block)
        if sum(part.n_rows for part in small) >= n:
            yield join_blocks(small)
            small = []
    if small:
        yield join_blocks(small)


def join_blocks(blocks: Sequence[Block]) -> Block:
    """One block of the rows of several."""
    if len(blocks) == 1:
        return blocks[0]
    if any(block.weight is not None for block in blocks):
        blocks = [block.with_weight() for block in blocks]
    y = [block.y for block in blocks if isinstance(block.y, np.ndarray)]
    for part in y[1:]:
        same_type("y", y[0], part)
    names = ("X", "y", "weight", "unit")
    X, Y, weight, unit = (join(name, [getattr(block, name) for block in blocks]) for name in names)
    return Block(X, Y, weight, blocks[0].first, unit)


def check_lengths(X: Any, y: Any, weight: Any, *, where: str = "") -> None:
    """y and weight, if given, have one value for each row of X, and all views of X the same rows."""
    n = n_rows(X)
    for name, values in (("y", y), ("weight", weight)):
        if values is not None and n_rows(values) != n:
            raise ValueError(f"{name} has {n_rows(values)} values for {n} rows{where}; pass one for each row")


def check_block_rows(block_rows: int) -> None:
    """At least one row in a block."""
    if block_rows < 1:
        raise ValueError(f"block_rows={block_rows}; it must be at least 1")
