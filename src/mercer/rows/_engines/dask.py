"""Rows in a Dask collection, or in Parquet files that a Dask cluster reads."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from mercer.rows._base import BLOCK_ROWS, Block, Rows, check_block_rows, check_lengths
from mercer.rows._columns import are_names, column_words, read_columns
from mercer.rows._engines.base import (
    Carry,
    Item,
    Part,
    Partial,
    PartRows,
    open_tuple,
    parquet_parts,
    run_each,
    run_sum,
)
from mercer.rows._optional import optional
from mercer.rows._progress import Advance
from mercer.rows._sources.memory import MemoryRows
from mercer.rows._sources.parquet import ParquetRows
from mercer.rows._table import is_frame, numbers


@dataclass(eq=False)
class DaskRows(PartRows):
    """Rows in parts that tasks of Dask open; made by :func:`dask_rows` and :func:`parquet_on_dask`.

    A pass is one graph: a task for every part, and a tree of sums. It runs on the current client of
    ``distributed``, or in threads of this process if there is none. Tasks keep no state and no row is tied to a
    worker, so if a worker is lost, only its tasks are rerun on other workers. The centers are the result of a
    task, not scattered, so that they can be recomputed, too. Ctrl-C cancels the pass.
    """

    # Lazy row counts that are cheaper than opening the parts.
    lengths: tuple[Any, ...] | None = None

    def each(self, function: Callable[[Rows], Item], numbers: Sequence[int]) -> Iterator[Item]:
        shared = _as_task(function)
        task = _lazy(run_each)
        tasks = [task(shared, self.parts[k].open, *self.parts[k].arguments) for k in numbers]
        return iter(_computed(tasks))

    def total(self, fold: Callable[[Block], Any], firsts: Sequence[int], advance: Advance) -> Partial:
        shared, task = _as_task(fold), _lazy(run_sum)
        sums = [task(shared, first, part.open, *part.arguments) for part, first in zip(self.parts, firsts)]
        tree = Carry(_lazy(Partial.__add__))
        for one in sums:
            tree.push(one)
        client = current_client()
        total: Partial
        if client is None:
            total = _sum_in_threads(tree.total(), sums, advance)
        else:
            total = _sum_on(client, tree.total(), [_lazy(attrgetter("n_rows"))(one) for one in sums], advance)
        return total

    def _ask(self) -> Iterable[int]:
        return super()._ask() if self.lengths is None else _computed(list(self.lengths))


def dask_rows(
    X: Any, y: Any = None, weight: Any = None, *, block_rows: int = BLOCK_ROWS, raw: bool = False
) -> DaskRows:
    """Rows of a dask.array, a dask.dataframe, or a list of delayed tuples (X,), (X, y) or (X, y, weight).

    Each chunk, or partition, is a part and contains whole rows. ``y`` and ``weight`` of an array are Dask or NumPy
    arrays; those of a data frame are column names, or series with the same partitions. ``raw``: blocks of a data
    frame have named columns of any values.
    """
    check_block_rows(block_rows)
    if isinstance(X, list | tuple):
        open_ = partial(open_tuple, block_rows=block_rows)
        return DaskRows(tuple(Part(open_, (item,)) for item in X))
    return _of_frame(X, y, weight, block_rows, raw) if _is_frame(X) else _of_array(X, y, weight, block_rows)


def types_on_dask(X: Any) -> dict[Any, Any] | None:
    """The types of the columns of a data frame, by name; None for arrays and lists."""
    return dict(zip(X.columns, X.dtypes)) if _is_frame(X) else None


def parquet_on_dask(rows: ParquetRows) -> DaskRows:
    """The rows of Parquet files that every worker can read; a task streams a range of them."""
    return DaskRows(parquet_parts(rows, _as_task(rows)))


def map_rows(
    X: Any,
    function: Callable[[Any], Any],
    *,
    q: int | None = None,
    dtype: Any = np.float64,
    keep_frames: bool = False,
) -> Any:
    """function(X) for X in memory, as a lazy dask.array of shape (n,), or (n, q): nothing is computed yet.

    Parameters
    ----------
    X : dask.array or dask.dataframe
    function : callable
        From rows in memory (b, d) to an array (b,), or (b, q), such as the method ``predict`` of a fitted model.
    q : int, optional
        Number of columns of the result.
    dtype : dtype
        Type of the result.
    keep_frames : bool
        Whether ``function`` receives the parts of a data frame as data frames; otherwise as arrays.
    """
    if _is_frame(X):
        return _map_frame(X, function, q, dtype, keep_frames)
    _check_whole_rows(X, "X")
    shape: dict[str, Any] = {"drop_axis": 1} if q is None else {"chunks": (X.chunks[0], (q,))}
    meta = np.empty((0,) if q is None else (0, 0), dtype=dtype)
    return X.map_blocks(partial(_applied, function), dtype=dtype, meta=meta, name=None, **shape)


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or data frame."""
    return type(X).__module__.split(".")[0] == "dask" and (hasattr(X, "map_blocks") or _is_frame(X))


