r"""Probabilities of k classes from probabilities of pairs of classes.

The classifier of a pair (i, j) gives s_ij = log r_ij / r_ji, the log-odds of class i against class j given one of
the two. Consistent pairs have s_ij = log p_i / p_j for one distribution p, and both rules find it. In general:

* :func:`couple_odds` gives p_i proportional to 1 / sum_j r_ji / r_ij = 1 / (1 + sum_{j != i} exp(-s_ij)). It is
  Andelić (2007), Eq. (4.8), p_i = 1 / (sum_{j != i} 1 / r_ij - (k - 2)), with k the number of classes and the
  result normalized; as printed, with the number of pairs in place of k, it gives negative values. O(k²) per row.
* :func:`couple_least_squares` minimizes sum_{i != j} (r_ji p_i - r_ij p_j)² over distributions: the second rule
  of Wu, Lin and Weng (2004). Two (k, k) systems for each row, O(k³).

Both take log-odds and return log-probabilities, so that no pair can overflow and no probability is zero.

:func:`scaled_likelihoods` divides probabilities of classes by their shares: P(i | x) / P(i) = p(x | i) / p(x) is
the density of a class, up to a factor that all classes share (Bourlard and Morgan 1994; Andelić 2007, section
4.2.1).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from mercer._types import Array, Indices

# Differences between log-odds of pairs and of what is fitted to them, relative to the largest, that are rounding.
LOG_ODDS_ROUNDING = 1e-12


def couple_odds(S: Array) -> Array:
    """Log-probabilities (n, k) from log-odds S (n, k, k) with S_ij = -S_ji: Andelić (2007), Eq. (4.8)."""
    _check_odds(S)
    # The diagonal is log 1 = 0, the one in front of the sum.
    return np.asarray(log_softmax(-logsumexp(-S, axis=2), axis=1))


def couple_least_squares(S: Array) -> Array:
    """Log-probabilities (n, k) from log-odds S (n, k, k): the second rule of Wu, Lin and Weng (2004).

    min over p of sum_{i < j} (r_ji p_i - r_ij p_j)² = p'Qp with sum p = 1. At the minimum mu, Qp = mu 1.

    Let m be the class whose worst pair is best. The equations of all others give p = p_m u + mu v, with Qu = 0 and
    Qv = 1 in their rows, u_m = 1 and v_m = 0; that of m gives mu = p_m u'Qu / (1 + sum_j r_jm r_mj v_j). Off its
    diagonal, Q is nowhere positive, so eliminations add positive terms only and u, v and p are positive. u is
    found in units in which it is of order one, and u'Qu as a sum of squares, so each probability has its digits,
    however small it is. Disagreement of the order of rounding errors counts as none: pairs are then consistent.
    """
    _check_odds(S)
    n, k, _ = S.shape
    if k <= 2:
        return couple_odds(S)
    # Rows come last: a step of an elimination is one operation for all of them.
    S, rows = np.ascontiguousarray(S.transpose(1, 2, 0)), np.arange(n)
    m, distance = S.min(axis=1).argmax(axis=0), np.abs(S)
    ratio = np.exp(-distance)
    larger = 1.0 / (1.0 + ratio)
    r = 0.5 + np.copysign(larger - 0.5, S)
    # One half is on the diagonal of r. All of Q but row m has a diagonal of order one: no digits are lost.
    diagonal = (r**2).sum(axis=0) - 0.25
    squares = larger**2
    products = ratio * squares
    is_m = np.arange(k)[:, None] == m
    unit, scaled = _units(distance, m)
    log_u = unit + np.log(_eliminated(np.exp(scaled) * squares, diagonal, m, is_m))
    to_m = products[:, m, rows]
    v = _eliminated(products, diagonal, m, ~is_m)
    # Logarithms of zero: v of m, and no disagreement.
    with np.errstate(divide="ignore"):
        log_mu = _log_disagreement(S, log_u) - np.log1p((to_m * v).sum(axis=0))
        log_p = np.logaddexp(log_u, log_mu + np.log(v))
    return np.asarray(log_softmax(log_p.T, axis=1))


def _units(distance: Array, m: Indices) -> tuple[Array, Array]:
    """Logarithms l (k, n) of units in which u is of order one, and l_j - l_i - distance_ij (k, k, n).

    log u_i is about -d, with d the length of the shortest path to m whose steps have the lengths |S| (k, k, n).
    """
    unit = -distance[:, m, np.arange(distance.shape[2])]
    paths = unit - distance
    # Direct paths are shortest for consistent pairs. exp(300 / k) for each of at most k - 1 steps is in range.
    while ((shorter := paths.max(axis=1)) > unit + 300.0 / len(distance)).any():
        unit, paths = shorter, shorter - distance
    return unit, paths - unit[:, None]


def _eliminated(N: Array, diagonal: Array, m: Indices, b: NDArray[np.bool_]) -> Array:
    """x (k, n) with diagonal_i x_i - sum_{j != i} N_ij x_j = b_i, and x_m = b_m; O(k³ n), N (k, k, n) is lost."""
    rows, x, pivot = np.arange(N.shape[2]), b.astype(np.float64), diagonal.copy()
    N[m, :, rows], pivot[m, rows] = 0.0, 1.0
    for i in range(len(N) - 1):
        factor = N[i + 1 :, i] / pivot[i]
        N[i + 1 :, i + 1 :] += factor[:, None] * N[i, i + 1 :]
        pivot[i + 1 :] -= factor * N[i, i + 1 :]
        x[i + 1 :] += factor * x[i]
    for i in reversed(range(len(N))):
        x[i] = (x[i] + (N[i, i + 1 :] * x[i + 1 :]).sum(axis=0)) / pivot[i]
    return x


def _log_disagreement(S: Array, log_u: Array) -> Array:
    """log sum_{i < j} (r_ji u_i - r_ij u_j)² (n,) from S (k, k, n) and log u (k, n)."""
    i, j = np.triu_indices(len(S), 1)
    odds = S[i, j]
    distance = np.abs(odds)
    gap = np.abs(odds - (log_u[i] - log_u[j]))
    gap *= gap > LOG_ODDS_ROUNDING * (1.0 + distance.max(axis=0))
    # The larger of the two products, but for the factor that both share.
    larger = np.maximum(log_u[i] - np.maximum(odds, 0.0), log_u[j] + np.minimum(odds, 0.0))
    largest = larger.max(axis=0)
    differences = np.exp(larger - largest) * np.expm1(-gap) / (1.0 + np.exp(-distance))
    return np.asarray(2.0 * largest + np.log((differences**2).sum(axis=0)))


def scaled_likelihoods(log_p: Array, shares: Array, *, floor: float = 0.0) -> Array:
    """log P(i | x) - log P(i) (n, k) from log-probabilities (n, k) and the shares P(i) (k,) of the classes.

    Probabilities and shares below ``floor`` are raised to it: one row that a classifier is too sure about must not
    outweigh all others of a sequence, and a class without rows has no evidence of its own.
    """
    if log_p.ndim != 2 or shares.shape != log_p.shape[1:]:
        raise ValueError(
            f"there are log-probabilities of shape {log_p.shape} and shares of shape {shares.shape}; pass (n, k) "
            "and (k,)"
        )
    with np.errstate(divide="ignore"):
        least = np.log(floor)
        scaled: Array = np.maximum(log_p, least) - np.log(np.maximum(shares, floor))
    return scaled


def _check_odds(S: Array) -> None:
    if S.ndim != 3 or S.shape[1] != S.shape[2]:
        raise ValueError(f"log-odds of pairs must have shape (n, k, k), but these have {S.shape}")
    apart = float(np.abs(S + S.transpose(0, 2, 1)).max(initial=0.0))
    if not apart <= 1e-9 * (1.0 + float(np.abs(S).max(initial=0.0))):
        raise ValueError(f"log-odds of (i, j) and (j, i) must add up to zero, but some add up to {apart:.2g}")
