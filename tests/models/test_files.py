"""A fitted model comes back from a file as it went in."""

import importlib
import io
import os
import pickle
from dataclasses import is_dataclass
from functools import partial

import joblib
import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from mercer import (
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
    kernels,
)
from mercer._estimators import estimator
from mercer.centers import ForwardSelection, Given, KMeans, Leverage, RPCholesky, Uniform
from mercer.errors import VersionWarning
from mercer.files import TRUSTED_TYPES
from mercer.kernels import (
    ANOVA,
    RBF,
    AllSubsets,
    BagOfWords,
    Bilinear,
    Constant,
    Exp,
    FisherKernel,
    FromCallable,
    GaussianOf,
    Intersection,
    InverseMultiquadric,
    KmerSpectrum,
    Laplacian,
    Linear,
    LocalAlignment,
    MarginalizedKernel,
    Matern,
    MeanMap,
    Mismatch,
    Nominal,
    Normalized,
    OnColumns,
    OneOf,
    Polynomial,
    Power,
    Product,
    RankNormal,
    RationalQuadratic,
    Scaled,
    SharedSubsets,
    Sigmoid,
    Standardized,
    Subsequence,
    Substrings,
    Subtrees,
    Sum,
    Tanimoto,
    WeightedSum,
    Wendland,
)
from mercer.sequences import HiddenMarkovClassifier

MODELS = [
    KernelFisherClassifier(),
    KernelFisherClassifier("laplacian", calibration="isotonic"),
    KernelFisherClassifier(RBF(gamma=0.5), calibration="quadratic"),
    KernelFisherClassifier(2.0 * RBF(gamma=0.5) + Linear(), calibration="gaussian", threshold="error"),
    KernelFisherClassifier(Normalized(Polynomial(degree=2)) * Matern(gamma=0.3), penalty="coef"),
    KernelFisherClassifier((Linear() + Laplacian(gamma=1.0)) ** 2, cv=3, class_weight={0: 1.0, 1: 2.0}),
    KernelFisherClassifier(RBF(gamma=np.array([0.5, 1.0])), n_components=1, priors=[0.2, 0.3, 0.5]),
    KernelFisherClassifier(RBF(gamma=0.5), centers=ForwardSelection(8), random_state=0),
    KernelRidgeRegressor(RBF(gamma=0.5), centers=KMeans(8), random_state=0),
    KernelRidgeRegressor(),
    KernelRidgeRegressor("matern", fit_intercept=False),
    KernelRidgeRegressor(RBF(gamma=0.5) * Linear(), cv=3),
    KernelRidgeRegressor([RBF(), Laplacian()], random_state=0),
    KernelRidgeRegressor(relevance=["a", "b"], centers=8, random_state=0),
    KernelRidgeRegressor(WeightedSum({"a": RBF("median"), "b": Linear()}, "alignment"), centers=8, random_state=0),
]
VECTOR_KERNELS = [
    ANOVA(2),
    AllSubsets(),
    Bilinear(np.eye(2)),
    Constant(1.0),
    Exp(0.01 * Linear()),
    FisherKernel(size=2),
    GaussianOf(Linear(), gamma=0.5),
    InverseMultiquadric(gamma=0.5),
    Laplacian(gamma=0.5),
    Linear(),
    MarginalizedKernel(size=2),
    Matern(gamma=0.5),
    Nominal(gamma=0.5),
    Normalized(Linear()),
    OneOf([RBF(gamma=0.5), Laplacian(gamma=0.5)]),
    RankNormal(RBF(gamma=0.5)),
    Standardized(RBF("median")),
    WeightedSum({"rbf": RBF(gamma=0.5), "linear": Linear()}),
    OnColumns(RBF(gamma=0.5), [1], lengths=[2.0]),
    Polynomial(2),
    Power(Linear(), 2),
    Product([("rbf", RBF(gamma=0.5)), ("linear", Linear())]),
    RBF(gamma=0.5),
    RationalQuadratic(gamma=0.5),
    Scaled(Linear(), 2.0),
    Sigmoid(gamma=0.01),
    Sum([("rbf", RBF(gamma=0.5)), ("linear", Linear())]),
    Wendland(gamma=0.01, dimension=2),
]
WORDS = ["kernel", "kettle", "kelp", "mango", "mandarin", "manioc"]
SETS = [tuple(word) for word in WORDS]
BAGS = [np.arange(2.0 * n).reshape(n, 2) for n in range(1, 7)]
TREES = [("S", ("A", word[0]), ("B", word[-1])) for word in WORDS]
OBJECT_KERNELS = [
    (BagOfWords("char", (1, 2)), WORDS),
    (BagOfWords("char", (1, 2), topics="rows"), WORDS),
    (BagOfWords("char", (1, 2), topics=2), WORDS),
    (FisherKernel("markov", size=2, whiten="full"), WORDS),
    (MarginalizedKernel("markov", size=2), WORDS),
    (Intersection(), SETS),
    (SharedSubsets(), SETS),
    (Tanimoto(), SETS),
    (MeanMap(RBF(gamma=0.1)), BAGS),
    (Subtrees(), TREES),
    (KmerSpectrum(2), WORDS),
    (LocalAlignment(beta=0.1), WORDS),
    (Mismatch(2), WORDS),
    (Subsequence(2), WORDS),
    (Substrings(), WORDS),
]
PRECOMPUTED = KernelFisherClassifier("precomputed", alpha=1.0)
FUNCTION = KernelFisherClassifier(FromCallable(linear_kernel, psd=True), alpha=1.0)


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def through_skops(model):
    return skops.io.loads(skops.io.dumps(model), trusted=TRUSTED_TYPES)


