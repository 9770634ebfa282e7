"""The fit with every row as a center: kernel and penalty by exact leave-one-out.

Kernels are compared with few centers; the best is fitted to all rows. Few points: one eigendecomposition for all
alphas. More: a Cholesky factor for each of a few alphas around the best one of the comparison.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer._expansion import Expansion
from mercer._fitting.class_probabilities import LogisticProblem, with_logits, without_logits
from mercer._fitting.kernel_learning.evidence import LearnedKernel, LearningData
from mercer._fitting.kernel_learning.learn import learn_kernel
from mercer._fitting.kernel_learning.relevance import Features
from mercer._fitting.memory import (
    BLAS_BUFFER,
    SINGULAR_HELD,
    InputsForCenters,
    MemoryInputs,
    alphas_at_once,
    check_exact,
    exact_threads,
)
from mercer._fitting.notices import warn_of_indefinite, warn_of_scales
from mercer._fitting.result import ChosenSolution, FitResult, LogitSolution, held_out_words
from mercer._fitting.selection.all_points import FitsByAlpha, extent_of, is_definite, root_fit, trial_at_all_points
from mercer._fitting.selection.alpha import alphas_to_try, choose_alpha, choose_near
from mercer._fitting.selection.comparison import ComparisonProblem, KernelComparison, compare_kernels
from mercer._fitting.selection.path import ALPHAS, Trial, path_of
from mercer._fitting.selection.problem import ExactProblem, at_points
from mercer._fitting.selection.search import best_of, climb
from mercer._fitting.spec import FitSpec, SecondFit
from mercer._fitting.training import at_rows, inputs_before_sample, training_of, warn_of_fit
from mercer._gram import gram
from mercer._gram.blocks import MATRICES_HELD
from mercer._linalg import blas_threads, limit_threads
from mercer._linalg.threads import INTERRUPTIBLE_ROWS, at_most
from mercer._scores.targets import ClassTargets, Targets
from mercer._scores.training_rows import Folds, Training
from mercer._solvers import decompose
from mercer._solvers.exact_fits import SpectrumFit
from mercer._solvers.leave_one_out import loo_outputs
from mercer._types import Array, Indices
from mercer.errors import NumericalError
from mercer.kernels._base import Kernel, grid_shape
from mercer.rows import Block, MemoryRows
from mercer.rows._progress import progress, stage
from mercer.rows._table import n_rows, take

# Up to this number of points two Cholesky factors of all cost less than a decomposition with a third of them as
# centers.
MOST_TO_CLIMB = 2000
# The number of centers with which it is found what relevances that were learned without a row change.
CENTERS_OF_CHANGES = 600


@dataclass(frozen=True)
class ExactFit:
    """A fit with every distinct row as a center; rows of a fold are held out together.

    Rows without weight, all but those of number ``used``, are ignored in the fit, and thus always held out; with
    folds, together with the rest of theirs. ``inputs_for`` gives the memory of fits with fewer centers;
    ``learned`` is what the kernel had to learn, None: nothing; ``logits``: whether a second fit may give the
    probabilities.
    """

    kernel: Kernel
    targets: Targets
    training: Training
    weighted: Training
    used: Indices
    problem: ExactProblem
    inputs_for: InputsForCenters
    logits: SecondFit
    names: Sequence[str] | None = None
    learned: LearnedKernel | None = None

    @classmethod
    def of(
        cls,
        spec: FitSpec,
        targets: Targets,
        block: Block,
        folds: Folds | None,
        names: Sequence[str] | None = None,
    ) -> "ExactFit":
        """The fit to a block of rows; ``names`` of its features for warnings, None: their numbers."""
        training, weighted, used = training_of(spec.kernel, spec.weights, targets, block, folds)
        X, Y, opposite_unit = weighted.X, weighted.Y, weighted.opposite_unit
        points, observations = at_points(spec.kernel, X, Y, weighted.weight, weighted.unit, opposite_unit)
        criterion_for = targets.criterion(training)
        problem = ExactProblem(
            X=points,
            observations=observations,
            criterion_for=lambda rows: criterion_for(used[rows]),
            alpha=spec.alpha,
            penalty=spec.norm,
            intercept=spec.intercept,
            budget=spec.budget,
            fold=weighted.fold,
            weightless_folds=() if folds is None else tuple(np.unique(folds.fold[training.weight == 0]).tolist()),
            has_classes=targets.has_classes,
            verbose=spec.verbose,
        )
        q, rows = training.Y.shape[1], MemoryRows(block.X)

        def inputs_for(centers: int | str) -> MemoryInputs:
            asked = replace(spec, centers=centers)
            return inputs_before_sample(asked, block.X, q, block.n_rows, targets.has_classes, rows).with_labels

        return cls(spec.kernel, targets, training, weighted, used, problem, inputs_for, spec.logits, names)

    @property
    def is_within_budget(self) -> bool:
        """Whether the fit stays within the budget."""
        return extent_of(self.kernel, self.problem).n_bytes(1) <= self.problem.budget.n_bytes

    @cached_property
    def _prepared(self) -> ExactProblem:
        """The problem with rows that the kernel prepares once for the whole fit, if there is memory for them."""
        if not self.is_within_budget:
            return self.problem
        prepared = replace(self, problem=replace(self.problem, X=self.kernel.prepared(self.problem.X)))
        return prepared.problem if prepared.is_within_budget else self.problem

    def with_learned(
        self, features: Features | None, rng: np.random.Generator, best: Kernel | None = None
    ) -> "ExactFit":
        """With what the kernel learns from the rows with weight; ``best`` is the kernel chosen before.

        Rows and parts are drawn in the order of their contents, so that the order of the rows does not matter.
        """
        weighted, problem = self.weighted, self.problem
        order = np.lexsort((weighted.weight, *weighted.Y.T, problem.observations.rows.point))
        learned = learn_kernel(
            self.kernel,
            features,
            LearningData(weighted.X, weighted.Y, weighted.weight, weighted.fold).some(order),
            rng,
            problem.budget,
            has_classes=problem.has_classes,
            most=len(weighted.Y),
            verbose=problem.verbose,
            best=best,
        )
        learned = learned.of_rows(learned.part[np.argsort(order)])
        return replace(self, kernel=learned.applied, learned=learned)

    def compare(self, rng: np.random.Generator, *, count_centers: bool = False) -> KernelComparison:
        """The best kernel, and how many centers are enough, if asked for; a fit too large is an error."""
        kernel, problem = self.kernel, self._prepared
        warn_of_scales(kernel, self.weighted.X, self.names)
        check_exact(extent_of(kernel, problem), problem.budget, self.inputs_for, auto=not kernel.takes_values)
        u, definite = n_rows(problem.X), is_definite(kernel, problem)
        with _besides_blas_buffers(kernel, problem) as within:
            return compare_kernels(
                kernel,
                within,
                rng,
                try_single=count_centers or (problem.alpha is None and u > INTERRUPTIBLE_ROWS),
                count_centers=count_centers,
                first_stage_only=definite and u <= MOST_TO_CLIMB and not count_centers,
            )

    def solve(self, compared: KernelComparison) -> ChosenSolution:
        """Choose alpha for the best kernel, and solve."""
        solution = fit_compared(compared, self._prepared)
        if self.learned is None or not self.learned.is_new:
            return solution
        loo = self._without_own_part(solution, self.learned)
        return replace(solution, loo=loo, loo_of_kernel=solution.loo)

    def conclude(self, solution: ChosenSolution) -> FitResult:
        """The fit, with warnings of what may be wrong with it."""
        training, used, observations = self.training, self.used, self.problem.observations
        solution = self._with_logits(solution)
        warn_of_indefinite(solution.kernel, solution.negative or 0.0)
        warn_of_fit(self.weighted.X, solution)
        support = used[observations.rows.first]
        centers = self.kernel.centers(training.X, support)
        if len(used) < len(training.Y):
            solution = _at_all_rows(solution, training, used, centers)
        n = len(training.Y)
        return FitResult(
            solution,
            training,
            index=np.arange(n),
            targets=self.targets,
            centers=centers,
            support=support,
            n_rows=n,
            criterion_value=solution.least,
            held_out=held_out_words(training.fold, n, n),
            selected="the distinct rows",
            observations=observations,
            learned=self.learned,
        )

    def _with_logits(self, solution: ChosenSolution) -> ChosenSolution:
        """With functions for the probabilities, if they are asked for and better."""
        targets, used, learned = self.targets, self.used, self.learned
        if not self.logits.asked or not isinstance(targets, ClassTargets):
            return solution
        log_loss, kernel, group = targets.log_loss(self.training), solution.kernel, self.weighted.group
        given = LogisticProblem(self._prepared, lambda rows: log_loss(used[rows]), kernel, self.logits, group)
        if given.obstacle is not None:
            return without_logits(solution, given.obstacle)
        parts = [] if learned is None else learned.kernels_without(solution.kernel, self.problem.X)
        without = [(kernel, np.flatnonzero(learned.part == f)) for f, kernel in enumerate(parts) if learned]
        return with_logits(solution, given, without)

    def score_of(self, solution: ChosenSolution) -> float:
        """The criterion of its leave-one-out outputs."""
        return float(self.problem.criterion(solution.loo[None])[0])

    def _without_own_part(self, solution: ChosenSolution, learned: LearnedKernel) -> Array:
        """Leave-one-out outputs (n, q) of each row with the kernel that was learned without its part.

        Of many rows, what fits with few centers change by that kernel is added.
        """
        loo, known = solution.loo.copy(), np.zeros(())
        outputs = partial(self._loo_with, solution.alpha)
        if n_rows(self.problem.X) > MOST_TO_CLIMB:
            outputs = partial(self._loo_with_few_centers, solution.alpha)
            known = solution.loo - outputs(solution.kernel)
        for f, kernel in enumerate(learned.kernels_without(solution.kernel, self.problem.X)):
            rows = learned.part == f
            loo[rows] = (known + outputs(kernel))[rows]
        return loo

    def _loo_with(self, alpha: float, kernel: Kernel) -> Array:
        """Leave-one-out outputs (n, q) of a kernel."""
        return fit_compared(KernelComparison([kernel]), replace(self.problem, alpha=alpha)).loo

    def _loo_with_few_centers(self, alpha: float, kernel: Kernel) -> Array:
        """The same of a fit with a few hundred centers."""
        problem = self.problem
        centers = np.random.default_rng(0).permutation(n_rows(problem.X))[:CENTERS_OF_CHANGES]
        comparison = ComparisonProblem(problem, centers, None)
        fit = comparison.nested(kernel, comparison.values([kernel])(kernel)).first()
        outputs: Array = loo_outputs(fit, problem.observations, np.array([alpha]), problem.fold)[0]
        return outputs


def _at_all_rows(solution: ChosenSolution, training: Training, used: Indices, centers: Any) -> ChosenSolution:
    """Outputs of all rows, also of those without weight, at which f is evaluated, by folds without their fold."""
    fitted = Expansion(solution.kernel, centers, solution.coef, solution.intercept)(training.X).astype(np.float64)
    loo = fitted.copy()
    for f, model in solution.fold_models.items():
        rows = np.flatnonzero((training.weight == 0) & (training.fold == f))
        loo[rows] = Expansion(solution.kernel, centers, model.coef, model.intercept)(take(training.X, rows))
    loo_opposite = None if solution.loo_opposite is None else loo.copy()
    if loo_opposite is not None:
        loo_opposite[used] = solution.loo_opposite
    fitted[used], loo[used] = solution.fitted, solution.loo
    logits = None if solution.logits is None else _logits_at_all_rows(solution, training, used, centers)
    return replace(solution, fitted=fitted, loo=loo, loo_opposite=loo_opposite, logits=logits)


def _logits_at_all_rows(
    solution: ChosenSolution, training: Training, used: Indices, centers: Any
) -> LogitSolution:
    """Logits of all rows, in the same way."""
    logits = solution.logits
    assert logits is not None
    outputs = Expansion(solution.kernel, centers, logits.coef, logits.intercept)(training.X).astype(np.float64)
    opposite = logits.loo_opposite
    loo_opposite = None if opposite is None else at_rows(outputs, used, opposite)
    return replace(logits, loo=at_rows(outputs, used, logits.loo), loo_opposite=loo_opposite)


def fit_compared(compared: KernelComparison, problem: ExactProblem) -> ChosenSolution:
    """The fit with every point as a center, when kernels were compared."""
    chooses_alpha = compared.alpha is None and problem.alpha is None
    with _besides_blas_buffers(compared.kernel, problem) as within:
        if chooses_alpha or not is_definite(compared.kernel, within):
            return _by_spectrum(compared, within)
        compared_again, fits_by_alpha = _compare_at_all_points(compared, within)
        # The penalty may be too small, or the kernel not what it says: the spectrum shows what is rounding error.
        with suppress(NumericalError):
            return _by_roots(compared_again, within, fits_by_alpha)
        return _by_spectrum(compared_again, within)


@contextmanager
def _besides_blas_buffers(kernel: Kernel, problem: ExactProblem) -> Iterator[ExactProblem]:
    """The problem with the memory that the threads of BLAS leave, on as many threads as there is memory for."""
    threads = exact_threads(extent_of(kernel, problem), problem.budget.n_bytes, blas_threads())
    with at_most(threads):
        yield replace(problem, budget=problem.budget.less((threads - 1) * BLAS_BUFFER))


def _compare_at_all_points(
    compared: KernelComparison, problem: ExactProblem
) -> tuple[KernelComparison, FitsByAlpha]:
    """Kernels compared with all points as centers, if more centers matter and points are not too many.

    Also returns the fits of the best kernel, for alphas around that of the result.
    """
    if len(compared.candidates) == 1 or not compared.for_all_points or n_rows(problem.X) > MOST_TO_CLIMB:
        return compared, {}
    alphas = {g: trial.alpha for g, trial in compared.for_all_points.items()}
    tried: dict[int, Trial] = {}
    fits: dict[int, FitsByAlpha] = {}

    def trials_of(some: list[int]) -> list[Trial]:
        # The penalty of the best kernel so far is a good one for its neighbors.
        alphas.update({g: tried[best_of(tried)].alpha for g in some if g not in alphas})
        words = f"comparison of kernels on {n_rows(problem.X):,} rows"
        with progress(words, len(some), verbose=problem.verbose, unit="kernels") as advance:
            for g in some:
                tried[g], fits[g] = trial_at_all_points(compared.candidates[g], alphas[g], problem)
                advance(1)
        return [tried[g] for g in some]

    climb(set(alphas), grid_shape(compared.candidates), trials_of)
    best = best_of(tried)
    path = path_of((tried[g] for g in sorted(tried)), n_rows(problem.X), None)
    return replace(compared, best=best, alpha=alphas[best], paths=(*compared.paths, path)), fits[best]


def _by_roots(compared: KernelComparison, problem: ExactProblem, fits_by_alpha: FitsByAlpha) -> ChosenSolution:
    """Few alphas, one Cholesky factor each unless their fits were found before."""
    fits = root_fit(compared.kernel, problem, fits_by_alpha)
    matrix = fits.projected
    start = compared.alpha if problem.alpha is None else problem.alpha
    assert start is not None
    most = ALPHAS[-1] * matrix.trace if problem.alpha is None else problem.alpha
    if most <= matrix.least_alpha:
        raise _too_small(most)
    words = f"Cholesky factors and leave-one-out of {n_rows(problem.X):,} rows"
    with progress(words, None, verbose=problem.verbose, unit="alphas") as advance:
        solution = choose_near(
            compared.kernel,
            replace(fits, advance=advance),
            max(start, matrix.least_alpha),
            problem.criterion,
            given=problem.alpha is not None,
            bounds=(max(matrix.least_alpha, ALPHAS[0] * matrix.trace), most),
            n_points=n_rows(problem.X),
            paths=compared.paths,
            down=n_rows(problem.X) > MOST_TO_CLIMB,
        )
    if problem.alpha is None and solution.alpha <= matrix.least_alpha:
        # Kernel values in float32: the best alpha may be smaller.
        raise _too_small(solution.alpha)
    problem.budget.release()
    return replace(solution, fold_models=fits.fold_models(problem.weightless_folds, solution.alpha, solution.loo))


def _too_small(alpha: float) -> NumericalError:
    return NumericalError(
        f"alpha={alpha:.1e} is too close to rounding errors of kernel values for a Cholesky factor; raise it"
    )


def _by_spectrum(compared: KernelComparison, problem: ExactProblem) -> ChosenSolution:
    """All alphas from one eigendecomposition."""
    with limit_threads(1):
        matrices = SINGULAR_HELD if problem.penalty == "coef" else MATRICES_HELD
        K = gram(compared.kernel, problem.X, budget=problem.budget, matrices=matrices)
        weight = problem.observations.point_weight
        with stage(f"decomposition of {len(K):,} rows", verbose=problem.verbose):
            spectrum = decompose(K, weight, penalty=problem.penalty, intercept=problem.intercept)
        del K
        fits = SpectrumFit(spectrum, problem.observations, problem.fold)
        at_once = alphas_at_once(problem.extent, problem.budget.n_bytes)
        with stage(f"leave-one-out of {n_rows(problem.X):,} rows", verbose=problem.verbose):
            solution = choose_alpha(
                compared.kernel,
                fits,
                alphas_to_try(problem.alpha, spectrum.trace),
                problem.criterion,
                at_once=at_once,
                n_points=n_rows(problem.X),
                recompute_loo=True,
                paths=compared.paths,
                release=problem.budget.release,
            )
        weightless, loo = problem.weightless_folds, solution.loo
        return replace(solution, fold_models=fits.fold_models(weightless, solution.alpha, loo))
