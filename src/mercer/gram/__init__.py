"""Kernel blocks, the one place where kernels are evaluated, and the memory they need."""

from mercer.gram.blocks import blocks, centers_of, combine, gram, gram_bytes, n_rows, self_similarity, take
from mercer.gram.budget import Budget

__all__ = ["Budget", "blocks", "centers_of", "combine", "gram", "gram_bytes", "n_rows", "self_similarity", "take"]
