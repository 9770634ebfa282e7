"""Weights of several kernels: found where they are, and honest where they are not."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from mercer import KernelFisherClassifier, KernelPCA, KernelRidgeRegressor
from mercer._fitting.kernel_learning.evidence import LearningData
from mercer._fitting.kernel_learning.weights import _by_alignment, _by_norm, _Kernels, _press_and_slope
from mercer._gram import Budget
from mercer.errors import KernelError
from mercer.kernels import RBF, Constant, FromCallable, Laplacian, Linear, Sigmoid, WeightedSum, pairwise

BUDGET = Budget(2.0**31)
D = 8


def single(gamma):
    """A kernel for each feature."""
    return {f"feature {j}": RBF(gamma=[gamma * (i == j) for i in range(D)]) for j in range(D)}


def two_of(n, seed):
    """Targets that depend on the first two features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.normal(size=n)


@pytest.fixture
def rows():
    X, y = two_of(60, 0)
    weight = np.random.default_rng(1).integers(1, 4, 60).astype(float)
    found, _ = _Kernels.of(
        list(single(0.5).values()), LearningData(X, np.column_stack([y, X[:, 2]]), weight), BUDGET
    )
    # In double precision, for differences.
    return _Kernels(found.K.astype(np.float64), found.Y, weight)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fold", [None, np.arange(60) // 3], ids=["rows", "folds"])
def test_slopes_of_press_are_those_of_differences(rows, fold):
    rows = replace(rows, fold=fold)
    at = np.random.default_rng(0).random(D) * 5.0
    _, slope = _press_and_slope(rows, at)
    steps = 1e-3 * np.eye(D)
    numeric = [(_press_and_slope(rows, at + h)[0] - _press_and_slope(rows, at - h)[0]) / 2e-3 for h in steps]
    # Products are summed in single precision.
    assert_allclose(slope, numeric, atol=1e-5)


def test_folds_of_single_rows_are_no_folds(rows):
    folds = replace(rows, fold=np.arange(60))
    one, other = (_press_and_slope(each, np.ones(D)) for each in (rows, folds))
    assert_allclose(one[0], other[0])
    assert_allclose(one[1], other[1], atol=1e-6)


@pytest.mark.slow
def test_press_is_that_of_refitting(rows):
    shares, alpha = np.full(D, 1.0 / D), 3.0
    one = KernelRidgeRegressor("precomputed", alpha=alpha, weights="importance")
    K = rows.sum(shares)
    each = [
        one.fit(K[np.ix_(rest, rest)], rows.Y[rest], sample_weight=rows.weight[rest]).predict(K[[i]][:, rest])[0]
        for i in range(60)
        for rest in [np.delete(np.arange(60), i)]
    ]
    press = np.sum(rows.weight[:, None] * (rows.Y - each) ** 2)
    assert_allclose(rows.press(shares, alpha), press, rtol=1e-6)


def test_losses_of_new_rows_are_those_of_the_model(rows):
    shares, used, new = np.full(D, 1.0 / D), np.arange(40), np.arange(40, 60)
    some = rows.some(used)
    K = rows.sum(shares)
    model = KernelRidgeRegressor("precomputed", alpha=some.alpha(shares), weights="importance")
    model.fit(K[:40, :40], rows.Y[:40], sample_weight=rows.weight[:40])
    losses = ((rows.Y[40:] - model.predict(K[40:, :40])) ** 2).sum(axis=1)
    assert_allclose(rows.losses(shares, used, new), losses, rtol=1e-4, atol=1e-6)


def test_alignment_is_at_its_minimum(rows):
    shares = _by_alignment(rows)
    share = rows.weight / rows.weight.sum()
    H = np.diag(np.sqrt(share)) @ (np.eye(60) - share)
    centered = np.array([H @ K @ H.T for K in rows.K])
    SY = H @ rows.Y

    def alignment(v):
        K = np.tensordot(v, centered, 1)
        return np.sum(K * (SY @ SY.T)) / np.linalg.norm(K)

    best = alignment(shares)
    for k in range(D):
        assert alignment(np.maximum(shares + 1e-2 * np.eye(D)[k], 0.0)) < best + 1e-6
        assert alignment(np.maximum(shares - 1e-2 * np.eye(D)[k], 0.0)) < best + 1e-6


@pytest.mark.slow
def test_norms_go_from_sparse_to_equal(rows):
    spread = [np.std(_by_norm(rows, p)) for p in (1.0, 2.0, 16.0)]
    assert spread[0] > spread[1] > spread[2]
    noisy = rows.Y[:, 1:] + np.random.default_rng(0).normal(size=(60, 1))
    assert np.count_nonzero(_by_norm(_Kernels(rows.K, noisy, rows.weight), 1.0) == 0.0) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["auto", "alignment"])
