"""Kernel blocks, the one place where kernels are evaluated, and the memory they need."""

from mercer.gram.blocks import centers_of, combine, gram, gram_bytes, kernel_blocks, n_rows, self_similarity, take
from mercer.gram.budget import Budget

__all__ = [
    "Budget",
    "centers_of",
    "combine",
    "gram",
    "gram_bytes",
    "kernel_blocks",
    "n_rows",
    "self_similarity",
    "take",
]
