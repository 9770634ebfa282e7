"""Relevances of features: found where they are, and honest where they are not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._fitting.kernel_learning.evidence import LearningData
from mercer._fitting.kernel_learning.relevance import _reliability, learn_relevance
from mercer._fitting.selection.centers import Contender
from mercer._gram import Budget
from mercer.centers import Uniform
from mercer.kernels import RBF, Laplacian, Matern, Polynomial

BUDGET = Budget(2.0**31)


def two_of(d, n, seed):
    """Targets that depend on the first two of d features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


def learned(X, y, seed=0, *, scale=None, **choices):
    Y = np.reshape(y, (len(y), -1)) / (np.std(y) if scale is None else scale)
    data = LearningData(X, Y, np.ones(len(y)), **choices)
    return learn_relevance(RBF(), data, np.random.default_rng(seed), BUDGET, most=len(y), verbose=0)


# Means of three fits to two thirds of the rows each; the rough kernel, with the most noise, leaves most to others.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "least"),
    [(RBF(), 0.9), (Matern(nu=1.5), 0.9), (Laplacian(), 0.89)],
    ids=["rbf", "matern", "laplacian"],
)
def test_features_that_matter_are_found(kernel, least):
    X, y = two_of(15, 200, 0)
    new, truth = two_of(15, 1000, 1)
    plain = KernelRidgeRegressor(kernel, random_state=0).fit(X, y)
    model = KernelRidgeRegressor(kernel, relevance="diagonal", random_state=0).fit(X, y)
    assert model.relevance_[:2].sum() > least
    assert_allclose(model.relevance_.sum(), 1.0)
    assert_allclose(model.gamma_ / np.sum(model.gamma_), model.relevance_)
    # Measured: half of the error or less.
    assert 1.0 - model.score(new, truth) < 0.6 * (1.0 - plain.score(new, truth))


@pytest.mark.slow
def test_a_classifier_finds_them_too(rng):
    X = rng.normal(size=(250, 12))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    model = KernelFisherClassifier(relevance="diagonal", random_state=0).fit(X, y)
    assert model.relevance_[:2].sum() > 0.8
    assert "2 of 12 features" in str(model.report_)


@pytest.mark.slow
def test_three_classes_share_their_relevances(rng):
    X = rng.normal(size=(200, 10))
    y = np.digitize(X[:, 3], [-0.5, 0.5])
    model = KernelFisherClassifier(relevance="diagonal", random_state=0).fit(X, y)
    assert model.relevance_.argmax() == 3


@pytest.mark.slow
def test_noise_has_no_relevances():
    rounds = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        rounds.append(learned(rng.normal(size=(80, 10)), rng.choice([-1.0, 1.0], 80), seed).rounds)
    # The best of several rounds, by two and a half standard errors: few may pass.
    assert np.count_nonzero(rounds) <= 2


@pytest.mark.slow
def test_all_alike_is_the_fit_without_relevances(rng):
    X, y = rng.normal(size=(60, 5)), rng.choice([0, 1], 60)
    plain = KernelFisherClassifier(random_state=0).fit(X, y)
    model = KernelFisherClassifier(relevance="diagonal", random_state=0).fit(X, y)
    assert_allclose(model.relevance_, 0.2)
    assert np.ndim(model.gamma_) == 0
    assert_allclose(model.gamma_, plain.gamma_)
    assert plain.relevance_ is None


@pytest.mark.slow
@pytest.mark.parametrize("centers", ["all", 200])
def test_what_is_not_learned_changes_nothing_of_the_choice_of_kernels(rng, centers):
    # More rows than centers of the comparison, which are drawn at random.
    X = rng.normal(size=(700, 3))
    y = np.sin(X.sum(axis=1)) + 0.3 * rng.normal(size=700)
    plain = KernelRidgeRegressor(centers=centers, random_state=0).fit(X, y)
    model = KernelRidgeRegressor(relevance="diagonal", centers=centers, random_state=0).fit(X, y)
    assert "all 3 features alike" in str(model.report_)
    assert_allclose(model.predict(X), plain.predict(X))


