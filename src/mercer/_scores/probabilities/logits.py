r"""Logits that are one slope times the scores plus an offset for each class, by Newton's method.

    min over a >= 0, b   - sum_i w_i sum_c t_ic log p_ic,    log p_ic / p_i0 = a R_ic + b_c

R (n, k - 1) are scores relative to the first class. The targets t are smoothed as in Platt (1999): a class of n_c
rows counts as if it had ``extra`` more rows on the right side and as many on the wrong side, in general one, so
that the optimum is finite for separable scores and a class of two rows does no harm.

Many sets of scores are fitted at once, with the rows as their last axis: (a, k - 1, n). Steps are made in float32
until they are small, and then in float64: in general one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Floats, Indices

# Most steps in float32 and in float64.
MOST_LOGIT_STEPS = {"f": 10, "d": 100}
# Newton's decrement for a row of weight one below which the next step is the last; steps in float32 only start.
LOGIT_DECREMENT, LOGIT_DECREMENT_SINGLE = 1e-9, 1e-6
# A slope of zero would make every threshold infinite.
LEAST_SLOPE = 1e-6
# Numbers of one array, of several sets of scores or of some rows of one: a few arrays stay in the cache.
NUMBERS_IN_CACHE = 2**15
# Normal scores have 1 / (1 - rho²) times the slope that regression on indicators gives; at most 1 / (1 - this).
MOST_EXPLAINED = 0.8


@dataclass(frozen=True)
class Logits:
    """slope (...,) and offset (..., k - 1): logits are slope R + offset, for a batch of score sets."""

    slope: Array
    offset: Array

    def rows_last(self, R: Array) -> Array:
        """(..., k - 1, n) log-odds against the first class for scores R of the same shape."""
        logits: Array = self.slope[..., None, None] * R
        logits += self.offset[..., None]
        return logits


def fit_logits(R: Array, label: Indices, weight: Array, extra: float = 1.0) -> Logits:
    """Slope and offsets for each of a batch of scores R (a, n, k - 1); about six passes over R."""
    problem = LogitProblem.of(label, weight, R.shape[-1] + 1, extra)
    fits = [problem.fit(rows_last(R[some])) for some in sets_at_once(*R.shape)]
    return Logits(np.concatenate([fit.slope for fit in fits]), np.concatenate([fit.offset for fit in fits]))


def rows_last(R: Array) -> Array:
    """(a, k - 1, n) from scores (a, n, k - 1)."""
    return np.ascontiguousarray(R.transpose(0, 2, 1))


def sets_at_once(a: int, n: int, k: int) -> list[slice]:
    """Slices of a sets of scores, each of n k numbers, to be processed at a time."""
    parts = -(-a * n * k // NUMBERS_IN_CACHE)
    step = max(1, -(-a // max(parts, 1)))
    return [slice(start, start + step) for start in range(0, a, step)]


@dataclass(frozen=True)
class LogitProblem:
    """Weights of n rows, their targets times weights, wT (k - 1, n), and the log-odds (k - 1,) of the classes."""

    weight: Array
    wT: Array
    odds: Array

    @classmethod
    def of(cls, label: Indices, weight: Array, n_classes: int, extra: float = 1.0) -> "LogitProblem":
        """For class numbers (n,) and weights (n,), and ``extra`` rows on each side of a class."""
        T = smoothed_targets(label, weight, n_classes, extra)[:, 1:]
        odds = _share_odds(label, weight, n_classes, extra)
        return cls(weight, np.ascontiguousarray((weight[:, None] * T).T), odds)

    def fit(self, R: Array) -> Logits:
        """Slope and offsets for each of a batch of scores R (a, k - 1, n)."""
        centered, mean, unit = self._in_units(R)
        gain = _sums(centered.reshape(len(R), -1), self.wT.ravel())
        theta = np.tile(np.append(0.0, self.odds), (len(R), 1))
        # The loss is convex, with the derivative -gain at slope zero. Leave-one-out scores of a model without
        # signal are negatively correlated with the labels.
        rising = np.flatnonzero(gain > 0.0)
        if len(rising):
            theta[rising] = self._minimum(centered if len(rising) == len(R) else centered[rising], gain[rising])
        slope, offset = theta[:, 0] / unit, theta[:, 1:]
        offset -= slope[:, None] * mean
        flat = np.flatnonzero(theta[:, 0] <= LEAST_SLOPE)
        if len(flat):
            spread = R[flat].std(axis=(1, 2))
            slope[flat] = LEAST_SLOPE / np.where(gain[flat] != 0.0, spread, 1.0)
            offset[flat] = self.odds
        return Logits(slope, offset)

    def _in_units(self, R: Array) -> tuple[Array, Array, Array]:
        """Scores minus their weighted means, in units of their spread (a,), the means (a, k - 1) and the units.

        Scores that are constant but for rounding become zero.
        """
        share = self.weight / self.weight.sum()
        mean = R @ share
        centered = R - mean[..., None]
        unit = np.sqrt((centered**2 @ share).mean(axis=1))
        constant = unit <= 1e-12 * np.abs(mean).max(axis=1)
        unit[constant], centered[constant] = 1.0, 0.0
        centered /= unit[:, None, None]
        return centered, mean, unit

    def _minimum(self, R: Array, gain: Array) -> Array:
        """Slope and offsets (a, k) for centered scores of unit spread."""
        target = np.column_stack([gain, np.tile(self.wT.sum(axis=1), (len(R), 1))])
        point = _point(self._start(R, target), R, target, self.weight)
        return _newton(point, R, target, self.weight, LOGIT_DECREMENT)[0]

    def _start(self, R: Array, target: Array) -> Array:
        """The minimum in float32, or slope zero where steps in float32 do not converge."""
        with np.errstate(all="ignore"):
            single = R.astype(np.float32)
            zero = self._at_zero(single, target)
            explained = target[:, 0] ** 2 / (zero.hessian[:, 0, 0] * self.weight.sum() * R.shape[1])
            longer = 1.0 / (1.0 - np.minimum(explained, MOST_EXPLAINED))
            theta, converged = _newton(zero, single, target, self.weight, LOGIT_DECREMENT_SINGLE, first=longer)
        theta[~converged] = np.append(0.0, self.odds)
        return theta

    def _at_zero(self, R: Floats, target: Array) -> "_Point":
        """The point of slope zero, where probabilities are those of the classes, without exponentials."""
        a, total, weight = len(R), self.weight.sum(), self.weight.astype(R.dtype)
        P, log_total = softmax0(self.odds[:, None].copy())
        p = P[:, 0]
        hessian = np.zeros((a, 1 + len(p), 1 + len(p)))
        hessian[:, 1:, 1:] = total * (np.diag(p) - np.outer(p, p))
        hessian[:, 0, 0] = _sums(R**2 @ weight, p) - _sums((p.astype(R.dtype) @ R) ** 2, weight)
        gradient = np.zeros((a, 1 + len(p)))
        gradient[:, 0] = -target[:, 0]
        theta = np.tile(np.append(0.0, self.odds), (a, 1))
        return _Point(
            theta, total * log_total - _sums(target[:, 1:], self.odds), gradient, _ridged(hessian, total)
        )


def _share_odds(label: Indices, weight: Array, n_classes: int, extra: float) -> Array:
    """Log-odds (k - 1,) of mean smoothed targets, equal to the last digit for classes of equal weight."""
    count = np.bincount(label, weight, minlength=n_classes)
    wrong = extra * count / (count + 2.0 * extra)
    others = np.array([np.sort(np.delete(wrong, c)).sum() for c in range(n_classes)]) / (n_classes - 1)
    odds = np.log(count * (count + extra) / (count + 2.0 * extra) + others)
    return np.asarray(odds[1:] - odds[0])


def smoothed_targets(label: Indices, weight: Array, n_classes: int, extra: float = 1.0) -> Array:
    """(n, k) target probabilities: (n_c + extra)/(n_c + 2 extra) for the row's class, the rest for the others."""
    count = np.bincount(label, weight, minlength=n_classes)[label]
    T = np.repeat(extra / ((count + 2.0 * extra) * (n_classes - 1)), n_classes).reshape(-1, n_classes)
    T[np.arange(len(label)), label] = (count + extra) / (count + 2.0 * extra)
    return T


