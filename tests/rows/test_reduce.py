"""Sums in threads: ownership, errors, interrupts, memory."""

import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from mercer._linalg.threads import blas_threads
from mercer.rows import MemoryRows, StreamRows
from mercer.rows._sampling.random_sample import sample

WORKERS = 2


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(WORKERS, user_api="blas"):
        yield


def numbered(n):
    """n blocks of one row that holds its number."""
    return MemoryRows(np.arange(n, dtype=float)[:, None], block_rows=1)


def test_blocks_are_folded_side_by_side_each_with_one_blas_thread():
    meeting = threading.Barrier(WORKERS, timeout=10)

    def fold(block):
        meeting.wait()
        return blas_threads()

    assert numbered(2 * WORKERS).reduce(fold) == 2 * WORKERS
    assert blas_threads() == WORKERS


def test_the_limit_of_blas_threads_is_restored_after_an_error():
    with pytest.raises(ZeroDivisionError):
        numbered(3).reduce(lambda block: 1 // 0)
    assert blas_threads() == WORKERS


def test_results_that_the_fold_still_holds_are_not_written_to():
    X = np.arange(6.0)[:, None]
    X.setflags(write=False)
    assert_array_equal(MemoryRows(X, block_rows=1).reduce(lambda block: block.X), [[15.0]])
    kept = []

    def fold(block):
        kept.append(block.X.copy())
        return kept[-1]

    MemoryRows(X, block_rows=1).reduce(fold)
    assert_array_equal(np.sort(np.concatenate(kept), axis=0), X)


def test_the_sum_of_one_block_is_its_fold():
    X = np.ones((3, 2))
    assert MemoryRows(X).reduce(lambda block: block.X.sum()) == 6.0


def test_no_rows_have_no_sum():
    with pytest.raises(ValueError, match="no rows to sum over"):
        MemoryRows(np.empty((0, 2))).reduce(lambda block: block.n_rows)
    with pytest.raises(ValueError, match="no rows to sum over"):
        sample(MemoryRows(np.empty((0, 2))), 3, np.random.default_rng(0))


def test_an_error_says_in_which_rows_it_was():
    def fold(block):
        if block.first == 20:
            raise ArithmeticError("three is not a crowd")
        return 1

    with pytest.raises(ArithmeticError, match="not a crowd") as caught:
        MemoryRows(np.ones((40, 1)), block_rows=10).reduce(fold)
    assert caught.value.__notes__ == ["in rows 20 to 29"]


def test_an_error_is_raised_while_earlier_blocks_still_run():
    release = threading.Event()

    def fold(block):
        if block.first == 1:
            raise ArithmeticError
        return int(release.wait(10))

    start = time.perf_counter()
    with pytest.raises(ArithmeticError):
        numbered(100).reduce(fold)
    assert time.perf_counter() - start < 1.0
    release.set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ArithmeticError])
def test_after_an_error_or_an_interrupt_no_block_is_started(error):
    begun = []

    def fold(block):
        begun.append(block.first)
        time.sleep(0.02)
        if block.first == 5:
            raise error
        return 1

    start = time.perf_counter()
    with pytest.raises(error):
        numbered(1000).reduce(fold)
    assert time.perf_counter() - start < 1.0
    time.sleep(0.1)
    assert len(begun) <= 5 + 2 * WORKERS + 1


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signal to send to one process")
def test_control_c_returns_within_a_second_though_blocks_run_longer():
    assert interrupted() < 1.0


def interrupted():
    """Seconds from the signal to the KeyboardInterrupt in a process whose blocks take four seconds each."""
    script = textwrap.dedent("""
        import os, signal, threading, time
        import numpy as np
        from mercer.rows import MemoryRows

        sent = []
        def send():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.5, send).start()
        try:
            MemoryRows(np.ones((1000, 1)), block_rows=1).reduce(lambda block: time.sleep(4) or 1)
        except KeyboardInterrupt:
            os.write(1, str(time.perf_counter() - sent[0]).encode())
            os._exit(0)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return float(done.stdout)


def test_few_blocks_are_alive_at_once():
    alive, most = set(), 0

    def blocks():
        nonlocal most
        for i in range(200):
            X = np.full((4, 2), float(i))
            alive.add(i)
            weakref.finalize(X, alive.discard, i)
            most = max(most, len(alive))
            yield (X,)

    total = StreamRows(blocks, block_rows=4).reduce(lambda block: time.sleep(0.001) or float(block.X[0, 0]))
    assert total == sum(range(200))
    # Two for each thread, the one that the reader holds and the one it makes.
    assert most <= 2 * WORKERS + 2


def test_a_slow_first_block_does_not_let_results_pile_up():
    taken = []

    def blocks():
        for i in range(50):
            taken.append(i)
            yield (np.full((1, 1), float(i)),)

    seen = []

    def fold(block):
        if block.first == 0:
            time.sleep(0.2)
            seen.append(len(taken))
        return 1

    assert StreamRows(blocks, block_rows=1).reduce(fold) == 50
    assert seen[0] <= 2 * WORKERS + 1
