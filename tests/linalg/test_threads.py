"""Threads: one for BLAS while anybody computes, as many as allowed for pieces of work, none that delays Ctrl-C."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mercer._gram import combine
from mercer._linalg import eigen_psd, lapack, threads
from mercer._linalg.threads import (
    at_most,
    blas_threads,
    interruptible,
    limit_threads,
    map_in_threads,
    stream_in_threads,
)
from mercer.kernels import RBF


def of_blas():
    """The threads that the BLAS libraries of the process use now."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == 2
        yield
        assert of_blas() == {2}


def test_limits_of_several_threads_leave_nothing_behind_in_whatever_order_they_end():
    first_began, second_ended = threading.Event(), threading.Event()

    def first():
        with limit_threads(1):
            first_began.set()
            second_ended.wait(10)
            return of_blas()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first)
        first_began.wait(10)
        with limit_threads(2):
            assert of_blas() == {1}
        second_ended.set()
        assert waiting.result() == {1}
    assert of_blas() == {2}


def test_other_threads_may_use_as_many_as_blas_has_without_limits():
    with limit_threads(1), ThreadPoolExecutor(1) as pool:
        assert blas_threads() == 1
        assert pool.submit(blas_threads).result() == 2


def test_a_stream_that_is_closed_before_a_later_limit_ends_leaves_nothing_behind():
    stream = stream_in_threads(abs, range(100))
    next(stream)
    limit = limit_threads(1)
    limit.__enter__()
    stream.close()
    assert of_blas() == {1}
    limit.__exit__(None, None, None)
    assert of_blas() == {2}


def test_a_limit_within_a_limit_may_be_higher_and_ends_with_its_block():
    with limit_threads(1):
        with limit_threads(2):
            assert blas_threads() == 2
            assert of_blas() == {1}
        assert blas_threads() == 1
        with limit_threads(None), at_most(5):
            assert blas_threads() == 1
    assert blas_threads() == 2


def test_an_error_ends_the_limit():
    with pytest.raises(ZeroDivisionError), limit_threads(1):
        raise ZeroDivisionError
    assert of_blas() == {2}


@pytest.mark.slow
def test_blas_has_one_thread_in_decompositions_however_many_are_allowed(monkeypatch):
    seen = []
    run = lapack.run

    def noted(name, args):
        seen.append((name, of_blas()))
        return run(name, args)

    monkeypatch.setattr(lapack, "run", noted)
    eigen_psd(np.eye(1500, order="F"))
    assert {name for name, _ in seen} == {"dsyevd"}
    assert all(threads == {1} for _, threads in seen)


@pytest.mark.slow
def test_other_threads_run_while_lapack_computes():
    """A decomposition of half a second or more; without the lock, this thread wakes every few milliseconds."""
    A = np.random.default_rng(0).normal(size=(1500, 1500))
    A += A.T
    longest, last = 0.0, time.perf_counter()
    worker = threading.Thread(target=eigen_psd, args=(A,))
    worker.start()
    start = last
    while worker.is_alive():
        time.sleep(0.002)
        longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
    assert longest < (last - start) / 4


def test_results_are_in_order_and_items_run_side_by_side():
    together = threading.Barrier(2, timeout=10)

    def square(x):
        together.wait()
        return x * x, blas_threads()

    assert map_in_threads(square, range(6)) == [(x * x, 1) for x in range(6)]


def test_an_error_of_one_item_is_raised_after_those_in_progress_and_no_other_is_started():
    done, together = [], threading.Barrier(2, timeout=10)

    def work(x):
        if x < 2:
            together.wait()
        if x == 0:
            raise ZeroDivisionError
        time.sleep(0.2)
        done.append(x)

    with pytest.raises(ZeroDivisionError):
        map_in_threads(work, range(100))
    assert 1 in done
    assert len(done) <= 2


def test_interruptible_returns_results_and_raises_errors():
    assert interruptible(max, 3, 4) == 4
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        interruptible(lambda: np.float64(1e300) * np.ones(3) * 1e300)


def test_a_process_that_was_forked_while_somebody_asked_has_the_threads_of_before():
    asked = threads._OneThread()
    before = [library.num_threads for library in asked._libraries()]
    asked.begin()
    asked.forget()
    assert [library.num_threads for library in asked._libraries()] == before
    # The next one to ask is the first.
    asked.begin()
    asked.end()
    assert [library.num_threads for library in asked._libraries()] == before


def test_products_of_few_rows_have_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(700, 4)), rng.normal(size=(700, 1))
    found = []
    for n in (1, 2):
        with threadpool_limits(n, user_api="blas"):
            found.append(combine(RBF(gamma=0.1), X, X, coef))
    np.testing.assert_array_equal(*found)
