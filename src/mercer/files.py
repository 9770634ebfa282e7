"""Fitted models in files: the types to declare as trusted to a safe loader."""

from scipy.sparse import csr_array, csr_matrix

from mercer import centers, kernels
from mercer.gram.coordinates import Coordinates
from mercer.gram.moments import Moments
from mercer.gram.precision import Precision
from mercer.gram.tangent_covariance import Transformation
from mercer.invariances import AffineWarp, ElasticWarp, Thickness
from mercer.kernels.precomputed import Pairwise
from mercer.linalg.rank import RankFactor
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
)
from mercer.models.base import Columns
from mercer.models.boosting import Ensemble, Stump
from mercer.models.canonical import ViewColumns
from mercer.models.detector import Distances
from mercer.models.fitted import Fitted
from mercer.models.nested import NestedScore
from mercer.models.online import OnlineState
from mercer.models.report import Report
from mercer.models.resumable import Continuation, Kept, WaitingSolution
from mercer.models.subspace import SubspaceDetails
from mercer.rows import Block, RunningSample, Sampler, Tally
from mercer.rows.columns import NamedColumns
from mercer.rows.sampling.random_sample import Labels
from mercer.rows.virtual import Copies
from mercer.scores import LooResults, Posterior, Rule
from mercer.scores.prequential import Prequential, ScoreWindow
from mercer.scores.probabilities.calibration import StepCurve
from mercer.scores.targets import ClassTargets, Decision, RealTargets
from mercer.scores.training_rows import Folds
from mercer.scores.uncertainty.unexplained_variance import UnexplainedVariance
from mercer.solvers import Directions
from mercer.solvers.orthogonal import SparsePath
from mercer.solvers.orthogonal.stages import SparseStage
from mercer.solvers.recursive import LabeledRows, RecursiveState
from mercer.tuning import Choice, TuningPath
from mercer.tuning.additive import AdditiveState
from mercer.tuning.components import Subspace, SubspaceState
from mercer.tuning.data import RowSchema
from mercer.tuning.evidence import Gain
from mercer.tuning.oriented import OrientedState
from mercer.tuning.passes import Encoder, Gatherer, PassState
from mercer.tuning.relevance import Features, Relevance
from mercer.tuning.spec import FitSpec
from mercer.tuning.weights import Weights

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
    Kept,
    Gatherer,
    Choice,
    Encoder,
    Columns,
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
# The parts beside this one, which must not be imported here.
_SEQUENCES = (
    "alignment.States",
    "alignment.WordModels",
    "chains.Chain",
    "emissions.DiscriminantEmissions",
    "emissions.MixtureEmissions",
    "emissions.Mixtures",
    "recognizer.HiddenMarkovClassifier",
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
