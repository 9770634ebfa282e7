"""Oriented kernel PCA against explicit matrices, its limits, and the laws that rows from any source obey."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from mercer import KernelPCA, OrientedKernelPCA
from mercer.datasets import make_banana, make_ringnorm
from mercer.errors import MercerError
from mercer.kernels import RBF, Linear
from mercer.kernels._precomputed import FromCallable
from mercer.rows import MemoryRows, StreamRows

KERNEL = RBF(gamma=0.05)


def shifted(X):
    return X + 0.3


def stretched(X):
    return 1.1 * X


@pytest.fixture(scope="module")
def rows():
    return make_ringnorm(150, random_state=0)[0]


@pytest.fixture(scope="module")
def noise():
    return make_ringnorm(70, random_state=1)[0] * np.linspace(0.0, 0.5, 20)


def same_up_to_sign(found, expected, **tolerance):
    sign = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * sign, expected, **tolerance)


def centered_square(K, weight):
    """K' (W - ww') K for shares w."""
    return K.T @ (np.diag(weight) - np.outer(weight, weight)) @ K


@pytest.mark.slow
def test_directions_are_those_of_explicit_matrices(rows, noise):
    n, q, K = len(rows), len(noise), KERNEL.block(rows, rows)
    weight = np.arange(n) % 3 + 1.0
    weight /= weight.sum()
    A = centered_square(K, weight)
    B = 0.5 * centered_square(KERNEL.block(noise, rows), np.full(q, 1.0 / q))
    for function, factor in ((shifted, 1.0), (stretched, 2.0)):
        D = KERNEL.block(function(rows), rows) - K
        B += factor * D.T @ (weight[:, None] * D)
    parts = [shifted, (stretched, 2.0), (noise, 0.5)]
    model = OrientedKernelPCA(6, KERNEL, noise=parts, mu=0.01).fit(rows, sample_weight=100.0 * weight)
    assert model.mu_ == pytest.approx(0.01 * np.trace(np.linalg.solve(K, B)), rel=1e-8)
    values, V = (part[..., ::-1][..., :6] for part in scipy.linalg.eigh(A, B + model.mu_ * K))
    V = V / np.sqrt(np.einsum("ij,ij->j", V, K @ V))
    assert_allclose(model.ratio_, values, rtol=1e-8)
    assert_allclose(model.signal_variance_, np.einsum("ij,ij->j", V, A @ V), rtol=1e-8)
    assert_allclose(model.noise_variance_, np.einsum("ij,ij->j", V, B @ V), rtol=1e-8)
    assert_allclose(model.ratio_, model.signal_variance_ / (model.noise_variance_ + model.mu_), rtol=1e-8)
    scores = K @ V
    same_up_to_sign(model.transform(rows), scores - weight @ scores, atol=1e-9)


def test_a_large_penalty_gives_kernel_pca(rows, noise):
    expected = KernelPCA(5, KERNEL).fit(rows)
    for part in (shifted, noise):
        model = OrientedKernelPCA(5, KERNEL, noise=part, mu=1e9).fit(rows)
        same_up_to_sign(model.transform(rows), expected.transform(rows), atol=1e-7)
        assert_allclose(model.signal_variance_, expected.explained_variance_, rtol=1e-8)


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_with_a_linear_kernel_it_is_oriented_pca_of_the_rows(rows, noise, shift):
    covariance = [np.cov(Z[:, :8].T, bias=True) for Z in (rows, noise + 1e-3 * rows[:70])]
    values, W = scipy.linalg.eigh(*covariance)
    Z = noise[:, :8] + 1e-3 * rows[:70, :8]
    model = OrientedKernelPCA(kernel=Linear(), noise=Z + shift, mu=0.0).fit(rows[:, :8] + shift)
    assert_allclose(model.ratio_, values[::-1], rtol=1e-6)
    scores = (rows[:, :8] - rows[:, :8].mean(axis=0)) @ W[:, ::-1] / np.linalg.norm(W[:, ::-1], axis=0)
    same_up_to_sign(model.transform(rows[:, :8] + shift), scores, atol=1e-6)


def test_isotropic_noise_changes_nothing(rows):
    X, noise = rows[:, :5], np.vstack([np.eye(5), -np.eye(5)])
    model = OrientedKernelPCA(kernel="linear", noise=noise).fit(X)
    same_up_to_sign(model.transform(X), KernelPCA(kernel="linear").fit(X).transform(X), atol=1e-8)
    assert_allclose(model.noise_variance_, 0.2)


def test_components_ignore_a_nuisance_on_rows_that_were_not_fitted(rng):
    X, _ = make_banana(600, random_state=0)
    X = np.column_stack([X, 3.0 * rng.normal(size=600)])

    def moved(X):
        return X + (0.0, 0.0, 1.0)

    def share(model):
        scores, after = model.transform(X[300:]), model.transform(moved(X[300:]))
        return np.mean((after - scores) ** 2 / scores.var(axis=0))

    oriented, plain = OrientedKernelPCA(3, noise=moved).fit(X[:300]), KernelPCA(3).fit(X[:300])
    assert share(oriented) < 0.1 * share(plain)


@pytest.mark.parametrize("centers", ["auto", 30])
def test_scores_are_uncorrelated_and_have_the_variances_that_are_stated(rows, centers):
    model = OrientedKernelPCA(6, KERNEL, noise=shifted, centers=centers, random_state=0).fit(rows)
    scores, moved = model.transform(rows), model.transform(shifted(rows))
    assert_allclose(scores.mean(axis=0), 0.0, atol=1e-10)
    assert_allclose(scores.T @ scores / len(rows), np.diag(model.signal_variance_), atol=1e-10)
    assert_allclose(((moved - scores) ** 2).mean(axis=0), model.noise_variance_, rtol=1e-8)
    assert (np.diff(model.ratio_) <= 0.0).all()


def test_few_components_are_the_first_of_all(rows):
    every, few = (OrientedKernelPCA(k, KERNEL, noise=shifted).fit(rows) for k in (None, 3))
    assert_allclose(few.transform(rows), every.transform(rows)[:, :3], atol=1e-9)


def test_scales_and_signs_of_rows_noise_and_order_do_not_matter(rows):
    expected = OrientedKernelPCA(4, KERNEL, noise=shifted).fit(rows)
    weighted = OrientedKernelPCA(4, KERNEL, noise=(shifted, 1e-60)).fit(rows)
    assert_allclose(weighted.transform(rows), expected.transform(rows), atol=1e-8)
    assert_allclose(weighted.ratio_, 1e60 * expected.ratio_, rtol=1e-8)
    other = OrientedKernelPCA(4, KERNEL, noise=shifted).fit(np.random.default_rng(0).permutation(rows))
    assert_allclose(other.transform(rows), expected.transform(rows), atol=1e-8)
    for unit in (1e8, 1e-8):
        model = OrientedKernelPCA(4, noise=lambda X, unit=unit: X + 0.3 * unit).fit(unit * rows)
        assert_allclose(model.ratio_, OrientedKernelPCA(4, noise=shifted).fit(rows).ratio_, rtol=1e-6)


def test_all_rows_as_given_centers_are_all_rows(rows, noise):
    model = OrientedKernelPCA(5, KERNEL, noise=[shifted, (noise, 0.5)])
    expected = clone(model).fit(rows)
    for choice in (rows, "all", 150):
        found = clone(model).set_params(centers=choice).fit(rows)
        assert_allclose(found.transform(rows), expected.transform(rows), atol=1e-8)
    assert_array_equal(np.sort(expected.support_), np.arange(150))


def test_nearly_dependent_rows_keep_their_digits():
    X, _ = make_banana(120, random_state=0)
    model = OrientedKernelPCA(4, RBF(gamma=0.02), noise=shifted).fit(X)
    scores, moved = model.transform(X), model.transform(shifted(X))
    assert_allclose(((moved - scores) ** 2).mean(axis=0), model.noise_variance_, rtol=1e-5)
    assert_allclose(scores.var(axis=0), model.signal_variance_, rtol=1e-5)


def test_equal_rows_count_as_often_as_they_are_there(rows):
    count = np.arange(150) % 3
    weighted = OrientedKernelPCA(4, KERNEL, noise=shifted).fit(rows, sample_weight=count)
    repeated = OrientedKernelPCA(4, KERNEL, noise=shifted).fit(np.repeat(rows, count, axis=0))
    assert_allclose(weighted.ratio_, repeated.ratio_, rtol=1e-9)
    assert_allclose(weighted.transform(rows), repeated.transform(rows), atol=1e-9)


def test_blocks_and_files_give_the_model_of_memory(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, _ = make_banana(500, random_state=0)
    Z = 0.1 * X[:90]
    model = OrientedKernelPCA(3, RBF(gamma=1.0), noise=[stretched, (Z, 0.5)], centers=X[:30])
    expected = clone(model).fit(X).transform(X)
    for name, part in (("rows", X), ("noise", Z)):
        parquet.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}), tmp_path / f"{name}.parquet")
    path = str(tmp_path / "rows.parquet")
    from_file = clone(model).set_params(noise=[stretched, (str(tmp_path / "noise.parquet"), 0.5)]).fit(path)
    assert list(from_file.feature_names_in_) == ["a", "b"]
    assert_allclose(from_file.transform(path), expected, atol=1e-8)
    streamed = StreamRows(lambda: [(Z[:50],), (Z[50:],)])
    blocks = clone(model).set_params(noise=[stretched, (streamed, 0.5)]).fit([(X[:300],), (X[300:],)])
    assert_allclose(blocks.transform(X), expected, atol=1e-8)
    assert_allclose(clone(model).fit(MemoryRows(X, block_rows=37)).transform(X), expected, atol=1e-8)


def test_rows_are_added_and_removed(rows):
    model = OrientedKernelPCA(4, KERNEL, noise=[shifted, (rows[:40] * 0.2, 0.5)], centers=rows[:25])
    whole, first = clone(model).fit(rows), clone(model).fit(rows[:90])
    parts = clone(model).partial_fit(rows[:90]).partial_fit(rows[90:])
    assert_allclose(parts.transform(rows), whole.transform(rows), atol=1e-8)
    assert_allclose(parts.remove(rows[90:]).ratio_, first.ratio_, rtol=1e-7)
    with pytest.raises(ValueError, match="noise was"):
        parts.set_params(noise=stretched).partial_fit(rows)


def test_rows_in_single_precision_give_nearly_the_same(rows):
    X = rows.astype(np.float32)
    for centers in ("auto", X[:40]):
        model = OrientedKernelPCA(3, KERNEL, noise=shifted, centers=centers)
        single, double = clone(model).fit(X), clone(model).fit(X.astype(np.float64))
        assert single.transform(X).dtype == np.float32
        assert_allclose(single.ratio_, double.ratio_, rtol=1e-3)


def test_sparse_rows_have_the_components_of_dense_ones(rows):
    X = np.where(np.abs(rows) > 0.5, rows, 0.0)
    dense = OrientedKernelPCA(3, KERNEL, noise=[stretched, (X[:50], 0.1)]).fit(X)
    S = sparse.csr_matrix(X)
    found = OrientedKernelPCA(3, KERNEL, noise=[stretched, (S[:50], 0.1)]).fit(S)
    assert_allclose(found.transform(S), dense.transform(X), atol=1e-8)


def test_data_frames_are_read_and_their_columns_compared(rows):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows[:, :3], columns=list("abc"))
    model = OrientedKernelPCA(2, noise=[stretched, (frame[:40], 1.0)]).fit(frame)
    assert model.transform(frame).shape == (150, 2)
    with pytest.raises(ValueError, match=r"noise does not have the rows of X: .*feature names"):
        OrientedKernelPCA(2, noise=frame[["c", "b", "a"]]).fit(frame)


def test_rows_of_other_kinds_take_noise_rows_only():
    words = ["a", "ab", "abc", "b", "bc", "c", "cab"]
    letters = FromCallable(common_letters, psd=True)
    model = OrientedKernelPCA(2, letters, noise=["a", "aa", "b"]).fit(words)
    assert model.transform(["abc", "c"]).shape == (2, 2)
    with pytest.raises(ValueError, match="need rows of numbers"):
        OrientedKernelPCA(2, letters, noise=stretched).fit(words)


def common_letters(X, Z):
    return np.array([[sum(float(x.count(a) * z.count(a)) for a in "abc") for z in Z] for x in X])


@pytest.mark.parametrize(("dtype", "size", "lost"), [(np.float64, 1e-9, 1e-17), (np.float32, 1e-3, 1e-8)])
def test_small_transformations_count_until_they_are_rounding_errors(rows, dtype, size, lost):
    X = rows.astype(dtype)
    expected = OrientedKernelPCA(3, KERNEL, noise=lambda X: X + dtype(10.0 * size)).fit(X)
    model = OrientedKernelPCA(3, KERNEL, noise=lambda X: X + dtype(size)).fit(X)
    assert_allclose(model.ratio_, 100.0 * expected.ratio_, rtol=0.05)
    with pytest.raises(ValueError, match="the noise has no variance"):
        OrientedKernelPCA(3, KERNEL, noise=lambda X: X + dtype(lost)).fit(X)


def test_directions_without_noise_are_left_out_where_nothing_is_penalized(rows):
    X = rows[:, :5]
    model = OrientedKernelPCA(kernel="linear", noise=X * (1.0, 1.0, 0.0, 0.0, 0.0), mu=0.0).fit(X)
    assert model.n_components_ == 2
    assert "3 directions without noise were removed" in model.report_


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"noise": None}, "noise=None"),
        ({"noise": []}, r"noise=\[\] is empty"),
        ({"noise": [shifted, 0.5]}, r"noise\[1\] is 0.5"),
        ({"noise": {"shift": shifted}}, "noise is .*pass a function"),
        ({"noise": object()}, "noise does not have the rows of X"),
        ({"noise": [(shifted, -1.0)]}, r"the weight of noise\[0\]"),
        ({"noise": [(shifted, np.nan)]}, r"the weight of noise\[0\]"),
        ({"noise": [(shifted, 0.0)]}, "the noise has no variance"),
        ({"noise": lambda X: X}, "the noise has no variance"),
        ({"noise": np.ones((9, 20))}, "the noise has no variance"),
        ({"noise": np.ones((9, 3))}, "noise does not have the rows of X: .*3 features"),
        ({"noise": [shifted, (np.full((9, 20), np.nan), 1.0)]}, r"noise\[1\] does not have the rows of X: .*NaN"),
        ({"noise": [(np.ones((9, 3)),), (np.ones((9, 3)),)]}, "noise has 3 features"),
        ({"noise": lambda X: X[:-1]}, r"noise \(<lambda>\) returned an array of shape"),
        ({"noise": [stretched, lambda X: X[:, :-1]]}, r"noise\[1\] \(<lambda>\) returned an array of shape"),
        ({"mu": -1.0}, "mu"),
        ({"mu": "loo"}, "mu"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 0.5}, "n_components"),
        ({"kernel": "precomputed"}, "kernel matrix"),
        ({"kernel": RBF()}, "no targets"),
        ({"max_memory": 1e-9}, "max_memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_done_is_refused_by_name(rows, parameters, match):
    model = OrientedKernelPCA(2, KERNEL, noise=shifted).set_params(**parameters)
    with pytest.raises((ValueError, MercerError), match=match):
        model.fit(rows)


def test_blocks_cannot_all_be_centers(rows):
    with pytest.raises(ValueError, match='centers="all"'):
        OrientedKernelPCA(2, KERNEL, noise=shifted, centers="all").fit([(rows,)])


def test_equal_rows_have_no_component():
    with pytest.raises(ValueError, match="no variance"):
        OrientedKernelPCA(noise=shifted).fit(np.ones((5, 2)))


def test_several_samples_of_noise_are_a_list(rows):
    X = rows
    few, more = 0.1 * X[:20], X[20:50] * 0.2
    listed = OrientedKernelPCA(2, RBF(gamma=0.1), noise=[few, more]).fit(X)
    paired = OrientedKernelPCA(2, RBF(gamma=0.1), noise=[(few, 1.0), (more, 1.0)]).fit(X)
    assert_allclose(listed.transform(X), paired.transform(X), atol=1e-10)
