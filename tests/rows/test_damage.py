"""Parquet files that are damaged, removed or rewritten: an error names the file, or nothing is different."""

import io
import re
from functools import reduce
from operator import add
from types import SimpleNamespace

import numpy as np
import pytest

from mercer import KernelFisherClassifier
from mercer.kernels import RBF
from mercer.rows import ParquetRows
from mercer.rows._engines.spark import spark_rows
from mercer.rows._sources.repeated import FoldWithChecksums, RepeatedRows

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: no Parquet files here")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: no Parquet files here")

N = 400


@pytest.fixture(scope="module")
def content():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    columns = {"a": X[:, 0], "b": X[:, 1].astype(np.float32), "label": np.where(X[:, 0] > 0, "yes", "no")}
    return pa.table(columns | {"w": rng.uniform(1.0, 2.0, size=N)})


WRITTEN = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "usual": {},
    "pages of version 2": {"data_page_version": "2.0"},
}


def bytes_of(content, **options):
    buffer = io.BytesIO()
    pq.write_table(content, buffer, row_group_size=150, write_page_checksum=True, **options)
    return buffer.getvalue()


def flipped(data, position, bit):
    damaged = bytearray(data)
    damaged[position] ^= 1 << bit
    return bytes(damaged)


def model_of(path):
    centers = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0, centers=centers, random_state=0)
    return model.fit(path, "label", "w")


def answer_of(path):
    """The bits of a fitted model, or the error that names the file."""
    try:
        model = model_of(path)
    except (OSError, ValueError) as error:
        return "refused" if path.name in str(error) else repr(error)
    return model.dual_coef_.tobytes() + model.intercept_.tobytes() + model.loo_proba_.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("options", WRITTEN)
def test_a_file_with_a_wrong_byte_is_refused_or_gives_the_same_bits(tmp_path, content, options):
    """Twenty places all over the file: pages, their headers, and the footer."""
    path = tmp_path / "rows.parquet"
    data = bytes_of(content, **WRITTEN[options])
    path.write_bytes(data)
    intact = answer_of(path)
    assert intact != "refused"
    found = []
    for k, position in enumerate(np.linspace(0, len(data) - 1, 20).astype(int)):
        path.write_bytes(flipped(data, position, k % 8))
        found.append(answer_of(path))
    assert set(found) <= {"refused", intact}
    # Most of a file are its pages.
    assert found.count("refused") > 10


def passage_of(path):
    """What a pass has seen, in this thread: thousands of passes would mostly start others."""
    rows = ParquetRows(path, columns=["a", "b"], target="label", weight="w")
    return reduce(add, map(FoldWithChecksums(lambda block: block.n_rows), rows.blocks())).checksums


@pytest.mark.slow
@pytest.mark.parametrize("options", WRITTEN)
def test_no_wrong_byte_changes_the_rows_in_silence(tmp_path, content, options):
    """Every byte of the footer, which has no checksum, and every tenth byte before it."""
    path = tmp_path / "rows.parquet"
    data = bytes_of(content, **WRITTEN[options])
    path.write_bytes(data)
    intact = passage_of(path)
    # The last eight bytes are the length of the footer, and the word that ends the file.
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for position in (*range(0, footer, 10), *range(footer, len(data))):
        path.write_bytes(flipped(data, position, position % 8))
        try:
            found = passage_of(path)
        except (OSError, ValueError) as error:
            found = intact if path.name in str(error) else error
        assert found == intact, position


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_is_refused_by_its_name(tmp_path, content, share):
    path = tmp_path / "rows.parquet"
    data = bytes_of(content)
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises((OSError, ValueError), match=r"'.*rows.parquet' cannot be read: .*; .* write it again"):
        ParquetRows(path)


def test_the_rows_that_cannot_be_read_are_named(tmp_path, content):
    """A wrong byte in the second of three row groups, which begins at row 150."""
    path = tmp_path / "rows.parquet"
    data = bytes_of(content, **WRITTEN["plain"])
    second = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(0).data_page_offset
    path.write_bytes(flipped(data, second + 300, 0))
    words = r"rows 100 to 199 of '.*rows.parquet' cannot be read: .*checksum.*; .* write it again"
    with pytest.raises(OSError, match=words):
        list(ParquetRows(path, columns=["a"], block_rows=100).blocks())


