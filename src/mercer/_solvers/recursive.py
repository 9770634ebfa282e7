r"""Kernel recursive least squares (KRLS): row by row, with at most ``max_centers`` centers.

The problem after n rows, over coefficients c (m) and a free intercept b, for q targets at once:

    min  sum_i decay^(n - i) w_i |y_i - c'k_i - b|²  +  alpha c'Kc,     K = k(centers, centers) = L L'

Coordinates phi(x) = L^-1 k(centers, x) turn the penalty into a'a, a = L'c. The state consists of L and the upper
triangle R of

    R'R = A'A,    A = rows sqrt(decay^(n - i) w_i) [1, phi_i, y_i]  on top of  sqrt(alpha) [0, I, 0],

updated by orthogonal transformations only (square-root information form), so errors grow with the condition number
of the rows and not with its square, and no matrix is ever inverted.

A row becomes a center if its squared distance in feature space from the span of the centers exceeds nu k(x, x):
approximate linear dependence, Engel, Mannor and Meir (2004). The new coordinate is zero for all rows before it:
exact for rows that are centers and for their copies, and for any other row wrong by at most sqrt(nu k(x, x)), the
length that approximate dependence neglects. Rows after it are exact. So

* if every row is a center, this is kernel ridge regression on all rows,
* if all centers came first, this is ridge regression of all rows on these centers.

Andelić (2007), Algorithms 3 and 4, run the recursion from P_0 = P_m, which counts every row twice in the
matrix and once in the right side: half of the solution. Here every row enters R once. Their explicit inverse of K
loses all digits at nu = 1e-8; L loses none.

A full dictionary rejects new rows, or is revised every 256 rows: forward selection among these rows (Andelić 2007,
section 3.4.2, applied to their residuals) against backward elimination among the centers, pair by pair, while the
row improves the objective more than removing the center worsens it, and more than noise would. Removing center j
costs |c_j|² / (H^-1)_jj, H the Hessian in c, from the factors; the fit without it, of all rows
so far, is exact. A new center has the coordinate zero for all rows so far, and only affects the fit of the rows
that follow.

Cost: O(m²) per row and O(m²) memory, m <= max_centers. A block of b rows gives the same result as b single rows;
the predictions before they are learned are also exact, from a Cholesky factor of their covariance.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from mercer._gram.blocks import cross, own_values
from mercer._linalg.updates import (
    border,
    cheapest_columns,
    independent_rows,
    insert_columns,
    keep_columns,
    stack_diagonal,
    stack_rows,
)
from mercer._types import Array, Indices
from mercer.kernels._base import Kernel
from mercer.rows._table import join, n_rows, take

WHEN_FULL = ("replace", "refuse")

# Rows learned together, and rows after which a full dictionary is revised.
ROWS_AT_ONCE = 256
# Rows closer to the span of the centers than this share of k(x, x) differ from it by rounding.
DEPENDENT_ROWS = 1e-10
# The condition number of I + B'B is at most 1 + tr B'B: below this, a Cholesky factor has half of all digits.
LARGE_CONDITION = 1e8
# Forgetting may reduce the penalty by this share before it is renewed.
FADED_SHARE = 0.1
# A revision replaces at most this many centers, and at most half of them.
MOST_REVISED = 64


@dataclass(frozen=True)
class Recursion:
    """Fixed settings: kernel, penalty, tolerance nu, max_centers, forgetting factor, behavior when full."""

    kernel: Kernel
    alpha: float
    nu: float
    max_centers: int
    decay: float = 1.0
    when_full: str = "replace"

    @property
    def period(self) -> int:
        """Number of rows after which the penalty, which decays with the rows, is restored to alpha."""
        return max(1, int(FADED_SHARE / (1.0 - self.decay))) if self.decay < 1.0 else ROWS_AT_ONCE

    def penalty(self, n: int) -> float:
        """The weight of c'Kc after n rows: at least (1 - FADED_SHARE) alpha if decay > 1 - FADED_SHARE."""
        return float(self.alpha * self.decay ** (n % self.period))

    def next_rows(self, n: int) -> int:
        """How many rows may follow n in one step: one for the first, and never past a renewal or a revision."""
        return 1 if n == 0 else min(ROWS_AT_ONCE - n % ROWS_AT_ONCE, self.period - n % self.period)


