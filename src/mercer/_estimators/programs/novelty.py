"""Novelty detection: the smallest ball around rows, or the plane that separates them from the origin."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer import _validation
from mercer._estimators.base import KernelModel, schema_of
from mercer._estimators.fitted import Fitted, atomic_update, fitted, reads_one_state, unfitted
from mercer._estimators.parameters import memory_or_none, row_weight, share
from mercer._expansion import Expansion
from mercer._gram import Budget, gram, own_values
from mercer._linalg.eigen import centered
from mercer._scores.training_rows import weighted_quantile
from mercer._solvers.programs.nonsmooth.sequential_minimal_optimization import PairSolution, solve_pairs
from mercer._types import Array, Indices
from mercer.kernels import Kernel
from mercer.kernels._resolve import without_targets

NOVELTY_FORMS = ("ball", "plane")
# Folds in which training rows are held out to find how far away new rows are.
NOVELTY_FOLDS = 10
# Weights below this share of the largest are zero.
NO_WEIGHT = 1e-9
# Diagonals that differ by less than this share are constant.
CONSTANT_DIAGONAL = 1e-9


@dataclass(frozen=True)
class Distances:
    """What distances from a ball or a plane depend on besides the expansion: its ``form``, the ``square`` of its
    length, and k(x, x) of all rows if the kernel is precomputed.
    """

    form: str
    square: float
    diagonal: float | None


@dataclass(frozen=True)
class WeightedGram:
    """Kernel values (u, u) of distinct rows, and their weights (u,)."""

    K: Array
    weight: Array

    def solve(self, form: str, nu: float) -> PairSolution:
        """Weights of the smallest soft ball (Tax and Duin 1999), or of the plane (Schölkopf et al. 2001)."""
        ball = form == "ball"
        return solve_pairs(2.0 * self.K if ball else self.K, self.K.diagonal() * float(ball), self.bound(nu))

    def bound(self, nu: float) -> Array:
        """The largest weight (u,) of each row in the program."""
        bound: Array = np.minimum(self.weight / (nu * self.weight.sum()), 1.0)
        return bound

    def radius(self, a: Array, nu: float) -> float:
        """Of the ball with weights a (u,): no row inside is farther away, none outside nearer."""
        distance = self.K.diagonal() - 2.0 * self.K @ a + float(a @ self.K @ a)
        inside = distance[a < self.bound(nu)].max(initial=0.0)
        outside = distance[a > 0.0].min(initial=np.inf)
        return float(np.sqrt(max(0.5 * (inside + outside), 0.0)))

    def some(self, rows: Indices) -> "WeightedGram":
        return WeightedGram(self.K[np.ix_(rows, rows)], self.weight[rows])

    def scores_left_out(self, form: str, nu: float) -> Array:
        """Scores (u,) of rows for solutions without their fold, which are dealt at random."""
        u = len(self.K)
        fold = np.random.default_rng(0).permutation(u) % min(NOVELTY_FOLDS, u)
        scores = np.empty(u)
        for number in range(int(fold.max()) + 1):
            rest, rows = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            a = self.some(rest).solve(form, nu).weight
            inner = self.K[np.ix_(rows, rest)] @ a
            scores[rows] = scores_of(form, inner, self.K.diagonal()[rows], float(a @ self.some(rest).K @ a))
        return scores


def scores_of(form: str, inner: Array, own: Array, square: float) -> Array:
    """From <phi(x), w> (n,), k(x, x) (n,) and w'w: minus the squared distance to the center w, or the first."""
    return 2.0 * inner - own - square if form == "ball" else inner


