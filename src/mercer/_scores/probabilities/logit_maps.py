r"""The map from scores to logits, chosen by cross-fitted log-loss.

Scores F (n, k) that sum to one are least-squares fits to indicators of the classes: noisy estimates of
probabilities, whose logarithm is nearer to a logit than they are themselves. With a bend tau,

    S_c = log log(1 + exp(F_c / tau)),        logits = S M + b,        M = a I + D,

exp(S) is proportional to a score far above tau and exponential in one far below; tau = inf stands for S = F. M is
one slope a (Platt scaling), or has deviations D, too, which are shrunk to zero by |D|² / (2 (spread a)²) (matrix
scaling, Guo et al. 2017). One slope of straight scores is the simplest map; bent scores, and then a matrix, must
have a lower log-loss, by more than a standard error, on rows that were not used to fit the map. So must scores of
two classes that are cut off at a bound, of which there are some only if scores far larger than most mislead:
those of a model that follows every row say little by their size, and a straight map would follow them.

Targets are smoothed as if there were two more rows on each side in all classes together. For two classes these are
Platt's, one in each; for many, one row in each class would count for more than all the errors that are made.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._linalg.tolerance import smallest
from mercer._scores.probabilities.logits import LEAST_SLOPE, fit_logits, smoothed_targets, softmax
from mercer._scores.training_rows import weighted_quantile
from mercer._types import Array, Indices

# Straight scores, and bends that are compared with them.
BENDS = (np.inf, 0.4, 0.2, 0.1, 0.05)
# k times the standard deviations of entries of a matrix, in units of the slope.
MATRIX_SPREADS = (0.6, 2.0)
# Rows by which targets are smoothed on each side, in all classes together.
EXTRA_ROWS = 2.0
# Parts of the rows: a map is fitted without one part and evaluated on it.
MAP_FOLDS = 5
# Multiplications, n k² for one slope and n k³ for a matrix, above which maps are not compared.
MOST_WORK = 4e8
# Bounds of scores, in units of their median size, that are tried if larger scores than the first mislead.
SCORE_BOUNDS = (4.0, 2.0, 1.0)
# Standard errors by which a map with more parameters must be better.
STANDARD_ERRORS_TO_BE_BETTER = 1.0
# Newton's decrement for a row of weight one below which its step is the last, for maps that are kept and for those
# that are compared, and the most steps.
KEPT_MAP_DECREMENT, COMPARED_MAP_DECREMENT, MOST_MAP_STEPS = 1e-12, 1e-6, 100
# A penalty far below the curvature of rows of weight one: one of the offsets is free.
MAP_RIDGE = 1e-10
# The square of a step that changes nothing.
NO_STEP = 1e-150


@dataclass(frozen=True)
class Map:
    """logits = bent(R, bend) @ slope + offset against the first class, for scores R (n, k - 1) relative to it."""

    bend: float
    slope: Array
    offset: Array

    def logits(self, R: Array) -> Array:
        """(n, k - 1) for scores of the same shape."""
        return bent(R, self.bend) @ self.slope + self.offset


def bent(R: Array, bend: float) -> Array:
    """Bent scores (n, k - 1) relative to the first class, from differences R of scores that sum to one."""
    if bend == np.inf:
        return R
    X = summing_to_one(R) / bend
    # Below -40, log(1 + exp(x)) is exp(x) to the last digit; far below it would be zero.
    S = np.where(X < -40.0, X, np.log(np.logaddexp(0.0, np.maximum(X, -40.0))))
    return S[:, 1:] - S[:, :1]


def summing_to_one(R: Array) -> Array:
    """Scores (n, k) that sum to one, from differences (n, k - 1) to the first class."""
    first = (1.0 - R.sum(axis=1, keepdims=True)) / (R.shape[1] + 1)
    return np.hstack([first, R + first])


@dataclass(frozen=True)
class ChosenMap:
    """The map fitted to all rows, and those of the same kind fitted ``without`` each part of the rows."""

    map: Map
    without: tuple[Map, ...]


def choose_map(R: Array, label: Indices, weight: Array, part: Indices) -> ChosenMap:
    """The map for leave-one-out scores R (n, k - 1) of three or more classes, compared on parts (n,) of the rows.

    Thirty fits of one slope and eleven of a matrix, each of which takes some dozens of products O(n k²), and k
    products O(n k²) for each Newton step.
    """
    n, k = len(R), R.shape[1] + 1
    if n * k**2 > MOST_WORK or part.max(initial=-1) < 0:
        return ChosenMap(one_slope(R, label, weight), ())
    rests = [part != fold for fold in range(MAP_FOLDS)]
    plain = [one_slopes(R[rest], label[rest], weight[rest]) for rest in rests]
    compared = weight * (part >= 0)
    bend = _chosen(BENDS[0], {b: _losses([maps[b] for maps in plain], R, label, part) for b in BENDS}, compared)
    straight = ChosenMap(one_slope(R, label, weight, bend), tuple(maps[bend] for maps in plain))
    if n * k**3 > MOST_WORK:
        return straight
    without = {0.0: straight.without}
    for spread in (size / k for size in MATRIX_SPREADS):
        without[spread] = tuple(
            with_matrix(one, R[rest], label[rest], weight[rest], spread, COMPARED_MAP_DECREMENT)
            for one, rest in zip(straight.without, rests)
        )
    spread = _chosen(0.0, {key: _losses(maps, R, label, part) for key, maps in without.items()}, compared)
    if spread == 0.0:
        return straight
    return ChosenMap(with_matrix(straight.map, R, label, weight, spread), without[spread])


def choose_bound(R: Array, label: Indices, weight: Array, part: Indices) -> float:
    """Where to cut off scores R (n, 1) of two classes before they are mapped, compared on parts (n,) of rows."""
    size = weighted_quantile(np.abs(R[:, 0]), weight, 0.5)
    far = (np.abs(R[:, 0]) > SCORE_BOUNDS[0] * size) & (weight > 0.0)
    if size == 0.0 or part.max(initial=-1) < 0 or not _mislead(far, R, label, weight):
        return np.inf

    def losses(bound: float) -> Array:
        scores, rests = np.clip(R, -bound, bound), [part != fold for fold in range(MAP_FOLDS)]
        maps = [one_slope(scores[rest], label[rest], weight[rest]) for rest in rests]
        return _losses(maps, scores, label, part)

    bounds = (np.inf, *(bound * size for bound in SCORE_BOUNDS))
    return _chosen(np.inf, {bound: losses(bound) for bound in bounds}, weight * (part >= 0))


def _mislead(far: NDArray[np.bool_], R: Array, label: Indices, weight: Array) -> bool:
    """Whether rows with far scores (n,) have the larger loss under the map of the others."""
    if not far.any() or far.all():
        return False
    near = one_slope(R[~far], label[~far], weight[~far])
    loss = _losses([near], R, label, np.zeros(len(R), dtype=np.intp))
    return bool(np.average(loss[far], weights=weight[far]) > np.average(loss[~far], weights=weight[~far]))


def parts(R: Array, label: Indices, group: Indices | None = None) -> Indices:
    """Which part (n,) a row belongs to: the rows of a class at random, in turn; equal scores, or groups, in one.

    Groups (n,) are dealt by their row with the least margin, those of classes with few groups together. -1 for
    rows of a class with too few different margins, or in too few parts, which are in no part. Neither the order of
    rows nor the numbers of classes matter.
    """
    scores, every = summing_to_one(R), np.arange(len(label))
    own = scores[every, label]
    scores[every, label] = -np.inf
    margin = own - scores.max(axis=1)
    if group is None:
        return _dealt(margin, label)
    order = np.lexsort((margin, group))
    _, first, number = np.unique(group[order], return_index=True, return_inverse=True)
    part = np.empty(len(label), dtype=np.intp)
    part[order] = _dealt(margin[order][first], label[order][first], pooled=True)[number]
    # A class that only one part has would be unknown without it.
    for c in np.unique(label):
        if len(np.unique(part[label == c])) < 2:
            part[np.isin(group, group[label == c])] = -1
    return part


def _dealt(margin: Array, label: Indices, *, pooled: bool = False) -> Indices:
    """Parts (n,) of rows with these margins and class numbers; ``pooled``: those of small classes together."""
    part = np.full(len(label), -1, dtype=np.intp)
    classes = [np.flatnonzero(label == c) for c in np.unique(label)]
    if pooled:
        many = [rows for rows in classes if len(rows) >= MAP_FOLDS]
        classes = [*many, np.flatnonzero(np.bincount(label)[label] < MAP_FOLDS)]
    for rows in classes:
        distinct, place = np.unique(margin[rows], return_inverse=True)
        if len(distinct) >= MAP_FOLDS or pooled:
            part[rows] = np.random.default_rng(0).permutation(len(distinct))[place] % MAP_FOLDS
    return part


def _losses(maps: Sequence[Map], R: Array, label: Indices, part: Indices) -> Array:
    """Log-loss (n,) of each row under the map of its part; zero for rows that are in no part."""
    losses = np.zeros(len(label))
    for fold, fitted in enumerate(maps):
        held = np.flatnonzero(part == fold)
        P = softmax(fitted.logits(R[held]))[np.arange(len(held)), label[held]]
        losses[held] = -np.log(np.maximum(P, smallest(np.float64)))
    return losses


def _chosen(simple: float, losses: dict[float, Array], weight: Array) -> float:
    """The key of the least losses (n,), but that of the ``simple`` map unless it is surely worse."""
    best = min((key for key in losses if key != simple), key=lambda key: float(weight @ losses[key]))
    gain, total = losses[simple] - losses[best], max(float(weight.sum()), 1.0)
    mean = float(weight @ gain) / total
    error = float(np.sqrt(weight @ (gain - mean) ** 2)) / total
    return best if mean > STANDARD_ERRORS_TO_BE_BETTER * error else simple


def one_slopes(R: Array, label: Indices, weight: Array, bends: tuple[float, ...] = BENDS) -> dict[float, Map]:
    """The maps of one slope for each of the bends."""
    fit = fit_logits(np.stack([bent(R, bend) for bend in bends]), label, weight, EXTRA_ROWS / (R.shape[1] + 1))
    eye = np.eye(R.shape[1])
    return {bend: Map(bend, a * eye, b) for bend, a, b in zip(bends, fit.slope, fit.offset)}


def one_slope(R: Array, label: Indices, weight: Array, bend: float = np.inf) -> Map:
    """The map of one slope for a bend."""
    return one_slopes(R, label, weight, (bend,))[bend]


def with_matrix(
    plain: Map, R: Array, label: Indices, weight: Array, spread: float, tolerance: float = KEPT_MAP_DECREMENT
) -> Map:
    """The map with a matrix whose deviations from the slope of a plain map have this spread.

    A plain map without slope stays: leave-one-out scores of a model without signal are negatively correlated with
    the labels, and a matrix, whose trace is free, would turn them around.
    """
    k, S, slope = R.shape[1] + 1, bent(R, plain.bend), float(plain.slope[0, 0])
    # The least slope is in units of the spread, or a number where scores are constant.
    if slope * float(S.std()) <= 2.0 * LEAST_SLOPE or slope == LEAST_SLOPE:
        return plain
    center = np.eye(k) - 1.0 / k
    X = np.column_stack([S @ center[1:], np.ones(len(R))])
    T = smoothed_targets(label, weight, k, EXTRA_ROWS / k)
    problem = _MatrixProblem(X, T, weight, 1.0 / (spread * slope) ** 2)
    theta = problem.minimum(np.vstack([slope * np.eye(k), np.append(0.0, plain.offset)]), tolerance)
    theta = theta[:, 1:] - theta[:, :1]
    return Map(plain.bend, center[1:] @ theta[:-1], theta[-1])


@dataclass(frozen=True)
class _MatrixProblem:
    """min over theta = (M, b) (k + 1, k) of the log-loss of logits X theta plus penalty / 2 |M - tr(M) I / k|².

    X (n, k + 1) are scores with a column of ones, T (n, k) targets.
    """

    X: Array
    T: Array
    weight: Array
    penalty: float

    def minimum(self, theta: Array, tolerance: float) -> Array:
        """Newton's method; steps by conjugate gradients."""
        value, P = self._at(theta)
        for _ in range(MOST_MAP_STEPS):
            gradient = self.X.T @ (self.weight[:, None] * (P - self.T)) + self._penalized(theta)
            step = self._step(gradient, P)
            theta, value, P = self._shortened(theta, value, step)
            if float((gradient * step).sum()) <= tolerance * self.weight.sum():
                break
        return theta

    def _shortened(self, theta: Array, value: float, step: Array) -> tuple[Array, float, Array]:
        """The point after a step, or after a part of it that does not raise the objective."""
        new, P = self._at(theta - step)
        for _ in range(20):
            if new <= value + 1e-12 * abs(value):
                break
            step = step / 2.0
            new, P = self._at(theta - step)
        return theta - step, new, P

    def _at(self, theta: Array) -> tuple[float, Array]:
        """The objective, and probabilities (n, k)."""
        L = self.X @ theta
        L -= L.max(axis=1, keepdims=True)
        P = np.exp(L)
        total = P.sum(axis=1, keepdims=True)
        loss = np.log(total[:, 0]) - np.einsum("ij,ij->i", self.T, L)
        P /= total
        return float(self.weight @ loss) + 0.5 * float((theta * self._penalized(theta)).sum()), P

    def _penalized(self, theta: Array) -> Array:
        """The gradient (k + 1, k) of the penalty; offsets have a tiny one, because one of them is free."""
        k = theta.shape[1]
        G = self.penalty * theta
        G[np.arange(k), np.arange(k)] -= self.penalty * np.trace(theta[:-1]) / k
        G[-1] = MAP_RIDGE * self.weight.sum() * theta[-1]
        return G

    def _product(self, D: Array, P: Array) -> Array:
        """The Hessian times a direction D (k + 1, k)."""
        L = self.X @ D
        L -= np.einsum("ij,ij->i", P, L)[:, None]
        L *= P
        L *= self.weight[:, None]
        return self.X.T @ L + self._penalized(D)

    def _blocks(self, P: Array) -> Array:
        """The Hessian's blocks (k, k + 1, k + 1) on the diagonal."""
        V = self.weight[:, None] * P * (1.0 - P)
        H = np.stack([(self.X * v[:, None]).T @ self.X for v in V.T])
        diagonal = np.arange(H.shape[1])
        H[:, diagonal, diagonal] += np.append(np.full(H.shape[1] - 1, self.penalty), MAP_RIDGE * self.weight.sum())
        return H

    def _step(self, gradient: Array, P: Array) -> Array:
        """Newton's step (k + 1, k), to be subtracted, with a residual of a thousandth of the gradient."""
        blocks = self._blocks(P)

        def solved(G: Array) -> Array:
            return np.ascontiguousarray(np.linalg.solve(blocks, G.T[..., None])[..., 0].T)

        step, residual = np.zeros_like(gradient), gradient
        direction = scaled = solved(residual)
        size = first = float((residual * scaled).sum())
        for _ in range(gradient.size):
            # Squares of steps that change nothing are not numbers to divide by.
            if not size > max(1e-6 * first, NO_STEP):
                break
            product = self._product(direction, P)
            length = size / float((direction * product).sum())
            step, residual = step + length * direction, residual - length * product
            scaled, before = solved(residual), size
            size = float((residual * scaled).sum())
            direction = scaled + size / before * direction
        return step
