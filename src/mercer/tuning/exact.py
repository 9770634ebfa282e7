"""Kernel and penalty by exact leave-one-out with every row as a center: one decomposition per kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.gram import Budget, gram
from mercer.kernels.base import Kernel
from mercer.linalg import blas_threads, limit_threads, threads_each
from mercer.linalg.threads import SMALL, at_most
from mercer.rows.table import n_rows
from mercer.scores.criteria import Criterion, CriterionFor
from mercer.solvers import Observations, decompose
from mercer.solvers.exact import SpectrumFit
from mercer.solvers.spectrum import Penalty
from mercer.tuning.alpha import alpha_path, alphas_to_try, choose_alpha
from mercer.tuning.memory import BLAS_BUFFER, Exact, check_exact, exact_sizes, exact_threads, row_bytes
from mercer.tuning.path import ALPHAS, FINAL_POINTS, SCREEN_POINTS, Tuned, TuningPath
from mercer.tuning.search import climb, search
from mercer.types import Array, Indices


@dataclass(frozen=True)
class ExactProblem:
    """Points X (u rows), observations there, and how a fit is evaluated.

    ``criterion`` returns the criterion for some of the rows, with or without ``classes``; ``alpha`` is a number,
    or None for leave-one-out; ``fold`` (n,) numbers the rows that are held out together, and ``apart`` lists folds
    for which the model without them is also returned.
    """

    X: Any
    observations: Observations
    criterion: CriterionFor
    alpha: float | None
    penalty: Penalty
    intercept: bool
    budget: Budget
    fold: Indices | None = None
    apart: tuple[int, ...] = ()
    classes: bool = True

    @property
    def extent(self) -> Exact:
        """What its memory depends on."""
        n, q = self.observations.Y.shape
        alphas = len(ALPHAS) if self.alpha is None else 1
        return Exact(n, n_rows(self.X), q, row_bytes(self.X), alphas, self.classes)

    @property
    def judge(self) -> Criterion:
        """The criterion for all rows."""
        return self.criterion(np.arange(len(self.observations.Y)))

    def at(self, kernel: Kernel, points: Indices) -> "ExactProblem":
        """The problem at some of its points, with all rows there."""
        if len(points) == n_rows(self.X):
            return self
        points = np.sort(points)
        part, rows = self.observations.at_points(points)
        return replace(
            self,
            X=kernel.subset(self.X, points),
            observations=part,
            criterion=lambda some: self.criterion(rows[some]),
            fold=None if self.fold is None else self.fold[rows],
        )


def at_points(
    kernel: Kernel, X: Any, Y: Array, weight: Array, unit: Array, doubt: Array | None = None
) -> tuple[Any, Observations]:
    """The distinct rows of X, and the observations there; kernel values are not merged."""
    rows = kernel.distinct(X)
    return kernel.subset(X, rows.first), Observations(Y, weight, unit, rows, doubt)


def tune(kernel: Kernel, problem: ExactProblem, rng: np.random.Generator) -> Tuned:
    """Choose kernel parameters and alpha by leave-one-out; O(u³) for each candidate kernel.

    First checks whether the last decomposition, of all points, stays within the budget.
    """
    check_exact(problem.extent, problem.budget)
    threads = exact_threads(problem.extent, problem.budget.n_bytes, blas_threads())
    with at_most(threads):
        return _tune(kernel, replace(problem, budget=problem.budget.less((threads - 1) * BLAS_BUFFER)), rng)


def _tune(kernel: Kernel, problem: ExactProblem, rng: np.random.Generator) -> Tuned:
    candidates = kernel.candidates(problem.X, problem.observations.point_weight)
    if problem.intercept and problem.penalty == "rkhs":
        # The coefficients sum to zero: the origin only affects accuracy.
        candidates = [each.around(problem.X) for each in candidates]
    paths = _screen(candidates, problem, rng) if len(candidates) > 1 else ()
    chosen = paths[-1].kernels[paths[-1].best[0]] if paths else candidates[0]
    threads = blas_threads() if n_rows(problem.X) > SMALL else 1
    with limit_threads(1):
        return _finish(chosen, problem, paths, threads)


def _finish(kernel: Kernel, problem: ExactProblem, paths: tuple[TuningPath, ...], threads: int) -> Tuned:
    """Choose alpha for the kernel on all points."""
    fits = _fits(kernel, problem, threads)
    _, at_once = exact_sizes(problem.extent, problem.budget.n_bytes, 1)
    tuned = choose_alpha(
        kernel,
        fits,
        alphas_to_try(problem.alpha, fits.spectrum.trace),
        problem.judge,
        at_once=at_once,
        n_points=n_rows(problem.X),
        again=True,
        paths=paths,
        release=problem.budget.release,
    )
    return replace(tuned, without={f: fits.without(f, tuned.alpha, tuned.loo) for f in problem.apart})


def _screen(kernels: list[Kernel], problem: ExactProblem, rng: np.random.Generator) -> tuple[TuningPath, ...]:
    """All kernels on a part of the points and, if that was not all of them, the best on a larger part."""
    if n_rows(problem.X) <= SCREEN_POINTS:
        return (search_exact(kernels, problem),)
    order = rng.permutation(n_rows(problem.X))
    first = search_exact(kernels, problem.at(kernels[0], order[:SCREEN_POINTS]))
    some = problem.at(kernels[0], order[:FINAL_POINTS])
    return first, climb(kernels, first.leaders(), lambda few: search_exact(few, some))


def search_exact(kernels: Sequence[Kernel], problem: ExactProblem) -> TuningPath:
    """The criterion of every kernel for every alpha."""
    n = n_rows(problem.X)
    each = threads_each(n)
    workers = min(max(blas_threads() // each, 1), len(kernels))
    side_by_side, at_once = exact_sizes(problem.extent, problem.budget.n_bytes, workers)

    def trial(kernel: Kernel) -> TuningPath:
        fits = _fits(kernel, problem, each)
        alphas = alphas_to_try(problem.alpha, fits.spectrum.trace)
        return alpha_path(kernel, fits, alphas, problem.judge, at_once=at_once, n_points=n)

    found = search(kernels, trial, each=each, most=side_by_side)
    problem.budget.release()
    return found


def _fits(kernel: Kernel, problem: ExactProblem, threads: int) -> SpectrumFit:
    K = gram(kernel, problem.X, budget=problem.budget)
    weight = problem.observations.point_weight
    spectrum = decompose(K, weight, penalty=problem.penalty, intercept=problem.intercept, threads=threads)
    return SpectrumFit(spectrum, problem.observations, problem.fold)
