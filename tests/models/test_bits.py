"""The same parameters, rows and seed give the same model, to the bit, however many threads there are."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier, KernelRidgeRegressor, SparseFisherClassifier

MODELS = {
    "every row a center": KernelFisherClassifier(random_state=0),
    "centers": KernelFisherClassifier(centers=300, random_state=0),
    "singular values": KernelRidgeRegressor(penalty="coef", random_state=0),
    "few rows": SparseFisherClassifier(max_centers=10, random_state=0),
}


@pytest.fixture(scope="module")
def rows():
    """More rows than fit into one strip of columns."""
    X = np.random.default_rng(5).normal(size=(700, 3))
    return X, (X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0).astype(int)


def outputs(model):
    return [value for value in vars(model).values() if isinstance(value, np.ndarray)]


@pytest.mark.parametrize("name", MODELS)
def test_a_repeated_fit_is_the_same_whatever_the_number_of_threads(name, rows):
    fits = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            fits.append(outputs(MODELS[name].fit(*rows)))
    assert len(fits[0]) > 3
    for other in fits[1:]:
        for a, b in zip(fits[0], other, strict=True):
            assert_array_equal(a, b)


def test_a_repeated_fit_is_the_same_on_a_busy_machine(rows):
    model = KernelFisherClassifier(random_state=0)
    with threadpool_limits(2, user_api="blas"):
        quiet = outputs(model.fit(*rows))
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            loaded = outputs(model.fit(*rows))
        finally:
            for process in busy:
                process.kill()
                process.wait()
    for a, b in zip(quiet, loaded, strict=True):
        assert_array_equal(a, b)
