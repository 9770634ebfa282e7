"""Hot paths against the bare engine: medians of ratios of processor time, of pairs one after the other.

Each states its usual value, as measured; it fails where it is half more, and all are printed at the end.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from scipy.special import softmax
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._expansion import Expansion
from mercer._fitting import ALPHAS
from mercer._gram import combine
from mercer._gram.moments import MomentsOf
from mercer._linalg import eigen_psd, limit_threads
from mercer._scores.class_outputs import class_targets
from mercer._scores.criteria import classification_criterion
from mercer._solvers.exact_fits import RootFit
from mercer._solvers.inverse_root import Projected
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.moments.leave_one_out import LooOutputsOf
from mercer._solvers.moments.ridge import decompose_moments
from mercer._solvers.spectrum import Observations, decompose
from mercer.datasets import make_ringnorm
from mercer.kernels import RBF
from mercer.rows import MemoryRows
from mercer.rows._distinct import every_row

pytestmark = pytest.mark.ratio


def seconds(run, clock=time.perf_counter):
    start = clock()
    run()
    return clock() - start


def test_tuning_costs_little_more_than_its_eigendecompositions(compare):
    X, y = make_ringnorm(400, random_state=0)
    matrices = [kernel.block(X, X) for kernel in RBF(gamma="loo").candidates(X)]
    compare(
        1.0,
        lambda: KernelFisherClassifier("rbf").fit(X, y),
        lambda: [scipy.linalg.eigh(K) for K in matrices],
    )


@pytest.mark.parametrize(("kernel", "usually"), [("rbf", 2.8), ("auto", 20.0)])
def test_a_fit_of_a_thousand_rows_costs_few_eigendecompositions(compare, kernel, usually):
    X, y = make_ringnorm(1000, random_state=0)
    K = RBF(gamma=0.05).block(X, X)
    # Fifteen widths with every row a center would be at least 15, six kernels with fifteen widths 90; half of the
    # time of the default is that of relevances, a fifth that of fits with the logistic loss.
    with threadpool_limits(1, user_api="blas"):
        compare(
            usually,
            lambda: KernelFisherClassifier(kernel, random_state=0).fit(X, y),
            lambda: scipy.linalg.eigh(K),
            pairs=5,
        )


def test_a_frame_of_numbers_costs_as_much_as_its_array(compare):
    X, y = make_ringnorm(400, random_state=0)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    with threadpool_limits(1, user_api="blas"):
        compare(
            1.0,
            lambda: KernelFisherClassifier("rbf", random_state=0).fit(frame, y),
            lambda: KernelFisherClassifier("rbf", random_state=0).fit(X, y),
            pairs=5,
        )


def test_one_alpha_costs_little_more_than_its_bare_cholesky_factor(compare):
    X, y = make_ringnorm(1000, random_state=0)
    K, ones = RBF(gamma=0.05).block(X, X), np.ones(1000)
    observations = Observations(y[:, None].astype(float), ones, ones, every_row(1000))
    matrix = Projected.of(K, ones)

    def bare():
        L, _ = scipy.linalg.lapack.dpotrf(K + np.eye(1000), lower=1)
        return scipy.linalg.lapack.dtrtri(L, lower=1)

    with threadpool_limits(1, user_api="blas"):
        compare(1.03, lambda: RootFit(matrix, observations).loo_outputs(np.ones(1)), bare)


def test_whole_penalty_path_costs_less_than_the_decomposition_it_comes_from(compare):
    X, y = make_ringnorm(600, random_state=0)
    K, ones = RBF(gamma=0.05).block(X, X), np.ones(600)
    observations = Observations(y[:, None].astype(float), ones, ones, every_row(600))
    spectrum = decompose(K, ones)
    compare(0.05, lambda: loo_outputs(spectrum, observations, ALPHAS), lambda: scipy.linalg.eigh(K))


@pytest.mark.parametrize(("classes", "most", "usual"), [(2, 4, 0.87), (10, 8, 0.89)])
def test_brier_scores_of_calibrated_outputs_cost_a_few_softmaxes(compare, classes, most, usual):
    rng = np.random.default_rng(0)
    label = rng.integers(0, classes, 1000)
    Y = class_targets(label, classes)
    outputs = Y + np.geomspace(0.1, 2.0, len(ALPHAS))[:, None, None] * rng.normal(size=Y.shape)
    criterion = classification_criterion("brier", label, np.ones(1000), Y)
    logits = rng.normal(size=(len(ALPHAS), 1000, classes))

    def softmaxes():
        for _ in range(most):
            softmax(logits, axis=-1)

    with limit_threads(1):
        compare(usual, lambda: criterion(outputs), softmaxes, pairs=25)


@pytest.mark.parametrize(("dtype", "usual"), [(np.float64, 0.64), (np.float32, 0.35)])
def test_gaussian_block_is_no_slower_than_scikit_learn(compare, dtype, usual):
    X, _ = make_ringnorm(2000, random_state=0, dtype=dtype)
    kernel, Z = RBF(gamma=0.05), X[1000:]
    compare(usual, lambda: kernel.block(X, Z), lambda: rbf_kernel(X, Z, gamma=0.05))


def test_prediction_costs_little_more_than_its_kernel_block(compare):
    X, _ = make_ringnorm(3000, random_state=0)
    expansion = Expansion(RBF(gamma=0.05), X[:1000], np.ones((1000, 1)), np.zeros(1))
    compare(1.0, lambda: expansion(X), lambda: expansion.kernel.block(X, X[:1000]) @ expansion.coef)


D, M, BLOCK = 20, 600, 4096


@pytest.fixture(scope="module")
def many():
    """Rows, labels and centers in float32."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16 * BLOCK, D)).astype(np.float32)
    return X, np.sign(X[:, 0] * X[:, 1]), X[:M].copy()


