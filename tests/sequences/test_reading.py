"""Sequences as users pass them, and as they are in files."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from mercer.datasets import make_words
from mercer.rows._sources import parquet
from mercer.sequences import HiddenMarkovClassifier, read_sequences
from mercer.sequences import _reading as reading
from mercer.sequences._given import checked_sequences, frame_names, one_sequence

pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LENGTHS = (3, 2, 4)


def repeated(values):
    return np.repeat(np.asarray(values), LENGTHS)


@pytest.fixture
def table():
    X = np.arange(18.0).reshape(9, 2)
    return {
        "person": repeated(["ann", "bob", "ann"]),
        "time": np.arange(9),
        "ax": X[:, 0],
        "n": repeated([4, 7, 5]),
        "ay": X[:, 1],
        "act": repeated(["walk", "run", "run"]),
    }


@pytest.fixture
def written(tmp_path):
    def write(table, name="frames.parquet"):
        pq.write_table(pyarrow.table(table), tmp_path / name)
        return tmp_path / name

    return write


@pytest.fixture(params=[1, 2, 100])
def batches(request, monkeypatch):
    """Files are read a few rows at a time."""
    own = parquet.ParquetRows

    def rows(*args, **choices):
        return own(*args, block_rows=request.param, **choices)

    monkeypatch.setattr(reading, "ParquetRows", rows)


@pytest.fixture(scope="module")
def words():
    return make_words(20, random_state=0)


@pytest.fixture(scope="module")
def fitted(words):
    model = HiddenMarkovClassifier(QuadraticDiscriminantAnalysis(), n_states=3, n_mixtures=1, random_state=0)
    return model.fit(*words)


def read(path, **choices):
    return read_sequences(path, "act", **({"sequence": "n", "columns": ["ax", "ay"]} | choices))


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize("in_file", [False, True])
def test_features_and_groups_are_the_columns_that_are_named(table, written, tmp_path, in_file):
    file = tmp_path / "frames.npy" if in_file else None
    X, y, groups = read(written(table), columns=["ay", "ax"], groups="person", file=file)
    assert_array_equal(np.concatenate(X), np.column_stack([table["ay"], table["ax"]]))
    assert [len(x) for x in X] == list(LENGTHS)
    assert y.tolist() == ["walk", "run", "run"]
    assert groups.tolist() == ["ann", "bob", "ann"]


def test_all_columns_without_another_meaning_are_features(table, written):
    X, _, groups = read(written(table), columns=None, groups="person")
    assert_array_equal(np.concatenate(X), np.column_stack([table["time"], table["ax"], table["ay"]]))
    assert len(groups) == 3
    with pytest.raises(ValueError, match=r"'person' is of type .*string.*exclude it with columns="):
        read(written(table), columns=None)


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(
    "names",
    [
        ["s0", "s2", "s1"],
        [b"s0", b"s2", b"s1"],
        pd.Categorical(["s0", "s2", "s1"]),
        [0.5, 2.5, 1.5],
        [2**60, 2**60 + 1, 2**60 + 2],
        np.array(["2024-01-01", "2024-01-03", "2024-01-02"], dtype="datetime64[ms]"),
    ],
    ids=["strings", "bytes", "categories", "floats", "large", "dates"],
)
def test_sequences_have_numbers_or_names(table, written, names):
    X, y = read(written(table | {"n": pd.Series(names).repeat(LENGTHS)}))
    assert [len(x) for x in X] == list(LENGTHS)
    assert y.tolist() == ["walk", "run", "run"]


@pytest.mark.usefixtures("batches")
def test_labels_and_groups_do_not_change_within_a_sequence(table, written):
    path = written(table | {"act": np.where(np.arange(9) == 4, "walk", table["act"])})
    with pytest.raises(ValueError, match="sequence 7 has several labels, another one in row 4"):
        read(path)
    path = written(table | {"n": repeated(["a", "b", "b"])})
    with pytest.raises(ValueError, match="sequence 'b' has several groups, another one in row 5"):
        read(path, groups="person")
    path = written(table | {"n": repeated(["a", "b", "a"])})
    with pytest.raises(ValueError, match="apart; sort the rows by 'n'"):
        read(path)


@pytest.mark.usefixtures("batches")
def test_rows_without_a_sequence_a_label_or_a_group_are_refused(table, written):
    numbers = np.where(np.arange(9) == 6, np.nan, repeated([4.0, 7.0, 5.0]))
    for column, choices in (("n", {}), ("act", {}), ("person", {"groups": "person"})):
        with pytest.raises(ValueError, match=f"column '{column}' has no value in row 6"):
            read(written(table | {column: pyarrow.array(numbers, from_pandas=False)}), **choices)
        with pytest.raises(ValueError, match=f"column '{column}' of .* has 1 nulls in rows"):
            read(written(table | {column: pyarrow.array(numbers, from_pandas=True)}), **choices)
    large = repeated([1.0, 2.0**53, 2.0**53 + 2])
    with pytest.raises(ValueError, match=r"'n' are 2\^53 or more"):
        read(written(table | {"n": large}))


def test_names_that_are_none_are_refused(table, written):
    path = written(table)
    with pytest.raises(ValueError, match=r"y=\['act'\]; it must be the name of one column"):
        read_sequences(path, ["act"], sequence="n")
    with pytest.raises(ValueError, match=r"sequence=\['n'\]; it must be the name of one column"):
        read(path, sequence=["n"])
    with pytest.raises(ValueError, match=r"groups=\['person'\]; it must be the name of one column"):
        read(path, groups=["person"])
    with pytest.raises(ValueError, match=r"columns='ax'; it must be a list of names: \['ax'\]"):
        read(path, columns="ax")
    with pytest.raises(ValueError, match="sequence='act' is the column of labels, too"):
        read(path, sequence="act")
    for name in ("columns", "groups"):
        with pytest.raises(ValueError, match="there is no column 'az'"):
            read(path, **{name: "az" if name == "groups" else ["az"]})


def files(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("broken", ["act", "n", "ax"])
def test_after_an_error_the_file_is_what_it_was(table, written, tmp_path, broken):
    """Labels that change, numbers that return, and features that cannot be read to the end."""
    file = tmp_path / "frames.npy"
    read(written(table), file=file)
    values = {"act": np.arange(9), "n": repeated([1, 2, 1]), "ax": pyarrow.array([1.0] * 8 + [None])}
    wrong = written(table | {broken: values[broken]}, "wrong.parquet")
    names, content = files(tmp_path), file.read_bytes()
    with pytest.raises(ValueError, match=r"several labels|are apart|1 nulls"):
        read(wrong, file=file)
    assert files(tmp_path) == names
    assert file.read_bytes() == content


def test_a_file_is_not_seen_before_it_is_complete(table, written, tmp_path, monkeypatch):
    file, seen = tmp_path / "frames.npy", []
    replace = os.replace

    def watched(part, place):
        seen.append((file.exists(), np.load(part).sum()))
        replace(part, place)

    monkeypatch.setattr(os, "replace", watched)
    X, _ = read(written(table), file=file)
    assert seen == [(False, table["ax"].sum() + table["ay"].sum())]
    assert files(tmp_path) == ["frames.npy", "frames.parquet"]
    assert_array_equal(np.load(file), np.concatenate(X))


def test_frames_are_written_to_what_a_link_leads_to(table, written, tmp_path):
    (tmp_path / "large").mkdir()
    target, link = tmp_path / "large" / "frames.npy", tmp_path / "link.npy"
    link.symlink_to(target)
    for _ in range(2):
        X, _ = read(written(table), file=link)
        assert link.is_symlink()
        assert_array_equal(np.load(target), np.concatenate(X))
    assert files(tmp_path / "large") == ["frames.npy"]
    with pytest.raises(ValueError, match="is a folder"):
        read(written(table), file=tmp_path / "large")


def test_series_and_arrays_of_sequences_are_lists_of_them(words, fitted):
    X = words[0][:4]
    objects = np.empty(4, dtype=object)
    objects[:] = X
    for given in (pd.Series(X, index=list("abcd")), objects, tuple(X)):
        assert_array_equal(fitted.predict_proba(given), fitted.predict_proba(X))
        with pytest.raises(ValueError, match="X is a list of 4 sequences; pass one sequence at a time"):
            fitted.decode(given)
    assert len(checked_sequences(np.ones((3, 5, 2)))) == 3


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("f.parquet", r"X is 'f.parquet'; pass a list of sequences.*; read files by read_sequences\('f.parquet'"),
        (Path("a"), r"X is .*Path\('a'\); pass a list of sequences.*read_sequences\("),
        (list("abcd"), r"sequence 0 is 'a', of type str; pass an array of frames \(T, d\)"),
        ([1.0, 2.0], "sequence 0 is 1.0, of type float; pass an array of frames"),
        ([None, None], "sequence 0 is None, of type NoneType; pass an array of frames"),
        (np.arange(4.0), "sequence 0 is .*0.0.*, of type float64; pass an array of frames"),
        ([np.ones(3)], r"sequence 0 has shape \(3,\); pass frames as \(T, d\)"),
        ([np.ones((2, 2)), np.ones((0, 2))], r"sequence 1 has shape \(0, 2\); pass at least one row.*\(T, d\)$"),
        ([np.ones((4, 0))], r"sequence 0 has shape \(4, 0\); pass at least one row of at least one number"),
        ([[[1.0, 2.0], [3.0]]], "frames of sequence 0 differ in length"),
        (None, "X is of type NoneType; pass a list of sequences, each an array"),
        ({0: np.ones((4, 2))}, r"X is of type dict; .*list\(X.values\(\)\)"),
        ((x for x in [np.ones((4, 2))]), r"X is of type generator; .*list\(X\)"),
        (pd.DataFrame(np.ones((4, 2))), r"X is one DataFrame of frames; .*\[X\]"),
        ([sparse.csr_array(np.eye(2))], r"sequence 0 is a sparse csr_array; .*X.toarray\(\)"),
        ([], "there are no sequences"),
        ([np.ones((4, 2)), 1e154 * np.ones((4, 2))], r"sequence 1 has values up to 1.0e\+154; .*standardize the"),
        ([np.ones((4, 2)), np.diag([1.0, -1e101])], r"sequence 1 has values up to 1.0e\+101"),
    ],
)
def test_what_is_no_list_of_sequences_is_named(X, message):
    with pytest.raises(ValueError, match=message):
        HiddenMarkovClassifier("mixtures").fit(X, ["a", "b"])


def test_one_sequence_has_no_number(fitted):
    wrong = np.where(np.arange(10)[:, None] == 3, np.nan, np.ones((10, 2)))
    for X, message in (
        (wrong, "^Input X contains NaN"),
        (np.ones((4, 3)), "^X has frames of 3 numbers, and the model was fitted on frames of 2"),
        (np.ones(2), r"^X has shape \(2,\); pass frames as \(T, d\)"),
        ([], r"^X has shape \(0,\); pass at least one row"),
        (None, "^X is None, of type NoneType"),
        (1e101 * np.ones((4, 2)), r"^X has values up to 1.0e\+101"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.decode(X)
    assert one_sequence(np.ones((4, 2), dtype=np.float32), width=2)[0].dtype == np.float32


def test_other_frames_than_those_of_the_fit_are_named(fitted):
    with pytest.raises(ValueError, match=r"frames of 3 numbers, and the model was fitted on frames of 2"):
        fitted.predict([np.ones((4, 3)), np.ones((4, 3))])


def test_data_frames_have_the_same_columns_in_the_same_order(rng):
    X = [pd.DataFrame(rng.normal(size=(4, 3)), columns=["ax", "ay", "az"]) for _ in range(3)]
    assert frame_names(X) == ("ax", "ay", "az")
    assert frame_names([X[0].to_numpy(), X[1]]) == ("ax", "ay", "az")
    assert frame_names([x.to_numpy() for x in X]) is None
    assert_array_equal(checked_sequences(X)[2], X[2])
    for other in (["ay", "ax", "az"], ["ax", "ay", "b"]):
        Z = [X[0], X[1].set_axis(other, axis=1), X[2]]
        message = f"sequence 1 has the columns {', '.join(other)}, and sequence 0 ax, ay, az; pass the same"
        with pytest.raises(ValueError, match=message):
            checked_sequences(Z)
        with pytest.raises(ValueError, match=message):
            HiddenMarkovClassifier("mixtures").fit(Z, [0, 1, 0])
