"""Kernels are compared along the axes of their grid, and from good ones to their neighbors."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mercer._fitting.selection.path import Trial, TuningPath, joined, path_of
from mercer._fitting.selection.search import along_axes, best_of, climb, neighbors
from mercer.kernels import RBF, Laplacian, Linear, Normalized
from mercer.kernels._base import grid_shape

ALPHAS = np.array([1.0, 2.0])
LINE = [RBF(gamma=2.0**k) for k in range(9)]


def trial_of(kernel, score):
    losses = np.full((2, 4), score) + np.array([[0.0], [1.0]])
    return Trial.of(kernel, ALPHAS, losses, np.full(4, 0.25))


def searching(score, tried):
    """Trials that remember what was tried; ``score`` (position) is the least criterion of a kernel."""

    def found(some):
        tried.extend(some)
        return [trial_of(RBF(), score(g)) for g in some]

    return found


def test_climbing_ends_where_no_neighbor_is_better():
    tried = []
    found = climb({1, 4}, (9,), searching(lambda g: abs(g - 6.0), tried))
    assert best_of(found) == 6
    assert sorted(found) == sorted(tried) == [1, 3, 4, 5, 6, 7]


def test_one_parameter_is_tried_at_all_of_its_values():
    tried = []
    along_axes((9,), searching(lambda g: abs(g - 6.0), tried))
    assert sorted(tried) == list(range(9))


@pytest.mark.parametrize("shape", [(15, 15), (5, 7, 6)])
def test_several_parameters_are_varied_one_after_the_other(shape):
    goal = np.array([length - 2 for length in shape])
    tried = []

    def score(g):
        # A valley across the axes, so that the best value of one parameter depends on the others.
        apart = np.array(np.unravel_index(g, shape)) - goal
        return float(apart @ apart + 0.5 * apart[0] * apart[1])

    found = along_axes(shape, searching(score, tried))
    assert best_of(found) == np.ravel_multi_index(goal, shape)
    assert len(tried) == len(set(tried)) <= 3 * sum(shape) < prod(shape)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kernel", "shape"),
    [
        (RBF(gamma="loo"), (15,)),
        (RBF(gamma="loo") + RBF(gamma="loo"), (15, 15)),
        (RBF(gamma="loo") * Linear(), (15,)),
        (2.0 * (RBF(gamma="loo") + Laplacian(gamma="loo")), (15, 15)),
        (Normalized(RBF(gamma="loo") + Linear() * RBF(gamma="loo")), (15, 15)),
    ],
    ids=str,
)
def test_candidates_are_a_grid_whose_last_part_varies_fastest(kernel, shape, rng):
    X = rng.normal(size=(20, 2))
    kernels = kernel.candidates(X)
    assert grid_shape(kernels) == shape
    assert len(kernels) == prod(shape) == len(list(kernels))
    names = [name for name in kernels[0].get_params() if name.endswith("gamma")]
    gammas = np.array([[each.get_params()[name] for name in names] for each in kernels])
    order = np.lexsort(gammas.T[::-1])
    assert_array_equal(order, np.arange(len(kernels)))


def test_neighbors_differ_by_one_step_of_one_parameter():
    assert neighbors(0, (3,)) == {1}
    assert neighbors(4, (3, 3)) == {1, 3, 5, 7}
    assert neighbors(2, (3, 3)) == {1, 5}


def test_a_kernel_without_a_criterion_is_the_last_choice():
    found = climb({0, 1, 2}, (3,), searching(lambda g: np.nan if g < 2 else 1.0, []))
    assert best_of(found) == 2
    path = path_of((found[g] for g in sorted(found)), 7, 3)
    assert path.best == (2, 0)
    assert_array_equal(path.least, [np.inf, np.inf, 1.0])


def path(kernel, score):
    return TuningPath([kernel], ALPHAS[None], np.array([[score, score + 1.0]]), 7, 3)


def test_a_path_is_its_kernels_joined():
    whole = joined([path(kernel, float(g)) for g, kernel in enumerate(LINE)])
    assert whole.kernels == LINE
    assert_array_equal(whole.alphas, np.tile(ALPHAS, (9, 1)))
    assert_array_equal(whole.least, np.arange(9.0))


def test_a_path_says_how_many_centers_a_kernel_had_at_most():
    found = [replace(path(kernel, 1.0), n_centers=m) for kernel, m in zip(LINE, (5, 8, 3))]
    assert joined(found).n_centers == 8
    assert joined([replace(each, n_centers=None) for each in found]).n_centers is None
