"""Distances and centering in feature space, and kernels that are none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.preprocessing import KernelCenterer

from mercer._gram import centered, check_psd, distances
from mercer.errors import KernelError
from mercer.kernels import RBF, Linear, Polynomial, pairwise

X = np.random.default_rng(0).normal(size=(30, 4))
Z = np.random.default_rng(1).normal(size=(7, 4))


def test_distances_in_feature_space_are_those_of_features():
    assert_allclose(distances(Linear(), X, Z), cdist(X, Z))
    squares = [np.einsum("ni,nj->nij", A, A).reshape(len(A), -1) for A in (X, Z)]
    assert_allclose(distances(Polynomial(2, coef0=0.0), X, Z), cdist(*squares), rtol=1e-10)
    assert_array_equal(np.diagonal(distances(RBF(gamma=0.3), X)), 0.0)


def test_centering_is_subtracting_the_mean_of_training_rows():
    mean = X.mean(axis=0)
    K = X @ X.T
    assert_allclose(centered(K), (X - mean) @ (X - mean).T, atol=1e-12)
    assert_allclose(centered(Z @ X.T, K), (Z - mean) @ (X - mean).T, atol=1e-12)
    assert_allclose(centered(Z @ X.T, K), KernelCenterer().fit(K).transform(Z @ X.T), atol=1e-12)


def test_kernels_have_no_negative_part():
    found = check_psd(RBF(gamma=0.3), X)
    assert found.semidefinite
    assert found.negative == 0.0
    assert check_psd("linear", X).semidefinite
    assert check_psd(np.zeros((2, 2))).semidefinite


def test_negative_part_is_its_share_of_all_eigenvalues():
    found = check_psd(np.diag([3.0, -1.0, 0.0]))
    assert (found.least, found.negative, found.semidefinite) == (-1.0, 0.25, False)


def not_a_kernel(x, z):
    """Its matrix for the row 0 is -1."""
    return float(np.linalg.norm(x) * np.linalg.norm(z) - 1.0)


def test_products_of_norms_minus_one_are_no_kernel():
    assert check_psd(pairwise(not_a_kernel), np.array([[0.0], [1.0], [2.0]])).least < -0.1


def not_symmetric(x, z):
    return float(np.exp(-np.linalg.norm(x - z) - np.linalg.norm(z)))


def test_kernels_must_be_symmetric():
    with pytest.raises(KernelError, match="not symmetric"):
        check_psd(pairwise(not_symmetric), X)
    with pytest.raises(KernelError, match="not symmetric"):
        check_psd([[1.0, 2.0], [0.0, 1.0]])


def test_shapes_must_fit():
    with pytest.raises(KernelError, match="K has 30 columns and among 7"):
        centered(Z @ X.T, Z @ Z.T)
