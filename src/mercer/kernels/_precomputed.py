"""Kernels given by the user: a matrix of values, or a function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._types import Floats
from mercer.errors import KernelError
from mercer.kernels._base import Kernel
from mercer.kernels._input_kinds import InputKind
from mercer.kernels._matrices import Matrix
from mercer.rows._table import dense, n_rows

# A matrix, or a list of any objects.
Objects = Any
# Rows whose k(x, x) is taken from one block.
DIAGONAL_ROWS = 16


class Foreign(Kernel):
    """Values given by the user, who declares whether the kernel is positive semidefinite; abstract."""

    psd: bool

    @property
    def positive_semidefinite(self) -> bool:
        return bool(self.psd)


class Precomputed(Foreign):
    """k(x_i, z_j) = X[i, j]: the rows are precomputed kernel values.

    In ``fit``, X is the (n, n) Gram matrix and the centers are the positions ``np.arange(n)``; in ``predict``, X
    is (n_test, n) with one column for each training row.

    Parameters
    ----------
    psd : bool
        Declares that the matrix is positive semidefinite.

    Examples
    --------
    >>> Precomputed().block([[2.0, 1.0], [1.0, 3.0]], [1])
    array([[1.],
           [3.]])
    """

    def __init__(self, psd: bool = False) -> None:
        self.psd = psd

    @property
    def input_kind(self) -> InputKind:
        return "values"

    def block(self, X: Matrix, Z: ArrayLike) -> Floats:
        """The columns of X at the positions Z."""
        K, columns = _values(X), np.asarray(Z)
        if columns.ndim != 1 or not np.issubdtype(columns.dtype, np.integer):
            raise KernelError(
                f"centers of a precomputed kernel are {columns.dtype} of shape {columns.shape}; pass column "
                "positions, a 1-D array of integers"
            )
        if K.ndim != 2 or ((columns < 0) | (columns >= K.shape[1])).any():
            raise KernelError(
                f"columns {columns.min()} to {columns.max()} are needed, but the precomputed block has shape "
                f"{K.shape}; pass one column for each training row"
            )
        return K[:, columns]

    def diag(self, X: Matrix) -> Floats:
        """The diagonal of a square X."""
        K = _values(X)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise KernelError(
                f"k(x, x) is known only for the square Gram matrix, but this matrix has shape {K.shape}; use a "
                "method that does not need k(x, x)"
            )
        return np.diagonal(K).copy()


class FromCallable(Foreign):
    """k(x_i, z_j) = function(X, Z)[i, j].

    X and Z are passed to the function as they are: arrays, or lists of any objects. For a function of two single
    objects, see :func:`pairwise`.

    Parameters
    ----------
    function : callable
        Takes X with n and Z with m rows, and returns finite numbers of shape (n, m). Fitted models share it: an
        object with attributes that change later changes their predictions.
    psd : bool
        Declares that the function is a positive semidefinite kernel.

    Examples
    --------
    >>> FromCallable(np.minimum.outer).block([1.0, 2.0], [0.5, 1.5])
    array([[0.5, 1. ],
           [0.5, 1.5]])
    """

    def __init__(self, function: Callable[[Objects, Objects], ArrayLike], psd: bool = False) -> None:
        self.function = function
        self.psd = psd

    @property
    def input_kind(self) -> InputKind:
        return "objects"

    def block(self, X: Objects, Z: Objects) -> Floats:
        K = _values(self.function(X, Z), copy=True)
        expected = (n_rows(X), n_rows(Z))
        if K.shape != expected:
            raise KernelError(
                f"the kernel function returned shape {K.shape} instead of {expected}, one value for each row of X "
                "and each row of Z; wrap a function of two objects in pairwise(function)"
            )
        if not np.isfinite(K).all():
            raise KernelError(
                f"{np.count_nonzero(~np.isfinite(K))} of {K.size} kernel values are not finite; "
                "remove missing values from the rows or rescale them"
            )
        return K

    def diag(self, X: Objects) -> Floats:
        """From one call of the function for every few rows: a call may cost as much as some values."""
        pieces = [X[i : i + DIAGONAL_ROWS] for i in range(0, n_rows(X), DIAGONAL_ROWS)]
        values = [np.diagonal(self.block(some, some)) for some in pieces]
        return np.concatenate(values) if values else np.zeros(0)


@dataclass(frozen=True)
class Pairwise:
    """(X, Z) -> [[function(x, z) for z in Z] for x in X]; see :func:`pairwise`."""

    function: Callable[[Any, Any], float]

    def __call__(self, X: Sequence[Any], Z: Sequence[Any]) -> NDArray[np.float64]:
        K = np.empty((n_rows(X), n_rows(Z)))
        for i, x in enumerate(X):
            for j, z in enumerate(Z):
                K[i, j] = self.function(x, z)
        return K


def pairwise(function: Callable[[Any, Any], float]) -> Pairwise:
    """A function of two lists of objects, from a function of two objects; n m calls.

    Picklable if the function is.

    Examples
    --------
    >>> def shared_letters(a, b):
    ...     return len(set(a) & set(b))
    >>> FromCallable(pairwise(shared_letters)).block(["kernel", "trick"], ["mercer"])
    array([[2.],
           [2.]])
    """
    return Pairwise(function)


def _values(K: Any, copy: bool = False) -> Floats:
    """As a dense array of float32 or float64."""
    values = dense(K)
    dtype = values.dtype if values.dtype in (np.float32, np.float64) else np.float64
    return values.astype(dtype, copy=copy)
