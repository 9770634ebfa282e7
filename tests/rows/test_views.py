"""Blocks that hold several views of the same rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from mercer._gram import combine
from mercer._gram.moments import MomentsOf
from mercer.kernels import RBF, FromCallable, Linear, pairwise
from mercer.kernels._base import Wrapped
from mercer.rows import Block, MemoryRows, StreamRows, as_rows
from mercer.rows._base import join_blocks, regroup
from mercer.rows._distinct import distinct_rows
from mercer.rows._resolve import is_out_of_core
from mercer.rows._sampling.random_sample import sample
from mercer.rows._sources.checksum import checksums
from mercer.rows._sources.repeated import RepeatedRows
from mercer.rows._table import take

N = 40


@pytest.fixture
def X(rng, frozen):
    signal = frozen(rng.normal(size=(N, 3)))
    counts = sparse.csr_matrix(rng.poisson(0.5, size=(N, 5)).astype(float))
    return {"signal": signal, "counts": counts, "word": [f"word {i % 7}" for i in range(N)]}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    assert_array_equal(found["signal"], expected["signal"])
    assert_array_equal(found["counts"].toarray(), expected["counts"].toarray())
    assert found["word"] == expected["word"]


class View(Wrapped):
    """A kernel on one of the views."""

    def __init__(self, kernel, name="signal"):
        self.kernel = kernel
        self.name = name

    def block(self, X, Z):
        return self.kernel.block(X[self.name], Z[self.name])

    def diag(self, X):
        return self.kernel.diag(X[self.name])


SAME_WORD = FromCallable(pairwise(lambda a, b: float(a == b)), psd=True)
VIEWS = View(RBF(gamma=0.5)) + 2.0 * View(Linear(), "counts") * View(SAME_WORD, "word")


def test_blocks_are_cut_taken_and_joined_in_every_view(X):
    block = Block(X, np.arange(N), None, 10)
    assert block.n_rows == N
    part = block.cut(5, 9)
    assert (part.first, part.n_rows) == (15, 4)
    assert_same(part.X, take(X, np.arange(5, 9)))
    assert_same(block.take(np.array([3, 1])).X, take(X, np.array([3, 1])))
    assert_same(join_blocks([block.cut(0, 9), block.cut(9, N)]).X, X)
    assert_same(join_blocks(list(regroup([block.cut(0, 9), block.cut(9, N)], 7))).X, X)


def test_views_in_memory_and_in_a_stream_are_the_same_blocks(X):
    pieces = [(take(X, slice(start, start + 9)), np.arange(start, min(start + 9, N))) for start in range(0, N, 9)]
    memory, stream = as_rows(X, np.arange(N), block_rows=16), StreamRows(pieces, block_rows=16)
    assert isinstance(memory, MemoryRows)
    assert not is_out_of_core(X)
    for one, other in zip(memory.blocks(), stream.blocks(), strict=True):
        assert_same(one.X, other.X)
        assert_array_equal(one.y, other.y)


def test_frames_and_lists_become_arrays_in_every_view():
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    (block,) = as_rows({"frame": frame, "list": [[1, 2], [3, 4]]}).blocks()
    assert_array_equal(block.X["frame"], [[1.0, 3.0], [2.0, 4.0]])
    assert_array_equal(block.X["list"], [[1, 2], [3, 4]])


def test_views_of_different_lengths_are_refused(X):
    with pytest.raises(ValueError, match="'signal' has 40 rows, 'other' has 3 rows"):
        MemoryRows({"signal": X["signal"], "other": np.ones((3, 1))})


def test_checksums_of_views_add_and_change_with_every_view(X):
    (whole,) = checksums(5, X)
    parts = [checksums(5, take(X, slice(0, 17)))[0], checksums(22, take(X, slice(17, N)))[0]]
    assert sum(parts) % 2**64 == whole
    assert checksums(5, dict(reversed(X.items()))) == [whole]
    signal = X["signal"].copy()
    signal[3, 1] += 1e-9
    others = [
        X | {"signal": signal},
        X | {"counts": X["counts"] * 2.0},
        X | {"word": X["word"][::-1]},
        {"signal": X["signal"], "sums": X["counts"], "word": X["word"]},
        {"signal": X["signal"], "counts": X["counts"]},
    ]
    assert len({whole, *(checksums(5, other)[0] for other in others)}) == 6


def test_passes_over_views_that_change_are_refused(X):
    words = iter([X["word"], X["word"][::-1]])
    rows = RepeatedRows(StreamRows(lambda: [(X | {"word": next(words)},)]))
    assert rows.reduce(lambda block: block.n_rows) == N
    with pytest.raises(ValueError, match="pass 2 over the rows"):
        rows.reduce(lambda block: block.n_rows)


def test_a_sample_of_views_has_the_same_rows_in_each(X, rng):
    found = sample(as_rows(X, block_rows=7), 10, rng)
    assert_same(found.X, take(X, found.index))


def test_rows_are_equal_where_they_are_in_every_view(X):
    twice = take(X, np.array([0, 1, 0, 2, 1]))
    assert distinct_rows(twice).n_points == 3
    assert_array_equal(distinct_rows(twice).point[[0, 1]], distinct_rows(twice).point[[2, 4]])
    assert distinct_rows(twice | {"word": ["a", "b", "c", "d", "b"]}).n_points == 4


def test_kernels_on_views_are_summed_over_blocks(X, rng):
    centers, coef = take(X, np.arange(6)), rng.normal(size=(6, 2))
    same = np.equal.outer(X["word"], centers["word"])
    K = RBF(gamma=0.5).block(X["signal"], centers["signal"])
    K = K + 2.0 * (X["counts"] @ centers["counts"].T).toarray() * same
    assert_allclose(combine(VIEWS, X, centers, coef, cells=60), K @ coef, rtol=1e-12)
    moments = as_rows(X, block_rows=7).reduce(MomentsOf(VIEWS, centers))
    assert_allclose(moments.G, K.T @ K, rtol=1e-12)
    assert VIEWS.distinct(X).n_points == N
