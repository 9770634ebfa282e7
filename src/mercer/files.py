"""Fitted models in files: the types to declare as trusted to a safe loader."""

from scipy.sparse import csr_array, csr_matrix

from mercer import centers, kernels
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
)
from mercer._estimators.base import BlockValidator
from mercer._estimators.directions.canonical import ViewColumns
from mercer._estimators.directions.subspace import SubspaceDetails
from mercer._estimators.few_centers.online import OnlineState
from mercer._estimators.fitted import Fitted
from mercer._estimators.least_squares.model import Continuation, KeptRows, WaitingSolution
from mercer._estimators.nested_score import NestedScore
from mercer._estimators.programs.boosting import Ensemble, Stump
from mercer._estimators.report import Report
from mercer._fitting import ModelSelection, TuningPath
from mercer._fitting.data import RowSchema
from mercer._fitting.kernel_learning.evidence import Gain
from mercer._fitting.kernel_learning.relevance import Features, Relevance
from mercer._fitting.kernel_learning.weights import Weights
from mercer._fitting.moments import Encoder, Gatherer, PassState
from mercer._fitting.programs.novelty import Distances
from mercer._fitting.spec import FitSpec
from mercer._fitting.state import AdditiveState
from mercer._fitting.subspaces.components import Subspace, SubspaceState
from mercer._fitting.subspaces.oriented import OrientedState
from mercer._gram.coordinates import Coordinates
from mercer._gram.moments import Moments
from mercer._gram.precision import Precision
from mercer._gram.tangent_covariance import Transformation
from mercer._linalg.rank import RankFactor
from mercer._scores import LooResults, Posterior, Rule
from mercer._scores.prequential import Prequential, ScoreWindow
from mercer._scores.probabilities.calibration import StepCurve
from mercer._scores.targets import ClassTargets, Decision, RealTargets
from mercer._scores.training_rows import Folds
from mercer._scores.uncertainty.unexplained_variance import UnexplainedVariance
from mercer._solvers import Directions
from mercer._solvers.orthogonal import SparsePath
from mercer._solvers.orthogonal.stages import SparseStage
from mercer._solvers.recursive import LabeledRows, RecursiveState
from mercer.invariances import AffineWarp, ElasticWarp, Thickness
from mercer.kernels._precomputed import Pairwise
from mercer.rows import Block
from mercer.rows._columns import NamedColumns
from mercer.rows._sampling.random_sample import Labels, RunningSample, Sampler
from mercer.rows._sampling.weights import Tally
from mercer.rows._virtual import Copies

_MODELS = (
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
)
_SPARSE = (SparsePath, SparseStage)
_ONLINE = (RecursiveState, LabeledRows, Prequential, ScoreWindow)
_SUMS = (AdditiveState, Coordinates, Moments, Precision, RankFactor, Transformation)
_ROWS = (Block, Sampler, RunningSample, Labels, NamedColumns, Tally, *_SUMS)
_INVARIANCES = (Copies, AffineWarp, ElasticWarp, Thickness)
_LEARNED = (Features, Relevance, Weights, Gain)
_STATES = (
    Fitted,
    RowSchema,
    NestedScore,
    Continuation,
    WaitingSolution,
    SubspaceDetails,
    ViewColumns,
    Distances,
    OnlineState,
)
_PASSES = (
    PassState,
    FitSpec,
    *_STATES,
    *_INVARIANCES,
    KeptRows,
    Gatherer,
    ModelSelection,
    Encoder,
    BlockValidator,
    *_ROWS,
    *_LEARNED,
)
_COMPONENTS = (OrientedState, Subspace, SubspaceState)
_TARGETS = (ClassTargets, RealTargets, Decision)
_PARTS = (
    Ensemble,
    Report,
    TuningPath,
    Rule,
    Posterior,
    StepCurve,
    Stump,
    Directions,
    LooResults,
    Folds,
    Pairwise,
    UnexplainedVariance,
    *_ONLINE,
    *_TARGETS,
    *_PASSES,
    *_SPARSE,
    *_COMPONENTS,
)
_CENTERS = tuple(getattr(centers, name) for name in centers.__all__ if isinstance(getattr(centers, name), type))
_KERNELS = tuple(getattr(kernels, name) for name in kernels.__all__ if isinstance(getattr(kernels, name), type))

_MATRICES = (csr_matrix, csr_array)
# The parts of the same layer, which must not be imported here.
_SEQUENCES = (
    "_alignment.States",
    "_alignment.WordModels",
    "_paths.chains.Chain",
    "_emissions.DiscriminantEmissions",
    "_emissions.MixtureEmissions",
    "_emissions.Mixtures",
    "_recognizer.HiddenMarkovClassifier",
)

# For ``skops.io.load(file, trusted=TRUSTED_TYPES)``. Loading one of these stores attributes and runs nothing else:
# models, dataclasses, kernels and selectors are made without their constructor, and CSR matrices are read without
# pickle. Models check the indices of their CSR rows. The list contains no functions: for a kernel that is your own
# function, add the name of that function.
TRUSTED_TYPES = sorted(
    [f"{cls.__module__}.{cls.__qualname__}" for cls in (*_MODELS, *_PARTS, *_CENTERS, *_KERNELS, *_MATRICES)]
    + [f"mercer.sequences.{name}" for name in _SEQUENCES]
)

__all__ = ["TRUSTED_TYPES"]
