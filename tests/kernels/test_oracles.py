"""Kernels against scikit-learn's, and against their definitions."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise as oracle
from sklearn.svm import SVC

from mercer.kernels import (
    ANOVA,
    RBF,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)

# With length_scale l of scikit-learn, gamma = 1 / (2 l^2).
L = 1.7
GAMMA = 1 / (2 * L**2)

AGREEMENTS = {
    "linear": (Linear(), oracle.linear_kernel),
    "rbf": (RBF(gamma=0.3), lambda X, Z: oracle.rbf_kernel(X, Z, gamma=0.3)),
    "rbf with lengths": (RBF(gamma=[0.5, 2.0, 0.125, 0.02]), gp.RBF(length_scale=[1.0, 0.5, 2.0, 5.0])),
    "laplacian": (Laplacian(gamma=0.3), lambda X, Z: oracle.laplacian_kernel(X, Z, gamma=0.3)),
    "polynomial": (
        Polynomial(degree=5, gamma=0.3, coef0=0.7),
        lambda X, Z: oracle.polynomial_kernel(X, Z, degree=5, gamma=0.3, coef0=0.7),
    ),
    "sigmoid": (
        Sigmoid(gamma=0.3, coef0=0.7),
        lambda X, Z: oracle.sigmoid_kernel(X, Z, gamma=0.3, coef0=0.7),
    ),
    "cosine": (Normalized(Linear()), oracle.cosine_similarity),
    "rational quadratic": (
        RationalQuadratic(power=0.7, gamma=GAMMA),
        gp.RationalQuadratic(length_scale=L, alpha=0.7),
    ),
    **{
        f"matern {nu}": (Matern(nu=nu, gamma=GAMMA), gp.Matern(length_scale=L, nu=nu))
        for nu in (0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 7.3, np.inf)
    },
}


@pytest.mark.parametrize("name", AGREEMENTS)
def test_kernel_agrees_with_scikit_learn(name, X, Z):
    kernel, reference = AGREEMENTS[name]
    assert_allclose(kernel.block(X, Z), reference(X, Z), rtol=1e-10, atol=1e-14)


def test_inverse_multiquadric_is_the_thesis_kernel_times_c(X, Z):
    c = 1.3
    expected = (cdist(X, Z, "sqeuclidean") + c**2) ** -0.5
    assert_allclose(InverseMultiquadric(gamma=1 / c**2).block(X, Z) / c, expected, rtol=1e-12)


def test_smooth_matern_approaches_rbf(X, Z):
    assert_allclose(Matern(nu=100, gamma=0.3).block(X, Z), RBF(gamma=0.3).block(X, Z), atol=5e-3)


def test_general_matern_is_continuous_in_nu_and_at_distance_zero(X):
    X = np.vstack([X, X[:3] + 1e-9])
    for nu in (0.5, 1.5, 2.5):
        closed, general = (Matern(nu=v, gamma=0.3).block(X, X[:3].copy()) for v in (nu, nu + 1e-9))
        # Squared distances are exact to about 1e-15, so distances to 3e-8.
        assert_allclose(general, closed, atol=1e-7)


def test_rational_quadratic_of_high_power_approaches_rbf(X, Z):
    kernel = RationalQuadratic(power=1e9, gamma=0.3)
    assert_allclose(kernel.block(X, Z), RBF(gamma=0.3).block(X, Z), atol=1e-7)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_anova_is_the_sum_over_sets_of_features(degree, X, Z):
    expected = sum(
        np.multiply.outer(X[:, list(s)].prod(1), Z[:, list(s)].prod(1)) for s in combinations(range(4), degree)
    )
    assert_allclose(ANOVA(degree=degree).block(X, Z), expected, rtol=1e-12, atol=1e-13)


def test_anova_summed_over_degrees_is_the_all_subsets_product(X, Z):
    total = sum(ANOVA(degree=degree).block(X, Z) for degree in range(5))
    assert_allclose(total, np.prod(1 + X[:, None] * Z, axis=2), rtol=1e-12, atol=1e-13)


def test_scale_is_the_gamma_of_svc(X):
    y = X[:, 0] > 0
    for kernel in (RBF(gamma="scale"), Sigmoid(), Polynomial(gamma="scale")):
        (candidate,) = kernel.candidates(X)
        assert candidate.gamma == pytest.approx(SVC().fit(X, y)._gamma, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_whose_squares_overflow_are_infinitely_far_from_centers(dtype):
    far = np.sqrt(np.finfo(dtype).max) * 10.0
    X = np.array([[0.0, 1.0], [far, 0.0], [far, -far], [1.0, 1.0]], dtype=dtype)
    for kernel in (RBF(gamma=0.5), RBF(gamma=[0.5, 2.0]), Matern(gamma=0.5)):
        K = kernel.block(X, X[[0, 3]])
        assert_array_equal(K[1:3], 0.0)
        assert_allclose(K[[0, 3]], kernel.block(X[[0, 3]], X[[0, 3]]))
