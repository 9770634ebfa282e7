"""Rows in memory, or in a file mapped to memory."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

from mercer._types import Indices
from mercer.rows._base import BLOCK_ROWS, Block, LocalRows, check_block_rows, check_lengths
from mercer.rows._table import HasRows, column_names, is_sparse, numbers, take, targets, weights


@dataclass(frozen=True, eq=False)
class MemoryRows(HasRows, LocalRows):
    """Rows of an array, a memory map, a CSR matrix, a data frame of pandas or polars, or a list of objects.

    Blocks of arrays are views: nothing is copied, and a block of a memory map is read when it is used. Data frames
    are converted block by block. Pickling a memory map includes its content.

    Parameters
    ----------
    X : array, memory map, CSR matrix, data frame or list
        n rows.
    y : array, series, data frame or list of n values, optional
    weight : array or series of n values, optional
    block_rows : int
        Number of rows per block; the last block may be smaller.

    Examples
    --------
    >>> import numpy as np
    >>> rows = MemoryRows(np.ones((10, 2)), block_rows=4)
    >>> [block.n_rows for block in rows.blocks()]
    [4, 4, 2]
    >>> rows.reduce(lambda block: block.X.sum(axis=0))
    array([10., 10.])
    """

    X: Any
    y: Any = None
    weight: Any = None
    _: KW_ONLY
    block_rows: int = BLOCK_ROWS

    def __post_init__(self) -> None:
        check_block_rows(self.block_rows)
        check_lengths(self.X, self.y, self.weight)
        if is_sparse(self.X) and self.X.format != "csr":
            raise ValueError(f"X is a sparse matrix in format {self.X.format!r}; pass X.tocsr()")

    @property
    def feature_names(self) -> tuple[Any, ...] | None:
        """Column names of a data frame."""
        return column_names(self.X)

    def some(self, rows: Indices) -> "MemoryRows":
        """Some of the rows."""
        X, y, weight = (take(part, rows) for part in (self.X, self.y, self.weight))
        return MemoryRows(X, y, weight, block_rows=self.block_rows)

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            rows = slice(start, start + self.block_rows)
            X, y, weight = (take(part, rows) for part in (self.X, self.y, self.weight))
            yield Block(numbers(X), targets(y), weights(weight), start)


@dataclass(frozen=True, eq=False)
class HeldRows(LocalRows):
    """Rows of one large block, split into small ones."""

    block: Block
    _: KW_ONLY
    block_rows: int = BLOCK_ROWS

    @property
    def n_rows(self) -> int:
        return self.block.n_rows

    def blocks(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            yield self.block.cut(start, min(start + self.block_rows, self.n_rows))
