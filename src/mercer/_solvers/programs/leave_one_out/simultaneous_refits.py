r"""Fits of a smooth loss without single rows, found together from the fit to all rows.

In coordinates u around that fit in which its Hessian H = L L' is the identity, with rows R = G L^-T, outputs are
f + v, v = R u, and the objective without the share s of row i is, up to a constant,

    |u|² / 2 + sum_k w_k third_k - s w_i loss(f_i + v_i),
    third = loss(f + v) - loss(f) - loss'(f) v - loss''(f) v² / 2,

which is of third order, so that few gradients are enough (Rad and Maleki 2020 take one step).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer._linalg.tolerance import smallest
from mercer._solvers.programs.losses import SmoothLoss
from mercer._solvers.programs.smooth.simultaneous import ColumnSlopes, descend
from mercer._types import Array, Indices

# Outputs are known when their error is this share of their spread; gradients at most.
KNOWN_OUTPUT_ERROR, MOST_GRADIENTS = 1e-3, 100


@dataclass(frozen=True)
class WithoutRows:
    """The fit to all rows: loss, targets, weights, outputs f, weighted curvatures (n,), R (n, k); which ``rows``
    (r,) are removed, and the ``share`` (r,) of each.

    ``column`` (k, r): the direction L^-1 e of a column that is removed with the row, zero if there is none, and
    its coefficients ``coef`` (r,).
    """

    loss: SmoothLoss
    y: Array
    weight: Array
    f: Array
    curvature: Array
    R: Array
    rows: Indices
    share: Array
    column: Array | None
    coef: Array

    def outputs(self, first: Array, spread: float) -> Array:
        """Outputs (r,) of the rows, from ``first`` estimates (r,) of them; ``spread`` is that of all outputs."""
        leverage = np.maximum(np.einsum("ij,ij->i", self._own, self._own), smallest(np.float64))
        enough = 0.5 * (KNOWN_OUTPUT_ERROR * spread) ** 2 / leverage
        start = self._own.T * ((first - self.f[self.rows]) / leverage) if self.column is None else self._removed[1]
        found = descend(self._slopes, start, lambda gradient: gradient, enough, MOST_GRADIENTS)
        return np.asarray(self.f[self.rows] + np.einsum("ij,ji->i", self._own, found.at))

    @cached_property
    def _own(self) -> Array:
        """R (r, k) of the rows themselves."""
        return self.R[self.rows]

    @cached_property
    def _removed(self) -> tuple[Array, Array]:
        """Unit vectors (k, r) in which the fits cannot move, and the points (k, r) where columns have gone."""
        assert self.column is not None
        square = np.einsum("ij,ij->j", self.column, self.column)
        square = np.where(square > 0.0, square, 1.0)
        return self.column / np.sqrt(square), -self.column * (self.coef / square)

    @cached_property
    def _at_fit(self) -> tuple[Array, Array, Array, Array]:
        """Targets, weights, weighted losses and weighted slopes (n, 1) of the fit to all rows."""
        y, weight, f = self.y[:, None], self.weight[:, None], self.f[:, None]
        return y, weight, weight * self.loss.value(y, f), weight * self.loss.slope(y, f)

    def _slopes(self, U: Array, some: Indices) -> ColumnSlopes:
        """Objectives and gradients of some of the fits at points (k, p)."""
        y, weight, value, slope = self._at_fit
        V, curvature = self.R @ U, self.curvature[:, None]
        F = self.f[:, None] + V
        new, rise = weight * self.loss.value(y, F), weight * self.loss.slope(y, F)
        missed = rise - slope - curvature * V
        i, p = self.rows[some], np.arange(len(some))
        total = 0.5 * np.einsum("ij,ij->j", U, U) + (new - value - slope * V - 0.5 * curvature * V**2).sum(axis=0)
        missed[i, p] -= self.share[some] * rise[i, p]
        gradient = U + self.R.T @ missed
        if self.column is not None:
            fixed = self._removed[0][:, some]
            gradient -= fixed * np.einsum("ij,ij->j", fixed, gradient)
        return ColumnSlopes(total - self.share[some] * new[i, p], gradient)
