"""Which fit is made, why, and its result."""

from mercer._fitting.selection.centers import ModelSelection
from mercer._fitting.selection.path import ALPHAS, TuningPath

__all__ = ["ALPHAS", "ModelSelection", "TuningPath"]
