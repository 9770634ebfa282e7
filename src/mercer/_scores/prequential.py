"""Errors and scores of rows predicted before they were learned (test-then-train), in bounded memory."""

from dataclasses import dataclass, field

import numpy as np

from mercer._scores.class_outputs import class_targets
from mercer._scores.criteria import accuracy
from mercer._scores.decision_rule import ClassFit, Rule, Scatter
from mercer._scores.probabilities.calibration import Posterior
from mercer._scores.targets import ClassTargets
from mercer._scores.training_rows import Training
from mercer._types import Array, Indices
from mercer.rows._sampling.weights import Reading

# Isotonic and logistic calibration work without rows of a class; normal densities do not.
ONLINE_CALIBRATIONS = ("logistic", "isotonic")
# Scores are recalibrated when this share of the window is new.
RENEWED_SHARE = 1 / 16


def _nothing() -> Array:
    return np.zeros(0)


@dataclass(frozen=True)
class Prequential:
    """Losses and weights (w,) of the last rows, and sums over all rows."""

    loss: Array = field(default_factory=_nothing)
    weight: Array = field(default_factory=_nothing)
    total_loss: float = 0.0
    total_weight: float = 0.0

    def extended(self, loss: Array, weight: Array, window: int) -> "Prequential":
        """With more rows, of which at most ``window`` are stored individually."""
        return Prequential(
            np.concatenate([self.loss, loss])[-window:],
            np.concatenate([self.weight, weight])[-window:],
            self.total_loss + float(weight @ loss),
            self.total_weight + float(weight.sum()),
        )

    @property
    def error(self) -> float:
        """Mean loss of all rows; NaN without rows."""
        return self.total_loss / self.total_weight if self.total_weight > 0 else float("nan")

    @property
    def recent(self) -> float:
        """Mean loss of the last rows."""
        return float(self.weight @ self.loss / self.weight.sum()) if len(self.loss) > 0 else float("nan")


@dataclass(frozen=True)
class ScoreWindow:
    """Outputs (w, q), class numbers, weights and given weights (w,) of the last rows, the latter without those of
    classes; ``new`` of the rows came since a calibration.
    """

    outputs: Array
    label: Indices
    weight: Array
    given: Array
    new: int = 0

    @classmethod
    def empty(cls, n_outputs: int) -> "ScoreWindow":
        return cls(np.zeros((0, n_outputs)), np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0))

    def known(self) -> "ScoreWindow":
        """Without rows whose outputs are not known."""
        rows = ~np.isnan(self.outputs[:, 0])
        return ScoreWindow(self.outputs[rows], self.label[rows], self.weight[rows], self.given[rows], self.new)

    def extended(self, more: "ScoreWindow", window: int) -> "ScoreWindow":
        """With more rows, and without the oldest."""
        outputs, label, weight, given = (
            np.concatenate([getattr(self, name), getattr(more, name)])[-window:]
            for name in ("outputs", "label", "weight", "given")
        )
        return ScoreWindow(outputs, label, weight, given, self.new + len(more.label))

    @property
    def due(self) -> bool:
        """Whether there are enough new rows to recalibrate, so that the cost per row is bounded."""
        return self.new > 0 and self.new >= RENEWED_SHARE * len(self.label)

    def calibrated(self, targets: ClassTargets, reading: Reading, scatter: Scatter) -> Rule:
        """The rule that the scores give, by as much evidence as there are rows; O(w)."""
        k = len(targets.classes)
        Y = class_targets(self.label, k)
        training = Training(None, Y, self.weight, self.given, reading, None)
        # A class without rows in the window counts as half a row there.
        share = np.maximum(np.bincount(self.label, self.weight, minlength=k) / self.weight.sum(), 0.5 / len(Y))
        fit = ClassFit(self.outputs, Y, self.label, training.evidence, scatter)
        return targets.rule(fit, share, streamed=True).rule

    def errors(self, rule: Rule) -> Array:
        """One where the rule labels a row wrongly, else zero (w,)."""
        return np.asarray((rule.probabilities(self.outputs).argmax(axis=1) != self.label).astype(np.float64))

    def accuracy(self, rule: Rule) -> float:
        """Share of rows, by weight, that the rule labels as they are."""
        return accuracy(rule.probabilities(self.outputs), self.label, self.weight)


def uncalibrated(n_outputs: int) -> Rule:
    """The rule before any row was predicted: the largest output wins, and equal outputs are equally probable."""
    k = max(1, n_outputs - 1)
    return Rule(None, None, Posterior(np.eye(k), np.zeros(k)))
