"""One pass over rows on engines of this machine against the same pass in memory: processor time, wire, memory.

By default: CPU seconds of the moments of n rows with m centers, in memory and on two workers of each engine, in
turn in the same run. Rows in memory are arrays, and all cores work on them; the engines read Parquet files.

--out-of-core SIZE writes SIZE GiB of rows and goes through them on one Dask worker that may hold 1 GiB.
--rows N makes rows on the workers, and nothing is stored.
"""

import argparse
import os
import resource
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import psutil
from common import heading, table

from mercer.gram.moments import MomentsOf
from mercer.kernels import RBF
from mercer.rows import MemoryRows, ParquetRows, as_rows

WORKERS = 2
FILE_ROWS = 2**18


@dataclass(frozen=True)
class Measured:
    """A pass: CPU seconds of all processes, and seconds of the clock."""

    cpu: float
    seconds: float


def write_rows(folder: Path, n: int, d: int, seed: int) -> None:
    """n rows of d standard normal features in float32 and a target, in files of 2**18 rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for i, start in enumerate(range(0, n, FILE_ROWS)):
        rng = np.random.default_rng([seed, i])
        X = rng.standard_normal((min(FILE_ROWS, n - start), d), dtype=np.float32)
        columns = {f"x{j}": X[:, j] for j in range(d)} | {"y": np.sign(X[:, 0] * X[:, 1])}
        pq.write_table(pa.table(columns), folder / f"{i:05d}.parquet", use_dictionary=False, compression="none")


def fold_of(d: int, m: int) -> MomentsOf:
    Z = np.random.default_rng(1).standard_normal((m, d), dtype=np.float32)
    return MomentsOf(RBF(gamma=0.5 / d), Z, dtype=np.float32)


def processes() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def cpu_seconds() -> float:
    """Of this process and everything it has started, whether alive or done."""
    done = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.ru_utime + done.ru_stime + sum(map(seconds_of, processes()))


def seconds_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


def one_pass(rows, fold) -> Measured:
    cpu, start = cpu_seconds(), time.perf_counter()
    rows.reduce(fold)
    return Measured(cpu_seconds() - cpu, time.perf_counter() - start)


def side_by_side(sources, fold, repeats: int) -> list[Measured]:
    """The best pass over each source, one after the other in turn, after a first one in which workers warm up."""
    for rows in sources:
        rows.reduce(fold)
    found = [[one_pass(rows, fold) for rows in sources] for _ in range(repeats)]
    return [min(passes, key=lambda one: one.cpu) for passes in zip(*found)]


def in_memory(folder: Path) -> MemoryRows:
    blocks = list(ParquetRows(folder, target="y").blocks())
    return MemoryRows(*(np.concatenate([getattr(block, name) for block in blocks]) for name in ("X", "y")))


@contextmanager
def dask(folder, memory_limit=0, workers=WORKERS, environ=None):
    import dask.config
    from distributed import Client, LocalCluster

    key = "distributed.nanny.pre-spawn-environ"
    with (
        dask.config.set({} if environ is None else {key: environ}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=memory_limit,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(workers)
        yield as_rows(folder, "y"), client


@contextmanager
def ray(folder):
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        yield as_rows(folder, "y"), None
    finally:
        ray.shutdown()


@contextmanager
def spark(folder):
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
    }
    builder = SparkSession.builder.master(f"local[{WORKERS},4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield as_rows(session.read.parquet(str(folder)), "y"), None
    finally:
        session.stop()


# Dask starts workers with a MALLOC_TRIM_THRESHOLD_ that has every block fetch its memory from the system anew.
dask_untrimmed = partial(dask, environ={"OMP_NUM_THREADS": 1})

ENGINES = {"dask": dask, "dask-untrimmed": dask_untrimmed, "ray": ray, "spark": spark}


def bytes_received(client) -> float:
    """Bytes that the workers and this client have got from workers so far."""
    counted = client.run(lambda dask_worker: sum(e["total"] for e in dask_worker.transfer_incoming_log))
    return float(sum(counted.values()))


def compare(names, n: int, d: int, m: int, repeats: int) -> None:
    fold, lines = fold_of(d, m), []
    size = 8.0 * (m * m + m * 2 + 3)
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), n, d, seed=0)
        memory = in_memory(Path(folder))
        for name in names:
            with ENGINES[name](Path(folder)) as (rows, client):
                here, there = side_by_side([memory, rows], fold, repeats)
                share = None if client is None else wire_share(rows, fold, client, size)
            lines.append([name, there.cpu, here.cpu, there.cpu / here.cpu, there.seconds, here.seconds, share])
    header = ["engine", "CPU s", "memory CPU s", "ratio", "seconds", "memory seconds", "wire a task / moments"]
    print(heading() + f"\nmoments of {n:,} rows, {d} features, {m} centers, float32 products, {WORKERS} workers")
    print(table(lines, header))


def wire_share(rows, fold, client, size: float) -> float:
    """Bytes between workers, and to here, in a pass, over its tasks and the size of a moments object."""
    before = bytes_received(client)
    rows.reduce(fold)
    return (bytes_received(client) - before + size) / rows.n_parts / size


def out_of_core(gib: float, d: int, m: int, limit: float) -> None:
    """A pass over more rows than the worker may hold, and what it held at most."""
    n = int(gib * 2**30 / 4 / (d + 1))
    fold = Largest(fold_of(d, m))
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), n, d, seed=0)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        with dask(Path(folder), memory_limit=int(limit * 2**30), workers=1) as (rows, _):
            start = time.perf_counter()
            found = rows.reduce(fold)
            seconds = time.perf_counter() - start
    print(heading() + f"\n{size / 2**30:.2f} GiB of Parquet, a worker that may hold {limit} GiB, {m} centers")
    print(table([[f"{n:,}", seconds, f"{found.resident / 1e6:.0f}"]], ["rows", "seconds", "resident MB"]))


def many_rows(n: int, d: int, m: int) -> None:
    """Rows that workers of Dask make when they need them."""
    import dask.array as da
    from distributed import Client, LocalCluster

    X = da.random.default_rng(0).standard_normal((n, d), dtype=np.float32, chunks=(min(n, 2**17), -1))
    y = da.sign(X[:, 0] * X[:, 1])
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster),
    ):
        start = time.perf_counter()
        found = as_rows(X, y).reduce(fold_of(d, m), phase="moments", verbose=1)
        seconds = time.perf_counter() - start
    print(heading() + f"\n{d} features, {m} centers, {WORKERS} workers of Dask")
    print(table([[f"{found.n_rows:,}", seconds, f"{found.n_rows / seconds:,.0f}"]], ["rows", "seconds", "rows/s"]))


@dataclass(frozen=True)
class Resident:
    """Most bytes that the process has held, beside what is summed."""

    resident: float
    value: object

    def __add__(self, other: "Resident") -> "Resident":
        return Resident(max(self.resident, other.resident), self.value + other.value)


@dataclass(frozen=True)
class Largest:
    """The fold, and what the process that calls it holds."""

    fold: MomentsOf

    def __call__(self, block) -> Resident:
        value = self.fold(block)
        return Resident(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0, value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=lambda text: int(float(text)), default=10**6)
    parser.add_argument("--d", type=int, default=20)
    parser.add_argument("--m", type=int, default=1000)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out-of-core", type=float, metavar="GIB", nargs="?", const=8.0)
    parser.add_argument("--limit", type=float, default=1.0, help="GiB that the worker may hold out of core")
    parser.add_argument("--rows", type=lambda text: int(float(text)))
    args = parser.parse_args()
    if args.out_of_core is not None:
        out_of_core(args.out_of_core, args.d, args.m, args.limit)
    elif args.rows is not None:
        many_rows(args.rows, args.d, args.m)
    else:
        compare(args.engines, args.n, args.d, args.m, args.repeats)


if __name__ == "__main__":
    main()
