"""Tolerances that depend on the type of floating-point numbers."""

from typing import Any

import numpy as np


def rounding_unit(dtype: Any, factor: float = 1.0) -> Any:
    """A multiple of the distance from 1 to the next larger number, in the type's own precision."""
    unit = np.finfo(dtype).eps
    return unit if factor == 1.0 else factor * unit


def smallest(dtype: Any) -> Any:
    """The smallest positive number with all digits: for denominators and logarithms that must not be zero."""
    return np.finfo(dtype).tiny


def by_precision(dtype: Any, *, double: float, single: float) -> float:
    """``single`` for float32, which cannot keep the tolerance ``double`` of float64."""
    return single if np.dtype(dtype) == np.float32 else double


# In float64, as a plain number.
SMALLEST_FLOAT = float(smallest(np.float64))
