"""Fits in passes over blocks of rows: a sample, kernel and centers chosen on it, moments of all rows.

``sample_rows`` draws the sample, ``start_state`` chooses and sums; to the resulting state rows can be ``added``,
they can be ``removed``, and it can be ``solved``; each returns a new state or a fit, and modifies nothing.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._fitting.class_probabilities import of_sums
from mercer._fitting.data import RowSchema, TrainingData
from mercer._fitting.kernel_learning.evidence import LearnedKernel, LearningData
from mercer._fitting.kernel_learning.learn import learn_kernel
from mercer._fitting.kernel_learning.relevance import inner_kind, kinds_of
from mercer._fitting.memory import MemoryInputs, plan_within, threads_within
from mercer._fitting.notices import warn_of_memory, warn_of_scales
from mercer._fitting.result import ChosenSolution, FitResult, held_out_words
from mercer._fitting.selection.alpha_of_moments import FoldMoments, choose_alpha_from_moments, moment_fit
from mercer._fitting.selection.centers import (
    Contender,
    EncodedMoments,
    ModelSelection,
    SampleProblem,
    choose_kernel_and_centers,
    compare_on_sample,
    may_decide,
    precision_of,
    reselect_centers,
)
from mercer._fitting.selection.comparison import KernelComparison
from mercer._fitting.selection.path import CRITERION_TIE
from mercer._fitting.spec import FitSpec
from mercer._fitting.state import AdditiveState, Summed
from mercer._fitting.training import inputs_before_sample, memory_inputs, n_drawn, n_held_out, warn_of_fit
from mercer._gram.moments import Moments, MomentsOf
from mercer._gram.precision import Precision
from mercer._gram.tangent_covariance import DifferencesOf, Transformation
from mercer._linalg import blas_threads
from mercer._linalg.threads import at_most
from mercer._scores.class_outputs import class_numbers
from mercer._scores.targets import Targets
from mercer._scores.training_rows import Folds, Training
from mercer._solvers.moments.leave_one_out import MomentFit
from mercer._types import Indices
from mercer.centers import CenterSelector, ForwardSelection
from mercer.centers._resolve import EVERY_ROW
from mercer.errors import MemoryBudgetError
from mercer.kernels import Kernel
from mercer.kernels._algebra.choice import OneOf
from mercer.rows import Block, MemoryRows, Rows
from mercer.rows._base import PartlyRead
from mercer.rows._progress import stage
from mercer.rows._sampling.random_sample import ROWS_OF_EACH_LABEL, RunningSample, Sampler, survey
from mercer.rows._sampling.row_matching import weight_of
from mercer.rows._sampling.weights import reading_of
from mercer.rows._sources.repeated import RepeatedRows
from mercer.rows._table import n_columns, take
from mercer.rows._virtual import Copies, name_of, rows_for_each

# Fits are evaluated on rows not used to select the centers, if there are at least this many; the second number
# where centers cannot be selected again without some of the others, since not all rows are in memory.
LEAST_SCORED_ROWS, LEAST_OF_SAMPLE = 1000, 100
# Parts of the rows that selected the centers, without each of which they are selected again.
PARTS_WITHOUT_SELECTION = 3


@dataclass(frozen=True)
class Encoder:
    """The fold block -> block with validated rows, their copies, and encoded targets.

    ``check`` None: no validation; ``copies`` None: rows only.
    """

    targets: Targets
    check: Callable[[Any], Any] | None
    copies: Copies | None = None

    def __call__(self, block: Block) -> Block:
        block = self.checked(block)
        return self.targets.encode(block if self.copies is None else self.copies(block))

    def checked(self, block: Block) -> Block:
        """Rows alone, validated."""
        return block if self.check is None else replace(block, X=self.check(block.X))


@dataclass(frozen=True)
class Gatherer:
    """Moments of rows: how their targets are encoded, against which centers, in which precision."""

    selection: ModelSelection
    encode: Encoder
    precision: Precision
    # Largest number of threads.
    threads: int = 2**31

    def __call__(self, rows: Rows, *, verbose: int = 0) -> Moments:
        """Moments of the rows, in one pass."""
        where = self.precision.coordinates
        fold = MomentsOf(self.selection.kernel, self.selection.centers.rows, self.precision.dtype, where)
        with at_most(self.threads):
            moments: Moments = rows.reduce(EncodedMoments(self.encode, fold), phase="moments", verbose=verbose)
        return replace(moments, coordinates=where, n_rows=moments.n_rows // rows_for_each(self.encode.copies))

    def changes(self, tangents: Copies | None, rows: Rows, *, verbose: int = 0) -> Moments | None:
        """Moments of what transformations change, in one more pass; None: there are none."""
        if tangents is None:
            return None
        where = self.precision.coordinates
        where = None if where is None else replace(where, origin=np.zeros_like(where.origin))
        fold = MomentsOf(self.selection.kernel, self.selection.centers.rows, np.float64, where)
        share = 1.0 / len(tangents.transforms)
        moved = [Transformation(f, share, name_of(i, f)) for i, f in enumerate(tangents.transforms)]
        with at_most(self.threads):
            found: Moments = rows.reduce(
                DifferencesOf(tuple(moved), fold, self.encode), phase="differences", verbose=verbose
            )
        return found


@dataclass(frozen=True)
class SampledRows:
    """Rows that must not change between passes, and what the first pass found: a sample, facts about all rows,
    their columns, and how their targets are encoded.
    """

    rows: RepeatedRows
    draw: Sampler
    drawn: RunningSample
    schema: RowSchema
    encode: Encoder
    folds: Folds | None


@dataclass(frozen=True)
class PassState:
    """The state of a fit: what was asked, what was chosen, and sums over all rows so far with a sample of them.

    ``support`` (m,) are the row numbers of the centers, None if centers are not rows; ``center_selection_rows``
    those of rows whose targets were used to select the centers, ``kernel_learning_rows`` those from which the
    kernel was ``learned``; ``folds`` are rows held out together; ``reselects``: centers can be selected again
    without rows.
    """

    spec: FitSpec
    gather: Gatherer
    additive: AdditiveState
    support: Indices | None
    center_selection_rows: Indices
    folds: Folds | None = None
    learned: LearnedKernel | None = None
    reselects: bool = True
    kernel_learning_rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def targets(self) -> Targets:
        return self.gather.encode.targets

    @property
    def moments(self) -> Moments:
        """Moments of all rows so far."""
        return self.additive.moments

    @property
    def kernel(self) -> Kernel:
        return self.gather.selection.kernel

    @property
    def centers(self) -> Any:
        return self.gather.selection.centers.rows

    def under(self, spec: FitSpec, targets: Targets) -> "PassState":
        """With other choices and decisions, on which the sums do not depend."""
        gather = replace(self.gather, encode=replace(self.gather.encode, targets=targets))
        return replace(self, spec=spec, gather=gather)

    def added(self, rows: Rows, decay: float) -> "PassState":
        """With more rows; the weights of previous rows are multiplied by ``decay``."""
        additive = self.additive.scaled(decay).added(rows, partial(self.sums, self.gather), self.spec.verbose)
        # Weights that conflict with the parameter raise an error now, not when the model is solved.
        reading_of(self.spec.weights, additive.drawn.tally)
        return replace(self, additive=additive, folds=None)

    def removed(self, rows: Rows) -> "PassState":
        """Without some rows that were added before."""
        return replace(self, additive=self.additive.removed(rows, partial(self.sums, self.gather)), folds=None)

    def sums(self, gather: Gatherer, rows: Rows) -> Summed:
        """Moments of rows, and of what transformations change in them."""
        verbose = self.spec.verbose
        return gather(rows, verbose=verbose), gather.changes(self.spec.tangents, rows, verbose=verbose)

    def solved(self, rows: PartlyRead | None = None) -> FitResult:
        """Choose alpha by leave-one-out of the sample; ``rows`` are all rows, if folds are held out."""
        evaluation = self.evaluation_sample()
        with at_most(evaluation.problem.plan.threads):
            evaluation = replace(evaluation, reselected=_reselected_gatherers(self, evaluation))
            found = [(self._solution(evaluation, mu, rows), mu) for mu in self.spec.mus or (None,)]
        best = min(float(solution.paths[-1].least[0]) for solution, _ in found)
        # The least weight of those that are equal up to rounding.
        solution, mu = next(each for each in found if each[0].paths[-1].least[0] <= best * (1.0 + CRITERION_TIE))
        return replace(self.result_of(evaluation, solution), mu=mu)

    def _solution(
        self, evaluation: "EvaluationSample", mu: float | None, rows: PartlyRead | None
    ) -> ChosenSolution:
        """The fit at the best alpha, if what transformations change is penalized with the weight mu."""
        moments, problem = with_changes(self.moments, self.additive.changes, mu), evaluation.problem
        if mu:
            assert self.spec.tangents is not None
            problem = replace(problem, copies=replace(self.spec.tangents, mu=mu))
        reselected = partial(_reselected_fits, self, replace(evaluation, problem=problem), mu, rows)
        return choose_alpha_from_moments(
            self.gather.selection,
            moments,
            problem,
            scored_rows=evaluation.scored_rows,
            fold_moments=self.fold_moments(self.gather, mu, rows),
            reselected=reselected if evaluation.reselected else None,
        )

    def fold_moments(self, gather: Gatherer, mu: float | None, rows: PartlyRead | None) -> FoldMoments | None:
        """From a fold to the sums over its rows; None: rows are held out one by one."""
        if self.folds is None or rows is None:
            return None
        fold = self.folds.fold

        def of_fold(f: int) -> Moments:
            return with_changes(*self.sums(gather, rows.some(np.flatnonzero(fold == f))), mu)

        return of_fold

    def evaluation_sample(self) -> "EvaluationSample":
        """The rows for leave-one-out, few enough that outputs for all targets and alphas fit into memory."""
        size = n_held_out(self.spec, len(self.moments.t), self.additive.drawn.size)
        drawn, gather = replace(self.additive.drawn, size=size).least(), self.gather
        problem, training = _sample_problem(
            self.spec, gather.encode, drawn, self.folds, selection=gather.selection
        )
        index = drawn.sample().index
        return EvaluationSample(problem, training, index, self._scored_rows(index))

    def _scored_rows(self, index: Indices) -> Indices | None:
        """Rows, of number ``index`` (n,), on which fits are compared, None: all of them.

        Rows used to select the centers count if there are too few others, and centers can be selected without
        them; those from which the kernel was learned never count.
        """
        not_learned_from = ~np.isin(index, self.kernel_learning_rows)
        scored_rows = np.flatnonzero(not_learned_from & ~np.isin(index, self.center_selection_rows))
        in_sample = self.reselects and self.moments.n_rows <= len(index)
        least = LEAST_SCORED_ROWS if in_sample else LEAST_OF_SAMPLE
        if len(scored_rows) >= least:
            return scored_rows
        return np.flatnonzero(not_learned_from) if not not_learned_from.all() and not_learned_from.any() else None

    def result_of(self, evaluation: "EvaluationSample", solution: ChosenSolution) -> FitResult:
        """The fit with its evidence."""
        training, index, rows = evaluation.training, evaluation.index, evaluation.scored_rows
        warn_of_fit(training.X, solution)
        if rows is not None and len(rows) < len(index) and _of_all_classes(training, rows, self.targets):
            # Rows whose targets selected the centers are predicted too well.
            solution, training, index = solution.of_rows(rows), training.some(self.kernel, rows), index[rows]
        n = self.moments.n_rows
        return FitResult(
            of_sums(solution, self.spec.logits),
            training,
            index,
            targets=self.targets,
            centers=self.centers,
            support=self.support,
            n_rows=n,
            criterion_value=solution.least,
            held_out=held_out_words(training.fold, len(solution.loo), n),
            selected=self.gather.selection.words,
            products=self.gather.precision.words,
            moments=self.moments,
            learned=self.learned,
            state=self,
        )

    def rows_of(self, index: Indices) -> Any:
        """Rows of the sample with these numbers, of those with weight."""
        sample = self.additive.drawn.least().sample()
        weight = np.ones(len(sample.index)) if sample.weight is None else sample.weight
        return take(sample.X, np.flatnonzero(np.isin(sample.index, index) & (weight > 0)))


@dataclass(frozen=True)
class EvaluationSample:
    """A problem on rows of the sample, of number ``index`` (n,); compared on ``scored_rows`` (j,), None: all.

    ``reselected`` are positions of rows whose targets selected the centers, and sums with centers selected without
    them.
    """

    problem: SampleProblem
    training: Training
    index: Indices
    scored_rows: Indices | None
    reselected: list[tuple[Indices, Gatherer]] = field(default_factory=list)


def sample_rows(spec: FitSpec, data: TrainingData, rng: np.random.Generator) -> SampledRows:
    """One pass for a sample; if a fit would be too large for any rows, an error is raised before."""
    rows, has_classes = data.rows, data.has_classes
    if rows.n_rows is not None:
        _check_before(spec, rows, rows.n_rows, has_classes)
    repeated, draw = RepeatedRows(rows), Sampler(n_drawn(spec), int(rng.integers(2**31)), labels=has_classes)
    with at_most(threads_within(spec.budget.n_bytes, blas_threads())):
        drawn = survey(repeated, draw, verbose=spec.verbose)
    sample = drawn.sample()
    schema = data.schema.of_sample(repeated, sample.X, vectors=data.check is not None)
    check = None if data.check is None else data.check(n_columns(sample.X))
    targets = data.targets_of(sample.y, drawn.labels, data.declared)
    return SampledRows(repeated, draw, drawn, schema, Encoder(targets, check, spec.copies), data.folds)


def _check_before(spec: FitSpec, rows: Rows, n: int, has_classes: bool) -> None:
    """An error if the fit of a single target is too large; what it suggests is enough for those in memory."""
    X = rows.X if isinstance(rows, MemoryRows) else None
    inputs, budget = partial(inputs_before_sample, spec, X, n=n, has_classes=has_classes, rows=rows), spec.budget
    try:
        plan_within(inputs(q=1), budget)
    except MemoryBudgetError:
        if isinstance(rows, MemoryRows):
            plan_within(inputs(q=_n_targets(rows, has_classes)), budget)
        raise


def _n_targets(rows: MemoryRows, has_classes: bool) -> int:
    """The number of targets of rows in memory: one for two classes, otherwise one per class."""
    y = np.asarray(rows.y)
    if not has_classes:
        return 1 if y.ndim == 1 else y.shape[1]
    k = len(np.unique(y))
    return k if k > 2 else 1


def start_state(
    spec: FitSpec,
    sampled: SampledRows,
    rng: np.random.Generator,
    compared: KernelComparison | None = None,
    *,
    as_many_as_fit: bool = False,
    reselects: bool = True,
) -> PassState:
    """Choose kernel, unless it was ``compared`` before, and centers on the sample, and sum over all rows.

    ``as_many_as_fit``: only the budget keeps every row from being a center; ``reselects``: centers can be
    selected again without rows whose targets selected them.
    """
    kernel, encode, folds = spec.kernel, sampled.encode, sampled.folds
    rows = sampled.rows.rows
    problem, _ = _sample_problem(spec, encode, sampled.drawn, folds, rows=rows, as_many_as_fit=as_many_as_fit)
    warn_of_memory(problem.plan, spec.budget)
    if compared is None:
        warn_of_scales(kernel, problem.sample.X, sampled.schema.feature_names)
    index = sampled.drawn.sample().index
    if sampled.drawn.n_rows > len(index) or not reselects:
        problem = replace(problem, selector=_blind_to_half(problem.selector, len(index)))
    decides = compared is None and problem.is_part and isinstance(kernel, OneOf) and may_decide(kernel, problem)
    if decides:
        learned, compared = _decided(spec, problem, rng)
    else:
        learned = _learn(spec, problem, rng, None if compared is None else compared.kernel)
        compared = None if learned is not None and learned.is_new else compared
    if learned is not None:
        kernel = learned.applied
    with at_most(problem.plan.threads):
        selection = choose_kernel_and_centers(kernel, problem, rng, compared, on_sample=decides)
        gather = Gatherer(selection, encode, precision_of(selection, problem), problem.plan.threads)
    moments = gather(sampled.rows, verbose=spec.verbose)
    changes = gather.changes(spec.tangents, sampled.rows, verbose=spec.verbose)
    indices, unseen = selection.centers.indices, selection.centers.unseen
    support = None if indices is None else index[indices]
    center_selection_rows = index[:0] if unseen is None else np.delete(index, unseen)
    additive = AdditiveState(moments, changes, sampled.drawn, sampled.draw)
    state = PassState(spec, gather, additive, support, center_selection_rows, folds, learned, reselects)
    if learned is None or not learned.is_new:
        return state
    return replace(state, kernel_learning_rows=index[learned.part >= 0])


def _blind_to_half(selector: CenterSelector, n: int) -> CenterSelector:
    """A selector that uses the targets of at most half of n rows, so that the others can evaluate fits."""
    if not isinstance(selector, ForwardSelection) or not 2 * LEAST_OF_SAMPLE <= n < 2 * selector.n_candidates:
        return selector
    blind: CenterSelector = clone(selector).set_params(n_candidates=n // 2)
    return blind


def thirds(kernel: Kernel, problem: SampleProblem) -> Indices:
    """Which of three random parts each row of the sample (n,) is in; equal rows and folds are in one.

    Numeric rows are numbered in an order of their own, those without weight not at all: neither how rows are
    ordered or repeated nor such rows matter.
    """
    unit = kernel.distinct(problem.sample.X).point if problem.fold is None else problem.fold
    weighted = np.unique(unit[problem.weight > 0])
    number = np.minimum(np.searchsorted(weighted, unit), len(weighted) - 1)
    third: Indices = np.random.default_rng(0).permutation(len(weighted))[number] % PARTS_WITHOUT_SELECTION
    return third


def _reselected_gatherers(state: PassState, evaluation: EvaluationSample) -> list[tuple[Indices, Gatherer]]:
    """Positions in the sample of thirds of the rows that selected the centers, and sums with other centers.

    Empty if fits are evaluated on other rows, or if the model has more rows than the sample.
    """
    problem = evaluation.problem
    selects = np.isin(evaluation.index, state.center_selection_rows) & (problem.weight > 0)
    if evaluation.scored_rows is not None:
        selects &= np.isin(np.arange(len(selects)), evaluation.scored_rows)
    if not selects.any() or state.moments.n_rows > len(selects) or not state.reselects:
        return []
    third, found, rng = thirds(state.kernel, problem), [], np.random.default_rng(state.additive.draw.seed)
    if len(np.unique(third[problem.weight > 0])) == 1:
        return []
    quiet = replace(problem, verbose=0)
    with stage("selection of centers without thirds of the rows", verbose=problem.verbose):
        for t in np.unique(third[selects]):
            selection = reselect_centers(state.gather.selection, quiet, np.flatnonzero(third != t), rng)
            gather = replace(state.gather, selection=selection, precision=precision_of(selection, quiet))
            found.append((np.flatnonzero(selects & (third == t)), gather))
    return found


def _reselected_fits(
    state: PassState, evaluation: EvaluationSample, mu: float | None, rows: PartlyRead | None
) -> Iterator[tuple[Indices, MomentFit]]:
    """Positions of rows, and fits to all rows with centers that were selected without their targets."""
    sample, quiet = state.additive.drawn.least().sample(), replace(evaluation.problem, verbose=0)
    state = replace(state, spec=replace(state.spec, verbose=0))
    of_sample = MemoryRows(sample.X, sample.y, sample.weight)
    for positions, gather in evaluation.reselected:
        sums = with_changes(*state.sums(gather, of_sample), mu)
        fits = moment_fit(gather.selection, sums, quiet, state.fold_moments(gather, mu, rows))
        yield positions, fits.of_rows(positions)


def _decided(
    spec: FitSpec, problem: SampleProblem, rng: np.random.Generator
) -> tuple[LearnedKernel | None, KernelComparison]:
    """The best of several kinds, and what it has learned, if that makes it better for rows not learned from.

    Fits with many centers decide: which class of kernels is best, and whether relevances help, depends on the
    number of centers more than widths and units do.
    """
    used = problem.weight > 0
    with at_most(problem.plan.threads):
        plain, kinds = _best_of_classes(spec.kernel, problem, deepcopy(rng))
    learned = _learn(spec, problem, rng, plain.compared.kernel, few_centers=True)
    with at_most(problem.plan.threads):
        if learned is not None and learned.is_new:
            other = Contender(compare_on_sample(learned.applied, problem, deepcopy(rng)), problem)
            if plain.gain(other, np.flatnonzero(learned.part[used] < 0)) > 0.0:
                return learned, other.compared
            learned = learned.without_effect or learned
        return learned, compare_on_sample(kinds, problem, rng)


def _best_of_classes(kernel: Kernel, problem: SampleProblem, rng: np.random.Generator) -> tuple[Contender, Kernel]:
    """The best kind, and the choice among those of its class: found with few centers, and the class with many."""
    classes: dict[str, list[Kernel]] = {}
    for kind in kinds_of(kernel):
        classes.setdefault(type(inner_kind(kind)).__name__, []).append(kind)
    choices = [OneOf(kinds) for kinds in classes.values()]
    found = [Contender(compare_on_sample(each, problem, rng, roughly=True), problem) for each in choices]
    first, every = found[0], np.arange(np.count_nonzero(problem.weight > 0))
    gains = [0.0, *(first.gain(other, every) for other in found[1:])]
    best = int(np.argmax(gains))
    return found[best], choices[best]


def _learn(
    spec: FitSpec,
    problem: SampleProblem,
    rng: np.random.Generator,
    best: Kernel | None,
    *,
    few_centers: bool = False,
) -> LearnedKernel | None:
    """What the kernel learns from at most half of the sample: the others are evaluated.

    If it is not asked for, nothing where all rows are in the sample, and few of them would be left to evaluate.
    """
    sample, weight = problem.sample, problem.weight
    used = np.flatnonzero(weight > 0)
    if not spec.learns_from(sample.X, len(used) // 2 if problem.is_part or spec.must_learn else 0):
        return None
    fold = None if problem.fold is None else problem.fold[used]
    data = LearningData(take(sample.X, used), np.asarray(sample.y)[used], weight[used], fold)
    with at_most(problem.plan.threads):
        learned = learn_kernel(
            spec.kernel,
            spec.relevance,
            data,
            # Kernels are then compared with the same random centers as if nothing were learned.
            deepcopy(rng),
            problem.budget,
            has_classes=problem.label is not None,
            most=len(used) // 2,
            verbose=spec.verbose,
            best=best,
            few_centers=few_centers,
        )
    part = np.full(len(weight), -1)
    part[used] = learned.part
    return learned.of_rows(part)


def _sample_problem(
    spec: FitSpec,
    encode: Encoder,
    drawn: RunningSample,
    folds: Folds | None,
    *,
    rows: Rows | None = None,
    selection: ModelSelection | None = None,
    as_many_as_fit: bool = False,
) -> tuple[SampleProblem, Training]:
    """The sample with its targets, and how fits to it are made; ``rows`` where a pass over them is to come,
    ``selection`` where kernel and centers are chosen, ``as_many_as_fit`` where only the budget limits the centers.
    """
    sample, has_classes = drawn.sample(), encode.targets.has_classes
    raw = Block(sample.X, sample.y, sample.weight, 0)
    block, drawn = encode.targets.encode(encode.checked(raw)), drawn.least()
    fades, of_sample = bool((drawn.faded < 1.0).any()), None if folds is None else folds.some(sample.index)
    training = Training(
        block.X,
        block.y,
        weight_of(block),
        weight_of(raw),
        reading_of(spec.weights, drawn.tally),
        None if of_sample is None else of_sample.fold,
        drawn.represents() if fades or has_classes else None,
        drawn.faded if fades else None,
        group=None if of_sample is None else of_sample.group,
    )
    q = block.y.shape[1]
    held_out = len(replace(drawn, size=n_held_out(spec, q, drawn.size)).least().key)
    inputs = memory_inputs(spec, block.X, q, block.n_rows, held_out, drawn.n_rows, has_classes, rows, selection)
    if as_many_as_fit and inputs.usual is not None:
        inputs = replace(inputs, usual=drawn.n_rows)
    plan = plan_within(inputs, spec.budget)
    return SampleProblem(
        sample=block if block.weight is None else replace(block, unit=training.unit),
        label=class_numbers(block.y) if has_classes else None,
        fold=training.fold,
        criterion_for=encode.targets.criterion(training),
        selector=plan.selector,
        n_centers=plan.n_centers,
        alpha=spec.alpha,
        penalty=spec.norm,
        intercept=spec.intercept,
        budget=spec.budget,
        plan=plan,
        verbose=spec.verbose,
        opposite_unit=training.opposite_unit,
        few_enough=isinstance(spec.centers, str) and not _every_copy(spec, inputs),
        is_part=drawn.n_rows > block.n_rows,
        copies=spec.copies,
    ), training


def _every_copy(spec: FitSpec, inputs: MemoryInputs) -> bool:
    """Whether all rows and copies are centers, however few would be enough."""
    transformed = spec.copies is not None or spec.tangents is not None
    return transformed and inputs.n is not None and inputs.n <= EVERY_ROW


def with_changes(moments: Moments, changes: Moments | None, mu: float | None) -> Moments:
    """Moments of rows, and with the weight mu of differences, which have no mean and the targets zero."""
    if not mu:
        return moments
    assert changes is not None
    return replace(moments, G=moments.G + mu * changes.G)


def _of_all_classes(training: Training, rows: Indices, targets: Targets) -> bool:
    """Whether every class, if there are classes, has some of these rows with weight; a rare one all its rows."""
    if not targets.has_classes:
        return True
    used = np.flatnonzero(training.weight > 0)
    of_class = np.bincount(class_numbers(training.Y[used]))
    scored = np.bincount(class_numbers(training.Y[np.intersect1d(rows, used)]), minlength=len(of_class))
    return bool((scored >= np.minimum(of_class, ROWS_OF_EACH_LABEL)).all())
