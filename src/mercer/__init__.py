"""Kernel discriminants for scikit-learn users: exact, self-tuning, with calibrated probabilities."""

from mercer.models import (
    KernelCCA,
    KernelFisherClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelNoveltyDetector,
    KernelPCA,
    KernelRidgeRegressor,
    LPBoostClassifier,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    OrientedKernelPCA,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
    novelty,
    predict_interval,
    predict_std,
)
from mercer.planning import plan
from mercer.version import __version__

__all__ = [
    "KernelCCA",
    "KernelFisherClassifier",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "KernelNoveltyDetector",
    "KernelPCA",
    "KernelRidgeRegressor",
    "LPBoostClassifier",
    "OnlineFisherClassifier",
    "OnlineKernelRegressor",
    "OrientedKernelPCA",
    "PairwiseClassifier",
    "SparseFisherClassifier",
    "SparseKernelRegressor",
    "__version__",
    "novelty",
    "plan",
    "predict_interval",
    "predict_std",
]
