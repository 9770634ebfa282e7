"""Common code of all engines: rows in parts, one task per part, and sums of the results in a fixed order."""

import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mercer._linalg.threads import limit_threads
from mercer.rows._base import Block, Rows, Sum, add_up, fold_block, not_empty
from mercer.rows._columns import listed_names, read_columns
from mercer.rows._progress import Advance, progress
from mercer.rows._sources.memory import MemoryRows
from mercer.rows._sources.parquet import ParquetRows

Item = TypeVar("Item")

# Blocks of a Parquet file that one task reads: enough work to outweigh sending one sum.
PART_BLOCKS = 16
# Number of retries if a worker cannot read a file, and seconds between them. Other errors would only recur.
READ_RETRIES = 2
SECONDS_BETWEEN_RETRIES = 1.0


@dataclass(frozen=True)
class Partial:
    """A sum over some rows, and their number; the sum is None without rows."""

    n_rows: int
    total: Any

    def __add__(self, other: "Partial") -> "Partial":
        n_rows = self.n_rows + other.n_rows
        if self.total is None or other.total is None:
            return Partial(n_rows, other.total if self.total is None else self.total)
        return Partial(n_rows, self.total + other.total)


@dataclass(frozen=True)
class Part:
    """How a task opens some of the rows: ``open(*arguments)`` are Rows.

    The arguments may be lazy objects that the engine evaluates before the task runs. ``n_rows`` is None if not
    known.
    """

    open: Callable[..., Rows]
    arguments: tuple[Any, ...]
    n_rows: int | None = None


@runtime_checkable
class Accumulating(Protocol):
    """A fold that can add a block to its sum in place: ``onto(total, block)``, with None before the first."""

    def onto(self, total: Any, block: Block, /) -> Any: ...


class EngineRows(Rows):
    """Rows in parts that an engine holds or reads; abstract.

    An engine runs a function on the rows of some parts, and sums over all of them. It sends functions to the rows
    and returns sums, never rows, except on request. Sums are computed block by block within a part, and between
    parts in a tree that depends only on their number: the same bits whichever worker is fast, slow or lost.
    """

    # Number of rows of every part, once known.
    _counts: tuple[int, ...] | None

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Into how many parts the rows are cut."""

    @abstractmethod
    def each(self, function: Callable[[Rows], Item], numbers: Sequence[int]) -> Iterator[Item]:
        """function(rows of the part) for the parts with these numbers, in this order, here.

        ``function`` and its results must be picklable.
        """

    @abstractmethod
    def total(self, fold: Callable[[Block], Any], firsts: Sequence[int], advance: Advance) -> Partial:
        """:func:`sum_part` of all parts, added with neighbors first as :class:`Carry` does.

        ``firsts`` are the numbers of the first rows of the parts; ``advance`` is called with the number of rows of
        every finished part.
        """

    @property
    def n_rows(self) -> int | None:
        """Number of rows, None before they are counted."""
        return None if self._counts is None else sum(self._counts)

    def counted(self) -> tuple[int, ...]:
        """Number of rows of every part; counted once if not known."""
        if self._counts is None:
            self._counts = tuple(self._ask())
        return self._counts

    def blocks(self) -> Iterator[Block]:
        """The blocks in order, fetched part by part; of the first part, only the first block at first."""
        firsts = self._firsts()
        filled = [k for k, n in enumerate(self.counted()) if n > 0]
        for k in filled:
            ranges: list[tuple[int, int | None]] = [(0, 1), (1, None)] if k == filled[0] else [(0, None)]
            for start, stop in ranges:
                (some,) = self.each(partial(_blocks, start, stop), [k])
                yield from (replace(block, first=firsts[k] + block.first) for block in some)

    def reduce(self, fold: Callable[[Block], Sum], *, phase: str = "", verbose: int = 0) -> Sum:
        """fold(block) summed over all blocks, where the rows are.

        Blocks end where parts end. An error in ``fold`` is raised here, with a note that names the rows. If the
        number of rows is not known, they are counted first, once, because blocks need their row numbers.
        """
        one = Partial(0, None)
        if any(self.counted()):
            with progress(phase, self.n_rows, verbose=verbose) as advance:
                one = self.total(fold, self._firsts(), advance)
        if one.n_rows != self.n_rows:
            raise ValueError(
                f"the engine counted {self.n_rows} rows, but a pass found {one.n_rows}; a part must return the "
                "same rows whenever it is computed: persist() data that are drawn at random, shuffled or may "
                "change"
            )
        total: Sum | None = one.total
        return not_empty(total)

    def _firsts(self) -> list[int]:
        return [0, *np.cumsum(self.counted()).tolist()][:-1]

    def _ask(self) -> Iterable[int]:
        return self.each(count_rows, range(self.n_parts))


def sum_part(fold: Callable[[Block], Any] | Accumulating, rows: Rows, first: int) -> Partial:
    """fold(block) summed over the blocks of a part in their order, on one BLAS thread."""
    sizes: list[int] = []
    total = None
    blocks = (replace(block, first=first + block.first) for block in rows.blocks())
    with limit_threads(1):
        if not isinstance(fold, Accumulating):
            total = add_up((fold_block(fold, block) for block in blocks), sizes.append)
            return Partial(sum(sizes), total)
        for block in blocks:
            n, total = fold_block(partial(fold.onto, total), block)
            sizes.append(n)
    return Partial(sum(sizes), total)


def run_sum(fold: Callable[[Block], Any], first: int, open_: Callable[..., Rows], *arguments: Any) -> Partial:
    """The task that sums over one part."""
    return read_again(lambda: sum_part(fold, open_(*arguments), first))


@dataclass(eq=False)
class PartRows(EngineRows):
    """Rows in parts, each opened by tasks of its own; abstract."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        known = tuple(part.n_rows for part in self.parts if part.n_rows is not None)
        self._counts = known if len(known) == len(self.parts) else None

    @property
    def n_parts(self) -> int:
        return len(self.parts)


