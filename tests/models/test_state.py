"""A fitted model has one state at a time: calls that fail change nothing, and readers see one state."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from mercer import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer._fitting.moments import PassState
from mercer._fitting.spec import FitSpec
from mercer._gram import Budget
from mercer.kernels import RBF, FromCallable

KERNEL = RBF(gamma=0.3)
STREAMED = [
    KernelFisherClassifier(KERNEL, centers=10, random_state=0),
    KernelRidgeRegressor(KERNEL, centers=10, random_state=0),
]
ONLINE = [
    OnlineFisherClassifier(KERNEL, max_centers=10),
    OnlineKernelRegressor(KERNEL, max_centers=10),
    PairwiseClassifier(KernelFisherClassifier(KERNEL, centers=5, random_state=0)),
]
GOING_ON = [*STREAMED, *ONLINE]
MODELS = [
    *GOING_ON,
    KernelFisherClassifier(KERNEL, centers="all"),
    KernelRidgeRegressor(KERNEL, centers="all"),
    SparseFisherClassifier(KERNEL, max_centers=8),
    SparseKernelRegressor(KERNEL, max_centers=8),
]


def name(model):
    return " ".join(repr(model).split())


@pytest.fixture
def halves(three_classes):
    X, y = three_classes
    return (X[::2], y[::2]), (X[1::2], y[1::2])


class Interrupting:
    """A Gaussian kernel that the user interrupts at its n-th call from now."""

    def __init__(self):
        self.left = np.inf

    def __call__(self, X, Z):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return rbf_kernel(X, Z, gamma=0.3)


def with_kernel(model, kernel):
    deep = "estimator__kernel" if isinstance(model, PairwiseClassifier) else "kernel"
    return clone(model).set_params(**{deep: FromCallable(kernel, psd=True)})


def answers(model, X):
    return [getattr(model, method)(X) for method in ("predict", "predict_proba") if hasattr(model, method)]


def assert_unchanged(model, before, X):
    for found, exact in zip(answers(model, X), before, strict=True):
        assert_array_equal(found, exact)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize("bad", ["values", "targets"])
def test_a_refused_fit_leaves_the_model_as_it_was(model, bad, halves):
    (X, y), (Z, z) = halves
    model = clone(model).fit(X, y)
    before, rows = answers(model, X), vars(model).copy()
    Z, z = (Z + np.inf, z) if bad == "values" else (Z[:, :1], z[:-1])
    with pytest.raises(ValueError, match=r"infinity|inconsistent"):
        model.fit(Z, z)
    assert_unchanged(model, before, X)
    assert vars(model).keys() == rows.keys()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", GOING_ON, ids=name)
def test_a_refused_batch_leaves_the_model_as_it_was(model, halves):
    (X, y), (Z, z) = halves
    model = clone(model).partial_fit(X, y)
    before = answers(model, X)
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(Z + np.inf, z)
    assert_unchanged(model, before, X)


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_after_a_failed_first_call_a_model_is_not_fitted(model, halves):
    X, y = halves[0]
    calls = [model.fit, *([model.partial_fit] if model in GOING_ON else [])]
    for call in calls:
        with pytest.raises(ValueError, match="infinity"):
            call(X + np.inf, y)
        with pytest.raises(NotFittedError):
            model.predict(X)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_interrupted_call_leaves_the_model_as_it_was(model, at, halves):
    (X, y), (Z, z) = halves
    kernel = Interrupting()
    goes_on = model in GOING_ON
    model = with_kernel(model, kernel).fit(X, y)
    before = answers(model, X)
    for call in [model.fit, *([model.partial_fit] if goes_on else [])]:
        kernel.left = at
        try:
            call(Z, z)
        except KeyboardInterrupt:
            kernel.left = np.inf
            assert_unchanged(model, before, X)
            continue
        # The call was over before the interruption: then all of it counts.
        kernel.left = np.inf
        before = answers(model, X)


@pytest.mark.parametrize("model", STREAMED, ids=name)
def test_removing_too_much_leaves_the_model_as_it_was(model, halves):
    (X, y), (Z, z) = halves
    model = clone(model).fit(X, y)
    before = answers(model, X)
    with pytest.raises(ValueError, match="remove"):
        model.remove(np.vstack([X, Z]), np.concatenate([y, z]))
    assert_unchanged(model, before, X)


def test_parameters_set_during_a_fit_stay(halves):
    X, y = halves[0]
    model = KernelFisherClassifier(alpha=0.5)

    def kernel(X, Z):
        model.set_params(alpha=0.25)
        return rbf_kernel(X, Z)

    model.set_params(kernel=FromCallable(kernel, psd=True)).fit(X, y)
    assert (model.alpha, model.alpha_) == (0.25, 0.5)


def count_solutions(model, monkeypatch):
    count = []
    solve = PassState.solved
    monkeypatch.setattr(PassState, "solved", lambda self, *args: (count.append(1), solve(self, *args))[1])
    return count


@pytest.mark.parametrize("model", STREAMED, ids=name)
def test_asking_for_what_a_model_never_has_does_not_solve_it(model, halves, monkeypatch):
    X, y = halves[0]
    model = clone(model).partial_fit(X, y)
    solved = count_solutions(model, monkeypatch)
    assert not any(hasattr(model, missing) for missing in ("coef_", "feature_scores_", "nothing_", "_x"))
    assert all(hasattr(model, known) for known in ("kernel_", "X_fit_", "n_features_in_", "moments_"))
    assert not solved
    assert hasattr(model, "loo_score_")
    assert len(solved) == 1


def test_hasattr_does_not_raise_where_there_is_no_solution(halves):
    X, y = halves[0]
    model = clone(STREAMED[0]).partial_fit(X, y, classes=[0, 1, 2, 3])
    assert not hasattr(model, "loo_score_")
    with pytest.raises(AttributeError, match="class 3 has no training rows"):
        model.loo_score_
    with pytest.raises(ValueError, match="class 3 has no training rows"):
        model.predict(X)


@pytest.mark.slow
@pytest.mark.parametrize("model", STREAMED, ids=name)
def test_many_threads_solve_a_model_once(model, halves, monkeypatch):
    (X, y), (Z, z) = halves
    model = clone(model).partial_fit(X, y).partial_fit(Z, z)
    solved = count_solutions(model, monkeypatch)
    with ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(lambda _: model.loo_score_, range(64)))
        predictions = list(pool.map(lambda _: model.predict(X), range(64)))
    assert len(solved) == 1
    assert len(set(scores)) == 1
    for prediction in predictions:
        assert_array_equal(prediction, predictions[0])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", GOING_ON, ids=name)
def test_batches_of_many_threads_are_all_learned(model, halves):
    X, y = halves[0]
    model = clone(model).partial_fit(X, y)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: model.partial_fit(X, y), range(8)))
    parts = model.estimators_ if isinstance(model, PairwiseClassifier) else [model]
    rows = [part.n_rows_seen_ if hasattr(part, "n_rows_seen_") else part.moments_.n_rows for part in parts]
    assert sum(rows) == 9 * len(y) * (2 if isinstance(model, PairwiseClassifier) else 1)


@pytest.mark.slow
@pytest.mark.parametrize("model", GOING_ON, ids=name)
def test_a_prediction_keeps_the_state_it_began_with(model, halves):
    """The kernel of the rows to be predicted waits until the model has learned more."""
    (X, y), (Z, z) = halves
    reading, learned = threading.Event(), threading.Event()

    def kernel(A, B):
        if threading.current_thread().name == "reader":
            reading.set()
            learned.wait(10)
        return rbf_kernel(A, B, gamma=0.3)

    model = with_kernel(model, kernel).partial_fit(X, y)
    before, found = answers(model, Z), []
    reader = threading.Thread(target=lambda: found.extend(answers(model, Z)[:1]), name="reader")
    reader.start()
    assert reading.wait(10)
    model.partial_fit(Z, z)
    learned.set()
    reader.join()
    assert_array_equal(found[0], before[0])


@pytest.mark.slow
@pytest.mark.parametrize("model", STREAMED, ids=name)
@pytest.mark.parametrize("solved", [False, True])
def test_a_model_that_goes_on_comes_back_from_a_file(model, solved, halves):
    (X, y), (Z, z) = halves
    model = clone(model).partial_fit(X, y).partial_fit(Z, z)
    before = model.loo_score_ if solved else None
    twin = pickle.loads(pickle.dumps(model))
    assert twin.loo_score_ == (model.loo_score_ if before is None else before)
    assert_array_equal(twin.predict(X), model.predict(X))
    assert_array_equal(twin.partial_fit(X, y).predict(Z), model.partial_fit(X, y).predict(Z))


@pytest.mark.slow
@pytest.mark.parametrize("model", [KernelFisherClassifier(), KernelRidgeRegressor()], ids=name)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_that_made_every_row_a_center_goes_on_with_its_rows(model, weighted, halves):
    (X, y), (Z, z) = halves
    X, y = np.vstack([X, X[:5]]), np.concatenate([y, y[:5]])
    weight = {"sample_weight": np.linspace(0.0, 2.0, len(y))} if weighted else {}
    model = clone(model).set_params(random_state=0)
    after_fit = clone(model).fit(X, y, **weight).partial_fit(Z, z)
    used = np.flatnonzero(weight["sample_weight"]) if weighted else np.arange(len(y))
    weight = {"sample_weight": weight["sample_weight"][used]} if weighted else {}
    in_batches = clone(model).partial_fit(X[used], y[used], **weight).partial_fit(Z, z)
    assert after_fit.moments_.n_rows == len(used) + len(z)
    assert_array_equal(after_fit.predict(Z), in_batches.predict(Z))
    assert after_fit.loo_score_ == in_batches.loo_score_


def test_a_fit_goes_on_with_more_classes_and_with_names_of_columns(halves):
    X, y = halves[0]
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = KernelFisherClassifier(KERNEL).fit(frame[y < 2], y[y < 2])
    model.partial_fit(frame[y == 2], y[y == 2], classes=[0, 1, 2])
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.predict_proba(frame).shape == (len(y), 3)
    with pytest.raises(ValueError, match="feature names"):
        KernelFisherClassifier(KERNEL).fit(frame, y).partial_fit(frame[["b", "a"]], y)


def test_kernel_values_are_not_forgotten_in_silence(halves):
    X, y = halves[0]
    model = KernelFisherClassifier("precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match=f"forget the {len(y)} rows of fit.*pass the kernel"):
        model.partial_fit(X @ X.T, y)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", STREAMED, ids=name)
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), lambda model: model.lean()]
)
def test_copies_have_the_parameters_that_were_set_after_solving(model, copied, halves):
    X, y = halves[0]
    model = clone(model).partial_fit(X, y)
    alpha = model.alpha_
    twin = copied(model.set_params(alpha=3.0, loo_rows=777))
    assert (twin.alpha, twin.loo_rows, twin.alpha_) == (3.0, 777, alpha)


def test_hasattr_does_not_raise_where_memory_is_too_small(halves, monkeypatch):
    X, y = halves[0]
    model = clone(STREAMED[0]).partial_fit(X, y)
    monkeypatch.setattr(FitSpec, "budget", property(lambda self: Budget(1000.0)))
    assert not hasattr(model, "loo_score_")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", MODELS, ids=name)
def test_answers_of_a_model_do_not_change_it(model, halves):
    X, y = halves[0]
    model = clone(model).fit(X, y)
    before = vars(model).copy()
    model.score(X, y)
    assert all(vars(model)[key] is value for key, value in before.items())
    assert vars(model).keys() == before.keys()


PUBLIC = {"fit", "partial_fit", "remove", "transform", "lean", "staged_predict"}


@pytest.mark.parametrize("cls", sorted({type(model) for model in MODELS}, key=lambda cls: cls.__name__))
def test_every_method_changes_or_reads_one_state(cls):
    methods = {key for base in cls.__mro__ if base.__module__.startswith("mercer") for key in vars(base)}
    asked = {key for key in methods if key in PUBLIC or key.startswith(("predict", "decision"))}
    assert asked
    for key in asked:
        assert hasattr(getattr(cls, key), "__wrapped__"), f"{key} is decorated by neither"
