"""How honest leave-one-out is on real rows: accuracy and log-loss of held-out and of new rows, by model.

Of twelve sets, --draws samples of --rows rows each, standardized; classes with less than a fiftieth of the rows
are left out. KernelFisherClassifier chooses its kernel with every row a center; the other models get that kernel
and choose the rest. For each model and number of rows: held-out minus new rows, with two standard errors over the
draws of all sets (an exclamation mark where the difference is larger), and on how many sets it is within its own
two standard errors. Then log-losses of new rows with centers selected by targets minus those with as many random
ones.
--store  keeps single figures in a file of comma-separated values, and goes on from those it has
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, read_adult, table
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier, KernelMachineClassifier, SparseFisherClassifier
from mercer.centers import Uniform
from mercer.kernels import Kernel

Array = NDArray[Any]
Figures = tuple[float, float, float, float, float]
NEW_ROWS, LEAST_SHARE = 2000, 0.02
# Archives of one table, by name: folder and how X is made of their arrays.
SETS: dict[str, tuple[str, Callable[[Any], Array]]] = {
    "covtype_20k": (
        "covtype_20k",
        lambda d: np.hstack([d["X_quant"], np.unpackbits(d["X_bits"], axis=1)[:, :44]]),
    ),
    "dna_statlog": ("splice_dna", lambda d: d["X"]),
    "higgs_sample": ("higgs_sample", lambda d: np.vstack([d["X_train"], d["X_test"]])),
    "letter": ("letter", lambda d: d["X"]),
    "magic": ("small_uci", lambda d: d["X"]),
    "optdigits": ("optdigits", lambda d: d["X"]),
    "pendigits": ("pendigits", lambda d: d["X"]),
    "phoneme_esl": ("phoneme_esl", lambda d: d["X"]),
    "satimage": ("satimage", lambda d: d["X"]),
    "shuttle": ("shuttle", lambda d: d["X"]),
    "spambase": ("small_uci", lambda d: d["X"]),
}
NAMES = ("adult", *SETS)
# By name: what is fitted with a kernel to n rows.
MODELS: dict[str, Callable[[Kernel, int], Any]] = {
    "every row": lambda kernel, n: KernelFisherClassifier(kernel),
    "n/2 centers": lambda kernel, n: KernelFisherClassifier(kernel, centers=n // 2),
    "n/2 at random": lambda kernel, n: KernelFisherClassifier(kernel, centers=Uniform(n // 2)),
    "n/10 centers": lambda kernel, n: KernelFisherClassifier(kernel, centers=n // 10),
    "n/10 at random": lambda kernel, n: KernelFisherClassifier(kernel, centers=Uniform(n // 10)),
    "sparse": lambda kernel, n: SparseFisherClassifier(kernel),
    "squared": lambda kernel, n: KernelMachineClassifier(kernel, loss="squared"),
    "logistic": lambda kernel, n: KernelMachineClassifier(kernel, loss="logistic"),
}
PAIRS = (("n/2 centers", "n/2 at random"), ("n/10 centers", "n/10 at random"))


def read(folder: Path, name: str) -> tuple[Array, Array]:
    """Rows and class numbers of a set, without rare classes."""
    if name == "adult":
        X, y = read_adult(folder)
    else:
        where, make = SETS[name]
        with np.load(folder / where / f"{name}.npz") as archive:
            X = make(archive).astype(np.float64)
            y = archive["y"] if "y" in archive else np.concatenate([archive["y_train"], archive["y_test"]])
    labels, number, count = np.unique(np.ravel(y), return_inverse=True, return_counts=True)
    common = (count >= LEAST_SHARE * len(number))[number]
    assert len(labels) > 1
    return X[common], np.unique(number[common], return_inverse=True)[1]


def draws(X: Array, y: Array, n: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """Training rows of every class at least twice, and new rows, standardized by the training rows."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    twice = np.concatenate([order[y[order] == c][:2] for c in np.unique(y)])
    order = np.concatenate([twice, order[~np.isin(order, twice)]])
    rows, new = order[:n], order[n : n + NEW_ROWS]
    scaler = StandardScaler().fit(X[rows])
    return scaler.transform(X[rows]), y[rows], scaler.transform(X[new]), y[new]


