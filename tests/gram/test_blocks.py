"""Blocks of kernel values are parts of the whole matrix, whatever their size."""

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel

from mercer._expansion import Expansion
from mercer._gram import Budget, combine, gram, kernel_blocks, self_similarity
from mercer._gram.blocks import evaluator
from mercer.errors import KernelError
from mercer.kernels import RBF, FromCallable, Laplacian, Linear, Normalized, Polynomial, Precomputed, Sum, pairwise
from mercer.kernels._base import named_parts

PLENTY = Budget(2.0**30)
KERNEL = RBF(gamma=0.5)


@pytest.fixture(params=["dense", "float32", "sparse"])
def X(request, rng):
    A = np.where((A := rng.normal(size=(23, 3))) > 0, A, 0.0)
    return {"dense": A, "float32": A.astype(np.float32), "sparse": sparse.csr_matrix(A)}[request.param]


@pytest.mark.parametrize("size", [1, 7, 50, 10**6])
def test_blocks_of_any_size_make_the_whole(monkeypatch, X, size):
    monkeypatch.setattr(import_module("mercer._gram.blocks"), "BLOCK_SIZE", size)
    parts = list(kernel_blocks(KERNEL, X, X[:5], 5))
    assert [i for rows, _ in parts for i in range(rows.start, rows.stop)] == list(range(23))
    assert max(K.size for _, K in parts) <= max(size, 5)
    assert_allclose(np.concatenate([K for _, K in parts]), KERNEL.block(X, X[:5]), rtol=1e-5)


@pytest.mark.parametrize(
    "kernel",
    [KERNEL, Laplacian(gamma=0.5), KERNEL + Linear(), Normalized(Linear()), FromCallable(linear_kernel, psd=True)],
    ids=lambda kernel: type(kernel).__name__,
)
def test_without_centers_there_are_no_values(kernel, rng):
    X = rng.normal(size=(23, 3))
    assert evaluator(kernel, X[:0])(X).shape == (23, 0)
    assert_array_equal(combine(kernel, X, X[:0], np.empty((0, 2))), np.zeros((23, 2)))


@pytest.mark.parametrize("size", [1, 50, 10**6])
def test_combine_is_the_product_with_the_coefficients(monkeypatch, rng, X, size):
    monkeypatch.setattr(import_module("mercer._gram.blocks"), "BLOCK_SIZE", size)
    coef = rng.normal(size=(5, 2)).astype(X.dtype)
    found = combine(KERNEL, X, X[:5], coef)
    assert found.dtype == X.dtype
    assert_allclose(found, KERNEL.block(X, X[:5]) @ coef, rtol=1e-5, atol=1e-6)


def test_expansion_is_the_sum_over_centers_plus_intercept(rng):
    Z, coef, b = rng.normal(size=(4, 3)), rng.normal(size=(4, 2)), np.array([1.0, -2.0])
    X = rng.normal(size=(6, 3))
    naive = [b + sum(c * KERNEL.block(x[None], z[None])[0, 0] for c, z in zip(coef, Z)) for x in X]
    assert_allclose(Expansion(KERNEL, Z, coef, b)(X), naive, rtol=1e-12)


def test_gram_is_the_block_of_rows_with_themselves(X):
    assert_array_equal(gram(KERNEL, X, budget=PLENTY), KERNEL.block(X, X))
    assert_array_equal(self_similarity(KERNEL, X), np.ones(23))


def test_rows_of_kernel_values_are_taken_with_their_columns(rng):
    K = rng.normal(size=(5, 5))
    K += K.T
    some = np.array([4, 1])
    assert_array_equal(Precomputed().subset(K, some), K[[4, 1]][:, [4, 1]])
    assert_array_equal(Precomputed().centers(K), np.arange(5))
    assert_array_equal(Precomputed().centers(K, some), some)
    assert_array_equal(gram(Precomputed(), K, budget=PLENTY), K)


def test_rows_of_lists_and_arrays_are_taken_by_position(X):
    some = np.array([4, 1, 1])
    for rows in (KERNEL.subset(X, some), KERNEL.centers(X, some)):
        assert (rows != X[[4, 1, 1]]).sum() == 0
    words = FromCallable(max)
    assert words.subset(["a", "b", "c", "d", "e"], some) == ["e", "b", "b"]
    assert words.centers(["a", "b", "c", "d", "e"], some) == ["e", "b", "b"]
    assert words.centers(words) is words


def test_kernel_that_returns_another_shape_is_named():
    class Wide(RBF):
        def block(self, X, Z):
            return super().block(X, Z)[:, :-1]

    with pytest.raises(KernelError, match=r"Wide.*shape \(3, 2\) instead of \(3, 3\)"):
        gram(Wide(gamma=1.0), np.eye(3), budget=PLENTY)


def test_function_that_returns_no_number_is_refused():
    kernel = FromCallable(pairwise(lambda a, b: np.nan if a != b else 1.0))
    with pytest.raises(KernelError, match="not finite"):
        gram(kernel, ["a", "b"], budget=PLENTY)


def test_kernel_values_that_overflow_are_counted():
    X = np.array([[1e200], [1.0]])
    with np.errstate(over="ignore"), pytest.raises(KernelError, match="3 values that are not finite; scale"):
        gram(Polynomial(degree=3), X, budget=PLENTY)


@pytest.mark.parametrize(
    ("kernel", "names"),
    [
        (2.0 * RBF(gamma=0.5) + Polynomial(degree=2) + RBF(gamma=2.0), ["rbf", "polynomial", "rbf_2"]),
        (Sum([("shape", RBF(gamma=0.5)), ("size", 3.0 * Polynomial())]), ["shape", "size"]),
        (RBF(gamma=0.5) * Polynomial(), ["product"]),
        (2.0 * RBF(gamma=0.5), ["rbf"]),
    ],
)
def test_terms_of_a_kernel_add_up_to_it(kernel, names, X):
    terms = dict(named_parts(kernel, Sum))
    assert list(terms) == names
    assert_array_equal(sum(evaluator(term, X[:5])(X) for term in terms.values()), evaluator(kernel, X[:5])(X))
