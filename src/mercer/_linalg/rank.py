"""Cholesky factors with complete pivoting: the numerical rank of a semidefinite matrix, and which rows span it."""

from dataclasses import dataclass

import numpy as np

from mercer._linalg.lapack import cholesky_pivoted, cholesky_upper, solve_triangular, strips
from mercer._linalg.threads import map_in_threads
from mercer._types import Array, Floats, Indices

# Rows are not pivoted if no diagonal comes within this factor of the tolerance.
FAR_FROM_TOLERANCE = 100.0


@dataclass(frozen=True)
class RankFactor:
    """A[kept, kept] = R'R with R (r, r) upper triangular; the other rows of A are in the span of those kept."""

    R: Array
    kept: Indices


def rank_factor(A: Array, *, tolerance: float) -> RankFactor:
    """Eliminate rows of A (m, m) until the remaining diagonal is below ``tolerance`` times its maximum; O(m r²).

    If the diagonal stays far above that in the given order, the rows are not pivoted, which is ten times faster.
    """
    if len(A) == 0:
        return RankFactor(A, np.arange(0))
    limit = tolerance * float(A.diagonal().max())
    R = np.array(A, order="F")
    if not cholesky_upper(R) and float(R.diagonal().min()) ** 2 > FAR_FROM_TOLERANCE * limit:
        return RankFactor(np.triu(R), np.arange(len(A)))
    R = np.array(A, order="F")
    pivots, rank = cholesky_pivoted(R, limit)
    return RankFactor(np.triu(R[:rank, :rank]), pivots[:rank])


def whiten(R: Array, B: Array) -> Array:
    """R'^-1 B (r, p) for an upper triangular R."""
    return solve_triangular(R, B, transposed=True)


def in_coordinates(R: Array, G: Array) -> Array:
    """R'^-1 G R^-1 (r, r) for symmetric G and upper triangular R: symmetric, in column-major order; 2 r³."""
    A = whiten(R, whiten(R, G).T)
    A += A.T
    A *= 0.5
    return A


def times_upper(K: Floats, U: Floats) -> Floats:
    """K U (b, r) for an upper triangular U (r, r), in strips: with little more than half of the operations."""
    product = np.empty((len(K), U.shape[1]), dtype=U.dtype)
    for strip in strips(U.shape[1]):
        np.matmul(K[:, : strip.stop], U[: strip.stop, strip], out=product[:, strip])
    return product


def square_upper(R: Array) -> Array:
    """The upper triangle of R'R (r, r), column-major, for an upper triangular R; r³ / 3."""
    square = np.zeros(R.shape, order="F")

    def fill(strip: slice) -> None:
        square[: strip.stop, strip] = R[: strip.stop, : strip.stop].T @ R[: strip.stop, strip]

    map_in_threads(fill, strips(len(R)))
    return square


def product_upper(A: Array, B: Array) -> Array:
    """A B (r, r) of two upper triangular matrices; r³ / 3."""
    product = np.zeros(A.shape)

    def fill(strip: slice) -> None:
        product[: strip.stop, strip] = A[: strip.stop, : strip.stop] @ B[: strip.stop, strip]

    map_in_threads(fill, strips(len(B)))
    return product


def norms_upper(R: Array, B: Array | None = None) -> Array:
    """Squared norms (r,) of the columns of R, or of R B, for upper triangular R and B (r, r); r³ / 3."""

    def norms(strip: slice) -> Array:
        C = R[: strip.stop, strip] if B is None else R[: strip.stop, : strip.stop] @ B[: strip.stop, strip]
        return np.asarray(np.einsum("ij,ij->j", C, C))

    return np.concatenate([np.zeros(0), *map_in_threads(norms, strips(len(R)))])


def forms_upper(R: Array, G: Array) -> Array:
    """r'Gr (r,) for the columns r of an upper triangular R (r, r); 2 / 3 r³."""

    def forms(strip: slice) -> Array:
        C = R[: strip.stop, strip]
        return np.asarray(np.einsum("ij,ij->j", C, G[: strip.stop, : strip.stop] @ C))

    return np.concatenate([np.zeros(0), *map_in_threads(forms, strips(len(R)))])
