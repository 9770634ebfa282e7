"""Evaluators of a kernel at fixed centers give the bits of its blocks, and pay for the centers once."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from mercer._gram.blocks import evaluator
from mercer.kernels import RBF, Linear, Matern, Normalized, Sum
from mercer.kernels._matrices import FoldedCenters

# Kernels and how many parts of each are functions of squared distances.
COMPOSED = [
    (2.0 * RBF(gamma=0.3), 1),
    (RBF(gamma=0.3) + Matern(gamma=0.1) + Linear(), 2),
    (RBF(gamma=0.3) * Matern(gamma=0.1), 2),
    (RBF(gamma=0.3) ** 3, 1),
    (Normalized(3.0 * RBF(gamma=0.3)), 1),
    (0.5 * (RBF(gamma=0.3) + Linear()) ** 2 + Normalized(RBF(gamma=1.0) + Linear()), 2),
]
composed = pytest.mark.parametrize(
    ("kernel", "n_distances"), COMPOSED, ids=[str(kernel) for kernel, _ in COMPOSED]
)


def blocks(X, size=30):
    return [X[start : start + size] for start in range(0, len(X), size)]


def test_prepared_centers_give_the_bits_of_the_block(kernel, X, Z):
    evaluate = kernel.evaluator(Z)
    for rows in blocks(X):
        expected = kernel.block(rows, Z)
        assert_array_equal(evaluate(rows), expected)
        assert_array_equal(evaluate(rows, np.full(expected.shape, np.nan)), expected)
        assert_array_equal(pickle.loads(pickle.dumps(evaluate))(rows), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_prepared_centers_give_the_bits_of_the_block_in_any_precision(kernel, X, Z, dtype):
    X, Z = X.astype(dtype), Z.astype(dtype)
    found = kernel.evaluator(Z)(X, np.empty((len(X), len(Z)), dtype))
    assert found.dtype == kernel.block(X, Z).dtype
    assert_array_equal(found, kernel.block(X, Z))


def test_prepared_sparse_centers_give_the_bits_of_the_block(kernel, X, Z):
    X, Z = (sparse.csr_matrix(np.where(A > 0, A, 0.0)) for A in (X, Z))
    assert_array_equal(kernel.evaluator(Z)(X), kernel.block(X, Z))


@composed
def test_centers_of_every_part_are_prepared_once(monkeypatch, kernel, n_distances, X, Z):
    prepared = []
    of = FoldedCenters.of
    monkeypatch.setattr(FoldedCenters, "of", lambda Z, gamma: prepared.append(len(Z)) or of(Z, gamma))
    evaluate = kernel.evaluator(Z)
    for rows in blocks(X):
        evaluate(rows)
    assert prepared == [len(Z)] * n_distances


class Counted(Linear):
    """Counts the rows whose k(x, x) is computed."""

    def __init__(self, rows=None):
        super().__init__()
        self.rows = rows

    def diag(self, X):
        self.rows.append(len(X))
        return super().diag(X)


def test_a_normalized_kernel_compares_every_center_with_itself_once(X, Z):
    kernel = Normalized(2.0 * Counted(rows=[]))
    evaluate = kernel.evaluator(Z)
    for rows in blocks(X):
        evaluate(rows)
    assert kernel.kernel.kernel.rows == [len(Z), *[len(rows) for rows in blocks(X)]]


class Doubled(RBF):
    """A subclass that computes something else than its parent."""

    def block(self, X, Z):
        return 2.0 * super().block(X, Z)


class Inherited(Doubled):
    """A subclass with the block of its parent."""


class Shifted(Sum):
    """A sum that adds more than its parts."""

    def block(self, X, Z):
        return super().block(X, Z) + 1.0


@pytest.mark.parametrize(
    "kernel",
    [Doubled(gamma=0.3), Inherited(gamma=0.3), 2.0 * Doubled(gamma=0.3), Shifted([("rbf", RBF(gamma=0.3))])],
)
def test_a_kernel_that_computes_its_own_block_is_evaluated_by_it(kernel, X, Z):
    assert_array_equal(evaluator(kernel, Z)(X), kernel.block(X, Z))


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in COMPOSED[:3]], ids=str)
def test_multiples_sums_and_products_are_made_in_the_room_they_are_given(kernel, X, Z):
    workspace = np.empty((len(X), len(Z)))
    assert kernel.evaluator(Z)(X, workspace) is workspace