@dataclass(frozen=True)
class LabeledRows:
    """Rows X, targets Y (n, q), weights (n,)."""

    X: Any
    Y: Array
    weight: Array


@dataclass(frozen=True)
class RecursiveState:
    """m centers, L (m, m) lower, R (1 + m + q, 1 + m + q) upper, a (1 + m, q), rows so far, and the last of them.

    a holds the intercept and L'c; ``recent`` are the rows since the last revision, if there will be another.
    ``learned`` (r, m) are the coordinates with which R contains the last rows, at most ``kept`` of them: zero for
    centers that came after a row, and projected where centers were removed.
    """

    centers: Any
    L: Array
    R: Array
    a: Array
    n_rows: int
    recent: LabeledRows | None
    learned: Array
    kept: int

    @property
    def m(self) -> int:
        return len(self.L)

    def solve(self) -> tuple[Array, Array]:
        """coef (m, q) and intercept (q,); O(m²)."""
        coef = scipy.linalg.solve_triangular(self.L, self.a[1:], lower=True, trans="T", check_finite=False)
        return np.asarray(coef), self.a[0]

    @property
    def objective(self) -> Array:
        """The minimum of the problem (q,)."""
        k = 1 + self.m
        return np.asarray((self.R[k:, k:] ** 2).sum(axis=0))

    def against_targets(self) -> tuple[Array, Array]:
        """F'WY (q, q) of the fit F to all rows, and Y'W1 (q,), as far as they have not decayed; O(m q)."""
        k = 1 + self.m
        FY: Array = (self.R[:k, :k] @ self.a).T @ self.R[:k, k:]
        return FY, self.R[0, 0] * self.R[0, k:]

    @property
    def total_weight(self) -> float:
        """Sum of the weights after forgetting."""
        return float(self.R[0, 0] ** 2)


@dataclass(frozen=True)
class _Chunk(LabeledRows):
    """Rows with their coordinates Phi (b, m), the remainder of k(x, x) (b,), and its tolerance (b,)."""

    Phi: Array
    unexplained: Array
    tolerance: Array

    @property
    def novel(self) -> NDArray[np.bool_]:
        return self.unexplained > self.tolerance

    def features(self) -> Array:
        return _with_intercept(self.Phi)


def start(n_targets: int, *, kept: int = 0) -> RecursiveState:
    """Before the first row: no centers. ``kept`` of the last rows can be held out later."""
    q, empty = n_targets, np.zeros((0, 0))
    return RecursiveState(None, empty, np.zeros((1 + q, 1 + q)), np.zeros((1, q)), 0, None, empty, kept)


def forgetful(state: RecursiveState) -> RecursiveState:
    """The same state, whose rows cannot be held out any more."""
    return replace(state, learned=np.zeros((0, state.m)), kept=0)


def learn_rows(
    recursion: Recursion, state: RecursiveState, X: Any, Y: Array, weight: Array
) -> tuple[RecursiveState, Array]:
    """The state after rows X with targets Y (n, q) and positive weights (n,), and outputs (n, q).

    The output of a row is that of the model of all previous rows; NaN for the first row. O(m²) per row.
    """
    outputs = np.full(Y.shape, np.nan)
    first, n = 0, n_rows(X)
    while first < n:
        rows = slice(first, min(n, first + recursion.next_rows(state.n_rows)))
        labeled = LabeledRows(take(X, rows), Y[rows], weight[rows])
        state, outputs[rows] = _step(recursion, state, labeled)
        first = rows.stop
    return state, outputs


