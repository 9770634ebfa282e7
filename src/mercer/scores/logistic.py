r"""Logits that are one slope times the scores plus an offset for each class, by Newton's method.

    min over a >= 0, b   - sum_i w_i sum_c t_ic log p_ic,    log p_ic / p_i0 = a R_ic + b_c

R (n, k - 1) are scores relative to the first class. The targets t are smoothed as in Platt (1999): a class of n_c
rows counts as if it had one more row on the right side and one on the wrong side, so that the optimum is finite
for separable scores and a class of two rows does no harm.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.types import Array, Indices

MAX_ITER = 50
TOLERANCE = 1e-9
# A slope of zero would make every threshold infinite.
LEAST_SLOPE = 1e-6
# Scores of one set that are processed at a time: sums run over pieces of rows.
PIECE = 2**14


@dataclass(frozen=True)
class Logits:
    """slope (...,) and offset (..., k - 1): logits(R) = slope R + offset, for a batch of score sets."""

    slope: Array
    offset: Array

    def at(self, R: Array) -> Array:
        """(..., n, k - 1) log-odds against the first class for scores R of the same shape."""
        logits: Array = self.slope[..., None, None] * R + self.offset[..., None, :]
        return logits


def fit_logits(R: Array, label: Indices, weight: Array) -> Logits:
    """Slope and offsets for each of a batch of scores R (a, n, k - 1); about ten passes over R."""
    spread = R.std(axis=1).max(axis=-1)[:, None, None]
    constant = spread <= 1e-12 * np.abs(R).max(axis=(1, 2), keepdims=True)
    unit = np.where(constant, 1.0, R.std(axis=(1, 2), keepdims=True))
    slope, offset = _fit_in_units(R / unit, label, weight, constant[:, 0, 0])
    return Logits(slope / unit[:, 0, 0], offset)


def _fit_in_units(R: Array, label: Indices, weight: Array, constant: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Slopes (a,) and offsets (a, k - 1) for scores of unit spread, except for constant ones."""
    T = smoothed_targets(label, weight, R.shape[-1] + 1)[:, 1:]
    theta = np.zeros((len(R), 1 + R.shape[-1]))
    theta[:, 1:] = _share_odds(label, weight, R.shape[-1] + 1)
    start = theta[:, 1:].copy()
    theta = _newton(theta, R, T, weight)
    # Leave-one-out scores of a model without signal are negatively correlated with the labels: no slope is better.
    flat = constant | (theta[:, 0] < LEAST_SLOPE)
    theta[flat, 0], theta[flat, 1:] = LEAST_SLOPE, start[flat]
    return theta[:, 0], theta[:, 1:]


def _share_odds(label: Indices, weight: Array, n_classes: int) -> Array:
    """Log-odds (k - 1,) of mean smoothed targets, equal to the last digit for classes of equal weight."""
    count = np.bincount(label, weight, minlength=n_classes)
    wrong = count / (count + 2.0)
    others = np.array([np.sort(np.delete(wrong, c)).sum() for c in range(n_classes)]) / (n_classes - 1)
    odds = np.log(count * (count + 1.0) / (count + 2.0) + others)
    relative: Array = odds[1:] - odds[0]
    return relative


def smoothed_targets(label: Indices, weight: Array, n_classes: int) -> Array:
    """(n, k) target probabilities: (n_c + 1)/(n_c + 2) for the row's class, the rest divided among the others."""
    count = np.bincount(label, weight, minlength=n_classes)[label]
    T = np.repeat(1.0 / ((count + 2.0) * (n_classes - 1)), n_classes).reshape(-1, n_classes)
    T[np.arange(len(label)), label] = (count + 1.0) / (count + 2.0)
    return T


def softmax0(logits: Array) -> tuple[Array, Array]:
    """Probabilities (..., k - 1) of classes 1 … k - 1 and log(1 + sum exp(logits)) (...,); class 0 has logit 0."""
    top = np.maximum(logits.max(axis=-1, keepdims=True), 0.0)
    E = np.exp(logits - top)
    total = np.exp(-top) + (E if E.shape[-1] == 1 else E.sum(axis=-1, keepdims=True))
    log_total = (top + np.log(total))[..., 0]
    E /= total
    return E, log_total


def softmax(logits: Array) -> Array:
    """Probabilities (..., k) of all classes from logits (..., k - 1) against the first, all to full precision."""
    top = np.maximum(logits.max(axis=-1, keepdims=True), 0.0)
    E = np.concatenate([np.exp(-top), np.exp(logits - top)], axis=-1)
    P: Array = E / E.sum(axis=-1, keepdims=True)
    return P


def _newton(theta: Array, R: Array, T: Array, weight: Array) -> Array:
    """Damped Newton steps for each member of the batch; converged members are not changed."""
    step = np.ones(len(theta))
    loss, gradient, hessian = _derivatives(theta, R, T, weight)
    for _ in range(MAX_ITER):
        move = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        decrement = (move * gradient).sum(axis=-1)
        active = decrement > TOLERANCE * weight.sum()
        if not active.any():
            return theta - move
        trial = theta[active] - step[active, None] * move[active]
        new = _derivatives(trial, R[active], T, weight)
        better = new[0] <= loss[active] + 1e-12 * abs(loss[active])
        accepted = np.flatnonzero(active)[better]
        theta[accepted] = trial[better]
        for array, value in zip((loss, gradient, hessian), new):
            array[accepted] = value[better]
        step[active] = np.where(better, 1.0, 0.5 * step[active])
    return theta


def _derivatives(theta: Array, R: Array, T: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Loss (a,), gradient (a, k) and Hessian (a, k, k) in (slope, offsets), summed over pieces of rows."""
    a, n, k = R.shape
    step = max(1, PIECE // k)
    loss, gradient, hessian = np.zeros(a), np.zeros((a, 1 + k)), np.zeros((a, 1 + k, 1 + k))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        for total, part in zip((loss, gradient, hessian), _of_rows(theta, R[:, rows], T[rows], weight[rows])):
            total += part
    # Constant scores leave the slope undetermined: a ridge far below the data's own curvature.
    hessian[:, range(1 + k), range(1 + k)] += 1e-10 * weight.sum()
    return loss, gradient, hessian


def _of_rows(theta: Array, R: Array, T: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The same for some rows."""
    logits = theta[:, None, :1] * R + theta[:, None, 1:]
    P, log_total = softmax0(logits)
    loss = (log_total - (T * logits).sum(axis=-1)) @ weight
    E = weight[:, None] * (P - T)
    gradient = np.concatenate([(E * R).sum(axis=(1, 2))[:, None], E.sum(axis=1)], axis=1)
    return loss, gradient, _hessian(P, R, weight)


def _hessian(P: Array, R: Array, weight: Array) -> Array:
    WP = weight[:, None] * P
    mean = (P * R).sum(axis=-1, keepdims=True)
    k = R.shape[-1]
    H = np.empty((len(R), 1 + k, 1 + k))
    H[:, 0, 0] = (WP * R * (R - mean)).sum(axis=(1, 2))
    H[:, 0, 1:] = H[:, 1:, 0] = (WP * (R - mean)).sum(axis=1)
    H[:, 1:, 1:] = -np.matmul(P.transpose(0, 2, 1), WP)
    H[:, range(1, 1 + k), range(1, 1 + k)] += WP.sum(axis=1)
    return H
