"""Householder reflection that maps a given vector onto the first axis."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from mercer._types import Array


@dataclass(frozen=True)
class Reflector:
    """The symmetric orthogonal matrix H = I - 2 v v' with H s parallel to e_1.

    Its columns 2 … n are an orthonormal basis of the orthogonal complement of s: an exact way to project s out,
    whereas subtracting s s' leaves a null vector that an eigensolver mixes with others.
    """

    v: Array

    @classmethod
    def onto_first_axis(cls, s: Array) -> "Reflector":
        v = np.array(s, dtype=np.float64)
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        return cls(v / np.linalg.norm(v))

    def both_sides(self, A: Array) -> Array:
        """H A H without its first row and column, for symmetric A (n, n): the lower triangle; O(n²)."""
        v = self.v
        p = A @ v
        p = 2.0 * p - 2.0 * (v @ p) * v
        if len(A) == 1:
            return np.zeros((0, 0), order="F")
        # A symmetric matrix in row-major order is also column-major: this is a plain copy.
        B = np.array(A[1:, 1:].T, order="F")
        return np.asarray(blas.dsyr2(-1.0, v[1:], p[1:], a=B, lower=1, overwrite_a=1))

    def apply(self, A: Array) -> Array:
        """H A without its first row, for A (n, m)."""
        return A[1:] - np.outer(2.0 * self.v[1:], self.v @ A)

    def expand(self, V: Array) -> Array:
        """H [0; V] (n, r) for V (n - 1, r): columns orthogonal to s."""
        U = np.empty((len(self.v), V.shape[1]), order="F")
        U[0], U[1:] = 0.0, V
        if V.shape[1] == 0:
            return U
        return np.asarray(blas.dger(-2.0, self.v, self.v[1:] @ V, a=U, overwrite_a=1))

    def expanded(self, U: Array) -> Array:
        """H U in the place of U (n, r), row-major, whose first row is zero."""
        if U.shape[1]:
            blas.dger(-2.0, self.v @ U, self.v, a=U.T, overwrite_a=1)
        return U
