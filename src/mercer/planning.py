"""The cost of a fit with m centers, estimated before it is run: time, memory, network."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import scipy.linalg

from mercer._fitting.memory import KERNELS_TO_COMPARE, MemoryInputs, MemoryStage, most_loo_rows, plan_within
from mercer._gram import Budget
from mercer._gram.budget import GIB
from mercer._gram.moments import PRODUCT_ROWS
from mercer._linalg import blas_threads, limit_threads
from mercer.centers._resolve import selector_for
from mercer.rows._base import BLOCK_ROWS
from mercer.rows._engines.base import PART_BLOCKS

__all__ = ["Plan", "Rates", "measure", "plan"]

# Seconds that each probe may take, and the minimum number of runs.
PROBE_SECONDS = 0.3
LEAST_RUNS = 3
# Size of the largest probe: rates do not change beyond it.
LARGEST_M, LARGEST_EIGEN = 1000, 500
# Memory of Python with NumPy, SciPy, scikit-learn and pyarrow, before any rows are loaded.
PROCESS = 250e6
# Matrices (m, m) that a core of a worker holds: the moments, and two of the sum.
MATRICES_ON_WORKER = 3
# Rows of the sample on which alpha is chosen, by default, and evaluations of exp that scoring one of its outputs
# takes.
SAMPLE, SCORING_COST = 10_000, 35 * 300
# Cost of a solution in decompositions: one of its own, and as much for roots, bases and tests.
DECOMPOSITIONS = 2
GIGABIT = 125e6
PLANNED_ENGINES = ("memory", "dask", "ray", "spark")


@dataclass(frozen=True)
class Rates:
    """What one core of this machine does in a second, measured at sizes like those of the problem.

    ``block``: multiplications and additions in rows times centers; ``exp``: exponentials; ``gram``:
    multiplications and additions in K'K; ``side``: those in K'Y; ``eigen``: m³ in the decomposition of the
    moments; ``copy``: bytes read and written.
    """

    block: float
    exp: float
    gram: float
    side: float
    eigen: float
    copy: float


@dataclass(frozen=True)
class Plan:
    """Seconds and bytes that a fit will take; as a string, a table.

    ``seconds`` are the pass over the rows on all cores, the solution for all alphas, and the network.
    ``worker_bytes`` is the memory of one core of a worker, ``driver_bytes`` that of the process that fits, and
    ``network_bytes`` the total traffic of the pass. ``stages`` are those of the fit with the bytes of each;
    ``largest`` needs the most and determines ``fit_bytes``, the memory of the fit besides the rows and the process
    itself.
    """

    n: int
    d: int
    m: int
    cores: int
    engine: str
    n_parts: int
    pass_seconds: float
    solve_seconds: float
    network_seconds: float
    worker_bytes: float
    driver_bytes: float
    network_bytes: float
    stages: tuple[MemoryStage, ...]
    largest: MemoryStage

    @property
    def fit_bytes(self) -> float:
        return self.largest.n_bytes

    @property
    def seconds(self) -> float:
        return self.pass_seconds + self.solve_seconds + self.network_seconds

    def __str__(self) -> str:
        lines = [
            ("rows, features, centers", f"{self.n:,}, {self.d:,}, {self.m:,}"),
            ("cores, engine", f"{self.cores}, {self.engine}"),
            ("tasks in a pass", f"{self.n_parts:,}"),
            ("pass over the rows", _time(self.pass_seconds)),
            ("solution", _time(self.solve_seconds)),
            ("network", _time(self.network_seconds)),
            ("together", _time(self.seconds)),
            ("memory of a worker, each core", _size(self.worker_bytes)),
            ("memory of the driver", _size(self.driver_bytes)),
            ("most of it in", self.largest.name),
            ("sent over the network", _size(self.network_bytes)),
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def plan(
    n: int,
    d: int,
    m: int,
    *,
    q: int = 1,
    cores: int | None = None,
    engine: str = "memory",
    dtype: Any = np.float32,
    products: Any = np.float64,
    network: float = GIGABIT,
    rates: Rates | None = None,
    max_memory: float | None = None,
    loo_rows: int = SAMPLE,
    search: bool = True,
) -> Plan:
    """What a pass over n rows of d features costs with m centers and a Gaussian kernel, and the solution after it.

    A pass takes 2nm(d + 2) operations and nm exponentials for K = k(rows, centers), 2nm² for K'K, 2nm(q + 1)
    for K'Y. The solution takes O(m³), and O(m²) for each of 10,000 leave-one-out predictions, on one core wherever
    the rows are. Sums are assumed to be sent over a single link. Rates are measured during the call, for about two
    seconds. The plan does not include reading files, the time of the search for a kernel width, and differences in
    speed between machines.

    Memory is that of the stages that a fit checks before its search, at the sizes that ``max_memory`` allows; if a
    fit would raise a MemoryBudgetError, so does the plan.

    Parameters
    ----------
    n, d, m : int
        Rows, features, centers.
    q : int
        Number of targets; one for each class.
    cores : int, optional
        Cores of all workers together; default: those of this machine.
    engine : "memory", "dask", "ray" or "spark"
        Where the rows are.
    dtype, products : dtype
        Of the rows, and of the products of kernel values.
    network : float
        Bytes per second between workers; default: 125e6, one gigabit.
    rates : Rates, optional
        Rates measured before with :func:`measure`.
    max_memory : float, optional
        GiB that the fit may allocate; unlimited by default.
    loo_rows : int
        Number of rows kept for leave-one-out.
    search : bool
        Whether the kernel width is chosen as well.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from mercer.planning import Rates, plan
    >>> rates = Rates(block=1e10, exp=2e8, gram=4e10, side=4e9, eigen=1e9, copy=5e9)
    >>> print(plan(10_000_000, 20, 1000, cores=16, engine="dask", rates=rates))
    rows, features, centers        10,000,000, 20, 1,000
    cores, engine                  16, dask
    tasks in a pass                77
    pass over the rows             41.5 s
    solution                       3.9 s
    network                        4.9 s
    together                       50.3 s
    memory of a worker, each core  0.3 GB
    memory of the driver           0.7 GB
    most of it in                  the selection of 1000 centers
    sent over the network          0.6 GB
    """
    _check(n, d, m, engine)
    cores = cores or os.cpu_count() or 1
    rates = rates or measure(d, m, dtype=dtype, products=products)
    moments = 8.0 * (m * m + m * (q + 1))
    work = _block_bytes(d, m, dtype, products) + MATRICES_ON_WORKER * moments
    budget = Budget(np.inf if max_memory is None else max_memory * GIB)
    sample = min(n, max(loo_rows, 2 * m))
    inputs = MemoryInputs(
        row=float(d * np.dtype(dtype).itemsize),
        sample=sample,
        held_out=most_loo_rows(min(sample, loo_rows), q),
        q=q,
        n_centers=m,
        selector=selector_for(m),
        threads=cores if engine == "memory" else blas_threads(),
        n=n,
        item=np.dtype(dtype).itemsize,
        kernels=KERNELS_TO_COMPARE if search else 1,
    )
    memory = plan_within(inputs, budget)
    parts = ceil(n / (PART_BLOCKS * BLOCK_ROWS))
    sent = 0.0 if engine == "memory" else parts * moments + cores * m * d * np.dtype(dtype).itemsize
    blocks = ceil(n / PRODUCT_ROWS)
    return Plan(
        n=n,
        d=d,
        m=m,
        cores=cores,
        engine=engine,
        n_parts=parts,
        pass_seconds=_pass_seconds(n, d, m, q, blocks, rates, products) / min(cores, blocks),
        solve_seconds=_solve_seconds(min(n, SAMPLE), d, m, q, rates, products),
        network_seconds=sent / network,
        worker_bytes=PROCESS + work,
        driver_bytes=PROCESS + memory.largest.n_bytes,
        network_bytes=sent,
        stages=memory.stages,
        largest=memory.largest,
    )


def measure(d: int, m: int, *, dtype: Any = np.float32, products: Any = np.float64) -> Rates:
    """The rates of one core at blocks of d features and m centers: six probes of up to 0.3 seconds."""
    rng = np.random.default_rng(0)
    m, b = min(m, LARGEST_M), PRODUCT_ROWS
    X, Z = rng.standard_normal((b, d + 2)).astype(dtype), rng.standard_normal((m, d + 2)).astype(dtype)
    K = rng.random((b, m)).astype(dtype)
    P, Y = K.astype(products), np.ones((b, 2), dtype=products)
    out = np.empty_like(K)
    small = min(m, LARGEST_EIGEN)
    S = (P[:, :small].T @ P[:, :small]).astype(np.float64)
    with limit_threads(1):
        return Rates(
            block=2.0 * b * m * (d + 2) / _typical(lambda: X @ Z.T),
            exp=b * m / _typical(lambda: np.exp(-K, out=out)),
            gram=2.0 * b * m * m / _typical(lambda: P.T @ P),
            side=4.0 * b * m / _typical(lambda: P.T @ Y),
            eigen=small**3 / _typical(lambda: scipy.linalg.eigh(S)),
            copy=(K.itemsize + 8.0) * b * m / _typical(lambda: K.astype(np.float64)),
        )


def _pass_seconds(n: int, d: int, m: int, q: int, blocks: int, rates: Rates, products: Any) -> float:
    """On one core."""
    kernel = 2.0 * n * m * (d + 2) / rates.block + n * m / rates.exp
    products_ = 2.0 * n * m * m / rates.gram + 2.0 * n * m * (q + 1) / rates.side
    # A block's K clipped at zero, and in the type of the products; its G in float64, and G added to the sum.
    moved = n * m * (12.0 + np.dtype(products).itemsize) + blocks * m * m * 40.0
    return float(kernel + products_ + moved / rates.copy)


def _solve_seconds(rows: int, d: int, m: int, q: int, rates: Rates, products: Any) -> float:
    """Decompositions, and leave-one-out of some rows: a pass over them, and as much again in another basis."""
    leaving = 2.0 * _pass_seconds(rows, d, m, q, ceil(rows / PRODUCT_ROWS), rates, products)
    return DECOMPOSITIONS * m**3 / rates.eigen + leaving + rows * q * SCORING_COST / rates.exp


def _block_bytes(d: int, m: int, dtype: Any, products: Any) -> float:
    values = np.dtype(dtype).itemsize + np.dtype(products).itemsize
    return float(PRODUCT_ROWS * (d * np.dtype(dtype).itemsize + m * values))


def _typical(run: Callable[[], Any]) -> float:
    """Median seconds of several runs except the first: a pass consists of typical blocks."""
    run()
    times: list[float] = []
    while len(times) < LEAST_RUNS or sum(times) < PROBE_SECONDS:
        # CPU time of this thread, not wall time: other load on the machine does not change the speed of its cores.
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return float(np.median(times))


def _check(n: int, d: int, m: int, engine: str) -> None:
    for name, value in (("n", n), ("d", d), ("m", m)):
        if value < 1:
            raise ValueError(f"{name}={value}; it must be at least 1")
    if engine not in PLANNED_ENGINES:
        raise ValueError(f"engine={engine!r}; it must be one of {', '.join(PLANNED_ENGINES)}")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
