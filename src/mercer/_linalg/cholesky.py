"""Cholesky factors of symmetric positive definite matrices, with the shift that was needed."""

from dataclasses import dataclass

import numpy as np

from mercer._linalg.lapack import cholesky_upper, invert_lower, solve_triangular
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array
from mercer.errors import NumericalError


@dataclass(frozen=True)
class CholeskyFactor:
    """A + shift I = L L'; shift is zero unless A is not positive definite to working precision."""

    lower: Array
    shift: float

    def solve(self, B: Array) -> Array:
        """(A + shift I)^-1 B."""
        half = self.half_solve(B if B.ndim == 2 else B[:, None])
        return solve_triangular(self.lower, half, lower=True, transposed=True).reshape(B.shape)

    def half_solve(self, B: Array) -> Array:
        """L^-1 B: its column sums of squares are b'(A + shift I)^-1 b."""
        return solve_triangular(self.lower, B, lower=True)

    def half_solve_rows(self, B: Array) -> Array:
        """B L^-T for many rows B (n, m): multiplying by the inverse takes half the time of solving."""
        return B @ self.inverse().T

    def inverse(self) -> Array:
        """L^-1 (n, n): sums of products of its columns are entries of (A + shift I)^-1; n³ / 3."""
        inverse = np.array(self.lower, order="F")
        invert_lower(inverse)
        return inverse

    def both_sides(self, B: Array) -> Array:
        """L^-1 B L^-T for symmetric B (n, n): the lower triangle; 2 n³ operations."""
        return np.tril(self.half_solve(self.half_solve(B).T))


def factor_spd(A: Array) -> CholeskyFactor:
    """Factor A (n, n); if rounding has made it indefinite, with the smallest of a few tiny shifts that works."""
    unit = float(rounding_unit(np.float64) * len(A) * np.abs(np.diagonal(A)).max(initial=0.0))
    for shift in (0.0, unit, 1e2 * unit, 1e4 * unit, 1e6 * unit):
        shifted = np.array(A, dtype=np.float64, order="C")
        shifted.flat[:: len(A) + 1] += shift
        # The upper triangle of the transpose, which is column-major, is the lower one in row-major order.
        if not cholesky_upper(shifted.T):
            return CholeskyFactor(np.tril(shifted), shift)
    raise NumericalError(
        f"the ({len(A)}, {len(A)}) matrix is indefinite, not just singular; scale the features, use a larger "
        "alpha, or use a positive semidefinite kernel"
    )
