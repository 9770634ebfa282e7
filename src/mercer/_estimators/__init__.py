"""scikit-learn estimators, which validate, call one function, and store."""

from mercer._estimators.directions.canonical import KernelCCA
from mercer._estimators.directions.components import KernelPCA
from mercer._estimators.directions.oriented import OrientedKernelPCA
from mercer._estimators.few_centers.online import OnlineFisherClassifier, OnlineKernelRegressor
from mercer._estimators.few_centers.sparse import SparseFisherClassifier, SparseKernelRegressor
from mercer._estimators.least_squares.classifier import KernelFisherClassifier
from mercer._estimators.least_squares.regressor import KernelRidgeRegressor
from mercer._estimators.pairwise import PairwiseClassifier
from mercer._estimators.pipelines import novelty, predict_interval, predict_std
from mercer._estimators.programs.boosting import LPBoostClassifier
from mercer._estimators.programs.machine import KernelMachineClassifier, KernelMachineRegressor
from mercer._estimators.programs.novelty import KernelNoveltyDetector

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
