"""Samples of rows that come, fade and leave: drawn by what is left of each."""

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from mercer.rows import Block, MemoryRows
from mercer.rows._sampling.random_sample import Sampler, row_keys, survey

SEEDS = range(300)


def block(X, y=None, weight=None, first=0):
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    return Block(X, np.zeros(len(X)) if y is None else np.asarray(y), weight, first)


def numbered(first, n):
    """n different rows from number ``first`` on."""
    return block(np.arange(first, first + n), first=first)


def faded_stream(seed, *, batches, n, decay, size):
    drawn = Sampler(size, seed)(numbered(0, n))
    for k in range(1, batches):
        drawn = (drawn.scaled(decay) + Sampler(size, seed)(numbered(k * n, n))).least()
    return drawn


def removing(drawn, gone, seed=0):
    return drawn.without(gone, np.random.default_rng(seed))


def test_plain_samples_are_the_rows_of_least_keys():
    expected = np.sort(np.argsort(row_keys(5, 0, 1000))[:40])
    assert_array_equal(survey(MemoryRows(np.arange(1000.0)[:, None]), Sampler(40, 5)).index, expected)


def test_keys_are_exponential():
    key = row_keys(3, 0, 100_000)
    # Standard deviations of mean and of the share below one: 0.003 and 0.0015.
    assert abs(key.mean() - 1.0) < 0.012
    assert abs((key < 1.0).mean() - (1.0 - np.exp(-1.0))) < 0.006


@pytest.mark.parametrize("labels", [False, True])
def test_a_sample_is_a_sum_over_blocks_in_any_order(rng, labels):
    rows = block(rng.normal(size=(600, 1)), (rng.random(600) < 0.02).astype(int))
    draw = Sampler(30, 7, labels=labels)
    whole = draw(rows).least()
    parts = [draw(rows.cut(i, min(i + 47, 600))).least() for i in range(0, 600, 47)]
    for several in (parts, parts[::-1]):
        found = reduce(add, several).least()
        order = np.argsort(found.index)
        assert_array_equal(found.index[order], whole.index)
        assert_array_equal(found.labels.bound, whole.labels.bound)


def test_below_its_bound_every_row_of_a_label_is_held(rng):
    y = (rng.random(3000) < 0.01).astype(int)
    drawn = Sampler(100, 1, labels=True)(block(np.arange(3000), y)).least()
    key = row_keys(1, 0, 3000)
    assert_array_equal(drawn.index, np.flatnonzero(key < drawn.labels.bound[y]))
    assert drawn.labels.bound[1] > drawn.labels.bound[0]


