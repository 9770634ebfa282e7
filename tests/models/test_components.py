"""Kernel PCA against scikit-learn's, and the laws that rows from any source obey."""

import numpy as np
import pytest
import sklearn.decomposition
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from mercer import KernelPCA
from mercer.centers import ForwardSelection, RPCholesky
from mercer.datasets import make_banana, make_ringnorm
from mercer.errors import MercerError, NumericalWarning
from mercer.kernels import RBF, Linear, Polynomial, Sigmoid


@pytest.fixture(scope="module")
def rows():
    return make_ringnorm(300, random_state=0)[0]


def same_up_to_sign(found, expected, **tolerance):
    sign = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * sign, expected, **tolerance)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        (RBF(gamma=0.05), {"kernel": "rbf", "gamma": 0.05}),
        (Linear(), {"kernel": "linear"}),
        (Polynomial(degree=3, gamma=0.1, coef0=1.0), {"kernel": "poly", "degree": 3, "gamma": 0.1, "coef0": 1.0}),
    ],
)
def test_scores_are_those_of_scikit_learn(rows, kernel, theirs):
    expected = sklearn.decomposition.KernelPCA(n_components=12, eigen_solver="dense", **theirs).fit(rows)
    model = KernelPCA(12, kernel).fit(rows)
    new = make_ringnorm(50, random_state=1)[0]
    scale = np.sqrt(expected.eigenvalues_[0])
    same_up_to_sign(model.transform(rows), expected.transform(rows), atol=1e-8 * scale)
    same_up_to_sign(model.transform(new), expected.transform(new), atol=1e-8 * scale)
    assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-8)


@pytest.mark.slow
def test_few_components_of_many_rows_are_the_first_of_all():
    X, _ = make_ringnorm(900, random_state=0)
    few, every = KernelPCA(3, RBF(gamma=0.02)).fit(X), KernelPCA(kernel=RBF(gamma=0.02)).fit(X)
    assert_allclose(few.transform(X), every.transform(X)[:, :3], atol=1e-8)
    assert_allclose(few.explained_variance_ratio_, every.explained_variance_ratio_[:3], rtol=1e-8)


def test_all_components_explain_all_variance(rows):
    model = KernelPCA(kernel=RBF(gamma=0.05)).fit(rows)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)
    assert_allclose(model.statistics(rows).spe, 0.0, atol=1e-10)
    scores = model.transform(rows)
    assert_allclose(scores.T @ scores / len(rows), np.diag(model.explained_variance_), atol=1e-10)


def test_a_share_of_the_variance_takes_as_few_components_as_reach_it(rows):
    shares = KernelPCA(kernel=RBF(gamma=0.05)).fit(rows).explained_variance_ratio_.cumsum()
    k = KernelPCA(0.8, RBF(gamma=0.05)).fit(rows).n_components_
    assert shares[k - 2] < 0.8 <= shares[k - 1]


def test_a_weight_of_two_is_a_row_twice(rows):
    count = np.arange(300) % 3
    repeated = np.repeat(rows, count, axis=0)
    weighted = KernelPCA(5, RBF(gamma=0.05)).fit(rows, sample_weight=count)
    expected = KernelPCA(5, RBF(gamma=0.05)).fit(repeated)
    assert_allclose(weighted.explained_variance_, expected.explained_variance_, rtol=1e-10)
    assert_allclose(np.abs(weighted.transform(rows)), np.abs(expected.transform(rows)), atol=1e-9)


