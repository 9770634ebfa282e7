"""Sources of rows: arrays, files, streams, collections of Dask, Ray and Spark."""

from mercer.rows._base import Block, Rows
from mercer.rows._resolve import as_rows
from mercer.rows._sources.memory import MemoryRows
from mercer.rows._sources.parquet import ParquetRows
from mercer.rows._sources.stream import StreamRows

__all__ = [
    "Block",
    "MemoryRows",
    "ParquetRows",
    "Rows",
    "StreamRows",
    "as_rows",
]
