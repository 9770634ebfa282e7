"""Limits of BLAS threads: in force while anybody wants them, and gone afterwards."""

import pytest
from threadpoolctl import threadpool_limits

from mercer.linalg.threads import blas_threads, limit_threads, stream_in_threads


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == 2
        yield


def test_limits_that_end_in_the_order_they_began_leave_nothing_behind():
    first, second = limit_threads(1), limit_threads(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_threads() == 1
    second.__exit__(None, None, None)
    assert blas_threads() == 2


def test_a_stream_that_is_closed_before_a_later_limit_ends_leaves_nothing_behind():
    stream = stream_in_threads(abs, range(100))
    next(stream)
    limit = limit_threads(1)
    limit.__enter__()
    stream.close()
    assert blas_threads() == 1
    limit.__exit__(None, None, None)
    assert blas_threads() == 2


def test_a_limit_within_a_limit_may_be_higher_and_ends_with_its_block():
    with limit_threads(1):
        with limit_threads(2):
            assert blas_threads() == 2
        assert blas_threads() == 1
        with limit_threads(None):
            assert blas_threads() == 1
    assert blas_threads() == 2


def test_an_error_ends_the_limit():
    with pytest.raises(ZeroDivisionError), limit_threads(1):
        raise ZeroDivisionError
    assert blas_threads() == 2
