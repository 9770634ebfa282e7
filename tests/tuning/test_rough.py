"""Rough fits: those of ridge regression in the span of few centers."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer._fitting.kernel_learning.evidence import LearningData, squared_problem
from mercer._fitting.selection.preliminary import MORE_CENTERS, PRELIMINARY_CENTERS, fit_roughly
from mercer._gram import Budget
from mercer.kernels import RBF

BUDGET = Budget(2.0**30)


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return LearningData(X, np.sin(2.0 * X[:, :1]) + 0.1 * rng.normal(size=(n, 1)), rng.uniform(0.5, 2.0, n))


def problem_of(data):
    return squared_problem(RBF(), data, data.Y, BUDGET)


@pytest.mark.slow
@pytest.mark.parametrize("n", [120, 2 * PRELIMINARY_CENTERS])
def test_left_out_outputs_are_those_of_fits_without_the_row(n):
    data = drawn(n)
    order = np.random.default_rng(1).permutation(n)
    fit = fit_roughly([RBF(gamma=5.0)], problem_of(data), order)
    kernel, Z = fit.expansion.kernel, np.asarray(fit.expansion.centers)
    K, A, w = kernel.block(data.X, Z), kernel.block(Z, Z), data.weight
    # The penalty follows from the stationarity of the fit: K'W(y - f) = alpha A c.
    f = fit.expansion(data.X)
    alpha = np.linalg.norm(K.T @ (w[:, None] * (data.Y - f))) / np.linalg.norm(A @ fit.expansion.coef)
    unit = np.minimum(w, 1.0)
    for row in (0, 7, n - 1):
        kept = w.copy()
        kept[row] -= unit[row]
        H = np.block([[K.T * kept @ K + alpha * A, (K.T @ kept)[:, None]], [(kept @ K)[None], kept.sum()]])
        solution = np.linalg.lstsq(H, np.append(K.T * kept @ data.Y, [kept @ data.Y], axis=0), rcond=1e-14)[0]
        assert_allclose(K[row] @ solution[:-1] + solution[-1], fit.loo[row], rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_the_width_is_found_from_anywhere():
    data = drawn(400)
    kernels = RBF().candidates(data.X)
    order = np.random.default_rng(1).permutation(400)
    every = fit_roughly(kernels, problem_of(data), order)
    near = fit_roughly(kernels, problem_of(data), order, replace(every, position=every.position + 2))
    assert near.position == every.position
    assert 0 < every.position < len(kernels) - 1


@pytest.mark.slow
def test_few_centers_are_not_all_rows():
    data = drawn(2 * PRELIMINARY_CENTERS)
    problem = problem_of(data)
    fit = fit_roughly(RBF().candidates(data.X), problem, np.arange(2 * PRELIMINARY_CENTERS))
    assert_allclose(fit.expansion.centers, problem.X[:PRELIMINARY_CENTERS])
    new = drawn(1000, seed=1)
    assert new.losses(fit.expansion).mean() < 0.1 * np.var(new.Y)


@pytest.mark.slow
def test_there_are_more_centers_where_they_matter():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(700, 3))
    rough = LearningData(X, np.sin(4.0 * X).prod(axis=1, keepdims=True), np.ones(700))
    smooth = LearningData(X, X[:, :1] + 0.1 * rng.normal(size=(700, 1)), np.ones(700))
    order = rng.permutation(700)
    found = [fit_roughly(RBF().candidates(X), problem_of(each), order).most_centers for each in (rough, smooth)]
    assert found == [MORE_CENTERS, PRELIMINARY_CENTERS]
