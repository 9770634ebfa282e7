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
from mercer._scores.criteria import judging_bytes
from mercer._solvers.moments.leave_one_out import ROWS_IN_MEMORY as LEAVING
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
SEVERAL = 15
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
# However few centers are enough on the sample, so many cost next to nothing; a budget leaves no fewer by default.
LEAST_CENTERS = 100

# Kernels in parallel, regardless of the number of threads.
MOST_AT_ONCE = 16
# Bytes per pair of rows while the median of their distances is computed.
PAIR_BYTES = 20.0
# Random centers with which kernels are compared, for each of those that will be selected.
RANDOM_PER_SELECTED = 2


@dataclass(frozen=True)
class Rung:
    """Numbers of rows and of centers with which kernels are compared."""

    n_rows: int
    n_centers: int


# All kernels are compared on the first; the best few on the next, as long as more centers or rows matter.
RUNGS = Rung(2000, 240), Rung(5000, 600), Rung(5000, 1200)
# Kernels that differ little are compared on so many rows, with as many centers as before.
MOST_COMPARED_ROWS = 10_000


@dataclass(frozen=True)
class Stage:
    """Name and peak memory in bytes of a stage of a fit, including the rows in memory."""

    name: str
    n_bytes: float


@dataclass(frozen=True)
class Load:
    """The properties of a fit with centers that determine its memory.

    ``row`` and ``item`` are the bytes of a row and of a number in it; of ``n`` rows (None: not known) ``sample``
    are in memory, and leave-one-out uses ``left`` of them. There are q targets, with or without ``classes``,
    ``n_centers`` (None: chosen by the selector), ``kernels`` and ``alphas`` to compare, at most ``threads``.
    ``copied``: blocks of rows are not views; ``blocks`` of kernel values are in memory while one is computed.
    However few rows are requested, at least ``floor`` are kept, and ``least`` for the labels. ``usual`` is the
    largest number of centers that the data may require, of which the budget may allow fewer; None: the number is
    given.
    """

    row: float
    sample: int
    left: int
    q: int
    n_centers: int | None
    selector: CenterSelector
    threads: int
    n: int | None = None
    item: int = 8
    classes: bool = True
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
    def held(self) -> float:
        """Bytes of the sample, its targets and the centers, and of BLAS for all threads but the first."""
        rows = self.sample * (self.row + 8.0 * self.q + 8.0 * ROW_NUMBERS) + self.m * self.row
        return rows + (self.threads - 1) * BLAS_BUFFER

    @property
    def compares(self) -> bool:
        """Whether kernels, or numbers of centers, are compared."""
        return self.kernels > 1 or self.usual is not None

    @property
    def with_labels(self) -> "Load":
        """The load of the largest sample, with all rows that may be kept for their labels."""
        most = inf if self.n is None else self.n
        sample, left = (int(min(rows + self.least, most)) for rows in (self.sample, self.left))
        return replace(self, sample=sample, left=left)

    def written(self, m: int) -> "Load":
        """The load if the user writes ``centers=m``."""
        return replace(self.with_labels, n_centers=m, selector=selector_for(m), usual=None)

    def extent(self, threads: int) -> Extent:
        """What the memory of a selector depends on."""
        return Extent(self.sample, self.row, self.value, self.q, threads)


# From a value of the parameter ``centers`` to the load of the fit.
FewCenters = Callable[[int | str], Load]


@dataclass(frozen=True)
class Sizes:
    """How much a fit does at once, and the stages with their bytes.

    ``n_centers`` is their largest number (None: chosen by the selector), ``lowered`` if the budget sets it.
    ``threads`` work in the pass over all rows, ``few`` in passes over the sample. Kernels are compared on
    ``rungs``; ``alphas`` are evaluated at once in the end. Products use blocks of ``cells`` kernel values.
    ``probe``: whether the precision of products is tested. ``held`` is the memory of the sample in bytes.
    """

    n_centers: int | None
    lowered: bool
    threads: int
    few: int
    rungs: tuple[Rung, ...]
    alphas: int
    cells: int
    probe: bool
    held: float
    selector: CenterSelector
    stages: tuple[Stage, ...] = field(repr=False)
    words: str = ""

    @property
    def largest(self) -> Stage:
        """The stage with the largest peak."""
        return max(self.stages, key=lambda stage: stage.n_bytes)


def sizes_within(load: Load, budget: Budget) -> Sizes:
    """The largest sizes for which every stage of a fit with centers stays within the budget, or an error.

    MemoryBudgetError names the largest stage, its bytes, the budget, and parameters that would fit.
    """
    load = _lowered(load, budget.n_bytes)
    sizes = fitted_sizes(load, budget.n_bytes)
    if sizes.largest.n_bytes > budget.n_bytes:
        raise refusal(sizes.largest, budget, _remedies(load, budget), sizes.largest.n_bytes)
    return sizes


