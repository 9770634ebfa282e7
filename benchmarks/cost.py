"""What a default fit costs: seconds, memory and test error by the number of rows, beside bare engines.

--parts runs some of: sizes engines sets busy.

sizes    ringnorm by the number of rows n, all sizes in turn. "step" is the ratio of seconds to the line above,
         divided by the ratio of rows: 1 where time is proportional to n. "power" is the p for which the seconds
         grow as n^p, where n grows by a fifth or more.
engines  fits in turn with the linear algebra one would compare them with: ``scipy.linalg.eigh``, and a loop over
         blocks of rows that sums products of kernel values.
sets     with --data DIR: test errors on ringnorm, letter, covtype and adult.
busy     the same fit alone, and with one process a core that computes without end.

--quick takes few rows for engines and busy, to see that they run.
"""

import argparse
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from common import ADULT_TRAIN, bare_fit, best_in_turn, heading, kernel_matrix, read_adult, table, timed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier
from mercer.datasets import make_ringnorm, read_digits

Split = tuple[Any, Any, Any, Any]

PARTS = ("sizes", "engines", "sets", "busy")
SIZES = (1000, 2000, 4000, 5000, 5001, 8000, 10_000, 16_000, 100_000, 1_000_000)
TEST_ROWS = 10_000
# Between sizes that differ by less, the power of growth is mostly noise.
LEAST_GROWTH = 1.2
# Kernel width and penalty of the bare loop, which chooses neither.
GAMMA = 0.03
ALPHA = 1.0


@dataclass(frozen=True)
class Numbers:
    """Rows of the fit beside eigh, and of eigh; of digits; rows and centers of the loop; rows of the busy part."""

    fit: int = 10_000
    eigh: int = 5000
    digits: int = 1797
    loop: int = 100_000
    centers: int = 1000
    busy: int = 1000


QUICK = Numbers(fit=200, eigh=100, digits=200, loop=400, centers=20, busy=50)


def default_fit(X: Any, y: Any) -> KernelFisherClassifier:
    return KernelFisherClassifier(random_state=0).fit(X, y)


def wrong(model: KernelFisherClassifier, X: Any, y: Any) -> float:
    """Test error in percent."""
    return float(100 * np.mean(model.predict(X) != y))


# By the number of rows ------------------------------------------------------------------------------------------


def part_sizes(sizes: list[int], repeats: int) -> list[list[object]]:
    rows = {n: make_ringnorm(n, random_state=0) for n in sizes}
    fits = {str(n): partial(default_fit, *rows[n]) for n in sizes}
    seconds = list(best_in_turn(repeats, **fits).values())
    growth = [(None, None)] + [step_and_power(sizes[i : i + 2], seconds[i : i + 2]) for i in range(len(sizes) - 1)]
    return [[n, s, *g, *measure(*rows[n], repeats)] for n, s, g in zip(sizes, seconds, growth)]


def step_and_power(rows: list[int], seconds: list[float]) -> tuple[float, float | None]:
    """Seconds per row in units of the smaller fit, and p of n^p; rows that hardly grow say nothing about p."""
    times, growth = seconds[1] / seconds[0], rows[1] / rows[0]
    return times / growth, float(np.log(times) / np.log(growth)) if growth >= LEAST_GROWTH else None


def measure(X: Any, y: Any, repeats: int) -> list[object]:
    """Centers, peak memory, seconds to predict, test error."""
    X_new, y_new = make_ringnorm(TEST_ROWS, random_state=1)
    model, peak = traced_fit(X, y)
    predict = min(timed(lambda: model.predict(X_new)) for _ in range(repeats))
    return [len(model.X_fit_), f"{peak / 2**20:.0f}", predict, wrong(model, X_new, y_new)]


def traced_fit(X: Any, y: Any) -> tuple[KernelFisherClassifier, int]:
    """A fit, and the bytes of arrays it held at once; tracing slows it, so it is not timed."""
    tracemalloc.start()
    model = default_fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return model, peak


# Beside bare engines --------------------------------------------------------------------------------------------


def part_engines(numbers: Numbers, repeats: int) -> list[list[object]]:
    rows = make_ringnorm(numbers.fit, random_state=0)
    digits = tuple(part[: numbers.digits] for part in load_digits(return_X_y=True))
    many = make_ringnorm(numbers.loop, random_state=0)
    return [
        beside(repeats, "ringnorm", rows, *eigh(rows[0][: numbers.eigh])),
        beside(repeats, "digits of scikit-learn", digits, *eigh(digits[0])),
        beside(repeats, "ringnorm", many, *loop(*many, numbers.centers)),
    ]


def eigh(X: Any) -> tuple[str, Callable[[], Any]]:
    """One plain eigendecomposition of the kernel matrix, and its name."""
    K = kernel_matrix(X)
    return f"eigh of {len(K)} rows", lambda: scipy.linalg.eigh(K)


