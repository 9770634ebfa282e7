"""Kernel parameters and penalty by exact leave-one-out: one decomposition for each kernel, none for alpha."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import Budget, gram, n_rows, take
from mercer.kernels.base import Kernel
from mercer.scores.criteria import CriterionFor
from mercer.solvers import Observations, Spectrum, decompose, leave_out
from mercer.solvers.spectrum import Penalty

Array = NDArray[np.float64]

# alpha="loo" tries these multiples of the trace of the centered kernel matrix.
ALPHAS = 10.0 ** np.linspace(-8.0, 0.5, 35)
# A search over kernels uses at most this many distinct rows; the penalty is then chosen on all.
SEARCH_ROWS = 2000


@dataclass(frozen=True)
class Path:
    """What was tried: kernels (g), their alphas (g, a), the criterion (g, a), on how many distinct rows."""

    kernels: list[Kernel]
    alphas: Array
    scores: Array
    n_rows: int

    @property
    def best(self) -> tuple[int, int]:
        """Position of the least score; the largest alpha among equals."""
        reversed_best = int(np.argmin(self.scores[:, ::-1]))
        g, a = np.unravel_index(reversed_best, self.scores.shape)
        return int(g), int(self.scores.shape[1] - 1 - a)


@dataclass(frozen=True)
class Tuned:
    """The chosen kernel and alpha, the spectrum of all rows, their outputs when left out (n, q), the path."""

    kernel: Kernel
    alpha: float
    observations: Observations
    spectrum: Spectrum
    loo: Array
    path: Path
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
    if len(candidates) == 1:
        return _on_all_rows(candidates[0], problem, None)
    sample = _sample(problem, kernel, rng)
    path, spectrum = _try_all(candidates, sample)
    chosen = candidates[path.best[0]]
    if sample is problem:
        return _finish(chosen, problem, path, path.best, spectrum)
    return _on_all_rows(chosen, problem, path)


def _on_all_rows(kernel: Kernel, problem: Problem, searched: Path | None) -> Tuned:
    path, spectrum = _try_all([kernel], problem)
    tuned = _finish(kernel, problem, path, path.best, spectrum)
    return tuned if searched is None else replace(tuned, path=searched)


def _try_all(kernels: list[Kernel], problem: Problem) -> tuple[Path, Spectrum]:
    """The path over all kernels, and the spectrum of the best."""
    best: Spectrum | None = None
    alphas: list[Array] = []
    scores: list[Array] = []
    for kernel in kernels:
        spectrum = _spectrum(kernel, problem)
        grid = _alphas(problem, spectrum)
        score = _scores(problem, spectrum, grid)
        if best is None or score.min() < min(s.min() for s in scores):
            best = spectrum
        alphas.append(grid)
        scores.append(score)
    assert best is not None
    return Path(kernels, np.array(alphas), np.array(scores), problem.observations.rows.n_points), best


def _spectrum(kernel: Kernel, problem: Problem) -> Spectrum:
    K = gram(kernel, problem.X, budget=problem.budget)
    weight = problem.observations.point_weight
    return decompose(K, weight, penalty=problem.penalty, intercept=problem.intercept)


def _alphas(problem: Problem, spectrum: Spectrum) -> Array:
    if problem.alpha is not None:
        return np.array([problem.alpha])
    return ALPHAS * (spectrum.trace or 1.0)


def _scores(problem: Problem, spectrum: Spectrum, alphas: Array) -> Array:
    outputs = leave_out(spectrum, problem.observations, alphas, problem.fold)
    return problem.criterion(np.arange(outputs.shape[1]))(outputs)


def _finish(kernel: Kernel, problem: Problem, path: Path, best: tuple[int, int], spectrum: Spectrum) -> Tuned:
    alpha = float(path.alphas[best])
    loo = leave_out(spectrum, problem.observations, np.array([alpha]), problem.fold)[0]
    return Tuned(kernel, alpha, problem.observations, spectrum, loo, path, problem.fold)


def _sample(problem: Problem, kernel: Kernel, rng: np.random.RandomState) -> Problem:
    """The problem itself while it is small, else a random part of its points with all their rows."""
    u = n_rows(problem.X)
    if u <= SEARCH_ROWS:
        return problem
    points = np.sort(rng.permutation(u)[:SEARCH_ROWS])
    part, rows = problem.observations.at_points(points)
    return replace(
        problem,
        X=take(kernel, problem.X, points),
        observations=part,
        criterion=lambda some: problem.criterion(rows[some]),
        fold=None if problem.fold is None else problem.fold[rows],
    )