def fitted_sizes(load: Load, room: float) -> Sizes:
    """The largest sizes that fit, or the smallest ones if none do: of centers first, then of threads."""
    load = _lowered(load, room)
    least = _sizes(replace(load, threads=1), room)
    if least.largest.n_bytes > room:
        return least
    threads = threads_within(room, load.threads)
    threads = _first(_down(threads), lambda t: _pass_bytes(replace(load, threads=t)), room)
    several = (_sizes(replace(load, threads=t), room) for t in range(threads, 1, -1))
    return next((sizes for sizes in several if sizes.largest.n_bytes <= room), least)


def _lowered(load: Load, room: float) -> Load:
    """With as many centers as fit, unless their number is given; at least so many that they are of use."""
    m = load.n_centers
    if load.usual is None or m is None:
        return load
    most = _most(lambda m: _fits(replace(load, n_centers=m), room), m)
    return replace(load, n_centers=max(most, min(m, LEAST_CENTERS)))


def _sizes(load: Load, room: float) -> Sizes:
    """The largest sizes that fit with this number of centers and of threads, or the smallest ones."""
    few, selector = _selection(load, room)
    before, load = load, replace(load, selector=selector)
    rungs = rungs_within(_of_sample(load), room - load.held, RANDOM_PER_SELECTED * load.m)
    m, n = load.m, load.left
    alphas = _first(_down(load.alphas), lambda a: _leaving_bytes(load, n, m, a, few), room)
    cells = (room - _solved_bytes(load, m)) / _cell_bytes(load)
    sizes = Sizes(
        n_centers=load.n_centers,
        lowered=load.usual is not None and m < load.usual,
        threads=load.threads,
        few=few,
        rungs=rungs,
        alphas=alphas,
        cells=int(max(min(cells, BLOCK_SIZE), m)),
        probe=_probe_bytes(load, few) <= room,
        held=load.held,
        selector=selector,
        stages=(),
    )
    return replace(sizes, stages=tuple(_stages(load, sizes)), words=_words(sizes, before))


def _stages(load: Load, sizes: Sizes) -> Iterator[Stage]:
    """Every stage with its memory at these sizes."""
    m, left, q = load.m, load.left, load.q
    yield Stage(f"the sample of {load.sample} rows", _sample_bytes(load))
    if load.compares:
        for rung in sizes.rungs:
            words = f"the comparison of kernels on {rung.n_rows} rows with {rung.n_centers} centers"
            yield Stage(words, load.held + rung_bytes(_of_sample(load), rung, 1))
    yield Stage(f"the selection of {m} centers", load.held + sizes.selector.n_bytes(m, load.extent(sizes.few)))
    if sizes.probe:
        yield Stage(f"the trial of products for {m} centers", _probe_bytes(load, sizes.few))
    yield Stage(f"the pass for the moments of {m} centers", _pass_bytes(replace(load, threads=sizes.threads)))
    yield Stage(f"the solution for {m} centers", load.held + 8.0 * MOMENTS_HELD * m * m)
    words = f"leave-one-out outputs of {left} rows for {sizes.alphas} of {load.alphas} alphas and {q} targets"
    yield Stage(words, _leaving_bytes(load, left, m, sizes.alphas, sizes.few))
    outputs = _cell_bytes(load) * min(sizes.cells, left * m)
    yield Stage(f"outputs of {left} rows", _solved_bytes(load, m) + outputs)
    if load.classes:
        yield Stage(f"the calibration on {left} rows and {q} targets", load.held + _calibration_bytes(load))


@dataclass(frozen=True)
class Exact:
    """A fit to n rows with q targets, with or without ``classes``; its centers are u rows of ``row`` bytes.

    ``held`` matrices (u, u) are in memory at its peak; ``folds``: several rows are held out together.
    """

    n: int
    u: int
    q: int
    row: float
    alphas: int = len(ALPHAS)
    classes: bool = True
    held: int = MATRICES_HELD
    folds: bool = False

    def n_bytes(self, alphas: int) -> float:
        """Peak memory with this many alphas compared at once.

        ``held`` matrices during the decomposition; after it one remains, and two more are needed for
        leave-one-out.
        """
        n, u, q = self.n, self.u, self.q
        rows = n * (8.0 * q + 8.0 * ROW_NUMBERS) + 2.0 * u * self.row
        leaving = 24.0 * u * u + 8.0 * alphas * n * (q + 8.0)
        judging = judging_bytes(judged_at_once(alphas, n, q), n, q, classes=self.classes)
        return rows + max(gram_bytes(u, self.held), leaving + judging)


