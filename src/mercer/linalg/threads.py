"""How many threads linear algebra uses, and independent computations in parallel."""

import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

# Matrices with up to this many rows are factored on one thread: several of them fit into the cache.
SMALL = 600
# Items taken from a stream per thread: one in progress, one ready.
AHEAD = 2
# Seconds between checks for Ctrl-C, for systems on which waiting for a lock cannot be interrupted.
PATIENCE = 0.2


class _Limits:
    """The limits on BLAS threads in force: the first to start records the previous state, the last restores it.

    If each thread recorded and restored on its own, they would restore each other's limits.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._in_force: dict[object, int] = {}
        self._before: list[tuple[Any, int]] = []
        self._found: tuple[int, list[Any]] = (0, [])

    def begin(self, threads: int) -> object:
        limit = object()
        with self._lock:
            if not self._in_force:
                self._before = [(library, library.num_threads) for library in self.libraries()]
            self._in_force[limit] = threads
            self._set(threads)
        return limit

    def end(self, limit: object) -> None:
        with self._lock:
            del self._in_force[limit]
            if self._in_force:
                self._set(next(reversed(self._in_force.values())))
            else:
                for library, threads in self._before:
                    library.set_num_threads(threads)

    def libraries(self) -> list[Any]:
        """All BLAS libraries of the process; searched again, in milliseconds, after new imports."""
        with self._lock:
            n_modules, found = self._found
            if n_modules != len(sys.modules):
                found = ThreadpoolController().select(user_api="blas").lib_controllers
                self._found = len(sys.modules), found
            return found

    def _set(self, threads: int) -> None:
        for library in self.libraries():
            library.set_num_threads(threads)


_LIMITS = _Limits()


def blas_threads() -> int:
    """How many threads BLAS may use now: the limit that the user, or a surrounding job, has set."""
    return max((library.num_threads for library in _LIMITS.libraries()), default=1)


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """At most this many BLAS threads; None changes nothing.

    NumPy and SciPy each bring their own BLAS, whose idle threads spin and take cores from each other: one thread
    in general, and more around a single factorization, is faster than more everywhere. The limit is per process:
    if several threads set limits at once, the latest counts, in whatever order they end.
    """
    if threads is None:
        yield
        return
    limit = _LIMITS.begin(threads)
    try:
        yield
    finally:
        _LIMITS.end(limit)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """At most this many BLAS threads, and no more than at present."""
    with limit_threads(min(threads, blas_threads())):
        yield


def threads_each(n: int) -> int:
    """BLAS threads for a factorization of n rows when others run in parallel."""
    return min(1 if n <= SMALL else 2, blas_threads())


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], *, each: int = 1, most: int | None = None
) -> list[Result]:
    """[function(item) for item in items], several at once, in order; ``most`` limits how many.

    ``each`` is the number of BLAS threads that a function uses for its factorization; as many functions run in
    parallel as there are threads for.
    """
    workers = min(max(blas_threads() // each, 1), len(items), most or len(items))
    if workers == 1:
        with limit_threads(1):
            return [function(item) for item in items]
    # A thread cannot raise a limit that another has set.
    with limit_threads(each), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def stream_in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """function(item) for the items of a stream, several at once, in the order of the items.

    Threads as in :func:`map_in_threads`. At most two items per thread have been taken from the stream without
    their result being returned yet, so memory does not grow with the stream. The first error of any item is raised
    at once; after it, after Ctrl-C, and when the generator is closed, no further item is started. Close the
    generator: while it is open, the whole process is limited to one BLAS thread.
    """
    workers = blas_threads()
    pending: deque[Future[Result]] = deque()
    with limit_threads(1):
        pool = ThreadPoolExecutor(workers)
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) == AHEAD * workers:
                    yield _first_result(pending)
            while pending:
                yield _first_result(pending)
        finally:
            # Running items cannot be stopped, and are not waited for.
            pool.shutdown(wait=False, cancel_futures=True)


def _first_result(pending: deque[Future[Result]]) -> Result:
    """Wait for the oldest result and remove it, or raise the first error of any item."""
    while not pending[0].done():
        wait([future for future in pending if not future.done()], PATIENCE, FIRST_COMPLETED)
        for future in pending:
            if future.done():
                future.result()
    return pending.popleft().result()
