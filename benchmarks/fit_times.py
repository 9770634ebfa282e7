"""Processor seconds of default fits, for the comparison of two versions: run it once with each of them."""

import argparse
import time
import warnings

import numpy as np
from common import heading, table
from sklearn.datasets import load_digits

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana, make_ringnorm, make_waveform

SETS = {
    "ringnorm, 300 rows": lambda: make_ringnorm(300, random_state=0),
    "banana, 400 rows": lambda: make_banana(400, random_state=0),
    "ringnorm, 1000 rows": lambda: make_ringnorm(1000, random_state=0),
    "waveform, 2000 rows": lambda: make_waveform(2000, random_state=0),
    "digits, 1797 rows": lambda: load_digits(return_X_y=True),
    "waveform, 20,000 rows": lambda: make_waveform(20_000, random_state=0, dtype=np.float32),
}


def seconds(X: np.ndarray, y: np.ndarray) -> float:
    start = time.process_time()
    KernelFisherClassifier(random_state=0).fit(X, y)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, help="only so many rows of each set")
    most = parser.parse_args().most
    warnings.simplefilter("ignore")
    print(heading(), flush=True)
    drawn = {name: [part[:most] for part in draw()] for name, draw in SETS.items()}
    rows = [[name, f"{min(seconds(X, y) for _ in range(3)):.2f}"] for name, (X, y) in drawn.items()]
    print(table(rows, ["default fit", "s"]))


if __name__ == "__main__":
    main()
