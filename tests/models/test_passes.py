"""A fit goes over its rows several times, and they must be the same each time."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.datasets import make_banana
from mercer.kernels import RBF
from mercer.rows import MemoryRows

GRID = np.stack(np.meshgrid(np.linspace(-2, 2, 4), np.linspace(-2, 2, 4)), axis=-1).reshape(-1, 2)


@pytest.fixture(scope="module")
def banana():
    return make_banana(300, random_state=0)


def classifier(**choices):
    return KernelFisherClassifier(RBF(gamma=2.0), **{"alpha": 1.0, "centers": GRID, "random_state": 0, **choices})


def regressor(**choices):
    return KernelRidgeRegressor(RBF(gamma=2.0), **{"alpha": 1.0, "centers": GRID, "random_state": 0, **choices})


class Changing:
    """A source that yields one list of tuples in each pass, and the last of them from then on."""

    def __init__(self, *passes):
        self.passes = passes
        self.n = 0

    def __call__(self):
        self.n += 1
        return iter(self.passes[min(self.n, len(self.passes)) - 1])


def one_value(X):
    X = X.copy()
    X[7, 1] = np.nextafter(X[7, 1], np.inf)
    return X


def weight_of(y):
    return np.where(y > 0, 1.5, 2.5)


CHANGES = {
    "fewer rows": (lambda X, y, w: (X[:50], y[:50], w[:50]), "pass 2 .*moments.* 50 rows.*300 in pass 1.*sample"),
    "more rows": (lambda X, y, w: (*(np.concatenate([part, part[:1]]) for part in (X, y, w)),), "301 rows"),
    "one value": (lambda X, y, w: (one_value(X), y, w), "different values of X in 300 rows from pass 1"),
    "order": (lambda X, y, w: (X[::-1], y[::-1], w[::-1]), "different values of X and y and weight"),
    "labels": (lambda X, y, w: (X, np.roll(y, 1), w), "different values of y in"),
    "weights": (lambda X, y, w: (X, y, w[::-1]), "different values of weight in"),
    "no weights": (lambda X, y, w: (X, y), "different values of weight in"),
}


@pytest.mark.parametrize("model", [classifier, regressor])
@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_differ_between_the_passes_of_a_fit_are_refused(banana, model, change):
    X, y = banana
    whole = (X, y, weight_of(y))
    other, words = CHANGES[change]
    with pytest.raises(ValueError, match=words) as refused:
        model().fit(Changing([whole], [other(*whole)]))
    assert "store rows that are computed or drawn at random" in str(refused.value)


@pytest.mark.parametrize("kind", ["csr", "list", "frame", "object labels", "float32", "word labels"])
@pytest.mark.parametrize("changed", ["X", "y"])
def test_rows_of_every_kind_are_compared(banana, kind, changed):
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    X, y = banana
    kinds = {
        "csr": (sparse.csr_matrix, np.asarray),
        "list": (lambda X: X.tolist(), list),
        "frame": (lambda X: pd.DataFrame(X, columns=["a", "b"]), pd.Series),
        "object labels": (np.asarray, lambda y: np.where(y > 0, "positive", "no").astype(object)),
        "float32": (lambda X: X.astype(np.float32), np.asarray),
        "word labels": (np.asarray, lambda y: np.where(y > 0, "positive", "no")),
    }
    of_X, of_y = kinds[kind]
    first = of_X(X), of_y(y)
    second = (of_X(np.roll(X, 1, axis=0)), first[1]) if changed == "X" else (first[0], of_y(np.roll(y, 1)))
    with pytest.raises(ValueError, match=f"different values of {changed} in 300 rows"):
        classifier().fit(Changing([first], [second]))


def test_a_new_label_in_the_second_pass_is_said_to_be_new_there(banana):
    X, y = banana
    with pytest.raises(ValueError, match=r"label 7 is not among the classes .* the same in every pass"):
        classifier().fit(Changing([(X, y)], [(X, np.where(np.arange(300) == 3, 7, y))]))


def test_a_source_without_rows_in_the_second_pass_is_said(banana):
    items = iter([banana])
    with pytest.raises(ValueError, match=r"pass 2 .*moments.* 0 rows, but there were 300 in pass 1"):
        classifier().fit(lambda: items)


def test_a_second_pass_for_the_sample_is_compared(rng):
    """With a class that is rare in the rows drawn first the sample is drawn anew from all of them."""
    X, y = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    other = X.copy()
    other[0] += 1.0

    class Known(MemoryRows):
        """Rows whose second pass has other values, and that said to be a hundred times as many."""

        n = 0

        @property
        def n_rows(self):
            return 100 * len(self.X)

        def blocks(self):
            type(self).n += 1
            return MemoryRows(self.X if self.n == 1 else other, self.y).blocks()

    with pytest.raises(ValueError, match=r"pass 2 over the rows \(sample\) has different values of X in 300 rows"):
        classifier(loo_rows=100).fit(Known(X, y))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", [classifier, regressor])
def test_rows_that_join_must_be_the_same_in_both_passes(banana, model):
    X, y = banana
    first, second = (X[:200], y[:200]), (X[200:], y[200:])
    fitted = model().partial_fit(*first)
    before = fitted.predict(X)
    with pytest.raises(
        ValueError, match=r"pass 2 over the rows \(moments\) has different values of y in 100 rows"
    ):
        fitted.partial_fit(Changing([second], [(second[0], np.roll(second[1], 1))]))
    assert_array_equal(fitted.predict(X), before)
    assert_array_equal(
        fitted.partial_fit([second]).predict(X), model().partial_fit(*first).partial_fit(*second).predict(X)
    )


@pytest.mark.parametrize("model", [classifier, regressor])
def test_rows_that_leave_must_be_the_same_in_both_passes(banana, model):
    X, y = banana
    fitted = model(loo_rows=150).fit(MemoryRows(X, y))
    before = fitted.predict(X)
    gone = (X[200:], y[200:])
    with pytest.raises(
        ValueError, match=r"pass 2 over the rows has 99 rows, but there were 100 in pass 1 \(moments\)"
    ):
        fitted.remove(Changing([gone], [(X[201:], y[201:])]))
    with pytest.raises(ValueError, match="pass 2 over the rows has different values of X in 100 rows"):
        fitted.remove(Changing([gone], [(X[200:][::-1], y[200:])]))
    assert_array_equal(fitted.predict(X), before)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [[300], [1, 299], [100, 100, 100], [7] * 42 + [6]])
def test_a_source_may_cut_the_same_rows_otherwise_in_every_pass(banana, rows):
    X, y = banana
    ends = np.cumsum([0, *rows])
    cut = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(ends)]
    model = classifier().fit(Changing([(X, y)], cut))
    assert_array_equal(model.dual_coef_, classifier().fit(MemoryRows(X, y)).dual_coef_)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_iterator_is_refused_before_it_is_begun(banana, method):
    begun = []

    def source():
        begun.append(True)
        yield banana

    with pytest.raises(ValueError, match="an iterator can be consumed only once; pass a function that returns"):
        getattr(classifier(), method)(source())
    assert not begun


def test_an_iterator_of_rows_that_leave_is_refused_before_it_is_begun(banana):
    items = iter([banana])
    model = classifier().fit(*banana)
    with pytest.raises(ValueError, match="an iterator can be consumed only once"):
        model.remove(items)
    assert next(items) is banana


def test_an_error_of_a_source_stays_what_it_is_and_says_where(banana):
    def source():
        yield banana
        raise ConnectionResetError("the line is down")

    with pytest.raises(ConnectionResetError, match="the line is down") as error:
        classifier().fit(source)
    assert "block 1 of the stream, after 300 rows" in error.value.__notes__[0]


def test_blocks_without_rows_change_nothing(banana):
    X, y = banana
    none = (X[:0], y[:0])
    model = classifier().fit([none, (X[:100], y[:100]), none, (X[100:], y[100:]), none])
    assert_array_equal(model.dual_coef_, classifier().fit([(X, y)]).dual_coef_)
    with pytest.raises(ValueError, match="there are no rows"):
        classifier().fit([none, none])


def test_blocks_in_float32_and_float64_are_one_table_in_float64(banana):
    X, y = banana
    rounded = X.copy()
    rounded[:100] = X[:100].astype(np.float32)
    mixed = [(X[:100].astype(np.float32), y[:100]), (X[100:], y[100:])]
    assert_array_equal(classifier().fit(mixed).dual_coef_, classifier().fit([(rounded, y)]).dual_coef_)


def test_blocks_with_other_columns_are_refused(banana):
    X, y = banana
    with pytest.raises(ValueError, match=r"shape \(b, 1\) in some blocks and \(b, 2\) in others"):
        classifier().fit([(X[:100], y[:100]), (X[100:, :1], y[100:])])


def test_rows_in_blocks_are_validated_and_streamed_even_if_they_are_in_memory(three_classes):
    X, y = three_classes
    model = KernelFisherClassifier(RBF(gamma=0.3)).fit(MemoryRows(X, y))
    assert model.n_features_in_ == X.shape[1]
    assert "block by block" in str(model.report_)
    assert_array_equal(model.predict(MemoryRows(X)), model.predict(X))
    with pytest.raises(ValueError, match="NaN"):
        KernelFisherClassifier(RBF(gamma=0.3)).fit(MemoryRows(np.where(X > 1.0, np.nan, X), y))