def loo_outputs(recursion: Recursion, state: RecursiveState, X: Any, Y: Array, weight: Array) -> Array:
    """Outputs (n, q) of the last rows learned, for the model without ``weight`` (n,) of each; O(m²) per row.

    The state was started with at least n rows ``kept``. Centers stay; a row takes away what it has contributed,
    which is nothing for later centers. NaN where no other row has any weight.
    """
    A = _read(recursion, state, LabeledRows(X, Y, weight)).features()
    B = _with_intercept(_last_rows(state.learned, len(Y)))
    weight = weight * recursion.decay ** np.arange(len(Y) - 1.0, -1.0, -1.0)
    own = _whitened(state, B)
    leverage = weight * (own**2).sum(axis=0)
    share = weight * (_whitened(state, A) * own).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(leverage < 1.0, share / (1.0 - leverage), np.nan)
    return A @ state.a - factor[:, None] * (Y - B @ state.a)


def remove(recursion: Recursion, state: RecursiveState, gone: Indices) -> RecursiveState:
    """The state of the same rows without some centers; O(m³)."""
    kept = np.setdiff1d(np.arange(state.m), gone)
    upper, Q = keep_columns(state.L.T, kept)
    turned = np.hstack([state.R[:, :1], state.R[:, 1 : 1 + state.m] @ Q, state.R[:, 1 + state.m :]])
    (triangle,) = scipy.linalg.qr(turned, mode="r", check_finite=False)
    centers = take(state.centers, kept)
    R: Array = np.asfortranarray(triangle[: turned.shape[1]], dtype=np.float64)
    L, a = np.asfortranarray(upper.T), _coordinates(R, 1 + len(kept))
    return replace(state, centers=centers, L=L, R=R, a=a, learned=state.learned @ Q)


def _step(recursion: Recursion, state: RecursiveState, rows: LabeledRows) -> tuple[RecursiveState, Array]:
    """Admit, predict, learn, and revise if it is time."""
    state, chunk = _admit(recursion, state, _read(recursion, state, rows))
    # Relative to the time of the first row: then all decay together.
    weight = rows.weight * recursion.decay ** -np.arange(1.0, 1.0 + len(rows.Y))
    outputs = _predict_before(state, chunk, weight) if state.n_rows > 0 else np.full(rows.Y.shape, np.nan)
    state = _absorb(recursion, state, chunk, weight)
    if recursion.when_full == "replace":
        state = replace(state, recent=appended(state.recent, rows))
        if state.n_rows % ROWS_AT_ONCE == 0:
            state = _revise(recursion, state)
    return state, outputs


def _read(recursion: Recursion, state: RecursiveState, rows: LabeledRows) -> _Chunk:
    """Rows in the coordinates of the centers; O(b m²)."""
    diag = own_values(recursion.kernel, rows.X)
    Phi: Array = np.zeros((len(diag), 0))
    if state.m > 0:
        K = np.asarray(cross(recursion.kernel, rows.X, state.centers), dtype=np.float64)
        Phi = scipy.linalg.solve_triangular(state.L, K.T, lower=True, check_finite=False).T
    tolerance = max(recursion.nu, DEPENDENT_ROWS) * diag
    return _Chunk(rows.X, rows.Y, rows.weight, Phi, diag - (Phi**2).sum(axis=1), tolerance)


def _admit(recursion: Recursion, state: RecursiveState, chunk: _Chunk) -> tuple[RecursiveState, _Chunk]:
    """Make rows that the dictionary does not span centers, as long as ``max_centers`` allows."""
    room = recursion.max_centers - state.m
    if room <= 0 or not chunk.novel.any():
        return state, chunk
    taken, V = independent_rows(_unexplained(recursion, chunk), chunk.tolerance, room)
    grown = _with_centers(recursion, state, chunk, taken, V)
    return grown, replace(chunk, Phi=np.hstack([chunk.Phi, V]), unexplained=chunk.unexplained - (V**2).sum(axis=1))


def _unexplained(recursion: Recursion, chunk: _Chunk) -> Array:
    """The rows' Gram matrix (b, b) after projecting out the centers."""
    S: Array = np.asarray(cross(recursion.kernel, chunk.X, chunk.X), dtype=np.float64) - chunk.Phi @ chunk.Phi.T
    return S


