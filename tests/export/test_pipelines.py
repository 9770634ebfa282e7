"""A pipeline of affine steps and a model is one source; other steps are refused by name."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from mercer import KernelRidgeRegressor, SparseFisherClassifier, SparseKernelRegressor
from mercer.export import to_c, to_python
from mercer.export._steps import affine_steps
from mercer.kernels import RBF, Laplacian

D = 5


def rows(n=80, seed=0):
    """Features of very different scales and offsets, one of them constant."""
    X = np.random.default_rng(seed).normal(size=(n, D))
    return X * [1.0, 1e3, 1e-3, 0.0, 2.0] + [0.0, 1e4, 5.0, 7.0, -3.0]


X = rows()
T = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
Y = np.sin(T[:, 0]) + T[:, 1] * T[:, 4]
NEW = rows(20, seed=1)

AFFINE = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False),
    MinMaxScaler(),
    MinMaxScaler((-3.0, 5.0)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False, quantile_range=(10.0, 90.0)),
    PCA(3),
    PCA(2, whiten=True),
    IncrementalPCA(2, whiten=True),
    TruncatedSVD(3, random_state=0),
    VarianceThreshold(),
    SelectKBest(f_regression, k=2),
    SelectFromModel(LinearRegression(), threshold="median"),
    RFE(LinearRegression(), n_features_to_select=2),
    FunctionTransformer(),
    "passthrough",
    None,
    make_pipeline(VarianceThreshold(), MinMaxScaler(), PCA(2, whiten=True)),
    make_pipeline("passthrough", make_pipeline(SelectKBest(f_regression, k=3))),
    make_column_transformer(
        (StandardScaler(), [4, 0]), ("passthrough", [1]), (PCA(1), slice(2, 5)), ("drop", [3])
    ),
    make_column_transformer((PCA(2, whiten=True), [-1, 0, 1]), remainder=RobustScaler()),
    make_column_transformer((MinMaxScaler(), np.array([True, False, False, False, True])), remainder="drop"),
    make_column_transformer((MaxAbsScaler(), []), (make_pipeline(VarianceThreshold(), MinMaxScaler()), [3, 2, 2])),
    ColumnTransformer(
        [("a", StandardScaler(), [0, 1]), ("b", "passthrough", [2])], transformer_weights={"a": 2.0, "b": 0.5}
    ),
]


def named(step):
    """On one line, without the addresses of functions, which differ from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(step).split()))


every_step = pytest.mark.parametrize("step", AFFINE, ids=named)


def applied(steps, U):
    """What the steps do, with NumPy."""
    for step in steps:
        if hasattr(step, "W"):
            U = (U - step.mean) @ step.W
        else:
            U = (U[:, step.take] - step.shift) / step.scale * step.factor + step.offset
    return U


@every_step
def test_steps_are_what_scikit_learn_does(step):
    # PCA projects before it centers: 1e4 times machine epsilon, divided by standard deviations down to 1e-3.
    pipeline = Pipeline([("step", step)]).fit(X, Y)
    expected = pipeline.transform(NEW)
    assert_allclose(applied(affine_steps(pipeline.steps), NEW), expected, rtol=1e-12, atol=1e-8)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()])
def test_scaled_features_are_equal_to_the_bit(scaler):
    pipeline = Pipeline([("step", scaler)]).fit(X)
    assert_array_equal(applied(affine_steps(pipeline.steps), NEW), pipeline.transform(NEW))


@pytest.mark.sampled(3)
@every_step
def test_a_pipeline_in_plain_python_gives_what_it_gives(step, run_python):
    pipeline = make_pipeline(step, StandardScaler(), SparseKernelRegressor(RBF(gamma=0.1), max_centers=5)).fit(
        X, Y
    )
    found = run_python(to_python(pipeline), NEW).outputs[:, 0]
    # What rounding changes in the features, at most 1e-8 of their deviation, times the slope of the model.
    assert_allclose(found, pipeline.predict(NEW), rtol=0, atol=1e-7)


