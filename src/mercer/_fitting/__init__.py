"""Choice of kernel and penalty by leave-one-out, with every row as a center or with m centers."""

from mercer._fitting.selection.alpha_of_moments import finish
from mercer._fitting.selection.centers import Choice, Encoded, Task, choose, precision_of
from mercer._fitting.selection.path import ALPHAS, TuningPath
from mercer._fitting.selection.problem import ExactProblem, at_points

__all__ = [
    "ALPHAS",
    "Choice",
    "Encoded",
    "ExactProblem",
    "Task",
    "TuningPath",
    "at_points",
    "choose",
    "finish",
    "precision_of",
]
