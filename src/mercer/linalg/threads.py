"""Independent pieces of linear algebra side by side, each on one BLAS thread."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import threadpool_info, threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

SMALL = 1000


def blas_threads() -> int:
    """How many threads BLAS may use now: the limit that the user, or a surrounding job, has set."""
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


@contextmanager
def modest_threads(n: int) -> Iterator[None]:
    """One BLAS thread for matrices of up to 1000 rows: more gain little there, and lose much on a busy machine."""
    with threadpool_limits(1 if n <= SMALL else None, user_api="blas"):
        yield


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], *, most: int | None = None
) -> list[Result]:
    """[function(item) for item in items], several at once, in order; ``most`` limits how many.

    As many threads as BLAS may use, each with one BLAS thread: a small factorization has little
    to share between threads, a dozen of them has.
    """
    workers = min(blas_threads(), len(items), most or len(items))
    if workers <= 1:
        return [function(item) for item in items]
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))
