"""Principal directions of rows in feature space: of all rows at once, or of m centers in passes over any rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from mercer._expansion import Expansion
from mercer._fitting.notices import warn_of_indefinite
from mercer._fitting.selection.centers import EncodedMoments
from mercer._fitting.state import AdditiveState, Summed
from mercer._gram import Budget, cross, gram, own_values
from mercer._gram.coordinates import Coordinates
from mercer._gram.moments import Moments, MomentsOf
from mercer._gram.precision import (
    DEPENDENT_CENTERS,
    NEARLY_DEPENDENT_CENTERS,
    Precision,
    factor_of,
    product_precision,
    with_coordinates,
)
from mercer._gram.tangent_covariance import DifferencesOf, Transformation
from mercer._linalg import blas_threads
from mercer._linalg.eigen import centered, eigen_psd, signed
from mercer._linalg.lapack import solve_triangular
from mercer._linalg.rank import RankFactor, in_coordinates
from mercer._scores.monitoring import Statistics
from mercer._solvers.directions.rayleigh import rayleigh
from mercer._solvers.moments.ridge import decompose_moments
from mercer._types import Array, Indices
from mercer.centers import CandidateRows, Centers, CenterSelector, ForwardSelection, KMeans, RPCholesky
from mercer.centers._resolve import as_plan, auto_centers, requested_centers
from mercer.errors import KernelError
from mercer.kernels import Kernel
from mercer.rows import Block, MemoryRows, Rows
from mercer.rows._sampling.random_sample import RunningSample, Sampler, survey
from mercer.rows._sampling.row_matching import weight_of
from mercer.rows._sources.repeated import RepeatedRows
from mercer.rows._table import in_single, n_rows, take

# centers="auto" makes all rows centers up to this number.
MOST_POINTS_AS_CENTERS = 2000
# Rows of the sample from which centers are selected, as a multiple of their number, and at least.
SAMPLED_ROWS_PER_CENTER, LEAST_SAMPLE = 4, 4000
# Rows of the sample that are held out for limits, or from which pre-images are learned, and folds of them.
KEPT_ROWS, LIMIT_FOLDS = 2000, 10
# Variances down to this share of the whole are to be right: in general, and where only one component for this many
# centers is wanted. Variances above the second then have errors of 1e-4 in float32.
LEAST_VARIANCE_SHARE, LEADING_SHARE, LEADING = 1e-8, 1e-3, 20
# Variances below this share of the mean of k(x, x) are rounding errors of kernel values, by their type.
NOISE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-6}


@dataclass(frozen=True)
class Subspace:
    """Directions w_j = sum_i basis_ij phi(z_i) of unit length and the ``variance`` (r,) of rows along them.

    ``shift`` (r,) is the mean of w_j'phi. The mean of phi, as far as centers express it, is sum_i middle_i
    phi(z_i), with the squared length ``square``. ``total`` is the mean squared distance of rows with the weight n
    from it. ``negative`` is the most negative eigenvalue of the kernel matrix in units of the largest.
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
    negative: float
    words: str

    def first(self, k: int) -> "Subspace":
        """With the first k directions only."""
        return replace(self, variance=self.variance[:k], basis=self.basis[:, :k].copy(), shift=self.shift[:k])

    def n_components(self, most: int | None, share: float | None) -> int:
        """The first ones: a number, enough for a share of the variance, or all."""
        r = len(self.variance)
        if share is not None:
            most = int(np.searchsorted(np.cumsum(self.variance), share * self.total) + 1)
        return r if most is None else min(most, r)

    def statistics(self, X: Any) -> Statistics:
        """T² and SPE of rows in memory."""
        coef, intercept = np.column_stack([self.basis, self.middle]), np.append(-self.shift, 0.0)
        outputs = np.asarray(Expansion(self.kernel, self.centers, coef, intercept)(X), dtype=np.float64)
        distance = own_values(self.kernel, X) - 2.0 * outputs[:, -1] + self.square
        return Statistics.of(outputs[:, :-1], distance, self.variance)


