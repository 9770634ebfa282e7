"""One list of all kernels, over which the laws run, and data that cannot be changed."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel

from mercer.kernels import (
    ANOVA,
    RBF,
    After,
    AllSubsets,
    Bilinear,
    Conformal,
    Constant,
    Exp,
    FisherKernel,
    FromCallable,
    GaussianOf,
    InverseMultiquadric,
    Laplacian,
    Linear,
    MarginalizedKernel,
    Matern,
    Mixture,
    Nominal,
    Normalized,
    OnColumns,
    Polynomial,
    RankNormal,
    RationalQuadratic,
    Sigmoid,
    Wendland,
)
from mercer.kernels._vectors.units import NormalScores

MIXED = [[2.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.0], [0.0, 0.2, 0.0, 3.0]]

MIXTURE = Mixture([0.4, 0.6], [[0.0] * 4, [0.0, 1.0, -1.0, 0.5]], [[1.0] * 4, [0.5, 1.0, 2.0, 1.0]])

SCORES = NormalScores.of(np.random.default_rng(2).normal(size=(60, 4)), None)


def half(X):
    """A function of rows, dense or sparse."""
    return 0.5 * X


def loudness(X):
    """One number for each row, dense or sparse."""
    return 1.0 + np.abs(np.asarray(X.sum(axis=1)).ravel())


STATIONARY = [
    RBF(gamma=0.3),
    RBF(gamma=[0.3, 0.0, 0.1, 1.0]),
    Laplacian(gamma=0.3),
    Laplacian(gamma=[0.3, 0.0, 0.1, 1.0]),
    Matern(nu=0.5, gamma=0.3),
    Matern(nu=1.5, gamma=0.3),
    Matern(nu=2.5, gamma=0.3),
    Matern(nu=0.8, gamma=0.3),
    Matern(nu=float("inf"), gamma=0.3),
    RationalQuadratic(power=0.7, gamma=0.3),
    InverseMultiquadric(gamma=0.3),
    Wendland(smoothness=0, gamma=0.3, dimension=4),
    Wendland(smoothness=1, gamma=0.1, dimension=4),
    Wendland(smoothness=2, gamma=[0.3, 0.0, 0.1, 0.2], dimension=4),
]
KERNELS = [
    *STATIONARY,
    Linear(),
    Polynomial(degree=3, gamma=0.5, coef0=1.0),
    Polynomial(degree=2, coef0=0.0),
    Sigmoid(gamma=0.5, coef0=-1.0),
    ANOVA(degree=2),
    ANOVA(degree=0),
    FromCallable(linear_kernel, psd=True),
    RBF(gamma=0.3) + Linear() + RBF(gamma=3.0),
    Matern(gamma=0.3) * Polynomial(degree=2),
    2.0 * RBF(gamma=0.3) + 0.5 * Linear(),
    (Linear() + RBF(gamma=0.3)) ** 3,
    Normalized(Polynomial(degree=2)),
    Normalized(2.0 * Linear()) * RBF(gamma=0.3),
    AllSubsets(),
    Constant(2.0) + Linear(),
    Constant(0.5),
    Exp(0.1 * Linear()),
    GaussianOf(Linear(), gamma=0.3),
    GaussianOf(Normalized(Polynomial(degree=2)), gamma=2.0),
    Bilinear(MIXED),
    After(RBF(gamma=0.3), half),
    Conformal(RBF(gamma=0.3), loudness) + Linear(),
    RankNormal(RBF(gamma=0.3), SCORES),
    RankNormal(Laplacian(gamma=0.3), SCORES) + Linear(),
    Nominal(gamma=0.5),
    Nominal(gamma=None, weights=[1.0, 0.0, 2.0, 1.0]),
    OnColumns(RBF(gamma=0.3), [3, 0], lengths=[2.0, 0.5]),
    OnColumns(RBF(gamma=0.3), [0, 2], lengths=None) * OnColumns(Nominal(gamma=1.0), [1, 3]) + Linear(),
    OnColumns(FromCallable(linear_kernel, psd=True), [1, 2]),
    FisherKernel(MIXTURE, whiten=None),
    Normalized(FisherKernel(MIXTURE, whiten=[0.5] * 18)),
    MarginalizedKernel(MIXTURE),
    Normalized(MarginalizedKernel(MIXTURE)) + Linear(),
    OnColumns(OnColumns(Linear(), [1], lengths=None) + OnColumns(Nominal(gamma=None), [0]), [2, 3]),
]


def short(kernel):
    """On one line and without addresses, which differ between processes."""
    return re.sub(r"<function (\w+) at \w+>", r"\1", " ".join(repr(kernel).split()))


@pytest.fixture(params=KERNELS, ids=short)
def kernel(request):
    return clone(request.param)


@pytest.fixture(params=STATIONARY, ids=short)
def stationary(request):
    return clone(request.param)


@pytest.fixture(
    params=[RBF, Laplacian, Matern, RationalQuadratic, InverseMultiquadric], ids=lambda kind: kind.__name__
)
def kind(request):
    return request.param


def frozen(A):
    A.flags.writeable = False
    return A


@pytest.fixture
def X():
    return frozen(np.random.default_rng(0).normal(size=(150, 4)))


@pytest.fixture
def Z():
    return frozen(np.random.default_rng(1).normal(size=(40, 4)))
