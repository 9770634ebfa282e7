"""What self-tuning costs: against one bare eigendecomposition of all rows, and against GridSearchCV(SVC).

At each n, in one process and one run: the default fit and one plain ``scipy.linalg.eigh`` of the (n, n) kernel
matrix, with its default arguments, in turn; and, up to --search-rows rows, GridSearchCV over SVC with 5 folds.
--quick times every tenth C of the grid, in all gammas, and multiplies: an SVC search of 2625 fits takes long.
"""

import argparse

import scipy.linalg
from common import best_in_turn, heading, kernel_matrix, svc_search, table, timed

from mercer import KernelFisherClassifier
from mercer.datasets import make_ringnorm


def search(X, y, *, every: int) -> float:
    """GridSearchCV over all gammas and every so-manieth C, times that number."""
    grid = svc_search(X)
    C = grid.param_grid["C"]
    grid.param_grid["C"] = C[every // 2 :: every]
    return timed(lambda: grid.fit(X, y)) * len(C) / len(grid.param_grid["C"])


def measure(n: int, *, repeats: int, search_rows: int, every: int) -> list[object]:
    X, y = make_ringnorm(n, random_state=0)
    K = kernel_matrix(X)
    model = KernelFisherClassifier(random_state=0)
    seconds = best_in_turn(repeats, fit=lambda: model.fit(X, y), eigh=lambda: scipy.linalg.eigh(K))
    ours, bare = seconds["fit"], seconds["eigh"]
    peer = search(X, y, every=every) if n <= search_rows else None
    times_faster = None if peer is None else f"{peer / ours:.0f}"
    return [n, ours, bare, ours / bare, peer, times_faster]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 4000])
    parser.add_argument("--search-rows", type=int, default=2000, help="the largest size with GridSearchCV")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    KernelFisherClassifier().fit(*make_ringnorm(100, random_state=1))
    every = 10 if args.quick else 1
    rows = [measure(n, repeats=args.repeats, search_rows=args.search_rows, every=every) for n in args.sizes]
    grid = svc_search(make_ringnorm(100, random_state=1)[0]).param_grid
    pairs = f"GridSearchCV(SVC) over {len(grid['gamma'])} gammas x {len(grid['C'])} penalties"
    timing = f"fit and eigh the best of {args.repeats}, in turn; seconds"
    print(heading() + f"\nringnorm, {pairs}; {timing}")
    header = ["n", "self-tuned fit", "bare eigh", "fit / eigh", "GridSearchCV", "GridSearchCV / fit"]
    print(table(rows, header))


if __name__ == "__main__":
    main()
