"""The order in which candidates become centers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mercer._gram.blocks import BLOCK_SIZE, check_size
from mercer._linalg import supervised_pivots
from mercer._linalg.tolerance import smallest
from mercer._solvers.orthogonal.basis import OrthogonalBasis
from mercer._solvers.orthogonal.candidates import CandidateColumns, Points, SparsePenalty
from mercer._solvers.orthogonal.reestimate import Estimate, reestimate
from mercer._solvers.orthogonal.roots import GrowingRoot
from mercer._types import Array, Indices
from mercer.rows._table import n_rows

Selection = Literal["gain", "residual"]

# The alpha of the selection if none is given, in units of tr G / tr K.
SPARSE_ALPHA = 1e-3
# Degrees of freedom of a center where alpha is re-estimated by generalized cross-validation: targets selected it.
# Friedman (1991), "Multivariate adaptive regression splines", section 3.6.
COST_OF_SELECTED = 3.0
# Kernel values that are computed at once where columns are asked for one by one: short ones take hardly more time
# than the calls.
VALUES_AT_ONCE = 2**22


@dataclass(frozen=True)
class Order:
    """Candidate numbers (p,) in the order of selection; ``alpha`` (p,) if it was re-estimated at each step."""

    centers: Indices
    alpha: Array | None = None


@dataclass(frozen=True)
class SelectionRule:
    """How the next center is selected: rule, number of random candidates (None: all), estimate of alpha."""

    selection: Selection = "gain"
    n_candidates: int | None = None
    penalty: SparsePenalty = "rkhs"
    estimate: Estimate = "gcv"
    cost: float = 1.0


def choose_order(
    candidates: CandidateColumns,
    points: Points,
    choice: SelectionRule,
    alpha: float | None,
    most: int,
    rng: np.random.Generator,
    sums: "Sums | None" = None,
) -> Order:
    """At most ``most`` centers; ``alpha`` None is a small one in the unit of the problem.

    "residual": the candidate at the point with the largest residual, which needs one column per step, O(u m²) in
    total: Andelić (2007), Algorithm 1. "gain": the largest decrease of the objective, among all c candidates in
    Gram space, O(u c² + c m²), or among some at random, O(u m² n_candidates): Mika (2002), section 3.5.2.
    For the penalty on orthogonal coefficients alpha None is re-estimated after each center; with "residual", that
    is Andelić (2007), Algorithm 2. ``sums`` are those of the candidates, if known.
    """
    check_size(candidates.kernels[0], candidates.own(np.arange(len(candidates))))
    by_column = choice.selection == "residual" or choice.n_candidates is not None
    if by_column and candidates.n_values <= VALUES_AT_ONCE:
        candidates = candidates.kept()
    if choice.penalty == "orthogonal":
        return orthogonal_order(candidates, points, choice, alpha, most, rng)
    if not by_column:
        pivots = gain_pivots(candidates, points, choice.penalty, alpha, sums)
    else:
        pick = _largest_residual if choice.selection == "residual" else _largest_gain(choice.n_candidates, rng)
        used = _small_alpha(candidates, points, choice.penalty) if alpha is None else alpha
        pivots = greedy_pivots(candidates, points, choice.penalty, used, pick, most)
    return Order(np.fromiter(islice(pivots, most), dtype=np.intp))


@dataclass(frozen=True)
class Sums:
    """A'A (c, c) and A'y (c, q) of centered, weighted columns A, and their squares before centering (c,)."""

    G: Array
    C: Array
    square: Array

    @classmethod
    def of(cls, candidates: CandidateColumns, points: Points) -> "Sums":
        """One pass over the rows: O(u c²) time, O(c²) memory."""
        c, every = len(candidates), np.arange(len(candidates))
        check_size(candidates.kernels[0], candidates.own(every))
        G, C, mean = np.zeros((c, c)), np.zeros((c, points.Y.shape[1])), np.zeros(c)
        step = max(1, BLOCK_SIZE // c)
        for start in range(0, n_rows(candidates.X), step):
            rows = slice(start, start + step)
            A = candidates.columns(every, rows) * points.root[rows, None]
            G += A.T @ A
            C += A.T @ points.target[rows]
            mean += points.root[rows] @ A
        square = G.diagonal().copy()
        G -= np.outer(mean, mean / points.weight.sum())
        return cls(G, C, square)

    def targets(self, some: list[int]) -> "Sums":
        """The sums for some of the targets."""
        return Sums(self.G, self.C[:, some], self.square)


def gain_pivots(
    candidates: CandidateColumns,
    points: Points,
    penalty: SparsePenalty,
    alpha: float | None,
    sums: Sums | None = None,
) -> Iterator[int]:
    """Largest decrease of the objective among all candidates, from their Gram matrix."""
    if penalty == "diagonal":
        candidates = candidates.shifted(_small_alpha(candidates, points, penalty) if alpha is None else alpha)
        sums = None
    sums = Sums.of(candidates, points) if sums is None else sums
    every = np.arange(len(candidates))
    K = candidates.among(every, every) if penalty == "rkhs" else np.eye(len(every))
    if alpha is None:
        alpha = SPARSE_ALPHA * np.trace(sums.G) / max(float(np.trace(K)), smallest(np.float64))
    H = sums.G if penalty == "diagonal" else sums.G + alpha * K
    floor = candidates.floor * (sums.square + alpha * K.diagonal())
    closed: set[int] = set()
    for j in supervised_pivots(H, sums.C, floor):
        if j not in closed:
            yield j
        closed.update(candidates.neighbors(j).tolist())


# From the basis, the residuals of the targets (u, q), and the remaining candidates to the next one.
Pick = Callable[["Growth", Array, NDArray[np.bool_]], int]


@dataclass(frozen=True)
class Growth:
    """The selection so far: the basis of augmented columns (u + room, p) and the root of the penalty, if there is
    one: otherwise no room.
    """

    candidates: CandidateColumns
    points: Points
    alpha: float
    basis: OrthogonalBasis
    root: GrowingRoot
    room: int

    def augmented(self, j: Indices) -> tuple[Array, Array]:
        """Columns (u + room, b) of candidates, and their plain lengths (b,), 0 if P would be singular."""
        K = self.candidates.columns(j)
        above, own = self.root.columns(j)
        square = np.einsum("ub,ub,u->b", K, K, self.points.weight)
        if not self.room:
            return self.points.weighted(K), np.sqrt(square)
        u, m = len(K), len(above)
        A = np.zeros((u + self.room, len(own)))
        A[:u] = self.points.weighted(K)
        A[u : u + m] = np.sqrt(self.alpha) * above
        A[u + m] = np.sqrt(self.alpha) * own
        square += self.alpha * (np.einsum("mb,mb->b", above, above) + own**2)
        return A, np.sqrt(np.where(self.root.is_new(own), square, 0.0))


def greedy_pivots(
    candidates: CandidateColumns, points: Points, penalty: SparsePenalty, alpha: float, pick: Pick, most: int
) -> Iterator[int]:
    """At most this many candidates in the order of a rule, while one is new, on a basis orthogonalized twice."""
    u, room = len(points.Y), most + 1
    if penalty == "diagonal":
        candidates, alpha, room = candidates.shifted(alpha), 0.0, 0
    basis = OrthogonalBasis(u + room, candidates.tolerance)
    growth = Growth(candidates, points, alpha, basis, GrowingRoot(candidates, penalty), room)
    left = np.vstack([points.target, np.zeros((room, points.Y.shape[1]))])
    open_ = np.ones(len(candidates), dtype=bool)
    while open_.any() and basis.size < most:
        j = pick(growth, left, open_)
        open_[candidates.neighbors(j)] = False
        A, length = growth.augmented(np.array([j]))
        if length[0] > 0 and basis.append(A[:, 0], length=float(length[0])):
            growth.root.append(j)
            q = basis.Q[:, -1]
            left -= np.outer(q, q @ left)
            yield j


def _largest_residual(growth: Growth, left: Array, open_: NDArray[np.bool_]) -> int:
    """The remaining candidate at the point with the largest residual; of several kernels there, the best one."""
    there = _at_largest_residual(growth.candidates, growth.points, left, open_)
    return int(there[0]) if len(there) == 1 else int(there[_gains(growth, left, there).argmax()])


def _at_largest_residual(
    candidates: CandidateColumns, points: Points, left: Array, open_: NDArray[np.bool_]
) -> Indices:
    """The remaining candidate at the point with the largest residual, with every kernel there is."""
    size = (left[: len(points.Y)] ** 2).sum(axis=1) / points.weight
    first = np.where(open_[: len(candidates.pool)], size[candidates.pool], -1.0)
    return candidates.neighbors(int(first.argmax()))


def _largest_gain(n_candidates: int | None, rng: np.random.Generator) -> Pick:
    """The one of n_candidates random remaining candidates with the largest gain.

    59 of them include one of the best twentieth with probability 0.95: Mika (2002), Lemma 3.2.
    """

    def pick(growth: Growth, left: Array, open_: NDArray[np.bool_]) -> int:
        some = _drawn(open_, n_candidates, rng)
        return int(some[_gains(growth, left, some).argmax()])

    return pick


def _drawn(open_: NDArray[np.bool_], n_candidates: int | None, rng: np.random.Generator) -> Indices:
    """At most this many of the remaining candidates, at random; None: all of them."""
    free = np.flatnonzero(open_)
    return free if n_candidates is None else rng.choice(free, min(n_candidates, len(free)), replace=False)


def _gains(growth: Growth, left: Array, j: Indices, alpha: float = 0.0) -> Array:
    """Decrease of the objective (b,) by each candidate alone; zero if nothing of it is new.

    |q_j' left|² / (|q_j|² + alpha) for the new part q_j of each, ``alpha`` the penalty on orthogonal coefficients.
    """
    A, length = growth.augmented(j)
    new, _ = growth.basis.reduce(A)
    square = np.einsum("ub,ub->b", new, new)
    gain = ((new.T @ left) ** 2).sum(axis=1)
    new_enough = (length > 0) & (square > (growth.basis.tolerance * length) ** 2)
    return np.where(new_enough, gain / np.where(new_enough, square + alpha, 1.0), 0.0)


def orthogonal_order(
    candidates: CandidateColumns,
    points: Points,
    choice: SelectionRule,
    given: float | None,
    most: int,
    rng: np.random.Generator,
) -> Order:
    """Orthogonal least squares with the given alpha; None: re-estimated after each center, to select the next."""
    basis = OrthogonalBasis(len(points.Y), candidates.tolerance)
    growth = Growth(candidates, points, 0.0, basis, GrowingRoot(candidates, "orthogonal"), 0)
    by_gain = choice.selection == "gain"
    pool = _Pool(candidates, points) if by_gain and choice.n_candidates is None else None
    open_ = np.ones(len(candidates), dtype=bool)
    left, alpha = points.target.copy(), given or 0.0
    centers: list[int] = []
    alphas: list[float] = []
    while open_.any() and len(centers) < most:
        if pool is not None:
            j = pool.best(left, open_, alpha)
        else:
            if by_gain:
                some = _drawn(open_, choice.n_candidates, rng)
            else:
                some = _at_largest_residual(candidates, points, _shrunk_residual(points, basis, alpha), open_)
            gains = some if len(some) == 1 else _gains(growth, left, some, alpha)
            j = int(some[gains.argmax()])
        open_[candidates.neighbors(j)] = False
        A, length = growth.augmented(np.array([j]))
        if not basis.append(A[:, 0], length=float(length[0])):
            continue
        q = basis.Q[:, -1]
        left -= np.outer(q, q @ left)
        if pool is not None:
            pool.reduce(q)
        if given is None:
            alpha = reestimate(
                basis.R.diagonal() ** 2, basis.Q.T @ points.target, points, choice.estimate, COST_OF_SELECTED
            )
        centers.append(j)
        alphas.append(alpha)
    return Order(np.array(centers, dtype=np.intp), np.array(alphas))


def _shrunk_residual(points: Points, basis: OrthogonalBasis, alpha: float) -> Array:
    """Residuals (u, q) of the fit whose orthogonal coefficients are penalized by alpha."""
    d = basis.R.diagonal() ** 2
    return points.target - basis.Q @ ((d / (d + alpha))[:, None] * (basis.Q.T @ points.target))


class _Pool:
    """All candidate columns (u, c), and their squares (c,) after projection onto the basis."""

    def __init__(self, candidates: CandidateColumns, points: Points) -> None:
        K = candidates.columns(np.arange(len(candidates)))
        self.A = points.weighted(K)
        self.square = np.einsum("uc,uc->c", self.A, self.A)
        self.floor = candidates.floor * np.einsum("uc,uc,u->c", K, K, points.weight)

    def reduce(self, q: Array) -> None:
        self.square -= (q @ self.A) ** 2

    def best(self, left: Array, open_: NDArray[np.bool_], alpha: float) -> int:
        """Where |a_j' left|² / (d_j + alpha) is largest, d_j the remaining square of a_j."""
        new = open_ & (self.square > self.floor)
        gain = ((self.A.T @ left) ** 2).sum(axis=1) / (np.where(new, self.square, 1.0) + alpha)
        return int(np.where(new, gain, np.where(open_, -1.0, -2.0)).argmax())


def _small_alpha(candidates: CandidateColumns, points: Points, penalty: SparsePenalty) -> float:
    """A small penalty in the unit of the problem."""
    own = candidates.own(_some(candidates)).mean() if penalty == "rkhs" else 1.0
    return float(SPARSE_ALPHA * mean_square(candidates, points) / max(own, smallest(np.float64)))


def mean_square(candidates: CandidateColumns, points: Points) -> float:
    """Mean over a few columns, centered and weighted, of their squared norms."""
    some = _some(candidates)
    A = points.weighted(candidates.columns(some))
    return float(np.einsum("ub,ub->", A, A) / len(some))


def _some(candidates: CandidateColumns) -> Indices:
    """About 64 of the candidates."""
    return np.arange(len(candidates))[:: max(1, len(candidates) // 64)]
