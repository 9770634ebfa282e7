"""Partial Cholesky factorizations with pivots chosen during the elimination: by targets, or at random."""

from collections.abc import Iterator

import numpy as np

from mercer.types import Array, Indices

# Rows of the factor allocated initially; doubled when full.
FIRST_ROWS = 64


def supervised_pivots(H: Array, C: Array, floor: Array) -> Iterator[int]:
    """Indices j in the order in which forward selection adds them to S, to maximize tr C_S' H_SS^-1 C_S.

    For symmetric H (c, c) and C (c, q). With the partial Cholesky factor of the pivots so far, d the diagonal
    of the Schur complement of H and R the rest of C after elimination, adding j gains sum_q R_jq² / d_j: the pivot
    maximizes this. Ends when d_j <= floor_j for all remaining j. The i-th pivot costs O(c (i + q)), m of them O(c
    m (m + q)): Mika (2002), section 3.4.3, for all candidates at once.
    """
    L = np.empty((FIRST_ROWS, len(H)))
    d, R, floor = H.diagonal().copy(), C.copy(), floor.copy()
    for i in range(len(H)):
        p = _best(d, R, floor)
        if p is None:
            return
        yield p
        L = L if i < len(L) else np.concatenate([L, np.empty_like(L)])
        L[i] = (H[p] - L[:i, p] @ L[:i]) / np.sqrt(d[p])
        R -= np.outer(L[i], R[p] / np.sqrt(d[p]))
        d -= L[i] ** 2
        floor[p] = np.inf


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
