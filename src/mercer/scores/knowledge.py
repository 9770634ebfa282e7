"""How much the training rows say about a row: where they say nothing, probabilities are those of the classes.

Far from all rows a Gaussian kernel is zero and f is its intercept; with a wide or linear kernel f goes on as a
straight line. Neither is evidence. The posterior variance v of f, in units of the noise, and the share g of the
prior variance that the rows explain, show it: far away g tends to zero, or v grows without bound. What is known of
a row is g / v, compared with what the other rows know of a training row that is left out. The intercept is free,
so the prior variance is that of the difference to the mean of f.

The variance is that of a model with few landmarks, rows chosen one after the other as the least explained so far:
the deterministic training conditional of Quiñonero-Candela and Rasmussen (2005), section 5. It costs O(r²) for
each row, however many centers the model has.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.errors import NumericalError
from mercer.gram import cross, kernel_blocks, own_values
from mercer.kernels import Kernel
from mercer.linalg import factor_spd, largest_pivots
from mercer.rows.table import in_double, n_rows, take
from mercer.scores.evidence import Training, weighted_quantile
from mercer.solvers import HeldOut, make_smoother
from mercer.types import Array, Indices

# Landmarks, and rows among which they are chosen.
LANDMARKS = 200
CANDIDATES = 400
# Products of a block of rows take so many times less memory than the blocks of a fit.
SMALLER = 32
# Share of the training rows of which less is known than usual; of new rows half of that is enough.
LEAST_KNOWN = 0.01
ENOUGH = 0.5
# Landmarks of which less than this share of k(x, x) is new add rounding errors only.
NEW = 1e-8
# A row that determines its own output leaves this to the others.
LEAST_LEFT = 1e-9
# Rows of such a weight are known exactly.
LEAST_VARIANCE = 1e-150
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Knowledge:
    """Landmarks z (r rows), coordinates phi = k(x, z) R^-1 in which the prior is the identity, for R'R = k(z, z).

    ``inverse`` is R^-1 (r, r), ``mean`` the mean of phi (r,), and (phi - mean) ``half`` has the length of the
    leverage: half half' is (S + alpha)^-1 with the scatter S of the training rows, whose total weight is 1 /
    ``constant``. ``diagonal`` is the mean of k(x, x), which stands for that of rows that are not vectors: unknown
    for kernel values, and for objects a call for each. ``typical`` is the mean prior variance, ``usual`` half of
    what is known of nearly all training rows. Kernel values are computed in float64.
    """

    kernel: Kernel
    landmarks: Any
    inverse: Array
    mean: Array
    half: Array
    alpha: float
    constant: float
    diagonal: float
    typical: float
    usual: float = 1.0

    def novelty(self, X: Any) -> Array:
        """log(usual / known) (n,) of rows in memory: above zero less is known than is usual."""
        return _novelty(self.known(self.parts(X)), self.usual)

    def trust(self, X: Any) -> Array:
        """The share (n,) of the evidence of f that counts: one where as much is known as usual, zero far away."""
        return _trust(self.novelty(X))

    def known(self, parts: "VarianceParts") -> Array:
        """g / v (n,): the explained share of the prior variance, prior / alpha, over the variance of f.

        Rows near the mean have hardly any prior variance: that of a typical row counts then.
        """
        variance = parts.leverage + parts.unspanned / self.alpha
        explained = 1.0 - (variance - self.constant) * self.alpha / np.maximum(
            np.maximum(parts.prior, self.typical), TINY
        )
        known: Array = np.maximum(explained, 0.0) / np.maximum(variance, LEAST_VARIANCE)
        return known

    def parts(self, X: Any) -> "VarianceParts":
        """What the variance of rows in memory consists of."""
        X = in_double(X)
        vectors = self.kernel.takes_vectors
        own = own_values(self.kernel, X) if vectors else np.full(n_rows(X), self.diagonal)
        leverage, unspanned, prior, r = np.empty_like(own), np.empty_like(own), np.empty_like(own), len(self.mean)
        for rows, K in kernel_blocks(self.kernel, X, self.landmarks, r, width=SMALLER * r):
            phi = np.asarray(K, dtype=np.float64) @ self.inverse
            unspanned[rows] = np.maximum(own[rows] - _squares(phi), 0.0)
            phi -= self.mean
            prior[rows] = _squares(phi) + unspanned[rows]
            leverage[rows] = _squares(phi @ self.half) + self.constant
        return VarianceParts(leverage, unspanned, prior)


@dataclass(frozen=True)
class VarianceParts:
    """Of rows: the ``leverage`` (n,), the part of k(x, x) that no landmark expresses (n,), and alpha times the
    prior variance (n,).
    """

    leverage: Array
    unspanned: Array
    prior: Array

    def without(self, used: Indices, unit: Array) -> "VarianceParts":
        """If rows ``used`` (u,) of weights ``unit`` (u,) are left out: their leverage h becomes h / (1 - w h)."""
        leverage = self.leverage.copy()
        leverage[used] /= np.maximum(1.0 - unit * leverage[used], LEAST_LEFT)
        return replace(self, leverage=leverage)

    def replaced(self, rows: Indices, variance: Array) -> "VarianceParts":
        """With another variance (r,) of some rows (r,)."""
        leverage, unspanned = self.leverage.copy(), self.unspanned.copy()
        leverage[rows], unspanned[rows] = variance, 0.0
        return replace(self, leverage=leverage, unspanned=unspanned)


def learn(kernel: Kernel, training: Training, alpha: float) -> tuple[Knowledge, Array] | None:
    """What training rows know of new rows, and the trust (n,) in each of them if it is left out.

    ``alpha`` is the penalty of a fit to these rows. None if the kernel is not positive definite, as far as these
    rows show. O(n r² + c³) for r landmarks among c candidates.
    """
    part, used = training.used(kernel)
    rows, X = kernel.distinct(part.X), in_double(training.X)
    some = slice(None, None, -(-rows.n_points // CANDIDATES))
    candidates = used[rows.first[some]]
    K = _among(kernel, X, candidates)
    weight = np.bincount(rows.point, part.weight).astype(np.float64)[some]
    pivots = _landmarks(K, weight)
    if len(pivots) == 0:
        return None
    try:
        diagonal = float(weight @ K.diagonal() / weight.sum())
        knowledge = _of_landmarks(kernel, X, candidates[pivots], training.weight, alpha, diagonal)
        parts = knowledge.parts(X).without(used, part.unit)
        alone = pivots[np.bincount(rows.point, part.count)[some][pivots] < 1.5]
        # A landmark without a copy would not be one if it were left out.
        parts = parts.replaced(candidates[alone], _left_out_variance(K, weight, alpha)[alone])
    except NumericalError:
        # A kernel that is not what it says: f has no variance.
        return None
    known = knowledge.known(parts)
    knowledge = replace(knowledge, usual=ENOUGH * weighted_quantile(known[used], part.evidence, LEAST_KNOWN))
    return knowledge, _trust(_novelty(known, knowledge.usual))


def _of_landmarks(
    kernel: Kernel, X: Any, landmarks: Indices, weight: Array, alpha: float, diagonal: float
) -> Knowledge:
    """The variance of a fit to rows X of weights (n,), some of which are landmarks; k(x, x) is ``diagonal``."""
    Z = kernel.centers(X, landmarks)
    inverse = _inverse_root(_among(kernel, X, landmarks))
    total, r = float(weight.sum()), len(inverse)
    first, second = np.zeros(r), np.zeros((r, r))
    # Sums of phi instead of kernel values: a Gram matrix, however dependent the landmarks are.
    for rows, K in kernel_blocks(kernel, X, Z, r, width=SMALLER * r):
        phi = np.asarray(K, dtype=np.float64) @ inverse
        first += weight[rows] @ phi
        second += (phi * weight[rows, None]).T @ phi
    mean = first / total
    half = _inverse_root(second - np.outer(mean, first) + alpha * np.eye(r))
    if kernel.takes_vectors:
        diagonal = float(weight @ own_values(kernel, X)) / total
    typical = max(diagonal - float(mean @ mean), 0.0)
    return Knowledge(kernel, Z, inverse, mean, half, alpha, 1.0 / total, diagonal, typical)


def _inverse_root(A: Array) -> Array:
    """H (r, r) with H H' = A^-1: the inverse of the transposed Cholesky factor."""
    return np.ascontiguousarray(factor_spd(A).inverse().T)


