"""The same rows in every source that can hold them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mercer.rows import MemoryRows, ParquetRows, StreamRows

N, D, BLOCK_ROWS = 1003, 3, 64


@dataclass(frozen=True)
class Table:
    """X (n, d), y (n,) and weight (n,)."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Cuts:
    """A function that returns an iterator of blocks, and can be pickled."""

    table: Table
    size: int

    def __call__(self):
        t = self.table
        for start in range(0, len(t.X), self.size):
            rows = slice(start, start + self.size)
            yield t.X[rows], t.y[rows], t.weight[rows]


def names(table):
    return [f"x{j}" for j in range(table.X.shape[1])]


def write_parquet(table: Table, path: Path, *, rows: slice = slice(None), group: int = 100) -> Path:
    """A Parquet file with the columns x0, x1, ..., label and weight."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: no Parquet files here")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: no Parquet files here")
    columns = dict(zip(names(table), table.X[rows].T)) | {"label": table.y[rows], "weight": table.weight[rows]}
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return path


def array(table, folder):
    return MemoryRows(table.X, table.y, table.weight, block_rows=BLOCK_ROWS)


def fortran_array(table, folder):
    return MemoryRows(np.asfortranarray(table.X), table.y, table.weight, block_rows=BLOCK_ROWS)


def memory_map(table, folder):
    np.save(folder / "X.npy", table.X)
    return MemoryRows(np.load(folder / "X.npy", mmap_mode="r"), table.y, table.weight, block_rows=BLOCK_ROWS)


def csr_matrix(table, folder):
    return MemoryRows(sparse.csr_matrix(table.X), table.y, table.weight, block_rows=BLOCK_ROWS)


def pandas_frame(table, folder):
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    frame = pd.DataFrame(table.X, columns=names(table), index=np.arange(N)[::-1])
    y, weight = pd.Series(table.y, index=frame.index), pd.Series(table.weight, index=frame.index)
    return MemoryRows(frame, y, weight, block_rows=BLOCK_ROWS)


def polars_frame(table, folder):
    pl = pytest.importorskip("polars", reason="polars is not installed: no frames of polars here")
    X, y, weight = pl.DataFrame(table.X, schema=names(table)), pl.Series(table.y), pl.Series(table.weight)
    return MemoryRows(X, y, weight, block_rows=BLOCK_ROWS)


def parquet_file(table, folder):
    file = write_parquet(table, folder / "rows.parquet")
    return ParquetRows(file, target="label", weight="weight", block_rows=BLOCK_ROWS)


def parquet_folder(table, folder):
    for i, (start, stop) in enumerate([(0, 10), (10, 500), (500, 501), (501, N)]):
        write_parquet(table, folder / f"part-{i}.parquet", rows=slice(start, stop), group=37)
    return ParquetRows(folder, target="label", weight="weight", block_rows=BLOCK_ROWS)


def stream_list(table, folder):
    return StreamRows(list(Cuts(table, 150)()), block_rows=BLOCK_ROWS)


def stream_function(table, folder):
    return StreamRows(Cuts(table, 7), block_rows=BLOCK_ROWS)


SOURCES = [
    array,
    fortran_array,
    memory_map,
    csr_matrix,
    pandas_frame,
    polars_frame,
    parquet_file,
    parquet_folder,
    stream_list,
    stream_function,
]


@pytest.fixture(scope="session")
def table(frozen) -> Table:
    rng = np.random.default_rng(0)
    return Table(
        frozen(rng.standard_normal((N, D))), frozen(rng.integers(3, size=N)), frozen(rng.uniform(0.5, 2.0, size=N))
    )


@pytest.fixture
def write():
    """The function that writes a table to a Parquet file."""
    return write_parquet


@pytest.fixture(params=SOURCES, ids=lambda source: source.__name__)
def rows(request, table, tmp_path) -> Any:
    """The table in each of the sources."""
    return request.param(table, tmp_path)