@pytest.mark.slow
def test_left_out_rows_are_predicted_under_relevances_learned_without_them():
    honest, seen = 0.0, 0.0
    for seed in range(3):
        X, y = two_of(8, 120, seed)
        model = KernelRidgeRegressor("rbf", relevance="diagonal", random_state=0).fit(X, y)
        same = KernelRidgeRegressor(model.kernel_, alpha=model.alpha_).fit(X, y)
        assert_allclose(model.predict(X), same.predict(X), rtol=1e-6, atol=1e-8)
        honest += np.mean((y - model.loo_prediction_) ** 2)
        seen += np.mean((y - same.loo_prediction_) ** 2)
    # The same functions, but rows had a part in their relevances: honest residuals are larger.
    assert honest > seen


@pytest.mark.slow
def test_with_centers_rows_that_taught_relevances_are_not_evaluated():
    X, y = two_of(6, 1200, 0)
    model = KernelRidgeRegressor(relevance="diagonal", centers=50, random_state=0).fit(X, y)
    assert model.relevance_[:2].sum() > 0.9
    assert len(model.loo_index_) == 600


@pytest.mark.slow
def test_rows_can_be_added_and_removed():
    X, y = two_of(6, 1000, 0)
    model = KernelRidgeRegressor(relevance="diagonal", centers=40, random_state=0)
    model.partial_fit(X[:700], y[:700]).partial_fit(X[700:], y[700:])
    gamma = model.kernel_.gamma
    model.remove(X[850:], y[850:])
    assert model.kernel_.gamma == gamma
    assert model.score(X, y) > 0.8


def test_folds_are_not_split():
    fold = np.repeat(np.arange(20), 5)
    data = LearningData(np.zeros((100, 2)), np.zeros((100, 1)), np.ones(100), fold)
    part = data.parts(np.random.default_rng(0))
    assert all(len(set(part[fold == f])) == 1 for f in range(20))
    assert set(part) == {0, 1, 2}


@pytest.mark.slow
def test_groups_are_held_out_together():
    X, y = two_of(6, 150, 0)
    groups = np.arange(150) // 3
    model = KernelRidgeRegressor(relevance="diagonal", random_state=0).fit(X, y, groups=groups)
    assert model.relevance_[:2].sum() > 0.8


@pytest.mark.sampled(1)
@pytest.mark.parametrize("choices", [{}, {"groups": np.arange(60) % 2}])
def test_few_rows_or_groups_say_nothing(choices):
    n = 60 if choices else 6
    X, y = two_of(3, n, 0)
    model = KernelRidgeRegressor(relevance="diagonal", random_state=0).fit(X, y, **choices)
    assert_allclose(model.relevance_, 1.0 / 3.0)
    assert "too few rows" in str(model.report_)


@pytest.mark.slow
def test_weights_count():
    X, y = two_of(6, 150, 0)
    noise = np.random.default_rng(1).normal(size=150)
    doubled, targets = np.vstack([X, X]), np.append(y, noise)
    weight = np.append(np.ones(150), np.zeros(150))
    model = KernelRidgeRegressor(relevance="diagonal", random_state=0).fit(doubled, targets, sample_weight=weight)
    assert model.relevance_[:2].sum() > 0.8


def test_equal_features_are_shrunk_to_equal_shares(rng):
    M = 1.0 + 0.1 * rng.normal(size=200)
    assert (_reliability(M, np.full(200, 0.01)) < 0.9).all()
    assert _reliability(M, np.full(200, 0.02)).mean() < 0.2
    peak = np.append(M, 10.0)
    assert _reliability(peak, np.full(201, 0.02))[-1] > 0.99


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"relevance": "all"}, "relevance='all' is not known"),
        ({"kernel": RBF(gamma=0.1)}, "chooses a gamma for each feature, but the kernel is RBF"),
        ({"kernel": Polynomial()}, "chooses a gamma for each feature"),
        ({"penalty": "coef"}, 'is for penalty="rkhs"'),
    ],
)
def test_what_cannot_be_learned_is_refused(rng, choices, words):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    with pytest.raises(ValueError, match=words):
        KernelFisherClassifier(**({"relevance": "diagonal"} | choices)).fit(X, y)


def test_sparse_rows_are_refused(rng):
    X, y = sparse.csr_matrix(rng.normal(size=(30, 2))), np.arange(30) % 2
    with pytest.raises(ValueError, match="relevance needs dense rows"):
        KernelFisherClassifier(relevance="diagonal").fit(X, y)


