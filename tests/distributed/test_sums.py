"""The task that sums over a part, here: what it adds up, and what its fold keeps between blocks and tasks."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._gram.moments import MomentsOf
from mercer.kernels import RBF
from mercer.rows import MemoryRows
from mercer.rows._engines.base import Accumulating, sum_part

N = 10_000


@pytest.fixture(params=[(np.float32, np.float32), (np.float32, np.float64), (np.float64, np.float64)])
def part(request, rng, frozen):
    """Rows in several blocks of several pieces, and their fold, in every mix of precisions."""
    rows, products = request.param
    X = frozen(rng.standard_normal((N, 3)).astype(rows))
    weight = frozen(rng.uniform(0.5, 2.0, size=N))
    return MemoryRows(X, X[:, 0] > 0, weight, block_rows=4500), MomentsOf(RBF(gamma=0.3), X[:20], products)


def naive(rows, fold):
    """K'WK of all rows at once."""
    K = fold.kernel.block(rows.X.astype(float), fold.centers.astype(float))
    return K.T @ (rows.weight[:, None] * K)


def test_a_part_has_the_sum_of_its_rows(part):
    rows, fold = part
    found = sum_part(fold, rows, 0)
    assert isinstance(fold, Accumulating)
    assert found.n_rows == found.total.n_rows == N
    single = np.float32 in (fold.dtype, rows.X.dtype)
    assert_allclose(found.total.G, naive(rows, fold), rtol=1e-4 if single else 1e-10)


def test_a_fold_that_only_makes_sums_of_blocks_gives_the_same(part):
    rows, fold = part
    found, expected = sum_part(fold, rows, 0).total, sum_part(lambda block: fold(block), rows, 0).total
    for name in ("s", "t", "G", "C", "V"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)


def test_what_a_thread_keeps_for_the_next_task_is_no_part_of_a_sum(part):
    rows, fold = part
    first = sum_part(fold, rows, 0).total
    kept = first.G.copy()
    second = sum_part(fold, MemoryRows(rows.X[:50], rows.y[:50]), 0).total
    assert not np.shares_memory(first.G, second.G)
    assert_array_equal(first.G, kept)


def test_a_fold_that_was_used_is_pickled_without_what_it_keeps(part):
    rows, fold = part
    sum_part(fold, rows, 0)
    again = pickle.loads(pickle.dumps(fold))
    assert len(pickle.dumps(fold)) < 10_000
    assert_array_equal(sum_part(again, rows, 0).total.G, sum_part(fold, rows, 0).total.G)


def test_an_error_says_in_which_rows(part):
    rows, fold = part
    X = rows.X.copy()
    X[5000] = np.nan
    with pytest.raises(ValueError, match="not finite") as found:
        sum_part(fold, MemoryRows(X, rows.y, block_rows=4500), 100)
    assert found.value.__notes__ == ["in rows 4600 to 9099"]
