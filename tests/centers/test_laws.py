"""Laws of every way to choose centers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from mercer.centers import (
    CandidateRows,
    ForwardSelection,
    Given,
    KMeans,
    Leverage,
    RPCholesky,
    Uniform,
    as_selector,
)
from mercer.centers._kmeans import ROWS_FOR_BATCHES
from mercer.errors import KernelError
from mercer.kernels import RBF, FromCallable, Linear, Polynomial, Precomputed, pairwise
from mercer.rows._distinct import distinct_rows

KERNEL = RBF(gamma=0.3)
OF_ROWS = [
    Uniform(),
    RPCholesky(),
    RPCholesky(block_size=1),
    Leverage(),
    Leverage(alpha=0.1),
    ForwardSelection(),
    ForwardSelection(criterion="loo", n_candidates=50, n_means=0),
]
ALL = [*OF_ROWS, ForwardSelection(n_candidates=30, n_means=10), KMeans(), KMeans(per_class=True)]

every_selector = pytest.mark.parametrize("selector", ALL, ids=repr)
every_selector_of_rows = pytest.mark.parametrize("selector", OF_ROWS, ids=repr)


def seeded(seed=0):
    return np.random.default_rng(seed)


def sample_of(X, label, weight=None):
    weight = np.ones(len(label)) if weight is None else weight
    return CandidateRows(X, np.eye(label.max() + 1)[label], weight, label)


@pytest.fixture
def sample(frozen):
    """120 rows of three classes of 72, 36 and 12 rows around different points."""
    label = np.repeat([0, 1, 2], [72, 36, 12])
    X = seeded(1).normal(size=(120, 3)) + 1.5 * np.eye(3)[label]
    return sample_of(frozen(X), label)


def letters(a, b):
    """Sum over letters of the products of their counts: an inner product."""
    return float(sum(a.count(c) * b.count(c) for c in "abcd"))


def strings(n=60):
    letters_of = seeded(2).integers(0, 4, size=(n, 6))
    return ["".join("abcd"[i] for i in row) for row in letters_of]


@pytest.mark.sampled(22)
@every_selector
@pytest.mark.parametrize("m", [1, 3, 20, 119])
def test_there_are_as_many_different_centers_as_asked_for(selector, sample, m):
    centers = selector.select(KERNEL, sample, m, seeded())
    assert len(centers.rows) == m
    assert distinct_rows(np.asarray(centers.rows)).n_points == m


@every_selector
def test_there_are_at_most_as_many_centers_as_distinct_rows(selector, sample):
    X = np.concatenate([sample.X[:15], sample.X[:10], sample.X[:15]])
    label = np.tile([0, 1, 1, 0, 0], 8)
    centers = selector.select(KERNEL, sample_of(X, label), 100, seeded())
    assert distinct_rows(np.asarray(centers.rows)).n_points == len(centers.rows) == 15


@every_selector_of_rows
def test_centers_are_the_rows_at_their_indices(selector, sample):
    centers = selector.select(KERNEL, sample, 12, seeded())
    assert_array_equal(centers.rows, sample.X[centers.indices])


@every_selector
def test_one_seed_gives_one_choice(selector, sample):
    first, second = (selector.select(KERNEL, sample, 12, seeded(7)).rows for _ in range(2))
    assert_array_equal(first, second)


@every_selector
def test_other_seeds_give_other_choices(selector, sample):
    if isinstance(selector, ForwardSelection):
        selector = clone(selector).set_params(n_candidates=30)
    first, second = (selector.select(KERNEL, sample, 12, seeded(seed)).rows for seed in (0, 1))
    assert not np.array_equal(first, second)


@every_selector
def test_rows_of_weight_zero_are_not_there(selector, sample):
    weight = (np.arange(120) % 3 > 0).astype(float)
    kept = weight > 0
    without = sample_of(sample.X[kept], sample.label[kept])
    found = selector.select(KERNEL, sample_of(sample.X, sample.label, weight), 20, seeded())
    assert_allclose(found.rows, selector.select(KERNEL, without, 20, seeded()).rows, rtol=1e-9)
    assert found.indices is None or weight[found.indices].all()


@every_selector
def test_a_row_of_weight_two_is_two_rows(selector, sample):
    twice = np.arange(120) % 2 == 0
    weighted = sample_of(sample.X, sample.label, 1.0 + twice)
    repeated = sample_of(
        np.concatenate([sample.X, sample.X[twice]]), np.concatenate([sample.label, sample.label[twice]])
    )
    found = selector.select(KERNEL, weighted, 20, seeded())
    assert_allclose(found.rows, selector.select(KERNEL, repeated, 20, seeded()).rows, rtol=1e-9)


@every_selector
def test_single_precision_stays_single_precision(selector, sample):
    X = sample.X.astype(np.float32)
    centers = selector.select(KERNEL, sample_of(X, sample.label), 20, seeded())
    assert centers.rows.dtype == np.float32
    assert len(centers.rows) == 20


@pytest.mark.parametrize("selector", [Uniform(), KMeans(per_class=True)], ids=repr)
@pytest.mark.parametrize("m", [3, 10, 50])
def test_every_class_has_its_share_of_the_centers(selector, sample, m):
    # Far apart, so that a mean belongs to the class of the nearest row.
    X = sample.X + 100.0 * np.eye(3)[sample.label]
    rows = selector.select(KERNEL, sample_of(X, sample.label), m, seeded()).rows
    count = np.bincount(rows.argmax(axis=1), minlength=3)
    assert (count >= 1).all()
    assert_allclose(count, m * np.array([0.6, 0.3, 0.1]), atol=1.0)


def test_more_classes_than_centers_give_one_center_to_each_of_the_heaviest(sample):
    indices = Uniform().select(KERNEL, sample, 2, seeded()).indices
    assert set(sample.label[indices]) == {0, 1}


@every_selector_of_rows
def test_centers_can_be_any_objects(selector):
    X, label = strings(), np.arange(60) % 2
    kernel = FromCallable(pairwise(letters), psd=True)
    centers = selector.select(kernel, sample_of(X, label), 4, seeded())
    assert centers.rows == [X[i] for i in centers.indices]
    assert len(set(centers.rows)) == 4


@every_selector_of_rows
def test_centers_of_kernel_values_are_positions(selector, sample):
    K = KERNEL.block(sample.X, sample.X)
    values = selector.select(Precomputed(), CandidateRows(K, sample.Y, sample.weight), 10, seeded())
    assert_array_equal(values.rows, values.indices)
    assert len(np.unique(values.rows)) == 10


@pytest.mark.parametrize("selector", [RPCholesky(), ForwardSelection()], ids=repr)
def test_rows_may_be_sparse(selector, sample):
    X = sparse.csr_matrix(np.where(sample.X > 0, sample.X, 0.0))
    centers = selector.select(KERNEL, sample_of(X, sample.label), 10, seeded())
    assert sparse.issparse(centers.rows)
    assert centers.rows.shape == (10, 3)


@pytest.mark.parametrize("selector", [RPCholesky(), ForwardSelection()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rank_of_the_kernel_bounds_the_centers(selector, sample, dtype):
    centers = selector.select(Linear(), sample_of(sample.X.astype(dtype), sample.label), 50, seeded())
    assert len(centers.rows) == 3


@every_selector
def test_targets_need_no_classes(selector, sample):
    regression = CandidateRows(sample.X, np.sin(sample.X), sample.weight)
    assert len(selector.select(KERNEL, regression, 10, seeded()).rows) == 10


@every_selector
def test_one_row_is_one_center(selector, sample):
    one = sample_of(sample.X[[5, 5, 5]], np.array([0, 1, 1]))
    assert_array_equal(selector.select(KERNEL, one, 3, seeded()).rows, sample.X[[5]])


@pytest.mark.parametrize("kernel", [FromCallable(pairwise(letters)), Precomputed()], ids=["strings", "values"])
def test_k_means_asks_for_vectors(kernel, sample):
    with pytest.raises(KernelError, match=r"KMeans averages vectors"):
        KMeans().select(kernel, sample, 3, seeded())


def test_k_means_asks_for_dense_vectors(sample):
    with pytest.raises(KernelError, match=r"means are not sparse, but the rows are csr_matrix"):
        KMeans().select(KERNEL, sample_of(sparse.csr_matrix(sample.X), sample.label), 3, seeded())


def test_k_means_in_batches_finds_the_means_of_clusters_far_apart():
    label = np.arange(ROWS_FOR_BATCHES + 1000) % 3
    means = 30.0 * np.eye(3)
    X = means[label] + seeded(3).normal(size=(len(label), 3))
    found = KMeans(n_init=3).select(KERNEL, sample_of(X, label), 3, seeded()).rows
    # The mean of a cluster of 7000 rows is known to 0.012; batches of 1024 rows know it less well.
    assert_allclose(found[found.argmax(axis=1).argsort()], means, atol=0.3)


@pytest.mark.parametrize("selector", [s for s in ALL if not isinstance(s, ForwardSelection)], ids=repr)
def test_only_forward_selection_chooses_the_number(selector, sample):
    with pytest.raises(ValueError, match=rf"{type(selector).__name__} cannot choose the number of centers"):
        selector.select(KERNEL, sample, None, seeded())


@every_selector
def test_no_centers_are_too_few(selector, sample):
    with pytest.raises(ValueError, match=r"n_centers=0; it must be at least 1"):
        selector.select(KERNEL, sample, 0, seeded())


def test_weights_must_not_all_be_zero(sample):
    with pytest.raises(ValueError, match="all weights of the sample are zero"):
        Uniform().select(KERNEL, sample_of(sample.X, sample.label, np.zeros(120)), 3, seeded())


@every_selector
def test_a_selector_is_its_parameters(selector):
    assert clone(selector).get_params() == selector.get_params()


def test_given_centers_are_kept_in_order_without_copies(sample):
    rows = sample.X[[7, 3, 7, 1, 3]]
    assert_array_equal(as_selector(rows).select(KERNEL, sample, None, seeded()).rows, sample.X[[7, 3, 1]])


def test_given_centers_may_be_objects_or_positions(sample):
    assert Given(["b", "a", "b"]).select(KERNEL, sample, 1, seeded()).rows == ["b", "a"]
    assert_array_equal(Given(np.array([4, 2, 4])).select(Precomputed(), sample, 1, seeded()).rows, [4, 2])


def test_a_selector_stands_for_itself():
    selector = Uniform()
    assert as_selector(selector) is selector


@pytest.mark.parametrize("centers", ["uniform", 10, None])
def test_what_is_neither_selector_nor_rows_is_refused(centers):
    with pytest.raises(TypeError, match="it must be an integer, a selector such as ForwardSelection"):
        as_selector(centers)


def nystrom_loss(kernel, X, indices):
    """tr(K - K_S K_SS^+ K_S')."""
    K = kernel.block(X, X)
    K_S = K[:, indices]
    return np.trace(K - K_S @ np.linalg.pinv(K[np.ix_(indices, indices)], rcond=1e-12, hermitian=True) @ K_S.T)


@pytest.mark.parametrize(
    "selector", [RPCholesky(), RPCholesky(block_size=1), RPCholesky(block_size=100)], ids=repr
)
def test_the_trace_of_random_pivots_is_what_they_capture(selector, sample):
    centers = selector.select(KERNEL, sample, 30, seeded())
    assert (centers.trace > 0).all()
    for m in (1, 7, 30):
        left = nystrom_loss(KERNEL, sample.X, centers.indices[:m]) / 120
        assert_allclose(1.0 - centers.trace[:m].sum(), left, rtol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("m", [40, 60])
def test_random_pivots_do_as_well_as_the_best_matrix_of_two_thirds_their_rank(sample, m):
    values = np.linalg.eigvalsh(KERNEL.block(sample.X, sample.X))[::-1]
    losses = [
        nystrom_loss(KERNEL, sample.X, RPCholesky().select(KERNEL, sample, m, seeded(i)).indices)
        for i in range(10)
    ]
    # The theorem asks for more pivots than rank; two thirds is what this spectrum shows, with a margin of 20 %.
    assert np.mean(losses) < values[2 * m // 3 :].sum()


@pytest.mark.slow
def test_blocks_of_proposals_do_not_change_the_distribution():
    X = np.array([[0.0], [0.1], [2.0], [5.0]])
    sample = CandidateRows(X, np.zeros((4, 1)), np.array([1.0, 1.0, 2.0, 3.0]))
    found = {
        block: np.array([RPCholesky(block).select(KERNEL, sample, 2, rng).indices for _ in range(1500)])
        for block, rng in ((1, seeded(0)), (6, seeded(1)))
    }
    pairs = {block: np.bincount(4 * p[:, 0] + p[:, 1], minlength=16) / 1500 for block, p in found.items()}
    # Four standard errors of the difference of two shares.
    assert_allclose(pairs[1], pairs[6], atol=4 * np.sqrt(2 * 0.25 / 1500))


def test_leverage_from_all_rows_is_the_exact_leverage(sample):
    from mercer.centers._leverage import leverage_scores

    K = KERNEL.block(sample.X, sample.X)
    exact = np.diag(K @ np.linalg.inv(K + 0.1 * np.eye(120)))
    scores = leverage_scores(KERNEL, sample.X, np.ones(120), np.arange(120), degrees=1.0, alpha=0.1)
    assert_allclose(scores, exact, rtol=1e-6)


def test_leverage_has_the_degrees_of_freedom_asked_for(sample):
    from mercer.centers._leverage import leverage_scores

    scores = leverage_scores(KERNEL, sample.X, np.ones(120), np.arange(120), degrees=17.0)
    assert_allclose(scores.sum(), 17.0, rtol=1e-6)


def test_leverage_prefers_lonely_rows():
    X = np.concatenate([0.01 * seeded().normal(size=(200, 1)), 10.0 + 5.0 * np.arange(5.0)[:, None]])
    sample = CandidateRows(X, np.zeros((205, 1)), np.ones(205))
    lonely = [(Leverage().select(KERNEL, sample, 12, seeded(i)).indices >= 200).sum() for i in range(10)]
    assert np.mean(lonely) > 3.0


def test_a_kernel_without_length_has_no_pivots(sample):
    with pytest.raises(KernelError, match="cannot be factored"):
        RPCholesky().select(0.0 * Polynomial(), sample, 3, seeded())
