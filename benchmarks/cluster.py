"""Passes and fits on engines of this machine beside threads: processor time, wire, memory, lost workers, plans.

By default: CPU seconds of the moments of --n rows with --m centers, in memory and on two workers of each engine,
in turn in the same run. Rows in memory are arrays, and all cores work on them; the engines read Parquet files.

--out-of-core GIB  a pass over GIB of Parquet files on a Dask worker that may hold 1 GiB, and in threads
--rows N           a fit to N rows of Parquet files on two workers of Dask, and in threads; --picture FILE draws it
--kills TIMES      the tests that kill workers, so many times in a row for each of --engines
--plan [SCALE]     what mercer.plan says of fits of several sizes, times SCALE rows, beside what they took
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import psutil
from common import heading, table

from mercer import KernelFisherClassifier, plan
from mercer._gram.moments import MomentsOf
from mercer.kernels import RBF
from mercer.rows import MemoryRows, ParquetRows, as_rows

WORKERS = 2
FILE_ROWS = 2**18
# The problem of mercer.datasets.make_clusters, file by file.
CLUSTERS, SEPARATION, FLIP, GAMMA = 32, 2.0, 0.01, 0.03
TEST_ROWS = 100_000
# Numbers of files that are never written: their rows are the centers, and those held out.
CENTERS, HELD_OUT = 10**7, 10**7 + 1
# Seconds between looks at memory, and those that one run of the tests that kill workers may take.
LOOKS, KILLS_LIMIT = 0.25, 300
# Rows, features, centers of the fits that are planned.
PLANNED = [(400_000, 20, 500), (400_000, 20, 1000), (200_000, 100, 1000), (200_000, 20, 2000)]


@dataclass(frozen=True)
class Measured:
    """A pass: CPU seconds of all processes, and seconds of the clock."""

    cpu: float
    seconds: float


def write_rows(folder: Path, n: int, d: int, draw) -> None:
    """n rows of d features and a label in files of 2**18 rows; draw(i, rows) makes X and y of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A row takes 4 d + 1 bytes.
    room, needed = shutil.disk_usage(folder).free, 1.05 * n * (4 * d + 1)
    if room < needed:
        sys.exit(f"{folder} has {room / 1e9:.1f} GB left, and the rows take {needed / 1e9:.1f} GB; set TMPDIR")
    for i, start in enumerate(range(0, n, FILE_ROWS)):
        X, y = draw(i, min(FILE_ROWS, n - start))
        columns = {f"x{j}": X[:, j] for j in range(d)} | {"label": y}
        options = {"use_dictionary": False, "compression": "none", "write_statistics": False}
        pq.write_table(pa.table(columns), folder / f"{i:05d}.parquet", **options)


def clusters(i: int, n: int, *, d: int):
    """n rows of make_clusters in float32, labels -1 and 1 in int8; the same clusters for all i, other rows."""
    informative = min(10, d)
    means = SEPARATION * np.random.default_rng(0).standard_normal((CLUSTERS, informative), dtype=np.float32)
    rng = np.random.default_rng([1, i])
    cluster = rng.integers(0, CLUSTERS, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X[:, :informative] += means[cluster]
    sign = np.where(rng.random(n) < FLIP, -1, 1)
    return X, (sign * (1 - 2 * (cluster % 2))).astype(np.int8)


def fold_of(d: int, m: int) -> MomentsOf:
    return MomentsOf(RBF(gamma=GAMMA), clusters(CENTERS, m, d=d)[0], dtype=np.float32)


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
    blocks = list(ParquetRows(folder, target="label").blocks())
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
        yield as_rows(folder, "label"), client


@contextmanager
def ray(folder):
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        yield as_rows(folder, "label"), None
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
        yield as_rows(session.read.parquet(str(folder)), "label"), None
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
        write_rows(Path(folder), n, d, partial(clusters, d=d))
        memory = in_memory(Path(folder))
        for name in names:
            with ENGINES[name](Path(folder)) as (rows, client):
                here, there = side_by_side([memory, rows], fold, repeats)
                share = sent(name, rows, fold, client, size) / size
            lines.append([name, there.cpu, here.cpu, there.cpu / here.cpu, there.seconds, here.seconds, share])
    header = ["engine", "CPU s", "memory CPU s", "ratio", "seconds", "memory seconds", "wire a task / moments"]
    print(heading() + f"\nmoments of {n:,} rows, {d} features, {m} centers, float32 products, {WORKERS} workers")
    print(table(lines, header))


def sent(name: str, rows, fold, client, size: float) -> float:
    """Bytes a task: on the wire (Dask), in the store of objects (Ray); not known of Spark."""
    if name == "ray":
        return stored_by_ray(fold)
    if client is None:
        return np.nan
    before = bytes_received(client)
    rows.reduce(fold)
    # The total comes here, which no worker counts.
    return (bytes_received(client) - before + size) / rows.n_parts


def stored_by_ray(fold) -> float:
    """Bytes of the sum over one part, as Ray stores it."""
    import ray

    from mercer.rows._engines.base import sum_part

    ref = ray.put(sum_part(fold, MemoryRows(*clusters(0, 10, d=fold.centers.shape[1])), 0))
    return float(ray.experimental.get_object_locations([ref])[ref]["object_size"])


# More rows than memory ------------------------------------------------------------------------------------------


def out_of_core(gib: float, d: int, m: int, limit: float) -> None:
    """A pass over more rows than the worker may hold, what it held at most, and the same sum in threads."""
    n = int(gib * 2**30 / (4 * d + 1))
    fold = fold_of(d, m)
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), n, d, partial(clusters, d=d))
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        with dask(Path(folder), memory_limit=int(limit * 2**30), workers=1) as (rows, client):
            start = time.perf_counter()
            found = rows.reduce(fold)
            seconds = time.perf_counter() - start
            ((pid, peak),) = client.run(peak_memory).values()
            survived = pid in [process.pid for process in processes()]
        start = time.perf_counter()
        expected = ParquetRows(Path(folder), target="label").reduce(fold)
        alone = time.perf_counter() - start
    apart = max(map(relative, *(one.centered() for one in (found, expected))))
    line = [f"{n:,}", seconds, f"{peak / 1e6:.0f}" if survived else "lost", alone, f"{apart:.1e}"]
    header = ["rows", "seconds", "worker's peak MB", "seconds in threads", "largest relative difference"]
    print(heading() + f"\n{size / 2**30:.2f} GiB of Parquet, a Dask worker that may hold {limit} GiB, {m} centers")
    print(table([line], header))


