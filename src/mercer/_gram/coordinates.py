"""Coordinates of kernel rows, fixed before a pass, in which sums of products keep their accuracy."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._linalg.lapack import inverse_upper, multiply, solve_triangular
from mercer._linalg.rank import forms_upper
from mercer._types import Array

# Rows and columns of one product. With a triangular factor, strips cost little more than half of the whole.
PRODUCT_TILE = 1024, 256


@dataclass(frozen=True)
class Coordinates:
    """phi = R'^-1 (k - origin) of kernel rows k (m,) against centers whose kernel matrix is R'R.

    The penalty c'R'Rc is a'a for f = phi'a, and the error of a sum of products phi phi' is eps of its trace. For G
    = sum k k' it is as small, but R^-1 on both sides amplifies it by one over the smallest eigenvalue of R'R; if k
    varies little around its mean, centering G leaves a small difference of large numbers. ``origin`` is a kernel
    row near the mean, or zero if there is no intercept. ``inverse`` is R^-1.
    """

    inverse: Array
    origin: Array

    @classmethod
    def at(cls, R: Array, origin: Array) -> "Coordinates":
        """For centers of the kernel matrix R'R, R upper triangular."""
        return cls(_inverse(R), origin)

    @property
    def R(self) -> Array:
        """The factor of the centers' kernel matrix, (m, m) upper triangular; O(m³)."""
        return _inverse(self.inverse)

    @property
    def kernel_diagonal(self) -> Array:
        """k(z, z) (m,) of the centers."""
        diagonal: Array = (self.R**2).sum(axis=0)
        return diagonal

    def of_rows(self, K: Array, space: Callable[[tuple[int, int]], Array]) -> Array:
        """phi (b, m) of kernel rows K (b, m), in the memory of K; ``space(shape)`` provides memory for a tile.

        b m² operations: as many as for the sum of products of the rows.
        """
        K -= self.origin
        for start in range(0, len(K), PRODUCT_TILE[0]):
            self._few(K[start : start + PRODUCT_TILE[0]], space)
        return K

    def _few(self, K: Array, space: Callable[[tuple[int, int]], Array]) -> None:
        """K R^-1 in place: last columns first, since they need the original columns before them."""
        for stop in range(K.shape[1], 0, -PRODUCT_TILE[1]):
            strip = slice(max(stop - PRODUCT_TILE[1], 0), stop)
            workspace = space((len(K), strip.stop - strip.start))
            K[:, strip] = np.matmul(K[:, :stop], self.inverse[:stop, strip], out=workspace)

    def slopes(self, coef: Array) -> Array:
        """a (m, p) with phi'a = (k - origin)'coef."""
        return solve_triangular(self.inverse, coef)

    def kernel_sum(self, n: float, s: Array) -> Array:
        """sum w k (m,) from the sum s of w phi."""
        total: Array = self.R.T @ s + n * self.origin
        return total

    def of_kernel_values(self, n: float, s: Array, t: Array, G: Array, C: Array) -> tuple[Array, Array, Array]:
        """s (m,), G (m, m) and C (m, q) of k from those of phi."""
        R = self.R
        across = np.outer(R.T @ s, self.origin)
        G = multiply(R.T, multiply(G, R)) + across + across.T + n * np.outer(self.origin, self.origin)
        return R.T @ s + n * self.origin, G, R.T @ C + np.outer(self.origin, t)

    def kernel_square(self, n: float, s: Array, G: Array) -> Array:
        """sum w k_j² (m,) from the sums of phi."""
        R = self.R
        return forms_upper(R, G) + self.origin * (2.0 * (R.T @ s) + n * self.origin)


def _inverse(R: Array) -> Array:
    """R^-1 of an upper triangular matrix, in row-major order; m³ / 3."""
    return np.ascontiguousarray(inverse_upper(np.asfortranarray(R)))
