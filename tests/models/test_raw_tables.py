"""Raw tables: text, categories, dates and missing values, straight into models."""

import pickle
import tracemalloc
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from mercer import KernelFisherClassifier, KernelRidgeRegressor, PairwiseClassifier
from mercer.errors import ColumnWarning
from mercer.export import to_c
from mercer.files import TRUSTED_TYPES
from mercer.kernels import RBF, OnColumns, RankNormal
from mercer.plots import RelevanceDisplay
from mercer.rows._encoding.values import distinct_values

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
    assert set(model.predict(frame[:5].assign(job="clown"))) <= {"ill", "well"}


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
        scores.append(cross_val_score(KernelFisherClassifier(), X, labels).mean())
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


def test_files_may_have_columns_that_are_not_used(frame, y, tmp_path):
    model = KernelFisherClassifier(**FIXED).fit(frame.assign(one=1.0), y)
    frame.assign(one=1.0).to_parquet(tmp_path / "all.parquet")
    frame.to_parquet(tmp_path / "used.parquet")
    expected = model.predict_proba(frame)
    for name in ("all", "used"):
        assert_array_equal(model.predict_proba(tmp_path / f"{name}.parquet"), expected)


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
    labels = ["a", "b", "a", "b", "b", "c", "c"]
    X, classes = table(0, 300)
    model = KernelFisherClassifier("rbf", relevance=labels).fit(X, classes)
    group = np.array(labels)[model.columns_.of_column]
    assert all(np.ptp(model.relevance_[group == label]) == 0.0 for label in "abc")
    assert model.relevance_[group == "a"].max() > 2.0 * model.relevance_[group != "a"].max()
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
    "written numbers": ([f" {j}.5" for j in range(N)], "a written number"),
    "written numbers and marks": (["?", "NA", *map(str, range(2, N))], "a written number, or missing"),
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
    "dates with slashes": ([f"2020/{1 + j % 12:02}/01" for j in range(N)], "days and day of week"),
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


def test_ten_thousand_categories_are_few_features():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": rng.permutation(10_000), "x": rng.normal(size=10_000)}).astype({"id": str})
    X["id"] = "customer " + X["id"]
    model = KernelRidgeRegressor(RBF(gamma=0.1), alpha=1.0, centers=50).fit(X, X["x"])
    assert len(model.columns_.feature_names) == 33


# What was wrong once.


def test_nested_score_is_that_of_tables(frame, y):
    plain = KernelFisherClassifier("rbf", centers=20, random_state=0)
    for choices in ({"columns": {"street": "drop"}}, {"relevance": list("aabbbcc")}, {"centers": frame[:9]}):
        assert 0.4 < clone(plain).set_params(**choices).fit(frame, y).nested_score() <= 1.0
    nested = KernelFisherClassifier().fit(frame, y)._fitted.nested
    model = nested._chosen_without(0)
    # Features standardized once more would have one gamma each.
    assert np.ndim(model.kernel_.gamma) == 0


def test_gaps_that_only_new_rows_have_are_as_the_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0.0).astype(int)
    X[7, 1] = np.nan
    assert np.isfinite(cross_val_score(KernelFisherClassifier(**FIXED), X, y)).all()
    others = np.delete(np.arange(60), 7)
    model = KernelFisherClassifier(**FIXED).fit(X[others], y[others])
    filled = np.where(np.isnan(X), X[others].mean(axis=0), X)
    assert_allclose(model.predict_proba(X), model.predict_proba(filled), atol=1e-12)
    pairs = PairwiseClassifier(KernelFisherClassifier(**FIXED)).fit(X, np.arange(60) % 3)
    assert pairs.predict(X).shape == (60,)


@pytest.mark.parametrize("gap", [None, pd.NA, np.nan])
def test_objects_that_are_numbers_may_have_gaps(gap):
    X = np.random.default_rng(0).normal(size=(40, 2)).astype(object)
    X[3, 1] = gap
    for rows in (X, X.tolist()):
        model = KernelFisherClassifier(**FIXED).fit(rows, np.arange(40) % 2)
        assert model.columns_.columns[1].words == "a number, or missing"


