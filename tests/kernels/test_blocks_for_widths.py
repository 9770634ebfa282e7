"""Kernels that differ in numbers only share the work that does not depend on these."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from mercer.kernels import RBF, Laplacian, Linear, Matern, Normalized, Precomputed, Wendland
from mercer.kernels._matrices import FoldedCenters


class Shifted(RBF):
    """A user's kernel with a block of its own."""

    def block(self, X, Z):
        return super().block(X, Z) + 1.0


COMPOSED = [
    RBF(gamma="loo"),
    Laplacian(gamma="loo"),
    Matern(nu=1.5, gamma="loo"),
    Wendland(gamma="loo", dimension=4),
    Shifted(gamma="loo"),
    RBF(gamma="loo") + Linear(),
    2.0 * Shifted(gamma="loo") * Laplacian(gamma="median"),
    (Linear() + RBF(gamma="loo")) ** 2,
    Normalized(Linear() + RBF(gamma="loo")) + RBF(gamma=[0.3, 0.0, 0.1, 1.0]),
]
candidates = pytest.mark.parametrize("words", COMPOSED, ids=str)


def tolerance(dtype):
    """Distances for gamma = 1 are rounded before they are multiplied, relative to norms of about 30."""
    return 100 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("to", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_kernel_is_its_own_relative(kernel, X, Z, to, dtype):
    X, Z = (to(np.where(A > -0.5, A, 0.0).astype(dtype)) for A in (X, Z))
    expected = kernel.block(X, Z)
    found = kernel.blocks_for_widths(X, Z)(kernel)
    assert found.dtype == expected.dtype
    assert_allclose(found, expected, rtol=tolerance(dtype), atol=tolerance(dtype) * np.abs(expected).max())


@candidates
def test_every_candidate_is_a_relative_of_the_first(words, X, Z):
    kernels = words.candidates(X)
    values = kernels[0].blocks_for_widths(X, Z)
    for kernel in kernels:
        expected = kernel.block(X, Z)
        # The widest distances are 16 times the median: as many more units of rounding.
        assert_allclose(values(kernel), expected, atol=1e-11 * np.abs(expected).max())


@candidates
def test_values_of_one_relative_do_not_change_those_of_the_next(words, X, Z):
    kernels = words.candidates(X)
    values = kernels[0].blocks_for_widths(X, Z)
    first = values(kernels[0])
    kept = first.copy()
    values(kernels[-1])
    first *= 2.0
    assert_array_equal(values(kernels[0]), kept)


def test_distances_are_computed_once_for_all_widths(monkeypatch, X, Z):
    kernels = RBF(gamma="loo").candidates(X)
    folded = []
    of = FoldedCenters.of
    monkeypatch.setattr(FoldedCenters, "of", lambda Z, gamma: folded.append(gamma) or of(Z, gamma))
    values = kernels[0].blocks_for_widths(X, Z)
    for kernel in kernels:
        values(kernel)
    assert folded == [1.0]


def test_a_kernel_matrix_is_its_own_relative(X):
    K = RBF(gamma=0.3).block(X, X)
    kernel = Precomputed()
    columns = kernel.centers(K, np.array([3, 1, 7]))
    assert_array_equal(kernel.blocks_for_widths(K, columns)(kernel), kernel.block(K, columns))
