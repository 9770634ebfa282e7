"""Prediction intervals from leave-one-out residuals, without a model of the noise."""

from dataclasses import dataclass

import numpy as np

from mercer.scores.evidence import Training
from mercer.solvers import Observations
from mercer.types import Array, Indices


def noise_std(residual: Array, weight: Array, n: float, degrees_of_freedom: float) -> Array:
    """Standard deviation (q,) of the noise of a row of mean weight: mean square residual times n / (n - df).

    The residuals (r, q) may be those of some of the n rows.
    """
    mean_square = weight @ residual**2 / weight.sum()
    std: Array = np.sqrt(mean_square * n / max(n - degrees_of_freedom, np.finfo(float).eps * n))
    return std


def predictive_std(noise: Array, variance: Array, left_out: "LeftOut") -> Array:
    """Standard deviation (n, q) of a new row of mean weight: its noise (q,), and the variance (n,) of f.

    ``variance`` is in units of the noise of a row of weight one.
    """
    mean_weight = left_out.weight.sum() / left_out.count.sum()
    std: Array = np.sqrt(1.0 + mean_weight * variance)[:, None] * noise
    return std


@dataclass(frozen=True)
class LeftOut:
    """Leave-one-out results: residual (n, q), weight (n,), fold (n,) or None.

    ``count`` (n,) is the number of rows that a row represents, ``point`` (n,) its center, ``share`` (n,) the part
    of the center's weight that is held out with it; both are None if rows are not centers.
    """

    residual: Array
    weight: Array
    count: Array
    point: Indices | None
    share: Array | None
    fold: Indices | None

    @classmethod
    def of(cls, training: Training, loo: Array, observations: Observations | None) -> "LeftOut":
        """Of training rows with weight; ``observations`` where every distinct row is a center."""
        used, faded = training.weight > 0, training.faded
        weight = training.weight if faded is None else training.weight / faded * training.rows
        residual, weight, count = (training.Y - loo)[used], weight[used], training.rows[used]
        if observations is None:
            return cls(residual, weight, count, None, None, None)
        fold = None if training.fold is None else training.fold[used]
        # All of its weight leaves with a row when folds do.
        leaving = observations.unit if fold is None else observations.weight
        point = observations.rows.point
        return cls(residual, weight, count, point, leaving / observations.point_weight[point], fold)

    def outputs_without(self, f: Array, L: Array, target: int) -> Array:
        """Outputs (n, r) at n rows of the models without each of r rows, from f (n,) and weights L (n, u).

        Holding out a row is replacing its target by y_i - share_i e_i: f_-i(x) = f(x) - l_i(x) share_i e_i.
        """
        if self.point is None or self.share is None:
            raise ValueError("rows that are not centers have no weights in the smoother; use residual_intervals")
        change = L[:, self.point] * (self.share * self.residual[:, target])
        if self.fold is not None:
            total = np.zeros((len(f), self.fold.max() + 1))
            np.add.at(total.T, self.fold, change.T)
            change = total[:, self.fold]
        return f[:, None] - change


def prediction_intervals(F: Array, L: Array, left_out: LeftOut, coverage: float) -> Array:
    """Ends (n, q, 2) for outputs F (n, q) with smoother weights L (n, u)."""
    ends = np.empty((*F.shape, 2))
    for q, residual in enumerate(left_out.residual.T):
        without = left_out.outputs_without(F[:, q], L, q)
        ends[:, q] = jackknife_plus(without, residual, left_out.count, coverage)
    return ends


def residual_intervals(F: Array, left_out: LeftOut, coverage: float) -> Array:
    """Ends (n, q, 2) for outputs F (n, q) that a single row hardly changes: the jackknife, O(n + r log r)."""
    width = np.stack(
        [jackknife_plus(np.zeros((1, len(e))), e, left_out.count, coverage)[0] for e in left_out.residual.T]
    )
    ends: Array = F[:, :, None] + width
    return ends


def jackknife_plus(outputs: Array, loo_residual: Array, count: Array, coverage: float) -> Array:
    """Lower and upper ends (n, 2) for outputs (n, r) of the r models that each hold out one row.

    Barber, Candès, Ramdas and Tibshirani (2021): [q_lo(f_-i(x) - |e_i|), q_hi(f_-i(x) + |e_i|)]
    with the miss rate m = 1 - coverage; covers at least 1 - 2 m of exchangeable rows, and in
    practice 1 - m. ``count`` (r,) is the number of rows that each represents.
    """
    width = np.abs(loo_residual)
    rank = int((1.0 - coverage) * (count.sum() + 1.0) + 1e-9)
    upper = _from_above(outputs + width, count, rank)
    lower = -_from_above(width - outputs, count, rank)
    return np.column_stack([lower, upper])


def _from_above(V: Array, count: Array, rank: int) -> Array:
    """The value of the given rank in each row of V (n, r), counted from the largest; rank 0 is infinity."""
    if rank == 0:
        return np.full(len(V), np.inf)
    order = np.argsort(-V, axis=1)
    reached = np.cumsum(count[order], axis=1) >= rank * (1 - 1e-12)
    chosen = order[np.arange(len(V)), reached.argmax(axis=1)]
    return np.asarray(V[np.arange(len(V)), chosen])
