"""Fits with m centers in one pass over the rows: time, memory and error beside the bare engine and peers.

Rows are drawn by mercer.datasets.make_clusters in float32, 20 features. Times are the best of --repeats, in turn.

--data DIR adds MNIST (mnist/mnist.npz). --parts runs some of: fit peers growth predict loo agree mnist.
--picture FILE draws growth, memory and the errors of MNIST.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import bare_block, bare_fit, best_in_turn, blas_threads, heading, table, timed
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier
from mercer._gram.moments import MomentsOf
from mercer._solvers.moments.leave_one_out import LooOutputsOf
from mercer._solvers.moments.ridge import decompose_moments
from mercer.datasets import make_clusters
from mercer.kernels import RBF
from mercer.rows import MemoryRows

GAMMA = 0.03
ALPHA = 1.0
TEST_ROWS = 20_000
MIB = 2.0**20
PEERS = {"Nystroem + Ridge": ALPHA, "fit, alpha given": ALPHA, 'fit, alpha="loo"': "loo"}
PARTS = ("fit", "peers", "growth", "predict", "loo", "agree", "mnist")


def draw_rows(n: int) -> tuple[Any, Any, Any, Any]:
    """n training rows and TEST_ROWS test rows of the same problem."""
    X, y = make_clusters(n + TEST_ROWS, random_state=0, dtype=np.float32)
    return X[:n], y[:n], X[n:], y[n:]


def error(y: Any, outputs: Any) -> float:
    """Percent of wrong signs."""
    return float(100 * np.mean(np.sign(outputs.ravel()) != y))


def sgemm_peak(seconds: float = 1.0) -> float:
    """Operations a second of float32 matrix products, one in each thread that may be used."""
    A = np.ones((2048, 2048), np.float32)

    def run(_: int) -> int:
        end, n = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            A @ A
            n += 1
        return n

    threads = blas_threads()
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        n = sum(pool.map(run, range(threads)))
        return n * 2 * 2048.0**3 / (time.perf_counter() - start)


# Memory ---------------------------------------------------------------------------------------------------------


class Resident:
    """Resident memory of this process in MiB, looked at every 20 ms while open."""

    def __enter__(self) -> "Resident":
        self.times, self.values, self.open = [], [], True
        self.start = time.perf_counter()
        self.base = resident()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.open = False
        self.thread.join()

    def _watch(self) -> None:
        while self.open:
            self.times.append(time.perf_counter() - self.start)
            self.values.append(resident())
            time.sleep(0.02)

    @property
    def above(self) -> float:
        """The peak above what was there at the start."""
        return max(self.values) - self.base


def resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def apart(part: str, *arguments: object) -> Any:
    """What ``--child part`` prints, from a process of its own: its memory is its own."""
    command = [sys.executable, __file__, "--child", part, *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


# The parts ------------------------------------------------------------------------------------------------------


def part_fit(n: int, m: int, repeats: int) -> list[list[object]]:
    X, y, X_new, y_new = draw_rows(n)
    Z = np.array(X[:m])
    given = KernelFisherClassifier(RBF(gamma=GAMMA), alpha=ALPHA, centers=Z)
    tuned = KernelFisherClassifier(RBF(gamma=GAMMA), centers=Z)
    fold = MomentsOf(RBF(gamma=GAMMA), Z, np.float32)
    loop = partial(bare_fit, X, y, Z, gamma=GAMMA, alpha=ALPHA)
    peak = sgemm_peak()
    seconds = best_in_turn(
        repeats,
        bare=loop,
        moments=lambda: MemoryRows(X, y).reduce(fold),
        given=lambda: given.fit(X, y),
        tuned=lambda: tuned.fit(X, y),
    )
    peak = max(peak, sgemm_peak())
    bare = seconds["bare"]
    above = {name: apart("memory", n, m, name) for name in ("given", "tuned")}
    bare_error = error(y_new, bare_block(X_new, Z, GAMMA) @ loop())
    share = 100 * n * m**2 / seconds["moments"] / peak
    print(f"sgemm {peak / 1e9:.0f} GF/s in {blas_threads()} threads; products in {given.report_.products}")
    return [
        ["bare loop, one alpha", bare, 1.0, "", "", f"{bare_error:.2f}"],
        ["moments pass", seconds["moments"], seconds["moments"] / bare, f"{share:.0f} %", "", ""],
        _fit_row("fit, alpha given", seconds["given"], bare, above["given"], given, X_new, y_new),
        _fit_row('fit, alpha="loo"', seconds["tuned"], bare, above["tuned"], tuned, X_new, y_new),
    ]


def _fit_row(name: str, seconds: float, bare: float, above: float, model: Any, X: Any, y: Any) -> list[object]:
    return [name, seconds, seconds / bare, "", f"{above:.0f}", f"{100 * (1 - model.score(X, y)):.2f}"]


def child_memory(n: str, m: str, name: str) -> float:
    """MiB above the data of one fit."""
    X, y, _, _ = draw_rows(int(n))
    alpha = ALPHA if name == "given" else "loo"
    model = KernelFisherClassifier(RBF(gamma=GAMMA), alpha=alpha, centers=np.array(X[: int(m)]))
    model.fit(X[: 2 * int(m)], y[: 2 * int(m)])
    with Resident() as memory:
        model.fit(X, y)
    return memory.above


def part_peers(n: int, m: int, repeats: int) -> list[list[object]]:
    """Against Nystroem and Ridge with the same centers and kernel."""
    X, y, X_new, y_new = draw_rows(n)
    models = {name: peer_or_model(name, X, m) for name in PEERS}
    seconds = best_in_turn(repeats, **{name: partial(model.fit, X, y) for name, model in models.items()})
    above = {name: apart("peer_memory", n, m, name) for name in PEERS}
    labels = {name: np.sign(model.predict(X_new)) for name, model in models.items()}
    return [
        [
            n,
            name,
            seconds[name],
            seconds["Nystroem + Ridge"] / seconds[name],
            f"{above[name]:.0f}",
            error(y_new, labels[name]),
        ]
        for name in PEERS
    ]


def peer_or_model(name: str, X: Any, m: int) -> Any:
    """The pipeline of scikit-learn, or a model with the centers that it would draw."""
    nystroem = Nystroem(gamma=GAMMA, n_components=m, random_state=0)
    if name == "Nystroem + Ridge":
        return make_pipeline(nystroem, Ridge(alpha=ALPHA))
    centers = X[np.random.RandomState(0).permutation(len(X))[:m]]
    return KernelFisherClassifier(RBF(gamma=GAMMA), alpha=PEERS[name], centers=centers)


def child_peer_memory(n: str, m: str, name: str) -> float:
    X, y, _, _ = draw_rows(int(n))
    model = peer_or_model(name, X, int(m))
    model.fit(X[: 2 * int(m)], y[: 2 * int(m)])
    with Resident() as memory:
        model.fit(X, y)
    return memory.above


def part_growth(sizes: list[int], m: int) -> tuple[list[list[object]], dict[str, Any]]:
    """From Parquet files, each size in a process of its own."""
    rows, curves = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / str(n)
            apart("write", n, path)
            found = apart("growth", path, m)
            curves[str(n)] = found
            before = rows[-1] if rows else None
            ratio = None if before is None else found["seconds"] / before[1] / (n / before[0])
            rows.append([n, found["seconds"], ratio, f"{found['above']:.0f}"])
    return rows, curves


def child_write(n: str, path: str) -> int:
    """n rows as Parquet files of a quarter of a million."""
    X, y = make_clusters(int(n), random_state=0, dtype=np.float32)
    Path(path).mkdir()
    for i, start in enumerate(range(0, int(n), 2**18)):
        rows = slice(start, start + 2**18)
        columns = {f"x{j}": X[rows, j] for j in range(X.shape[1])} | {"label": y[rows].astype(np.int8)}
        pq.write_table(pa.table(columns), Path(path) / f"{i:05d}.parquet", use_dictionary=False)
    return 0


def child_growth(path: str, m: str) -> dict[str, Any]:
    Z = make_clusters(10_000, random_state=0, dtype=np.float32)[0][: int(m)]
    model = KernelFisherClassifier(RBF(gamma=GAMMA), centers=Z)
    model.fit(np.vstack([Z, Z + 1]), np.resize([-1, 1], 2 * len(Z)))
    with Resident() as memory:
        seconds = timed(lambda: model.fit(path, "label"))
    step = max(1, len(memory.times) // 400)
    return {
        "seconds": seconds,
        "above": memory.above,
        "times": memory.times[::step],
        "resident": memory.values[::step],
    }


def part_predict(n: int, m: int, repeats: int) -> list[list[object]]:
    """Against SVC with its own support vectors, fitted on 10^4 rows; SVC predicts a tenth of the rows."""
    X, y, _, _ = draw_rows(n)
    model = KernelFisherClassifier(RBF(gamma=GAMMA), centers=np.array(X[:m])).fit(X[:100_000], y[:100_000])
    svc = SVC(gamma=GAMMA).fit(X[:10_000], y[:10_000])
    some = X[: n // 10]
    seconds = best_in_turn(repeats, svc=lambda: svc.predict(some), model=lambda: model.predict(X))
    peer = 10 * seconds["svc"]
    return [
        [f"SVC, {len(svc.support_)} support vectors", peer, 1.0],
        [f"mercer, {m} centers", seconds["model"], peer / seconds["model"]],
    ]


def part_loo(n: int, m: int, repeats: int) -> list[list[object]]:
    """Left-out outputs of all rows for 30 alphas, in the precision of the moments they are held against."""
    X, y, _, _ = draw_rows(n)
    kernel, Z = RBF(gamma=GAMMA), np.array(X[:m])
    rows, fold = MemoryRows(X, y), MomentsOf(kernel, Z, np.float32)
    K = kernel.block(Z.astype(float), Z.astype(float))
    spectrum = decompose_moments(rows.reduce(fold), K)
    loo_outputs = LooOutputsOf(kernel, Z, spectrum, np.geomspace(1e-6, 1.0, 30) * spectrum.trace)
    seconds = best_in_turn(repeats, moments=lambda: rows.reduce(fold), loo=lambda: rows.reduce(loo_outputs))
    return [
        ["moments", seconds["moments"], 1.0],
        ["left out, 30 alphas", seconds["loo"], seconds["loo"] / seconds["moments"]],
    ]


def part_agree(n: int) -> list[list[object]]:
    """The largest difference of log-odds between ways to the same model, in float64."""
    X, y = make_clusters(n, random_state=0)
    Z, order = X[:200], np.random.default_rng(0).permutation(n)
    model = KernelFisherClassifier(RBF(gamma=GAMMA), alpha=ALPHA, centers=Z, loo_rows=None)
    expected = model.fit(X, y).decision_function(X[:1000])
    differences = {}

    def compare(name: str) -> None:
        differences[name] = float(np.abs(model.decision_function(X[:1000]) - expected).max())

    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        model.fit(np.load(Path(folder) / "X.npy", mmap_mode="r"), y)
        compare("memory map")
    model.fit([(X[i : i + 777], y[i : i + 777]) for i in range(0, n, 777)])
    compare("stream of 777 rows")
    model.fit(X[order], y[order])
    compare("shuffled")
    parts = clone(model)
    for i in range(0, n, 1234):
        parts.partial_fit(X[i : i + 1234], y[i : i + 1234], classes=[-1, 1])
    model = parts
    compare("partial_fit, batches of 1234")
    model.partial_fit(X[:500] + 1.0, y[:500]).remove(X[:500] + 1.0, y[:500])
    compare("500 rows added and removed")
    return [[name, f"{value:.1e}"] for name, value in differences.items()]


def part_mnist(data: Path, numbers: list[int]) -> tuple[list[list[object]], dict[str, Any]]:
    """Errors over alpha in both precisions, and a fit that chooses alpha itself."""
    archive = np.load(data / "mnist" / "mnist.npz")
    scale = np.float32(255)
    X, X_new = (archive[name].astype(np.float32) / scale for name in ("X_train", "X_test"))
    mean = X.mean(axis=0)
    X, X_new, y, y_new = X - mean, X_new - mean, archive["y_train"], archive["y_test"]
    alphas = 10.0 ** np.arange(-8, 2)
    rows, curves = [], {"alphas": alphas.tolist()}
    for m in numbers:
        Z = X[np.random.default_rng(0).permutation(len(X))[:m]]
        for dtype in (np.float32, np.float64):
            name = f"{m}, {np.dtype(dtype).name}"
            found = _mnist_fit(X.astype(dtype), y, X_new.astype(dtype), y_new, Z.astype(dtype), alphas)
            curves[name] = found[2:]
            rows.append([name, *found])
    return rows, curves


def _mnist_fit(X: Any, y: Any, X_new: Any, y_new: Any, Z: Any, alphas: Any) -> list[float]:
    """Seconds and error of a fit that chooses alpha, and errors of fits with each alpha."""
    model = KernelFisherClassifier(RBF(gamma=0.02), centers=Z, random_state=0)
    seconds = timed(lambda: model.fit(X, y))
    chosen = 100 * (1 - model.score(X_new, y_new))
    Z = Z.astype(np.float64)
    spectrum = decompose_moments(model.moments_, model.kernel_.block(Z, Z))
    K = model.kernel_.block(X_new, model.X_fit_)
    return [seconds, chosen, *[_mnist_error(model, K, spectrum.solve(alpha), y_new) for alpha in alphas]]


def _mnist_error(model: Any, K: Any, solution: tuple[Any, Any], y: Any) -> float:
    """Percent wrong of the largest output."""
    coef, intercept = solution
    return float(100 * np.mean(model.classes_[(K @ coef + intercept).argmax(axis=1)] != y))


# Tables and pictures --------------------------------------------------------------------------------------------


def draw(curves: dict[str, Any], mnist: dict[str, Any] | None, path: Path) -> None:
    mpl.use("Agg")
    figure, axes = plt.subplots(1, 3 if mnist else 2, figsize=(13 if mnist else 9, 3.8), layout="constrained")
    sizes = [int(n) for n in curves]
    seconds = [curves[str(n)]["seconds"] for n in sizes]
    axes[0].loglog(sizes, seconds, "o-", label="fit from Parquet, m = 1000")
    axes[0].loglog(sizes, [seconds[-1] * n / sizes[-1] for n in sizes], "k:", label="proportional to the rows")
    axes[0].set(xlabel="rows", ylabel="seconds", title="Time grows with the rows")
    axes[0].legend()
    for n in sizes:
        curve = curves[str(n)]
        share = np.array(curve["times"]) / curve["seconds"]
        axes[1].plot(share, curve["resident"], label=f"{n:,} rows")
    axes[1].set(xlabel="share of the fit", ylabel="resident memory, MiB", title="Memory does not", ylim=(0, None))
    axes[1].legend()
    if mnist:
        for name, wrong in mnist.items():
            if name != "alphas":
                axes[2].semilogx(mnist["alphas"], wrong, "o--" if "32" in name else "-", label=f"m = {name}")
        axes[2].set(xlabel="alpha", ylabel="test error %", title="MNIST: rows in float32 lose nothing")
        axes[2].legend()
    figure.savefig(path, dpi=110)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--peer-rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--centers", type=int, default=1000)
    parser.add_argument("--mnist-centers", type=int, nargs="+", default=[2000, 6000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--picture", type=Path)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.child:
        print(json.dumps(globals()[f"child_{args.child[0]}"](*args.child[1:])))
        return
    print(heading(), flush=True)
    n, m, repeats = args.rows, args.centers, args.repeats
    curves: dict[str, Any] = {}
    mnist = None
    if "fit" in args.parts:
        print(f"Fit with given centers: n = {n:,}, m = {m}", flush=True)
        show(part_fit(n, m, repeats), ["", "s", "/ bare", "of sgemm", "MiB above data", "error %"])
    if "peers" in args.parts:
        print("Against Nystroem and Ridge, the same centers")
        turns = [(size, repeats if size <= 100_000 else 1) for size in args.peer_rows]
        rows = [row for size, times in turns for row in part_peers(size, m, times)]
        show(rows, ["rows", "", "s", "times faster", "MiB above data", "error %"])
    if "growth" in args.parts:
        print('From Parquet files, alpha="loo"')
        rows, curves = part_growth(args.sizes, m)
        show(rows, ["rows", "s", "s per row / smaller", "MiB above start"])
    if "predict" in args.parts:
        print(f"Prediction of {n:,} rows")
        show(part_predict(n, m, repeats), ["", "s", "times faster"])
    if "loo" in args.parts:
        print(f"Leave-one-out of {n:,} rows")
        show(part_loo(n, m, repeats), ["", "s", "/ moments"])
    if "agree" in args.parts:
        print("The same model: largest difference of the log-odds")
        show(part_agree(min(n, 10_000)), ["", "difference"])
    if "mnist" in args.parts and args.data:
        print("MNIST, 60,000 rows, gamma 0.02: seconds and error of the fit, then errors by alpha")
        rows, mnist = part_mnist(args.data, args.mnist_centers)
        show(rows, ["centers", "s", "chosen", *[f"{a:.0e}" for a in mnist["alphas"]]])
    if args.picture and curves:
        draw(curves, mnist, args.picture)


def show(rows: list[list[object]], header: list[str]) -> None:
    print(table(rows, header) + "\n", flush=True)


if __name__ == "__main__":
    main()
