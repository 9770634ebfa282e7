"""The way of a fit: which one is made, with its reason, and its result. The only place that knows all of them."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from mercer._fitting.data import TrainingData
from mercer._fitting.exact import ExactFit
from mercer._fitting.kernel_learning.evidence import LearnedKernel
from mercer._fitting.moments import sample_rows, start_state
from mercer._fitting.programs.in_memory import fit_machine
from mercer._fitting.programs.in_passes import fit_machine_in_passes
from mercer._fitting.result import FitDecision, FitResult
from mercer._fitting.selection.comparison import KernelComparison
from mercer._fitting.sparse.fit import fit_sparse
from mercer._fitting.spec import FitSpec
from mercer._fitting.training import check_enough_rows, check_folds
from mercer.centers._resolve import EVERY_ROW, EXACT_ROWS, MATTERING_ROWS
from mercer.kernels._algebra.weighted_sum import WeightedSum
from mercer.rows._base import PartlyRead
from mercer.rows._table import in_single, n_rows

# Names of the fits.
EXACT, MOMENTS, SPARSE = "all rows at once", "sums over the rows", "centers one after another"
# The same, after every row was found to be too many centers for the memory, or more than are needed.
LITTLE_MEMORY = "sums over the rows, in little memory"
FEW_CENTERS = "sums over the rows, with few centers"
PROGRAM, PROGRAM_IN_PASSES = "program in memory", "program in passes"
# A fit in passes is worth it if there are this many times more rows than centers.
WORTH_IT = 4
# Losses with which rows need not be in memory.
SMOOTH_LOSSES = ("logistic", "squared", "huber", "squared_hinge")
# More rows in memory than this are fitted in passes, if they need not be in memory.
MOST_IN_PROGRAM = 2000


@dataclass
class Situation:
    """What a decision depends on: what is asked, the rows, and, if it comes to that, a comparison of kernels."""

    spec: FitSpec
    data: TrainingData
    rng: np.random.Generator
    fresh_rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        # For a second comparison, with the same random centers as the first.
        self.fresh_rng = deepcopy(self.rng)

    @cached_property
    def exact(self) -> ExactFit:
        """The fit with every distinct row as a center."""
        return ExactFit.of(
            self.spec, self.data.targets, self.data.block, self.data.folds, self.data.schema.feature_names
        )

    @cached_property
    def with_weights(self) -> ExactFit:
        """The same with weights of a sum of kernels, if these are to be learned."""
        if not isinstance(self.spec.kernel, WeightedSum):
            return self.exact
        return self.exact.with_learned(None, deepcopy(self.rng))

    @cached_property
    def compared(self) -> KernelComparison:
        """The best kernel with every row a center, without relevances, and how many centers would be enough."""
        exact = self.with_weights
        return exact.compare(self.rng, count_centers=self.may_be_fewer(exact.problem.X))

    @property
    def learns(self) -> bool:
        """Whether the kernel has something to learn."""
        return self.spec.learns_from(self.data.block.X, int(self.exact.weighted.rows.sum()))

    def may_be_limited(self, X: Any) -> bool:
        """Whether the budget may allow fewer centers than rows X."""
        return self.spec.centers_are_chosen and n_rows(X) > EVERY_ROW and not self.spec.kernel.takes_values

    def may_be_fewer(self, X: Any) -> bool:
        """Whether it is asked if fewer centers than rows X are enough.

        Not where few centers are another model or a worse one: for kernels that may be indefinite, and for rows in
        float32. Nor for folds, each of which would take a decomposition, or with what is to be learned.
        """
        return (
            self.may_be_limited(X)
            and self.spec.kernel.positive_semidefinite
            and self.data.folds is None
            and not self.spec.must_learn
            and not in_single(X)
        )


# A reason to make a fit, None: it is not made.
Reason = Callable[[Situation], str | None]


def run(spec: FitSpec, data: TrainingData, rng: np.random.Generator) -> FitResult:
    """The fit that is asked for, to these rows."""
    if data.in_memory is not None:
        weight = data.block.weight
        assert weight is not None
        check_enough_rows(int(np.count_nonzero(weight > 0)))
    situation = Situation(spec, data, rng)
    decision = decide(situation)
    result = STRATEGIES[decision.strategy](situation)
    return replace(result, decision=decision, schema=result.schema or data.schema)


def decide(situation: Situation) -> FitDecision:
    """The first fit for which there is a reason."""
    for strategy, why in REASONS:
        reason = why(situation)
        if reason is not None:
            return FitDecision(strategy, reason)
    return FitDecision(EXACT, "every distinct row can be a center")


def _selects(s: Situation) -> str | None:
    return None if s.spec.sparse is None else "the model is to have few centers"


def _passes_of_a_program(s: Situation) -> str | None:
    if s.spec.loss is None:
        return None
    why = needs_memory(s.spec)
    rows = s.data.in_memory
    if rows is None and why:
        raise ValueError(
            f'{why} needs the rows in memory; pass an array, or use loss="logistic", "squared", "huber" or '
            '"squared_hinge" with penalty="rkhs" or "coef", and some centers'
        )
    if rows is None:
        return "rows are read block by block"
    if n_rows(rows.X) > MOST_IN_PROGRAM and not why:
        return f"there are more than {MOST_IN_PROGRAM:,} rows, and the loss is smooth"
    return None


def _is_a_program(s: Situation) -> str | None:
    return None if s.spec.loss is None else "the loss has a program of its own"


def _is_streamed(s: Situation) -> str | None:
    return None if s.data.in_memory is not None else "rows are read block by block"


def _has_transformations(s: Situation) -> str | None:
    spec = s.spec
    return None if spec.copies is None and spec.tangents is None else "transformed rows take part"


def _centers_are_given(s: Situation) -> str | None:
    chosen = s.spec.centers_are_chosen or s.spec.all_are_centers
    return None if chosen else "centers are given, or their number"


def _has_many_rows(s: Situation) -> str | None:
    if not s.spec.centers_are_chosen or s.spec.kernel.takes_values:
        return None
    X = s.data.block.X
    most = MATTERING_ROWS if s.may_be_fewer(X) else EXACT_ROWS
    return f"there are more than {most:,} rows" if n_rows(X) > most else None


def _memory_is_small(s: Situation) -> str | None:
    limited = s.may_be_limited(s.data.block.X) and not s.exact.is_within_budget
    return "the memory is too small for every row to be a center" if limited else None


def _few_are_enough(s: Situation) -> str | None:
    enough = s.compared.enough_centers
    if enough is None or not WORTH_IT * enough <= n_rows(s.exact.problem.X):
        return None
    return f"{enough} centers are enough by leave-one-out"


# The first one that has a reason decides; the last one compares kernels to find out, once for all.
REASONS: tuple[tuple[str, Reason], ...] = (
    (SPARSE, _selects),
    (PROGRAM_IN_PASSES, _passes_of_a_program),
    (PROGRAM, _is_a_program),
    (MOMENTS, _is_streamed),
    (MOMENTS, _has_transformations),
    (MOMENTS, _centers_are_given),
    (MOMENTS, _has_many_rows),
    (LITTLE_MEMORY, _memory_is_small),
    (FEW_CENTERS, _few_are_enough),
)


def needs_memory(spec: FitSpec) -> str:
    """What of a program needs the rows in memory, empty if nothing does."""
    assert spec.loss is not None
    if spec.loss.name not in SMOOTH_LOSSES:
        return f"loss={spec.loss.name!r}, which is not smooth,"
    if spec.l1_share > 0.0:
        return f"penalty={spec.penalty!r}"
    if spec.kernel.takes_values:
        return "a precomputed kernel"
    return 'centers="all"' if spec.all_are_centers else ""


def _exact(s: Situation) -> FitResult:
    """With what the kernel has learned, unless leave-one-out without is as good."""
    plain = s.with_weights
    if s.spec.relevance is None or not s.learns:
        return plain.conclude(plain.solve(s.compared))
    # Learning and comparing begin with the same random numbers as without it.
    exact = plain.with_learned(s.spec.relevance, deepcopy(s.fresh_rng), s.compared.kernel)
    learned, other = cast(LearnedKernel, exact.learned), plain.solve(s.compared)
    if learned.is_new:
        found = exact.solve(exact.compare(s.fresh_rng))
        if exact.score_of(found) < plain.score_of(other):
            return exact.conclude(found)
    return replace(plain, learned=learned.without_effect or learned).conclude(other)


def _moments(s: Situation, compared: KernelComparison | None = None, *, as_many_as_fit: bool = False) -> FitResult:
    """Passes over the rows; what was compared to decide on them is not compared again."""
    rows, folds = s.data.rows, s.data.folds
    check_folds(folds, getattr(rows, "weight", None))
    sampled = sample_rows(s.spec, s.data, s.rng)
    state = start_state(s.spec, sampled, s.rng, compared, as_many_as_fit=as_many_as_fit)
    return replace(state.solved(None if folds is None else cast(PartlyRead, rows)), schema=sampled.schema)


def _sparse(s: Situation) -> FitResult:
    return fit_sparse(s.spec, s.data.targets, s.data.block, s.rng)


def _program(s: Situation) -> FitResult:
    return fit_machine(s.spec, s.data.targets, s.data.block, s.rng, s.data.schema.feature_names)


def _program_in_passes(s: Situation) -> FitResult:
    return fit_machine_in_passes(s.spec, s.data, s.rng)


STRATEGIES: dict[str, Callable[[Situation], FitResult]] = {
    EXACT: _exact,
    MOMENTS: _moments,
    LITTLE_MEMORY: lambda s: _moments(s, as_many_as_fit=True),
    FEW_CENTERS: lambda s: _moments(s, s.compared),
    SPARSE: _sparse,
    PROGRAM: _program,
    PROGRAM_IN_PASSES: _program_in_passes,
}
