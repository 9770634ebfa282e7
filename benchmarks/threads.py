"""Threads that read and write one model: errors, torn answers, rows that were lost.

    python benchmarks/threads.py --seconds 30

Every estimator is asked by 8 threads directly after it has changed, is then written to by one thread while seven
read, and where it has partial_fit is given rows by 8 threads at once. An answer is torn if it is that of no state
which the same calls, one after the other, lead to.
"""

import argparse
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import heading, table
from sklearn.base import clone

from mercer import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.datasets import make_waveform
from mercer.kernels import RBF

N_THREADS = 8
BATCH = 60
N_BATCHES = 4
KERNEL = RBF(gamma=0.05)
MODELS = {
    "KernelFisherClassifier": KernelFisherClassifier(KERNEL, centers=15, random_state=0),
    "KernelFisherClassifier, every row": KernelFisherClassifier(KERNEL, centers="all"),
    "KernelRidgeRegressor": KernelRidgeRegressor(KERNEL, centers=15, random_state=0),
    "KernelRidgeRegressor, every row": KernelRidgeRegressor(KERNEL, centers="all"),
    "OnlineFisherClassifier": OnlineFisherClassifier(KERNEL, max_centers=15),
    "OnlineKernelRegressor": OnlineKernelRegressor(KERNEL, max_centers=15),
    "PairwiseClassifier": PairwiseClassifier(KernelFisherClassifier(KERNEL, centers=10, random_state=0)),
    "SparseFisherClassifier": SparseFisherClassifier(KERNEL, max_centers=10, alpha=0.1),
    "SparseKernelRegressor": SparseKernelRegressor(KERNEL, max_centers=10, alpha=0.1),
}
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "predict_interval",
    "predict_std",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="of one writer and seven readers, each model")
    parser.add_argument("--calls", type=int, default=200, help="of each of eight threads, each method")
    options = parser.parse_args()
    print(heading())
    rows = [[name, *measure(model, options)] for name, model in MODELS.items()]
    header = ("", "calls after a change", "errors", "differ", "calls while written", "errors", "torn", "rows lost")
    print(table(rows, header))


def measure(model: Any, options: argparse.Namespace) -> list[Any]:
    """The figures of one model."""
    batches = make_batches()
    X = batches[0][0][:20]
    after = [read_after_change(model, batches, method, X, options.calls) for method in methods(model)]
    while_written = read_while_written(model, batches, X, options.seconds)
    lost = rows_lost(model, batches) if goes_on(model) else None
    return [*(sum(part) for part in zip(*after)), *while_written, lost]


def make_batches() -> list[tuple[Any, Any]]:
    X, y = make_waveform(BATCH * N_BATCHES, random_state=0)
    return [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, len(y), BATCH)]


def methods(model: Any) -> list[str]:
    return [name for name in METHODS if hasattr(model, name)]


def goes_on(model: Any) -> bool:
    return hasattr(model, "partial_fit") and getattr(model, "centers", None) != "all"


def changes(model: Any, batches: list[tuple[Any, Any]]) -> list[Callable[[Any], Any]]:
    """What a writer does, over and over: fit, and where the model can, add and remove rows."""
    if not goes_on(model):
        return [lambda m, b=batch: m.fit(*b) for batch in batches]
    steps = [lambda m: m.fit(*batches[0]), *(lambda m, b=batch: m.partial_fit(*b) for batch in batches[1:])]
    return [*steps, lambda m: m.remove(*batches[1])] if hasattr(model, "remove") else steps


def read_after_change(
    model: Any, batches: list[tuple[Any, Any]], method: str, X: Any, calls: int
) -> tuple[int, int, int]:
    """Calls, errors, and answers that differ from the first, of eight threads after the model has changed."""
    model = clone(model)
    for change in changes(model, batches)[:2]:
        change(model)
    answers: list[Any] = []
    together(lambda: [answers.append(answer(model, method, X)) for _ in range(calls)])
    good = [a for a in answers if not isinstance(a, Exception)]
    differ = sum(not np.array_equal(good[0], a) for a in good) if good else 0
    return len(answers), len(answers) - len(good), differ


def read_while_written(model: Any, batches: list[tuple[Any, Any]], X: Any, seconds: float) -> tuple[int, int, int]:
    """Calls, errors, and answers of no state, of seven readers beside one writer."""
    known = states(model, batches, X)
    model = clone(model).fit(*batches[0])
    stop = time.monotonic() + seconds
    answers: list[tuple[str, Any]] = []

    def write() -> None:
        while time.monotonic() < stop:
            for change in changes(model, batches):
                change(model)

    def read() -> None:
        while time.monotonic() < stop:
            for method in known:
                answers.append((method, answer(model, method, X)))

    run_all([write, *[read] * (N_THREADS - 1)])
    errors = sum(isinstance(a, Exception) for _, a in answers)
    torn = sum(not isinstance(a, Exception) and not among(a, known[method]) for method, a in answers)
    return len(answers), errors, torn


def states(model: Any, batches: list[tuple[Any, Any]], X: Any) -> dict[str, list[Any]]:
    """The answers of each method in all states that the writer leads to, twice around."""
    model, known = clone(model), {method: [] for method in methods(model)}
    for change in changes(model, batches) * 2:
        change(model)
        for method, answers in known.items():
            answers.append(getattr(model, method)(X))
    return known


def rows_lost(model: Any, batches: list[tuple[Any, Any]]) -> int:
    """Rows missing after eight threads have added all batches at once."""
    model = clone(model).partial_fit(*batches[0])
    together(lambda: [model.partial_fit(*batch) for batch in batches])
    expected = BATCH * (1 + N_THREADS * len(batches))
    return expected - n_rows(model)


def n_rows(model: Any) -> int:
    if isinstance(model, PairwiseClassifier):
        # Every row is in all pairs of its class.
        return sum(map(n_rows, model.estimators_)) // (len(model.classes_) - 1)
    return model.n_rows_seen_ if hasattr(model, "n_rows_seen_") else model.moments_.n_rows


def answer(model: Any, method: str, X: Any) -> Any:
    try:
        return getattr(model, method)(X)
    except Exception as error:
        return error


def among(value: Any, known: list[Any]) -> bool:
    """Whether the value is one of these but for the last digits, which other BLAS threads may change."""
    if value.dtype.kind != "f":
        return any(np.array_equal(value, one) for one in known)
    return any(np.allclose(value, one, rtol=1e-8, atol=1e-8, equal_nan=True) for one in known)


def together(work: Callable[[], Any]) -> None:
    run_all([work] * N_THREADS)


def run_all(works: list[Callable[[], Any]]) -> None:
    start = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> None:
        start.wait()
        work()

    threads = [threading.Thread(target=begin, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
