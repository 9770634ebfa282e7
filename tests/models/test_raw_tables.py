"""Raw tables: text, categories, dates and missing values, straight into models."""

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelFisherClassifier, KernelRidgeRegressor, PairwiseClassifier
from mercer.export import to_c
from mercer.files import TRUSTED_TYPES
from mercer.kernels import RBF, RankNormal
from mercer.plots import RelevanceDisplay

FIXED = {"kernel": RBF(gamma=0.05), "alpha": 1.0}
N = 80


def table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40.0, 12.0, n).round(),
            "pay": np.where(rng.random(n) < 0.2, np.nan, rng.exponential(3e4, n)),
            "job": rng.choice(["cook", "smith", "nurse", None], n),
            "team": pd.Categorical(rng.choice(["red", "blue"], n)),
            "smokes": rng.choice([True, False], n),
            "street": [f"{rng.choice(['Oak', 'Elm', 'Pine'])} Street {j}" for j in range(n)],
            "since": pd.date_range("2019-01-01", periods=n, freq="9D"),
        }
    )
    y = np.where((frame["age"] > 40.0) ^ (frame["job"] == "cook"), "ill", "well")
    return frame, y


@pytest.fixture(scope="module")
def frame():
    return table()[0]


@pytest.fixture(scope="module")
def y():
    return table()[1]


@pytest.fixture(scope="module")
def model(frame, y):
    return KernelFisherClassifier().fit(frame, y)


def test_each_column_becomes_what_it_is(model):
    assert str(model.columns_).splitlines() == [
        "age: a number",
        "pay: a number, or missing",
        "job: 4 categories, one of them missing",
        "team: 2 categories",
        "smokes: 2 categories",
        f"street: {N} texts, compared by their letters",
        "since: days, time of year and day of week",
    ]
    assert model.n_features_in_ == 7
    assert "columns:" in str(model.report_)
    assert "2 of numbers, 3 of categories, 1 of texts, 1 of dates" in str(model.report_)


def test_each_part_of_a_column_has_a_variance_of_at_most_one(model, frame):
    Z = model.columns_.encode(frame)
    total = np.bincount(model.columns_.groups, Z.var(axis=0))
    names = dict(zip(model.columns_.part_names, total))
    for name in ("age", "job", "team", "smokes", "street", "since"):
        assert names[name] == pytest.approx(1.0)
    assert max(total) < 1.0 + 1e-9


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_every_library_of_frames_gives_the_same_model_to_the_bit(model, frame, y, make):
    other = KernelFisherClassifier().fit(make(frame), y)
    assert_array_equal(other.predict_proba(make(frame)), model.predict_proba(frame))
    assert_array_equal(model.predict_proba(make(frame)), model.predict_proba(frame))


def test_an_array_of_objects_has_columns_by_position(model, frame, y):
    X = frame.astype(object).to_numpy()
    other = KernelFisherClassifier().fit(X, y)
    assert_array_equal(other.predict_proba(X), model.predict_proba(frame))
    rows = KernelFisherClassifier(**FIXED).fit(X.tolist(), y)
    assert_array_equal(rows.predict(X.tolist()), rows.predict(X))


def test_columns_come_in_any_order_and_others_are_ignored(model, frame):
    turned = frame[frame.columns[::-1]].assign(other=1.0)
    assert_array_equal(model.predict_proba(turned), model.predict_proba(frame))


def test_the_order_of_the_rows_does_not_matter(frame):
    turned = frame.iloc[np.random.default_rng(0).permutation(N)]
    one, other = (KernelRidgeRegressor(**FIXED).fit(X, np.arange(N)).columns_ for X in (frame, turned))
    assert_allclose(one.encode(frame), other.encode(frame), atol=1e-12)


