"""Intercepts of non-smooth losses: where a whole interval of them is best, the one in its middle."""

import numpy as np

from mercer._solvers.programs.losses import Kinks
from mercer._types import Array

# Slopes of the whole loss that are smaller than this share of the largest are zero.
NO_SLOPE = 1e-9


def to_middle(form: Kinks, weight: Array, f: Array) -> float:
    """What is to be added to outputs f (n,) of rows with weights (n,) for the best constant.

    Of an interval the middle, or of one with a single end the nearest point. The slope of the whole loss is a
    step function of the constant, so this costs as much as sorting.
    """
    up, down = weight * form.up, weight * form.down
    before, after = form.target - form.epsilon - f, form.target + form.epsilon - f
    kink, jump = np.concatenate([before, after]), np.concatenate([up, down])
    some = np.flatnonzero(jump)
    order = some[np.argsort(kink[some], kind="stable")]
    slope = np.cumsum(jump[order]) - up.sum()
    none = NO_SLOPE * float(up.sum() + down.sum())
    left, right = np.searchsorted(slope, -none), np.searchsorted(slope, none, side="right")
    ends = np.append(kink[order], np.inf)
    low = -np.inf if up.sum() <= none else float(ends[left])
    high = float(ends[right])
    middle = 0.5 * (low + high)
    return middle if np.isfinite(middle) else float(np.clip(0.0, low, high))
