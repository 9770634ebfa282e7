r"""Outputs of rows for the model fitted without them, exact, for every penalty.

The smoother of penalized least squares is linear, so a row of weight w at a point with smoother diagonal h and
residual r, of which the weight ``unit`` is held out, has the leave-one-out residual r / (1 - h unit/w), with 1 - h
= alpha P_gg from the spectrum: no cancellation, however small alpha is. For unit = w this is the closed form of
section 4.4 in Mika (2002), whose printed rank-two update needs the row of the intercept as well. Folds of
several rows require a system of their size, or, with few centers, of the number of centers or of the other points:
whichever takes less time.

Only ``unit`` of the weight of a row is held out, so that a row of weight two and a repeated row give the same
numbers; folds are held out with all their weight.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer._linalg import factor_spd
from mercer._solvers.spectrum import Observations, Resolvent
from mercer._types import Array, Indices
from mercer.errors import NumericalError

# Size of one stack of matrices when folds are held out: 64 MiB.
STACK_SIZE = 2**23
# Small problems have so much: 2 MiB.
LEAST_SPACE = 2**18
# Operations of a fit without a fold take this many times as long as those of stacked systems: small factors.
REFIT_SLOWNESS = 2.0


def loo_outputs(
    resolvent: Resolvent, observations: Observations, alphas: Array, fold: Indices | None = None
) -> Array:
    """Outputs for each row of the model fitted without it (a, n, q), exact, for every alpha > 0.

    ``fold`` (n,) numbers the rows that are held out together; None: each row alone. O(u² a q), and with folds
    O(n u a) times the size of a fold, or with m centers O(u m² + a m³) for each fold if that is less.
    """
    if fold is None:
        return _leave_one_out(resolvent, observations, np.asarray(alphas))
    held = _HeldOut.of(observations, fold)
    return _fold_outputs(resolvent, observations, np.asarray(alphas), held)[:, held.entry]


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
    one_minus_leverage = resolvent.one_minus_leverage(alphas)[:, point]
    denominator = one_minus_leverage + (1.0 - one_minus_leverage) * kept
    outputs: Array = _residual(resolvent, observations, alphas)[:, point]
    outputs += observations.Y - observations.point_target[point]
    outputs /= denominator[:, :, None]
    return np.subtract(observations.Y, outputs, out=outputs)


@dataclass(frozen=True)
class _HeldOut:
    """The points of every fold, fold after fold: c entries, one for each pair of a fold and a point in it.

    ``point`` (c,); ``stays`` (c,), the share of its weight outside the fold, and ``moves`` (c, q), the shift
    of its mean target without the fold; ``sizes`` (k,), the entries of each fold; ``entry`` (n,) of each row.
    """

    point: Indices
    stays: Array
    moves: Array
    sizes: Indices
    entry: Indices

    @classmethod
    def of(cls, observations: Observations, fold: Indices) -> "_HeldOut":
        u, weight, own = observations.rows.n_points, observations.weight, observations.rows.point
        _, number = np.unique(fold, return_inverse=True)
        pairs, entry = np.unique(number * u + own, return_inverse=True)
        point = pairs % u
        alone = np.bincount(entry) == observations.point_count[point]
        # If all copies are held out, exactly nothing stays, not a rounding error.
        left = np.where(alone, 0.0, observations.point_weight[point] - np.bincount(entry, weight))
        pull = np.zeros((len(pairs), observations.Y.shape[1]))
        np.add.at(pull, entry, weight[:, None] * (observations.Y - observations.point_target[own]))
        moves = np.where(alone[:, None], 0.0, -pull / np.where(alone, 1.0, left)[:, None])
        return cls(point, left / observations.point_weight[point], moves, np.bincount(pairs // u), entry)

    def stacks(self) -> Iterator[Indices]:
        """Entries (f, g) of the f folds with g points, for every g."""
        first = np.cumsum(self.sizes) - self.sizes
        for g in np.unique(self.sizes):
            yield first[self.sizes == g][:, None] + np.arange(g)


def _fold_outputs(resolvent: Resolvent, observations: Observations, alphas: Array, held: _HeldOut) -> Array:
    """f (a, c, q) at the entries, without their fold."""
    outputs = np.empty((len(alphas), len(held.point), observations.Y.shape[1]))
    residual = _residual(resolvent, observations, alphas)
    for stack in held.stacks():
        again = np.array([_refitting_is_faster(resolvent, held.stays[own], len(alphas)) for own in stack])
        for own in stack[again]:
            outputs[:, own] = _refitted(resolvent, observations, alphas, held, own)
        for a, some in _pieces(resolvent, stack[~again], len(alphas)):
            r = residual[a][:, held.point[some]]
            outputs[a, some] = _downdated(resolvent, observations, alphas[a], held, some, r)
    return outputs


def _pieces(resolvent: Resolvent, stack: Indices, n_alphas: int) -> Iterator[tuple[slice, Indices]]:
    """Alphas, and folds of a stack (f, g) of entries, for which there is memory at once."""
    # At most two matrices of the size of U, for which there was memory during the decomposition.
    most = min(STACK_SIZE, max(2 * len(resolvent.root_weight) * resolvent.width, LEAST_SPACE))
    g = stack.shape[1]
    systems = max(1, most // (g * (resolvent.width + 4 * g) + 1))
    step = min(systems, n_alphas)
    for f in range(0, len(stack), systems // step):
        for a in range(0, n_alphas, step):
            yield slice(a, a + step), stack[f : f + systems // step]


def _downdated(
    resolvent: Resolvent, observations: Observations, alphas: Array, held: _HeldOut, stack: Indices, r: Array
) -> Array:
    """f (a, f, g, q) at the entries (f, g) of folds without them, for residuals r (a, f, g, q): block downdates of
    the smoother.

    With Q = S^-1 P S, share t of the weight that stays and shift m of the mean target, the change u
    of f from the mean target solves (t + alpha Q (1 - t)) u = t m - r - alpha Q t m.
    """
    points, t = held.point[stack], held.stays[stack]
    s, g = resolvent.root_weight[points], stack.shape[1]
    aQ = resolvent.one_minus_leverage_block(points, alphas) * (s[:, None, :] / s[:, :, None])
    moved = t[:, :, None] * held.moves[stack]
    try:
        u = np.linalg.solve(aQ * (1.0 - t[:, None, :]) + t[:, :, None] * np.eye(g), moved - r - aQ @ moved)
    except np.linalg.LinAlgError as problem:
        raise NumericalError(
            f"{g} rows that are held out together determine a part of the fit alone; hold out fewer rows at "
            "a time, or use a larger alpha"
        ) from problem
    return observations.point_target[points] + u


def _refitting_is_faster(resolvent: Resolvent, t: Array, n_alphas: int) -> bool:
    """Whether a fit without g points, of which shares t (g,) stay, takes less time than their systems."""
    if resolvent.features is None:
        return False
    (u, m), g = resolvent.features.shape, len(t)
    rest = u - int(np.count_nonzero(t == 0.0))
    size = min(rest, m)
    refit, systems = rest * m * size + n_alphas * size**3 / 3, n_alphas * g**2 * (2 * m + 2 * g / 3)
    # With no point left there is nothing to fit.
    return bool(rest and REFIT_SLOWNESS * refit < systems)


def _refitted(
    resolvent: Resolvent, observations: Observations, alphas: Array, held: _HeldOut, own: Indices
) -> Array:
    """f (a, g, q) at the entries (g,) of a fold, from a fit of the features to the weight that stays."""
    assert resolvent.features is not None
    g, share, Y = held.point[own], np.ones(len(resolvent.root_weight)), observations.point_target.copy()
    share[g], Y[g] = held.stays[own], Y[g] + held.moves[own]
    rest = np.flatnonzero(share)
    root = np.sqrt(share[rest])[:, None]
    s, A = root * resolvent.root_weight[rest, None], resolvent.features[rest]
    A *= root
    level = float(resolvent.has_intercept) / float((s * s).sum())
    mean, target_mean = level * (s.T @ A), level * (s.T @ (s * Y[rest]))
    A -= s * mean
    slopes = _ridge(A, s * (Y[rest] - target_mean), alphas)
    return (resolvent.features[g] / resolvent.root_weight[g, None] - mean) @ slopes + target_mean


def _ridge(A: Array, B: Array, alphas: Array) -> Array:
    """(A'A + alpha)^-1 A'B (a, m, q) for A (r, m), from the smaller of A'A and AA'."""
    wide = len(A) < A.shape[1]
    G, C = (A @ A.T, B) if wide else (A.T @ A, A.T @ B)
    solved = np.stack([factor_spd(G + alpha * np.eye(len(G))).solve(C) for alpha in alphas])
    return A.T @ solved if wide else solved
