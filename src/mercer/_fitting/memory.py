"""The memory of every stage of a fit, and how much is done at once to stay within a budget.

The check before the search, the sizes used by the stages and the plan of a fit use the same numbers. Within a
small budget fewer threads work in parallel and alphas are compared in smaller steps, which costs time and changes
results by rounding only; kernels are compared on fewer rows and centers selected among fewer candidates, and there
are fewer centers unless their number is given, as the report of the fit states. If that is not enough, an error is
raised before the search begins.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import ceil, floor, inf, log10
from typing import Any

from mercer._fitting.selection.path import ALPHAS
from mercer._gram import Budget, gram_bytes
from mercer._gram.blocks import BLOCK_SIZE, MATRICES_HELD
from mercer._gram.budget import GIB, readable_size
from mercer._gram.moments import PRODUCT_ROWS
from mercer._linalg.threads import ITEMS_AHEAD
from mercer._scores.criteria import evaluation_bytes
from mercer._solvers.moments.leave_one_out import ROWS_IN_MEMORY as LOO_BLOCK_ROWS
from mercer.centers import CenterSelector, ForwardSelection
from mercer.centers._base import Extent
from mercer.centers._resolve import EXACT_ROWS, selector_for
from mercer.errors import MemoryBudgetError
from mercer.kernels import RBF, InverseMultiquadric, Kernel, Linear, RationalQuadratic
from mercer.kernels._length_scales import MAX_ROWS
from mercer.rows._base import BLOCK_ROWS
from mercer.rows._table import is_sparse, n_rows

# Outputs evaluated at once: several alphas for few rows, one alpha for many.
JUDGED_OUTPUTS = 2**21
# Matrices (m, m) in the solution: the moments, the factor of the penalty, and LAPACK's results and workspace.
MOMENTS_HELD = 8
# Rows for the test of precision, and matrices (m, m) that it needs.
PROBE_ROWS = 4096
PROBE_HELD = 10
# Numbers per row of the sample besides its features and targets: weights, keys, positions.
ROW_NUMBERS = 12
# Approximate number of kernels compared if a kernel has parameters to choose.
KERNELS_TO_COMPARE = 15
# Arrays (n, k) of rows and classes while leave-one-out outputs become decisions and probabilities.
CALIBRATION_HELD = 9
# Matrices (u, u) for each Cholesky factor: the factor, and its inverse in the basis of the points; as many again
# for folds of up to half of the rows.
ROOT_HELD = 2
# Kernels whose matrix needs no memory besides itself.
IN_PLACE = RBF, RationalQuadratic, InverseMultiquadric, Linear
# Matrices (u, u) for singular values: the kernel matrix, copies, both sides, scaled ones, LAPACK's workspace.
SINGULAR_HELD = 10
# Leave-one-out outputs kept for each alpha, over rows and targets, unless all rows are requested.
LOO_OUTPUTS = 2**19
LEAST_LOO_ROWS = 2048
# Memory that BLAS retains for every thread that has called it, and the share of a budget allowed for it.
BLAS_BUFFER = 2.0**25
BLAS_SHARE = 0.25
# Fewer points than this are not enough to compare kernels.
LEAST_COMPARED_POINTS = 100
# However few centers are enough on the sample, this number costs next to nothing; a budget leaves no fewer by
# default.
LEAST_CENTERS = 100

# Kernels in parallel, regardless of the number of threads.
MOST_AT_ONCE = 16
# Bytes per pair of rows while the median of their distances is computed.
PAIR_BYTES = 20.0
# Random centers with which kernels are compared, for each of those that will be selected.
RANDOM_PER_SELECTED = 2


@dataclass(frozen=True)
class SearchStage:
    """Numbers of rows and of centers with which kernels are compared."""

    n_rows: int
    n_centers: int


# All kernels are compared on the first; the best few on the next, as long as more centers or rows matter.
SEARCH_STAGES = SearchStage(2000, 240), SearchStage(5000, 600), SearchStage(5000, 1200)
# Rows on which kernels that differ little are compared, with as many centers as before.
MOST_COMPARED_ROWS = 10_000


@dataclass(frozen=True)
class MemoryStage:
    """Name and peak memory in bytes of a stage of a fit, including the rows in memory."""

    name: str
    n_bytes: float


@dataclass(frozen=True)
class MemoryInputs:
    """The properties of a fit with centers that determine its memory.

    ``row`` and ``item`` are the bytes of a row and of a number in it; of ``n`` rows (None: not known) ``sample``
    are in memory, and leave-one-out uses ``held_out`` of them. There are q targets, with or without classes,
    ``n_centers`` (None: chosen by the selector), ``kernels`` and ``alphas`` to compare, at most ``threads``.
    ``copied``: blocks of rows are not views; ``blocks`` of kernel values are in memory while one is computed.
    However few rows are requested, at least ``floor`` are kept, and ``least`` for the labels. ``usual`` is the
    largest number of centers that the data may require, of which the budget may allow fewer; None: the number is
    given.
    """

    row: float
    sample: int
    held_out: int
    q: int
    n_centers: int | None
    selector: CenterSelector
    threads: int
    n: int | None = None
    item: int = 8
    has_classes: bool = True
    kernels: int = 1
    alphas: int = len(ALPHAS)
    copied: bool = False
    blocks: int = 1
    least: int = 0
    floor: int = 0
    usual: int | None = None

    @property
    def m(self) -> int:
        """Largest number of centers."""
        return self.selector.most(self.sample) if self.n_centers is None else self.n_centers

    @property
    def value(self) -> float:
        """Bytes per kernel value while its products are computed."""
        return float(self.blocks * self.item + (8 if self.item < 8 else 0))

    @property
    def base_bytes(self) -> float:
        """Bytes of the sample, its targets and the centers, and of BLAS for all threads but the first."""
        rows = self.sample * (self.row + 8.0 * self.q + 8.0 * ROW_NUMBERS) + self.m * self.row
        return rows + (self.threads - 1) * BLAS_BUFFER

    @property
    def compares(self) -> bool:
        """Whether kernels, or numbers of centers, are compared."""
        return self.kernels > 1 or self.usual is not None

    @property
    def with_labels(self) -> "MemoryInputs":
        """The memory inputs of the largest sample, with all rows that may be kept for their labels."""
        most = inf if self.n is None else self.n
        sample, held_out = (int(min(rows + self.least, most)) for rows in (self.sample, self.held_out))
        return replace(self, sample=sample, held_out=held_out)

    def written(self, m: int) -> "MemoryInputs":
        """The inputs if the user writes ``centers=m``."""
        return replace(self.with_labels, n_centers=m, selector=selector_for(m), usual=None)

    def extent(self, threads: int) -> Extent:
        """What the memory of a selector depends on."""
        return Extent(self.sample, self.row, self.value, self.q, threads)


# From a value of the parameter ``centers`` to the memory inputs of the fit.
InputsForCenters = Callable[[int | str], MemoryInputs]


@dataclass(frozen=True)
class MemoryPlan:
    """How much a fit does at once, and the stages with their bytes.

    ``n_centers`` is their largest number (None: chosen by the selector), ``lowered`` if the budget sets it.
    ``threads`` work in the pass over all rows, ``sample_threads`` in passes over the sample. Kernels are compared
    in ``search_stages``; ``alphas`` are evaluated at once in the end. Products use blocks of ``cells`` kernel
    values. ``probe``: whether the precision of products is tested. ``base_bytes`` are those of the sample.
    """

    n_centers: int | None
    lowered: bool
    threads: int
    sample_threads: int
    search_stages: tuple[SearchStage, ...]
    alphas: int
    cells: int
    probe: bool
    base_bytes: float
    selector: CenterSelector
    stages: tuple[MemoryStage, ...] = field(repr=False)
    words: str = ""

    @property
    def largest(self) -> MemoryStage:
        """The stage with the largest peak."""
        return max(self.stages, key=lambda stage: stage.n_bytes)


def plan_within(inputs: MemoryInputs, budget: Budget) -> MemoryPlan:
    """The largest plan with which every stage of a fit with centers stays within the budget, or an error.

    MemoryBudgetError names the largest stage, its bytes, the budget, and parameters that would fit.
    """
    inputs = _lowered(inputs, budget.n_bytes)
    plan = largest_plan(inputs, budget.n_bytes)
    if plan.largest.n_bytes > budget.n_bytes:
        raise refusal(plan.largest, budget, _remedies(inputs, budget), plan.largest.n_bytes)
    return plan


def largest_plan(inputs: MemoryInputs, available: float) -> MemoryPlan:
    """The largest sizes that fit, or the smallest ones if none do: of centers first, then of threads."""
    inputs = _lowered(inputs, available)
    least = _plan(replace(inputs, threads=1), available)
    if least.largest.n_bytes > available:
        return least
    threads = threads_within(available, inputs.threads)
    threads = _first(_down(threads), lambda t: _pass_bytes(replace(inputs, threads=t)), available)
    several = (_plan(replace(inputs, threads=t), available) for t in range(threads, 1, -1))
    return next((plan for plan in several if plan.largest.n_bytes <= available), least)


def _lowered(inputs: MemoryInputs, available: float) -> MemoryInputs:
    """With as many centers as fit, unless their number is given; at least ``LEAST_CENTERS``."""
    m = inputs.n_centers
    if inputs.usual is None or m is None:
        return inputs
    most = _most(lambda m: _fits(replace(inputs, n_centers=m), available), m)
    return replace(inputs, n_centers=max(most, min(m, LEAST_CENTERS)))


def _plan(inputs: MemoryInputs, available: float) -> MemoryPlan:
    """The largest sizes that fit with this number of centers and of threads, or the smallest ones."""
    sample_threads, selector = _selection(inputs, available)
    before, inputs = inputs, replace(inputs, selector=selector)
    search_stages = search_stages_within(
        _of_sample(inputs), available - inputs.base_bytes, RANDOM_PER_SELECTED * inputs.m
    )
    m, n = inputs.m, inputs.held_out
    alphas = _first(_down(inputs.alphas), lambda a: _loo_bytes(inputs, n, m, a, sample_threads), available)
    cells = (available - _solved_bytes(inputs, m)) / _cell_bytes(inputs)
    plan = MemoryPlan(
        n_centers=inputs.n_centers,
        lowered=inputs.usual is not None and m < inputs.usual,
        threads=inputs.threads,
        sample_threads=sample_threads,
        search_stages=search_stages,
        alphas=alphas,
        cells=int(max(min(cells, BLOCK_SIZE), m)),
        probe=_probe_bytes(inputs, sample_threads) <= available,
        base_bytes=inputs.base_bytes,
        selector=selector,
        stages=(),
    )
    return replace(plan, stages=tuple(_stages(inputs, plan)), words=_words(plan, before))


def _stages(inputs: MemoryInputs, plan: MemoryPlan) -> Iterator[MemoryStage]:
    """Every stage with its memory at these sizes."""
    m, held_out, q = inputs.m, inputs.held_out, inputs.q
    yield MemoryStage(f"the sample of {inputs.sample} rows", _sample_bytes(inputs))
    if inputs.compares:
        for stage in plan.search_stages:
            words = f"the comparison of kernels on {stage.n_rows} rows with {stage.n_centers} centers"
            yield MemoryStage(words, inputs.base_bytes + search_bytes(_of_sample(inputs), stage, 1))
    yield MemoryStage(
        f"the selection of {m} centers",
        inputs.base_bytes + plan.selector.n_bytes(m, inputs.extent(plan.sample_threads)),
    )
    if plan.probe:
        yield MemoryStage(f"the trial of products for {m} centers", _probe_bytes(inputs, plan.sample_threads))
    yield MemoryStage(
        f"the pass for the moments of {m} centers", _pass_bytes(replace(inputs, threads=plan.threads))
    )
    yield MemoryStage(f"the solution for {m} centers", inputs.base_bytes + 8.0 * MOMENTS_HELD * m * m)
    words = f"leave-one-out outputs of {held_out} rows for {plan.alphas} of {inputs.alphas} alphas and {q} targets"
    yield MemoryStage(words, _loo_bytes(inputs, held_out, m, plan.alphas, plan.sample_threads))
    outputs = _cell_bytes(inputs) * min(plan.cells, held_out * m)
    yield MemoryStage(f"outputs of {held_out} rows", _solved_bytes(inputs, m) + outputs)
    if inputs.has_classes:
        yield MemoryStage(
            f"the calibration on {held_out} rows and {q} targets", inputs.base_bytes + _calibration_bytes(inputs)
        )


@dataclass(frozen=True)
class ExactShape:
    """A fit to n rows with q targets, with or without classes; its centers are u rows of ``row`` bytes.

    ``base_bytes`` matrices (u, u) are in memory at its peak; ``folds``: several rows are held out together.
    """

    n: int
    u: int
    q: int
    row: float
    alphas: int = len(ALPHAS)
    has_classes: bool = True
    matrices: int = MATRICES_HELD
    folds: bool = False

    def n_bytes(self, alphas: int) -> float:
        """Peak memory with this many alphas compared at once.

        ``matrices`` matrices during the decomposition; after it one remains, and two more are needed for
        leave-one-out.
        """
        n, u, q = self.n, self.u, self.q
        rows = n * (8.0 * q + 8.0 * ROW_NUMBERS) + 2.0 * u * self.row
        leaving = 24.0 * u * u + 8.0 * alphas * n * (q + 8.0)
        evaluation = evaluation_bytes(evaluated_at_once(alphas, n, q), n, q, has_classes=self.has_classes)
        return rows + max(gram_bytes(u, self.matrices), leaving + evaluation)


def exact_threads(extent: ExactShape, available: float, threads: int) -> int:
    """BLAS threads for such a fit: those for which there is memory besides one decomposition."""
    most = threads_within(available, threads)
    spare = min(max(available - extent.n_bytes(1), 0.0), most * BLAS_BUFFER)
    return min(most, 1 + int(spare / BLAS_BUFFER))


def alphas_at_once(extent: ExactShape, available: float) -> int:
    """How many alphas are evaluated at once besides one decomposition."""
    return _first(_down(evaluated_at_once(extent.alphas, extent.n, extent.q)), extent.n_bytes, available)


def root_workers(extent: ExactShape, available: float, workers: int) -> int:
    """How many Cholesky factors are computed in parallel: a few matrices each, and one that they share."""
    rows = extent.n * (8.0 * extent.q + 8.0 * ROW_NUMBERS) + 2.0 * extent.u * extent.row
    each = ROOT_HELD * (1 + extent.folds)
    return _first(_down(workers), lambda k: rows + gram_bytes(extent.u, 1 + each * k), available)


def matrices_held(kernel: Kernel, X: Any, *, roots: bool, singular: bool, folds: bool) -> int:
    """Matrices (u, u) at the peak of a fit with every point as a center, by Cholesky factors (``roots``), singular
    values or eigenvectors.

    Fewer than for eigenvectors only if the kernel matrix itself is computed in place.
    """
    if singular:
        return SINGULAR_HELD
    in_place = type(kernel) in IN_PLACE and not is_sparse(X)
    return 1 + ROOT_HELD if roots and in_place and not folds else MATRICES_HELD


def search_stages_within(extent: ExactShape, available: float, most: int | None = None) -> tuple[SearchStage, ...]:
    """The stages for these rows with at most ``most`` centers, or fewer of both if there is no memory for more."""
    found: list[SearchStage] = []
    for usual in SEARCH_STAGES:
        stage = usual if most is None else replace(usual, n_centers=min(usual.n_centers, most))
        rows = rows_within(extent, stage, available)
        if not found or 2 * stage.n_centers <= rows or rows <= SEARCH_STAGES[1].n_centers:
            found.append(SearchStage(rows, min(stage.n_centers, rows)))
    return tuple(dict.fromkeys(found))


def search_stages_with_copies(
    extent: ExactShape, own: int, available: float, most: int | None = None
) -> tuple[SearchStage, ...]:
    """The same for ``own`` rows, which with their copies are all points: as many rows as there is memory for."""
    found = []
    for usual in SEARCH_STAGES:
        m = min(usual.n_centers, extent.u if most is None else most, extent.u)
        n = rows_within(extent, SearchStage(MOST_COMPARED_ROWS, m), available) * own // extent.u
        found.append(SearchStage(max(n, 1), m))
    return tuple(dict.fromkeys(found))


def rows_within(extent: ExactShape, stage: SearchStage, available: float) -> int:
    """The rows of a stage, or as many as there is memory for."""
    rows = min(stage.n_rows, extent.u)
    sizes = sorted({rows, *range(min(LEAST_COMPARED_POINTS, rows), rows, 50)}, reverse=True)
    return _first(sizes, lambda n: search_bytes(extent, SearchStage(n, min(stage.n_centers, n)), 1), available)


def resolving_rows(u: int, available: float) -> int:
    """Rows from which parameters given as strings are computed: all, or those whose distances fit into memory."""
    enough = available >= PAIR_BYTES * min(u, MAX_ROWS) ** 2
    return u if enough else max(2, min(u, int((available / PAIR_BYTES) ** 0.5)))


def least_comparison(extent: ExactShape, most: int) -> MemoryStage:
    """The comparison of kernels with the least memory, with at most this many centers."""
    stage = search_stages_within(extent, 0.0, most)[0]
    words = f"a comparison of kernels on {stage.n_rows} rows with {stage.n_centers} centers"
    return MemoryStage(words, search_bytes(extent, stage, 1))


def search_batches(extent: ExactShape, m: int, available: float) -> tuple[int, int]:
    """How many kernels are compared in parallel with m centers on all points, and of how many alphas at once."""
    stage = SearchStage(extent.u, m)
    workers = _first(_down(MOST_AT_ONCE), lambda k: search_bytes(extent, stage, k), available)
    most = evaluated_at_once(extent.alphas, extent.n, extent.q)
    return workers, _first(_down(most), lambda a: search_bytes(extent, stage, workers, a), available)


def search_bytes(extent: ExactShape, stage: SearchStage, workers: int, alphas: int = 1) -> float:
    """Kernels compared with m centers on u points: distances; for each kernel its values, coordinates, basis."""
    u, m, q = stage.n_rows, stage.n_centers, extent.q
    n = extent.n * u / max(extent.u, 1)
    outputs = 8.0 * alphas * n * (3.0 * q + 2.0)
    outputs += evaluation_bytes(alphas, int(n), q, has_classes=extent.has_classes)
    each = 8.0 * (5.0 * u * m + 9.0 * m * m) + outputs
    return u * extent.row + 8.0 * u * m + workers * each


def check_exact(extent: ExactShape, budget: Budget, inputs_for: InputsForCenters, *, auto: bool = True) -> None:
    """Raise MemoryBudgetError if a fit with every distinct row as a center is too large; suggest what fits.

    ``auto``: whether the default number of centers for many rows may be suggested.
    """
    n, u, need = extent.n, extent.u, extent.n_bytes(1)
    if need <= budget.n_bytes:
        return
    stage = MemoryStage(f"the ({u}, {u}) kernel matrix and its decomposition", gram_bytes(u, extent.matrices))
    if stage.n_bytes <= budget.n_bytes:
        stage = MemoryStage(f"leave-one-out outputs of {n} rows besides their ({u}, {u}) kernel matrix", need)
    available = budget.n_bytes
    helps = auto and n > EXACT_ROWS and _fits(_lowered(inputs_for("auto"), available), available)
    default = ['centers="auto"'] if helps else []
    raise refusal(stage, budget, default + _fewer_centers(inputs_for, max(u // 2, 1), available), need)


def sparse_path_bytes(u: int, m: int, c: int) -> float:
    """A path of m centers on u points: copies of its columns, and sums over c candidates."""
    return 8.0 * (6.0 * u * m + 4.0 * c**2)


def sparse_trial_bytes(u: int, c: int) -> float:
    """A trial of one kernel on u points with c candidates: their columns and sums, and those of the path."""
    return 8.0 * (1.5 * u * c + 2.0 * c * c)


def most_loo_rows(n: int, q: int) -> int:
    """How many of n rows leave-one-out uses for q targets, such that outputs for all alphas fit into memory."""
    return min(n, max(LEAST_LOO_ROWS, LOO_OUTPUTS // q))


def row_bytes(X: Any) -> float:
    """Bytes per row of an array or a CSR matrix; for a list, those of its references."""
    n = max(n_rows(X), 1)
    if is_sparse(X):
        return float(X.data.nbytes + X.indices.nbytes) / n + 8.0
    return float(getattr(X, "nbytes", 8 * n)) / n


def blocks_of(kernel: Kernel, X: Any) -> int:
    """Blocks of kernel values in memory while one is computed: a sparse product, a distance, parts of a sum."""
    if is_sparse(X):
        return 3
    return 1 if isinstance(kernel, RBF) else 2


def refusal(stage: MemoryStage, budget: Budget, remedies: Sequence[str], need: float) -> MemoryBudgetError:
    """The error for a stage beyond the budget, with parameters that would fit."""
    most = f"{budget.parameter}={_above(need / GIB)}"
    return MemoryBudgetError(
        f"{stage.name} would need {readable_size(stage.n_bytes)} and the budget is "
        f"{readable_size(budget.n_bytes)}; write {' or '.join([*remedies, most])} (in GiB)"
    )


def _remedies(inputs: MemoryInputs, budget: Budget) -> list[str]:
    """Parameters with which the fit would stay within the budget."""
    found, available = [], budget.n_bytes
    if inputs.n_centers is not None:
        found += _fewer_centers(inputs.written, inputs.n_centers - 1, available)

    def fewer(n: int) -> MemoryInputs:
        sample = max(n, inputs.floor) + inputs.least
        return replace(inputs, sample=min(sample, inputs.sample), held_out=min(n + inputs.least, inputs.held_out))

    rows = _most(lambda n: _fits(fewer(n), available), inputs.sample - inputs.least - 1)
    return found + ([f"loo_rows={_below(rows)}"] if rows >= 2 * LEAST_COMPARED_POINTS else [])


def _fewer_centers(inputs_for: Callable[[int], MemoryInputs], high: int, available: float) -> list[str]:
    """The largest number of centers of two digits, up to ``high``, for which it fits; none if not even one does.

    Memory grows with the number as long as the selector is the same.
    """
    numbers = {k * 10**e for e in range(len(str(high))) for k in range(1, 100) if k * 10**e <= high}
    for _, alike in groupby(sorted(numbers, reverse=True), lambda m: type(inputs_for(m).selector)):
        some = sorted(alike)
        found = bisect_left(some, True, key=lambda m: not _fits(inputs_for(m), available))
        if found:
            return [f"centers={some[found - 1]}"]
    return []


def _fits(inputs: MemoryInputs, available: float) -> bool:
    """Whether every stage fits, on one thread and with the smallest sizes if necessary."""
    return _plan(replace(inputs, threads=1), available).largest.n_bytes <= available


def _sample_bytes(inputs: MemoryInputs) -> float:
    """While rows are drawn: those selected, and a copy; if their number is not known, twice as many."""
    rows = 2.0 * inputs.sample if inputs.n is not None else 4.0 * inputs.sample + 2.0 * BLOCK_ROWS
    return rows * (inputs.row + 8.0 * ROW_NUMBERS) + _in_flight(inputs, inputs.threads)


def _in_flight(inputs: MemoryInputs, threads: int) -> float:
    """Blocks of rows that were read and are not yet processed."""
    return (ITEMS_AHEAD * threads + 2.0) * _rows(inputs, BLOCK_ROWS) * inputs.row if inputs.copied else 0.0


def _rows(inputs: MemoryInputs, most: int) -> int:
    return most if inputs.n is None else min(most, inputs.n)


def threads_within(available: float, threads: int) -> int:
    """The largest number of threads whose BLAS buffers stay within their share of the budget."""
    return int(max(1, min(threads, 1 + BLAS_SHARE * available / BLAS_BUFFER)))


def _pass_bytes(inputs: MemoryInputs) -> float:
    """Moments: a piece of kernel values for each thread, sums that wait to be added, and coordinates."""
    m, piece, threads = inputs.m, _rows(inputs, PRODUCT_ROWS), inputs.threads
    each = piece * (m * inputs.value + 3.0 * inputs.row + 16.0 * (inputs.q + 1)) + 8.0 * m * m
    sums = threads * each + 8.0 * m * m * (ITEMS_AHEAD * threads + 4)
    return inputs.base_bytes + sums + _in_flight(inputs, threads)


def _solved_bytes(inputs: MemoryInputs, m: int) -> float:
    """Moments, the factor of the penalty and the basis of the solution."""
    return inputs.base_bytes + 24.0 * m * m


def _cell_bytes(inputs: MemoryInputs) -> float:
    """Bytes per kernel value of a block in a product, including its share of the centered and scaled rows."""
    return 8.0 * inputs.blocks + 2.0 * inputs.row / inputs.m


def _loo_bytes(inputs: MemoryInputs, n: int, m: int, alphas: int, threads: int) -> float:
    """Leave-one-out outputs of n rows for some alphas: their parts, joined, then evaluated."""
    outputs = float(inputs.item) * alphas * n * inputs.q
    work = (
        threads
        * min(n, LOO_BLOCK_ROWS)
        * (2.0 * m * inputs.value + 3.0 * inputs.item * alphas * inputs.q + 3.0 * inputs.row)
    )
    step = evaluated_at_once(alphas, n, inputs.q)
    evaluation = 8.0 * step * n * inputs.q + evaluation_bytes(step, n, inputs.q, has_classes=inputs.has_classes)
    slopes = 16.0 * m * alphas * inputs.q
    return _solved_bytes(inputs, m) + 8.0 * n * inputs.q + slopes + outputs + max(work, outputs, evaluation)


def evaluated_at_once(alphas: int, n: int, q: int) -> int:
    """Number of alphas evaluated at once, of those with outputs in memory."""
    return min(alphas, max(1, JUDGED_OUTPUTS // max(n * q, 1)))


def _calibration_bytes(inputs: MemoryInputs) -> float:
    """Leave-one-out outputs, decisions and probabilities, and the memory for calibration."""
    k = inputs.q if inputs.q > 1 else 2
    return 8.0 * inputs.held_out * CALIBRATION_HELD * k


def probe_rows(m: int) -> int:
    """Rows for the test of precision: two for each center, with many centers one for two.

    With many centers float32 is not tested, and fewer rows only make the bound for float64 larger: the mean of
    H^-1 over random rows is at least the inverse of the mean of H.
    """
    return max(PROBE_ROWS // 2, 2 * m) if m <= PROBE_ROWS // 2 else max(PROBE_ROWS, m // 2)


def _probe_bytes(inputs: MemoryInputs, threads: int) -> float:
    """Moments of a few rows, for values in float32 in both precisions."""
    return (
        inputs.base_bytes
        + min(threads, 2) * min(probe_rows(inputs.m), PRODUCT_ROWS) * inputs.m * inputs.value
        + 8.0 * PROBE_HELD * inputs.m**2
    )


def _selection(inputs: MemoryInputs, available: float) -> tuple[int, CenterSelector]:
    """Threads in passes over the sample, and the selector with as many candidates as fit."""

    def cost(threads: int) -> float:
        m = inputs.m
        return inputs.base_bytes + inputs.selector.n_bytes(m, inputs.extent(threads))

    threads = _first(_down(inputs.threads), cost, available)
    if cost(threads) <= available:
        return threads, inputs.selector
    return threads, inputs.selector.within(available - inputs.base_bytes, inputs.n_centers, inputs.extent(threads))


def _of_sample(inputs: MemoryInputs) -> ExactShape:
    return ExactShape(inputs.sample, inputs.sample, inputs.q, inputs.row, inputs.alphas, inputs.has_classes)


def _words(plan: MemoryPlan, inputs: MemoryInputs) -> str:
    """Text on reductions that affect more than the running time."""
    less = [f"at most {plan.n_centers} centers"] if plan.lowered else []
    selector, search_stages = plan.selector, plan.search_stages
    if isinstance(selector, ForwardSelection) and selector is not inputs.selector:
        less.append(f"{selector.n_candidates} candidates")
    if inputs.compares and search_stages != search_stages_within(
        _of_sample(inputs), inf, RANDOM_PER_SELECTED * inputs.m
    ):
        what = "kernels" if inputs.kernels > 1 else "numbers of centers"
        less.append(f"{search_stages[-1].n_rows} rows to compare {what}")
    return f"; within max_memory {', '.join(less)}" if less else ""


def _first(sizes: Iterable[int], cost: Callable[[int], float], available: float) -> int:
    """The first size that fits, or the last one."""
    size = 1
    for size in sizes:
        if cost(size) <= available:
            return size
    return size


def _down(most: int) -> range:
    return range(max(most, 1), 0, -1)


def _most(fits: Callable[[int], bool], high: int) -> int:
    """The largest number up to ``high`` that fits, assuming monotonicity; 0 if not even one does."""
    if high > 0 and fits(high):
        return high
    low, high = 0, high - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _below(value: float) -> int:
    """A number rounded down to two digits."""
    return int(_rounded(value, floor))


def _above(value: float) -> str:
    """A number rounded up to two digits."""
    return f"{_rounded(value, ceil):.10g}"


def _rounded(value: float, to: Callable[[float], int]) -> float:
    if not 0 < value < inf:
        return value
    unit = 10.0 ** (floor(log10(value)) - 1)
    # A number with two digits is returned unchanged, despite rounding of the quotient.
    return to(round(value / unit, 6)) * unit
