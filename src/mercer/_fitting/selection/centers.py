"""Fits with m centers: kernel, centers and the precision of products, chosen on a sample."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._fitting.memory import (
    LEAST_CENTERS,
    MOST_COMPARED_ROWS,
    PROBE_ROWS,
    RANDOM_PER_SELECTED,
    Sizes,
    probe_rows,
)
from mercer._fitting.selection.comparison import Compared, compare
from mercer._fitting.selection.path import TuningPath
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
# Beyond so many centers, few alphas are compared, around that of the comparison of kernels.
MANY_CENTERS = 2500
# Rows used to estimate the part of the kernel that is the same for all rows.
VARIANCE_ROWS = 128
# Rows used for a mean kernel row if there is no memory for more.
LEAST_PROBE = 64
# Squares of smaller float32 kernel values lose digits in float32.
LEAST_PRODUCTS = 1e-15
# Centers are in float64 if that lowers the criterion of their selection by this share.
VISIBLE = 0.02


@dataclass(frozen=True)
class Encoded:
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
class Choice:
    """The chosen kernel, its centers, the candidates compared, and how the centers were selected, as text.

    ``factor`` is that of the centers' kernel matrix, None for the penalty c'c; ``blur`` the part of the variance
    in feature space that the centers cannot represent, because it is below their tolerance; ``alpha`` that of the
    comparison, None: alphas were not compared; ``selector`` is what selected the centers.
    """

    kernel: Kernel
    centers: Centers
    factor: RankFactor | None
    paths: tuple[TuningPath, ...]
    words: str
    selector: CenterSelector
    blur: float = 0.0
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
class Task:
    """A sample of rows with targets, and how fits are made and evaluated.

    ``sample`` holds X, targets (n, q), weights and units; ``label`` (n,) class numbers, if there are classes;
    ``fold`` (n,) numbers rows that are held out together; ``criterion`` evaluates some of its rows; ``alpha`` is a
    number, or None for leave-one-out; ``sizes`` set how much is done at once. ``doubt`` (n,) are the units under
    the other meaning of weights, None: no doubt; ``few_enough``: fewer centers are selected if they do as well.
    ``copies`` of the rows join all fits, leave them with their row, and are not evaluated.
    """

    sample: Block
    label: Indices | None
    fold: Indices | None
    criterion: CriterionFor
    selector: CenterSelector
    n_centers: int | None
    alpha: float | None
    penalty: Penalty
    intercept: bool
    budget: Budget
    sizes: Sizes
    verbose: int = 0
    doubt: Array | None = None
    few_enough: bool = False
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

    def some(self, kernel: Kernel, rows: Indices) -> "Task":
        """The task on some rows of the sample."""
        if len(rows) == self.sample.n_rows:
            return self
        return replace(
            self,
            sample=replace(self.sample.take(rows), X=kernel.subset(self.sample.X, rows)),
            label=None if self.label is None else self.label[rows],
            fold=None if self.fold is None else self.fold[rows],
            criterion=lambda few: self.criterion(rows[few]),
            doubt=None if self.doubt is None else self.doubt[rows],
        )


def choose(kernel: Kernel, task: Task, rng: np.random.Generator, compared: Compared | None = None) -> Choice:
    """Choose kernel parameters on the sample, unless ``compared`` before, and select centers among its rows.

    Kernel values in float32 may be too alike for so many centers: where more of them would matter, centers are in
    float64, and with them all values.
    """
    known = compared is not None
    compared = _compared(kernel, task, rng) if compared is None else compared
    n_centers = task.n_centers
    words = f"{type(task.selector).__name__} on {task.sample.n_rows} rows"
    if task.copies is not None and task.virtual_centers:
        words += f" and {task.copies.size - 1} copies of each"
    if task.few_enough and n_centers is not None:
        words += _words_of_number(compared.enough, None if known or task.sizes.lowered else n_centers)
        if compared.enough is not None:
            n_centers = min(max(compared.enough, LEAST_CENTERS), n_centers)
    found = compared, n_centers, words + task.sizes.words
    choice = _selected(*found, task, _prepared(kernel, task, rng), rng)
    enough = n_centers is None or choice.n_centers >= n_centers or choice.least == np.inf
    if enough or not task.may_be_precise:
        return choice
    precise = replace(task, sample=replace(task.sample, X=in_double(task.sample.X)))
    other = _selected(*found, precise, _prepared(kernel, precise, rng), rng)
    return other if other.least < (1.0 - VISIBLE) * choice.least else choice


def _selected(
    compared: Compared,
    n_centers: int | None,
    words: str,
    task: Task,
    candidates: CandidateRows,
    rng: np.random.Generator,
) -> Choice:
    """The kernel with its centers, without those in the span of others."""
    kernel = compared.kernel
    centers = _centers(kernel, task, candidates, n_centers, rng)
    if _any_origin(task) and isinstance(task.selector, Given):
        kernel = _around_given(kernel, centers.rows)
    if not kernel.takes_values:
        check_size(kernel, self_similarity(kernel, centers.rows))
    factor = _factor(kernel, centers.rows, task, NEARLY_DEPENDENT_CENTERS)
    blur = 0.0 if factor is None else _blur(kernel, task)
    return _independent(
        Choice(kernel, centers, factor, compared.paths, words, task.selector, blur, compared.alpha)
    )


def select_again(choice: Choice, task: Task, rows: Indices, rng: np.random.Generator) -> Choice:
    """As many centers for the chosen kernel, selected among some rows of the sample, by their targets alone."""
    sample, weight = task.sample, np.zeros(task.sample.n_rows)
    weight[rows] = task.weight[rows]
    X = sample.X if in_single(choice.centers.rows) else in_double(sample.X)
    few = replace(task, sample=replace(sample, X=X, weight=weight), selector=choice.selector)
    found = Compared([choice.kernel], paths=choice.paths)
    return _selected(found, choice.n_centers, choice.words, few, _prepared(choice.kernel, few, rng), rng)


def _words_of_number(enough: int | None, most: int | None) -> str:
    """Why there are so many centers: they are enough, or ``most``, None: all rows, or what the budget allows."""
    if enough is None:
        return f", at the limit{'' if most is None else f' of {most}'}: more might be better"
    return f", as many as matter in leave-one-out{'' if most is None else f', of at most {most}'}"


def _compared(kernel: Kernel, task: Task, rng: np.random.Generator) -> Compared:
    """Kernels compared on rows of the sample; one alone only if the number of centers is to be chosen."""
    most_rows = MOST_COMPARED_ROWS // rows_for_each(task.copies)
    few = task.some(kernel, np.sort(rng.permutation(task.sample.n_rows)[:most_rows]))
    problem = _every_row(kernel, few)
    task.budget.release()
    around, count = not isinstance(task.selector, Given), task.few_enough
    most = None if task.n_centers is None else RANDOM_PER_SELECTED * task.n_centers
    alone = count or (task.alpha is None and most is not None and most > RANDOM_PER_SELECTED * MANY_CENTERS)
    return compare(kernel, problem, rng, around=around, alone=alone, count=count, most=most)


def _any_origin(task: Task) -> bool:
    """Whether a kernel may choose its origin: a free intercept compensates for it."""
    return task.intercept and task.penalty == "rkhs"


def _around_given(kernel: Kernel, centers: Any) -> Kernel:
    """A linear kernel around its centers, if they span all affine functions: then this only affects accuracy.

    With fewer centers, or in a sum with other kernels, it would be a different model from the one specified.
    """
    plain = kernel.kernel if isinstance(kernel, Scaled) else kernel
    around = kernel.centered_on(centers) if isinstance(plain, Linear) else kernel
    if around is kernel or np.linalg.matrix_rank(centers - centers.mean(axis=0)) < centers.shape[1]:
        return kernel
    return around


def precision_of(choice: Choice, task: Task) -> Precision:
    """The precision of the products of the pass, and of what, decided on rows of the sample."""
    kernel, centers, factor = choice.kernel, choice.centers.rows, choice.factor
    m, n = n_rows(centers), task.sample.n_rows
    if factor is None:
        return Precision(np.float64, np.nan, "float64")
    few = not task.sizes.probe
    size = LEAST_PROBE if few else probe_rows(m)
    probe = take(task.sample.X, np.unique(np.linspace(0, n - 1, size).astype(np.intp)))
    with at_most(task.sizes.few), stage("precision of products", verbose=task.verbose):
        precision = _precision(choice, task, probe)
        return with_coordinates(
            precision,
            kernel,
            centers,
            factor,
            probe,
            alpha_share=LEAST_ALPHA_SHARE,
            intercept=task.intercept,
            known=not few,
        )


def _precision(choice: Choice, task: Task, probe: Any) -> Precision:
    """float32 if its products are accurate enough for rows of the sample, otherwise float64."""
    m = choice.n_centers
    single = in_single(task.sample.X, choice.centers.rows) and not choice.kernel.takes_values
    if not single or choice.factor is None:
        return Precision(np.float64, np.nan, "float64")
    if self_similarity(choice.kernel, choice.centers.rows).max() < LEAST_PRODUCTS:
        return Precision(np.float64, np.nan, "float64: squares of such small kernel values underflow in float32")
    if m > PROBE_ROWS // 2:
        return Precision(np.float64, np.nan, f"float64: a test of float32 with {m} centers costs what it saves")
    if not task.sizes.probe:
        return Precision(np.float64, np.nan, "float64: max_memory is too small to test float32")
    return product_precision(
        choice.kernel, choice.centers.rows, choice.factor, probe, alpha_share=LEAST_ALPHA_SHARE
    )


def _every_row(kernel: Kernel, task: Task) -> ExactProblem:
    """The problem on all rows of the sample, on which kernels are compared."""
    task = task.some(kernel, np.flatnonzero(task.weight > 0))
    block, fold, criterion, orbits = task.sample.with_weight(), task.fold, task.criterion, None
    if task.copies is not None:
        orbits = task.copies.orbits(block.n_rows)
        fold = orbits.number if fold is None else fold[orbits.number]
        block, criterion = task.copies(block), _of_rows_alone(criterion, orbits)
    weight = np.asarray(block.weight)
    X, observations = at_points(kernel, block.X, block.y, weight, weight if block.unit is None else block.unit)
    return ExactProblem(
        X=kernel.prepared(X),
        observations=observations,
        criterion=criterion,
        fold=fold,
        orbits=orbits,
        alpha=task.alpha,
        penalty=task.penalty,
        intercept=task.intercept,
        budget=task.budget.less(task.sizes.held),
        classes=task.label is not None,
        verbose=task.verbose,
    )


def _of_rows_alone(criterion: CriterionFor, orbits: Orbits) -> CriterionFor:
    """The criterion of rows and copies, in which copies have no part."""

    def evaluated(rows: Indices) -> Criterion:
        own = orbits.own[rows]
        judge = criterion(orbits.number[rows[own]])
        return Criterion(lambda outputs: judge.losses(outputs[:, own]), judge.share)

    return evaluated


def _prepared(kernel: Kernel, task: Task, rng: np.random.Generator) -> CandidateRows:
    """The rows of the sample as candidates, with what the selector precomputes for all kernels.

    Copies are candidates, too, unless targets select: a candidate would explain its own copies best.
    """
    counted, label = task.counted.with_weight(), task.label
    if task.virtual_centers:
        assert task.copies is not None
        counted, label = task.copies(counted), None if label is None else np.repeat(label, task.copies.size)
    candidates = CandidateRows(counted.X, counted.y, np.asarray(counted.weight), label)
    prepared = task.selector.prepared(kernel, candidates, rng)
    task.budget.release()
    return prepared


def _centers(
    kernel: Kernel, task: Task, candidates: CandidateRows, n_centers: int | None, rng: np.random.Generator
) -> Centers:
    with at_most(task.sizes.few), stage("selection of centers", verbose=task.verbose):
        centers = task.selector.select(
            kernel,
            candidates,
            n_centers,
            rng,
            moments=lambda centers: HeldRows(task.counted).reduce(MomentsOf(kernel, centers)),
        )
    task.budget.release()
    return replace(centers, indices=None) if task.virtual_centers else centers


def _factor(kernel: Kernel, centers: Any, task: Task, tolerance: float) -> RankFactor | None:
    """The factor of the centers' kernel matrix; float32 has no more digits than DEPENDENT_CENTERS asks for."""
    if task.penalty != "rkhs":
        return None
    return factor_of(
        _among(kernel, centers, task),
        tolerance=DEPENDENT_CENTERS if in_single(task.sample.X, centers) else tolerance,
    )


