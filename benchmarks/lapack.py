"""Decompositions of this library beside those of NumPy and SciPy: seconds, the interpreter's lock, Ctrl-C, fits.

    python benchmarks/lapack.py --parts seconds lock fits

*Seconds*: the least of several calls, in turn: of the processor on one thread, by the clock on two. *Lock*: the
longest time for which another thread stood still, as a share of the call, the seconds until Ctrl-C was answered,
and the memory of one call in matrices of this size, besides its arguments. *Fits*: default fits in which routines
are replaced by those of NumPy and SciPy: of the processor on one thread, by the clock on two and for two at once.
Where other programs use the machine, ``--threads 1`` leaves out what only the clock can tell.
"""

import argparse
import ctypes
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.linalg
from common import heading, held, table, timed
from numpy.typing import NDArray
from scipy.linalg import lapack as of_scipy
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier
from mercer._linalg import eigen, lapack, limit_threads
from mercer._linalg.threads import one_blas_thread
from mercer.datasets import make_waveform

Array = NDArray[np.float64]
THREADS = (1, 2)
WAYS = ("mercer", "numpy", "scipy")
# Calls of each routine, by the number of rows from which there are fewer.
REPEATS = {0: 7, 1000: 4, 2000: 3, 4000: 1}
# Seconds of work before Ctrl-C.
WAITING = 0.1


def cholesky_upper(A: Array) -> int:
    """A = R'R in the upper triangle of A, column-major, by NumPy, which reads lower triangles."""
    return cholesky_lower(A.T)


def cholesky_lower(A: Array) -> int:
    try:
        A[:] = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return 1
    return 0


def invert_lower(L: Array) -> None:
    L[:], _ = of_scipy.dtrtri(L, lower=1)


def inverse_upper(R: Array) -> Array:
    return np.triu(of_scipy.dtrtri(R)[0])


def solve_triangular(R: Array, B: Array, *, lower: bool = False, transposed: bool = False) -> Array:
    return scipy.linalg.solve_triangular(R, B, lower=lower, trans=int(transposed), check_finite=False)


def cholesky_pivoted(A: Array, limit: float) -> tuple[NDArray[np.intp], int]:
    A[:], pivots, rank, _ = of_scipy.dpstrf(A, tol=limit)
    return pivots.astype(np.intp) - 1, rank


def symmetric_eigen(A: Array) -> tuple[Array, Array]:
    return np.linalg.eigh(A)


def singular_values(A: Array) -> tuple[Array, Array, Array, int]:
    return *np.linalg.svd(A, full_matrices=False), 0


# What stands in for each routine in fits, by the group that is replaced together.
REPLACED = {
    "eigenvectors": (symmetric_eigen, singular_values),
    "Cholesky factors": (cholesky_upper, cholesky_lower),
    "the rest": (invert_lower, inverse_upper, solve_triangular, cholesky_pivoted),
}


