"""Whether fits are those of another revision: ``python benchmarks/same_fits.py revision`` (of git, in a checkout).

Fits of all families with given kernels to the same rows, by both: the largest difference of what they answer, in
units of the largest answer.
"""

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mercer as m
from mercer.kernels import RBF, BagOfWords, Laplacian, Linear

ROOT = Path(__file__).resolve().parents[1]
Array = NDArray[Any]


def fits() -> dict[str, Callable[[], Array]]:
    """What each fit answers, by its name."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(200, 4)), rng.normal(size=(50, 4))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1]
    y, three = f + 0.2 * rng.normal(size=200) > 0.0, np.digitize(f, [-0.5, 0.5])
    real, weight = f + 0.1 * rng.normal(size=200), rng.integers(1, 4, 200)
    many, labels = rng.normal(size=(3000, 4)), rng.integers(2, size=3000)
    words = [" ".join(rng.choice(list("abcdefgh"), 6)) for _ in range(80)]
    k, loo = RBF(gamma=0.3), RBF(gamma="loo")

    def proba(model: Any, *rows: Any, **how: Any) -> Callable[[], Array]:
        return lambda: np.asarray(model.fit(*rows, **how).predict_proba(new))

    def values(model: Any, *rows: Any, **how: Any) -> Callable[[], Array]:
        return lambda: np.asarray(model.fit(*rows, **how).predict(new), dtype=np.float64)

    def coordinates(model: Any, *rows: Any, **how: Any) -> Callable[[], Array]:
        return lambda: np.abs(model.fit(*rows, **how).transform(new))

    def batches(model: Any) -> Array:
        for some in np.split(np.arange(200), 4):
            model.partial_fit(X[some], real[some])
        return np.asarray(model.predict(new))

    fisher, ridge = m.KernelFisherClassifier, m.KernelRidgeRegressor
    return {
        "Fisher, alpha given": proba(fisher(k, alpha=0.5), X, y),
        "Fisher, width and alpha by leave-one-out": proba(fisher(loo), X, y),
        "Fisher, three classes": proba(fisher(loo), X, three),
        "Fisher, weights": proba(fisher(k), X, y, sample_weight=weight),
        "Fisher, penalty of coefficients": proba(fisher(k, penalty="coef"), X, y),
        "Fisher, isotonic": proba(fisher(k, calibration="isotonic"), X, y),
        "Fisher, 40 centers": proba(fisher(k, centers=40, random_state=0), X, y),
        "Fisher, 100 centers of 3000 rows": proba(fisher(k, centers=100, random_state=0), many, labels),
        "Fisher, folds": proba(fisher(k, cv=5), X, y),
        "ridge": values(ridge(k), X, real),
        "ridge, linear": values(ridge(Linear()), X, real),
        "ridge, Laplacian": values(ridge(Laplacian(gamma=0.2)), X, np.column_stack([real, f])),
        "ridge, four batches": lambda: batches(ridge(k, alpha=0.1, centers=X[:30])),
        "words": lambda: np.asarray(fisher(BagOfWords()).fit(words, np.arange(80) % 2).predict_proba(words[:9])),
        "machine, logistic": proba(m.KernelMachineClassifier(k, alpha=0.5), X, y),
        "machine, hinge": proba(m.KernelMachineClassifier(k, loss="hinge", alpha=0.5), X, y),
        "machine, quantile": values(m.KernelMachineRegressor(k, loss="pinball", quantile=0.3, alpha=0.5), X, real),
        "boosting": values(m.LPBoostClassifier(nu=0.5), X, y),
        "sparse, classes": proba(m.SparseFisherClassifier(k, max_centers=10, alpha=0.1), X, y),
        "sparse, values": values(m.SparseKernelRegressor(k, max_centers=10, alpha=0.1), X, real),
        "one by one, values": values(m.OnlineKernelRegressor(k), X, real),
        "components": coordinates(m.KernelPCA(3, k), X),
        "oriented components": coordinates(m.OrientedKernelPCA(2, k, noise=np.tanh), X),
    }


def answers() -> dict[str, Array | str]:
    """Those of this version; a fit that it does not have is named as it is refused."""
    found: dict[str, Array | str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fit in fits().items():
            try:
                found[name] = fit()
            except (TypeError, ValueError) as error:
                found[name] = str(error)
    return found


def answers_at(source: Path) -> dict[str, Array | str]:
    """Those of the version in a folder of sources."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers"
        environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, __file__, "--store", str(file)], env=environment, check=True)
        found: dict[str, Array | str] = pickle.loads(file.read_bytes())
        return found


def compare(revision: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "there"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", there, revision], cwd=ROOT, check=True)
        try:
            before, now = answers_at(there / "src"), answers_at(ROOT / "src")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", there], cwd=ROOT, check=True)
    for name, answer in now.items():
        other = before[name]
        if isinstance(answer, str) or isinstance(other, str):
            print(f"{name:42} {answer if isinstance(answer, str) else other}")
            continue
        difference = float(np.abs(answer - other).max() / np.abs(other).max())
        print(f"{name:42} {difference:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default="HEAD")
    parser.add_argument("--store", type=Path)
    arguments = parser.parse_args()
    if arguments.store is None:
        compare(arguments.revision)
    else:
        arguments.store.write_bytes(pickle.dumps(answers()))
