r"""Whether products of kernel values in float32 are exact enough for a fit, known before the pass.

The fit with the penalty alpha solves systems in A + alpha, A = R'^-1 G R^-1 with K_zz = R'R. Moments whose
products are computed in float32 have G + E, and the solution for G + E is within eta / (1 - eta) of the one for
G, in the norm of A + alpha, if for the least alpha

    -eta H <= E <= eta H,     H = G + alpha K_zz,                                                        (1)

in the order of quadratic forms; whitening changes nothing in it, so that eta is the largest |mu| of
E x = mu H x. A bound on the condition of K_zz says less: MNIST with 6000 centers has cond(K_zz) = 3e5 and
a G + E that is indefinite.

One block of the rows tells: (1) adds. G and E are sums over blocks, alpha is a share of the trace of A, which is
such a sum as well; what holds for every block with the same eta holds for the pass, and rounding errors
that cancel make it better. Blocks of rows in random order are alike; those of sorted rows are not.

Products in float64 have errors as well, of a size that is known: E_ij is about eps sqrt(G_ii G_jj), so that

    eta <= eps sum_j G_jj (H^-1)_jj.                                                                     (2)

Where centers depend on each other to many digits this is not small: with 300 centers in three dimensions and alpha
1e-7 of the trace it was 0.6, and the same rows in other blocks gave outputs that differed by 0.01. Then sums are
those of coordinates in which K_zz is the identity, see :mod:`mercer.gram.coordinates`: outputs differed by 2e-8.
"""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.linalg

from mercer.gram.blocks import cuts, evaluator
from mercer.gram.coordinates import Coordinates
from mercer.gram.moments import Moments, MomentsOf
from mercer.kernels.base import Kernel
from mercer.linalg.rank import RankFactor, rank_factor
from mercer.linalg.threads import map_in_threads
from mercer.rows.base import BLOCK_ROWS, Block
from mercer.rows.table import n_rows, take
from mercer.types import Array, Floats

# Centers whose squared distance from the span of the others is below this share of their norm are dropped; the
# second is that of values in float64 whose coordinates are summed.
DEPENDENT = 1e-8
NEARLY_DEPENDENT = 1e-10
# Rounding errors (2) that sums of kernel values in float64 may have; of values in float32 fewer digits are known.
TOLERANCE, TOLERANCE_SINGLE = 1e-6, 1e-3
# Products in float32 may move the quadratic forms of one block by this share: measured, outputs move by 0.5 %.
SAFE = 0.25
# Fewer rows than so many times the centers say little of their Gram matrix.
ROWS_PER_CENTER = 2
# Rows whose projections give the trace of A, and steps of the power method.
TRACE_ROWS = 256
# Rows whose mean is the origin of coordinates: it need not be exact.
ORIGIN_ROWS = 1024
STEPS = 12


@dataclass(frozen=True)
class Precision:
    """The type of the products, their ``error`` eta in float32 (nan: not known), and the reason in words.

    With ``coordinates`` the products are those of coordinates, not of kernel values.
    """

    dtype: Any
    error: float
    words: str
    coordinates: Coordinates | None = None


def product_precision(
    kernel: Kernel, centers: Any, factor: RankFactor, X_probe: Any, *, alpha_share: float = 1e-8
) -> Precision:
    """float32 where products in float32 are safe for all alphas of at least ``alpha_share`` times trace A.

    ``factor`` is that of K_zz, see :func:`factor_of`.
    ``X_probe`` are rows of the data at random, best one block of them. Otherwise float64: G is then a Gram matrix,
    if of slightly other features, and nothing can fail. With fewer than 2 m rows the answer is float64: to know
    more would cost what float32 could save. O(p m² + m³) for p rows, about 2 % of a pass over a million with
    1000 centers.
    """
    p, m = n_rows(X_probe), n_rows(centers)
    if evaluator(kernel, centers)(X_probe[:1]).dtype != np.float32:
        return Precision(np.float64, np.nan, "float64, as the kernel values")
    if p < ROWS_PER_CENTER * m:
        words = f"float64: {p} rows are too few to tell what float32 would do to {m} centers"
        return Precision(np.float64, np.nan, words)
    both = np.float32, np.float64
    single, double = map_in_threads(lambda dtype: _centered(kernel, centers, X_probe, factor, dtype), both)
    alpha = alpha_share * _trace(kernel, centers, X_probe, factor)
    error = _relative_size(single - double, double + alpha * (factor.R.T @ factor.R))
    if error <= SAFE:
        return Precision(np.float32, error, f"float32: moves the fit by at most {error:.2g} of itself")
    return Precision(np.float64, error, f"float64: float32 could move the fit by {error:.2g} of itself")


