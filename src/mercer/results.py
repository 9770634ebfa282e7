"""What users hold in hands after a fit: types of fitted attributes. They are made by a fit, not by users."""

from mercer._estimators.report import Report
from mercer._expansion import Expansion
from mercer._fitting.selection.path import TuningPath
from mercer._gram.moments import Moments
from mercer._scores import LooResults, Rule
from mercer._scores.contributions import Contributions
from mercer._scores.importance import Importances
from mercer._scores.monitoring import ControlLimits, Statistics
from mercer._scores.uncertainty.unexplained_variance import UnexplainedVariance
from mercer._solvers.orthogonal import SparsePath
from mercer.rows._encoding.columns import TableEncoding

__all__ = [
    "Contributions",
    "ControlLimits",
    "Expansion",
    "Importances",
    "LooResults",
    "Moments",
    "Report",
    "Rule",
    "SparsePath",
    "Statistics",
    "TableEncoding",
    "TuningPath",
    "UnexplainedVariance",
]
