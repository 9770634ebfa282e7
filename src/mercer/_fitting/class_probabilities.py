"""Probabilities by the logistic loss: a second fit with the kernel of the first, kept if held-out rows gain."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mercer._fitting.kernel_learning.evidence import Gain, LearningData
from mercer._fitting.result import ChosenSolution, LogitSolution
from mercer._fitting.selection.all_points import extent_of
from mercer._fitting.selection.alpha import scores_near
from mercer._fitting.selection.problem import ExactProblem
from mercer._fitting.spec import SecondFit
from mercer._gram import gram, gram_bytes
from mercer._scores.criteria import CriterionFor
from mercer._solvers.exact_fits import AlphaFit
from mercer._solvers.logistic import LogisticFits
from mercer._solvers.spectrum import Coefficients
from mercer._types import Array, Indices
from mercer.errors import NumericalError
from mercer.kernels._base import Kernel
from mercer.rows._progress import stage
from mercer.rows._table import n_rows

# Fewer rows say too little about which loss is better.
LEAST_ROWS_FOR_LOGITS = 100
# Alphas are compared on at most this number of rows.
ROWS_TO_COMPARE = 1500
# Up to this number of points kernels learned without a part of the rows have fits of their own.
MOST_WITH_OWN_FITS = 2000
# Curvatures of the squared loss are at least four times those of the logistic one.
CURVATURES = 4.0
# Standard errors by which the log-loss of a larger alpha may be larger than the least.
STANDARD_ERRORS_OF_ALPHA = 0.5
# Gains below this share of the log-loss are none.
LEAST_GAIN = 1e-4
# Alphas may be this many times smaller or larger: on the sets measured the best ones were three times smaller to
# thirteen times larger, and where classes can be separated all small ones are alike.
FARTHEST_ALPHA = 20.0
# Matrices in memory besides those of the first fit.
MORE_MATRICES = 1


@dataclass(frozen=True)
class LogisticProblem:
    """Points with labels, the log-loss of held-out rows, the kernel of the first fit, and what is asked.

    Rows of a ``group`` (n,) may say the same; None: each row is one by itself.
    """

    problem: ExactProblem
    log_loss: CriterionFor
    kernel: Kernel
    logits: SecondFit
    group: Indices | None = None

    @property
    def obstacle(self) -> str | None:
        """Why there are no such fits, the first of all reasons, in words; None: there can be."""
        problem, kernel, u = self.problem, self.kernel, n_rows(self.problem.X)
        matrices = extent_of(kernel, problem).matrices + MORE_MATRICES
        reasons = {
            "the kernel is precomputed": kernel.takes_values,
            "the kernel may be indefinite": not kernel.positive_semidefinite,
            f"fewer than {LEAST_ROWS_FOR_LOGITS} rows": problem.observations.n_counted < LEAST_ROWS_FOR_LOGITS,
            "rows that are held out in folds have no weight": bool(problem.weightless_folds),
            "the memory is too small for one more matrix": gram_bytes(u, matrices) > problem.budget.n_bytes,
        }
        first = next((words for words, holds in reasons.items() if holds), None)
        return obstacle_of_any(self.logits, problem.observations.Y.shape[1]) or first

    def fits(self, kernel: Kernel) -> LogisticFits:
        """Fits with every point as a center."""
        problem = self.problem
        matrices = extent_of(kernel, problem).matrices + MORE_MATRICES
        K = np.asarray(gram(kernel, problem.X, budget=problem.budget, matrices=matrices), dtype=np.float64)
        return LogisticFits(K, problem.observations, problem.intercept, problem.fold)

    def some(self) -> "tuple[LogisticProblem, Indices]":
        """The problem at random points, as many as alphas are compared on, and which these are."""
        u = n_rows(self.problem.X)
        if u <= ROWS_TO_COMPARE:
            return self, np.arange(u)
        points = np.sort(np.random.default_rng(0).permutation(u)[:ROWS_TO_COMPARE])
        rows = np.flatnonzero(np.isin(self.problem.observations.rows.point, points))
        some = self.problem.at(self.kernel, points)
        group = None if self.group is None else self.group[rows]
        return replace(
            self, problem=some, log_loss=lambda chosen: self.log_loss(rows[chosen]), group=group
        ), points

    @property
    def rows(self) -> LearningData:
        """Targets and weights of the rows, and which are held out together."""
        given = self.problem.observations
        count = given.weight / given.unit
        return LearningData(given.rows.point, given.Y, given.weight, self.group, count=count)

    def losses(self, outputs: Array) -> Array:
        """Log-losses (n,) of outputs (n, q)."""
        losses: Array = self.log_loss(np.arange(len(outputs))).losses(outputs[None])[0]
        return losses


@dataclass
class LogisticComparison:
    """Fits for several alphas, each from the solution for the one nearest to it."""

    given: LogisticProblem
    fits: LogisticFits
    found: dict[float, AlphaFit] = field(default_factory=dict)
    losses: dict[float, Array] = field(default_factory=dict)

    def scores(self, alphas: Array) -> Array:
        """Log-losses (a,) of held-out rows."""
        for alpha in sorted(alphas.tolist(), reverse=True):
            near = min(self.found, key=lambda known: abs(np.log(known / alpha)), default=None)
            start = None if near is None else self.found[near].solution
            self.found[alpha] = self.fits.at(alpha, start)
            self.losses[alpha] = self.given.losses(self.found[alpha].loo)
        return np.array([self.losses[alpha] for alpha in alphas.tolist()]) @ self.given.rows.share

    @property
    def best(self) -> float:
        """The largest alpha that is not worse than the best one by more than half a standard error.

        Calibration makes good for alphas that are too small, on the rows that it is fitted to.
        """
        alphas, rows = sorted(self.losses, reverse=True), self.given.rows
        least = min(alphas, key=lambda alpha: float(self.losses[alpha] @ rows.share))
        gains = {alpha: Gain.of(self.losses[alpha], self.losses[least], rows) for alpha in alphas}
        return next(
            a for a, gain in gains.items() if a == least or gain.mean <= STANDARD_ERRORS_OF_ALPHA * gain.error
        )


def obstacle_of_any(logits: SecondFit, q: int) -> str | None:
    """Why fits to q targets, whatever their rows and centers, have no logits, in words; None: they can have.

    Of more than two classes, each against the rest, held-out losses were too good: labels without signal were
    believed.
    """
    if logits.parameter is not None:
        return f"{logits.parameter} is about the discriminant"
    return "more than two classes" if q > 1 else None


def of_sums(solution: ChosenSolution, logits: SecondFit) -> ChosenSolution:
    """The solution of sums over the rows, with the reason why it has no logits, if they are asked for."""
    if not logits.asked:
        return solution
    reason = obstacle_of_any(logits, solution.coef.shape[1]) or "it needs all rows at once, each of them a center"
    return without_logits(solution, reason)


def with_logits(
    solution: ChosenSolution, given: LogisticProblem, without: Sequence[tuple[Kernel, Indices]]
) -> ChosenSolution:
    """The solution with logits, if their held-out log-loss is lower by more than its standard error.

    ``without`` are kernels that were learned without some rows, and these rows.
    """
    try:
        with stage("fits by the logistic loss", verbose=given.problem.verbose):
            alpha, fit = _best(solution, given)
            gain = _gain(solution, given, fit.loo)
            loo = _without_own_part(solution, given, alpha, fit, without) if _is_sure(gain) else fit.loo
    except NumericalError as error:
        return without_logits(solution, str(error))
    finally:
        given.problem.budget.release()
    return _with_better(
        solution, gain, LogitSolution(alpha, fit.solution.coef, fit.solution.intercept, loo, fit.loo_opposite)
    )


def without_logits(solution: ChosenSolution, reason: str) -> ChosenSolution:
    """The solution with the reason why it has no logits."""
    return replace(solution, probabilities=f"of the discriminant, without a fit by the logistic loss: {reason}")


def _with_better(solution: ChosenSolution, gain: Gain, logits: LogitSolution) -> ChosenSolution:
    """With logits if held-out rows surely gain by them, and words about it in any case."""
    change = f"{gain.before - gain.mean:.4f}, {gain.mean:.4f} ± {gain.error:.4f} less"
    words = f"log-loss of held-out rows {gain.before:.4f}, by the logistic loss {change}"
    if not _is_sure(gain):
        return replace(solution, probabilities=f"of the discriminant: {words}")
    return replace(
        solution, logits=logits, probabilities=f"by the logistic loss, alpha {logits.alpha:.3g}: {words}"
    )


def _is_sure(gain: Gain) -> bool:
    return gain.mean > max(gain.error, LEAST_GAIN * gain.before)


def _best(solution: ChosenSolution, given: LogisticProblem) -> tuple[float, AlphaFit]:
    """The best alpha on some points, and the fit to all of them with it."""
    some, points = given.some()
    comparison, start = LogisticComparison(some, some.fits(given.kernel)), solution.alpha / CURVATURES
    scores_near(comparison.scores, start, (start / FARTHEST_ALPHA, start * FARTHEST_ALPHA))
    alpha = comparison.best
    found = comparison.found[alpha]
    if len(points) == n_rows(given.problem.X):
        return alpha, found
    first = Coefficients(np.zeros((n_rows(given.problem.X), 1)), found.solution.intercept)
    first.coef[points] = found.solution.coef
    return alpha, given.fits(given.kernel).at(alpha, first)


def _gain(solution: ChosenSolution, given: LogisticProblem, loo: Array) -> Gain:
    """What held-out rows gain with the same kernel by outputs (n, q)."""
    before = solution.loo if solution.loo_of_kernel is None else solution.loo_of_kernel
    return Gain.of(given.losses(before), given.losses(loo), given.rows)


def _without_own_part(
    solution: ChosenSolution,
    given: LogisticProblem,
    alpha: float,
    fit: AlphaFit,
    without: Sequence[tuple[Kernel, Indices]],
) -> Array:
    """Held-out outputs (n, q) of kernels learned without the part of each row.

    Of many rows, what that changes in the outputs of least squares is added, in units of logits.
    """
    if solution.loo_of_kernel is None:
        return fit.loo
    if n_rows(given.problem.X) > MOST_WITH_OWN_FITS:
        unit = fit.loo.std(axis=0) / np.maximum(solution.loo_of_kernel.std(axis=0), np.finfo(float).tiny)
        return np.asarray(fit.loo + unit * (solution.loo - solution.loo_of_kernel))
    loo = fit.loo.copy()
    for kernel, rows in without:
        loo[rows] = given.fits(kernel).at(alpha, fit.solution).loo[rows]
    return loo
