"""The first of several kinds of kernels, unless another is certainly better."""

import numpy as np
import pytest

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._fitting.selection.alternatives import best_alternative
from mercer._fitting.selection.path import Trial
from mercer._fitting.selection.search import best_of
from mercer.kernels import RBF, Laplacian, Matern

N = 100
SHARE = np.full(N, 1.0 / N)


def kinds_of(*kinds, widths=15):
    return [[kind(gamma=2.0**g) for g in range(widths)] for kind in kinds]


def trials_with(losses, best=7, tried=None):
    """Fits whose losses are given for each kind, and grow with the distance from the best width."""

    def trials_of(kernels):
        if tried is not None:
            tried.extend(kernels)
        found = []
        for kernel in kernels:
            here = losses[type(kernel)] + 0.1 * abs(np.log2(kernel.gamma) - best)
            found.append(Trial(kernel, np.ones(1), np.array([here.mean()]), here, SHARE))
        return found

    return trials_of


def chosen(losses, tried=None):
    kinds = kinds_of(*losses)
    trials = trials_with(losses), trials_with(losses, tried=tried)
    return best_alternative(kinds, *trials, n_points=N, n_centers=(50, 80))


def test_the_first_stays_where_the_difference_may_be_chance(rng):
    noise = rng.normal(size=N)
    first = 1.0 + rng.uniform(size=N)
    other = first + 0.3 * noise - 0.3 * noise.mean() - 0.02
    assert type(chosen({RBF: first, Laplacian: other}).candidates[0]) is RBF


def test_another_is_taken_where_it_is_certainly_better(rng):
    noise = rng.normal(size=N)
    first = 1.0 + rng.uniform(size=N)
    other = first + 0.3 * noise - 0.3 * noise.mean() - 0.1
    assert type(chosen({RBF: first, Laplacian: other}).candidates[0]) is Laplacian


def test_of_several_that_are_better_the_best_is_taken(rng):
    first = 1.0 + rng.uniform(size=N)
    found = chosen({RBF: first, Laplacian: first - 0.1, Matern: first - 0.2})
    assert type(found.candidates[0]) is Matern
    assert best_of(found.tried) == 7


def test_what_is_certainly_worse_is_tried_roughly_only(rng):
    first = 1.0 + rng.uniform(size=N)
    tried = []
    close = first + 0.1 * rng.normal(size=N)
    found = chosen({RBF: first, Laplacian: first + 0.5, Matern: close}, tried)
    assert {type(kernel) for kernel in tried} == {RBF, Matern}
    rough, finer = found.paths
    assert (rough.n_centers, finer.n_centers) == (50, 80)
    assert {type(kernel) for kernel in rough.kernels} == {RBF, Laplacian, Matern}
    assert len([kernel for kernel in rough.kernels if type(kernel) is Laplacian]) == 5
    assert {type(kernel) for kernel in finer.kernels} == {RBF, Matern}


@pytest.mark.slow
@pytest.mark.parametrize("model", [KernelFisherClassifier, KernelRidgeRegressor])
def test_a_rough_function_is_told_from_a_smooth_one(rng, model):
    X = rng.uniform(-1.0, 1.0, size=(400, 2))
    rough = np.where(X[:, 0] > 0.1, 1.0, -1.0) * np.where(X[:, 1] > -0.2, 1.0, -1.0)
    smooth = np.sin(3.0 * X[:, 0]) + X[:, 1]
    found = {
        name: model(["rbf", "laplacian"]).fit(X, y if model is KernelRidgeRegressor else y > 0).kernel_
        for name, y in (("rough", rough), ("smooth", smooth))
    }
    assert isinstance(found["rough"], Laplacian)
    assert isinstance(found["smooth"], RBF)


def test_what_few_centers_say_is_decided_by_all_of_them(rng):
    few, every = 1.0 + rng.uniform(size=(2, N))
    roughly = trials_with({RBF: few, Matern: few - 0.3, Laplacian: few + 0.5})
    asked = []

    def with_all(trials):
        asked.extend(type(trial.kernel) for trial in trials)
        return trials_with({RBF: every, Matern: every - 0.1, Laplacian: every - 0.3})([t.kernel for t in trials])

    found = best_alternative(
        kinds_of(RBF, Matern, Laplacian), roughly, roughly, with_all, n_points=N, n_centers=(50, 80)
    )
    assert asked == [RBF, Matern, Laplacian]
    assert type(found.candidates[0]) is Laplacian
    assert [path.n_centers for path in found.paths] == [50, None, 80]


@pytest.mark.slow
def test_a_rough_kernel_that_needs_many_centers_is_found(rng):
    X = rng.uniform(size=(1500, 6))
    y = np.abs(X - 0.5).sum(axis=1) + 0.2 * (X[:, 0] > X[:, 1]) + 0.02 * rng.normal(size=1500)
    kernel = KernelRidgeRegressor(["rbf", "laplacian"], random_state=0).fit(X, y).kernel_
    alone = {
        kind: KernelRidgeRegressor(kind, random_state=0).fit(X, y).loo_score_ for kind in ("rbf", "laplacian")
    }
    assert type(kernel) is (Laplacian if alone["laplacian"] > alone["rbf"] else RBF)


def test_where_a_factor_with_all_centers_fails_few_decide(rng):
    few = 1.0 + rng.uniform(size=N)
    trials = trials_with({RBF: few, Laplacian: few - 0.3})
    failed = trials_with({RBF: np.full(N, np.inf), Laplacian: few})
    found = best_alternative(
        kinds_of(RBF, Laplacian),
        trials,
        trials,
        lambda rough: failed([trial.kernel for trial in rough]),
        n_points=N,
        n_centers=(50, 80),
    )
    assert type(found.candidates[0]) is Laplacian
    assert [path.n_centers for path in found.paths] == [50, 80]