def with_coordinates(
    precision: Precision,
    kernel: Kernel,
    centers: Any,
    factor: RankFactor,
    X_probe: Any,
    *,
    alpha_share: float,
    intercept: bool,
    known: bool = True,
) -> Precision:
    """The precision with coordinates where sums of kernel values in float64 would lose digits, (2).

    ``factor`` is that of all the centers, in their order. ``known`` False: the rows are too few to tell, and
    coordinates are taken unseen. O(p m² + m³) for p rows.
    """
    if precision.dtype != np.float64 or len(factor.kept) == 0:
        return precision
    values = evaluator(kernel, centers)
    words = f"{precision.words}, in coordinates: max_memory leaves no room to see whether kernel values would do"
    if known:
        error = _probed(kernel, centers, factor, X_probe, alpha_share, intercept=intercept)
        if error <= (TOLERANCE_SINGLE if values(X_probe[:1]).dtype == np.float32 else TOLERANCE):
            return precision
        loss = f"move the fit by {error:.2g} of itself" if error < 1.0 else "lose all digits of the fit"
        words = f"{precision.words}, in coordinates: sums of kernel values could {loss}"
    origin = values(X_probe[:ORIGIN_ROWS]).mean(axis=0, dtype=np.float64)
    where = Coordinates.at(factor.R, origin if intercept else np.zeros_like(origin))
    return replace(precision, words=words, coordinates=where)


def factor_of(K_zz: Floats, *, tolerance: float = DEPENDENT) -> RankFactor:
    """K_zz = R'R of the centers that are not in the span of others."""
    return rank_factor(np.asarray(K_zz, dtype=np.float64), tolerance=tolerance)


def _probed(
    kernel: Kernel, centers: Any, factor: RankFactor, X: Any, alpha_share: float, *, intercept: bool
) -> float:
    """The bound (2) for rows X and the least alpha; infinite if H is not positive definite."""
    moments = _moments(kernel, centers, X, np.float64)
    alpha = alpha_share * _trace(kernel, centers, X, factor)
    used = moments if intercept else moments.without_means()
    H = used.centered()[0] + alpha * (factor.R.T @ factor.R)
    L, failed = scipy.linalg.lapack.dpotrf(H, lower=1, clean=1)
    if failed:
        return np.inf
    inverse, _ = scipy.linalg.lapack.dtrtri(L, lower=1)
    return float(np.finfo(np.float64).eps * (moments.G.diagonal() @ np.einsum("ij,ij->j", inverse, inverse)))


def _centered(kernel: Kernel, centers: Any, X: Any, factor: RankFactor, dtype: Any) -> Array:
    """G (r, r) of the centers kept, less the means, from products in this type."""
    return _moments(kernel, centers, X, dtype).restricted(factor.kept).centered()[0]


def _moments(kernel: Kernel, centers: Any, X: Any, dtype: Any) -> Moments:
    """Sums over rows X without targets."""
    fold = MomentsOf(kernel, centers, dtype)
    return reduce(add, (fold(Block(take(X, rows), None, None, 0)) for rows in cuts(n_rows(X), BLOCK_ROWS)))


def _trace(kernel: Kernel, centers: Any, X: Any, factor: RankFactor) -> float:
    """Trace of the centered A, from some of the rows."""
    p = n_rows(X)
    K = evaluator(kernel, centers)(take(X, slice(TRACE_ROWS)))[:, factor.kept].astype(np.float64)
    K -= K.mean(axis=0)
    phi: Array = scipy.linalg.solve_triangular(factor.R, K.T, trans="T", check_finite=False)
    return float((phi**2).sum()) * p / len(K)


def _relative_size(E: Array, H: Array) -> float:
    """Largest |mu| with E x = mu H x, by the power method; infinite if H is not positive definite."""
    try:
        factor = scipy.linalg.cho_factor(H, check_finite=False)
    except np.linalg.LinAlgError:
        return np.inf
    x, size = np.random.default_rng(0).normal(size=len(H)), 0.0
    for _ in range(STEPS):
        z = scipy.linalg.cho_solve(factor, E @ x, check_finite=False)
        size = float(np.sqrt(z @ H @ z / (x @ H @ x)))
        if size == 0.0:
            return 0.0
        x = z / np.linalg.norm(z)
    return size
