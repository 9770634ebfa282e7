"""Centers selected by the targets, one after another, from moments (forward selection)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from operator import add
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer._gram.blocks import cross, cuts
from mercer._gram.moments import PRODUCT_ROWS, Moments, MomentsOf
from mercer._linalg import limit_threads, map_in_threads, supervised_pivots
from mercer._linalg.tolerance import by_precision
from mercer._types import Indices
from mercer.centers._base import CandidateRows, Centers, CenterSelector, Extent, Pass, at_least_one
from mercer.centers._kmeans import KMeans
from mercer.centers._path import CenterPath, CenterProblem, Score, gcv, loo, scored_path
from mercer.centers._pool import Pool, draw_stratified, pool_of
from mercer.errors import NumericalError
from mercer.kernels import Kernel
from mercer.rows._base import Block
from mercer.rows._table import n_rows, take

# The alpha of the selection, and those tried for the path, in units of tr G / tr K; largest first.
FORWARD_ALPHA = 1e-4
PATH_ALPHAS = 10.0 ** np.arange(1, -6, -1)
# Smallest part of its diagonal that must remain of a candidate: the noise in moments of such blocks.
NEW_DIAGONAL = {"double": 1e-12, "single": 1e-6}
# Rounds of k-means for means among the candidates, and one in this many is the mean of a large cluster.
KMEANS_ROUNDS = 20
LARGE_CLUSTERS = 5
# Length of the first path if the number of centers is not given.
FIRST_LENGTH = 64
ROWS_IN_BLOCK = 4096
# Minimum number of candidates, if the number of centers is not given.
LEAST_CANDIDATES = 50


class ForwardSelection(CenterSelector):
    r"""Greedy forward selection: each center lowers the penalized sum of squares most.

    Also known as orthogonal least squares, or kernel matching pursuit. Candidates are c distinct rows of the
    sample, drawn at random and stratified by class. One pass over the data gives their moments G = K'WK, C = K'WY,
    centered; then, with H = G + alpha K_cc, each step adds the candidate with the largest decrease of

        J(S) = sum_i w_i |y_i - f(x_i)|² + alpha c'K_SS c,   f = sum_(j in S) c_j k(., z_j) + b,

    which is the pivot of a partial Cholesky factorization of H: O(c m (m + q)) time and O(c²) memory, regardless
    of the number of rows. All targets and classes share the centers. Mika (2002), section 3.5.2; Andelić (2007),
    section 3.4.2, there with n rows for the c candidates here.

    If the sample has at least 2 c distinct rows, two refinements apply. The labels of candidates are not used: the
    sums for the selection run over the other rows, because otherwise a narrow kernel would select rows for their
    own labels; and leave-one-out is unbiased at the candidates, since the selection does not depend on their
    labels. And cluster means of each class are also candidates, if rows are dense vectors.

    The selection yields the path over all numbers of centers, and n_centers=None takes the number with the
    smallest criterion; the path ends when it is twice as long as that. Centers selected by the targets use more
    degrees of freedom than given ones: they are counted as df = 1 + cost tr (H_SS^-1 G_SS). ``trace`` of the
    centers is the share of the variation of Y that each explains at the path's alpha.

    Parameters
    ----------
    n_centers : int or None
        Number of centers, unless passed to ``select``; None chooses it by the criterion.
    n_candidates : int
        Number of candidates c, at least the number of centers.
    n_means : int
        Number of cluster means that are also candidates; ``indices`` of the centers are None if one is selected.
    criterion : "gcv" or "loo"
        Score of the path: generalized cross-validation, n rss / (n - df)², or the leave-one-out residuals (PRESS)
        of the rows not used for the selection, or of all rows of the sample if all were used; O(b m (m + q)) for b
        such rows.
    cost : float
        Degrees of freedom charged for a selected slope, relative to a given one; 1 ignores the selection and takes
        too many centers. Rows not used for the selection need no such charge.
    alpha : float or None
        The penalty. None: the selection, which hardly depends on it, uses 1e-4 tr G / tr K, and the path the
        one of seven that has the best criterion.
    tolerance : float or None
        Candidates whose remaining diagonal is below this fraction are not selected; None: 1e-6 for kernel values
        in float32, 1e-12 for float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.centers import ForwardSelection, CandidateRows
    >>> from mercer.datasets import make_ringnorm
    >>> from mercer.kernels import RBF
    >>> X, y = make_ringnorm(400, random_state=0)
    >>> sample = CandidateRows(X, y[:, None].astype(float), np.ones(400), (y > 0).astype(int))
    >>> centers = ForwardSelection().select(RBF(gamma=0.05), sample, 5, np.random.default_rng(0))
    >>> centers.trace.round(2)
    array([0.68, 0.08, 0.04, 0.02, 0.01])
    """

    def __init__(
        self,
        n_centers: int | None = None,
        *,
        n_candidates: int = 2000,
        n_means: int = 500,
        criterion: Literal["gcv", "loo"] = "gcv",
        cost: float = 2.5,
        alpha: float | None = None,
        tolerance: float | None = None,
    ) -> None:
        self.n_centers = n_centers
        self.n_candidates = n_candidates
        self.n_means = n_means
        self.criterion = criterion
        self.cost = cost
        self.alpha = alpha
        self.tolerance = tolerance

    def most(self, n: int) -> int:
        return self._n_all(1, n) if self.n_centers is None else self.n_centers

    def n_bytes(self, n_centers: int, extent: Extent) -> float:
        """Moments of the candidates: over all rows, over those used to select, and pieces of kernel values."""
        c, t = self._n_all(n_centers, extent.n), extent.threads
        moments = (
            8.0 * c * (c * (4.0 + 2.0 * t) + 6.0 * extent.q) + t * min(extent.n, PRODUCT_ROWS) * c * extent.value
        )
        return super().n_bytes(n_centers, extent) + moments + t * 32.0 * n_centers**2

    def within(self, n_bytes: float, n_centers: int | None, extent: Extent) -> Self:
        """With fewer candidates, and proportionally fewer means, but no fewer than centers."""
        least = LEAST_CANDIDATES if n_centers is None else n_centers
        found: Self = clone(self)
        for c in range(self.n_candidates, least - 1, -max(1, self.n_candidates // 100)):
            found.n_candidates, found.n_means = c, self.n_means * c // self.n_candidates
            if found.n_bytes(found.most(extent.n) if n_centers is None else n_centers, extent) <= n_bytes:
                return found
        return found

    def _n_all(self, n_centers: int, n: int) -> int:
        """Number of candidates among n rows, including cluster means if there are any."""
        c = min(max(self.n_candidates, n_centers), n)
        return c + self.n_means if 2 * c <= n else c

    def select(
        self,
        kernel: Kernel,
        sample: CandidateRows,
        n_centers: int | None,
        rng: np.random.Generator,
        moments: Pass | None = None,
    ) -> Centers:
        n_centers = self.n_centers if n_centers is None else n_centers
        pool = pool_of(sample)
        c = max(self.n_candidates, 1 if n_centers is None else at_least_one(n_centers))
        candidates = self._candidates(kernel, sample, pool, draw_stratified(pool, c, rng), rng)
        K = _among(kernel, candidates)
        rows = candidates.rows
        everyone = moments_of_sample(kernel, sample, rows) if moments is None else moments(rows)
        problem = voters = CenterProblem.of(everyone, K.astype(np.float64, copy=False))
        if candidates.silent is not None:
            own = _part(sample, candidates.silent)
            voters = CenterProblem.of(everyone - moments_of_sample(kernel, own, rows), problem.K)
        score = self._score(kernel, sample, candidates)
        path = self._path(problem, self._order(voters, K.dtype), score, n_centers)
        if path is None:
            return Centers(kernel.centers(sample.X, candidates.index[:1]), candidates.index[:1])
        m = len(path.order) if n_centers is not None else _best_number(path, problem)
        chosen, path = path.order[:m], replace(path, order=candidates.index[path.order])
        indices = path.order[:m] if (path.order[:m] >= 0).all() else None
        unseen = np.empty(0, dtype=np.intp) if candidates.silent is None else candidates.silent
        return Centers(candidates.take(chosen), indices, path.gain[:m] / (problem.total or 1.0), path, unseen)

    def prepared(self, kernel: Kernel, sample: CandidateRows, rng: np.random.Generator) -> CandidateRows:
        """The sample with the cluster means that are candidates besides rows: they do not depend on the kernel."""
        dense = kernel.averages and isinstance(sample.X, np.ndarray)
        if self.n_means < 1 or not dense or 2 * self.n_candidates > n_rows(sample.X):
            return sample
        large = self.n_means // LARGE_CLUSTERS
        clusters = KMeans(per_class=True, max_iter=KMEANS_ROUNDS)
        means = [clusters.select(kernel, sample, k, rng).rows for k in (self.n_means - large, large) if k]
        return replace(sample, means=np.concatenate(means))

    def _candidates(
        self, kernel: Kernel, sample: CandidateRows, pool: Pool, drawn: Indices, rng: np.random.Generator
    ) -> "CandidateSet":
        """The points drawn; if at most half of all, their labels are not used and cluster means are added."""
        index = pool.index[drawn]
        rows, square = kernel.centers(sample.X, index), kernel.subset(sample.X, index)
        if 2 * len(drawn) > pool.n_points:
            return CandidateSet(rows, square, index, None)
        silent = pool.members(drawn)
        means = sample.means if sample.means is not None else self.prepared(kernel, sample, rng).means
        if means is None:
            return CandidateSet(rows, square, index, silent)
        rows = np.concatenate([rows, means])
        index = np.concatenate([index, np.full(len(rows) - len(index), -1)])
        return CandidateSet(rows, rows, index, silent)

    def _path(
        self, problem: CenterProblem, pivots: Iterator[int], score: Score, n_centers: int | None
    ) -> CenterPath | None:
        """The best path, as candidate numbers; None if no candidate differs from a constant."""
        alphas = [self.alpha] if self.alpha is not None else list(PATH_ALPHAS * problem.unit)

        def paths(order: Indices) -> list[CenterPath | None]:
            return map_in_threads(lambda alpha: scored_path(problem, order, alpha, score, self.cost), alphas)

        return grow(pivots, paths, n_centers)

    def _order(self, problem: CenterProblem, dtype: Any) -> Iterator[int]:
        """Candidate numbers in the order of selection, until the remainder of all others is noise."""
        alpha = FORWARD_ALPHA * problem.unit if self.alpha is None else self.alpha
        tolerance = by_precision(dtype, **NEW_DIAGONAL) if self.tolerance is None else self.tolerance
        floor = np.maximum(tolerance * (problem.diagonal + alpha * problem.K.diagonal()), 0.0)
        return supervised_pivots(problem.penalized(alpha), problem.C, floor)

    def _score(self, kernel: Kernel, sample: CandidateRows, candidates: "CandidateSet") -> Score:
        if self.criterion == "gcv":
            return gcv(self.cost)
        if self.criterion != "loo":
            raise ValueError(f'criterion={self.criterion!r}; it must be "gcv" or "loo"')
        if candidates.silent is None:
            return loo(kernel, sample.X, sample.Y, sample.weight, candidates.take, self.cost)
        silent = _part(sample, candidates.silent)
        return loo(kernel, silent.X, silent.Y, silent.weight, candidates.take, 1.0)


@dataclass(frozen=True)
class CandidateSet:
    """Candidates as centers, their kernel values with each other if given, and their positions in the sample.

    ``index`` is -1 for cluster means. ``silent`` are the positions of candidates whose labels are not used for the
    selection; None if all labels are used.
    """

    rows: Any
    square: Any
    index: Indices
    silent: Indices | None

    def take(self, order: Indices) -> Any:
        """Some of the candidates as centers."""
        return take(self.rows, order)


def _part(sample: CandidateRows, rows: Indices) -> CandidateRows:
    """Some rows of the sample."""
    return CandidateRows(take(sample.X, rows), sample.Y[rows], sample.weight[rows], None)


def moments_of_sample(kernel: Kernel, sample: CandidateRows, centers: Any) -> Moments:
    """Moments of the rows of the sample."""
    fold = MomentsOf(kernel, centers)
    parts = cuts(n_rows(sample.X), ROWS_IN_BLOCK)
    plain = bool((sample.weight == 1.0).all())
    blocks = (Block(take(sample.X, i), sample.Y[i], None if plain else sample.weight[i], i.start) for i in parts)
    return reduce(add, map(fold, blocks))


def grow(
    pivots: Iterator[int], paths: Callable[[Indices], list[CenterPath | None]], n_centers: int | None
) -> CenterPath | None:
    """The best of the paths along the pivots; None if there are no pivots.

    Without a number of centers, the path is doubled until its best number is in the first half.
    """
    order: list[int] = []
    length = FIRST_LENGTH if n_centers is None else n_centers
    while True:
        # Matrix-vector products: more threads would only wait for each other.
        with limit_threads(1):
            order.extend(islice(pivots, length - len(order)))
        if not order:
            return None
        path = _best(paths(np.array(order)), whole=n_centers is None)
        if n_centers is not None or len(order) < length or 2 * (path.score.argmin() + 1) <= length:
            return path
        length *= 2


def _best(paths: list[CenterPath | None], *, whole: bool) -> CenterPath:
    """The path with the smallest score, with all its centers or with any number of them."""
    found = [path for path in paths if path is not None]
    if not found:
        raise NumericalError(
            "the penalized moments of the chosen centers are not positive definite for any alpha; "
            "use a larger tolerance or fewer centers"
        )
    return min(found, key=lambda path: path.score.min() if whole else path.score[-1])


def _best_number(path: CenterPath, problem: CenterProblem) -> int:
    if not np.isfinite(path.score).any():
        raise ValueError(
            f"the weights sum to {problem.n:.3g}, less than the degrees of freedom of one center; scale them to "
            "sum to the number of rows, or set n_centers"
        )
    return int(path.score.argmin()) + 1


def _among(kernel: Kernel, candidates: CandidateSet) -> NDArray[Any]:
    """Kernel values of the candidates with each other, float32 or float64."""
    K = cross(kernel, candidates.square, kernel.centers(candidates.square))
    return K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)
