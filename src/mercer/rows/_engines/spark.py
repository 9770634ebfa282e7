"""Rows in a Spark DataFrame."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mercer.rows._base import BLOCK_ROWS, Block, Rows, check_block_rows
from mercer.rows._engines.base import (
    Carry,
    EngineRows,
    Item,
    Partial,
    block_of_columns,
    check_columns,
    count_rows,
    raw_block,
    sum_part,
)
from mercer.rows._progress import Advance
from mercer.rows._sources.stream import StreamRows

# A row for a partition: its number, its rows, and its result as bytes; with FAILED_PART rows, the error.
SCHEMA = "part long, n_rows long, result binary"
# Sums that one task, and finally the driver, adds up. Few, because the driver holds that many.
SUMS_PER_TASK = 8
FAILED_PART = -1

Function = Callable[[int, Rows], Any]


@dataclass(eq=False)
class SparkRows(EngineRows):
    """Rows of a DataFrame whose partitions Spark opens; made by :func:`spark_rows`.

    ``mapInArrow`` runs a stateless function on every partition, and returns one row of bytes. Sums are added eight
    at a time on the workers, in the order of the partitions. A partition that is lost with its executor is
    recomputed: up to ``spark.task.maxFailures`` times, which is 1 in local mode unless the master is
    ``local[cores, failures]``. Rows must have the same order whenever a partition is computed: sort or persist the
    result of a shuffle.
    """

    frame: Any
    target: str | Sequence[str] | None = None
    weight: str | None = None
    block_rows: int = BLOCK_ROWS
    raw: bool = False
    _counts: tuple[int, ...] | None = field(default=None, init=False, repr=False)

    @property
    def n_parts(self) -> int:
        return len(self.counted())

    def each(self, function: Callable[[Rows], Item], numbers: Sequence[int]) -> Iterator[Item]:
        found = self._collect(partial(_if_asked, function, frozenset(numbers)))
        return (pickle.loads(found[k][1]) for k in numbers if k in found)

    def total(self, fold: Callable[[Block], Any], firsts: Sequence[int], advance: Advance) -> Partial:
        sums = self._mapped(partial(_sum_from, fold, tuple(firsts)))
        groups = len(firsts)
        while groups > SUMS_PER_TASK:
            groups = -(-groups // SUMS_PER_TASK)
            sums = _neighbors_added(sums, groups)
        tree = Carry(Partial.__add__)
        for _, _, data in sorted(_rows(sums)):
            tree.push(pickle.loads(data))
        total: Partial = tree.total()
        advance(total.n_rows)
        return total

    def _ask(self) -> Iterable[int]:
        found = self._collect(_count)
        # Spark returns nothing for partitions without rows.
        return (found[k][0] if k in found else 0 for k in range(max(found, default=-1) + 1))

    def _collect(self, function: Function) -> dict[int, tuple[int, bytes]]:
        return {k: (n, data) for k, n, data in _rows(self._mapped(function))}

    def _mapped(self, function: Function) -> Any:
        read = partial(raw_block if self.raw else _columns, target=self.target, weight=self.weight)
        run = partial(_run_partition, function, read, self.block_rows)
        return self.frame.mapInArrow(run, SCHEMA)


def spark_rows(
    X: Any, y: Any = None, weight: Any = None, *, block_rows: int = BLOCK_ROWS, raw: bool = False
) -> SparkRows:
    """Rows of a DataFrame; ``y`` and ``weight`` are column names, and X consists of all other columns.

    ``raw``: blocks have named columns of any values.
    """
    check_columns(X.columns, y, weight)
    check_block_rows(block_rows)
    return SparkRows(X, y, weight, block_rows, raw)


def types_on_spark(X: Any) -> dict[Any, Any] | None:
    """The types of the columns, by name; None for lists."""
    return None if isinstance(X, list | tuple) else dict(X.dtypes)


def _run_partition(
    function: Function,
    read: Callable[[Any], tuple[Any, Any, Any]],
    block_rows: int,
    batches: Iterator[Any],
) -> Iterator[Any]:
    """function(number, rows) of one partition as one row of SCHEMA; None is omitted."""
    import pyarrow
    from pyspark import TaskContext

    number = TaskContext.get().partitionId()
    rows = StreamRows((read(batch) for batch in batches), block_rows=block_rows)
    try:
        result = function(number, rows)
    except OSError:
        raise
    except Exception as error:
        # Errors are returned as results: if raised, Spark would retry the task and return the error as text.
        yield _row(pyarrow, number, FAILED_PART, pickle.dumps(error))
        return
    if result is not None:
        n = result.n_rows if isinstance(result, Partial) else result if isinstance(result, int) else 0
        yield _row(pyarrow, number, n, pickle.dumps(result))


def _columns(batch: Any, target: str | Sequence[str] | None, weight: str | None) -> tuple[Any, Any, Any]:
    """X, y and weight of a pyarrow batch."""
    for name, column in zip(batch.schema.names, batch.columns):
        if column.null_count:
            raise ValueError(f"column {name!r} has {column.null_count} nulls; fill them or drop those rows")
    columns = {
        name: column.to_numpy(zero_copy_only=False) for name, column in zip(batch.schema.names, batch.columns)
    }
    return block_of_columns(columns, target, weight)


def _neighbors_added(sums: Any, groups: int) -> Any:
    """One row for every SUMS_PER_TASK neighboring rows, added on the workers."""
    from pyspark.sql import functions

    group = functions.floor(sums["part"] / SUMS_PER_TASK)
    together = sums.withColumn("neighbors", group).repartition(groups, "neighbors").sortWithinPartitions("part")
    return together.mapInArrow(_add_groups, SCHEMA)


def _add_groups(batches: Iterator[Any]) -> Iterator[Any]:
    """Sums of consecutive rows with the same group; errors are passed on."""
    import pyarrow

    trees: dict[int, Carry] = {}
    for batch in batches:
        parts, counts = batch.column("part").to_pylist(), batch.column("n_rows").to_pylist()
        for part, n, data in zip(parts, counts, batch.column("result")):
            if n == FAILED_PART:
                yield _row(pyarrow, part // SUMS_PER_TASK, FAILED_PART, data.as_py())
            else:
                trees.setdefault(part // SUMS_PER_TASK, Carry(Partial.__add__)).push(
                    pickle.loads(data.as_buffer())
                )
    for group, tree in trees.items():
        total = tree.total()
        yield _row(pyarrow, group, total.n_rows, pickle.dumps(total))


def _row(pyarrow: Any, part: int, n_rows: int, result: bytes) -> Any:
    return pyarrow.RecordBatch.from_pydict({"part": [part], "n_rows": [n_rows], "result": [result]})


def _rows(mapped: Any) -> list[tuple[int, int, bytes]]:
    """Part, number of rows and result of all tasks; the first error is raised."""
    try:
        table = mapped.toArrow()
    except Exception as error:
        # Spark stops its jobs after Ctrl-C, and then raises an error because they were stopped.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
    rows = list(zip(*(table.column(name).to_pylist() for name in ("part", "n_rows", "result"))))
    for _, n, data in rows:
        if n == FAILED_PART:
            raise pickle.loads(data)
    return rows


def _count(number: int, rows: Rows) -> int:
    return count_rows(rows)


def _if_asked(function: Callable[[Rows], Any], numbers: frozenset[int], number: int, rows: Rows) -> Any:
    return function(rows) if number in numbers else None


def _sum_from(fold: Callable[[Block], Any], firsts: Sequence[int], number: int, rows: Rows) -> Partial:
    return sum_part(fold, rows, firsts[number])
