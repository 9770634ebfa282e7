"""Kernels over columns, and the kernel of names."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.errors import KernelError
from mercer.kernels import RBF, FromCallable, Linear, Nominal, OnColumns, Precomputed, pairwise
from mercer.kernels._vectors.gamma import GAMMA_GRID
from mercer.rows._columns import read_columns

FRAME = pd.DataFrame(
    {
        "age": [20.0, 40.0, 60.0, 40.0],
        "pay": [0.0, 1e5, 2e5, 3e5],
        "job": ["cook", "smith", None, "cook"],
        "town": ["here", "there", None, None],
        "smokes": [True, False, True, True],
    }
)
ROWS = read_columns(FRAME)


def share_equal(x, z, weights):
    """The naive kernel of names: weighted share of equal values."""
    return sum(w for a, b, w in zip(x, z, weights) if a == b or (a is None and b is None)) / sum(weights)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
def test_kernel_of_names_is_the_share_of_equal_columns(weights):
    rows = [
        [None if pd.isna(value) else value for value in row] for row in FRAME[["job", "town", "smokes"]].to_numpy()
    ]
    expected = [[share_equal(x, z, weights or [1.0, 1.0, 1.0]) for z in rows] for x in rows]
    part = ROWS.only(["job", "town", "smokes"])
    assert_allclose(Nominal(gamma=None, weights=weights).block(part, part), expected, rtol=1e-15, atol=1e-15)
    exponential = np.exp(2.0 * (np.array(expected) - 1.0))
    assert_allclose(Nominal(gamma=2.0, weights=weights).block(part, part), exponential, rtol=1e-15)
    assert_array_equal(Nominal(gamma=2.0).block(rows, rows), Nominal(gamma=2.0).block(part, part))


def test_kernel_of_names_is_gaussian_on_indicators():
    names = np.random.default_rng(0).integers(0, 4, size=(30, 3))
    hot = np.hstack([names[:, [j]] == np.arange(4) for j in range(3)]).astype(float)
    # Two indicators differ where two names do.
    assert_allclose(Nominal(gamma=0.9).block(names, names), RBF(gamma=0.15).block(hot, hot), rtol=1e-12)


def test_name_never_seen_differs_from_all():
    assert_array_equal(
        Nominal(gamma=None).evaluator(["a", "b"])(["c", "b", None]), [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    )


@pytest.mark.parametrize(("n_names", "d"), [(40_000, 2), (3, 300)])
def test_many_names_and_many_columns_are_counted_exactly(n_names, d):
    rng = np.random.default_rng(0)
    B = rng.integers(0, n_names, size=(n_names, d))
    B[:, 0] = np.arange(n_names)
    A = np.vstack([B[:1], rng.integers(0, n_names, size=(2, d))])
    assert_allclose(Nominal(gamma=None).block(A, B)[:, 0] * d, (B[0] == A).sum(axis=1), atol=1e-12)


def test_widths_of_names_are_multiples_of_the_median_share():
    one, *others = Nominal().candidates(ROWS)
    assert len(others) == len(GAMMA_GRID) - 1
    (median,) = Nominal(gamma="median").candidates([["a", "x"], ["a", "y"], ["a", "x"]])
    assert median.gamma == 2.0
    assert one.gamma / Nominal("median").candidates(ROWS)[0].gamma == pytest.approx(GAMMA_GRID[0])


def test_median_of_names_does_not_depend_on_the_order_of_rows():
    X = np.random.default_rng(0).integers(0, 9, size=(3000, 4)).astype(str)
    weight = np.random.default_rng(1).integers(0, 3, size=3000)
    order = np.random.default_rng(2).permutation(3000)
    (one,) = Nominal("median").candidates(X, weight)
    (other,) = Nominal("median").candidates(X[order], weight[order])
    assert one.gamma == other.gamma


def test_kernel_sees_its_columns_only():
    kernel = OnColumns(Linear(), ["pay", "age"], lengths=[1e5, 20.0])
    numbers = FRAME[["pay", "age"]].to_numpy() / [1e5, 20.0]
    assert_allclose(kernel.block(ROWS, ROWS), numbers @ numbers.T)
    array = FRAME[["age", "job", "pay"]].drop(columns="job").to_numpy()
    assert_allclose(OnColumns(Linear(), [1, 0], lengths=[1e5, 20.0]).block(array, array), numbers @ numbers.T)


def test_frames_are_read_where_a_kernel_is_called():
    kernel = OnColumns(RBF("median"), "numbers") * OnColumns(Nominal("median"), "names")
    (one,), (other,) = kernel.candidates(FRAME), kernel.candidates(ROWS)
    assert repr(one) == repr(other)
    assert_array_equal(one.block(FRAME, FRAME), other.block(ROWS, ROWS))
    assert_allclose(one.block(FRAME, ROWS), other.block(ROWS, ROWS), rtol=1e-12)
    assert_array_equal(Nominal(gamma=1.0).diag(FRAME), np.ones(4))
    assert_array_equal(Nominal(gamma=1.0).block(FRAME, FRAME), Nominal(gamma=1.0).block(ROWS, ROWS))


def test_lengths_are_resolved_as_standard_deviations_of_weighted_rows():
    (kernel,) = OnColumns(RBF(gamma=1.0), ["age", "pay"]).candidates(ROWS, [1.0, 2.0, 1.0, 0.0])
    repeated = FRAME.iloc[[0, 1, 1, 2]][["age", "pay"]]
    assert_allclose(kernel.lengths, repeated.std(ddof=0))
    (constant,) = OnColumns(RBF(gamma=1.0), [0]).candidates(np.ones((3, 1)))
    assert constant.lengths == [1.0]


def test_width_is_that_of_scaled_columns():
    (kernel,) = OnColumns(RBF(gamma="median"), ["age", "pay"]).candidates(ROWS)
    scaled = FRAME[["age", "pay"]].to_numpy() / kernel.lengths
    assert kernel.kernel.gamma == RBF(gamma="median").candidates(scaled)[0].gamma


def test_words_stand_for_columns_of_numbers_and_of_names():
    both = OnColumns(RBF(gamma=1.0), "numbers") + OnColumns(Nominal(gamma=1.0), "names")
    assert not both.resolved
    (kernel,) = both.candidates(ROWS)
    assert [part.columns for _, part in kernel.parts] == [["age", "pay"], ["job", "town", "smokes"]]
    assert kernel.resolved
    assert (both.reads, kernel.reads) == (None, ("age", "pay", "job", "town", "smokes"))


def test_booleans_are_zero_and_one_for_kernels_on_vectors():
    assert_array_equal(OnColumns(Linear(), ["smokes"], lengths=None).diag(ROWS), [1.0, 0.0, 1.0, 1.0])


def test_missing_numbers_are_the_mean_with_an_indicator():
    X = np.array([[1.0, 5.0], [np.nan, 7.0], [3.0, np.nan], [np.nan, 7.0]])
    (kernel,) = OnColumns(RBF(gamma=1.0), [0, 1], missing="mean").candidates(X)
    assert kernel.missing == [2.0, 19 / 3]
    filled = np.where(np.isnan(X), kernel.missing, X) / kernel.lengths
    expected = RBF(gamma=1.0).block(*2 * [np.hstack([filled, np.isnan(X)])])
    assert_allclose(kernel.block(X, X), expected)
    assert kernel.block(X[1:2], X[3:])[0, 0] == 1.0


def test_missing_numbers_without_a_meaning_are_an_error_that_names_the_column():
    rows = read_columns(pd.DataFrame({"age": [1.0, None, None]}))
    for kernel in (OnColumns(RBF(gamma=1.0), ["age"], lengths=None), RBF(gamma=1.0)):
        with pytest.raises(KernelError, match=r"column 'age' has 2 missing values in 3 rows.*missing=\"mean\""):
            kernel.block(rows, rows)


def common_letters(a, b):
    return float(len(set(a) & set(b)))


def test_kernel_on_objects_sees_the_values_of_one_column():
    text = read_columns(pd.DataFrame({"n": [1.0, 2.0], "text": ["kernel", "mercer"]}))
    kernel = OnColumns(FromCallable(pairwise(common_letters)), ["text"]) + OnColumns(Linear(), ["n"], lengths=None)
    assert_array_equal(kernel.block(text, text), [[6.0, 4.0], [4.0, 8.0]])
    several = FromCallable(lambda X, Z: np.full((len(X), len(Z)), X.shape[1], dtype=float))
    assert_array_equal(OnColumns(several, ["n", "text"]).block(text, text), 2.0)


def test_parts_that_take_different_rows_take_columns_together():
    names = OnColumns(Nominal(gamma=1.0), ["job"])
    assert (names + RBF()).input_kind == "columns"
    assert (names * FromCallable(np.minimum.outer)).input_kind == "columns"
    assert names.symmetric
    assert not names.averages


@pytest.mark.parametrize(
    ("kernel", "X", "message"),
    [
        (OnColumns(RBF(gamma=1.0), ["wage"], lengths=None), ROWS, "column 'wage' is needed"),
        (OnColumns(RBF(gamma=1.0), ["age"], lengths=None), np.ones((2, 3)), "3 columns without names.*positions"),
        (OnColumns(RBF(gamma=1.0), [3], lengths=None), np.ones((2, 3)), r"columns=\[3\]"),
        (OnColumns(RBF(gamma=1.0), [], lengths=None), np.ones((2, 3)), r"columns=\[\]"),
        (OnColumns(RBF(gamma=1.0), [0], lengths=None), np.ones(3), r"shape \(3,\)"),
        (OnColumns(RBF(gamma=1.0), [0], lengths=[0.0]), np.ones((2, 3)), r"lengths=\[0.0\].*positive"),
        (OnColumns(RBF(gamma=1.0), [0], lengths=[1.0, 2.0]), np.ones((2, 3)), "each of 1 columns"),
        (OnColumns(RBF(gamma=1.0), [0]), np.ones((2, 3)), 'lengths="std" are not numbers yet'),
        (OnColumns(RBF(gamma=1.0), "numbers"), np.ones((2, 3)), 'columns="numbers" are not known yet'),
        (OnColumns(Precomputed(), [0]), np.ones((2, 3)), "takes kernel values"),
        (Nominal(), ROWS, 'gamma="loo" of Nominal is not a number'),
        (Nominal(gamma=-1.0), ROWS, "gamma=-1.0"),
        (Nominal(gamma=1.0, weights=[1.0]), ROWS, "each of 5 columns"),
        (Nominal(gamma=1.0), [[{"a"}, 1.0]], "cannot be compared as names"),
    ],
)
def test_impossible_columns_are_errors_when_used(kernel, X, message):
    with pytest.raises(ValueError, match=message):
        kernel.block(X, X)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (OnColumns(RBF(), "age"), r"pass a list of names, \[\"age\"\]"),
        (OnColumns(RBF(), ["age"], lengths="range"), 'lengths="range" is not known'),
        (OnColumns(RBF(), ["age"], missing="zero"), 'missing="zero" is not known'),
        (Nominal(gamma="scale"), 'gamma="scale" is not known to Nominal'),
    ],
)
def test_unknown_words_are_errors(kernel, message):
    with pytest.raises(KernelError, match=message):
        kernel.candidates(ROWS)


def test_words_without_columns_are_errors():
    with pytest.raises(KernelError, match='columns="names", but the rows have no such columns'):
        OnColumns(Nominal(), "names").candidates(np.ones((2, 3)))


def test_rows_must_have_the_same_number_of_names():
    with pytest.raises(KernelError, match="X has 1 columns and Z has 2"):
        Nominal(gamma=1.0).block([["a"]], [["a", "b"]])


def test_integers_that_float64_cannot_tell_apart_are_refused():
    frame = pd.DataFrame({"id": [2**60, 2**60 + 1] * 3})
    with pytest.raises(ValueError, match="integers beyond 2\\^53"):
        read_columns(frame)
    assert read_columns(frame.astype(str)).columns["id"][0] == str(2**60)


def test_dates_in_an_array_are_no_numbers():
    days = np.array([["2020-01-01"], ["2020-01-02"]], dtype="M8[ns]")
    with pytest.raises(ValueError, match="date"):
        read_columns(days)


def test_truths_may_be_missing():
    frame = pd.DataFrame({"b": [True, None, False]}, dtype=object)
    assert_array_equal(read_columns(frame).numbers()[:, 0], [1.0, np.nan, 0.0])


def test_a_constant_column_has_length_one_whatever_its_value(rng):
    X = np.column_stack([np.full(30, 0.1), rng.normal(size=30)])
    kernel = OnColumns(RBF(0.5), [0, 1]).candidates(X)[0]
    assert kernel.lengths[0] == 1.0
