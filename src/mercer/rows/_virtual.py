"""Rows with transformed copies of themselves (virtual rows), which share target and weight of their row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Floats, Indices
from mercer.rows._base import Block
from mercer.rows._table import dense, holds_numbers, is_sparse, is_table, join, n_rows, take

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
    scale of sums over rows. With ``mu``, copies do not count as rows, but f(Tx) - f(x) does, with the target zero
    and mu times the weight, divided by the number of copies.
    """

    transforms: tuple[Transform, ...]
    mu: float | None = None

    @property
    def size(self) -> int:
        """Number of rows for each row: itself and its copies."""
        return 1 + len(self.transforms)

    def __call__(self, block: Block) -> Block:
        weight = np.ones(block.n_rows) if block.weight is None else block.weight
        return Block(
            self.rows(block.X),
            take(block.y, np.repeat(np.arange(block.n_rows), self.size)),
            self._shared(weight),
            self.size * block.first,
            None if block.unit is None else self._shared(block.unit),
        )

    def rows(self, X: Any) -> Any:
        """Each row of X followed by its copies."""
        tables = [X, *(transformed(f, X, name_of(i, f)) for i, f in enumerate(self.transforms))]
        order = np.arange(self.size * n_rows(X)).reshape(self.size, -1)
        return take(join("X", tables), order.T.ravel())

    def orbits(self, n: int) -> Orbits:
        """Which of the rows and copies of n rows belong together."""
        position = np.arange(n * self.size)
        return Orbits(position // self.size, position % self.size == 0)

    def _shared(self, weight: Array) -> Array:
        """Weights of rows and copies (n size,)."""
        if self.mu is None:
            return np.repeat(weight / self.size, self.size)
        part = np.append(1.0, np.full(self.size - 1, self.mu / (self.size - 1)))
        return np.outer(weight, part).ravel()


def rows_for_each(copies: Copies | None) -> int:
    """How many rows a row becomes."""
    return 1 if copies is None else copies.size


def name_of(i: int, transform: Transform) -> str:
    """The name of an invariance in errors."""
    return f"invariances[{i}] ({getattr(transform, '__name__', repr(transform))})"


def transformed(transform: Transform, X: Any, name: str) -> Any:
    """Rows of X transformed, of the same kind, type and number; ``name`` is that of the function in errors.

    The function gets a copy, so that it may overwrite its argument.
    """
    try:
        moved = transform(take(X, np.arange(n_rows(X))))
    except Exception as error:
        error.add_note(f"in {name}")
        raise
    if moved is None:
        raise ValueError(f"{name} returned None; a transformation must return the transformed rows")
    if not holds_numbers(X):
        found = n_rows(moved) if is_table(moved) else 0
        _check_shape(name, f"{type(moved).__name__} of {found} rows", found == n_rows(X), f"{n_rows(X)} rows")
        return moved
    if not is_sparse(moved):
        moved = _as_array(moved, name)
    _check_shape(name, f"an array of shape {moved.shape}", moved.shape == X.shape, f"rows of shape {X.shape}")
    moved = type(X)(moved).astype(X.dtype) if is_sparse(X) else dense(moved).astype(X.dtype, copy=False)
    if not np.isfinite(moved.data if is_sparse(moved) else moved).all():
        raise ValueError(f"{name} returned values that are not finite; return finite numbers")
    return moved


def _as_array(moved: Any, name: str) -> Floats:
    try:
        if not np.iscomplexobj(moved):
            return np.asarray(moved, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"{name} returned {type(moved).__name__} instead of rows of real numbers; return an array of the shape of "
        "its argument"
    )


def _check_shape(name: str, found: str, same: bool, expected: str) -> None:
    if not same:
        raise ValueError(
            f"{name} returned {found} for {expected}; a transformation must return one row of the same columns "
            "for each row"
        )


def as_copies(transforms: Any) -> Copies | None:
    """From what a user may write for invariances: None, or callables on rows."""
    if transforms is None:
        return None
    if not isinstance(transforms, Sequence) or isinstance(transforms, str) or not all(map(callable, transforms)):
        raise TypeError(
            f"invariances is a {type(transforms).__name__}; pass a list of functions that take rows and return as "
            "many transformed rows, such as mercer.invariances.shifts()"
        )
    return Copies(tuple(transforms)) if len(transforms) else None
