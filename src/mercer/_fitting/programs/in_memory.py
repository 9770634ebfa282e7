"""Kernel machines, from rows to a fitted function: kernel and alpha by leave-one-out, for any loss and penalty.

Kernels are compared by least-squares fits first, which cost least; then those that are best, and their neighbors,
by the machine itself on some of the rows. The path over alpha is computed once for all rows, with the logistic
loss by held-out folds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from mercer._expansion import Expansion
from mercer._fitting.memory import SearchStage
from mercer._fitting.notices import warn_of_constant, warn_of_equal_rows, warn_of_indefinite, warn_of_scales
from mercer._fitting.programs.folds import FEW_FOLDS, MachineFolds, WithoutFolds, has_folds, with_selections
from mercer._fitting.programs.problem import MachineAtAlpha, MachineColumns, MachineProblem, Select
from mercer._fitting.result import ChosenSolution, FitResult, ProgramDetails
from mercer._fitting.selection.comparison import ComparisonProblem, KernelComparison, compare_kernels
from mercer._fitting.selection.path import Trial, TuningPath
from mercer._fitting.selection.problem import ExactProblem, at_points
from mercer._fitting.selection.search import best_of, climb
from mercer._fitting.spec import FitSpec
from mercer._fitting.training import at_rows, training_of
from mercer._linalg import map_in_threads
from mercer._scores.targets import Targets
from mercer._scores.training_rows import Training, weighted_quantile
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.programs.leave_one_out.newton_steps import STEPPED_ROWS as MOST_STEPPED_ROWS
from mercer._solvers.programs.losses import (
    Loss,
)
from mercer._solvers.programs.program import CONVERGED_GAP
from mercer._types import Array, Indices
from mercer.centers import CandidateRows, Centers, Uniform
from mercer.centers._resolve import as_plan
from mercer.errors import NumericalWarning, warn
from mercer.kernels import Kernel
from mercer.kernels._base import grid_shape
from mercer.rows import Block
from mercer.rows._table import n_rows, take

# centers="auto" makes all rows centers up to these numbers: with the penalty of the norm, and with others.
MOST_PROGRAM_CENTERS, MOST_CANDIDATES = 1000, 2000
# The most rows on which kernels are compared by the machine itself.
MOST_ROWS_TO_COMPARE = 400
# Kernels with which that begins.
MOST_KERNELS = 3
# The standard deviation of normal noise over the median of its absolute values.
MEDIAN_TO_STD = 1.4826
# How rows are held out.
BY_FOLDS, BY_STEPS = "folds", "each row, by Newton steps"


def fit_machine(
    spec: FitSpec,
    targets: Targets,
    block: Block,
    rng: np.random.Generator,
    names: Sequence[str] | None = None,
) -> FitResult:
    """Choose kernel and alpha by leave-one-out, and solve; ``names`` of the features for warnings.

    Rows without weight are ignored in the fit, and thus always held out.
    """
    kernel = spec.kernel
    assert spec.loss is not None
    training, part, used = training_of(kernel, spec.weights, targets, block, None)
    warn_of_scales(kernel, part.X, names)
    points, observations = at_points(kernel, part.X, part.Y, part.weight, part.unit, part.opposite_unit)
    criterion_for = targets.criterion(training)
    exact = ExactProblem(
        X=points,
        observations=observations,
        criterion_for=lambda rows: criterion_for(used[rows]),
        alpha=None,
        penalty="rkhs",
        intercept=spec.intercept,
        budget=spec.budget,
        has_classes=targets.has_classes,
        verbose=spec.verbose,
    )
    compared = compare_kernels(kernel, exact, rng, try_single=False, first_stage_only=True)
    unscaled = targets.has_classes or not spec.loss.needs_scale
    losses = spec.loss.losses(np.ones(part.Y.shape[1]) if unscaled else _scale(compared, exact, rng))
    problem = _problem(spec, losses, replace(exact, alpha=spec.alpha), compared.kernel, rng)
    best, tried = _searched(compared, problem, rng)
    columns = best.columns
    found = best.with_opposite_loo(replace(columns, problem=problem).without_arcs(best.chosen))
    warn_of_indefinite(columns.kernel, columns.negative or 0.0)
    warn_of_equal_rows(columns.kernel, part.X)
    warn_of_constant(columns.kernel, block.X)
    _warn_of_gap(found)
    paths = (*compared.paths, *tried, _as_path([best.trial], n_rows(points), len(problem.centers)))
    fit = _concluded(found, targets, training, used, paths)
    return replace(fit, held_out=BY_FOLDS, criterion_value=best.trial.least) if best.by_folds else fit


@dataclass(frozen=True)
class Candidate:
    """A kernel with its columns, the ``folds`` that are held out if alpha is chosen by them, and the path."""

    columns: MachineColumns
    folds: MachineFolds | None
    path: Sequence[MachineAtAlpha] | Sequence[WithoutFolds]

    @classmethod
    def of(cls, problem: MachineProblem, kernel: Kernel) -> "Candidate":
        columns = problem.rounded.columns(kernel)
        folds = MachineFolds(columns) if has_folds(problem) else None
        columns = with_selections(columns) if folds is None else columns
        chosen = folds is not None and problem.exact.alpha is None
        return cls(columns, folds, folds.path() if folds is not None and chosen else columns.path())

    @property
    def by_folds(self) -> bool:
        """Whether held-out folds choose alpha."""
        return isinstance(self.path[0], WithoutFolds)

    @property
    def trial(self) -> Trial:
        return self.columns.trial(self.path)

    @cached_property
    def chosen(self) -> MachineAtAlpha:
        """The fit for the best alpha."""
        best = self.path[self.trial.alpha_position]
        if self.folds is not None and self.selects:
            return self.folds.fit(best.alpha, best if isinstance(best, WithoutFolds) else None)
        fits = [fit for fit in self.path if isinstance(fit, MachineAtAlpha)]
        return self.columns.chosen(fits) if fits else self.columns.fit(best.alpha)

    def with_opposite_loo(self, found: MachineAtAlpha) -> MachineAtAlpha:
        """The fit with outputs under the opposite reading of ambiguous weights, if targets select centers."""
        opposite_unit = self.columns.problem.observations.opposite_unit
        if self.folds is None or not self.selects or opposite_unit is None:
            return found
        return replace(
            found, loo_opposite=self.folds.outputs_without(found.alpha, opposite_unit)[self.columns.problem.row]
        )

    @property
    def selects(self) -> bool:
        """Whether targets select the centers."""
        return self.columns.problem.select is not None


def _problem(
    spec: FitSpec,
    losses: tuple[Loss, ...],
    exact: ExactProblem,
    kernel: Kernel,
    rng: np.random.Generator,
) -> MachineProblem:
    """The problem with its centers: all points, random ones of many, or what the user wants."""
    u = n_rows(exact.X)
    centers, others, select = _centers(spec, exact, kernel, rng)
    m = len(centers) if others is None else n_rows(others)
    n = len(exact.observations.Y)
    need = machine_bytes(u, n, m) + (FEW_FOLDS * columns_bytes(u, n, m) if select is not None else 0.0)
    spec.budget.require(need, f"a machine with {m} centers fitted to {n} rows")
    return MachineProblem(exact, losses, spec.penalty, spec.l1_share, centers, others, select)


def machine_bytes(u: int, n: int, m: int) -> float:
    """The memory of a machine with m centers for n rows at u points.

    Columns, copies around their means and scaled; their matrices; responses of rows to each other.
    """
    return columns_bytes(u, n, m) + 8.0 * (3.0 * n * m + 4.0 * m * m + 4.0 * min(n, MOST_STEPPED_ROWS) ** 2)


def columns_bytes(u: int, n: int, m: int) -> float:
    """The memory of m columns: kernel values at u points, columns for n rows, and back to coefficients."""
    return 8.0 * (u * m + n * m + m * m)


def _centers(
    spec: FitSpec, exact: ExactProblem, kernel: Kernel, rng: np.random.Generator
) -> tuple[Indices, Any, Select | None]:
    """Which points are centers, centers that are no points (None: there are none), and how targets select them."""
    u, requested = n_rows(exact.X), spec.centers
    most = MOST_PROGRAM_CENTERS if spec.penalty == "rkhs" else MOST_CANDIDATES
    auto = spec.centers_are_chosen
    if (auto and (u <= most or kernel.takes_values)) or spec.all_are_centers:
        return np.arange(u), None, None
    if isinstance(requested, Integral) and int(requested) >= u:
        return np.arange(u), None, None
    selector, m = (Uniform(), most) if auto else as_plan(requested, kernel, exact.X, u)
    given = exact.observations
    label = given.point_target.argmax(axis=1) if given.Y.shape[1] > 1 else (given.point_target[:, 0] > 0.0)
    number = label.astype(np.intp) if exact.has_classes else None

    def selected(weight: Array) -> Centers:
        return selector.select(kernel, CandidateRows(exact.X, given.point_target, weight, number), m, rng)

    def select(points: Indices) -> tuple[Indices, Any]:
        return _as_points(selected(np.where(np.isin(np.arange(u), points), given.point_weight, 0.0)))

    found = selected(given.point_weight)
    return *_as_points(found), None if found.path is None else select


def _as_points(found: Centers) -> tuple[Indices, Any]:
    """Which points are centers, and centers that are no points."""
    return (np.zeros(0, dtype=np.intp), found.rows) if found.indices is None else (np.sort(found.indices), None)


def _searched(
    compared: KernelComparison, problem: MachineProblem, rng: np.random.Generator
) -> tuple[Candidate, tuple[TuningPath, ...]]:
    """The best kernel with its path, by the machine itself on some rows, and what was compared.

    The search begins with kernels that least squares cannot distinguish.
    """
    kernels = compared.candidates
    if len(kernels) == 1:
        return Candidate.of(problem, compared.kernel), ()
    some, found = _some(problem, compared.kernel, rng), dict[int, Candidate]()

    def trial(g: int) -> Trial:
        found[g] = Candidate.of(some, kernels[g])
        return found[g].trial

    def trials_of(positions: list[int]) -> list[Trial]:
        return list(map_in_threads(trial, positions))

    tried = climb({compared.best, *compared.indistinguishable[:MOST_KERNELS]}, grid_shape(kernels), trials_of)
    path = _as_path([tried[g] for g in sorted(tried)], n_rows(some.exact.X), len(some.centers))
    best = best_of(tried)
    return found[best] if some is problem else Candidate.of(problem, kernels[best]), (path,)


def _some(problem: MachineProblem, kernel: Kernel, rng: np.random.Generator) -> MachineProblem:
    """The problem on some of the rows, all of which are centers; alpha counts for as many rows as there were."""
    u = n_rows(problem.exact.X)
    if u <= MOST_ROWS_TO_COMPARE:
        return problem
    points = np.sort(rng.permutation(u)[:MOST_ROWS_TO_COMPARE])
    share = float(problem.exact.observations.point_weight[points].sum() / problem.exact.observations.weight.sum())
    given = problem.exact.alpha
    exact = replace(problem.exact.at(kernel, points), alpha=None if given is None else given * share)
    return replace(problem, exact=exact, centers=np.arange(MOST_ROWS_TO_COMPARE), others=None, select=None)


def _scale(compared: KernelComparison, exact: ExactProblem, rng: np.random.Generator) -> Array:
    """The standard deviation (q,) of the noise without outliers: from leave-one-out residuals of least squares."""
    order = rng.permutation(n_rows(exact.X))
    comparison = ComparisonProblem.at(
        compared.kernel,
        exact,
        order,
        SearchStage(min(len(order), MOST_ROWS_TO_COMPARE), min(len(order), MOST_ROWS_TO_COMPARE)),
    )
    alpha = comparison.trials([compared.kernel])[0].alpha
    fits = comparison.nested(compared.kernel, comparison.values([compared.kernel])(compared.kernel)).first()
    given = comparison.problem.observations
    residual = given.Y - loo_outputs(fits, given, np.array([alpha]), None)[0]
    return noise_scale(residual, given.weight)


def noise_scale(residual: Array, weight: Array) -> Array:
    """The standard deviation (q,) of noise without its outliers, from residuals (n, q); 1 if there is no noise."""
    median = np.array([weighted_quantile(size, weight, 0.5) for size in np.abs(residual).T])
    deviation = np.sqrt(np.average(residual**2, axis=0, weights=weight))
    return np.asarray(np.where(median > 0.0, MEDIAN_TO_STD * median, np.where(deviation > 0.0, deviation, 1.0)))


def _as_path(trials: Sequence[Trial], n_points: int, n_centers: int) -> TuningPath:
    """Trials with different alphas, the missing ones NaN."""
    longest = max(len(trial.alphas) for trial in trials)

    def padded(values: Array) -> Array:
        return np.pad(values, (longest - len(values), 0), constant_values=np.nan)

    return TuningPath(
        kernels=[trial.kernel for trial in trials],
        alphas=np.stack([padded(trial.alphas) for trial in trials]),
        scores=np.stack([padded(trial.scores) for trial in trials]),
        n_points=n_points,
        n_centers=None if n_centers == n_points else n_centers,
    )


def _warn_of_gap(found: MachineAtAlpha) -> None:
    if found.gap > CONVERGED_GAP:
        warn(
            f"the program was not solved to {CONVERGED_GAP:.0e}: the duality gap is {found.gap:.1e} of the "
            "objective; raise alpha, or scale the targets",
            NumericalWarning,
        )


def _concluded(
    found: MachineAtAlpha,
    targets: Targets,
    training: Training,
    used: Indices,
    paths: tuple[TuningPath, ...],
) -> FitResult:
    """The fit with the centers that have coefficients, and outputs of all rows."""
    problem, kernel = found.columns.problem, found.columns.kernel
    coef = found.coef
    kept = np.flatnonzero(np.any(coef != 0.0, axis=1))
    # A constant needs no center, but a model has at least one.
    kept = np.arange(1) if len(kept) == 0 else kept
    if problem.others is None:
        first = problem.exact.observations.rows.first
        support = used[first[problem.centers[kept]]]
        centers = kernel.centers(training.X, support)
    else:
        support, centers = None, take(problem.others, kept)
    fitted = np.asarray(Expansion(kernel, centers, coef[kept], found.intercept)(training.X), dtype=np.float64)
    solution = ChosenSolution(
        kernel=kernel,
        alpha=found.alpha,
        coef=coef[kept],
        intercept=found.intercept,
        fitted=fitted,
        loo=at_rows(fitted, used, found.loo),
        degrees_of_freedom=found.degrees_of_freedom,
        paths=paths,
        loo_opposite=None if found.loo_opposite is None else at_rows(fitted, used, found.loo_opposite),
        negative=found.columns.negative,
    )
    status = max(found.solutions, key=lambda each: each.gap).status
    return FitResult(
        solution,
        training,
        index=np.arange(len(fitted)),
        targets=targets,
        centers=centers,
        support=support,
        n_rows=len(fitted),
        criterion_value=found.criterion,
        held_out=BY_STEPS,
        selected="rows with coefficients",
        program=ProgramDetails(problem.losses, found.gap, status),
    )
