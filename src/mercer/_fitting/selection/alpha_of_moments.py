"""Alpha by leave-one-out from moments: rows of a sample held out from the fit to all rows.

With many centers, alphas are factored one by one: a Cholesky factor with its inverse takes m³ multiplications,
nearly all in matrix products, an eigendecomposition nine times as many, half of them bound by memory.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer._fitting.memory import evaluated_at_once
from mercer._fitting.result import ChosenSolution
from mercer._fitting.selection.alpha import OutputCriterion, choose_alpha, scores_near
from mercer._fitting.selection.centers import LEAST_ALPHA_SHARE, MANY_CENTERS, ModelSelection, SampleProblem
from mercer._fitting.selection.path import ALPHAS, TuningPath
from mercer._gram.blocks import cuts
from mercer._gram.moments import Moments
from mercer._gram.precision import MOST_ROUNDING_SINGLE
from mercer._linalg.threads import at_most
from mercer._solvers.moments.leave_one_out import MomentFit, ReselectedFits
from mercer._solvers.moments.ridge import MOST_ROUNDING, MomentProblem, MomentSpectrum, decompose_moments
from mercer._solvers.programs.smooth.output_fits import OutputFits
from mercer._types import Array, Floats, Indices
from mercer.errors import NumericalError
from mercer.rows._base import Block
from mercer.rows._progress import stage
from mercer.rows._sources.memory import HeldRows
from mercer.rows._table import in_single

# The moments of the rows of a fold.
FoldMoments = Callable[[int], Moments]

# Rows on which few alphas are compared: leave-one-out of each costs as much as a pass over the rows.
ROWS_COMPARING_ALPHA = 2000
# Rows of a block of leave-one-out outputs: few enough that the sample is divided evenly among threads.
LOO_ROWS_OF_BLOCK = 1024


def choose_alpha_from_moments(
    selection: ModelSelection,
    moments: Moments,
    problem: SampleProblem,
    *,
    scored_rows: Indices | None = None,
    fold_moments: FoldMoments | None = None,
    reselected: ReselectedFits | None = None,
) -> ChosenSolution:
    """Choose alpha by leave-one-out: rows of the sample, single or in folds, held out from the fit to all rows.

    ``scored_rows`` are the rows of the sample on which alphas are compared, None: all; ``fold_moments`` returns
    those of a fold, if rows are held out together; ``reselected`` fits with other centers for rows that selected
    the centers.
    """
    m = selection.n_centers
    one_by_one = m > MANY_CENTERS and problem.alpha is None and fold_moments is None and reselected is None
    if one_by_one and selection.alpha is not None:
        near = _path_near(selection, selection.alpha, moments, problem, scored_rows)
        if near is not None:
            path, spectrum = near
            problem = replace(problem, alpha=float(path.alphas[path.best]))
            solution = select_alpha(selection, _fit_of(selection, spectrum, problem), problem, scored_rows)
            return replace(solution, paths=(*selection.paths, path))
    with stage(f"decomposition for {m:,} centers", verbose=problem.verbose):
        fits = replace(moment_fit(selection, moments, problem, fold_moments), reselected=reselected)
    return select_alpha(selection, fits, problem, scored_rows)


def _path_near(
    selection: ModelSelection,
    start: float,
    moments: Moments,
    problem: SampleProblem,
    scored_rows: Indices | None,
) -> tuple[TuningPath, MomentSpectrum] | None:
    """A few alphas around one, compared on some of the rows by a Cholesky factor each, and that of the best.

    None where factors do not have enough digits: an eigendecomposition is needed.
    """
    rows = np.arange(problem.sample.n_rows) if scored_rows is None else scored_rows
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, ROWS_COMPARING_ALPHA).astype(np.intp))]
    subset = problem.some(selection.kernel, rows)
    criterion, rounding = _criterion(subset, None), _rounding(selection, problem)
    on_moments = MomentProblem(moments, selection.factor, problem.intercept, rounding)
    least, most = np.array([LEAST_ALPHA_SHARE, ALPHAS[-1]]) * (on_moments.scale or 1.0)
    best = _Best()

    def score(alpha: float) -> float:
        spectrum = on_moments.factored(alpha)
        if spectrum is None:
            raise NumericalError(f"alpha={alpha:.1e} is too small for a Cholesky factor of the moments")
        found = float(criterion(_fit_of(selection, spectrum, subset).loo_outputs(np.array([alpha])))[0])
        best.offer(alpha, found, spectrum)
        problem.budget.release()
        return found

    words = f"Cholesky factors for {selection.n_centers:,} centers"
    with suppress(NumericalError), stage(words, verbose=problem.verbose):
        scores = scores_near(lambda alphas: np.array([*map(score, alphas.tolist())]), start, (least, most))
        path = TuningPath([selection.kernel], *scores, len(rows), selection.n_centers)
        alpha = float(path.alphas[path.best])
        spectrum = best.at(alpha) or on_moments.factored(alpha)
        return None if spectrum is None else (path, spectrum)
    return None


def _rounding(selection: ModelSelection, problem: SampleProblem) -> float:
    """Errors of sums allowed in Cholesky factors: of kernel values in float32 those that the pass may have."""
    return MOST_ROUNDING_SINGLE if in_single(problem.sample.X, selection.centers.rows) else MOST_ROUNDING


class _Best:
    """The spectrum with the smallest criterion so far; the others are not kept."""

    def __init__(self) -> None:
        self._found: tuple[float, float, MomentSpectrum] | None = None

    def offer(self, alpha: float, criterion: float, spectrum: MomentSpectrum) -> None:
        if self._found is None or criterion < self._found[1]:
            self._found = alpha, criterion, spectrum

    def at(self, alpha: float) -> MomentSpectrum | None:
        """That of this alpha; None: it was not the best."""
        return self._found[2] if self._found is not None and self._found[0] == alpha else None


def select_alpha(
    selection: ModelSelection,
    fits: MomentFit | OutputFits,
    problem: SampleProblem,
    scored_rows: Indices | None,
) -> ChosenSolution:
    """The fit at the best alpha; the alphas tried are multiples of the trace of the spectrum."""
    m, n = selection.n_centers, problem.sample.n_rows
    with stage(f"leave-one-out of {n:,} rows", verbose=problem.verbose):
        return choose_alpha(
            selection.kernel,
            fits,
            _alphas(fits.spectrum, problem),
            _criterion(problem, scored_rows),
            at_once=problem.plan.alphas,
            n_points=n,
            n_centers=m,
            recompute_loo=False,
            paths=selection.paths,
            release=problem.budget.release,
        )


def moment_fit(
    selection: ModelSelection, moments: Moments, problem: SampleProblem, fold_moments: FoldMoments | None = None
) -> MomentFit:
    """Fits to all rows for every alpha, with leave-one-out for the rows of the sample."""
    decompose = partial(decompose_moments, K=selection.factor, intercept=problem.intercept, alpha=problem.alpha)
    problem.budget.release()
    fits = _fit_of(selection, decompose(moments), problem)
    problem.budget.release()
    if fold_moments is None:
        return fits
    return replace(fits, fold=problem.fold, spectrum_without=lambda f: decompose(moments - fold_moments(f)))


def _fit_of(selection: ModelSelection, spectrum: MomentSpectrum, problem: SampleProblem) -> MomentFit:
    return MomentFit(
        kernel=selection.kernel,
        centers=selection.centers.rows,
        spectrum=spectrum,
        sample=problem.sample,
        reduce=partial(_sum_over, problem),
        cells=problem.plan.cells,
        opposite_unit=problem.opposite_unit,
        unrepresented=selection.unrepresented,
        residuals=problem.label is None,
        copies=problem.copies,
    )


def _sum_over(problem: SampleProblem, rows: Block, of_block: Callable[[Block], Any]) -> Any:
    """of_block(block) summed over rows in memory, in as many threads as memory allows."""
    with at_most(problem.plan.sample_threads):
        total = HeldRows(rows, block_rows=LOO_ROWS_OF_BLOCK).reduce(of_block)
    problem.budget.release()
    return total


def _alphas(spectrum: MomentSpectrum, problem: SampleProblem) -> Array:
    """The penalties to be tried: none below the rounding error of the moments, unless given by the user."""
    if problem.alpha is not None:
        return np.array([problem.alpha])
    low, high = np.array([LEAST_ALPHA_SHARE, ALPHAS[-1]]) * (spectrum.trace or 1.0)
    error = spectrum.negative * spectrum.values.max(initial=0.0)
    return np.geomspace(min(max(low, error), high), high, len(ALPHAS))


def _criterion(problem: SampleProblem, scored_rows: Indices | None) -> OutputCriterion:
    """The criterion (a,) of outputs (a, n, q) on some of the rows."""

    def evaluate(outputs: Floats) -> Array:
        if scored_rows is not None:
            outputs = outputs[:, scored_rows]
        criterion = problem.criterion_for(np.arange(outputs.shape[1]) if scored_rows is None else scored_rows)
        parts = [outputs[some] for some in cuts(len(outputs), evaluated_at_once(*outputs.shape))]
        with at_most(problem.plan.sample_threads):
            return np.concatenate([criterion(part) for part in parts])

    return evaluate
