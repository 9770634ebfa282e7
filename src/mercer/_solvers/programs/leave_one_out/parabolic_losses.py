r"""The losses of all rows as parabolas at a solution: leverages and residuals with all their digits.

With g = (phi, 1), weighted curvatures e and the Hessian H, the leverage of a row is e h, h = g'H^-1 g. Of a row
that nearly determines its own output, 1 - e h is about alpha over its weight: as a difference it would be a
rounding error, and so would the residual. Both follow from the fit to the other rows, as sums of squares.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer._linalg import factor_spd
from mercer._solvers.programs.losses import SmoothLoss
from mercer._solvers.programs.program import Program, Solution, bordered
from mercer._solvers.programs.smooth.newton import HESSIAN_DIAGONAL, curvatures, has_small_ridge, orthogonal_root
from mercer._types import Array, Indices

# Below this, 1 - leverage is computed from the fit without such rows.
CANCELLING_LEVERAGE = 1e-3


@dataclass(frozen=True)
class Parabolas:
    """Columns (n, a) with coefficients, outputs f (n,), weighted curvatures (n,), L^-1 (a + 1, a + 1) for
    H = L L', and rows G L^-T (n, a + 1).
    """

    program: Program
    columns: Array
    f: Array
    curvature: Array
    half: Array
    rows: Array

    @classmethod
    def of(cls, program: Program, found: Solution, some: Indices) -> "Parabolas":
        """With the columns ``some`` (a,) of the program, whose loss is smooth."""
        Phi, f = program.Phi[:, some], program.outputs(found.coef, found.intercept)
        curvature = curvatures(program, f)
        half = _inverse_factor(program, Phi, curvature)
        return cls(program, Phi, f, curvature, half, _in_basis(Phi, half.T))

    @property
    def loss(self) -> SmoothLoss:
        assert isinstance(self.program.loss, SmoothLoss)
        return self.program.loss

    @cached_property
    def leverage(self) -> Array:
        """h (n,)."""
        return np.asarray(np.einsum("ij,ij->i", self.rows, self.rows))

    @property
    def degrees_of_freedom(self) -> float:
        return float(self.curvature @ self.leverage)

    @property
    def cancels(self) -> NDArray[np.bool_]:
        """Which rows (n,) nearly determine their outputs."""
        return np.asarray(self.curvature * self.leverage > 1.0 - CANCELLING_LEVERAGE)

    @cached_property
    def targets(self) -> Array:
        """Where (n,) the parabolas of rows with curvature have their vertices."""
        slopes = self.program.weight * self.loss.slope(self.program.y, self.f)
        move = np.divide(slopes, self.curvature, out=np.zeros_like(slopes), where=self.curvature > 0.0)
        return np.asarray(self.f - move)

    @property
    def one_minus_leverage(self) -> Array:
        """1 - u e h (n,) of whole rows, with all digits."""
        return self._accurate[0]

    @property
    def slopes(self) -> Array:
        """Weighted slopes (n,) of the losses at the solution."""
        return self._accurate[1]

    @cached_property
    def _accurate(self) -> tuple[Array, Array]:
        """1 - leverage and slopes (n,): of rows that nearly determine their outputs, from a fit without them."""
        slopes: Array = self.program.weight * self.loss.slope(self.program.y, self.f)
        one_minus_leverage = 1.0 - self.curvature * self.leverage
        some = np.flatnonzero(self.cancels)
        if len(some):
            one_minus_leverage[some], slopes[some] = self._without(some, slopes)
        return one_minus_leverage, slopes

    def _without(self, part: Indices, slopes: Array) -> tuple[Array, Array]:
        """1 - leverage and slopes (p,) of some rows from a fit of parabolas to the others.

        With S² the curvatures of these rows, A = G H^-1 G' of the others' H, and residuals r of the others' fit,
        1 - leverage is the diagonal of B^-1 = (I + S A S)^-1, and the slopes are -S B^-1 S r: sums of squares.
        """
        others, S, target = np.ones(len(self.f), dtype=bool), np.sqrt(self.curvature), self.targets
        others[part] = False
        curved, flat = np.flatnonzero(others & (S > 0.0)), np.flatnonzero(others & (S == 0.0))
        Q, basis = orthogonal_root(self.program, self.columns, curved, S)
        theta = Q.T @ (S * target)[curved] - slopes[flat] @ _in_basis(self.columns[flat], basis)
        rows = _in_basis(self.columns[part], basis)
        residual, rows = S[part] * (target[part] - rows @ theta), S[part, None] * rows
        B = rows @ rows.T
        B[np.diag_indices_from(B)] += 1.0
        root = factor_spd(B).inverse()
        if self.program.has_intercept and not len(curved):
            # These rows alone determine the intercept.
            constant = root @ S[part]
            root -= np.outer(constant, constant @ root) / float(constant @ constant)
        return np.einsum("ij,ij->j", root, root), -S[part] * (root.T @ (root @ residual))


def _inverse_factor(program: Program, Phi: Array, curvature: Array) -> Array:
    """L^-1 with H = L L': of all columns and the intercept, whose column is zero where no row has curvature."""
    if has_small_ridge(program, Phi, curvature):
        return np.ascontiguousarray(
            orthogonal_root(program, Phi, np.flatnonzero(curvature), np.sqrt(curvature))[1].T
        )
    H, fixed = bordered(Phi, curvature), not (program.has_intercept and curvature.any())
    if fixed:
        H[-1, :], H[:, -1] = 0.0, 0.0
    H[np.diag_indices_from(H)] += np.append(np.full(Phi.shape[1], program.ridge), float(fixed))
    if program.ridge == 0.0:
        H[np.diag_indices_from(H)] += HESSIAN_DIAGONAL * float(np.trace(H)) / len(H)
    half = factor_spd(H).inverse()
    half[:, -1] *= not fixed
    return half


def _in_basis(Phi: Array, basis: Array) -> Array:
    """G R^-1 for the rows G = (Phi, 1)."""
    return np.asarray(Phi @ basis[:-1] + basis[-1])