def _landmarks(K: Array, weight: Array) -> Indices:
    """Candidates, of weights (c,): the most typical one, then always one that the others explain least."""
    largest = float(K.diagonal().max(initial=0.0))
    return largest_pivots(K, int((K @ weight).argmax()), min(LANDMARKS, len(K)), NEW * largest)


def _left_out_variance(K: Array, weight: Array, alpha: float) -> Array:
    """The variance (c,) of f at each of some rows of weights (c,) if it is left out, by the others of them."""
    every = HeldOut(np.arange(len(K)), np.ones(len(K)), None, weight)
    return make_smoother(K, weight, alpha, intercept=True).variance_without(every)


def _among(kernel: Kernel, X: Any, rows: Indices) -> Array:
    """Kernel values (c, c) among few of the rows."""
    return np.asarray(cross(kernel, take(X, rows), kernel.centers(X, rows)), dtype=np.float64)


def _squares(phi: Array) -> Array:
    """Squared lengths (n,) of rows (n, r)."""
    return np.asarray(np.einsum("ij,ij->i", phi, phi))


def _novelty(known: Array, usual: float) -> Array:
    novelty: Array = np.log(max(usual, TINY)) - np.log(np.maximum(known, TINY))
    return novelty


def _trust(novelty: Array) -> Array:
    trust: Array = np.exp(-np.maximum(novelty, 0.0))
    return trust
