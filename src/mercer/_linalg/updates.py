"""Updates of triangular factors when rows are added and columns added or removed, without refactoring.

R is upper triangular with R'R = A'A for the rows of A so far. Only orthogonal transformations are used, never
inverses or A'A itself: errors grow with the condition number of A, not with its square.
"""

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from mercer._types import Array, Indices

# Columns that LAPACK reflects together; found to be fastest for 200 to 1000 columns.
REFLECTED_COLUMNS = 32


def stack_rows(R: Array, A: Array) -> Array:
    """The factor of R'R + A'A for R (p, p) and b more rows A (b, p): 2 b p² operations.

    Golub and Van Loan (2013), section 6.5.3; here as one blocked QR decomposition of R on top of A.
    """
    return _stacked(R, A, triangle=0)


def stack_diagonal(R: Array, d: Array) -> Array:
    """The factor of R'R + diag(d)²: 2/3 p³ operations."""
    return _stacked(R, np.diag(d), triangle=len(d))


def _stacked(R: Array, A: Array, *, triangle: int) -> Array:
    """QR of R stacked on A, whose last ``triangle`` rows are upper triangular."""
    width = min(REFLECTED_COLUMNS, len(R))
    if len(A) == 0 or width == 0:
        return R
    stacked, _, _, info = lapack.dtpqrt(triangle, width, np.asfortranarray(R), np.asfortranarray(A))
    if info != 0:
        raise np.linalg.LinAlgError(f"LAPACK dtpqrt reports an illegal argument {-info}")
    return np.asarray(stacked)


def insert_columns(R: Array, at: int, d: Array) -> Array:
    """The factor with len(d) more columns before column ``at``: zero except for the values d in new rows."""
    p, r = len(R), len(d)
    old = np.r_[:at, at + r : p + r]
    grown = np.zeros((p + r, p + r), order="F")
    grown[np.ix_(old, old)] = R
    grown[range(at, at + r), range(at, at + r)] = d
    return grown


def border(L: Array, rows: Array, corner: Array) -> Array:
    """The lower factor [[L, 0], [rows, corner]] of a matrix that has grown by r rows and columns."""
    m, r = len(L), len(corner)
    grown = np.zeros((m + r, m + r), order="F")
    grown[:m, :m], grown[m:, :m], grown[m:, m:] = L, rows, corner
    return grown


def keep_columns(R: Array, kept: Indices) -> tuple[Array, Array]:
    """The factor (r, r) of some columns of R (p, p), and Q (p, r) with R[:, kept] = Q times it; O(p r²)."""
    Q, S = scipy.linalg.qr(R[:, kept], mode="economic", check_finite=False)
    # Diagonals of Cholesky factors are positive.
    sign = np.where(np.diagonal(S) < 0, -1.0, 1.0)
    return np.asfortranarray(sign[:, None] * S), np.asarray(Q * sign, dtype=np.float64)


def independent_rows(S: Array, tolerance: Array, most: int) -> tuple[Indices, Array]:
    """Rows of a Gram matrix S (n, n) that the previously selected rows do not span, and coordinates V (n, r).

    In the given order, and at most ``most``: row i is selected if the remainder of S_ii exceeds tolerance_i. V V'
    = S on the selected rows; rows before the one that introduces a coordinate are zero there. O(n² r).
    """
    S = S.copy()
    taken: list[int] = []
    V = np.zeros((len(S), min(most, len(S))), order="F")
    for i in range(len(S)):
        if len(taken) == V.shape[1]:
            break
        if S[i, i] > tolerance[i]:
            v = S[i:, i] / np.sqrt(S[i, i])
            V[i:, len(taken)] = v
            S[i:, i:] -= np.outer(v, v)
            taken.append(i)
    return np.array(taken, dtype=np.intp), V[:, : len(taken)]


def removal_costs(U: Array, Z: Array) -> Array:
    """Increase of a least-squares objective if coefficient j is forced to zero, for every j (m,).

    The minimum is at c = U'Z (m, q), with U (p, m) the dual basis of the columns and Z (p, q) the targets in
    the coordinates of their factor: |c_j|² / |u_j|².
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        costs: Array = ((U.T @ Z) ** 2).sum(axis=1) / (U**2).sum(axis=0)
    return costs


def cheapest_columns(U: Array, Z: Array, count: int) -> tuple[Indices, Array]:
    """Backward elimination: ``count`` columns, each the cheapest remaining one, and their costs; O(p m) each."""
    U = U.copy()
    gone, costs = np.empty(count, dtype=np.intp), np.empty(count)
    left = np.ones(U.shape[1], dtype=bool)
    for step in range(count):
        cost = np.where(left, removal_costs(U, Z), np.inf)
        j = int(cost.argmin())
        gone[step], costs[step], left[j] = j, cost[j], False
        u = U[:, j] / np.linalg.norm(U[:, j])
        U -= np.outer(u, u @ U)
    return gone, costs
