r"""Posterior probabilities of classes from leave-one-out scores.

A posterior turns scores R (n, k - 1), relative to the first class, into logits against the first
class. Its map of a binary score is increasing, unless it is quadratic: there is one threshold, and the ranking of
the rows is kept. Labels are the class with the largest probability, so they cannot disagree with it.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from mercer._linalg.tolerance import smallest
from mercer._scores.probabilities.logit_maps import bent, choose_bound, choose_map, one_slope
from mercer._scores.probabilities.logits import LEAST_SLOPE, softmax
from mercer._scores.training_rows import weighted_quantile
from mercer._types import Array, Indices

CALIBRATIONS = ("logistic", "gaussian", "quadratic", "isotonic")

# Share of the held-out rows whose evidence is beyond the limit.
SHARE_BEYOND_LIMIT = 0.1
# Gain in log-likelihood for each class but one, in nats, that noise reaches by choice.
GAIN_OF_NOISE = 2.0
# With fewer rows for each class, the parameters of a map count.
FEW_ROWS_PER_CLASS = 10
# The least share of the evidence that is used: enough to rank rows.
LEAST_COUNTED = 0.02


@dataclass(frozen=True)
class StepCurve:
    """An increasing curve through (knots, values), constant outside."""

    knots: Array
    values: Array

    def at(self, r: Array) -> Array:
        return np.interp(r, self.knots, self.values)


@dataclass(frozen=True)
class Posterior:
    """logits(R) = bent(R, bend) @ slope + offset, mixed with isotonic ``curves`` (one per class) if there are any.

    The smooth logits have the weight ``smooth`` in the mixture: probabilities stay away from 0 and 1, and rows on
    one step keep their order. The evidence is the difference to the log-odds ``odds`` (k - 1,) of the classes. Its
    spread over the classes grows beyond ``limit`` only with the logarithm; of it the share ``counted`` is used,
    and less at rows that are unlike the training rows. ``shift`` (k - 1,) is added to all logits. With
    ``curvature`` (k - 1, k - 1, k - 1), the logit of class c has the term R curvature_c R', too. ``compared``: a
    matrix as slope was better than one number on rows without which it was fitted.
    """

    slope: Array
    offset: Array
    curves: tuple[StepCurve, ...] = ()
    smooth: float = 1.0
    shift: Array = field(default_factory=lambda: np.zeros(1))
    odds: Array = field(default_factory=lambda: np.zeros(1))
    limit: float = np.inf
    counted: float = 1.0
    bend: float = np.inf
    curvature: Array | None = None
    compared: bool = False

    def logits(self, R: Array, trust: Array | None = None) -> Array:
        """(n, k - 1) log-odds against the first class; ``trust`` (n,) is the share of the evidence that counts."""
        logits: Array = bent(R, self.bend) @ self.slope + self.offset
        if self.curvature is not None:
            logits += np.column_stack([np.einsum("ni,ni->n", R @ square, R) for square in self.curvature])
        if self.curves:
            logits = _log_odds(self._mixture(R, logits))
        if trust is not None or self.counted < 1.0 or self.limit < np.inf:
            evidence = logits - self.odds
            share = self.counted * _shortened(_spread_of(evidence), self.limit)
            logits = self.odds + (share if trust is None else share * trust)[:, None] * evidence
        return logits + self.shift

    @property
    def line(self) -> tuple[float, float] | None:
        """Slope and offset of the log-odds of two classes as a line in the score; None: they are none.

        Evidence within the limit, of rows like the training rows: with less trust, or beyond, there is less of it.
        """
        if len(self.offset) > 1 or self.curves or self.curvature is not None or self.bend < np.inf:
            return None
        odds, slope, offset = (float(each.ravel()[0]) for each in (self.odds, self.slope, self.offset))
        return self.counted * slope, odds + self.counted * (offset - odds) + float(self.shift[0])

    @property
    def n_parameters(self) -> int:
        """Numbers that were fitted: one slope or a matrix, offsets, curvatures, steps of the curves.

        What a matrix gained where it was compared is not by its many numbers: it counts as one slope.
        """
        one = self.compared or np.array_equal(self.slope, self.slope[0, 0] * np.eye(len(self.slope)))
        steps = sum(len(np.unique(curve.values)) for curve in self.curves)
        more = 0 if self.curvature is None else self.curvature.size
        return (1 if one else self.slope.size) + len(self.offset) + more + steps

    def probabilities(self, R: Array, trust: Array | None = None) -> Array:
        """(n, k) probabilities, rows summing to one."""
        return softmax(self.logits(R, trust))

    def shifted(self, shift: Array) -> "Posterior":
        """The same evidence under other odds: ``shift`` (k - 1,) is added to the logits."""
        return replace(self, shift=self.shift + shift)

    def threshold(self) -> float:
        """The score at which two classes are equally probable, and above which the second one is more probable.

        Where none is, -inf if the second class always is, inf if the first one is.
        """
        needed = -float((self.odds + self.shift)[0]) / self.counted
        evidence = np.sign(needed) * _lengthened(abs(needed), self.limit)
        target = float((self.odds - self.offset)[0] + evidence)
        if self.curvature is not None:
            return _rising_root(float(self.curvature[0, 0, 0]), float(self.slope[0, 0]), target)
        linear = target / float(self.slope[0, 0])
        if not self.curves:
            return linear
        knots = self.curves[1].knots
        span = 1.0 + float(np.ptp(knots)) + abs(linear)
        low, high = float(knots[0]) - 2.0 * span, float(knots[-1]) + 2.0 * span
        # The logits are continuous and increasing: bisection cannot fail.
        for _ in range(200):
            middle = 0.5 * (low + high)
            positive = self.logits(np.array([[middle]]))[0, 0] > 0
            low, high = (low, middle) if positive else (middle, high)
        return 0.5 * (low + high)

    def _mixture(self, R: Array, linear: Array) -> Array:
        """(n, k) probabilities of the isotonic curves and the linear logits."""
        own = _one_against_rest(R)
        steps = np.column_stack([curve.at(r) for curve, r in zip(self.curves, own.T)])
        return self.smooth * softmax(linear) + (1.0 - self.smooth) * _normalized(steps)


def moderated(posterior: Posterior, R: Array, label: Indices, weight: Array) -> Posterior:
    """The posterior that is no surer than leave-one-out scores R (n, k - 1) justify.

    Most held-out rows have evidence within its limit. If these rows are too few to show that the scores say
    more than the shares of the classes, since kernel and penalty were chosen as the best of many for the same
    rows, only a part of the evidence counts: it is shrunk by the square of what noise would gain over what is
    gained. If there are few rows for each class, or isotonic steps, of which more rows have more, the map itself
    is fitted to them: each of its parameters gains a nat, whatever the scores say (Akaike 1974).
    """
    limited = _limited(posterior, R, weight)
    share = np.bincount(label, weight, minlength=R.shape[1] + 1) / weight.sum()
    own = np.maximum(limited.probabilities(R)[np.arange(len(label)), label], smallest(np.float64))
    gain = float(weight @ np.log(own / share[label]))
    if _are_few(weight, R) or posterior.curves:
        gain -= posterior.n_parameters
    counted = max(1.0 - (GAIN_OF_NOISE / max(gain / R.shape[1], GAIN_OF_NOISE)) ** 2, LEAST_COUNTED)
    return replace(posterior, limit=limited.limit, counted=counted)


def _are_few(weight: Array, R: Array) -> bool:
    """Whether there are few rows for each class."""
    return bool(weight.sum() < FEW_ROWS_PER_CLASS * (R.shape[1] + 1) * (1.0 - 1e-12))


def _limited(posterior: Posterior, R: Array, weight: Array) -> Posterior:
    """The posterior without shift, whose evidence has the limit that most rows with scores R keep.

    Few rows for each class may all be fitted exactly; they are evidence of odds of their number to one at most.
    """
    plain, k = replace(posterior, shift=np.zeros(1)), R.shape[1] + 1
    limit = weighted_quantile(_spread_of(plain.logits(R) - plain.odds), weight, 1.0 - SHARE_BEYOND_LIMIT)
    most = float(np.log(k * weight.sum())) if _are_few(weight, R) else np.inf
    return replace(plain, limit=min(limit, most, posterior.limit))


def _spread_of(evidence: Array) -> Array:
    """The largest difference (n,) between classes of evidence (n, k - 1) against the first one."""
    return np.asarray(np.maximum(evidence.max(axis=1), 0.0) - np.minimum(evidence.min(axis=1), 0.0))


def _shortened(spread: Array, limit: float) -> Array:
    """The factor (n,) by which evidence of a spread (n,) is shortened: beyond the limit it grows like log."""
    beyond = np.maximum(spread - limit, 0.0) if limit < np.inf else np.zeros(len(spread))
    within = np.minimum(spread, limit)
    factor: Array = (within + np.log1p(beyond)) / np.where(spread > 0.0, spread, 1.0)
    return np.where(spread > 0.0, factor, 1.0)


def _lengthened(evidence: float, limit: float) -> float:
    """The evidence that becomes this one when it is shortened; infinite where it would be too large."""
    if evidence <= limit:
        return evidence
    return limit + float(np.expm1(min(evidence - limit, 700.0)))


def _rising_root(curvature: float, slope: float, value: float) -> float:
    """Where curvature r² + slope r rises through this value; -inf if it is always above it, inf if below."""
    square = slope**2 + 4.0 * curvature * value
    if square < 0.0 or (curvature == 0.0 and slope <= 0.0):
        return np.inf if value > 0.0 else -np.inf
    root = float(np.sqrt(square))
    return 2.0 * value / (slope + root) if slope > 0.0 else (root - slope) / (2.0 * curvature)


def odds_shift(share: Array, priors: Array) -> Array:
    """Shift of the logits of classes 1 … k - 1 if the class shares (k,) are replaced by the priors (k,)."""
    ratio = np.log(priors / share)
    return np.asarray(ratio[1:] - ratio[0])


@dataclass(frozen=True)
class Calibrated:
    """The posterior from all rows, and those ``without`` each part of the rows, if there are parts."""

    posterior: Posterior
    without: tuple[Posterior, ...] = ()


def cross_calibrate(
    method: str,
    R: Array,
    label: Indices,
    weight: Array,
    part: Indices,
    basis: Array | None = None,
    *,
    ordered: bool = False,
) -> Calibrated:
    """The posterior by the given method from leave-one-out scores R (n, k - 1), and those without each of the
    ``part`` (n,) of the rows; -1: in no part.

    If the scores lie in a subspace, R @ basis are their coordinates there; ``basis`` is (k - 1, r). ``ordered``:
    logistic probabilities of several classes are in the order of the scores plus offsets.
    """
    if method == "logistic" and not ordered and R.shape[1] > 1:
        return _mapped(R, label, weight, part)

    bound = choose_bound(R, label, weight, part) if method == "logistic" and R.shape[1] == 1 else np.inf

    def fitted(rows: NDArray[np.bool_]) -> Posterior:
        found = _posterior(method, np.clip(R[rows], -bound, bound), label[rows], weight[rows], basis)
        return found if bound == np.inf else replace(found, limit=_evidence_at(bound, found))

    every = np.ones(len(label), dtype=bool)
    return Calibrated(fitted(every), tuple(fitted(part != p) for p in range(part.max(initial=-1) + 1)))


def _evidence_at(bound: float, posterior: Posterior) -> float:
    """The most evidence of a score of two classes up to this bound."""
    logits = posterior.logits(np.array([[-bound], [bound]]))
    return float(np.abs(logits - posterior.odds).max())


def _posterior(method: str, R: Array, label: Indices, weight: Array, basis: Array | None) -> Posterior:
    """The posterior by a method whose parameters are not compared."""
    if method in ("gaussian", "quadratic"):
        basis = np.eye(R.shape[1]) if basis is None else basis
        posterior = _densities(R, label, weight, basis, own=method == "quadratic")
    elif method == "isotonic":
        posterior = _isotonic(R, label, weight)
    else:
        posterior = _logistic(R, label, weight)
    return replace(posterior, odds=_odds(label, weight, R.shape[1] + 1))


def _odds(label: Indices, weight: Array, k: int) -> Array:
    """Logarithms (k - 1,) of the weights of classes, relative to the first one."""
    log_count = np.log(np.maximum(np.bincount(label, weight, minlength=k), smallest(np.float64)))
    return np.asarray(log_count[1:] - log_count[0])


def _mapped(R: Array, label: Indices, weight: Array, part: Indices) -> Calibrated:
    """The map of several classes that has the least log-loss on rows without which it was fitted."""
    chosen, odds = choose_map(R, label, weight, part), _odds(label, weight, R.shape[1] + 1)
    posteriors = [
        Posterior(each.slope, each.offset, bend=each.bend, odds=odds, compared=True)
        for each in (chosen.map, *chosen.without)
    ]
    return Calibrated(posteriors[0], tuple(posteriors[1:]))


def _logistic(R: Array, label: Indices, weight: Array) -> Posterior:
    """Discriminative: maximum likelihood of one slope and k - 1 offsets."""
    fit = one_slope(R, label, weight)
    return Posterior(fit.slope, fit.offset)


def _densities(R: Array, label: Indices, weight: Array, basis: Array, *, own: bool) -> Posterior:
    """Generative: one normal distribution per class with a common covariance, Mika (2002), Eqs. (3.17)-(3.19).

    ``own``: each class has its own covariance, shrunk to the common one as by r + 1 more rows in r coordinates.
    Quadratic logits reverse the rule far from the data.
    """
    indicator = np.eye(R.shape[1] + 1)[label] * weight[:, None]
    count = indicator.sum(axis=0)
    means = (indicator.T @ R) / count[:, None]
    # Leave-one-out scores that are negatively correlated with the labels carry no information.
    if basis.shape[1] == 0 or _own_score_gain(means, count) <= 0.0:
        return Posterior(LEAST_SLOPE * np.eye(R.shape[1]), np.log(count[1:] / count[0]))
    basis = basis / _spread(R @ basis, weight)
    within, means = (R - means[label]) @ basis, means @ basis
    covariance = (within * weight[:, None]).T @ within / weight.sum()
    # A variance far below that of the scores: within classes the variance may be zero.
    covariance += 1e-10 * np.eye(len(covariance))
    if own:
        return _own_densities(_own_covariances(within, indicator, covariance), means, count, basis)
    direction = scipy.linalg.solve(covariance, means.T, assume_a="pos")
    constant = np.log(count) - 0.5 * (means * direction.T).sum(axis=1)
    return Posterior(basis @ (direction[:, 1:] - direction[:, :1]), constant[1:] - constant[0])


def _own_covariances(within: Array, indicator: Array, covariance: Array) -> Array:
    """(k, r, r) for coordinates within classes (n, r) and weighted indicators (n, k), shrunk to the common one."""
    extra, count = len(covariance) + 1.0, indicator.sum(axis=0)
    scatter = np.stack([(within * w[:, None]).T @ within for w in indicator.T])
    return np.asarray((scatter + extra * covariance) / (count + extra)[:, None, None])


def _own_densities(covariances: Array, means: Array, count: Array, basis: Array) -> Posterior:
    """Quadratic logits of normal densities in coordinates R @ basis."""
    # Whitened coordinates: |L^-1 (z - m)|² for the factor L of a covariance.
    lower = np.linalg.cholesky(covariances)
    whitened = np.linalg.solve(lower, np.broadcast_to(basis.T, (len(count), *basis.T.shape)))
    centers = np.linalg.solve(lower, means[..., None])[..., 0]
    volume = np.log(np.einsum("cii->ci", lower)).sum(axis=1)
    constant = np.log(count) - 0.5 * (centers**2).sum(axis=1) - volume
    squares = whitened.transpose(0, 2, 1) @ whitened
    curvature = -0.5 * (squares[1:] - squares[0])
    direction = np.einsum("cri,cr->ci", whitened, centers)
    slope = (direction[1:] - direction[0]).T
    return Posterior(slope, constant[1:] - constant[0], curvature=curvature)


def _own_score_gain(means: Array, count: Array) -> float:
    """How much higher the mean score of a class is on its own rows than on all rows, averaged over rows."""
    own = np.concatenate([[0.0], np.diagonal(means[1:])])
    overall = np.concatenate([[0.0], count @ means / count.sum()])
    return float(count @ (own - overall) / count.sum())


def _spread(Z: Array, weight: Array) -> Array:
    """Standard deviations (r,) of scores, 1 for constant ones."""
    share = weight / weight.sum()
    std = np.sqrt(share @ (Z - share @ Z) ** 2)
    return np.where(std > 0.0, std, 1.0)


def _isotonic(R: Array, label: Indices, weight: Array) -> Posterior:
    """Increasing steps for each class against the rest, mixed with one slope and offsets."""
    own = _one_against_rest(R)
    curves = tuple(_steps(own[:, c], label == c, weight) for c in range(own.shape[1]))
    smooth = 1.0 / (1.0 + np.sqrt(weight.sum()))
    return replace(_logistic(R, label, weight), curves=curves, smooth=float(smooth))


def _steps(r: Array, hit: NDArray[np.bool_], weight: Array) -> StepCurve:
    """Isotonic regression of hits on the distinct values of r."""
    knots, position = np.unique(r, return_inverse=True)
    total = np.bincount(position, weight)
    share = np.bincount(position, weight * hit) / total
    return StepCurve(knots, isotonic_regression(share, weights=total).x)


def _one_against_rest(R: Array) -> Array:
    """Each class's score minus the best of the others (n, k)."""
    scores = np.column_stack([np.zeros(len(R)), R])
    order = np.sort(scores, axis=1)
    best, second = order[:, -1:], order[:, -2:-1]
    return scores - np.where(scores == best, second, best)


def _normalized(P: Array) -> Array:
    total = P.sum(axis=1, keepdims=True)
    return np.where(total > 0, P / np.where(total > 0, total, 1.0), 1.0 / P.shape[1])


def _log_odds(P: Array) -> Array:
    """Log-odds (n, k - 1) against the first class of positive probabilities (n, k)."""
    tiny = smallest(P.dtype)
    return np.asarray(np.log(np.maximum(P[:, 1:], tiny)) - np.log(np.maximum(P[:, :1], tiny)))
