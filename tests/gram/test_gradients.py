"""Sums of products of derivatives over rows."""

import numpy as np
from numpy.testing import assert_allclose

from mercer._gram.gradients import GradientsOf
from mercer.kernels import RBF
from mercer.rows import Block, MemoryRows


def test_sums_are_those_of_products_of_derivatives(rng):
    X, Z, coef, weight = rng.normal(size=(30, 3)), rng.normal(size=(8, 3)), rng.normal(size=(8, 2)), rng.random(30)
    kernel = RBF(gamma=0.4)
    found = GradientsOf(kernel, Z, coef)(Block(X, None, weight, 0))
    slopes = kernel.gradient(X, Z, coef)
    assert_allclose(found.n, weight.sum())
    assert_allclose(found.products, np.einsum("i,ail,bil->lab", weight, slopes, slopes), rtol=1e-12, atol=1e-14)


def test_sums_add_over_blocks_of_rows(rng):
    X, Z, coef = rng.normal(size=(100, 3)), rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    fold = GradientsOf(RBF(gamma=0.4), Z, coef)
    whole, parts = fold(Block(X, None, None, 0)), MemoryRows(X, np.zeros(100), block_rows=7).reduce(fold)
    assert whole.n == parts.n == 100
    assert_allclose(parts.products, whole.products, rtol=1e-12, atol=1e-12)


def test_rows_in_single_precision_are_summed_in_double(rng):
    X, Z, coef = rng.normal(size=(50, 3)), rng.normal(size=(8, 3)), rng.normal(size=(8, 1))
    fold = GradientsOf(RBF(gamma=0.4), Z.astype(np.float32), coef)
    single, double = fold(Block(X.astype(np.float32), None, None, 0)), fold(Block(X, None, None, 0))
    assert single.products.dtype == np.float64
    # Rows are rounded to seven digits.
    assert_allclose(single.products, double.products, rtol=1e-5)
