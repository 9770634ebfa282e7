"""Gram matrices and kernel blocks, checked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer.errors import KernelError
from mercer.gram.budget import Budget
from mercer.kernels.base import Kernel, Sum, named_parts
from mercer.rows.table import n_rows, take
from mercer.types import Floats

# Numbers in one block of kernel values when coefficients are applied: 32 MiB of float64.
BLOCK_SIZE = 2**22
# Sizes of kernel values whose squares, and one over them, can be computed with, by their type.
SIZES = {np.dtype(np.float64): (1e-100, 1e100), np.dtype(np.float32): (1e-30, 1e30)}
# The matrix, its weighted copy, the one that becomes the eigenvectors, and LAPACK's workspace of two more.
MATRICES_HELD = 5


def gram(kernel: Kernel, X: Any, *, budget: Budget) -> Floats:
    """K = k(X, X) (n, n), checked against the budget before it is allocated, and for finite values after."""
    n = n_rows(X)
    budget.require(gram_bytes(n), f"the ({n}, {n}) kernel matrix and its decomposition")
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.asarray(kernel.block(X, kernel.centers(X)))
    _check_block(kernel, K, (n, n))
    check_size(kernel, K.diagonal())
    if not kernel.symmetric:
        _check_symmetric(kernel, K)
    return K


def gram_bytes(n: int) -> float:
    """Memory that the (n, n) kernel matrix and its decomposition need at their peak."""
    return MATRICES_HELD * 8.0 * n * n


def kernel_blocks(
    kernel: Kernel, X: Any, centers: Any, m: int, *, width: int | None = None
) -> Iterator[tuple[slice, Floats]]:
    """Slices of rows and k(rows, centers) for m centers, so few that (rows, width) fits a bounded block."""
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
    """X -> k(X, centers) (b, m), in the caller's hands; what the centers cost is paid here, once for a pass.

    A second argument is a (b, m) array that may become the result.

    Shapes are checked, values are not: whoever adds them up looks at the sums, and asks :func:`check_finite`
    where those are not finite. Can be pickled. Kernels are not asked for values of no centers.
    """
    m = n_rows(centers)
    return partial(_evaluate, kernel, kernel.at(centers), m) if m else _no_values


@dataclass(frozen=True)
class AgainstCenters:
    """What a fold over blocks of rows needs for their kernel values with the centers; abstract."""

    kernel: Kernel
    centers: Any

    @cached_property
    def values(self) -> Callable[..., Floats]:
        """(X, room=None) -> k(X, centers), as :func:`evaluator` gives it; made once for a pass."""
        return evaluator(self.kernel, self.centers)


def term_evaluators(kernel: Kernel, centers: Any) -> dict[str, Callable[..., Floats]]:
    """X -> k_p(X, centers) for every term k_p of a sum k = sum_p k_p, by its name; see :func:`evaluator`."""
    return {name: evaluator(term, centers) for name, term in named_parts(kernel, Sum)}


def _evaluate(kernel: Kernel, at: Callable[..., Any], m: int, X: Any, room: Any = None) -> Floats:
    K = np.asarray(at(X, room))
    _check_shape(kernel, K, (n_rows(X), m))
    return K


def _no_values(X: Any, room: Any = None) -> Floats:
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


def check_finite(kernel: Kernel, K: Floats) -> None:
    """Raise KernelError if some kernel values are infinite or no numbers."""
    if not np.isfinite(K).all():
        raise KernelError(
            f"{kernel} returned {np.count_nonzero(~np.isfinite(K))} values that are not finite; "
            "scale the inputs or lower the kernel's parameters"
        )


def check_size(kernel: Kernel, own: Floats) -> None:
    """Raise KernelError if k(x, x) is, for all rows, so large or small that products of kernel values are lost.

    Values that are all zero are a kernel that tells nothing, not one that is lost.
    """
    largest = float(np.abs(own).max(initial=0.0))
    least, most = SIZES.get(own.dtype, SIZES[np.dtype(np.float64)])
    if largest > 0 and not least <= largest <= most:
        raise KernelError(
            f"values of {kernel!r} are of size {largest:.1e}, and products of them are lost in {own.dtype}; bring "
            "the features to unit scale with a StandardScaler, or multiply the kernel by a constant"
        )


def overflow(kernel: Kernel, dtype: Any) -> KernelError:
    """The error for finite kernel values whose products are not."""
    return KernelError(
        f"products of values of {kernel} are too large for {np.dtype(dtype).name}; "
        "scale the inputs or lower the kernel's parameters"
    )


def _check_block(kernel: Kernel, K: Floats, shape: tuple[int, int]) -> None:
    _check_shape(kernel, K, shape)
    check_finite(kernel, K)


def _check_shape(kernel: Kernel, K: Floats, shape: tuple[int, int]) -> None:
    if K.shape != shape:
        raise KernelError(f"{kernel} returned a block of shape {K.shape} where {shape} was expected")


def _check_symmetric(kernel: Kernel, K: Floats) -> None:
    """Values that come from elsewhere may be no kernel at all."""
    largest = float(np.abs(K).max())
    apart = float(np.abs(K - K.T).max())
    if apart > np.sqrt(np.finfo(K.dtype).eps) * largest:
        raise KernelError(
            f"the kernel matrix of {kernel} is not symmetric: k(x, z) and k(z, x) differ by up to {apart:.2g}; "
            "pass (K + K.T) / 2 if that is noise"
        )
