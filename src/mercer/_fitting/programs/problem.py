"""Programs of kernel machines for many alphas: a loss, a penalty, columns from kernel values; the path of fits."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mercer._fitting.selection.path import COARSE_ALPHAS, CRITERION_TIE, INSIGNIFICANT_SHARE, Trial
from mercer._fitting.selection.problem import ExactProblem
from mercer._fitting.spec import AnyPenalty
from mercer._gram.blocks import check_finite
from mercer._linalg import eigen_psd
from mercer._solvers import Observations
from mercer._solvers.programs import Program, Solution, solve, solve_all
from mercer._solvers.programs.leave_one_out.newton_steps import (
    LooOutputs,
    can_follow,
    has_one_side,
    loo_of_program,
)
from mercer._solvers.programs.leave_one_out.refits import refit_without
from mercer._solvers.programs.losses import Loss, NonSmoothLoss, Rounded, SquaredHinge
from mercer._types import Array, Indices
from mercer.kernels import Kernel
from mercer.rows._distinct import Distinct
from mercer.rows._table import in_double, n_rows

# From points (p,) to those that are centers, and centers that are no points, selected by the points' targets.
Select = Callable[[Indices], tuple[Indices, Any]]
# Directions of the kernel matrix with less than this share of alpha are not distinguished from zero.
NEGLIGIBLE = 1e-8
# Multiples of the least alpha without any coefficient.
L1_SHARES = 10.0 ** np.linspace(-5.0, -0.25, 20)
# Alphas between those of the path, around the best.
FINER_ALPHAS = 10.0 ** np.array([-0.375, 0.375])
# The number of smaller alphas in a row without a lower criterion that ends the path.
ALPHAS_WITHOUT_GAIN = 3
# Of sparse fits, one that is worse than the best by at most this many standard errors is as good.
SPARSE_STANDARD_ERRORS = 0.5
# Arcs that replace kinks, in standard deviations of the targets.
BEND = 0.2
# Dual variables below this share of the largest are zero.
NO_SUPPORT = 1e-6


@dataclass(frozen=True)
class MachineProblem:
    """Points and observations, a loss for each output (q), a penalty, and which points are centers (m,).

    ``l1_share`` is the part of |c|_1 in the penalty; ``others`` are centers that are no points, None: there are
    none. ``select`` returns both, selected by the targets of some points; None: centers do not depend on targets.
    """

    exact: ExactProblem
    losses: tuple[Loss, ...]
    penalty: AnyPenalty
    l1_share: float
    centers: Indices
    others: Any = None
    select: Select | None = None

    def selected(self, points: Indices) -> "MachineProblem":
        """The problem with centers selected by the targets of some points."""
        assert self.select is not None
        centers, others = self.select(points)
        return replace(self, centers=centers, others=others)

    @property
    def observations(self) -> Observations:
        """Observations of which none are equal: their weights are added."""
        return self._merged[0]

    @property
    def row(self) -> Indices:
        """The observation (n,) that each row is."""
        return self._merged[1]

    @cached_property
    def _merged(self) -> tuple[Observations, Indices]:
        given = self.exact.observations
        unit = given.unit if given.opposite_unit is None else np.column_stack([given.unit, given.opposite_unit])
        key = np.column_stack([given.rows.point, given.Y, unit])
        _, first, row = np.unique(key, axis=0, return_index=True, return_inverse=True)
        row, point = row.reshape(-1), given.rows.point[first]
        rows = Distinct(np.unique(point, return_index=True)[1], point)
        opposite_unit = None if given.opposite_unit is None else given.opposite_unit[first]
        weight = np.bincount(row, given.weight).astype(np.float64)
        return Observations(given.Y[first], weight, given.unit[first], rows, opposite_unit), row

    @property
    def is_sparse(self) -> bool:
        """Whether the penalty makes coefficients zero."""
        return self.penalty in ("l1", "elastic_net")

    @property
    def targets(self) -> Array:
        """Targets (n, q) of the losses: -1 and +1 for classes."""
        Y = self.observations.Y
        return 2.0 * Y - 1.0 if self.exact.has_classes and Y.shape[1] > 1 else Y

    @property
    def has_every_point(self) -> bool:
        return self.others is None and len(self.centers) == n_rows(self.exact.X)

    @property
    def rounded(self) -> "MachineProblem":
        """The problem with arcs for kinks: leave-one-out by steps on smooth losses."""
        arcs = [
            Rounded(each, BEND * s) if isinstance(each, NonSmoothLoss) else each for each, s in self._with_spread
        ]
        return replace(self, losses=tuple(arcs))

    @property
    def _with_spread(self) -> Iterable[tuple[Loss, float]]:
        """The losses with the standard deviations of their targets."""
        weight, Y = self.observations.weight, self.targets
        spread = np.sqrt(np.average((Y - np.average(Y, axis=0, weights=weight)) ** 2, axis=0, weights=weight))
        return zip(self.losses, np.where(spread > 0.0, spread, 1.0).tolist())

    def columns(self, kernel: Kernel) -> "MachineColumns":
        """The columns of the programs for a kernel; O(n m² + m³) for the penalty of the norm, else O(n m)."""
        X = in_double(self.exact.X)
        Z = kernel.centers(X, self.centers) if self.others is None else self.others
        K = kernel.blocks_for_widths(X, Z)(kernel)
        check_finite(kernel, K)
        rows = self.observations.rows.point
        if self.penalty != "rkhs":
            return MachineColumns(self, kernel, np.asarray(K, dtype=np.float64)[rows], None)
        among = K[self.centers] if self.others is None else kernel.blocks_for_widths(Z, Z)(kernel)
        eigen = eigen_psd(np.array(among, dtype=np.float64, order="F"))
        kept = np.flatnonzero(eigen.values > 0.0)[::-1]
        back = eigen.vectors[:, kept] / np.sqrt(eigen.values[kept])
        Phi = (np.asarray(K, dtype=np.float64) @ back)[rows]
        return MachineColumns(self, kernel, Phi, back, eigen.negative)


@dataclass(frozen=True)
class MachineColumns:
    """Columns Phi (n, r) of the rows; coefficients of the centers are ``back`` (m, r) times those of the columns.

    ``back`` is None if the columns are kernel values; otherwise columns are in the order of eigenvalues of the
    kernel matrix of the centers, the largest first, of which the ``negative`` part, in units of the largest, was
    clipped; None: not computed. ``without`` are columns of centers that were selected without the targets of some
    rows (r,), which are held out of them. ``held_out`` are the observations that are held out here, None: all.
    """

    problem: MachineProblem
    kernel: Kernel
    Phi: Array
    back: Array | None
    negative: float | None = None
    without: "tuple[tuple[MachineColumns, Indices], ...]" = ()
    held_out: Indices | None = None

    @cached_property
    def unit(self) -> float:
        """What alphas are multiples of: the trace of the centered columns, or the least without coefficients."""
        if self.problem.is_sparse:
            return self._largest_slope() / self.problem.l1_share or 1.0
        weight = self.problem.observations.weight
        return float(self._energy.sum() - ((weight @ self.Phi) ** 2).sum() / weight.sum()) or 1.0

    def program(self, output: int, alpha: float) -> Program:
        """The program of one output."""
        problem, given = self.problem, self.problem.observations
        lasso = alpha * problem.l1_share if problem.is_sparse else 0.0
        return Program(
            problem.losses[output],
            self.Phi[:, : self.n_kept(alpha)],
            np.ascontiguousarray(problem.targets[:, output]),
            given.weight,
            alpha - lasso,
            lasso,
            problem.exact.intercept,
        )

    def fit(self, alpha: float, before: "MachineAtAlpha | None" = None) -> "MachineAtAlpha":
        """The fits of all outputs, from those of another alpha, if there are any."""
        programs = self.programs(alpha)
        known = [None] * len(programs) if before is None else before.solutions
        starts = [None if s is None else _padded(s, p.m) for p, s in zip(programs, known)]
        found = MachineAtAlpha.of(self, alpha, programs, solve_all(programs, starts))
        earlier = (None,) * len(self.without) if before is None else before.parts
        return self._crossed(found, [each.fit(alpha, old) for (each, _), old in zip(self.without, earlier)])

    def _crossed(self, found: "MachineAtAlpha", parts: "Sequence[MachineAtAlpha]") -> "MachineAtAlpha":
        """The fit with outputs of held-out rows from ``parts``, whose centers were selected without them."""
        if not parts:
            return found
        loo, loo_opposite = found.loo.copy(), None if found.loo_opposite is None else found.loo_opposite.copy()
        for (_, rows), part in zip(self.without, parts):
            loo[rows] = part.loo[rows]
            if loo_opposite is not None and part.loo_opposite is not None:
                loo_opposite[rows] = part.loo_opposite[rows]
        losses = self.problem.exact.criterion.losses(loo[None])[0]
        return replace(found, loo=loo, losses=losses, loo_opposite=loo_opposite, parts=tuple(parts))

    def programs(self, alpha: float) -> list[Program]:
        """The programs of all outputs."""
        return [self.program(output, alpha) for output in range(len(self.problem.losses))]

    def path(self) -> "list[MachineAtAlpha]":
        """The fits for all alphas that may be best: from the largest down, and between these."""
        given = self.problem.exact.alpha
        if given is not None:
            return [self.fit(given)]
        found: list[MachineAtAlpha] = []
        for alpha in (L1_SHARES if self.problem.is_sparse else COARSE_ALPHAS)[::-1] * self.unit:
            found.append(self.fit(alpha, found[-1] if found else None))
            if _is_past_best(found):
                break
        if not self.problem.is_sparse:
            best = min(found, key=lambda fit: fit.criterion)
            found.extend(self.fit(best.alpha * factor, best) for factor in FINER_ALPHAS)
        return sorted(found, key=lambda fit: fit.alpha)

    def trial(self, path: "Sequence[AtAlpha]") -> Trial:
        """The criterion along a path."""
        alphas, losses = np.array([fit.alpha for fit in path]), np.stack([fit.losses for fit in path])
        return Trial.of(self.kernel, alphas, losses, self.problem.exact.criterion.share)

    def chosen(self, path: "Sequence[MachineAtAlpha]") -> "MachineAtAlpha":
        """The best fit; of sparse ones, that of the largest alpha which is not worse by half an error."""
        best = path[self.trial(path).alpha_position]
        if not self.problem.is_sparse:
            return best
        return next(fit for fit in reversed(path) if fit is best or not self.is_worse(fit.losses, best.losses))

    def is_worse(self, losses: Array, best: Array) -> bool:
        """Whether losses (n,) are larger than the best by more than a share of the paired standard error."""
        exact = self.problem.exact
        share, given = exact.criterion.share, exact.observations
        more = losses - best
        mean = float(share @ more)
        # A row with a weight of two counts as two rows.
        variance = float((share**2 * given.unit / given.weight) @ (more - mean) ** 2)
        return not mean <= max(SPARSE_STANDARD_ERRORS * variance**0.5, INSIGNIFICANT_SHARE * float(share @ best))

    def without_arcs(self, found: "MachineAtAlpha", rows: Indices | None = None) -> "MachineAtAlpha":
        """The fit of the problem itself, without arcs for kinks, and leave-one-out outputs of some rows."""
        programs, solutions = found.programs, found.solutions
        if found.columns.problem.losses != self.problem.losses:
            programs = self.programs(found.alpha)
            solutions = [solve(p, _padded(each, p.m)) for p, each in zip(programs, found.solutions)]
        fit = replace(found, columns=self, programs=programs, solutions=solutions)
        given = self.problem.observations
        # With parts only the fit itself is needed here.
        some = np.zeros(0, dtype=np.intp) if self.without else rows
        approximate_loo = (
            found.approximate_loo if programs is found.programs else found.loo_outputs(given.unit, with_kinks=True)
        )
        loo = fit.outputs_without(found, approximate_loo, given.unit, some)
        loo_opposite = None
        if given.opposite_unit is not None:
            approximate_loo = found.loo_outputs(given.opposite_unit, with_kinks=True)
            loo_opposite = fit.outputs_without(found, approximate_loo, given.opposite_unit, some)
        fit = replace(
            fit, loo=loo, losses=self.problem.exact.criterion.losses(loo[None])[0], loo_opposite=loo_opposite
        )
        parts = [self._like(each).without_arcs(old, own) for (each, own), old in zip(self.without, found.parts)]
        return self._crossed(fit, parts)

    def _like(self, columns: "MachineColumns") -> "MachineColumns":
        """Columns of other centers with the losses of these."""
        return replace(columns, problem=replace(columns.problem, losses=self.problem.losses))

    @cached_property
    def _energy(self) -> Array:
        """Weighted sums of squares (r,) of the columns."""
        energy: Array = self.problem.observations.weight @ self.Phi**2
        return energy

    def n_kept(self, alpha: float) -> int:
        """How many columns matter for this alpha."""
        if self.back is None:
            return int(self.Phi.shape[1])
        return int(np.flatnonzero(self._energy > NEGLIGIBLE * alpha).max(initial=0)) + 1

    def _largest_slope(self) -> float:
        """The least weight of |c|_1 at which all coefficients are zero: the largest slope at the best constant."""
        slopes = []
        for output in range(len(self.problem.losses)):
            program = self.program(output, 1.0)
            constant = solve(replace(program, Phi=np.zeros((len(self.Phi), 1)), ridge=1.0, lasso=0.0))
            slopes.append(float(np.abs(constant.beta @ program.Phi).max(initial=0.0)))
        return max(slopes)


class AtAlpha(Protocol):
    """What is compared: an alpha, and the losses (n,) of held-out rows."""

    @property
    def alpha(self) -> float: ...

    @property
    def losses(self) -> Array: ...


@dataclass(frozen=True)
class MachineAtAlpha:
    """The solutions of all outputs for one alpha, leave-one-out outputs (n, q) and their losses (n,).

    ``approximate_loo`` are the outputs before rows were fitted without where they are not to be trusted.
    """

    columns: MachineColumns
    alpha: float
    programs: Sequence[Program]
    solutions: Sequence[Solution]
    approximate_loo: Sequence[LooOutputs]
    loo: Array
    losses: Array
    # Leave-one-out outputs (n, q) under the opposite reading of the weights, if they are ambiguous.
    loo_opposite: Array | None = None
    # Fits with other centers, for held-out rows.
    parts: "tuple[MachineAtAlpha, ...]" = ()

    @classmethod
    def of(
        cls, columns: MachineColumns, alpha: float, programs: Sequence[Program], solutions: Sequence[Solution]
    ) -> "MachineAtAlpha":
        problem = columns.problem
        approximate_loo = _loo_of_outputs(
            columns, programs, solutions, problem.observations.unit, with_kinks=False
        )
        loo = np.column_stack([each.outputs for each in approximate_loo])[problem.row]
        losses = problem.exact.criterion.losses(loo[None])[0]
        return cls(columns, alpha, programs, solutions, approximate_loo, loo, losses)

    @property
    def degrees_of_freedom(self) -> float:
        return max(each.degrees_of_freedom for each in self.approximate_loo)

    @property
    def criterion(self) -> float:
        return float(self.columns.problem.exact.criterion.share @ self.losses)

    @property
    def gap(self) -> float:
        """The largest duality gap, as a share of the objective of f = 0."""
        return max(found.gap / program.scale for program, found in zip(self.programs, self.solutions))

    @property
    def intercept(self) -> Array:
        return np.array([found.intercept for found in self.solutions])

    def loo_outputs(self, unit: Array, *, with_kinks: bool = False) -> list[LooOutputs]:
        """Each row without the part ``unit`` (n,) of its weight, for each output; losses are smooth."""
        return _loo_of_outputs(self.columns, self.programs, self.solutions, unit, with_kinks=with_kinks)

    def outputs_without(
        self, arcs: "MachineAtAlpha", approximate_loo: Sequence[LooOutputs], unit: Array, rows: Indices | None
    ) -> Array:
        """Leave-one-out outputs (n, q) without the part ``unit`` of each row, from those of the fit with arcs.

        Where these are not to be trusted, by fits without the rows, if they are among ``rows`` (None: all).
        """
        problem, outputs = self.columns.problem, []
        own, refitted = _own_columns(problem, unit), np.zeros(len(unit), dtype=bool)
        refitted[problem.row if rows is None else problem.row[rows]] = True
        for place, (program, found) in enumerate(zip(self.programs, self.solutions)):
            f, rest = (
                approximate_loo[place].outputs.copy(),
                np.flatnonzero(~approximate_loo[place].trusted & refitted),
            )
            if program is not arcs.programs[place] and not can_follow(program, own):
                # Arcs may move all outputs, where little determines the constant: only the change without the row
                # counts.
                f += _outputs(program, found) - _outputs(arcs.programs[place], arcs.solutions[place])
            f[rest] = refit_without(program, found, unit / program.weight, own, rest)
            outputs.append(f)
        return np.column_stack(outputs)[problem.row]

    @property
    def coef(self) -> Array:
        """Coefficients (m, q) of the centers; zero for those of rows that do not support the fit."""
        return np.column_stack([self._coef(output) for output in range(len(self.solutions))])

    def _coef(self, output: int) -> Array:
        back, problem = self.columns.back, self.columns.problem
        found, loss = self.solutions[output], problem.losses[output]
        if back is None:
            return found.coef
        if (
            problem.has_every_point
            and not self.columns.negative
            and isinstance(loss, NonSmoothLoss | SquaredHinge)
        ):
            # f = K beta / alpha: rows without slope have no coefficient.
            rows = problem.observations.rows
            beta = np.bincount(rows.point, found.beta, minlength=rows.n_points) / self.alpha
            kept = np.abs(beta) > NO_SUPPORT * np.abs(beta).max(initial=0.0)
            return np.asarray(np.where(kept, beta, 0.0)[problem.centers])
        return np.asarray(back[:, : len(found.coef)] @ found.coef)


def _loo_of_outputs(
    columns: MachineColumns,
    programs: Sequence[Program],
    solutions: Sequence[Solution],
    unit: Array,
    *,
    with_kinks: bool,
) -> list[LooOutputs]:
    """Each row without the part ``unit`` (n,) of its weight, for each output; losses are smooth.

    Of losses with arcs for kinks, those with kinks if ``with_kinks``, and for the hinge in any case.
    """
    own, rows = _own_columns(columns.problem, unit), columns.held_out
    return [
        loo_of_program(p, found, unit, own, with_kinks=with_kinks or has_one_side(p.loss), rows=rows)
        for p, found in zip(programs, solutions)
    ]


def _outputs(program: Program, found: Solution) -> Array:
    """f (n,)."""
    return program.outputs(found.coef, found.intercept)


def _own_columns(problem: MachineProblem, unit: Array) -> Indices | None:
    """The column (n,) that leaves with the part ``unit`` (n,) of a row, -1: none; None: none is of a row."""
    if problem.penalty == "rkhs" or problem.others is not None:
        return None
    given = problem.observations
    rows, column = given.rows, np.full(given.rows.n_points, -1)
    # A point with several rows, or copies of one, keeps its center when one of them leaves.
    alone = np.bincount(rows.point, given.weight / unit, minlength=rows.n_points)[problem.centers] < 1.5
    column[problem.centers] = np.where(alone, np.arange(len(problem.centers)), -1)
    return np.asarray(column[rows.point])


def _is_past_best(found: Sequence[MachineAtAlpha]) -> bool:
    """Whether the last alphas of a descending path did not lower the criterion."""
    values = [fit.criterion for fit in found]
    return len(values) > ALPHAS_WITHOUT_GAIN and min(values[-ALPHAS_WITHOUT_GAIN:]) > (1.0 - CRITERION_TIE) * min(
        values[:-ALPHAS_WITHOUT_GAIN]
    )


def _padded(found: Solution, m: int) -> Array:
    """A start (m + 1,) from a solution with another number of columns."""
    coef = np.zeros(m)
    coef[: min(m, len(found.coef))] = found.coef[:m]
    return np.append(coef, found.intercept)