def relative(a, b) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def peak_memory() -> tuple[int, float]:
    """This process, and the most bytes it has held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return os.getpid(), 1024.0 * int(kilobytes)


# Whole fits -----------------------------------------------------------------------------------------------------


class Memory:
    """Resident bytes of this process, and of the largest worker of Dask, looked at again and again."""

    def __init__(self) -> None:
        self.curve: list[tuple[float, float, float]] = []
        self._over = threading.Event()
        self._start = time.perf_counter()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def peak(self, which: int) -> float:
        return max(look[which] for look in self.curve)

    def _watch(self) -> None:
        me, *workers = processes()
        while True:
            held = max(map(resident, workers), default=0.0)
            self.curve.append((time.perf_counter() - self._start, resident(me), held))
            if self._over.wait(LOOKS):
                return


def resident(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0.0


def fit_here(folder: Path, engine: str, d: int, m: int) -> dict[str, object]:
    """A fit to the files: seconds, memory, the error on rows held out, and the plan that was made before."""
    X, y = clusters(HELD_OUT, TEST_ROWS, d=d)
    model = KernelFisherClassifier(RBF(gamma=GAMMA), centers=clusters(CENTERS, m, d=d)[0])
    # Both, since the precision of the products is found out in the fit.
    said = {name: planned(folder, engine, d, m, name) for name in ("float32", "float64")}
    with dask(folder) if engine == "dask" else nullcontext(), Memory() as memory:
        cpu, start = cpu_seconds(), time.perf_counter()
        model.fit(folder, "label")
        seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    products = model.report_.products[:7]
    return {
        "engine": engine,
        "seconds": seconds,
        "cpu": cpu,
        "driver": memory.peak(1),
        "worker": memory.peak(2),
        "curve": memory.curve,
        "error": float(np.mean(model.predict(X) != y)),
        "products": products,
        "plan": said[products],
    }


def planned(folder: Path, engine: str, d: int, m: int, products: str) -> dict[str, float]:
    n = ParquetRows(folder, target="label").n_rows
    name = "memory" if engine == "threads" else engine
    # Workers are on this machine: what they send to each other is copied, at some gigabytes a second.
    found = plan(n, d, m, cores=WORKERS, engine=name, products=products, network=2e9)
    return {"seconds": found.seconds, "driver": found.driver_bytes, "worker": found.worker_bytes}


def fit_apart(folder: Path, engine: str, d: int, m: int) -> dict:
    """fit_here in a process of its own, whose memory is that of the fit."""
    options = ["--fit", engine, "--folder", str(folder), "--d", str(d), "--m", str(m)]
    command = [sys.executable, __file__, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


COLUMNS = ["seconds", "planned", "ratio", "driver MB", "planned", "ratio", "worker MB", "planned", "ratio"]


def beside_plan(fit: dict) -> list[object]:
    """Measured, planned and their ratio, of seconds and of memory."""
    line: list[object] = []
    for name, unit, digits in (("seconds", 1.0, 1), ("driver", 1e6, 0), ("worker", 1e6, 0)):
        took, said = fit[name] / unit, fit["plan"][name] / unit
        known = took > 0
        line += [f"{took:.{digits}f}", f"{said:.{digits}f}", said / took] if known else [None] * 3
    return line


def many_rows(n: int, d: int, m: int, picture: Path | None) -> None:
    """One fit to n rows of files on workers of Dask, and in threads."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        write_rows(Path(folder), n, d, partial(clusters, d=d))
        wrote = time.perf_counter() - start
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        fits = [fit_apart(Path(folder), engine, d, m) for engine in ("dask", "threads")]
    lines = [
        [fit["engine"], fit["cpu"], *beside_plan(fit), f"{100 * fit['error']:.2f}", fit["products"]]
        for fit in fits
    ]
    print(heading() + f"\nfits to {n:,} rows, {d} features, {m} centers: {size / 1e9:.2f} GB in {wrote:.0f} s")
    print(table(lines, ["engine", "CPU s", *COLUMNS, "error %", "products"]))
    if picture is not None:
        draw(fits, picture)


