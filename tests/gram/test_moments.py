"""Moments add, leave, forget, and are what explicit sums are."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer._gram.moments import Moments, MomentsOf
from mercer.errors import KernelError
from mercer.kernels import RBF, Linear
from mercer.rows import MemoryRows
from mercer.rows._base import Block

KERNEL = RBF(gamma=0.4)
PARTS = ("n", "s", "t", "G", "C", "V", "n_rows")


@pytest.fixture
def rows(rng, frozen):
    return frozen(rng.normal(size=(50, 3))), frozen(rng.normal(size=(50, 2))), frozen(rng.uniform(0.2, 2.0, 50))


def moments(X, Y, weight, centers, dtype=np.float64):
    return MomentsOf(KERNEL, centers, dtype)(Block(X, Y, weight, 0))


def assert_same(found, expected, **tolerance):
    for part in PARTS:
        assert_allclose(getattr(found, part), getattr(expected, part), **tolerance)


def test_moments_are_weighted_sums(rows):
    X, Y, w = rows
    K, W = KERNEL.block(X, X[:6]), np.diag(w)
    expected = Moments(w.sum(), K.T @ w, Y.T @ w, K.T @ W @ K, K.T @ W @ Y, Y.T @ W @ Y, 50)
    assert_same(moments(X, Y, w, X[:6]), expected)


def test_no_weights_are_weights_of_one(rows):
    X, Y, _ = rows
    assert_same(moments(X, Y, None, X[:6]), moments(X, Y, np.ones(50), X[:6]))


def test_moments_of_parts_add(rows):
    X, Y, w = rows
    whole = moments(X, Y, w, X[:6])
    parts = moments(X[:20], Y[:20], w[:20], X[:6]), moments(X[20:], Y[20:], w[20:], X[:6])
    assert_same(parts[0] + parts[1], whole)
    assert_same(whole - parts[0], parts[1], atol=1e-12)
    total = parts[0] + parts[1]
    total += parts[0]
    assert_same(total - parts[0], whole, atol=1e-12)


def test_factor_is_a_factor_of_the_weights(rows):
    X, Y, w = rows
    assert_same(moments(X, Y, w, X[:6]).scaled(0.5), moments(X, Y, 0.5 * w, X[:6]))


def test_some_centers_are_some_rows_and_columns(rows):
    X, Y, w = rows
    some = np.array([4, 1])
    assert_same(moments(X, Y, w, X[:6]).restricted(some), moments(X, Y, w, X[some]))


def test_centered_moments_are_those_of_centered_columns(rows):
    X, Y, w = rows
    K = KERNEL.block(X, X[:6])
    K, Y_centered = (A - w @ A / w.sum() for A in (K, Y))
    G, C, V = moments(X, Y, w, X[:6]).centered()
    assert_allclose(G, (K * w[:, None]).T @ K, atol=1e-12)
    assert_allclose(C, (K * w[:, None]).T @ Y_centered, atol=1e-12)
    assert_allclose(V, (Y_centered * w[:, None]).T @ Y_centered, atol=1e-12)


def test_blocks_in_float32_are_summed_in_float64(rows):
    X, Y, w = (A.astype(np.float32) for A in rows)
    found = MemoryRows(X, Y, w.astype(np.float64), block_rows=7).reduce(MomentsOf(KERNEL, X[:6]))
    assert found.G.dtype == np.float64
    assert_same(found, moments(*rows, rows[0][:6]), rtol=1e-5)


def test_fold_can_be_pickled(rows):
    X, Y, w = rows
    fold = pickle.loads(pickle.dumps(MomentsOf(KERNEL, X[:6])))
    assert_same(fold(Block(X, Y, w, 0)), moments(X, Y, w, X[:6]))


def test_targets_may_be_one_vector(rows):
    X, Y, w = rows
    assert_same(moments(X, Y[:, 0], w, X[:6]), moments(X, Y[:, :1], w, X[:6]))


class Hole(Linear):
    """No number where a product is large."""

    def _profile(self, G):
        return np.where(np.abs(G) > 100.0, np.nan, G)


def test_values_that_are_no_numbers_are_named_with_their_rows(rows):
    X, Y, w = rows
    far = np.where(np.arange(50)[:, None] == 30, 1e6, X)
    with pytest.raises(KernelError, match="6 values that are not finite") as caught:
        MemoryRows(far, Y, w, block_rows=20).reduce(MomentsOf(Hole(), X[:6]))
    assert caught.value.__notes__ == ["in rows 20 to 39"]


def test_products_that_overflow_are_an_error(rows):
    X, Y, _ = rows
    with np.errstate(over="ignore"), pytest.raises(KernelError, match="too large for float32"):
        MomentsOf(1e25 * KERNEL, X[:6].astype(np.float32), np.float32)(Block(X.astype(np.float32), Y, None, 0))


def test_moments_without_targets_are_those_of_no_columns(rows):
    X, Y, w = rows
    for weight in (None, w):
        found, expected = moments(X, None, weight, X[:6]), moments(X, Y, weight, X[:6])
        assert found.C.shape == (6, 0)
        assert found.V.shape == (0, 0)
        assert_same(found, moments(X, np.empty((50, 0)), weight, X[:6]), rtol=0.0)
        for part in ("n", "s", "G", "n_rows"):
            # One product more or less in a sum may be rounded differently.
            assert_allclose(getattr(found, part), getattr(expected, part), rtol=1e-14)


def test_moments_without_targets_add_and_are_centered(rows):
    X, _, w = rows
    whole = moments(X, None, w, X[:6])
    summed = MemoryRows(X, None, w, block_rows=7).reduce(MomentsOf(KERNEL, X[:6]))
    assert_same(summed, whole, rtol=1e-13)
    assert_same(whole - moments(X[:20], None, w[:20], X[:6]), moments(X[20:], None, w[20:], X[:6]), atol=1e-12)
    K = KERNEL.block(X, X[:6])
    K = K - w @ K / w.sum()
    G, C, V = whole.scaled(2.0).restricted(np.arange(6)).centered()
    assert_allclose(G, 2.0 * (K.T * w) @ K, atol=1e-12)
    assert (C.shape, V.shape) == ((6, 0), (0, 0))
