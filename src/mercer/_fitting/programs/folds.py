"""Leave-one-out of machines with centers selected without the row; alpha of logistic ones by held-out folds.

Leave-one-out of the logistic loss by a Newton step is too good where alpha is so small that few rows have
curvature, and each of many alphas costs a Hessian for every output. Fits without folds cost gradients only,
those of all folds and outputs together, and each fold may have centers that were selected without its targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercer._fitting.programs.problem import FINER_ALPHAS, MachineAtAlpha, MachineColumns, MachineProblem
from mercer._fitting.selection.path import COARSE_ALPHAS
from mercer._solvers.orthogonal.folds import dealt
from mercer._solvers.programs import solve_all
from mercer._solvers.programs.leave_one_out.newton_steps import LooOutputs, degrees_of_freedom, loo_of_rows
from mercer._solvers.programs.losses import Logistic
from mercer._solvers.programs.smooth.simultaneous import Programs, solve_together
from mercer._types import Array, Indices
from mercer.rows._table import n_rows

# Folds; the second number for more rows than the last one, and where centers are selected for each of them.
PROGRAM_FOLDS, FEW_FOLDS, MANY_ROWS = 10, 5, 2000
# Fewer points are held out one by one.
LEAST_POINTS_OF_FOLDS = 2 * PROGRAM_FOLDS
# What a fit without a fold, or one of which rows are held out, may still gain, as a share of that of f = 0.
# A fit of separable classes that ended earlier would be one with a larger alpha, better than what it stands for.
FOLD_GAIN = 1e-8
# The path begins with this alpha of COARSE_ALPHAS, 1e-4 of the trace, and goes on in both directions; the second
# number of alphas in a row that do not lower the criterion ends it.
FIRST_COARSE_ALPHA, FOLD_ALPHAS_WITHOUT_GAIN = 5, 2


def has_folds(problem: MachineProblem) -> bool:
    """Whether alpha is chosen by held-out folds."""
    logistic = all(isinstance(loss, Logistic) for loss in problem.losses)
    return logistic and not problem.is_sparse and n_rows(problem.exact.X) >= LEAST_POINTS_OF_FOLDS


def with_selections(columns: MachineColumns) -> MachineColumns:
    """The columns and, if targets select the centers, those without the rows of each fold."""
    problem = columns.problem
    if problem.select is None or n_rows(problem.exact.X) < LEAST_POINTS_OF_FOLDS:
        return columns
    folds, without = MachineFolds(columns), []
    for part, own in folds.parts:
        held_out = np.isin(folds.fold, own)
        without.append((replace(part, held_out=np.flatnonzero(held_out)), np.flatnonzero(held_out[problem.row])))
    return replace(columns, without=tuple(without), held_out=np.zeros(0, dtype=np.intp))


@dataclass(frozen=True)
class WithoutFolds:
    """Fits for one alpha without each fold: losses (n,) of held-out rows, and coefficients for each part."""

    alpha: float
    losses: Array
    criterion: float
    theta: Sequence[Array]


@dataclass(frozen=True)
class MachineFolds:
    """The columns of the fit to all rows, and folds of its points, each with columns of its own if targets select
    the centers.
    """

    columns: MachineColumns

    @property
    def problem(self) -> MachineProblem:
        return self.columns.problem

    @cached_property
    def fold(self) -> Indices:
        """The fold (n,) of each observation: that of its point, dealt class by class."""
        given, n = self.problem.observations, n_rows(self.problem.exact.X)
        target = self.problem.exact.observations.point_target
        label = target.argmax(axis=1) if target.shape[1] > 1 else target[:, 0] > 0.0
        costly = self.problem.select is not None or n > MANY_ROWS
        fold = dealt(label[:, None], FEW_FOLDS if costly else PROGRAM_FOLDS)
        return np.asarray(fold[given.rows.point])

    @cached_property
    def parts(self) -> list[tuple[MachineColumns, Indices]]:
        """Columns, and the folds whose rows are predicted with them."""
        folds = np.unique(self.fold)
        if self.problem.select is None:
            return [(self.columns, folds)]
        rows, kernel = self.problem.observations.rows, self.columns.kernel
        without = [self.problem.selected(np.unique(rows.point[self.fold != f])) for f in folds]
        return [(problem.columns(kernel), folds[f : f + 1]) for f, problem in enumerate(without)]

    def path(self) -> list[WithoutFolds]:
        """The fits for all alphas that may be best: from a usual one up and down, and between these."""
        first = self.fits(COARSE_ALPHAS[FIRST_COARSE_ALPHA] * self.columns.unit)
        less, more = (
            self._onward(first, COARSE_ALPHAS[FIRST_COARSE_ALPHA - 1 :: -1]),
            self._onward(first, COARSE_ALPHAS[FIRST_COARSE_ALPHA + 1 :]),
        )
        found = [first, *less, *more]
        best = min(found, key=lambda fits: fits.criterion)
        found.extend(self.fits(best.alpha * factor, best) for factor in FINER_ALPHAS)
        return sorted(found, key=lambda fits: fits.alpha)

    def _onward(self, first: WithoutFolds, shares: Array) -> list[WithoutFolds]:
        """The fits for further alphas, one after the other, until they are past the best."""
        found = [first]
        for alpha in shares * self.columns.unit:
            found.append(self.fits(alpha, found[-1]))
            if self._is_past_best(found):
                break
        return found[1:]

    def fits(self, alpha: float, before: WithoutFolds | None = None) -> WithoutFolds:
        """The fits for one alpha, from those for another one."""
        outputs, theta = np.empty_like(self.problem.targets), []
        for place, (columns, folds) in enumerate(self.parts):
            start = None if before is None else before.theta[place]
            found = self._without(columns, folds, alpha, start)
            theta.append(found)
            for f, part in zip(folds, np.split(found, len(folds), axis=1)):
                rows = self.fold == f
                outputs[rows] = columns.Phi[rows] @ part[:-1] + part[-1]
        losses = self._losses(outputs[self.problem.row])
        return WithoutFolds(alpha, losses, float(self.problem.exact.criterion.share @ losses), theta)

    @cached_property
    def _scored_rows(self) -> Indices:
        """Rows by which alphas are compared: those that are no centers, unless most are, or targets select them.

        A held-out row at a center is not like a new one: the fit bends there to make up for centers that
        neighbors lack. If all rows are centers, it does not need to.
        """
        given, problem = self.problem.exact.observations, self.problem
        other = np.flatnonzero(~np.isin(given.rows.point, problem.centers))
        all_count = 2 * len(other) < len(given.Y) or problem.select is not None
        return np.arange(len(given.Y)) if all_count else other

    def _losses(self, outputs: Array) -> Array:
        """Losses (n,) of held-out outputs (n, q) whose mean over all rows is that of the compared ones."""
        exact, rows, losses = self.problem.exact, self._scored_rows, np.zeros(len(outputs))
        criterion = exact.criterion_for(rows)
        losses[rows] = criterion.losses(outputs[rows][None])[0] * (criterion.share / exact.criterion.share[rows])
        return losses

    def _without(self, columns: MachineColumns, folds: Indices, alpha: float, start: Array | None) -> Array:
        """Coefficients and intercepts (m + 1, folds times q) without each fold; alpha counts for all rows."""
        Y, weight = self.problem.targets, self.problem.observations.weight
        kept = (self.fold[:, None] != folds) * weight[:, None]
        share = float(kept.sum() / (weight.sum() * len(folds)))
        m, q = columns.n_kept(alpha), Y.shape[1]
        theta = np.zeros((columns.Phi.shape[1] + 1, len(folds) * q)) if start is None else start.copy()
        active = np.append(np.arange(m), -1)
        loss = self.problem.losses[0]
        assert isinstance(loss, Logistic)
        programs = Programs(
            loss,
            columns.Phi[:, :m],
            np.tile(Y, len(folds)),
            np.repeat(kept, q, axis=1),
            alpha * share,
            self.problem.exact.intercept,
        )
        theta[active], _ = solve_together(programs, theta[active], FOLD_GAIN)
        return theta

    def _is_past_best(self, found: Sequence[WithoutFolds]) -> bool:
        """Whether the last alphas did not lower the criterion, or raised it visibly."""
        best = int(np.argmin([fits.criterion for fits in found]))
        since = len(found) - 1 - best
        return since >= FOLD_ALPHAS_WITHOUT_GAIN or (
            since > 0 and self.columns.is_worse(found[-1].losses, found[best].losses)
        )

    def fit(self, alpha: float, near: WithoutFolds | None = None) -> MachineAtAlpha:
        """The fit to all rows for one alpha, to which other fits may be ``near``, if targets select its centers.

        Each row is held out of a fit whose centers were selected without its fold: those of all rows know its
        target.
        """
        programs, unit = self.columns.programs(alpha), self.problem.observations.unit
        solutions = solve_all(programs, [None] * len(programs))
        outputs, known = self.outputs_without(alpha, unit, near), np.ones(len(unit), dtype=bool)
        approximate_loo = [
            LooOutputs(f, known, degrees_of_freedom(program, found))
            for f, program, found in zip(outputs.T, programs, solutions)
        ]
        loo = outputs[self.problem.row]
        losses = self.problem.exact.criterion.losses(loo[None])[0]
        return MachineAtAlpha(self.columns, alpha, programs, solutions, approximate_loo, loo, losses)

    def outputs_without(self, alpha: float, unit: Array, near: WithoutFolds | None = None) -> Array:
        """Outputs (n, q) of observations without the part ``unit`` of each, with the centers of its fold."""
        outputs = np.empty_like(self.problem.targets)
        for place, (columns, folds) in enumerate(self.parts):
            rows, programs = np.flatnonzero(np.isin(self.fold, folds)), columns.programs(alpha)
            active = np.append(np.arange(programs[0].m), -1)
            starts = [None] * len(programs) if near is None else [*near.theta[place][active].T]
            solutions = solve_all(programs, starts, FOLD_GAIN)
            for output, each in enumerate(zip(programs, solutions)):
                outputs[rows, output] = loo_of_rows(*each, unit, rows)
        return outputs
