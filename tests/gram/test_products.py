"""Products with k(rows, centers), which is never there, are those with the matrix."""

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from mercer._gram import apply, apply_transposed, combine
from mercer.errors import KernelError
from mercer.kernels import RBF, Linear
from mercer.rows import MemoryRows, StreamRows

KERNEL = RBF(gamma=0.5)


@pytest.fixture(params=[np.float32, np.float64])
def X(request, rng, frozen):
    return frozen(rng.normal(size=(103, 3)).astype(request.param))


def sources(X):
    return [X, MemoryRows(X, block_rows=10), StreamRows([(X[:50],), (X[50:],)])]


@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 3)])
def test_product_is_that_with_the_matrix(rng, X, shape):
    v = rng.normal(size=shape).astype(X.dtype)
    for source in sources(X):
        found = apply(KERNEL, source, X[:7], v)
        assert found.dtype == X.dtype
        assert_allclose(found, KERNEL.block(X, X[:7]) @ v, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(103,), (103, 1), (103, 3)])
def test_transposed_product_is_that_with_the_matrix(rng, X, shape):
    u = rng.normal(size=shape)
    for source in sources(X):
        found = apply_transposed(KERNEL, source, X[:7], u)
        assert found.dtype == np.float64
        assert_allclose(found, KERNEL.block(X, X[:7]).T @ u, rtol=1e-4, atol=1e-4)


def test_number_of_threads_changes_no_bit(rng, X, monkeypatch):
    monkeypatch.setattr(import_module("mercer._gram.blocks"), "BLOCK_SIZE", 2**12)
    coef = rng.normal(size=(7, 2)).astype(X.dtype)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(combine(KERNEL, X, X[:7], coef))
    assert_array_equal(*found)


class Hole(Linear):
    """No number where a product is large."""

    def _profile(self, G):
        return np.where(np.abs(G) > 100.0, np.nan, G)


def test_values_that_are_no_numbers_are_an_error(X):
    far = np.where(np.arange(103)[:, None] == 30, 1e6, X)
    with pytest.raises(KernelError, match="7 values that are not finite"):
        combine(Hole(), far, X[:7].astype(float), np.zeros((7, 1)))
    with pytest.raises(KernelError, match="7 values that are not finite"):
        apply_transposed(Hole(), far, X[:7].astype(float), np.zeros(103))
    with pytest.raises(KernelError, match="7 values that are not finite"):
        apply(Hole(), MemoryRows(far), X[:7].astype(float), np.zeros(7))
