"""Geometry of feature space: distances, centering, and whether a kernel is positive semidefinite."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._gram.blocks import asymmetry, check_finite, gram
from mercer._gram.budget import Budget
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array, Floats
from mercer._validation import finite, square
from mercer.errors import KernelError
from mercer.kernels import Kernel, as_kernel
from mercer.kernels._algebra.compositions import squared_distances


@dataclass(frozen=True)
class Definiteness:
    """Whether a kernel matrix is positive semidefinite, up to rounding.

    Attributes
    ----------
    least : float
        The least eigenvalue.
    negative : float
        The sum of the negative eigenvalues over the sum of all absolute values: between 0 and 1.
    rounding : float
        Eigenvalues of this size cannot be told from zero.
    """

    least: float
    negative: float
    rounding: float

    @property
    def semidefinite(self) -> bool:
        """Whether the least eigenvalue is not below zero by more than rounding."""
        return self.least >= -self.rounding


def check_psd(kernel: Any, X: Any = None) -> Definiteness:
    """The least eigenvalue of K = k(X, X), and the negative part of all; O(n³).

    A function is a kernel only if K is symmetric and has no negative eigenvalue, for any rows X: negative ones
    prove that it is not, and their absence for some rows only that these do not show it.

    Parameters
    ----------
    kernel : Kernel with numbers as parameters, callable or array of shape (n, n)
        A kernel, or its matrix.
    X : rows, n of them
        None if the matrix is given.

    Examples
    --------
    >>> from mercer.kernels import Sigmoid
    >>> found = check_psd(Sigmoid(gamma=1.0, coef0=-1.0), [[0.0], [1.0], [2.0]])
    >>> found.semidefinite, round(found.least, 4)
    (False, -1.2698)
    """
    matrix = _symmetric(kernel) if X is None else gram(as_kernel(kernel), X, budget=Budget.from_parameter(None))
    precision = rounding_unit(np.float32 if matrix.dtype == np.float32 else np.float64)
    K = np.asarray(matrix, dtype=np.float64)
    values = np.linalg.eigvalsh(K)
    size = np.abs(values)
    rounding = float(len(K) * precision * size.max())
    negative = float(size[values < -rounding].sum() / size.sum()) if size.sum() > 0 else 0.0
    return Definiteness(float(values[0]), negative, rounding)


def distances(kernel: Kernel, X: Any, Z: Any = None) -> Floats:
    """|phi(x) - phi(z)| = sqrt(k(x, x) - 2 k(x, z) + k(z, z)) (n, m) in feature space; Z=None: among the rows X.

    Rounding of the three values makes distances uncertain by about sqrt(eps k(x, x)).

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> distances(Linear(), [[0.0, 0.0], [3.0, 4.0]])
    array([[0., 5.],
           [5., 0.]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        D = squared_distances(kernel, X, X if Z is None else Z)
    check_finite(kernel, D)
    if Z is None:
        np.fill_diagonal(D, 0.0)
    return np.sqrt(D, out=D)


def centered(K: Any, among: Any = None) -> Array:
    """<phi(x_i) - mean, phi(z_j) - mean> (n, m): kernel values K with the mean of the training rows as origin.

    K_ij minus the mean of row i, minus mean j of the columns of the kernel matrix of the training rows, plus the
    mean of that matrix. ``among`` (m, m) is that matrix if K (n, m) are values of other rows with the training
    rows; None: K itself. O(n m), without the projection I - 11'/m. Schölkopf, Smola and Müller (1998), Nonlinear
    component analysis as a kernel eigenvalue problem, appendix A.

    Examples
    --------
    >>> centered([[2.0, 0.0], [0.0, 2.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    K = square("K", K) if among is None else np.atleast_2d(finite("K", K))
    known = K if among is None else square("among", among)
    if K.shape[1] != len(known):
        raise KernelError(
            f"K has {K.shape[1]} columns and among {len(known)}; pass a column for each training row"
        )
    return np.asarray(K - K.mean(axis=1, keepdims=True) - known.mean(axis=0) + known.mean())


def _symmetric(K: Any) -> Array:
    """A kernel matrix, if it is symmetric."""
    array = square("kernel", K)
    apart = asymmetry(array)
    if apart > 0.0:
        raise KernelError(f"the matrix is not symmetric: k(x, z) and k(z, x) differ by up to {apart:.2g}")
    return array
