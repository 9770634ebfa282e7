"""Moments of rows and noise: what they are in feature space, to which precision, and that they add."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer._fitting.subspaces.components import sample_rows, start_subspace
from mercer._fitting.subspaces.oriented import NoiseRows, start_oriented
from mercer._gram import Budget
from mercer._gram.tangent_covariance import Transformation
from mercer._linalg.rank import whiten
from mercer.kernels import RBF
from mercer.rows import MemoryRows

BUDGET = Budget.from_parameter(1.0)


def shifted(X):
    return X + 0.01


def begun(X, gamma, *, samples=(), centers="auto"):
    """The state of a fit to rows X, with a shift of weight 2 as noise unless there are noise rows."""
    rng = np.random.default_rng(0)
    looked = sample_rows(MemoryRows(X, block_rows=17), centers, rng, 0)
    moves = () if samples else (Transformation(shifted, 2.0, "noise"),)
    state = start_subspace(lambda X, w: RBF(gamma=gamma), looked, None, centers, None, rng, BUDGET, 0, moves)
    return start_oriented(state, samples, 0)


def images(state, X):
    """Orthonormal coordinates (n, m) of rows."""
    return whiten(state.rows.factor.R, state.rows.kernel.block(X, state.rows.centers).T).T


# With the second width the kernel matrix has a condition number of 1e10, the most that its factor keeps.
@pytest.mark.parametrize("gamma", [1.0, 0.01])
def test_matrices_are_those_of_images_also_where_centers_are_nearly_dependent(rng, gamma):
    X = rng.normal(size=(90, 2))
    state = begun(X, gamma)
    phi, D = images(state, X), images(state, shifted(X)) - images(state, X)
    S, N = np.cov(phi.T, bias=True), 2.0 * D.T @ D / len(X)
    assert_allclose(state.rows.covariance(), S, atol=1e-9 * np.trace(S))
    assert_allclose(state.noise(), N, atol=1e-9 * np.trace(N))


def test_noise_rows_close_to_each_other_keep_their_digits(rng):
    X = rng.normal(size=(60, 2))
    Z = X[0] + 1e-6 * rng.normal(size=(40, 2))
    state = begun(X, 0.5, samples=(NoiseRows(MemoryRows(Z, block_rows=7), 3.0, None),))
    phi = images(state, Z)
    phi -= phi.mean(axis=0)
    N = 3.0 * phi.T @ phi / len(Z)
    # Kernel values have errors of 1e-16 where their differences are 1e-6, and R^-1 amplifies them.
    assert_allclose(state.noise(), N, atol=1e-5 * np.trace(N))


def test_rows_that_are_added_and_removed_leave_the_matrices_of_the_others(rng):
    X = rng.normal(size=(80, 2))
    make = partial(begun, gamma=1.0, centers=X[:15])
    whole, first = make(X), make(X[:50])
    added = first.added(MemoryRows(X[50:]), 0)
    for found, expected in ((added, whole), (added.removed(MemoryRows(X[50:]), 0), first)):
        assert_allclose(found.noise(), expected.noise(), atol=1e-12)
        assert_allclose(found.rows.covariance(), expected.rows.covariance(), atol=1e-10)
