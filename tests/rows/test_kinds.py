"""What becomes which rows: arrays, frames, streams, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer.rows import MemoryRows, Rows, StreamRows, as_rows
from mercer.rows._resolve import first_block
from mercer.rows._sampling.random_sample import sample


def blocks_of(table, size=100):
    return [(table.X[i : i + size], table.y[i : i + size]) for i in range(0, len(table.X), size)]


def test_blocks_of_an_array_are_views(table):
    for X in (table.X, np.asfortranarray(table.X)):
        assert all(np.shares_memory(block.X, X) for block in MemoryRows(X, block_rows=64).blocks())


def test_blocks_of_a_memory_map_are_memory_maps(table, tmp_path):
    np.save(tmp_path / "X.npy", table.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = as_rows(X)
    assert rows.X is X
    assert isinstance(first_block(rows).X, np.memmap)


def test_frames_of_mixed_numbers_become_float64(table):
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    frame = pd.DataFrame({"a": np.float32([1.5, 2.5]), "b": [True, False]})
    X = first_block(as_rows(frame)).X
    assert X.dtype == np.float64
    assert_array_equal(X, [[1.5, 1.0], [2.5, 0.0]])
    assert first_block(as_rows(frame[["a"]])).X.dtype == np.float32


def test_words_in_a_frame_are_refused_by_name():
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    with pytest.raises(ValueError, match=r"column 'b' of X contains text \('x'\).*OneHotEncoder"):
        first_block(as_rows(pd.DataFrame({"a": [1.0], "b": ["x"]})))
    with pytest.raises(ValueError, match=r"columns 'b', 'c' of X contain text \('x'\).*OneHotEncoder"):
        first_block(as_rows(pd.DataFrame({"a": [1.0], "b": ["x"], "c": ["y"]})))


def test_missing_values_in_a_frame_are_refused_with_its_columns():
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    with pytest.raises(
        ValueError, match=r"non-numeric values; fill, convert or drop columns of a \(float64\), b \("
    ):
        first_block(as_rows(pd.DataFrame({"a": [1.0], "b": [pd.NA]})))


def test_lists_are_rows_of_numbers_or_of_objects():
    assert_array_equal(first_block(as_rows([[1.0, 2.0], [3.0, 4.0]])).X, [[1.0, 2.0], [3.0, 4.0]])
    assert_array_equal(first_block(as_rows([(1.0, 2.0), (3.0, 4.0)])).X, [[1.0, 2.0], [3.0, 4.0]])
    assert first_block(as_rows(["abc", "de"], y=[0, 1])).X == ["abc", "de"]


def test_a_sample_of_objects_is_a_list(rng):
    words = [f"word {i}" for i in range(100)]
    found = sample(as_rows(words, block_rows=7), 10, rng)
    assert [words[i] for i in found.index] == found.X


@pytest.mark.slow
def test_every_row_is_drawn_equally_often(rng):
    rows = MemoryRows(np.zeros((12, 1)), block_rows=5)
    counts = sum(np.bincount(sample(rows, 4, rng).index, minlength=12) for _ in range(3000))
    # Binomial counts of mean 1000 and standard deviation 26: four of them, twelve times, once in 1300 seeds.
    assert abs(counts - 1000).max() < 4 * np.sqrt(3000 * (1 / 3) * (2 / 3))


def test_sparse_matrices_of_any_format_are_taken(table):
    for X in (sparse.coo_matrix(table.X), sparse.csc_array(table.X)):
        assert_array_equal(first_block(as_rows(X)).X.toarray(), table.X)
        with pytest.raises(ValueError, match=r"format '(coo|csc)'; pass X.tocsr\(\)"):
            MemoryRows(X)


def test_rows_stay_what_they_are(table):
    rows = MemoryRows(table.X)
    assert as_rows(rows) is rows


@pytest.mark.parametrize("kind", ["list", "function", "iterator", "iterable"])
def test_iterables_and_functions_are_streams(table, kind):
    blocks = blocks_of(table)
    X = {"list": blocks, "function": lambda: blocks, "iterator": iter(blocks), "iterable": Again(blocks)}[kind]
    rows = as_rows(X)
    assert isinstance(rows, StreamRows)
    assert rows.reduce(lambda block: block.n_rows) == len(table.X) == rows.n_rows


class Again:
    """Something that can be iterated, and nothing else."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


@pytest.mark.parametrize("X", [None, 3.0, np.float64(2.0)])
def test_other_things_are_refused_with_a_list_of_what_is_taken(X):
    with pytest.raises(TypeError, match=r"rows cannot be read from .*; pass an array, .* Parquet .* or Rows"):
        as_rows(X)


