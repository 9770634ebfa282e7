"""Choice of kernel and penalty by leave-one-out, with every row as a center or with m centers."""

from mercer.tuning.from_moments import finish
from mercer.tuning.one_pass import Choice, Encoded, Task, choose, precision_of
from mercer.tuning.path import ALPHAS, TuningPath
from mercer.tuning.problem import ExactProblem, at_points

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
