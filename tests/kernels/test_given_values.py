"""Kernels from matrices and functions, kernels by name, and what is refused."""

import operator
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp

import mercer.kernels
from mercer.errors import KernelError
from mercer.kernels import (
    ANOVA,
    RBF,
    FromCallable,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    as_kernel,
    pairwise,
)
from mercer.kernels._resolve import NAMES


def common_letters(a, b):
    return float(len(set(a) & set(b)))


def test_precomputed_takes_columns(X):
    K = RBF(gamma=0.3).block(X, X)
    kernel = Precomputed()
    assert_array_equal(kernel.block(K, np.arange(150)), K)
    assert_array_equal(kernel.block(K[:7], [5, 3]), K[:7, [5, 3]])
    assert_array_equal(kernel.diag(K), 1.0)
    assert kernel.block(K.astype(np.float32), [0]).dtype == np.float32
    assert_array_equal(kernel.block(sparse.csr_matrix(K), [2]), K[:, [2]])


def test_precomputed_claims_only_what_it_is_told():
    assert not Precomputed().positive_semidefinite
    assert Precomputed(psd=True).positive_semidefinite


@pytest.mark.parametrize(
    ("Z", "message"),
    [([0.0], "integers"), (np.eye(3), "integers"), ([3], "columns 3 to 3"), ([-1, 0], "columns -1 to 0")],
)
def test_precomputed_refuses_centers_that_are_not_columns(Z, message):
    with pytest.raises(KernelError, match=message):
        Precomputed().block(np.eye(3), Z)


def test_diagonal_of_a_rectangle_is_an_error():
    with pytest.raises(KernelError, match=r"\(2, 3\)"):
        Precomputed().diag(np.ones((2, 3)))


def test_function_of_objects_becomes_a_kernel_on_lists():
    words = ["kernel", "fisher", "mercer", ""]
    kernel = Normalized(FromCallable(pairwise(common_letters), psd=True))
    assert kernel.positive_semidefinite
    K = kernel.block(words, words)
    assert_allclose(K, K.T)
    assert_allclose(np.diagonal(K), kernel.diag(words))
    assert_allclose(K[0, 2], 2 / np.sqrt(5 * 4))
    assert_array_equal(K[3], 0.0)
    assert kernel.candidates(words)[0].resolved


def test_wrapped_function_survives_clone_and_pickle():
    kernel = FromCallable(pairwise(operator.mul))
    for twin in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert_array_equal(twin.block([1.0, 2.0], [3.0]), [[3.0], [6.0]])


def test_callable_is_taken_as_it_is(X, Z):
    assert_allclose(as_kernel(gp.RBF(1.0)).block(X, Z), RBF(gamma=0.5).block(X, Z))
    assert not as_kernel(gp.RBF(1.0)).positive_semidefinite


def test_array_of_a_callable_is_not_handed_out(X):
    kept = np.eye(150)
    K = FromCallable(lambda X, Z: kept).block(X, X)
    K[:] = 0.0
    assert_array_equal(kept, np.eye(150))


def test_wrong_shape_names_both_shapes(X, Z):
    with pytest.raises(KernelError, match=r"\(40, 150\) instead of \(150, 40\).*pairwise"):
        FromCallable(lambda X, Z: Z @ X.T).block(X, Z)
    with pytest.raises(KernelError, match=r"\(\) instead of \(150, 40\)"):
        FromCallable(lambda X, Z: 1.0).block(X, Z)


def test_values_that_are_not_finite_are_counted(X, Z):
    with pytest.raises(KernelError, match="6000 of 6000 kernel values are not finite"):
        FromCallable(lambda X, Z: np.full((150, 40), np.nan)).block(X, Z)


def test_every_kernel_on_vectors_has_its_name():
    for name, kind in NAMES.items():
        kernel = as_kernel(name)
        assert type(kernel) is kind
        assert repr(kernel) == f"{kind.__name__}()"
    public = {getattr(mercer.kernels, name) for name in mercer.kernels.__all__}
    assert set(NAMES.values()) <= public
    assert all(issubclass(kind, Kernel) for kind in NAMES.values())


def test_unknown_names_are_errors_that_list_the_names():
    with pytest.raises(KernelError, match=r"gauss.*anova.*rbf"):
        as_kernel("gauss")
    with pytest.raises(KernelError, match=r"kernel is 3.*rbf"):
        as_kernel(3)
    with pytest.raises(KernelError, match=r"kernel is {'rbf'}"):
        as_kernel({"rbf"})
    with pytest.raises(KernelError, match=r"RBF\(\)"):
        as_kernel(RBF)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (RBF(gamma=-1.0), "gamma=-1.0"),
        (RBF(gamma=np.nan), "gamma=nan"),
        (RBF(gamma=[1.0, 2.0]), r"shape \(2,\).*4 features"),
        (Laplacian(gamma=np.ones((4, 1))), r"shape \(4, 1\)"),
        (Matern(nu=0.0, gamma=1.0), "nu=0.0"),
        (Matern(nu=101, gamma=1.0), "nu=inf"),
        (Matern(nu="rough", gamma=1.0), "nu='rough'"),
        (RationalQuadratic(power=0.0, gamma=1.0), "power=0.0"),
        (Polynomial(degree=0.5), "degree=0.5"),
        (Polynomial(degree=0), "degree=0"),
        (Polynomial(coef0=np.inf), "coef0=inf"),
        (Sigmoid(gamma=-1.0), "gamma=-1.0"),
        (ANOVA(degree=5), "degree <= 4"),
        (ANOVA(degree=-1), "degree=-1"),
    ],
    ids=repr,
)
def test_impossible_parameters_are_errors_when_used(kernel, message, X):
    with pytest.raises(KernelError, match=message):
        kernel.block(X, X)


def test_rows_must_be_equally_long(X, Z):
    with pytest.raises(KernelError, match="X has 4 features and Z has 3"):
        Linear().block(X, Z[:, :3])


def test_rows_must_be_two_dimensional(X):
    with pytest.raises(KernelError, match=r"\(150,\).*reshape"):
        RBF(gamma=1.0).block(X[:, 0], X)
