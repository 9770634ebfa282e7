"""Inner products and distances between the rows of two matrices, dense or CSR."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import manhattan_distances

from mercer._linalg.tolerance import rounding_unit
from mercer._types import Floats, Indices
from mercer._validation import counted
from mercer.errors import KernelError
from mercer.rows._columns import NamedColumns
from mercer.rows._table import dense, is_sparse

# A dense array or a scipy CSR matrix, rows first.
Matrix = Any

# Size of the square tiles in which a matrix is transposed: two of them fit into the cache.
TRANSPOSED_TILE = 128
# Differences of this many pairs of rows are computed at a time.
PAIRS_AT_ONCE = 2**16
# Pairs of which the near ones are looked for at a time.
CELLS_AT_ONCE = 2**20
# Squared distances that are NaN are replaced by this number, whose products float32 can represent.
LARGEST_SQUARED_DISTANCE = 1e30


class Slopes(Protocol):
    """sum_j coef_jc W_ij d e(x_i, z_j) / dx, (q, n, d), for exponents e = -gamma times a distance."""

    def __call__(self, X: Floats, Z: Floats, gamma: float | Floats, W: Floats, coef: Floats) -> Floats: ...


class Exponents(Protocol):
    """(n, m) array of -gamma times a distance, for all pairs of rows."""

    def __call__(self, X: Matrix, Z: Matrix, gamma: float | Floats) -> Floats: ...


def as_matrix(X: Matrix) -> Matrix:
    """Rows as a float32 or float64 array in C order, or as CSR; everything else becomes float64."""
    if is_sparse(X):
        X = X.tocsr()
    elif isinstance(X, NamedColumns):
        X = none_missing(X.numbers(), list(X.columns))
    else:
        X = np.asarray(X)
    if X.ndim != 2:
        raise KernelError(
            f"a kernel on vectors needs a 2-D array of rows, got shape {X.shape}; "
            "for one feature pass X.reshape(-1, 1)"
        )
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    return X.astype(dtype, copy=False) if is_sparse(X) else np.ascontiguousarray(X, dtype)


def precision_of(X: Matrix) -> type[np.floating[Any]]:
    """float32 for matrices of it, float64 for all other rows."""
    numeric = is_sparse(X) or isinstance(X, np.ndarray)
    return np.float32 if numeric and X.dtype == np.float32 else np.float64


def none_missing(X: Floats, names: Sequence[Any]) -> Floats:
    """Columns of numbers (n, d) unchanged, if none of them is missing; ``names`` (d,) are for the error."""
    missing = np.isnan(X).sum(axis=0)
    if missing.any():
        j = int(missing.argmax())
        raise KernelError(
            f"column {names[j]!r} has {counted(missing[j], 'missing value', 'missing values')} in "
            f"{counted(len(X), 'row', 'rows')}; fill or drop what is missing, or give it a meaning: "
            'OnColumns(..., missing="mean")'
        )
    return X


def as_matrices(X: Matrix, Z: Matrix) -> tuple[Matrix, Matrix]:
    """Both as matrices with the same number of columns; if X is Z, the results are the same object."""
    left = as_matrix(X)
    right = left if Z is X else as_matrix(Z)
    if left.shape[1] != right.shape[1]:
        raise KernelError(
            f"X has {left.shape[1]} features and Z has {right.shape[1]}; they must have the same number"
        )
    return left, right


def inner_products(X: Matrix, Z: Matrix) -> Floats:
    """x'z for all pairs, (n, m)."""
    G = X @ Z.T
    return G.toarray() if is_sparse(G) else np.asarray(G)


def squared_norms(X: Matrix, gamma: float | Floats = 1.0) -> Floats:
    """sum_j gamma_j x_j^2 for every row, (n,)."""
    if is_sparse(X):
        return np.asarray(X.multiply(X) @ _per_feature(gamma, X)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, gamma * X))


def squared_exponents(X: Matrix, Z: Matrix, gamma: float | Floats) -> Floats:
    """-sum_j gamma_j (x_j - z_j)^2 <= 0 for all pairs, (n, m): the squared distances of the library."""
    if is_sparse(X) or is_sparse(Z):
        return _without_positive(_sparse_exponents(X, Z, gamma))
    return FoldedCenters.of(Z, gamma).exponents(X)


@dataclass(frozen=True)
class FoldedCenters:
    """Centers of squared distances: -sum_j gamma_j (x_j - z_j)^2 = [2g x, -g|x|^2, 1] [z, 1, -g|z|^2]'.

    Norms are folded into one product, O(n m d). The mean of the centers is first subtracted: norms much larger
    than the distances would cost digits. ``right`` is the second factor, (d + 2, m).
    """

    origin: Floats
    right: Floats
    gamma: float | Floats

    @classmethod
    def of(cls, Z: Floats, gamma: float | Floats) -> "FoldedCenters":
        origin = Z.mean(axis=0, dtype=np.float64).astype(Z.dtype)
        Z = Z - origin
        right = np.column_stack([Z, np.ones(len(Z), Z.dtype), -squared_norms(Z, gamma)])
        return cls(origin, np.ascontiguousarray(right.T), gamma)

    def exponents(self, X: Floats, workspace: Floats | None = None) -> Floats:
        """The product, (n, m), with positive rounding errors set to zero."""
        # Values that are not finite are detected where they are used.
        with np.errstate(over="ignore", invalid="ignore"):
            left = self._left(X)
            fits = workspace is not None and workspace.dtype == np.result_type(left, self.right)
            return _without_positive(np.matmul(left, self.right, out=workspace if fits else None))

    def _left(self, X: Floats) -> Floats:
        """The first factor, (n, d + 2)."""
        X = X - self.origin
        left = np.empty((len(X), X.shape[1] + 2), X.dtype)
        np.multiply(X, 2.0 * self.gamma, out=left[:, :-2])
        np.negative(squared_norms(X, self.gamma), out=left[:, -2])
        left[:, -1] = 1.0
        far = np.isinf(left[:, -2])
        if far.any() and np.isfinite(self.right).all():
            left[far, :-2], left[far, -2] = 0.0, -LARGEST_SQUARED_DISTANCE
        return left


