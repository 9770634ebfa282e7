"""Rows, wherever they are: something that yields blocks of rows, again and again, and sums over them."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from scipy import sparse

from mercer.gate import joined, labels, not_dates, real, unmasked
from mercer.linalg.threads import stream_in_threads
from mercer.rows.progress import progress
from mercer.types import Array, Indices

# Sums of blocks cost little beside the blocks themselves: twice the rows of one matrix product.
BLOCK_ROWS = 8192


@dataclass(frozen=True)
class Block:
    """Some rows in sequence: X (b rows), y (b, ...) or None, weight (b,) or None, the number of the first.

    ``unit`` (b,) is the part of its weight that leaves with a row, None: all of it.
    """

    X: Any
    y: Any
    weight: Array | None
    first: int
    unit: Array | None = None

    @property
    def n_rows(self) -> int:
        return count(self.X)

    def with_weight(self) -> "Block":
        """The same with weights of one where there were none."""
        return self if self.weight is not None else replace(self, weight=np.ones(self.n_rows))

    def cut(self, start: int, stop: int) -> "Block":
        """Rows start to stop - 1 of the block."""
        if start == 0 and stop == self.n_rows:
            return self
        rows = slice(start, stop)
        y, weight, unit = (_optional(part, rows) for part in (self.y, self.weight, self.unit))
        return Block(self.X[rows], y, weight, self.first + start, unit)

    def take(self, rows: Indices) -> "Block":
        """Some rows of the block, as a block whose rows are not in sequence; ``first`` is kept."""
        X, y, weight, unit = (taken(part, rows) for part in (self.X, self.y, self.weight, self.unit))
        return Block(X, y, weight, self.first, unit)


class Summable(Protocol):
    """What can be added up: ``+`` makes a new object, ``+=``, where there is one, may write to the left one."""

    def __add__(self, other: Self, /) -> Self: ...


Sum = TypeVar("Sum", bound=Summable)


class Rows(ABC):
    """Blocks of rows that can be gone through any number of times; abstract."""

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """How many rows there are, None if that is not known before they were gone through."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The blocks in the order of the rows; each call starts anew."""

    @abstractmethod
    def reduce(self, fold: Callable[[Block], Sum], *, phase: str = "", verbose: int = 0) -> Sum:
        """fold(block) summed over all blocks, in the order of the blocks whatever finishes first.

        ``fold`` can be pickled. ``phase`` names the pass where ``verbose`` shows progress.
        """


class NoRows(ValueError):
    """A pass has found no rows."""


class LocalRows(Rows):
    """Rows whose blocks this process reads, and sums in its own threads; abstract."""

    def reduce(self, fold: Callable[[Block], Sum], *, phase: str = "", verbose: int = 0) -> Sum:
        """fold(block) summed over all blocks, in threads that have one BLAS thread each.

        As many threads as BLAS may use; the caller's thread reads the blocks and adds up. At most two blocks a
        thread are held, and the sum is taken in the order of the blocks, so that its bits do not depend on the
        number of threads. An error in ``fold`` is raised at once, with a note that says in which rows.
        """
        results = stream_in_threads(partial(fold_block, fold), self.blocks())
        with progress(phase, self.n_rows, verbose=verbose) as advance, closing(results):
            return not_empty(add_up(results, advance))


def fold_block(fold: Callable[[Block], Sum], block: Block) -> tuple[int, Sum]:
    """Rows of the block and fold(block); an error says in which rows."""
    try:
        return block.n_rows, fold(block)
    except Exception as error:
        error.add_note(f"in rows {block.first} to {block.first + block.n_rows - 1}")
        raise


def add_up(results: Iterable[tuple[int, Sum]], advance: Callable[[int], None]) -> Sum | None:
    """The sum from left to right, None of nothing; only what this function has made is written to."""
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
        raise NoRows("there are no rows to sum over")
    return total


def regroup(blocks: Iterable[Block], block_rows: int) -> Iterator[Block]:
    """The same rows in blocks of ``block_rows``, the last of fewer: large blocks are cut, small ones joined."""
    held: list[Block] = []
    missing = block_rows
    for block in blocks:
        start, stop = 0, block.n_rows
        while stop - start >= missing:
            whole = join([*held, block.cut(start, start + missing)])
            start, held, missing = start + missing, [], block_rows
            yield whole
        if start < stop:
            held.append(block.cut(start, stop))
            missing -= stop - start
    if held:
        yield join(held)


