"""Whether fits keep to max_memory: what was planned and the peak of a process of its own, for many settings.

Every setting is fitted in a new process, which imports the library, loads its rows, notes what it holds now (the
bare import and the rows), resets the system's mark of the most memory ever held, and fits; what that mark rises by
is the peak. A fit keeps to its budget if the peak is at most max_memory and 60 MB, for what BLAS and allocators
keep, or if it is refused before the search. Needs Linux. --settings runs some, --rows sets their number of rows.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import heading, held, table
from scipy import sparse

from mercer import KernelFisherClassifier, KernelRidgeRegressor, plan
from mercer._fitting.memory import ROOT_HELD, ExactShape, alphas_at_once, root_workers
from mercer._gram import Budget
from mercer._linalg import blas_threads
from mercer.errors import MemoryBudgetError
from mercer.kernels import RBF
from mercer.planning import PROCESS, Rates

GIB = 2.0**30
# What allocators and threads keep, and modules that are imported late.
ALLOWED = 60e6
# Times are not the matter here: any rates do.
RATES = Rates(block=1e10, exp=2e8, gram=4e10, side=4e9, eigen=1e9, copy=5e9)
DENSITY = 0.01


@dataclass(frozen=True)
class Setting:
    """Rows of a source, of k classes (0: three real targets), and a fit to them within a budget in GiB.

    ``gamma`` is given, or None: chosen. ``m`` 0: every row is a center.
    """

    source: str
    n: int
    d: int
    k: int
    m: int
    max_memory: float
    gamma: float | None = None
    dtype: str = "float64"
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        what = "3 targets" if not self.k else f"{self.k} classes"
        centers = f"m={self.m}" if self.m else "every row"
        search = "" if self.gamma else ", search"
        kind = "" if self.dtype == "float64" else f" {self.dtype}"
        return f"{self.source}{kind}, n={self.n}, d={self.d}, {what}, {centers}{search}"

    @property
    def q(self) -> int:
        return {0: 3, 2: 1}.get(self.k, self.k)


SETTINGS = {
    "small": Setting("array", 20_000, 5, 2, 50, 0.01),
    "m300": Setting("array", 20_000, 5, 2, 300, 0.03),
    "m1000": Setting("array", 20_000, 5, 2, 1000, 0.25, 0.1),
    "usual": Setting("array", 20_000, 5, 2, 300, 1.0, 0.1),
    "wide": Setting("array", 20_000, 200, 2, 300, 0.1, 0.002),
    "classes20": Setting("array", 20_000, 5, 20, 100, 0.1),
    "classes400": Setting("array", 20_000, 5, 400, 100, 0.2, 0.1),
    "float32": Setting("array", 20_000, 20, 2, 500, 0.15, 0.02, "float32"),
    "regression": Setting("array", 20_000, 5, 0, 300, 0.05),
    "csr": Setting("CSR", 20_000, 5000, 2, 200, 0.1, 0.01),
    "map": Setting("memory map", 200_000, 20, 2, 300, 0.05, 0.02),
    "parquet": Setting("Parquet", 200_000, 20, 2, 300, 0.06, 0.02),
    "stream": Setting("stream", 100_000, 50, 2, 200, 0.1, 0.01),
    "dask": Setting("Dask threads", 200_000, 20, 2, 300, 0.06, 0.02),
    "all1000": Setting("array", 1000, 5, 2, 0, 0.05),
    "all3000": Setting("array", 3000, 5, 3, 0, 0.4, 0.1),
    "refused rows": Setting("array", 5000, 5, 2, 0, 0.5),
    "refused classes": Setting("array", 20_000, 5, 400, 100, 0.05),
    "refused centers": Setting("array", 20_000, 5, 2, 3000, 0.2),
}


# Rows ------------------------------------------------------------------------------------------------------------


def draw(setting: Setting, n: int, seed: int) -> tuple[Any, Any]:
    """n rows around a mean for each class, and labels or targets."""
    rng = np.random.default_rng(seed)
    k = max(setting.k, 2)
    y = rng.integers(k, size=n)
    means = np.random.default_rng(1).normal(size=(k, min(setting.d, 200)))
    if setting.source == "CSR":
        X = sparse.random(n, setting.d, DENSITY, "csr", rng=rng, data_rvs=rng.standard_normal)
        X.data += means[y[np.repeat(np.arange(n), np.diff(X.indptr))], 0]
        return X, y
    X = (rng.normal(size=(n, setting.d)) + means[y]).astype(setting.dtype)
    return X, y if setting.k else X[:, :3] + 0.1 * rng.normal(size=(n, 3))


def store(setting: Setting, folder: Path) -> None:
    """Write the rows where the process that fits finds them."""
    if setting.source == "stream":
        return
    X, y = draw(setting, setting.n, 0)
    np.save(folder / "y.npy", y)
    if setting.source == "CSR":
        sparse.save_npz(folder / "X.npz", X, compressed=False)
    elif setting.source == "Parquet":
        columns = {f"x{j}": X[:, j] for j in range(setting.d)} | {"y": y}
        pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=50_000)
    else:
        np.save(folder / "X.npy", X)


def load(setting: Setting, folder: Path) -> tuple[Any, Any]:
    """X and y as they are given to fit."""
    if setting.source == "stream":
        return batches(setting), None
    if setting.source == "Parquet":
        return str(folder / "rows.parquet"), "y"
    y = np.load(folder / "y.npy")
    if setting.source == "CSR":
        return sparse.load_npz(folder / "X.npz"), y
    X = np.load(folder / "X.npy", mmap_mode=None if setting.source == "array" else "r")
    if setting.source == "Dask threads":
        return da.from_array(X, chunks=(20_000, -1)), da.from_array(y, chunks=20_000)
    # Pages of a map belong to the system, and count for the process once they were read.
    X.sum()
    return X, y


def batches(setting: Setting) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """A function that draws the same batches each time."""
    return lambda: (draw(setting, 5000, seed) for seed in range(setting.n // 5000))


# One fit ---------------------------------------------------------------------------------------------------------


def model_of(setting: Setting) -> Any:
    kind = KernelFisherClassifier if setting.k else KernelRidgeRegressor
    kernel = "rbf" if setting.gamma is None else RBF(gamma=setting.gamma)
    return kind(
        kernel,
        centers=setting.m or "all",
        max_memory=setting.max_memory,
        random_state=0,
        **setting.parameters,
    )


def planned(setting: Setting) -> float:
    """Bytes of the process with the largest stage of the fit, without the rows."""
    room, item = setting.max_memory * GIB, np.dtype(setting.dtype).itemsize
    if not setting.m:
        extent = ExactShape(setting.n, setting.n, setting.q, float(item * setting.d), classes=setting.k > 0)
        # The kernel matrix, and a Cholesky factor and its inverse for each alpha that is computed in parallel.
        held = 1 + ROOT_HELD * root_workers(extent, room, blas_threads())
        return PROCESS + replace(extent, held=held).n_bytes(alphas_at_once(extent, room))
    d = int(1.5 * DENSITY * setting.d) if setting.source == "CSR" else setting.d
    return plan(
        setting.n,
        d,
        setting.m,
        q=setting.q,
        cores=blas_threads(),
        dtype=setting.dtype,
        rates=RATES,
        max_memory=setting.max_memory,
        search=setting.gamma is None,
    ).driver_bytes


def measure(setting: Setting, folder: Path) -> dict[str, Any]:
    """Fit in this process, and tell how."""
    bare = held("VmRSS")
    X, y = load(setting, folder)
    model = model_of(setting)
    # From here on the mark of the most memory is that of the fit.
    Path("/proc/self/clear_refs").write_text("5")
    before, start = held("VmRSS"), time.perf_counter()
    try:
        model.fit(X, y)
        said = ""
    except MemoryBudgetError as error:
        said = str(error)
    seconds = time.perf_counter() - start
    return {"bare": bare, "peak": held("VmHWM") - before, "seconds": seconds, "said": said}


def in_process(name: str, setting: Setting) -> dict[str, Any]:
    """What measure says, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        store(setting, Path(folder))
        command = [sys.executable, __file__, "--measure", name, "--folder", folder, "--rows", str(setting.n)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def row(name: str, setting: Setting) -> list[object]:
    """A line of the table."""
    budget = Budget.from_parameter(setting.max_memory).n_bytes
    found = in_process(name, setting)
    kept = "kept" if found["peak"] <= budget + ALLOWED else "EXCEEDED"
    need, process = None if found["said"] else planned(setting), found["bare"] + found["peak"]
    off = None if need is None else f"{100 * (process / need - 1):+.0f} %"
    sizes = [None if size is None else f"{size / 1e6:.0f}" for size in (budget, found["peak"], need, process)]
    return [setting.words, *sizes, off, f"{found['seconds']:.1f}", "refused" if found["said"] else kept]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--rows", type=int, help="rows of every setting, instead of its own number")
    parser.add_argument("--measure", choices=list(SETTINGS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    chosen = [arguments.measure] if arguments.measure else arguments.settings
    settings = {name: SETTINGS[name] for name in chosen}
    if arguments.rows:
        settings = {name: _with_rows(setting, arguments.rows) for name, setting in settings.items()}
    if arguments.measure:
        print(json.dumps(measure(settings[arguments.measure], arguments.folder)))
        return
    print(heading())
    rows = []
    for name, setting in settings.items():
        rows.append(row(name, setting))
        print(*rows[-1], file=sys.stderr, sep=" | ", flush=True)
    print(table(rows, ["setting", "max_memory", "peak", "plan", "process", "off", "seconds", "verdict"]))
    print(
        "\nMB. peak: what the fit adds to the bare import and the rows; process: both together; plan: of process."
    )


def _with_rows(setting: Setting, n: int) -> Setting:
    return Setting(**(setting.__dict__ | {"n": n}))


if __name__ == "__main__":
    main()
