"""Raw tables on every engine: the model is that of the frame in memory, whatever happens to the workers."""

import engine_folds
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelFisherClassifier
from mercer.kernels import RBF
from mercer.rows import as_rows
from mercer.rows._encoding.rows import EncodedRows

N = 600
FIXED = {"kernel": RBF(gamma=0.05), "alpha": 1.0, "centers": 20, "random_state": 0}

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(240),
    # Engines warn of themselves, and leave sockets to the collector.
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def frame():
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    rng = np.random.default_rng(0)
    job = rng.choice(["cook", "smith", "nurse"], N).astype(object)
    # One part of the rows, and so one worker, has a category that no other has seen.
    job[-50:], job[:20] = "astronaut", None
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(N) < 0.1, np.nan, rng.normal(40.0, 12.0, N)),
            "job": job,
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "street": [f"{name} Street {j % 70}" for j, name in enumerate(rng.choice(["Oak", "Elm"], N))],
        }
    )
    return X.assign(y=np.where((X["age"] > 40.0) ^ (X["job"] == "cook"), "ill", "well"))


@pytest.fixture(scope="module")
def model(frame):
    return KernelFisherClassifier(**FIXED).fit(frame.drop(columns="y"), frame["y"].to_numpy())


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: no Parquet files here")
    folder = tmp_path_factory.mktemp("raw")
    for i, start in enumerate(range(0, N, 250)):
        frame[start : start + 250].to_parquet(folder / f"{i}.parquet")
    return folder


def frame_of_dask(request, frame):
    request.getfixturevalue("client")
    dask = pytest.importorskip("dask.dataframe", reason="dask is not installed: no frames of it here")
    return dask.from_pandas(frame, npartitions=4)


def files_on_dask(request, frame):
    request.getfixturevalue("client")
    return request.getfixturevalue("path")


def dataset_of_ray(request, frame):
    ray = request.getfixturevalue("ray_cluster")
    return ray.data.from_pandas([frame[start : start + 200] for start in range(0, N, 200)])


def files_on_ray(request, frame):
    request.getfixturevalue("ray_cluster")
    return request.getfixturevalue("path")


def frame_of_spark(request, frame):
    import pyarrow as pa

    spark = request.getfixturevalue("spark")
    rows = spark.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False))
    return rows.repartitionByRange(3, "street").sortWithinPartitions("street", "since", "age").persist()


SOURCES = [frame_of_dask, files_on_dask, dataset_of_ray, files_on_ray, frame_of_spark]


@pytest.mark.parametrize("source", SOURCES)
def test_the_model_is_that_of_the_frame(request, source, frame, model):
    found = KernelFisherClassifier(**FIXED).fit(source(request, frame), "y")
    X = frame.drop(columns="y")
    assert found.columns_ == model.columns_
    assert "astronaut" in found.columns_.columns[1].categories
    if source is frame_of_spark:
        # Its rows are in an order of their own, so that others become centers.
        assert found.score(X, frame["y"]) > 0.8
        return
    assert_allclose(found.predict_proba(X), model.predict_proba(X), rtol=1e-8)


@pytest.mark.parametrize("source", [frame_of_dask, dataset_of_ray])
def test_features_are_made_again_where_workers_die(request, source, frame, model, tmp_path):
    rows = EncodedRows(as_rows(source(request, frame), "y", raw=True), model.columns_)
    undisturbed = rows.reduce(engine_folds.products)
    found = rows.reduce(engine_folds.Killing(engine_folds.products, tmp_path, 300, 2))
    assert len(list(tmp_path.iterdir())) == 2
    assert_array_equal(found, undisturbed)
    assert found.shape == (len(model.columns_.feature_names),) * 2
