"""Criteria that leave-one-out minimizes: one number for each alpha, from leave-one-out outputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercer._linalg.threads import map_in_threads
from mercer._scores.class_outputs import relative
from mercer._scores.probabilities.logits import NUMBERS_IN_CACHE, LogitProblem, rows_last, sets_at_once, softmax0
from mercer._scores.training_rows import weighted_quantile
from mercer._types import Array, Floats, Indices

# Threads in which outputs are evaluated, each of which needs memory.
CRITERION_THREADS = 2
# Outputs agree with a constant target up to this share of it.
CONSTANT_TOLERANCE = 1e-9

# From outputs (a, n, q) to the losses of rows (a, n).
Losses = Callable[[Array], Array]


@dataclass(frozen=True)
class Criterion:
    """From outputs (a, n, q) to one number for each alpha (a,): the sum of ``losses`` with shares (n,) of rows."""

    losses: Losses
    share: Array

    def __call__(self, outputs: Floats) -> Array:
        return np.asarray(self.losses(np.asarray(outputs, dtype=np.float64)) @ self.share)


# The criterion for a subset of the rows, given by their row numbers.
CriterionFor = Callable[[Indices], Criterion]


class TargetCriterion(Protocol):
    """The criterion for some rows, and for some columns of the targets; None: all of them."""

    def __call__(self, rows: Indices, columns: list[int] | None = None, /) -> Criterion: ...


def evaluation_bytes(a: int, n: int, q: int, *, has_classes: bool) -> float:
    """Memory for evaluating outputs (a, n, q), in addition to them: copies of scores, Hessians, targets."""
    if not has_classes:
        return 24.0 * a * n * q
    k = q if q > 1 else 2
    at_once = min(a * n * q, CRITERION_THREADS * max(n * q, NUMBERS_IN_CACHE))
    return 8.0 * a * n * (q + 1.0) + 64.0 * at_once + 40.0 * a * k * k + 8.0 * n * (2.0 * k + 3.0)


def squared_criterion(Y: Array, weight: Array) -> Criterion:
    """Mean squared leave-one-out residual, each target in units of its variance."""
    return mean_loss(squared_losses(Y, weight), weight)


def pinball_criterion(Y: Array, weight: Array, levels: Array) -> Criterion:
    """Mean pinball loss for levels (q,), each target in units of that of its quantile; 1/2: |y - f| / 2."""
    constant = np.array([weighted_quantile(y, weight, level) for y, level in zip(Y.T, levels)])
    least = weight @ _pinball(Y - constant, levels) / weight.sum()
    scale = np.where(least > 0.0, least, 1.0) * Y.shape[1]
    return mean_loss(lambda outputs: np.asarray(_pinball(Y - outputs, levels) @ (1.0 / scale)), weight)


def _pinball(residual: Array, levels: Array) -> Array:
    return np.maximum(levels * residual, (levels - 1.0) * residual)


def mean_loss(losses: Losses, weight: Array) -> Criterion:
    """The mean of losses under weights (n,)."""
    return Criterion(losses, weight / weight.sum())


def squared_losses(Y: Array, weight: Array) -> Losses:
    """Squared residuals, each target in units of its variance."""
    mean = weight @ Y / weight.sum()
    variance = weight @ (Y - mean) ** 2 / weight.sum()
    scale = np.where(variance > 0, variance, 1.0) * Y.shape[1]
    return lambda outputs: np.asarray((outputs - Y) ** 2 @ (1.0 / scale))


def squared_errors(Y: Array, F: Array) -> Array:
    """Mean squared error (n,) of outputs F (n, q), over the targets."""
    return np.asarray(((Y - F) ** 2).mean(axis=1))


def classification_criterion(name: str, label: Indices, weight: Array, Y: Array) -> Criterion:
    """The mean loss of that name for class numbers (n,) and their targets Y (n, q).

    "brier" and "log_loss" evaluate the probabilities given by a logistic map of the outputs, "error" the labels,
    "squared" the outputs themselves (PRESS).
    """
    squared = squared_losses(Y, weight)
    if name == "squared":
        return mean_loss(squared, weight)
    if name == "error":
        # Errors are counts: ties are broken by the squared loss.
        return mean_loss(lambda outputs: _error(relative(outputs), label) + 1e-9 * squared(outputs), weight)
    judge = _brier if name == "brier" else _log_loss

    def losses(outputs: Array) -> Array:
        problem = LogitProblem.of(label, weight, max(outputs.shape[-1], 2))

        def of_some(some: slice) -> Array:
            R = rows_last(relative(outputs[some]))
            return judge(problem.fit(R).rows_last(R), label)

        return np.concatenate(map_in_threads(of_some, sets_at_once(*outputs.shape), most=CRITERION_THREADS))

    return mean_loss(losses, weight)


def _error(R: Array, label: Indices) -> Array:
    best = np.where(R.max(axis=-1) > 0, R.argmax(axis=-1) + 1, 0)
    return np.asarray(best != label, dtype=np.float64)


def _brier(logits: Array, label: Indices) -> Array:
    """|p - e|² (a, n) for logits (a, k - 1, n), which are overwritten, and indicators e of the labels."""
    P, log_total = softmax0(logits)
    first = np.exp(np.negative(log_total, out=log_total), out=log_total)
    first -= label == 0
    others = np.flatnonzero(label)
    P[:, label[others] - 1, others] -= 1.0
    P *= P
    first *= first
    return np.asarray(np.add(first, P.sum(axis=1), out=first))


def _log_loss(logits: Array, label: Indices) -> Array:
    """log sum_c exp(logit_c) minus the row's own logit (a, n), for logits (a, k - 1, n), which are overwritten."""
    others = np.flatnonzero(label)
    own = logits[:, label[others] - 1, others]
    loss = softmax0(logits)[1]
    loss[:, others] -= own
    return np.asarray(loss, dtype=np.float64)


def accuracy(P: Floats, label: Indices, weight: Array) -> float:
    """Share of rows, by weight (n,), whose own class has the largest of their probabilities P (n, k)."""
    return float(np.average(P.argmax(axis=1) == label, weights=weight))


def r_squared(Y: Array, F: Array, weight: Array) -> float:
    """R² of outputs F (n, q), the mean over targets; of a constant target 1 where all outputs agree, else 0."""
    residual = weight @ (Y - F) ** 2
    total = weight @ (Y - np.average(Y, axis=0, weights=weight)) ** 2
    # The mean of equal numbers may differ from them by a rounding error, and outputs by some more.
    constant = (Y[:1] == Y).all(axis=0) | (total == 0.0)
    agree = residual <= weight.sum() * (CONSTANT_TOLERANCE * np.abs(Y).max(axis=0, initial=0.0)) ** 2
    score = np.where(constant, agree, 1.0 - residual / np.where(constant, 1.0, total))
    return float(score.mean())


CLASSIFICATION_CRITERIA = ("brier", "log_loss", "error", "squared")
