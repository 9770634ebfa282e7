"""Kernel blocks, the one place where kernels are evaluated, and the memory they need."""

from mercer._gram.blocks import (
    check_size,
    cross,
    gram,
    gram_bytes,
    kernel_blocks,
    own_values,
    self_similarity,
)
from mercer._gram.budget import Budget
from mercer._gram.geometry import centered, check_psd, distances
from mercer._gram.products import apply, apply_transposed, combine

__all__ = [
    "Budget",
    "apply",
    "apply_transposed",
    "centered",
    "check_psd",
    "check_size",
    "combine",
    "cross",
    "distances",
    "gram",
    "gram_bytes",
    "kernel_blocks",
    "own_values",
    "self_similarity",
]
