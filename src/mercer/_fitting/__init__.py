"""Which fit is made, why, and its result."""

from mercer._fitting.selection.alpha_of_moments import choose_alpha_from_moments
from mercer._fitting.selection.centers import (
    EncodedMoments,
    ModelSelection,
    SampleProblem,
    choose_kernel_and_centers,
    precision_of,
)
from mercer._fitting.selection.path import ALPHAS, TuningPath
from mercer._fitting.selection.problem import ExactProblem, at_points

__all__ = [
    "ALPHAS",
    "EncodedMoments",
    "ExactProblem",
    "ModelSelection",
    "SampleProblem",
    "TuningPath",
    "at_points",
    "choose_alpha_from_moments",
    "choose_kernel_and_centers",
    "precision_of",
]
