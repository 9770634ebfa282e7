"""A sparse fit from the first to the last step: kernel, penalty, centers, their number, coefficients."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from mercer.errors import NumericalError
from mercer.kernels import Kernel
from mercer.rows.table import n_rows
from mercer.solvers.orthogonal.candidates import CandidateColumns, Points, SparsePenalty
from mercer.solvers.orthogonal.orders import Order, SelectionRule, Sums, choose_order
from mercer.solvers.orthogonal.path import (
    SparsePath,
    SparseSolution,
    Steps,
    follow,
    left_out,
    path_of,
    solution_at,
    state_at,
)
from mercer.solvers.orthogonal.prune import prune
from mercer.solvers.orthogonal.search import ChosenBy, Question, SparseTrial, favorite, search_kernels, try_kernel
from mercer.solvers.orthogonal.stop import Judge, Judgement, Stop, judged, number_of_centers
from mercer.solvers.spectrum import Observations
from mercer.types import Array, Indices

# The judge of some rows and some targets; None: all targets.
JudgeFor = Callable[[Indices, list[int] | None], Judge]

# Kernels are compared on at most so many points with at most so many of them as candidates: all kernels on the
# first pair, the best and its neighbors on the second; alpha is chosen on all. Rows make the comparison sure and
# cost little, candidates cost much.
SCREEN = 3000, 600
FINAL = 6000, 1500
# Points that may become centers, unless more than half of them are wanted; and centers, where no number is given.
POOL = 3000
MOST_CENTERS = 3000
# Of the points, the share that becomes centers on the longest path.
LONGEST = 0.5
# Kernels side by side, however many threads there are.
MOST_AT_ONCE = 1000


@dataclass(frozen=True)
class Settings:
    """How a sparse fit is made; ``alpha`` None: the best. ``widen`` gives the kernels a center may have."""

    choice: SelectionRule
    stop: Stop | None
    tolerance: float
    standard_errors: float
    max_centers: int | None
    alpha: float | None
    chosen_by: ChosenBy
    prune: bool
    shared: bool
    widen: Callable[[Kernel], tuple[Kernel, ...]]

    def n_bytes(self, u: int) -> float:
        """Memory of the columns of the path in the copies that are held, and of the sums over candidates.

        Or that of comparing one kernel, where more candidates are looked at than a short path has centers.
        """
        path = 8.0 * (6.0 * u * self.longest(u) + 4.0 * self.pool(u) ** 2)
        return max(path, *(_kernel_bytes(min(u, rows), min(u, c)) for rows, c in (SCREEN, FINAL)))

    def pool(self, u: int) -> int:
        """Points that may become centers: of so many as are wanted, twice as many to choose from."""
        return min(u, max(POOL, 2 * self.longest(u)))

    def kept(self, path: SparsePath, judgement: Judgement) -> int:
        """How many centers of the path are kept."""
        return number_of_centers(path, self.stop, self.tolerance, judgement, self.standard_errors)

    def longest(self, u: int) -> int:
        """Centers on the path of u points."""
        most = min(MOST_CENTERS, int(np.ceil(LONGEST * u))) if self.max_centers is None else self.max_centers
        return max(1, min(most, u))


def _kernel_bytes(u: int, c: int) -> float:
    """Memory of a trial of one kernel on u points with c candidates: their columns, sums, and the path's."""
    return 8.0 * (1.5 * u * c + 2.0 * c * c)


@dataclass(frozen=True)
class SparseTask:
    """Points X (u rows), what was observed there, how the fit is made and judged, and the source of randomness."""

    X: Any
    observations: Observations
    settings: Settings
    judge_for: JudgeFor
    rng: np.random.Generator
    # Bytes that may be allocated.
    room: float = np.inf

    @property
    def n_points(self) -> int:
        return n_rows(self.X)

    @property
    def n_counted(self) -> float:
        """Rows, each as often as it counts."""
        return self.observations.n_counted

    def question(self, n_candidates: int | None = None) -> Question:
        """What is asked of every kernel at these points, with all or some of them as candidates."""
        settings, rows, u = self.settings, np.arange(len(self.observations.Y)), self.n_points
        c = u if n_candidates is None else min(n_candidates, u)
        return Question(
            choice=settings.choice,
            pool=np.arange(u) if c == u else np.sort(self.rng.choice(u, c, replace=False)),
            most=settings.longest(u if n_candidates is None else c),
            alpha=settings.alpha,
            judge=self.judge_for(rows, None),
            chosen_by=self._chosen_by(),
            seed=int(self.rng.integers(2**31)),
            at_once=int(max(1.0, min(self.room / _kernel_bytes(u, c), MOST_AT_ONCE))),
        )

    def _chosen_by(self) -> ChosenBy:
        """Evidence is that of all points as centers, with their kernel as covariance: for few of them."""
        few = self.n_points <= SCREEN[1] and self.settings.choice.penalty == "rkhs"
        return self.settings.chosen_by if few or self.settings.chosen_by != "evidence" else "loo"

    def at_points(self, kernel: Kernel, chosen: Indices) -> "SparseTask":
        """The same at some of the points."""
        if len(chosen) == self.n_points:
            return self
        chosen = np.sort(chosen)
        part, rows = self.observations.at_points(chosen)
        X = kernel.subset(self.X, chosen)
        return replace(self, X=X, observations=part, judge_for=lambda some, t: self.judge_for(rows[some], t))

    def for_targets(self, targets: list[int]) -> "SparseTask":
        """The same for some of the targets."""
        if len(targets) == self.observations.Y.shape[1]:
            return self
        part = replace(self.observations, Y=self.observations.Y[:, targets])
        return replace(self, observations=part, judge_for=lambda rows, _: self.judge_for(rows, targets))

    def judge(self) -> Judge:
        """The judge of all rows."""
        return self.judge_for(np.arange(len(self.observations.Y)), None)


