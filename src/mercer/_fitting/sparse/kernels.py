"""Kernel and alpha of a sparse fit, by held-out rows of the sparse fit itself.

The centers for a row are selected without its fold. Alphas are compared at the end of a long path, where the
selection matters least: one serves all alphas of the penalties "rkhs" and "coef", while with "diagonal" and
"orthogonal", whose penalty depends on the centers, every alpha selects its own. Which kernels deserve that is
known from fits with few random centers, which cost less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer._fitting.memory import (
    MOST_AT_ONCE,
    RANDOM_PER_SELECTED,
    evaluated_at_once,
    least_comparison,
    sparse_trial_bytes,
)
from mercer._fitting.selection.alpha import alpha_path, alphas_to_try
from mercer._fitting.selection.comparison import compare_kernels
from mercer._fitting.selection.path import ALPHAS, TuningPath, joined
from mercer._fitting.selection.search import along_axes, climb
from mercer._fitting.sparse.problem import COMPARED_ROWS_AND_CANDIDATES, SparseProblem
from mercer._linalg import map_in_threads
from mercer._solvers.orthogonal.candidates import CandidateColumns, Points
from mercer._solvers.orthogonal.folds import COMPARED_FOLDS, Fold, folds_of, held_out
from mercer._solvers.orthogonal.orders import Order, mean_square
from mercer._solvers.orthogonal.path import along, path_of
from mercer._solvers.orthogonal.ridges import RidgeFit, marginal_deviance
from mercer._types import Array, Indices
from mercer.errors import NumericalError
from mercer.kernels._base import Kernel, grid_shape

# Multiples tried for alpha: of the unit; of the mean of k(z, z) for the penalty "diagonal"; of the mean square of
# a column for "orthogonal".
SHARES = ALPHAS[::2]
DIAGONALS = 10.0 ** np.linspace(-3.0, 1.5, 7)
ORTHOGONALS = 10.0 ** np.linspace(-7.0, 0.0, 8)
# Kernels between which sparse fits decide, besides the neighbors of the best of them.
FINALISTS = 3


@dataclass(frozen=True)
class KernelPath:
    """The path of one kernel."""

    path: TuningPath

    @property
    def least(self) -> float:
        """The smallest criterion, infinite if none is finite."""
        return float(self.path.least[0])

    @property
    def alpha_position(self) -> int:
        """The position of the best alpha among all."""
        return int(self.path.scores[0].argmin())


@dataclass(frozen=True)
class SelectedFit:
    """One alpha with the centers that it selected: criteria, and the number of centers."""

    alpha: float
    score: float
    gcv: float
    n_centers: int


@dataclass(frozen=True)
class FoldedRidges:
    """Rows of each fold, and fits for every alpha with the centers that were selected without it."""

    fits: list[tuple[Indices, RidgeFit]]

    @property
    def unit(self) -> float:
        """The natural unit of alpha."""
        return float(np.mean([fit.unit for _, fit in self.fits]))

    def loo_outputs(self, alphas: Array) -> Array:
        """Outputs (a, n, q) of every row for the models without it."""
        outputs = np.empty((len(alphas), *self.fits[0][1].observations.Y.shape))
        for rows, fit in self.fits:
            outputs[:, rows] = fit.loo_outputs(alphas, rows)
        return outputs

    def gcv(self, alphas: Array, cost: float) -> Array:
        """Generalized cross-validation (a,), the mean over the folds."""
        return np.asarray(np.mean([fit.gcv(alphas, cost) for _, fit in self.fits], axis=0))


@dataclass(frozen=True)
class KernelTrial:
    """The setting in which kernels are tried: a problem, and candidate points (c,)."""

    problem: SparseProblem
    pool: Indices
    seed: int

    @classmethod
    def drawn(
        cls, problem: SparseProblem, rng: np.random.Generator, n_candidates: int | None = None
    ) -> "KernelTrial":
        """With all points of the problem as candidates, or some at random."""
        u = problem.n_points
        c = u if n_candidates is None else min(n_candidates, u)
        return cls(
            problem=problem,
            pool=np.arange(u) if c == u else np.sort(rng.choice(u, c, replace=False)),
            seed=int(rng.integers(2**31)),
        )

    def paths(self, kernels: Sequence[Kernel]) -> list[KernelPath]:
        """The criterion of every kernel for every alpha, several kernels in parallel."""
        each = sparse_trial_bytes(self.problem.n_points, len(self.pool))
        most = int(max(1.0, min(self.problem.budget.n_bytes / each, MOST_AT_ONCE)))
        return map_in_threads(
            lambda kernel: KernelPath(self(CandidateColumns((kernel,), self.problem.X, self.pool))),
            kernels,
            most=most,
        )

    def __call__(self, candidates: CandidateColumns) -> TuningPath:
        """The criterion for every alpha; O(u c² + c m² + u m²) for c candidates and m centers, in each fold."""
        problem = self.problem
        folds = folds_of(candidates, problem.observations, COMPARED_FOLDS, np.random.default_rng(self.seed))
        if problem.settings.rule.penalty in ("diagonal", "orthogonal"):
            path = self._each_selected(candidates, folds)
        else:
            path = self._selected_once(candidates, folds)
        if path is None:
            return self._without_columns(candidates.kernels[0])
        # Scores that overflowed become NaN: infinity is reserved for kernels without columns.
        path = replace(path, scores=np.where(np.isfinite(path.scores), path.scores, np.nan))
        if problem.chosen_by == "evidence":
            return replace(
                path, marginal_deviance=marginal_deviance(candidates, problem.observations, path.alphas[0])[None]
            )
        return path

    def _order(self, fold: Fold, alpha: float | None) -> Order:
        """Centers selected without a fold, as many as the longest path has."""
        settings, most = self.problem.settings, len(fold.candidates.pool)
        return fold.order(settings.rule, alpha, settings.longest(most), np.random.default_rng(self.seed))

    def _selected_once(self, candidates: CandidateColumns, folds: list[Fold]) -> TuningPath | None:
        """Every alpha at the end of the longest path, which was selected with a small alpha."""
        problem, settings = self.problem, self.problem.settings
        orders = [self._order(fold, settings.alpha).centers for fold in folds]
        if not all(map(len, orders)):
            return None
        fits = FoldedRidges(
            [
                (fold.rows, RidgeFit.of(fold.candidates, problem.observations, order, settings.rule.penalty))
                for fold, order in zip(folds, orders)
            ]
        )
        alphas = alphas_to_try(settings.alpha, fits.unit, SHARES)
        if problem.chosen_by == "gcv" and len(alphas) > 1:
            alphas = alphas[[int(np.argmin(fits.gcv(alphas, settings.rule.cost)))]]
        return alpha_path(
            candidates.kernels[0],
            fits,
            alphas,
            problem.criterion,
            at_once=evaluated_at_once(len(alphas), *problem.observations.Y.shape),
            n_points=problem.n_points,
            n_centers=max(map(len, orders)),
        )

    def _each_selected(self, candidates: CandidateColumns, folds: list[Fold]) -> TuningPath | None:
        """Every alpha with its own selection."""
        problem, settings = self.problem, self.problem.settings
        alphas = [None] if settings.reestimated else self._alphas(candidates)
        found = [self._selected(folds, alpha) for alpha in alphas]
        tried = [each for each in found if each is not None]
        if len(tried) < len(alphas):
            return None
        if problem.chosen_by == "gcv":
            tried = [min(tried, key=lambda each: each.gcv)]
        return TuningPath(
            [candidates.kernels[0]],
            np.array([[each.alpha for each in tried]]),
            np.array([[each.score for each in tried]]),
            problem.n_points,
            max(each.n_centers for each in tried),
        )

    def _alphas(self, candidates: CandidateColumns) -> list[float]:
        """The alpha given, or those to be tried with the penalties "orthogonal" and "diagonal"."""
        settings = self.problem.settings
        if settings.rule.penalty == "orthogonal":
            unit, shares = mean_square(candidates, Points.of(self.problem.observations)), ORTHOGONALS
        else:
            unit, shares = float(np.abs(candidates.own(np.arange(len(candidates)))).mean()), DIAGONALS
        found: list[float] = alphas_to_try(settings.alpha, unit, shares).tolist()
        return found

    def _selected(self, folds: list[Fold], alpha: float | None) -> SelectedFit | None:
        """The fit with one alpha, or with the one that is re-estimated at every step; None without columns."""
        problem, rule, observations = self.problem, self.problem.settings.rule, self.problem.observations
        orders = [self._order(fold, alpha) for fold in folds]
        if not all(len(order.centers) for order in orders):
            return None
        fits = [
            (fold.rows, along(fold.candidates, observations, order, alpha, rule.penalty))
            for fold, order in zip(folds, orders)
        ]
        m = max(len(steps.order) for _, steps in fits)
        (outputs,) = held_out(fits, [observations], np.array([m]))
        gcv = np.inf
        if problem.chosen_by == "gcv":
            gcv = float(np.mean([path_of(steps, observations, rule.cost).gcv.min() for _, steps in fits]))
        last = float(np.mean([steps.alpha[-1] for _, steps in fits]))
        return SelectedFit(last if alpha is None else alpha, float(problem.criterion(outputs)[0]), gcv, m)

    def _without_columns(self, kernel: Kernel) -> TuningPath:
        """No column differs from a constant: the worst of all choices."""
        settings, chosen_by = self.problem.settings, self.problem.chosen_by
        one = settings.alpha is not None or settings.reestimated or chosen_by == "gcv"
        shares = {"diagonal": DIAGONALS, "orthogonal": ORTHOGONALS}.get(settings.rule.penalty, SHARES)
        alphas = np.ones((1, 1 if one else len(shares)))
        worst = np.full(alphas.shape, np.inf)
        return TuningPath(
            [kernel], alphas, worst, self.problem.n_points, 0, worst if chosen_by == "evidence" else None
        )


def compare_kernels_by_paths(
    kernel: Kernel, problem: SparseProblem, rng: np.random.Generator
) -> tuple[Kernel, tuple[TuningPath, ...]]:
    """The best of the candidates of a kernel, and the comparisons; none if there is only one candidate.

    Fits with few random centers find the kernels that matter, and sparse fits decide between these and neighbors.
    Where the evidence decides, it is computed along every parameter.
    """
    if problem.chosen_by == "evidence":
        kernels, paths = _by_evidence(kernel, problem, rng)
    else:
        kernels, paths = _by_leave_one_out(kernel, problem, rng)
    return favorite(paths[-1], problem.observations.n_counted)[0] if paths else kernels[0], paths


def _by_evidence(
    kernel: Kernel, problem: SparseProblem, rng: np.random.Generator
) -> tuple[Sequence[Kernel], tuple[TuningPath, ...]]:
    """Pairs of kernel and alpha on all points: all values of one parameter, those along the axes of several."""
    kernels = kernel.candidates(problem.X, problem.observations.point_weight)
    if len(kernels) == 1:
        return kernels, ()
    trial = KernelTrial.drawn(problem, rng)
    tried = along_axes(grid_shape(kernels), lambda some: trial.paths([kernels[g] for g in some]))
    return kernels, (_joined(tried),)


def _by_leave_one_out(
    kernel: Kernel, problem: SparseProblem, rng: np.random.Generator
) -> tuple[Sequence[Kernel], tuple[TuningPath, ...]]:
    """The best few kernels of fits with random centers, and neighbors while they are better, by sparse fits."""
    u, (rows, most) = problem.n_points, COMPARED_ROWS_AND_CANDIDATES
    random, exact = RANDOM_PER_SELECTED * problem.settings.longest(u), problem.with_random_centers
    if not kernel.resolved:
        stage = least_comparison(exact.extent, random)
        problem.budget.require(stage.n_bytes, stage.name)
    compared = compare_kernels(
        kernel, exact, rng, choose_origin=False, try_single=False, first_stage_only=True, most=random
    )
    kernels = compared.candidates
    if len(kernels) == 1:
        return kernels, ()
    points = rng.permutation(u)[:rows]
    trial = KernelTrial.drawn(problem.at(kernel, points), rng, most)
    start = {compared.best, *compared.indistinguishable[:FINALISTS]}
    tried = climb(start, grid_shape(kernels), lambda some: trial.paths([kernels[g] for g in some]))
    return kernels, (*compared.paths, _joined(tried))


def _joined(tried: Mapping[int, KernelPath]) -> TuningPath:
    return joined([tried[g].path for g in sorted(tried)])


def favorite(path: TuningPath, n: float) -> tuple[Kernel, float]:
    """Kernel and alpha with the smallest criterion, or by evidence if it is known.

    A mean of n squares of normal residuals has a relative standard error of sqrt(2/n): among the models within one
    standard error of the minimum, the evidence decides. Few rows cannot distinguish such models, and the minimum
    of many noisy criteria is often that of a wild one; evidence alone relies too much on the normal distribution.
    """
    if np.isnan(path.scores).all():
        raise NumericalError(
            "the leave-one-out criterion is NaN for every kernel and alpha; scale the features with a "
            "StandardScaler, or lower the kernel's parameters"
        )
    if not np.isfinite(path.scores).any():
        return path.kernels[0], float(path.alphas[0, -1])
    g, a = path.best
    if path.marginal_deviance is not None:
        close = path.scores <= path.least.min() * (1.0 + np.sqrt(2.0 / n))
        g, a = divmod(int(np.where(close, path.marginal_deviance, np.inf).argmin()), close.shape[1])
    return path.kernels[g], float(path.alphas[g, a])
