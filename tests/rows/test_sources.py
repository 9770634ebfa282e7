"""Laws of every source of rows."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

from mercer._gram.moments import MomentsOf
from mercer.kernels import RBF
from mercer.rows import MemoryRows, StreamRows
from mercer.rows._resolve import first_block
from mercer.rows._sampling.random_sample import sample


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def fold_classes(fold, block):
    return fold(replace(block, y=np.eye(3)[block.y]))


def weighted_sum(block):
    return block.weight @ dense(block.X)


def moments_of(table):
    return partial(fold_classes, MomentsOf(RBF(gamma=0.3), table.X[:20]))


def parts(moments):
    return moments.n, moments.s, moments.t, moments.G, moments.C, moments.V


def assert_is_table(rows, table):
    blocks = list(rows.blocks())
    assert_array_equal(np.concatenate([dense(block.X) for block in blocks]), table.X)
    assert_array_equal(np.concatenate([block.y for block in blocks]), table.y)
    assert_array_equal(np.concatenate([block.weight for block in blocks]), table.weight)


def test_blocks_one_after_the_other_are_the_rows(rows, table):
    assert_is_table(rows, table)


def test_blocks_know_where_they_start_and_have_the_size_asked_for(rows, table):
    n, size = len(table.X), rows.block_rows
    assert [block.first for block in rows.blocks()] == list(range(0, n, size))
    assert [block.n_rows for block in rows.blocks()] == [size] * (n // size) + [n % size]


def test_rows_can_be_gone_through_again_also_after_a_pass_that_was_left(rows, table):
    next(rows.blocks())
    assert_is_table(rows, table)
    assert_is_table(rows, table)


def test_rows_can_be_pickled(rows, table):
    assert_is_table(pickle.loads(pickle.dumps(rows)), table)


def test_the_number_of_rows_is_known_after_one_pass(rows, table):
    rows.reduce(weighted_sum)
    assert rows.n_rows == len(table.X)


def test_reduce_is_the_sum_over_all_rows(rows, table):
    # A sum of n numbers of size 1 in two orders: n eps.
    assert_allclose(rows.reduce(weighted_sum), table.weight @ table.X, atol=2e-13, rtol=0)


def test_reduce_adds_from_left_to_right(rows):
    assert rows.reduce(lambda block: [block.first]) == [block.first for block in rows.blocks()]


@pytest.mark.sampled(3)
def test_the_bits_of_a_sum_do_not_depend_on_the_number_of_threads(rows, table):
    sums = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads, user_api="blas"):
            sums.append(rows.reduce(moments_of(table)))
    for other in sums[1:]:
        for a, b in zip(parts(sums[0]), parts(other)):
            assert_array_equal(a, b)


def test_all_sources_have_the_same_moments(rows, table):
    reference = MemoryRows(table.X, table.y, table.weight).reduce(moments_of(table))
    found = rows.reduce(moments_of(table))
    assert found.n_rows == reference.n_rows == len(table.X)
    for a, b in zip(parts(found), parts(reference)):
        assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("n", [1, 50, 1002, 1003, 5000])
def test_a_sample_has_rows_of_the_table_none_of_them_twice(rows, table, rng, n):
    found = sample(rows, n, rng)
    assert len(found.index) == min(n, len(table.X))
    assert (np.diff(found.index) > 0).all()
    assert_array_equal(dense(found.X), table.X[found.index])
    assert_array_equal(found.y, table.y[found.index])
    assert_array_equal(found.weight, table.weight[found.index])


@pytest.mark.sampled(6)
def test_a_sample_depends_on_the_seed_only(rows, table):
    one, two = (sample(rows, 40, np.random.default_rng(seed)).index for seed in (3, 4))
    coarse = StreamRows([(table.X, table.y)], block_rows=500)
    assert_array_equal(one, sample(coarse, 40, np.random.default_rng(3)).index)
    assert set(one) != set(two)


def test_the_first_block_is_the_first(rows, table):
    assert_array_equal(dense(first_block(rows).X), table.X[: rows.block_rows])