@pytest.mark.slow
def test_single_precision_finds_the_same_features():
    X, y = two_of(8, 150, 0)
    model = KernelRidgeRegressor(relevance="diagonal", random_state=0).fit(X.astype(np.float32), y)
    assert model.relevance_[:2].sum() > 0.9


@pytest.mark.slow
def test_features_of_a_group_share_a_relevance(rng):
    values = rng.integers(4, size=(300, 5))
    X = np.eye(4)[values].reshape(300, 20)
    y = np.isin(values[:, 0], [0, 2]) ^ (values[:, 1] == 1)
    groups = np.repeat(["b", "d", "a", "e", "c"], 4)
    model = KernelFisherClassifier(relevance=groups, random_state=0).fit(X, y)
    shares = model.relevance_.reshape(5, 4)
    assert_allclose(shares, np.repeat(shares[:, :1], 4, axis=1))
    assert shares[:2].sum() > 0.8
    assert_allclose(shares.sum(), 1.0)


@pytest.mark.slow
def test_a_group_of_each_feature_is_the_diagonal():
    X, y = two_of(6, 120, 0)
    diagonal = KernelRidgeRegressor(relevance="diagonal", random_state=0).fit(X, y)
    groups = KernelRidgeRegressor(relevance=range(6), random_state=0).fit(X, y)
    assert_allclose(groups.relevance_, diagonal.relevance_)


@pytest.mark.parametrize(
    ("groups", "words"), [([1, 2, 3], "groups of 3 features, but X has 6"), (5, "one label for each feature")]
)
def test_groups_of_other_features_are_refused(groups, words):
    X, y = two_of(6, 30, 0)
    with pytest.raises(ValueError, match=words):
        KernelRidgeRegressor(relevance=groups).fit(X, y)