class KernelNoveltyDetector(OutlierMixin, KernelModel):
    r"""Tells rows that are unlike the training rows: outside of the smallest soft ball around them.

    ``KernelNoveltyDetector()`` needs no parameters; the width is a parameter of the kernel, as in
    ``KernelNoveltyDetector(RBF(gamma=0.1))``.

    The ball has the center w = sum_i a_i phi(x_i) and the radius r that minimize r² + 1 / (nu n) sum_i xi_i, where
    the squared distance of row i is at most r² + xi_i (Tax and Duin 1999); the plane <w, phi(x)> = rho is as far
    from the origin as the share ``nu`` of rows on the wrong side allows (Schölkopf et al. 2001). Both are the same
    where k(x, x) is constant. The threshold is not that of the program, beyond which more than the share nu of new
    rows lie: it is found by training rows that are held out in ten folds, so that of new rows like these the share
    ``rate`` is called novel.

    Costs O(n²) memory, and O(n) for each of some thousand moves of weight.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "rbf" is ``RBF(gamma="median")``: there are no targets by which leave-one-out could choose.
    form : {"ball", "plane"}, default="ball"
        What is fitted.
    rate : float, default=0.05
        The share of new rows, like the training rows, that are called novel.
    nu : float or None, default=None
        The largest share of training rows outside; None: ``rate``.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of the free memory.

    Attributes
    ----------
    X_fit_, dual_coef_ : rows, ndarray of shape (m,)
        Training rows with weight, and their weights a_i.
    support_ : ndarray of shape (m,)
        Which rows these are.
    offset_ : float
        The threshold of ``score_samples``.
    radius_ : float or None
        r of the program; None for the plane.
    loo_score_samples_ : ndarray of shape (n,)
        Scores of training rows, each without its fold.
    kernel_, gamma_ : Kernel, float or None
        The kernel with its parameters.
    gap_ : float
        How much better other weights could be at most, recomputed.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelNoveltyDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = KernelNoveltyDetector(rate=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    gap_ = fitted[float]()
    support_ = fitted[Indices]()
    radius_ = fitted[float | None]()
    offset_ = fitted[float]()
    loo_score_samples_ = fitted[Array]()

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        form: str = "ball",
        rate: float = 0.05,
        nu: float | None = None,
        max_memory: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.form = form
        self.rate = rate
        self.nu = nu
        self.max_memory = max_memory

    @atomic_update
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the ball or the plane, and the threshold.

        Parameters
        ----------
        X : array, data frame, CSR matrix, list of objects or kernel matrix, n rows
        y : ignored
        sample_weight : array of shape (n,), default=None
            Weights of the rows; a weight of two is equivalent to repeating the row.
        """
        _validation.check_choice("form", self.form, NOVELTY_FORMS)
        rate = share("rate", self.rate)
        nu = rate if self.nu is None else share("nu", self.nu)
        budget = Budget.from_parameter(memory_or_none("max_memory", self.max_memory))
        model = unfitted(self)
        X = model._read(X, reset=True)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        weight = row_weight(sample_weight, n)
        kernel = without_targets(self.kernel, X, weight)
        used = np.flatnonzero(weight > 0.0)
        distinct = kernel.distinct(kernel.subset(X, used))
        first = used[distinct.first]
        if len(first) < 2:
            raise ValueError(f"novelty detection needs 2 distinct rows at least, but n_samples = {len(first)}")
        K = np.asarray(gram(kernel, kernel.subset(X, first), budget=budget, held=4), dtype=np.float64)
        self._check_diagonal(kernel, K)
        counts = np.bincount(distinct.point, weight[used]).astype(np.float64)
        # Distances are the same around the mean, and more accurate.
        rows = WeightedGram(centered(K) if self.form == "ball" else K, counts)
        found, left = rows.solve(self.form, nu), rows.scores_left_out(self.form, nu)
        kept = np.flatnonzero(found.weight > NO_WEIGHT * found.weight.max())
        support = first[kept]
        own_scores = np.full(n, np.nan)
        own_scores[used] = left[distinct.point]
        attributes = {
            "kernel_": kernel,
            "gamma_": kernel.gamma,
            "gap_": found.gap,
            "support_": support,
            "dual_coef_": found.weight[kept],
            "X_fit_": kernel.centers(X, support),
            "intercept_": np.zeros(1),
            "radius_": rows.radius(found.weight, nu) if self.form == "ball" else None,
            "offset_": weighted_quantile(left, rows.weight, rate),
            "loo_score_samples_": own_scores,
        }
        diagonal = float(K.diagonal().mean()) if kernel.takes_values else None
        details = Distances(self.form, float(found.weight @ K @ found.weight), diagonal)
        return self._publish(Fitted(schema_of(model).attributes | attributes, details))

    @reads_one_state
    def score_samples(self, X: Any) -> Array:
        """Minus the squared distance (n,) to the center of the ball, or <w, phi(x)>; larger is more usual."""
        check_is_fitted(self)
        known: Distances = self._details
        f = Expansion(self.kernel_, self.X_fit_, self.dual_coef_[:, None], self.intercept_)

        def scores(rows: Any) -> Array:
            inner = np.asarray(f(rows), dtype=np.float64)[:, 0]
            if known.diagonal is not None or known.form == "plane":
                own = np.full(len(inner), known.diagonal or 0.0)
            else:
                own = own_values(self.kernel_, rows)
            return scores_of(known.form, inner, own, known.square)

        return np.asarray(self._evaluated(X, scores), dtype=np.float64)

    @reads_one_state
    def decision_function(self, X: Any) -> Array:
        """``score_samples`` minus the threshold (n,): negative for novel rows."""
        return self.score_samples(X) - self.offset_

    @reads_one_state
    def predict(self, X: Any) -> NDArray[np.intp]:
        """-1 for novel rows, +1 for others (n,)."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _check_diagonal(self, kernel: Kernel, K: Array) -> None:
        own = K.diagonal()
        if (
            self.form == "ball"
            and kernel.takes_values
            and np.ptp(own) > CONSTANT_DIAGONAL * float(np.abs(own).max())
        ):
            raise ValueError(
                f"k(x, x) of the kernel matrix varies between {own.min():.3g} and {own.max():.3g}, and that of "
                'new rows is not known; normalize the matrix, or use form="plane"'
            )