def test_infinity_is_refused_in_arrays_with_gaps():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[3, 1] = np.nan
    model = KernelFisherClassifier(**FIXED).fit(X, np.arange(40) % 2)
    X[5, 0] = np.inf
    with pytest.raises(ValueError, match="column 0 contains infinity"):
        KernelFisherClassifier(**FIXED).fit(X, np.arange(40) % 2)
    with pytest.raises(ValueError, match="column 0 contains infinity"):
        model.predict(X)


def test_whole_numbers_too_large_for_floating_point_are_named(y):
    huge = [2**60 + j for j in range(N)]
    for values in (huge, pd.array([None, *huge[1:]], dtype="Int64"), np.array(huge, dtype=object)):
        with pytest.raises(ValueError, match=r"column 'a' contains integers beyond 2\^53"):
            KernelFisherClassifier(**FIXED).fit(pd.DataFrame({"a": values, "b": ["x", "y"] * (N // 2)}), y)
    written = pd.DataFrame({"a": list(map(str, huge))})
    assert KernelFisherClassifier(**FIXED).fit(written, y).columns_.columns[0].kind == "text"


def test_columns_that_cannot_be_followed_are_refused(frame, y):
    kernel = OnColumns(RBF(gamma=1.0), ["age"])
    with pytest.raises(ValueError, match="says what raw columns become, for kernels on vectors"):
        KernelFisherClassifier(kernel, columns={"age": "drop"}).fit(frame, y)
    with pytest.raises(ValueError, match="says what named columns become, but X has none"):
        KernelFisherClassifier(columns={"age": "drop"}).fit([(np.zeros((N, 2)), y)])


def test_centers_may_be_rows_of_the_table(frame, y):
    model = KernelFisherClassifier(**FIXED, centers=frame[:20]).fit(frame, y)
    assert_array_equal(model.X_fit_, model.columns_.encode(frame[:20]))


def test_invariances_are_refused(frame, y):
    with pytest.raises(ValueError, match="invariances transform rows of numbers"):
        KernelFisherClassifier(**FIXED, invariances=[lambda X: X]).fit(frame, y)


def test_variances_of_texts_with_gaps_and_of_many_categories_are_one():
    rng = np.random.default_rng(0)
    texts = [f"{j} and more" if j % 2 else None for j in range(900)]
    X = pd.DataFrame({"text": texts, "code": rng.permutation(900)})
    model = KernelRidgeRegressor(**FIXED, columns={"code": "category"}, centers=10).fit(X, rng.normal(size=900))
    Z, groups = model.columns_.encode(X), model.columns_.groups
    assert_allclose(np.bincount(groups, Z.var(axis=0)), 1.0, atol=1e-9)
    turned = X.iloc[rng.permutation(900)]
    again = KernelRidgeRegressor(**FIXED, columns={"code": "category"}, centers=10).fit(turned, np.arange(900))
    assert again.columns_.columns[1].categories == model.columns_.columns[1].categories


def test_truth_is_not_one(y):
    X = pd.DataFrame({"a": np.array([True, 1] * (N // 2), dtype=object), "b": ["x", "y"] * (N // 2)})
    assert KernelFisherClassifier(**FIXED).fit(X, y).columns_.columns[0].words == "2 categories"
    truth = pd.DataFrame({"a": np.array([np.bool_(j % 2) for j in range(N)], dtype=object), "b": X["b"]})
    column = KernelFisherClassifier(**FIXED).fit(truth, y).columns_.columns[0]
    assert column.categories == ("False", "True")
    bits = np.arange(3 * N).reshape(N, 3) % 2 == 0
    assert KernelFisherClassifier(**FIXED, columns={1: "drop"}).fit(bits, y).columns_.columns[0].kind == "category"


def test_arrays_have_as_many_columns_as_those_of_the_fit(frame, y):
    X = frame.astype(object).to_numpy()
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    with pytest.raises(ValueError, match="X has 8 columns, but the table of the fit had 7"):
        model.predict(np.column_stack([X, X[:, :1]]))


def test_columns_constant_but_for_rounding_are_not_used(y):
    X = pd.DataFrame({"a": [0.3, 0.1 + 0.2] * (N // 2), "b": ["x", "y"] * (N // 2)})
    found = KernelFisherClassifier(**FIXED).fit(X, y).columns_
    assert found.columns[0].words == "not used: all values are equal but for rounding"


def test_dask_frames_are_predicted(model, frame):
    dask = pytest.importorskip("dask.dataframe")
    lazy = model.predict_proba(dask.from_pandas(frame, npartitions=2))
    assert_array_equal(np.asarray(lazy), model.predict_proba(frame))


MANY_TYPES = {
    "1": [1, 1.0, "1", Decimal(1), np.int8(1), np.float32(1.0), b"1"],
    "2020-01-01": [
        date(2020, 1, 1),
        datetime(2020, 1, 1),
        np.datetime64("2020-01-01"),
        pd.Timestamp("2020-01-01"),
    ],
    "True": [True, np.bool_(True), "True"],
    None: [None, np.nan, pd.NA, pd.NaT, Decimal("nan"), np.datetime64("NaT")],
}


@pytest.mark.parametrize("text", MANY_TYPES)
def test_a_value_is_the_same_in_every_type(text):
    for value in MANY_TYPES[text]:
        column = np.empty(1, dtype=object)
        column[0] = value
        found = distinct_values("a", column)[0]
        assert found == [text]


def test_a_row_does_not_depend_on_others(y):
    mixed = pd.Series([f"id {j}" if j % 2 else j for j in range(N)], dtype=object)
    X = pd.DataFrame({"x": np.arange(N), "id": mixed})
    columns = KernelFisherClassifier(**FIXED).fit(X, y).columns_
    alone, together = columns.encode(X[16:17]), columns.encode(X)[16:17]
    assert_array_equal(alone, together)


def test_rows_that_join_must_be_complete_if_the_first_were(y):
    X = np.random.default_rng(0).normal(size=(N, 2))
    gaps = X.copy()
    gaps[0, 1] = np.nan
    model = KernelFisherClassifier(**FIXED).partial_fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(gaps, y)


def test_columns_must_not_change_between_batches(frame, y):
    model = KernelFisherClassifier(**FIXED).partial_fit(frame, y).set_params(columns={"street": "drop"})
    with pytest.raises(ValueError, match="columns was None for the first rows"):
        model.partial_fit(frame, y)


def test_dropped_columns_are_not_read(frame, y):
    X = frame.assign(id=[2**60 + j for j in range(N)], lists=[[j] for j in range(N)])
    model = KernelFisherClassifier(**FIXED, columns={"id": "drop", "lists": "drop"}).fit(X, y)
    assert_array_equal(model.predict(X), model.predict(frame))


def test_rare_categories_of_little_weight_are_near_enough(y):
    X = pd.DataFrame({"x": np.sin(np.arange(N)), "v": ["q"] * (N - 1) + ["r"]})
    weight = np.ones(N)
    weight[-1] = 1e-20
    model = KernelFisherClassifier(**FIXED, weights="importance").fit(X, y, sample_weight=weight)
    assert np.abs(model.columns_.encode(X)).max() < 200.0


WRITTEN = {
    "0_1": ["0_0", "1_1", "2_2"],
    "infinity": ["12", "7", "infinity"],
    "ids": ["90071992547409930", "90071992547409931", "1"],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_codes_are_not_numbers(name, y):
    X = pd.DataFrame({"v": np.array(WRITTEN[name])[np.arange(N) % 3]})
    assert KernelFisherClassifier(**FIXED).fit(X, y).columns_.columns[0].words == "3 categories"


def test_written_dates_may_have_gaps_and_marks(y):
    X = pd.DataFrame({"d": ["NA", ""] + [f" 20{j:02}-01-05" for j in range(2, N)]})
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    assert model.columns_.columns[0].kind == "date"
    assert np.isfinite(model.predict_proba(X.assign(d="?"))).all()


def test_numbers_far_beyond_those_of_the_fit_are_finite(y):
    X = pd.DataFrame({"z": 1e-300 * np.arange(N), "v": ["q", "r"] * (N // 2)})
    model = KernelFisherClassifier(**FIXED).fit(X, y)
    assert np.isfinite(model.predict_proba(X.assign(z=1e300))).all()


def test_shapes_that_are_no_table_are_refused():
    X = np.where(np.eye(N)[:, :2] > 0.0, np.nan, np.random.default_rng(0).normal(size=(N, 2)))
    model = KernelFisherClassifier(**FIXED).fit(X, np.arange(N) % 2)
    for wrong in (X[0], X[None], sparse.csr_matrix(np.eye(2)), None):
        with pytest.raises(ValueError, match="Expected 2D array"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


def test_letters_of_all_encodings_are_taken(y):
    X = pd.DataFrame({"v": pd.Series([f"\ud800 {j}" for j in range(N)], dtype=object)})
    assert np.isfinite(KernelFisherClassifier(**FIXED).fit(X, y).predict_proba(X)).all()


def test_complex_numbers_are_refused(y):
    with pytest.raises(TypeError, match="an argument must be a string, a number"):
        KernelFisherClassifier(**FIXED).fit(pd.DataFrame({"v": np.arange(N) + 1j}), y)


def test_truth_is_the_same_in_every_form(y):
    truth = np.arange(N) % 4 == 0
    model = KernelFisherClassifier(**FIXED).fit(pd.DataFrame({"a": truth, "b": ["x", "y"] * (N // 2)}), y)
    b = pd.Series(["x", "y"] * (N // 2))
    for form in (
        truth.astype(int),
        truth.astype(float),
        np.where(truth, "true", "false"),
        np.where(truth, "1 ", "0"),
    ):
        new = pd.DataFrame({"a": form, "b": b})
        assert_array_equal(model.columns_.encode(new), model.columns_.encode(pd.DataFrame({"a": truth, "b": b})))


def test_categorical_types_stay_categories(y):
    X = pd.DataFrame({"state": pd.Categorical([f"s{j % 40}" for j in range(N)]), "x": np.arange(N)})
    columns = KernelFisherClassifier(**FIXED).fit(X, y).columns_
    assert columns.columns[0].words == "40 categories"
    assert columns.feature_names[:2] == ["state=s0", "state=s1"]
    assert repr(columns) == str(columns)


def test_all_columns_dropped_is_an_error(y):
    with pytest.raises(ValueError, match="all columns are dropped"):
        KernelFisherClassifier(columns={"a": "drop"}).fit(pd.DataFrame({"a": np.arange(N)}), y)


def test_a_column_without_any_known_category_is_warned_of(model, frame):
    with pytest.warns(ColumnWarning, match="none of the 1 values of column 'job', such as 'Cook'"):
        model.predict(frame.assign(job="Cook"))
    model.predict(frame[:3].assign(job="Cook"))
    model.predict(frame.assign(job=["Cook"] * (N - 1) + ["cook"]))


def test_predictions_encode_some_rows_at_a_time(model, frame):
    many = pd.concat([frame] * 210, ignore_index=True)
    assert_allclose(model.predict_proba(many)[-N:], model.predict_proba(frame), rtol=1e-12)
    features = len(many) * len(model.columns_.feature_names) * 8
    tracemalloc.start()
    model.predict(many[["age"]].assign(**{name: frame[name].iloc[0] for name in frame.columns[1:]}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < features + 2e7
