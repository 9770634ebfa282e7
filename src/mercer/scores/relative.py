"""Outputs for classes, and outputs relative to the first class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def class_targets(label: NDArray[np.intp], n_classes: int) -> NDArray[np.float64]:
    """Two classes: one column of -1 and +1. More: one indicator column for each class."""
    if n_classes == 2:
        return np.where(label == 1, 1.0, -1.0)[:, None]
    return np.eye(n_classes)[label]


def relative(outputs: Any) -> Any:
    """(..., n, k - 1) differences to the first class; the single output of two classes is one already."""
    return outputs if outputs.shape[-1] == 1 else outputs[..., 1:] - outputs[..., :1]
