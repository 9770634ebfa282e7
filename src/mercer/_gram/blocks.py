"""Gram matrices and kernel blocks, with validation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer._gram.budget import Budget
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array, Floats
from mercer.errors import KernelError
from mercer.kernels._base import Kernel
from mercer.rows._table import in_double, n_rows, take

# Size of a block of kernel values when coefficients are applied: 32 MiB of float64.
BLOCK_SIZE = 2**22
# Range of kernel values whose squares and reciprocals are representable, by type.
INVERTIBLE_SIZES = {np.dtype(np.float64): (1e-100, 1e100), np.dtype(np.float32): (1e-30, 1e30)}
# The matrix, its weighted copy, the eigenvectors, and LAPACK's workspace of two more.
MATRICES_HELD = 5


def gram(kernel: Kernel, X: Any, *, budget: Budget, matrices: int = MATRICES_HELD) -> Floats:
    """K = k(X, X) (n, n); the budget for ``matrices`` such matrices is checked before, finite values after."""
    n = n_rows(X)
    budget.require(gram_bytes(n, matrices), f"the ({n}, {n}) kernel matrix and its decomposition")
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.asarray(kernel.block(X, kernel.centers(X)))
    _check_block(kernel, K, (n, n))
    check_size(kernel, K.diagonal())
    if not kernel.symmetric:
        _check_symmetric(kernel, K)
    return K


def gram_bytes(n: int, matrices: int = MATRICES_HELD) -> float:
    """Memory that the (n, n) kernel matrix and its decomposition, or ``matrices`` matrices, need at their peak."""
    return matrices * 8.0 * n * n


def kernel_blocks(
    kernel: Kernel, X: Any, centers: Any, m: int, *, width: int | None = None
) -> Iterator[tuple[slice, Floats]]:
    """Slices of rows and k(rows, centers) for m centers, with (rows, width) limited to a bounded block."""
    n = n_rows(X)
    step = max(1, BLOCK_SIZE // max(width or m, 1))
    values = evaluator(kernel, centers)
    for rows in cuts(n, step):
        K = values(take(X, rows))
        check_finite(kernel, K)
        yield rows, K


def cuts(n: int, step: int) -> list[slice]:
    """Rows 0 to n - 1, ``step`` at a time."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def evaluator(kernel: Kernel, centers: Any) -> Callable[..., Floats]:
    """X -> k(X, centers) (b, m), owned by the caller; work that depends only on the centers is done once, here.

    A second argument is a (b, m) array that may be reused for the result.

    Shapes are checked, values are not: the caller that sums them checks the sums, and calls :func:`check_finite`
    if those are not finite. Picklable. Without centers, the kernel is not called.
    """
    m = n_rows(centers)
    double = getattr(centers, "dtype", None) == np.float64
    return partial(_evaluate, kernel, kernel.evaluator(centers), m, double) if m else _no_values


@dataclass(frozen=True)
class AgainstCenters:
    """Base of folds over blocks of rows that need their kernel values with the centers; abstract."""

    kernel: Kernel
    centers: Any

    @cached_property
    def values(self) -> Callable[..., Floats]:
        """(X, workspace=None) -> k(X, centers), as returned by :func:`evaluator`; created once for a pass."""
        return evaluator(self.kernel, self.centers)


def _evaluate(
    kernel: Kernel, at: Callable[..., Any], m: int, double: bool, X: Any, workspace: Any = None
) -> Floats:
    """Values of a block; ``double``: centers are in float64, and so are the values of rows in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.asarray(at(in_double(X) if double else X, workspace))
    _check_shape(kernel, K, (n_rows(X), m))
    return K


def _no_values(X: Any, workspace: Any = None) -> Floats:
    return np.empty((n_rows(X), 0))


def cross(kernel: Kernel, X: Any, centers: Any) -> Floats:
    """k(X, centers) (n, m) in one piece, for few rows or few centers."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.asarray(kernel.block(X, centers))
    _check_block(kernel, K, (n_rows(X), n_rows(centers)))
    return K


def self_similarity(kernel: Kernel, X: Any) -> Floats:
    """k(x, x) (n,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        own = np.asarray(kernel.diag(X))
    check_finite(kernel, own)
    return own


def own_values(kernel: Kernel, X: Any, *, most: float | None = None) -> Array:
    """k(x, x) (n,) in float64; where it overflows it is ``most``, None: that is an error."""
    if most is None:
        return np.asarray(self_similarity(kernel, X), dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        own = np.asarray(kernel.diag(X), dtype=np.float64)
    return np.clip(np.nan_to_num(own, nan=most), 0.0, most)


def check_finite(kernel: Kernel, K: Floats) -> None:
    """Raise KernelError if some kernel values are infinite or NaN."""
    if not np.isfinite(K).all():
        raise KernelError(
            f"{kernel} returned {np.count_nonzero(~np.isfinite(K))} values that are not finite; "
            "scale the inputs or lower the kernel's parameters"
        )


def check_size(kernel: Kernel, own: Floats) -> None:
    """Raise KernelError if k(x, x) is, for all rows, too large or too small for products of kernel values.

    Values that are all zero are allowed: they are a kernel without information.
    """
    largest = float(np.abs(own).max(initial=0.0))
    least, most = INVERTIBLE_SIZES.get(own.dtype, INVERTIBLE_SIZES[np.dtype(np.float64)])
    if largest > 0 and not least <= largest <= most:
        raise KernelError(
            f"values of {kernel!r} are of size {largest:.1e}, and their products overflow or underflow in "
            f"{own.dtype}; scale the features with a StandardScaler, or multiply the kernel by a constant"
        )


def overflow(kernel: Kernel, dtype: Any) -> KernelError:
    """The error for finite kernel values whose products are not finite."""
    return KernelError(
        f"products of values of {kernel} are too large for {np.dtype(dtype).name}; "
        "scale the inputs or lower the kernel's parameters"
    )


def _check_block(kernel: Kernel, K: Floats, shape: tuple[int, int]) -> None:
    _check_shape(kernel, K, shape)
    check_finite(kernel, K)


def _check_shape(kernel: Kernel, K: Floats, shape: tuple[int, int]) -> None:
    if K.shape != shape:
        raise KernelError(
            f"{kernel} returned a block of shape {K.shape} instead of {shape}; return one value for each pair of "
            "rows"
        )


def asymmetry(K: Floats) -> float:
    """The largest difference between a matrix and its transpose; zero if it may be rounding."""
    apart = float(np.abs(K - K.T).max())
    return apart if apart > np.sqrt(rounding_unit(K.dtype)) * float(np.abs(K).max()) else 0.0


def _check_symmetric(kernel: Kernel, K: Floats) -> None:
    """Values given by the user may not be those of a kernel."""
    apart = asymmetry(K)
    if apart > 0.0:
        raise KernelError(
            f"the kernel matrix of {kernel} is not symmetric: k(x, z) and k(z, x) differ by up to {apart:.2g}; "
            "pass (K + K.T) / 2 if the difference is noise"
        )
