"""What a kernel answers when it is asked about itself and about its rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics.pairwise import linear_kernel

from mercer import KernelFisherClassifier
from mercer._gram import Budget, gram
from mercer.centers import CandidateRows, ForwardSelection, KMeans
from mercer.errors import KernelError
from mercer.kernels import RBF, FromCallable, Linear, Nominal, Normalized, OnColumns, Precomputed, Wendland

FUNCTION = FromCallable(linear_kernel, psd=True)

# Kernels, what they take, whether they are symmetric for certain, whether they take means of rows.
ANSWERS = [
    (RBF(gamma=0.3), "vectors", True, True),
    (2.0 * RBF(gamma=0.3) + Normalized(Linear()), "vectors", True, True),
    (FUNCTION, "objects", False, False),
    (Normalized(3.0 * FUNCTION) * FUNCTION, "objects", False, False),
    (RBF(gamma=0.3) + FUNCTION, "vectors", False, False),
    (Nominal(), "columns", True, False),
    (RBF(gamma=0.3) + OnColumns(Linear(), [0], lengths=None), "columns", True, False),
    (FUNCTION * (Linear() + 2.0 * FUNCTION), "vectors", False, False),
    (Precomputed(), "values", False, False),
    (2.0 * Precomputed() + Precomputed() ** 2, "values", False, False),
]


@pytest.mark.parametrize(("kernel", "input_kind", "symmetric", "averages"), ANSWERS)
def test_kernels_say_what_they_take(kernel, input_kind, symmetric, averages):
    assert kernel.input_kind == input_kind
    assert (kernel.takes_vectors, kernel.takes_values) == (input_kind == "vectors", input_kind == "values")
    assert (kernel.symmetric, kernel.averages) == (symmetric, averages)


@pytest.mark.parametrize("kernel", [kernel for kernel, input_kind, *_ in ANSWERS if input_kind == "values"])
def test_rows_of_kernel_values_are_positions(kernel, X):
    K = X @ X.T
    rows = np.array([7, 2, 7])
    assert_array_equal(kernel.subset(K, rows), K[np.ix_(rows, rows)])
    assert_array_equal(kernel.centers(K), np.arange(150))
    assert_array_equal(kernel.centers(K, rows), rows)
    assert kernel.distinct(np.ones((3, 3))).n_points == 3


@pytest.mark.parametrize("kernel", [kernel for kernel, input_kind, *_ in ANSWERS if input_kind != "values"])
def test_rows_of_other_kernels_are_themselves(kernel, X):
    rows = np.array([7, 2, 7])
    assert_array_equal(kernel.subset(X, rows), X[rows])
    assert_array_equal(kernel.centers(X, rows), X[rows])
    assert kernel.centers(X) is X
    assert kernel.distinct(X[rows]).n_points == 2


def test_values_and_rows_cannot_be_the_parts_of_one_kernel():
    for kernel in (Precomputed() + RBF(), 2.0 * (FUNCTION * Precomputed())):
        with pytest.raises(KernelError, match=r"combines kernels for different rows, .*values"):
            _ = kernel.input_kind


def test_kernels_on_vectors_and_functions_of_vectors_are_fitted_together(X):
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = KernelFisherClassifier(RBF(gamma=0.3) + FUNCTION).fit(X, y)
    expected = KernelFisherClassifier(RBF(gamma=0.3) + Linear()).fit(X, y)
    assert_array_equal(model.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(X > 1.0, np.inf, X), y)


def test_a_function_that_is_not_symmetric_is_found_in_a_sum(X):
    lopsided = FromCallable(lambda X, Z: X[:, :1] + 0.0 * Z[:, 0])
    with pytest.raises(KernelError, match="not symmetric"):
        gram(RBF(gamma=0.3) + 2.0 * lopsided, X, budget=Budget(2.0**30))


def test_a_function_of_rows_is_not_asked_about_their_means(X):
    def known(A, B):
        assert all(any((row == x).all() for x in X) for row in (*A, *B))
        return linear_kernel(A, B)

    sample = CandidateRows(X, np.sign(X[:, :1]), np.ones(150))
    kernel, rng = RBF(gamma=0.3) + FromCallable(known), np.random.default_rng(0)
    with pytest.raises(KernelError, match="KMeans averages vectors"):
        KMeans().select(kernel, sample, 5, rng)
    assert ForwardSelection(n_candidates=20).select(kernel, sample, 5, rng).indices is not None


@pytest.mark.parametrize("gamma", [0.5, [0.5, 1.0, 0.0, 2.0]])
@pytest.mark.parametrize("kind", [RBF, Wendland])
def test_a_narrowed_kernel_has_a_multiple_of_gamma(kind, gamma):
    kernel = kind(gamma=gamma)
    assert_array_equal(kernel.narrowed(4.0).gamma, np.multiply(gamma, 4.0))
    assert kernel.gamma == gamma


@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma="median"), 2.0 * RBF(gamma=1.0), Precomputed()])
def test_a_kernel_without_a_number_gamma_is_not_narrowed(kernel):
    with pytest.raises(KernelError, match="has no gamma to multiply"):
        kernel.narrowed(2.0)
