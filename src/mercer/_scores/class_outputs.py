"""Outputs for classes, and outputs relative to the first class."""

from typing import Any

import numpy as np

from mercer._types import Array, Indices


def class_targets(label: Indices, n_classes: int) -> Array:
    """Two classes: one column of -1 and +1. More: one indicator column for each class."""
    if n_classes == 2:
        return np.where(label == 1, 1.0, -1.0)[:, None]
    return np.eye(n_classes)[label]


def class_shares(t: Array, n: float) -> Array:
    """Shares (k,) of the classes, from sums t (q,) of targets of rows with total weight n."""
    return np.array([n - t[0], n + t[0]]) / (2 * n) if len(t) == 1 else t / n


def class_numbers(Y: Array) -> Indices:
    """The class (n,) of each row of targets."""
    return np.asarray(Y[:, 0] > 0, dtype=np.intp) if Y.shape[1] == 1 else Y.argmax(axis=1)


def relative(outputs: Any) -> Any:
    """(..., n, k - 1) differences from the first class; the single output of two classes already is one."""
    return outputs if outputs.shape[-1] == 1 else outputs[..., 1:] - outputs[..., :1]
