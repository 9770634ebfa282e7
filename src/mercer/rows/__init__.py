"""Sources of rows, samples of rows, and rows that are equal."""

from mercer.rows.base import Block, Rows
from mercer.rows.dask import is_dask, map_rows
from mercer.rows.distinct import Distinct, distinct_rows, every_row
from mercer.rows.draw import Draw, Drawn, Labels, Sample, sample, survey
from mercer.rows.memory import MemoryRows
from mercer.rows.parquet import ParquetRows
from mercer.rows.source import as_rows, feature_names, first_block, outside_memory
from mercer.rows.stream import StreamRows
from mercer.rows.weights import Meaning, Reading, Tally, reading_of

__all__ = [
    "Block",
    "Distinct",
    "Draw",
    "Drawn",
    "Labels",
    "Meaning",
    "MemoryRows",
    "ParquetRows",
    "Reading",
    "Rows",
    "Sample",
    "StreamRows",
    "Tally",
    "as_rows",
    "distinct_rows",
    "every_row",
    "feature_names",
    "first_block",
    "is_dask",
    "map_rows",
    "outside_memory",
    "reading_of",
    "sample",
    "survey",
]
