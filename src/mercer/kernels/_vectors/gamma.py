"""The parameter gamma of kernels: a number, one for each feature, or a word that rows resolve."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer._types import Floats
from mercer._validation import real
from mercer.errors import KernelError
from mercer.kernels._base import Kernel
from mercer.kernels._length_scales import variance
from mercer.kernels._matrices import Matrix, as_matrix
from mercer.kernels._parameters import nonnegative

Gamma = float | str | ArrayLike

# gamma="loo" tries these multiples of 1 / median distance, smoothest first.
GAMMA_GRID = 2.0 ** np.linspace(-7.0, 5.0, 15)


def gammas_around(kernel: Kernel, median: Callable[[], float], allowed: str) -> Floats:
    """1 / the median distance for gamma="median", a grid of its multiples for "loo"; ``allowed`` are all words."""
    if kernel.gamma not in ("median", "loo"):
        raise unknown_word(kernel, kernel.gamma, allowed)
    return (GAMMA_GRID if kernel.gamma == "loo" else np.ones(1)) / median()


def scale_gamma(X: Matrix, weight: ArrayLike | None, length_power: int) -> float:
    """1 / (d s^length_power) with the standard deviation s of all entries, or 1 if they are constant."""
    spread = variance(X, weight) ** (length_power / 2)
    return 1.0 / (as_matrix(X).shape[1] * spread) if spread > 0 else 1.0


def feature_gamma(kernel: Kernel, gamma: Gamma, X: Matrix) -> float | Floats:
    """gamma as one number, or one for each column of X, in the precision of X."""
    if isinstance(gamma, str):
        raise unresolved(kernel, gamma)
    values = np.asarray(nonnegative("gamma", gamma)) if np.ndim(gamma) == 0 else real("gamma", gamma)
    if values.ndim > 0 and values.shape != (X.shape[1],):
        raise KernelError(
            f"gamma has shape {values.shape}, but rows have {X.shape[1]} features; pass one number, or one for "
            "each feature"
        )
    if not (np.isfinite(values) & (values >= 0)).all():
        raise KernelError(f"gamma={gamma!r}; its numbers must be finite and >= 0")
    values = _in_precision(values, X.dtype)
    return values if values.ndim else float(values)


def _in_precision(gamma: Floats, dtype: Any) -> Floats:
    """gamma in the type of the rows, if it neither overflows nor underflows there."""
    with np.errstate(over="ignore", under="ignore"):
        values = gamma.astype(dtype)
    if not np.isfinite(values).all() or ((values == 0) & (gamma > 0)).any():
        raise KernelError(
            f"gamma={gamma.tolist()} cannot be represented in {np.dtype(dtype).name}, the type of the rows; scale "
            "the features with a StandardScaler, or pass float64"
        )
    return values


def unresolved(kernel: Kernel, word: str) -> KernelError:
    """The error for a word where a number is needed."""
    return KernelError(
        f'gamma="{word}" of {type(kernel).__name__} is not a number yet; pass a number, or use one of '
        "kernel.candidates(X)"
    )


def unknown_word(kernel: Kernel, word: object, known: str) -> KernelError:
    """The error for a word that means nothing."""
    return KernelError(f'gamma="{word}" is not known to {type(kernel).__name__}; pass a number or {known}')