def _independent(choice: Choice) -> Choice:
    """Without centers that are in the span of others and would get no coefficient, in the order of the factor.

    If the kernel is positive for none of them, all stay: the model is a constant, and has centers.
    """
    centers, factor = choice.centers, choice.factor
    if factor is None or len(factor.kept) == 0 or np.array_equal(factor.kept, np.arange(n_rows(centers.rows))):
        return choice
    kept = factor.kept
    few = replace(
        centers,
        rows=take(centers.rows, kept),
        indices=None if centers.indices is None else centers.indices[kept],
        trace=None if centers.trace is None else centers.trace[kept],
    )
    return replace(choice, centers=few, factor=RankFactor(factor.R, np.arange(len(kept))))


def _blur(kernel: Kernel, task: Task) -> float:
    """The part of the variance in feature space below the tolerance of the centers, from some rows."""
    some = np.unique(np.linspace(0, task.sample.n_rows - 1, VARIANCE_ROWS).astype(np.intp))
    K = gram(kernel, kernel.subset(task.sample.X, some), budget=task.budget)
    variance, largest = float(K.diagonal().mean() - K.mean()), float(K.diagonal().max())
    return NEARLY_DEPENDENT_CENTERS * largest / variance if variance > 0.0 else 0.0


def _among(kernel: Kernel, centers: Any, task: Task) -> Floats:
    """k(centers, centers) in float64, whatever the type of the rows: fits with small alpha need its digits."""
    if kernel.takes_values:
        return gram(kernel, kernel.subset(task.sample.X, centers), budget=task.budget)
    return gram(kernel, in_double(centers), budget=task.budget)
