"""Kernels are compared in a line or in a grid, whoever compares them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mercer.kernels import RBF, Linear, Normalized
from mercer.tuning.path import TuningPath, joined
from mercer.tuning.search import climb, search

ALPHAS = np.array([1.0, 2.0])
LINE = [RBF(gamma=2.0**k) for k in range(9)]


def path_of(kernel, score):
    return TuningPath([kernel], ALPHAS[None], np.array([[score, score + 1.0]]), 7, 3)


def searching(score, tried):
    """A search that remembers what it has tried; ``score`` (kernel) is the least criterion of a kernel."""

    def found(kernels):
        tried.extend(kernels)
        return search(kernels, lambda kernel: path_of(kernel, score(kernel)))

    return found


def test_climbing_ends_where_no_neighbor_is_better():
    tried = []
    path = climb(LINE, {1, 4}, searching(lambda kernel: abs(np.log2(kernel.gamma) - 6.0), tried))
    assert path.kernels[path.best[0]].gamma == 2.0**6
    assert [kernel.gamma for kernel in path.kernels] == [2.0**k for k in (1, 3, 4, 5, 6, 7)]
    assert len(tried) == len(path.kernels)
    assert (path.n_points, path.n_centers) == (7, 3)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(gamma="loo") + RBF(gamma="loo"),
        RBF(gamma="loo") * Linear(),
        2.0 * (RBF(gamma="loo") + RBF(gamma="loo")),
        Normalized(RBF(gamma="loo") + Linear()),
    ],
    ids=str,
)
def test_numbers_of_a_grid_are_no_neighbors(kernel, rng):
    kernels, tried = kernel.candidates(rng.normal(size=(20, 2))), []
    scores = {id(each): float(g) for g, each in enumerate(kernels)}
    path = climb(kernels, {3, 9}, searching(lambda each: scores[id(each)], tried))
    assert tried == path.kernels == [kernels[3], kernels[9]]


def test_a_kernel_without_a_criterion_is_the_last_choice():
    path = climb(LINE[:3], {0, 1, 2}, searching(lambda kernel: np.nan if kernel.gamma < 3.0 else 1.0, []))
    assert path.best == (2, 0)
    assert_array_equal(path.least, [np.inf, np.inf, 1.0])
    assert path.leaders() == {0, 1, 2}


def test_a_path_is_its_kernels_joined():
    whole = joined([path_of(kernel, float(g)) for g, kernel in enumerate(LINE)])
    again = joined(whole.single())
    assert again.kernels == whole.kernels == LINE
    assert_array_equal(again.alphas, np.tile(ALPHAS, (9, 1)))
    assert_array_equal(again.scores, whole.scores)


def test_a_path_says_how_many_centers_a_kernel_had_at_most():
    found = [replace(path_of(kernel, 1.0), n_centers=m) for kernel, m in zip(LINE, (5, 8, 3))]
    assert joined(found).n_centers == 8
    assert joined([replace(path, n_centers=None) for path in found]).n_centers is None
