"""Checksums add over blocks, and change with every value and with the order of the rows."""

import operator
from datetime import date
from functools import reduce

import numpy as np
import pytest
from scipy import sparse

from mercer.rows import Block, MemoryRows, StreamRows
from mercer.rows._sources.checksum import checksums
from mercer.rows._sources.repeated import FoldWithChecksums, RepeatedRows, RowChecksums

N = 40


def checksum(values, first):
    (found,) = checksums(first, values)
    return found


def numbers(rng):
    return rng.normal(size=(N, 3))


def words(rng):
    return np.array([f"word {i}" for i in rng.permutation(N)])


KINDS = {
    "float64": numbers,
    "float32, odd": lambda rng: numbers(rng).astype(np.float32),
    "float32, even": lambda rng: rng.normal(size=(N, 4)).astype(np.float32),
    "float16": lambda rng: numbers(rng).astype(np.float16),
    "longdouble": lambda rng: numbers(rng).astype(np.longdouble),
    "complex": lambda rng: numbers(rng) + 1j * numbers(rng),
    "fortran": lambda rng: np.asfortranarray(numbers(rng)),
    "strided": lambda rng: rng.normal(size=(2 * N, 6))[::2, ::2],
    "wide": lambda rng: rng.normal(size=(N, 70_000)),
    "int": lambda rng: rng.integers(-(2**62), 2**62, size=N),
    "int8": lambda rng: rng.permutation(N).astype(np.int8),
    "unicode": words,
    "bytes": lambda rng: words(rng).astype(bytes),
    "dates": lambda rng: np.datetime64("2020-01-01") + rng.permutation(N),
    "objects": lambda rng: words(rng).astype(object),
    "objects in two columns": lambda rng: np.column_stack([words(rng), words(rng)]).astype(object),
    "numbers as objects": lambda rng: np.array([None, True, 2.5, *range(N - 3)], dtype=object),
    "list of words": lambda rng: words(rng).tolist(),
    "list of arrays": lambda rng: [rng.normal(size=k) for k in range(N)],
    "list of tuples": lambda rng: [(int(k), f"{k}", [date(2020, 1, 1)]) for k in rng.permutation(N)],
    "csr": lambda rng: sparse.random_array((N, 50), density=0.3, format="csr", rng=rng),
    "csr, float32": lambda rng: sparse.random_array((N, 9), density=0.9, format="csr", rng=rng, dtype=np.float32),
}


@pytest.fixture(params=KINDS)
def values(request, rng):
    return KINDS[request.param](rng)


def some(values, rows):
    return values[rows] if hasattr(values, "shape") else [values[i] for i in rows]


@pytest.mark.sampled(19)
def test_checksums_of_blocks_add_up_to_that_of_all_rows(values):
    whole = checksum(values, 5)
    for cuts in ([7, 30], [1, 2, 3, 39], range(1, N)):
        parts = np.split(np.arange(N), cuts)
        assert sum(checksum(some(values, part), 5 + part[0]) for part in parts) % 2**64 == whole


@pytest.mark.sampled(4)
def test_every_order_has_its_own_checksum(values):
    found = {checksum(values, 0), checksum(values, 1)}
    for k in range(1, N):
        order = np.arange(N)
        order[[0, k]] = k, 0
        found.add(checksum(some(values, order), 0))
    assert len(found) == N + 1


def test_a_copy_has_the_same_checksum(values):
    assert checksum(values, 3) == checksum(values.copy(), 3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int16, np.uint8])
def test_every_bit_of_one_value_counts(dtype):
    X = np.zeros((2, 3), dtype=dtype)
    found = {checksum(X, 0)}
    for k in range(X.nbytes):
        for bit in range(8):
            changed = X.copy()
            changed.view(np.uint8).reshape(-1)[k] ^= 1 << bit
            found.add(checksum(changed, 0))
    assert len(found) == 8 * X.nbytes + 1