def test_targets_beside_a_stream_or_rows_are_refused(table):
    for X in (blocks_of(table), MemoryRows(table.X)):
        with pytest.raises(ValueError, match="contain y and weight in their blocks"):
            as_rows(X, table.y)


def test_targets_of_a_path_are_names(table):
    with pytest.raises(TypeError, match="y is of type ndarray; for a Parquet path, pass the name of a column"):
        as_rows("rows.parquet", table.y)


def test_lengths_are_compared(table):
    with pytest.raises(ValueError, match="y has 3 values for 1003 rows"):
        as_rows(table.X, table.y[:3])
    with pytest.raises(ValueError, match="weight has 3 values for 1003 rows in block 1 of the stream"):
        list(as_rows([(table.X,), (table.X, table.y, [1.0, 2.0, 3.0])]).blocks())


def test_a_block_has_a_row(table):
    for make in (MemoryRows, lambda X, **options: StreamRows([(X,)], **options)):
        with pytest.raises(ValueError, match="block_rows=0; it must be at least 1"):
            make(table.X, block_rows=0)


def test_an_iterator_is_gone_through_once(table):
    rows = StreamRows(iter(blocks_of(table)))
    assert rows.n_rows is None
    assert rows.reduce(lambda block: block.n_rows) == 1003
    with pytest.raises(ValueError, match="pass a function that returns the iterator"):
        rows.reduce(lambda block: block.n_rows)


def test_an_iterator_that_was_looked_at_is_gone(table):
    rows = StreamRows(block for block in blocks_of(table))
    first_block(rows)
    with pytest.raises(ValueError, match="pass a function that returns the iterator"):
        rows.blocks()


def test_a_function_that_returns_the_same_iterator_again_has_no_rows_the_second_time(table):
    blocks = iter(blocks_of(table))
    rows = StreamRows(lambda: blocks)
    rows.reduce(lambda block: block.n_rows)
    with pytest.raises(ValueError, match="no rows to sum over"):
        rows.reduce(lambda block: block.n_rows)


def test_any_batching_of_a_stream_gives_the_same_bits(table, rng):
    def fold(block):
        return block.X.T @ block.X

    expected = MemoryRows(table.X, block_rows=128).reduce(fold)
    for _ in range(5):
        cuts = np.sort(rng.integers(0, 1003, size=20))
        # np.split also makes empty blocks.
        stream = [(X,) for X in np.split(table.X, cuts)]
        assert_array_equal(StreamRows(stream, block_rows=128).reduce(fold), expected)


def test_frames_and_sparse_matrices_can_be_streamed(table):
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    X = table.X[:50]
    for kind in (pd.DataFrame, sparse.coo_array, list):
        rows = StreamRows([(kind(X[i : i + 7]),) for i in range(0, 50, 7)], block_rows=20)
        parts = [block.X.toarray() if sparse.issparse(block.X) else block.X for block in rows.blocks()]
        assert_array_equal(np.concatenate(parts), X)


@pytest.mark.parametrize(
    ("item", "said"), [(np.ones((2, 2)), "of type ndarray"), ((), "a tuple of 0"), ((1, 2, 3, 4), "a tuple of 4")]
)
def test_blocks_that_are_no_tuples_are_refused(item, said):
    with pytest.raises(TypeError, match=f"block 1 of the stream is {said}; pass tuples"):
        list(StreamRows([(np.ones((2, 2)),), item]).blocks())


def test_blocks_of_different_kinds_are_not_joined():
    X = np.ones((2, 2))
    for blocks in ([(X,), (["a", "b"],)], [(X,), (X, [0, 1])]):
        with pytest.raises(TypeError, match="cannot be joined"):
            list(StreamRows(blocks).blocks())


def test_sparse_and_dense_blocks_become_what_the_first_is():
    X = np.eye(3)
    for kinds in ((np.asarray, sparse.csr_array), (sparse.csr_matrix, np.asarray)):
        (block,) = StreamRows([(kind(X),) for kind in kinds]).blocks()
        assert sparse.issparse(block.X) == sparse.issparse(kinds[0](X))
        found = block.X.toarray() if sparse.issparse(block.X) else block.X
        assert_array_equal(found, np.vstack([X, X]))


def test_lists_of_numbers_are_arrays_and_other_lists_stay():
    (block,) = StreamRows([([[1, 2], [3, 4]],), ([[5, 6]],)]).blocks()
    assert_array_equal(block.X, [[1, 2], [3, 4], [5, 6]])
    (block,) = StreamRows([([("a", 1), ("b", 2)],)]).blocks()
    assert block.X == [("a", 1), ("b", 2)]


def test_an_empty_sample_is_refused(table, rng):
    with pytest.raises(ValueError, match="the sample size is 0"):
        sample(MemoryRows(table.X), 0, rng)


def test_rows_are_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Rows()