class Matrices:
    """A (n, n) symmetric, its factors, and a matrix of many columns, all column-major."""

    def __init__(self, n: int) -> None:
        X = np.random.default_rng(0).normal(size=(n, 5))
        self.A = np.asfortranarray(np.exp(-0.1 * scipy.spatial.distance.cdist(X, X, "sqeuclidean")) + np.eye(n))
        self.R = np.asfortranarray(np.linalg.cholesky(self.A).T)
        self.L = np.asfortranarray(self.R.T)

    def copied(self, function: Callable[..., Any], *more: Any) -> Callable[[], Any]:
        """A call of what destroys its argument."""
        return lambda: function(self.A.copy(order="F"), *more)

    def routines(self) -> dict[str, dict[str, Callable[[], Any]]]:
        """Each routine as it is here, in NumPy where there is one, and in SciPy."""
        A, R, L, n = self.A, self.R, self.L, len(self.A)
        return {
            "Cholesky factor": {
                "mercer": self.copied(lapack.cholesky_upper),
                "numpy": lambda: np.linalg.cholesky(A),
                "scipy": lambda: scipy.linalg.cholesky(A, check_finite=False),
            },
            "inverse of a factor": {
                "mercer": lambda: lapack.inverse_upper(R),
                "numpy": lambda: np.linalg.inv(R),
                "scipy": lambda: of_scipy.dtrtri(R),
            },
            "the same in place": {
                "mercer": lambda: lapack.invert_lower(L.copy(order="F")),
                "scipy": lambda: of_scipy.dtrtri(L.copy(order="F"), lower=1, overwrite_c=1),
            },
            "triangular solve, n columns": {
                "mercer": lambda: lapack.solve_triangular(R, A),
                "numpy": lambda: np.linalg.solve(R, A),
                "scipy": lambda: scipy.linalg.solve_triangular(R, A, check_finite=False),
            },
            "triangular solve, 1 column": {
                "mercer": lambda: lapack.solve_triangular(R, A[:, :1]),
                "numpy": lambda: np.linalg.solve(R, A[:, :1]),
                "scipy": lambda: scipy.linalg.solve_triangular(R, A[:, :1], check_finite=False),
            },
            "pivoted Cholesky factor": {
                "mercer": self.copied(lapack.cholesky_pivoted, 0.0),
                "scipy": lambda: of_scipy.dpstrf(A, tol=0.0),
            },
            "eigenvectors": {
                "mercer": self.copied(eigen.symmetric_eigen),
                "numpy": lambda: np.linalg.eigh(A),
                "scipy": lambda: scipy.linalg.eigh(A, driver="evd", check_finite=False),
            },
            "singular vectors of (n, n / 2)": {
                "mercer": lambda: eigen.singular(A[:, : n // 2].copy(order="F"), noise=0.0),
                "numpy": lambda: np.linalg.svd(A[:, : n // 2], full_matrices=False),
                "scipy": lambda: scipy.linalg.svd(A[:, : n // 2], full_matrices=False, check_finite=False),
            },
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--parts", nargs="+", default=["seconds", "lock", "fits"], choices=["seconds", "lock", "fits"]
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 600, 1000, 2000, 4000])
    parser.add_argument("--both", type=int, default=1000, help="rows up to which BLAS is given two threads, too")
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS, choices=THREADS, help="of the seconds")
    parser.add_argument("--locked", type=int, default=2000, help="rows of the matrices whose lock is looked at")
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2000, 5000, 20_000], help="of the fits")
    parser.add_argument("--repeats", type=int, default=3, help="of each fit")
    options = parser.parse_args()
    print(heading())
    for part in options.parts:
        {"seconds": print_seconds, "lock": print_lock, "fits": print_fits}[part](options)


def print_seconds(options: argparse.Namespace) -> None:
    print("\nMilliseconds: of the processor on one thread, and by the clock on two")
    routines = [(name, n, ways) for n in options.sizes for name, ways in Matrices(n).routines().items()]
    measured = {
        t: [seconds(n, ways, t, others=n <= options.both) for _, n, ways in routines] for t in options.threads
    }
    rows = [
        [name, n, *(found[i].get(way) for found in measured.values() for way in WAYS)]
        + [found[i]["slower"] for found in measured.values()]
        for i, (name, n, _) in enumerate(routines)
    ]
    columns = [f"{name}, {t}" for t in measured for name in WAYS]
    print(table(rows, ("", "rows", *columns, *(f"slower, {t}" for t in measured))))


def seconds(n: int, ways: dict[str, Callable[[], Any]], threads: int, *, others: bool) -> dict[str, float]:
    """Milliseconds of each way, and how many times longer the faster one of the others takes on one thread.

    Here other ways have one thread: with two, their bits depend on it. ``others``: measure them with two as well.
    """
    repeats = REPEATS[max(least for least in REPEATS if least <= n)]
    alone = {way: limited(call, 1, own=True) for way, call in ways.items()}
    if threads == 1:
        found = best_of(repeats, time.process_time, alone)
        slower = min(found[way] for way in ways if way != "mercer") / found["mercer"]
    else:
        some = {way: limited(call, threads, own=way == "mercer") for way, call in ways.items()}
        found = best_of(repeats, time.perf_counter, some if others else {"mercer": some["mercer"]})
        one = best_of(repeats, time.perf_counter, {way: alone[way] for way in ways if way != "mercer"})
        slower = min(one.values()) / found["mercer"]
    return {way: 1e3 * x for way, x in found.items()} | {"slower": slower}


def best_of(repeats: int, clock: Callable[[], float], calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Least seconds of each call by this clock, one after the other, again and again."""
    runs = [{name: passed(clock, call) for name, call in calls.items()} for _ in range(repeats)]
    return {name: min(run[name] for run in runs) for name in calls}


def passed(clock: Callable[[], float], call: Callable[[], Any]) -> float:
    start = clock()
    call()
    return clock() - start


def limited(call: Callable[[], Any], threads: int, *, own: bool) -> Callable[[], Any]:
    """The call where this library, or BLAS, has so many threads."""

    def run() -> Any:
        with limit_threads(threads) if own else threadpool_limits(threads, user_api="blas"):
            return call()

    return run


def print_lock(options: argparse.Namespace) -> None:
    n = options.locked
    print(f"\nWhile a matrix of {n} rows is computed with, on one thread")
    with threadpool_limits(1, user_api="blas"):
        rows = [
            [name, way, timed(call), stands_still(call), until_answered(call), matrices_held(call, n)]
            for name, ways in Matrices(n).routines().items()
            if not name.endswith("1 column")
            for way, call in ways.items()
        ]
    print(table(rows, ("", "by", "seconds", "stands still", "Ctrl-C after", "matrices")))


def stands_still(call: Callable[[], Any]) -> float:
    """The longest time for which this thread could not run while another calls, as a share of that call."""
    worker, longest = threading.Thread(target=limited(call, 1, own=True)), 0.0
    start = last = time.perf_counter()
    worker.start()
    running = True
    while running:
        time.sleep(1e-3)
        running, now = worker.is_alive(), time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest / (last - start)


def until_answered(call: Callable[[], Any]) -> float | None:
    """Seconds from Ctrl-C until it is answered; None if the call ends before.

    The signal is that of a timer: a thread that sends one would wait for the interpreter's lock.
    """
    before, n_threads = signal.signal(signal.SIGALRM, signal.default_int_handler), threading.active_count()
    due = time.perf_counter() + WAITING
    after = None
    try:
        signal.setitimer(signal.ITIMER_REAL, WAITING)
        limited(call, 1, own=True)()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:
        after = time.perf_counter() - due
    signal.signal(signal.SIGALRM, before)
    # What was left goes on computing, and would slow down the next call.
    while threading.active_count() > n_threads:
        time.sleep(0.01)
    return after


def matrices_held(call: Callable[[], Any], n: int) -> float:
    """The memory of a call besides its arguments, in matrices; BLAS has its buffers from calls before."""
    ctypes.CDLL(None).malloc_trim(0)
    before = held("VmRSS:")
    # Sets the most that the system has counted to what there is now.
    Path("/proc/self/clear_refs").write_text("5")
    limited(call, 1, own=True)()
    return (held("VmHWM:") - before) / (8.0 * n * n)


def print_fits(options: argparse.Namespace) -> None:
    print("\nSeconds of default fits, with routines of NumPy and SciPy in place of those of mercer")
    rows = [row for n in options.rows for row in fits(n, options.repeats, options.threads)]
    print(table(rows, ("", "rows", "threads", "mercer", *REPLACED, "all", "slower")))


def fits(n: int, repeats: int, threads: Sequence[int]) -> Iterator[list[Any]]:
    X, y = make_waveform(n, random_state=0)

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KernelFisherClassifier(random_state=0).fit(X, y)

    works = [("one fit", fit, t) for t in threads]
    if 2 in threads:
        works.append(("two fits in two threads", lambda: both(fit), 1))
    for name, work, t in works:
        clock = time.process_time if name == "one fit" and t == 1 else time.perf_counter
        found = best_of(repeats, clock, variants(limited(work, t, own=True)))
        yield [name, n, t, *found.values(), found["all"] / found["mercer"]]


def variants(fit: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    """The fit as it is, with each group of routines replaced, and with all of them."""
    every = [function for functions in REPLACED.values() for function in functions]
    groups = {"mercer": (), **REPLACED, "all": every}
    return {name: with_replaced(fit, functions) for name, functions in groups.items()}


def with_replaced(fit: Callable[[], Any], functions: Any) -> Callable[[], Any]:
    def run() -> None:
        with replaced({function.__name__: function for function in functions}):
            fit()

    return run


@contextmanager
def replaced(functions: dict[str, Callable[..., Any]]) -> Iterator[None]:
    """These functions wherever modules of mercer have one of that name, on one thread of BLAS."""
    modules = [module for name, module in sys.modules.items() if name.startswith("mercer.")]
    patches = [
        patch.object(module, name, on_one_thread(function))
        for module in modules
        for name, function in functions.items()
        if hasattr(module, name)
    ]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def on_one_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with one_blas_thread():
            return function(*args, **kwargs)

    return run


def both(fit: Callable[[], Any]) -> None:
    workers = [threading.Thread(target=fit) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
