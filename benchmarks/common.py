"""What benchmark scripts share: heading and columns of a table, memory, times, what a fit is compared with."""

import platform
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from mercer import KernelFisherClassifier
from mercer._fitting import ALPHAS
from mercer.kernels import RBF

PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn")
# Columns of the archive of Adult that hold categories, and the rows that are customarily for training.
ADULT_CATEGORIES = (1, 3, 5, 6, 7, 8, 9, 13)
ADULT_TRAIN = 32561
# Rows of a block of the bare loop.
BLOCK = 4096


def heading() -> str:
    """The command, the versions, the processor, the threads of BLAS and the date."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = f"{platform.machine()}, Python {platform.python_version()}, {_processor()}"
    threads = f"BLAS threads: {blas_threads()}"
    names = [word.rsplit("/", 1)[-1] if word.startswith(("/", ".", "~")) else word for word in sys.argv[1:]]
    words = [Path(sys.argv[0]).name, *map(shlex.quote, names)]
    return f"$ python benchmarks/{' '.join(words)}\n{versions}\n{machine}\n{threads}\n{date.today()}\n"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        return f"{len(names)} x {names[0]}"
    except (OSError, IndexError):
        return platform.processor()


def blas_threads() -> int:
    """How many threads linear algebra may use."""
    return max(
        (library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"), default=1
    )


def held(name: str) -> float:
    """Bytes of this process, as the system counts them: VmRSS now, VmHWM at most."""
    with open("/proc/self/status") as lines:
        return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith(name))


def table(rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Columns of equal width: the first flush left, the others flush right."""
    cells = [list(header), *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(header))]
    lines = []
    for row in cells:
        first, *rest = (text.ljust(w) if j == 0 else text.rjust(w) for j, (text, w) in enumerate(zip(row, widths)))
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def default_model() -> object:
    """Everything default, with a seed; standardizing is the user's step."""
    return make_pipeline(StandardScaler(), KernelFisherClassifier(random_state=0))


def svc_search(X: NDArray[np.float64], *, seed: int = 0) -> GridSearchCV:
    """SVC over as many gammas and penalties as the self-tuned fit tries, 5 folds, for standardized rows X."""
    gammas = [kernel.gamma for kernel in RBF(gamma="loo").candidates(X)]
    grid = {"gamma": gammas, "C": np.logspace(-2, 4, len(ALPHAS))}
    return GridSearchCV(SVC(cache_size=500), grid, cv=StratifiedKFold(5, shuffle=True, random_state=seed))


def timed(function: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def best_in_turn(repeats: int, **functions: Callable[[], Any]) -> dict[str, float]:
    """Least seconds of each function, called one after the other, again and again."""
    runs = [{name: timed(function) for name, function in functions.items()} for _ in range(repeats)]
    return {name: min(run[name] for run in runs) for name in functions}


def kernel_matrix(X: NDArray[Any]) -> NDArray[np.float64]:
    """exp(-gamma |x - z|²) of all pairs of rows (n, n), gamma = 1 / (d Var X): what ``eigh`` is timed on."""
    return rbf_kernel(X, gamma=1.0 / (X.shape[1] * X.var()))


def bare_block(X: Any, Z: Any, gamma: float) -> Any:
    """exp(-gamma |x - z|²) with the norms folded into one product, in place."""
    left = np.column_stack([2 * gamma * X, -gamma * (X**2).sum(1), np.ones(len(X), X.dtype)])
    right = np.column_stack([Z, np.ones(len(Z), Z.dtype), -gamma * (Z**2).sum(1)])
    K = left @ right.T
    return np.exp(K, out=K)


def bare_fit(X: Any, y: Any, Z: Any, *, gamma: float, alpha: float) -> Any:
    """The loop one would write: blocks in threads, float32 products summed in float64, one Cholesky solve."""

    def sums(part: range) -> tuple[Any, Any]:
        G, c = np.zeros((len(Z), len(Z))), np.zeros(len(Z))
        for start in part:
            K = bare_block(X[start : start + BLOCK], Z, gamma)
            G += K.T @ K
            c += K.T @ y[start : start + BLOCK].astype(np.float32)
        return G, c

    starts, threads = range(0, len(X), BLOCK), blas_threads()
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(sums, [starts[i::threads] for i in range(threads)]))
    G, c = (sum(part) for part in zip(*parts))
    K = bare_block(Z.astype(float), Z.astype(float), gamma)
    return scipy.linalg.solve(G + alpha * K, c, assume_a="pos")


def read_adult(folder: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows (48842, 108) of the census data with categories as indicators, and labels; training rows come first."""
    with np.load(folder / "adult" / "adult.npz") as archive:
        X, y = archive["X"], archive["y"].astype(np.int64)
    categories = list(ADULT_CATEGORIES)
    indicators = OneHotEncoder(sparse_output=False).fit_transform(X[:, categories])
    return np.hstack([np.delete(X, categories, axis=1), indicators]), y