def exact_threads(extent: Exact, room: float, threads: int) -> int:
    """BLAS threads for such a fit: those for which there is memory besides one decomposition."""
    most = threads_within(room, threads)
    spare = min(max(room - extent.n_bytes(1), 0.0), most * BLAS_BUFFER)
    return min(most, 1 + int(spare / BLAS_BUFFER))


def alphas_at_once(extent: Exact, room: float) -> int:
    """How many alphas are evaluated at once besides one decomposition."""
    return _first(_down(judged_at_once(extent.alphas, extent.n, extent.q)), extent.n_bytes, room)


def root_workers(extent: Exact, room: float, workers: int) -> int:
    """How many Cholesky factors are computed in parallel: a few matrices each, and one that they share."""
    rows = extent.n * (8.0 * extent.q + 8.0 * ROW_NUMBERS) + 2.0 * extent.u * extent.row
    each = ROOT_HELD * (1 + extent.folds)
    return _first(_down(workers), lambda k: rows + gram_bytes(extent.u, 1 + each * k), room)


def matrices_held(kernel: Kernel, X: Any, *, roots: bool, singular: bool, folds: bool) -> int:
    """Matrices (u, u) at the peak of a fit with every point as a center, by Cholesky factors (``roots``), singular
    values or eigenvectors.

    Fewer than for eigenvectors only if the kernel matrix itself is computed in place.
    """
    if singular:
        return SINGULAR_HELD
    in_place = type(kernel) in IN_PLACE and not is_sparse(X)
    return 1 + ROOT_HELD if roots and in_place and not folds else MATRICES_HELD


def rungs_within(extent: Exact, room: float, most: int | None = None) -> tuple[Rung, ...]:
    """The rungs for so many rows and at most so many centers, with fewer if there is no memory for more."""
    found: list[Rung] = []
    for usual in RUNGS:
        rung = usual if most is None else replace(usual, n_centers=min(usual.n_centers, most))
        rows = rows_within(extent, rung, room)
        if not found or 2 * rung.n_centers <= rows or rows <= RUNGS[1].n_centers:
            found.append(Rung(rows, min(rung.n_centers, rows)))
    return tuple(dict.fromkeys(found))


def rungs_with_copies(extent: Exact, own: int, room: float, most: int | None = None) -> tuple[Rung, ...]:
    """The same for ``own`` rows, which with their copies are all points: as many rows as there is memory for."""
    found = []
    for usual in RUNGS:
        m = min(usual.n_centers, extent.u if most is None else most, extent.u)
        n = rows_within(extent, Rung(MOST_COMPARED_ROWS, m), room) * own // extent.u
        found.append(Rung(max(n, 1), m))
    return tuple(dict.fromkeys(found))


def rows_within(extent: Exact, rung: Rung, room: float) -> int:
    """The rows of a rung, or as many as there is memory for."""
    rows = min(rung.n_rows, extent.u)
    sizes = sorted({rows, *range(min(LEAST_COMPARED_POINTS, rows), rows, 50)}, reverse=True)
    return _first(sizes, lambda n: rung_bytes(extent, Rung(n, min(rung.n_centers, n)), 1), room)


def settling_rows(u: int, room: float) -> int:
    """Rows from which parameters given as strings are computed: all, or those whose distances fit into memory."""
    return u if room >= PAIR_BYTES * min(u, MAX_ROWS) ** 2 else max(2, min(u, int((room / PAIR_BYTES) ** 0.5)))


def least_comparison(extent: Exact, most: int) -> Stage:
    """The comparison of kernels with the least memory, with at most this many centers."""
    rung = rungs_within(extent, 0.0, most)[0]
    words = f"a comparison of kernels on {rung.n_rows} rows with {rung.n_centers} centers"
    return Stage(words, rung_bytes(extent, rung, 1))


def rung_sizes(extent: Exact, m: int, room: float) -> tuple[int, int]:
    """How many kernels are compared in parallel with m centers on all points, and of how many alphas at once."""
    rung = Rung(extent.u, m)
    workers = _first(_down(MOST_AT_ONCE), lambda k: rung_bytes(extent, rung, k), room)
    most = judged_at_once(extent.alphas, extent.n, extent.q)
    return workers, _first(_down(most), lambda a: rung_bytes(extent, rung, workers, a), room)


