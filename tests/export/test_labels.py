"""Whatever a class is called, its label is data: an escaped literal, or refused with what to do instead."""

import datetime
import enum
import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelFisherClassifier, KernelRidgeRegressor, OnlineFisherClassifier, SparseFisherClassifier
from mercer.export import to_c, to_python
from mercer.export._literals import KEYWORDS, c_labels, plain_labels
from mercer.kernels import RBF, Polynomial

X = np.array([[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0]])

# Each would end the literal or comment it stands in, or change its text, if it were not escaped.
HOSTILE = {
    "end of a comment": '*/ int broken = system("exit 1"); /*',
    "line comment": "// \\\nint broken;",
    "quotes": "\"); exit(1); (\"'); raise SystemExit(1)  #'",
    "triple quotes": "\"\"\"'''\"\"\" + __import__('os').abort() + '''",
    "backslash at the end": "a\\",
    "escapes": "\\x41\\101\\n\\u0041\\",
    "trigraphs": "??/ ??= ??' ??( ??/",
    "newlines": "a\nb\r\nc\x0b\x0c\x85\u2028\u2029d",
    "directive": '\n#error "no"\n#include "/dev/null"\n',
    "format": "%s%n {name} {0} %(x)s",
    "digits after an escape": "\x071 \xff9 \x01f",
    "control": "\x01\x1b[31m\x7f",
    "other scripts": "Жук 日本 \U0001f600 ñ \ufeff \u202e",
    "spaces": "  ",
    "empty": "",
    "longest": "\u20ac" * 1364 + "ab",
    "statement": "__import__('os')._exit(1)",
}
hostile = pytest.mark.parametrize("label", list(HOSTILE.values()), ids=list(HOSTILE))


def model_of(labels, **settings):
    """A model that tells the sign of the only feature; the lesser label is that of negative rows."""
    low, high = labels
    y = np.array([low] * 3 + [high] * 3)
    assert len(set(y.tolist())) == 2
    return SparseFisherClassifier(RBF(gamma=0.1), alpha=0.1, max_centers=2, **settings).fit(X, y)


def of_objects(labels):
    """A model whose labels are whatever objects are given."""
    model = model_of([0, 1])
    model.classes_ = np.empty(2, dtype=object)
    model.classes_[:] = labels
    return model


@pytest.mark.sampled(2)
@hostile
def test_hostile_labels_come_out_of_compiled_code_as_they_went_in(label, run_c):
    model = model_of([label, label + "z"])
    found = run_c(to_c(model), X, q=1, k=2, kind=str)
    assert found.labels == model.predict(X).tolist()
    assert_allclose(found.probabilities, model.predict_proba(X), rtol=1e-9)


def test_all_hostile_labels_at_once_are_classes_in_cpp(run_c):
    k = len(HOSTILE)
    rows = np.repeat(np.arange(float(k)), 3)[:, None] + np.tile([-0.1, 0.0, 0.1], k)[:, None]
    y = np.repeat(list(HOSTILE.values()), 3)
    model = KernelFisherClassifier(RBF(gamma=1.0), alpha=1e-3).fit(rows, y)
    assert_array_equal(model.predict(rows), y)
    assert run_c(to_c(model), rows, q=k - 1, k=k, kind=str, language="cpp").labels == y.tolist()


@pytest.mark.sampled(4)
@hostile
def test_hostile_labels_come_out_of_plain_python_as_they_went_in(label, run_python):
    model = model_of([label, label + "z"])
    assert run_python(to_python(model), X).labels == model.predict(X).tolist()


@pytest.mark.sampled(4)
@hostile
def test_only_the_table_of_labels_depends_on_the_labels(label):
    plain, other = (to_c(model_of(labels)).splitlines() for labels in (["a", "b"], [label, label + "z"]))
    assert len(plain) == len(other)
    changed = [line for line, twin in zip(other, plain) if line != twin]
    assert len(changed) == 1
    assert changed[0].startswith("    static const char *const labels[2] = {")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "labels",
    [
        [False, True],
        [-1, 1],
        [-(2**63), 2**63 - 1],
        np.array([0, 200], dtype=np.uint8),
        [-1.0, 2.0],
        [-1e308, 1e-308],
    ],
    ids=str,
)
def test_numbers_and_truth_values_are_labels_of_their_own_kind(labels, run_c, run_python):
    model = of_objects(labels)
    kind = float if isinstance(labels[0], float) else int
    expected = model.predict(X).tolist()
    assert run_c(to_c(model), X, q=1, k=2, kind=kind).labels == expected
    found = run_python(to_python(model), X).labels
    assert found == expected
    assert [type(label) for label in found] == [type(np.asarray(labels).tolist()[0])] * 6


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "labels",
    [["a\0b", "c"], ["\ud800", "\udfff"], ["x" * 4096, "y"], [2**63, 2**64], [1, "a"]],
    ids=["null character", "surrogates", "longer than a C string must be", "beyond 64 bits", "no type in common"],
)
def test_labels_that_c_cannot_hold_are_refused_there_and_literals_in_python(labels, run_python):
    model = of_objects(labels)
    with pytest.raises(ValueError, match="fit the model to"):
        to_c(model)
    assert run_python(to_python(model), X).labels == model.predict(X).tolist()


class Code:
    """An object whose text is a program."""

    def __repr__(self):
        return "__import__('os').abort()"

    __str__ = __repr__