def plans(scale: float) -> None:
    """Fits of several sizes beside their plans."""
    lines = []
    for n, d, m in PLANNED:
        rows = int(n * scale)
        with tempfile.TemporaryDirectory() as folder:
            write_rows(Path(folder), rows, d, partial(clusters, d=d))
            for engine in ("threads", "dask"):
                fit = fit_apart(Path(folder), engine, d, m)
                lines.append([f"{rows:,}, {d}, {m}", engine, fit["cpu"], *beside_plan(fit), fit["products"]])
    print(heading() + f"\nfits with given kernel and centers, {WORKERS} cores, and what was planned before")
    print(table(lines, ["rows, features, centers", "engine", "CPU s", *COLUMNS, "products"]))


def draw(fits: list[dict], path: Path) -> None:
    """Memory over time, and what was planned beside what was measured."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, *bars) = plt.subplots(
        1, 4, figsize=(12, 3.4), width_ratios=[2.4, 1, 1, 1], layout="constrained"
    )
    for fit in fits:
        seconds, driver, worker = np.array(fit["curve"]).T
        left.plot(seconds, driver / 1e6, label=f"{fit['engine']}: driver")
        if worker.any():
            left.plot(seconds, worker / 1e6, label=f"{fit['engine']}: largest worker")
    left.set(xlabel="seconds", ylabel="resident MB", ylim=(0, None))
    left.legend(frameon=False)
    for axes, (name, unit, words) in zip(
        bars, (("seconds", 1.0, "seconds"), ("driver", 1e6, "driver MB"), ("worker", 1e6, "worker MB"))
    ):
        shown = [fit for fit in fits if fit[name] > 0]
        at = np.arange(len(shown))
        axes.bar(at - 0.2, [fit["plan"][name] / unit for fit in shown], 0.4, label="planned", color="0.75")
        axes.bar(at + 0.2, [fit[name] / unit for fit in shown], 0.4, label="measured", color="C0")
        axes.set(title=words, xticks=at, xticklabels=[fit["engine"] for fit in shown])
        # Room for the legend.
        axes.margins(y=0.3)
    bars[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


# Lost workers ---------------------------------------------------------------------------------------------------


def kills(names, times: int) -> None:
    """The tests that kill workers, again and again; a run that takes too long has failed."""
    lines = []
    for name in names:
        runs = [kill_once(name) for _ in range(times)]
        seconds = [took for _, took in runs]
        passed = sum(fine for fine, _ in runs)
        lines.append([name, times, passed, times - passed, float(np.median(seconds)), max(seconds)])
    print(heading() + "\nworkers killed twice in each of two passes, in every kind of rows of the engine")
    print(table(lines, ["engine", "runs", "passed", "failed", "median seconds", "longest"]))


def kill_once(name: str) -> tuple[bool, float]:
    tests = Path(__file__).parents[1] / "tests" / "distributed" / "test_engines.py"
    command = [sys.executable, "-m", "pytest", "-q", str(tests), "-k", f"killed and {name}_"]
    start = time.perf_counter()
    # In a session of its own, so that nothing of a run that hangs is left.
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=tests.parents[2]
    )
    try:
        said, _ = run.communicate(timeout=KILLS_LIMIT)
        fine = run.returncode == 0 and "passed" in said and "skipped" not in said
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, 9)
        run.communicate()
        fine = False
    return fine, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    number = lambda text: int(float(text))  # noqa: E731
    parser.add_argument("--n", type=number, default=10**6)
    parser.add_argument("--d", type=int, default=20)
    parser.add_argument("--m", type=int, default=1000)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1.0, help="GiB that the worker may hold out of core")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--out-of-core", type=float, metavar="GIB", nargs="?", const=8.0)
    mode.add_argument("--rows", type=number)
    mode.add_argument("--kills", type=int, metavar="TIMES")
    mode.add_argument("--plan", type=float, metavar="SCALE", nargs="?", const=1.0)
    mode.add_argument("--fit", choices=["threads", "dask"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.out_of_core is not None:
        out_of_core(args.out_of_core, args.d, args.m, args.limit)
    elif args.rows is not None:
        many_rows(args.rows, args.d, args.m, args.picture)
    elif args.kills is not None:
        kills(args.engines or ["dask", "ray", "spark"], args.kills)
    elif args.plan is not None:
        plans(args.plan)
    elif args.fit is not None:
        print(json.dumps(fit_here(args.folder, args.fit, args.d, args.m)))
    else:
        compare(args.engines or list(ENGINES), args.n, args.d, args.m, args.repeats)


if __name__ == "__main__":
    main()