def bare_values(X, Z):
    """The Gaussian kernel as one product and one exponential, and nothing checked."""
    gamma = np.float32(0.05)
    left = np.column_stack([2 * gamma * X, -gamma * (X**2).sum(axis=1), np.ones(len(X), X.dtype)])
    right = np.column_stack([Z, np.ones(len(Z), Z.dtype), -gamma * (Z**2).sum(axis=1)])
    K = left @ right.T
    return np.exp(K, out=K)


def bare_pass(fold, X):
    """fold(rows) for blocks of rows in two threads with one BLAS thread each, the results summed by each."""
    parts = [slice(i, i + BLOCK) for i in range(0, len(X), BLOCK)]

    def work(own):
        total = fold(own[0])
        for rows in own[1:]:
            total += fold(rows)
        return total

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, (parts[::2], parts[1::2])))


def bare_moments(X, y, Z):
    def fold(rows):
        K = bare_values(X[rows], Z)
        return np.column_stack([K.T @ K, K.sum(axis=0), y[rows] @ K]).astype(np.float64)

    return bare_pass(fold, X)


def test_moments_cost_little_more_than_their_bare_loop(compare, many):
    X, y, Z = many
    rows, fold = MemoryRows(X, y), MomentsOf(RBF(gamma=0.05), Z, np.float32)
    with threadpool_limits(2, user_api="blas"):
        compare(1.1, lambda: rows.reduce(fold), lambda: bare_moments(X, y, Z))


def test_leaving_rows_out_for_thirty_alphas_costs_at_most_two_and_a_half_passes(compare, many):
    X, y, Z = many
    rows, fold = MemoryRows(X, y), MomentsOf(RBF(gamma=0.05), Z, np.float32)
    spectrum = decompose_moments(rows.reduce(fold), RBF(gamma=0.05).block(Z, Z))
    leave = LooOutputsOf(RBF(gamma=0.05), Z, spectrum, spectrum.trace * np.logspace(-8, 0, 30))
    with threadpool_limits(2, user_api="blas"):
        compare(1.54, lambda: rows.reduce(leave), lambda: rows.reduce(fold))


@pytest.mark.parametrize(("alpha", "usual"), [(1.0, 2.0), ("loo", 2.4)])
def test_a_fit_adds_little_to_its_pass(compare, many, alpha, usual):
    X, y, Z = many
    rows, fold = MemoryRows(X, y), MomentsOf(RBF(gamma=0.05), Z, np.float32)
    model = KernelFisherClassifier(RBF(gamma=0.05), alpha=alpha, centers=Z, random_state=0)
    # Sample, precision test, factors and leave-one-out, whatever the number of rows; here there are few.
    compare(usual, lambda: model.fit(X, y), lambda: rows.reduce(fold))


def test_predicting_many_rows_costs_little_more_than_its_bare_loop(compare, many):
    X, _, Z = many
    # Enough rows that starting the threads, five milliseconds, does not count.
    X, coef = np.tile(X, (4, 1)), np.ones((M, 1), np.float32)
    with threadpool_limits(2, user_api="blas"):
        compare(
            1.0,
            lambda: combine(RBF(gamma=0.05), X, Z, coef),
            lambda: bare_pass(lambda rows: bare_values(X[rows], Z) @ coef, X),
        )


def test_contributions_cost_little_more_than_their_sums(compare):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 14))
    model = KernelRidgeRegressor(RBF(gamma=0.05), alpha=1.0).fit(X, X[:, 0])
    P, Q = rng.uniform(0.5, 1.0, size=(2, 14, 100_000))

    def bare():
        # A product over columns, and one quotient a column, at each of seven nodes, of 100 times 1000 pairs.
        for t in np.linspace(0.1, 0.9, 7):
            for some in range(0, 100_000, 4096):
                p, q = P[:, some : some + 4096], Q[:, some : some + 4096]
                F = q + t * (p - q)
                ((p - q) / F) @ F.prod(axis=0)

    compare(1.3, lambda: model.contributions(X[:1]), bare)


@pytest.fixture
def busy():
    """A busy process for each core."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    yield
    for process in processes:
        process.kill()
        process.wait()


def test_a_decomposition_beside_busy_processes_is_not_slower_on_all_threads_than_on_one(compare, busy):
    X, _ = make_ringnorm(1000, random_state=0)
    K = RBF(gamma=0.05).block(X, X)

    def decomposed(threads):
        with threadpool_limits(threads, user_api="blas"):
            eigen_psd(K.copy(order="F"))

    # Threads of BLAS would wait for each other more than ten times as long as they compute.
    compare(0.91, lambda: decomposed(os.cpu_count()), lambda: decomposed(1), pairs=5, clock=time.perf_counter)


def test_a_default_fit_beside_busy_processes_takes_at_most_three_times_as_long(request):
    X, y = make_ringnorm(1000, random_state=0)
    model = KernelFisherClassifier("rbf", random_state=0)
    quiet = min(seconds(lambda: model.fit(X, y)) for _ in range(3))
    request.getfixturevalue("busy")
    assert min(seconds(lambda: model.fit(X, y)) for _ in range(5)) < 3.0 * quiet
