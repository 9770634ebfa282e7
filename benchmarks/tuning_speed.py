"""What self-tuning costs: against GridSearchCV(SVC) over as many pairs, and against the bare eigendecompositions.

At each n, in one process and one run: the default fit; GridSearchCV over SVC with the same number of (gamma, C)
pairs and 5 folds; and as many plain ``scipy.linalg.eigh`` calls on (n, n) kernel matrices as there are gammas.
--quick times every tenth C of the grid, in all gammas, and multiplies: an SVC search of 2625 fits takes long.
"""

import argparse
import re
import time

import numpy as np
import scipy.linalg
from common import heading, svc_search, table

from mercer import KernelFisherClassifier
from mercer.datasets import make_ringnorm
from mercer.kernels import RBF
from mercer.tuning import ALPHAS


def seconds(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def bare(X) -> float:
    """One eigendecomposition for each kernel of the search; the kernel matrices are not timed."""
    matrices = (kernel.block(X, X) for kernel in RBF(gamma="loo").candidates(X))
    return sum(seconds(lambda K=K: scipy.linalg.eigh(K)) for K in matrices)


def search(X, y, *, every: int) -> float:
    """GridSearchCV over all gammas and every so-manieth C, times that number."""
    grid = svc_search(X)
    C = grid.param_grid["C"]
    grid.param_grid["C"] = C[every // 2 :: every]
    return seconds(lambda: grid.fit(X, y)) * len(C) / len(grid.param_grid["C"])


def measure(n: int, *, repeats: int, every: int) -> list[object]:
    X, y = make_ringnorm(n, random_state=0)
    fits, bares = [], []
    for _ in range(repeats):
        fits.append(seconds(lambda: KernelFisherClassifier().fit(X, y)))
        bares.append(bare(X))
    peer = search(X, y, every=every)
    ours, floor = min(fits), min(bares)
    made = decompositions(KernelFisherClassifier(random_state=0).fit(X, y))
    return [n, ours, made, floor, ours / floor, f"{peer:.0f}", f"{peer / ours:.0f}"]


def decompositions(model) -> str:
    """How many matrices of which size the fit decomposed, from its report."""
    searched = re.findall(r"(?:(\d+) x \d+ kernels and alphas|\d+ alphas) on (\d+) rows", model.report_.searched)
    sizes = [(int(kernels or 1), int(rows)) for kernels, rows in searched]
    if sizes[-1][0] > 1:
        sizes.append((1, sizes[-1][1]))
    return " + ".join(f"{kernels} of {rows}" for kernels, rows in sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    KernelFisherClassifier().fit(*make_ringnorm(100, random_state=1))
    rows = [measure(n, repeats=args.repeats, every=10 if args.quick else 1) for n in args.sizes]
    pairs = f"{len(RBF(gamma='loo').candidates(np.eye(3)))} gammas x {len(ALPHAS)} penalties"
    print(heading() + f"\nringnorm, {pairs}, best of {args.repeats}; seconds")
    header = [
        "n",
        "self-tuned fit",
        "decompositions",
        "15 bare eigh",
        "fit / eigh",
        "GridSearchCV",
        "GridSearchCV / fit",
    ]
    print(table(rows, header))


if __name__ == "__main__":
    main()
