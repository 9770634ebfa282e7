r"""Probabilities of k classes from probabilities of pairs of classes.

The classifier of a pair (i, j) gives s_ij = log r_ij / r_ji, the log-odds of class i against class j given one of
the two. Consistent pairs have s_ij = log p_i / p_j for one distribution p, and both rules find it. In general:

* :func:`couple_odds` gives p_i proportional to 1 / sum_j r_ji / r_ij = 1 / (1 + sum_{j != i} exp(-s_ij)). It is
  Andelić (2007), Eq. (4.8), p_i = 1 / (sum_{j != i} 1 / r_ij - (k - 2)), with k the number of classes and the
  result normalized; as printed, with the number of pairs in place of k, it gives negative values. O(k²) per row.
* :func:`couple_least_squares` minimizes sum_{i != j} (r_ji p_i - r_ij p_j)² over distributions: the second rule
  of Wu, Lin and Weng (2004). A (k, k) system for each row, O(k³).

Both take log-odds, so that no pair can overflow, and no probability is negative.

:func:`scaled_likelihoods` divides probabilities of classes by their shares: P(i | x) / P(i) = p(x | i) / p(x) is
the density of a class, up to a factor that all classes share (Bourlard and Morgan 1994; Andelić 2007, section
4.2.1).
"""

import numpy as np
from scipy.special import log_softmax, logsumexp

from mercer.types import Array


def couple_odds(S: Array) -> Array:
    """Log-probabilities (n, k) from log-odds S (n, k, k) with S_ij = -S_ji: Andelić (2007), Eq. (4.8)."""
    _check_odds(S)
    # The diagonal is log 1 = 0, the one in front of the sum.
    return np.asarray(log_softmax(-logsumexp(-S, axis=2), axis=1))


def couple_least_squares(S: Array) -> Array:
    """Probabilities (n, k) from log-odds S (n, k, k): the second rule of Wu, Lin and Weng (2004).

    min over p of sum_{i != j} (r_ji p_i - r_ij p_j)² = p'Qp with sum p = 1; its solution is positive, and
    proportional to Q^-1 1 if Q is definite. If pairs are consistent, Q is singular: Q + 1 1' has the same
    solution.
    """
    _check_odds(S)
    n, k, _ = S.shape
    r = np.exp(-np.logaddexp(0.0, -S))
    Q = -r * r.transpose(0, 2, 1)
    squares = r.transpose(0, 2, 1) ** 2
    squares[:, range(k), range(k)] = 0.0
    Q[:, range(k), range(k)] = squares.sum(axis=2)
    ones = np.ones((n, k, 1))
    P = np.linalg.solve(Q + 1.0, ones)[..., 0]
    # Exact solutions are nonnegative: negative values are rounding errors.
    P = np.maximum(P, 0.0)
    coupled: Array = P / P.sum(axis=1, keepdims=True)
    return coupled


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
