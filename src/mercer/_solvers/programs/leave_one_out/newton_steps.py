r"""Leave-one-out from the fit to all rows: by Newton steps, and by paths where these are exact.

The other rows' losses are replaced by their parabolas at the solution, with Hessian H; the loss of the row itself
is not. With g = (phi, 1) and the leverage h = g'H^-1 g of a row of weight u, curvature e and slope s,

    f without the row = f + u s h / (1 - u e h)

(Rad and Maleki 2020; for the squared loss it is exact), with all their digits (``parabolas``). If the center of a
column is the row itself, the column leaves with it. Where curvatures jump and the penalty is a ridge (Huber,
squared hinge, kinks), the path of the fit is followed as the row leaves, which is exact (``removal``). Before
that for Huber's loss, and for other penalties instead, rows that move to another piece of their loss take further
steps, in the space of the outputs: with B = G H^-1 G' for the rows G and what the parabolas miss of the slopes,
r(f'), the outputs without a row solve f' = f - B r(f'), and r is zero for most rows. Of steps that do not settle,
the first or the last one counts, whichever is farther from the fit. Of the logistic loss, the fits without the
MOST_SMOOTH rows for which one step misses most are found together, by quasi-Newton steps in coordinates in which H
is the identity.

With |v|_1, other columns may enter and leave with a row, which no step knows: such outputs are for comparisons of
alphas only, and not to be trusted; neither are steps that do not settle. No output exceeds what the penalty
allows.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer._solvers.programs.leave_one_out.parabolic_losses import Parabolas
from mercer._solvers.programs.leave_one_out.removal_path import FullFit
from mercer._solvers.programs.leave_one_out.simultaneous_refits import WithoutRows
from mercer._solvers.programs.losses import (
    Hinge,
    Huber,
    Loss,
    NonSmoothLoss,
    Rounded,
    Squared,
    SquaredHinge,
)
from mercer._solvers.programs.program import Program, Solution
from mercer._solvers.programs.smooth.newton import has_small_ridge, newton
from mercer._types import Array, Indices

# The most rows for which further steps are made, as their outputs are n² numbers; and the most steps for each.
STEPPED_ROWS = 2000
MOST_ROW_STEPS = 20
# Steps end when outputs would change by less than this share of their scale.
LAST_CHANGE = 1e-6
# Of losses without jumps, rows take further steps if these would change outputs by more than this, or this share
# of their scale if that is below one; at most the second number of rows, which are those with the largest changes.
LEAST_CHANGE, MOST_SMOOTH = 0.03, 100
# Of this number of rows, those that one step moves most, it is estimated what further steps would change.
MOST_ASKED = 300
# So few rows are all refitted at the chosen alpha, which takes hardly longer.
FEW_ROWS = 80
# Arcs that more rows are on than the first number, and than there are degrees of freedom, are shortened by
# Newton's method, each time to this share, and at most to the second share in all, before paths lead to the kinks:
# rows leave their arcs on the way, and bend it. Once a solution takes more steps than the last number, arcs stay.
FEW_ON_ARCS, ARC_SHORTENING, SHORTEST_ARC, MOST_ARC_STEPS = 20, 0.3, 1e-5, 30
# Rows with less than this are held out by paths, not by steps, whose systems have the same differences.
STEPS_CANCEL = 1e-6


@dataclass(frozen=True)
class LooOutputs:
    """Outputs (n,) of rows for the fit without each of them, which of them are to be trusted (n,), and the degrees
    of freedom of the fit to all.
    """

    outputs: Array
    trusted: NDArray[np.bool_]
    degrees_of_freedom: float


def loo_of_program(
    program: Program,
    found: Solution,
    unit: Array,
    own: Indices | None = None,
    *,
    with_kinks: bool = False,
    rows: Indices | None = None,
) -> LooOutputs:
    """Outputs without the part ``unit`` (n,) of the weight of each row, and column ``own`` (n,), -1: none.

    If only some ``rows`` are wanted, the others have those of one step.

    For smooth losses; of a rounded loss those of the loss ``with_kinks``, if paths can be followed; otherwise
    they are not to be trusted, unless there are more than STEPPED_ROWS: one step counts for these. O(n a² + a³)
    for a columns that have coefficients, or all of them if none is zero; n² a up to STEPPED_ROWS rows.
    """
    step, loss, n = _Step.of(program, found, unit, own), program.loss, len(program.y)
    outputs, trusted = step.outputs, np.full(n, program.lasso == 0.0)
    some = np.arange(n) if rows is None else rows
    if own is not None and has_small_ridge(program, step.at.columns, step.at.curvature):
        # What little determines a column that leaves is lost.
        trusted[:] = False
    if can_follow(program, own) and (with_kinks or has_one_side(loss)):
        outputs[some], trusted[some] = _followed(step, found, some, with_kinks=with_kinks)
    elif not step.at.loss.jumps and not isinstance(loss, Squared):
        outputs[some], converged = _descended(step, some)
        trusted[some] &= converged & (not (with_kinks and isinstance(loss, Rounded)))
    elif n <= STEPPED_ROWS and step.at.loss.jumps:
        outputs, converged = _improved(step, found, outputs, own, some)
        trusted &= converged & (not (with_kinks and isinstance(loss, Rounded)))
    elif n > STEPPED_ROWS and own is not None:
        trusted &= not step.at.loss.jumps
    most = program.largest_outputs
    return LooOutputs(np.clip(outputs, -most, most), trusted, step.at.degrees_of_freedom)


def loo_of_rows(program: Program, found: Solution, unit: Array, rows: Indices) -> Array:
    """Outputs (r,) of some rows of a loss without jumps, without the part ``unit`` (n,) of their weights."""
    most = program.largest_outputs[rows]
    return np.clip(_descended(_Step.of(program, found, unit, None), rows)[0], -most, most)


def degrees_of_freedom(program: Program, found: Solution) -> float:
    """Those of a fit with a smooth loss: the sum of the leverages."""
    return _Step.of(program, found, program.weight, None).at.degrees_of_freedom


def can_follow(program: Program, own: Indices | None) -> bool:
    """Whether paths of leaving rows can be followed: a loss in pieces, a ridge as penalty, columns that stay."""
    pieces = isinstance(program.loss, Huber | SquaredHinge | Rounded | NonSmoothLoss)
    return (
        pieces
        and own is None
        and program.lasso == 0.0
        and len(program.y) <= STEPPED_ROWS
        and bool(program.weight.all())
    )


def has_one_side(loss: Loss) -> bool:
    """Whether a loss rises on one side only. Otherwise paths have many bends, and steps settle sooner."""
    return isinstance(loss, SquaredHinge) or (isinstance(loss, Rounded) and isinstance(loss.loss, Hinge))


def _followed(
    step: "_Step", found: Solution, rows: Indices, *, with_kinks: bool = False
) -> tuple[Array, NDArray[np.bool_]]:
    """Outputs (r,) of some rows by following their paths, and whether they are exact (r,)."""
    if len(rows) == 0:
        return np.zeros(0), np.zeros(0, dtype=bool)
    program, loss = step.at.program, step.at.loss
    assert isinstance(loss, Huber | SquaredHinge | Rounded)
    form = loss.kinks(program.y)
    bend = form.bend
    if with_kinks and isinstance(loss, Rounded):
        form = loss.loss.kinks(program.y)
        bend, found = _with_short_arcs(step, loss, found)
    return FullFit.of(program, form, found, bend).outputs_without(step.share, rows)


def _with_short_arcs(step: "_Step", loss: Rounded, found: Solution) -> tuple[float, Solution]:
    """The length of arcs that few rows are on, if a few steps find it, and the solution with these arcs."""
    program, bend, steps = step.at.program, loss.bend, 0
    few = FEW_ON_ARCS + step.at.degrees_of_freedom
    while bend > SHORTEST_ARC * loss.bend and steps <= MOST_ARC_STEPS:
        f = program.outputs(found.coef, found.intercept)
        if np.count_nonzero(Rounded(loss.loss, bend).curvature(program.y, f)) <= few:
            break
        shorter = replace(program, loss=Rounded(loss.loss, ARC_SHORTENING * bend))
        again = newton(shorter, np.append(found.coef, found.intercept))
        if not again.converged:
            break
        bend, found, steps = ARC_SHORTENING * bend, again, again.steps
    return bend, found


def _improved(
    step: "_Step", found: Solution, outputs: Array, own: Indices | None, rows: Indices
) -> tuple[Array, NDArray[np.bool_]]:
    """Outputs (n,), those of some rows by further steps from those of one; where they do not settle, by paths.

    And where they did.
    """
    B, converged = step.at.rows @ step.at.rows.T, np.ones(len(outputs), dtype=bool)
    some = rows[(np.abs(outputs - step.at.f) > LAST_CHANGE * step.scale)[rows]]
    far = step.at.one_minus_leverage[some] < STEPS_CANCEL
    converged[some[far]] = False
    some = some[~far]
    steps = [step.converged(i, B) for i in some.tolist()]
    last, known = np.array([end for end, _ in steps]), np.array([well for _, well in steps], dtype=bool)
    f, first = step.at.f[some], outputs[some]
    outputs[some] = np.where(known | (np.abs(last - f) > np.abs(first - f)), last, first)
    converged[some] = known
    others = np.flatnonzero(~converged)
    if len(others) and can_follow(step.at.program, own):
        outputs[others], converged[others] = _followed(step, found, others)
    return outputs, converged


def _descended(step: "_Step", rows: Indices) -> tuple[Array, NDArray[np.bool_]]:
    """Outputs (r,) of some rows of a loss without jumps: by one step, and by descent where that misses much.

    And whether they are to be trusted: few rows that are certain determine hardly anything, and are refitted.
    """
    outputs = step.outputs[rows]
    asked = np.argsort(-np.abs(outputs - step.at.f[rows]))[:MOST_ASKED]
    missing = step.missing(rows[asked], outputs[asked])
    many = min(MOST_SMOOTH, np.count_nonzero(missing > LEAST_CHANGE * min(step.scale, 1.0)))
    some = asked[np.argsort(-missing)[:many]]
    outputs[some] = step.descended(rows[some], outputs[some])
    return outputs, np.full(len(rows), len(step.at.f) > FEW_ROWS)


@dataclass(frozen=True)
class _Step:
    """The parabolas of all rows, the share (n,) of each weight that leaves, and for rows whose column leaves with
    them: L^-1 u (a + 1, n) and its coefficient (n,).
    """

    at: Parabolas
    share: Array
    column: Array | None
    coef: Array

    @classmethod
    def of(cls, program: Program, found: Solution, unit: Array, own: Indices | None) -> "_Step":
        some = np.arange(program.m) if program.lasso == 0.0 else np.flatnonzero(found.coef)
        at = Parabolas.of(program, found, some)
        share = np.divide(unit, program.weight, out=np.zeros_like(unit), where=program.weight > 0.0)
        column, coef = None, np.zeros(len(unit))
        if own is not None:
            position = np.full(program.m + 1, -1)
            position[some] = np.arange(len(some))
            place = position[own]
            column = np.where(place >= 0, at.half[:, place], 0.0)
            coef = np.where(place >= 0, found.coef[some][place] if len(some) else 0.0, 0.0)
        return cls(at, share, column, coef)

    @cached_property
    def scale(self) -> float:
        """How far outputs are from their mean."""
        return float(np.sqrt(np.average((self.at.f - self.at.f.mean()) ** 2))) or 1.0

    @property
    def outputs(self) -> Array:
        """Outputs (n,) by one step."""
        at, leverage, start = self.at, self.at.leverage, self.at.f
        if self.column is not None:
            # The column leaves first.
            cross, square = np.einsum("ij,ji->i", at.rows, self.column), self._square
            leverage, start = leverage - cross**2 / square, start - cross * self.coef / square
        slope = at.slopes + at.curvature * (start - at.f)
        kept = self._kept(at.one_minus_leverage + at.curvature * (at.leverage - leverage))
        # A row that alone determines the intercept has no output without it: that of the fit stays.
        move = np.divide(slope, kept, out=np.zeros_like(slope), where=kept > 0.0)
        outputs: Array = start + self.share * move * leverage
        few = np.flatnonzero(at.cancels)
        # The same without the leverage, which is one here: the vertex of the row's parabola is exact.
        outputs[few] = at.targets[few] + move[few] / at.curvature[few]
        return outputs

    def _kept(self, one_minus_leverage: Array) -> Array:
        """1 - u e h (n,) for the shares of the rows that leave."""
        return one_minus_leverage + (1.0 - self.share) * (1.0 - one_minus_leverage)

    @property
    def _square(self) -> Array:
        """Entries (n,) of H^-1 of the columns that leave, one where none does."""
        assert self.column is not None
        square = np.einsum("ij,ij->j", self.column, self.column)
        return np.where(square > 0.0, square, 1.0)

    def missing(self, rows: Indices, outputs: Array) -> Array:
        """By how much (r,) descent would change outputs (r,) of rows, to first order in what parabolas miss."""
        at, leverage = self.at, self.at.leverage[rows]
        y, weight, f = at.program.y[:, None], at.program.weight[:, None], at.f[:, None]
        moves = np.divide(outputs - at.f[rows], leverage, out=np.zeros(len(rows)), where=leverage > 0.0)
        B = at.rows @ at.rows[rows].T
        change = B * moves
        missed = weight * at.loss.slope(y, f + change) - at.slopes[:, None] - at.curvature[:, None] * change
        missed[rows, np.arange(len(rows))] = 0.0
        kept, moved = self._kept(at.one_minus_leverage)[rows], np.abs(np.einsum("ij,ij->j", B, missed))
        return np.asarray(np.divide(moved, kept, out=np.zeros_like(kept), where=kept > 0.0))

    def descended(self, rows: Indices, first: Array) -> Array:
        """Outputs (r,) of some rows of a loss without jumps, from those of one step."""
        at, column = self.at, None if self.column is None else self.column[:, rows]
        given = at.loss, at.program.y, at.program.weight, at.f, at.curvature, at.rows
        return WithoutRows(*given, rows, self.share[rows], column, self.coef[rows]).outputs(first, self.scale)

    def converged(self, i: int, B: Array) -> tuple[float, bool]:
        """The output of a row without it, by steps until the pieces of the losses that all rows are on settle.

        And whether they do: steps that lead farther away are halved.
        """
        start, cross = self._without_column(i)
        f = before = start
        # What a residual changes in the end is larger by 1 / (1 - u e h).
        least, enough = np.inf, LAST_CHANGE * self.scale * self._kept(self.at.one_minus_leverage)[i]
        for _ in range(MOST_ROW_STEPS):
            missed, slope = self._missed(i, f)
            residual = f - start + _product(B, cross, missed)
            size = float(np.abs(residual).max())
            if size <= enough:
                return float(f[i]), True
            if size > least:
                f = 0.5 * (f + before)
                continue
            before, least = f, size
            f = f - residual - _product(B, cross, self._changes(B, cross, slope, residual))
        return float(before[i]), False

    def _changes(self, B: Array, cross: Array | None, slope: Array, residual: Array) -> Array:
        """What a step of outputs by -residual (n,) changes of slopes (n,) beyond the parabolas."""
        some = np.flatnonzero(slope)
        A = B[np.ix_(some, some)]
        if cross is not None:
            A -= np.outer(cross[some], cross[some])
        A *= slope[some]
        A.flat[:: len(A) + 1] += 1.0
        changes = np.zeros_like(slope)
        changes[some] = slope[some] * _solution(A, -residual[some])
        return changes

    def _without_column(self, i: int) -> tuple[Array, Array | None]:
        """Outputs (n,) when the column of a row has left, and c (n,) with which B becomes B - c c', if one has."""
        if self.column is None or not self.column[:, i].any():
            return self.at.f, None
        length = float(np.linalg.norm(self.column[:, i]))
        cross: Array = self.at.rows @ self.column[:, i] / length
        return self.at.f - cross * (self.coef[i] / length), cross

    def _missed(self, i: int, f: Array) -> tuple[Array, Array]:
        """Slopes (n,) at outputs f, without row i, less those of the parabolas, and the derivatives (n,) of it."""
        program, loss = self.at.program, self.at.loss
        y, weight = program.y, program.weight
        slope, curvature = weight * loss.slope(y, f), weight * loss.curvature(y, f)
        missed = slope - self.at.slopes - self.at.curvature * (f - self.at.f)
        missed[np.abs(missed) < 1e-12 * (1.0 + np.abs(slope))] = 0.0
        change = np.where(missed != 0.0, curvature - self.at.curvature, 0.0)
        missed[i] -= self.share[i] * slope[i]
        change[i] = curvature[i] - self.at.curvature[i] - self.share[i] * curvature[i]
        return missed, change


def _product(B: Array, cross: Array | None, values: Array) -> Array:
    """(B - c c') @ values (n,), for B that is symmetric and values of which many may be zero."""
    some = np.flatnonzero(values)
    product: Array = B @ values if 2 * len(some) > len(values) else values[some] @ B[some]
    return product if cross is None else product - cross * float(cross @ values)


def _solution(A: Array, right: Array) -> Array:
    """A^-1 right, or the shortest solution of least squares if there is no inverse."""
    try:
        return np.asarray(np.linalg.solve(A, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(A, right, rcond=None)[0])
