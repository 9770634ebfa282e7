"""Models that go on: what fades, leaves and comes later, and what is refused."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.centers import Uniform
from mercer.datasets import make_banana, make_sinc
from mercer.kernels import RBF, Polynomial

KERNEL = RBF(gamma=2.0)
GRID = np.stack(np.meshgrid(np.linspace(-2, 2, 5), np.linspace(-2, 2, 5)), axis=-1).reshape(-1, 2)
LINE = np.linspace(-9, 9, 13)[:, None]


@pytest.fixture(scope="module")
def banana():
    return make_banana(600, random_state=0)


@pytest.fixture(scope="module")
def sinc():
    return make_sinc(600, random_state=0)


def classifier(**choices):
    return KernelFisherClassifier(KERNEL, **{"alpha": 1.0, "centers": GRID, "random_state": 0, **choices})


def regressor(**choices):
    return KernelRidgeRegressor(RBF(gamma=0.3), **{"alpha": 0.1, "centers": LINE, "random_state": 0, **choices})


@pytest.mark.slow
def test_the_sample_follows_what_decay_leaves(rng):
    """Labels turn around after half of the stream; what is left of the first half is 0.8 ** 20."""
    model = classifier(loo_rows=200)
    for k in range(40):
        X = rng.normal(size=(100, 2))
        y = (X[:, 0] > 0) != (k < 20)
        model.partial_fit(X, y.astype(int), classes=[0, 1], decay=0.8)
    X = rng.normal(size=(1000, 2))
    accuracy = model.score(X, (X[:, 0] > 0).astype(int))
    assert accuracy > 0.9
    assert abs(model.loo_score_ - accuracy) < 0.05
    assert (model.loo_index_ >= 2000).mean() > 0.95


def test_a_sample_that_fades_judges_like_all_rows(sinc):
    """Rows drawn by what is left of them, against all rows with their weights."""
    some, every = regressor(loo_rows=150), regressor(loo_rows=None)
    for model in (some, every):
        for k in range(6):
            rows = slice(100 * k, 100 * k + 100)
            model.partial_fit(sinc[0][rows], sinc[1][rows], decay=0.5)
    assert len(some.loo_index_) == 150
    assert len(every.loo_index_) == 600
    assert_allclose(some.predict(LINE), every.predict(LINE), rtol=1e-12)
    # A mean square of 150 residuals is known to a tenth.
    assert_allclose(some.noise_std_, every.noise_std_, rtol=0.15)


@pytest.mark.slow
def test_noise_after_decay_is_that_of_the_rows_that_count():
    """With decay 0.5 and batches of 30 rows it is as if there were 90 rows, of which 13 centers take a sixth."""
    found = []
    for seed in range(25):
        model, draws = regressor(alpha=1e-6, loo_rows=None), np.random.default_rng(seed)
        for _ in range(9):
            X = draws.uniform(-9, 9, size=(30, 1))
            model.partial_fit(X, draws.normal(size=30), decay=0.5)
        found.append(model.noise_std_**2)
    # Standard deviation 0.03 of the mean; if all 270 rows were counted it would be 0.89.
    assert abs(np.mean(found) - 1.0) < 0.07


@pytest.mark.slow
def test_intervals_after_decay_are_as_wide_as_recent_residuals(rng):
    model = regressor(loo_rows=500)
    for k in range(30):
        X = rng.uniform(-9, 9, size=(200, 1))
        model.partial_fit(X, rng.normal(scale=5.0 if k < 15 else 1.0, size=200), decay=0.7)
    X, y = rng.uniform(-9, 9, size=(2000, 1)), rng.normal(size=2000)
    low, high = model.predict_interval(X, coverage=0.8).T
    assert abs(((low < y) & (y < high)).mean() - 0.8) < 0.06
    assert_allclose(model.noise_std_, 1.0, rtol=0.1)
    # What is not known of f adds a little.
    std = model.predict_std(X)
    assert model.noise_std_ < std.min() < std.max() < 1.25 * model.noise_std_


@pytest.mark.slow
def test_a_window_that_slides_judges_by_its_rows(rng):
    X = rng.normal(size=(4000, 2))
    y = (X[:, 0] > 0) != (np.arange(4000) < 2000)
    model = classifier(loo_rows=100).fit(X[:1000], y[:1000])
    for first in range(1000, 4000, 200):
        model.partial_fit(X[first : first + 200], y[first : first + 200])
        model.remove(X[first - 1000 : first - 800], y[first - 1000 : first - 800])
    assert model.loo_index_.min() >= 3000
    assert 60 < len(model.loo_index_) <= 100
    assert model.loo_score_ > 0.9


def test_rows_that_repeat_do_not_empty_the_sample(rng):
    X = rng.integers(0, 3, size=(5000, 2)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=5000) > 2).astype(int)
    model = classifier(loo_rows=500).fit(X, y).remove(X[:2500], y[:2500])
    assert 180 < len(model.loo_index_) < 320
    assert abs(model.loo_score_ - model.score(X[2500:], y[2500:])) < 0.08


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (lambda X, y: (X[:5] + 0.5, y[:5]), "row 0 with weight 1 is not in the model"),
        (lambda X, y: (X[:5], -y[:5]), "row 0 with weight 1 is not in the model"),
        (lambda X, y: (X[:5], y[:5], np.full(5, 2.0)), "row 0 with weight 2 is not in the model"),
        (lambda X, y: (X[np.flatnonzero(y == 1)[np.arange(400) % 300]], np.ones(400, int)), "rows of label 1"),
        (lambda X, y: (np.tile(X, (2, 1)), np.tile(y, 2)), "cannot remove rows of weight 1200"),
    ],
    ids=["rows", "labels", "weights", "class", "all"],
)
def test_rows_that_never_joined_can_not_leave(banana, gone, words):
    X, y = banana
    model = classifier().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=re.escape(words)):
        model.remove(*gone(X, y))
    assert_array_equal(model.predict_proba(X), before)


def test_targets_larger_than_all_can_not_leave(sinc):
    X, y = sinc
    with pytest.raises(ValueError, match="sums of squares"):
        regressor(loo_rows=50).fit(X, y).remove(X[:1], [1e3])


def test_rows_leave_in_another_precision(banana):
    X, y = banana
    expected = classifier().fit(X[:400], y[:400])
    model = classifier().fit(X, y).remove(X[400:].astype(np.float32), y[400:])
    assert_array_equal(model.loo_index_, np.arange(400))
    assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("begun", "change", "words"),
    [
        ({}, {"kernel": RBF(gamma=1.0)}, r"kernel__gamma was 2\.0 for the first rows and is 1\.0 now"),
        ({}, {"kernel__gamma": 1.0}, r"kernel__gamma was 2\.0"),
        ({}, {"kernel": Polynomial()}, "kernel.* was .* for the first rows"),
        ({}, {"penalty": "coef"}, "penalty was 'rkhs' for the first rows and is 'coef' now"),
        ({}, {"class_weight": "balanced"}, "class_weight was None"),
        ({}, {"class_weight": {-1: 1.0, 1: 2.0}}, "class_weight was None"),
        ({}, {"centers": GRID[:20]}, r"centers was an array of shape \(25, 2\).* shape \(20, 2\)"),
        ({}, {"centers": 7}, "centers was an array .* and is 7 now"),
        ({"centers": 20}, {"centers": 30}, "centers was 20"),
        ({"centers": Uniform(20)}, {"centers__n_centers": 30}, "centers__n_centers was 20"),
    ],
    ids=str,
)
def test_what_sums_depend_on_does_not_change_between_rows(banana, begun, change, words):
    X, y = banana
    for call in ("partial_fit", "remove"):
        model = clone(classifier(**begun)).partial_fit(X, y).set_params(**change)
        with pytest.raises(ValueError, match=words):
            getattr(model, call)(X[:100], y[:100])
        model.fit(X, y)
        getattr(model, call)(X[:100], y[:100])


@pytest.mark.slow
def test_parameters_of_the_solution_may_change_between_rows(banana):
    X, y = banana
    model = classifier().partial_fit(X[:300], y[:300])
    model.set_params(alpha=0.1, threshold="error", kernel=RBF(gamma=2.0), centers=GRID.copy())
    assert model.partial_fit(X[300:], y[300:]).alpha_ == 0.1
    named = KernelFisherClassifier("rbf", centers=20, random_state=0).partial_fit(X[:300], y[:300])
    assert named.set_params(kernel__gamma="loo").partial_fit(X[300:], y[300:]).score(X, y) > 0.8


def test_of_first_rows_that_fail_nothing_is_left(banana):
    X, y = banana
    model = classifier()
    with pytest.raises(ValueError, match="one class"):
        model.partial_fit([(X, np.ones(600))])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert model.partial_fit(X, y).score(X, y) > 0.8


def test_rows_that_are_refused_leave_the_model_as_it_was(banana):
    X, y = banana
    model = classifier().partial_fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([(np.full((3, 2), np.nan), y[:3])])
    assert_array_equal(model.predict_proba(X), before)


def test_batches_may_be_overwritten_afterwards(banana):
    X, y = banana
    expected = classifier().partial_fit(X, y).loo_outputs_
    buffer, model = X.copy(), classifier()
    model.partial_fit(buffer, y)
    buffer[:] = 0.0
    assert_array_equal(model.loo_outputs_, expected)


def test_rows_of_which_a_part_leaves_are_still_there(sinc):
    X, y = sinc
    model = regressor().fit(X, y).remove(X, y, np.full(600, 0.5)).remove(X[:300], y[:300], np.full(300, 0.5))
    assert model.moments_.n_rows == model.report_.n_rows == 300
    assert_allclose(model.predict(X), regressor().fit(X[300:], y[300:], np.full(300, 0.5)).predict(X), atol=1e-8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("decay", [1.0, 0.9])
@pytest.mark.parametrize("parts", [1, 4])
def test_of_equal_rows_those_of_the_removed_weight_leave(sinc, rng, decay, parts):
    X, y = sinc[0][:20].repeat(3, 0), sinc[1][:20].repeat(3)
    weight, order = rng.uniform(0.2, 3.0, 60), rng.permutation(60)
    gone = np.flatnonzero(np.arange(60) % 3 == 1)
    stay = np.setdiff1d(np.arange(60), gone)
    model = regressor().fit(X[order], y[order], weight[order])
    never = regressor().fit(X[stay], y[stay], decay * weight[stay])
    if decay < 1:
        model.partial_fit(X[:1], y[:1], [0.5], decay=decay).remove(X[:1], y[:1], [0.5])
    for some in np.array_split(gone, parts):
        model.remove(X[some], y[some], decay * weight[some])
    assert model.moments_.n_rows == len(model.loo_index_) == 40
    assert_allclose(model.loo_score_, never.loo_score_, rtol=1e-9)
    found, expected = (np.sort(each.loo_results_.weight) for each in (model, never))
    assert_allclose(found / found.sum(), expected / expected.sum(), rtol=1e-9)


def test_sums_of_the_weights_of_equal_rows_leave_nothing(sinc):
    X, y = sinc[0][:100].repeat(2, 0), sinc[1][:100].repeat(2)
    model = regressor().fit(X, y, np.tile([0.1, 0.2], 100))
    # In floating point 0.1 + 0.2 is more than 0.3.
    model.remove(X[:20:2], y[:20:2], np.full(10, 0.3))
    assert len(model.loo_index_) == 180


@pytest.mark.slow
@pytest.mark.parametrize("as_function", [False, True])
def test_blocks_with_other_columns_are_refused(banana, as_function):
    pd = pytest.importorskip("pandas")
    X, y = banana
    one, two = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(X[:, ::-1], columns=["b", "a"])

    def stream(*frames):
        blocks = [(frame, y) for frame in frames]
        return (lambda: iter(blocks)) if as_function else blocks

    with pytest.raises(
        ValueError, match="block 1 of the stream has the columns b, a, but previous blocks have a, b"
    ):
        classifier().fit(stream(one, two))
    models = classifier().fit(stream(one, one)), classifier().fit(one, y), classifier().partial_fit(one, y)
    for model in models:
        assert list(model.feature_names_in_) == ["a", "b"]
        for call in ("partial_fit", "remove", "predict"):
            with pytest.raises(
                ValueError, match=r"the columns are b, a, but the model was fitted on a, b.*same order"
            ):
                getattr(model, call)(stream(two))
        model.partial_fit(stream(one)).remove(stream(one))
        assert model.predict(stream(one)).shape == (600,)


@pytest.mark.slow
def test_labels_in_a_column_and_rows_in_lists_are_taken(banana):
    X, y = banana
    expected = classifier().fit(X, y).predict_proba(X)
    column = classifier().fit([(X[:300].tolist(), y[:300, None]), (X[300:].tolist(), y[300:, None])])
    assert_allclose(column.predict_proba(X), expected, atol=1e-10)
    model = classifier().fit(X[:300], y[:300]).partial_fit([(X[300:].tolist(), y[300:, None].tolist())])
    assert_allclose(model.predict_proba(X), expected, atol=1e-10)
    model.remove([(X[:9], y[:9, None])])
    assert_array_equal(model.loo_index_, np.arange(9, 600))
    with pytest.raises(ValueError, match=r"y has shape \(600, 2\)"):
        classifier().fit([(X, np.column_stack([y, y]))])


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [(np.asarray, sparse.csr_matrix), (sparse.csr_matrix, np.asarray)])
def test_sparse_and_dense_rows_go_together(banana, kinds):
    X, y = banana
    first, second = kinds
    expected = classifier().fit(X, y).predict_proba(X)
    batches = classifier().partial_fit(first(X[:300]), y[:300]).partial_fit(second(X[300:]), y[300:])
    stream = classifier().fit([(first(X[:300]), y[:300]), (second(X[300:]), y[300:])])
    for model in (batches, stream):
        assert_allclose(model.predict_proba(X), expected, atol=1e-10)
        assert_allclose(model.remove(second(X[:50]), y[:50]).moments_.n, 550)
        assert_array_equal(model.loo_index_, np.arange(50, 600))


def test_targets_of_another_shape_are_refused(sinc):
    X, y = sinc
    Y = np.column_stack([y, y])
    words = r"y has shape \(b, 2\), but that of the first rows has \(b,\)"
    for rows in ((X, Y), ([(X, Y)],)):
        with pytest.raises(ValueError, match=words):
            regressor().fit(X, y).partial_fit(*rows)
    with pytest.raises(ValueError, match=r"y has shape \(b, 2\) in some blocks and \(b,\) in others"):
        regressor().fit([(X, y), (X, Y)])
    with pytest.raises(ValueError, match=r"X has shape \(b, 1\) in some blocks and \(b, 2\) in others"):
        regressor().fit([(X, y), (np.column_stack([X, X]), y)])


def test_streams_after_rows_in_memory_are_checked(banana):
    X, y = banana
    model = classifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but the first rows had 2"):
        model.partial_fit([(np.ones((4, 3)), y[:4])])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([(np.where(X > 1, np.nan, X), y)])


@pytest.mark.parametrize("centers", [True, False, np.True_])
def test_truth_is_no_number_of_centers(banana, centers):
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=f"centers={centers}; pass a number of centers"):
            getattr(classifier(centers=centers), call)(*banana)


def test_truth_is_no_number_of_rows(banana):
    with pytest.raises(ValueError, match="loo_rows=True"):
        classifier(loo_rows=True).fit(*banana)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "value"),
    [("priors", [0.8, 0.2]), ("threshold", "equal_error"), ("calibration", "isotonic"), ("alpha", 3.0)],
)
@pytest.mark.parametrize("method", ["partial_fit", "remove"])
def test_parameters_of_decisions_hold_from_the_next_call_on(banana, name, value, method):
    """Sums do not depend on them, so the model is the one that had them from the start."""
    X, y = banana
    changed, same = classifier(), classifier(**{name: value})
    for model in (changed, same):
        model.partial_fit(X[:400], y[:400])
    rows = slice(400, 600) if method == "partial_fit" else slice(0, 100)
    getattr(changed.set_params(**{name: value}), method)(X[rows], y[rows])
    getattr(same, method)(X[rows], y[rows])
    assert_array_equal(changed.predict_proba(X), same.predict_proba(X))


def test_classes_of_later_batches_are_those_of_the_first(banana):
    X, y = banana
    model = classifier()
    model.partial_fit(X[:50], y[:50], classes=np.unique(y))
    model.partial_fit(X[50:], y[50:], classes=np.unique(y))
    with pytest.raises(ValueError, match="differ from those of the first call"):
        model.partial_fit(X[50:], y[50:], classes=[5, 6])


def test_an_undeclared_label_is_named_with_balanced_classes(banana):
    X, y = banana
    with pytest.raises(ValueError, match=r"label 7 is not among the classes \[-1, 1\]"):
        classifier(class_weight="balanced").partial_fit(X, np.where(y == 1, 7, y), classes=[-1, 1])
