r"""Least squares on the first m of p ordered centers, for every m, from one triangular factor.

The augmented columns [A; sqrt(alpha) P] = Q R give with N = the upper rows of Q, zeta = N'y and V = R^-1

    fit N_m zeta_m,   coefficients V_mm zeta_m,   objective |y|² - |zeta_m|²,   leverages sum_(k<=m) N_ik²,

where _m means the first m columns. If alpha differs from step to step and P = U is the root of the orthogonal
penalty, the same holds with N = Q diag(d)^(1/2), V = U^-1 and each product divided by d_k + alpha_m.

**When a row is held out, so is its center**, unless other rows are equal to it. Centers are selected by the
targets: the fact that a row is a center reveals its target, and leave-one-out that keeps the center of the
held-out row uses this information. Without row i and center j at its point, the output and the leverage there are

    f_i - u_j c_j / t_j,  h_i - u_j² / t_j;   t_j = sum_k V_jk²,  u_j = sum_k V_jk N_ik,  c_j = sum_k V_jk zeta_k,

sums that grow with m like the fit itself: O(n q + m q) for every m.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._linalg.lapack import orthogonalized, solve_triangular
from mercer._linalg.tolerance import smallest
from mercer._solvers.orthogonal.candidates import CandidateColumns, Points, SparsePenalty
from mercer._solvers.orthogonal.orders import Order
from mercer._solvers.orthogonal.roots import root_of
from mercer._solvers.spectrum import Observations
from mercer._types import Array, Indices
from mercer.errors import NumericalError

# The least 1 - leverage that an orthonormal basis can tell from zero.
LEAST_ONE_MINUS_LEVERAGE_OF_BASIS = 1e-15


@dataclass(frozen=True)
class Steps:
    """Fits with the first m of p ordered centers; see the head of this module for N, V, zeta.

    ``order`` (p,) are candidate numbers, ``point`` (p,) their points, ``kernel_mean`` (p,) means of their columns,
    ``alpha`` (p,) the penalty of each step; ``d`` (p,) if that changes from step to step.
    """

    order: Indices
    point: Indices
    kernel_mean: Array
    alpha: Array
    N: Array
    V: Array
    zeta: Array
    d: Array | None = None

    def scale(self, m: int) -> Array:
        """1 / (d_k + alpha_m) (m,), or ones."""
        return np.ones(m) if self.d is None else 1.0 / (self.d[:m] + self.alpha[m - 1])

    def coefficients(self, m: int) -> Array:
        """(m, q)."""
        return self.V[:m, :m] @ (self.scale(m)[:, None] * self.zeta[:m])


@dataclass(frozen=True)
class State:
    """With m centers: fit F (u, q) and leverages (u,) of the weighted points, t, u (m,) and c (m, q)."""

    m: int
    F: Array
    leverage: Array
    t: Array
    u: Array
    c: Array


@dataclass(frozen=True)
class SparsePath:
    """The centers 1 … p in the order of their selection, and the fit with the first m of them for every m.

    ``order`` (p,): candidates; ``alpha``, ``objective``, ``rss``, ``degrees_of_freedom``, ``gcv``, ``bic`` and
    ``max_residual`` (p,). ``loo`` (p,): mean squared leave-one-out residual (PRESS), with the center of the row
    removed as well.
    """

    order: Indices
    alpha: Array
    objective: Array
    rss: Array
    degrees_of_freedom: Array
    gcv: Array
    bic: Array
    loo: Array
    max_residual: Array
    n_counted: float

    def __len__(self) -> int:
        return len(self.order)


@dataclass(frozen=True)
class SparseSolution:
    """Center numbers (m,), coefficients (m, q), intercept (q,)."""

    order: Indices
    coef: Array
    intercept: Array


def follow(
    candidates: CandidateColumns, observations: Observations, order: Any, alpha: float, penalty: SparsePenalty
) -> Steps:
    """Factor the columns in order: O(u p²). Centers that are linear combinations of earlier ones are dropped."""
    order = np.asarray(order, dtype=np.intp)
    points = Points.of(observations)
    K = candidates.shifted(alpha if penalty == "diagonal" else 0.0).columns(order)
    A = points.weighted(K)
    kept, P = root_of(candidates, order, penalty, A)
    Q, R = orthogonalized(np.vstack([A[:, kept], np.sqrt(alpha) * P]))
    N = Q[: len(A)]
    V = solve_triangular(R, np.eye(len(R)))
    mean = points.weight @ K[:, kept] / points.weight.sum()
    order = order[kept]
    return Steps(order, candidates.point(order), mean, np.full(len(order), alpha), N, V, N.T @ points.target)


def follow_orthogonal(
    candidates: CandidateColumns, observations: Observations, order: Indices, alphas: Array
) -> Steps:
    """Fits with the penalty on orthogonal coefficients, whose alpha changes from step to step."""
    points = Points.of(observations)
    K = candidates.columns(order)
    Q, R = orthogonalized(points.weighted(K))
    root = R.diagonal()
    if not root.all():
        raise NumericalError(
            f"column {int(np.flatnonzero(root == 0)[0])} of the chosen centers of {candidates.kernels[0]!r} is a "
            "linear combination of previous ones; scale the features with a StandardScaler, or lower the "
            "kernel's parameters"
        )
    V = solve_triangular(R / root[:, None], np.eye(len(R)))
    N = Q * root
    mean = points.weight @ K / points.weight.sum()
    return Steps(order, candidates.point(order), mean, alphas, N, V, N.T @ points.target, root**2)


def along(
    candidates: CandidateColumns,
    observations: Observations,
    order: Order,
    alpha: float | None,
    penalty: SparsePenalty,
) -> Steps:
    """The fits along an order, with one alpha or with that of each step.

    Where no column differs from a constant there is one center, which gets the coefficient zero.
    """
    if not len(order.centers):
        return follow(candidates, observations, np.zeros(1), 1.0, "coef")
    if order.alpha is not None and alpha is None:
        return follow_orthogonal(candidates, observations, order.centers, order.alpha)
    return follow(candidates, observations, order.centers, 1.0 if alpha is None else alpha, penalty)


def states(steps: Steps) -> Iterator[State]:
    """The fit with 1 … p centers; arrays are overwritten by the next step."""
    if steps.d is not None:
        yield from (state_at(steps, m) for m in range(1, len(steps.order) + 1))
        return
    p, q = steps.zeta.shape
    F, leverage = np.zeros((len(steps.N), q)), np.zeros(len(steps.N))
    t, u, c = np.zeros(p), np.zeros(p), np.zeros((p, q))
    for k in range(p):
        m, N, V = k + 1, steps.N[:, k], steps.V[: k + 1, k]
        F += N[:, None] * steps.zeta[k]
        leverage += N**2
        # The sums of the new center over earlier columns are zero: V is triangular.
        t[:m] += V**2
        u[:m] += V * N[steps.point[:m]]
        c[:m] += V[:, None] * steps.zeta[k]
        yield State(m, F, leverage, t[:m], u[:m], c[:m])


def state_at(steps: Steps, m: int) -> State:
    """The fit with m centers: O(u m)."""
    scale, N, V, zeta = steps.scale(m), steps.N[:, :m], steps.V[:m, :m], steps.zeta[:m]
    own = N[steps.point[:m]]
    return State(
        m, N @ (scale[:, None] * zeta), N**2 @ scale, V**2 @ scale, (V * own) @ scale, V @ (scale[:, None] * zeta)
    )


def loo_outputs(steps: Steps, state: State, observations: Observations) -> Array:
    """f (n, q) of every row for the model without it, and without its center unless other rows equal it."""
    center = _removed_centers(steps.point[: state.m], observations)
    F, leverage, j = state.F.copy(), state.leverage.copy(), steps.point[: state.m][center]
    F[j] -= (state.u[center] / state.t[center])[:, None] * state.c[center]
    leverage[j] -= state.u[center] ** 2 / state.t[center]
    every = np.arange(len(observations.Y))
    return _without_rows(F[observations.rows.point], leverage[observations.rows.point], observations, every)


def loo_outputs_of_rows(steps: Steps, m: int, observations: Observations, rows: Indices) -> Array:
    """The same (r, q) with m centers, none of them at the points of these rows (r,): O(r m)."""
    scale, N = steps.scale(m), steps.N[observations.rows.point[rows], :m]
    return _without_rows(N @ (scale[:, None] * steps.zeta[:m]), N**2 @ scale, observations, rows)


def _without_rows(F: Array, leverage: Array, observations: Observations, rows: Indices) -> Array:
    """Outputs (r, q) of rows for the fit without them, from weighted ones and leverages (r,) at their points."""
    points, at_row = Points.of(observations), observations.rows.point[rows]
    outputs = points.mean + F / points.root[at_row, None]
    leaving = observations.unit[rows] * (1.0 / points.weight.sum() + leverage / points.weight[at_row])
    one_minus_leverage = np.maximum(1.0 - leaving, LEAST_ONE_MINUS_LEVERAGE_OF_BASIS)
    return np.asarray(observations.Y[rows] - (observations.Y[rows] - outputs) / one_minus_leverage[:, None])


def _removed_centers(point: Indices, observations: Observations) -> Indices:
    """Positions of the centers at points that consist of a single row."""
    largest = np.zeros(observations.rows.n_points)
    np.maximum.at(largest, observations.rows.point, observations.unit)
    whole = largest > (1.0 - 1e-9) * observations.point_weight
    return np.flatnonzero(whole[point])


def fitted_at(steps: Steps, state: State, observations: Observations) -> Array:
    """f (n, q) of every row."""
    points = Points.of(observations)
    return (points.mean + state.F / points.root[:, None])[observations.rows.point]


def path_of(steps: Steps, observations: Observations, cost: float) -> SparsePath:
    """All criteria for every number of centers; O(n q) for each.

    Weights are scaled to sum to the number of rows. Degrees of freedom are 1 + cost tr: a center selected by the
    targets fits their noise more than a given one; Friedman (1991), "Multivariate adaptive regression splines",
    section 3.6.
    """
    n, weight = observations.n_counted, observations.weight
    scale = n / weight.sum()
    table = np.empty((len(steps.order), 4))
    for state in states(steps):
        residual = observations.Y - fitted_at(steps, state, observations)
        left = observations.Y - loo_outputs(steps, state, observations)
        rss, loo = weight @ (residual**2).sum(axis=1), weight @ (left**2).sum(axis=1) / weight.sum()
        table[state.m - 1] = rss, loo, np.abs(residual).max(), state.leverage.sum()
    rss, loo, largest, trace = table.T
    df = 1.0 + cost * trace
    return SparsePath(
        steps.order,
        steps.alpha,
        _objective(steps, observations),
        rss,
        df,
        gcv(scale * rss, df, n),
        bic(scale * rss, df, n),
        loo,
        largest,
        n,
    )


def gcv(rss: Array, df: Array, n: float) -> Array:
    """n rss / (n - df)², infinite if the degrees of freedom are exhausted; Andelić (2007), Eq. (3.85)."""
    left = n - df
    return np.where(left > 0, n * np.maximum(rss, 0.0) / np.where(left > 0, left, 1.0) ** 2, np.inf)


def bic(rss: Array, df: Array, n: float) -> Array:
    """n log(rss / n) + df log n; half of it is the description length."""
    floor = smallest(np.float64)
    return np.asarray(n * np.log(np.maximum(rss, floor) / n) + df * np.log(n))


def _objective(steps: Steps, observations: Observations) -> Array:
    """The penalized sum of squares (p,), variation within points included."""
    mean = Points.of(observations).mean
    total = float(observations.weight @ ((observations.Y - mean) ** 2).sum(axis=1))
    square = (steps.zeta**2).sum(axis=1)
    if steps.d is None:
        return total - np.cumsum(square)
    return np.array([total - steps.scale(m) @ square[:m] for m in range(1, len(square) + 1)])


def solution_at(steps: Steps, observations: Observations, m: int) -> SparseSolution:
    """Coefficients and intercept with the first m centers."""
    coef = steps.coefficients(m)
    return SparseSolution(steps.order[:m], coef, Points.of(observations).mean - steps.kernel_mean[:m] @ coef)
