"""A sparse fit from the first to the last step: kernel, penalty, centers, their number, coefficients."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram.blocks import n_rows, take
from mercer.kernels import Kernel
from mercer.linalg import limit_threads
from mercer.solvers.orthogonal.candidates import Candidates, Points
from mercer.solvers.orthogonal.orders import Choice, Sums, choose_order
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
from mercer.solvers.orthogonal.search import Question, SparseTrial, search_kernels, try_kernel
from mercer.solvers.orthogonal.stop import Judge, Stop, judged, number_of_centers
from mercer.solvers.spectrum import Observations

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# The judge of some rows and some targets; None: all targets.
JudgeFor = Callable[[Indices, list[int] | None], Judge]

# Kernels are compared on at most so many points: all of them on the first number, the best and its neighbors
# on the second; alpha is chosen on all.
SCREEN_POINTS = 600
FINAL_POINTS = 1500
# Points that may become centers, at most; and centers, where no number is given.
POOL = 3000
MOST_CENTERS = 1500
# Of the points, the share that becomes centers on the longest path.
LONGEST = 0.5


@dataclass(frozen=True)
class Settings:
    """How a sparse fit is made; ``alpha`` None: the best. ``widen`` gives the kernels a center may have."""

    choice: Choice
    stop: Stop | None
    tolerance: float
    max_centers: int | None
    alpha: float | None
    by_gcv: bool
    prune: bool
    shared: bool
    widen: Callable[[Kernel], tuple[Kernel, ...]]

    def longest(self, u: int) -> int:
        """Centers on the path of u points."""
        most = min(MOST_CENTERS, int(np.ceil(LONGEST * u))) if self.max_centers is None else self.max_centers
        return max(1, min(most, u))


@dataclass(frozen=True)
class Part:
    """One selection: its ``targets``, the path, the fit along the centers kept, outputs of rows left out."""

    targets: list[int]
    path: SparsePath
    numbers: Indices
    scores: Array
    steps: Steps
    m: int
    solution: SparseSolution
    loo: Array
    score: float


@dataclass(frozen=True)
class SparseFit:
    """Kernels a center may have (the first was chosen), alpha, what was tried, one part or one for each target."""

    kernels: tuple[Kernel, ...]
    candidates: Candidates
    alpha: float
    trials: list[SparseTrial]
    parts: tuple[Part, ...]


def fit_sparse(
    kernels: list[Kernel],
    X: Any,
    observations: Observations,
    settings: Settings,
    judge_for: JudgeFor,
    rng: np.random.Generator,
) -> SparseFit:
    """Choose the kernel, alpha, the centers and their number, and solve.

    Of u points and c = min(u, 3000) candidates the last path costs O(u c² + c m² + u m²), and each kernel that is
    compared the same on at most 600, the best few on at most 1500 points.
    """
    trials = _compare(kernels, X, observations, settings, judge_for, rng) if len(kernels) > 1 else []
    kernel = min(trials, key=lambda trial: trial.best).kernel if trials else kernels[0]
    with limit_threads(None):
        return _finish(settings.widen(kernel), X, observations, settings, judge_for, trials, rng)


def _finish(
    kernels: tuple[Kernel, ...],
    X: Any,
    observations: Observations,
    settings: Settings,
    judge_for: JudgeFor,
    trials: list[SparseTrial],
    rng: np.random.Generator,
) -> SparseFit:
    """Alpha and centers on all points."""
    u = n_rows(X)
    pool = np.arange(u) if u <= POOL else np.sort(rng.choice(u, POOL, replace=False))
    candidates, points = Candidates(kernels, X, pool), Points.of(observations)
    choice = settings.choice
    in_gram_space = choice.selection == "gain" and choice.n_candidates is None and choice.penalty != "diagonal"
    sums = Sums.of(candidates, points) if in_gram_space else None
    question = _question(settings, observations, u, judge_for, np.arange(len(observations.Y)), rng)
    alpha = settings.alpha
    if alpha is None and choice.selection != "orthogonal":
        trial = try_kernel(candidates, observations, question, sums)
        alpha, trials = trial.alpha, [*trials, trial]
    every = list(range(points.Y.shape[1]))
    parts = tuple(
        _part(candidates, observations, targets, alpha, settings, judge_for, sums, rng)
        for targets in ([every] if settings.shared else [[t] for t in every])
    )
    return SparseFit(kernels, candidates, parts[0].steps.alpha[0], trials, parts)


def _part(
    candidates: Candidates,
    observations: Observations,
    targets: list[int],
    alpha: float | None,
    settings: Settings,
    judge_for: JudgeFor,
    sums: Sums | None,
    rng: np.random.Generator,
) -> Part:
    """One selection for some of the targets."""
    whole = len(targets) == observations.Y.shape[1]
    some = observations if whole else replace(observations, Y=observations.Y[:, targets])
    judge = judge_for(np.arange(len(observations.Y)), None if whole else targets)
    choice, points = settings.choice, Points.of(some)
    most = settings.longest(len(points.Y))
    order = choose_order(candidates, points, choice, alpha, most, rng, sums and sums.targets(targets))
    if len(order.centers) == 0:
        # No column differs from a constant: one center, which gets the coefficient zero.
        order, choice = (
            replace(order, centers=np.zeros(1, dtype=np.intp), alpha=None),
            replace(choice, penalty="coef"),
        )
        alpha = alpha or 1.0
    steps = _along(candidates, some, order.centers, alpha, order.alpha, choice)
    path, judgement = path_of(steps, some, choice.cost), judged(steps, some, judge)
    m = number_of_centers(path, settings.stop, settings.tolerance, judgement)
    steps = follow(candidates, some, steps.order[:m], float(steps.alpha[m - 1]), choice.penalty)
    if settings.prune:
        steps, m = _pruned(candidates, some, steps, settings, choice, judge)
    m = min(m, len(steps.order))
    loo = left_out(steps, state_at(steps, m), some)
    return Part(targets, path, *judgement, steps, m, solution_at(steps, some, m), loo, float(judge(loo[None])[0]))


def _along(
    candidates: Candidates,
    observations: Observations,
    order: Indices,
    alpha: float | None,
    alphas: Array | None,
    choice: Choice,
) -> Steps:
    """The fits along an order, with one alpha or with the one of each step."""
    if alphas is None or alpha is not None:
        return follow(candidates, observations, order, 1.0 if alpha is None else alpha, choice.penalty)
    return follow_orthogonal(candidates, observations, order, alphas)


def follow_orthogonal(candidates: Candidates, observations: Observations, order: Indices, alphas: Array) -> Steps:
    """Fits with the penalty on orthogonal coefficients, whose alpha changes from step to step."""
    points = Points.of(observations)
    K = candidates.columns(order)
    Q, R = np.linalg.qr(points.weighted(K))
    d = R.diagonal() ** 2
    V = np.linalg.solve(R / R.diagonal()[:, None], np.eye(len(R)))
    N = Q * R.diagonal()
    mean = points.weight @ K / points.weight.sum()
    return Steps(order, candidates.point(order), mean, alphas, N, np.triu(V), N.T @ points.target, d)


def _pruned(
    candidates: Candidates,
    observations: Observations,
    steps: Steps,
    settings: Settings,
    choice: Choice,
    judge: Judge,
) -> tuple[Steps, int]:
    """Fits along backward elimination, and how many centers of them are kept by the same rule."""
    back = follow(candidates, observations, prune(steps, len(steps.order)), float(steps.alpha[0]), choice.penalty)
    path = path_of(back, observations, choice.cost)
    m = number_of_centers(path, settings.stop, settings.tolerance, judged(back, observations, judge))
    return follow(candidates, observations, back.order[:m], float(steps.alpha[0]), choice.penalty), m


def _compare(
    kernels: list[Kernel],
    X: Any,
    observations: Observations,
    settings: Settings,
    judge_for: JudgeFor,
    rng: np.random.Generator,
) -> list[SparseTrial]:
    """All kernels on a part of the points; where that was not all, the best and its neighbors on a larger part."""
    u = n_rows(X)
    order = np.arange(u) if u <= SCREEN_POINTS else rng.permutation(u)
    question, part = _some_points(kernels[0], X, observations, order[:SCREEN_POINTS], settings, judge_for, rng)
    trials = search_kernels(kernels, *part, question)
    if u <= SCREEN_POINTS:
        return trials
    question, part = _some_points(kernels[0], X, observations, order[:FINAL_POINTS], settings, judge_for, rng)
    return _climb(kernels, int(np.argmin([trial.best for trial in trials])), part, question)


def _climb(
    kernels: list[Kernel], start: int, part: tuple[Any, Observations], question: Question
) -> list[SparseTrial]:
    """A kernel and its neighbors, and neighbors of the best of them until none is better."""
    tried: dict[int, SparseTrial] = {}
    wanted = {g for g in (start - 1, start, start + 1) if 0 <= g < len(kernels)}
    while wanted:
        found = search_kernels([kernels[g] for g in sorted(wanted)], *part, question)
        tried |= dict(zip(sorted(wanted), found))
        best = min(tried, key=lambda g: tried[g].best)
        wanted = {g for g in (best - 1, best + 1) if 0 <= g < len(kernels)} - tried.keys()
    return [tried[g] for g in sorted(tried)]


def _some_points(
    kernel: Kernel,
    X: Any,
    observations: Observations,
    chosen: Indices,
    settings: Settings,
    judge_for: JudgeFor,
    rng: np.random.Generator,
) -> tuple[Question, tuple[Any, Observations]]:
    """The question and the data at some of the points."""
    if len(chosen) == n_rows(X):
        rows = np.arange(len(observations.Y))
        return _question(settings, observations, n_rows(X), judge_for, rows, rng), (X, observations)
    chosen = np.sort(chosen)
    part, rows = observations.at_points(chosen)
    return _question(settings, part, len(chosen), judge_for, rows, rng), (take(kernel, X, chosen), part)


def _question(
    settings: Settings,
    observations: Observations,
    u: int,
    judge_for: JudgeFor,
    rows: Indices,
    rng: np.random.Generator,
) -> Question:
    seed, most = int(rng.integers(2**31)), settings.longest(u)
    return Question(settings.choice, most, settings.alpha, judge_for(rows, None), settings.by_gcv, seed)
