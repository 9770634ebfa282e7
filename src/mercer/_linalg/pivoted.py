"""Partial Cholesky factorizations with pivots chosen during the elimination: by size, by targets, or at random."""

from collections.abc import Iterator

import numpy as np

from mercer._linalg.lapack import strips
from mercer._linalg.threads import map_in_threads
from mercer._types import Array, Indices

# Pivots that are eliminated from the whole matrix at a time.
PIVOT_PANEL = 256

# Pivots that differ by less than this share are equal.
EQUAL_PIVOTS = 1e-3


def largest_pivots(H: Array, first: int, m: int, floor: float) -> Indices:
    """At most m pivots of symmetric H (c, c): the ``first``, then always the largest of the remaining diagonal.

    Of elements that are as large, up to a share EQUAL_PIVOTS, the first one: rounding errors must not decide. Ends
    when no diagonal element is above ``floor``; O(c m²).
    """
    L, d = np.empty((m, len(H))), H.diagonal().copy()
    chosen: list[int] = []
    p = first
    while len(chosen) < m and d[p] > floor:
        above = L[: len(chosen)]
        row = L[len(chosen)]
        row[:] = (H[p] - above[:, p] @ above) / np.sqrt(d[p])
        d -= row**2
        chosen.append(p)
        d[p] = -np.inf
        p = int((d >= (1.0 - EQUAL_PIVOTS) * d.max()).argmax())
    return np.array(chosen, dtype=np.intp)


def supervised_pivots(H: Array, C: Array, floor: Array) -> Iterator[int]:
    """Indices j in the order in which forward selection adds them to S, to maximize tr C_S' H_SS^-1 C_S.

    For symmetric H (c, c) and C (c, q). With the partial Cholesky factor of the pivots so far, d the diagonal
    of the Schur complement of H and R the rest of C after elimination, adding j gains sum_q R_jq² / d_j: the pivot
    maximizes this. Ends when d_j <= floor_j for all remaining j. Pivots are eliminated from all of H a panel of p
    at a time, which are products of matrices, and before that only from the rows that are asked for: m pivots cost
    O(c m (c + p + q)). Mika (2002), section 3.5.2, for all candidates at once.
    """
    L = np.empty((PIVOT_PANEL, len(H)))
    d, R, floor = H.diagonal().copy(), C.copy(), floor.copy()
    rest = H
    for i in range(len(H)):
        p = _best(d, R, floor)
        if p is None:
            return
        yield p
        if i % PIVOT_PANEL == 0 and i > 0:
            rest = _without(rest, L, out=None if rest is H else rest)
        above, row = L[: i % PIVOT_PANEL], L[i % PIVOT_PANEL]
        row[:] = (rest[p] - above[:, p] @ above) / np.sqrt(d[p])
        R -= np.outer(row, R[p] / np.sqrt(d[p]))
        d -= row**2
        floor[p] = np.inf


def _without(H: Array, L: Array, out: Array | None) -> Array:
    """H - L'L (c, c) for L (p, c), in strips of rows."""
    out = np.empty_like(H) if out is None else out

    def strip(rows: slice) -> None:
        np.subtract(H[rows], L[:, rows].T @ L, out=out[rows])

    map_in_threads(strip, strips(len(H)))
    return out


def _best(d: Array, R: Array, floor: Array) -> int | None:
    """Where sum_q R_jq² / d_j is largest among d_j > floor_j."""
    open_ = d > floor
    if not open_.any():
        return None
    gain = np.einsum("jq,jq->j", R, R) / np.where(open_, d, 1.0)
    return int(np.where(open_, gain, -1.0).argmax())


def rejection_cholesky(H: Array, floor: Array, rng: np.random.Generator) -> tuple[Indices, Array]:
    """The accepted ones of b proposed pivots, and the Cholesky factor (a, a) of H at them.

    H (b, b) is a residual matrix at proposals drawn in proportion to its diagonal. Each in turn is accepted with a
    probability equal to the fraction of its diagonal that remains after eliminating the previously accepted ones,
    never below ``floor`` (b,): then the accepted ones are distributed like pivots drawn one at a time. O(b³).
    Epperly, Tropp, Webber (2024), "Embrace rejection", Algorithm 2.1.
    """
    H, proposed = H.copy(), H.diagonal().copy()
    L, accepted = np.zeros_like(H), []
    for i, u in enumerate(rng.uniform(size=len(H))):
        if H[i, i] > max(u * proposed[i], floor[i]):
            column = H[i:, i] / np.sqrt(H[i, i])
            H[i:, i:] -= np.outer(column, column)
            L[i:, i] = column
            accepted.append(i)
    chosen = np.array(accepted, dtype=np.intp)
    return chosen, L[np.ix_(chosen, chosen)]
