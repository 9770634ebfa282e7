"""Laws that every kernel obeys."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from mercer.errors import KernelError
from mercer.kernels import (
    RBF,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    as_kernel,
)


def test_gram_matrix_is_symmetric(kernel, X):
    K = kernel.block(X, X)
    assert_array_equal(K, K.T)


def test_block_is_transposed_when_arguments_change_places(kernel, X, Z):
    assert_allclose(kernel.block(X, Z), kernel.block(Z, X).T, rtol=1e-12, atol=1e-12)


def test_gram_matrix_is_positive_semidefinite_where_claimed(kernel, X):
    repeated = np.vstack([X[:60], X[:20]])
    eigenvalues = np.linalg.eigvalsh(kernel.block(repeated, repeated))
    # Rounding moves eigenvalues by about n * eps * the largest.
    assert not kernel.positive_semidefinite or eigenvalues[0] >= -1e-13 * eigenvalues[-1]


def test_sigmoid_does_not_claim_what_it_does_not_keep(X):
    kernel = Sigmoid(gamma=1.0, coef0=-1.0)
    assert not kernel.positive_semidefinite
    assert not (RBF(gamma=1.0) + kernel).positive_semidefinite
    assert np.linalg.eigvalsh(kernel.block(X, X))[0] < -1.0


def test_polynomial_with_negative_offset_claims_nothing():
    assert not Polynomial(coef0=-1.0).positive_semidefinite


def test_prepared_centers_change_nothing_but_rounding(kernel, X, Z):
    evaluate = kernel.evaluator(Z)
    assert_allclose(evaluate(X), kernel.block(X, Z), rtol=1e-12, atol=1e-13)
    assert_array_equal(pickle.loads(pickle.dumps(evaluate))(X[3:7]), evaluate(X[3:7]))


@pytest.mark.parametrize("rows", [sparse.csr_matrix, np.asarray])
@pytest.mark.parametrize("centers", [sparse.csr_matrix, np.asarray])
def test_prepared_centers_of_stationary_kernels_may_be_sparse(stationary, X, Z, rows, centers):
    expected = stationary.block(X, Z)
    assert_allclose(stationary.evaluator(centers(Z))(rows(X)), expected, rtol=1e-7, atol=1e-9)


def test_prepared_centers_refuse_rows_of_another_length(stationary, Z):
    with pytest.raises(KernelError, match="features"):
        stationary.evaluator(Z)(Z[:, :1])


def test_diag_is_diagonal_of_block(kernel, X):
    assert_allclose(kernel.diag(X), np.diagonal(kernel.block(X, X)), rtol=1e-12)


def test_diagonal_of_stationary_kernels_is_exactly_one(stationary, X):
    assert_array_equal(np.diagonal(stationary.block(X, X)), 1.0)


def test_block_of_parts_is_part_of_block(kernel, X, Z):
    K = kernel.block(X, Z)
    assert_allclose(kernel.block(X[20:50], Z[7:19]), K[20:50, 7:19], rtol=1e-12, atol=1e-12)


def test_block_of_same_object_is_block_of_equal_rows(kernel, X):
    assert_allclose(kernel.block(X, X), kernel.block(X, X.copy()), rtol=1e-7, atol=1e-7)


def test_block_may_be_overwritten(kernel, X, Z):
    K = kernel.block(X, Z)
    expected = K.copy()
    K[:] = np.nan
    assert_array_equal(kernel.block(X, Z), expected)


def test_float32_is_kept_and_accurate(kernel, X, Z):
    K = kernel.block(X.astype(np.float32), Z.astype(np.float32))
    assert K.dtype == np.float32
    assert kernel.diag(X.astype(np.float32)).dtype == np.float32
    exact = kernel.block(X, Z)
    assert exact.dtype == np.float64
    # Roots of float32 squared distances keep half of the seven digits near zero.
    assert_allclose(K, exact, atol=1e-4 * np.abs(exact).max())


def test_integers_become_float64(kernel):
    X = np.arange(12).reshape(3, 4)
    assert kernel.block(X, X).dtype == np.float64
    assert_allclose(kernel.block(X, X), kernel.block(X.astype(float), X.astype(float)))


@pytest.mark.sampled(22)
@pytest.mark.parametrize("csr", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows_give_the_same_block_as_dense(kernel, X, Z, csr):
    X, Z = np.where(X > 0, X, 0.0), np.where(Z > 0, Z, 0.0)
    K = kernel.block(X, Z)
    for left, right in [(csr(X), csr(Z)), (csr(X), Z), (X, csr(Z))]:
        block = kernel.block(left, right)
        assert type(block) is np.ndarray
        assert_allclose(block, K, rtol=1e-10, atol=1e-10)
    assert_allclose(kernel.diag(csr(X)), kernel.diag(X), rtol=1e-12)
    gram = kernel.block(csr(X), csr(X))
    assert_allclose(gram, kernel.block(X, X), rtol=1e-6, atol=1e-6)


def test_sparse_float32_is_kept(stationary, X):
    X = sparse.csr_matrix(X.astype(np.float32))
    assert stationary.block(X, X).dtype == np.float32


def test_stationary_kernels_do_not_see_a_common_offset(stationary, X, Z):
    # Adding 1e6 rounds the rows themselves at 1e-10; norms of 1e12 without an origin would cost 1e-4.
    # Where a kernel reaches zero, at its radius, only the absolute error is small.
    assert_allclose(stationary.block(X + 1e6, Z + 1e6), stationary.block(X, Z), rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("make", [RBF, Matern, RationalQuadratic, InverseMultiquadric])
def test_gamma_is_an_inverse_squared_length(make, X, Z):
    assert_allclose(make(gamma=0.2).block(3 * X, 3 * Z), make(gamma=1.8).block(X, Z), rtol=1e-10)


def test_gamma_of_laplacian_is_an_inverse_length(X, Z):
    assert_allclose(Laplacian(gamma=0.2).block(3 * X, 3 * Z), Laplacian(gamma=0.6).block(X, Z), rtol=1e-12)


def test_equal_gammas_are_one_gamma(kind, X, Z):
    assert_allclose(kind(gamma=np.full(4, 0.4)).block(X, Z), kind(gamma=0.4).block(X, Z), rtol=1e-12, atol=1e-14)


def test_feature_with_gamma_zero_does_not_matter(kind, X, Z):
    moved = X * [1.0, 1.0, -7.0, 1.0]
    kernel = kind(gamma=[1.0, 0.5, 0.0, 2.0])
    assert_allclose(kernel.block(moved, Z), kernel.block(X, Z), rtol=1e-12, atol=1e-14)


def test_far_rows_have_kernel_zero_without_warning(X):
    assert RBF(gamma=1e3).block(X, X + 100.0).max() == 0.0


def test_normalized_is_zero_where_self_similarity_is_zero():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    assert_allclose(Normalized(Linear()).block(X, X), [[0.0, 0.0], [0.0, 1.0]], rtol=1e-15)
    assert_array_equal(Normalized(Linear()).diag(X), [0.0, 1.0])


def test_clone_and_pickle_give_the_same_kernel(kernel, X, Z):
    K = kernel.block(X, Z)
    for twin in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert repr(twin) == repr(kernel)
        assert_array_equal(twin.block(X, Z), K)


def test_constructor_stores_parameters_untouched(kernel):
    params = kernel.get_params(deep=False)
    twin = type(kernel)(**params)
    assert all(getattr(twin, name) is value for name, value in params.items())


def test_every_parameter_can_be_set_to_what_it_is(kernel):
    before = repr(kernel)
    assert kernel.set_params(**kernel.get_params(deep=True)) is kernel
    assert repr(kernel) == before


def test_repr_is_the_expression_that_makes_the_kernel(kernel, X, Z):
    import mercer.kernels as names

    if "function" in repr(kernel) or "NormalScores" in repr(kernel):
        pytest.skip("functions and curves have no expression")
    twin = eval(repr(kernel), {**vars(names), "inf": np.inf})
    assert_array_equal(twin.block(X, Z), kernel.block(X, Z))


def test_notebook_can_show_every_kernel(kernel):
    assert type(kernel).__name__ in kernel._repr_html_()


def test_resolved_kernel_is_its_only_candidate(kernel, X):
    assert kernel.resolved
    (candidate,) = kernel.candidates(X)
    assert repr(candidate) == repr(kernel)


def test_as_kernel_leaves_kernels_alone(kernel):
    assert as_kernel(kernel) is kernel
