"""Input and result of every fit; the fit with every row as a center."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from mercer.centers import Given, Uniform
from mercer.centers.resolve import EXACT_ROWS, as_plan, requested_centers
from mercer.expansion import Expansion
from mercer.kernels import Kernel
from mercer.linalg import blas_threads
from mercer.rows import Block, Meaning, MemoryRows, Rows, Tally, reading_of
from mercer.rows.base import LocalRows
from mercer.rows.sampling.random_sample import ROWS_OF_EACH_LABEL
from mercer.rows.sampling.row_matching import weight_of
from mercer.rows.table import in_single, n_rows, take
from mercer.rows.virtual import rows_for_each
from mercer.scores.targets import Targets
from mercer.scores.training_rows import Folds, Training
from mercer.tuning.checks import (
    warn_of_constant,
    warn_of_equal_rows,
    warn_of_indefinite,
    warn_of_lost_digits,
    warn_of_scales,
)
from mercer.tuning.compare import Compared
from mercer.tuning.evidence import Evidence, Learned
from mercer.tuning.exact import compare_exact, fit_compared, fits_exact
from mercer.tuning.learn import learn
from mercer.tuning.memory import SEVERAL, FewCenters, Load, blocks_of, row_bytes, rows_left_out
from mercer.tuning.one_pass import Choice
from mercer.tuning.path import ALPHAS
from mercer.tuning.problem import ExactProblem, at_points
from mercer.tuning.relevance import Features
from mercer.tuning.result import ChosenSolution, FitResult, held_out
from mercer.tuning.spec import FitSpec
from mercer.types import Array, Indices

EVERY_ROW = 2**62


@dataclass(frozen=True)
class ExactFit:
    """A fit with every distinct row as a center; rows of a fold are held out together.

    Rows without weight, all but those of number ``used``, are ignored in the fit, and thus always held out; with
    folds, together with the rest of theirs. ``few`` gives the memory of fits with fewer centers; ``learned`` is
    what the kernel had to learn, None: nothing.
    """

    kernel: Kernel
    targets: Targets
    training: Training
    part: Training
    used: Indices
    problem: ExactProblem
    few: FewCenters
    names: Sequence[str] | None = None
    learned: Learned | None = None

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
        training, part, used = training_of(spec.kernel, spec.weights, targets, block, folds)
        unused = training.weight == 0
        points, observations = at_points(spec.kernel, part.X, part.Y, part.weight, part.unit, part.doubt)
        criterion = targets.criterion(training)
        problem = ExactProblem(
            X=points,
            observations=observations,
            criterion=lambda rows: criterion(used[rows]),
            alpha=spec.alpha,
            penalty=spec.norm,
            intercept=spec.intercept,
            budget=spec.budget,
            fold=part.fold,
            apart=() if folds is None else tuple(np.unique(folds.fold[unused]).tolist()),
            classes=targets.has_classes,
            verbose=spec.verbose,
        )
        few = _few(spec, training.Y.shape[1], block, targets.has_classes)
        return cls(spec.kernel, targets, training, part, used, problem, few, names)

    @property
    def fits(self) -> bool:
        """Whether the fit stays within the budget."""
        return fits_exact(self.kernel, self.problem)

    @cached_property
    def _prepared(self) -> ExactProblem:
        """The problem with rows that the kernel prepares once for the whole fit, if there is memory for them."""
        if not self.fits:
            return self.problem
        problem = replace(self.problem, X=self.kernel.prepared(self.problem.X))
        return problem if fits_exact(self.kernel, problem) else self.problem

    def with_learned(self, features: Features | None, rng: np.random.Generator) -> "ExactFit":
        """With what the kernel learns from the rows with weight."""
        part, problem = self.part, self.problem
        learned = learn(
            self.kernel,
            features,
            Evidence(part.X, part.Y, part.weight, part.fold),
            rng,
            problem.budget,
            classes=problem.classes,
            most=len(part.Y),
            verbose=problem.verbose,
        )
        return replace(self, kernel=learned.applied, learned=learned)

    def compare(self, rng: np.random.Generator, *, count: bool = False) -> Compared:
        """The best kernel, and how many centers are enough (``count``)."""
        warn_of_scales(self.kernel, self.part.X, self.names)
        return compare_exact(self.kernel, self._prepared, rng, self.few, count=count)

    def fit(self, compared: Compared) -> FitResult:
        """Choose alpha for the best kernel, and solve."""
        training, used, observations = self.training, self.used, self.problem.observations
        solution = fit_compared(compared, self._prepared)
        if self.learned is not None:
            solution = replace(solution, loo=self._without_own_part(solution, self.learned))
        warn_of_indefinite(solution.kernel, solution.negative or 0.0)
        warn_of_fit(self.part.X, solution)
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
            held_out=held_out(training.fold, n, n),
            selected="the distinct rows",
            observations=observations,
            learned=self.learned,
        )

    def _without_own_part(self, solution: ChosenSolution, learned: Learned) -> Array:
        """Leave-one-out outputs (n, q) of each row with the kernel that was learned without its part."""
        loo = solution.loo.copy()
        for f, kernel in enumerate(learned.kernels_without(solution.kernel, self.problem.X)):
            rows = learned.part == f
            alone = fit_compared(Compared([kernel]), replace(self.problem, alpha=solution.alpha))
            loo[rows] = alone.loo[rows]
        return loo


def training_of(
    kernel: Kernel,
    weights: Meaning,
    targets: Targets,
    block: Block,
    folds: Folds | None,
) -> tuple[Training, Training, Indices]:
    """The rows of a block with their targets, those of them that have weight, and their positions."""
    encoded = targets.encode(block)
    reading = reading_of(weights, Tally.of(block.weight, block.n_rows))
    fold, group = (None, None) if folds is None else (folds.fold, folds.group)
    training = Training(encoded.X, encoded.y, weight_of(encoded), weight_of(block), reading, fold, group=group)
    part, used = training.used(kernel)
    check_enough(part)
    return training, part, used


def at_rows(fitted: Array, used: Indices, outputs: Array) -> Array:
    """Outputs (n, q) of all rows: those of the rows with weight, and fitted ones (n, q) of the others."""
    every = fitted.copy()
    every[used] = outputs
    return every


def load_of(
    spec: FitSpec,
    X: Any,
    q: int,
    sample: int,
    held_out: int,
    n: int,
    classes: bool,
    rows: Rows | None,
    known: Choice | None = None,
) -> Load:
    """What the memory of a fit depends on: n rows like X (None: not known yet) with q targets, of which ``sample``
    are held and ``held_out`` of them held out.
    """
    kernel, copies = spec.kernel, rows_for_each(spec.copies)
    sample, n = copies * sample, copies * n
    selector, n_centers = as_plan(spec.centers, kernel, X, n)
    if known is not None:
        # Kernel and centers are those of the first rows, however many were added since.
        kernel, selector, n_centers = known.kernel, Given(known.centers.rows), n_rows(known.centers.rows)
    auto = isinstance(spec.centers, str) and spec.centers == "auto" and known is None
    if spec.copies is not None:
        # Copies are good centers, and targets cannot select among them: a candidate explains its own copies best.
        selector = Uniform() if isinstance(spec.centers, Integral) else selector
    if auto and n <= EXACT_ROWS and (spec.copies or spec.tangents):
        n_centers = n
    return Load(
        row=0.0 if X is None else row_bytes(X),
        sample=sample,
        left=held_out,
        q=q,
        n_centers=n_centers,
        selector=selector,
        threads=blas_threads(),
        n=n,
        item=4 if in_single(X) else 8,
        classes=classes,
        kernels=1 if kernel.resolved else SEVERAL,
        alphas=len(ALPHAS) if spec.alpha is None else 1,
        copied=isinstance(rows, LocalRows) and not isinstance(getattr(rows, "X", None), np.ndarray),
        blocks=blocks_of(kernel, X),
        floor=0 if known is not None else 2 * requested_centers(spec.centers),
        least=ROWS_OF_EACH_LABEL * max(q, 2) if classes else 0,
        usual=n_centers if auto else None,
    )


def n_held_out(spec: FitSpec, q: int, size: int) -> int:
    """How many of the drawn rows leave-one-out uses for q targets."""
    if spec.loo_rows is None or spec.kernel.takes_values:
        return size
    return min(size, rows_left_out(spec.loo_rows, q))


def n_drawn(spec: FitSpec) -> int:
    """How many rows are kept: all if the kernel is a matrix."""
    if spec.loo_rows is None or spec.kernel.takes_values:
        return EVERY_ROW
    return max(spec.loo_rows, 2 * requested_centers(spec.centers))


def load_before(spec: FitSpec, X: Any, q: int, n: int, classes: bool, rows: Rows | None) -> Load:
    """The load before a sample is drawn, without rows that are kept for their labels."""
    sample = min(n, n_drawn(spec))
    return load_of(spec, X, q, sample, n_held_out(spec, q, sample), n, classes, rows)


def _few(spec: FitSpec, q: int, block: Block, classes: bool) -> FewCenters:
    """From a value of ``centers`` to the load of a fit to these rows in memory, with q targets."""
    rows = MemoryRows(block.X)

    def few(centers: int | str) -> Load:
        written = replace(spec, centers=centers)
        return load_before(written, block.X, q, block.n_rows, classes, rows).with_labels

    return few


def warn_of_fit(X: Any, solution: ChosenSolution) -> None:
    """Warnings that apply to any fit."""
    warn_of_lost_digits(X, solution.kernel, solution.alpha, solution.error or 0.0)
    warn_of_equal_rows(solution.kernel, X, solution.rank)
    warn_of_constant(solution.kernel, X, solution.rank)


def check_enough(training: Training) -> None:
    """At least two rows, and two folds, have weight."""
    check_enough_rows(len(training.Y))
    check_folds(None if training.fold is None else Folds(training.fold), training.weight)


def check_enough_rows(n: int) -> None:
    """At least two rows have weight."""
    if n < 2:
        raise ValueError(f"leave-one-out needs at least 2 rows of positive weight, but there is n_samples = {n}")


def check_folds(folds: Folds | None, weight: Array | None) -> None:
    """Rows of positive weight must be in at least two folds."""
    if folds is None:
        return
    used = folds.fold if weight is None else folds.fold[weight > 0]
    if (used == used[0]).all():
        raise ValueError("all rows of positive weight are in one fold; cv or groups must define at least two")


def _at_all_rows(solution: ChosenSolution, training: Training, used: Indices, centers: Any) -> ChosenSolution:
    """Outputs of all rows, also of those without weight, at which f is evaluated, by folds without their fold."""
    fitted = Expansion(solution.kernel, centers, solution.coef, solution.intercept)(training.X).astype(np.float64)
    loo = fitted.copy()
    for f, model in solution.without.items():
        rows = np.flatnonzero((training.weight == 0) & (training.fold == f))
        loo[rows] = Expansion(solution.kernel, centers, model.coef, model.intercept)(take(training.X, rows))
    otherwise = None if solution.otherwise is None else loo.copy()
    if otherwise is not None:
        otherwise[used] = solution.otherwise
    fitted[used], loo[used] = solution.fitted, solution.loo
    return replace(solution, fitted=fitted, loo=loo, otherwise=otherwise)
