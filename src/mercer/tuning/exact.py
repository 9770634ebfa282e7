"""Kernel and penalty by exact leave-one-out, every row a center: one decomposition a kernel, none for alpha."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.gram import Budget, gram
from mercer.gram.blocks import cuts
from mercer.kernels.base import Kernel
from mercer.linalg import blas_threads, limit_threads, map_in_threads, threads_each
from mercer.linalg.threads import SMALL, at_most
from mercer.rows.table import n_rows
from mercer.scores.criteria import CriterionFor
from mercer.solvers import Observations, Spectrum, decompose, degrees_of_freedom, fitted, leave_out, solve
from mercer.solvers.spectrum import Coefficients, Penalty, output_error
from mercer.tuning.memory import BLAS_BUFFER, Exact, check_exact, exact_sizes, exact_threads, row_bytes
from mercer.tuning.path import ALPHAS, FINAL_POINTS, SCREEN_POINTS, Tuned, TuningPath, climb
from mercer.types import Array, Indices


@dataclass(frozen=True)
class ExactProblem:
    """Points X (u rows), what was observed there, and how a fit is judged.

    ``criterion`` gives the criterion for some of the rows, which are of ``classes`` or not; ``alpha`` is a number,
    or None for leave-one-out; ``fold`` (n,) names the rows that leave together, and ``apart`` folds without which
    the model is asked for as well.
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


def at_points(
    kernel: Kernel, X: Any, Y: Array, weight: Array, unit: Array, doubt: Array | None = None
) -> tuple[Any, Observations]:
    """The distinct rows of X, and what was observed there; values of a kernel stay as they are."""
    rows = kernel.distinct(X)
    return kernel.subset(X, rows.first), Observations(Y, weight, unit, rows, doubt)


def tune(kernel: Kernel, problem: ExactProblem, rng: np.random.RandomState) -> Tuned:
    """Settle the words of the kernel and alpha by leave-one-out; O(u³) for each candidate kernel.

    Whether the last decomposition, of all points, stays within the budget is looked at first.
    """
    check_exact(problem.extent, problem.budget)
    threads = exact_threads(problem.extent, problem.budget.n_bytes, blas_threads())
    with at_most(threads):
        return _tune(kernel, replace(problem, budget=problem.budget.less((threads - 1) * BLAS_BUFFER)), rng)


def _tune(kernel: Kernel, problem: ExactProblem, rng: np.random.RandomState) -> Tuned:
    candidates = kernel.candidates(problem.X, problem.observations.point_weight)
    if problem.intercept and problem.penalty == "rkhs":
        # The coefficients sum to zero: nothing but digits depends on the origin.
        candidates = [each.around(problem.X) for each in candidates]
    paths = _screen(candidates, problem, rng) if len(candidates) > 1 else ()
    chosen = paths[-1].kernels[paths[-1].best[0]] if paths else candidates[0]
    threads = blas_threads() if n_rows(problem.X) > SMALL else 1
    with limit_threads(1):
        return _finish(chosen, problem, paths, threads)


def _finish(kernel: Kernel, problem: ExactProblem, paths: tuple[TuningPath, ...], threads: int) -> Tuned:
    """Choose alpha for the kernel on all points."""
    observations = problem.observations
    spectrum = _spectrum(kernel, problem, threads)
    _, step = exact_sizes(problem.extent, problem.budget.n_bytes, 1)
    alphas, scores = _alpha_path(problem, spectrum, step)
    last = TuningPath([kernel], alphas[None], scores[None], n_rows(problem.X))
    alpha = float(last.alphas[last.best])
    solution = solve(spectrum, observations, alpha)
    loo = leave_out(spectrum, observations, np.array([alpha]), problem.fold)[0]
    return Tuned(
        kernel=kernel,
        alpha=alpha,
        coef=solution.coef,
        intercept=solution.intercept,
        fitted=fitted(spectrum, observations, alpha),
        loo=loo,
        degrees_of_freedom=float(degrees_of_freedom(spectrum, np.array([alpha]))[0]),
        rank=spectrum.rank,
        negative=spectrum.negative,
        error=output_error(spectrum, observations, loo, alpha),
        paths=(*paths, last),
        otherwise=_otherwise(spectrum, observations, alpha),
        without={f: _without(spectrum, problem, alpha, loo, f) for f in problem.apart},
    )


