"""How far apart rows are: the lengths from which strings such as gamma="median" are resolved.

A row of weight 2 counts like two equal rows, a row of weight 0 like none.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._types import Floats
from mercer.errors import KernelError
from mercer.kernels._matrices import Exponents, Matrix, as_matrix
from mercer.rows._distinct import distinct_rows
from mercer.rows._table import dense, is_sparse

# Distances are computed between at most this many distinct rows.
MAX_ROWS = 1000
# Smaller squares lose digits or underflow, and one over them may be infinite.
LEAST_SQUARE = 1e-290
# Relative errors of means.
MEAN_ROUNDING = 1e-12


def median_distance(X: Matrix, weight: ArrayLike | None, exponents: Exponents) -> float:
    """Weighted median of -exponents(x_i, x_j, 1) > 0 over pairs of distinct rows, with pair weights w_i w_j.

    More than 1000 distinct rows are thinned evenly in the order of their bytes, so the order of the rows does not
    matter. 1.0 if all rows coincide. O(n log n + 1000^2 d).
    """
    X, w = weighted_rows(X, weight)
    rows = distinct_rows(X)
    X, w = X[rows.first], np.bincount(rows.point, w).astype(np.float64)
    kept = np.linspace(0, X.shape[0] - 1, min(X.shape[0], MAX_ROWS)).round().astype(int)
    X, w = X[kept], w[kept]
    if len(w) == 1:
        return 1.0
    pairs = np.triu(np.ones((len(w), len(w)), dtype=bool), k=1)
    with np.errstate(over="ignore", invalid="ignore"):
        distance = -exponents(X, X, 1.0)[pairs]
    apart = distance > 0
    both = np.ones(1) if (w == w[0]).all() else np.outer(w, w)[pairs][apart]
    median = _weighted_median(distance[apart], both) if apart.any() else 0.0
    return _representable(median if np.isfinite(distance).all() else np.inf, X)


def variance(X: Matrix, weight: ArrayLike | None) -> float:
    """Weighted variance of all entries of X, as X.var() in the gamma="scale" of scikit-learn."""
    X, w = weighted_rows(X, weight)
    with np.errstate(over="ignore", invalid="ignore"):
        found = _variance(X, w)
    return 0.0 if X.max() == X.min() else _representable(found, X)


def column_lengths(X: Matrix, weight: ArrayLike | None) -> Floats:
    """Weighted standard deviation (d,) of each column, 1 where it is constant; NaN does not count."""
    X, w = weighted_rows(X, weight)
    means = column_means(X, w)
    # Beyond rounding errors of the mean.
    least = np.maximum((MEAN_ROUNDING * means) ** 2, LEAST_SQUARE)
    found = _means(np.square(dense(X) - means), w)
    return np.array([np.sqrt(v) if low < v < np.inf else 1.0 for v, low in zip(found, least)])


def column_means(X: Matrix, weight: ArrayLike | None) -> Floats:
    """Weighted mean (d,) of each column, 0 if nothing is known; NaN does not count."""
    X, w = weighted_rows(X, weight)
    return _means(dense(X), w)


def _means(X: Floats, w: NDArray[np.float64]) -> Floats:
    known = ~np.isnan(X)
    total = w @ known
    return np.asarray(w @ np.where(known, X, 0.0) / np.where(total > 0, total, 1.0))


def _variance(X: Matrix, w: NDArray[np.float64]) -> float:
    total = w.sum() * X.shape[1]
    mean = float((X.T @ w).sum() / total)
    if not is_sparse(X):
        return float(w @ np.square(X - mean).sum(axis=1) / total)
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    stored = w[row_of]
    return float((stored @ np.square(X.data - mean) + (total - stored.sum()) * mean**2) / total)


def _representable(length: float, X: Matrix) -> float:
    """A length of the rows or its square, if its reciprocal is representable."""
    if LEAST_SQUARE <= length <= 1.0 / LEAST_SQUARE:
        return length
    largest = float(max(X.max(), -X.min()))
    raise KernelError(
        f"the rows have values up to {largest:.1e}, and squares of their distances overflow or underflow in "
        "float64, so that gamma cannot be determined; scale the features with a StandardScaler"
    )


def weighted_rows(X: Matrix, weight: ArrayLike | None) -> tuple[Matrix, NDArray[np.float64]]:
    """Rows of positive weight in float64, and their weights."""
    X = as_matrix(X).astype(np.float64, copy=False)
    w = np.ones(X.shape[0]) if weight is None else np.asarray(weight, np.float64)
    if w.shape != (X.shape[0],):
        raise KernelError(f"weight has shape {w.shape}, but X has {X.shape[0]} rows; pass one weight per row")
    if not (w > 0).any() or (w < 0).any():
        raise KernelError(
            f"weights span {w.min()} to {w.max()}; they must be nonnegative, and at least one positive"
        )
    return (X, w) if (w > 0).all() else (X[w > 0], w[w > 0])


def _weighted_median(values: Floats, weight: NDArray[np.float64]) -> float:
    """The smallest value with half of the weight at or below it; one weight: that of all."""
    if len(weight) == 1:
        middle = (len(values) + 1) // 2 - 1
        return float(np.partition(values, middle)[middle])
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    # The margin preserves ties when all weights are multiplied by a number that is not a power of two.
    return float(values[order[np.searchsorted(below, 0.5 * below[-1] * (1 - 1e-12))]])
