"""Sources of rows, samples of rows, and rows that are equal."""

from mercer.rows._base import Block, Rows
from mercer.rows._distinct import Distinct, distinct_rows, every_row
from mercer.rows._engines.dask import is_dask, map_rows
from mercer.rows._resolve import as_rows, feature_names, first_block, is_out_of_core
from mercer.rows._sampling.random_sample import Labels, RunningSample, Sample, Sampler, sample, survey
from mercer.rows._sampling.weights import Meaning, Reading, Tally, reading_of
from mercer.rows._sources.memory import MemoryRows
from mercer.rows._sources.parquet import ParquetRows
from mercer.rows._sources.stream import StreamRows

__all__ = [
    "Block",
    "Distinct",
    "Labels",
    "Meaning",
    "MemoryRows",
    "ParquetRows",
    "Reading",
    "Rows",
    "RunningSample",
    "Sample",
    "Sampler",
    "StreamRows",
    "Tally",
    "as_rows",
    "distinct_rows",
    "every_row",
    "feature_names",
    "first_block",
    "is_dask",
    "is_out_of_core",
    "map_rows",
    "reading_of",
    "sample",
    "survey",
]
