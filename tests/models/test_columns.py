"""Data frames with columns of numbers and names, straight into models."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mercer import (
    KernelFisherClassifier,
    KernelMachineClassifier,
    KernelNoveltyDetector,
    KernelPCA,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    PairwiseClassifier,
    SparseFisherClassifier,
)
from mercer.centers import Uniform
from mercer.errors import KernelError
from mercer.files import TRUSTED_TYPES
from mercer.kernels import RBF, FromCallable, Linear, MeanMap, Nominal, OnColumns, pairwise

KERNEL = OnColumns(RBF(), ["age", "pay"]) * OnColumns(Nominal(), ["job", "smokes"])
MEDIAN = OnColumns(RBF("median"), "numbers") * OnColumns(Nominal("median"), "names")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 120
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "pay": rng.exponential(3e4, n).round(-3),
            "job": rng.choice(["cook", "smith", "nurse", None], n),
            "smokes": rng.choice([True, False], n),
            "town": pd.Categorical(rng.choice(["here", "there"], n)),
        }
    )


@pytest.fixture(scope="module")
def y(frame):
    return np.where((frame["age"] > 40) ^ (frame["job"] == "cook"), "ill", "well")


@pytest.fixture(scope="module")
def model(frame, y):
    return KernelFisherClassifier(KERNEL, random_state=0).fit(frame, y)


@pytest.mark.slow
def test_frame_with_names_is_learned(model, frame, y):
    assert model.score(frame, y) > 0.9
    assert model.loo_score_ > 0.8
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.n_features_in_ == 5


@pytest.mark.slow
@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_every_library_of_frames_gives_the_same_model(model, frame, y, make):
    twin = clone(model).fit(make(frame), y)
    assert repr(twin.kernel_) == repr(model.kernel_)
    assert_array_equal(twin.predict_proba(frame), model.predict_proba(make(frame)))


def test_columns_are_found_by_name_in_any_order(model, frame):
    expected = model.predict_proba(frame)
    assert_array_equal(model.predict_proba(frame[frame.columns[::-1]]), expected)
    assert_array_equal(model.predict_proba(frame.assign(more=1.0)), expected)
    assert_array_equal(model.predict_proba(frame.drop(columns="town")), expected)


def test_missing_column_is_named(model, frame):
    with pytest.raises(ValueError, match="column 'job' is needed, but the rows have 'age', 'pay'"):
        model.predict(frame.drop(columns="job"))


def test_words_need_the_columns_of_the_fit(frame, y):
    model = KernelFisherClassifier(MEDIAN).fit(frame, y)
    assert_array_equal(model.predict(frame[frame.columns[::-1]]), model.predict(frame))
    with pytest.raises(ValueError, match="column 'town' is needed"):
        model.predict(frame.drop(columns="town"))


def test_array_cannot_stand_for_a_frame(model, frame):
    with pytest.raises(ValueError, match=r"columns 'age', .* are needed, but the rows have 0, 1"):
        model.predict(frame.to_numpy())


def test_array_of_objects_has_columns_by_position(frame, y):
    X = frame[["age", "pay", "job"]].to_numpy()
    named = OnColumns(RBF("median"), ["age", "pay"]) * OnColumns(Nominal("median"), ["job"])
    placed = OnColumns(RBF("median"), [0, 1]) * OnColumns(Nominal("median"), [2])
    outputs = [
        KernelFisherClassifier(k, alpha=0.1).fit(A, y).predict_proba(A) for k, A in ((placed, X), (named, frame))
    ]
    assert_allclose(*outputs, rtol=1e-9)


def test_product_is_the_gaussian_kernel_of_standardized_numbers_and_indicators(frame, y):
    numbers, names = ["age", "pay"], ["job", "town"]
    encoder = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(sparse_output=False), names))
    pipeline = make_pipeline(encoder, KernelFisherClassifier(RBF(gamma=0.25), alpha=0.1)).fit(frame, y)
    kernel = OnColumns(RBF(gamma=0.25), numbers) * OnColumns(Nominal(gamma=1.0), names)
    model = KernelFisherClassifier(kernel, alpha=0.1).fit(frame, y)
    assert_allclose(model.predict_proba(frame), pipeline.predict_proba(frame), rtol=1e-6)


@pytest.mark.slow
def test_equal_rows_are_merged_and_weights_are_repetitions(frame, y):
    model = KernelFisherClassifier(KERNEL, weights="counts", random_state=0)
    twice = np.where(np.arange(len(y)) < 30, 2, 1)
    weighted = clone(model).fit(frame, y, sample_weight=twice)
    repeated = clone(model).fit(frame.iloc[np.repeat(np.arange(len(y)), twice)], np.repeat(y, twice))
    assert_allclose(weighted.predict_proba(frame), repeated.predict_proba(frame), rtol=1e-6)
    assert weighted.X_fit_.shape == repeated.X_fit_.shape


def test_leave_one_out_is_refitting(frame, y):
    kernel = OnColumns(RBF(gamma=0.5), ["age", "pay"], lengths=[10.0, 3e4]) + OnColumns(
        Nominal(gamma=1.0), ["job"]
    )
    target = frame["pay"].to_numpy() / 1e4
    model = KernelRidgeRegressor(kernel, alpha=0.5)
    left_out = clone(model).fit(frame, target).loo_prediction_
    for i in (0, 17):
        others = np.arange(len(target)) != i
        refitted = clone(model).fit(frame[others], target[others]).predict(frame.iloc[[i]])
        assert_allclose(left_out[i], refitted[0], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("centers", [40, Uniform(30)], ids=["number", "uniform"])
def test_fit_with_centers_joins_and_leaves(frame, centers):
    target = frame["age"].to_numpy() / 10.0
    model = KernelRidgeRegressor(KERNEL, centers=centers, random_state=0).fit(frame, target)
    expected = model.predict(frame)
    model.partial_fit(frame.iloc[:50], target[:50] + 5.0)
    assert np.abs(model.predict(frame) - expected).max() > 0.5
    model.remove(frame.iloc[:50][frame.columns[::-1]], target[:50] + 5.0)
    assert_allclose(model.predict(frame), expected, rtol=1e-5)


@pytest.mark.slow
def test_rows_of_a_frame_may_be_the_centers(frame, y):
    model = KernelFisherClassifier(KERNEL, centers=frame.iloc[:25]).fit(frame, y)
    assert model.X_fit_.columns["job"].tolist() == [None if pd.isna(v) else v for v in frame["job"].iloc[:25]]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "model",
    [
        SparseFisherClassifier(MEDIAN, random_state=0),
        KernelMachineClassifier(MEDIAN, random_state=0),
        OnlineFisherClassifier(MEDIAN),
        PairwiseClassifier(KernelFisherClassifier(MEDIAN)),
        KernelPCA(2, MEDIAN),
        KernelNoveltyDetector(MEDIAN),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_takes_frames(model, frame, y):
    fitted = clone(model).fit(frame, y)
    answer = fitted.transform if isinstance(model, KernelPCA) else fitted.predict
    assert_array_equal(answer(frame[frame.columns[::-1]]), answer(frame))


def test_stream_of_frames_is_learned(frame, y):
    model = OnlineFisherClassifier(MEDIAN)
    for first in range(0, 120, 40):
        part = slice(first, first + 40)
        model.partial_fit(frame[part], y[part], classes=["ill", "well"])
    assert model.n_rows_seen_ == 120
    assert model.score(frame, y) > 0.8


def test_arrays_of_strings_are_learned_as_a_stream():
    words = np.array(["kernel", "fisher", "mercer", "abc", "bcd", "cde"] * 5, dtype=object)
    labels = np.array([0, 0, 0, 1, 1, 1] * 5)
    model = OnlineFisherClassifier(FromCallable(pairwise(shared_letters), psd=True))
    for part in (slice(0, 12), slice(12, 30)):
        model.partial_fit(words[part], labels[part], classes=[0, 1])
    assert_array_equal(model.predict(words), labels)


def shared_letters(a, b):
    return len(set(a) & set(b)) / (1 + len(set(a) | set(b)))


@pytest.mark.slow
def test_models_on_frames_come_back_from_files(model, frame):
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(frame), model.predict_proba(frame))
    loaded = skops.io.loads(skops.io.dumps(model), trusted=TRUSTED_TYPES)
    assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


def test_missing_numbers_have_a_meaning_if_given_one(frame, y):
    holes = frame.assign(age=frame["age"].where(frame["age"] < 55))
    with pytest.raises(ValueError, match=r"column 'age' has .* missing values"):
        KernelFisherClassifier(KERNEL).fit(holes, y)
    numbers = OnColumns(RBF("median"), ["age", "pay"], missing="mean")
    model = KernelFisherClassifier(numbers * OnColumns(Nominal("median"), ["job"])).fit(holes, y)
    assert model.score(holes, y) > 0.8


@pytest.mark.slow
def test_sum_of_several_parts_is_searched_along_its_parameters(frame, y):
    parts = [OnColumns(RBF(), ["age"]), OnColumns(RBF(), ["pay"]), OnColumns(Nominal(), ["job"])]
    kernel = parts[0] + parts[1] + parts[2] + OnColumns(Linear(), ["age", "pay"])
    model = KernelFisherClassifier(kernel, random_state=0).fit(frame, y)
    assert model.kernel_.resolved
    assert sum(int(word) for word in str(model.report_).split("compared:")[1].split()[:1]) <= 15 * 3 * 3


def test_frame_with_names_is_refused_by_kernels_on_numbers_with_advice(frame, y):
    with pytest.raises(ValueError, match=r"columns 'job', 'town' of X contain text.*OnColumns\(Nominal\(\)"):
        SparseFisherClassifier().fit(frame, y)
    with pytest.raises(ValueError, match="column 'job' contains"):
        KernelFisherClassifier(RBF() + OnColumns(Nominal(), ["job"])).fit(frame, y)


def of_kinds(n=40):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "color": pd.Categorical(rng.choice(list("xyz"), n)),
            "word": rng.choice(list("uv"), n),
        }
    ), rng.integers(2, size=n)


BY_WORDS = OnColumns(RBF(gamma=0.5), "numbers") + OnColumns(Nominal(), "names")


@pytest.mark.parametrize("dates", [pd.date_range("2020", periods=40), pd.to_timedelta(np.arange(40), "D")])
def test_dates_are_not_taken_for_names(dates):
    X, y = of_kinds()
    with pytest.raises(KernelError, match=r"column 'when' holds dates, and columns=\"names\" are text"):
        KernelFisherClassifier(BY_WORDS).fit(X.assign(when=dates), y)
    named = OnColumns(RBF(gamma=0.5), "numbers") + OnColumns(Nominal(), ["color"])
    KernelFisherClassifier(named, alpha=1.0).fit(X.assign(when=dates), y)


@pytest.mark.slow
def test_words_for_columns_mean_the_same_in_a_file(tmp_path):
    X, y = of_kinds()
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    centers = Uniform(10)
    inside = KernelFisherClassifier(BY_WORDS, alpha=1.0, centers=centers).fit(X, y)
    outside = KernelFisherClassifier(BY_WORDS, alpha=1.0, centers=centers).fit(tmp_path / "rows.parquet", "y")
    assert [part.columns for _, part in outside.kernel_.parts] == [["size"], ["color", "word"]]
    assert_allclose(outside.predict_proba(X), inside.predict_proba(X), atol=1e-9)
    assert_allclose(outside.predict_proba(tmp_path / "rows.parquet"), inside.predict_proba(X), atol=1e-9)


def test_missing_numbers_are_an_error_with_a_remedy_that_works():
    X, y = of_kinds()
    holes = X[["size"]].to_numpy().copy()
    holes[3] = np.nan
    with pytest.raises(
        ValueError, match=r'X contains NaN; .*kernel=OnColumns\(RBF\(\), "numbers", missing="mean"\)'
    ):
        SparseFisherClassifier().fit(holes, y)
    with pytest.raises(KernelError, match="column 0 has 1 missing value in 40 rows"):
        KernelFisherClassifier(OnColumns(RBF(gamma=1.0), "numbers")).fit(holes, y)
    KernelFisherClassifier(kernel=OnColumns(RBF(), "numbers", missing="mean")).fit(holes, y)


def test_bags_with_missing_numbers_are_refused():
    bags = [np.ones((2, 2)), np.array([[1.0, np.nan]])]
    kernel = MeanMap(RBF(gamma=1.0))
    for compute in (
        lambda: kernel.block(bags, bags[:1]),
        lambda: kernel.diag(bags),
        lambda: kernel.check_rows(bags),
    ):
        with pytest.raises(KernelError, match="row 1 has a vector with NaN or infinity; fill or drop"):
            compute()
