"""A sparse fit: choice of kernel, alpha, centers and their number; then the coefficients."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercer._fitting.selection.path import TuningPath
from mercer._fitting.sparse.kernels import KernelTrial, compare_kernels_by_paths, favorite
from mercer._fitting.sparse.problem import COMPARED_ROWS_AND_CANDIDATES, SparseProblem
from mercer._solvers import Observations
from mercer._solvers.orthogonal.candidates import CandidateColumns, Points, SparsePenalty
from mercer._solvers.orthogonal.folds import COMPARED_FOLDS, MANY_POINTS, SPARSE_FOLDS, Fold, folds_of, held_out
from mercer._solvers.orthogonal.orders import Sums, choose_order
from mercer._solvers.orthogonal.path import SparsePath, SparseSolution, Steps, along, follow, path_of, solution_at
from mercer._solvers.orthogonal.prune import prune
from mercer._solvers.orthogonal.stop import checkpoints, judged
from mercer._types import Array
from mercer.kernels._base import Kernel


@dataclass(frozen=True)
class SparsePart:
    """One selection: its ``targets``, the path, the fit along the centers kept, leave-one-out outputs.

    ``loo_opposite`` are these outputs under the opposite reading of weights, if they are ambiguous.
    """

    targets: list[int]
    path: SparsePath
    steps: Steps
    m: int
    solution: SparseSolution
    loo: Array
    score: float
    loo_opposite: Array | None


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
    def loo_opposite(self) -> Array | None:
        """The same under the opposite reading of weights; None: they are unambiguous."""
        found = [part.loo_opposite for part in self.parts if part.loo_opposite is not None]
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
    chosen, paths = compare_kernels_by_paths(kernel, problem, rng)
    candidates = _candidates(settings.widen(chosen), problem, rng)
    sums = _sums(candidates, problem)
    alpha, paths = _alpha(candidates, paths, problem, rng)
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
    paths: tuple[TuningPath, ...],
    problem: SparseProblem,
    rng: np.random.Generator,
) -> tuple[float | None, tuple[TuningPath, ...]]:
    """The given alpha, None if it is re-estimated at each step, or the best on all points; with the comparison."""
    settings = problem.settings
    if settings.alpha is not None or settings.reestimated:
        return settings.alpha, paths
    # With all points as candidates, kernels were compared for every alpha by the same fits.
    if not paths or problem.n_points > COMPARED_ROWS_AND_CANDIDATES[1] or len(candidates.kernels) > 1:
        paths = *paths, KernelTrial.drawn(problem, rng)(candidates)
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
    steps = along(candidates, observations, order, alpha, rule.penalty)
    folds = folds_of(
        candidates, observations, SPARSE_FOLDS if problem.n_points <= MANY_POINTS else COMPARED_FOLDS, rng
    )
    seed = int(rng.integers(2**31))

    def without(fold: Fold) -> Steps:
        order = fold.order(rule, alpha, settings.longest(fold.n_others), np.random.default_rng(seed))
        return along(fold.candidates, observations, order, alpha, rule.penalty)

    selection = _Selection(candidates, steps, rule.penalty if len(order.centers) else "coef", folds, without)
    path = path_of(steps, observations, rule.cost)
    selection, loo = _shortened(selection, path, problem)
    if settings.prune:
        selection = selection.backwards(observations)
        selection, loo = _shortened(selection, path_of(selection.steps, observations, rule.cost), problem)
    return _solved(selection.steps, targets, path, loo, problem)


@dataclass(frozen=True)
class _Selection:
    """Fits along the centers that were selected, and along those selected without each fold."""

    candidates: CandidateColumns
    steps: Steps
    penalty: SparsePenalty
    folds: list[Fold]
    without: Callable[[Fold], Steps]

    def first(self, m: int, observations: Observations) -> "_Selection":
        """Fits with the alpha of the first m centers, along these."""

        def cut(candidates: CandidateColumns, steps: Steps) -> Steps:
            p = min(m, len(steps.order))
            return follow(candidates, observations, steps.order[:p], float(steps.alpha[p - 1]), self.penalty)

        return self._changed(cut)

    def backwards(self, observations: Observations) -> "_Selection":
        """Fits along backward elimination: the center that matters most is the first."""

        def back(candidates: CandidateColumns, steps: Steps) -> Steps:
            order, alpha = prune(steps, len(steps.order)), float(steps.alpha[-1])
            return follow(candidates, observations, order, alpha, self.penalty)

        return self._changed(back)

    def _changed(self, change: Callable[[CandidateColumns, Steps], Steps]) -> "_Selection":
        """Other fits to all rows, and alike without each fold."""
        return replace(
            self,
            steps=change(self.candidates, self.steps),
            without=lambda fold: change(fold.candidates, self.without(fold)),
        )


def _shortened(selection: _Selection, path: SparsePath, problem: SparseProblem) -> tuple[_Selection, list[Array]]:
    """As many centers as the settings keep, and held-out outputs (n, q) for each reading of the weights."""
    settings, observations, criterion = problem.settings, problem.observations, problem.criterion
    readings = [observations, *([] if observations.opposite is None else [observations.opposite])]
    by_rows = settings.stop == "loo"
    numbers = checkpoints(len(path)) if by_rows else np.array([settings.kept(path, None)])
    along_folds = ((fold.rows, selection.without(fold)) for fold in selection.folds)
    outputs = held_out(along_folds, readings, numbers)
    m = int(numbers[0])
    if by_rows:
        judgement = judged(numbers, outputs[0], observations, criterion.losses, criterion.share)
        m = settings.kept(path, judgement)
    place = int(np.flatnonzero(numbers == m)[0])
    return selection.first(m, observations), [found[place] for found in outputs]


def _solved(
    steps: Steps, targets: list[int], path: SparsePath, loo: list[Array], problem: SparseProblem
) -> SparsePart:
    """The fit with all centers of the steps, and its held-out outputs."""
    m = len(steps.order)
    return SparsePart(
        targets=targets,
        path=path,
        steps=steps,
        m=m,
        solution=solution_at(steps, problem.observations, m),
        loo=loo[0],
        score=float(problem.criterion(loo[0][None])[0]),
        loo_opposite=loo[1] if len(loo) > 1 else None,
    )
