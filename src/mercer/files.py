"""Fitted models in files: the types to declare as trusted to a safe loader."""

from mercer import _estimators, centers, kernels

# What models consist of besides public types and arrays: classes of each module.
_PARTS = {
    "_estimators.base": ["BlockValidator"],
    "_estimators.directions.canonical": ["ViewColumns"],
    "_estimators.directions.subspace": ["SubspaceDetails"],
    "_estimators.few_centers.online": ["OnlineState"],
    "_estimators.fitted": ["Fitted"],
    "_estimators.least_squares.model": ["Continuation", "KeptRows", "WaitingSolution"],
    "_estimators.nested_score": ["NestedScore"],
    "_estimators.programs.boosting": ["Ensemble", "Stump"],
    "_estimators.report": ["Report"],
    "_fitting.data": ["RowSchema"],
    "_fitting.kernel_learning.evidence": ["Gain"],
    "_fitting.kernel_learning.relevance": ["Features", "Relevance"],
    "_fitting.kernel_learning.weights": ["Weights"],
    "_fitting.moments": ["Encoder", "Gatherer", "PassState"],
    "_fitting.programs.novelty": ["Distances"],
    "_fitting.selection.centers": ["ModelSelection"],
    "_fitting.selection.path": ["TuningPath"],
    "_fitting.spec": ["FitSpec", "SecondFit"],
    "_fitting.state": ["AdditiveState"],
    "_fitting.subspaces.components": ["Subspace", "SubspaceState"],
    "_fitting.subspaces.oriented": ["OrientedState"],
    "_gram.coordinates": ["Coordinates"],
    "_gram.moments": ["Moments"],
    "_gram.precision": ["Precision"],
    "_gram.tangent_covariance": ["Transformation"],
    "_linalg.rank": ["RankFactor"],
    "_scores.decision_rule": ["Rule"],
    "_scores.prequential": ["Prequential", "ScoreWindow"],
    "_scores.probabilities.calibration": ["Posterior", "StepCurve"],
    "_scores.targets": ["ClassTargets", "Decision", "RealTargets"],
    "_scores.training_rows": ["Folds"],
    "_scores.uncertainty.intervals": ["LooResults"],
    "_scores.uncertainty.unexplained_variance": ["UnexplainedVariance"],
    "_solvers.directions.discriminants": ["Directions"],
    "_solvers.orthogonal.path": ["SparsePath"],
    "_solvers.orthogonal.stages": ["SparseStage"],
    "_solvers.recursive": ["LabeledRows", "RecursiveState"],
    "invariances": ["AffineWarp", "ElasticWarp", "Thickness"],
    "kernels._precomputed": ["Pairwise"],
    "kernels._vectors.units": ["NormalScores", "Units"],
    "rows._base": ["Block"],
    "rows._columns": ["NamedColumns"],
    "rows._encoding.columns": [
        "CategoryColumn",
        "DateColumn",
        "DroppedColumn",
        "NumberColumn",
        "TableEncoding",
        "TextColumn",
    ],
    "rows._sampling.random_sample": ["Labels", "RunningSample", "Sampler"],
    "rows._sampling.weights": ["Tally"],
    "rows._virtual": ["Copies"],
    "sequences._alignment": ["States", "WordModels"],
    "sequences._emissions": ["DiscriminantEmissions", "MixtureEmissions", "Mixtures"],
    "sequences._paths.chains": ["Chain"],
    "sequences._recognizer": ["HiddenMarkovClassifier"],
}

_PUBLIC = [getattr(module, name) for module in (_estimators, centers, kernels) for name in module.__all__]

# For ``skops.io.load(file, trusted=TRUSTED_TYPES)``. Loading one of these stores attributes and runs nothing else:
# models, dataclasses, kernels and selectors are made without their constructor, and CSR matrices are read without
# pickle. Models check the indices of their CSR rows. The list contains no functions: for a kernel that is your own
# function, add the name of that function.
TRUSTED_TYPES = sorted(
    ["scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"]
    + [f"{thing.__module__}.{thing.__qualname__}" for thing in _PUBLIC if isinstance(thing, type)]
    + [f"mercer.{module}.{name}" for module, names in _PARTS.items() for name in names]
)

__all__ = ["TRUSTED_TYPES"]
