"""How many threads linear algebra takes, and independent pieces of it side by side."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import threadpool_info, threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

# Matrices of up to so many rows are factored on one thread: several of them fit the cache side by side.
SMALL = 600
# Items taken from a stream for every thread: one is worked on, one is ready.
AHEAD = 2
# Seconds between looks at the keyboard, for systems where waiting for a lock does not notice Ctrl-C.
PATIENCE = 0.2


def blas_threads() -> int:
    """How many threads BLAS may use now: the limit that the user, or a surrounding job, has set."""
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """At most so many BLAS threads; None changes nothing.

    NumPy and SciPy come with a BLAS each, whose idle threads wait in a loop and take the cores from each other:
    one thread for all, and more around a single factorization, is faster than more for all.
    """
    with threadpool_limits(threads, user_api="blas"):
        yield


def threads_each(n: int) -> int:
    """BLAS threads that a factorization of n rows is worth while others run beside it."""
    return min(1 if n <= SMALL else 2, blas_threads())


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], *, each: int = 1, most: int | None = None
) -> list[Result]:
    """[function(item) for item in items], several at once, in order; ``most`` limits how many.

    ``each`` are the BLAS threads that a function takes for its factorization; as many run side by side as
    there are threads for.
    """
    workers = min(max(blas_threads() // each, 1), len(items), most or len(items))
    if workers == 1:
        with limit_threads(1):
            return [function(item) for item in items]
    # A thread can not raise a limit that another has set.
    with limit_threads(each), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def stream_in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """function(item) for the items of a stream, several at once, in the order of the items.

    Threads as in :func:`map_in_threads`. At most two items a thread have been taken from the stream and
    not been given back as a result, so memory does not grow with the stream. The first error of any item
    is raised at once; after it, after Ctrl-C, and when the generator is closed, no item is started.
    Close it: one BLAS thread is the limit for the whole process while it is open.
    """
    workers = blas_threads()
    pending: deque[Future[Result]] = deque()
    with threadpool_limits(1, user_api="blas"):
        pool = ThreadPoolExecutor(workers)
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) == AHEAD * workers:
                    yield _first_result(pending)
            while pending:
                yield _first_result(pending)
        finally:
            # What runs now can not be stopped, and is not waited for.
            pool.shutdown(wait=False, cancel_futures=True)


def _first_result(pending: deque[Future[Result]]) -> Result:
    """Wait for the oldest result and take it out, or raise the first error of any."""
    while not pending[0].done():
        wait([future for future in pending if not future.done()], PATIENCE, FIRST_COMPLETED)
        for future in pending:
            if future.done():
                future.result()
    return pending.popleft().result()
