"""Moments of what transformations change are explicit sums, add over blocks, and say what a function did wrong."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from mercer._gram.coordinates import Coordinates
from mercer._gram.moments import MomentsOf
from mercer._gram.tangent_covariance import DifferencesOf, Transformation
from mercer.kernels import RBF
from mercer.rows import MemoryRows
from mercer.rows._base import Block

KERNEL = RBF(gamma=0.4)


def stretched(X):
    return 1.1 * X


def overwritten(X):
    X[:, 0] += 0.2
    return X


@pytest.fixture
def rows(rng, frozen):
    return frozen(rng.normal(size=(50, 3))), frozen(rng.uniform(0.2, 2.0, 50))


def fold(X, *functions, coordinates=None):
    transformations = tuple(Transformation(f, 1.0 + i, f"noise[{i}]") for i, f in enumerate(functions))
    return DifferencesOf(transformations, MomentsOf(KERNEL, X[:6], np.float64, coordinates))


def naive(X, w, *functions):
    """G, s of explicit differences."""
    Z = X[:6]
    D = [KERNEL.block(f(X.copy()), Z) - KERNEL.block(X, Z) for f in functions]
    G = sum((1.0 + i) * d.T @ (w[:, None] * d) for i, d in enumerate(D))
    return G, sum((1.0 + i) * w @ d for i, d in enumerate(D))


def test_moments_are_weighted_sums_of_products_of_differences(rows):
    X, w = rows
    found = fold(X, stretched, overwritten)(Block(X, None, w, 0))
    G, s = naive(X, w, stretched, overwritten)
    assert_allclose(found.G, G, atol=1e-14)
    assert_allclose(found.s, s, atol=1e-14)
    assert found.n == pytest.approx(w.sum())
    assert found.n_rows == 50


def test_moments_add_over_blocks_and_survive_a_file(rows):
    X, w = rows
    whole = fold(X, stretched, overwritten)
    found = MemoryRows(X, None, w, block_rows=7).reduce(pickle.loads(pickle.dumps(whole)))
    assert_allclose(found.G, whole(Block(X, None, w, 0)).G, atol=1e-14)
    assert found.n == pytest.approx(w.sum())


def test_in_coordinates_products_are_those_of_feature_space(rows):
    X, w = rows
    R = np.linalg.cholesky(KERNEL.block(X[:6], X[:6])).T
    found = fold(X, stretched, coordinates=Coordinates.at(R, np.zeros(6)))(Block(X, None, w, 0))
    G, _ = naive(X, w, stretched)
    assert_allclose(R.T @ found.G @ R, G, atol=1e-13)


def test_sparse_rows_have_the_sums_of_dense_ones(rows):
    X, w = rows
    expected = fold(X, stretched)(Block(X, None, w, 0))
    for kind in (sparse.csr_matrix, sparse.csr_array):
        S = kind(X)
        for function in (stretched, lambda S: (1.1 * S).toarray()):
            assert_allclose(fold(S, function)(Block(S, None, w, 0)).G, expected.G, atol=1e-13)


def test_rows_in_single_precision_stay_so(rows):
    X = rows[0].astype(np.float32)
    assert Transformation(lambda X: X.astype(np.float64) + 0.1, 1.0, "noise")(X).dtype == np.float32


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda X: X[:-1], r"noise\[0\] returned an array of shape \(49, 3\) for rows of shape \(50, 3\)"),
        (lambda X: X[:, :2], r"noise\[0\] returned an array of shape \(50, 2\)"),
        (lambda X: None, r"noise\[0\] returned"),
        (lambda X: "rows", r"noise\[0\] returned str instead of rows"),
        (lambda X: X + 1j, r"noise\[0\] returned ndarray instead of rows of real numbers"),
        (lambda X: np.where(X > 1.0, np.nan, X), r"noise\[0\] returned values that are not finite"),
    ],
)
def test_a_function_that_returns_something_else_is_named(rows, function, match):
    X, w = rows
    with pytest.raises(ValueError, match=match):
        fold(X, function)(Block(X, None, w, 0))
