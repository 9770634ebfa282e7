"""Engines on this machine, on loopback only, started and stopped by the tests, with the same rows in each."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

# Workers import the folds by name.
ON_WORKERS = str(Path(__file__).parent / "on_workers")
sys.path.insert(0, ON_WORKERS)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ON_WORKERS, os.environ.get("PYTHONPATH")]))

N, D, BLOCK_ROWS, PART = 4003, 3, 32, 1000


@dataclass(frozen=True)
class Table:
    """X (n, d), y (n,) and weight (n,)."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    def columns(self, rows=slice(None)):
        return dict(zip("abc", self.X[rows].T)) | {"y": self.y[rows], "w": self.weight[rows]}

    def cuts(self):
        for start in range(0, N, PART):
            rows = slice(start, start + PART)
            yield self.X[rows], self.y[rows], self.weight[rows]


@pytest.fixture(scope="session")
def table(frozen):
    rng = np.random.default_rng(0)
    X, y, weight = rng.standard_normal((N, D)), rng.integers(3, size=N), rng.uniform(0.5, 2.0, size=N)
    return Table(frozen(X), frozen(y), frozen(weight))


@pytest.fixture(scope="session")
def folder(table, tmp_path_factory):
    """A folder of three Parquet files."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: no Parquet files here")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: no Parquet files here")
    path = tmp_path_factory.mktemp("parquet")
    for i, (start, stop) in enumerate([(0, 10), (10, 2500), (2500, N)]):
        pq.write_table(pa.table(table.columns(slice(start, stop))), path / f"{i}.parquet", row_group_size=700)
    return path


@pytest.fixture(scope="module")
def dask_cluster():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: no Dask cluster here")
    import dask

    # A worker that dies again so many seconds after its first death is given up by its cluster, for good.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(dask_cluster):
    import distributed

    with distributed.Client(dask_cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed: no Ray cluster here")
    pytest.importorskip("ray.data", reason="ray.data is not installed: no datasets of Ray here")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        object_store_memory=256 * 2**20,
        _node_ip_address="127.0.0.1",
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: no Spark here")
    if shutil.which("java") is None:
        pytest.skip("there is no Java here: no Spark")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # In local mode a task has one try unless the master says otherwise.
    session = (
        sql.SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def spark_table(spark, table):
    """The rows in ten partitions, more than are added at once."""
    import pyarrow as pa

    frame = spark.createDataFrame(pa.table(table.columns()))
    return frame.repartitionByRange(10, "a").sortWithinPartitions("a").persist()