def all_outputs(model, X):
    """Everything that can be asked of a fitted model at rows X, and what it keeps of its own."""
    yield model.predict(X)
    if is_classifier(model):
        yield from (model.predict_proba(X), model.transform(X), model.loo_decision_)
    else:
        yield from (model.predict_interval(X), model.predict_std(X), model.loo_prediction_)
    yield np.array([str(model.report_)])


@pytest.fixture(scope="module")
def rows():
    """X (30, 2) and y in {0, 1, 2}: overlapping."""
    y = np.arange(30) % 3
    return np.random.default_rng(0).normal(size=(30, 2)) + 2.0 * np.eye(3)[y, :2], y


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: " ".join(repr(model).split()))
def fitted(request, rows):
    """A fitted model, and what a file has of it before its score is read, which is computed only then."""
    X, y = rows
    two = getattr(request.param, "threshold", "bayes") != "bayes"
    model = clone(request.param).fit(X, y > 0 if two else y)
    return model, skops.io.dumps(model)


@pytest.mark.sampled(1)
def test_model_from_a_file_is_equal_to_the_bit(fitted, rows):
    model, data = fitted
    exact = list(all_outputs(model, rows[0]))
    early = skops.io.loads(data, trusted=TRUSTED_TYPES)
    for twin in (early, through_pickle(model), through_joblib(model), through_skops(model)):
        assert repr(twin) == repr(model)
        for found, expected in zip(all_outputs(twin, rows[0]), exact, strict=True):
            assert_array_equal(found, expected)


@pytest.mark.sampled(1)
def test_trusted_types_are_all_that_a_file_needs(fitted):
    _, data = fitted
    assert set(skops.io.get_untrusted_types(data=data)) - set(TRUSTED_TYPES) == set()


def test_model_of_kernel_values_comes_back(three_classes):
    X, y = three_classes
    model = PRECOMPUTED.fit(X @ X.T, y)
    for through in (through_pickle, through_joblib, through_skops):
        assert_array_equal(through(model).predict_proba(X @ X.T), model.predict_proba(X @ X.T))


def test_model_of_a_function_comes_back_but_the_function_is_not_ours_to_trust(three_classes):
    X, y = three_classes
    model = FUNCTION.fit(X, y)
    assert_array_equal(through_pickle(model).predict_proba(X), model.predict_proba(X))
    untrusted = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    assert all("mercer" not in name for name in set(untrusted) - set(TRUSTED_TYPES))


MATRICES = ["scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"]


def trusted_classes():
    """The classes of this library among the trusted types."""
    for name in sorted(set(TRUSTED_TYPES) - set(MATRICES)):
        module, _, kind = name.rpartition(".")
        yield getattr(importlib.import_module(module), kind)


def test_trusted_types_are_importable_names_of_this_library_and_csr_matrices():
    assert set(MATRICES) <= set(TRUSTED_TYPES)
    names = {f"{cls.__module__}.{cls.__qualname__}" for cls in trusted_classes()}
    assert names == set(TRUSTED_TYPES) - set(MATRICES)
    assert all(name.startswith("mercer.") for name in names)
    assert len(set(TRUSTED_TYPES)) == len(TRUSTED_TYPES)


@pytest.mark.parametrize("cls", list(trusted_classes()), ids=lambda cls: cls.__qualname__)
def test_trusted_types_run_nothing_when_they_are_loaded(cls):
    """A loader makes the object without its constructor, and sets its attributes."""
    assert cls.__new__ is object.__new__
    assert not hasattr(cls, "__del__")
    assert isinstance(cls, type)
    assert cls.__reduce_ex__ is object.__reduce_ex__
    assert cls.__setattr__ is object.__setattr__ or is_dataclass(cls)
    # Those of this library check, and make no use of what they check.
    where = (
        "mercer._estimators.estimator",
        "mercer._estimators.least_squares.model",
        BaseEstimator.__module__,
    )
    assert not hasattr(cls, "__setstate__") or cls.__setstate__.__module__ in where


