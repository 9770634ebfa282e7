"""Raw tables out of memory: files, frames of Dask and streams give the model of the frame."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.kernels import RBF
from mercer.rows import ParquetRows

FIXED = {"kernel": RBF(gamma=0.05), "alpha": 1.0, "centers": 20, "random_state": 0}


def raw_table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40.0, 12.0, n)),
            "job": rng.choice(["cook", "smith", "nurse", None], n),
            "team": pd.Categorical(rng.choice(["red", "blue"], n)),
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "street": [f"{name} Street {j % 70}" for j, name in enumerate(rng.choice(["Oak", "Elm", "Ash"], n))],
            "smokes": rng.random(n) < 0.3,
            "children": rng.integers(0, 5, n),
        }
    )
    return frame, np.where((frame["age"] > 40.0) ^ (frame["job"] == "cook"), "ill", "well")


@pytest.fixture(scope="module")
def table():
    return raw_table()


@pytest.fixture(scope="module")
def model(table):
    return KernelFisherClassifier(**FIXED).fit(*table)


def in_file(frame, y, tmp_path):
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet", "y"


def in_list(frame, y, tmp_path):
    return ([(frame[start : start + 150], y[start : start + 150]) for start in range(0, len(frame), 150)],)


def on_dask(frame, y, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(frame.assign(y=y), npartitions=1), "y"


def in_parts_of_dask(frame, y, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(frame.assign(y=y), npartitions=3), "y"


@pytest.mark.parametrize("source", [in_file, in_list, on_dask])
def test_sources_give_the_model_of_the_frame_to_the_bit(source, table, model, tmp_path):
    found = KernelFisherClassifier(**FIXED).fit(*source(*table, tmp_path))
    assert found.columns_ == model.columns_
    assert list(found.feature_names_in_) == list(model.feature_names_in_)
    assert found.n_features_in_ == 7
    assert_array_equal(found.predict_proba(table[0]), model.predict_proba(table[0]))
    rows = source(*table, tmp_path)[0]
    assert_array_equal(np.asarray(found.predict_proba(rows)), model.predict_proba(table[0]))


def test_parts_of_a_frame_add(table, model, tmp_path):
    found = KernelFisherClassifier(**FIXED).fit(*in_parts_of_dask(*table, tmp_path))
    assert found.columns_ == model.columns_
    assert_allclose(found.predict_proba(table[0]), model.predict_proba(table[0]), rtol=1e-9)


def test_a_random_sample_tells_what_columns_of_many_rows_are(tmp_path):
    frame, y = raw_table(12_000)
    rare = frame["job"].where(frame.index != 7, "astronaut")
    frame = frame.assign(job=rare)
    model = KernelFisherClassifier(**FIXED, loo_rows=200).fit(frame, y)
    found = KernelFisherClassifier(**FIXED, loo_rows=200).fit(*in_file(frame, y, tmp_path))
    assert found.columns_ == model.columns_
    assert_array_equal(found.predict_proba(frame[:50]), model.predict_proba(frame[:50]))
    mixed = KernelFisherClassifier(**FIXED, loo_rows=200).fit(frame, np.roll(y, 1))
    assert mixed.columns_ == model.columns_


def test_what_is_said_of_columns_holds_for_files(table, tmp_path):
    kinds = {"children": "category", "street": "drop"}
    expected = KernelFisherClassifier(**FIXED, columns=kinds).fit(*table)
    found = KernelFisherClassifier(**FIXED, columns=kinds).fit(*in_file(*table, tmp_path))
    assert found.columns_ == expected.columns_
    assert_array_equal(found.predict_proba(tmp_path / "rows.parquet"), expected.predict_proba(table[0]))
    with pytest.raises(ValueError, match="columns names 'shoe', but the columns are"):
        KernelFisherClassifier(**FIXED, columns={"shoe": "number"}).fit(*in_file(*table, tmp_path))


def test_gaps_of_numbers_in_files_are_taken(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": np.where(rng.random(200) < 0.2, np.nan, 1.0)})
    y = rng.normal(size=200)
    found = KernelRidgeRegressor(**FIXED).fit(*in_file(frame, y, tmp_path))
    assert str(found.columns_) == "a: a number\nb: a number, or missing"
    assert_array_equal(found.predict(frame), KernelRidgeRegressor(**FIXED).fit(frame, y).predict(frame))


def test_complete_numbers_in_files_are_not_touched(tmp_path):
    rng = np.random.default_rng(0)
    frame, y = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"]), rng.normal(size=200)
    found = KernelRidgeRegressor(**FIXED).fit(*in_file(frame, y, tmp_path))
    assert not hasattr(found, "columns_")
    said = KernelRidgeRegressor(**FIXED, columns={}).fit(*in_file(frame, y, tmp_path))
    assert str(said.columns_) == "a: a number\nb: a number"


def test_gaps_that_types_do_not_tell_are_errors_with_a_remedy(tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": np.where(rng.random(200) < 0.2, np.nan, 1.0)})
    rows = dask.from_pandas(frame.assign(y=rng.normal(size=200)), npartitions=2)
    with pytest.raises(ValueError, match=r"columns=\{\} gives them a meaning"):
        KernelRidgeRegressor(**FIXED).fit(rows, "y")
    assert KernelRidgeRegressor(**FIXED, columns={}).fit(rows, "y").columns_.columns[1].missing


def test_a_function_that_makes_a_stream_is_asked_where_columns_are_given(table, model):
    frame, y = table
    calls = []

    def stream():
        calls.append(1)
        return iter([(frame[:150], y[:150]), (frame[150:], y[150:])])

    found = KernelFisherClassifier(**FIXED, columns={}).fit(stream)
    assert found.columns_ == model.columns_
    assert_array_equal(found.predict_proba(lambda: iter([(frame,)])), model.predict_proba(frame))
    assert len(calls) > 2


def test_rows_in_files_join_and_leave(table, tmp_path):
    frame, y = table
    model = KernelFisherClassifier(**FIXED).fit(*in_file(frame[:300], y[:300], tmp_path))
    before = model.predict_proba(frame)
    later = in_file(frame[300:].assign(job=["cook"] + ["astronaut"] * 99), y[300:], tmp_path)
    model.partial_fit(*later)
    assert np.abs(model.predict_proba(frame) - before).max() > 1e-4
    model.remove(*later)
    assert_allclose(model.predict_proba(frame), before, atol=1e-8)
    start = KernelFisherClassifier(**FIXED).partial_fit(*in_file(frame[:300], y[:300], tmp_path))
    assert_allclose(start.predict_proba(frame), before, atol=1e-8)


def test_files_may_be_given_as_rows(table, model, tmp_path):
    path, target = in_file(*table, tmp_path)
    found = KernelFisherClassifier(**FIXED).fit(ParquetRows(path, target=target, form="raw"))
    assert_array_equal(found.predict_proba(table[0]), model.predict_proba(table[0]))


def test_weights_in_files_have_a_say(table, tmp_path):
    frame, y = table
    w = np.where(frame["job"] == "nurse", 0.0, 1.5)
    expected = KernelFisherClassifier(**FIXED).fit(frame, y, sample_weight=w)
    frame.assign(y=y, w=w).to_parquet(tmp_path / "rows.parquet")
    found = KernelFisherClassifier(**FIXED).fit(tmp_path / "rows.parquet", "y", sample_weight="w")
    assert "nurse" not in found.columns_.columns[1].categories
    assert found.columns_ == expected.columns_
    assert_array_equal(found.predict_proba(frame), expected.predict_proba(frame))
