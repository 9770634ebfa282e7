"""How much the training rows say about a row: where they say nothing, probabilities are those of the classes.

Far from all rows a Gaussian kernel is zero and f is its intercept; with a wide or linear kernel f goes on as a
straight line. Neither is evidence. Three numbers show it: the posterior variance v of f, in units of the noise,
the share g of the prior variance that the rows explain, and the share s of k(x, x) that their kernel functions
express. Far away s tends to zero, or v grows without bound. What is known of a row is s g / v, compared with what
the other rows know of a training row that is held out. The intercept is free, so the prior variance is that of
the difference to the mean of f.

The variance is that of a model with few centers, rows chosen one after the other as the least explained so far:
the deterministic training conditional of Quiñonero-Candela and Rasmussen (2005), section 5. It costs O(r²) for
each row, however many centers the model itself has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._gram import cross, own_values
from mercer._gram.blocks import BLOCK_SIZE, cuts, evaluator
from mercer._linalg import eigen_psd, factor_spd, largest_pivots
from mercer._linalg.threads import map_in_threads, one_blas_thread
from mercer._linalg.tolerance import SMALLEST_FLOAT
from mercer._scores.training_rows import Training, weighted_quantile
from mercer._solvers.smoother import LEAST_ONE_MINUS_LEVERAGE
from mercer._types import Array, Indices
from mercer.errors import NumericalError
from mercer.kernels import Kernel
from mercer.rows._table import in_double, n_rows, take

# Up to the first number of rows all are centers; of more, this number is chosen, among at most half of the rows.
MOST_CENTERS = 200
CENTER_CANDIDATES = 400
# Products of a block of rows take less memory than the blocks of a fit, by this factor.
BLOCK_REDUCTION = 32
# Coordinates of training rows are kept while they are learned from if they are not more numbers than this.
MOST_KEPT = 2**23
# Share of the training rows of which less is known than usual; of new rows half of that is enough.
LEAST_KNOWN = 0.01
HALF_KNOWN = 0.5
# Rows are isolated if less than this share of what is known of half of the rows is known of them; if they are more
# than the second share, isolation is common, and may be evidence.
ISOLATED_SHARE = 1e-3
COMMON_ISOLATION = 0.1
# Centers of which less than this share of k(x, x) is new add rounding errors only.
LEAST_NEW_SHARE = 1e-8
# The least share of the evidence that counts: enough to rank classes.
LEAST_TRUST = 1e-8
# Rows of such a weight are known exactly.
LEAST_PRIOR_VARIANCE = 1e-150
# Values that differ by a smaller share are equal.
EQUAL_SHARE = 1e-5
# Squares and sums of kernel values are finite up to this one.
LARGEST_KERNEL_VALUE = 1e140

# From a slice of rows to their k(x, x) and coordinates.
Coordinates = Callable[[slice], tuple[Array, Array]]


@dataclass(frozen=True)
class UnexplainedVariance:
    """Centers z (r rows), coordinates phi = k(x, z) R^-1 in which the prior is the identity, for R'R = k(z, z).

    ``inverse`` is R^-1 (r, r), ``mean`` the mean of phi (r,), and (phi - mean) ``half`` has the length of the
    leverage: half half' is (S + alpha)^-1 with the scatter S of the training rows, whose total weight is 1 /
    ``constant``. Both are upper triangular, and held and stored as such. ``diagonal`` is the mean of k(x, x), and
    that of every row if kernel values are given. ``typical`` is the mean prior variance, ``usual`` half of what is
    known of nearly all training rows. Kernel values are computed in float64.
    """

    kernel: Kernel
    centers: Any
    inverse_upper: Array
    mean: Array
    half_upper: Array
    alpha: float
    constant: float
    diagonal: float
    typical: float
    usual: float = 1.0

    @cached_property
    def inverse(self) -> Array:
        return _unpacked(self.inverse_upper)

    @cached_property
    def half(self) -> Array:
        return _unpacked(self.half_upper)

    def __getstate__(self) -> dict[str, Any]:
        """Without the halves of matrices that are zero."""
        return {name: value for name, value in vars(self).items() if name not in ("inverse", "half")}

    @property
    def floor(self) -> float:
        """The least k(x, x) of which shares are taken."""
        return LEAST_NEW_SHARE * self.diagonal + SMALLEST_FLOAT

    def novelty(self, X: Any) -> Array:
        """log(usual / known) (n,) of rows in memory: above zero less is known than is usual."""
        return _novelty(self.known(self.parts(X)), self.usual)

    def trust(self, X: Any) -> Array:
        """The share (n,) of the evidence of f that counts: one where as much is known as usual, zero far away."""
        return _trust(self.novelty(X))

    def known(self, parts: "VarianceParts") -> Array:
        """s g / v (n,): the expressed share of k(x, x) and the explained one of the prior variance, prior / alpha,
        over the variance of f.

        Rows near the mean have hardly any prior variance: that of a typical row counts then.
        """
        variance = parts.leverage + parts.unspanned / self.alpha
        prior = np.maximum(np.maximum(parts.prior, self.typical), SMALLEST_FLOAT)
        explained = 1.0 - (variance - parts.constant) * self.alpha / prior
        return parts.spanned * np.maximum(explained, 0.0) / np.maximum(variance, LEAST_PRIOR_VARIANCE)

    def parts(self, X: Any) -> "VarianceParts":
        """What the variance of rows in memory consists of."""
        return self.parts_in(self.pieces(X), self.coordinates(X))

    def parts_in(self, pieces: Sequence[slice], coordinates: "Coordinates") -> "VarianceParts":
        """The same from coordinates of pieces of rows, several at once."""
        parts = map_in_threads(lambda rows: self.parts_of(*coordinates(rows)), pieces)
        if not parts:
            return VarianceParts(*(np.zeros(0) for _ in range(5)))
        return VarianceParts(*map(np.concatenate, zip(*parts)))

    def parts_of(self, own: Array, phi: Array) -> "VarianceParts":
        """The same from k(x, x) (n,) and coordinates phi (n, r)."""
        inside, base, centered = _squares(phi), np.maximum(own, self.floor), phi - self.mean
        unspanned = np.maximum(own - inside, 0.0)
        # One minus the share of the rest, without cancellation where next to nothing is expressed.
        spanned = np.minimum((base - own + inside) / base, 1.0)
        prior, leverage = _squares(centered) + unspanned, _squares(centered @ self.half) + self.constant
        return VarianceParts(leverage, unspanned, prior, spanned, np.full(len(own), self.constant))

    def pieces(self, X: Any) -> list[slice]:
        """Rows in memory, a few at a time."""
        return list(cuts(n_rows(X), max(1, BLOCK_SIZE // (BLOCK_REDUCTION * len(self.mean)))))

    def coordinates(self, X: Any) -> "Coordinates":
        """What gives k(x, x) (n,) and coordinates phi (n, r) of a piece of rows in memory, in float64."""
        values = evaluator(self.kernel, self.centers)

        def of_piece(rows: slice) -> tuple[Array, Array]:
            part = self.kernel.prepared(in_double(take(X, rows)))
            if self.kernel.takes_values:
                own = np.full(rows.stop - rows.start, self.diagonal)
            else:
                own = own_values(self.kernel, part, most=LARGEST_KERNEL_VALUE**2)
            with np.errstate(over="ignore", invalid="ignore"):
                phi = np.asarray(values(part), dtype=np.float64) @ self.inverse
            # Written so that it holds for values that are not numbers.
            if not max(phi.max(), -phi.min()) <= LARGEST_KERNEL_VALUE:
                phi = np.clip(np.nan_to_num(phi), -LARGEST_KERNEL_VALUE, LARGEST_KERNEL_VALUE)
            return own, phi

        return of_piece


class VarianceParts(NamedTuple):
    """Of rows: the ``leverage`` (n,), the part of k(x, x) that no center expresses (n,), alpha times the prior
    variance (n,), the share (n,) of k(x, x) that is expressed, and the leverage (n,) of the intercept.
    """

    leverage: Array
    unspanned: Array
    prior: Array
    spanned: Array
    constant: Array


@one_blas_thread()
def learn_unexplained_variance(
    kernel: Kernel,
    training: Training,
    alpha: float | None,
    degrees_of_freedom: float = 1.0,
    *,
    keep: bool = True,
) -> tuple[UnexplainedVariance, Array] | None:
    """What training rows know of new rows, and the trust (n,) in each of them if it, or its fold, is held out.

    ``alpha`` is the penalty on the norm of f in a fit to these rows, None: that of a fit with these degrees of
    freedom, if something else is penalized. None if the kernel is not positive definite, as far as these rows
    show, or if kernel values are given and k(x, x) of new rows is not known, as it varies. O(n r² + c³) for r
    centers among c candidates; coordinates (n, r) are computed once if they may be kept (``keep``), else twice.
    """
    part, used = training.used(kernel)
    rows, X = kernel.distinct(part.X), training.X
    some = _candidates(kernel, part.X, rows.first)
    candidates = used[rows.first[some]]
    K = _among(kernel, X, candidates)
    weight = np.bincount(rows.point, part.weight).astype(np.float64)[some]
    pivots = _pivots(K, weight)
    if len(pivots) == 0 or (kernel.takes_values and _varies(np.diagonal(np.asarray(part.X)))):
        return None
    try:
        diagonal = float(weight @ K.diagonal() / weight.sum())
        start = _start(kernel, X, candidates[pivots], diagonal)
        pieces, coordinates = start.pieces(X), _kept(start, X, keep=keep)
        unexplained = _fitted(start, pieces, coordinates, training.weight, alpha, degrees_of_freedom)
        alone = _alone(rows.point, part)[some]
        fold = None if training.fold is None else training.fold[candidates]
        lost = np.where(alone, _lost(K, fold), 0.0) / np.maximum(
            K.diagonal(), LEAST_NEW_SHARE * diagonal + SMALLEST_FLOAT
        )
    except NumericalError:
        # A kernel that is not what it says: f has no variance.
        return None
    known = unexplained.known(_without_rows(unexplained, pieces, coordinates, training, used, candidates, lost))
    # Candidates that are not centers are those that others explain best: the remaining rows are like new ones.
    like_new = some if len(some) == rows.n_points else np.setdiff1d(np.arange(rows.n_points), some)
    evidence = np.bincount(rows.point, part.evidence).astype(np.float64)[like_new]
    unexplained = replace(unexplained, usual=_usual(known[used[rows.first[like_new]]], evidence))
    return unexplained, _trust(_novelty(known, unexplained.usual))


def _alone(point: Indices, training: Training) -> NDArray[np.bool_]:
    """Whether all rows at a point (u,) are held out together: there is one, or they are in one fold."""
    if training.fold is None:
        return np.asarray(np.bincount(point, training.count) < 1.5)
    first = training.fold[np.unique(point, return_index=True)[1]]
    return np.asarray(np.bincount(point, training.fold != first[point]) == 0)


def _usual(known: Array, weight: Array) -> float:
    """Half of what is known of nearly all rows; isolated ones count only if they are common."""
    isolated = ISOLATED_SHARE * weighted_quantile(known, weight, 0.5)
    common = float(weight[known < isolated].sum()) > COMMON_ISOLATION * float(weight.sum())
    least = weighted_quantile(known, weight, LEAST_KNOWN)
    return HALF_KNOWN * (least if common else max(least, isolated))


def _candidates(kernel: Kernel, X: Any, first: Indices) -> Indices:
    """All points, or a random part of them, by the first row (u,) of each: rows may come in a regular order."""
    n = len(first)
    if n <= MOST_CENTERS:
        return np.arange(n)
    rng = np.random.default_rng(0)
    # By a place that depends neither on the order of rows nor on what holds them: along a random line for vectors.
    place = first if not kernel.takes_vectors else np.ravel(take(X, first) @ rng.normal(size=X.shape[1]))
    place = np.asarray(X).sum(axis=1)[first] if kernel.takes_values else place
    return np.sort(np.argsort(place, kind="stable")[rng.permutation(n)[: min(n // 2, CENTER_CANDIDATES)]])


def _kept(unexplained: UnexplainedVariance, X: Any, *, keep: bool = True) -> Coordinates:
    """Coordinates of pieces of rows in memory: kept, or computed again if they are many."""
    coordinates = unexplained.coordinates(X)
    if not keep or n_rows(X) * len(unexplained.mean) > MOST_KEPT:
        return coordinates
    pieces = unexplained.pieces(X)
    kept = dict(zip((rows.start for rows in pieces), map_in_threads(coordinates, pieces)))
    return lambda rows: kept[rows.start]


def _without_rows(
    unexplained: UnexplainedVariance,
    pieces: Sequence[slice],
    coordinates: Coordinates,
    training: Training,
    used: Indices,
    candidates: Indices,
    lost: Array,
) -> VarianceParts:
    """The parts of training rows, of which those ``used`` (u,) are held out, each alone or with its fold.

    ``lost`` (c,) is the share of k(x, x) of the candidates that the others do not express.
    """
    parts = unexplained.parts_in(pieces, coordinates)
    leverage, spanned, leaving = parts.leverage.copy(), parts.spanned.copy(), training.unit.copy()
    if training.fold is None:
        leverage[used] /= np.maximum(1.0 - leaving[used] * leverage[used], LEAST_ONE_MINUS_LEVERAGE)
    else:
        leaving = np.bincount(training.fold, training.weight).astype(np.float64)[training.fold]
        phi = np.concatenate([coordinates(rows)[1] for rows in pieces])
        psi = np.column_stack([(phi - unexplained.mean) @ unexplained.half, parts.constant**0.5])
        leverage[used] = _without_folds(psi[used], training.weight[used], training.fold[used])
    spanned[candidates] = np.minimum(spanned[candidates], np.maximum(1.0 - lost, 0.0))
    constant = unexplained.constant / np.maximum(1.0 - leaving * unexplained.constant, LEAST_ONE_MINUS_LEVERAGE)
    return parts._replace(leverage=leverage, spanned=spanned, constant=constant)


def _without_folds(psi: Array, weight: Array, fold: Indices) -> Array:
    """psi (I - A'A)^-1 psi' (n,) for rows psi (n, r), A those of the same fold times the root of their weight."""
    leverage = _squares(psi)
    order = np.argsort(fold, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(fold[order])) + 1):
        own = psi[rows]
        A = own * np.sqrt(weight[rows])[:, None]
        if len(rows) <= A.shape[1]:
            # (I - A'A)^-1 = I + A'(I - AA')^-1 A, the smaller system.
            left = factor_spd(_at_least(np.eye(len(A)) - A @ A.T))
            leverage[rows] += _squares(left.half_solve(A @ own.T).T)
        else:
            leverage[rows] = _squares(factor_spd(_at_least(np.eye(A.shape[1]) - A.T @ A)).half_solve(own.T).T)
    return leverage


def _at_least(A: Array) -> Array:
    """A, whose eigenvalues are between zero and one, with at least something left."""
    A[np.diag_indices_from(A)] += LEAST_ONE_MINUS_LEVERAGE
    return A


def _lost(K: Array, fold: Indices | None) -> Array:
    """The part (c,) of k(x, x) of some rows that the others of them, outside of their fold, do not express."""
    shift = LEAST_NEW_SHARE * float(K.diagonal().max())
    half = factor_spd(K + shift * np.eye(len(K))).inverse()
    if fold is None:
        return np.maximum(1.0 / _squares(half.T) - shift, 0.0)
    lost = np.empty(len(K))
    for number in np.unique(fold):
        rows = np.flatnonzero(fold == number)
        lost[rows] = _squares(factor_spd(half[:, rows].T @ half[:, rows]).inverse().T)
    return np.maximum(lost - shift, 0.0)


def _start(kernel: Kernel, X: Any, centers: Indices, diagonal: float) -> UnexplainedVariance:
    """That with some of the rows X as centers that has seen no row yet; k(x, x) is ``diagonal``."""
    r = len(centers)
    return UnexplainedVariance(
        kernel,
        kernel.centers(in_double(X), centers),
        _inverse_root(_among(kernel, X, centers)),
        np.zeros(r),
        _packed(np.eye(r)),
        alpha=1.0,
        constant=1.0,
        diagonal=diagonal,
        typical=diagonal,
    )


def _fitted(
    start: UnexplainedVariance,
    pieces: Sequence[slice],
    coordinates: Coordinates,
    weight: Array,
    alpha: float | None,
    degrees_of_freedom: float,
) -> UnexplainedVariance:
    """The variance of a fit to rows of weights (n,); if alpha is None, it follows from the degrees of freedom."""
    total, r = float(weight.sum()), len(start.mean)
    first, second, own = np.zeros(r), np.zeros((r, r)), 0.0
    # Sums of phi instead of kernel values: a Gram matrix, however dependent the centers are.
    for rows in pieces:
        values, phi = coordinates(rows)
        first += weight[rows] @ phi
        weighted = phi * np.sqrt(weight[rows])[:, None]
        # With itself, which BLAS does in half the time.
        second += weighted.T @ weighted
        own += float(weight[rows] @ values)
    mean = first / total
    scatter = second - np.outer(mean, first)
    alpha = _alpha_of(scatter, degrees_of_freedom) if alpha is None else alpha
    return replace(
        start,
        mean=mean,
        half_upper=_inverse_root(scatter + alpha * np.eye(r)),
        alpha=alpha,
        constant=1.0 / total,
        diagonal=own / total,
        typical=max(own / total - float(mean @ mean), 0.0),
    )


def _alpha_of(scatter: Array, degrees_of_freedom: float) -> float:
    """The penalty with which a fit has these degrees of freedom, intercept included; by bisection."""
    values = eigen_psd(np.array(scatter, order="F")).values
    low, high = np.log(1e-12 * values.sum() + SMALLEST_FLOAT), np.log(1e6 * values.sum() + SMALLEST_FLOAT)
    for _ in range(60):
        middle = 0.5 * (low + high)
        more = 1.0 + (values / (values + np.exp(middle))).sum() > degrees_of_freedom
        low, high = (middle, high) if more else (low, middle)
    return float(np.exp(high))


def _inverse_root(A: Array) -> Array:
    """H, packed, with H H' = A^-1: the inverse of the transposed Cholesky factor."""
    return _packed(factor_spd(A).inverse().T)


def _packed(A: Array) -> Array:
    """The upper triangle of A (r, r), row by row."""
    return A[np.triu_indices(len(A))]


def _unpacked(upper: Array) -> Array:
    """The matrix (r, r) with this upper triangle, and zeros below."""
    r = int((2 * len(upper)) ** 0.5)
    A = np.zeros((r, r))
    A[np.triu_indices(r)] = upper
    return A


def _pivots(K: Array, weight: Array) -> Indices:
    """Candidates, of weights (c,): the most typical one, then always one that the others explain least."""
    largest = float(K.diagonal().max(initial=0.0))
    return largest_pivots(K, int((K @ weight).argmax()), min(MOST_CENTERS, len(K)), LEAST_NEW_SHARE * largest)


def _among(kernel: Kernel, X: Any, rows: Indices) -> Array:
    """Kernel values (c, c) among few of the rows."""
    X = in_double(take(X, rows)) if kernel.takes_vectors else X
    some = np.arange(len(rows)) if kernel.takes_vectors else rows
    return np.asarray(cross(kernel, take(X, some), kernel.centers(X, some)), dtype=np.float64)


def _varies(own: Array) -> bool:
    """Whether values of k(x, x) (n,) differ by more than rounding errors of float32."""
    return float(np.ptp(own)) > EQUAL_SHARE * float(np.abs(own).max())


def _squares(phi: Array) -> Array:
    """Squared lengths (n,) of rows (n, r)."""
    return np.asarray(np.einsum("ij,ij->i", phi, phi))


def _novelty(known: Array, usual: float) -> Array:
    return np.asarray(np.log(max(usual, SMALLEST_FLOAT)) - np.log(np.maximum(known, SMALLEST_FLOAT)))


def _trust(novelty: Array) -> Array:
    return np.maximum(np.exp(-np.maximum(novelty, 0.0)), LEAST_TRUST)