def softmax0(logits: Floats) -> tuple[Floats, Floats]:
    """Probabilities (..., k - 1, n) of classes 1 … k - 1, and log(1 + sum exp(logits)) (..., n).

    Class 0 has logit 0. The logits (..., k - 1, n) are overwritten by the probabilities.
    """
    # The larger of this and zero: NumPy's maximum with a number is slow.
    top = logits.max(axis=-2)
    top += np.abs(top)
    top *= 0.5
    logits -= top[..., None, :]
    E = np.exp(logits, out=logits)
    total = np.exp(-top)
    total += E[..., 0, :] if E.shape[-2] == 1 else E.sum(axis=-2)
    E /= total[..., None, :]
    np.log(total, out=total)
    total += top
    return E, total


def softmax(logits: Array) -> Array:
    """Probabilities (..., k) of all classes from logits (..., k - 1) against the first, all to full precision."""
    top = np.maximum(logits.max(axis=-1, keepdims=True), 0.0)
    E = np.concatenate([np.exp(-top), np.exp(logits - top)], axis=-1)
    return np.asarray(E / E.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class _Point:
    """theta (a, k), slope and offsets, with loss (a,), gradient g (a, k) and Hessian H (a, k, k) there."""

    theta: Array
    loss: Array
    gradient: Array
    hessian: Array

    def newton(self) -> tuple[Array, Array]:
        """Newton's step H^-1 g (a, k), to be subtracted, and its decrement g'H^-1 g (a,)."""
        step = np.asarray(np.linalg.solve(self.hessian, self.gradient[..., None])[..., 0], dtype=np.float64)
        return step, (step * self.gradient).sum(axis=-1)

    def replace(self, members: Indices, other: "_Point", those: NDArray[np.bool_]) -> None:
        """Members become those of another point."""
        for name in ("theta", "loss", "gradient", "hessian"):
            getattr(self, name)[members] = getattr(other, name)[those]


def _better(new: _Point, loss: Array, step: Array) -> NDArray[np.bool_]:
    """Which members (a,) of a point are better than the points one step (a, k) before, which had this loss (a,).

    If a step leads too far, to probabilities near 0 and 1, the loss may be lower, but the curvature is lost, and
    the next step would lead back much farther: it must not be longer than half of this one.
    """
    beyond = -(new.gradient * step).sum(axis=-1)
    curvature = (step[:, None] @ new.hessian @ step[..., None])[:, 0, 0]
    lower = new.loss <= loss + 1e-12 * abs(loss)
    return np.asarray(lower & ((beyond <= 0.0) | (beyond <= 0.5 * curvature)))


def _newton(
    point: _Point, R: Floats, target: Array, weight: Array, tolerance: float, *, first: Array | float = 1.0
) -> tuple[Array, NDArray[np.bool_]]:
    """theta after damped Newton steps for each member of the batch, the ``first`` (a,) times as long, and which
    converged: these are not changed but for one last step.
    """
    length, enough = np.full(len(R), first), tolerance * weight.sum()
    for _ in range(MOST_LOGIT_STEPS[R.dtype.char]):
        step, decrement = point.newton()
        active = np.flatnonzero(decrement > enough)
        if len(active) == 0:
            break
        trial = length[active, None] * step[active]
        scores = R if len(active) == len(R) else R[active]
        new = _point(point.theta[active] - trial, scores, target[active], weight)
        better = _better(new, point.loss[active], trial)
        point.replace(active[better], new, better)
        length[active] = np.minimum(np.where(better, 2.0, 0.5) * length[active], 1.0)
    # In float32 a Hessian may not be positive definite.
    converged = (decrement <= enough) & (decrement >= 0.0)
    return np.where(converged[:, None], point.theta - step, point.theta), converged


def _point(theta: Array, R: Floats, target: Array, weight: Array) -> _Point:
    """The point theta for scores R (a, k - 1, n), summed over pieces of rows.

    ``target`` (a, k) are the sums of w t R and of w t, which do not depend on theta.
    """
    a, k, n = R.shape
    step = max(1, NUMBERS_IN_CACHE // k)
    loss, gradient, hessian = np.zeros(a), np.zeros((a, 1 + k)), np.zeros((a, 1 + k, 1 + k))
    of_type = theta.astype(R.dtype)
    root = np.sqrt(weight).astype(R.dtype)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        for total, part in zip((loss, gradient, hessian), _of_rows(of_type, R[..., rows], root[rows])):
            total += part
    loss -= (theta * target).sum(axis=1)
    gradient -= target
    return _Point(theta, loss, gradient, _ridged(hessian, weight.sum()))


def _ridged(hessian: Array, total: float) -> Array:
    """With a ridge far below the curvature of rows with this total weight: classes without rows have none."""
    diagonal = np.arange(hessian.shape[1])
    hessian[:, diagonal, diagonal] += 1e-10 * total
    return hessian


def _of_rows(theta: Floats, R: Floats, root: Floats) -> tuple[Floats, Floats, Floats]:
    """The same for some rows, without targets.

    With d_ic = (R_ic, e_c), the derivative of a logit, and their mean d_i = (sum_c p_ic R_ic, p_i), the gradient
    is sum_i w_i d_i and the Hessian sum_i w_i (sum_c p_ic d_ic d_ic' - d_i d_i').
    """
    a, k, n = R.shape
    P = np.empty((a, 1 + k, n), dtype=R.dtype)
    logits = np.multiply(theta[:, :1, None], R, out=P[:, 1:])
    logits += theta[:, 1:, None]
    _, log_total = softmax0(logits)
    weight = root**2
    PR = P[:, 1:] * R
    np.sum(PR, axis=1, out=P[:, 0])
    slopes = PR @ weight
    PR *= R
    P *= root
    gradient = P @ root
    hessian = -np.matmul(P, P.transpose(0, 2, 1))
    hessian[:, 0, 0] += (PR @ weight).sum(axis=1)
    hessian[:, 0, 1:] += slopes
    hessian[:, 1:, 0] += slopes
    hessian[:, range(1, 1 + k), range(1, 1 + k)] += gradient[:, 1:]
    return _sums(log_total, weight), gradient, hessian


def _sums(A: Floats, weight: Floats) -> Array:
    """A (a, n) times weight (n,), with bits that do not depend on a."""
    return np.asarray((A[:, None] @ weight)[:, 0], dtype=np.float64)
