"""Kernel and alpha of a sparse fit by leave-one-out of the sparse fit itself, at the end of its path.

Rows are held out with their center. At the end of a long path every row is a center, or is represented by others,
and the selection of centers reveals least about targets: there the criterion is compared. Which kernels deserve
that is known from fits with few random centers, which cost less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.errors import NumericalError
from mercer.kernels.base import Kernel, grid_shape
from mercer.linalg import map_in_threads
from mercer.solvers.orthogonal.candidates import CandidateColumns, Points
from mercer.solvers.orthogonal.orders import Order, Sums, choose_order
from mercer.solvers.orthogonal.ridges import DiagonalFit, RidgeFit, surprise
from mercer.tuning.alpha import alpha_path, alphas_to_try
from mercer.tuning.compare import compare
from mercer.tuning.memory import AS_GOOD, MOST_AT_ONCE, judged_at_once, least_comparison, sparse_trial_bytes
from mercer.tuning.path import ALPHAS, TuningPath, joined
from mercer.tuning.search import along_axes, climb
from mercer.tuning.sparse_problem import COMPARED, SparseProblem
from mercer.types import Array, Indices

# Multiples of the unit tried for alpha, and of the mean of k(z, z) for the penalty "diagonal".
SHARES = ALPHAS[::2]
DIAGONALS = 10.0 ** np.linspace(-4.0, 1.5, 12)
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
    def place(self) -> int:
        """The position of the best alpha among all."""
        return int(self.path.scores[0].argmin())


@dataclass(frozen=True)
class KernelTrial:
    """The setting in which kernels are tried: a problem, candidate points (c,), the largest number of centers."""

    problem: SparseProblem
    pool: Indices
    most: int
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
            most=problem.settings.longest(c),
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

    def __call__(self, candidates: CandidateColumns, sums: Sums | None = None) -> TuningPath:
        """The criterion of the longest path for every alpha; O(u c² + c m² + u m²) for c candidates, m centers."""
        problem, settings = self.problem, self.problem.settings
        rng, points = np.random.default_rng(self.seed), Points.of(problem.observations)
        order = choose_order(candidates, points, settings.rule, settings.alpha, self.most, rng, sums)
        if len(order.centers) == 0:
            return self._without_columns(candidates.kernels[0])
        fits = self._fits(candidates, order.centers)
        alphas = self._alphas(fits, order)
        path = alpha_path(
            candidates.kernels[0],
            fits,
            alphas,
            problem.judge,
            at_once=judged_at_once(len(alphas), *problem.observations.Y.shape),
            n_points=problem.n_points,
            n_centers=len(order.centers),
        )
        # Scores that overflowed become NaN: infinity is reserved for kernels without columns.
        path = replace(path, scores=np.where(np.isfinite(path.scores), path.scores, np.nan))
        if problem.chosen_by == "evidence":
            return replace(path, surprise=surprise(candidates, problem.observations, alphas)[None])
        return self._by_gcv(path, fits) if problem.chosen_by == "gcv" and len(alphas) > 1 else path

    @property
    def _shares(self) -> Array:
        return DIAGONALS if self.problem.settings.rule.penalty == "diagonal" else SHARES

    def _fits(self, candidates: CandidateColumns, order: Indices) -> RidgeFit | DiagonalFit:
        penalty = self.problem.settings.rule.penalty
        if penalty == "diagonal":
            return DiagonalFit(candidates, self.problem.observations, order)
        return RidgeFit.of(candidates, self.problem.observations, order, penalty)

    def _alphas(self, fits: RidgeFit | DiagonalFit, order: Order) -> Array:
        """Alphas (a,) to compare: the given one, the last re-estimated one, or a grid."""
        alpha = self.problem.settings.alpha
        if alpha is None and order.alpha is not None:
            return order.alpha[-1:]
        return alphas_to_try(alpha, fits.unit, self._shares)

    def _by_gcv(self, path: TuningPath, fits: RidgeFit | DiagonalFit) -> TuningPath:
        """With generalized cross-validation, only its best alpha is compared with other kernels."""
        best = [int(np.argmin(fits.gcv(path.alphas[0], self.problem.settings.rule.cost)))]
        return replace(path, alphas=path.alphas[:, best], scores=path.scores[:, best])

    def _without_columns(self, kernel: Kernel) -> TuningPath:
        """No column differs from a constant: the worst of all choices."""
        settings, chosen_by = self.problem.settings, self.problem.chosen_by
        one = settings.alpha is not None or settings.rule.penalty == "orthogonal" or chosen_by == "gcv"
        alphas = np.ones((1, 1 if one else len(self._shares)))
        worst = np.full(alphas.shape, np.inf)
        return TuningPath(
            [kernel], alphas, worst, self.problem.n_points, 0, worst if chosen_by == "evidence" else None
        )


def compare_kernels(
    kernel: Kernel, problem: SparseProblem, rng: np.random.Generator
) -> tuple[Kernel, tuple[TuningPath, ...]]:
    """The best of the candidates of a kernel, and the comparisons; none if there is only one candidate.

    Fits with few random centers find the kernels that matter, and sparse fits decide between these and neighbors.
    Where the evidence decides, it is computed along every parameter.
    """
    if problem.chosen_by == "evidence":
        kernels, paths = _by_evidence(kernel, problem, rng)
    else:
        kernels, paths = _by_leaving_out(kernel, problem, rng)
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


def _by_leaving_out(
    kernel: Kernel, problem: SparseProblem, rng: np.random.Generator
) -> tuple[Sequence[Kernel], tuple[TuningPath, ...]]:
    """The best few kernels of fits with random centers, and neighbors while they are better, by sparse fits."""
    u, (rows, most) = problem.n_points, COMPARED
    few, exact = AS_GOOD * problem.settings.longest(u), problem.with_random_centers
    if not kernel.settled:
        stage = least_comparison(exact.extent, few)
        problem.budget.require(stage.n_bytes, stage.name)
    compared = compare(kernel, exact, rng, around=False, alone=False, once=True, most=few)
    kernels = compared.candidates
    if len(kernels) == 1:
        return kernels, ()
    points = rng.permutation(u)[:rows]
    trial = KernelTrial.drawn(problem.at(kernel, points), rng, most)
    start = {compared.best, *compared.close[:FINALISTS]}
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
    if path.surprise is not None:
        close = path.scores <= path.least.min() * (1.0 + np.sqrt(2.0 / n))
        g, a = divmod(int(np.where(close, path.surprise, np.inf).argmin()), close.shape[1])
    return path.kernels[g], float(path.alphas[g, a])
