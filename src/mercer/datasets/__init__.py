"""Data sets: seeded generators with known distributions, and readers of benchmark archives."""

from mercer.datasets._generators import (
    make_banana,
    make_clusters,
    make_fisher_worst_case,
    make_ringnorm,
    make_sinc,
    make_two_spirals,
    make_twonorm,
    make_waveform,
    make_words,
)
from mercer.datasets._readers import DIGITS_NAMES, IDA_NAMES, Partitions, read_digits, read_ida

__all__ = [
    "DIGITS_NAMES",
    "IDA_NAMES",
    "Partitions",
    "make_banana",
    "make_clusters",
    "make_fisher_worst_case",
    "make_ringnorm",
    "make_sinc",
    "make_two_spirals",
    "make_twonorm",
    "make_waveform",
    "make_words",
    "read_digits",
    "read_ida",
]
