"""Rows with transformed copies of themselves (virtual rows), which share target and weight of their row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.rows.base import Block
from mercer.rows.table import dense, has_views, is_sparse, join, n_rows, take
from mercer.types import Array, Indices

# From rows to as many transformed rows.
Transform = Callable[[Any], Any]


@dataclass(frozen=True)
class Orbits:
    """The number (n,) of the row that each row is a copy of, or is, and which (n,) are rows themselves."""

    number: Indices
    own: NDArray[np.bool_]

    def some(self, rows: Indices) -> "Orbits":
        """Of some of the rows."""
        return Orbits(self.number[rows], self.own[rows])


@dataclass(frozen=True)
class Copies:
    """The fold block -> block in which every row is followed by its transformed copies.

    All of them have the target of the row, and equal parts of its weight, so that sums over all of them have the
    scale of sums over rows.
    """

    transforms: tuple[Transform, ...]

    @property
    def size(self) -> int:
        """Number of rows for each row: itself and its copies."""
        return 1 + len(self.transforms)

    def __call__(self, block: Block) -> Block:
        again = np.repeat(np.arange(block.n_rows), self.size)
        weight = np.ones(block.n_rows) if block.weight is None else block.weight
        return Block(
            self.rows(block.X),
            take(block.y, again),
            self._shared(weight)[again],
            self.size * block.first,
            None if block.unit is None else self._shared(block.unit)[again],
        )

    def rows(self, X: Any) -> Any:
        """Each row of X followed by its copies."""
        tables = [X, *(transformed(f, X) for f in self.transforms)]
        order = np.arange(self.size * n_rows(X)).reshape(self.size, -1)
        return take(join("X", tables), order.T.ravel())

    def orbits(self, n: int) -> Orbits:
        """Which of the rows and copies of n rows belong together."""
        position = np.arange(n * self.size)
        return Orbits(position // self.size, position % self.size == 0)

    def _shared(self, weight: Array) -> Array:
        return weight / self.size


def rows_for_each(copies: Copies | None) -> int:
    """How many rows a row becomes."""
    return 1 if copies is None else copies.size


def transformed(transform: Transform, X: Any) -> Any:
    """Rows of X transformed, of the same kind, type and number."""
    found = transform(X)
    if has_views(X) or not hasattr(X, "shape"):
        _check_number(transform, n_rows(found), n_rows(X))
        return found
    if not is_sparse(found):
        found = np.asarray(found)
    if found.shape != X.shape:
        raise ValueError(
            f"the transformation {transform!r} returned shape {found.shape} for rows of shape {X.shape}; it must "
            "return one row for each row, with the same columns"
        )
    found = found.astype(X.dtype, copy=False) if is_sparse(X) == is_sparse(found) else _like(found, X)
    values = found.data if is_sparse(found) else found
    if not np.isfinite(values).all():
        raise ValueError(
            f"the transformation {transform!r} returned NaN or infinity; it must return finite numbers"
        )
    return found


def _like(found: Any, X: Any) -> Any:
    """Sparse as X, or dense as X."""
    return type(X)(found, dtype=X.dtype) if is_sparse(X) else dense(found).astype(X.dtype)


def _check_number(transform: Transform, found: int, n: int) -> None:
    if found != n:
        raise ValueError(
            f"the transformation {transform!r} returned {found} rows for {n}; it must return one for each row"
        )


def as_copies(transforms: Any) -> Copies | None:
    """From what a user may write for invariances: None, or callables on rows."""
    if transforms is None:
        return None
    if not isinstance(transforms, Sequence) or isinstance(transforms, str) or not all(map(callable, transforms)):
        raise TypeError(
            f"invariances={transforms!r}; pass a list of functions that take rows and return as many transformed "
            "rows, such as mercer.invariances.shifts()"
        )
    return Copies(tuple(transforms)) if len(transforms) else None
