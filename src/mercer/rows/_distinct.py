"""Merge equal rows: one center and one equation for all copies of a row."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Indices
from mercer.rows._columns import NamedColumns
from mercer.rows._table import is_sparse


@dataclass(frozen=True)
class Distinct:
    """``first`` (u,): where each distinct row first occurs; ``point`` (n,): the distinct row of each row."""

    first: Indices
    point: Indices

    @property
    def n_points(self) -> int:
        return len(self.first)


def distinct_rows(X: Any) -> Distinct:
    """Distinct rows of a dense array, a CSR matrix, named columns, a list of objects, or several views of them.

    Copies share one kernel column, so merging them does not change the fitted function, and removes the exact
    singularities they would cause. Numeric rows are sorted by their bytes: a matrix of them does not depend, to
    the last digit, on how rows were ordered or repeated. Objects are kept in the order of first occurrence. Rows
    with several views or named columns are equal if they are equal in each. O(n (d + log n)).
    """
    if isinstance(X, NamedColumns):
        return distinct_rows({name: _as_rows(column) for name, column in X.columns.items()})
    if isinstance(X, dict):
        return distinct_rows(np.column_stack([distinct_rows(view).point for view in X.values()]))
    if is_sparse(X):
        return _sorted(_sparse_keys(X))
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub":
        return _sorted(_dense_keys(X))
    return _as_they_appear([_object_key(row) for row in X])


def every_row(n: int) -> Distinct:
    """No merging: n rows, n points."""
    return Distinct(np.arange(n), np.arange(n))


def _as_rows(column: NDArray[Any]) -> NDArray[Any]:
    """A column (n,) of numbers as rows (n, 1); objects unchanged."""
    return column[:, None] if column.dtype.kind in "fb" else column


def _sorted(keys: NDArray[Any]) -> Distinct:
    _, first, point = np.unique(keys, return_index=True, return_inverse=True)
    return Distinct(first, point.ravel())


def _as_they_appear(keys: list[Hashable]) -> Distinct:
    where: dict[Hashable, int] = {}
    point = [where.setdefault(key, len(where)) for key in keys]
    _, first = np.unique(point, return_index=True)
    return Distinct(first, np.array(point, dtype=np.intp))


def _dense_keys(X: NDArray[Any]) -> NDArray[Any]:
    """The bytes of every row; adding zero makes -0.0 and 0.0 equal."""
    X = np.ascontiguousarray(X) + X.dtype.type(0)
    if X.shape[1] == 0:
        return np.zeros(len(X))
    return X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).ravel()


def _sparse_keys(X: Any) -> NDArray[Any]:
    """The bytes of positions and values of every row."""
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    keys = np.empty(X.shape[0], dtype=object)
    keys[:] = [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in zip(X.indptr[:-1], X.indptr[1:])]
    return keys


def _object_key(row: Any) -> Hashable:
    """The object itself, the content of an array, list, set or dict, or the identity of an unhashable object."""
    if isinstance(row, np.ndarray) and not row.dtype.hasobject:
        return row.shape, row.dtype.str, row.tobytes()
    if isinstance(row, list | tuple | np.ndarray):
        return type(row), tuple(map(_object_key, row))
    if isinstance(row, set | frozenset):
        return frozenset(map(_object_key, row))
    if isinstance(row, dict):
        return dict, frozenset((key, _object_key(value)) for key, value in row.items())
    try:
        hash(row)
    except TypeError:
        return id(row)
    return row if isinstance(row, Hashable) else id(row)
