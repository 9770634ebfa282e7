r"""The problem of sparse least squares: targets at points, candidates for centers, and the penalty.

Over coefficients c of a few candidates S and an intercept b that is not penalized,

    min  sum_i w_i |y_i - sum_(j in S) c_j k(x_i, z_j) - b|²  +  alpha |P c|²,     P upper triangular:

P'P = K_SS for the penalty "rkhs", P = 1 for "coef", and for "orthogonal" P = U of A_S = Q diag(d)^(1/2) U, with
ones on its diagonal (Andelić 2007, Eq. 3.80: the coefficients of the orthogonal columns). "diagonal" has P = 0 and
adds alpha to the value of each center at its own row (Andelić 2007, section 3.4.1, there ε). The intercept is
eliminated by centering the columns; rows are multiplied by the square roots of their weights.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mercer._gram.blocks import cross, own_values
from mercer._linalg.tolerance import by_precision
from mercer._solvers.spectrum import Observations
from mercer._types import Array, Indices
from mercer.kernels import Kernel
from mercer.rows._table import n_rows, take

SparsePenalty = Literal["rkhs", "coef", "orthogonal", "diagonal"]

# Smallest part of the length of a selected column that must be new, by the precision of the kernel values.
NEW_LENGTH = {"double": 1e-10, "single": 1e-5}
# Smallest part of its square if squares are subtracted from each other.
NEW_SQUARE = {"double": 1e-12, "single": 1e-6}


@dataclass(frozen=True)
class Points:
    """Observations at distinct points: means Y (u, q) of the targets, positive weights (u,), of n rows."""

    Y: Array
    weight: Array
    n: float

    @classmethod
    def of(cls, observations: Observations) -> "Points":
        return cls(observations.point_target, observations.point_weight, observations.n_counted)

    @cached_property
    def root(self) -> Array:
        return np.asarray(np.sqrt(self.weight))

    @cached_property
    def mean(self) -> Array:
        """(q,)."""
        return np.asarray(self.weight @ self.Y / self.weight.sum())

    @cached_property
    def target(self) -> Array:
        """Centered, weighted targets (u, q)."""
        return np.asarray((self.Y - self.mean) * self.root[:, None])

    def weighted(self, K: Array) -> Array:
        """Centered, weighted columns (u, b) of plain ones."""
        return np.asarray((K - self.weight @ K / self.weight.sum()) * self.root[:, None])


@dataclass(frozen=True)
class CandidateColumns:
    """Columns k_g(., x_p) for the points p of a pool and one or more kernels g.

    Number g b + i means kernel g at the point pool[i], of b points in the pool. ``diagonal`` is added to each
    column at its own row. ``values`` (u, c) are all columns without it, if they are kept.
    """

    kernels: tuple[Kernel, ...]
    X: Any
    pool: Indices
    diagonal: float = 0.0
    values: Array | None = None

    def __len__(self) -> int:
        return len(self.kernels) * len(self.pool)

    def shifted(self, diagonal: float) -> "CandidateColumns":
        """With another diagonal."""
        return replace(self, diagonal=diagonal)

    @property
    def n_values(self) -> int:
        """Kernel values in all columns."""
        return n_rows(self.X) * len(self)

    def kept(self) -> "CandidateColumns":
        """With all columns in memory."""
        return replace(self, values=self.shifted(0.0).columns(np.arange(len(self))))

    def point(self, j: Indices) -> Indices:
        """The point of each candidate."""
        return np.asarray(self.pool[np.asarray(j) % len(self.pool)])

    def kernel_number(self, j: Indices) -> Indices:
        """The kernel of each candidate."""
        return np.asarray(j) // len(self.pool)

    def neighbors(self, j: int) -> Indices:
        """All candidates at the point of j, including j."""
        return j % len(self.pool) + len(self.pool) * np.arange(len(self.kernels))

    @cached_property
    def _dtype(self) -> Any:
        one = self.pool[:1]
        found = cross(self.kernels[0], self._rows(one), self.kernels[0].centers(self.X, one)).dtype
        return np.dtype(np.float32 if found == np.float32 else np.float64)

    @property
    def tolerance(self) -> float:
        return by_precision(self._dtype, **NEW_LENGTH)

    @property
    def floor(self) -> float:
        return by_precision(self._dtype, **NEW_SQUARE)

    def columns(self, j: Indices, rows: slice = slice(None)) -> Array:
        """k(x_i, z_j) (u, b), or some of its rows, with the diagonal added."""
        j, p = np.asarray(j), self.point(j)
        K = self._plain(j, rows) if self.values is None else self.values[rows][:, j]
        if self.diagonal:
            own = p - (rows.start or 0)
            inside = np.flatnonzero((own >= 0) & (own < len(K)))
            K[own[inside], inside] += self.diagonal
        return K

    def _plain(self, j: Indices, rows: slice) -> Array:
        """Columns without the diagonal."""
        X, p = take(self.X, rows), self.point(j)
        K = np.empty((n_rows(X), len(j)), order="F")
        for g in np.unique(self.kernel_number(j)):
            some = np.flatnonzero(self.kernel_number(j) == g)
            K[:, some] = cross(self.kernels[g], X, self.kernels[g].centers(self.X, p[some]))
        return K

    def among(self, i: Indices, j: Indices) -> Array:
        """k(z_i, z_j) (a, b) of the first kernel."""
        rows, centers = self._rows(self.point(i)), self.kernels[0].centers(self.X, self.point(j))
        return np.asarray(cross(self.kernels[0], rows, centers), dtype=np.float64)

    def own(self, j: Indices) -> Array:
        """k(z_j, z_j) (b,) of the first kernel."""
        p = self.point(j)
        if self.kernels[0].takes_values:
            return np.asarray(self.X[p, p], dtype=np.float64)
        return own_values(self.kernels[0], self._rows(p))

    def _rows(self, p: Indices) -> Any:
        return take(self.X, p)
