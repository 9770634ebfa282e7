"""A sparse fit: choice of kernel, alpha, centers and their number; then the coefficients."""

from dataclasses import dataclass, replace

import numpy as np

from mercer.kernels.base import Kernel
from mercer.solvers import Observations
from mercer.solvers.orthogonal.candidates import CandidateColumns, Points, SparsePenalty
from mercer.solvers.orthogonal.orders import Order, Sums, choose_order
from mercer.solvers.orthogonal.path import (
    SparsePath,
    SparseSolution,
    Steps,
    follow,
    follow_orthogonal,
    left_out,
    path_of,
    solution_at,
    state_at,
)
from mercer.solvers.orthogonal.prune import prune
from mercer.solvers.orthogonal.stop import Judgement, judged
from mercer.tuning.path import TuningPath
from mercer.tuning.sparse_kernels import KernelTrial, compare_kernels, favorite
from mercer.tuning.sparse_problem import COMPARED, SparseProblem
from mercer.types import Array


@dataclass(frozen=True)
class SparsePart:
    """One selection: its ``targets``, the path, the fit along the centers kept, leave-one-out outputs.

    ``otherwise`` are these outputs under the other meaning of weights, if that is in doubt.
    """

    targets: list[int]
    path: SparsePath
    steps: Steps
    m: int
    solution: SparseSolution
    loo: Array
    score: float
    otherwise: Array | None


@dataclass(frozen=True)
class SparseFit:
    """Candidates with the chosen kernel first, alpha, the comparisons, one part or one for each target.

    ``longest`` is the number of centers that a path may have.
    """

    candidates: CandidateColumns
    alpha: float
    paths: tuple[TuningPath, ...]
    parts: tuple[SparsePart, ...]
    longest: int

    @property
    def loo(self) -> Array:
        """Leave-one-out outputs (n, q), for all targets."""
        return np.column_stack([part.loo for part in self.parts])

    @property
    def otherwise(self) -> Array | None:
        """The same under the other meaning of weights; None without doubt."""
        found = [part.otherwise for part in self.parts if part.otherwise is not None]
        return np.column_stack(found) if found else None


def tune_sparse(kernel: Kernel, problem: SparseProblem, rng: np.random.Generator) -> SparseFit:
    """Choose kernel parameters, alpha, the centers and their number, and solve.

    Of u points and c candidates (all, but of more than 3000 points a random part) the last path costs O(u c² +
    c m² + u m²), and each of the best few kernels the same with u <= 6000, c <= 1500; these are found by fits with
    at most 240 random centers to at most 2000 points. First checks whether this stays within the budget.
    """
    u, settings = problem.n_points, problem.settings
    longest = settings.longest(u)
    problem.budget.require(settings.n_bytes(u), f"a path of {longest} centers on {u} rows")
    chosen, paths = compare_kernels(kernel, problem, rng)
    candidates = _candidates(settings.widen(chosen), problem, rng)
    sums = _sums(candidates, problem)
    alpha, paths = _alpha(candidates, sums, paths, problem, rng)
    every = list(range(problem.observations.Y.shape[1]))
    groups = [every] if settings.shared else [[target] for target in every]
    parts = tuple(_part(candidates, targets, alpha, sums, problem.for_targets(targets), rng) for targets in groups)
    return SparseFit(candidates, float(parts[0].steps.alpha[0]), paths, parts, longest)


def _candidates(kernels: tuple[Kernel, ...], problem: SparseProblem, rng: np.random.Generator) -> CandidateColumns:
    """All points, or this many at random."""
    u = problem.n_points
    most = problem.settings.pool(u, len(kernels))
    pool = np.arange(u) if u <= most else np.sort(rng.choice(u, most, replace=False))
    return CandidateColumns(kernels, problem.X, pool)


def _sums(candidates: CandidateColumns, problem: SparseProblem) -> Sums | None:
    """The sums for selection in Gram space, once for all alphas and targets."""
    rule = problem.settings.rule
    if rule.selection != "gain" or rule.n_candidates is not None or rule.penalty in ("diagonal", "orthogonal"):
        return None
    return Sums.of(candidates, Points.of(problem.observations))


def _alpha(
    candidates: CandidateColumns,
    sums: Sums | None,
    paths: tuple[TuningPath, ...],
    problem: SparseProblem,
    rng: np.random.Generator,
) -> tuple[float | None, tuple[TuningPath, ...]]:
    """The given alpha, None if it is re-estimated at each step, or the best on all points; with the comparison."""
    settings = problem.settings
    if settings.alpha is not None or settings.rule.penalty == "orthogonal":
        return settings.alpha, paths
    # With all points as candidates, kernels were compared for every alpha by the same fits.
    if not paths or problem.n_points > COMPARED[1] or len(candidates.kernels) > 1:
        paths = *paths, KernelTrial.drawn(problem, rng)(candidates, sums)
    return favorite(paths[-1], problem.observations.n_counted)[1], paths


def _part(
    candidates: CandidateColumns,
    targets: list[int],
    alpha: float | None,
    sums: Sums | None,
    problem: SparseProblem,
    rng: np.random.Generator,
) -> SparsePart:
    """One selection for the targets of the problem, which are those of these numbers."""
    settings, observations = problem.settings, problem.observations
    rule, most = settings.rule, settings.longest(problem.n_points)
    known = None if sums is None else sums.targets(targets)
    order = choose_order(candidates, Points.of(observations), rule, alpha, most, rng, known)
    if len(order.centers) == 0:
        # No column differs from a constant: one center, which gets the coefficient zero.
        order, rule = Order(np.zeros(1, dtype=np.intp)), replace(rule, penalty="coef")
    steps = _along(candidates, observations, order, alpha, rule.penalty)
    path = path_of(steps, observations, rule.cost)
    m = settings.kept(path, _judgement(steps, problem))
    kept = float(steps.alpha[m - 1])
    steps = follow(candidates, observations, steps.order[:m], kept, rule.penalty)
    if settings.prune:
        steps = _pruned(candidates, steps, kept, rule.penalty, problem)
    return _solved(steps, targets, path, problem)


def _solved(steps: Steps, targets: list[int], path: SparsePath, problem: SparseProblem) -> SparsePart:
    """The fit with all centers of the steps, and its leave-one-out outputs."""
    observations, m = problem.observations, len(steps.order)
    state, doubted = state_at(steps, m), observations.doubted
    loo = left_out(steps, state, observations)
    return SparsePart(
        targets=targets,
        path=path,
        steps=steps,
        m=m,
        solution=solution_at(steps, observations, m),
        loo=loo,
        score=float(problem.judge(loo[None])[0]),
        otherwise=None if doubted is None else left_out(steps, state, doubted),
    )


def _judgement(steps: Steps, problem: SparseProblem) -> Judgement:
    """The criterion along the steps."""
    criterion = problem.judge
    return judged(steps, problem.observations, criterion.losses, criterion.share)


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


def _pruned(
    candidates: CandidateColumns, steps: Steps, alpha: float, penalty: SparsePenalty, problem: SparseProblem
) -> Steps:
    """Fits along backward elimination, with as many centers as the same rule keeps."""
    settings, observations = problem.settings, problem.observations
    back = follow(candidates, observations, prune(steps, len(steps.order)), alpha, penalty)
    path = path_of(back, observations, settings.rule.cost)
    m = settings.kept(path, _judgement(back, problem))
    return follow(candidates, observations, back.order[:m], alpha, penalty)
