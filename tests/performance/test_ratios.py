"""Hot paths against the bare engine, interleaved in one run; best times, which a busy machine moves least."""

import time

import numpy as np
import pytest
import scipy.linalg
from sklearn.metrics.pairwise import rbf_kernel

from mercer import KernelFisherClassifier
from mercer.datasets import make_ringnorm
from mercer.expansion import Expansion
from mercer.kernels import RBF
from mercer.rows import every_row
from mercer.solvers import Observations, decompose, leave_out
from mercer.tuning import ALPHAS

pytestmark = pytest.mark.ratio


def best_ratio(ours, bare, repeats=5):
    """Least time of ``ours`` over least time of ``bare``, one after the other."""
    times = np.array([[seconds(ours), seconds(bare)] for _ in range(repeats)]).min(axis=0)
    return times[0] / times[1]


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def test_tuning_costs_at_most_half_more_than_its_eigendecompositions():
    X, y = make_ringnorm(400, random_state=0)
    matrices = [kernel.block(X, X) for kernel in RBF(gamma="loo").candidates(X)]
    ratio = best_ratio(
        lambda: KernelFisherClassifier().fit(X, y), lambda: [scipy.linalg.eigh(K) for K in matrices], repeats=3
    )
    assert ratio < 1.5


def test_whole_penalty_path_costs_less_than_the_decomposition_it_comes_from():
    X, y = make_ringnorm(600, random_state=0)
    K, ones = RBF(gamma=0.05).block(X, X), np.ones(600)
    observations = Observations(y[:, None].astype(float), ones, ones, every_row(600))
    spectrum = decompose(K, ones)
    ratio = best_ratio(lambda: leave_out(spectrum, observations, ALPHAS), lambda: scipy.linalg.eigh(K))
    assert ratio < 0.7


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gaussian_block_is_no_slower_than_scikit_learn(dtype):
    X, _ = make_ringnorm(2000, random_state=0, dtype=dtype)
    kernel, Z = RBF(gamma=0.05), X[1000:]
    assert best_ratio(lambda: kernel.block(X, Z), lambda: rbf_kernel(X, Z, gamma=0.05)) < 1.1


def test_prediction_costs_little_more_than_its_kernel_block():
    X, _ = make_ringnorm(3000, random_state=0)
    expansion = Expansion(RBF(gamma=0.05), X[:1000], np.ones((1000, 1)), np.zeros(1))
    assert best_ratio(lambda: expansion(X), lambda: expansion.kernel.block(X, X[:1000]) @ expansion.coef) < 1.5