@pytest.mark.parametrize("d", [1, 2, 3, 8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_changes_of_many_values_that_are_alike_do_not_cancel(rng, d, dtype):
    """Signs, powers of two, zeros and ones: changes of a few leading bits only."""
    X = rng.integers(1, 3, size=(64, d)).astype(dtype)
    variants = [X, -X, 2 * X, X / 2, X - 1, 1 - X, X[:, ::-1] * np.arange(1, d + 1), np.where(X == 1, -X, X)]
    assert len({checksum(one, 0) for one in variants}) == len({one.tobytes() for one in variants})


def test_rows_of_zeros_and_ones_are_told_apart(rng):
    """Some 80,000 pairs of rows of which a share of 2**-29 may have the same checksum."""
    rows = np.unique(rng.integers(2, size=(400, 30)).astype(float), axis=0)
    assert len({checksum(row[None], 0) for row in rows}) == len(rows)


def test_the_width_of_words_does_not_matter():
    assert checksum(np.array(["a", "b"], dtype="U1"), 0) == checksum(np.array(["a", "b"], dtype="U9"), 0)


def test_objects_of_unknown_types_are_only_counted():
    one, two = [{1: 2}, {3}], [{1: 4}, {5}]
    assert checksum(one, 0) == checksum(two, 0) != checksum([*one, {6}], 0)


def test_checksums_are_the_same_in_every_process_and_version():
    """Workers of a cluster add theirs up: words from two programs must agree."""
    assert checksum(np.array([[1.0, 2.0], [3.0, 4.0]]), 7) == 16890159506384748544
    assert checksum(["spam", "ham"], 0) == 8219348362692377525
    assert checksum(sparse.csr_array([[0.0, 1.0], [2.0, 0.0]]), 0) == 12676899312844668928


def test_parts_of_a_block_have_checksums_of_their_own(rng):
    X, y = rng.normal(size=(5, 2)), np.arange(5)
    assert checksums(3, X, None, y) == [checksum(X, 3), 0, checksum(y, 3)]


def test_what_is_not_there_has_no_checksum():
    assert checksum(None, 4) == 0
    assert checksum(np.empty((0, 3)), 0) == 0
    assert checksum(np.empty((3, 0)), 0) == 0


def test_every_source_of_the_same_rows_has_the_same_passage(rows, table):
    found = rows.reduce(FoldWithChecksums(lambda block: block.n_rows)).checksums
    blocks = [RowChecksums.of(block) for block in rows.blocks()]
    assert found == reduce(operator.add, blocks)
    reference = RowChecksums.of(Block(table.X, table.y, table.weight, 0))
    if not sparse.issparse(next(rows.blocks()).X):
        assert found == reference
    assert (found.n_rows, found.y, found.weight) == (len(table.X), reference.y, reference.weight)


@pytest.mark.sampled(5)
def test_repeated_rows_have_the_same_sums(rows):
    repeated = RepeatedRows(rows)
    for _ in range(2):
        assert repeated.reduce(lambda block: [block.first]) == rows.reduce(lambda block: [block.first])
    assert [block.first for block in repeated.blocks()] == [block.first for block in rows.blocks()]
    assert repeated.n_rows == rows.n_rows
    assert repeated.feature_names == getattr(rows, "feature_names", None)


def test_sums_are_made_in_place_once_they_are_our_own():
    """Sums of moments are large: one is made, and written to from then on."""
    made = []

    class Total(list):
        def __add__(self, other):
            made.append(True)
            return Total([*self, *other])

        def __iadd__(self, other):
            self.extend(other)
            return self

    rows = RepeatedRows(MemoryRows(np.ones((9, 1)), block_rows=2))
    assert rows.reduce(lambda block: Total([block.first])) == [0, 2, 4, 6, 8]
    assert len(made) == 1


def test_a_pass_that_is_left_is_not_compared(table):
    rows = RepeatedRows(MemoryRows(table.X, block_rows=100))
    next(rows.blocks())
    assert rows.reduce(lambda block: block.n_rows) == len(table.X)


def test_changed_content_of_a_memory_map_is_found(tmp_path, table):
    np.save(tmp_path / "X.npy", table.X)
    rows = RepeatedRows(MemoryRows(np.load(tmp_path / "X.npy", mmap_mode="r")))
    rows.reduce(lambda block: block.n_rows, phase="count")
    written = np.load(tmp_path / "X.npy", mmap_mode="r+")
    written[-1, -1] = 0.0
    written.flush()
    with pytest.raises(
        ValueError, match=r"pass 2 over the rows has different values of X in 1003 rows from pass 1 \(count\)"
    ):
        rows.reduce(lambda block: block.n_rows)


def test_an_iterator_is_refused():
    with pytest.raises(ValueError, match="an iterator can be consumed only once"):
        RepeatedRows(StreamRows(iter([(np.ones((2, 1)),)])))
