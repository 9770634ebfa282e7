"""Principal directions of rows in feature space: of all rows at once, or of m centers in passes over any rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from mercer.centers import CandidateRows, CenterSelector, KMeans, RPCholesky
from mercer.centers.resolve import as_plan, auto_centers
from mercer.errors import KernelError
from mercer.expansion import Expansion
from mercer.gram import Budget, cross, gram, own_values
from mercer.gram.moments import Moments, MomentsOf
from mercer.gram.precision import (
    DEPENDENT,
    NEARLY_DEPENDENT,
    Precision,
    factor_of,
    product_precision,
    with_coordinates,
)
from mercer.kernels import Kernel
from mercer.linalg.lapack import solve_triangular
from mercer.linalg.rank import RankFactor
from mercer.rows import Block, Draw, Drawn, MemoryRows, Rows, survey
from mercer.rows.repeated import RepeatedRows
from mercer.rows.table import n_rows, take
from mercer.rows.twins import weight_of
from mercer.scores.monitoring import Statistics
from mercer.solvers.rayleigh import rayleigh
from mercer.solvers.ridge import decompose_moments
from mercer.tuning.one_pass import Encoded
from mercer.types import Array, Indices

# centers="auto" makes all rows centers up to this number.
EVERY_ROW = 2000
# Rows of the sample from which centers are selected, as a multiple of their number, and at least.
ROWS_PER_CENTER, LEAST_SAMPLE = 4, 4000
# Rows of the sample that are kept, and folds in which rows are left out.
KEPT_ROWS, FOLDS = 2000, 10
# Variances down to this share of the whole are to be right: in general, and where only one component for this many
# centers is wanted. Variances above the second then have errors of 1e-4 in float32.
LEAST_SHARE, LEADING_SHARE, LEADING = 1e-8, 1e-3, 20


@dataclass(frozen=True)
class Subspace:
    """Directions w_j = sum_i basis_ij phi(z_i) of unit length and the ``variance`` (r,) of rows along them.

    ``shift`` (r,) is the mean of w_j'phi. The mean of phi, as far as centers express it, is sum_i middle_i
    phi(z_i), with the squared length ``square``. ``total`` is the variance in all directions, n the weight of the
    rows.
    """

    kernel: Kernel
    centers: Any
    support: Indices | None
    variance: Array
    basis: Array
    shift: Array
    middle: Array
    square: float
    total: float
    n: float
    words: str

    def with_mean(self, k: int) -> tuple[Array, Array]:
        """Coefficients (m, k + 1) and intercepts (k + 1,) of scores, and of the product with the mean of phi."""
        return np.column_stack([self.basis[:, :k], self.middle]), np.append(-self.shift[:k], 0.0)

    def n_components(self, most: int | None, share: float | None) -> int:
        """At most so many; enough for a share of the variance; or all."""
        r = len(self.variance)
        if share is not None:
            most = int(np.searchsorted(np.cumsum(self.variance), share * self.total) + 1)
        return r if most is None else min(most, r)


@dataclass(frozen=True)
class OwnValues:
    """The fold block -> block whose target is k(x, x), of validated rows."""

    kernel: Kernel
    check: Callable[[Any], Any] | None

    def __call__(self, block: Block) -> Block:
        X = block.X if self.check is None else self.check(block.X)
        return replace(block, X=X, y=own_values(self.kernel, X))


@dataclass(frozen=True)
class EveryPoint:
    """All distinct rows: the kernel matrix (u, u), the share (u,) of the weight n that each has."""

    K: Array
    share: Array
    n: float

    def some(self, points: Indices) -> "EveryPoint":
        """Some of the points only."""
        weight = float(self.share[points].sum())
        return EveryPoint(self.K[np.ix_(points, points)], self.share[points] / weight, self.n * weight)

    def solved(self, kernel: Kernel, centers: Any, support: Indices, most: int | None) -> Subspace:
        """``most`` directions, None: all."""
        K, share = self.K, self.share
        mean, root = K @ share, np.sqrt(share)
        square = float(share @ mean)
        found = rayleigh(root * (K - mean - mean[:, None] + square) * root[:, None], most=most)
        basis = signed(root[:, None] * found.vectors / np.sqrt(found.values))
        return Subspace(
            kernel=kernel,
            centers=centers,
            support=support,
            variance=found.values,
            basis=basis,
            shift=mean @ basis,
            middle=share,
            square=square,
            total=float(share @ K.diagonal()) - square,
            n=self.n,
            words=f"all {len(share)} distinct rows",
        )


def exact_subspace(
    kernel: Kernel, X: Any, weight: Array, most: int | None, budget: Budget
) -> tuple[Subspace, EveryPoint]:
    """Of all rows, with weights (n,); ``most`` directions, None: all. O(n²) memory."""
    used = np.flatnonzero(weight > 0.0)
    distinct = kernel.distinct(kernel.subset(X, used))
    first = used[distinct.first]
    share = np.bincount(distinct.point, weight[used]).astype(np.float64)
    n = float(share.sum())
    K = np.asarray(gram(kernel, kernel.subset(X, first), budget=budget), dtype=np.float64)
    points = EveryPoint(K, share / n, n)
    return points.solved(kernel, kernel.centers(X, first), first, most), points


def signed(basis: Array) -> Array:
    """With the entry that is largest in absolute value positive in each column (m, r)."""
    largest = np.abs(basis).argmax(axis=0)
    signs: Array = np.where(basis[largest, np.arange(basis.shape[1])] < 0.0, -1.0, 1.0)
    return basis * signs


@dataclass(frozen=True)
class SubspaceState:
    """Moments of rows against centers: rows can be added and removed, and directions be found at any time.

    ``check`` validates blocks, None: they are valid. ``factor`` is that of the centers' kernel matrix. ``sample``
    are some of the rows, with weights or None, none of which is a center if possible.
    """

    kernel: Kernel
    centers: Any
    check: Callable[[Any], Any] | None
    precision: Precision
    factor: RankFactor
    moments: Moments
    support: Indices | None
    sample: Block
    words: str

    def summed(self, rows: Rows, verbose: int) -> Moments:
        """Moments of rows, in one pass; their targets are k(x, x)."""
        where = self.precision.coordinates
        fold = MomentsOf(self.kernel, self.centers, self.precision.dtype, where)
        own = Encoded(OwnValues(self.kernel, self.check), fold)
        found: Moments = rows.reduce(own, phase="moments", verbose=verbose)
        return replace(found, coordinates=where)

    def joined(self, rows: Rows, verbose: int) -> "SubspaceState":
        return replace(self, moments=self.moments + self.summed(rows, verbose))

    def left(self, rows: Rows, verbose: int) -> "SubspaceState":
        less = self.summed(rows, verbose)
        if less.n >= self.moments.n:
            raise ValueError(
                f"cannot remove rows of weight {less.n:.6g} from rows of weight {self.moments.n:.6g}; remove only "
                "rows that were added before, and not all of them"
            )
        return replace(self, moments=self.moments - less)

    def solved(self) -> Subspace:
        """The directions in which centers express the rows, by the variance along them."""
        moments = self.moments
        spectrum = decompose_moments(moments, self.factor)
        order = np.argsort(-spectrum.values, kind="stable")
        variance, basis = spectrum.values[order] / moments.n, spectrum.basis[:, order]
        certain = variance > 0.0
        basis, variance = signed(basis[:, certain]), variance[certain]
        where = moments.coordinates
        mean = (moments.s if where is None else where.kernel_sum(moments.n, moments.s)) / moments.n
        middle = self._expressed(mean)
        square = float(middle @ mean)
        return Subspace(
            kernel=self.kernel,
            centers=self.centers,
            support=self.support,
            variance=variance,
            basis=basis,
            shift=mean @ basis,
            middle=middle,
            square=square,
            total=max(float(moments.t[0] / moments.n) - square, float(variance.sum())),
            n=moments.n,
            words=self.words,
        )

    def _expressed(self, mean: Array) -> Array:
        """Coefficients (m,) of the mean of phi in feature space, from the mean of kernel rows (m,)."""
        inner = solve_triangular(self.factor.R, mean[:, None], transposed=True)
        return solve_triangular(self.factor.R, inner)[:, 0]


@dataclass(frozen=True)
class Looked:
    """Rows that must not change between passes, and a sample of them."""

    rows: RepeatedRows
    drawn: Drawn


def look_at(rows: Rows, centers: Any, rng: np.random.Generator, verbose: int) -> Looked:
    """One pass for a sample, large enough for the number of centers."""
    repeated = RepeatedRows(rows)
    wanted = int(centers) if isinstance(centers, Integral) else 0
    size = max(LEAST_SAMPLE, ROWS_PER_CENTER * (wanted or auto_centers(rows.n_rows or LEAST_SAMPLE)))
    drawn = survey(repeated, Draw(size, int(rng.integers(2**31)), labels=False), verbose=verbose)
    return Looked(repeated, drawn.least())


def begin_subspace(
    settle: Callable[[Any, Array], Kernel],
    looked: Looked,
    check: Callable[[Any], Any] | None,
    centers: Any,
    most: int | None,
    rng: np.random.Generator,
    verbose: int,
) -> SubspaceState:
    """Centers selected from the sample, and moments of all rows, in one pass.

    ``settle`` makes a kernel of numbers from rows and weights; ``most`` components are wanted, None: any number.
    """
    drawn, sample = looked.drawn, looked.drawn.sample()
    X = sample.X if check is None else check(sample.X)
    weight = weight_of(Block(X, None, sample.weight, 0))
    kernel = settle(X, weight)
    selector: CenterSelector
    selector, m = as_plan(centers, kernel, X, drawn.n_rows)
    if isinstance(centers, Integral | str):
        # Means of clusters express more of the variance than rows do, where there are means.
        selector = KMeans() if kernel.averages and isinstance(X, np.ndarray) else RPCholesky()
    chosen = selector.select(kernel, CandidateRows(X, np.zeros((n_rows(X), 0)), weight), m, rng)
    single = getattr(X, "dtype", None) == np.float32
    K = cross(kernel, chosen.rows, kernel.centers(chosen.rows))
    factor = factor_of(K, tolerance=DEPENDENT if single else NEARLY_DEPENDENT)
    kept = factor.kept
    if len(kept) == 0:
        raise KernelError(f"{kernel!r} is zero at all centers; use another kernel, or scale the features")
    points, factor = take(chosen.rows, kept), RankFactor(factor.R, np.arange(len(kept)))
    indices = None if chosen.indices is None else chosen.indices[kept]
    leading = most is not None and LEADING * most <= n_rows(points)
    precision = _precision(kernel, points, factor, X, LEADING_SHARE if leading else LEAST_SHARE)
    others = np.setdiff1d(np.flatnonzero(weight > 0.0), [] if indices is None else indices)
    others = others if len(others) >= min(KEPT_ROWS, len(weight)) // 2 else np.flatnonzero(weight > 0.0)
    kept_rows = np.sort(rng.permutation(others)[:KEPT_ROWS])
    state = SubspaceState(
        kernel=kernel,
        centers=points,
        check=check,
        precision=precision,
        factor=factor,
        moments=Moments(0.0, *(np.zeros(0),) * 5, 0),
        support=None if indices is None else sample.index[indices],
        sample=Block(take(X, kept_rows), None, None if sample.weight is None else weight[kept_rows], 0),
        words=f"{n_rows(points)} centers, {type(selector).__name__} on {n_rows(X)} rows; {precision.words}",
    )
    return replace(state, moments=state.summed(looked.rows, verbose))


def _precision(kernel: Kernel, centers: Any, factor: RankFactor, probe: Any, share: float) -> Precision:
    """float32 if its products are exact enough for this share of the variance, else coordinates where needed."""
    found = product_precision(kernel, centers, factor, probe, alpha_share=share)
    return with_coordinates(found, kernel, centers, factor, probe, alpha_share=LEAST_SHARE, intercept=True)


def left_out(
    subspace: Subspace, state: SubspaceState | None, X: Any, weight: Array, k: int
) -> tuple[Statistics, Array]:
    """Statistics of rows X with weights (n,), each for k directions of the others, and the weights.

    Rows are those of a fit with all of them, or some whose moments are in the ``state``.
    """
    n = len(weight)
    fold = np.random.default_rng(0).permutation(n) % min(FOLDS, n)
    parts = [np.flatnonzero(fold == number) for number in range(int(fold.max()) + 1)]
    t2, spe = np.empty(n), np.empty(n)
    every = None if state is not None else _every_point(subspace.kernel, X, weight)
    for rows in parts:
        rest = np.setdiff1d(np.arange(n), rows)
        if every is not None:
            without = every.some(rest).solved(subspace.kernel, take(X, rest), rest, k)
        else:
            assert state is not None
            without = state.left(MemoryRows(take(X, rows), None, weight[rows]), 0).solved()
        found = statistics_of(without, min(k, len(without.variance)), take(X, rows))
        t2[rows], spe[rows] = found.t2, found.spe
    return Statistics(t2, spe), weight


def statistics_of(subspace: Subspace, k: int, X: Any) -> Statistics:
    """T² and SPE of rows in memory around the first k directions."""
    f = Expansion(subspace.kernel, subspace.centers, *subspace.with_mean(k))
    outputs = np.asarray(f(X), dtype=np.float64)
    distance = own_values(subspace.kernel, X) - 2.0 * outputs[:, -1] + subspace.square
    return Statistics.of(outputs[:, :-1], distance, subspace.variance[:k])


def _every_point(kernel: Kernel, X: Any, weight: Array) -> EveryPoint:
    K = np.asarray(cross(kernel, X, X), dtype=np.float64)
    return EveryPoint(K, weight / weight.sum(), float(weight.sum()))
