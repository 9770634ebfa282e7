"""How many threads a computation uses, independent computations in parallel, and computations that Ctrl-C leaves.

BLAS always has one thread while this library computes. The threads of BLAS wait for each other in every product,
and on a busy machine each time for the turn of another process: a decomposition that calls thousands of products
takes ten times as long as on one thread. So work is divided here, into few large pieces that do not depend on the
number of threads, and neither do the bits of the result.
"""

import atexit
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

# Matrices with up to this many rows are factored in the calling thread: Ctrl-C waits for a tenth of a second.
INTERRUPTIBLE_ROWS = 600
# Items taken from a stream per thread: one in progress, one ready.
ITEMS_AHEAD = 2
# Seconds between checks for Ctrl-C, for systems on which waiting for a lock cannot be interrupted.
SECONDS_BETWEEN_CHECKS = 0.2

# The number of threads of the current computation; None outside of limits: as many as BLAS has.
_THREAD_SHARE: ContextVar[int | None] = ContextVar("mercer_threads", default=None)
# Set when nobody waits for the current computation any longer.
_ABANDONED: ContextVar[threading.Event | None] = ContextVar("mercer_abandoned", default=None)


class Abandoned(BaseException):
    """Raised in a thread whose result nobody waits for any longer."""


class _OneThread:
    """One thread for BLAS while anybody asks for it: the first records the state before, the last restores it.

    If each thread recorded and restored on its own, they would restore each other's limits.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._n_asking = 0
        self._before: list[tuple[Any, int]] = []
        self._found: tuple[int, list[Any]] = (0, [])

    def begin(self) -> None:
        with self._lock:
            if self._n_asking == 0:
                self._before = [(library, library.num_threads) for library in self._libraries()]
            self._n_asking += 1
            for library in self._libraries():
                _set(library, 1)

    def begin_in_own_thread(self) -> None:
        """One thread in a thread that ends with its work, for libraries with a number for each thread."""
        with self._lock:
            for library in self._libraries():
                if getattr(library, "threading_layer", None) == "openmp":
                    library.set_num_threads(1)

    def end(self) -> None:
        with self._lock:
            self._n_asking -= 1
            if self._n_asking == 0:
                self._restore()

    def forget(self) -> None:
        """Nobody asks any longer, in a new process."""
        self._lock = threading.RLock()
        if self._n_asking:
            self._n_asking = 0
            self._restore()

    def _restore(self) -> None:
        for library, threads in self._before:
            _set(library, threads)

    @property
    def unlimited(self) -> int:
        """The number of threads that BLAS has, or will have when nobody asks for one any longer."""
        with self._lock:
            if self._n_asking:
                return max((threads for _, threads in self._before), default=1)
            return max((library.num_threads for library in self._libraries()), default=1)

    def _libraries(self) -> list[Any]:
        """All BLAS libraries of the process; searched again, in milliseconds, after new imports."""
        n_modules, found = self._found
        if n_modules != len(sys.modules):
            found = ThreadpoolController().select(user_api="blas").lib_controllers
            self._found = len(sys.modules), found
        return found


def _set(library: Any, threads: int) -> None:
    """Set the number of threads, from whatever thread: newer versions of threadpoolctl listen to one at a time."""
    release = getattr(library, "clear_controlling_thread", lambda *, force: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


_ONE_THREAD = _OneThread()
if hasattr(os, "register_at_fork"):
    # A child that was forked during a fit has none of the threads that would end it.
    os.register_at_fork(after_in_child=_ONE_THREAD.forget)


def blas_threads() -> int:
    """How many threads the current computation may use: its limit, or that of BLAS, set by the user or a job."""
    share = _THREAD_SHARE.get()
    return _ONE_THREAD.unlimited if share is None else share


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Computations of this thread use this many threads, and BLAS one; None changes nothing.

    A limit within a limit may be higher. For BLAS the limit is per process: it has one thread as long as any
    computation runs, in whatever order they end.
    """
    if threads is None:
        yield
        return
    outermost = _THREAD_SHARE.get() is None
    token = _THREAD_SHARE.set(threads)
    if outermost:
        _ONE_THREAD.begin()
    try:
        yield
    finally:
        _THREAD_SHARE.reset(token)
        if outermost:
            _ONE_THREAD.end()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """As many threads as at present, and one for BLAS."""
    with limit_threads(blas_threads()):
        yield


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """At most this many threads, and no more than at present."""
    with limit_threads(min(threads, blas_threads())):
        yield


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], *, most: int | None = None
) -> list[Result]:
    """[function(item) for item in items], several at once, in order; ``most`` limits how many.

    After an error, functions in progress are waited for; after Ctrl-C they are not.
    """
    workers = min(blas_threads(), len(items), most or len(items))
    if workers <= 1:
        with limit_threads(1):
            return [_while_awaited(function, item) for item in items]
    # One task for each thread, not for each item: waking the calling thread for every result takes time.
    shared = _Shared(function, items)
    with limit_threads(1), _crew(workers) as crew:
        for future in [crew.submit(shared.work) for _ in range(workers)]:
            _awaited(future)
    return shared.all_results()


