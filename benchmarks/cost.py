"""What a default fit costs, by the number of rows: seconds, peak memory of arrays, seconds to predict."""

import argparse
import time
import tracemalloc

from common import heading, table

from mercer import KernelFisherClassifier
from mercer.datasets import make_ringnorm


def measure(n: int, repeats: int) -> list[object]:
    X, y = make_ringnorm(n, random_state=0)
    X_new, _ = make_ringnorm(10_000, random_state=1)
    fits = []
    for _ in range(repeats):
        start = time.perf_counter()
        model = KernelFisherClassifier(random_state=0).fit(X, y)
        fits.append(time.perf_counter() - start)
    start = time.perf_counter()
    model.predict(X_new)
    predict = time.perf_counter() - start
    return [n, min(fits), f"{peak(X, y) / 2**20:.0f}", predict]


def peak(X, y) -> int:
    """Bytes of arrays held at once; tracing slows the fit, so it is not timed."""
    tracemalloc.start()
    KernelFisherClassifier(random_state=0).fit(X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000, 2000, 4000])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    KernelFisherClassifier().fit(*make_ringnorm(50, random_state=1))
    rows = [measure(n, args.repeats) for n in args.sizes]
    print(heading() + "\nringnorm, 20 features, KernelFisherClassifier()")
    print(table(rows, ["rows", "fit s", "peak MiB", "predict 10,000 rows s"]))


if __name__ == "__main__":
    main()
