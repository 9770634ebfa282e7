"""Learning curves of the default: more rows must not make a worse model, nor a fit that takes much longer.

Training rows are nested, test rows the same for all sizes. A column for each size: the mean loss of new rows,
log-loss or squared error in units of the variance, and seconds on one thread. "!" marks a rise by more than a
standard error of the paired difference of losses, or a time more than 2.5 times that of half of the rows.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import heading, table
from tabular import CLASSIFICATION, Array, Split, read
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier, KernelRidgeRegressor

SIZES = (500, 1000, 2000, 4000, 8000, 16000)
SETS = (
    "magic",
    "covtype_20k",
    "adult",
    "letter",
    "california_houses",
    "evans10_kin40k",
    "evans10_protein",
    "friedman_fried",
)
# A fit to twice as many rows may take this many times as long.
MOST_TIMES = 2.5


def losses_of(part: Split, n: int, *, classes: bool) -> tuple[Array, float]:
    """The loss of each test row by a fit to the first n training rows, and its seconds."""
    X, y, X_test, y_test = part
    if not classes:
        y, y_test = ((each - y.mean()) / y.std() for each in (y, y_test))
    model = (KernelFisherClassifier if classes else KernelRidgeRegressor)(random_state=0)
    with threadpool_limits(1):
        start = time.perf_counter()
        model.fit(X[:n], y[:n])
        seconds = time.perf_counter() - start
        if not classes:
            return (model.predict(X_test) - y_test) ** 2 / np.var(y_test), seconds
        P, known = model.predict_proba(X_test), np.isin(y_test, model.classes_)
        place = np.searchsorted(model.classes_, y_test[known])
        return -np.log(np.clip(P[known, place], 1e-12, 1.0)), seconds


def curve(folder: Path, name: str, sizes: Sequence[int]) -> list[list[str]]:
    """Losses and seconds for each size, in words."""
    part, classes = read(folder, name, 0, max(sizes)), name in CLASSIFICATION
    lines: list[list[str]] = [[name], ["  seconds"]]
    before: tuple[Array, float] | None = None
    for n in sizes:
        losses, seconds = losses_of(part, n, classes=classes)
        rises = slow = False
        if before is not None and len(before[0]) == len(losses):
            rise = losses - before[0]
            rises = bool(rise.mean() > rise.std() / len(rise) ** 0.5)
            slow = seconds > MOST_TIMES * before[1]
        before = losses, seconds
        lines[0].append(f"{losses.mean():.4f}{' !' if rises else '  '}")
        lines[1].append(f"{seconds:.1f}{' !' if slow else '  '}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    options = parser.parse_args()
    print(heading(), flush=True)
    rows: list[list[str]] = []
    for name in options.sets:
        rows += curve(options.data, name, options.sizes)
        print("  " + "  ".join(rows[-2]), "|", *rows[-1][1:], flush=True)
    print()
    print(table(rows, ["loss of new rows", *(f"{n:,}" for n in options.sizes)]))


if __name__ == "__main__":
    main()