@dataclass(frozen=True)
class ExactSubspace:
    """All distinct rows: the kernel matrix (u, u), the share (u,) of the weight n that each has, and variances
    that are rounding errors of the matrix.
    """

    K: Array
    share: Array
    n: float
    noise: float

    @classmethod
    def of(cls, kernel: Kernel, X: Any, weight: Array, budget: Budget) -> "ExactSubspace":
        """Of distinct rows with weights (u,); O(u²) memory."""
        K, n = gram(kernel, X, budget=budget), float(weight.sum())
        noise = NOISE[np.dtype(K.dtype)] * float(weight @ np.abs(K.diagonal())) / n
        return cls(np.asarray(K, dtype=np.float64), weight / n, n, noise)

    def some(self, points: Indices) -> "ExactSubspace":
        """Some of the points only."""
        weight = float(self.share[points].sum())
        return replace(
            self, K=self.K[np.ix_(points, points)], share=self.share[points] / weight, n=self.n * weight
        )

    def solved(self, kernel: Kernel, centers: Any, support: Indices, most: int | None) -> Subspace:
        """``most`` directions, None: all."""
        K, share = self.K, self.share
        mean, root = K @ share, np.sqrt(share)
        square = float(share @ mean)
        S = root * centered(K, share) * root[:, None]
        found = rayleigh(S, most=most if kernel.positive_semidefinite else None, noise=self.noise)
        values, vectors = found.values[:most], found.vectors[:, :most]
        # Coefficients sum to zero, as they do without rounding: of a small variance the constant would be large.
        vectors = vectors - np.outer(root, root @ vectors)
        basis = signed(root[:, None] * vectors / np.sqrt(values))
        return Subspace(
            kernel=kernel,
            centers=centers,
            support=support,
            variance=values,
            basis=basis,
            shift=mean @ basis,
            middle=share,
            square=square,
            total=float(share @ K.diagonal()) - square,
            n=self.n,
            negative=found.negative,
            words=f"all {len(share)} distinct rows",
        )


def exact_subspace(
    kernel: Kernel, X: Any, weight: Array, most: int | None, budget: Budget
) -> tuple[Subspace, ExactSubspace]:
    """Of all rows, with weights (n,); ``most`` directions, None: all. O(n²) memory."""
    used = np.flatnonzero(weight > 0.0)
    distinct = kernel.distinct(kernel.subset(X, used))
    first = used[distinct.first]
    counts = np.bincount(distinct.point, weight[used]).astype(np.float64)
    points = ExactSubspace.of(kernel, kernel.subset(X, first), counts, budget)
    found = points.solved(kernel, kernel.centers(X, first), first, most)
    warn_of_indefinite(kernel, found.negative)
    return found, points


@dataclass(frozen=True)
class OwnValues:
    """The fold block -> block whose target is k(x, x), of validated rows."""

    kernel: Kernel
    check: Callable[[Any], Any] | None

    def __call__(self, block: Block) -> Block:
        X = block.X if self.check is None else self.check(block.X)
        return replace(block, X=X, y=own_values(self.kernel, X))


@dataclass(frozen=True)
class RowValidator:
    """The fold block -> the same with validated rows, and without targets."""

    check: Callable[[Any], Any] | None

    def __call__(self, block: Block) -> Block:
        return replace(block, X=block.X if self.check is None else self.check(block.X), y=None)


