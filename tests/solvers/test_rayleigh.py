"""Special cases of the ratio: what each method finds is what the general code finds with its matrices."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from mercer import KernelFisherClassifier, KernelPCA
from mercer._solvers.directions.rayleigh import rayleigh
from mercer.datasets import make_ringnorm
from mercer.kernels import RBF, Linear


def semidefinite(r, rank, rng):
    A = rng.normal(size=(r, rank))
    return A @ A.T


def test_directions_solve_the_eigenproblem_and_are_nested(rng):
    S, N = semidefinite(20, 20, rng), semidefinite(20, 30, rng)
    found = rayleigh(S, N, mu=0.1)
    H = N + 0.1 * np.eye(20)
    assert_allclose(found.values, scipy.linalg.eigh(S, H, eigvals_only=True)[::-1], rtol=1e-9)
    assert_allclose(found.vectors.T @ H @ found.vectors, np.eye(20), atol=1e-9)
    assert_allclose(np.abs(rayleigh(S, N, mu=0.1, most=3).vectors), np.abs(found.vectors[:, :3]), atol=1e-9)


def test_directions_without_noise_are_removed_and_counted(rng):
    S, N = semidefinite(12, 12, rng), semidefinite(12, 7, rng)
    found = rayleigh(S, N)
    assert found.n_removed == 5
    axes = np.linalg.svd(N)[0][:, :7]
    expected = scipy.linalg.eigh(axes.T @ S @ axes, axes.T @ N @ axes, eigvals_only=True)[::-1]
    assert_allclose(found.values, expected, rtol=1e-8)
    # All of the signal is where there is no noise.
    assert len(rayleigh(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.ones((2, 2))).values) == 0
    assert len(rayleigh(np.eye(3), np.zeros((3, 3))).values) == 0


def test_directions_of_a_matrix_of_low_rank_are_as_many_as_its_rank(rng):
    assert len(rayleigh(semidefinite(15, 4, rng)).values) == 4


@pytest.fixture(scope="module")
def classes():
    X, y = make_ringnorm(80, random_state=0)
    return X, y, RBF(gamma=0.05).block(X, X)


def outputs_of(model, X):
    return model.kernel_.block(X, model.X_fit_) @ np.ravel(model.dual_coef_)


def test_kernel_pca_is_the_covariance_against_the_kernel_matrix(classes):
    X, _, K = classes
    H = np.eye(80) - 1.0 / 80
    found = rayleigh(K @ H @ K / 80, K, most=5)
    model = KernelPCA(5, RBF(gamma=0.05)).fit(X)
    assert_allclose(found.values, model.explained_variance_, rtol=1e-8)
    scores = K @ found.vectors
    scores -= scores.mean(axis=0)
    assert_allclose(np.abs(scores), np.abs(model.transform(X)), atol=1e-7)


def test_latent_semantic_indexing_is_kernel_pca_that_does_not_center(classes):
    _, _, K = classes
    found = rayleigh(K @ K / 80, K, most=4)
    values, vectors = np.linalg.eigh(K)
    assert_allclose(found.values, values[::-1][:4] / 80, rtol=1e-8)
    expected = vectors[:, ::-1][:, :4] * np.sqrt(values[::-1][:4])
    assert_allclose(np.abs(K @ found.vectors), np.abs(expected), atol=1e-7)


def test_the_fisher_discriminant_is_class_means_against_what_is_within_classes(classes):
    X, y, K = classes
    alpha = 0.3
    means = np.stack([K[:, y == c].mean(axis=1) for c in (-1, 1)])
    between = np.outer(means[1] - means[0], means[1] - means[0])
    within = sum((K[:, y == c] - m[:, None]) @ (K[:, y == c] - m[:, None]).T for c, m in zip((-1, 1), means))
    found = rayleigh(between, within + alpha * K, most=1)
    model = KernelFisherClassifier(RBF(gamma=0.05), alpha=alpha).fit(X, y)
    ours, theirs = K @ found.vectors[:, 0], outputs_of(model, X)
    assert abs(np.corrcoef(ours, theirs)[0, 1]) == pytest.approx(1.0, abs=1e-9)


def test_a_fisher_discriminant_with_an_infinite_penalty_is_the_nearest_mean(classes):
    X, y, K = classes
    model = KernelFisherClassifier(RBF(gamma=0.05), alpha=1e12).fit(X, y)
    nearest = np.where(y > 0, 1.0 / (y > 0).sum(), -1.0 / (y < 0).sum())
    assert np.corrcoef(outputs_of(model, X), K @ nearest)[0, 1] == pytest.approx(1.0, abs=1e-9)


def test_pca_of_rows_is_that_of_their_linear_kernel(classes):
    X, _, _ = classes
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    assert_allclose(KernelPCA(kernel=Linear()).fit(X).explained_variance_, values, rtol=1e-9)
