"""The model with its first centers, for every number of them."""

from dataclasses import dataclass

import numpy as np

from mercer._types import Array, Floats, Indices


@dataclass(frozen=True)
class SparseStage:
    """The data for staged predictions of one selection: the model with its first s centers, for every s.

    ``position`` (m,) of the centers in the model, ``targets`` they serve, V (m, m), zeta (m, t) and
    ``kernel_mean`` (m,) of the steps, ``target_mean`` (t,).
    """

    position: Indices
    targets: list[int]
    V: Array
    zeta: Array
    kernel_mean: Array
    target_mean: Array

    def model(self, s: int, coef: Floats, intercept: Floats) -> None:
        """Write coefficients and intercepts with at most s centers into coef (m, q) and intercept (q,)."""
        s = min(s, len(self.position))
        c = self.V[:s, :s] @ self.zeta[:s]
        coef[np.ix_(self.position[:s], np.array(self.targets))] = c
        intercept[self.targets] = self.target_mean - self.kernel_mean[:s] @ c


def staged(stages: tuple[SparseStage, ...], s: int, m: int, q: int) -> tuple[Array, Array]:
    """Coefficients (m, q) and intercepts (q,) with at most s centers of each selection."""
    coef, intercept = np.zeros((m, q)), np.zeros(q)
    for stage in stages:
        stage.model(s, coef, intercept)
    return coef, intercept
