"""A choice among kernels of different kinds."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from mercer import (
    KernelFisherClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelRidgeRegressor,
    SparseFisherClassifier,
)
from mercer.errors import KernelError
from mercer.kernels import (
    RBF,
    After,
    FromCallable,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    OneOf,
    Polynomial,
    Precomputed,
    WeightedSum,
    as_kernel,
)
from mercer.kernels._base import kind_of
from mercer.plots import LooPathDisplay


def test_candidates_are_those_of_all_kernels(X):
    kernels = [RBF(), Laplacian("median"), Linear()]
    each = [str(candidate) for kernel in kernels for candidate in kernel.candidates(X)]
    assert [str(candidate) for candidate in OneOf(kernels).candidates(X)] == each


def test_a_list_is_a_choice():
    chosen = as_kernel(["rbf", Matern(nu=0.5)])
    assert [type(kernel) for kernel in chosen.kernels] == [RBF, Matern]
    with pytest.raises(KernelError, match="a list of these"):
        as_kernel([])
    with pytest.raises(KernelError, match="no kernels to choose from"):
        KernelFisherClassifier(OneOf([])).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.slow
def test_the_chosen_kernel_alone_gives_the_same_model_and_hardly_any_other_is_better(X):
    y = np.sin(3.0 * X[:, 0]) + np.abs(X[:, 1])
    kernels = [RBF(), Laplacian(), Matern(nu=0.5), Polynomial() + Linear()]
    model = KernelRidgeRegressor(kernels, random_state=0).fit(X, y)
    single = [KernelRidgeRegressor(kernel, random_state=0).fit(X, y) for kernel in kernels]
    (same,) = [each for each in single if kind_of(each.kernel_) == kind_of(model.kernel_)]
    np.testing.assert_allclose(model.predict(X), same.predict(X), rtol=1e-6, atol=1e-8)
    assert max(each.loo_score_ for each in single) - model.loo_score_ < 0.02
    assert "kernels by fits" in str(model.report_)
    assert LooPathDisplay.from_estimator(model).ax_.get_ylabel() == "gamma"


@pytest.mark.slow
@pytest.mark.parametrize("centers", ["all", 30])
def test_values_are_those_of_the_kernel_itself(X, centers):
    # Widths of one kind share distances, which are those of another kind where kinds are confused.
    y = X[:, 0] * X[:, 1] > 0
    model = KernelFisherClassifier([Laplacian(), RBF()], centers=centers, random_state=0).fit(X, y)
    again = KernelFisherClassifier(type(model.kernel_)(), centers=centers, random_state=0).fit(X, y)
    assert str(model.kernel_) == str(again.kernel_)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "kernels",
    [
        [OnColumns(RBF("median"), [0]), OnColumns(RBF("median"), [1])],
        [After(RBF("median"), np.abs), RBF("median")],
        [Polynomial(2), Polynomial(5)],
        [RBF(gamma=[1.0, 0.0, 0.0, 0.0]), RBF()],
    ],
    ids=str,
)
def test_kernels_of_one_class_are_told_apart(X, kernels, turned):
    y = np.sin(2.0 * X[:, 0])
    model = KernelRidgeRegressor(kernels[::-1] if turned else kernels, random_state=0).fit(X, y)
    best = max((KernelRidgeRegressor(k, random_state=0).fit(X, y) for k in kernels), key=lambda m: m.loo_score_)
    assert str(model.kernel_) == str(best.kernel_)


def test_sums_may_have_a_choice_as_a_part(X):
    y = X[:, 0] * X[:, 1] > 0
    model = KernelFisherClassifier(OneOf([RBF("median"), Laplacian("median")]) + Linear(), random_state=0).fit(
        X, y
    )
    assert model.kernel_.resolved
    assert model.score(X, y) > 0.9


@pytest.mark.slow
def test_other_models_choose_too(X):
    y = X[:, 0] * X[:, 1]
    choice = [RBF(), Laplacian()]
    assert type(SparseFisherClassifier(choice, random_state=0).fit(X, y > 0).kernel_) in (RBF, Laplacian)
    machine = KernelMachineRegressor(choice, loss="huber", random_state=0).fit(X[:60], y[:60])
    assert type(machine.kernel_) in (RBF, Laplacian)


def test_without_targets_nothing_can_be_chosen(X):
    with pytest.raises(ValueError, match="no targets by which"):
        KernelPCA(kernel=[RBF("median"), Laplacian("median")]).fit(X)


def test_a_choice_has_no_values(X):
    choice = OneOf([RBF(1.0), Laplacian(1.0)])
    for evaluate in (lambda: choice.block(X, X), lambda: choice.diag(X)):
        with pytest.raises(KernelError, match="a choice, not a kernel"):
            evaluate()


def test_kernels_for_different_rows_cannot_be_compared(X):
    with pytest.raises(KernelError, match="different rows"):
        KernelFisherClassifier([RBF(), Precomputed()]).fit(X, X[:, 0] > 0)


def test_kinds_do_not_depend_on_numbers():
    assert kind_of(RBF(1.0) + Linear()) == kind_of(RBF(2.0) + Linear())
    assert kind_of(RBF(1.0) + Linear()) != kind_of(Laplacian(1.0) + Linear())
    assert kind_of(FromCallable(np.dot)) != kind_of(RBF())


@pytest.mark.parametrize("container", [dict, list])
def test_parameters_of_parts_have_names(container):
    kernel = WeightedSum(container({"wide": RBF(gamma=0.1), "all": RBF() + Linear()}.items()), "equal")
    assert kernel.get_params()["wide__gamma"] == 0.1
    assert set(kernel.get_params(deep=False)) == {"parts", "weights"}
    twin = clone(kernel).set_params(wide__gamma=2.0, all__rbf__gamma=3.0, weights="loo")
    assert isinstance(twin.parts, container)
    assert dict(twin.named)["wide"].gamma == 2.0
    assert dict(twin.named)["all"].parts[0][1].gamma == 3.0
    assert twin.weights == "loo"
    assert kernel.get_params()["wide__gamma"] == 0.1
    twin.set_params(wide=Laplacian(gamma=1.0))
    assert dict(twin.named)["wide"].gamma == 1.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        twin.set_params(narrow__gamma=1.0)
    with pytest.raises(KernelError, match='not be "parts" or "weights"'):
        WeightedSum({"weights": RBF()}).named


def test_kernels_of_a_choice_are_named_after_their_classes():
    choice = OneOf([RBF(gamma=1.0), Laplacian(), 2.0 * RBF()]).set_params(rbf_2__scale=3.0, laplacian=Linear())
    expected = ["RBF(gamma=1.0)", "Linear()", "Scaled(kernel=RBF(), scale=3.0)"]
    assert [str(kernel) for kernel in choice.kernels] == expected
    assert choice.get_params()["rbf__gamma"] == 1.0


def test_grid_search_reaches_the_parts(X):
    y = np.sin(6.0 * X[:, 0])
    kernel = WeightedSum({"a": RBF(gamma=[1.0, 0.0, 0.0, 0.0]), "b": Linear()}, "equal")
    for model, name in ((kernel, "kernel__a"), (OneOf([RBF(gamma=0.01)]), "kernel__rbf")):
        gammas = [[0.001, 0.0, 0.0, 0.0], [5.0, 0.0, 0.0, 0.0]]
        search = GridSearchCV(KernelRidgeRegressor(model, alpha=0.1), {f"{name}__gamma": gammas}, cv=3).fit(X, y)
        assert search.best_params_ == {f"{name}__gamma": gammas[1]}
