"""Rows that are held out together."""

import numpy as np

from mercer.types import Indices


def fold_members(fold: Indices) -> list[Indices]:
    """The rows of each fold, for integer fold numbers (n,); every row is in exactly one list."""
    order = np.argsort(fold, kind="stable")
    _, starts = np.unique(fold[order], return_index=True)
    return np.split(order, starts[1:])
