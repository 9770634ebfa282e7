"""From leave-one-out scores to thresholds, probabilities, intervals, and criteria for model selection."""

from mercer._scores.criteria import CLASSIFICATION_CRITERIA, classification_criterion, squared_criterion
from mercer._scores.decision_rule import ClassFit, Rule, Scatter, make_rule
from mercer._scores.probabilities.calibration import CALIBRATIONS, Posterior, calibrate, odds_shift
from mercer._scores.thresholds import THRESHOLDS, threshold_at
from mercer._scores.uncertainty.intervals import (
    LooResults,
    jackknife_plus,
    noise_std,
    prediction_intervals,
    relative_std,
    residual_intervals,
    selection_bias,
)

__all__ = [
    "CALIBRATIONS",
    "CLASSIFICATION_CRITERIA",
    "THRESHOLDS",
    "ClassFit",
    "LooResults",
    "Posterior",
    "Rule",
    "Scatter",
    "calibrate",
    "classification_criterion",
    "jackknife_plus",
    "make_rule",
    "noise_std",
    "odds_shift",
    "prediction_intervals",
    "relative_std",
    "residual_intervals",
    "selection_bias",
    "squared_criterion",
    "threshold_at",
]