@dataclass(frozen=True)
class SparsePart:
    """One selection: its ``targets``, the path, the fit along the centers kept, outputs of rows left out.

    ``otherwise`` are these outputs if weights meant the other thing, where that is in doubt.
    """

    targets: list[int]
    path: SparsePath
    judgement: Judgement
    steps: Steps
    m: int
    solution: SparseSolution
    loo: Array
    score: float
    otherwise: Array | None


@dataclass(frozen=True)
class SparseFit:
    """Kernels a center may have (the first was chosen), alpha, what was tried, one part or one for each target."""

    kernels: tuple[Kernel, ...]
    candidates: CandidateColumns
    alpha: float
    trials: list[SparseTrial]
    parts: tuple[SparsePart, ...]

    @property
    def loo(self) -> Array:
        """Outputs (n, q) of rows left out, for all targets."""
        return np.column_stack([part.loo for part in self.parts])

    @property
    def otherwise(self) -> Array | None:
        """The same if weights meant the other thing; None where there is no doubt."""
        found = [part.otherwise for part in self.parts if part.otherwise is not None]
        return np.column_stack(found) if found else None


def fit_sparse(kernels: list[Kernel], task: SparseTask) -> SparseFit:
    """Choose the kernel, alpha, the centers and their number, and solve.

    Of u points and c candidates (all, but of more than 3000 points a random part) the last path costs O(u c² +
    c m² + u m²), and each kernel that is compared the same with u <= 3000, c <= 600, the best few with u <= 6000,
    c <= 1500.
    """
    trials = _compare(kernels, task) if len(kernels) > 1 else []
    kernel = favorite(trials, task.n_counted)[0] if trials else kernels[0]
    candidates = _candidates(task.settings.widen(kernel), task)
    sums = _sums(candidates, task)
    alpha = task.settings.alpha
    if alpha is None and task.settings.choice.selection != "orthogonal":
        # Evidence has compared pairs of kernel and alpha at all points.
        if not trials or trials[0].surprise is None:
            trials = [*trials, try_kernel(candidates, task.observations, task.question(), sums)]
        alpha = favorite(trials if trials[-1].surprise is not None else trials[-1:], task.n_counted)[1]
    every = list(range(task.observations.Y.shape[1]))
    groups = [every] if task.settings.shared else [[target] for target in every]
    parts = tuple(_part(candidates, targets, alpha, sums, task.for_targets(targets)) for targets in groups)
    return SparseFit(candidates.kernels, candidates, float(parts[0].steps.alpha[0]), trials, parts)