class _Shared(Generic[Item, Result]):
    """Items that several threads take in turn, and the results by their places."""

    def __init__(self, function: Callable[[Item], Result], items: Sequence[Item]) -> None:
        self._function = function
        self._left = deque(enumerate(items))
        self._results: dict[int, Result] = {}
        self._errors: dict[int, BaseException] = {}

    def work(self) -> None:
        """Take items until there are none, or one has failed."""
        while True:
            try:
                place, item = self._left.popleft()
            except IndexError:
                return
            try:
                self._results[place] = _while_awaited(self._function, item)
            except BaseException as error:
                self._errors[place] = error
                self._left.clear()

    def all_results(self) -> list[Result]:
        """In the order of the items, or the error of the first that failed."""
        if self._errors:
            error = self._errors[min(self._errors)]
            try:
                raise error
            finally:
                # The traceback refers to this object.
                self._errors.clear()
                self._results.clear()
                del error
        return [self._results[place] for place in range(len(self._results))]


def stream_in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """function(item) for the items of a stream, several at once, in the order of the items.

    At most two items per thread have been taken from the stream without their result being returned yet, so memory
    does not grow with the stream. The first error of any item is raised at once; after it, after Ctrl-C, and when
    the generator is closed, no further item is started. Close the generator: while it is open, BLAS has one thread
    in the whole process.
    """
    workers = blas_threads()
    pending: deque[Future[Result]] = deque()
    # Not a limit of the calling thread, which does other things between two results.
    _ONE_THREAD.begin()
    try:
        with _crew(workers) as crew:
            for item in items:
                pending.append(crew.submit(function, item))
                if len(pending) == ITEMS_AHEAD * workers:
                    yield _first_result(pending)
            while pending:
                yield _first_result(pending)
    finally:
        _ONE_THREAD.end()


def check_awaited() -> None:
    """Raise Abandoned in a thread whose result nobody waits for any longer."""
    abandoned = _ABANDONED.get()
    if abandoned is not None and abandoned.is_set():
        raise Abandoned


def interruptible(function: Callable[..., Result], *args: Any) -> Result:
    """function(*args), left at once by Ctrl-C, although it may be a single long call of LAPACK.

    Python handles signals in the main thread, between two instructions. So the main thread only waits while
    another computes, which must release the interpreter's lock; after Ctrl-C it goes on, and nobody waits for it.
    So nobody else may use what it writes to. Outside of the main thread, a plain call.
    """
    check_awaited()
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    future: Future[Result]
    with _crew(1) as crew:
        future = crew.submit(copy_context().run, function, *args)
        return _awaited(future)


# Threads that may still be computing, although nobody waits for them.
_WORKING: list[threading.Thread] = []


@atexit.register
def _end() -> None:
    """Before a program ends, wait for calls of LAPACK in progress, whose memory the library is about to give back.

    A program that Ctrl-C ends is ended by the signal itself, before that; in a session it may have been earlier.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
        return
    for thread in _WORKING:
        thread.join()


class _Crew:
    """Daemon threads: unlike those of ``ThreadPoolExecutor``, they do not delay Ctrl-C or the end of a program."""

    def __init__(self, workers: int) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._abandoned = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Result], *args: Any) -> "Future[Result]":
        future: Future[Result] = Future()

        def task() -> None:
            if self._abandoned.is_set() or not future.set_running_or_notify_cancel():
                return
            try:
                result = function(*args)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._tasks.put(task)
        return future

    def close(self) -> None:
        """Start no more tasks; those in progress end on their own."""
        self._abandoned.set()
        for _ in self._threads:
            self._tasks.put(None)
        _WORKING[:] = [thread for thread in (*_WORKING, *self._threads) if thread.is_alive()]

    def _work(self) -> None:
        _ONE_THREAD.begin_in_own_thread()
        _THREAD_SHARE.set(1)
        _ABANDONED.set(self._abandoned)
        while (task := self._tasks.get()) is not None:
            task()


@contextmanager
def _crew(workers: int) -> Iterator[_Crew]:
    crew = _Crew(workers)
    try:
        yield crew
    finally:
        crew.close()


def _while_awaited(function: Callable[[Item], Result], item: Item) -> Result:
    """function(item), unless nobody waits for the result any longer."""
    check_awaited()
    return function(item)


def _awaited(future: "Future[Result]") -> Result:
    """The result, waited for in steps between which Ctrl-C is noticed."""
    while not future.done():
        wait([future], SECONDS_BETWEEN_CHECKS)
    return future.result()


def _first_result(pending: "deque[Future[Result]]") -> Result:
    """Wait for the oldest result and remove it, or raise the first error of any item."""
    while not pending[0].done():
        wait([future for future in pending if not future.done()], SECONDS_BETWEEN_CHECKS, FIRST_COMPLETED)
        for future in pending:
            if future.done():
                future.result()
    return pending.popleft().result()
