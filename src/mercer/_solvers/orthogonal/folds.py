"""Held-out outputs of rows whose centers were selected without them.

Targets select the centers. A row that took part has left its target in the selection, and its leave-one-out output
is too good even if its own center is held out with it. So points are dealt into folds: for each fold, centers are
selected among the other points by the targets there; coefficients are fitted to all rows, and each row of the fold
is held out in closed form, which is exact for given centers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer._solvers.orthogonal.candidates import CandidateColumns, Points
from mercer._solvers.orthogonal.orders import Order, SelectionRule, choose_order
from mercer._solvers.orthogonal.path import Steps, loo_outputs_of_rows
from mercer._solvers.spectrum import Observations
from mercer._types import Array, Indices

# Folds where fits are compared, and of the fit itself with at most this many points: each costs a selection.
COMPARED_FOLDS = 3
SPARSE_FOLDS, MANY_POINTS = 5, 2000


@dataclass(frozen=True)
class Fold:
    """Rows (r,) of a fold, and candidates that are not in it: their columns at all points, or at the others alone.

    ``points`` are the observations at the other points.
    """

    rows: Indices
    candidates: CandidateColumns
    others: CandidateColumns
    points: Points

    @property
    def n_others(self) -> int:
        """Number of points that are not in the fold."""
        return len(self.points.Y)

    def order(self, rule: SelectionRule, alpha: float | None, most: int, rng: np.random.Generator) -> Order:
        """Centers selected without the fold."""
        return choose_order(self.others, self.points, rule, alpha, most, rng)


def folds_of(
    candidates: CandidateColumns, observations: Observations, n_folds: int, rng: np.random.Generator
) -> list[Fold]:
    """Folds of the points, which rows at one point share, with as many candidates for each as there are."""
    fold = dealt(observations.point_target, n_folds)
    return [_fold(candidates, observations, fold == f, rng) for f in range(fold.max() + 1)]


def held_out(
    along_folds: Iterable[tuple[Indices, Steps]], readings: Sequence[Observations], numbers: Indices
) -> list[Array]:
    """Outputs (c, n, q) of all rows with these numbers of centers (c,), for every reading of the weights.

    ``along_folds`` are the rows of each fold, and the fits along the centers that were selected without it.
    """
    outputs = [np.empty((len(numbers), *reading.Y.shape)) for reading in readings]
    for rows, steps in along_folds:
        for found, reading in zip(outputs, readings):
            for i, m in enumerate(numbers.tolist()):
                found[i, rows] = loo_outputs_of_rows(steps, min(m, len(steps.order)), reading, rows)
    return outputs


def dealt(Y: Array | NDArray[np.bool_], n_folds: int) -> Indices:
    """The fold (u,) of each point with targets Y (u, q), the same for every kernel and alpha.

    Numeric points are in an order of their own, so folds do not depend on how rows are ordered or repeated. Folds
    have the shares of all points in every class: the first center is one of the smaller class.
    """
    order = np.random.default_rng(0).permutation(len(Y))
    order = order[np.lexsort(Y[order].T)]
    fold = np.empty(len(Y), dtype=np.intp)
    fold[order] = np.arange(len(Y)) % min(n_folds, len(Y))
    return fold


def _fold(
    candidates: CandidateColumns, observations: Observations, inside: NDArray[np.bool_], rng: np.random.Generator
) -> Fold:
    """The fold of these points (u,); a single point, which has no others, is its own candidate."""
    rows = np.flatnonzero(inside[observations.rows.point])
    others = np.flatnonzero(~inside) if not inside.all() else np.flatnonzero(inside)
    pool = others[np.isin(others, candidates.pool)]
    missing = min(len(candidates.pool), len(others)) - len(pool)
    if missing:
        pool = np.sort(np.append(pool, rng.choice(np.setdiff1d(others, pool), missing, replace=False)))
    X = candidates.kernels[0].subset(candidates.X, others)
    return Fold(
        rows,
        replace(candidates, pool=pool),
        replace(candidates, X=X, pool=np.searchsorted(others, pool)),
        Points.of(observations.at_points(others)[0]),
    )