def run_each(function: Callable[[Rows], Item], open_: Callable[..., Rows], *arguments: Any) -> Item:
    """The task that evaluates a function on one part."""
    return read_again(lambda: function(open_(*arguments)))


def read_again(task: Callable[[], Item]) -> Item:
    """task(), retried a few times if a file cannot be read: shared disks may fail briefly."""
    for _ in range(READ_RETRIES):
        try:
            return task()
        except OSError:
            time.sleep(SECONDS_BETWEEN_RETRIES)
    return task()


def count_rows(rows: Rows) -> int:
    """Number of rows, by a pass over them if there is no other way."""
    return sum(block.n_rows for block in rows.blocks()) if rows.n_rows is None else rows.n_rows


class Carry:
    """Sums of neighbors, then of neighboring sums: a counter in base two whose digits are sums.

    Order and pairs depend only on the number of parts. ``add`` may be lazy; at most log2 of the number of parts
    are in memory.

    Examples
    --------
    >>> tree = Carry(lambda a, b: f"({a}{b})")
    >>> for letter in "abcde":
    ...     tree.push(letter)
    >>> tree.total()
    '(((ab)(cd))e)'
    """

    def __init__(self, add: Callable[[Any, Any], Any]) -> None:
        self._add = add
        self._held: list[tuple[int, Any]] = []

    def push(self, part: Any) -> None:
        level = 0
        while self._held and self._held[-1][0] == level:
            part = self._add(self._held.pop()[1], part)
            level += 1
        self._held.append((level, part))

    def total(self) -> Any:
        """The sum of all values pushed."""
        parts = [part for _, part in self._held]
        total = parts.pop()
        while parts:
            total = self._add(parts.pop(), total)
        return total


def open_tuple(item: Any, *, block_rows: int) -> MemoryRows:
    """The rows of a tuple (X,), (X, y) or (X, y, weight)."""
    if not isinstance(item, tuple | list) or not 1 <= len(item) <= 3:
        raise TypeError(f"a part is of type {type(item).__name__}; pass tuples (X,), (X, y) or (X, y, weight)")
    return MemoryRows(*item, block_rows=block_rows)


def parquet_parts(rows: ParquetRows, shared: Any) -> tuple[Part, ...]:
    """A range of the rows for every task; ``shared`` are these rows, perhaps as a lazy object."""
    size = PART_BLOCKS * rows.block_rows
    ranges = [(start, min(start + size, rows.n_rows)) for start in range(0, rows.n_rows, size)]
    return tuple(Part(ParquetRows.between, (shared, start, stop), stop - start) for start, stop in ranges)


def check_columns(names: Sequence[str], target: str | Sequence[str] | None, weight: str | None) -> None:
    """Target and weight are columns, and no two columns share a name."""
    for name in (*listed_names(target), *listed_names(weight)):
        if name not in names:
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(names)}")
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"there are {times} columns named {name!r}; rename or drop all but one of them")


def block_of_columns(
    columns: dict[str, NDArray[Any]], target: str | Sequence[str] | None, weight: str | None
) -> tuple[Any, Any, Any]:
    """X, y and weight from named columns: X consists of all columns that are neither y nor weight.

    A column of shape (b, c) becomes c columns of X. X is float32 if all of its columns are, float64 otherwise.
    """
    check_columns(list(columns), target, weight)
    labels = (*listed_names(target), *listed_names(weight))
    features = {name: column for name, column in columns.items() if name not in labels}
    y = None if target is None else np.column_stack([columns[name] for name in listed_names(target)])
    return (
        _matrix(features),
        y[:, 0] if y is not None and isinstance(target, str) else y,
        None if weight is None else columns[weight].astype(np.float64),
    )


def raw_block(table: Any, target: str | Sequence[str] | None, weight: str | None) -> tuple[Any, Any, Any]:
    """X with named columns of any values, y and weight of a pyarrow table."""
    labels = {name: _complete(table, name) for name in (*listed_names(target), *listed_names(weight))}
    y = None if target is None else np.column_stack([labels[name] for name in listed_names(target)])
    return (
        read_columns(table, [name for name in table.schema.names if name not in labels], keep_dates=True),
        y[:, 0] if y is not None and isinstance(target, str) else y,
        None if weight is None else labels[weight].astype(np.float64),
    )


def _complete(table: Any, name: str) -> NDArray[Any]:
    """A column without gaps."""
    column = table.column(name)
    if column.null_count:
        raise ValueError(f"column {name!r} has {column.null_count} nulls; fill them or drop those rows")
    return np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "offset") else column.to_numpy())


def _matrix(features: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """The columns side by side."""
    if not features:
        raise ValueError("there are no columns for X besides target and weight; add at least one feature")
    for name, column in features.items():
        if column.dtype.kind not in "fiub":
            raise ValueError(
                f"column {name!r} is of type {column.dtype}, which is not numeric; cast it or drop it"
            )
    dtype = np.float32 if {column.dtype for column in features.values()} == {np.dtype("f4")} else np.float64
    return np.column_stack([column.astype(dtype, copy=False) for column in features.values()])


def _blocks(start: int, stop: int | None, rows: Rows) -> list[Block]:
    """Some of the blocks of a part."""
    return list(islice(rows.blocks(), start, stop))
