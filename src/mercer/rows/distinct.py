"""Merge rows that are equal: one center and one equation for all copies of a row."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Distinct:
    """``first`` (u,): where each distinct row first stands; ``point`` (n,): the distinct row of each row."""

    first: NDArray[np.intp]
    point: NDArray[np.intp]

    @property
    def n_points(self) -> int:
        return len(self.first)


def distinct_rows(X: Any) -> Distinct:
    """Distinct rows of a dense array, a CSR matrix or a list of hashable objects, in order of appearance.

    Copies share one kernel column, so merging them changes no fitted function, and removes
    the exact singularities they would bring. O(n d).
    """
    where: dict[Hashable, int] = {}
    first: list[int] = []
    point: list[int] = []
    for row, key in enumerate(_keys(X)):
        position = where.setdefault(key, len(first))
        if position == len(first):
            first.append(row)
        point.append(position)
    return Distinct(np.array(first, dtype=np.intp), np.array(point, dtype=np.intp))


def every_row(n: int) -> Distinct:
    """No merging: n rows, n points."""
    return Distinct(np.arange(n), np.arange(n))


def _keys(X: Any) -> Iterable[Hashable]:
    """One hashable key a row; equal rows have equal keys."""
    if hasattr(X, "indptr"):
        return _sparse_keys(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        # Adding zero turns -0.0 into 0.0.
        return (row.tobytes() for row in np.ascontiguousarray(X) + X.dtype.type(0))
    return (_object_key(row) for row in X)


def _sparse_keys(X: Any) -> Iterable[Hashable]:
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    bounds = zip(X.indptr[:-1], X.indptr[1:])
    return ((X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in bounds)


def _object_key(row: Any) -> Hashable:
    return row.tobytes() if isinstance(row, np.ndarray) else row if isinstance(row, Hashable) else id(row)
