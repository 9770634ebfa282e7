r"""Whether products of kernel values in float32 are accurate enough for a fit, decided before the pass.

The fit with the penalty alpha solves systems in A + alpha, A = R'^-1 G R^-1 with K_zz = R'R. Moments whose
products are computed in float32 have G + E, and the solution for G + E is within eta / (1 - eta) of the one for
G, in the norm of A + alpha, if for the smallest alpha

    -eta H <= E <= eta H,     H = G + alpha K_zz,                                                        (1)

in the order of quadratic forms; this is invariant under whitening, so that eta is the largest |mu| of E x = mu H
x. A bound on the condition number of K_zz says less: MNIST with 6000 centers has cond(K_zz) = 3e5 and an
indefinite G + E.

One block of rows is enough, because (1) is additive: G and E are sums over blocks, and alpha is a fraction of the
trace of A, which is also such a sum; what holds for every block with the same eta holds for the pass, and
cancellation of rounding errors only improves it. Blocks of rows in random order are alike; those of sorted rows
are not.

Products in float64 also have errors, of known size: E_ij is about eps sqrt(G_ii G_jj), so that

    eta <= eps sum_j G_jj (H^-1)_jj.                                                                     (2)

If centers are nearly dependent, this is not small: with 300 centers in three dimensions and alpha 1e-7 of the
trace it was 0.6, and the same rows in other blocks gave outputs that differed by 0.01. In that case the sums are
those of coordinates in which K_zz is the identity, see :mod:`mercer._gram.coordinates`: outputs then differed by
2e-8. With many centers, (2) costs as much as a pass over a few times as many rows. Since H >= alpha K_zz, it is
below

    eps sum_j G_jj (K_zz^-1)_jj / alpha = eps E |R'^-1 D z|² / alpha,     D² = diag G,                    (3)

for random z of unit covariance: O(m²) for a few of them. Where that is small enough, (2) is not computed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add, call
from typing import Any

import numpy as np
import scipy.linalg

from mercer._gram.blocks import cuts, evaluator
from mercer._gram.coordinates import Coordinates
from mercer._gram.moments import Moments, MomentsOf
from mercer._linalg.lapack import cholesky_upper, inverse_upper
from mercer._linalg.rank import RankFactor, rank_factor, square_upper, whiten
from mercer._linalg.threads import map_in_threads
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array, Floats
from mercer.kernels._base import Kernel
from mercer.rows._base import BLOCK_ROWS, Block
from mercer.rows._table import n_rows, take

# Centers whose squared distance from the span of the others is below this share of their norm are dropped; the
# second is that of values in float64 whose coordinates are summed.
DEPENDENT_CENTERS = 1e-8
NEARLY_DEPENDENT_CENTERS = 1e-10
# Rounding errors (2) allowed in sums of kernel values in float64; float32 values have fewer digits anyway.
MOST_ROUNDING_DOUBLE, MOST_ROUNDING_SINGLE = 1e-6, 1e-3
# Products in float32 may change the quadratic forms of one block by this share; measured outputs change by 0.5 %.
MOST_CHANGE_BY_SINGLE = 0.25
# Fewer rows than this many times the centers say little about their Gram matrix.
ROWS_PER_CENTER = 2
# Rows whose projections give the trace of A, and steps of the power method.
TRACE_ROWS = 256
# Random vectors in (3): the mean over them is below half of its expectation once in 3600 times at worst, where
# one direction dominates. Hence the margin.
PROBE_VECTORS, PROBE_MARGIN = 64, 2.0
# Number of rows whose mean is the origin of coordinates: it need not be exact.
ORIGIN_ROWS = 1024
NORM_ITERATIONS = 12


@dataclass(frozen=True)
class Precision:
    """The type of the products, their ``error`` eta in float32 (NaN: not known), and the reason as text.

    With ``coordinates`` the products are those of coordinates, not of kernel values.
    """

    dtype: Any
    error: float
    words: str
    coordinates: Coordinates | None = None


def product_precision(
    kernel: Kernel, centers: Any, factor: RankFactor, X_probe: Any, *, alpha_share: float = 1e-8
) -> Precision:
    """float32 if products in float32 are safe for all alphas of at least ``alpha_share`` times trace A.

    ``factor`` is that of K_zz, see :func:`factor_of`. ``X_probe`` are random rows of the data, ideally one block
    of them. Otherwise float64: G is then a Gram matrix, if of slightly different features, and nothing can fail.
    With fewer than 2 m rows the answer is float64: a test would cost what float32 could save. O(p m² + m³) for p
    rows, about 2 % of a pass over a million rows with 1000 centers.
    """
    p, m = n_rows(X_probe), n_rows(centers)
    if evaluator(kernel, centers)(X_probe[:1]).dtype != np.float32:
        return Precision(np.float64, np.nan, "float64, like the kernel values")
    if p < ROWS_PER_CENTER * m:
        words = f"float64: {p} rows are too few to test float32 with {m} centers"
        return Precision(np.float64, np.nan, words)
    single, double, trace = _of_probe(kernel, centers, X_probe, factor)
    # Column-major, of which the upper triangle is used.
    H = double.T + alpha_share * trace * square_upper(factor.R)
    error = _relative_size(np.subtract(single, double, out=single), H)
    if error <= MOST_CHANGE_BY_SINGLE:
        return Precision(np.float32, error, f"float32: changes the fit by at most {error:.2g} of its size")
    return Precision(np.float64, error, f"float64: float32 could change the fit by {error:.2g} of its size")


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
    """The precision with coordinates if sums of kernel values in float64 would lose digits, (2).

    ``factor`` is that of all centers, in their order. ``known`` False: there are too few rows for a test, and
    coordinates are used without it. O(m²) where (3) is enough, otherwise O(p m² + m³) for p rows.
    """
    if precision.dtype != np.float64 or len(factor.kept) == 0:
        return precision
    values = evaluator(kernel, centers)
    words = f"{precision.words}, in coordinates: max_memory is too small to test sums of kernel values"
    if known:
        most = MOST_ROUNDING_SINGLE if values(X_probe[:1]).dtype == np.float32 else MOST_ROUNDING_DOUBLE
        if PROBE_MARGIN * _without_rows(kernel, centers, factor, X_probe, alpha_share) <= most:
            return precision
        error = _probed(kernel, centers, factor, X_probe, alpha_share, intercept=intercept)
        if error <= most:
            return precision
        loss = f"change the fit by {error:.2g} of its size" if error < 1.0 else "lose all digits of the fit"
        words = f"{precision.words}, in coordinates: sums of kernel values could {loss}"
    origin = values(X_probe[:ORIGIN_ROWS]).mean(axis=0, dtype=np.float64)
    where = Coordinates.at(factor.R, origin if intercept else np.zeros_like(origin))
    return replace(precision, words=words, coordinates=where)


def factor_of(K_zz: Floats, *, tolerance: float = DEPENDENT_CENTERS) -> RankFactor:
    """K_zz = R'R of the centers that are not in the span of others."""
    return rank_factor(np.asarray(K_zz, dtype=np.float64), tolerance=tolerance)