def current_client() -> Any:
    """The current client of ``distributed``, or None."""
    # Whoever has a client has imported the package; nobody else pays for the import.
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _of_array(X: Any, y: Any, weight: Any, block_rows: int) -> DaskRows:
    _check_whole_rows(X, "X")
    _check_known_lengths(X, y, weight)
    chunks = X.to_delayed().ravel()
    columns = [_cut_alike(values, X, name) for name, values in (("y", y), ("weight", weight))]
    sizes = [None if np.isnan(n) else int(n) for n in X.chunks[0]]
    open_ = partial(_open_arrays, block_rows=block_rows)
    parts = tuple(Part(open_, arguments, n) for arguments, n in zip(zip(chunks, *columns), sizes))
    return DaskRows(parts)


def _of_frame(X: Any, y: Any, weight: Any, block_rows: int, raw: bool) -> DaskRows:
    columns = [_column_alike(values, X, name) for name, values in (("y", y), ("weight", weight))]
    open_ = partial(_open_frame, block_rows=block_rows, raw=raw)
    parts = tuple(Part(open_, arguments) for arguments in zip(X.to_delayed(), *columns))
    # For a data frame read from files, one column is enough to count rows.
    lengths = tuple(map(_lazy(len), X[[X.columns[0]]].to_delayed()))
    return DaskRows(parts, lengths)


def _cut_alike(values: Any, X: Any, name: str) -> Sequence[Any]:
    """y or weight split like the rows of X: lazy chunks, parts of an array in memory, or None for all."""
    if values is None:
        return [None] * X.numblocks[0]
    if hasattr(values, "to_delayed"):
        return _lazy_chunks(values, X, name)
    if np.isnan(X.chunks[0]).any():
        raise ValueError(
            f"{name} is in memory, but the chunk sizes of X are unknown; call X.compute_chunk_sizes() first"
        )
    values = np.asarray(values)
    return np.split(values, np.cumsum(X.chunks[0])[:-1])


def _lazy_chunks(values: Any, X: Any, name: str) -> Sequence[Any]:
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    if values.ndim > 1:
        values = values.rechunk({1: -1})
    unknown = np.isnan(values.chunks[0]).any() or np.isnan(X.chunks[0]).any()
    if not unknown and values.chunks[0] != X.chunks[0]:
        values = values.rechunk({0: X.chunks[0]})
    if values.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"{name} has {values.numblocks[0]} chunks of rows, X has {X.numblocks[0]}, and their sizes are "
            "unknown; call compute_chunk_sizes() on both first"
        )
    chunks: Sequence[Any] = values.to_delayed().ravel()
    return chunks


def _column_alike(values: Any, X: Any, name: str) -> Sequence[Any]:
    """A column by its name, or the partitions of a series, or None, for every partition of X."""
    if values is None or isinstance(values, str) or are_names(values):
        missing = [word for word in column_words(values) if word not in X.columns]
        if missing:
            raise ValueError(
                f"there is no column {missing[0]!r}; the columns are {', '.join(map(str, X.columns))}"
            )
        return [values] * X.npartitions
    if not hasattr(values, "to_delayed"):
        raise TypeError(
            f"{name} is of type {type(values).__name__}; for a Dask data frame, pass a column name or a series of "
            "the same data frame"
        )
    partitions = list(np.ravel(values.to_delayed()))
    if len(partitions) != X.npartitions:
        raise ValueError(
            f"{name} has {len(partitions)} partitions and X has {X.npartitions}; take {name} from the same data "
            "frame"
        )
    return partitions