def test_kernels_that_matter_are_found(weights):
    X, y = two_of(250, 0)
    model = KernelRidgeRegressor(WeightedSum(single(1.0), weights), random_state=0).fit(X, y)
    found = model.kernel_weights_
    assert found["feature 0"] + found["feature 1"] > 0.95
    assert_allclose(sum(found.values()), 1.0)
    assert max(value for name, value in found.items() if name[-1] not in "01") < 0.03
    equal = KernelRidgeRegressor(WeightedSum(single(1.0), "equal"), random_state=0).fit(X, y)
    new, truth = two_of(2000, 1)
    assert 1.0 - model.score(new, truth) < 0.9 * (1.0 - equal.score(new, truth))
    assert "weights of kernels: feature 1" in str(model.report_)


@pytest.mark.slow
@pytest.mark.parametrize("centers", ["all", 60])
def test_a_classifier_finds_them_too(centers):
    X, y = two_of(400, 0)
    model = KernelFisherClassifier(WeightedSum(single(1.0)), centers=centers, random_state=0).fit(X, y > 0.5)
    found = model.kernel_weights_
    assert found["feature 0"] + found["feature 1"] > 0.95
    assert model.relevance_ is None
    new, truth = two_of(2000, 1)
    assert model.score(new, truth > 0.5) > 0.88


@pytest.mark.slow
def test_noise_leaves_weights_equal():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(5):
        X, y = rng.normal(size=(80, D)), rng.normal(size=80)
        model = KernelRidgeRegressor(WeightedSum(single(1.0)), random_state=0).fit(X, y)
        found.append(np.std(list(model.kernel_weights_.values())))
    # Two standard errors are exceeded now and then.
    assert np.count_nonzero(found) <= 1


@pytest.mark.slow
def test_left_out_rows_are_predicted_under_weights_learned_without_them():
    X, y = two_of(120, 0)
    model = KernelRidgeRegressor(WeightedSum(single(1.0), "loo"), random_state=0).fit(X, y)
    same = KernelRidgeRegressor(model.kernel_, alpha=model.alpha_).fit(X, y)
    assert_allclose(model.predict(X), same.predict(X), rtol=1e-6, atol=1e-8)
    assert np.mean((y - model.loo_prediction_) ** 2) > np.mean((y - same.loo_prediction_) ** 2)


@pytest.mark.slow
def test_the_unit_of_a_kernel_does_not_matter():
    X, y = two_of(120, 0)
    one = {"line": Linear(), "smooth": RBF(gamma=0.5), "rough": Laplacian(gamma=0.3)}
    other = one | {"line": 1e4 * Linear(), "rough": 1e-4 * Laplacian(gamma=0.3)}
    kernels = [WeightedSum(parts, "alignment") for parts in (one, other)]
    models = [KernelRidgeRegressor(kernel, random_state=0).fit(X, y) for kernel in kernels]
    values = [list(model.kernel_weights_.values()) for model in models]
    assert_allclose(values[0], values[1], atol=1e-3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("weights", ["equal", "alignment", "loo", 1.0])
def test_a_kernel_that_does_not_vary_has_no_weight(weights):
    X, y = two_of(80, 0)
    parts = {"never": Constant(3.0), "smooth": RBF(gamma=0.3), "line": Linear()}
    model = KernelRidgeRegressor(WeightedSum(parts, weights), random_state=0).fit(X, y)
    assert model.kernel_weights_["never"] == 0.0


def test_constant_kernels_alone_are_equal():
    X, y = two_of(40, 0)
    kernel = WeightedSum({"one": Constant(1.0), "two": Constant(2.0)})
    model = KernelRidgeRegressor(kernel, random_state=0).fit(X, y)
    assert list(model.kernel_weights_.values()) == [0.5, 0.5]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("unit", [1e-25, 1e18])
def test_rows_may_be_large_or_small(unit):
    X, _ = two_of(80, 0)
    kernel = WeightedSum({"line": Linear(), "smooth": RBF("median")}, "alignment")
    one, other = (KernelRidgeRegressor(kernel, random_state=0).fit(u * X, X[:, 0]) for u in (1.0, unit))
    assert_allclose(list(one.kernel_weights_.values()), list(other.kernel_weights_.values()), atol=1e-4)


@pytest.mark.slow
def test_large_norms_are_nearly_equal():
    X, y = two_of(80, 0)
    model = KernelRidgeRegressor(WeightedSum(single(1.0), 2000.0), random_state=0).fit(X, y)
    assert_allclose(list(model.kernel_weights_.values()), 1.0 / D, rtol=0.1)


def test_widths_are_chosen_for_each_kernel():
    X, y = two_of(100, 0)
    parts = [("smooth", RBF()), ("line", Linear())]
    model = KernelRidgeRegressor(WeightedSum(parts, "equal"), random_state=0).fit(X, y)
    assert isinstance(model.kernel_.get_params()["smooth__gamma"], float)
    assert_allclose(list(model.kernel_weights_.values()), 0.5)


def test_where_the_rows_are_does_not_matter():
    X, y = two_of(100, 0)
    kernel = WeightedSum({"smooth": RBF("median"), "line": Linear()}, "alignment")
    near, far = (KernelRidgeRegressor(kernel, random_state=0).fit(X + shift, y) for shift in (0.0, 1000.0))
    assert_allclose(list(near.kernel_weights_.values()), list(far.kernel_weights_.values()), atol=1e-4)


@pytest.mark.slow
def test_single_precision_learns_the_same():
    X, y = two_of(150, 0)
    kernel = WeightedSum(single(1.0), "alignment")
    double, float32 = (
        KernelRidgeRegressor(kernel, random_state=0).fit(rows, y) for rows in (X, X.astype(np.float32))
    )
    assert_allclose(list(double.kernel_weights_.values()), list(float32.kernel_weights_.values()), atol=1e-3)


@pytest.mark.slow
def test_groups_of_noise_leave_weights_equal():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, D)), 3, axis=0) + 0.01 * rng.normal(size=(120, D))
    y, groups = np.repeat(rng.normal(size=40), 3), np.repeat(np.arange(40), 3)
    model = KernelRidgeRegressor(WeightedSum(single(1.0)), random_state=0).fit(X, y, groups=groups)
    assert_allclose(list(model.kernel_weights_.values()), 1.0 / D)
    assert "weights of kernels: all equal: at best, errors of other rows" in str(model.report_)


