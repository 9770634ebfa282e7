"""Laws that every kernel on objects obeys: strings, sets, trees and text."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import mercer.kernels as names
from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.centers import Given
from mercer.kernels import (
    RBF,
    BagOfWords,
    FisherKernel,
    HiddenMarkov,
    Intersection,
    KmerSpectrum,
    Linear,
    LocalAlignment,
    MarginalizedKernel,
    MeanMap,
    Mismatch,
    Normalized,
    SharedSubsets,
    Subsequence,
    Substrings,
    Subtrees,
    Tanimoto,
)


def words(rng, n):
    """Strings over a small alphabet, some of them empty."""
    return ["".join(rng.choice(list("acgt"), size)) for size in rng.integers(0, 12, n)]


HIDDEN = HiddenMarkov([0.6, 0.4], [[0.7, 0.3], [0.2, 0.8]], [[0.3, 0.3, 0.2, 0.2], [0.1, 0.1, 0.7, 0.1]], "acgt")
ON_STRINGS = [
    FisherKernel(HIDDEN, whiten=None),
    MarginalizedKernel(HIDDEN),
    Normalized(MarginalizedKernel(HIDDEN)),
    Normalized(LocalAlignment()),
    Subsequence(length=20),
    KmerSpectrum(k=20),
    KmerSpectrum(k=1000, min_k=3, decay=0.5),
    KmerSpectrum(k=2),
    KmerSpectrum(k=3, min_k=1, aligned=True),
    KmerSpectrum(k=4, min_k=2, decay=0.7),
    Mismatch(k=3, mismatches=1, alphabet="acgt"),
    Subsequence(length=2, decay=0.6),
    Subsequence(length=7, decay=0.6),
    Substrings(decay=0.5),
    LocalAlignment(beta=0.3),
    Normalized(KmerSpectrum(k=2)) + 2.0 * Normalized(Subsequence(length=2)) * Substrings(),
]
ON_SETS = [Intersection(), SharedSubsets(weight=0.5), Tanimoto(), Normalized(Intersection()) + Tanimoto()]


def collections(rng, n):
    return [frozenset(rng.choice(15, size, replace=False).tolist()) for size in rng.integers(0, 9, n)]


def bags(rng, n):
    return [rng.normal(size=(size, 2)).round(1) for size in rng.integers(0, 4, n)]


def tree(rng, depth=3):
    if depth == 0 or rng.random() < 0.3:
        return str(rng.choice(list("xy")))
    return (str(rng.choice(list("AB"))), *(tree(rng, depth - 1) for _ in range(rng.integers(1, 3))))


def forest(rng, n):
    return [tree(rng) for _ in range(n)]


def texts(rng, n):
    return [" ".join(rng.choice(["to", "be", "or", "not", "that", "is"], size)) for size in rng.integers(0, 6, n)]


def learned(kernel, rows):
    """The kernel as other rows set it."""
    (kernel,) = kernel.candidates(rows(np.random.default_rng(7), 40))
    return kernel


ON_TEXTS = [
    BagOfWords(idf=None),
    BagOfWords("char", (1, 3), sublinear=True, idf=None),
    learned(BagOfWords(topics="rows"), texts),
    learned(Normalized(BagOfWords(topics=3)), texts),
]
STRUCTURES = [
    *((kernel, texts) for kernel in ON_TEXTS),
    *((kernel, words) for kernel in ON_STRINGS),
    (learned(FisherKernel("markov", size=2, whiten="full"), words), words),
    *((kernel, collections) for kernel in ON_SETS),
    *((kernel, bags) for kernel in (MeanMap(RBF(gamma=0.5)), Normalized(MeanMap(RBF(gamma=0.5) + Linear())))),
    *((kernel, forest) for kernel in (Subtrees(0.5), Subtrees(rooted=True), Normalized(Subtrees()))),
]


@pytest.fixture(params=STRUCTURES, ids=lambda case: str(case[0]))
def case(request):
    kernel, rows = request.param
    return clone(kernel), partial(rows, np.random.default_rng(5))


@pytest.fixture
def kernel(case):
    return case[0]


@pytest.fixture
def X(case):
    return case[1](60)


@pytest.fixture
def Z(case):
    return case[1](25)


def test_gram_matrix_is_symmetric_and_positive_semidefinite(kernel, X):
    X = X + X[:10]
    K = kernel.block(X, X)
    assert_array_equal(K, K.T)
    eigenvalues = np.linalg.eigvalsh(K)
    assert kernel.positive_semidefinite
    assert kernel.symmetric
    assert eigenvalues[0] >= -1e-13 * eigenvalues[-1]


@pytest.mark.sampled(20)
def test_block_is_transposed_when_arguments_change_places(kernel, X, Z):
    assert_allclose(kernel.block(X, Z), kernel.block(Z, X).T, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(6)
def test_prepared_centers_give_the_bits_of_the_block(kernel, X, Z):
    evaluate = kernel.evaluator(Z)
    for rows in (X[:20], X[20:21], X[21:]):
        expected = kernel.block(rows, Z)
        assert expected.dtype == np.float64
        assert_array_equal(evaluate(rows), expected)
        assert_array_equal(evaluate(rows, np.full(expected.shape, np.nan)), expected)
        assert_array_equal(pickle.loads(pickle.dumps(evaluate))(rows), expected)


@pytest.mark.sampled(21)
def test_diag_is_diagonal_of_block(kernel, X):
    assert_allclose(kernel.diag(X), np.diagonal(kernel.block(X, X)), rtol=1e-12)


@pytest.mark.sampled(10)
def test_block_of_parts_is_part_of_block(kernel, X, Z):
    K = kernel.block(X, Z)
    assert_allclose(kernel.block(X[20:50], Z[7:19]), K[20:50, 7:19], rtol=1e-12, atol=1e-12)
    assert_allclose(kernel.block(X, X), kernel.block(X, list(X)), rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(19)
def test_block_may_be_overwritten(kernel, X, Z):
    K = kernel.block(X, Z)
    expected = K.copy()
    K[:] = np.nan
    assert_array_equal(kernel.block(X, Z), expected)


def test_no_rows_have_no_values(kernel, X):
    assert kernel.block([], X).shape == (0, len(X))
    assert kernel.block(X, []).shape == (len(X), 0)
    assert kernel.diag([]).shape == (0,)


@pytest.mark.sampled(7)
def test_rows_may_be_in_a_tuple_or_an_array(kernel, X, Z):
    expected = kernel.block(X, Z)
    array = np.empty(len(X), dtype=object)
    array[:] = X
    for rows in (tuple(X), array):
        assert_array_equal(kernel.block(rows, Z), expected)
        assert_array_equal(kernel.diag(rows), kernel.diag(X))


@pytest.mark.sampled(6)
def test_clone_pickle_and_expression_give_the_same_kernel(kernel, X, Z):
    K = kernel.block(X, Z)
    # What rows have set cannot be written.
    written = [] if "<" in repr(kernel) else [eval(repr(kernel), vars(names))]
    for twin in (clone(kernel), pickle.loads(pickle.dumps(kernel)), *written):
        assert repr(twin) == repr(kernel)
        assert_array_equal(twin.block(X, Z), K)
    assert type(kernel).__name__ in kernel._repr_html_()


def test_constructor_stores_parameters_untouched(kernel):
    params = kernel.get_params(deep=False)
    twin = type(kernel)(**params)
    assert all(getattr(twin, name) is value for name, value in params.items())


def test_resolved_kernel_is_its_only_candidate(kernel, X):
    assert kernel.resolved
    (candidate,) = kernel.candidates(X)
    assert repr(candidate) == repr(kernel)


def targets(kernel, X):
    """Two classes that the kernel can tell apart, with some labels wrong."""
    score = kernel.block(X, X[3:4]).ravel()
    y = score > np.median(score)
    y[::7] = ~y[::7]
    return y.astype(int)


# Equal rows are held out together, as refitting without one of them would not do.
def distinct(X):
    seen = [x.tobytes() if isinstance(x, np.ndarray) else x for x in X]
    return [x for i, x in enumerate(X) if seen[i] not in seen[:i]]


@pytest.mark.sampled(3)
def test_leave_one_out_equals_refitting(kernel, X):
    X = distinct(X)
    y = np.array(targets(kernel, X), float)
    model = KernelRidgeRegressor(kernel, alpha=0.5).fit(X, y)
    for i in (0, 3, len(X) - 1):
        others = [x for j, x in enumerate(X) if j != i]
        refitted = KernelRidgeRegressor(kernel, alpha=0.5).fit(others, np.delete(y, i))
        assert_allclose(model.loo_prediction_[i], refitted.predict(X[i : i + 1])[0], rtol=1e-6, atol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("centers", ["all", 12])
def test_classifiers_are_fitted_to_objects(kernel, X, centers):
    X = distinct(X)
    y = targets(kernel, X)
    model = KernelFisherClassifier(kernel, centers=centers, random_state=0).fit(X, y)
    assert model.score(X, y) >= max(y.mean(), 1 - y.mean()) - 1e-12
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


@pytest.mark.sampled(1)
def test_batches_give_the_fit_of_all_rows(kernel, X):
    X = distinct(X)
    y, settings = targets(kernel, X), {"alpha": 1.0, "centers": Given(X[:12])}
    whole = KernelFisherClassifier(kernel, **settings).fit(X, y)
    parts = KernelFisherClassifier(kernel, **settings).partial_fit(X[:30], y[:30], classes=[0, 1])
    parts.partial_fit(X[30:], y[30:])
    assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-6, atol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("container", [list, tuple, np.array, lambda rows: np.array(rows, dtype=object)])
@pytest.mark.parametrize("kernel", [KmerSpectrum("loo"), Subsequence("loo"), Mismatch("loo", 1)], ids=str)
def test_lengths_are_chosen_by_leave_one_out_of_strings(kernel, container):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ab"), 8)) + ("aba" if i % 2 else "bab") for i in range(40)]
    y = np.arange(40) % 2
    model = KernelFisherClassifier(Normalized(kernel), random_state=0).fit(container(X), y)
    assert model.kernel_.resolved
    by_hand = KernelFisherClassifier(model.kernel_, random_state=0).fit(X, y)
    assert_allclose(model.decision_function(container(X)), by_hand.decision_function(X), rtol=1e-6, atol=1e-8)
