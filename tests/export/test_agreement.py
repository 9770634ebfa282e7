"""Models as source code give what the models give."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import (
    KernelFisherClassifier,
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
from mercer.kernels import RBF, InverseMultiquadric, Laplacian, Linear, Matern, Polynomial, Wendland

KERNELS = [
    RBF(gamma=1.0),
    RBF(gamma=[1.0, 0.3]),
    RBF(gamma=[0.0, 1.0]),
    Laplacian(gamma=[0.5, 0.2]),
    Matern(0.5, gamma=0.5),
    Matern(1.5, gamma=0.5),
    Matern(2.5, gamma=0.5),
    Matern(np.inf, gamma=0.5),
    Wendland(0, gamma=0.05, dimension=2),
    Wendland(1, gamma=0.05, dimension=2),
    Wendland(2, gamma=0.05, dimension=2),
    Wendland(2, gamma=0.001, dimension=60),
    Polynomial(degree=3, gamma=0.5),
    Polynomial(degree=9, gamma=0.01),
    Linear(),
]
BANANA = make_banana(150, random_state=0)
# The last one lies so far beyond the radius of Wendland's kernels that powers of its distance overflow.
ROWS = np.vstack([BANANA[0][:40], [[1e11, -1e11]]])


def three_classes():
    X, y = BANANA
    return X, np.where(X[:, 0] > 1.0, "c", np.where(y > 0, "b", "a"))


def squares():
    return BANANA[0], BANANA[0][:, 0] ** 2


def two_targets():
    return BANANA[0], BANANA[0] ** 2


RBF1 = RBF(gamma=1.0)
MODELS = [
    *[SparseFisherClassifier(kernel, max_centers=10).fit(*BANANA) for kernel in KERNELS],
    SparseFisherClassifier(RBF1, max_centers=12, widths=[0.2, 3.0]).fit(*BANANA),
    SparseFisherClassifier(RBF(gamma=[1.0, 0.3]), max_centers=12, widths=[0.2, 3.0]).fit(*three_classes()),
    SparseFisherClassifier(RBF1, max_centers=12, calibration="gaussian").fit(*three_classes()),
    SparseFisherClassifier(RBF1, max_centers=9, shared=False, priors=[0.5, 0.2, 0.3]).fit(*three_classes()),
    KernelFisherClassifier(RBF1, centers=20, n_components=1, random_state=0).fit(*three_classes()),
    KernelFisherClassifier(RBF1, threshold="error").fit(*BANANA),
    KernelFisherClassifier(RBF1, centers=20, random_state=0).partial_fit(*three_classes()),
    OnlineFisherClassifier(RBF1, max_centers=20).fit(*BANANA),
    OnlineFisherClassifier(RBF1, max_centers=20).fit(*three_classes()),
    OnlineFisherClassifier(RBF1, max_centers=20).partial_fit(*three_classes(), classes=["a", "b", "c", "d"]),
    SparseKernelRegressor(RBF1, max_centers=10).fit(*squares()),
    SparseKernelRegressor(RBF1, max_centers=10, widths=[0.2, 3.0]).fit(*two_targets()),
    SparseKernelRegressor(RBF1, max_centers=10, shared=False).fit(*two_targets()),
    KernelRidgeRegressor(RBF1).fit(*two_targets()),
    KernelRidgeRegressor(RBF1, fit_intercept=False, centers=10, random_state=0).fit(*squares()),
    OnlineKernelRegressor(RBF1, max_centers=20).fit(*squares()),
    OnlineKernelRegressor(RBF1, max_centers=20).fit(*two_targets()),
    OnlineKernelRegressor(Linear()).fit(np.zeros((5, 2)), np.arange(5.0)),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(repr(model).split()))


def assert_answers(found, model, X):
    """Probabilities differ by the rounding of log-odds of up to some hundred, outputs by that of sums."""
    if not is_classifier(model):
        expected = model.predict(X).reshape(len(X), -1)
        assert_allclose(found.outputs, expected, rtol=1e-9, atol=1e-9)
        return
    P = probabilities_of(model, X)
    assert_allclose(found.probabilities, P, rtol=1e-7, atol=1e-12)
    assert_array_equal(found.labels, model.classes_[P.argmax(axis=1)])


def probabilities_of(model, X):
    """As if as much as usual were known of every row: novelty is not exported."""
    if isinstance(model, Pipeline):
        return probabilities_of(model[-1], model[:-1].transform(X))
    return model.rule_.probabilities(model._outputs(X))


def c_arguments(model):
    if not is_classifier(model):
        return {"q": model.predict(ROWS[:1]).size}
    k = len(model.classes_)
    return {"q": k - 1, "k": k, "kind": str if model.classes_.dtype.kind in "UO" else int}


@every_model
def test_compiled_code_gives_what_the_model_gives(model, run_c):
    assert_answers(run_c(to_c(model), ROWS, **c_arguments(model)), model, ROWS)


@pytest.mark.parametrize("kind", [SparseFisherClassifier, KernelFisherClassifier, KernelRidgeRegressor])
def test_the_header_is_cpp_as_well(kind, run_c):
    model = next(model for model in MODELS if type(model) is kind)
    assert_answers(run_c(to_c(model), ROWS, language="cpp", **c_arguments(model)), model, ROWS)


@every_model
def test_plain_python_gives_what_the_model_gives(model, run_python):
    assert_answers(run_python(to_python(model), ROWS), model, ROWS)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_models_fitted_on_sparse_rows_are_exported(kind, run_python):
    model = SparseFisherClassifier(RBF1, max_centers=10).fit(kind(BANANA[0]), BANANA[1])
    assert_answers(run_python(to_python(model), BANANA[0][:9]), model, BANANA[0][:9])


def test_rows_of_another_length_are_refused_by_the_module():
    module = {}
    exec(to_python(MODELS[0]), module)
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


@pytest.mark.parametrize("model", [SparseFisherClassifier(RBF1, max_centers=5), OnlineFisherClassifier(RBF1)])
def test_isotonic_probabilities_are_refused(model):
    isotonic = clone(model).set_params(calibration="isotonic").fit(*BANANA)
    with pytest.raises(ValueError, match='calibration="logistic"'):
        to_c(isotonic)


def test_quadratic_probabilities_are_refused():
    quadratic = SparseFisherClassifier(RBF1, max_centers=5, calibration="quadratic").fit(*BANANA)
    with pytest.raises(ValueError, match='calibration="logistic"'):
        to_python(quadratic)


def test_models_with_bent_scores_and_with_matrices_are_among_those_exported():
    posteriors = [model.rule_.posterior for model in MODELS if is_classifier(model)]
    assert any(posterior.bend < np.inf for posterior in posteriors)
    assert any(len(p.slope) > 1 and p.bend < np.inf and p.slope[0, 1] != 0.0 for p in posteriors)


def test_other_kernels_are_refused_by_name():
    model = SparseKernelRegressor(InverseMultiquadric(gamma=1.0), max_centers=3).fit(
        *make_sinc(30, random_state=0)
    )
    with pytest.raises(KernelError, match="InverseMultiquadric"):
        to_python(model)


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


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_kernels_vanish_far_away(nu, run_python):
    model = SparseFisherClassifier(Matern(nu, gamma=0.5), max_centers=10).fit(*BANANA)
    far = np.array([[1e200, 0.0], [0.0, 0.0]])
    assert_answers(run_python(to_python(model), far), model, far)
