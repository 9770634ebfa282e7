"""The least-squares fit of class targets is Fisher's discriminant: explicit scatter matrices are the oracle."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mercer._solvers.directions.discriminants import discriminant_directions
from mercer._solvers.spectrum import Observations, decompose, fitted, solve
from mercer.rows._distinct import every_row


def kernel_matrix(rng, n, gamma=0.3):
    X = rng.normal(size=(n, 3))
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def unweighted(Y):
    return Observations(Y, np.ones(len(Y)), np.ones(len(Y)), every_row(len(Y)))


def within(K, label):
    """N = sum over classes of K_c (I - 1/n_c) K_c', Mika (2002), Eq. (3.30)."""
    deviations = [K[:, label == c] - K[:, label == c].mean(axis=1, keepdims=True) for c in np.unique(label)]
    return sum(D @ D.T for D in deviations)


def between(K, label):
    """sum over classes of n_c (kappa_c - kappa)(kappa_c - kappa)'."""
    deviation = np.array([K[:, label == c].mean(axis=1) - K.mean(axis=1) for c in label])
    return deviation.T @ deviation


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("mu", [1e-3, 1e-1, 10.0])
def test_two_class_fit_is_the_fisher_direction_with_its_exact_scale(rng, mu, penalty):
    K, label = kernel_matrix(rng, 40), np.repeat([0, 1], [15, 25])
    gap = K[:, label == 1].mean(axis=1) - K[:, label == 0].mean(axis=1)
    # Mika (2002), Eqs. (3.33) and (3.34): (N + mu P)^-1 (kappa_+ - kappa_-) with P = I or K.
    direction = np.linalg.solve(within(K, label) + mu * (K if penalty == "rkhs" else np.eye(40)), gap)
    a, J = 15 * 25 / 40, gap @ direction
    observations = unweighted(np.where(label == 1, 1.0, -1.0)[:, None])
    coef = solve(decompose(K, np.ones(40), penalty=penalty), observations, mu).coef[:, 0]
    projection, exact = K @ coef, K @ direction * 2 * a / (1 + a * J)
    cosine = projection @ exact / np.linalg.norm(projection) / np.linalg.norm(exact)
    assert cosine >= 1 - 1e-9
    # N squares the condition of K: half of the digits are left where mu is small.
    assert_allclose(projection, exact, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("mu", [1e-2, 1.0])
def test_discriminants_are_the_generalized_eigenvectors_of_the_scatter_matrices(rng, mu):
    K, label = kernel_matrix(rng, 45, gamma=2.0), np.repeat([0, 1, 2, 3], [10, 12, 8, 15])
    ratio, vectors = scipy.linalg.eigh(between(K, label), within(K, label) + mu * K)
    Y, spectrum = np.eye(4)[label], decompose(K, np.ones(45))
    F = fitted(spectrum, unweighted(Y), mu)
    found = discriminant_directions(F.T @ Y, Y.sum(axis=0))
    assert_allclose(found.eigenvalues / (1 - found.eigenvalues), ratio[:-4:-1], rtol=1e-7)
    exact = K @ vectors[:, :-4:-1]
    exact -= exact.mean(axis=0)
    assert_same_columns(found.project(F), exact)


def assert_same_columns(Z, exact):
    """Up to scale and sign."""
    cosine = (Z * exact).sum(axis=0) / np.linalg.norm(Z, axis=0) / np.linalg.norm(exact, axis=0)
    assert_allclose(np.abs(cosine), 1.0, atol=1e-9)


def test_discriminants_of_linear_features_are_those_of_lda(rng):
    label = np.repeat([0, 1, 2], [20, 30, 25])
    X = rng.normal(size=(75, 4)) + 2.0 * rng.normal(size=(3, 4))[label]
    Y = np.eye(3)[label]
    F = fitted(decompose(X @ X.T, np.ones(75)), unweighted(Y), 1e-9)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, label)
    exact = lda.transform(X)
    assert_same_columns(discriminant_directions(F.T @ Y, Y.sum(axis=0)).project(F), exact - exact.mean(axis=0))


def three_classes(rng, weight):
    label = np.repeat([0, 1, 2], [8, 9, 13])
    Y = np.eye(3)[label]
    observations = Observations(Y, weight, np.minimum(weight, 1.0), every_row(30))
    F = fitted(decompose(kernel_matrix(rng, 30), weight), observations, 0.1)
    return F, Y, discriminant_directions((F * weight[:, None]).T @ Y, weight @ Y)


def test_scores_of_classes_are_uncorrelated_with_variance_one(rng):
    weight = rng.uniform(0.2, 3.0, 30)
    _, Y, found = three_classes(rng, weight)
    scores, share = Y @ found.scalings, weight / weight.sum()
    assert_allclose(share @ scores, 0.0, atol=1e-12)
    assert_allclose((scores * share[:, None]).T @ scores, np.eye(2), atol=1e-12)


def test_squared_correlations_are_those_of_variates_and_scores(rng):
    weight = rng.uniform(0.2, 3.0, 30)
    F, Y, found = three_classes(rng, weight)
    assert (np.diff(found.eigenvalues) <= 0).all()
    assert_allclose(
        weight @ (found.project(F) * (Y @ found.scalings)) / weight.sum(), found.eigenvalues, rtol=1e-9
    )


def test_all_directions_restore_the_outputs(rng):
    F, _, found = three_classes(rng, np.ones(30))
    # Fitted indicators sum to one, which k - 1 directions and the shares know.
    assert_allclose(F.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(found.restore(found.project(F)), F, atol=1e-12)


def test_first_directions_are_the_first_of_all(rng):
    F, _, found = three_classes(rng, np.ones(30))
    assert_allclose(found.first(1).project(F), found.project(F)[:, :1])


@pytest.mark.parametrize("n", [30, 3000])
def test_directions_without_signal_are_zeros(rng, n):
    label, weight = np.arange(n) % 4, rng.uniform(0.2, 3.0, n)
    x, Y = rng.normal(size=n) + 0.5 * (label == 1), np.eye(4)[label]
    observations = Observations(Y, weight, weight, every_row(n))
    # One feature: F'WY has rank one besides the constant, up to rounding.
    share = weight @ Y / weight.sum()
    centered = x - weight @ x / weight.sum()
    F = share + np.outer(centered, weight * centered @ observations.Y / (weight @ centered**2 + 1.0))
    found = discriminant_directions((F * weight[:, None]).T @ Y, weight @ Y, np.full((4, 4), 1e-15 * n))
    assert found.eigenvalues[0] > 1e-4
    assert found.eigenvalues[1:].tolist() == [0.0, 0.0]
    assert not found.scalings[:, 1:].any()
    assert not found.back[1:].any()
    assert_allclose(found.restore(found.project(F)), F, atol=1e-12)


def test_constant_is_not_mixed_into_weak_directions(rng):
    count = np.array([10.0, 20.0, 30.0])
    share = count / 60
    # Directions at 1e-15 of the constant, below the digits of its eigenvalue.
    weak = rng.normal(size=(3, 3)) * 1e-15 * np.sqrt(np.outer(count, count))
    found = discriminant_directions(60 * np.outer(share, share) + weak @ weak.T, count)
    assert_allclose(count @ found.scalings, 0.0, atol=1e-12)


def test_variates_follow_from_outputs_relative_to_the_first_class(rng):
    F, _, found = three_classes(rng, np.ones(30))
    Z, A = found.project(F), (F[:, 1:] - F[:, :1]) @ found.of_relative()
    assert_allclose(Z - Z[0], A - A[0], atol=1e-12)
