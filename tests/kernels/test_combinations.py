"""Sums, products, multiples and powers: their values, their names, their parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, ParameterGrid

from mercer.errors import KernelError
from mercer.kernels import RBF, Linear, Normalized, Polynomial, Power, Product, Scaled, Sum
from mercer.kernels._base import grid_shape


def names(kernel):
    return [name for name, _ in kernel.parts]


def test_operators_compute_what_they_say(X, Z):
    k, l = RBF(gamma=0.3), Linear()
    K, L = k.block(X, Z), l.block(X, Z)
    assert_allclose((k + l).block(X, Z), K + L)
    assert_allclose((k * l).block(X, Z), K * L)
    assert_allclose((3 * k).block(X, Z), 3 * K)
    assert_allclose((k * np.float64(3)).block(X, Z), 3 * K)
    assert_allclose((np.float32(3) * k).block(X, Z), 3 * K)
    assert_allclose((l**5).block(X, Z), L**5)


def test_sums_and_products_are_flat():
    total = RBF() + Linear() + (Polynomial() + RBF())
    assert names(total) == ["rbf", "linear", "polynomial", "rbf_2"]
    assert names(RBF() * (RBF() * RBF())) == ["rbf", "rbf_2", "rbf_3"]
    assert names(total + total) == [
        *["rbf", "linear", "polynomial", "rbf_2"],
        *["rbf_3", "linear_2", "polynomial_2", "rbf_4"],
    ]


def test_given_names_are_kept():
    assert names(Sum([("shape", RBF()), ("color", RBF())]) + RBF()) == ["shape", "color", "rbf"]


def test_part_has_the_name_of_the_kernel_inside():
    assert names(2 * RBF() + Normalized(Linear()) ** 2) == ["rbf", "linear"]
    assert names(Linear() + RBF() * RBF()) == ["linear", "product"]


def test_multiples_of_multiples_are_one_multiple():
    assert repr(2 * (3 * RBF())) == "Scaled(kernel=RBF(), scale=6.0)"


def test_parameters_are_reached_by_name():
    kernel = 2.0 * RBF(gamma=0.5) + Linear() * RBF(gamma=0.1) + RBF(gamma=7.0) ** 2
    params = kernel.get_params(deep=True)
    assert params["rbf__gamma"] == 0.5
    assert params["rbf__scale"] == 2.0
    assert params["product__rbf__gamma"] == 0.1
    assert params["rbf_2__gamma"] == 7.0
    assert params["rbf_2__exponent"] == 2
    assert params["rbf"] is kernel.parts[0][1]
    kernel.set_params(rbf__gamma=1.0, rbf__scale=4.0, product__rbf__gamma=2.0, rbf_2__exponent=3)
    assert repr(kernel) == repr(4.0 * RBF(gamma=1.0) + Linear() * RBF(gamma=2.0) + RBF(gamma=7.0) ** 3)


def test_parts_are_replaced_by_name():
    kernel = RBF() + Linear()
    kernel.set_params(rbf=Polynomial(), linear=RBF(gamma=1.0), rbf__degree=5)
    assert repr(kernel.parts) == repr([("rbf", Polynomial(degree=5)), ("linear", RBF(gamma=1.0))])
    assert names(kernel.set_params(parts=[("a", RBF())])) == ["a"]
    assert repr(Scaled(RBF()).set_params(kernel=Polynomial(), degree=2).kernel) == "Polynomial(degree=2)"


def test_setting_parameters_of_a_clone_leaves_the_original():
    kernel = RBF(gamma=1.0) + 2.0 * Linear()
    clone(kernel).set_params(rbf__gamma=5.0, linear__scale=7.0)
    assert kernel.get_params()["rbf__gamma"] == 1.0
    assert kernel.get_params()["linear__scale"] == 2.0


def test_unknown_parameters_are_errors():
    for kernel in (RBF() + Linear(), 2.0 * RBF()):
        with pytest.raises(ValueError, match="Invalid parameter"):
            kernel.set_params(bandwidth=1.0)


class Centroid(ClassifierMixin, BaseEstimator):
    """The class whose rows are most similar on average."""

    def __init__(self, kernel=None):
        self.kernel = kernel

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def predict(self, X):
        K = self.kernel.block(X, self.X_)
        return self.classes_[np.argmax([K[:, self.y_ == c].mean(axis=1) for c in self.classes_], axis=0)]


def test_grid_search_reaches_the_parameters_of_parts(X):
    y = (np.linalg.norm(X, axis=1) > 1.8).astype(int)
    grid = {"kernel__rbf__gamma": [0.01, 1.0], "kernel__rbf__scale": [1.0, 2.0], "kernel__linear": [Linear()]}
    search = GridSearchCV(Centroid(2.0 * RBF() + Linear()), grid, cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == len(ParameterGrid(grid))
    assert search.best_estimator_.kernel.resolved


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Sum([]), "no parts"),
        (Product([("a", Linear()), ("a", Linear())]), "must differ"),
        (Sum([("a__b", Linear())]), "a__b"),
        (Scaled(Linear(), scale=-1.0), "scale=-1.0"),
        (Power(Linear(), exponent=0), "exponent=0"),
        (Power(Linear(), exponent=0.5), "integer"),
    ],
)
def test_impossible_combinations_are_errors_when_used(kernel, message, X):
    with pytest.raises(KernelError, match=message):
        kernel.block(X, X)
    with pytest.raises(KernelError, match=message):
        kernel.diag(X)


def test_kernels_combine_with_kernels_and_numbers_only():
    for combine in (
        lambda: RBF() + 1,
        lambda: "a" * RBF(),
        lambda: RBF() ** 0.5,
        lambda: RBF() + np.ones(3),
        lambda: np.ones(3) * RBF(),
    ):
        with pytest.raises(TypeError):
            combine()


def test_kernel_with_negative_self_similarity_cannot_be_normalized(X):
    with pytest.raises(KernelError, match="cannot be normalized"):
        Normalized(Polynomial(degree=1, coef0=-100.0)).block(X, X)


def test_combining_changes_no_part():
    k, l = RBF(gamma=1.0), Linear()
    kernel = k + l
    kernel + kernel
    assert names(kernel) == ["rbf", "linear"]
    assert_array_equal([part is given for (_, part), given in zip(kernel.parts, (k, l))], True)


def test_a_sum_may_have_a_hundred_parts(rng):
    X = rng.normal(size=(6, 2))
    parts = [(f"k{k}", RBF(gamma=0.1 * k)) for k in range(1, 100)]
    found = Sum([*parts, ("last", RBF(gamma="loo"))]).candidates(X)
    assert grid_shape(found) == (len(found),)
    last = [kernel._kernels()[-1].gamma for kernel in found]
    assert len(set(last)) == len(found) > 1
    assert found[0]._kernels()[0].gamma == 0.1