@pytest.mark.slow
def test_faded_rows_are_drawn_by_what_is_left_of_them():
    batch = np.concatenate(
        [faded_stream(seed, batches=25, n=50, decay=0.8, size=25).index // 50 for seed in SEEDS]
    )
    share = np.bincount(batch, minlength=25) / len(batch)
    # Of the first batch half a percent is left.
    left = 0.8 ** np.arange(24.0, -1.0, -1.0)
    # 7500 rows drawn; a tenth of 250 rows that count is drawn, so that shares are nearly those of the weights.
    assert_allclose(share, left / left.sum(), atol=0.025)


@pytest.mark.slow
def test_rows_drawn_stand_for_all_rows_without_bias():
    total = np.zeros(12)
    for seed in SEEDS:
        drawn = faded_stream(seed, batches=12, n=20, decay=0.7, size=30)
        total += np.bincount(drawn.index // 20, 1.0 / drawn.probability(), minlength=12) / len(SEEDS)
    # Rows of the oldest batch are drawn once in forty times: standard deviation 1.6 of 20 in the mean.
    assert_allclose(total, 20.0, atol=6.0)
    assert_allclose(total[-5:], 20.0, atol=1.5)


def test_decay_of_one_part_changes_no_sample_of_rows_that_all_fade_alike():
    drawn = Sampler(30, 2)(numbered(0, 500)).least()
    assert_array_equal(drawn.scaled(0.3).least().index, drawn.index)
    assert_allclose(drawn.scaled(0.3).probability(), drawn.probability(), rtol=1e-12)


@pytest.mark.slow
def test_forgotten_rows_are_let_go_before_keys_overflow():
    drawn = faded_stream(0, batches=500, n=2, decay=0.25, size=2000)
    assert np.isfinite(drawn.key).all()
    assert 300 < len(drawn.key) < 400


@pytest.mark.slow
def test_rows_that_come_after_others_left_are_drawn_alike():
    old = new = 0
    for seed in SEEDS:
        drawn = removing(Sampler(40, seed)(numbered(0, 400)).least(), numbered(0, 200))
        drawn = (drawn + Sampler(40, seed)(numbered(400, 200))).least()
        old += (drawn.index < 400).sum()
        new += (drawn.index >= 400).sum()
    # Both 6000 in expectation, with a standard deviation of about 80.
    assert abs(old - new) < 0.05 * (old + new)


def test_twins_that_are_not_held_leave_in_their_share(rng):
    y = rng.integers(0, 4, 4000).astype(float)
    drawn = Sampler(400, 3)(block(y, y)).least()
    left = removing(drawn, block(y[:1000], y[:1000]))
    # A quarter of the rows, and so of those held: 100, give or take 9.
    assert 260 < len(left.index) < 340


@pytest.mark.slow
def test_rows_taken_out_one_by_one_leave_in_their_share(rng):
    y = rng.integers(0, 4, 2000).astype(float)
    drawn = Sampler(200, 3)(block(y, y)).least()
    generator = np.random.default_rng(0)
    for i in range(500):
        drawn = drawn.without(block(y[i : i + 1], y[i : i + 1]), generator)
    assert 115 < len(drawn.index) < 185


def test_rows_that_do_not_repeat_leave_the_sample_for_certain():
    drawn = Sampler(50, 3)(numbered(0, 1000)).least()
    assert set(removing(drawn, numbered(0, 600)).index) == {i for i in drawn.index if i >= 600}


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(("held", "gone"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_rows_are_found_again_in_another_precision(rng, kind, held, gone):
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    rows = Block(kind(X.astype(held)), y.astype(held), None, 0)
    drawn = Sampler(100, 0)(rows)
    left = removing(drawn, Block(kind(X[:20].astype(gone)), y[:20].astype(gone), None, 0))
    assert_array_equal(left.index, np.arange(20, 60))


def test_dense_rows_are_found_among_sparse_ones(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    drawn = Sampler(100, 0)(Block(sparse.csr_matrix(X), y, None, 0))
    assert_array_equal(removing(drawn, Block(X[5:], y[5:], None, 0)).index, np.arange(5))


def test_rows_that_are_not_there_are_refused_where_all_are_held(rng):
    rows = block(rng.normal(size=(20, 2)))
    drawn = Sampler(100, 0)(rows)
    with pytest.raises(ValueError, match=r"row 1 with weight 1 is not in the model.*remove only"):
        removing(drawn, block(np.vstack([rows.X[:1], [[9.0, 9.0]]])))
    with pytest.raises(ValueError, match="row 0 with weight 1 is not in the model, or has less weight"):
        removing(drawn.scaled(0.5), rows.cut(0, 1))
    half = replace(rows.cut(0, 1), weight=np.array([0.5]))
    assert_array_equal(removing(drawn.scaled(0.5), half).index, np.arange(1, 20))


def test_more_of_a_label_than_there_is_is_refused(rng):
    y = np.repeat([0, 1], [95, 5])
    drawn = Sampler(20, 0, labels=True)(block(rng.normal(size=(100, 1)), y)).least()
    with pytest.raises(ValueError, match=r"cannot remove rows of label 1 with weight 6: .* weight 5 of"):
        removing(drawn, block(rng.normal(size=(6, 1)), np.ones(6, int)))


def test_a_sample_that_was_emptied_fills_again():
    drawn = removing(Sampler(10, 0)(numbered(0, 100)).least(), numbered(0, 100))
    assert len(drawn.index) == 0
    with pytest.raises(ValueError, match="were removed"):
        drawn.sample()
    assert len((drawn + Sampler(10, 0)(numbered(100, 400))).least().index) == 10
