"""Prediction intervals from leave-one-out residuals and their scale, without a model of the noise."""

from dataclasses import dataclass

import numpy as np

from mercer._linalg.tolerance import rounding_unit
from mercer._scores.training_rows import Training, design_effect
from mercer._solvers.smoother import HeldOut
from mercer._solvers.spectrum import Observations
from mercer._types import Array, Indices
from mercer.errors import IntervalWarning, warn
from mercer.rows._table import take


def noise_std(residual: Array, weight: Array, n: float, degrees_of_freedom: float) -> Array:
    """Standard deviation (q,) of the noise of a row of mean weight: mean square residual times n / (n - df).

    The residuals (r, q) may be those of some of the n rows.
    """
    mean_square = weight @ residual**2 / weight.sum()
    return np.asarray(np.sqrt(mean_square * n / max(n - degrees_of_freedom, rounding_unit(np.float64) * n)))


def relative_std(variance: Array, loo_results: "LooResults") -> Array:
    """Standard deviation (n,) of a new row of mean weight in units of its noise, from the variance (n,) of f.

    ``variance`` is in units of the noise of a row of weight one.
    """
    mean_weight = loo_results.weight.sum() / loo_results.count.sum()
    return np.asarray(np.sqrt(1.0 + mean_weight * variance))


@dataclass(frozen=True)
class LooResults:
    """Leave-one-out results: residual (n, q), weight (n,), fold (n,) or None.

    ``count`` (n,) is the number of rows that a row represents, ``unit`` (n,) the weight that is held out with it,
    ``point`` (n,) its center, ``share`` (n,) the part of the center's weight that is held out with it; point and
    share are None if rows are not centers. Rows of one ``group`` (n,) may say the same.
    """

    residual: Array
    weight: Array
    count: Array
    unit: Array
    point: Indices | None
    share: Array | None
    fold: Indices | None
    group: Indices | None = None

    @classmethod
    def of(cls, training: Training, loo: Array, observations: Observations | None) -> "LooResults":
        """Of training rows with weight; ``observations`` where every distinct row is a center."""
        used, faded = training.weight > 0, training.faded
        weight = training.weight if faded is None else training.weight / faded * training.rows
        residual, weight, count = (training.Y - loo)[used], weight[used], training.rows[used]
        # All of its weight leaves with a row when folds do.
        unit = (training.unit if training.fold is None else training.weight)[used]
        fold, group = (take(each, np.flatnonzero(used)) for each in (training.fold, training.group))
        if observations is None:
            return cls(residual, weight, count, unit, None, None, fold, group)
        point = observations.rows.point
        return cls(residual, weight, count, unit, point, unit / observations.point_weight[point], fold, group)

    @property
    def independent(self) -> Array:
        """As how many independent rows each row counts (n,): those of a group may share their residual."""
        if self.group is None:
            return self.count
        return self.count / design_effect(self.residual, self.count, self.count, self.group)

    @property
    def held_out(self) -> HeldOut:
        """What is held out with each row, where rows are centers."""
        if self.point is None or self.share is None:
            raise ValueError("rows that are not centers have no weights in the smoother; use residual_intervals")
        weight = np.bincount(self.point, self.weight).astype(np.float64)
        return HeldOut(self.point, self.share, self.fold, weight)

    def outputs_without(self, f: Array, L: Array, target: int) -> Array:
        """Outputs (n, r) at n rows of the models without each of r rows, from f (n,) and weights L (n, u).

        Holding out a row is replacing its target by y_i - share_i e_i: f_-i(x) = f(x) - l_i(x) share_i e_i.
        """
        held = self.held_out
        change = L[:, held.point] * (held.share * self.residual[:, target])
        if self.fold is not None:
            total = np.zeros((len(f), self.fold.max() + 1))
            np.add.at(total.T, self.fold, change.T)
            change = total[:, self.fold]
        return f[:, None] - change


