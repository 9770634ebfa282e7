"""Kernel discriminants for scikit-learn users: exact, self-tuning, with calibrated probabilities."""

from mercer._estimators import (
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
from mercer._version import __version__
from mercer.planning import plan

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
