r"""Discriminant directions of k classes from one least-squares fit of the class indicators.

The directions that maximize between-class over (within-class + alpha penalty) scatter are the
fitted indicators F (n, k) times theta, where

    (F'W Y - n p p') theta_j = rho_j² D theta_j,      D = Y'W Y,   theta' D theta = n I,

p the class shares: Hastie, Buja and Tibshirani (1995), section 3. The Rayleigh coefficient of Mika
(2002), Eq. (3.31), in that direction is rho²/(1 - rho²), up to the factor n of its scatter matrices.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.linalg import eigen_psd

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Directions:
    """scalings theta (k, r) with z = (f - share) theta; back (r, k) with f - share = z back; rho² (r,)."""

    share: Array
    scalings: Array
    back: Array
    eigenvalues: Array

    def project(self, F: NDArray[np.floating]) -> Array:
        """Discriminant variates (..., r) of outputs (..., k)."""
        Z: Array = (F - self.share) @ self.scalings
        return Z

    def restore(self, Z: Array) -> Array:
        """The outputs (..., k) that these variates stand for."""
        F: Array = Z @ self.back + self.share
        return F

    def first(self, r: int) -> "Directions":
        """The r best directions."""
        return Directions(self.share, self.scalings[:, :r], self.back[:r], self.eigenvalues[:r])


def variance_shares(eigenvalues: Array) -> Array:
    """Shares (r,) of between-class over within-class variance rho²/(1 - rho²) in each direction."""
    ratio = eigenvalues / np.maximum(1.0 - eigenvalues, 1e-12)
    total = ratio.sum()
    shares: Array = ratio / total if total > 0 else np.full(len(ratio), 1.0 / len(ratio))
    return shares


def discriminant_directions(FY: Array, count: Array) -> Directions:
    """All k - 1 directions from F'WY (k, k) and the weight (k,) of each class, the best first.

    Signs make the largest entry of each theta positive.
    """
    n = count.sum()
    share = count / n
    M = FY - n * np.outer(share, share)
    root = np.sqrt(count)
    eigen = eigen_psd(np.asfortranarray((M + M.T) / (2 * np.outer(root, root))))
    best = np.argsort(eigen.values)[::-1][: len(count) - 1]
    V = eigen.vectors[:, best]
    # The trivial direction has rho = 0 and may mix with others that vanish.
    V = V - np.outer(root, root @ V) / n
    V *= np.sign(V[np.abs(V).argmax(axis=0), range(len(best))])
    theta = np.sqrt(n) * V / root[:, None]
    return Directions(share, theta, (theta * count[:, None]).T / n, eigen.values[best])