def prediction_intervals(
    F: Array, L: Array, loo_results: LooResults, size: Array, scale: Array, coverage: float
) -> Array:
    """Ends (n, q, 2) for outputs F (n, q) with smoother weights L (n, u), where residuals are of ``scale`` (n, q).

    ``size`` (r, q) is that of each leave-one-out residual in units of the scale at its row.
    """
    ends = np.empty((*F.shape, 2))
    for q in range(F.shape[1]):
        without = loo_results.outputs_without(F[:, q], L, q)
        ends[:, q] = jackknife_plus(without, scale[:, [q]] * size[:, q], loo_results.independent, coverage)
    return ends


def residual_intervals(F: Array, loo_results: LooResults, size: Array, scale: Array, coverage: float) -> Array:
    """The same for outputs F (n, q) that a single row hardly changes: the jackknife, O(n + r log r)."""
    count = loo_results.independent
    width = np.stack([jackknife_plus(np.zeros((1, len(e))), e, count, coverage)[0] for e in size.T])
    return np.asarray(F[:, :, None] + scale[:, :, None] * width)


def selection_bias(loo_results: LooResults, nested: Array) -> Array:
    """Factor (q,) of the leave-one-out residuals of a model that was chosen by them, at least one.

    ``nested`` (n, q) are residuals of the same rows for models that were chosen without them. A quotient of
    medians: a model chosen from few rows may fail for single rows.
    """
    residual = np.repeat(loo_results.residual, loo_results.count.astype(np.intp), axis=0)
    usual, true = (np.median(np.abs(e), axis=0) for e in (residual, nested))
    return np.maximum(true / np.where(usual > 0, usual, np.inf), 1.0)


def least_rows(coverage: float) -> int:
    """The fewest rows for which intervals of this coverage are finite: 1 / (1 - coverage) - 1, rounded up."""
    return int(np.ceil(1.0 / (1.0 - coverage) - 1.0 - 1e-9))


def warn_of_few_rows(loo_results: LooResults, coverage: float) -> None:
    """Warn if intervals are infinite: the rows show no residual that is exceeded so rarely."""
    n = float(loo_results.independent.sum())
    if _rank(n, coverage) == 0:
        possible, least = np.floor(1e4 * n / (n + 1.0)) / 1e4, least_rows(coverage)
        warn(
            f"intervals with coverage={coverage:g} are infinite: {n:.4g} rows have residuals for at "
            f"most coverage={possible:g}; ask for less, or fit to at least {least} rows",
            IntervalWarning,
        )


def jackknife_plus(outputs: Array, loo_residual: Array, count: Array, coverage: float) -> Array:
    """Lower and upper ends (n, 2) for outputs (n, r) of the r models that each hold out one row.

    Barber, Candès, Ramdas and Tibshirani (2021): [q_lo(f_-i(x) - |e_i|), q_hi(f_-i(x) + |e_i|)]
    with the miss rate m = 1 - coverage; covers at least 1 - 2 m of exchangeable rows, and in
    practice 1 - m. ``loo_residual`` is (r,), or (n, r) if it depends on the row; ``count`` (r,) is the number of
    rows that each represents. Ranks are rounded so that few rows cover rather more.
    """
    width = np.abs(loo_residual)
    rank = _rank(float(count.sum()), coverage)
    upper = _from_above(outputs + width, count, rank)
    lower = -_from_above(width - outputs, count, rank)
    return np.column_stack([lower, upper])


def _rank(n: float, coverage: float) -> int:
    """How many of n residuals may be exceeded."""
    return int((1.0 - coverage) * (n + 1.0) + 1e-9)


def _from_above(V: Array, count: Array, rank: int) -> Array:
    """The value of the given rank in each row of V (n, r), counted from the largest; rank 0 is infinity."""
    if rank == 0:
        return np.full(len(V), np.inf)
    order = np.argsort(-V, axis=1)
    reached = np.cumsum(count[order], axis=1) >= rank * (1 - 1e-12)
    chosen = order[np.arange(len(V)), reached.argmax(axis=1)]
    return np.asarray(V[np.arange(len(V)), chosen])
