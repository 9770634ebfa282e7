"""Choice of kernel and penalty by leave-one-out, with every row as a center or with m centers."""

from mercer.tuning.exact import ExactProblem, at_points, tune
from mercer.tuning.one_pass import Choice, Encoded, Task, choose, enough, finish, precision_of
from mercer.tuning.path import ALPHAS, Tuned, TuningPath

__all__ = [
    "ALPHAS",
    "Choice",
    "Encoded",
    "ExactProblem",
    "Task",
    "Tuned",
    "TuningPath",
    "at_points",
    "choose",
    "enough",
    "finish",
    "precision_of",
    "tune",
]
