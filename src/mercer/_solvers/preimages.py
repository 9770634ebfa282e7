"""Rows whose images in feature space are nearest to given points there."""

import numpy as np

from mercer._gram import cross
from mercer._gram.blocks import BLOCK_SIZE, cuts
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array
from mercer.kernels import RBF, Linear

# Steps of the fixed-point iteration, and the change, in units of the width, at which it ends.
MOST_FIXED_POINT_STEPS, LEAST_MOVE = 200, 1e-6


def preimages(kernel: RBF | Linear, Z: Array, coef: Array) -> Array:
    """Rows (n, d) nearest to sum_i coef_i phi(z_i), from coef (n, m) and centers (m, d)."""
    if isinstance(kernel, Linear):
        origin = np.zeros(Z.shape[1]) if kernel.origin is None else np.asarray(kernel.origin)
        return np.asarray(origin + coef @ (Z - origin))
    if len(coef) == 0:
        return np.zeros((0, Z.shape[1]))
    return np.concatenate(
        [fixed_point(kernel, Z, coef[rows]) for rows in cuts(len(coef), BLOCK_SIZE // len(Z) + 1)]
    )


def fixed_point(kernel: RBF, Z: Array, coef: Array) -> Array:
    """x <- the mean of z with weights coef k(x, z), from the nearest center on: Mika et al. (1999)."""
    gamma = float(np.max(kernel.gamma))
    found: Array = Z[(coef @ cross(kernel, Z, Z)).argmax(axis=1)]
    moving = np.arange(len(coef))
    for _ in range(MOST_FIXED_POINT_STEPS):
        weight = coef[moving] * cross(kernel, found[moving], Z)
        total = weight.sum(axis=1)
        # Where weights cancel, the iteration has nowhere to go.
        able = np.abs(total) > rounding_unit(np.float64) * np.abs(weight).sum(axis=1)
        moving, weight, total = moving[able], weight[able], total[able]
        step = (weight @ Z) / total[:, None] - found[moving]
        found[moving] += step
        moving = moving[gamma * (step**2).sum(axis=1) > LEAST_MOVE**2]
        if len(moving) == 0:
            break
    return found
