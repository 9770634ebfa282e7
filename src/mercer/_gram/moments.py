"""Moments of rows against centers: the sufficient statistics of a fit with m centers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._gram.blocks import AgainstCenters, check_finite, overflow
from mercer._gram.coordinates import Coordinates
from mercer._gram.workspace import Workspace
from mercer._types import Array, Indices
from mercer.rows._base import Block
from mercer.rows._table import n_rows

# Rows of one product: its factor stays in the cache, and summing the products costs little.
PRODUCT_ROWS = 4096
# The sums.
SUMS = ("n", "s", "t", "G", "C", "V", "n_rows")


@dataclass(frozen=True)
class Moments:
    """Sums over rows with weights w, K = k(rows, centers) (n, m) and targets Y (n, q).

    n = sum w, s = K'w (m,), t = Y'w (q,), G = K'WK (m, m), C = K'WY (m, q), V = Y'WY (q, q), and the number
    of rows. Moments of disjoint rows add; those of removed rows are subtracted; a factor below one forgets.
    With ``coordinates`` the rows of K are phi instead, the same for all moments that are added.
    """

    n: float
    s: Array
    t: Array
    G: Array
    C: Array
    V: Array
    n_rows: int
    coordinates: Coordinates | None = None

    def __add__(self, other: "Moments") -> "Moments":
        return self._with(a + b for a, b in zip(self._parts(), other._parts()))

    def __iadd__(self, other: "Moments") -> "Moments":
        """Add to the arrays of this object, which must not be shared."""
        for own, more in zip(self._parts()[1:-1], other._parts()[1:-1]):
            own += more
        return replace(self, n=self.n + other.n, n_rows=self.n_rows + other.n_rows)

    def __sub__(self, other: "Moments") -> "Moments":
        return self._with(a - b for a, b in zip(self._parts(), other._parts()))

    def scaled(self, factor: float) -> "Moments":
        """Moments of the same rows with all weights multiplied by ``factor``."""
        return replace(self._with(factor * part for part in self._parts()), n_rows=self.n_rows)

    def restricted(self, centers: Indices) -> "Moments":
        """With some of the centers only; the same object if all are kept in order."""
        if np.array_equal(centers, np.arange(len(self.s))):
            return self
        G = self.G[np.ix_(centers, centers)]
        return Moments(self.n, self.s[centers], self.t, G, self.C[centers], self.V, self.n_rows)

    def centered(self) -> tuple[Array, Array, Array]:
        """G, C, V of K and Y minus their weighted means, which eliminates the intercept."""
        G = np.outer(self.s, -self.s / self.n)
        G += self.G
        C = self.C - np.outer(self.s, self.t / self.n)
        V = self.V - np.outer(self.t, self.t / self.n)
        return G, C, V

    def without_means(self) -> "Moments":
        """As if the weighted sums of K and Y were zero, so that centering changes nothing."""
        return replace(self, s=np.zeros_like(self.s), t=np.zeros_like(self.t))

    def of_kernel_values(self) -> "Moments":
        """Sums of kernel values, whatever the coordinates; O(m³)."""
        if self.coordinates is None:
            return self
        s, G, C = self.coordinates.of_kernel_values(self.n, self.s, self.t, self.G, self.C)
        return Moments(self.n, s, self.t, G, C, self.V, self.n_rows)

    def against_targets(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """sum w f y' (p, q) for f = k'coef + intercept, coef (m, p), and the sum of the sizes of its terms."""
        slopes, shift, where = coef, np.zeros(len(intercept)), self.coordinates
        if where is not None:
            slopes, shift = where.slopes(coef), where.origin @ coef
        sums = slopes.T @ self.C + np.outer(shift + intercept, self.t)
        constants = np.abs(shift) + np.abs(intercept)
        return sums, np.abs(slopes).T @ np.abs(self.C) + np.outer(constants, np.abs(self.t))

    def square(self, coef: Array, intercept: float) -> float:
        """sum w f² for f = k'coef + intercept, coef (m,)."""
        slopes, shift, where = coef, intercept, self.coordinates
        if where is not None:
            slopes, shift = where.slopes(coef[:, None])[:, 0], float(where.origin @ coef) + intercept
        return float(slopes @ self.G @ slopes + 2.0 * shift * (self.s @ slopes) + self.n * shift**2)

    def in_double(self) -> "Moments":
        """The same in float64, as copies."""
        return replace(self, **{name: getattr(self, name).astype(np.float64) for name in ("s", "G", "C")})

    def _with(self, parts: Iterable[Any]) -> "Moments":
        """Other sums in the same coordinates."""
        return replace(self, **dict(zip(SUMS, parts)))

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in SUMS)


