"""Fits with m centers: kernel, centers and the precision of products, chosen on a sample."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer._fitting.memory import (
    LEAST_CENTERS,
    MOST_COMPARED_ROWS,
    PROBE_ROWS,
    RANDOM_PER_SELECTED,
    MemoryPlan,
    SearchStage,
    probe_rows,
    rows_within,
)
from mercer._fitting.selection.comparison import ComparisonProblem, KernelComparison, compare_kernels
from mercer._fitting.selection.path import NEAR_ALPHA, Trial, TuningPath
from mercer._fitting.selection.problem import ExactProblem, at_points
from mercer._gram import Budget, check_size, gram, self_similarity
from mercer._gram.moments import PRODUCT_ROWS, Moments, MomentsOf, pieces
from mercer._gram.precision import (
    DEPENDENT_CENTERS,
    NEARLY_DEPENDENT_CENTERS,
    Precision,
    factor_of,
    product_precision,
    with_coordinates,
)
from mercer._linalg.rank import RankFactor
from mercer._linalg.threads import at_most
from mercer._scores.criteria import Criterion, CriterionFor
from mercer._solvers.spectrum import Penalty
from mercer._types import Array, Floats, Indices
from mercer.centers import CandidateRows, Centers, CenterSelector, ForwardSelection, Given
from mercer.kernels._base import Kernel, Scaled
from mercer.kernels._vectors.dot_product import Linear
from mercer.rows._base import Block
from mercer.rows._progress import stage
from mercer.rows._sources.memory import HeldRows
from mercer.rows._table import in_double, in_single, n_rows, take
from mercer.rows._virtual import Copies, Orbits, rows_for_each

# The smallest alpha tried, as a share of the trace: moments have half of the digits of a kernel matrix.
LEAST_ALPHA_SHARE = 1e-7
# Beyond this number of centers, few alphas are compared, around that of the comparison of kernels.
MANY_CENTERS = 2500
# The number with which it is decided between classes of kernels, and whether what one has learned makes it better.
DECIDING_CENTERS = 1200
# More rows than the sample make more centers worthwhile: this many times those that are enough there.
MORE_THAN_IN_SAMPLE = 4
# Rows used to estimate the part of the kernel that is the same for all rows.
VARIANCE_ROWS = 128
# Rows used for a mean kernel row if there is no memory for more.
LEAST_PROBE = 64
# Squares of smaller float32 kernel values lose digits in float32.
LEAST_PRODUCTS = 1e-15
# Centers are in float64 if that lowers the criterion of their selection by this share.
VISIBLE_GAIN = 0.02


@dataclass(frozen=True)
class EncodedMoments:
    """The fold block -> moments of encode(block); targets are in memory for one piece of the rows at a time."""

    encode: Callable[[Block], Block]
    fold: MomentsOf

    def __call__(self, block: Block) -> Moments:
        total = None
        for ends in pieces(block.n_rows, PRODUCT_ROWS):
            total = self.fold.onto(total, self.encode(block.cut(*ends)))
        assert total is not None
        return total


@dataclass(frozen=True)
class ModelSelection:
    """The chosen kernel, its centers, the candidates compared, and how the centers were selected, as text.

    ``factor`` is that of the centers' kernel matrix, None for the penalty c'c; ``unrepresented`` the part of the
    variance in feature space that the centers cannot represent, because it is below their tolerance; ``alpha``
    that of the comparison, None: alphas were not compared; ``selector`` is what selected the centers.
    """

    kernel: Kernel
    centers: Centers
    factor: RankFactor | None
    paths: tuple[TuningPath, ...]
    words: str
    selector: CenterSelector
    unrepresented: float = 0.0
    alpha: float | None = None

    @property
    def n_centers(self) -> int:
        """The number of centers."""
        return n_rows(self.centers.rows)

    @property
    def least(self) -> float:
        """The least criterion of the selection of centers; infinite if they were not selected by targets."""
        path = self.centers.path
        return np.inf if path is None else float(path.score.min())


@dataclass(frozen=True)
class SampleProblem:
    """A sample of rows with targets, and how fits are made and evaluated.

    ``sample`` holds X, targets (n, q), weights and units; ``label`` (n,) class numbers, if there are classes;
    ``fold`` (n,) numbers rows that are held out together; ``criterion_for`` evaluates some of its rows; ``alpha``
    is a number, or None for leave-one-out; ``plan`` sets how much is done at once. ``opposite_unit`` (n,) are the
    units under the opposite reading of weights, None: they are unambiguous; ``few_enough``: fewer centers are
    selected if they do as well; ``is_part``: there are more rows than in the sample. ``copies`` of the rows join
    all fits, leave them with their row, and are not evaluated.
    """

    sample: Block
    label: Indices | None
    fold: Indices | None
    criterion_for: CriterionFor
    selector: CenterSelector
    n_centers: int | None
    alpha: float | None
    penalty: Penalty
    intercept: bool
    budget: Budget
    plan: MemoryPlan
    verbose: int = 0
    opposite_unit: Array | None = None
    few_enough: bool = False
    is_part: bool = False
    copies: Copies | None = None

    @property
    def weight(self) -> Array:
        """Weights (n,) of the sample."""
        return np.ones(self.sample.n_rows) if self.sample.weight is None else self.sample.weight

    @property
    def virtual_centers(self) -> bool:
        """Whether copies of rows may become centers."""
        return self.copies is not None and not isinstance(self.selector, ForwardSelection | Given)

    @property
    def may_be_precise(self) -> bool:
        """Whether centers in float64 may be tried for rows in float32: memory for them is not planned."""
        return in_single(self.sample.X) and not self.budget.given and not isinstance(self.selector, Given)

    @property
    def counted(self) -> Block:
        """The sample with weights that sum to the number of rows, as selectors expect."""
        if self.sample.weight is None:
            return self.sample
        used = self.weight > 0
        unit = self.weight if self.sample.unit is None else self.sample.unit
        mean = self.weight.sum() / (self.weight[used] / unit[used]).sum()
        return self.sample if abs(mean - 1.0) < 1e-9 else replace(self.sample, weight=self.weight / mean)

    def some(self, kernel: Kernel, rows: Indices) -> "SampleProblem":
        """The problem on some rows of the sample."""
        if len(rows) == self.sample.n_rows:
            return self
        return replace(
            self,
            sample=replace(self.sample.take(rows), X=kernel.subset(self.sample.X, rows)),
            label=None if self.label is None else self.label[rows],
            fold=None if self.fold is None else self.fold[rows],
            criterion_for=lambda some: self.criterion_for(rows[some]),
            opposite_unit=None if self.opposite_unit is None else self.opposite_unit[rows],
        )


def choose_kernel_and_centers(
    kernel: Kernel,
    problem: SampleProblem,
    rng: np.random.Generator,
    compared: KernelComparison | None = None,
    *,
    on_sample: bool = False,
) -> ModelSelection:
    """Choose kernel parameters on the sample, unless ``compared`` before, on all rows or ``on_sample``, and select
    centers among its rows.

    Kernel values in float32 may be too alike for these centers: where more of them would matter, centers are in
    float64, and with them all values.
    """
    known = compared is not None and not on_sample
    compared = compare_on_sample(kernel, problem, rng) if compared is None else compared
    n_centers = problem.n_centers
    words = f"{type(problem.selector).__name__} on {problem.sample.n_rows} rows"
    if problem.copies is not None and problem.virtual_centers:
        words += f" and {problem.copies.size - 1} copies of each"
    if problem.few_enough and n_centers is not None:
        most, enough = n_centers, compared.enough_centers
        if enough is not None:
            enough = max(enough * (MORE_THAN_IN_SAMPLE if problem.is_part and not known else 1), LEAST_CENTERS)
            n_centers = min(enough, most)
        limited = enough is None or enough > most
        words += _words_of_number(None if known or problem.plan.lowered else most, limited=limited)
    found = compared, n_centers, words + problem.plan.words
    selection = _select_centers(*found, problem, _candidates(kernel, problem, rng), rng)
    as_many = n_centers is None or selection.n_centers >= n_centers or selection.least == np.inf
    if as_many or not problem.may_be_precise:
        return selection
    precise = replace(problem, sample=replace(problem.sample, X=in_double(problem.sample.X)))
    other = _select_centers(*found, precise, _candidates(kernel, precise, rng), rng)
    return other if other.least < (1.0 - VISIBLE_GAIN) * selection.least else selection


def _select_centers(
    compared: KernelComparison,
    n_centers: int | None,
    words: str,
    problem: SampleProblem,
    candidates: CandidateRows,
    rng: np.random.Generator,
) -> ModelSelection:
    """The kernel with its centers, without those in the span of others."""
    kernel = compared.kernel
    centers = _centers(kernel, problem, candidates, n_centers, rng)
    if _may_choose_origin(problem) and isinstance(problem.selector, Given):
        kernel = _centered_on_given(kernel, centers.rows)
    if not kernel.takes_values:
        check_size(kernel, self_similarity(kernel, centers.rows))
    factor = _factor(kernel, centers.rows, problem, NEARLY_DEPENDENT_CENTERS)
    unrepresented = 0.0 if factor is None else _unrepresented(kernel, problem)
    return _drop_dependent(
        ModelSelection(
            kernel, centers, factor, compared.paths, words, problem.selector, unrepresented, compared.alpha
        )
    )


def reselect_centers(
    selection: ModelSelection, problem: SampleProblem, rows: Indices, rng: np.random.Generator
) -> ModelSelection:
    """As many centers for the chosen kernel, selected among some rows of the sample, by their targets alone."""
    kernel, sample, weight = selection.kernel, problem.sample, np.zeros(problem.sample.n_rows)
    weight[rows] = problem.weight[rows]
    X = sample.X if in_single(selection.centers.rows) else in_double(sample.X)
    problem = replace(problem, sample=replace(sample, X=X, weight=weight), selector=selection.selector)
    compared, candidates = KernelComparison([kernel], paths=selection.paths), _candidates(kernel, problem, rng)
    return _select_centers(compared, selection.n_centers, selection.words, problem, candidates, rng)


def _words_of_number(most: int | None, *, limited: bool) -> str:
    """Why this number of centers: they are enough, or ``most``, None: all rows, or what the budget allows."""
    if limited:
        return f", at the limit{'' if most is None else f' of {most}'}: more might be better"
    return f", as many as matter in leave-one-out{'' if most is None else f', of at most {most}'}"


@dataclass(frozen=True)
class Contender:
    """The best kernel of a comparison, which others are compared with by fits to the sample with many centers."""

    compared: KernelComparison
    problem: SampleProblem

    @cached_property
    def trial(self) -> Trial:
        """Its fit, for alphas near its own; O(n m²) for n rows and m centers."""
        kernel, alpha = self.compared.kernel, self.compared.alpha
        exact = _exact_problem(kernel, self.problem)
        order = np.random.default_rng(0).permutation(n_rows(exact.X))
        stage = _deciding_stage(exact, self.problem)
        comparison = replace(ComparisonProblem.at(kernel, exact, order, stage), halves=False)
        if exact.alpha is None and alpha is not None:
            comparison = replace(comparison, alphas=alpha * NEAR_ALPHA)
        return comparison.trials([kernel])[0]

    def gain(self, other: "Contender", rows: Indices) -> float:
        """By how much another one is better on some of the rows with weight.

        0 if not by more than a standard error of paired losses.
        """
        first, second = self.trial.of_rows(rows), other.trial.of_rows(rows)
        return first.certain_gain(second)


def _deciding_stage(exact: ExactProblem, problem: SampleProblem) -> SearchStage:
    """All rows, with the centers by which it is decided between kernels, at most those of the final fit."""
    u = n_rows(exact.X)
    return SearchStage(u, min(DECIDING_CENTERS, u if problem.n_centers is None else problem.n_centers, u))


def may_decide(kernel: Kernel, problem: SampleProblem) -> bool:
    """Whether there is memory for fits to the sample with many centers."""
    exact = _exact_problem(kernel, problem)
    stage = _deciding_stage(exact, problem)
    return rows_within(exact.extent, stage, exact.budget.n_bytes) >= stage.n_rows


def compare_on_sample(
    kernel: Kernel, problem: SampleProblem, rng: np.random.Generator, *, roughly: bool = False
) -> KernelComparison:
    """Kernels compared on rows of the sample; one alone only if the number of centers is to be chosen.

    ``roughly``: with few centers, as kernels that are then fitted with many.
    """
    most_rows = MOST_COMPARED_ROWS // rows_for_each(problem.copies)
    rows = np.sort(rng.permutation(problem.sample.n_rows)[:most_rows])
    exact = _exact_problem(kernel, problem.some(kernel, rows))
    problem.budget.release()
    most = None if problem.n_centers is None else RANDOM_PER_SELECTED * problem.n_centers
    many = most is not None and most > RANDOM_PER_SELECTED * MANY_CENTERS
    return compare_kernels(
        kernel,
        exact,
        rng,
        choose_origin=not isinstance(problem.selector, Given),
        try_single=problem.few_enough or (problem.alpha is None and many),
        count_centers=problem.few_enough and not roughly,
        first_stage_only=roughly,
        most=min(DECIDING_CENTERS, DECIDING_CENTERS if most is None else most) if roughly else most,
    )


def _may_choose_origin(problem: SampleProblem) -> bool:
    """Whether a kernel may choose its origin: a free intercept compensates for it."""
    return problem.intercept and problem.penalty == "rkhs"


def _centered_on_given(kernel: Kernel, centers: Any) -> Kernel:
    """A linear kernel around its centers, if they span all affine functions: then this only affects accuracy.

    With fewer centers, or in a sum with other kernels, it would be a different model from the one specified.
    """
    plain = kernel.kernel if isinstance(kernel, Scaled) else kernel
    centered = kernel.centered_on(centers) if isinstance(plain, Linear) else kernel
    if centered is kernel or np.linalg.matrix_rank(centers - centers.mean(axis=0)) < centers.shape[1]:
        return kernel
    return centered


def precision_of(selection: ModelSelection, problem: SampleProblem) -> Precision:
    """The precision of the products of the pass, and of what, decided on rows of the sample."""
    kernel, centers, factor = selection.kernel, selection.centers.rows, selection.factor
    m, n = n_rows(centers), problem.sample.n_rows
    if factor is None:
        return Precision(np.float64, np.nan, "float64")
    size = probe_rows(m) if problem.plan.probe else LEAST_PROBE
    probe = take(problem.sample.X, np.unique(np.linspace(0, n - 1, size).astype(np.intp)))
    with at_most(problem.plan.sample_threads), stage("precision of products", verbose=problem.verbose):
        precision = _precision(selection, problem, probe)
        return with_coordinates(
            precision,
            kernel,
            centers,
            factor,
            probe,
            alpha_share=LEAST_ALPHA_SHARE,
            intercept=problem.intercept,
            known=problem.plan.probe,
        )


def _precision(selection: ModelSelection, problem: SampleProblem, probe: Any) -> Precision:
    """float32 if its products are accurate enough for rows of the sample, otherwise float64."""
    m = selection.n_centers
    single = in_single(problem.sample.X, selection.centers.rows) and not selection.kernel.takes_values
    if not single or selection.factor is None:
        return Precision(np.float64, np.nan, "float64")
    if self_similarity(selection.kernel, selection.centers.rows).max() < LEAST_PRODUCTS:
        return Precision(np.float64, np.nan, "float64: squares of such small kernel values underflow in float32")
    if m > PROBE_ROWS // 2:
        return Precision(np.float64, np.nan, f"float64: a test of float32 with {m} centers costs what it saves")
    if not problem.plan.probe:
        return Precision(np.float64, np.nan, "float64: max_memory is too small to test float32")
    return product_precision(
        selection.kernel, selection.centers.rows, selection.factor, probe, alpha_share=LEAST_ALPHA_SHARE
    )


def _exact_problem(kernel: Kernel, problem: SampleProblem) -> ExactProblem:
    """The problem on all rows of the sample, on which kernels are compared."""
    problem = problem.some(kernel, np.flatnonzero(problem.weight > 0))
    block, fold, criterion_for = problem.sample.with_weight(), problem.fold, problem.criterion_for
    orbits = None
    if problem.copies is not None:
        orbits = problem.copies.orbits(block.n_rows)
        fold = orbits.number if fold is None else fold[orbits.number]
        block, criterion_for = problem.copies(block), _of_rows_alone(criterion_for, orbits)
    weight = np.asarray(block.weight)
    X, observations = at_points(kernel, block.X, block.y, weight, weight if block.unit is None else block.unit)
    return ExactProblem(
        X=kernel.prepared(X),
        observations=observations,
        criterion_for=criterion_for,
        fold=fold,
        orbits=orbits,
        alpha=problem.alpha,
        penalty=problem.penalty,
        intercept=problem.intercept,
        budget=problem.budget.less(problem.plan.base_bytes),
        has_classes=problem.label is not None,
        verbose=problem.verbose,
    )


def _of_rows_alone(criterion_for: CriterionFor, orbits: Orbits) -> CriterionFor:
    """The criterion of rows and copies, in which copies have no part."""

    def evaluated(rows: Indices) -> Criterion:
        own = orbits.own[rows]
        criterion = criterion_for(orbits.number[rows[own]])
        return Criterion(lambda outputs: criterion.losses(outputs[:, own]), criterion.share)

    return evaluated


def _candidates(kernel: Kernel, problem: SampleProblem, rng: np.random.Generator) -> CandidateRows:
    """The rows of the sample as candidates, with what the selector precomputes for all kernels.

    Copies are candidates, too, unless targets select: a candidate would explain its own copies best.
    """
    counted, label = problem.counted.with_weight(), problem.label
    if problem.virtual_centers:
        assert problem.copies is not None
        counted = problem.copies(counted)
        label = None if label is None else np.repeat(label, problem.copies.size)
    candidates = CandidateRows(counted.X, counted.y, np.asarray(counted.weight), label)
    prepared = problem.selector.prepared(kernel, candidates, rng)
    problem.budget.release()
    return prepared


def _centers(
    kernel: Kernel,
    problem: SampleProblem,
    candidates: CandidateRows,
    n_centers: int | None,
    rng: np.random.Generator,
) -> Centers:
    def moments(centers: Any) -> Moments:
        found: Moments = HeldRows(problem.counted).reduce(MomentsOf(kernel, centers))
        return found

    with at_most(problem.plan.sample_threads), stage("selection of centers", verbose=problem.verbose):
        centers = problem.selector.select(kernel, candidates, n_centers, rng, moments=moments)
    problem.budget.release()
    return replace(centers, indices=None) if problem.virtual_centers else centers


def _factor(kernel: Kernel, centers: Any, problem: SampleProblem, tolerance: float) -> RankFactor | None:
    """The factor of the centers' kernel matrix; float32 has no more digits than DEPENDENT_CENTERS asks for."""
    if problem.penalty != "rkhs":
        return None
    return factor_of(
        _matrix_of_centers(kernel, centers, problem),
        tolerance=DEPENDENT_CENTERS if in_single(problem.sample.X, centers) else tolerance,
    )