def _without_rows(kernel: Kernel, centers: Any, factor: RankFactor, X: Any, alpha_share: float) -> float:
    """The bound (3) from random vectors, with G_jj and the trace from some of the rows."""
    p, some = n_rows(X), take(X, slice(ORIGIN_ROWS))
    K = evaluator(kernel, centers)(some).astype(np.float64)
    size = np.sqrt(np.einsum("ij,ij->j", K, K) * (p / len(K)))
    z = np.random.default_rng(0).standard_normal((len(size), PROBE_VECTORS))
    alpha = alpha_share * _trace(kernel, centers, X, factor)
    total = float((whiten(factor.R, size[:, None] * z) ** 2).sum()) / PROBE_VECTORS
    return float(rounding_unit(np.float64)) * total / alpha if alpha > 0.0 else np.inf


def _probed(
    kernel: Kernel, centers: Any, factor: RankFactor, X: Any, alpha_share: float, *, intercept: bool
) -> float:
    """The bound (2) for rows X and the smallest alpha; infinite if H is not positive definite."""
    half = (n_rows(X) + 1) // 2
    halves = [take(X, rows) for rows in cuts(n_rows(X), half)]
    moments = reduce(add, map_in_threads(lambda part: _moments(kernel, centers, part, np.float64), halves))
    alpha = alpha_share * _trace(kernel, centers, X, factor)
    used = moments if intercept else moments.without_means()
    # Column-major, of which the upper triangle is used.
    U = square_upper(factor.R)
    U *= alpha
    U += used.centered()[0].T
    if cholesky_upper(U):
        return np.inf
    inverse = inverse_upper(U)
    return float(rounding_unit(np.float64) * (moments.G.diagonal() @ np.einsum("ij,ij->i", inverse, inverse)))


def _of_probe(kernel: Kernel, centers: Any, X: Any, factor: RankFactor) -> tuple[Array, Array, float]:
    """Centered G (r, r) of the centers kept, from products in float32 and in float64, and the trace of A."""
    p = n_rows(X)
    # Products in float64 take twice the time: in halves, so that two threads have the same to do.
    parts = (np.float32, slice(p)), (np.float64, slice(p // 2)), (np.float64, slice(p // 2, p))
    tasks: list[Callable[[], Any]] = [partial(_trace, kernel, centers, X, factor)]
    tasks += [partial(_moments, kernel, centers, take(X, rows), dtype) for dtype, rows in parts]
    trace, *sums = map_in_threads(call, tasks)
    single, double = (total.restricted(factor.kept).centered()[0] for total in (sums[0], sums[1] + sums[2]))
    return single, double, trace


def _moments(kernel: Kernel, centers: Any, X: Any, dtype: Any) -> Moments:
    """Sums over rows X without targets."""
    fold = MomentsOf(kernel, centers, dtype)
    return reduce(add, (fold(Block(take(X, rows), None, None, 0)) for rows in cuts(n_rows(X), BLOCK_ROWS)))


def _trace(kernel: Kernel, centers: Any, X: Any, factor: RankFactor) -> float:
    """Trace of the centered A, from some of the rows."""
    p = n_rows(X)
    K = evaluator(kernel, centers)(take(X, slice(TRACE_ROWS)))[:, factor.kept].astype(np.float64)
    K -= K.mean(axis=0)
    phi = whiten(factor.R, K.T)
    return float((phi**2).sum()) * p / len(K)


def _relative_size(E: Array, H: Array) -> float:
    """Largest |mu| with E x = mu H x, by the power method in float32; infinite if H is not positive definite.

    Of H, column-major and destroyed, the upper triangle is used.
    """
    if cholesky_upper(H):
        return np.inf
    unit = max(float(E.max()), -float(E.min())) or 1.0
    single, U = (E / unit).astype(np.float32), H.astype(np.float32)
    x, size = np.random.default_rng(0).normal(size=len(H)).astype(np.float32), 0.0
    for _ in range(NORM_ITERATIONS):
        Ex = single @ x
        x, _ = scipy.linalg.lapack.spotrs(U, Ex, lower=0)
        # H x = E times the x before, whose length in the norm of H was 1.
        square = float(x @ Ex)
        if not square > 0.0:
            return 0.0
        size = np.sqrt(square)
        x /= np.float32(size)
    return float(size) * unit