@dataclass(frozen=True)
class MomentsOf(AgainstCenters):
    """The fold block -> Moments for these centers; the y of a block are its targets, (b,) or (b, q).

    Kernel values have the precision of the rows. Their products are computed in ``dtype`` and summed in
    float64: in float64 G is a Gram matrix, in float32 it is faster, and only nearly one.
    :func:`mercer._gram.precision.product_precision` decides whether that is enough. With ``coordinates`` the sums
    are those of phi, in float64; results do not include the coordinates, since results of many blocks may be sent
    over a network.

    Every thread keeps memory for one piece, PRODUCT_ROWS rows of K and one G, as long as the fold exists:
    requesting memory from the system for every block costs up to a sixth of the pass.
    """

    dtype: Any = np.float64
    coordinates: Coordinates | None = None

    def __call__(self, block: Block) -> Moments:
        """Moments of the block, in pieces of the fastest size for products."""
        return self.onto(None, block)

    def onto(self, total: Moments | None, block: Block) -> Moments:
        """``total``, whose arrays are overwritten and must not be shared, plus the block; None: no rows yet."""
        for ends in pieces(block.n_rows, PRODUCT_ROWS):
            piece = self._piece(block.cut(*ends))
            if total is None:
                total = piece.in_double()
            else:
                total += piece
        assert total is not None
        return total

    def __getstate__(self) -> dict[str, Any]:
        """Without the memory for pieces, which belongs to the threads of this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_workspace"}

    def _piece(self, block: Block) -> Moments:
        """Moments in the precision of the products; the memory of G is reused for the next piece."""
        piece = self.sums(self.columns(block), target_columns(block), block.weight)
        self.check(piece, block)
        return piece

    def columns(self, block: Block) -> NDArray[Any]:
        """Kernel values or coordinates (b, m) of a piece, in the memory of the previous ones."""
        return self.columns_of(self.values(block.X, self._workspace.for_values(block.X, n_rows(self.centers))))

    def columns_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Kernel values or coordinates (b, m) from kernel values (b, m), which may be overwritten."""
        K = self._in_precision(values)
        if self.coordinates is None:
            return K
        return self.coordinates.of_rows(K, lambda shape: self._workspace.space("strip", shape, self.dtype))

    def copied(self, K: NDArray[Any]) -> NDArray[Any]:
        """Columns that may be overwritten, in the memory of the previous copy."""
        copy = self._workspace.space("copy", K.shape, K.dtype)
        np.copyto(copy, K)
        return copy

    def sums(self, K: NDArray[Any], Y: Array, weight: Array | None) -> Moments:
        """Moments of columns K (b, m), which are overwritten if there are weights, and targets (b, q).

        The memory of G is reused for the next sums.
        """
        w = np.ones(len(Y)) if weight is None else np.asarray(weight, dtype=np.float64)
        WY = Y if weight is None else w[:, None] * Y
        if weight is None:
            sides = np.column_stack([w, Y])
        else:
            root = np.sqrt(w)[:, None]
            K *= root.astype(K.dtype)
            sides = root * np.column_stack([np.ones(len(w)), Y])
        with np.errstate(over="ignore", invalid="ignore"):
            C = K.T @ sides.astype(K.dtype, copy=False)
            G = np.matmul(K.T, K, out=self._workspace.space("G", (K.shape[1], K.shape[1]), self.dtype))
        return Moments(float(w.sum()), C[:, 0], WY.sum(axis=0), G, C[:, 1:], Y.T @ WY, len(w))

    def check(self, piece: Moments, block: Block) -> None:
        """Raise KernelError if the sums of a block are not finite."""
        if not np.isfinite(piece.G.diagonal()).all():
            check_finite(self.kernel, self.values(block.X))
            raise overflow(self.kernel, piece.G.dtype)

    def _in_precision(self, K: NDArray[Any]) -> NDArray[Any]:
        """K in the type of the products."""
        if K.dtype == self.dtype:
            return K
        wide = self._workspace.space("K", K.shape, self.dtype)
        np.copyto(wide, K)
        return wide

    @cached_property
    def _workspace(self) -> Workspace:
        return Workspace()


def pieces(n: int, size: int) -> list[tuple[int, int]]:
    """Bounds of pieces of ``size`` rows, the last one smaller."""
    return [(start, min(start + size, n)) for start in range(0, n, size)] or [(0, 0)]


def target_columns(block: Block) -> Array:
    """Targets (b,) or (b, q) of a block as a float64 array (b, q); without targets q is 0."""
    if block.y is None:
        return np.empty((block.n_rows, 0))
    Y = np.asarray(block.y, dtype=np.float64)
    return Y[:, None] if Y.ndim == 1 else Y