def _drop_dependent(selection: ModelSelection) -> ModelSelection:
    """Without centers that are in the span of others and would get no coefficient, in the order of the factor.

    If the kernel is positive for none of them, all stay: the model is a constant, and has centers.
    """
    centers, factor = selection.centers, selection.factor
    if factor is None or len(factor.kept) == 0 or np.array_equal(factor.kept, np.arange(n_rows(centers.rows))):
        return selection
    kept = factor.kept
    independent = replace(
        centers,
        rows=take(centers.rows, kept),
        indices=None if centers.indices is None else centers.indices[kept],
        trace=None if centers.trace is None else centers.trace[kept],
    )
    return replace(selection, centers=independent, factor=RankFactor(factor.R, np.arange(len(kept))))


def _unrepresented(kernel: Kernel, problem: SampleProblem) -> float:
    """The part of the variance in feature space below the tolerance of the centers, from some rows."""
    some = np.unique(np.linspace(0, problem.sample.n_rows - 1, VARIANCE_ROWS).astype(np.intp))
    K = gram(kernel, kernel.subset(problem.sample.X, some), budget=problem.budget)
    variance, largest = float(K.diagonal().mean() - K.mean()), float(K.diagonal().max())
    return NEARLY_DEPENDENT_CENTERS * largest / variance if variance > 0.0 else 0.0


def _matrix_of_centers(kernel: Kernel, centers: Any, problem: SampleProblem) -> Floats:
    """k(centers, centers) in float64, whatever the type of the rows: fits with small alpha need its digits."""
    if kernel.takes_values:
        return gram(kernel, kernel.subset(problem.sample.X, centers), budget=problem.budget)
    return gram(kernel, in_double(centers), budget=problem.budget)