@dataclass(frozen=True)
class SubspaceState:
    """Moments of rows against centers: rows can be added and removed, and directions be found at any time.

    ``check`` validates blocks, None: they are valid. ``factor`` is that of the centers' kernel matrix,
    ``negative`` its most negative eigenvalue in units of the largest; what ``transformations`` change is summed.
    """

    kernel: Kernel
    centers: Any
    check: Callable[[Any], Any] | None
    precision: Precision
    factor: RankFactor
    negative: float
    additive: AdditiveState
    support: Indices | None
    words: str
    transformations: tuple[Transformation, ...] = ()

    def sums(self, rows: Rows, verbose: int) -> Summed:
        """Moments of rows, whose targets are k(x, x), and of what transformations change; a pass each."""
        own, where = OwnValues(self.kernel, self.check), self.precision.coordinates
        fold = EncodedMoments(own, MomentsOf(self.kernel, self.centers, self.precision.dtype, where))
        found: Moments = rows.reduce(fold, phase="moments", verbose=verbose)
        return replace(found, coordinates=where), self._changes(rows, verbose)

    def _changes(self, rows: Rows, verbose: int) -> Moments | None:
        if not self.transformations:
            return None
        fold = MomentsOf(
            self.kernel, self.centers, np.float64, self.coordinates_around(np.zeros(len(self.factor.R)))
        )
        differences = DifferencesOf(self.transformations, fold, RowValidator(self.check))
        found: Moments = rows.reduce(differences, phase="noise", verbose=verbose)
        return found

    def coordinates_around(self, origin: Array) -> Coordinates:
        """R'^-1 (k - origin) of kernel rows k."""
        known = self.precision.coordinates
        return Coordinates.at(self.factor.R, origin) if known is None else replace(known, origin=origin)

    @property
    def moments(self) -> Moments:
        """Moments of all rows so far."""
        return self.additive.moments

    def added(self, rows: Rows, verbose: int) -> "SubspaceState":
        """With more rows."""
        return replace(self, additive=self.additive.added(rows, partial(self.sums, verbose=verbose), verbose))

    def removed(self, rows: Rows, verbose: int) -> "SubspaceState":
        """Without some rows that were added before."""
        additive = self.additive.removed(rows, partial(self.sums, verbose=verbose))
        if not additive.drawn.parts or additive.moments.n <= 1e-9 * self.moments.n:
            raise ValueError("these are all rows of the model; remove fewer, or call fit with others")
        return replace(self, additive=additive)

    @property
    def sample(self) -> tuple[Block, Indices]:
        """Some of the rows with weight, validated, and their numbers."""
        found = replace(self.additive.drawn, size=KEPT_ROWS).least().sample()
        X = found.X if self.check is None else self.check(found.X)
        block = Block(X, None, found.weight, 0)
        used = np.flatnonzero(weight_of(block) > 0.0)
        return block.take(used), found.index[used]

    def solved(self) -> Subspace:
        """The directions in which centers express the rows, by the variance along them."""
        moments = self.moments
        spectrum = decompose_moments(moments, self.factor)
        order = np.argsort(-spectrum.values, kind="stable")
        variance, basis = spectrum.values[order] / moments.n, spectrum.basis[:, order]
        certain = variance > self.rounding
        basis, variance = signed(basis[:, certain]), variance[certain]
        return self.along(basis, variance)

    def covariance(self) -> Array:
        """That of the rows (m, m), in coordinates R'^-1 k in which lengths are those of feature space."""
        G = self.moments.centered()[0] / self.moments.n
        return in_coordinates(self.factor.R, G) if self.moments.coordinates is None else G

    @property
    def own(self) -> float:
        """The mean of k(x, x)."""
        return float(self.moments.t[0] / self.moments.n)

    @property
    def rounding(self) -> float:
        """Variances up to this are rounding errors of kernel values."""
        return NOISE[np.dtype(self.dtype)] * abs(self.own)

    def along(self, basis: Array, variance: Array) -> Subspace:
        """Directions with coefficients (m, r) and the variance (r,) of the rows along them."""
        moments, own = self.moments, self.own
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
            total=max(own - square, float(variance.sum())),
            n=moments.n,
            negative=self.negative,
            words=self.words,
        )

    def without(self, rows: MemoryRows, dropped: Indices) -> "SubspaceState":
        """Without rows that stay in the sample, and without some centers."""
        additive = replace(self.additive, moments=self.moments - self.sums(rows, 0)[0])
        state = replace(self, additive=additive)
        if len(dropped) == 0:
            return state
        kept = np.setdiff1d(np.arange(n_rows(self.centers)), dropped)
        centers = take(self.centers, kept)
        plain = replace(self.precision, dtype=np.float64, coordinates=None)
        factor = factor_of(cross(self.kernel, centers, self.kernel.centers(centers)))
        additive = replace(additive, moments=state.moments.of_kernel_values().restricted(kept))
        return replace(state, centers=centers, precision=plain, factor=factor, additive=additive)

    @property
    def dtype(self) -> Any:
        """The type of the rows."""
        return np.float32 if in_single(self.centers) else np.float64

    def _expressed(self, mean: Array) -> Array:
        """Coefficients (m,) of the mean of phi in feature space, from the mean of kernel rows (m,)."""
        middle, kept = np.zeros(len(mean)), self.factor.kept
        inner = solve_triangular(self.factor.R, mean[kept][:, None], transposed=True)
        middle[kept] = solve_triangular(self.factor.R, inner)[:, 0]
        return middle


