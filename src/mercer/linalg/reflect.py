"""Householder reflection that carries one given vector onto the first axis."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Reflector:
    """The symmetric orthogonal matrix H = I - 2 v v' with H s parallel to e_1.

    Its columns 2 … n are an orthonormal basis of the complement of s: an exact way to
    project s out, where subtracting s s' leaves a null vector for an eigensolver to mix.
    """

    v: NDArray[np.float64]

    @classmethod
    def onto_first_axis(cls, s: NDArray[np.float64]) -> "Reflector":
        v = np.array(s, dtype=np.float64)
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        return cls(v / np.linalg.norm(v))

    def both_sides(self, A: NDArray[np.float64]) -> NDArray[np.float64]:
        """H A H without its first row and column, for symmetric A (n, n); O(n²)."""
        v = self.v
        p = A @ v
        p = 2.0 * p - 2.0 * (v @ p) * v
        B = np.array(A[1:, 1:], order="F")
        B -= np.outer(v[1:], p[1:])
        B -= np.outer(p[1:], v[1:])
        return B

    def left(self, A: NDArray[np.float64]) -> NDArray[np.float64]:
        """H A without its first row, for A (n, m)."""
        B: NDArray[np.float64] = A[1:] - np.outer(2.0 * self.v[1:], self.v @ A)
        return B

    def expand(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """H [0; V] (n, r) for V (n - 1, r): columns orthogonal to s."""
        along = 2.0 * (self.v[1:] @ V)
        U = np.empty((len(self.v), V.shape[1]))
        np.multiply(-self.v[0], along, out=U[0])
        np.subtract(V, np.outer(self.v[1:], along), out=U[1:])
        return U