def _with_centers(
    recursion: Recursion, state: RecursiveState, chunk: _Chunk, taken: Indices, V: Array
) -> RecursiveState:
    """The state with rows ``taken`` as centers, V (b, r) their new coordinates: zero for all rows so far."""
    r, k, more = len(taken), 1 + state.m, take(chunk.X, taken)
    return replace(
        state,
        centers=more if state.centers is None else join("X", [state.centers, more]),
        L=border(state.L, chunk.Phi[taken], V[taken]),
        R=insert_columns(state.R, k, np.full(r, np.sqrt(recursion.penalty(state.n_rows)))),
        a=np.vstack([state.a, np.zeros((r, state.a.shape[1]))]),
        learned=np.pad(state.learned, ((0, 0), (0, r))),
    )


def _predict_before(state: RecursiveState, chunk: _Chunk, weight: Array) -> Array:
    """Outputs (b, q) of each row for the model of all previous rows: innovations of the chunk.

    sqrt(w) (y - f) has the covariance I + B'B = CC'; C^-1 removes from each row what previous ones explain.
    """
    A, root = chunk.features(), np.sqrt(weight)[:, None]
    C = _covariance_factor(_whitened(state, root * A))
    scaled = root * (chunk.Y - A @ state.a)
    innovation = scipy.linalg.solve_triangular(C, scaled, lower=True, check_finite=False)
    return chunk.Y - np.diagonal(C)[:, None] * innovation / root


def _covariance_factor(B: Array) -> Array:
    """C (b, b), lower, with CC' = I + B'B for B (m, b): by Cholesky, or without squaring if B is large."""
    S = B.T @ B
    if np.trace(S) < LARGE_CONDITION:
        return np.asarray(scipy.linalg.cholesky(np.eye(len(S)) + S, lower=True, check_finite=False))
    R = stack_rows(np.eye(len(S)), B)
    # Diagonals of Cholesky factors are positive.
    return np.asarray((np.where(np.diagonal(R) < 0, -1.0, 1.0)[:, None] * R).T)


def _absorb(recursion: Recursion, state: RecursiveState, chunk: _Chunk, weight: Array) -> RecursiveState:
    """Add rows to R."""
    rows = np.sqrt(weight)[:, None] * np.hstack([chunk.features(), chunk.Y])
    n = state.n_rows + len(rows)
    R = stack_rows(state.R, rows)
    if recursion.decay < 1.0:
        R *= recursion.decay ** (0.5 * len(rows))
        if n % recursion.period == 0:
            R = stack_diagonal(R, _renewal(recursion, state.m, len(R)))
    learned = np.vstack([state.learned, _last_rows(chunk.Phi, state.kept)])
    learned = _last_rows(learned, state.kept)
    return replace(state, R=R, a=_coordinates(R, 1 + state.m), n_rows=n, learned=learned)


def _last_rows(A: Array, n: int) -> Array:
    """At most n rows."""
    return A[max(0, len(A) - n) :]


def _renewal(recursion: Recursion, m: int, p: int) -> Array:
    """What restores the penalty of the m coordinates to alpha (p,)."""
    d = np.zeros(p)
    d[1 : 1 + m] = np.sqrt(recursion.alpha * (1.0 - recursion.decay**recursion.period))
    return d


def _revise(recursion: Recursion, state: RecursiveState) -> RecursiveState:
    """Replace centers by recent rows if that pays off; O(m³), once in ROWS_AT_ONCE rows."""
    rows = state.recent
    state = replace(state, recent=None)
    if rows is None or state.m < recursion.max_centers:
        return state
    chunk = _read(recursion, state, rows)
    wanted, gain = _forward(recursion, state, chunk)
    if len(wanted) == 0:
        return state
    gone, cost = cheapest_columns(*_dual_basis(state), len(wanted))
    better = int(np.cumprod(gain > cost + _chance(state)).sum())
    if better == 0:
        return state
    state = remove(recursion, state, gone[:better])
    chunk = _read(recursion, state, rows)
    order = np.sort(wanted[:better])
    some = replace(chunk, X=take(rows.X, order), Phi=chunk.Phi[order])
    taken, V = independent_rows(_unexplained(recursion, some), chunk.tolerance[order], better)
    return _with_centers(recursion, state, some, taken, V)


