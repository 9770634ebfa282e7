"""scikit-learn estimators, which validate, call one function, and store."""

from mercer.models.boosting import LPBoostClassifier
from mercer.models.canonical import KernelCCA
from mercer.models.components import KernelPCA
from mercer.models.detector import KernelNoveltyDetector
from mercer.models.fisher import KernelFisherClassifier
from mercer.models.machine import KernelMachineClassifier, KernelMachineRegressor
from mercer.models.online import OnlineFisherClassifier, OnlineKernelRegressor
from mercer.models.oriented import OrientedKernelPCA
from mercer.models.pairwise import PairwiseClassifier
from mercer.models.regression import KernelRidgeRegressor
from mercer.models.sparse import SparseFisherClassifier, SparseKernelRegressor
from mercer.models.wrapped import novelty, predict_interval, predict_std

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
    "novelty",
    "predict_interval",
    "predict_std",
]
