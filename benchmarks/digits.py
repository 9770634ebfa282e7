"""Digits, letters and pixels: test error with every row a center on the customary split, nothing tuned by hand.

Features of each set share one unit (grey values, pen positions, counts), so they are taken as they are, without
standardizing. Where the kernel matrix of all training rows does not fit --max-rows, a random part of them is
used, and the table says so. Published: SVM, OROLS and NPD from Andelić (2007), Table 5.2.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from common import heading, table

from mercer import KernelFisherClassifier
from mercer.datasets import read_digits

PUBLISHED = {
    # name: SVM, OROLS, NPD
    "optdigits": (2.73, 1.11, 1.2),
    "satimage": (7.8, 8.2, 8.1),
    "usps": (4.3, 4.4, 4.4),
    "pendigits": (2.5, 1.66, 1.95),
    "letter": (2.75, 2.61, 2.65),
}


def measure(folder: Path, name: str, max_rows: int) -> list[object]:
    X, y, X_test, y_test = read_digits(folder / name, name)
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:max_rows])
    start = time.perf_counter()
    model = KernelFisherClassifier(centers="all", random_state=0).fit(X[rows], y[rows])
    seconds = time.perf_counter() - start
    wrong = 100.0 * np.mean(model.predict(X_test) != y_test)
    left_out = 100.0 * (1.0 - model.loo_score_)
    share = "all" if len(rows) == len(y) else f"{len(rows)} of {len(y)}"
    print(f"  {name}: {wrong:.2f} %\n{model.report_}", flush=True)
    return [name, share, float(wrong), float(left_out), *PUBLISHED[name], seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with usps/usps.npz … letter/letter.npz")
    parser.add_argument("--sets", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--max-rows", type=int, default=16000)
    args = parser.parse_args()
    rows = [measure(args.data, name, args.max_rows) for name in args.sets]
    header = ["set", "training rows", "mercer", "left out", "SVM", "OROLS", "NPD", "fit s"]
    print("\n" + heading() + "\nTest error in %\n" + table(rows, header))


if __name__ == "__main__":
    main()