def test_with_all_rows_as_given_centers_the_pass_finds_what_the_matrix_has(rows):
    exact = KernelPCA(10, RBF(gamma=0.05)).fit(rows)
    model = KernelPCA(10, RBF(gamma=0.05), centers=rows).fit(rows)
    assert_allclose(model.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-7)
    same_up_to_sign(model.transform(rows), exact.transform(rows), atol=1e-6)
    assert_allclose(model.statistics(rows).spe, exact.statistics(rows).spe, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_centers_explain_nearly_what_all_rows_do(dtype):
    X, _ = make_ringnorm(3000, random_state=0, dtype=dtype)
    exact = KernelPCA(10, RBF(gamma=0.01), centers="all").fit(X)
    model = KernelPCA(10, RBF(gamma=0.01), centers=400, random_state=0).fit(X)
    assert model.transform(X).dtype == dtype
    assert_allclose(model.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=0.01)


def test_parts_added_one_after_another_are_the_whole_and_can_be_removed():
    X, _ = make_banana(600, random_state=0)
    model = KernelPCA(4, RBF(gamma=1.0), centers=X[:40])
    whole = clone(model).fit(X)
    parts = clone(model).partial_fit(X[:250]).partial_fit(X[250:])
    assert_allclose(parts.transform(X), whole.transform(X), atol=1e-8)
    assert_allclose(parts.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=1e-9)
    first = clone(model).fit(X[:250])
    parts.remove(X[250:])
    assert_allclose(parts.explained_variance_, first.explained_variance_, rtol=1e-8)
    with pytest.raises(ValueError, match="remove only rows that were added"):
        parts.remove(X)
    with pytest.raises(ValueError, match="is not in the model"):
        parts.remove(X[:20] + 3.0)
    with pytest.raises(ValueError, match="all rows of the model"):
        parts.remove(X[:250])


def test_rows_can_be_added_to_a_fit_of_all_rows():
    X, _ = make_banana(200, random_state=0)
    model = KernelPCA(3, RBF(gamma=1.0)).fit(X[:120]).partial_fit(X[120:])
    expected = KernelPCA(3, RBF(gamma=1.0)).fit(X)
    assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=0.01)


def test_blocks_and_files_give_the_model_of_memory(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, _ = make_banana(500, random_state=0)
    model = KernelPCA(3, RBF(gamma=1.0), centers=X[:30])
    expected = clone(model).fit(X).transform(X)
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "rows.parquet")
    from_file = clone(model).fit(str(tmp_path / "rows.parquet"))
    assert list(from_file.feature_names_in_) == ["a", "b"]
    assert_allclose(from_file.transform(str(tmp_path / "rows.parquet")), expected, atol=1e-8)
    blocks = clone(model).fit([(X[:300],), (X[300:],)])
    assert_allclose(blocks.transform(X), expected, atol=1e-8)


def test_signs_do_not_depend_on_the_order_of_rows(rows):
    shuffled = np.random.default_rng(0).permutation(rows)
    model, other = (KernelPCA(5, RBF(gamma=0.05)).fit(X) for X in (rows, shuffled))
    assert_allclose(model.transform(rows), other.transform(rows), atol=1e-8)


def test_pre_images_of_a_linear_kernel_are_the_rows(rows):
    model = KernelPCA(kernel=Linear()).fit(rows)
    assert_allclose(model.inverse_transform(model.transform(rows)), rows, atol=1e-8)


def test_pre_images_are_nearer_to_the_rows_without_noise():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, 2.0 * np.pi, 400)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = circle + 0.15 * rng.normal(size=circle.shape)
    model = KernelPCA(4, RBF(gamma=1.0)).fit(noisy)
    found = model.inverse_transform(model.transform(noisy))
    off = np.abs(np.linalg.norm(found, axis=1) - 1.0).mean()
    assert off < 0.6 * np.abs(np.linalg.norm(noisy, axis=1) - 1.0).mean()


@pytest.mark.slow
@pytest.mark.parametrize("centers", ["auto", 60])
def test_learned_pre_images_are_the_rows_that_scores_determine(centers):
    X, _ = make_banana(400, random_state=0)
    model = KernelPCA(5, Polynomial(degree=2), centers=centers, fit_inverse_transform=True, random_state=0).fit(X)
    new, _ = make_banana(100, random_state=1)
    assert np.abs(model.inverse_transform(model.transform(new)) - new).mean() < 0.05 * np.abs(new).mean()


def test_pre_images_that_need_learning_say_so(rows):
    model = KernelPCA(2, Polynomial(degree=2)).fit(rows)
    with pytest.raises(ValueError, match="fit_inverse_transform=True"):
        model.inverse_transform(model.transform(rows[:3]))
    with pytest.raises(ValueError, match="3 columns"):
        model.inverse_transform(np.zeros((2, 3)))