def test_a_frame_of_numbers_is_its_array(y):
    X = np.random.default_rng(0).normal(size=(N, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=np.arange(N) % 2 == 0)
    of_frame, of_array = (KernelFisherClassifier().fit(Z, y) for Z in (frame, frame.to_numpy(dtype=float)))
    assert not hasattr(of_frame, "columns_")
    assert_array_equal(of_frame.predict_proba(frame), of_array.predict_proba(frame.to_numpy(dtype=float)))


def test_a_new_category_is_as_the_mean_of_all_rows(model, frame):
    job = model.columns_.columns[2]
    assert job.categories == ("cook", "nurse", "smith", None)
    known, new = job.encode(np.array(["cook"], dtype=object)), job.encode(np.array(["clown"], dtype=object))
    assert_allclose(new, np.mean(job.encode(frame["job"].to_numpy(dtype=object)), axis=0)[None], atol=1e-12)
    assert not np.allclose(known, new)
    assert set(model.predict(frame.assign(job="clown"))) <= {"ill", "well"}


def test_texts_with_letters_in_common_are_near_each_other(model):
    street = model.columns_.columns[5]
    a, b, c = street.encode(np.array(["Oak Street 1", "Oak Street 7", "Main Road"], dtype=object))
    assert np.linalg.norm(a - b) < 0.6 * np.linalg.norm(a - c)


def test_weight_two_is_the_row_twice(frame, y):
    weight = np.arange(N) % 3
    twice = np.repeat(np.arange(N), weight)
    weighted = KernelFisherClassifier(**FIXED, weights="counts").fit(frame, y, sample_weight=weight)
    repeated = KernelFisherClassifier(**FIXED).fit(frame.iloc[twice], y[twice])
    assert_allclose(weighted.columns_.encode(frame), repeated.columns_.encode(frame), atol=1e-12)
    assert_allclose(weighted.predict_proba(frame), repeated.predict_proba(frame), atol=1e-9)


def test_leave_one_out_is_refitting_with_the_preparation_given():
    for seed in range(100):
        X, y = table(seed, 24)
        y, out = (y == "ill") + 0.01 * np.arange(24), seed % 24
        model = KernelRidgeRegressor(**FIXED).fit(X, y)
        Z, others = model.columns_.encode(X), np.arange(24) != out
        refitted = KernelRidgeRegressor(**FIXED).fit(Z[others], y[others])
        assert_allclose(model.loo_prediction_[out], refitted.predict(Z[[out]])[0], atol=1e-8)


@pytest.mark.slow
def test_noise_is_not_predicted():
    scores = []
    for seed in range(12):
        X, _ = table(seed, 60)
        labels = np.random.default_rng(1000 + seed).permutation(np.arange(60) % 2)
        scores.append(KernelFisherClassifier().fit(X, labels).nested_score())
    assert abs(np.mean(scores) - 0.5) < 2.0 * np.std(scores) / 12**0.5


def test_models_on_tables_come_back_from_files(model, frame):
    for again in (
        pickle.loads(pickle.dumps(model)),
        skops.io.loads(skops.io.dumps(model), trusted=TRUSTED_TYPES),
    ):
        assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


def test_new_rows_may_be_in_files(model, frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = model.predict_proba(frame)
    assert_array_equal(model.predict_proba(tmp_path / "rows.parquet"), expected)


def test_rows_join_and_leave(frame, y):
    whole = KernelFisherClassifier(**FIXED, centers=20, random_state=0).fit(frame, y)
    probabilities = whole.predict_proba(frame)
    whole.partial_fit(frame[:10].assign(job="clown"), y[:10]).remove(frame[:10].assign(job="clown"), y[:10])
    assert_allclose(whole.predict_proba(frame), probabilities, atol=1e-7)
    started = KernelFisherClassifier().partial_fit(frame[:40], y[:40]).partial_fit(frame[40:], y[40:])
    assert started.score(frame, y) > 0.7


def test_the_default_kernel_takes_ranks_of_quantities_only(frame):
    rng = np.random.default_rng(7)
    X = frame.assign(pay=np.exp(3.0 * rng.normal(size=N)))
    model = KernelRidgeRegressor().fit(X, np.log(X["pay"]))
    assert isinstance(model.kernel_, RankNormal)
    Z = model.columns_.encode(X)
    same = np.setdiff1d(np.arange(Z.shape[1]), model.columns_.numbers)
    assert_array_equal(model.kernel_.as_scores(Z)[:, same], Z[:, same])
    assert model.loo_score_ > 0.9


@pytest.mark.slow
def test_a_column_has_one_relevance():
    X, y = table(0, 1100)
    model = KernelFisherClassifier().fit(X, y)
    shares = dict(zip(model.columns_.part_names, model.columns_.by_part(model.relevance_)))
    assert shares["age"] + shares["job"] > 0.9
    by_group = [np.ptp(model.relevance_[model.columns_.groups == g]) for g in range(len(shares))]
    assert max(by_group) == 0.0
    names = [label.get_text() for label in RelevanceDisplay.from_estimator(model).ax_.get_yticklabels()]
    assert set(names[:2]) == {"age", "job"}


def test_groups_of_columns_may_have_one_relevance(frame, y):
    labels = ["a", "a", "b", "b", "b", "c", "c"]
    model = KernelFisherClassifier("rbf", relevance=labels).fit(frame, y)
    group = np.array(labels)[model.columns_.of_column]
    assert all(np.ptp(model.relevance_[group == label]) == 0.0 for label in "abc")
    with pytest.raises(ValueError, match="the groups of 2 columns, but X has 7"):
        KernelFisherClassifier("rbf", relevance=["a", "b"]).fit(frame, y)


def test_columns_may_be_named(frame, y):
    X = frame.assign(month=np.arange(N) % 12)
    kinds = {"month": "category", "street": "category", "age": "text", "since": "drop", "team": "text"}
    found = KernelFisherClassifier(columns=kinds, **FIXED).fit(X, y).columns_
    expected = ["text", "number", "category", "text", "category", "category", "drop", "category"]
    assert [column.kind for column in found.columns] == expected
    assert len(found.columns[5].categories) == N
    for wrong, words in (
        ({"months": "category"}, "columns names 'months', but the columns are"),
        ({"month": "categorical"}, "must be one of 'number', 'category', 'text', 'date', 'drop'"),
        (["month"], "pass a dict from names to kinds"),
    ):
        with pytest.raises(ValueError, match=words):
            KernelFisherClassifier(columns=wrong).fit(X, y)


def test_source_code_takes_features(model):
    with pytest.raises(TypeError, match="fitted on a raw table, and the source takes numbers"):
        to_c(model)


def test_pairs_of_classes_take_tables(frame):
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    pairs = PairwiseClassifier(KernelFisherClassifier(**FIXED)).fit(frame, labels)
    assert pairs.predict(frame).shape == (N,)


BERLIN = timezone(timedelta(hours=2))
# A column that stands alone with a complete number, and what it becomes.
COLUMNS = {
    "whole numbers": (np.arange(N), "a number"),
    "numbers with a gap": ([np.nan, *range(1, N)], "a number, or missing"),
    "numbers and None": ([None, *range(1, N)], "a number, or missing"),
    "nullable numbers": (pd.array([None, *range(1, N)], dtype="Int64"), "a number, or missing"),
    "nearly all missing": ([1.0, 2.0, *[np.nan] * (N - 2)], "a number, or missing"),
    "one number, or missing": ([1.0, *[np.nan] * (N - 1)], "a number, or missing"),
    "written numbers": ([f" {j}.5" for j in range(N)], "a number"),
    "written numbers and marks": (["?", "NA", *map(str, range(2, N))], "a number, or missing"),
    "decimals": ([Decimal(j) for j in range(N)], "a number"),
    "durations": (pd.to_timedelta(np.arange(N), "h"), "a number"),
    "huge numbers": (1e300 * np.arange(N), "a number"),
    "tiny numbers": (1e-300 * np.arange(N), "a number"),
    "dates far from their mean": (pd.date_range("1700-01-01", periods=N), "days and day of week"),
    "all missing": ([None] * N, "not used: all values are missing"),
    "only marks": (["?"] * N, "not used: all values are equal"),
    "one value": (["a"] * N, "not used: all values are equal"),
    "one number": ([3.0] * N, "not used: all values are equal"),
    "one value, or missing": (["a", None] * (N // 2), "2 categories, one of them missing"),
    "Booleans": ([True, False] * (N // 2), "2 categories"),
    "Booleans with gaps": ([True, False, None, True] * (N // 4), "3 categories, one of them missing"),
    "nullable Booleans": (pd.array([True, False, None, True] * (N // 4)), "3 categories, one of them missing"),
    "text": (["a", "b"] * (N // 2), "2 categories"),
    "nullable text": (pd.array(["a", None] * (N // 2), dtype="string"), "2 categories, one of them missing"),
    "the empty text": (["", "b"] * (N // 2), "2 categories"),
    "categories": (pd.Categorical(["a", "b"] * (N // 2)), "2 categories"),
    "categories of numbers": (pd.Categorical([1, 2, 3, 4] * (N // 4)), "4 categories"),
    "categories that do not occur": (pd.Categorical(["a", "b"] * (N // 2), list("abcd")), "2 categories"),
    "text and numbers": (["a", 1] * (N // 2), "2 categories"),
    "text and Booleans": (["a", True] * (N // 2), "2 categories"),
    "many values": ([f"id {j}" for j in range(N)], f"{N} texts, compared by their letters"),
    "letters of all kinds": ([chr(200 + 37 * j) for j in range(N)], f"{N} texts, compared by their letters"),
    "periods": (pd.period_range("2020-01", periods=N, freq="M"), f"{N} texts, compared by their letters"),
    "dates": (pd.date_range("2020-01-01", periods=N, freq="D"), "days and day of week"),
    "dates with gaps": ([pd.NaT, *pd.date_range("2020", periods=N - 1)], "days, day of week and missing"),
    "dates of Python": ([date(2020, 1, 1) + timedelta(j) for j in range(N)], "days and day of week"),
    "hours": (pd.date_range("2020-01-01", periods=N, freq="h"), "days and time of day"),
    "time zones": (
        pd.date_range("2020-01-01", periods=N, freq="9h", tz="Europe/Berlin"),
        "days, day of week and time of day",
    ),
    "mixed time zones": (
        [datetime(2020, 1, 1, tzinfo=[BERLIN, UTC][j % 2]) + timedelta(j) for j in range(N)],
        "days, day of week and time of day",
    ),
    "written dates": ([f"20{j:02}-03-01" for j in range(N)], "days, time of year and day of week"),
    "written days that do not exist": (["2021-02-29", "2021-02-28"] * (N // 2), "2 categories"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_every_kind_are_taken(name, y):
    values, words = COLUMNS[name]
    frame = pd.DataFrame({"x": np.sin(np.arange(N)), "odd": values})
    frame.loc[0, "x"] = np.nan
    model = KernelFisherClassifier(**FIXED).fit(frame, y)
    assert model.columns_.columns[1].words == words
    assert np.isfinite(model.columns_.encode(frame)).all()
    assert np.isfinite(model.predict_proba(frame[::-1])).all()


WRONG = {
    "infinite numbers": ({"a": [np.inf, *range(1, N)]}, ValueError, "column 'a' contains infinity"),
    "infinite numbers that are written": ({"a": ["inf", *map(str, range(1, N))]}, ValueError, "contains infinity"),
    "lists": ({"a": [[1, 2]] * N}, TypeError, r"column 'a' contains \[1, 2\]; an argument must be a string"),
    "dicts": ({"a": [{"b": 1}] * N}, TypeError, "an argument must be a string, a number"),
    "nothing to use": ({"a": ["x"] * N, "b": [None] * N}, ValueError, "no column of X can be used: a: not used"),
    "huge names that are numbers": (
        {"a": [2**60 + j for j in range(N)], "b": ["x", "y"] * (N // 2)},
        ValueError,
        "2^53",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_taken_is_named_with_a_remedy(name, y):
    columns, error, words = WRONG[name]
    with pytest.raises(error, match=words.replace("^", r"\^")):
        KernelFisherClassifier(**FIXED).fit(pd.DataFrame(columns), y)


def test_doubled_names_are_refused(frame, y):
    doubled = pd.concat([frame, frame[["age"]]], axis=1)
    with pytest.raises(ValueError, match="several columns named 'age'"):
        KernelFisherClassifier(**FIXED).fit(doubled, y)


def test_what_new_rows_lack_or_mix_up_is_named(model, frame):
    with pytest.raises(ValueError, match="column 'age' is needed, but the rows have 'pay'"):
        model.predict(frame.drop(columns="age"))
    with pytest.raises(ValueError, match="column 'age' holds numbers, but contains 'old'"):
        model.predict(frame.assign(age="old"))
    with pytest.raises(ValueError, match="column 'since' holds dates, but contains 'soon'"):
        model.predict(frame.assign(since="soon"))


def test_new_text_among_written_numbers_is_missing(y):
    X = pd.DataFrame({"cylinders": np.array(["4", "6", "8", "8"])[np.arange(N) % 4], "x": np.arange(N)})
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    assert_array_equal(
        model.predict_proba(X.assign(cylinders="rotary")), model.predict_proba(X.assign(cylinders=None))
    )


def test_gaps_in_columns_that_had_none_are_as_the_mean(model, frame):
    mean = frame["age"].mean()
    assert_allclose(
        model.predict_proba(frame.assign(age=np.nan)), model.predict_proba(frame.assign(age=mean)), atol=1e-9
    )


def test_ten_thousand_categories_take_little_memory():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": rng.permutation(10_000), "x": rng.normal(size=10_000)}).astype({"id": str})
    X["id"] = "customer " + X["id"]
    model = KernelRidgeRegressor(RBF(gamma=0.1), alpha=1.0, centers=50).fit(X, X["x"])
    assert len(model.columns_.feature_names) == 33
