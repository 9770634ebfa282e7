"""Kernel machines with smooth losses, fitted in passes over any rows: a Newton step each.

Kernel, centers and a first fit are those of least squares, from one pass. From there, passes for the gradient
alone, which cost much less, go on in the metric of these moments (L-BFGS). Where they end, another pass sums
moments of working targets, from which alpha is chosen by leave-one-out as for least squares; all this is repeated
until such moments confirm that alpha stays and a step gains nothing. Every pass for the gradient also sums the
losses on the way to its point: a step that was too long is shortened by what its own pass shows.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._fitting.data import TrainingData
from mercer._fitting.moments import (
    Encoder,
    EvaluationSample,
    Gatherer,
    PassState,
    SampledRows,
    sample_rows,
    start_state,
)
from mercer._fitting.programs.in_memory import BY_STEPS, fit_machine, machine_bytes, noise_scale
from mercer._fitting.result import ChosenSolution, FitResult, ProgramDetails
from mercer._fitting.selection.alpha_of_moments import moment_fit, select_alpha
from mercer._fitting.selection.centers import SampleProblem
from mercer._fitting.spec import FitSpec, LossChoice
from mercer._gram import combine
from mercer._gram.moments import MomentsOf
from mercer._linalg.threads import at_most
from mercer._solvers.programs.losses import SmoothLoss
from mercer._solvers.programs.smooth.output_fits import Basis, OutputFits
from mercer._solvers.programs.smooth.quasi_newton import LENGTHS, Sloped, descend, part_of
from mercer._solvers.programs.smooth.working_targets import LossMoments, LossSlopes, Reweighted, SlopesOf, working
from mercer._solvers.spectrum import Coefficients
from mercer._types import Array
from mercer.centers import Uniform
from mercer.centers._resolve import as_plan
from mercer.errors import NumericalWarning, warn
from mercer.rows import Block
from mercer.rows._progress import stage
from mercer.rows._table import n_rows

# Newton steps, besides the fit of least squares.
MOST_STEPS = 10
# A step that is expected to lower the objective by this share at most is the last.
LAST_STEP_GAIN = 1e-6
# The passes, by name.
STEP_MOMENTS, GRADIENT = "moments of a step", "gradient"
# Passes for the gradient alone between two of them, and the relative errors of sums in single precision.
MOST_SLOPES, FIRST_SLOPES = 12, 5
SINGLE_ROUNDING = 1e-7
# Products in float32 may change a fit by this share of its size.
MOST_ERROR = 0.01
# With the logistic loss, there are at least this many times as many rows as centers, or rows are fitted in memory,
# with at most the second number of kernel values.
FAR_MORE, MOST_VALUES = 10, 10_000_000
# An alpha whose criterion is larger than the least by at most this share is kept.
KEPT_ALPHA_LOSS = 1e-3


@dataclass(frozen=True)
class MachineEncoder:
    """The fold block -> block with targets as losses take them: -1 and +1 for classes."""

    encode: Encoder

    def __call__(self, block: Block) -> Block:
        encoded = self.encode(block)
        return replace(encoded, y=self.targets(encoded.y))

    def targets(self, Y: Array) -> Array:
        """From encoded targets (b, q), which are 0 and 1 for several classes."""
        return 2.0 * Y - 1.0 if self.encode.targets.has_classes and Y.shape[1] > 1 else Y


def fit_machine_in_passes(spec: FitSpec, data: TrainingData, rng: np.random.Generator) -> FitResult:
    """Choose by leave-one-out, and solve; with moments of least squares.

    If the logistic loss has too many centers, so that leave-one-out by Newton steps would be too good, the fit is
    made in memory, with held-out folds.
    """
    loss = spec.loss
    assert loss is not None
    sampled = sample_rows(spec, data, rng)
    m = as_plan(spec.centers, spec.kernel, sampled.drawn.sample().X, sampled.drawn.n_rows)[1]
    in_memory = data.in_memory if loss.name == "logistic" else None
    if in_memory is not None and not isinstance(spec.centers, str) and _has_many(spec, in_memory.n_rows, m):
        return _in_memory(spec, sampled, data.block, rng)
    state = start_state(spec, sampled, rng, reselects=False)
    selection = state.gather.selection
    if in_memory is not None and _has_many(spec, in_memory.n_rows, selection.n_centers):
        spec = replace(spec, kernel=selection.kernel, centers=Uniform(selection.n_centers))
        return _in_memory(spec, sampled, data.block, rng)
    first = state.solved()
    _require_memory(state, first.training.Y.shape[1])
    objective = Objective(state.gather, sampled, _losses(loss, first, sampled.encode), spec.verbose)
    newton = Newton(objective, state, state.evaluation_sample())
    return replace(newton.result_of(newton.descend(first.solution)), schema=sampled.schema, state=None)


def _has_many(spec: FitSpec, n: int, m: int | None) -> bool:
    """Whether m centers are not far fewer than n rows, and kernel values of all rows can be in memory."""
    if m is None or not n < FAR_MORE * m or n * m > MOST_VALUES:
        return False
    return machine_bytes(n, n, m) <= spec.budget.n_bytes


def _in_memory(spec: FitSpec, sampled: SampledRows, block: Block, rng: np.random.Generator) -> FitResult:
    encode = sampled.encode
    fit = fit_machine(spec, encode.targets, encode.checked(block), rng, sampled.schema.feature_names)
    return replace(fit, schema=sampled.schema)


def _losses(loss: LossChoice, first: FitResult, encode: Encoder) -> tuple[SmoothLoss, ...]:
    """The loss of each output; its width follows from the leave-one-out residuals of least squares."""
    training, scale = first.training, np.ones(first.training.Y.shape[1])
    if loss.needs_scale and not encode.targets.has_classes:
        scale = noise_scale(training.Y - first.solution.loo, training.represented_weight)
    return tuple(each for each in loss.losses(scale) if isinstance(each, SmoothLoss))


def _require_memory(state: PassState, q: int) -> None:
    """Moments of q outputs: those of two pieces a thread, their sum, and factors and spectrum of each."""
    m = n_rows(state.gather.selection.centers.rows)
    state.spec.budget.require(
        8.0 * q * m * m * (2 * state.gather.threads + 1 + 3), f"moments of {q} outputs with {m} centers each"
    )


@dataclass(frozen=True)
class NewtonStep:
    """A point, the sums there, the fit that a step from it leads to, and what that gains."""

    at: Coefficients
    sums: LossMoments
    solution: ChosenSolution
    gain: float

    @property
    def to(self) -> Coefficients:
        return Coefficients(self.solution.coef, self.solution.intercept)

    @property
    def is_last(self) -> bool:
        return self.gain <= LAST_STEP_GAIN


@dataclass(frozen=True)
class Objective:
    """The losses of all rows and the penalty, as passes over the rows find them."""

    gather: Gatherer
    sampled: SampledRows
    losses: tuple[SmoothLoss, ...]
    verbose: int
    # Passes so far, by name.
    passes: Counter[str] = field(default_factory=Counter)

    @property
    def encode(self) -> MachineEncoder:
        return MachineEncoder(self.gather.encode)

    def sums(self, at: Coefficients) -> LossMoments:
        """The moments of a step."""
        selection, precision = self.gather.selection, self.gather.precision
        # Steps end where products lose digits: what is enough for least squares is not enough for many of them.
        dtype = precision.dtype if precision.error <= MOST_ERROR else np.float64
        fold = MomentsOf(selection.kernel, selection.centers.rows, dtype, precision.coordinates)
        sums: LossMoments = self._pass(Reweighted(self.encode, fold, self.losses, at), STEP_MOMENTS)
        moments = [replace(each, coordinates=precision.coordinates) for each in sums.moments]
        return replace(sums, moments=tuple(moments))

    def slopes(self, at: Coefficients, since: Coefficients, alpha: float) -> LossSlopes:
        """The gradient at a point, and objectives on the way to it from another one."""
        selection = self.gather.selection
        fold = SlopesOf(selection.kernel, selection.centers.rows, self.encode, self.losses, at, since, LENGTHS)
        found: LossSlopes = self._pass(fold, GRADIENT)
        norms = np.array([self.norm(_between(since, at, length).coef) for length in LENGTHS])
        values, slope = found.values + 0.5 * alpha * norms, found.coef + alpha * self._norm_slope(at.coef)
        return replace(found, values=values, coef=slope)

    def norm(self, coef: Array) -> float:
        """c'Kc, or c'c, summed over outputs."""
        factor = self.gather.selection.factor
        return float(np.sum((coef if factor is None else factor.R @ coef[factor.kept]) ** 2))

    def _norm_slope(self, coef: Array) -> Array:
        """K c, or c: half of the derivative of the norm."""
        factor = self.gather.selection.factor
        if factor is None:
            return coef
        slope = np.zeros_like(coef)
        slope[factor.kept] = factor.R.T @ (factor.R @ coef[factor.kept])
        return slope

    def _pass(self, fold: Any, phase: str) -> Any:
        self.passes[phase] += 1
        with at_most(self.gather.threads):
            return self.sampled.rows.reduce(fold, phase=phase, verbose=self.verbose)


@dataclass(frozen=True)
class Newton:
    """Newton steps for all alphas, with steps by the gradient between them."""

    objective: Objective
    state: PassState
    evaluation: EvaluationSample

    def descend(self, start: ChosenSolution) -> NewtonStep:
        """The last step, that gains nothing, from a fit of least squares."""
        given, at = self.state.spec.alpha, Coefficients(start.coef, start.intercept)
        curvature = self._curvature(at)
        alpha = float(curvature.mean()) * start.alpha if given is None else given
        at = self._by_slopes(at, self._least_squares(curvature, alpha), alpha)
        for _ in range(MOST_STEPS):
            sums = self.objective.sums(at)
            fits = self._fits(sums, at, given)
            solution = self._solution(fits, given, alpha)
            step = NewtonStep(at, sums, solution, self._gain(sums, at, solution))
            if step.is_last:
                break
            alpha = solution.alpha
            at = self._by_slopes(step.to, fits, alpha, step)
        return step

    def result_of(self, step: NewtonStep) -> FitResult:
        """The fit that a step leads to."""
        fit, passes = self.state.result_of(self.evaluation, step.solution), self.objective.passes
        last = fit.solution.paths[-1]
        solved = "solved" if step.is_last else "not solved"
        if not step.is_last:
            warn(
                f"after {passes[STEP_MOMENTS]} steps another one would still lower the loss by {step.gain:.1e} of "
                "it; raise alpha or delta, or fit fewer rows, in memory",
                NumericalWarning,
            )
        status = (
            f"{solved} in {1 + passes[STEP_MOMENTS]} passes for moments and {passes[GRADIENT]} for the gradient"
            f": the last step gains {step.gain:.1e} of the loss"
        )
        return replace(
            fit,
            criterion_value=float(last.scores[last.best]),
            held_out=BY_STEPS,
            program=ProgramDetails(self.objective.losses, step.gain, status),
        )

    def _curvature(self, at: Coefficients) -> Array:
        """Means (q,) over the sample of the curvatures of parabolas above the losses."""
        problem = self.evaluation.problem
        F, Y = self._outputs(at), self.objective.encode.targets(problem.sample.y)
        pairs = zip(self.objective.losses, Y.T, F.T)
        return np.array([np.average(loss.majorant(y, f), weights=problem.weight) for loss, y, f in pairs])

    def _least_squares(self, curvature: Array, alpha: float) -> OutputFits:
        """Fits of least squares, whose Hessian is about that of losses with such curvatures (q,)."""
        problem, selection = replace(self.evaluation.problem, alpha=alpha), self.state.gather.selection
        moments = self.state.moments
        return OutputFits([moment_fit(selection, moments.scaled(float(each)), problem) for each in curvature])

    def _outputs(self, at: Coefficients) -> Array:
        """Outputs (n, q) of the rows held out."""
        problem, selection = self.evaluation.problem, self.state.gather.selection
        values = combine(
            selection.kernel,
            problem.sample.X,
            selection.centers.rows,
            at.coef,
            cells=problem.plan.cells,
        )
        return np.asarray(values, dtype=np.float64) + at.intercept

    def _fits(self, sums: LossMoments, at: Coefficients, alpha: float | None) -> OutputFits:
        """Least-squares fits to working targets, for every alpha, or the one given."""
        problem, selection = replace(self.evaluation.problem, alpha=alpha), self.state.gather.selection
        F, Y = self._outputs(at), self.objective.encode.targets(problem.sample.y)
        with at_most(problem.plan.threads), stage("decompositions", verbose=problem.verbose):
            return OutputFits(
                [
                    moment_fit(selection, moments, _working_problem(problem, loss, y, f))
                    for loss, moments, y, f in zip(self.objective.losses, sums.moments, Y.T, F.T)
                ]
            )

    def _solution(self, fits: OutputFits, given: float | None, before: float) -> ChosenSolution:
        """The fit with the alpha given, or the best one; with that before, if it is about as good."""
        selection, problem = self.state.gather.selection, self.evaluation.problem
        rows = self.evaluation.scored_rows
        best = select_alpha(selection, fits, replace(problem, alpha=given), rows)
        if given is not None:
            return best
        path = best.paths[-1]
        place = int(np.abs(np.log(path.alphas[0] / before)).argmin())
        if not path.scores[0, place] <= (1.0 + KEPT_ALPHA_LOSS) * path.least[0] or best.alpha == before:
            return best
        kept = select_alpha(selection, fits, replace(problem, alpha=before), rows)
        return replace(kept, paths=best.paths)

    def _gain(self, sums: LossMoments, at: Coefficients, to: ChosenSolution) -> float:
        """Half of the squared length of a step in the metric of the Hessian, over the loss."""
        coef, intercept = to.coef - at.coef, to.intercept - at.intercept
        squares = [each.square(c, float(b)) for each, c, b in zip(sums.moments, coef.T, intercept, strict=True)]
        return 0.5 * (sum(squares) + to.alpha * self.objective.norm(coef)) / (sums.value or 1.0)

    def _by_slopes(
        self, at: Coefficients, fits: OutputFits, alpha: float, step: NewtonStep | None = None
    ) -> Coefficients:
        """Where steps by the gradient alone lead from a point, to which a ``step`` may have led.

        Their coordinates are those in which the Hessian of the fits is the identity.
        """
        at, found = (at, self.objective.slopes(at, at, alpha)) if step is None else self._end(step)
        basis = Basis.of(fits, alpha, at, float(found.values[0]) or 1.0)

        def sloped(u: Array, found: LossSlopes) -> Sloped:
            return Sloped(u, basis.gradient(found), found.values / basis.scale)

        def evaluate(u: Array, since: Array) -> Sloped:
            return sloped(u, self.objective.slopes(basis.coefficients(u), basis.coefficients(since), alpha))

        most = FIRST_SLOPES if step is None else MOST_SLOPES
        first = sloped(np.zeros(basis.size), found)
        return basis.coefficients(
            descend(evaluate, first, enough=LAST_STEP_GAIN, most=most, rounding=SINGLE_ROUNDING)
        )

    def _end(self, step: NewtonStep) -> tuple[Coefficients, LossSlopes]:
        """Where a step ends, or a part of it, if that is better, and the gradient there."""
        at, alpha = step.to, step.solution.alpha
        before = step.sums.value + 0.5 * alpha * self.objective.norm(step.at.coef)
        found = self.objective.slopes(at, step.at, alpha)
        for _ in range(MOST_SLOPES):
            part = part_of(found.values, before, SINGLE_ROUNDING)
            if part == 1.0:
                break
            at = _between(step.at, at, part)
            found = self.objective.slopes(at, step.at, alpha)
        return at, found


def _working_problem(problem: SampleProblem, loss: SmoothLoss, y: Array, f: Array) -> SampleProblem:
    """The problem with working targets of one output."""
    z, curvature = working(loss, y, f)
    weight = problem.weight
    unit = weight if problem.sample.unit is None else problem.sample.unit
    sample = replace(problem.sample, y=z[:, None], weight=weight * curvature, unit=unit * curvature)
    return replace(
        problem,
        sample=sample,
        opposite_unit=None if problem.opposite_unit is None else problem.opposite_unit * curvature,
    )


def _between(a: Coefficients, b: Coefficients, part: float) -> Coefficients:
    """a, and this part of the way to b."""
    return Coefficients(a.coef + part * (b.coef - a.coef), a.intercept + part * (b.intercept - a.intercept))
