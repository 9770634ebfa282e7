"""Sparse fits, from rows to a fitted function: equal rows are merged, and outputs of all rows computed."""

import numpy as np

from mercer._expansion import expansion_of
from mercer._fitting.notices import warn_of_constant, warn_of_equal_rows
from mercer._fitting.result import ChosenSolution, FitResult, SparseDetails
from mercer._fitting.selection.problem import at_points
from mercer._fitting.sparse.paths import SparseFit, SparsePart, tune_sparse
from mercer._fitting.sparse.problem import SparseProblem, SparseSettings
from mercer._fitting.spec import FitSpec
from mercer._fitting.training import at_rows, training_of
from mercer._scores.targets import Targets
from mercer._solvers import Observations
from mercer._solvers.orthogonal.stages import SparseStage, staged
from mercer._types import Indices
from mercer.rows import Block
from mercer.rows._table import n_rows


def fit_sparse(spec: FitSpec, targets: Targets, block: Block, rng: np.random.Generator) -> FitResult:
    """Choose kernel, penalty, centers and their number by leave-one-out, and solve.

    Rows without weight are ignored in the fit, and thus always held out.
    """
    kernel, settings = spec.kernel, spec.sparse
    assert settings is not None
    training, part, used = training_of(kernel, spec.weights, targets, block, None)
    points, observations = at_points(kernel, part.X, part.Y, part.weight, part.unit, part.opposite_unit)
    criterion_for = targets.criterion(training)
    problem = SparseProblem(
        points, observations, lambda some, columns=None: criterion_for(used[some], columns), settings, spec.budget
    )
    fit = tune_sparse(kernel, problem, rng)
    kernels = fit.candidates.kernels
    warn_of_equal_rows(kernels[0], part.X)
    warn_of_constant(kernels[0], block.X)
    chosen = _chosen(fit)
    stages = tuple(_stage(part, chosen, observations) for part in fit.parts)
    coef, intercept = staged(stages, len(chosen), len(chosen), training.Y.shape[1])
    number = fit.candidates.kernel_number(chosen)
    support = used[observations.rows.first[fit.candidates.point(chosen)]]
    centers = kernel.centers(block.X, support)
    fitted = np.asarray(expansion_of(kernels, number, centers, coef, intercept)(block.X), dtype=np.float64)
    paths = tuple(part.path for part in fit.parts)
    solution = ChosenSolution(
        kernel=kernels[0],
        alpha=fit.alpha,
        coef=coef,
        intercept=intercept,
        fitted=fitted,
        loo=at_rows(fitted, used, fit.loo),
        degrees_of_freedom=max(map(_degrees_of_freedom, fit.parts)),
        paths=fit.paths,
        loo_opposite=None if fit.loo_opposite is None else at_rows(fitted, used, fit.loo_opposite),
    )
    longest = max(map(len, paths))
    end = _end(settings, fit, n_rows(points))
    return FitResult(
        solution,
        training,
        targets=targets,
        index=np.arange(len(fitted)),
        centers=centers,
        support=support,
        n_rows=len(fitted),
        criterion_value=float(np.mean([part.score for part in fit.parts])),
        held_out="each row, with centers selected without it",
        selected=f"by {settings.rule.selection}, {'all ' if end else ''}of a path of {longest}{end}",
        sparse=SparseDetails(kernels, number, paths, stages),
    )


def _chosen(fit: SparseFit) -> Indices:
    """Numbers (m,) of the candidates selected by some part, once each, grouped by kernel."""
    chosen = np.array(
        list(dict.fromkeys(int(j) for part in fit.parts for j in part.solution.order)), dtype=np.intp
    )
    return chosen[np.argsort(fit.candidates.kernel_number(chosen), kind="stable")]


def _stage(part: SparsePart, chosen: Indices, observations: Observations) -> SparseStage:
    position = {int(j): i for i, j in enumerate(chosen)}
    where = np.array([position[int(j)] for j in part.solution.order], dtype=np.intp)
    mean = observations.point_weight @ observations.point_target[:, part.targets] / observations.weight.sum()
    steps, m = part.steps, part.m
    return SparseStage(where, part.targets, steps.V[:m, :m], steps.zeta[:m], steps.kernel_mean[:m], mean)


def _degrees_of_freedom(part: SparsePart) -> float:
    return float(part.path.degrees_of_freedom[min(part.m, len(part.path)) - 1])


def _end(settings: SparseSettings, fit: SparseFit, n_points: int) -> str:
    """Why there are no more centers, if a whole path was kept."""
    whole = [len(part.path) for part in fit.parts if part.m == len(part.path)]
    if not whole or settings.stop is None:
        return ""
    if fit.longest == n_points or max(whole) < fit.longest:
        return ": no other row would improve it"
    return f": stop={settings.stop!r} would select more; raise max_centers above {fit.longest}"
