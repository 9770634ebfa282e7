"""Targets of a fit, classes or real values: how they are encoded and evaluated, and what follows from the outputs.

A targets object is complete: it has its classes, or the shape of its values. Fits use three methods:

- ``encode(block)``: the block with targets Y (b, q) and weights,
- ``criterion(training)``: what leave-one-out minimizes,
- ``conclude(training, outputs)``: the fitted attributes that follow from leave-one-out outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer import _validation
from mercer._gram.moments import Moments
from mercer._scores.class_outputs import class_numbers, class_shares, class_targets
from mercer._scores.criteria import (
    Criterion,
    TargetCriterion,
    accuracy,
    classification_criterion,
    pinball_criterion,
    r_squared,
    squared_criterion,
)
from mercer._scores.decision_rule import ClassFit, CrossFittedRule, Rule, Scatter, make_rule
from mercer._scores.probabilities.calibration import odds_shift
from mercer._scores.training_rows import Training
from mercer._scores.uncertainty.intervals import LooResults, noise_std
from mercer._solvers.directions.discriminants import variance_shares
from mercer._solvers.spectrum import Observations
from mercer._types import Array, Floats, Indices
from mercer.errors import WeightWarning, warn
from mercer.rows import Block
from mercer.rows._sampling.weights import Reading
from mercer.rows._table import shape_of

# Leave-one-out scores, accuracy or R², that differ by more than this cause a warning.
SCORE_GAP = 0.02


class Outputs(Protocol):
    """Outputs (n, q) of the training rows: fitted, leave-one-out, and leave-one-out under the opposite reading
    of weights, where these are ambiguous; coefficients and intercept of f; degrees of freedom;
    ``logits`` if another function than f gives the probabilities of two classes.
    """

    @property
    def fitted(self) -> Array: ...
    @property
    def loo(self) -> Array: ...
    @property
    def loo_opposite(self) -> Array | None: ...
    @property
    def coef(self) -> Array: ...
    @property
    def intercept(self) -> Array: ...
    @property
    def degrees_of_freedom(self) -> float: ...
    @property
    def logits(self) -> "LogitOutputs | None": ...


class LogitOutputs(Protocol):
    """Leave-one-out outputs (n, q), and those under the opposite reading of weights, where these are ambiguous."""

    @property
    def loo(self) -> Array: ...
    @property
    def loo_opposite(self) -> Array | None: ...


@dataclass(frozen=True)
class Decision:
    """From outputs to decisions: the criterion of leave-one-out, calibration, threshold, the number of directions,
    class priors (k,), None: the shares of the classes, whether probabilities are moderated, and whether several
    classes have discriminant directions.
    """

    criterion: str
    calibration: str
    threshold: str
    n_components: int
    priors: Array | None
    moderate: bool = False
    directed: bool = True


@dataclass(frozen=True)
class ClassTargets:
    """Classes (k,) with the weight ``factor`` (k,) of each: -1 and +1 for two, one indicator each for more."""

    classes: NDArray[Any]
    factor: Array
    decision: Decision
    has_classes: ClassVar[bool] = True

    @property
    def known(self) -> dict[str, Any]:
        """Fitted attributes that are known before the fit."""
        return {"classes_": self.classes}

    @property
    def criterion_name(self) -> str:
        return self.decision.criterion

    def numbers(self, y: Any, weight: Array | None = None) -> Indices:
        """Class numbers (b,); unknown labels raise an error, unless their rows have no weight."""
        y = _validation.label_column("y", y)
        _validation.same_type("y", self.classes, y)
        label: Indices = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        strange = self.classes[label] != y
        if weight is not None:
            strange &= weight > 0
        if strange.any():
            raise ValueError(
                f"label {y[strange].tolist()[0]!r} is not among the classes {self.classes.tolist()}; rows must be "
                "the same in every pass of a fit, and the first partial_fit must declare all labels with "
                "classes=[...]"
            )
        return label

    def encode(self, block: Block) -> Block:
        """Labels become targets (b, q), and weights are multiplied by those of the classes."""
        label = self.numbers(block.y, block.weight)
        encoded = replace(block, y=class_targets(label, len(self.classes)))
        factor = self.factor[label]
        if (factor == 1.0).all():
            return encoded
        return replace(encoded, weight=factor if block.weight is None else block.weight * factor)

    def criterion(self, training: Training) -> TargetCriterion:
        """What leave-one-out minimizes; for one class indicator the loss of this class against the rest."""
        label, weight, Y = class_numbers(training.Y), training.evidence, training.Y

        def for_rows(rows: Indices, columns: list[int] | None = None, /) -> Criterion:
            own, targets = label[rows], Y[rows]
            if columns is not None:
                own, targets = (own == columns[0]).astype(np.intp), targets[:, columns]
            return classification_criterion(self.decision.criterion, own, weight[rows], targets)

        return for_rows

    def log_loss(self, training: Training) -> TargetCriterion:
        """The log-loss of calibrated probabilities, whatever leave-one-out minimizes."""
        return replace(self, decision=replace(self.decision, criterion="log_loss")).criterion(training)

    def conclude(
        self,
        training: Training,
        outputs: Outputs,
        *,
        moments: Moments | None = None,
        observations: Observations | None = None,
    ) -> dict[str, Any]:
        """The rule, its geometry, and its held-out predictions; ``moments`` of all rows, if these are a sample."""
        label, trust = class_numbers(training.Y), training.trust
        share, scatter = self._shares(training, moments), _scatter(training, outputs, moments)
        fit = ClassFit(outputs.loo, training.Y, label, training.evidence, scatter)
        evidence: LogitOutputs = outputs if outputs.logits is None else outputs.logits
        discriminant = self.rule(fit, share, group=training.group)
        rule_of = partial(self.rule, share=share, group=training.group)
        crossed = discriminant if evidence is outputs else rule_of(replace(fit, loo=evidence.loo))
        rule, proba = crossed.rule, crossed.probabilities(evidence.loo, trust)
        # The class of a row is not known without it if it is the only one.
        count = np.bincount(label, np.where(training.weight > 0, training.count, 0.0))
        known = np.where(count[label] > 1, label, -1)
        score = accuracy(proba, known, fit.weight)
        if evidence.loo_opposite is not None:
            other = rule_of(replace(fit, loo=evidence.loo_opposite))
            # Parts of the rows depend on the outputs: the rules of all rows differ by the meaning only.
            first = accuracy(rule.probabilities(evidence.loo, trust), known, fit.weight)
            second = accuracy(other.rule.probabilities(evidence.loo_opposite, trust), known, fit.weight)
            opposite = accuracy(other.probabilities(evidence.loo_opposite, trust), known, fit.weight)
            warn_of_weights(training.reading, score, opposite, gap=abs(first - second))
        held_out = {
            "loo_outputs_": outputs.loo,
            "loo_decision_": crossed.decision(evidence.loo, trust),
            "loo_proba_": proba,
            "loo_score_": score,
        }
        shown = self.attributes(discriminant.rule, share, scatter)
        return self.known | shown | {"rule_": rule} | held_out

    def rule(
        self, fit: ClassFit, share: Array, *, streamed: bool = False, group: Indices | None = None
    ) -> CrossFittedRule:
        """The decision rule from held-out rows, for classes of these shares (k,); groups (n,) stay together."""
        how = self.decision
        return make_rule(
            fit,
            n_components=how.n_components,
            calibration=how.calibration,
            threshold=how.threshold,
            prior_shift=odds_shift(share, share if how.priors is None else how.priors),
            streamed=streamed,
            moderate=how.moderate,
            directed=how.directed,
            group=group,
        )

    def attributes(self, rule: Rule, share: Array, scatter: Scatter) -> dict[str, Any]:
        """The attributes of a classifier from its rule."""
        scalings, eigenvalues = rule.geometry(scatter)
        return {
            "rule_": rule,
            "priors_": share if self.decision.priors is None else self.decision.priors,
            "scalings_": scalings,
            "eigenvalues_": eigenvalues,
            "explained_variance_ratio_": variance_shares(eigenvalues),
            "threshold_": rule.posterior.threshold() if len(self.classes) == 2 else None,
        }

    def score_words(self, score: float) -> str:
        return f"accuracy {score:.4f}"

    def shaped(self, A: Floats) -> Floats:
        """Coefficients, intercepts or outputs (..., q) as users see them."""
        return A

    def _shares(self, training: Training, moments: Moments | None) -> Array:
        """Shares (k,) of the classes in the weight of all rows; in a stream, every class must have rows."""
        if moments is None:
            return np.asarray(np.bincount(class_numbers(training.Y), training.weight) / training.weight.sum())
        share = class_shares(moments.t, moments.n)
        unseen = self.classes[share <= 1e-12].tolist()
        if unseen:
            raise ValueError(
                f"class {unseen[0]!r} has no training rows: none were added yet, or all were removed or have "
                "decayed; add some with partial_fit before predicting"
            )
        return share


@dataclass(frozen=True)
class RealTargets:
    """Real values; ``shape`` is that of the targets of one row: () or (q,).

    ``measure`` is what leave-one-out minimizes: squared errors, absolute ones, or the pinball loss of the
    ``quantiles``, of which each is an output.
    """

    shape: tuple[int, ...]
    measure: str = "squared"
    quantiles: tuple[float, ...] = ()
    has_classes: ClassVar[bool] = False

    @property
    def known(self) -> dict[str, Any]:
        """Fitted attributes that are known before the fit."""
        return {}

    @property
    def criterion_name(self) -> str:
        return self.measure

    def encode(self, block: Block) -> Block:
        """Targets (b, q) in float64."""
        if block.y is None:
            raise ValueError("the rows have no targets; a regressor requires y to be passed")
        y = _validation.finite("y", block.y)
        _validation.not_too_large("y", y)
        if y.shape[1:] != self.shape:
            raise ValueError(
                f"y has shape {shape_of(y.shape[1:])}, but that of the first rows has {shape_of(self.shape)}; "
                "pass the same targets, or call fit to start over"
            )
        return replace(block, y=self.repeated(y))

    def repeated(self, y: Array) -> Array:
        """Targets (b, q) of y (b,) or (b, t): of one target a column for each quantile."""
        Y = y.reshape(len(y), -1)
        return np.repeat(Y, len(self.quantiles), axis=1) if self.shape == () and self.quantiles else Y

    def criterion(self, training: Training) -> TargetCriterion:
        """What leave-one-out minimizes: errors of each target in units of those of a constant."""
        _validation.in_range("y", training.Y, getattr(training.X, "dtype", np.float64))
        levels = np.array(self.quantiles or (0.5,) * training.Y.shape[1])

        def for_rows(rows: Indices, columns: list[int] | None = None, /) -> Criterion:
            Y = training.Y[rows] if columns is None else training.Y[rows][:, columns]
            if self.measure == "squared":
                return squared_criterion(Y, training.represented_weight[rows])
            loss = pinball_criterion(
                Y, training.represented_weight[rows], levels if columns is None else levels[columns]
            )
            return loss if columns is not None else replace(loss, losses=lambda F: loss.losses(self.uncrossed(F)))

        return for_rows

    def conclude(
        self,
        training: Training,
        outputs: Outputs,
        *,
        moments: Moments | None = None,
        observations: Observations | None = None,
    ) -> dict[str, Any]:
        """Held-out predictions with their R², and the noise; ``moments`` of all rows, if these are a sample."""
        used, represented_weight = training.weight > 0, training.represented_weight
        loo = self.uncrossed(outputs.loo)
        score = self.score(training.Y, loo, represented_weight)
        if outputs.loo_opposite is not None:
            other = self.score(training.Y, self.uncrossed(outputs.loo_opposite), represented_weight)
            warn_of_weights(training.reading, score, other)
        residual = (training.Y - outputs.fitted)[used]
        noise = noise_std(
            residual, represented_weight[used], _counted(training, moments), outputs.degrees_of_freedom
        )
        return {
            "loo_prediction_": self.shaped(loo),
            "loo_score_": score,
            "noise_std_": float(noise[0]) if self.shape == () else noise,
            "loo_results_": LooResults.of(training, outputs.loo, observations),
        }

    def score(self, Y: Array, F: Array, weight: Array) -> float:
        """R² of outputs F (n, q), for quantiles the share of the pinball loss of constants that they save."""
        if not self.quantiles:
            return r_squared(Y, F, weight)
        return 1.0 - float(pinball_criterion(Y, weight, np.array(self.quantiles))(F[None])[0])

    def uncrossed(self, F: Array) -> Array:
        """Outputs (..., q); several quantiles of one target are sorted."""
        several = self.shape == () and len(self.quantiles) > 1
        return np.asarray(uncrossed(F, self.quantiles), dtype=np.float64) if several else F

    def score_words(self, score: float) -> str:
        return f"{'D² of the pinball loss' if self.quantiles else 'R²'} {score:.4f}"

    def shaped(self, A: Floats) -> Floats:
        """Coefficients, intercepts or outputs (..., q) as users see them: without the axis of a single target."""
        return A[..., 0] if self.shape == () and len(self.quantiles) <= 1 else A


Targets = ClassTargets | RealTargets


def uncrossed(F: Floats, levels: Sequence[float]) -> Floats:
    """Quantiles (..., q) of these levels (q,), sorted so that they do not cross (Chernozhukov et al. 2010)."""
    return np.sort(F, axis=-1)[..., ascending(levels)]


def ascending(levels: Sequence[float]) -> Indices:
    """The place (q,) of each level among all in ascending order."""
    return np.argsort(np.argsort(levels, kind="stable"), kind="stable")


def _scatter(training: Training, outputs: Outputs, moments: Moments | None) -> Scatter:
    if moments is None:
        return Scatter.of(outputs.fitted, training.Y, training.weight)
    return Scatter.of_moments(moments, outputs.coef, outputs.intercept)


def _counted(training: Training, moments: Moments | None) -> float:
    """Number of all rows, those of the sample and others; for counts, each copy is one."""
    used = training.weight > 0
    if moments is None:
        return float(training.count[used].sum())
    if training.reading.counts:
        return moments.n
    return float(max(moments.n_rows, used.sum())) if training.faded is None else training.n_effective_rows


def warn_of_weights(reading: Reading, score: float, opposite: float, *, gap: float | None = None) -> None:
    """Warn if weights could also have been read the other way, and the score would differ.

    ``gap`` is the difference by the meaning alone, None: that of the scores.
    """
    if (abs(score - opposite) if gap is None else gap) <= SCORE_GAP:
        return
    counts = "counts of equal rows (one copy is held out at a time)"
    importance = "importance (each row is held out as a whole)"
    taken, other = (counts, importance) if reading.counts else (importance, counts)
    keep, change = ("counts", "importance") if reading.counts else ("importance", "counts")
    warn(
        f"sample_weight contains integers, which were read as {taken}: the leave-one-out score is {score:.3f}. "
        f"Read as {other} it would be {opposite:.3f}. If that is what you mean, use weights={change!r}; otherwise "
        f"use weights={keep!r}, which silences this warning",
        WeightWarning,
    )