class Word(str):
    """A string that pretends to be another."""

    def __repr__(self):
        return "__import__('os').abort()"

    def encode(self, *args):
        return b'"); abort(); ("'


class Color(enum.Enum):
    RED = 1


OBJECTS = [
    Code(),
    Word("a"),
    Color.RED,
    datetime.date(2020, 1, 1),
    np.datetime64("2020-01-01"),
    np.datetime64("2020-01-01T00:00:00.000000001"),
    np.timedelta64(5, "ns"),
    np.longdouble(0.5),
    float("nan"),
    float("inf"),
    -np.float64("inf"),
    1j,
    b"bytes",
    None,
    (1, 2),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("export", [to_c, to_python])
@pytest.mark.parametrize("label", OBJECTS, ids=lambda label: type(label).__name__)
def test_labels_that_are_no_literals_are_refused_with_a_remedy(label, export):
    with pytest.raises(ValueError, match=r"a class label of type \w+ .*y\.astype\(str\)"):
        export(of_objects([label, "b"]))


def test_dates_are_refused_and_exported_as_strings():
    y = np.array(["2020-01-01"] * 3 + ["2021-06-30"] * 3, dtype="datetime64[ns]")
    model = of_objects(np.unique(y))
    model.classes_ = np.unique(y)
    with pytest.raises(ValueError, match=r"type datetime64 .*y\.astype\(str\)"):
        to_python(model)
    assert "2021-06-30" in to_c(model_of(np.unique(y).astype(str)))


def test_two_kinds_of_numbers_are_doubles_in_c():
    assert c_labels([True, 2.5]) == ("double ", "{1.0, 2.5}")


def test_numpy_scalars_in_object_arrays_are_plain_values():
    classes = np.array([np.int64(3), np.float32(0.5), np.str_("a"), np.bool_(True)], dtype=object)
    assert [(type(label), label) for label in plain_labels(classes)] == [
        (int, 3),
        (float, 0.5),
        (str, "a"),
        (bool, 1),
    ]


HOSTILE_NAMES = [
    "",
    "1model",
    "my model",
    "my-model",
    "model\n",
    "model;int x",
    "x(void); void y",
    "_model",
    "modèle",
    "ｍodel",
    "model_outputs*/",
    None,
    5,
    b"model",
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=repr)
def test_a_name_that_is_not_an_identifier_is_refused(name):
    with pytest.raises(ValueError, match="is not a C identifier; use letters, digits and underscores"):
        to_c(model_of(["a", "b"]), name=name)


@pytest.mark.parametrize("name", ["int", "while", "class", "restrict", "nullptr"])
def test_a_name_that_is_a_keyword_is_refused(name):
    assert name in KEYWORDS.split()
    with pytest.raises(ValueError, match=f'name="{name}" is a keyword'):
        to_c(model_of(["a", "b"]), name=name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["x", "f", "u1", "labels", "exp", "Model_2", "model_outputs"])
def test_names_may_be_those_of_variables_and_functions(name, run_c):
    model = model_of(["a", "b"])
    assert run_c(to_c(model, name=name), X, q=1, k=2, kind=str, name=name).labels == model.predict(X).tolist()


class Text(float):
    """A number whose text is a program."""

    def __repr__(self):
        return "system(0)"

    __str__ = __format__ = __repr__


def test_parameters_of_kernels_are_numbers_in_the_source():
    model = SparseFisherClassifier(Polynomial(degree=2, gamma=Text(0.5), coef0=Text(1.5)), max_centers=2)
    model.fit(X, np.sign(X[:, 0]))
    assert "(s + 1.5) * (s + 1.5)" in to_c(model)
    assert "system" not in to_c(model) + to_python(model)


def test_a_declared_class_without_rows_is_exported_with_its_label(run_c):
    model = OnlineFisherClassifier(RBF(gamma=1.0)).partial_fit(X, ["b"] * 3 + ["c"] * 3, classes=["b", "c", "*/"])
    found = run_c(to_c(model), X, q=2, k=3, kind=str)
    assert found.labels == model.predict(X).tolist()
    assert_allclose(found.probabilities, model.predict_proba(X), rtol=1e-9)


def test_every_character_comes_out_of_a_c_string_as_it_went_in(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("cc is not here to compile with")
    astral = range(0x10000, 0x110000, 0x101)
    points = [chr(point) for point in (*range(1, 0xD800), *range(0xE000, 0x10000), *astral)]
    labels = ["".join(points[i : i + 1000]) for i in range(0, len(points), 1000)]
    kind, table = c_labels(labels)
    source = f"#include <stdio.h>\nint main(void) {{ static {kind}const labels[] = {table};\n"
    source += f"for (int i = 0; i < {len(labels)}; i++) puts(labels[i]);\nreturn 0; }}"
    (tmp_path / "main.c").write_text(source, encoding="ascii")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run(["cc", *flags, "-o", tmp_path / "main", tmp_path / "main.c"], check=True)
    found = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout
    assert found == "".join(label + "\n" for label in labels).encode()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, -0.0, 1e22, 0.1])
def test_numbers_at_the_ends_of_their_range_are_exact(number, run_c, run_python):
    model = KernelRidgeRegressor(RBF(gamma=1.0), alpha=1.0).fit(X, X[:, 0])
    model.dual_coef_, model.intercept_ = np.zeros(6), number
    for found in (run_c(to_c(model), X[:1], q=1), run_python(to_python(model), X[:1])):
        assert found.outputs.item() == number
