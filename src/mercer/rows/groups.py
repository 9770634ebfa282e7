"""Rows that leave together."""

import numpy as np

from mercer.types import Indices


def fold_members(fold: Indices) -> list[Indices]:
    """The rows of each fold, for fold numbers (n,) of any integers; every row is in one list."""
    order = np.argsort(fold, kind="stable")
    _, starts = np.unique(fold[order], return_index=True)
    return np.split(order, starts[1:])