def steps_of(n, seed):
    """Targets with jumps in two of ten features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    return X, np.sign(X[:, 0]) + 0.5 * np.sign(X[:, 1] - 0.5) + 0.1 * rng.normal(size=n)


@pytest.mark.slow
def test_other_rows_choose_the_kernel_too():
    (X, y), (new, truth) = steps_of(250, 0), steps_of(2000, 1)
    model = KernelRidgeRegressor([RBF(), Laplacian()], relevance="diagonal", random_state=0).fit(X, y)
    smooth = KernelRidgeRegressor("rbf", relevance="diagonal", random_state=0).fit(X, y)
    assert isinstance(model.kernel_, Laplacian)
    assert model.relevance_[:2].sum() > 0.8
    assert 1.0 - model.score(new, truth) < 0.8 * (1.0 - smooth.score(new, truth))
    # Left-out predictions are those of new rows, not of rows that the relevances know.
    promised = 1.0 - np.mean((y - model.loo_prediction_) ** 2) / np.var(y)
    assert abs(promised - model.score(new, truth)) < 0.06


@pytest.mark.slow
def test_a_choice_stays_one_if_all_features_are_alike(rng):
    X, y = rng.normal(size=(60, 5)), rng.choice([0, 1], 60)
    choice = [RBF(), Laplacian()]
    plain = KernelFisherClassifier(choice, random_state=0).fit(X, y)
    model = KernelFisherClassifier(choice, relevance="diagonal", random_state=0).fit(X, y)
    assert_allclose(model.relevance_, 0.2)
    assert type(model.kernel_) is type(plain.kernel_)


def test_every_kernel_of_a_choice_must_have_relevances(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    with pytest.raises(ValueError, match="chooses a gamma for each feature"):
        KernelFisherClassifier([RBF(), Polynomial()], relevance="diagonal").fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.1, 1.0, 3.7])
def test_a_constant_has_no_relevances(rng, level):
    X = rng.normal(size=(200, 6))
    for seed in range(3):
        assert learned(X, np.full(200, level), seed, scale=1.0).rounds == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mercer.errors.ScaleWarning", "ignore::mercer.errors.NumericalWarning")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_column_with_few_huge_values_is_no_obstacle(seed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 2] = rng.lognormal(0.0, 5.0, 300)
    # Most rows are nearly equal in units of the largest: their kernel matrix is singular.
    model = KernelRidgeRegressor(relevance="diagonal", random_state=seed).fit(X, np.sin(X[:, 1]))
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "choices", "expected"),
    [(1000, {}, True), (900, {}, False), (1000, {"relevance": None}, False), (1000, {"kernel": "rbf"}, False)],
)
def test_the_default_learns_from_enough_rows(n, choices, expected):
    X = two_of(6, n, 0)[0]
    y = np.sin(2.0 * X[:, 0] * X[:, 1])
    model = KernelRidgeRegressor(**choices, random_state=0).fit(X, y)
    assert (model.relevance_ is not None) == expected
    if expected:
        assert model.relevance_[:2].sum() > 0.9


@pytest.mark.slow
def test_what_many_rows_lose_without_their_part_is_not_understated(monkeypatch):
    """Fits with few centers in place of all: as pessimistic as those, or more."""
    X, y = two_of(10, 700, 0)
    y += np.random.default_rng(1).normal(size=700)
    model = KernelRidgeRegressor("rbf", relevance="diagonal", random_state=0)
    exactly = model.fit(X, y).loo_score_
    fitted_alone = KernelRidgeRegressor(model.kernel_, alpha=model.alpha_).fit(X, y).loo_score_
    monkeypatch.setattr("mercer._fitting.exact.MOST_TO_CLIMB", 600)
    roughly = model.fit(X, y).loo_score_
    assert roughly < fitted_alone
    assert roughly == pytest.approx(exactly, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", ["median", "scale"])
def test_relevances_of_a_kernel_with_one_width(gamma):
    X, y = two_of(8, 250, 0)
    model = KernelRidgeRegressor(RBF(gamma), relevance="diagonal", random_state=0).fit(X, y)
    assert model.relevance_.argmax() < 2


def test_folds_are_drawn_whole():
    fold = np.repeat(np.arange(20), 5)
    data = LearningData(np.zeros((100, 2)), np.zeros((100, 1)), np.ones(100), fold)
    drawn = data.drawn(33, np.random.default_rng(0))
    assert len(drawn) == 30
    assert not set(fold[drawn]) & set(np.delete(fold, drawn))


@pytest.mark.slow
def test_rows_without_weight_are_none_to_learn_from():
    X, y = two_of(4, 1010, 0)
    weight = (np.arange(1010) < 310).astype(float)
    assert KernelRidgeRegressor(random_state=0).fit(X, y, sample_weight=weight).relevance_ is None


@pytest.mark.slow
def test_with_given_centers_the_default_keeps_all_rows_for_evaluation():
    X, y = two_of(4, 2100, 0)
    model = KernelRidgeRegressor(centers=40, random_state=0).fit(X, y)
    assert model.relevance_ is None
    assert len(model.loo_index_) == 2100


# A sample of half of the rows, as of more than 10,000.
SAMPLED = KernelFisherClassifier(centers=Uniform(100), loo_rows=2200, random_state=0)


def many(n=4400):
    """Two of eight features matter, in units that differ."""
    X, y = two_of(8, n, 0)
    return X * 10.0 ** np.arange(8), y > np.median(y)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_where_rows_are_sampled_fits_with_many_centers_decide(monkeypatch, kept):
    """On rows from which nothing was learned; if they are as good without, the plain kernel is taken."""
    asked = []
    found_by = Contender.gain

    def gain(plain, other, rows):
        found = found_by(plain, other, rows)
        asked.append((len(rows), found))
        # First of all between classes of kernels.
        return found if len(asked) == 1 else float(kept)

    monkeypatch.setattr(Contender, "gain", gain)
    X, y = many()
    model = clone(SAMPLED).fit(X, y)
    # All rows of the sample, and then half of them.
    assert [n for n, _ in asked] == [2200, 1100]
    assert asked[1][1] > 0.0
    assert ("not better with more" in model.report_.learned) == (not kept)
    assert (model.relevance_[:2].sum() > 0.8) == kept
    # Rows from which relevances were learned have no leave-one-out predictions.
    assert (len(model.loo_index_) == 1100) == kept


@pytest.mark.slow
def test_where_rows_are_sampled_the_plain_fit_is_the_same():
    """Whether relevances are tried or not has no influence on random numbers."""
    X, y = many()
    X = np.column_stack([X, np.random.default_rng(1).normal(size=len(X))])[:, 2:]
    tried, plain = (clone(SAMPLED).set_params(relevance=how).fit(X, y) for how in ("auto", None))
    assert np.ptp(tried.relevance_) == 0.0
    assert_allclose(tried.decision_function(X[:100]), plain.decision_function(X[:100]), rtol=1e-12)
