"""Whether equal rows give equal models, and what the order of the rows changes.

Generated tables of six columns in different units, three of which matter; the default classifier and regressor.
First table: bits of a second fit in this process, and of one in a process with other threads of BLAS. Second
table: the same rows in other orders: how many of the fits make the same choices (class of the kernel; its width,
the sum of its gammas, and alpha to a part in a million; whether relevances were learned; number of centers;
whether probabilities come from the logistic loss), the largest ratios of widths and of alphas, by how much
predictions of new rows differ (root mean square and largest, in standard deviations of the predictions), and by
how much their log-loss or squared error is larger, in per cent: the mean of the orders.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import blas_threads, heading, table
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import log_loss, mean_squared_error

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.kernels import Kernel
from mercer.kernels._base import kind_of

Array = NDArray[Any]
Model = KernelFisherClassifier | KernelRidgeRegressor
MODELS: dict[str, type[Model]] = {"classifier": KernelFisherClassifier, "regressor": KernelRidgeRegressor}
SIZES = (300, 3000, 30_000)
# Other orders of the rows, for each size.
ORDERS = (8, 3, 2)
NEW_ROWS = 2000
# Numbers are the same if their ratio is one to this precision.
SAME = 1e-6
# What is compared bit by bit.
PARTS = ("coefficients", "centers", "kernel", "new rows")


def rows(name: str, n: int, seed: int) -> tuple[Array, Array]:
    """A table of six columns, and classes or values that depend on three of them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    counts = rng.poisson(4.0, size=n)
    X = np.column_stack(
        [20.0 + 5.0 * Z[:, 0], 1000.0 * np.exp(Z[:, 1]), 0.01 * Z[:, 2], counts, 50.0 * Z[:, 4], np.exp(Z[:, 5])]
    )
    f = np.sin(2.0 * Z[:, 0]) + Z[:, 1] * np.cos(Z[:, 2])
    if name == "classifier":
        return X, (rng.uniform(size=n) < expit(3.0 * f - 1.0)).astype(np.int64)
    return X, f + 0.3 * rng.normal(size=n)


def fitted(name: str, n: int, order: Array | None = None) -> Model:
    """The default fit, to the rows in an order."""
    X, y = rows(name, n, 0)
    return MODELS[name]().fit(*((X, y) if order is None else (X[order], y[order])))


def predictions(name: str, model: Model) -> Array:
    """Probabilities of the second class, or values, of new rows."""
    X, _ = rows(name, NEW_ROWS, 1)
    return np.asarray(model.predict_proba(X)[:, 1] if name == "classifier" else model.predict(X))


def loss(name: str, P: Array) -> float:
    """Log-loss or mean squared error of predictions of new rows."""
    _, y = rows(name, NEW_ROWS, 1)
    return float((log_loss if name == "classifier" else mean_squared_error)(y, P))


def digests(name: str, model: Model) -> list[str]:
    """A hash of the bits of each part."""
    functions = [model.dual_coef_, model.intercept_]
    if getattr(model, "logit_coef_", None) is not None:
        functions += [model.logit_coef_, model.logit_intercept_]
    parts = [functions, [model.X_fit_], numbers(model.kernel_), [predictions(name, model)]]
    return [hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in part)).hexdigest() for part in parts]


def numbers(kernel: Kernel) -> list[Array]:
    """Classes and parameters of a kernel, and of those within, as arrays."""
    found = [np.array(str(kind_of(kernel)))]
    for name, value in sorted(kernel.get_params(deep=True).items()):
        found.append(np.array(f"{name}: {type(value).__name__}"))
        if isinstance(value, np.ndarray | float | int | str):
            found.append(np.asarray(value))
    return found


def elsewhere(name: str, n: int, threads: int) -> dict[str, Any]:
    """Digests of the fit in another process with a number of threads of BLAS, and how many it has."""
    environment = os.environ | {f"{library}_NUM_THREADS": str(threads) for library in ("OPENBLAS", "OMP", "MKL")}
    command = [sys.executable, __file__, "--digests", name, "--sizes", str(n)]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


