"""Errors and scores of rows predicted before they were learned (test-then-train), in bounded memory."""

from dataclasses import dataclass, field, replace

import numpy as np

from mercer.rows.weights import Reading
from mercer.scores.criteria import accuracy
from mercer.scores.probabilities import Posterior, calibrate
from mercer.scores.relative import relative
from mercer.scores.rule import Rule
from mercer.types import Array, Indices

# Isotonic and logistic calibration work without rows of a class; normal densities do not.
ONLINE_CALIBRATIONS = ("logistic", "isotonic")
# Scores are recalibrated when this share of the window is new.
RENEWED = 1 / 16


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
    """Outputs (w, q), class numbers and weights (w,) of the last rows; ``new`` of them are not calibrated yet."""

    outputs: Array
    label: Indices
    weight: Array
    new: int

    @classmethod
    def empty(cls, n_outputs: int) -> "ScoreWindow":
        return cls(np.zeros((0, n_outputs)), np.zeros(0, dtype=np.intp), np.zeros(0), 0)

    def extended(self, outputs: Array, label: Indices, weight: Array, window: int) -> "ScoreWindow":
        """With more rows, and without the oldest."""
        return ScoreWindow(
            np.concatenate([self.outputs, outputs])[-window:],
            np.concatenate([self.label, label])[-window:],
            np.concatenate([self.weight, weight])[-window:],
            self.new + len(label),
        )

    @property
    def due(self) -> bool:
        """Whether there are enough new rows to recalibrate, so that the cost per row is bounded."""
        return self.new > 0 and self.new >= RENEWED * len(self.label)

    def calibrated(self, method: str, reading: Reading) -> tuple["ScoreWindow", Rule]:
        """The window with no new rows, and the rule from its scores, with as much evidence as rows; O(w)."""
        posterior = calibrate(method, relative(self.outputs), self.label, reading.evidence(self.weight))
        return replace(self, new=0), Rule(None, None, posterior)

    def accuracy(self, rule: Rule) -> float:
        """Weighted share of rows that the rule labels correctly."""
        return accuracy(rule.probabilities(relative(self.outputs)), self.label, self.weight)


def uncalibrated(n_outputs: int) -> Rule:
    """The rule before any row was predicted: the largest output wins, and equal outputs are equally probable."""
    k = max(1, n_outputs - 1)
    return Rule(None, None, Posterior(np.eye(k), np.zeros(k)))
