"""Rows in a Ray dataset or in Ray objects, or in Parquet files that a Ray cluster reads."""

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from mercer.rows._base import BLOCK_ROWS, Block, LocalRows, Rows, check_block_rows
from mercer.rows._engines.base import (
    Carry,
    Item,
    Part,
    Partial,
    PartRows,
    block_of_columns,
    check_columns,
    open_tuple,
    parquet_parts,
    raw_block,
    run_each,
    run_sum,
)
from mercer.rows._optional import optional
from mercer.rows._progress import Advance
from mercer.rows._sources.parquet import ParquetRows

# How often a task is rerun after its worker was lost.
MOST_RERUNS = 5
# Parts in flight per core: one running, one waiting.
PARTS_PER_CORE = 2


class RayRows(PartRows):
    """Rows in parts that tasks of Ray open; made by :func:`ray_rows` and :func:`parquet_on_ray`.

    One stateless task for every part, and a tree of sums; a few parts per core are in flight at a time, so that
    sums do not pile up. A task that is lost with its worker is rerun on another one, and its inputs are results of
    tasks, which Ray can recompute. Ctrl-C cancels the pass.
    """

    def each(self, function: Callable[[Rows], Item], numbers: Sequence[int]) -> Iterator[Item]:
        task, shared = _task(_packed_each), _task(_same).remote(function)
        chosen = [self.parts[k] for k in numbers]
        with _cancelled_on_error([task.remote(shared, part.open, *part.arguments) for part in chosen]) as refs:
            return iter([pickle.loads(data) for data in _ray().get(refs)])

    def total(self, fold: Callable[[Block], Any], firsts: Sequence[int], advance: Advance) -> Partial:
        task, shared = _task(_counted_sum, num_returns=2), _task(_same).remote(fold)
        tree = Carry(_task(Partial.__add__).remote)
        with _cancelled_on_error([]) as under_way:
            for part, first in zip(self.parts, firsts):
                n, one = task.remote(shared, first, part.open, *part.arguments)
                tree.push(one)
                under_way.append(n)
                if len(under_way) == PARTS_PER_CORE * _cores():
                    _one_done(under_way, advance)
            while under_way:
                _one_done(under_way, advance)
            under_way.append(_task(_packed).remote(tree.total()))
            # Arrays returned by Ray are read-only; unpickled copies are writable.
            total: Partial = pickle.loads(_ray().get(under_way[0]))
        return total


def ray_rows(
    X: Any, y: Any = None, weight: Any = None, *, block_rows: int = BLOCK_ROWS, raw: bool = False
) -> RayRows:
    """Rows of a ray.data.Dataset, or of references to tuples (X,), (X, y) or (X, y, weight).

    ``y`` and ``weight`` of a dataset are names of its columns. The dataset is computed once, in its order, and its
    blocks stay in Ray's object store, or on disk beyond that, while these rows are in use. To read Parquet files
    again in each pass instead, pass their path. ``raw``: blocks of a dataset have named columns of any values.
    """
    check_block_rows(block_rows)
    if isinstance(X, list | tuple):
        open_: Callable[..., Rows] = partial(open_tuple, block_rows=block_rows)
        return RayRows(tuple(Part(open_, (ref,)) for ref in X))
    check_columns(X.columns(), y, weight)
    open_ = partial(TableRows, target=y, weight=weight, block_rows=block_rows, raw=raw)
    return RayRows(tuple(Part(open_, (ref,)) for ref in _tables(X)))


def types_on_ray(X: Any) -> dict[Any, Any] | None:
    """The types of the columns of a dataset, by name; None for lists."""
    schema = None if isinstance(X, list | tuple) else X.schema()
    return None if schema is None else dict(zip(schema.names, schema.types))


def parquet_on_ray(rows: ParquetRows) -> RayRows:
    """The rows of Parquet files that every worker can read; a task streams a range of them."""
    return RayRows(parquet_parts(rows, _task(_same).remote(rows)))


def is_running() -> bool:
    """Ray was started in this process, or this process was started by Ray."""
    # Whoever started Ray has imported it; nobody else pays for the import.
    ray = sys.modules.get("ray")
    return ray is not None and hasattr(ray, "is_initialized") and bool(ray.is_initialized())


@dataclass(frozen=True, eq=False)
class TableRows(LocalRows):
    """Rows of a pyarrow table, as stored in a Ray dataset; a column may contain vectors."""

    table: Any
    _: KW_ONLY
    target: str | Sequence[str] | None = None
    weight: str | None = None
    block_rows: int = BLOCK_ROWS
    raw: bool = False

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def blocks(self) -> Iterator[Block]:
        from ray.data.block import BlockAccessor

        for start in range(0, self.n_rows, self.block_rows):
            part = self.table.slice(start, self.block_rows)
            if self.raw:
                yield Block(*raw_block(part, self.target, self.weight), start)
                continue
            columns = BlockAccessor.for_block(part).to_numpy(list(part.column_names))
            yield Block(*block_of_columns(columns, self.target, self.weight), start)


def _tables(dataset: Any) -> list[Any]:
    """References to the tables of a dataset in the order of its rows."""
    options = dataset.context.execution_options
    before = options.preserve_order
    options.preserve_order = True
    try:
        return list(dataset.to_arrow_refs())
    finally:
        options.preserve_order = before


def _ray() -> Any:
    with optional("ray", "this needs ray"):
        import ray
    return ray


def _task(function: Callable[..., Any], *, num_returns: int = 1) -> Any:
    return _ray().remote(num_cpus=1, max_retries=MOST_RERUNS, num_returns=num_returns)(function)


def _cores() -> int:
    return max(1, int(_ray().cluster_resources().get("CPU", 1)))


def _one_done(under_way: list[Any], advance: Advance) -> None:
    """Wait for one of the parts and remove it."""
    (done,), _ = _ray().wait(under_way, num_returns=1)
    under_way.remove(done)
    advance(_ray().get(done))


@contextmanager
def _cancelled_on_error(refs: list[Any]) -> Iterator[list[Any]]:
    """References to results; after an error, and after Ctrl-C, unfinished ones are canceled."""
    try:
        yield refs
    except BaseException:
        for ref in refs:
            _ray().cancel(ref)
        raise


def _same(value: Any) -> Any:
    return value


def _packed(value: Any) -> bytes:
    return pickle.dumps(value)


def _packed_each(function: Callable[[Rows], Any], open_: Callable[..., Rows], *arguments: Any) -> bytes:
    return pickle.dumps(run_each(function, open_, *arguments))


def _counted_sum(
    fold: Callable[[Block], Any], first: int, open_: Callable[..., Rows], *arguments: Any
) -> tuple[int, Partial]:
    """Number of rows of a part, which signals that it is done, and its sum, which stays on the worker."""
    one = run_sum(fold, first, open_, *arguments)
    return one.n_rows, one
