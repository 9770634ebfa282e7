"""Kernel parameters and penalty by exact leave-one-out: one decomposition for each kernel, none for alpha."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import Budget, gram, gram_bytes, n_rows, take
from mercer.kernels.base import Composition, Kernel
from mercer.linalg import blas_threads, limit_threads, map_in_threads, threads_each
from mercer.linalg.threads import SMALL
from mercer.scores.criteria import CriterionFor
from mercer.solvers import Observations, Spectrum, decompose, leave_out
from mercer.solvers.spectrum import Penalty

Array = NDArray[np.float64]

# alpha="loo" tries these multiples of the trace of the centered kernel matrix.
ALPHAS = 10.0 ** np.linspace(-8.0, 0.5, 35)
# Kernels are compared on at most so many points: all of them on the first number, then the best and their
# neighbors in the grid on the second; the penalty is chosen on all points.
SCREEN_POINTS = 1000
FINAL_POINTS = 3000
FINALISTS = 3


@dataclass(frozen=True)
class Path:
    """What was tried: kernels (g), their alphas (g, a), the criterion (g, a), on how many points."""

    kernels: list[Kernel]
    alphas: Array
    scores: Array
    n_points: int

    @property
    def best(self) -> tuple[int, int]:
        """Position of the least score; among equals (to nine digits) the largest alpha, then the first kernel."""
        if not np.isfinite(self.scores).any():
            raise ValueError(
                "the leave-one-out criterion is not finite for any alpha; scale the inputs and targets"
            )
        least = np.nanmin(self.scores)
        g, a = np.nonzero(self.scores <= least + 1e-9 * abs(least))
        chosen = np.lexsort((g, -a))[0]
        return int(g[chosen]), int(a[chosen])


@dataclass(frozen=True)
class Tuned:
    """The chosen kernel and alpha, the spectrum of all points, outputs of rows left out (n, q), what was tried.

    ``paths`` ends with the chosen kernel alone on all points; kernels that were compared come before.
    """

    kernel: Kernel
    alpha: float
    observations: Observations
    spectrum: Spectrum
    loo: Array
    paths: tuple[Path, ...]
    fold: NDArray[np.intp] | None


@dataclass(frozen=True)
class Problem:
    """Points X (u rows), what was observed there, and how a fit is judged.

    ``criterion`` gives the criterion for some of the rows; ``alpha`` is a number, or None for
    leave-one-out; ``fold`` (n,) names the rows that leave together.
    """

    X: Any
    observations: Observations
    criterion: CriterionFor
    alpha: float | None
    penalty: Penalty
    intercept: bool
    budget: Budget
    fold: NDArray[np.intp] | None = None


def tune(kernel: Kernel, problem: Problem, rng: np.random.RandomState) -> Tuned:
    """Settle the words of the kernel and alpha by leave-one-out; O(u³) for each candidate kernel."""
    candidates = kernel.candidates(problem.X, problem.observations.point_weight)
    paths = _screen(candidates, problem, rng) if len(candidates) > 1 else ()
    chosen = paths[-1].kernels[paths[-1].best[0]] if paths else candidates[0]
    threads = blas_threads() if n_rows(problem.X) > SMALL else 1
    with limit_threads(1):
        return _finish(chosen, problem, paths, threads)


def _finish(kernel: Kernel, problem: Problem, paths: tuple[Path, ...], threads: int) -> Tuned:
    """Choose alpha for the kernel on all points."""
    spectrum = _spectrum(kernel, problem, threads)
    alphas, scores = _alpha_path(problem, spectrum)
    last = Path([kernel], alphas[None], scores[None], n_rows(problem.X))
    alpha = float(last.alphas[last.best])
    loo = leave_out(spectrum, problem.observations, np.array([alpha]), problem.fold)[0]
    return Tuned(kernel, alpha, problem.observations, spectrum, loo, (*paths, last), problem.fold)


def _screen(kernels: list[Kernel], problem: Problem, rng: np.random.RandomState) -> tuple[Path, ...]:
    """All kernels on a part of the points, and where that was not all of them, the best on a larger part."""
    if n_rows(problem.X) <= SCREEN_POINTS:
        return (_search(kernels, problem),)
    order = rng.permutation(n_rows(problem.X))
    first = _search(kernels, _sample(problem, kernels[0], order[:SCREEN_POINTS]))
    best = np.argsort(first.scores.min(axis=1), kind="stable")[:FINALISTS]
    return first, _climb(kernels, {int(g) for g in best}, _sample(problem, kernels[0], order[:FINAL_POINTS]))


def _climb(kernels: list[Kernel], start: set[int], problem: Problem) -> Path:
    """Kernels ``start``, and then neighbors of the best until none is better: more rows want narrower kernels."""
    tried: dict[int, tuple[Array, Array]] = {}
    # Candidates of a sum or product are a grid of several dimensions: their numbers are no neighbors.
    in_line = not isinstance(kernels[0], Composition)
    wanted = start
    while wanted:
        path = _search([kernels[g] for g in sorted(wanted)], problem)
        tried |= dict(zip(sorted(wanted), zip(path.alphas, path.scores)))
        best = min(tried, key=lambda g: tried[g][1].min())
        wanted = {g for g in (best - 1, best + 1) if 0 <= g < len(kernels)} - tried.keys() if in_line else set()
    order = sorted(tried)
    alphas, scores = (np.array([tried[g][part] for g in order]) for part in (0, 1))
    return Path([kernels[g] for g in order], alphas, scores, n_rows(problem.X))


def _search(kernels: list[Kernel], problem: Problem) -> Path:
    """The criterion of every kernel for every alpha."""
    n = n_rows(problem.X)
    at_once = int(max(problem.budget.n_bytes // gram_bytes(n), 1))
    each = threads_each(n)
    tried = map_in_threads(
        lambda kernel: _alpha_path(problem, _spectrum(kernel, problem, each)), kernels, each=each, most=at_once
    )
    alphas, scores = (np.array(part) for part in zip(*tried))
    return Path(kernels, alphas, scores, n)


def _alpha_path(problem: Problem, spectrum: Spectrum) -> tuple[Array, Array]:
    """Alphas (a,) and the criterion of each."""
    alphas = np.array([problem.alpha]) if problem.alpha is not None else ALPHAS * (spectrum.trace or 1.0)
    outputs = leave_out(spectrum, problem.observations, alphas, problem.fold)
    return alphas, problem.criterion(np.arange(outputs.shape[1]))(outputs)


def _spectrum(kernel: Kernel, problem: Problem, threads: int) -> Spectrum:
    K = gram(kernel, problem.X, budget=problem.budget)
    weight = problem.observations.point_weight
    return decompose(K, weight, penalty=problem.penalty, intercept=problem.intercept, threads=threads)


def _sample(problem: Problem, kernel: Kernel, points: NDArray[np.intp]) -> Problem:
    """The problem at some of its points, with all rows there."""
    if len(points) == n_rows(problem.X):
        return problem
    points = np.sort(points)
    part, rows = problem.observations.at_points(points)
    return replace(
        problem,
        X=take(kernel, problem.X, points),
        observations=part,
        criterion=lambda some: problem.criterion(rows[some]),
        fold=None if problem.fold is None else problem.fold[rows],
    )
