"""Products with the matrix K = k(rows, centers), of which only a few rows are in memory at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._gram import blocks
from mercer._gram.blocks import AgainstCenters, check_finite, cuts, evaluator, overflow
from mercer._gram.workspace import Workspace
from mercer._linalg.threads import map_in_threads, one_blas_thread
from mercer._types import Array, Floats
from mercer.kernels._base import Kernel
from mercer.rows._base import Block, Rows
from mercer.rows._sources.memory import MemoryRows
from mercer.rows._table import n_rows, take

Values = Floats

# A block is divided into this many pieces: each stays in the cache, and as many threads can work on it.
PIECES_OF_BLOCK = 4


def combine(kernel: Kernel, X: Any, centers: Any, coef: Values, *, cells: int | None = None) -> Values:
    """k(X, centers) @ coef (n, q) in the precision of coef, for rows in memory.

    O(n m) time, in threads beyond one block; at most ``cells`` kernel values are in memory at a time, 2²² by
    default. The result does not depend on the number of threads, not even in its last bit.
    """
    out = np.empty((n_rows(X), coef.shape[1]), dtype=coef.dtype)
    values, workspace = evaluator(kernel, centers), Workspace()

    def fill(rows: slice) -> None:
        some = take(X, rows)
        K = values(some, workspace.for_values(some, len(coef)))
        out[rows] = K @ coef
        if not np.isfinite(out[rows]).all():
            check_finite(kernel, K)

    step = max(1, (cells or blocks.BLOCK_SIZE) // max(len(coef), 1))
    if len(out) <= step:
        with one_blas_thread():
            fill(slice(0, len(out)))
    else:
        map_in_threads(fill, cuts(len(out), max(1, step // PIECES_OF_BLOCK)), most=PIECES_OF_BLOCK)
    return out


def apply(kernel: Kernel, rows: Any, centers: Any, v: Values) -> Values:
    """K v (n,) or (n, q) for rows in memory or from any source; v (m,) or (m, q)."""
    coef = v if v.ndim == 2 else v[:, None]
    if isinstance(rows, Rows):
        product = rows.reduce(ProductOf(kernel, centers, coef)).joined
    else:
        product = combine(kernel, rows, centers, coef)
    return product.reshape(-1, *v.shape[1:])


def apply_transposed(kernel: Kernel, rows: Any, centers: Any, u: Values) -> Array:
    """K'u (m,) or (m, q) for rows in memory or from any source; u (n,) or (n, q).

    Blocks are multiplied in the precision of their values and summed in float64, in the order of the rows.
    """
    source = rows if isinstance(rows, Rows) else MemoryRows(rows)
    return source.reduce(TransposedOf(kernel, centers, u))


@dataclass(frozen=True)
class Parts:
    """Arrays whose rows, along ``axis``, are those of blocks; ``+`` appends the arrays of the other."""

    parts: list[Values]
    axis: int = 0

    def __add__(self, other: "Parts") -> "Parts":
        return Parts([*self.parts, *other.parts], self.axis)

    def __iadd__(self, other: "Parts") -> "Parts":
        """Append to the list of this object, which must not be shared."""
        self.parts.extend(other.parts)
        return self

    @property
    def joined(self) -> Values:
        """All rows in one array; a copy."""
        return np.concatenate(self.parts, axis=self.axis)


@dataclass(frozen=True)
class ProductOf(AgainstCenters):
    """The fold block -> k(block, centers) @ coef."""

    coef: Values

    def __call__(self, block: Block) -> Parts:
        K = self.values(block.X)
        product = K @ self.coef
        if not np.isfinite(product).all():
            check_finite(self.kernel, K)
        return Parts([product.astype(self.coef.dtype, copy=False)])


@dataclass(frozen=True)
class TransposedOf(AgainstCenters):
    """The fold block -> k(block, centers)' u[block], in float64; u (n, ...) are values for all rows."""

    u: Values

    def __call__(self, block: Block) -> Array:
        K = self.values(block.X)
        u = np.asarray(self.u[block.first : block.first + len(K)], dtype=K.dtype)
        product = (K.T @ u).astype(np.float64)
        if not np.isfinite(product).all():
            check_finite(self.kernel, K)
            raise overflow(self.kernel, K.dtype)
        return product
