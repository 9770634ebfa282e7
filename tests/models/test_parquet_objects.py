"""Models of strings and of named columns, fitted to Parquet files in passes over blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelFisherClassifier, KernelMachineClassifier, KernelRidgeRegressor, PairwiseClassifier
from mercer.centers import Given
from mercer.kernels import RBF, Intersection, KmerSpectrum, Nominal, Normalized, OnColumns
from mercer.rows import ParquetRows

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: no Parquet files here")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: no Parquet files here")


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("acgt"), size)) for size in rng.integers(3, 12, 120)]
    size, color = rng.normal(size=120), rng.choice(["red", "blue"], 120).tolist()
    label = ["yes" if s.count("a") > s.count("c") else "no" for s in strings]
    value = np.sin(2.0 * size) + np.array([name == "red" for name in color])
    return {"sequence": strings, "size": size, "color": color, "label": label, "value": value}


@pytest.fixture
def folder(columns, tmp_path):
    table = pa.table(columns)
    for i, start in enumerate(range(0, 120, 50)):
        pq.write_table(table.slice(start, 50), tmp_path / f"{i}.parquet", row_group_size=17)
    return tmp_path


def only(folder, *names):
    """The folder again, with some of the columns."""
    path = folder / "some"
    path.mkdir()
    for file in sorted(folder.glob("*.parquet")):
        pq.write_table(pq.read_table(file, columns=list(names)), path / file.name)
    return path


def test_strings_of_files_give_the_model_of_strings_in_memory(columns, folder):
    X, y, path = columns["sequence"], columns["label"], only(folder, "sequence", "label")
    settings = {"alpha": 0.1, "centers": Given(X[:15])}
    inside = KernelFisherClassifier(Normalized(KmerSpectrum(k=2, min_k=1)), **settings).fit(X, y)
    outside = KernelFisherClassifier(Normalized(KmerSpectrum(k=2, min_k=1)), **settings).fit(path, "label")
    assert outside.feature_names_in_.tolist() == ["sequence"]
    assert_allclose(outside.decision_function(X), inside.decision_function(X), rtol=1e-8, atol=1e-10)
    # The folder also holds columns that the model has not seen.
    assert_array_equal(outside.predict(folder), outside.predict(X))


@pytest.mark.parametrize("text", ["cheap money", "money " * 1000, "nul\0"])
def test_one_text_without_its_list_is_told_to_be_in_one(columns, text):
    model = KernelFisherClassifier(KmerSpectrum(k=2), alpha=0.1).fit(columns["sequence"], columns["label"])
    with pytest.raises(FileNotFoundError) as error:
        model.predict(text)
    words = f"a string is read as the path of a Parquet file: for one text, pass a list, [{text[:10]!r}"[:-1]
    assert words in str(error.value)
    assert len(str(error.value)) < 600
    assert len(model.predict([text])) == 1


def test_a_file_that_is_missing_is_no_text(columns, tmp_path):
    model = KernelRidgeRegressor(RBF(gamma=1.0), alpha=0.1).fit(columns["size"][:, None], columns["value"])
    texts = KernelFisherClassifier(KmerSpectrum(k=2), alpha=0.1).fit(columns["sequence"], columns["label"])
    for predict, path in [(model.predict, "rows.parquet"), (texts.predict, tmp_path / "rows.parquet")]:
        with pytest.raises(FileNotFoundError, match=r"there is no file or folder '[^']*'$"):
            predict(path)


@pytest.mark.slow
def test_centers_and_lengths_are_chosen_among_strings_of_files(columns, folder):
    rows = ParquetRows(folder, columns=["sequence"], target="label", form="list", block_rows=32)
    block = next(rows.blocks())
    assert columns["sequence"][:32] == block.X
    model = KernelFisherClassifier(Normalized(KmerSpectrum(k="loo")), centers=40, random_state=0).fit(rows)
    assert len(model.X_fit_) <= 40
    assert set(model.X_fit_) <= set(columns["sequence"])
    assert model.score(columns["sequence"], columns["label"]) > 0.8


@pytest.mark.slow
def test_a_list_of_kernels_reads_files_like_one_of_them(columns, folder):
    kernels = [Normalized(KmerSpectrum(k=1)), Normalized(KmerSpectrum(k=2))]
    model = KernelFisherClassifier(kernels, centers=20, random_state=0).fit(
        only(folder, "sequence", "label"), "label"
    )
    assert set(model.X_fit_) <= set(columns["sequence"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "kernel",
    [
        OnColumns(RBF(gamma=1.0), ["size"], lengths=None) + OnColumns(Nominal(gamma=1.0), ["color"]),
        OnColumns(RBF(gamma=1.0), ["size"], lengths=None) * OnColumns(Normalized(KmerSpectrum(1)), ["sequence"]),
    ],
    ids=["names", "strings"],
)
def test_named_columns_of_files_give_the_model_of_a_frame(kernel, columns, folder):
    frame = pytest.importorskip("pandas", reason="pandas is not installed: no frames here").DataFrame(columns)
    settings = {"alpha": 0.1, "centers": Given(frame[list(kernel.reads)][:20])}
    inside = KernelRidgeRegressor(kernel, **settings).fit(frame[list(kernel.reads)], frame["value"])
    outside = KernelRidgeRegressor(kernel, **settings).fit(folder, "value")
    assert outside.feature_names_in_.tolist() == list(kernel.reads)
    expected = inside.predict(frame[list(kernel.reads)])
    assert_allclose(outside.predict(frame), expected, rtol=1e-8, atol=1e-10)
    assert_allclose(outside.predict(folder), expected, rtol=1e-8, atol=1e-10)


def test_centers_are_chosen_among_named_columns_of_files(columns, folder):
    kernel = OnColumns(RBF(gamma=1.0), ["size"]) + OnColumns(Nominal(gamma=1.0), ["color"])
    model = KernelRidgeRegressor(kernel, centers=30, random_state=0).fit(folder, "value")
    assert model.score(folder, columns["value"]) > 0.95


def test_lists_of_files_are_sets(tmp_path):
    sets = [["a", "b"], ["a"], ["c", "b"], []]
    pq.write_table(pa.table({"tags": sets}), tmp_path / "t.parquet")
    block = next(ParquetRows(tmp_path / "t.parquet", form="list").blocks())
    assert_array_equal(Intersection().block(block.X, sets), Intersection().block(sets, sets))


def test_objects_are_in_one_column_without_nulls(folder, tmp_path):
    with pytest.raises(ValueError, match="X has 4 columns, sequence, size, color, value; name one"):
        KernelFisherClassifier(KmerSpectrum()).fit(folder, "label")
    with pytest.raises(ValueError, match="form='rows'"):
        ParquetRows(folder, form="rows")
    pq.write_table(pa.table({"s": ["a", None]}), tmp_path / "nulls.parquet")
    with pytest.raises(ValueError, match=r"column 's' .* has 1 nulls"):
        next(ParquetRows(tmp_path / "nulls.parquet", form="list").blocks())


def test_strings_are_not_numbers(folder):
    with pytest.raises(ValueError, match=r"'sequence' is of type string, .*not numeric.*kernels on strings"):
        KernelMachineClassifier(loss="logistic", centers=10).fit(folder, "label")
    assert KernelFisherClassifier().fit(folder, "label").columns_.columns[0].kind == "text"


def test_a_text_without_its_list_is_explained_also_to_pairs():
    model = PairwiseClassifier(KernelFisherClassifier(KmerSpectrum(2), alpha=1.0))
    model.fit(["abab", "abba", "cdcd", "dccd"] * 3, [0, 0, 1, 1] * 3)
    with pytest.raises(FileNotFoundError, match=r"for one text, pass a list, \['abab'\]"):
        model.predict("abab")