@dataclass(frozen=True)
class SubspaceSample:
    """Rows that must not change between passes, and a sample of them."""

    rows: RepeatedRows
    draw: Sampler
    drawn: RunningSample


def sample_rows(rows: Rows, centers: Any, rng: np.random.Generator, verbose: int) -> SubspaceSample:
    """One pass for a sample, large enough for the number of centers; "all": of all rows."""
    repeated, most = RepeatedRows(rows), requested_centers(centers)
    if isinstance(centers, str):
        n = rows.n_rows or LEAST_SAMPLE
        most = n if centers == "all" else auto_centers(n)
    draw = Sampler(max(LEAST_SAMPLE, SAMPLED_ROWS_PER_CENTER * most), int(rng.integers(2**31)), labels=False)
    return SubspaceSample(repeated, draw, survey(repeated, draw, verbose=verbose).least())


def start_subspace(
    resolve: Callable[[Any, Array], Kernel],
    sampled: SubspaceSample,
    check: Callable[[Any], Any] | None,
    centers: Any,
    most: int | None,
    rng: np.random.Generator,
    budget: Budget,
    verbose: int,
    transformations: tuple[Transformation, ...] = (),
    matrices: int = 6,
) -> SubspaceState:
    """Centers selected from the sample, and moments of all rows, in one pass.

    ``resolve`` makes a kernel of numbers from rows and weights; ``most`` components are wanted, None: any number;
    ``matrices`` matrices of the size of the centers are in memory at once.
    """
    drawn, sample = sampled.drawn, sampled.drawn.sample()
    X = sample.X if check is None else check(sample.X)
    weight = weight_of(Block(X, None, sample.weight, 0))
    kernel = resolve(X, weight)
    chosen, words = selected_centers(kernel, X, weight, centers, drawn.n_rows, rng, budget)
    K = np.asarray(cross(kernel, chosen.rows, kernel.centers(chosen.rows)), dtype=np.float64)
    factor = factor_of(K, tolerance=DEPENDENT_CENTERS if in_single(X) else NEARLY_DEPENDENT_CENTERS)
    kept = factor.kept
    require_moments(budget, len(kept), matrices=matrices)
    if len(kept) == 0:
        raise KernelError(f"{kernel!r} is zero at all centers; use another kernel, or scale the features")
    negative = 0.0 if kernel.positive_semidefinite else eigen_psd(np.array(K, order="F")).negative
    warn_of_indefinite(kernel, negative)
    points, factor = take(chosen.rows, kept), RankFactor(factor.R, np.arange(len(kept)))
    leading = most is not None and LEADING * most <= len(kept)
    precision = _precision(kernel, points, factor, X, LEADING_SHARE if leading else LEAST_VARIANCE_SHARE)
    state = SubspaceState(
        kernel=kernel,
        centers=points,
        check=check,
        precision=precision,
        factor=factor,
        negative=negative,
        additive=AdditiveState(Moments(0.0, *(np.zeros(0),) * 5, 0), None, drawn, sampled.draw),
        support=None if chosen.indices is None else sample.index[chosen.indices[kept]],
        words=f"{len(kept)} centers, {words}; {precision.words}",
        transformations=transformations,
    )
    moments, changes = state.sums(sampled.rows, verbose)
    return replace(state, additive=replace(state.additive, moments=moments, changes=changes))


