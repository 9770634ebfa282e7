r"""Discriminant directions of k classes from one least-squares fit of the class indicators.

The directions that maximize between-class over (within-class + alpha penalty) scatter are the
fitted indicators F (n, k) times theta, where

    (F'W Y - n p p') theta_j = rho_j² D theta_j,      D = Y'W Y,   theta' D theta = n I,

p the class shares: Hastie, Buja and Tibshirani (1995), section 3. The Rayleigh coefficient of Mika
(2002), Eq. (3.31), in that direction is rho²/(1 - rho²), up to the factor n of its scatter matrices.

The constant theta = 1 solves the same equation with rho = 0 and carries no information. It is projected out before
the decomposition, because an eigensolver would mix it with other directions of rho = 0, which exist if the rank of
the kernel matrix is below k - 1. Those are arbitrary, and are stored as zeros.
"""

from dataclasses import dataclass

import numpy as np

from mercer._linalg import Reflector, eigen_psd
from mercer._linalg.eigen import signed
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array, Floats


@dataclass(frozen=True)
class Directions:
    """scalings theta (k, r) with z = (f - share) theta; back (r, k) with f - share = z back; rho² (r,)."""

    share: Array
    scalings: Array
    back: Array
    eigenvalues: Array

    def project(self, F: Floats) -> Array:
        """Discriminant variates (..., r) of outputs (..., k)."""
        return (F - self.share) @ self.scalings

    def restore(self, Z: Array) -> Array:
        """The outputs (..., k) that these variates represent."""
        return Z @ self.back + self.share

    def of_relative(self) -> Array:
        """A (k - 1, r): variates are R A + constant for outputs that sum to one, R relative to the first."""
        return np.asarray(self.scalings[1:] - self.scalings.mean(axis=0))

    def first(self, r: int) -> "Directions":
        """The r best directions."""
        return Directions(self.share, self.scalings[:, :r], self.back[:r], self.eigenvalues[:r])

    def within(self, Q: Array, values: Array) -> "Directions":
        """The combinations Q (r, s) of the variates, with orthonormal columns, and their eigenvalues (s,)."""
        return Directions(self.share, self.scalings @ Q, Q.T @ self.back, values)


def variance_shares(eigenvalues: Array) -> Array:
    """Shares (r,) of between-class over within-class variance rho²/(1 - rho²) in each direction."""
    ratio = eigenvalues / np.maximum(1.0 - eigenvalues, 1e-12)
    total = ratio.sum()
    return ratio / total if total > 0 else np.full(len(ratio), 1.0 / len(ratio))


def discriminant_directions(FY: Array, count: Array, error: Array | None = None) -> Directions:
    """All k - 1 directions from F'WY (k, k) and the weight (k,) of each class, best first.

    Signs make the largest entry of each theta positive. ``error`` (k, k) bounds the rounding errors of F'WY; a
    direction whose rho² is not above them gets rho² = 0 and theta = 0, so that its variates are zero.
    """
    n, root = count.sum(), np.sqrt(count)
    reflector = Reflector.onto_first_axis(root)
    M = (FY + FY.T) / (2 * np.outer(root, root))
    noise = 0.0 if error is None else float(np.linalg.norm(error / np.outer(root, root)))
    # The constant has the eigenvalue 1, whose rounding error affects the others.
    eigen = eigen_psd(reflector.both_sides(M), noise=noise + rounding_unit(np.float64, 4.0))
    values = eigen.values[::-1]
    V = signed(reflector.expand(eigen.vectors[:, ::-1] * (values > 0.0)))
    theta = np.sqrt(n) * V / root[:, None]
    return Directions(count / n, theta, (theta * count[:, None]).T / n, values)
