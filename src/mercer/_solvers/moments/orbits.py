"""Rows that are held out together with copies of themselves: the same small system for every row."""

from dataclasses import dataclass

import numpy as np

from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array, Floats


@dataclass(frozen=True)
class Orbit:
    """Every row is followed by ``size`` - 1 others that leave with it.

    With ``differences`` the others were fitted as differences from their row, to zero and without an intercept.
    """

    size: int
    differences: bool = False

    @property
    def counts(self) -> Array:
        """Which (size, 1) of an orbit have an intercept and a target."""
        counts = np.ones((self.size, 1))
        if self.differences:
            counts[1:] = 0.0
        return counts

    def features(self, phi: Floats, mean: Floats) -> Floats:
        """Features (f, size, r) from those (f size, r) of rows and copies, which are overwritten, minus means."""
        phi = phi.reshape(len(phi) // self.size, self.size, -1)
        if self.differences:
            phi[:, 1:] -= phi[:, :1]
        phi -= self.counts.astype(phi.dtype) * mean
        return phi

    def pull(self, H: Floats, unit: Array) -> Array:
        """By which (f, size) residuals r of rows that leave change that of the first one: e_0 = r_0 + pull'r.

        With leverages H (f, size, size) of a unit of weight, and the weights U = ``unit`` (f, size) that leave,
        the residuals of the model without them are e = r + H U e: the pull is the first row of H U (I - H U)^-1.
        """
        root = np.sqrt(unit)
        values, vectors = np.linalg.eigh(root[:, :, None] * H * root[:, None, :])
        # Rows that alone determine a direction: their leverage is 1 up to rounding.
        left = np.maximum(1.0 - values, rounding_unit(H.dtype))
        first = ((H[:, :1] * root[:, None, :]) @ vectors) / left[:, None, :]
        return np.asarray((first @ vectors.transpose(0, 2, 1))[:, 0] * root)