def join(blocks: Sequence[Block]) -> Block:
    """One block of the rows of several."""
    if len(blocks) == 1:
        return blocks[0]
    if any(block.weight is not None for block in blocks):
        blocks = [block.with_weight() for block in blocks]
    names = ("X", "y", "weight", "unit")
    X, y, weight, unit = (_stack(name, [getattr(block, name) for block in blocks]) for name in names)
    return Block(X, y, weight, blocks[0].first, unit)


def count(X: Any) -> int:
    """Rows of an array, a CSR matrix, a frame or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def shape_of(row: tuple[int, ...]) -> str:
    """In words: (b,), or (b, 3), the shape of b rows that each have this shape."""
    return str(("b", *row)).replace("'", "")


def check_lengths(X: Any, y: Any, weight: Any, *, where: str = "") -> None:
    """y and weight, where given, have a value for every row of X."""
    for name, values in (("y", y), ("weight", weight)):
        if values is not None and count(values) != count(X):
            raise ValueError(f"{name} has {count(values)} values for {count(X)} rows{where}")


def check_block_rows(block_rows: int) -> None:
    """At least one row in a block."""
    if block_rows < 1:
        raise ValueError(f"block_rows={block_rows}; a block has at least one row")


def numbers(X: Any, rows: slice) -> Any:
    """Some rows of X as kernels take them: those of a frame as a C-ordered array, others as they are.

    Columns of a frame that have no common type in NumPy become float64.
    """
    part = unmasked("X", _cut(X, rows))
    if not is_frame(part):
        return _plain(part)
    not_dates("X", part)
    array = part.to_numpy()
    if array.dtype != object:
        return np.ascontiguousarray(array)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        types = ", ".join(f"{name} ({kind})" for name, kind in zip(part.columns, part.dtypes))
        raise ValueError(
            f"the frame has values that are missing or not numbers; select or convert columns of {types}"
        ) from error


def values(y: Any, rows: slice) -> Any:
    """Some of the targets as an array; None stays None."""
    if y is None:
        return None
    part = _plain(unmasked("y", _cut(y, rows)))
    return part if hasattr(part, "shape") else labels("y", part)


def weights(weight: Any, rows: slice) -> Array | None:
    """Some of the weights (b,)."""
    return None if weight is None else real("weight", _plain(_cut(weight, rows)))


def is_sparse(X: Any) -> bool:
    """A sparse matrix or array of SciPy, in any format."""
    return bool(sparse.issparse(X))


def is_frame(X: Any) -> bool:
    """A table of pandas or polars, known by what it can do: neither is imported."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def column_names(X: Any) -> tuple[Any, ...] | None:
    """Names of the columns of a frame; None of anything else."""
    return tuple(X.columns) if is_frame(X) else None


def table(X: Any) -> Any:
    """Lists of lists of numbers as an array, sparse matrices as CSR; the rest as it is."""
    if is_sparse(X):
        return X.tocsr()
    if not (isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], list | tuple)):
        return X
    try:
        array = np.asarray(X)
    except ValueError:
        return X
    return array if array.ndim == 2 and array.dtype.kind in "fiub" else X


def _cut(X: Any, rows: slice) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _plain(part: Any) -> Any:
    return part.to_numpy() if hasattr(part, "to_numpy") else part


def _optional(values: Any, rows: slice) -> Any:
    return None if values is None else values[rows]


def taken(X: Any, rows: Indices) -> Any:
    """Some rows of an array, a CSR matrix, a frame or a list; None of None."""
    if X is None:
        return None
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def _stack(name: str, parts: list[Any]) -> Any:
    """Arrays, CSR matrices or lists one below the other, sparse or dense as the first; None where all are None."""
    if all(part is None for part in parts):
        return None
    shapes = sorted({shape_of(part.shape[1:]) for part in parts if hasattr(part, "shape")})
    if len(shapes) > 1:
        raise ValueError(
            f"{name} of some blocks has shape {shapes[0]} and of others {shapes[1]}; give all the same columns"
        )
    if all(isinstance(part, list) for part in parts):
        return [row for part in parts for row in part]
    if all(isinstance(part, np.ndarray) or is_sparse(part) for part in parts):
        if is_sparse(parts[0]):
            return sparse.vstack([sparse.csr_matrix(part) for part in parts], format="csr")
        if name == "y":
            return joined("y", parts)
        return np.concatenate([part.toarray() if is_sparse(part) else part for part in parts])
    kinds = ", ".join(sorted({type(part).__name__ for part in parts}))
    raise TypeError(
        f"{name} in blocks of {kinds} cannot be joined; give all blocks as arrays, as CSR matrices, or as lists"
    )