def _candidates(kernels: tuple[Kernel, ...], task: SparseTask) -> CandidateColumns:
    """All points, or so many at random."""
    u = task.n_points
    most = (
        task.settings.pool(u) if len(kernels) == 1 else min(u, max(POOL // len(kernels), task.settings.longest(u)))
    )
    pool = np.arange(u) if u <= most else np.sort(task.rng.choice(u, most, replace=False))
    return CandidateColumns(kernels, task.X, pool)


def _sums(candidates: CandidateColumns, task: SparseTask) -> Sums | None:
    """What selection in Gram space needs, once for all alphas and targets."""
    choice = task.settings.choice
    if choice.selection != "gain" or choice.n_candidates is not None or choice.penalty == "diagonal":
        return None
    return Sums.of(candidates, Points.of(task.observations))


def _part(
    candidates: CandidateColumns, targets: list[int], alpha: float | None, sums: Sums | None, task: SparseTask
) -> SparsePart:
    """One selection for the targets of the task, which are those of these numbers."""
    settings, observations, judge = task.settings, task.observations, task.judge()
    choice, most = settings.choice, settings.longest(task.n_points)
    known = None if sums is None else sums.targets(targets)
    order = choose_order(candidates, Points.of(observations), choice, alpha, most, task.rng, known)
    if len(order.centers) == 0:
        # No column differs from a constant: one center, which gets the coefficient zero.
        order, choice = Order(np.zeros(1, dtype=np.intp)), replace(choice, penalty="coef")
    steps = _along(candidates, observations, order, alpha, choice.penalty)
    path, judgement = path_of(steps, observations, choice.cost), judged(steps, observations, judge)
    m = settings.kept(path, judgement)
    kept, penalty = float(steps.alpha[m - 1]), choice.penalty
    steps = follow(candidates, observations, steps.order[:m], kept, penalty)
    if settings.prune:
        steps = _pruned(candidates, steps, kept, penalty, task)
    m = len(steps.order)
    state, doubted = state_at(steps, m), observations.doubted
    loo = left_out(steps, state, observations)
    otherwise = None if doubted is None else left_out(steps, state, doubted)
    score = float(judge(loo[None])[0])
    return SparsePart(
        targets, path, judgement, steps, m, solution_at(steps, observations, m), loo, score, otherwise
    )


def _along(
    candidates: CandidateColumns,
    observations: Observations,
    order: Order,
    alpha: float | None,
    penalty: SparsePenalty,
) -> Steps:
    """The fits along an order, with one alpha or with that of each step."""
    if order.alpha is not None and alpha is None:
        return follow_orthogonal(candidates, observations, order.centers, order.alpha)
    return follow(candidates, observations, order.centers, 1.0 if alpha is None else alpha, penalty)


def follow_orthogonal(
    candidates: CandidateColumns, observations: Observations, order: Indices, alphas: Array
) -> Steps:
    """Fits with the penalty on orthogonal coefficients, whose alpha changes from step to step."""
    points = Points.of(observations)
    K = candidates.columns(order)
    Q, R = np.linalg.qr(points.weighted(K))
    root = R.diagonal()
    if not root.all():
        raise NumericalError(
            f"column {int(np.flatnonzero(root == 0)[0])} of the chosen centers of {candidates.kernels[0]!r} is a "
            "combination of those before it; bring the features to one scale, or lower the kernel's parameters"
        )
    V = scipy.linalg.solve_triangular(R / root[:, None], np.eye(len(R)), unit_diagonal=True, check_finite=False)
    N = Q * root
    mean = points.weight @ K / points.weight.sum()
    return Steps(order, candidates.point(order), mean, alphas, N, V, N.T @ points.target, root**2)


def _pruned(
    candidates: CandidateColumns, steps: Steps, alpha: float, penalty: SparsePenalty, task: SparseTask
) -> Steps:
    """Fits along backward elimination, as far as the same rule keeps its centers."""
    settings, observations = task.settings, task.observations
    back = follow(candidates, observations, prune(steps, len(steps.order)), alpha, penalty)
    path = path_of(back, observations, settings.choice.cost)
    m = settings.kept(path, judged(back, observations, task.judge()))
    return follow(candidates, observations, back.order[:m], alpha, penalty)


def _compare(kernels: list[Kernel], task: SparseTask) -> list[SparseTrial]:
    """All kernels on a part of the points; where that was not all, the best and its neighbors on a larger part."""
    u, (rows, most) = task.n_points, SCREEN
    order = np.arange(u) if u <= most else task.rng.permutation(u)
    part = task.at_points(kernels[0], order[:rows])
    trials = search_kernels(kernels, part.X, part.observations, part.question(most))
    if u <= most:
        return trials
    best = int(np.argmin([trial.best for trial in trials]))
    rows, most = FINAL
    return _climb(kernels, best, most, task.at_points(kernels[0], order[:rows]))


def _climb(kernels: list[Kernel], start: int, most: int, task: SparseTask) -> list[SparseTrial]:
    """A kernel and its neighbors, and neighbors of the best of them until none is better."""
    tried: dict[int, SparseTrial] = {}
    question = task.question(most)
    wanted = {g for g in (start - 1, start, start + 1) if 0 <= g < len(kernels)}
    while wanted:
        found = search_kernels([kernels[g] for g in sorted(wanted)], task.X, task.observations, question)
        tried |= dict(zip(sorted(wanted), found))
        best = min(tried, key=lambda g: tried[g].best)
        wanted = {g for g in (best - 1, best + 1) if 0 <= g < len(kernels)} - tried.keys()
    return [tried[g] for g in sorted(tried)]