def selected_centers(
    kernel: Kernel, X: Any, weight: Array, centers: Any, n: int, rng: np.random.Generator, budget: Budget
) -> tuple[Centers, str]:
    """Centers from the sample X with weights, for n rows, and how they were selected."""
    selector: CenterSelector
    selector, m = as_plan(centers, kernel, X, n)
    if isinstance(centers, ForwardSelection):
        raise ValueError(
            "ForwardSelection selects centers by targets, and there are none; use KMeans, RPCholesky or Uniform"
        )
    used = np.flatnonzero(weight > 0.0)
    if isinstance(centers, str) and (centers == "all" or n <= MOST_POINTS_AS_CENTERS):
        every = used[kernel.distinct(kernel.subset(X, used)).first]
        require_moments(budget, len(every))
        return Centers(kernel.centers(X, every), every), "all rows"
    if isinstance(centers, Integral | str):
        # Means of clusters express more of the variance than rows do, where there are means.
        selector = KMeans() if kernel.averages and isinstance(X, np.ndarray) else RPCholesky()
    require_moments(budget, selector.most(len(used)) if m is None else m)
    chosen = selector.select(kernel, CandidateRows(X, np.zeros((n_rows(X), 0)), weight), m, rng)
    return chosen, f"{type(selector).__name__} on {n_rows(X)} rows"


def require_moments(budget: Budget, m: int, what: str = "moments", matrices: int = 6) -> None:
    """Memory for moments of every thread, and for ``matrices`` matrices: kernel matrix, factor, decomposition."""
    budget.require(8.0 * m * m * (2 * blas_threads() + matrices), f"{what} of {m} centers")


def _precision(kernel: Kernel, centers: Any, factor: RankFactor, probe: Any, share: float) -> Precision:
    """float32 if its products are exact enough for this share of the variance, else coordinates where needed."""
    found = product_precision(kernel, centers, factor, probe, alpha_share=share)
    return with_coordinates(
        found, kernel, centers, factor, probe, alpha_share=LEAST_VARIANCE_SHARE, intercept=True
    )


def held_out_statistics_of_points(subspace: Subspace, X: Any, weight: Array, budget: Budget) -> Statistics:
    """Statistics of all rows of an exact fit, which have weights (n,), each for directions without its fold."""
    every, k = ExactSubspace.of(subspace.kernel, X, weight, budget), len(subspace.variance)

    def without(rows: Indices) -> Subspace:
        rest = np.setdiff1d(np.arange(len(weight)), rows)
        return every.some(rest).solved(subspace.kernel, take(X, rest), rest, k)

    return _by_folds(without, X)


def held_out_statistics_of_state(state: SubspaceState, k: int) -> tuple[Statistics, Array]:
    """Statistics of rows of the sample, each for k directions without its fold, and their weights.

    A center that is a row leaves with it.
    """
    block, index = state.sample
    weight = weight_of(block)

    def without(rows: Indices) -> Subspace:
        mine = np.zeros(0, dtype=np.intp)
        if state.support is not None:
            mine = np.flatnonzero(np.isin(state.support, index[rows]))
        return state.without(MemoryRows(take(block.X, rows), None, weight[rows]), mine).solved().first(k)

    return _by_folds(without, block.X), weight


def _by_folds(without: Callable[[Indices], Subspace], X: Any) -> Statistics:
    """Statistics of rows X, each for the directions without its fold, which are dealt at random."""
    n = n_rows(X)
    fold = np.random.default_rng(0).permutation(n) % min(LIMIT_FOLDS, n)
    t2, spe = np.empty(n), np.empty(n)
    for number in range(int(fold.max()) + 1):
        rows = np.flatnonzero(fold == number)
        found = without(rows).statistics(take(X, rows))
        t2[rows], spe[rows] = found.t2, found.spe
    return Statistics(t2, spe)
