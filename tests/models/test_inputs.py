"""The same rows in another container, type or kernel give the same model."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.kernels import RBF, FromCallable, Laplacian, pairwise

FIXED = {"kernel": RBF(gamma=0.5), "alpha": 1.0}


def half(X, Z):
    """An RBF kernel with gamma one half, as a function of dense rows."""
    return rbf_kernel(X, Z, gamma=0.5)


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "names",
    [["no", "yes"], [False, True], [-7, -3], [2.0, 5.0], ["b", "a"]],
    ids=["strings", "bool", "negative", "float", "strings in another order"],
)
def test_labels_may_be_of_any_type(two_classes, names):
    X, y = two_classes
    labels = np.array(names)[y]
    plain, named = KernelFisherClassifier(**FIXED).fit(X, y), KernelFisherClassifier(**FIXED).fit(X, labels)
    assert_array_equal(named.classes_, np.unique(labels))
    assert named.predict(X).dtype == labels.dtype
    assert_array_equal(named.predict(X), np.array(names)[plain.predict(X)])
    assert named.score(X, labels) == plain.score(X, y)


def test_labels_may_be_python_objects(three_classes):
    X, y = three_classes
    labels = np.array(["ant", "bee", "cat"], dtype=object)[y]
    model = KernelFisherClassifier(**FIXED).fit(X, labels)
    assert set(model.predict(X)) <= {"ant", "bee", "cat"}


def test_data_frame_gives_names_to_features(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=["width", "height"], index=np.arange(60)[::-1])
    model = KernelFisherClassifier(**FIXED).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["width", "height"]
    assert_array_equal(model.predict_proba(frame), KernelFisherClassifier(**FIXED).fit(X, y).predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["height", "width"]])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kernel", [RBF(), Laplacian(), "linear"], ids=str)
@pytest.mark.parametrize("csr", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_give_the_same_model_as_dense(two_classes, kernel, csr):
    X, y = two_classes
    X = np.where(X > 0, X, 0.0)
    dense, from_csr = KernelFisherClassifier(kernel).fit(X, y), KernelFisherClassifier(kernel).fit(csr(X), y)
    assert len(from_csr.dual_coef_) == len(np.unique(X, axis=0))
    assert_allclose(from_csr.alpha_, dense.alpha_, rtol=1e-8)
    assert_allclose(from_csr.predict_proba(csr(X)), dense.predict_proba(X), rtol=1e-6)
    assert_allclose(from_csr.predict_proba(X), dense.predict_proba(X), rtol=1e-6)


def test_float32_rows_give_float32_variates_and_close_predictions(three_classes):
    X, y = three_classes
    double = KernelFisherClassifier(**FIXED).fit(X, y)
    single = KernelFisherClassifier(**FIXED).fit(X.astype(np.float32), y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.dual_coef_.dtype == np.float32
    assert double.transform(X).dtype == np.float64
    # Seven digits, of which a fit with alpha = 1 and a trace of 75 loses about two.
    assert_allclose(single.predict_proba(X.astype(np.float32)), double.predict_proba(X), atol=1e-4)
    assert_allclose(np.abs(single.transform(X.astype(np.float32))), np.abs(double.transform(X)), atol=1e-3)


def test_float32_rows_choose_nearly_the_same_model(two_classes):
    X, y = two_classes
    double, single = KernelFisherClassifier().fit(X, y), KernelFisherClassifier().fit(X.astype(np.float32), y)
    assert_allclose(single.gamma_, double.gamma_, rtol=1e-4)
    assert_allclose(single.predict_proba(X.astype(np.float32)), double.predict_proba(X), atol=1e-3)


def test_integers_are_numbers(two_classes):
    _, y = two_classes
    X = np.arange(120).reshape(60, 2) % 7
    exact = KernelFisherClassifier(**FIXED).fit(X.astype(float), y).predict_proba(X.astype(float))
    assert_allclose(KernelFisherClassifier(**FIXED).fit(X, y).predict_proba(X), exact)


def test_function_is_a_kernel(two_classes):
    X, y = two_classes
    exact = KernelFisherClassifier(RBF(gamma=0.5)).fit(X, y)
    for kernel in (half, FromCallable(half, psd=True)):
        model = KernelFisherClassifier(kernel).fit(X, y)
        assert_allclose(model.alpha_, exact.alpha_, rtol=1e-8)
        assert_allclose(model.predict_proba(X), exact.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("container", [list, tuple, np.array, lambda rows: np.array(rows, dtype=object)])
def test_strings_are_rows_of_a_function(container):
    words = ["abc", "abd", "bcd", "xyz", "xyw", "yzw"] * 2
    model = KernelFisherClassifier(FromCallable(pairwise(shared_letters), psd=True), alpha=0.1)
    model.fit(container(words), [0, 0, 0, 1, 1, 1] * 2)
    # Copies of a word are one center.
    assert list(model.X_fit_) == words[:6]
    assert model.predict(container(["aab", "zzz"])).tolist() == [0, 1]


def test_strings_are_rows_of_a_regression():
    words = ["a", "ab", "abc", "abcd", "abcde"]
    model = KernelRidgeRegressor(pairwise(shared_letters), alpha=1e-3).fit(words, [1.0, 2.0, 3.0, 4.0, 5.0])
    assert_allclose(model.predict(["abc"]), 3.0, atol=0.05)
    assert model.predict_interval(["ab", "bcd"], coverage=0.5).shape == (2, 2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("criterion", ["brier", "squared"])
def test_kernel_values_give_the_same_model_as_the_kernel(rng, classes, criterion):
    X, y = classes
    new = rng.normal(size=(11, 2))
    kernel = RBF(gamma=0.5)
    rows = KernelFisherClassifier(kernel, criterion=criterion).fit(X, y)
    values = KernelFisherClassifier("precomputed", criterion=criterion).fit(kernel.block(X, X), y)
    assert_allclose(values.alpha_, rows.alpha_, rtol=1e-8)
    assert_allclose(values.loo_decision_, rows.loo_decision_, rtol=1e-6, atol=1e-8)
    assert_allclose(values.predict_proba(kernel.block(new, X)), rows.predict_proba(new), rtol=1e-6)


def test_copies_among_kernel_values_need_no_merging(two_classes):
    X, y = two_classes
    twice = np.r_[np.arange(60), 3, 8]
    kernel = RBF(gamma=0.5)
    rows = KernelFisherClassifier(kernel, alpha=0.1).fit(X[twice], y[twice])
    values = KernelFisherClassifier("precomputed", alpha=0.1).fit(kernel.block(X[twice], X[twice]), y[twice])
    # Maps to decisions are fitted to parts of the rows, in which copies that are not known may be apart.
    assert_allclose(values.loo_outputs_, rows.loo_outputs_, rtol=1e-8, atol=1e-8)


def test_read_only_input_is_left_alone(two_classes, curve):
    for model, (X, y) in ((KernelFisherClassifier(), two_classes), (KernelRidgeRegressor(), curve)):
        weight = np.ones(len(y))
        weight.flags.writeable = False
        model.fit(X, y, sample_weight=weight).predict(X)


def test_order_of_memory_does_not_matter(two_classes):
    X, y = two_classes
    rows, columns = KernelFisherClassifier().fit(X, y), KernelFisherClassifier().fit(np.asfortranarray(X), y)
    assert_array_equal(rows.predict_proba(X), columns.predict_proba(np.asfortranarray(X)))


def test_sparse_rows_have_standard_deviations_and_intervals(two_classes):
    X, _ = two_classes
    rows = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    sparse_model = KernelRidgeRegressor(**FIXED).fit(rows, X[:, 0])
    dense_model = KernelRidgeRegressor(**FIXED).fit(rows.toarray(), X[:, 0])
    assert_allclose(sparse_model.predict_std(rows), dense_model.predict_std(rows))
    assert_allclose(sparse_model.predict_interval(rows), dense_model.predict_interval(rows), rtol=1e-6)


def test_series_of_objects_is_read_by_position():
    words = pd.Series(["abc", "abd", "bcd", "xyz", "xyw", "yzw"], index=[5, 4, 3, 2, 1, 0], dtype=object)
    kernel = FromCallable(pairwise(shared_letters), psd=True)
    model = KernelFisherClassifier(kernel, alpha=0.1).fit(words, [0, 0, 0, 1, 1, 1])
    assert list(model.X_fit_) == list(words)
    assert model.predict(words).tolist() == [0, 0, 0, 1, 1, 1]


def test_data_frame_is_a_matrix_to_a_function(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = KernelFisherClassifier(rbf_kernel, alpha=1.0).fit(frame, y)
    exact = KernelFisherClassifier(rbf_kernel, alpha=1.0).fit(X, y)
    assert_array_equal(model.predict_proba(frame), exact.predict_proba(X))


@pytest.mark.filterwarnings("ignore:all features are constant:mercer.errors.NumericalWarning")
def test_rows_that_all_coincide_can_be_fitted():
    model = KernelFisherClassifier().fit(np.ones((10, 2)), np.arange(10) % 2)
    assert_allclose(model.predict_proba(np.ones((1, 2))), 0.5)
