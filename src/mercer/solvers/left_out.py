r"""Outputs of rows for the model fitted without them, exact, for every penalty.

The smoother of penalized least squares is linear, so a row of weight w at a point with smoother diagonal h and
residual r, of which the weight ``unit`` is held out, has the leave-one-out residual r / (1 - h unit/w), with 1 - h
= alpha P_gg from the spectrum: no cancellation, however small alpha is. For unit = w this is the closed form of
section 4.4 in Mika (2002), whose printed rank-two update needs the row of the intercept as well. Folds of
several rows require a system of their size.

Only ``unit`` of the weight of a row is held out, so that a row of weight two and a repeated row give the same
numbers; folds are held out with all their weight.
"""

from dataclasses import dataclass

import numpy as np

from mercer.errors import NumericalError
from mercer.rows import fold_members
from mercer.solvers.spectrum import Observations, Resolvent
from mercer.types import Array, Indices

# Size of one stack of matrices when folds are held out: 64 MiB.
WORKSPACE = 2**23


def leave_out(
    resolvent: Resolvent, observations: Observations, alphas: Array, fold: Indices | None = None
) -> Array:
    """Outputs for each row of the model fitted without it (a, n, q), exact, for every alpha > 0.

    ``fold`` (n,) numbers the rows that are held out together; None: each row alone. O(u² a q), and
    O(n u a) times the size of a fold with folds.
    """
    if fold is None:
        return _leave_one_out(resolvent, observations, np.asarray(alphas))
    outputs = np.empty((len(alphas), *observations.Y.shape))
    residual = _residual(resolvent, observations, np.asarray(alphas))
    for rows in fold_members(fold):
        part = _Leaving.of(observations, rows)
        # At most two matrices of the size of U, for which there was memory during the decomposition.
        most = min(WORKSPACE, 2 * len(resolvent.root_weight) * resolvent.width)
        step = max(1, most // (len(part.points) * (resolvent.width + 4 * len(part.points)) + 1))
        for a in range(0, len(alphas), step):
            some = np.asarray(alphas)[a : a + step]
            r = residual[a : a + step, part.points]
            outputs[a : a + step, rows] = _outputs_without(resolvent, observations, some, part, r)
    return outputs


def _residual(resolvent: Resolvent, observations: Observations, alphas: Array) -> Array:
    """y - f at the points (a, u, q)."""
    s = resolvent.root_weight[:, None]
    residual = resolvent.residual(s * observations.point_target, alphas)
    residual /= s
    return residual


def _leave_one_out(resolvent: Resolvent, observations: Observations, alphas: Array) -> Array:
    """y - r / (1 - h unit/w) with 1 - h = alpha P_gg, h the smoother's diagonal at the row's point."""
    point = observations.rows.point
    kept = 1.0 - observations.unit / observations.point_weight[point]
    left = resolvent.left(alphas)[:, point]
    denominator = left + (1.0 - left) * kept
    outputs: Array = _residual(resolvent, observations, alphas)[:, point]
    outputs += observations.Y - observations.point_target[point]
    outputs /= denominator[:, :, None]
    return np.subtract(observations.Y, outputs, out=outputs)


@dataclass(frozen=True)
class _Leaving:
    """Points (g,) with held-out rows, the point of each row, the share of weight that stays, shift of targets."""

    points: Indices
    position: Indices
    stays: Array
    moves: Array

    @classmethod
    def of(cls, observations: Observations, rows: Indices) -> "_Leaving":
        points, position = np.unique(observations.rows.point[rows], return_inverse=True)
        weight = observations.weight[rows]
        gone = np.bincount(position, weight, minlength=len(points))
        alone = np.bincount(position, minlength=len(points)) == observations.point_count[points]
        # If all copies are held out, exactly nothing stays, not a rounding error.
        left = np.where(alone, 0.0, observations.point_weight[points] - gone)
        pull = np.zeros((len(points), observations.Y.shape[1]))
        apart = observations.Y[rows] - observations.point_target[observations.rows.point[rows]]
        np.add.at(pull, position, weight[:, None] * apart)
        moves = -pull / np.where(alone, 1.0, left)[:, None]
        return cls(points, position, left / observations.point_weight[points], moves * ~alone[:, None])


def _outputs_without(
    resolvent: Resolvent, observations: Observations, alphas: Array, part: _Leaving, r: Array
) -> Array:
    """f (a, g, q) at the rows of a fold when they are held out, for residuals r (a, g, q): block downdate of the
    smoother.

    With Q = S^-1 P S, share t of the weight that stays and shift m of the mean target, the change u
    of f from the mean target solves (t + alpha Q (1 - t)) u = t m - r - alpha Q t m.
    """
    g, t = part.points, part.stays
    s = resolvent.root_weight[g]
    aQ = resolvent.left_block(g, alphas) * (s / s[:, None])
    moved = t[:, None] * part.moves
    try:
        u = np.linalg.solve(aQ * (1.0 - t) + np.diag(t), moved - r - aQ @ moved)
    except np.linalg.LinAlgError as problem:
        raise NumericalError(
            f"{len(g)} rows that are held out together determine a part of the fit alone; hold out fewer rows at "
            "a time, or use a larger alpha"
        ) from problem
    f: Array = (observations.point_target[g] + u)[:, part.position]
    return f