COMPILED = [
    make_pipeline(StandardScaler(), KernelRidgeRegressor(RBF(gamma=0.1))),
    make_pipeline(
        VarianceThreshold(), MinMaxScaler(), PCA(3, whiten=True), KernelRidgeRegressor(Laplacian(gamma=0.1))
    ),
    make_pipeline(
        make_column_transformer((StandardScaler(), [4, 0]), (PCA(1), [1, 2]), remainder="passthrough"),
        RobustScaler(),
        KernelRidgeRegressor(RBF(gamma=0.1)),
    ),
    make_pipeline(StandardScaler(), make_pipeline(PCA(2), KernelRidgeRegressor(RBF(gamma=0.1)))),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", ["c", "cpp"])
@pytest.mark.parametrize("pipeline", COMPILED, ids=named)
def test_a_compiled_pipeline_gives_what_it_gives(pipeline, language, run_c):
    pipeline.fit(X, Y)
    found = run_c(to_c(pipeline), NEW, q=1, language=language).outputs[:, 0]
    assert_allclose(found, pipeline.predict(NEW), rtol=0, atol=1e-7)


def test_a_standardized_model_is_exported_to_twelve_digits(run_c, run_python):
    pipeline = make_pipeline(StandardScaler(), SparseFisherClassifier(RBF(gamma=0.1), max_centers=10))
    pipeline.fit(X, np.where(Y > 0, "up", "down"))
    expected, labels = pipeline.predict_proba(NEW), pipeline.predict(NEW)
    for found in (run_c(to_c(pipeline), NEW, q=1, k=2, kind=str), run_python(to_python(pipeline), NEW)):
        # Squared distances from products, as the model computes them, against sums of squares: 1e-15 of some tens.
        assert_allclose(found.probabilities, expected, rtol=0, atol=1e-12)
        assert_array_equal(found.labels, labels)


@pytest.mark.parametrize("columns", [["e", "b"], make_column_selector("c|d")], ids=["names", "selector"])
def test_columns_by_name_are_columns_by_number(columns, run_python):
    frame, new = (pd.DataFrame(values, columns=list("abcde")) for values in (X, NEW))
    scaled = make_pipeline(
        ColumnTransformer([("some", MinMaxScaler(), columns)], remainder="passthrough"), StandardScaler()
    )
    pipeline = make_pipeline(scaled, KernelRidgeRegressor(RBF(gamma=0.1))).fit(frame, Y)
    found = run_python(to_python(pipeline), NEW).outputs[:, 0]
    assert_allclose(found, pipeline.predict(new), rtol=0, atol=1e-7)


class Twice(StandardScaler):
    """A scaler that is not what it is a subclass of."""

    def transform(self, X):
        return super().transform(X) ** 2


class Squares(SelectKBest):
    """A selection that does more than to select."""

    def transform(self, X):
        return super().transform(X) ** 2


CURVED = [
    Normalizer(),
    PolynomialFeatures(2),
    SimpleImputer(),
    KernelPCA(2),
    FunctionTransformer(np.abs),
    MinMaxScaler(clip=True),
    # Not in all versions that are supported.
    *([MaxAbsScaler(clip=True)] if "clip" in MaxAbsScaler().get_params() else []),
    Twice(),
    Squares(f_regression, k=2),
]


@pytest.mark.parametrize("export", [to_c, to_python])
@pytest.mark.parametrize("step", CURVED, ids=lambda step: type(step).__name__)
def test_steps_that_are_not_affine_are_refused_by_name(step, export):
    pipeline = Pipeline(
        [("scale", MinMaxScaler()), ("bend", step), ("model", KernelRidgeRegressor(RBF(gamma=1.0)))]
    )
    pipeline.fit(X, Y)
    with pytest.raises(
        ValueError, match=rf'the step "bend", {type(step).__name__}.* is not an affine .*pipeline\[k:\]'
    ):
        export(pipeline)


def test_a_part_of_columns_that_is_not_affine_is_refused_by_name():
    parts = make_column_transformer((Normalizer(), [0, 1]), remainder="passthrough")
    pipeline = make_pipeline(parts, StandardScaler(), KernelRidgeRegressor(RBF(gamma=1.0))).fit(X, Y)
    with pytest.raises(ValueError, match='the step "normalizer", Normalizer'):
        to_c(pipeline)


def test_a_step_that_is_not_fitted_is_refused():
    model = KernelRidgeRegressor(RBF(gamma=1.0)).fit(T, Y)
    with pytest.raises(NotFittedError, match="StandardScaler"):
        to_c(Pipeline([("scale", StandardScaler()), ("model", model)]))


def test_the_remedy_of_a_refused_step_works(run_python):
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), KernelRidgeRegressor(RBF(gamma=0.1))).fit(X, Y)
    with pytest.raises(ValueError, match="SimpleImputer"):
        to_python(pipeline)
    found = run_python(to_python(pipeline[1:]), pipeline[:1].transform(NEW))
    assert_allclose(found.outputs[:, 0], pipeline.predict(NEW), rtol=0, atol=1e-10)


def test_steps_that_change_nothing_are_left_out():
    parts = make_column_transformer(("passthrough", [0, 1]), remainder="passthrough")
    steps = [
        ("a", parts),
        ("b", StandardScaler(with_mean=False, with_std=False)),
        ("c", SelectKBest(f_regression, k=D)),
    ]
    assert affine_steps(Pipeline(steps).fit(X, Y).steps) == []