def test_a_file_of_a_folder_is_named(tmp_path, content):
    data = bytes_of(content)
    (tmp_path / "0.parquet").write_bytes(data)
    (tmp_path / "1.parquet").write_bytes(flipped(data, 100, 3))
    with pytest.raises(OSError, match=r"rows 0 to 399 of '.*1.parquet' cannot be read"):
        list(ParquetRows(tmp_path, columns=["a"]).blocks())


@pytest.fixture
def between(monkeypatch):
    """Call a function before the second pass over Parquet files."""

    def install(function):
        real, passes = ParquetRows.blocks, []

        def blocks(self):
            passes.append(True)
            if len(passes) == 2:
                function()
            return real(self)

        monkeypatch.setattr(ParquetRows, "blocks", blocks)

    return install


def other_content(content):
    return content.set_column(0, "a", pa.array(content["a"].to_numpy() + 1.0))


CHANGES = {
    "values": (other_content, "pass 2 over the rows (moments) has different values of X in 400 rows"),
    "labels": (
        lambda content: content.set_column(2, "label", pa.array(content["label"].to_pylist()[::-1])),
        "has different values of y in 400 rows",
    ),
    "fewer rows": (lambda content: content[:300], "rows.parquet' has 300 rows now and had 400"),
    "more rows": (
        lambda content: pa.concat_tables([content, content]),
        "rows.parquet' has 800 rows now and had 400",
    ),
    "a type": (
        lambda content: content.set_column(0, "a", pa.array(["word"] * N)),
        "column 'a' of '{path}' is string now and was double",
    ),
    "a column": (
        lambda content: content.rename_columns(["z", "b", "label", "w"]),
        "column 'a' of '{path}' is missing",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_rewritten_between_passes_is_refused(tmp_path, content, between, change):
    path = tmp_path / "rows.parquet"
    path.write_bytes(bytes_of(content))
    other, words = CHANGES[change]
    between(lambda: path.write_bytes(bytes_of(other(content))))
    with pytest.raises(ValueError, match=re.escape(words.format(path=path))):
        model_of(path)


def test_a_file_that_is_rewritten_as_it_was_is_the_same_file(tmp_path, content, between):
    path = tmp_path / "rows.parquet"
    path.write_bytes(bytes_of(content))
    expected = model_of(path).dual_coef_
    between(lambda: path.write_bytes(bytes_of(content, **WRITTEN["plain"])))
    assert model_of(path).dual_coef_.tobytes() == expected.tobytes()


def test_a_file_that_is_gone_between_passes_is_named(tmp_path, content, between):
    path = tmp_path / "rows.parquet"
    path.write_bytes(bytes_of(content))
    between(path.unlink)
    with pytest.raises(
        FileNotFoundError,
        match=r"'.*rows.parquet' cannot be read: .*; the file is not a Parquet file, is dam",
    ):
        model_of(path)


def test_a_file_without_checksums_is_still_compared_between_passes(tmp_path, content):
    """A wrong byte in an uncompressed page passes for a number: nobody can tell, but it must not come and go."""
    path = tmp_path / "rows.parquet"
    pq.write_table(content, path, use_dictionary=False, compression="none")
    data = path.read_bytes()
    rows = RepeatedRows(ParquetRows(path, columns=["a"]))
    rows.reduce(lambda block: block.n_rows, phase="sample")
    path.write_bytes(flipped(data, 1000, 0))
    with pytest.raises(ValueError, match="pass 2 over the rows has different values of X in 400 rows"):
        rows.reduce(lambda block: block.n_rows)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["a", "w"])
def test_values_that_are_not_finite_are_refused(tmp_path, content, column, value):
    path = tmp_path / "rows.parquet"
    values = content[column].to_numpy().copy()
    values[-1] = value
    place = content.column_names.index(column)
    pq.write_table(content.set_column(place, column, pa.array(values)), path)
    with pytest.raises(ValueError, match=r"NaN|infinity|must be finite"):
        model_of(path)


def test_columns_of_an_engine_that_share_a_name_are_refused():
    """Before anything is asked of the engine, so that its place can be held by anything with names."""
    frame = SimpleNamespace(columns=["a", "label", "a"])
    with pytest.raises(ValueError, match="there are 2 columns named 'a'; rename or drop all but one"):
        spark_rows(frame, "label")
    with pytest.raises(ValueError, match="there is no column 'z'; the columns are a, label, a"):
        spark_rows(frame, "z")
