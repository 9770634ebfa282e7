"""Kernels that are zero beyond a radius."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from mercer import KernelRidgeRegressor
from mercer.datasets import make_sinc
from mercer.errors import KernelError
from mercer.kernels import Matern, Wendland


@pytest.mark.parametrize("smoothness", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_matrices_are_positive_definite_in_the_dimension_they_are_made_for(smoothness, d, rng):
    X = rng.uniform(size=(150, d))
    K = Wendland(smoothness, gamma=0.7, dimension=d).block(X, X)
    assert np.linalg.eigvalsh(K)[0] > -1e-13


def test_a_tent_made_for_one_feature_is_indefinite_in_six():
    X = np.stack(np.meshgrid(*[[0.0, 1.0]] * 6), axis=-1).reshape(-1, 6)
    K = Wendland(0, gamma=0.25, dimension=1).block(X, X)
    assert np.linalg.eigvalsh(K)[0] < -0.1


def test_the_table_of_three_dimensions():
    r = np.linspace(0.0, 1.2, 13)
    p = np.maximum(1.0 - r, 0.0)
    expected = [p**2, p**4 * (4 * r + 1), p**6 * (35 * r**2 + 18 * r + 3) / 3]
    for smoothness in range(3):
        K = Wendland(smoothness, gamma=1.0, dimension=3).block(r[:, None], np.zeros((1, 1)))
        assert_allclose(K[:, 0], expected[smoothness], atol=1e-12)


def test_sparse_blocks_are_the_dense_ones_without_their_zeros(rng):
    X, Z = rng.uniform(size=(200, 2)), rng.uniform(size=(50, 2))
    kernel = Wendland(gamma=50.0, dimension=2)
    S = kernel.sparse_block(X, Z)
    assert_allclose(S.toarray(), kernel.block(X, Z), atol=1e-13)
    assert S.nnz < 0.1 * 200 * 50


def test_a_model_finds_the_dimension():
    X, y = make_sinc(60, random_state=0)
    model = KernelRidgeRegressor("wendland").fit(X, y)
    assert model.kernel_.dimension == 1
    assert model.score(X, y) > 0.8


def test_without_a_dimension_there_is_no_block():
    with pytest.raises(KernelError, match="dimension"):
        Wendland(gamma=1.0).block(np.zeros((2, 1)), np.zeros((2, 1)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "kernel", [Wendland(0, gamma=0.01, dimension=3), Matern(0.5, gamma=0.5), Matern(0.7, gamma=0.5)]
)
def test_kernels_with_a_kink_at_zero_have_all_digits_there(kernel, kind, rng):
    X = rng.normal(size=(40, 3)) + 5.0
    shift = 10.0 ** rng.uniform(-9.0, -2.0, size=(40, 1)) * rng.normal(size=(40, 3))
    Z = np.vstack([X, X + shift])
    # One pair at a time, whose mean is between them, has all digits of its difference.
    expected = [[kernel._profile(np.array([-kernel.gamma * ((x - z) ** 2).sum()])).item() for z in Z] for x in X]
    assert_allclose(kernel.block(kind(X), kind(Z)), expected, rtol=0, atol=1e-12)
    assert_allclose(kernel.evaluator(kind(Z))(kind(X)), expected, rtol=0, atol=1e-12)
