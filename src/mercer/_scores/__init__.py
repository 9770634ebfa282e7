"""From leave-one-out scores to thresholds, probabilities, intervals, and criteria for model selection."""

from mercer._scores.criteria import CLASSIFICATION_CRITERIA
from mercer._scores.decision_rule import Rule
from mercer._scores.probabilities.calibration import CALIBRATIONS, Posterior
from mercer._scores.thresholds import THRESHOLDS
from mercer._scores.uncertainty.intervals import LooResults

__all__ = ["CALIBRATIONS", "CLASSIFICATION_CRITERIA", "THRESHOLDS", "LooResults", "Posterior", "Rule"]
