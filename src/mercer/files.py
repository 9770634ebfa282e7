"""Fitted models in files: the types that a safe loader must be told to trust."""

from mercer import kernels
from mercer.kernels.precomputed import Pairwise
from mercer.models import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
)
from mercer.models.report import FitReport
from mercer.scores import LeftOut, Posterior, Rule
from mercer.scores.prequential import Prequential, ScoreWindow
from mercer.scores.probabilities import Steps
from mercer.solvers import Directions
from mercer.solvers.recursive import LabeledRows, StreamState
from mercer.tuning import Path

_MODELS = (KernelFisherClassifier, KernelRidgeRegressor, OnlineFisherClassifier, OnlineKernelRegressor)
_STREAM = (StreamState, LabeledRows, Prequential, ScoreWindow)
_PARTS = (FitReport, Path, Rule, Posterior, Steps, Directions, LeftOut, Pairwise, *_STREAM)
_KERNELS = tuple(getattr(kernels, name) for name in kernels.__all__ if isinstance(getattr(kernels, name), type))

# For ``skops.io.load(file, trusted=TRUSTED_TYPES)``: plain data and kernels.
TRUSTED_TYPES = sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in (*_MODELS, *_PARTS, *_KERNELS))

__all__ = ["TRUSTED_TYPES"]
