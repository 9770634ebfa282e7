"""Parameters that are words, and the numbers that data give them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import pdist

from mercer.errors import KernelError
from mercer.kernels import RBF, Laplacian, Linear, Normalized, Polynomial, Sigmoid
from mercer.kernels._length_scales import MAX_ROWS
from mercer.kernels._vectors.gamma import GAMMA_GRID

WORDS = ["median", "scale", "loo"]


def gammas(kernel, X, weight=None):
    return np.array([candidate.gamma for candidate in kernel.candidates(X, weight)])


def test_default_is_not_resolved_and_candidates_are(kind, X):
    assert not kind().resolved
    assert len(kind().candidates(X)) == len(GAMMA_GRID)
    assert all(candidate.resolved for candidate in kind().candidates(X))


def test_candidates_keep_the_other_parameters(X):
    from mercer.kernels import Matern

    assert {candidate.nu for candidate in Matern(nu=2.5).candidates(X)} == {2.5}


def test_median_is_one_over_the_median_distance(X):
    # 150 rows have an odd number of pairs, 11175, so that the median is one of the distances.
    assert_allclose(gammas(RBF(gamma="median"), X), 1 / np.median(pdist(X, "sqeuclidean")), rtol=1e-12)
    assert_allclose(gammas(Laplacian(gamma="median"), X), 1 / np.median(pdist(X, "cityblock")), rtol=1e-12)


def test_loo_is_an_ascending_grid_around_the_median(kind, X):
    found = gammas(kind(gamma="loo"), X)
    assert_allclose(found, GAMMA_GRID * gammas(kind(gamma="median"), X), rtol=1e-15)
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("word", WORDS)
def test_weight_is_repetition(kind, word, X):
    weight = np.random.default_rng(2).integers(0, 4, len(X))
    repeated = np.random.default_rng(3).permutation(np.repeat(X, weight, axis=0))
    assert_allclose(gammas(kind(gamma=word), X, weight), gammas(kind(gamma=word), repeated), rtol=1e-12)
    assert_allclose(gammas(kind(gamma=word), X, 0.1 * weight), gammas(kind(gamma=word), repeated), rtol=1e-12)


def test_weight_is_repetition_beyond_the_rows_that_are_compared():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(MAX_ROWS + 300, 3))
    weight = rng.integers(0, 3, len(X))
    repeated = rng.permutation(np.repeat(X, weight, axis=0))
    assert_array_equal(gammas(RBF(gamma="median"), X, weight), gammas(RBF(gamma="median"), repeated))
    assert_allclose(
        gammas(RBF(gamma="median"), X),
        1 / np.median(pdist(X, "sqeuclidean")),
        rtol=0.1,
        err_msg="sampling error",
    )


@pytest.mark.parametrize("word", WORDS)
def test_rows_of_weight_zero_do_not_matter(kind, word, X):
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    changed = np.where(weight[:, None] > 0, X, 1e9)
    assert_array_equal(gammas(kind(gamma=word), X, weight), gammas(kind(gamma=word), changed, weight))


@pytest.mark.parametrize("word", WORDS)
def test_words_mean_the_same_for_sparse_rows(kind, word, X):
    X = np.where(X > 0.5, X, 0.0)
    weight = np.arange(len(X)) % 4
    assert_allclose(
        gammas(kind(gamma=word), sparse.csr_matrix(X), weight),
        gammas(kind(gamma=word), X, weight),
        rtol=1e-12,
    )


@pytest.mark.parametrize("word", WORDS)
def test_words_do_not_see_units(kind, word, X, Z):
    (first, *_), (second, *_) = kind(gamma=word).candidates(X), kind(gamma=word).candidates(1000.0 * X)
    assert_allclose(first.block(X, Z), second.block(1000.0 * X, 1000.0 * Z), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("word", WORDS)
def test_words_do_not_see_a_common_offset(kind, word, X):
    assert_allclose(gammas(kind(gamma=word), X + 1e6), gammas(kind(gamma=word), X), rtol=1e-8)


@pytest.mark.parametrize("word", ["median", "scale"])
def test_gamma_is_one_if_all_rows_coincide(kind, word):
    assert_array_equal(gammas(kind(gamma=word), np.ones((5, 2))), [1.0])
    assert_array_equal(gammas(kind(gamma=word), np.ones((1, 2))), [1.0])


def test_signed_zeros_are_the_same_row():
    X = np.array([[0.0], [-0.0], [2.0]])
    assert_array_equal(gammas(RBF(gamma="median"), X), [0.25])


def test_candidates_of_combinations_are_all_combinations(X):
    kernel = RBF() + 2.0 * Normalized(Polynomial(gamma="scale")) + Linear() * Laplacian()
    assert not kernel.resolved
    candidates = kernel.candidates(X)
    assert len(candidates) == len(GAMMA_GRID) ** 2
    assert all(candidate.resolved for candidate in candidates)
    assert_array_equal(
        [candidate.get_params()["rbf__gamma"] for candidate in candidates],
        np.repeat(gammas(RBF(), X), len(GAMMA_GRID)),
    )
    assert repr(kernel) == repr(RBF() + 2.0 * Normalized(Polynomial(gamma="scale")) + Linear() * Laplacian())


def test_words_must_be_replaced_before_a_block(kind, X):
    for use in (kind().diag, lambda X: kind().block(X, X), lambda X: Sigmoid().block(X, X)):
        with pytest.raises(KernelError, match="candidates"):
            use(X)


def test_unknown_word_is_an_error_that_lists_the_words(kind, X):
    with pytest.raises(KernelError, match='"median", "scale", "loo"'):
        kind(gamma="mean").candidates(X)
    with pytest.raises(KernelError, match='"scale"'):
        Sigmoid(gamma="loo").candidates(X)


@pytest.mark.parametrize(
    ("weight", "message"),
    [(np.ones(3), "150 rows"), (np.zeros(150), "positive"), (np.r_[-1.0, np.ones(149)], "nonnegative")],
)
def test_impossible_weights_are_errors(weight, message, X):
    with pytest.raises(KernelError, match=message):
        RBF().candidates(X, weight)
