"""Kernels made from others: naive formulas, words, what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelFisherClassifier
from mercer.errors import KernelError
from mercer.kernels import (
    ANOVA,
    RBF,
    After,
    AllSubsets,
    Bilinear,
    Conformal,
    Constant,
    Exp,
    FromCallable,
    GaussianOf,
    Linear,
    Matern,
    Normalized,
    pairwise,
)
from mercer.kernels._vectors.gamma import GAMMA_GRID

B = np.array([[2.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.0], [0.0, 0.2, 0.0, 3.0]])


def factor(X):
    return np.asarray(X)[:, 0]


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


LETTERS = FromCallable(pairwise(shared_letters), psd=True)
NAIVE = [
    (Constant(2.5), lambda x, z: 2.5),
    (Exp(0.5 * Linear()), lambda x, z: np.exp(0.5 * x @ z)),
    (GaussianOf(Linear(), gamma=0.3), lambda x, z: np.exp(-0.3 * (x - z) @ (x - z))),
    (GaussianOf(RBF(gamma=1.0), gamma=2.0), lambda x, z: np.exp(-4.0 * (1.0 - np.exp(-(x - z) @ (x - z))))),
    (Bilinear(B), lambda x, z: x @ B @ z),
    (After(Linear(), np.exp), lambda x, z: np.exp(x) @ np.exp(z)),
    (Conformal(Linear(), factor), lambda x, z: x[0] * (x @ z) * z[0]),
    (Conformal(Constant(), factor), lambda x, z: x[0] * z[0]),
    (AllSubsets(), lambda x, z: np.prod(1.0 + x * z)),
]


@pytest.mark.parametrize(("kernel", "naive"), NAIVE, ids=[type(kernel).__name__ for kernel, _ in NAIVE])
def test_block_is_the_formula(kernel, naive, X, Z):
    X = X[:20]
    assert_allclose(kernel.block(X, Z), [[naive(x, z) for z in Z] for x in X], rtol=1e-10, atol=1e-12)


def test_gaussian_of_the_linear_kernel_is_the_gaussian_kernel(X, Z):
    assert_allclose(GaussianOf(Linear(), gamma=0.3).block(X, Z), RBF(gamma=0.3).block(X, Z), rtol=1e-11)


def test_normalized_exponential_is_a_gaussian_in_feature_space(X, Z):
    gaussian = GaussianOf(Matern(gamma=0.3), gamma=0.5).block(X, Z)
    assert_allclose(Normalized(Exp(Matern(gamma=0.3))).block(X, Z), gaussian, rtol=1e-12)


def test_all_subsets_are_the_subsets_of_every_size(X, Z):
    every = sum(ANOVA(degree).block(X, Z) for degree in range(5))
    assert_allclose(AllSubsets().block(X, Z), every, rtol=1e-10, atol=1e-10)
    sets = np.array([[1, 1, 0, 1], [0, 1, 1, 1]])
    assert_array_equal(AllSubsets().block(sets, sets), 2.0 ** (sets @ sets.T))


def test_words_of_a_gaussian_are_those_of_distances_in_feature_space(X):
    (median,) = GaussianOf(Linear(), gamma="median").candidates(X)
    assert median.gamma == pytest.approx(RBF(gamma="median").candidates(X)[0].gamma)
    gammas = [kernel.gamma for kernel in GaussianOf(Linear()).candidates(X)]
    assert_allclose(gammas, median.gamma * GAMMA_GRID)
    weight = np.arange(150) % 3
    (weighted,) = GaussianOf(Linear(), gamma="median").candidates(X, weight)
    assert weighted.gamma == pytest.approx(RBF(gamma="median").candidates(X, weight)[0].gamma)


def test_gaussian_of_strings_has_its_width_chosen():
    words = ["kernel", "kernels", "colonel", "fisher", "fishers", "fissure"] * 3
    y = [0, 0, 0, 1, 1, 1] * 3
    model = KernelFisherClassifier(GaussianOf(LETTERS)).fit(words, y)
    assert isinstance(model.kernel_.gamma, float)
    assert model.predict(["kernel", "fisherman"]).tolist() == [0, 1]


def test_relatives_of_combined_kernels_are_their_blocks(X, Z):
    for kernel in (GaussianOf(Linear()), After(RBF(), np.tanh), Conformal(RBF(), factor)):
        one, *_, other = kernel.candidates(X)
        assert_allclose(one.blocks_for_widths(X, Z)(other), other.block(X, Z), rtol=1e-10, atol=1e-14)


def test_width_after_a_function_is_that_of_its_results(X):
    (kernel,) = After(RBF(gamma="median"), np.exp).candidates(X)
    assert kernel.kernel.gamma == RBF(gamma="median").candidates(np.exp(X))[0].gamma


def test_constant_goes_with_any_rows():
    assert_array_equal((LETTERS + Constant(3.0)).block(["ab"], ["b", "c"]), [[4.0, 3.0]])
    assert (Constant() + Linear()).input_kind == "vectors"
    assert Constant().symmetric


def test_bilinear_kernel_claims_what_its_matrix_keeps():
    assert Bilinear(B).positive_semidefinite
    assert not Bilinear(np.diag([1.0, -1.0])).positive_semidefinite
    assert Bilinear(np.ones((2, 2))).positive_semidefinite


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Constant(-1.0), "value=-1.0"),
        (GaussianOf(Linear()), 'gamma="loo" of GaussianOf'),
        (GaussianOf(Linear(), gamma=-1.0), "gamma=-1.0"),
        (Bilinear([[0.0, 1.0], [0.0, 0.0]]), "not symmetric"),
        (Bilinear(np.eye(3)), r"shape \(3, 3\), but rows have 4 features"),
        (After(Linear(), lambda X: X[:3]), "made 3 rows of 150"),
        (Conformal(Linear(), lambda X: X), r"shape \(150, 4\) for 150 rows"),
        (Conformal(Linear(), lambda X: np.full(150, np.nan)), "not finite"),
    ],
)
def test_impossible_wrappings_are_errors_when_used(kernel, message, X):
    with pytest.raises(ValueError, match=message):
        kernel.block(X, X)


def test_gaussian_of_many_kernels_is_refused(X):
    with pytest.raises(KernelError, match="stands for 15 kernels"):
        GaussianOf(RBF()).candidates(X)
    with pytest.raises(KernelError, match='gamma="scale" is not known to GaussianOf'):
        GaussianOf(Linear(), gamma="scale").candidates(X)