def test_rows_may_be_anything():
    words = ["cat", "cart", "car", "dog", "dig", "do", "catch", "dot", "cap", "den"] * 4
    y = np.array([word[0] == "c" for word in words])
    first = FromCallable(pairwise(lambda a, b: float(a[0] == b[0])), psd=True)
    length = FromCallable(pairwise(lambda a, b: float(len(a) == len(b))), psd=True)
    model = KernelFisherClassifier(WeightedSum({"first": first, "length": length}, "alignment")).fit(words, y)
    assert model.kernel_weights_["first"] > 0.9
    assert model.score(words, y) == 1.0


def test_sparse_rows_are_fine(rng):
    X = sparse.csr_matrix(rng.normal(size=(60, 3)))
    y = X.toarray()[:, 0]
    model = KernelRidgeRegressor(WeightedSum({"line": Linear(), "smooth": RBF("median")})).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.slow
def test_rows_can_be_added():
    X, y = two_of(600, 0)
    model = KernelRidgeRegressor(WeightedSum(single(1.0), "alignment"), centers=40, random_state=0)
    model.partial_fit(X[:400], y[:400]).partial_fit(X[400:], y[400:])
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (WeightedSum({}), "has no parts"),
        (WeightedSum({"a": Linear()}, "best"), "weights='best' is not known"),
        (WeightedSum({"a": Linear()}, 0.5), "a norm of at least 1"),
        (WeightedSum([("a", Linear()), ("a", RBF())]), "names must differ"),
        (WeightedSum({"a": "rbf"}), "pass kernels, such as RBF"),
        (WeightedSum([RBF(), Linear()]), "kernels without names"),
        (WeightedSum(RBF()), r"parts of WeightedSum are RBF\(\); pass names and kernels"),
        (WeightedSum([("a", RBF(), 2.0)]), "kernels without names"),
        (WeightedSum({1: RBF(), 2: Linear()}), "a part that is named 1; names are strings"),
        (WeightedSum({"a": Linear(), "b": Sigmoid(0.1)}), 'kernel "b" of WeightedSum'),
        (WeightedSum({"a": Linear()}) + RBF(), "not a part of one"),
    ],
)
def test_what_cannot_be_weighted_is_refused(rng, kernel, words):
    with pytest.raises(ValueError, match=words):
        KernelRidgeRegressor(kernel).fit(rng.normal(size=(30, 2)), np.arange(30.0))


def test_weights_are_for_the_norm_of_the_function(rng):
    with pytest.raises(ValueError, match='learned for penalty="rkhs"'):
        KernelRidgeRegressor(WeightedSum({"a": Linear()}), penalty="coef").fit(
            rng.normal(size=(30, 2)), np.arange(30.0)
        )


def test_models_that_do_not_learn_weights_say_so(rng):
    with pytest.raises(KernelError, match="learned by KernelFisherClassifier"):
        KernelPCA(kernel=WeightedSum({"a": Linear()})).fit(rng.normal(size=(30, 2)))
