"""Kernel discriminants for scikit-learn users: exact, self-tuning, with calibrated probabilities."""

from mercer.models import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.planning import plan

__version__ = "0.1.0.dev0"

__all__ = [
    "KernelFisherClassifier",
    "KernelRidgeRegressor",
    "OnlineFisherClassifier",
    "OnlineKernelRegressor",
    "PairwiseClassifier",
    "SparseFisherClassifier",
    "SparseKernelRegressor",
    "__version__",
    "plan",
]