def test_a_kernel_matrix_is_accepted_and_refuses_what_needs_rows(rows):
    kernel = RBF(gamma=0.05)
    model = KernelPCA(3, "precomputed").fit(kernel.block(rows, rows))
    expected = KernelPCA(3, kernel).fit(rows)
    assert_allclose(model.transform(kernel.block(rows[:9], rows)), expected.transform(rows[:9]), atol=1e-9)
    with pytest.raises(ValueError, match="kernel matrix"):
        model.statistics(kernel.block(rows, rows))
    with pytest.raises(ValueError, match="kernel matrix"):
        model.remove(kernel.block(rows, rows))


@pytest.mark.parametrize("n_components", [0, -1, 1.5, 0.0, "all"])
def test_numbers_of_components_that_make_no_sense_are_refused(rows, n_components):
    with pytest.raises((ValueError, TypeError), match="n_components"):
        KernelPCA(n_components).fit(rows)


def test_widths_that_leave_one_out_would_choose_are_refused(rows):
    with pytest.raises(ValueError, match="no targets"):
        KernelPCA(kernel=RBF()).fit(rows)


def test_equal_rows_have_no_component():
    with pytest.raises(ValueError, match="no variance"):
        KernelPCA().fit(np.ones((5, 2)))


def rates_of_false_alarms(centers, *, n, draws, kind=np.asarray):
    """Shares (2,) of new rows that exceed limits for 5 %, of T² and SPE, means over draws of n rows."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(3, 8))

    def draw(n):
        return kind(rng.normal(size=(n, 3)) @ mix + 0.3 * rng.normal(size=(n, 8)))

    rates = []
    for seed in range(draws):
        model = KernelPCA(5, RBF(gamma=0.01), centers=centers, random_state=seed).fit(draw(n))
        exceeded = model.control_limits(0.05).exceeded(model.statistics(draw(4000)))
        rates.append([each.mean() for each in exceeded])
    return np.mean(rates, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("centers", ["auto", 60])
def test_limits_are_exceeded_by_as_many_new_rows_as_asked_for(centers):
    assert_allclose(rates_of_false_alarms(centers, n=1000, draws=5), 0.05, atol=0.01)


@pytest.mark.slow
def test_a_fault_shows_in_the_residual_or_in_the_scores():
    rng = np.random.default_rng(0)

    def draw(n):
        return np.column_stack([rng.normal(size=n)] * 2) + 0.1 * rng.normal(size=(n, 2))

    model = KernelPCA(1, Linear()).fit(draw(500))
    found, limits = model.statistics([[2.0, -2.0], [9.0, 9.0], [0.1, 0.1]]), model.control_limits(0.01)
    t2, spe = limits.exceeded(found)
    assert_array_equal(t2, [False, True, False])
    assert_array_equal(spe, [True, False, False])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_errors_are_no_components(dtype):
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(dtype)
    for shift in (0.0, 100.0):
        assert KernelPCA(kernel="linear").fit(X + dtype(shift)).n_components_ == 3
    plane = X[:, :2]
    model = KernelPCA().fit(plane)
    assert_allclose(model.statistics(plane).t2.mean(), model.n_components_, rtol=0.01)
    assert np.abs(model.transform(plane)).max() < 2.0


@pytest.mark.parametrize("centers", ["auto", 40])
def test_rows_far_from_the_origin_have_the_components_of_rows_near_it(centers):
    X = np.random.default_rng(0).normal(size=(300, 3)) * (3.0, 1.0, 0.3)
    model = KernelPCA(kernel="linear", centers=centers, random_state=0).fit(X + 1e5)
    assert_allclose(model.explained_variance_, np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1], rtol=1e-6)
    assert_allclose(model.inverse_transform(model.transform(X + 1e5)), X + 1e5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("centers", [RPCholesky(150), 150])
def test_limits_hold_where_centers_are_rows(centers):
    kind = np.asarray if isinstance(centers, RPCholesky) else sparse.csr_matrix
    assert_allclose(rates_of_false_alarms(centers, n=700, draws=3, kind=kind), 0.05, atol=0.02)


@pytest.mark.slow
def test_limits_and_learned_rows_are_those_of_the_rows_that_remain():
    rng = np.random.default_rng(0)
    here, there = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 3.0
    centers = np.vstack([here[:25], there[:25]])
    model = KernelPCA(3, RBF(gamma=0.3), centers=centers, fit_inverse_transform=True, random_state=0)
    moved = clone(model).fit(here).partial_fit(there).remove(here)
    alone = clone(model).fit(there)
    assert_allclose(moved.control_limits(0.05).t2, alone.control_limits(0.05).t2, rtol=0.15)
    assert_allclose(moved.control_limits(0.05).spe, alone.control_limits(0.05).spe, rtol=0.15)
    new = rng.normal(size=(50, 2)) + 3.0
    off = [np.abs(each.inverse_transform(each.transform(new)) - new).mean() for each in (moved, alone)]
    assert off[0] < 2.0 * off[1]


def test_rates_that_no_row_can_show_are_refused(rows):
    with pytest.raises(ValueError, match=r"rate=0.001: 300 rows"):
        KernelPCA(3, RBF(gamma=0.05)).fit(rows).control_limits(0.001)


def test_a_kernel_that_is_not_positive_says_so(rows):
    kernel = Sigmoid(gamma=1.0, coef0=-1.0)
    for centers in ("auto", 30):
        with pytest.warns(NumericalWarning, match="not positive semidefinite"):
            KernelPCA(3, kernel, centers=centers, random_state=0).fit(rows)


def test_centers_that_are_too_few_for_a_share_say_so(rows):
    with pytest.warns(NumericalWarning, match="10 centers express"):
        KernelPCA(0.95, RBF(gamma=0.05), centers=10, random_state=0).fit(rows)


def test_another_fit_forgets_the_columns_of_the_first(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, _ = make_banana(60, random_state=0)
    model = KernelPCA(2, RBF(gamma=1.0), centers=10, random_state=0)
    for name in ("ab", "cd"):
        parquet.write_table(pa.table({name[0]: X[:, 0], name[1]: X[:, 1]}), tmp_path / f"{name}.parquet")
        assert list(model.fit(str(tmp_path / f"{name}.parquet")).feature_names_in_) == list(name)
    assert not hasattr(model.fit([(X,)]), "feature_names_in_")


def test_few_rows_in_blocks_are_all_centers(rows):
    model = KernelPCA(5, RBF(gamma=0.05)).fit([(rows[:200],), (rows[200:],)])
    assert len(model.X_fit_) == 300
    assert_allclose(
        model.explained_variance_, KernelPCA(5, RBF(gamma=0.05)).fit(rows).explained_variance_, rtol=1e-7
    )


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"centers": "all"}, 'centers="all"'),
        ({"centers": "some"}, "centers"),
        ({"kernel": "precomputed"}, "kernel matrix"),
        ({"centers": ForwardSelection(10)}, "ForwardSelection"),
        ({"max_memory": -1.0}, "max_memory"),
        ({"max_memory": 1e-9}, "max_memory"),
        ({"verbose": "a"}, "verbose"),
    ],
    ids=str,
)
def test_what_blocks_cannot_do_is_refused_by_name(rows, parameters, match):
    model = KernelPCA(2, RBF(gamma=0.05)).set_params(**parameters)
    with pytest.raises((ValueError, MercerError), match=match):
        model.fit([(rows,)])


def test_parameters_on_which_sums_depend_do_not_change_between_parts(rows):
    model = KernelPCA(2, RBF(gamma=0.05), centers=rows[:20]).fit(rows[:100])
    with pytest.raises(ValueError, match="kernel__gamma was"):
        model.set_params(kernel=RBF(gamma=0.1)).partial_fit(rows[100:])


def test_rows_added_to_a_fit_of_all_rows_are_validated(rows):
    model = KernelPCA(2, RBF(gamma=0.05)).fit(rows[:100])
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit([(np.where(rows[100:] > 2.0, np.inf, rows[100:]),)])