def measured(folder: Path, name: str, n: int, seed: int, models: list[str]) -> dict[str, Figures]:
    """Held-out accuracy and log-loss, those of new rows, and seconds, by model."""
    X, y, new, truth = draws(*read(folder, name), n, seed)
    found: dict[str, Figures] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = KernelFisherClassifier(centers="all").fit(X, y).kernel_
        for model in models:
            start = time.process_time()
            fitted = MODELS[model](kernel, n).fit(X, y)
            seconds = time.process_time() - start
            index = getattr(fitted, "loo_index_", np.arange(n))
            P, Q, classes = fitted.loo_proba_, fitted.predict_proba(new), fitted.classes_
            held = float((classes[P.argmax(axis=1)] == y[index]).mean()), log_loss(y[index], P, labels=classes)
            found[model] = (*held, fitted.score(new, truth), log_loss(truth, Q, labels=classes), seconds)
    return found


def difference(values: Array) -> tuple[float, float]:
    """The mean, and two standard errors of it."""
    return float(values.mean()), 2.0 * float(values.std(ddof=1)) / len(values) ** 0.5


def shown(values: Array) -> str:
    mean, error = difference(values)
    return f"{mean:+.4f} ± {error:.4f}{'' if abs(mean) <= error else ' !'}"


def within(values: Array) -> bool:
    mean, error = difference(values)
    return abs(mean) <= error


class Store:
    """Figures by set, rows, draw and model, in a file if one is named."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.found = path, dict[tuple[str, int, int, str], Figures]()
        if path is not None and path.exists():
            with path.open() as file:
                for name, n, seed, model, *figures in csv.reader(file):
                    self.found[name, int(n), int(seed), model] = tuple(map(float, figures))  # type: ignore[assignment]

    def add(self, name: str, n: int, seed: int, figures: dict[str, Figures]) -> None:
        for model, values in figures.items():
            self.found[name, n, seed, model] = values
            if self.path is not None:
                with self.path.open("a", newline="") as file:
                    csv.writer(file).writerow([name, n, seed, model, *(f"{value:.6f}" for value in values)])

    def of(self, model: str, n: int, name: str | None = None) -> Array:
        """Figures (d, 5) of the draws of a set, None: of all, in one order."""
        keys = sorted(key for key in self.found if key[1] == n and key[3] == model and name in (None, key[0]))
        return np.array([self.found[key] for key in keys])


def lines(store: Store, rows: list[int], models: list[str], names: list[str]) -> list[list[object]]:
    found: list[list[object]] = []
    for model in models:
        for n in rows:
            F = store.of(model, n)
            sets = [store.of(model, n, name) for name in names]
            count = [sum(within(S[:, i] - S[:, i + 2]) for S in sets if len(S) > 1) for i in (0, 1)]
            means = [f"{value:.4f}" for value in F.mean(axis=0)]
            gaps = shown(F[:, 0] - F[:, 2]), shown(F[:, 1] - F[:, 3])
            sets_within = [f"{one} of {len(sets)}" for one in count]
            found.append(
                [model, n, means[2], gaps[0], sets_within[0], means[3], gaps[1], sets_within[1], means[4]]
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the archives")
    parser.add_argument("--rows", nargs="+", type=int, default=[300, 600, 1200])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--store", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    choices = parser.parse_args()
    store = Store(choices.store)

    def missing(name: str, n: int, seed: int) -> list[str]:
        return [model for model in choices.models if (name, n, seed, model) not in store.found]

    wanted = [(name, n, seed) for n in choices.rows for seed in range(choices.draws) for name in choices.sets]
    tasks = [(*key, missing(*key)) for key in wanted if missing(*key)]
    found = Parallel(choices.jobs, return_as="generator")(delayed(measured)(choices.data, *task) for task in tasks)
    for (name, n, seed, _), figures in zip(tasks, found):
        store.add(name, n, seed, figures)
    print(heading())
    print(f"{choices.draws} draws of {len(choices.sets)} sets, {NEW_ROWS} new rows; held-out minus new rows\n")
    header = ("", "rows", "accuracy", "difference", "sets", "log-loss", "difference", "sets", "seconds")
    print(table(lines(store, choices.rows, choices.models, choices.sets), header))
    print("\nlog-loss of new rows, centers selected by targets minus as many at random")
    for ours, theirs in PAIRS:
        if ours in choices.models and theirs in choices.models:
            gaps = [store.of(ours, n)[:, 3] - store.of(theirs, n)[:, 3] for n in choices.rows]
            print(f"{ours}: " + ", ".join(f"{n} rows {shown(gap)}" for n, gap in zip(choices.rows, gaps)))


if __name__ == "__main__":
    main()