def _without(spectrum: Spectrum, problem: ExactProblem, alpha: float, loo: Array, f: int) -> Coefficients:
    """The model without a fold: the fit to targets that are, for the rows of the fold, its own outputs there."""
    inside = np.asarray(problem.fold) == f
    own = np.where(inside[:, None], loo, problem.observations.Y)
    return solve(spectrum, replace(problem.observations, Y=own), alpha)


def _otherwise(spectrum: Spectrum, observations: Observations, alpha: float) -> Array | None:
    """Left-out outputs (n, q) under the other reading of weights, where it is in doubt."""
    doubted = observations.doubted
    return None if doubted is None else leave_out(spectrum, doubted, np.array([alpha]))[0]


def _screen(kernels: list[Kernel], problem: ExactProblem, rng: np.random.RandomState) -> tuple[TuningPath, ...]:
    """All kernels on a part of the points, and where that was not all of them, the best on a larger part."""
    if n_rows(problem.X) <= SCREEN_POINTS:
        return (search(kernels, problem),)
    order = rng.permutation(n_rows(problem.X))
    first = search(kernels, _sample(problem, kernels[0], order[:SCREEN_POINTS]))
    some = _sample(problem, kernels[0], order[:FINAL_POINTS])
    return first, climb(kernels, first.leaders(), lambda few: search(few, some))


def search(kernels: list[Kernel], problem: ExactProblem) -> TuningPath:
    """The criterion of every kernel for every alpha."""
    n = n_rows(problem.X)
    each = threads_each(n)
    workers = min(max(blas_threads() // each, 1), len(kernels))
    at_once, step = exact_sizes(problem.extent, problem.budget.n_bytes, workers)
    tried = map_in_threads(
        lambda kernel: _alpha_path(problem, _spectrum(kernel, problem, each), step),
        kernels,
        each=each,
        most=at_once,
    )
    problem.budget.release()
    alphas, scores = (np.array(part) for part in zip(*tried))
    return TuningPath(kernels, alphas, scores, n)


def _alpha_path(problem: ExactProblem, spectrum: Spectrum, step: int) -> tuple[Array, Array]:
    """Alphas (a,) and the criterion of each, ``step`` of them at a time."""
    alphas = np.array([problem.alpha]) if problem.alpha is not None else ALPHAS * (spectrum.trace or 1.0)
    judge = problem.criterion(np.arange(len(problem.observations.Y)))
    parts = [alphas[some] for some in cuts(len(alphas), step)]
    return alphas, np.concatenate(
        [judge(leave_out(spectrum, problem.observations, part, problem.fold)) for part in parts]
    )


def _spectrum(kernel: Kernel, problem: ExactProblem, threads: int) -> Spectrum:
    K = gram(kernel, problem.X, budget=problem.budget)
    weight = problem.observations.point_weight
    return decompose(K, weight, penalty=problem.penalty, intercept=problem.intercept, threads=threads)


def _sample(problem: ExactProblem, kernel: Kernel, points: Indices) -> ExactProblem:
    """The problem at some of its points, with all rows there."""
    if len(points) == n_rows(problem.X):
        return problem
    points = np.sort(points)
    part, rows = problem.observations.at_points(points)
    return replace(
        problem,
        X=kernel.subset(problem.X, points),
        observations=part,
        criterion=lambda some: problem.criterion(rows[some]),
        fold=None if problem.fold is None else problem.fold[rows],
    )
