"""Kernel CCA against scikit-learn's, and the laws of paired rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.cross_decomposition import CCA
from sklearn.model_selection import GroupKFold, PredefinedSplit, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelCCA
from mercer.centers import Uniform
from mercer.errors import MemoryBudgetError, MercerError, NumericalWarning
from mercer.kernels import RBF, FromCallable, Linear, Sigmoid, pairwise
from mercer.rows._distinct import distinct_rows

N = 120
KERNEL = RBF(gamma=0.3)
FIXED = {"kernel": KERNEL, "alpha": 0.01, "random_state": 0}


def views(rng, n=N):
    """Two views of one hidden variable, not linear, and noise."""
    z = rng.uniform(-1.0, 1.0, size=n)
    X = np.column_stack([np.sin(3.0 * z), np.cos(3.0 * z), rng.normal(size=n)])
    y = np.column_stack([z**2, rng.normal(size=n), z, rng.normal(size=n)])
    return X + 0.1 * rng.normal(size=X.shape), y + 0.1 * rng.normal(size=y.shape)


@pytest.fixture
def both(rng, frozen):
    return tuple(frozen(view) for view in views(rng))


def assert_same(model, other, X, y, atol=1e-8):
    assert_allclose(model.correlations_, other.correlations_, atol=atol)
    assert_allclose(model.held_out_correlations_, other.held_out_correlations_, atol=atol)
    for one, two in zip(model.transform(X, y), other.transform(X, y)):
        assert_allclose(one, two, atol=100 * atol)


def test_a_linear_kernel_without_penalty_is_canonical_correlation_analysis(both):
    theirs = CCA(n_components=3, max_iter=5000, tol=1e-12).fit(*both)
    expected = [np.corrcoef(a, b)[0, 1] for a, b in zip(*(scores.T for scores in theirs.transform(*both)))]
    model = KernelCCA(3, "linear", alpha=1e-12, random_state=0).fit(*both)
    assert_allclose(model.correlations_, expected, atol=1e-6)
    assert_allclose(model.objective_, expected, atol=1e-6)
    assert_allclose(model.correlations(*both), expected, atol=1e-6)


def test_with_all_rows_as_given_centers_the_pass_finds_what_the_matrices_have(both):
    X, y = both
    exact, model = KernelCCA(**FIXED).fit(X, y), KernelCCA(centers={"X": X, "y": y}, **FIXED).fit(X, y)
    assert_same(model, exact, X, y)


def test_all_rows_and_precomputed_kernels_and_a_dict_of_views_are_the_same_model(both):
    X, y = both
    model = KernelCCA(**FIXED).fit(X, y)
    named = KernelCCA(**FIXED).fit({"X": X, "y": y}, y="ignored")
    assert_same(named, model, X, y, atol=1e-12)
    K = [KERNEL.block(view, view) for view in both]
    given = KernelCCA(**FIXED | {"kernel": "precomputed"}).fit(*K)
    assert_allclose(given.correlations_, model.correlations_, rtol=1e-9)
    assert_allclose(np.abs(given.transform(K[0][:5])), np.abs(model.transform(X[:5])), atol=1e-7)


def test_scores_have_variance_one_and_the_stated_correlations(both):
    model = KernelCCA(3, alpha=0.01, random_state=0).fit(*both)
    scores = model.transform(*both)
    for each in scores:
        assert_allclose(each.mean(axis=0), 0.0, atol=1e-9)
        assert_allclose(each.var(axis=0), 1.0, rtol=1e-9)
    assert_allclose((scores[0] * scores[1]).mean(axis=0), model.correlations_, atol=1e-9)
    assert_allclose(model.correlations(*both), model.correlations_, atol=1e-9)
    assert model.score(*both) == pytest.approx(model.correlations_.mean())
    assert_array_equal(model.transform(both[0]), scores[0])
    assert_array_equal(KernelCCA(3, alpha=0.01, random_state=0).fit_transform(*both), scores[0])


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.01, "loo"])
def test_the_order_of_rows_does_not_matter(both, rng, alpha):
    X, y = both
    order = rng.permutation(N)
    model, other = (KernelCCA(**FIXED | {"alpha": alpha}).fit(*pair) for pair in ((X, y), (X[order], y[order])))
    assert other.alpha_ == model.alpha_
    assert_same(other, model, X, y)


@pytest.mark.parametrize("centers", ["auto", 20])
def test_a_weight_of_two_is_a_row_twice(both, centers):
    X, y = both
    count = np.arange(N) % 3
    weighted = KernelCCA(centers=centers, **FIXED).fit(X, y, sample_weight=count)
    repeated = KernelCCA(centers=centers, **FIXED).fit(np.repeat(X, count, axis=0), np.repeat(y, count, axis=0))
    assert_same(weighted, repeated, X, y)


@pytest.mark.slow
def test_three_views_do_not_depend_on_their_order(both, rng):
    tables = {"a": both[0], "b": both[1], "c": both[0] ** 2 + 0.1 * rng.normal(size=both[0].shape)}
    model = KernelCCA(alpha=0.01, random_state=0).fit(tables)
    turned = KernelCCA(alpha=0.01, random_state=0).fit(dict(reversed(tables.items())))
    scores, others = model.transform(tables), turned.transform(tables)
    for name in tables:
        assert_allclose(np.abs(scores[name]), np.abs(others[name]), atol=1e-7)
    assert_allclose(turned.correlations_, model.correlations_, rtol=1e-9)
    pairs = [np.mean(scores[v] * scores[w], axis=0) for v, w in (("a", "b"), ("a", "c"), ("b", "c"))]
    assert_allclose(model.correlations_, np.mean(pairs, axis=0), atol=1e-9)
    assert_array_equal(model.transform({"b": both[1]})["b"], scores["b"])


def test_held_out_correlations_are_those_of_models_without_the_fold(both):
    X, y = both
    groups = np.arange(N) % 4
    splits = list(GroupKFold(4).split(X, groups=groups))
    model = KernelCCA(1, KERNEL, alpha=0.1, cv=splits).fit(X, y)
    expected = []
    for train, test in splits:
        fold = KernelCCA(1, KERNEL, alpha=0.1).fit(X[train], y[train])
        a, b = (scores[:, 0] for scores in fold.transform(X[test], y[test]))
        expected.append(a @ b / np.sqrt((a @ a) * (b @ b)))
    assert model.held_out_correlations_[0] == pytest.approx(np.mean(expected), abs=1e-7)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("folds", [2, 3, 4])
def test_alpha_of_a_fold_is_chosen_without_it(rng, folds):
    X, y = rng.normal(size=(2, 64, 2))
    fold = np.arange(64) // (64 // folds) % folds
    model = KernelCCA(1, KERNEL, cv=PredefinedSplit(fold)).fit(X, y)
    expected, place = [], np.argsort(distinct_rows({"X": X, "y": y}).first)
    for number in range(folds):
        rest = np.flatnonzero(fold != number)
        # Of two folds the other one chooses by its halves.
        inner = np.argsort(np.argsort(place[rest])) % 2 if folds == 2 else fold[rest]
        chosen = KernelCCA(1, KERNEL, cv=PredefinedSplit(inner)).fit(X[rest], y[rest])
        a, b = (scores[:, 0] for scores in chosen.transform(X[fold == number], y[fold == number]))
        expected.append(a @ b / np.sqrt((a @ a) * (b @ b)))
    assert model.held_out_correlations_[0] == pytest.approx(np.mean(expected), abs=1e-7)


@pytest.mark.slow
def test_many_folds_are_joined_for_the_choice_without_them(rng):
    X, y = rng.normal(size=(2, 60, 2))
    fold = np.arange(60) // 2
    joined = np.repeat(np.arange(10), 6)
    many, few = (KernelCCA(1, KERNEL, cv=PredefinedSplit(f)).fit(X, y) for f in (fold, joined))
    assert many.held_out_correlations_[0] == pytest.approx(few.held_out_correlations_[0], abs=1e-7)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows_have_held_out_correlations(rng, n):
    model = KernelCCA(1, KERNEL, random_state=0).fit(*rng.normal(size=(2, n, 2)))
    assert np.isfinite(model.held_out_correlations_).all()


@pytest.mark.slow
def test_held_out_correlations_are_those_of_new_rows_and_near_zero_for_noise(rng):
    model, new = KernelCCA(1, random_state=0).fit(*views(rng, 200)), views(rng, 2000)
    assert model.held_out_correlations_[0] == pytest.approx(model.score(*new), abs=0.04)
    noise = rng.normal(size=(2, 100, 3))
    nothing = KernelCCA(1, random_state=0).fit(*noise)
    assert abs(nothing.held_out_correlations_[0]) < 0.3
    assert nothing.correlations_[0] > nothing.held_out_correlations_[0]


@pytest.mark.slow
def test_centers_find_nearly_what_all_rows_do(rng):
    X, y = views(rng, 2100)
    exact = KernelCCA(1, KERNEL, alpha=1e-3, centers="all").fit(X[:600], y[:600])
    for choice in ("auto", Uniform(100)):
        model = KernelCCA(1, KERNEL, alpha=1e-3, centers=choice, random_state=0).fit(X, y)
        assert model.score(X, y) == pytest.approx(exact.score(X, y), abs=0.01)
        assert len(model.X_fit_["X"]) <= 600


@pytest.mark.slow
def test_a_permutation_test_tells_signal_from_noise(both, rng):
    model = KernelCCA(2, alpha=0.1, random_state=0).fit(*both)
    p = model.permutation_test(*both, n_permutations=19, random_state=0)
    assert p[0] == pytest.approx(0.05)
    noise = rng.normal(size=(2, 60, 2))
    p = (
        KernelCCA(2, alpha=0.1, random_state=0)
        .fit(*noise)
        .permutation_test(*noise, n_permutations=19, random_state=0)
    )
    assert p[0] > 0.05
    assert p[0] <= p[1]


@pytest.mark.slow
def test_sparse_rows_frames_columns_and_objects_are_views(both):
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    X, y = both
    model = KernelCCA(1, **FIXED).fit(X, y[:, 0])
    for kind in (lambda v: sparse.csr_matrix(v), lambda v: pd.DataFrame(v).add_prefix("c"), lambda v: v.tolist()):
        other = KernelCCA(1, **FIXED).fit(kind(X), kind(y[:, :1]))
        assert_allclose(other.transform(kind(X)), model.transform(X), atol=1e-7)
    assert_allclose(KernelCCA(1, **FIXED).fit(X, pd.Series(y[:, 0])).transform(X), model.transform(X), atol=1e-9)
    words = ["positive" if value > 0.0 else "negative" for value in y[:, 2]]
    same = FromCallable(pairwise(lambda a, b: float(a == b)), psd=True)
    mixed = KernelCCA(1, [KERNEL, same], alpha=0.01, random_state=0).fit(X, words)
    assert mixed.transform(X, words)[1].shape == (N, 1)
    assert mixed.held_out_correlations_[0] > 0.5


def test_float32_rows_have_float32_scores_near_those_of_float64(both):
    X, y = both
    single = KernelCCA(1, **FIXED).fit(X.astype(np.float32), y)
    scores = single.transform(X.astype(np.float32), y)
    assert [each.dtype for each in scores] == [np.float32, np.float64]
    assert_allclose(scores[0], KernelCCA(1, **FIXED).fit(X, y).transform(X), atol=1e-3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_scale_of_a_view_does_not_matter(both, scale):
    X, y = both
    for kernel in ("rbf", "linear"):
        model, other = (KernelCCA(1, kernel, alpha=0.01).fit(factor * X, y) for factor in (1.0, scale))
        assert_allclose(other.correlations_, model.correlations_, rtol=1e-6)
        assert_allclose(other.transform(scale * X), model.transform(X), atol=1e-5)


def test_constant_columns_and_duplicated_rows_change_nothing(both):
    X, y = both
    model = KernelCCA(1, **FIXED).fit(X, y)
    other = KernelCCA(1, **FIXED).fit(np.hstack([X, np.ones((N, 1))]), y)
    assert_allclose(other.correlations_, model.correlations_, rtol=1e-9)
    twice = KernelCCA(1, **FIXED).fit(np.vstack([X, X]), np.vstack([y, y]))
    assert_same(twice, model, X, y)


def test_there_are_no_more_components_than_both_views_have(both):
    assert KernelCCA(9, "linear", alpha=0.1).fit(*both).n_components_ == 3
    few = KernelCCA(5, **FIXED).fit(both[0][:3], both[1][:3])
    assert few.n_components_ <= 2
    assert np.isfinite(few.held_out_correlations_).all()


@pytest.mark.slow
def test_a_pipeline_leads_into_the_shared_space(both):
    X, y = both
    scores = make_pipeline(StandardScaler(), KernelCCA(2, random_state=0)).fit_transform(X, y)
    assert scores.shape == (N, 2)
    model = KernelCCA(2, random_state=0).fit(X, y)
    assert model.get_feature_names_out().tolist() == ["kernelcca0", "kernelcca1"]


def test_kernels_by_name_and_in_order_are_the_same(both):
    kernels = {"y": Linear(), "X": KERNEL}
    by_name, in_order = (KernelCCA(1, kernel, alpha=0.1).fit(*both) for kernel in (kernels, [KERNEL, Linear()]))
    assert_array_equal(by_name.transform(both[0]), in_order.transform(both[0]))
    assert repr(clone(by_name)) == repr(by_name)
    assert by_name.kernels_["X"].gamma == 0.3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 1.5}, "n_components=1.5"),
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"alpha": "cv"}, 'a positive number, or "loo"'),
        ({"kernel": RBF()}, "no targets"),
        ({"kernel": ["rbf"]}, "1 kernels and 2 views"),
        ({"kernel": {"a": "rbf", "b": "rbf"}}, "the views are 'X', 'y'"),
        ({"centers": "few"}, "centers='few'"),
        ({"centers": {"X": 10}}, "the views are 'X', 'y'"),
        ({"centers": 0}, "centers=0"),
        ({"cv": 1}, "cv=1"),
        ({"cv": None}, "cv=None"),
        ({"cv": ShuffleSplit(2)}, "cv="),
    ],
)
def test_parameters_that_make_no_sense_are_refused(both, parameters, message):
    with pytest.raises((ValueError, MercerError), match=message):
        KernelCCA(**parameters).fit(*both)


def test_rows_that_make_no_sense_are_refused(both):
    X, y = both
    model = KernelCCA(1, **FIXED)
    hole = np.where(np.arange(N)[:, None] == 3, np.nan, y)
    for arguments, message in [
        ((X,), "requires y to be passed"),
        ((X, y[:-1]), "inconsistent numbers"),
        ((X, hole), "y contains NaN"),
        (({"a": X},), "1 views"),
        (({"a": X, "b": y[:-1]},), "inconsistent numbers"),
        (({"a": X, "b": hole},), r"X\['b'\] contains NaN"),
        ((X, ["no"] * N), "y contains text"),
        ((X, {"a": y}), "y is a dict"),
        (({"a": X, "b": None},), "'b' is of type NoneType"),
        ((X, np.ones(N)), "all rows are equal"),
        ((X[:1], y[:1]), "n_samples = 1"),
        ((iter([X]), y), "in memory"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(*arguments)
    with pytest.raises(MemoryBudgetError, match="kernel matrices"):
        KernelCCA(max_memory=1e-5).fit(X, y)


def test_views_that_the_model_has_not_are_refused(both):
    X, y = both
    model, named = KernelCCA(1, **FIXED).fit(X, y), KernelCCA(1, **FIXED).fit({"a": X, "b": y})
    for call, message in [
        (lambda: model.transform(X[:, :2]), "X has 2 features"),
        (lambda: model.transform(X, X), "y has 3 features"),
        (lambda: model.transform({"a": X}), "'a' is not a view"),
        (lambda: named.transform(X), "'X' is not a view"),
        (lambda: named.correlations({"a": X, "c": y}), "no view 'b'"),
        (lambda: model.correlations(X), "requires y"),
        (lambda: model.correlations(X[:1], y[:1]), "at least two rows"),
        (lambda: model.permutation_test(X, y, n_permutations=0), "n_permutations=0"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_columns_of_frames_in_another_order_are_refused(both):
    pd = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    X, y = pd.DataFrame(both[0]).add_prefix("a"), pd.DataFrame(both[1]).add_prefix("b")
    model = KernelCCA(1, **FIXED).fit(X, y)
    with pytest.raises(ValueError, match="b3, b2, b1, b0, but the model was fitted on b0"):
        model.transform(X, y.iloc[:, ::-1])
    with pytest.raises(ValueError, match="same order"):
        model.transform(X.iloc[:, ::-1], y)
    assert model.transform(X, both[1])[1].shape == (N, 1)


def test_weighted_kernel_values_have_their_places_among_all_rows(both):
    count = np.arange(N) % 2
    K = [KERNEL.block(view, view) for view in both]
    given = KernelCCA(**FIXED | {"kernel": "precomputed"}).fit(*K, sample_weight=count)
    model = KernelCCA(**FIXED).fit(*both, sample_weight=count)
    assert_allclose(np.abs(given.transform(K[0])), np.abs(model.transform(both[0])), atol=1e-7)


def test_any_alpha_in_range_gives_finite_scores(both):
    for alpha in (1e-90, 1e90):
        model = KernelCCA(1, KERNEL, alpha=alpha, random_state=0).fit(*both)
        assert np.isfinite(model.transform(both[0])).all()
        assert_allclose(model.transform(both[0]).var(axis=0), 1.0, rtol=1e-6)


@pytest.mark.parametrize("centers", ["auto", 30])
def test_an_indefinite_kernel_is_reported(both, centers):
    kernels = [KERNEL, Sigmoid(gamma=1.0, coef0=-1.0)]
    with pytest.warns(NumericalWarning, match="Sigmoid") as found:
        KernelCCA(1, kernels, alpha=0.1, centers=centers, random_state=0).fit(*both)
    assert len(found) == 1
