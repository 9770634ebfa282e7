"""Sources of rows, samples of rows, and rows that are equal."""

from mercer.rows.base import Block, Rows
from mercer.rows.distinct import Distinct, distinct_rows, every_row
from mercer.rows.engines.dask import is_dask, map_rows
from mercer.rows.resolve import as_rows, feature_names, first_block, is_out_of_core
from mercer.rows.sampling.random_sample import Labels, RunningSample, Sample, Sampler, sample, survey
from mercer.rows.sampling.weights import Meaning, Reading, Tally, reading_of
from mercer.rows.sources.memory import MemoryRows
from mercer.rows.sources.parquet import ParquetRows
from mercer.rows.sources.stream import StreamRows

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