def rung_bytes(extent: Exact, rung: Rung, workers: int, alphas: int = 1) -> float:
    """Kernels compared with m centers on u points: distances; for each kernel its values, coordinates, basis."""
    u, m, q = rung.n_rows, rung.n_centers, extent.q
    n = extent.n * u / max(extent.u, 1)
    outputs = 8.0 * alphas * n * (3.0 * q + 2.0) + judging_bytes(alphas, int(n), q, classes=extent.classes)
    each = 8.0 * (5.0 * u * m + 9.0 * m * m) + outputs
    return u * extent.row + 8.0 * u * m + workers * each


def check_exact(extent: Exact, budget: Budget, few: FewCenters, *, auto: bool = True) -> None:
    """Raise MemoryBudgetError if a fit with every distinct row as a center is too large; suggest what fits.

    ``auto``: whether the default number of centers for many rows may be suggested.
    """
    n, u, need = extent.n, extent.u, extent.n_bytes(1)
    if need <= budget.n_bytes:
        return
    stage = Stage(f"the ({u}, {u}) kernel matrix and its decomposition", gram_bytes(u, extent.held))
    if stage.n_bytes <= budget.n_bytes:
        stage = Stage(f"leave-one-out outputs of {n} rows besides their ({u}, {u}) kernel matrix", need)
    room = budget.n_bytes
    default = ['centers="auto"'] if auto and n > EXACT_ROWS and _fits(_lowered(few("auto"), room), room) else []
    raise refusal(stage, budget, default + _fewer_centers(few, max(u // 2, 1), room), need)


def sparse_path_bytes(u: int, m: int, c: int) -> float:
    """A path of m centers on u points: copies of its columns, and sums over c candidates."""
    return 8.0 * (6.0 * u * m + 4.0 * c**2)


def sparse_trial_bytes(u: int, c: int) -> float:
    """A trial of one kernel on u points with c candidates: their columns and sums, and those of the path."""
    return 8.0 * (1.5 * u * c + 2.0 * c * c)


def rows_left_out(n: int, q: int) -> int:
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


def refusal(stage: Stage, budget: Budget, remedies: Sequence[str], need: float) -> MemoryBudgetError:
    """The error for a stage beyond the budget, with parameters that would fit."""
    most = f"{budget.parameter}={_above(need / GIB)}"
    return MemoryBudgetError(
        f"{stage.name} would need {readable_size(stage.n_bytes)} and the budget is "
        f"{readable_size(budget.n_bytes)}; write {' or '.join([*remedies, most])} (in GiB)"
    )


def _remedies(load: Load, budget: Budget) -> list[str]:
    """Parameters with which the fit would stay within the budget."""
    found, room = [], budget.n_bytes
    if load.n_centers is not None:
        found += _fewer_centers(load.written, load.n_centers - 1, room)

    def fewer(n: int) -> Load:
        held = max(n, load.floor) + load.least
        return replace(load, sample=min(held, load.sample), left=min(n + load.least, load.left))

    rows = _most(lambda n: _fits(fewer(n), room), load.sample - load.least - 1)
    return found + ([f"loo_rows={_below(rows)}"] if rows >= 2 * LEAST_COMPARED_POINTS else [])


def _fewer_centers(few: Callable[[int], Load], high: int, room: float) -> list[str]:
    """The largest number of centers of two digits, up to ``high``, whose load fits; none if not even one does.

    Memory grows with the number as long as the selector is the same.
    """
    numbers = {k * 10**e for e in range(len(str(high))) for k in range(1, 100) if k * 10**e <= high}
    for _, alike in groupby(sorted(numbers, reverse=True), lambda m: type(few(m).selector)):
        some = sorted(alike)
        found = bisect_left(some, True, key=lambda m: not _fits(few(m), room))
        if found:
            return [f"centers={some[found - 1]}"]
    return []


def _fits(load: Load, room: float) -> bool:
    """Whether every stage fits, on one thread and with the smallest sizes if necessary."""
    return _sizes(replace(load, threads=1), room).largest.n_bytes <= room


def _sample_bytes(load: Load) -> float:
    """While rows are drawn: those selected, and a copy; if their number is not known, twice as many."""
    rows = 2.0 * load.sample if load.n is not None else 4.0 * load.sample + 2.0 * BLOCK_ROWS
    return rows * (load.row + 8.0 * ROW_NUMBERS) + _in_flight(load, load.threads)


def _in_flight(load: Load, threads: int) -> float:
    """Blocks of rows that were read and are not yet processed."""
    return (ITEMS_AHEAD * threads + 2.0) * _rows(load, BLOCK_ROWS) * load.row if load.copied else 0.0


def _rows(load: Load, most: int) -> int:
    return most if load.n is None else min(most, load.n)


def threads_within(room: float, threads: int) -> int:
    """The largest number of threads whose BLAS buffers stay within their share of the budget."""
    return int(max(1, min(threads, 1 + BLAS_SHARE * room / BLAS_BUFFER)))


def _pass_bytes(load: Load) -> float:
    """Moments: a piece of kernel values for each thread, sums that wait to be added, and coordinates."""
    m, piece, threads = load.m, _rows(load, PRODUCT_ROWS), load.threads
    each = piece * (m * load.value + 3.0 * load.row + 16.0 * (load.q + 1)) + 8.0 * m * m
    return load.held + threads * each + 8.0 * m * m * (ITEMS_AHEAD * threads + 4) + _in_flight(load, threads)


def _solved_bytes(load: Load, m: int) -> float:
    """Moments, the factor of the penalty and the basis of the solution."""
    return load.held + 24.0 * m * m


def _cell_bytes(load: Load) -> float:
    """Bytes per kernel value of a block in a product, including its share of the centered and scaled rows."""
    return 8.0 * load.blocks + 2.0 * load.row / load.m


def _leaving_bytes(load: Load, n: int, m: int, alphas: int, threads: int) -> float:
    """Leave-one-out outputs of n rows for some alphas: their parts, joined, then evaluated."""
    outputs = float(load.item) * alphas * n * load.q
    work = threads * min(n, LEAVING) * (2.0 * m * load.value + 3.0 * load.item * alphas * load.q + 3.0 * load.row)
    step = judged_at_once(alphas, n, load.q)
    judging = 8.0 * step * n * load.q + judging_bytes(step, n, load.q, classes=load.classes)
    slopes = 16.0 * m * alphas * load.q
    return _solved_bytes(load, m) + 8.0 * n * load.q + slopes + outputs + max(work, outputs, judging)


def judged_at_once(alphas: int, n: int, q: int) -> int:
    """Number of alphas evaluated at once, of those with outputs in memory."""
    return min(alphas, max(1, JUDGED_OUTPUTS // max(n * q, 1)))


def _calibration_bytes(load: Load) -> float:
    """Leave-one-out outputs, decisions and probabilities, and the memory for calibration."""
    k = load.q if load.q > 1 else 2
    return 8.0 * load.left * CALIBRATION_HELD * k


def probe_rows(m: int) -> int:
    """Rows for the test of precision: two for each center, with many centers one for two.

    With many centers float32 is not tested, and fewer rows only make the bound for float64 larger: the mean of
    H^-1 over random rows is at least the inverse of the mean of H.
    """
    return max(PROBE_ROWS // 2, 2 * m) if m <= PROBE_ROWS // 2 else max(PROBE_ROWS, m // 2)


def _probe_bytes(load: Load, threads: int) -> float:
    """Moments of a few rows, for values in float32 in both precisions."""
    return (
        load.held
        + min(threads, 2) * min(probe_rows(load.m), PRODUCT_ROWS) * load.m * load.value
        + 8.0 * PROBE_HELD * load.m**2
    )


def _selection(load: Load, room: float) -> tuple[int, CenterSelector]:
    """Threads in passes over the sample, and the selector with as many candidates as fit."""

    def cost(threads: int) -> float:
        m = load.m
        return load.held + load.selector.n_bytes(m, load.extent(threads))

    threads = _first(_down(load.threads), cost, room)
    if cost(threads) <= room:
        return threads, load.selector
    return threads, load.selector.within(room - load.held, load.n_centers, load.extent(threads))


def _of_sample(load: Load) -> Exact:
    return Exact(load.sample, load.sample, load.q, load.row, load.alphas, load.classes)


def _words(sizes: Sizes, load: Load) -> str:
    """Text on reductions that affect more than the running time."""
    less = [f"at most {sizes.n_centers} centers"] if sizes.lowered else []
    selector, rungs = sizes.selector, sizes.rungs
    if isinstance(selector, ForwardSelection) and selector is not load.selector:
        less.append(f"{selector.n_candidates} candidates")
    if load.compares and rungs != rungs_within(_of_sample(load), inf, RANDOM_PER_SELECTED * load.m):
        what = "kernels" if load.kernels > 1 else "numbers of centers"
        less.append(f"{rungs[-1].n_rows} rows to compare {what}")
    return f"; within max_memory {', '.join(less)}" if less else ""


def _first(sizes: Iterable[int], cost: Callable[[int], float], room: float) -> int:
    """The first size that fits, or the last one."""
    size = 1
    for size in sizes:
        if cost(size) <= room:
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