def with_indices_out_of_bounds(rows):
    rows.indices[-1] = 2**20
    return rows


def with_rows_that_end_before_they_begin(rows):
    rows.indptr[1] = rows.indptr[-1] + 1
    return rows


def centers_of_model(model):
    return model.X_fit_


def centers_of_stream(model):
    return model._fitted.details.sums.centers


def sample_of_stream(model):
    return model._fitted.details.sums.additive.drawn.parts[0].X


def centers_of_state(model):
    return model.state_.centers


def centers_of_selector(model):
    return model.centers.rows


THREE_CENTERS = sparse.csr_matrix([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
HOLDERS = [
    (KernelFisherClassifier(RBF(gamma=0.5)), centers_of_model),
    (KernelFisherClassifier(RBF(gamma=0.5), centers=8, random_state=0), centers_of_model),
    (KernelRidgeRegressor(RBF(gamma=0.5), centers=8, random_state=0), centers_of_stream),
    (KernelRidgeRegressor(RBF(gamma=0.5), centers=8, random_state=0), sample_of_stream),
    (SparseFisherClassifier(RBF(gamma=0.5), max_centers=8), centers_of_model),
    (OnlineKernelRegressor(RBF(gamma=0.5), max_centers=8), centers_of_state),
    (KernelFisherClassifier(RBF(gamma=0.5), centers=Given(THREE_CENTERS)), centers_of_selector),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("through", [through_pickle, through_skops])
@pytest.mark.parametrize("damage", [with_indices_out_of_bounds, with_rows_that_end_before_they_begin])
@pytest.mark.parametrize(("model", "holder"), HOLDERS)
def test_sparse_rows_whose_indices_lead_astray_are_refused(model, holder, damage, through, three_classes):
    X, y = three_classes
    fitted = clone(model).fit(sparse.csr_matrix(X), y)
    through(fitted)
    damage(holder(fitted))
    with pytest.raises(
        ValueError, match=r"sparse rows in the stored model are damaged: ind.*do not use this file"
    ):
        through(fitted)


STORED = [
    KernelFisherClassifier(RBF(gamma=0.5)),
    KernelRidgeRegressor(RBF(gamma=0.5), centers=8),
    LPBoostClassifier(nu=0.6),
    PairwiseClassifier(KernelFisherClassifier(RBF(gamma=0.5))),
    OnlineFisherClassifier(RBF(gamma=0.5)),
    KernelPCA(2, RBF(gamma=0.5)),
    HiddenMarkovClassifier(),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("through", [through_pickle, through_skops])
@pytest.mark.parametrize("model", STORED, ids=lambda model: type(model).__name__)
def test_a_model_of_another_version_is_loaded_with_a_warning(model, through, three_classes, monkeypatch):
    fitted = model if isinstance(model, HiddenMarkovClassifier) else clone(model).fit(*three_classes)
    assert "_mercer_version" not in vars(through(fitted))
    monkeypatch.setattr(estimator, "__version__", "9.9")
    data = pickle.dumps(fitted) if through is not through_skops else skops.io.dumps(fitted)
    monkeypatch.undo()
    load = pickle.loads if through is not through_skops else partial(skops.io.loads, trusted=TRUSTED_TYPES)
    with pytest.warns(VersionWarning) as caught:
        loaded = load(data)
    words = f"this {type(model).__name__} was stored by mercer 9.9 and is loaded by"
    assert any(str(warning.message).startswith(words) for warning in caught)
    assert repr(loaded) == repr(fitted)


def test_a_model_without_a_version_is_loaded_with_a_warning():
    model = KernelFisherClassifier()
    with pytest.warns(VersionWarning, match="stored by mercer an earlier version"):
        model.__setstate__({"kernel": "rbf"})


def test_unfitted_model_comes_back():
    model = KernelFisherClassifier(RBF(gamma=0.5) + Linear())
    for through in (through_pickle, through_joblib, through_skops):
        assert repr(through(model)) == repr(model)


# Every estimator on CSR rows; what it holds of them differs.
ON_CSR = [
    KernelFisherClassifier(RBF(gamma=0.5)),
    KernelFisherClassifier(RBF(gamma=0.5), centers=8, random_state=0),
    KernelFisherClassifier(RBF(gamma=0.5), centers=Given(sparse.csr_matrix(np.eye(2)))),
    KernelRidgeRegressor(RBF(gamma=0.5), centers=8, random_state=0),
    PairwiseClassifier(KernelFisherClassifier(RBF(gamma=0.5))),
    SparseFisherClassifier(RBF(gamma=0.5), max_centers=8, widths=[0.5, 2.0]),
    SparseKernelRegressor(RBF(gamma=0.5), max_centers=8),
    KernelMachineClassifier(RBF(gamma=0.5), loss="hinge"),
    KernelMachineRegressor(RBF(gamma=0.5), penalty="l1"),
    KernelNoveltyDetector(RBF(gamma=0.5)),
    KernelPCA(2, RBF(gamma=0.5)),
    KernelCCA(2, RBF(gamma=0.5)),
    KernelCCA(2, RBF(gamma=0.5), centers=8, random_state=0),
    KernelPCA(2, RBF(gamma=0.5), centers=8, random_state=0),
    OrientedKernelPCA(2, RBF(gamma=0.5), noise=np.eye(2)),
    OrientedKernelPCA(2, RBF(gamma=0.5), noise=sparse.csr_matrix(np.eye(2)), centers=8, random_state=0),
    LPBoostClassifier(LogisticRegression()),
    OnlineFisherClassifier(RBF(gamma=0.5), max_centers=8),
    OnlineKernelRegressor(RBF(gamma=0.5), max_centers=8),
    *(KernelRidgeRegressor(kernel, alpha=1.0) for kernel in VECTOR_KERNELS),
    *(
        KernelRidgeRegressor(RBF(gamma=0.5), centers=selector(8), random_state=0)
        for selector in (ForwardSelection, Leverage, RPCholesky, Uniform)
    ),
    make_pipeline(MaxAbsScaler(), KernelFisherClassifier(RBF(gamma=0.5), centers=8, random_state=0)),
    make_pipeline(StandardScaler(with_mean=False), OnlineFisherClassifier(RBF(gamma=0.5), max_centers=8)),
]
every_on_csr = pytest.mark.parametrize("model", ON_CSR, ids=lambda model: " ".join(repr(model).split()))


# The sigmoid kernel is indefinite, and says so.
@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::mercer.errors.NumericalWarning")
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
@every_on_csr
def test_models_on_sparse_rows_come_back_by_the_trusted_types(model, kind, three_classes):
    X, y = three_classes
    fitted = clone(model).fit(kind(X), y)
    data = skops.io.dumps(fitted)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(TRUSTED_TYPES)
    loaded, answer = (
        skops.io.loads(data, trusted=TRUSTED_TYPES),
        "predict" if hasattr(model, "predict") else "transform",
    )
    assert_array_equal(getattr(loaded, answer)(kind(X)), getattr(fitted, answer)(kind(X)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("kernel", "X"), OBJECT_KERNELS, ids=lambda case: str(case)[:40])
@pytest.mark.parametrize("centers", ["all", 3])
def test_models_on_objects_come_back_by_the_trusted_types(kernel, X, centers):
    y = np.repeat([0.0, 1.0], 3)
    fitted = KernelRidgeRegressor(kernel, alpha=1.0, centers=centers, random_state=0).fit(X, y)
    for through in (through_pickle, through_joblib, through_skops):
        assert_array_equal(through(fitted).predict(X), fitted.predict(X))


def test_every_kernel_is_tried_on_its_rows():
    tried = {type(kernel) for kernel in (*VECTOR_KERNELS, *(kernel for kernel, _ in OBJECT_KERNELS))}
    kinds = {value for value in map(vars(kernels).get, kernels.__all__) if isinstance(value, type)}
    of_functions = {FromCallable, kernels.After, kernels.Conformal}
    others = {kernels.Kernel, kernels.Precomputed, *of_functions}
    assert {kind for kind in kinds if issubclass(kind, kernels.Kernel)} - others == tried


@pytest.mark.parametrize("kernel", [FromCallable(os.system), FromCallable(kernels.pairwise(os.system))])
def test_a_function_in_a_file_is_refused_by_its_name(kernel):
    data = skops.io.dumps(KernelRidgeRegressor(kernel))
    with pytest.raises(skops.io.exceptions.UntrustedTypesFoundException, match="system"):
        skops.io.loads(data, trusted=TRUSTED_TYPES)


@pytest.mark.parametrize(
    "model",
    [
        SparseFisherClassifier(RBF(gamma=0.5), max_centers=8),
        SparseKernelRegressor(RBF(gamma=0.5), max_centers=8),
        KernelMachineClassifier(RBF(gamma=0.5), loss="squared", alpha=0.1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_lean_copy_predicts_alike_and_has_no_rows_for_a_score(model, three_classes):
    X, y = three_classes
    model = clone(model).fit(X, y)
    lean = pickle.loads(pickle.dumps(model.lean()))
    assert_array_equal(lean.predict(X), model.predict(X))
    assert lean.loo_score_ == model.loo_score_
    assert len(pickle.dumps(lean)) < len(pickle.dumps(model))
    with pytest.raises(AttributeError, match="a lean copy has no support_"):
        lean.support_