@dataclass(frozen=True)
class Choices:
    """What a fit chose, and what follows for new rows."""

    kernel: str
    width: float
    alpha: float
    relevances: bool
    centers: int
    logits: bool
    new: Array

    @classmethod
    def of(cls, name: str, model: Model) -> "Choices":
        kernel, relevance = model.kernel_, model.relevance_
        inner = getattr(kernel, "kernel", None)
        return cls(
            kernel=type(kernel).__name__ if inner is None else f"{type(kernel).__name__}({type(inner).__name__})",
            width=float(np.sum(model.gamma_)),
            alpha=float(model.alpha_),
            relevances=relevance is not None and bool(np.ptp(relevance) > 0),
            centers=len(model.X_fit_),
            logits=getattr(model, "logit_coef_", None) is not None,
            new=predictions(name, model),
        )


def ratio(a: float, b: float) -> float:
    return max(a / b, b / a)


def line_of_orders(name: str, n: int, first: Choices, others: list[Choices]) -> list[object]:
    """How many of the other orders choose what the first one does, and how far they differ."""
    widths, alphas = ([ratio(getattr(first, a), getattr(o, a)) for o in others] for a in ("width", "alpha"))
    same = [
        [first.kernel == o.kernel for o in others],
        [each < 1.0 + SAME for each in widths],
        [each < 1.0 + SAME for each in alphas],
        *([getattr(first, a) == getattr(o, a) for o in others] for a in ("relevances", "centers", "logits")),
    ]
    spread = first.new.std()
    differences = np.array([np.abs(first.new - o.new) for o in others]) / spread
    before, after = loss(name, first.new), np.mean([loss(name, o.new) for o in others])
    return [
        f"{name}, {n:,}",
        *(f"{sum(each)}/{len(each)}" for each in same),
        f"{max(widths):.3f}",
        f"{max(alphas):.3f}",
        f"{np.sqrt((differences**2).mean()):.0e}",
        f"{differences.max():.0e}",
        f"{100.0 * (after / before - 1.0):+.2f}",
    ]


def chosen(name: str, n: int, model: Model) -> Choices:
    """What a fit chose, which is printed."""
    c = Choices.of(name, model)
    print(
        f"{name}, {n:,}: {c.kernel}, width {c.width:.6g}, alpha {c.alpha:.6g}, relevances {c.relevances}, "
        f"{c.centers} centers, logistic {c.logits}, loss {loss(name, c.new):.5f}",
        flush=True,
    )
    return c


def compare(name: str, n: int, orders: int, threads: int) -> tuple[list[object], list[object] | None]:
    """A line of each table, None if there are no other orders."""
    start = time.perf_counter()
    model = fitted(name, n)
    seconds, own = time.perf_counter() - start, digests(name, model)
    first = chosen(name, n, model)
    again, other = digests(name, fitted(name, n)), elsewhere(name, n, threads)
    equal = [
        "yes" if len({*those}) == 1 else "here" if those[0] == those[1] else "no"
        for those in zip(own, again, other["digests"], strict=True)
    ]
    rng = np.random.default_rng(2)
    others = [chosen(name, n, fitted(name, n, rng.permutation(n))) for _ in range(orders)]
    bits = [f"{name}, {n:,}", *equal, f"{blas_threads()}, {other['threads']}", seconds]
    return bits, line_of_orders(name, n, first, others) if others else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--orders", nargs="+", type=int, default=ORDERS, help="other orders for each size")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--digests", choices=MODELS, help="only the digests of one fit")
    options = parser.parse_args()
    if options.digests:
        found = digests(options.digests, fitted(options.digests, options.sizes[0]))
        print(json.dumps({"digests": found, "threads": blas_threads()}))
        return
    print(heading(), flush=True)
    bits: list[list[object]] = []
    choices: list[list[object]] = []
    # In the other process.
    threads = 2 if blas_threads() == 1 else 1
    for n, orders in zip(options.sizes, options.orders, strict=True):
        for name in options.models:
            line, line_of_choices = compare(name, n, orders, threads)
            bits.append(line)
            choices += [] if line_of_choices is None else [line_of_choices]
    print(f"\n{table(bits, ['equal bits', *PARTS, 'threads', 'seconds'])}\n")
    same = ("kernel", "width", "alpha", "relevances", "centers", "logistic")
    if choices:
        print(table(choices, ["other orders", *same, "width x", "alpha x", "rms", "largest", "loss %"]))


if __name__ == "__main__":
    main()
