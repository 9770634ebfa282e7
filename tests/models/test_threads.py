"""Many threads that ask one model directly after it has learned more: no error, one solution, one answer."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mercer import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
)
from mercer.kernels import RBF, FromCallable

N_THREADS, N_CALLS = 8, 10
# As many rows as no block of a fit has, so that predictions are told from solutions.
N_ASKED = 7


class Counting:
    """A Gaussian kernel that counts the calls that are not for rows to be predicted, in any thread."""

    def __init__(self):
        self.n_calls, self._lock = 0, threading.Lock()

    def __call__(self, X, Z):
        if len(X) != N_ASKED:
            with self._lock:
                self.n_calls += 1
        return RBF(gamma=0.3).block(np.asarray(X), np.asarray(Z))

    def __deepcopy__(self, memo):
        return self


def models(kernel):
    """Every estimator that has ``partial_fit``."""
    return [
        KernelFisherClassifier(kernel, centers=10, random_state=0),
        KernelRidgeRegressor(kernel, centers=10, random_state=0),
        OnlineFisherClassifier(kernel, max_centers=10),
        OnlineKernelRegressor(kernel, max_centers=10),
        PairwiseClassifier(KernelFisherClassifier(kernel, centers=5, random_state=0)),
    ]


def methods_of(model):
    return [
        name for name in dir(model) if name.startswith("predict") or name in ("decision_function", "transform")
    ]


CALLS = [(k, method) for k, model in enumerate(models("rbf")) for method in methods_of(model)]


def grown(k, X, y):
    """The k-th estimator after two batches, not asked for anything yet, and its kernel, with a count of zero."""
    kernel = Counting()
    model = models(FromCallable(kernel, psd=True))[k]
    model.partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    kernel.n_calls = 0
    return model, kernel


# Threads meet where a model is solved, in their first calls: more models show more than more calls.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "method"), CALLS, ids=[f"{type(models('rbf')[k]).__name__}.{method}" for k, method in CALLS]
)
def test_many_threads_get_one_answer_of_one_solution(k, method, three_classes):
    X, y = three_classes
    alone, one = grown(k, X, y)
    expected = getattr(alone, method)(X[:N_ASKED])
    # Online models are solved when rows come.
    assert (one.n_calls > 0) == (not type(alone).__name__.startswith("Online"))
    for _ in range(2):
        model, kernel = grown(k, X, y)
        answers = answers_in_threads(getattr(model, method), X[:N_ASKED])
        assert len(answers) == N_THREADS * N_CALLS
        # Standard deviations and intervals factor the kernel matrix of the centers in every call.
        assert method in {"predict_std", "predict_interval"} or kernel.n_calls == one.n_calls
        for answer in answers:
            assert_array_equal(answer, expected)


def answers_in_threads(ask, X):
    """What all threads are told, which start to ask at the same time."""
    start = threading.Barrier(N_THREADS)

    def answers(_):
        start.wait()
        return [ask(X) for _ in range(N_CALLS)]

    with ThreadPoolExecutor(N_THREADS) as pool:
        return [answer for some in pool.map(answers, range(N_THREADS)) for answer in some]
