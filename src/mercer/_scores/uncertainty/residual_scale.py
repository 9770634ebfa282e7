"""How large residuals are near a row, compared with all: the mean size of held-out residuals of its neighbors.

Neighbors are near in the distance of the kernel, |x - z|² = k(x, x) - 2 k(x, z) + k(z, z), or as far from the
center of the rows, whatever the direction. Which, and how many, is chosen by how likely held-out residuals are
under a Laplace distribution of the scale that the others give them; where little is gained, the scale is constant.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._linalg.tolerance import SMALLEST_FLOAT
from mercer._types import Array

# Shares of the rows that are tried as neighbors, and the fewest rows whose mean size tells something.
NEIGHBOR_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
LEAST_NEIGHBORS = 6
# Gain of the log-likelihood from which on the scale is local.
LEAST_LOCAL_GAIN = 3.0
# Neighbors nearer than this, relative to the farthest one, are copies.
COPY_DISTANCE = 1e-12


@dataclass(frozen=True)
class LocalScale:
    """Rows with residuals of ``size`` (h, q), each for ``count`` (h,) rows; ``outward`` (h,) is the mean squared
    distance to the others.

    ``near`` (q,) is the number of neighbors of each target, zero if its scale is constant, and ``around`` (q,)
    whether they are those that are as far from the center.
    """

    size: Array
    count: Array
    outward: Array
    near: Array
    around: NDArray[np.bool_]

    @property
    def constant(self) -> bool:
        """Whether the scale of every target is constant."""
        return not self.near.any()

    def __call__(self, D: Array, held: Array | None = None) -> Array:
        """Scale (n, q) relative to the mean one, at squared distances D (n, h); O(n h log h).

        ``held`` (n, h) is what each row counts for; None: ``count``.
        """
        present = np.broadcast_to(self.count, D.shape) if held is None else held
        scale = np.ones((len(D), len(self.near)))
        for q in np.flatnonzero(self.near):
            E = _apart(_outward(D, present), self.outward) if self.around[q] else D
            scale[:, q] = _smoothed(E, present, self.size[:, [q]], self.count, self.near[q])[:, 0]
        return scale


def choose_scale(D: Array, held: Array, size: Array, count: Array) -> LocalScale:
    """The neighbors of each target, by held-out sizes (h, q) of rows at squared distances D (h, h).

    ``held`` (h, h) is what each row counts for when another one is held out. O(h² log h).
    """
    n, outward = float(count.sum()), _outward(D, held)
    near, around = np.zeros(size.shape[1]), np.zeros(size.shape[1], dtype=bool)
    best = n * np.log(np.maximum(_mean(size, count), SMALLEST_FLOAT)) - LEAST_LOCAL_GAIN
    shares = [share for share in NEIGHBOR_SHARES if share * n < n - 1 and n > LEAST_NEIGHBORS + 1]
    for k in np.unique([max(LEAST_NEIGHBORS, share * n) for share in shares]):
        for radial, E in ((False, D), (True, _apart(outward, outward))):
            scale = _smoothed(E, held, size, count, float(k))
            loss = count @ np.log(scale) + n * np.log(np.maximum(_mean(size / scale, count), SMALLEST_FLOAT))
            better = loss < best
            near, around = np.where(better, k, near), np.where(better, radial, around)
            best = np.minimum(loss, best)
    return LocalScale(size, count, outward, near, around)


def _smoothed(D: Array, present: Array, size: Array, count: Array, near: float) -> Array:
    """Mean sizes (n, q), with one more row of mean size, relative to the mean of all.

    Weights exp(-2 D / r²) reach as far as r, within which there is this number of rows.
    """
    order, rows = np.argsort(D, axis=1), np.arange(len(D))
    reached = np.cumsum(np.take_along_axis(present, order, axis=1), axis=1) >= near * (1.0 - 1e-12)
    last = np.where(reached.any(axis=1), reached.argmax(axis=1), D.shape[1] - 1)
    reach = np.maximum(D[rows, order[rows, last]], COPY_DISTANCE * D.max(initial=0.0))
    W = present * np.exp(-2.0 * D / np.where(reach > 0, reach, 1.0)[:, None])
    mean = _mean(size, count)
    relative = np.where(mean > 0, size / np.where(mean > 0, mean, 1.0), 1.0)
    return np.asarray((W @ relative + 1.0) / (W.sum(axis=1, keepdims=True) + 1.0))


def _outward(D: Array, present: Array) -> Array:
    """Mean squared distance (n,) to the others: that to their center, and a constant."""
    return np.asarray(np.einsum("ij,ij->i", D, present) / np.maximum(present.sum(axis=1), 1.0))


def _apart(a: Array, b: Array) -> Array:
    """Squared differences (n, h)."""
    return (a[:, None] - b) ** 2


def _mean(size: Array, count: Array) -> Array:
    return np.asarray(count @ size / count.sum())
