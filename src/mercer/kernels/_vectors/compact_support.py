"""Kernels with compact support: zero beyond a radius."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn.base import clone

from mercer._types import Floats
from mercer.errors import KernelError
from mercer.kernels._base import Kernel
from mercer.kernels._matrices import Matrix, as_matrices, as_matrix
from mercer.kernels._parameters import integer, positive
from mercer.kernels._vectors.gamma import Gamma
from mercer.kernels._vectors.stationary import Stationary


class Wendland(Stationary):
    """k(x, z) = (1 - r)_+^l p(r) with r = sqrt(gamma) |x - z|: zero for r >= 1, positive definite.

    The polynomial of minimal degree that is 2 ``smoothness`` times differentiable and positive definite for rows
    of at most ``dimension`` features; l = dimension // 2 + 2 smoothness + 1, so for many features the kernel is a
    narrow peak. (A truncated Gaussian kernel would not be positive definite.) Wendland (1995), "Piecewise
    polynomial, positive definite and compactly supported radial functions of minimal degree", Table 1.

    Parameters
    ----------
    smoothness : {0, 1, 2}
    gamma : float, array of shape (d,), "median", "scale" or "loo"
        As for :class:`RBF`; the radius is 1 / sqrt(gamma).
    dimension : int or None
        Largest number of features; None: that of the rows, set during the fit.

    Examples
    --------
    >>> Wendland(smoothness=1, gamma=1.0, dimension=3).block([[0.0], [2.0]], [[0.0], [0.5]])
    array([[1.    , 0.1875],
           [0.    , 0.    ]])
    """

    def __init__(self, smoothness: int = 1, gamma: Gamma = "loo", dimension: int | None = None) -> None:
        self.smoothness = smoothness
        self.gamma = gamma
        self.dimension = dimension

    @property
    def resolved(self) -> bool:
        return self.dimension is not None and super().resolved

    @property
    def _kink(self) -> bool:
        return self.smoothness == 0

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> list[Kernel]:
        """As for every stationary kernel, with the number of features of X."""
        d = as_matrix(X).shape[1]
        known = clone(self) if self.dimension is not None else clone(self).set_params(dimension=d)
        return Stationary.candidates(known, X, weight)

    def sparse_block(self, X: Floats, Z: Floats) -> Any:
        """k(x_i, z_j) as a CSR matrix (n, m), for dense rows and one gamma; O((n + m) log m + pairs).

        Pairs within the radius are found by a k-d tree, which is fast for up to about ten features.
        """
        X, Z = as_matrices(X, Z)
        gamma = positive("gamma of a sparse block", self.gamma)
        near = cKDTree(X).sparse_distance_matrix(cKDTree(Z), 1.0 / np.sqrt(gamma), output_type="coo_matrix")
        values = self._profile(-gamma * near.data**2)
        return sparse.csr_matrix((values, (near.row, near.col)), shape=(len(X), len(Z)))

    def formula(self, r: str) -> str:
        """The kernel as an expression in r, which is at most 1, in the syntax of C and Python."""
        l = self._power()
        smooth = [
            "1.0",
            f"({l + 1}.0 * R + 1.0)",
            f"({l * l + 4 * l + 3}.0 * R * R + {3 * l + 6}.0 * R + 3.0) / 3.0",
        ]
        return f"pow(1.0 - R, {l + self.smoothness}.0) * {smooth[self.smoothness]}".replace("R", r)

    def _profile(self, T: Floats) -> Floats:
        r: Floats = np.sqrt(-T)
        l = self._power()
        peak = np.maximum(1.0 - r, 0.0) ** (l + self.smoothness)
        if self.smoothness == 0:
            return np.asarray(peak)
        if self.smoothness == 1:
            return np.asarray(peak * ((l + 1) * r + 1.0))
        return np.asarray(peak * ((l * l + 4 * l + 3) * r * r + (3 * l + 6) * r + 3.0) / 3.0)

    def _slope(self, T: Floats) -> Floats:
        r: Floats = np.sqrt(-T)
        l, left = self._power(), np.maximum(1.0 - r, 0.0)
        if self.smoothness == 0:
            apart = r > 0
            return np.asarray(np.where(apart, 0.5 * l * left ** (l - 1) / np.where(apart, r, 1.0), 0.0))
        if self.smoothness == 1:
            return np.asarray(0.5 * (l + 1) * (l + 2) * left**l)
        return np.asarray((l + 3) * (l + 4) / 6.0 * left ** (l + 1) * ((l + 1) * r + 1.0))

    def _power(self) -> int:
        """The exponent l of the table, validated."""
        if self.dimension is None:
            raise KernelError("dimension is None; pass the number of features, or let a model set it")
        smoothness = integer("smoothness", self.smoothness, least=0)
        if smoothness > 2:
            raise KernelError(f"smoothness={smoothness}; it must be 0, 1 or 2")
        return integer("dimension", self.dimension, least=1) // 2 + smoothness + 1
