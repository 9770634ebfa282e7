"""Rows in Parquet files: columns, types, ranges, memory, errors."""

import builtins
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mercer.rows import MemoryRows, ParquetRows, as_rows

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: no Parquet files here")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: no Parquet files here")


def file_of(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def all_of(rows, name="X"):
    return np.concatenate([getattr(block, name) for block in rows.blocks()])


@pytest.fixture
def file(tmp_path, table, write):
    return write(table, tmp_path / "rows.parquet")


@pytest.fixture
def folder(tmp_path, table, write):
    path = tmp_path / "parts"
    path.mkdir()
    for i, start in enumerate(range(0, len(table.X), 300)):
        write(table, path / f"{i}.parquet", rows=slice(start, start + 300), group=45)
    return path


def test_columns_come_in_the_order_asked_for(file, table):
    rows = ParquetRows(file, columns=["x2", "x0"])
    assert rows.feature_names == ("x2", "x0")
    assert_array_equal(all_of(rows), table.X[:, [2, 0]])
    assert next(rows.blocks()).y is None
    assert next(rows.blocks()).weight is None


def test_several_targets_are_a_matrix(file, table):
    rows = ParquetRows(file, columns=["x0"], target=["x1", "x2"])
    assert_array_equal(all_of(rows, "y"), table.X[:, 1:])


def test_everything_but_target_and_weight_is_a_feature(file):
    assert ParquetRows(file, target="label", weight="weight").feature_names == ("x0", "x1", "x2")


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (("f4", "f4"), np.float32),
        (("f4", "f8"), np.float64),
        (("f4", "i2"), np.float64),
        (("i8", "i8"), np.float64),
        (("bool", "f8"), np.float64),
    ],
)
def test_float32_stays_and_mixtures_are_float64(tmp_path, types, expected):
    columns = {f"c{j}": np.arange(3).astype(kind) for j, kind in enumerate(types)}
    X = next(ParquetRows(file_of(tmp_path / "t.parquet", **columns)).blocks()).X
    assert X.dtype == expected
    assert_array_equal(X, np.column_stack(list(columns.values())))


def test_words_can_be_targets(tmp_path):
    words = pa.array(["spam", "ham", "spam"])
    path = file_of(tmp_path / "t.parquet", x=[1.0, 2.0, 3.0], plain=words, coded=words.dictionary_encode())
    for target in ("plain", "coded"):
        rows = ParquetRows(path, columns=["x"], target=target)
        assert all_of(rows, "y").tolist() == ["spam", "ham", "spam"]


@pytest.mark.parametrize(
    "interval", [(0, 1003), (0, 1), (299, 301), (300, 600), (450, 1003), (1002, 1003), (7, 7)]
)
def test_a_range_of_rows_is_that_part_of_all_files(folder, table, interval):
    start, stop = interval
    rows = ParquetRows(folder, target="label", weight="weight", rows=interval, block_rows=64)
    assert rows.n_rows == stop - start
    blocks = list(rows.blocks())
    assert [block.first for block in blocks] == list(range(0, stop - start, 64))
    if blocks:
        assert_array_equal(all_of(rows), table.X[start:stop])
        assert_array_equal(all_of(rows, "y"), table.y[start:stop])


def test_ranges_add_up_to_the_whole(folder, table):
    halves = [ParquetRows(folder, columns=["x0"], rows=interval) for interval in ((0, 333), (333, 1003))]
    assert_array_equal(np.concatenate([all_of(half) for half in halves]), table.X[:, :1])


def test_sums_have_the_same_bits_however_rows_are_cut_into_files(file, folder, table):
    def fold(block):
        return block.X.T @ block.X

    sources = [
        ParquetRows(file, target="label", weight="weight", block_rows=64),
        ParquetRows(folder, target="label", weight="weight", block_rows=64),
        MemoryRows(table.X, block_rows=64),
    ]
    sums = [rows.reduce(fold) for rows in sources]
    assert_array_equal(sums[0], sums[1])
    assert_array_equal(sums[0], sums[2])


def test_the_number_of_rows_is_read_without_the_rows(folder, monkeypatch):
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    assert ParquetRows(folder).n_rows == 1003


def test_a_pickle_holds_no_rows(tmp_path):
    path = file_of(tmp_path / "t.parquet", x=np.arange(100_000.0))
    rows = ParquetRows(path)
    next(rows.blocks())
    assert len(pickle.dumps(rows)) < 2000
    assert pickle.loads(pickle.dumps(rows)) == rows


def most_allocated(path):
    """Bytes that pyarrow holds at most while a file is read block by block."""
    before = pa.total_allocated_bytes()
    return max(pa.total_allocated_bytes() - before for _ in ParquetRows(path, block_rows=4096).blocks())


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path, rng):
    held = []
    for n in (40_000, 320_000):
        columns = {f"x{j}": rng.standard_normal(n, dtype=np.float32) for j in range(8)}
        path = tmp_path / f"{n}.parquet"
        # One row group, the worst case, without dictionaries, whose size varies with the rows.
        pq.write_table(pa.table(columns), path, row_group_size=n, use_dictionary=False)
        held.append(most_allocated(path))
    # A page and a buffer a column, and a batch: 1.4 MB in both. Whole columns of the larger file are 10 MB.
    assert held[1] < 2 * held[0]
    assert held[1] < 4 * 2**20


def test_names_that_begin_with_a_dot_or_an_underscore_are_not_data(folder):
    for name in (".0.parquet", "_metadata.parquet", "readme.txt"):
        (folder / name).write_bytes(b"")
    assert ParquetRows(folder).n_rows == 1003


