"""Derivatives of expansions against finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.errors import KernelError
from mercer.kernels import (
    ANOVA,
    RBF,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Wendland,
)
from mercer.kernels._base import gradient_of

STEP = 1e-5
KERNELS = [
    RBF(gamma=0.3),
    RBF(gamma=[0.5, 0.0, 0.1]),
    Laplacian(gamma=[0.2, 0.4, 0.1]),
    *(Matern(nu=nu, gamma=0.3) for nu in (0.3, 0.5, 1.0, 1.5, 2.2, 2.5, np.inf)),
    RationalQuadratic(power=2.0, gamma=0.3),
    InverseMultiquadric(gamma=[0.3, 0.2, 0.5]),
    *(Wendland(smoothness=s, gamma=0.05, dimension=3) for s in (0, 1, 2)),
    Linear(),
    Linear(origin=[1.0, 2.0, 3.0]),
    Polynomial(degree=1),
    Polynomial(degree=3, gamma=0.2, coef0=0.5),
    Sigmoid(gamma=0.2, coef0=0.1),
    2.0 * RBF(gamma=0.3) + Polynomial(degree=2),
]


@pytest.fixture
def rows(rng):
    return rng.normal(size=(6, 3)), rng.normal(size=(9, 3)), rng.normal(size=(9, 2))


def differences(kernel, X, Z, coef):
    """Central differences, (q, n, d)."""
    found = []
    for j in range(X.shape[1]):
        step = np.zeros(X.shape[1])
        step[j] = STEP
        found.append((kernel.block(X + step, Z) - kernel.block(X - step, Z)) @ coef / (2.0 * STEP))
    return np.moveaxis(np.array(found), (0, 1, 2), (2, 1, 0))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_derivatives_are_limits_of_differences(kernel, rows):
    X, Z, coef = rows
    # Differences are off by the square of the step and by rounding over the step.
    assert_allclose(kernel.gradient(X, Z, coef), differences(kernel, X, Z, coef), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_derivatives_of_single_precision_rows_are_close(kernel, rows):
    X, Z, coef = rows
    single = kernel.gradient(X.astype(np.float32), Z.astype(np.float32), coef.astype(np.float32))
    exact = kernel.gradient(X, Z, coef)
    assert single.dtype == np.float32
    # Sums of nine terms, some of which cancel.
    assert_allclose(single, exact, rtol=1e-4, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_derivatives_at_a_center_are_finite(kernel, rows):
    _, Z, coef = rows
    assert np.isfinite(kernel.gradient(Z, Z, coef)).all()


def test_far_from_the_origin_derivatives_keep_their_digits(rows):
    X, Z, coef = rows
    near, far = RBF(gamma=0.3).gradient(X, Z, coef), RBF(gamma=0.3).gradient(X + 1e6, Z + 1e6, coef)
    # Rows themselves have lost six digits.
    assert_allclose(far, near, rtol=1e-7, atol=1e-9)


def test_a_kernel_without_derivatives_says_so(rows):
    with pytest.raises(KernelError, match="derivatives of ANOVA"):
        gradient_of(ANOVA(degree=1) + RBF(gamma=1.0), *rows)