def _forward(recursion: Recursion, state: RecursiveState, chunk: _Chunk) -> tuple[Indices, Array]:
    """Rows of the chunk that would help the others most as centers, best first, and their gains."""
    S = np.where(np.outer(chunk.novel, chunk.novel), _unexplained(recursion, chunk), 0.0)
    return forward_gains(
        S,
        chunk.Y - chunk.features() @ state.a,
        chunk.weight,
        penalty=recursion.penalty(state.n_rows),
        tolerance=chunk.tolerance,
        least=_chance(state),
        most=max(1, min(state.m // 2, MOST_REVISED)),
    )


def forward_gains(
    S: Array, E: Array, weight: Array, *, penalty: float, tolerance: Array, least: float, most: int
) -> tuple[Indices, Array]:
    """Rows j, one by one, whose coordinate s = S_j / sqrt(S_jj) explains the residuals E (b, q) best.

    The gain is |sum_i w_i s_i e_i|² / (penalty + sum_i w_i s_i²); stops when it is at most ``least``. O(b²) each.
    """
    S, E = S.copy(), E.copy()
    chosen: list[int] = []
    gains: list[float] = []
    for _ in range(most):
        free = np.diagonal(S) > tolerance
        scale = np.where(free, np.diagonal(S), 1.0)
        size = penalty * scale + weight @ S**2
        gain = np.where(free, ((S.T @ (weight[:, None] * E)) ** 2).sum(axis=1) / size, 0.0)
        j = int(gain.argmax())
        if gain[j] <= least:
            break
        s = S[:, j] / np.sqrt(S[j, j])
        E -= np.outer(s, (weight * s) @ E / (penalty + weight @ s**2))
        S -= np.outer(s, s)
        chosen.append(j)
        gains.append(float(gain[j]))
    return np.array(chosen, dtype=np.intp), np.array(gains)


def _chance(state: RecursiveState) -> float:
    """Gain from noise alone, two standard deviations squared; lower thresholds hurt on stationary streams."""
    return float(4.0 * state.objective.sum() / state.total_weight)


def _dual_basis(state: RecursiveState) -> tuple[Array, Array]:
    """U (1 + m, m) and Z (1 + m, q) with c = U'Z and H^-1 = U'U; O(m³)."""
    k = 1 + state.m
    B = np.zeros((state.m, k), order="C")
    B[:, 1:] = scipy.linalg.solve_triangular(state.L, np.eye(state.m), lower=True, check_finite=False).T
    return _whitened(state, B), state.R[:k, k:]


def _whitened(state: RecursiveState, A: Array) -> Array:
    """R^-T A' (1 + m, b) for rows A (b, 1 + m) of features."""
    k = 1 + state.m
    return np.asarray(scipy.linalg.solve_triangular(state.R[:k, :k], A.T, trans="T", check_finite=False))


def _with_intercept(Phi: Array) -> Array:
    """Features (n, 1 + m): a one, and the coordinates (n, m)."""
    return np.column_stack([np.ones(len(Phi)), Phi])


def _coordinates(R: Array, k: int) -> Array:
    """The minimizer (k, q) of the first k columns for the others."""
    return np.asarray(scipy.linalg.solve_triangular(R[:k, :k], R[:k, k:], check_finite=False))


def appended(recent: LabeledRows | None, rows: LabeledRows) -> LabeledRows:
    """Rows concatenated; None means no rows."""
    if recent is None:
        return rows
    Y, weight = np.concatenate([recent.Y, rows.Y]), np.concatenate([recent.weight, rows.weight])
    return LabeledRows(join("X", [recent.X, rows.X]), Y, weight)