def test_an_unknown_column_is_named_with_those_there_are(file):
    for options in ({"columns": ["z"]}, {"target": "z"}, {"weight": "z"}):
        with pytest.raises(ValueError, match=r"no column 'z'.*x0, x1, x2, label, weight"):
            ParquetRows(file, **options)


def test_a_target_is_not_a_feature(file):
    with pytest.raises(ValueError, match="'label' is the target or weight and also in columns"):
        ParquetRows(file, columns=["x0", "label"], target="label")


def test_nulls_are_counted_and_named(tmp_path):
    path = file_of(tmp_path / "t.parquet", x=[1.0, None, None, 4.0], z=[1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match=r"column 'x' .* has 2 nulls in rows 0 to 3"):
        ParquetRows(path).reduce(lambda block: block.n_rows)
    assert ParquetRows(path, columns=["z"]).reduce(lambda block: block.n_rows) == 4


def test_words_are_not_features(tmp_path):
    path = file_of(tmp_path / "t.parquet", x=[1.0], name=["a"])
    with pytest.raises(ValueError, match="column 'name' is of type string, which is not numeric"):
        ParquetRows(path)
    with pytest.raises(ValueError, match="there are no columns for X"):
        ParquetRows(path, columns=[])


def test_files_that_differ_are_told_apart(tmp_path):
    file_of(tmp_path / "a.parquet", x=[1.0], z=[1.0])
    file_of(tmp_path / "b.parquet", x=[1], z=[1.0])
    with pytest.raises(ValueError, match=r"column 'x' is int64 in '.*b.parquet' and double in '.*a.parquet'"):
        ParquetRows(tmp_path)
    assert_array_equal(all_of(ParquetRows(tmp_path, columns=["z"])), [[1.0], [1.0]])
    file_of(tmp_path / "b.parquet", x=[1.0], z=[1.0], more=[1.0])
    with pytest.raises(ValueError, match=r"column 'more' is double in '.*b.parquet' and missing in '.*a.parquet'"):
        ParquetRows(tmp_path)


def test_the_order_of_columns_may_differ_between_files(tmp_path):
    file_of(tmp_path / "a.parquet", x=[1.0], z=[2.0])
    file_of(tmp_path / "b.parquet", z=[2.0], x=[1.0])
    assert_array_equal(all_of(ParquetRows(tmp_path)), [[1.0, 2.0], [1.0, 2.0]])


@pytest.mark.parametrize("interval", [(-1, 5), (5, 4), (0, 1004)])
def test_a_range_outside_the_rows_is_refused(file, interval):
    with pytest.raises(ValueError, match="within rows 0 to 1002"):
        ParquetRows(file, rows=interval)


def test_no_file_and_an_empty_folder_are_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder '.*gone.parquet'"):
        as_rows(tmp_path / "gone.parquet")
    with pytest.raises(FileNotFoundError, match=r"no files \*.parquet in the folder"):
        as_rows(str(tmp_path))


def test_without_pyarrow_the_extra_is_named(file, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install mercer\[parquet\]"):
        ParquetRows(file)


def test_a_name_that_two_columns_share_is_refused_unless_it_is_left_out(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([[1.0], [2.0], [3.0]], names=["x", "x", "z"]), path)
    for options in ({}, {"columns": ["x"]}, {"columns": ["z"], "target": "x"}):
        with pytest.raises(ValueError, match=r"'.*t.parquet' has 2 columns named 'x'; .* columns=\[\.\.\.\]"):
            ParquetRows(path, **options)
    assert_array_equal(all_of(ParquetRows(path, columns=["z"])), [[3.0]])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([[1.0], [2.0]]), "list<.*double>"),
        (pa.array([{"a": 1.0}, {"a": 2.0}]), "struct<a: double>"),
        (pa.array(["1", "2"]).dictionary_encode(), "dictionary<values=string.*>"),
        (pa.array([1, 2]).cast(pa.decimal128(30, 2)), r"decimal128\(30, 2\)"),
        (pa.array([1, 2], pa.timestamp("us")), r"timestamp\[us\]"),
        (pa.array([1, 2], pa.date32()), r"date32\[day\]"),
        (pa.array([b"1", b"2"]), "binary"),
        (pa.nulls(2), "null"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_that_are_not_numbers_are_no_features_and_no_weights(tmp_path, column, kind):
    path = file_of(tmp_path / "t.parquet", x=[1.0, 2.0], other=column)
    remedy = r"; cast it to float64, or exclude it with columns=\[\.\.\.\]"
    with pytest.raises(ValueError, match=f"column 'other' is of type {kind}, which is not numeric{remedy}"):
        ParquetRows(path)
    if "decimal" not in kind:
        with pytest.raises(ValueError, match=f"column 'other' is of type {kind}, which is not numeric; cast it"):
            ParquetRows(path, weight="other")
    assert_array_equal(all_of(ParquetRows(path, columns=["x"])), [[1.0], [2.0]])


@pytest.mark.parametrize("column", [pa.array([[1.0], [2.0]]), pa.array([{"a": 1.0}, {"a": 2.0}])])
def test_a_target_has_one_value_for_each_row(tmp_path, column):
    path = file_of(tmp_path / "t.parquet", x=[1.0, 2.0], other=column)
    with pytest.raises(ValueError, match=r"column 'other' is of type .*, not one value for each row"):
        ParquetRows(path, target="other")


def test_columns_of_one_name_are_named_and_not_damage(tmp_path):
    columns = [pa.array([1.0, 2.0]), pa.array(["a", "b"]), pa.array([0.0, 1.0])]
    pq.write_table(pa.Table.from_arrays(columns, names=["a", "a", "y"]), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="has 2 columns named 'a'; rename them"):
        ParquetRows(tmp_path / "rows.parquet", target="y", form="raw")
