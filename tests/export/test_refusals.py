"""What cannot be exported is refused by name, and what is exported is one state of the model."""

import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import (
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.datasets import make_banana, make_sinc
from mercer.errors import KernelError
from mercer.export import to_c, to_python
from mercer.kernels import RBF

BANANA = make_banana(150, random_state=0)
RBF1 = RBF(gamma=1.0)


def three_classes():
    X, y = BANANA
    return X, np.where(X[:, 0] > 1.0, "c", np.where(y > 0, "b", "a"))


def squares():
    return BANANA[0], BANANA[0][:, 0] ** 2


def test_rows_of_another_length_are_refused_by_the_module():
    module = {}
    exec(to_python(KernelRidgeRegressor(RBF1).fit(*squares())), module)
    with pytest.raises(ValueError, match="x has 3 features; the model takes 2"):
        module["outputs"]([1.0, 2.0, 3.0])


@pytest.mark.parametrize("export", [to_c, to_python])
@pytest.mark.parametrize(
    "model",
    [
        SparseFisherClassifier(),
        KernelRidgeRegressor(),
        OnlineFisherClassifier(),
        make_pipeline(KernelRidgeRegressor()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_that_is_not_fitted_is_refused_as_in_scikit_learn(export, model):
    with pytest.raises(NotFittedError):
        export(clone(model))


class Inverted(RBF):
    """Not the kernel that it is a subclass of."""

    def _profile(self, T):
        return 1.0 / (1.0 - T)


def test_a_subclass_of_a_kernel_is_not_taken_for_the_kernel():
    model = KernelRidgeRegressor(Inverted(gamma=1.0)).fit(*make_sinc(30, random_state=0))
    with pytest.raises(KernelError, match="Inverted"):
        to_c(model)


@pytest.mark.parametrize(
    "model",
    [
        PairwiseClassifier().fit(*three_classes()),
        SVC().fit(*BANANA),
        GridSearchCV(KernelRidgeRegressor(RBF1), {"alpha": [0.1, 1.0]}, cv=2).fit(*squares()),
        make_pipeline(StandardScaler()).fit(BANANA[0]),
        make_pipeline(StandardScaler(), "passthrough").fit(BANANA[0]),
        None,
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_not_a_kernel_model_is_refused_by_name(model):
    with pytest.raises(TypeError, match=r"cannot be exported; pass a fitted kernel model"):
        to_c(model)


def test_numbers_that_are_no_literals_are_refused_with_the_name_of_their_table():
    model = SparseKernelRegressor(RBF1, max_centers=2).fit(*squares())
    model.dual_coef_ = model.dual_coef_ * np.inf
    for export in (to_c, to_python):
        with pytest.raises(ValueError, match="2 of 2 numbers in the table coef"):
            export(model)


def test_a_model_that_is_fitted_meanwhile_is_exported_as_one_of_its_states():
    model = OnlineKernelRegressor(RBF1)
    targets = squares()
    fits = [(targets[0][:n], targets[1][:n]) for n in (3, 4)]
    states = {to_python(model.fit(*rows)) for rows in fits}
    assert len(states) == 2
    done = threading.Event()

    def fit_again_and_again():
        while not done.is_set():
            for rows in fits:
                model.fit(*rows)

    writer = threading.Thread(target=fit_again_and_again)
    writer.start()
    try:
        assert {to_python(model) for _ in range(500)} <= states
    finally:
        done.set()
        writer.join()


class Doubled(KernelRidgeRegressor):
    """Not the estimator that it is a subclass of."""

    def predict(self, X):
        return 2.0 * super().predict(X)


def test_a_subclass_of_an_estimator_is_not_taken_for_the_estimator():
    with pytest.raises(TypeError, match="Doubled cannot be exported: a subclass of KernelRidgeRegressor"):
        to_c(Doubled(RBF1).fit(*squares()))