def loop(X: Any, y: Any, m: int) -> tuple[str, Callable[[], Any]]:
    """Sums over blocks of rows, in float32, for m centers, and its name."""
    X = X.astype(np.float32)
    return f"loop, {m} centers", partial(bare_fit, X, y, X[:m], gamma=GAMMA, alpha=ALPHA)


def beside(repeats: int, name: str, rows: Any, engine_name: str, engine: Callable[[], Any]) -> list[object]:
    seconds = best_in_turn(repeats, fit=lambda: default_fit(*rows), engine=engine)
    return [name, len(rows[0]), seconds["fit"], engine_name, seconds["engine"], seconds["fit"] / seconds["engine"]]


# Test errors on data --------------------------------------------------------------------------------------------


def part_sets(folder: Path, names: list[str]) -> list[list[object]]:
    return [measure_set(name, *SETS[name](folder)) for name in names]


def measure_set(name: str, X: Any, y: Any, X_new: Any, y_new: Any) -> list[object]:
    start = time.perf_counter()
    model = default_fit(X, y)
    seconds = time.perf_counter() - start
    print(f"  {name}\n{model.report_}", flush=True)
    return [name, *X.shape, len(y_new), len(model.X_fit_), seconds, wrong(model, X_new, y_new)]


def ringnorm(_: Path) -> Split:
    return *make_ringnorm(100_000, random_state=0), *make_ringnorm(100_000, random_state=1)


def letter(folder: Path) -> Split:
    """The customary parts, as they are: the features share one unit."""
    return read_digits(folder / "letter", "letter")


def covtype(folder: Path) -> Split:
    """The rows come in no random order, and no parts are customary: a random half of each class for training."""
    with np.load(folder / "covtype_20k" / "covtype_20k.npz") as archive:
        binary = np.unpackbits(archive["X_bits"], axis=1)[:, :44]
        X, y = np.hstack([archive["X_quant"], binary]).astype(float), archive["y"].astype(int)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    return standardized(X, y, X_new, y_new)


def adult(folder: Path) -> Split:
    """The customary parts."""
    X, y = read_adult(folder)
    return standardized(X[:ADULT_TRAIN], y[:ADULT_TRAIN], X[ADULT_TRAIN:], y[ADULT_TRAIN:])


def standardized(X: Any, y: Any, X_new: Any, y_new: Any) -> Split:
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_new), y_new


SETS: dict[str, Callable[[Path], Split]] = {
    "ringnorm": ringnorm,
    "letter": letter,
    "covtype": covtype,
    "adult": adult,
}


# Beside busy processes ------------------------------------------------------------------------------------------


@contextmanager
def busy_neighbors() -> Iterator[None]:
    """One process a core that computes without end."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def part_busy(n: int, repeats: int) -> list[list[object]]:
    """Medians, alone and with busy neighbors in turn."""
    X, y = make_ringnorm(n, random_state=0)
    name, engine = eigh(X)
    functions = {f"fit of {n} rows": lambda: default_fit(X, y), name: engine}
    quiet, busy = [], []
    for _ in range(repeats):
        quiet.append([timed(function) for function in functions.values()])
        with busy_neighbors():
            busy.append([timed(function) for function in functions.values()])
    pairs = zip(functions, np.median(quiet, axis=0), np.median(busy, axis=0))
    return [[name, float(alone), float(together), float(together / alone)] for name, alone, together in pairs]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, help="folder with letter/letter.npz, adult/adult.npz, ...")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    return parser.parse_args()


def main() -> None:
    args = arguments()
    numbers = QUICK if args.quick else Numbers()
    print(heading(), flush=True)
    KernelFisherClassifier().fit(*make_ringnorm(50, random_state=1))
    if "sizes" in args.parts:
        title = f"ringnorm, 20 features, default fit, best of {args.repeats}; {TEST_ROWS:,} rows to predict"
        header = ["rows", "fit s", "step", "power", "centers", "peak MiB", "predict s", "error %"]
        show(title, part_sizes(args.sizes, args.repeats), header)
    if "engines" in args.parts:
        header = ["fit of", "rows", "fit s", "bare engine", "s", "fit / engine"]
        show(f"In turn with a bare engine, best of {args.repeats}", part_engines(numbers, args.repeats), header)
    if "sets" in args.parts and args.data:
        header = ["set", "training rows", "features", "test rows", "centers", "fit s", "error %"]
        show("Test errors", part_sets(args.data, args.sets), header)
    if "busy" in args.parts:
        title = f"Alone, and with one busy process a core: medians of {args.repeats}, in turn"
        show(title, part_busy(numbers.busy, args.repeats), ["", "alone s", "busy s", "busy / alone"])


def show(title: str, rows: list[list[object]], header: list[str]) -> None:
    print(f"{title}\n{table(rows, header)}\n", flush=True)


if __name__ == "__main__":
    main()
