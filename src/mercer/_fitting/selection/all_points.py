"""Kernels with every point as a center: a Cholesky factor for each of a few alphas."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from mercer._fitting.memory import ExactShape, SearchStage, matrices_held, root_workers
from mercer._fitting.selection.alpha import ALPHA_PAIR
from mercer._fitting.selection.path import Trial
from mercer._fitting.selection.problem import ExactProblem
from mercer._gram import gram
from mercer._linalg import blas_threads
from mercer._linalg.threads import INTERRUPTIBLE_ROWS
from mercer._solvers.exact_fits import AlphaFit, RootFit
from mercer._solvers.inverse_root import Projected
from mercer._types import Indices
from mercer.errors import NumericalError
from mercer.kernels._base import Kernel
from mercer.rows._progress import progress
from mercer.rows._table import in_single, n_rows

# Fits with all points as centers, by alpha.
FitsByAlpha = dict[float, AlphaFit]


def extent_of(kernel: Kernel, problem: ExactProblem) -> ExactShape:
    """What the memory of the fit depends on, with the solver that is tried first."""
    folds, singular = problem.fold is not None, problem.penalty == "coef"
    # Of rows in float32 the spectrum may be needed, too.
    roots = is_definite(kernel, problem) and not in_single(problem.X)
    matrices = matrices_held(kernel, problem.X, roots=roots, singular=singular, folds=folds)
    return replace(problem.extent, matrices=matrices, folds=folds)


def is_definite(kernel: Kernel, problem: ExactProblem) -> bool:
    """Whether Cholesky factors are tried: the matrix is large, and positive definite with any alpha."""
    return problem.penalty == "rkhs" and kernel.positive_semidefinite and n_rows(problem.X) > INTERRUPTIBLE_ROWS


def trial_at_all_points(kernel: Kernel, alpha: float, problem: ExactProblem) -> tuple[Trial, FitsByAlpha]:
    """A kernel with all points as centers, for alphas near one, or for the given one; values in float64.

    Also returns the fits, which are not those of kernel values in float32.
    """
    single = in_single(problem.X)
    if single:
        problem = replace(problem, X=problem.X.astype(np.float64))
    fits, criterion = root_fit(kernel, problem), problem.criterion
    chosen = np.maximum(alpha * ALPHA_PAIR, fits.projected.least_alpha)
    alphas = chosen if problem.alpha is None else np.array([alpha])
    losses = np.full((len(alphas), len(criterion.share)), np.inf)
    with suppress(NumericalError):
        losses = criterion.losses(fits.loo_outputs(alphas))
    return Trial.of(kernel, alphas, losses, criterion.share), {} if single else fits.fits


def root_fit(kernel: Kernel, problem: ExactProblem, fits_by_alpha: FitsByAlpha | None = None) -> RootFit:
    """The fits of a kernel, of which some may be known."""
    extent = extent_of(kernel, problem)
    K = gram(kernel, problem.X, budget=problem.budget, matrices=extent.matrices)
    matrix = Projected.of(K, problem.observations.point_weight, intercept=problem.intercept)
    workers = root_workers(extent, problem.budget.n_bytes, blas_threads())
    return RootFit(matrix, problem.observations, problem.fold, workers, fits_by_alpha or {})


@dataclass(frozen=True)
class AllPoints:
    """A problem at some of its points, all of which are centers."""

    problem: ExactProblem

    @classmethod
    def within(
        cls, kernels: Sequence[Kernel], problem: ExactProblem, order: Indices, stage: SearchStage, most: int
    ) -> "AllPoints | None":
        """At the points of a stage; None if the final fit has fewer centers, there are copies of rows, kernels may
        be indefinite, or memory is short.
        """
        if problem.orbits is not None or most < stage.n_rows or stage.n_centers >= stage.n_rows:
            return None
        found = cls(problem.at(kernels[0], order[: stage.n_rows]))
        if not all(is_definite(kernel, found.problem) for kernel in kernels):
            return None
        needed = max(extent_of(kernel, found.problem).n_bytes(1) for kernel in kernels)
        return found if needed <= problem.budget.n_bytes else None

    def trials(self, rough: Sequence[Trial]) -> list[Trial]:
        """The kernels of rough trials, at alphas near theirs."""
        words = f"comparison of kinds of kernels on {n_rows(self.problem.X):,} rows"
        found = []
        with progress(words, len(rough), verbose=self.problem.verbose, unit="kernels") as advance:
            for trial in rough:
                alpha = trial.alpha if self.problem.alpha is None else self.problem.alpha
                found.append(trial_at_all_points(trial.kernel, alpha, self.problem)[0])
                advance(1)
        self.problem.budget.release()
        return found