def _check_known_lengths(X: Any, y: Any, weight: Any) -> None:
    """y and weight have one value for each row, as far as this is known before a pass."""
    if not np.isnan(X.shape[0]):
        known = [None if v is None or np.isnan(np.shape(v)[0]) else v for v in (y, weight)]
        check_lengths(X, *known)


def _check_whole_rows(X: Any, name: str) -> None:
    if X.ndim != 2:
        raise ValueError(f"{name} has {X.ndim} dimensions; pass an array of shape (n, d)")
    if X.numblocks[1] > 1:
        raise ValueError(
            f"{name} is split into {X.numblocks[1]} chunks of columns, {X.chunks[1]}; chunks must contain whole "
            f"rows: pass {name}.rechunk({{1: -1}})"
        )


def _open_arrays(X: Any, y: Any, weight: Any, *, block_rows: int) -> MemoryRows:
    return MemoryRows(X.tocsr() if hasattr(X, "tocsr") else X, y, weight, block_rows=block_rows)


def _open_frame(X: Any, y: Any, weight: Any, *, block_rows: int, raw: bool) -> MemoryRows:
    columns = [
        X[values] if isinstance(values, str) else X[list(values)] if are_names(values) else values
        for values in (y, weight)
    ]
    labels = [*column_words(y), *column_words(weight)]
    X = X.drop(columns=labels) if labels else X
    return MemoryRows(read_columns(X, keep_dates=True) if raw else X, *columns, block_rows=block_rows)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "npartitions") and hasattr(X, "columns")


def _applied(function: Callable[[Any], Any], X: Any) -> Any:
    return np.asarray(function(numbers(X) if is_frame(X) else X))


def _applied_to_frame(function: Callable[[Any], Any], X: Any) -> Any:
    return np.asarray(function(X))


def _map_frame(X: Any, function: Callable[[Any], Any], q: int | None, dtype: Any, keep_frames: bool) -> Any:
    import dask.array as da

    task, shared = _lazy(_applied_to_frame if keep_frames else _applied), _as_task(function)
    shape = (np.nan,) if q is None else (np.nan, q)
    parts = [da.from_delayed(task(shared, frame), shape, dtype=dtype) for frame in X.to_delayed()]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _dask() -> Any:
    with optional("dask", "this needs dask"):
        import dask
    return dask


def _lazy(function: Callable[..., Any]) -> Any:
    # Every call is a separate task: hashing its arguments would cost more than it could save.
    return _dask().delayed(function, pure=False, traverse=False)


def _as_task(value: Any) -> Any:
    """The value as the result of a task; as bytes, so that Dask does not traverse it."""
    import cloudpickle

    return _lazy(cloudpickle.loads)(cloudpickle.dumps(value))


def _sum_in_threads(total: Any, sums: Sequence[Any], advance: Advance) -> Partial:
    from dask.callbacks import Callback

    keys = {one.key for one in sums}

    def done(key: Any, result: Any, *state: Any) -> None:
        if key in keys:
            advance(result.n_rows)

    with Callback(posttask=done):
        result: Partial = total.compute(scheduler="threads")
    return result


def _sum_on(client: Any, total: Any, counts: Sequence[Any], advance: Advance) -> Partial:
    from distributed import as_completed

    with _submitted(client, [total, *counts]) as (future, *parts):
        for part in as_completed(parts):
            advance(part.result())
        result: Partial = future.result()
    return result


def _computed(tasks: Sequence[Any]) -> list[Any]:
    """The results of lazy tasks, computed on the cluster or in this process."""
    client = current_client()
    if client is None:
        return list(_dask().compute(*tasks, scheduler="threads"))
    with _submitted(client, tasks) as futures:
        return list(client.gather(futures))


@contextmanager
def _submitted(client: Any, tasks: Sequence[Any]) -> Iterator[list[Any]]:
    """Futures of lazy tasks; after an error, and after Ctrl-C, unfinished ones are canceled."""
    with warnings.catch_warnings():
        # The centers are sent once, with the graph, so that they are not lost with a worker.
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        futures = client.compute(list(tasks))
    try:
        yield futures
    except BaseException:
        client.cancel(futures)
        raise