def with_near_pairs(T: Floats, X: Matrix, Z: Matrix, gamma: float | Floats) -> Floats:
    """-gamma times squared distances T (n, m), those far below the norms from differences of rows; in place.

    A squared distance from products has the rounding errors of the norms, and its root those of their root: 1e-8
    where it should be zero. From differences it has all digits.
    """
    X, Z = (X, Z) if is_sparse(X) or is_sparse(Z) else (A - Z.mean(axis=0) for A in (X, Z))
    near = 64.0 * np.sqrt(rounding_unit(T.dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        left, right = (squared_norms(A, gamma) for A in (X, Z))
        # Rows whose norm overflows are near none.
        left[np.isinf(left)] = np.nan
        some = np.flatnonzero(T.max(axis=1, initial=-np.inf) >= -near * (left + right.max(initial=0.0)))
        # A few rows at a time: where centers are rows, every row is near one.
        step = max(1, CELLS_AT_ONCE // max(T.shape[1], 1))
        for few in (some[start : start + step] for start in range(0, len(some), step)):
            i, j = np.nonzero(T[few] >= -near * np.add.outer(left[few], right))
            _set_near(T, X, Z, gamma, few[i], j)
    return T


def _set_near(T: Floats, X: Matrix, Z: Matrix, gamma: float | Floats, rows: Indices, columns: Indices) -> None:
    """-gamma times squared distances of pairs (p,), from differences, into T."""
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        i, j = rows[start : start + PAIRS_AT_ONCE], columns[start : start + PAIRS_AT_ONCE]
        T[i, j] = -squared_norms(dense(X[i]) - dense(Z[j]), gamma)


def _without_positive(T: Floats) -> Floats:
    """min(T, 0), in place. Few blocks have positive rounding errors, and looking is faster than removing."""
    if T.max(initial=0.0) > 0.0:
        # A row of zeros is twice as fast as the number.
        np.minimum(T, np.zeros(T.shape[1], T.dtype), out=T)
    return T


def _sparse_exponents(X: Matrix, Z: Matrix, gamma: float | Floats) -> Floats:
    """The same from sparse products, (n, m)."""
    T = inner_products(scale_columns(X, 2.0 * gamma), Z)
    T -= squared_norms(X, gamma)[:, None]
    T -= squared_norms(Z, gamma)
    return T


def absolute_exponents(X: Matrix, Z: Matrix, gamma: float | Floats) -> Floats:
    """-sum_j gamma_j |x_j - z_j| <= 0 for all pairs, (n, m)."""
    if is_sparse(X) or is_sparse(Z):
        left, right = sparse.csr_matrix(X), sparse.csr_matrix(Z)
    else:
        left, right = X, Z
    D = manhattan_distances(scale_columns(left, gamma), scale_columns(right, gamma))
    return np.asarray(-D, np.result_type(X.dtype, Z.dtype))


def scale_columns(X: Matrix, gamma: float | Floats) -> Matrix:
    """X diag(gamma)."""
    return X.multiply(_per_feature(gamma, X)).tocsr() if is_sparse(X) else X * gamma


def _per_feature(gamma: float | Floats, X: Matrix) -> Floats:
    """One gamma for each of the d columns of X."""
    return np.broadcast_to(np.asarray(gamma, X.dtype), (X.shape[1],))


def mirror(K: Floats) -> Floats:
    """K with its upper triangle copied to the lower one, in place; rounding had left it almost symmetric."""
    tiles = [slice(i, i + TRANSPOSED_TILE) for i in range(0, len(K), TRANSPOSED_TILE)]
    for k, rows in enumerate(tiles):
        upper = np.triu(K[rows, rows], 1)
        K[rows, rows] = upper + upper.T + np.diag(np.diagonal(K[rows, rows]))
        for columns in tiles[k + 1 :]:
            K[columns, rows] = K[rows, columns].T
    return K


def integer_power(K: Floats, exponent: int) -> Floats:
    """K^exponent elementwise by repeated squaring: np.power on floats is ten times slower."""
    if exponent == 1:
        return K
    half = integer_power(K, exponent // 2)
    return half * half * K if exponent % 2 else half * half


def squared_slopes(X: Floats, Z: Floats, gamma: float | Floats, W: Floats, coef: Floats) -> Floats:
    """2 gamma_l sum_j coef_jc W_ij (z_jl - x_il) as (q, n, d), for W (n, m) and coef (m, q); O(n m d q)."""
    origin = Z.mean(axis=0, dtype=np.float64).astype(Z.dtype)
    X, Z = X - origin, Z - origin
    pulled = np.stack([W @ (c[:, None] * Z) for c in coef.T])
    pulled -= X * (W @ coef).T[:, :, None]
    pulled *= 2.0 * gamma
    return pulled


def absolute_slopes(X: Floats, Z: Floats, gamma: float | Floats, W: Floats, coef: Floats) -> Floats:
    """-gamma_l sum_j coef_jc W_ij sign(x_il - z_jl) as (q, n, d), for W (n, m) and coef (m, q); O(n m d q)."""
    slopes = np.empty((coef.shape[1], *X.shape), np.result_type(W, coef))
    for x, z, column in zip(X.T, Z.T, np.moveaxis(slopes, 2, 0)):
        column[:] = -((np.sign(x[:, None] - z) * W) @ coef).T
    slopes *= gamma
    return slopes
