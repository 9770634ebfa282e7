"""Kernels that see features in their standard deviations or in normal scores of their ranks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier, KernelPCA, KernelRidgeRegressor, OnlineKernelRegressor
from mercer.datasets import make_banana
from mercer.errors import KernelError
from mercer.kernels import RBF, Laplacian, Linear, Matern, OneOf, RankNormal, Standardized, Wendland, as_kernel
from mercer.kernels._algebra.choice import distinct_kinds
from mercer.kernels._vectors.units import MOST_KNOTS, NormalScores, Units

KINDS = [RBF("loo"), Laplacian("loo"), Matern(0.5, "loo"), Wendland(1, "loo")]
UNITS = np.array([1e-3, 1.0, 50.0, 1e6])


def on(kernel, X, weight=None):
    """The middle one of the candidates for rows."""
    candidates = kernel.candidates(X, weight)
    return candidates[len(candidates) // 2]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_standardized_is_the_kernel_on_scaled_rows(X, Z, kind):
    scaler = StandardScaler().fit(X * UNITS)
    expected = on(kind, scaler.transform(X * UNITS))
    found = on(Standardized(kind), X * UNITS)
    values = expected.block(scaler.transform(X * UNITS), scaler.transform(Z * UNITS))
    assert_allclose(found.block(X * UNITS, Z * UNITS), values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [Standardized, RankNormal])
def test_units_do_not_matter(X, Z, kind):
    expected = on(kind(RBF()), X).block(X, Z)
    assert_allclose(on(kind(RBF()), X * UNITS + 7.0).block(X * UNITS + 7.0, Z * UNITS + 7.0), expected, rtol=1e-8)


def test_monotone_functions_of_features_do_not_change_normal_scores(X):
    assert_allclose(NormalScores.of(np.exp(X), None)(np.exp(X)), NormalScores.of(X, None)(X), atol=1e-12)


def test_scores_are_normal_quantiles_of_middle_ranks():
    x = np.array([[3.0], [1.0], [3.0], [9.0]])
    raw = ndtri(np.array([0.5, 0.125, 0.5, 0.875]))
    assert_allclose(NormalScores.of(x, None)(x)[:, 0], (raw - raw.mean()) / raw.std(), atol=1e-14)


@pytest.mark.parametrize("kind", [Standardized(RBF()), RankNormal(RBF()), RankNormal(Laplacian())], ids=str)
def test_weights_count_like_repeated_rows(X, Z, kind):
    times = np.random.default_rng(2).integers(0, 4, len(X))
    weighted, repeated = on(kind, X, times), on(kind, np.repeat(X, times, axis=0))
    assert_allclose(weighted.block(X, Z), repeated.block(X, Z), rtol=1e-9)


def test_few_numbers_are_stored_and_they_are_close(rng):
    x = np.sort(rng.exponential(size=(5000, 1)), axis=0)
    scores = NormalScores.of(x, None)
    assert len(scores.knots) <= MOST_KNOTS
    ranks = ndtri((np.arange(5000) + 0.5) / 5000)
    assert np.abs(scores(x)[:, 0] - ranks / ranks.std()).max() < 0.02


def test_values_far_beyond_the_rows_are_far_from_all_scores(X):
    scores = NormalScores.of(X, None)
    ends = scores(np.array([X.min(axis=0), X.max(axis=0)]))
    assert_allclose(scores(np.full((1, 4), 1e300)), ends[1:] + 10.0)
    assert_allclose(scores(np.full((1, 4), -1e300)), ends[:1] - 10.0)
    nearby = scores(X.max(axis=0)[None] + 1e-6) - ends[1:]
    assert ((nearby > 0.0) & (nearby < 1e-4)).all()


def test_rows_far_away_are_new(rng):
    X = np.exp(2.0 * rng.normal(size=(80, 2)))
    model = KernelFisherClassifier(RankNormal(RBF(0.3)), alpha=0.1).fit(X, X[:, 0] * X[:, 1] > 1.0)
    assert (model.novelty([[1e6, 1e6], [1e9, 1.0], [-1e6, 1.0]]) > 5.0).all()


@pytest.mark.parametrize("gamma", [0.5, [0.5, 0.1, 0.0, 2.0]])
def test_a_number_is_a_gamma_in_standard_deviations(X, Z, gamma):
    scaler = StandardScaler().fit(X * UNITS)
    (found,) = Standardized(RBF(gamma)).candidates(X * UNITS)
    expected = RBF(gamma).block(scaler.transform(X * UNITS), scaler.transform(Z * UNITS))
    assert_allclose(found.block(X * UNITS, Z * UNITS), expected, rtol=1e-9, atol=1e-300)


def test_known_scores_are_used_for_sparse_rows(X):
    known = on(RankNormal(RBF()), X)
    (found,) = known.candidates(sparse.csr_matrix(X))
    assert found.scores == known.scores
    assert_allclose(found.block(sparse.csr_matrix(X), X), known.block(X, X), rtol=1e-12)


@pytest.mark.parametrize("inner", [Linear(), RankNormal(RBF()), "rbf"])
def test_only_functions_of_a_distance_are_standardized(X, inner):
    with pytest.raises(KernelError, match="Standardized contains"):
        Standardized(inner).candidates(X)


@pytest.mark.parametrize("kind", [Standardized, RankNormal])
def test_parameters_of_the_inner_kernel_have_their_own_names(kind):
    assert kind(RBF(0.5)).get_params()["gamma"] == 0.5
    assert kind(RBF()).set_params(gamma=2.0).kernel.gamma == 2.0


@pytest.mark.slow
def test_scores_of_ranks_are_stored_once_and_only_where_they_are_used(rng):
    X = rng.normal(size=(120, 40))
    smooth, skewed = np.sin(X[:, 0]), np.exp(2.0 * X)
    plain = KernelRidgeRegressor().fit(X * np.repeat([1.0, 0.01], [1, 39]), smooth)
    ranked = KernelRidgeRegressor().fit(skewed, X[:, 0] + X[:, 1])
    kernels = [[k for path in model.tuning_paths_ for k in path.kernels] for model in (plain, ranked)]
    assert not any(isinstance(k, RankNormal) and k.scores is not None for k in kernels[0])
    assert isinstance(ranked.kernel_, RankNormal)
    assert len({id(k.scores) for k in kernels[1] if isinstance(k, RankNormal)}) == 1


@pytest.mark.parametrize("model", [KernelPCA(kernel="auto"), OnlineKernelRegressor(kernel="auto")], ids=str)
def test_models_that_cannot_choose_say_so(X, model):
    with pytest.raises(ValueError, match='kernel="auto"'):
        model.fit(X, X[:, 0])


def test_a_feature_that_does_not_vary_is_switched_off(X, Z):
    A, B = (np.insert(rows, 2, 5.0, axis=1) for rows in (X, Z))
    B[:, 2] += np.arange(len(B))
    for kind in (Standardized, RankNormal):
        assert_allclose(on(kind(RBF()), A).block(A, B), on(kind(RBF()), X).block(X, Z), rtol=1e-9)


def test_equal_units_are_those_given(X):
    alike = StandardScaler().fit_transform(X)
    assert str(Standardized(RBF()).candidates(alike)[0]) == str(RBF().candidates(alike)[0])
    assert len(distinct_kinds(as_kernel("auto"), alike, None)) == 4


def test_sparse_rows_keep_their_units(X):
    rows = sparse.csr_matrix(X * UNITS)
    for kind in (Standardized, RankNormal):
        assert str(kind(RBF()).candidates(rows)[0]) == str(RBF().candidates(rows)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(X, Z, dtype):
    for kernel in (on(Standardized(RBF()), X), on(RankNormal(RBF()), X)):
        assert kernel.block(X.astype(dtype), Z.astype(dtype)).dtype == dtype
        assert_allclose(kernel.block(X.astype(dtype), Z.astype(dtype)), kernel.block(X, Z), rtol=1e-4, atol=1e-6)


def test_without_rows_there_are_no_values(X):
    with pytest.raises(KernelError, match="no scores yet"):
        RankNormal(RBF(1.0)).block(X, X)
    with pytest.raises(KernelError, match="gamma"):
        Standardized(RBF()).block(X, X)
    with pytest.raises(KernelError, match="rows have 3 features, but scores are known of 4"):
        on(RankNormal(RBF()), X).block(X[:, :3], X[:, :3])


def test_relevances_are_learned_in_units_and_said_outside(X, Z):
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    for outer in (on(Standardized(RBF()), X * UNITS), on(RankNormal(RBF()), X * UNITS), RBF(0.3)):
        units = Units.of(outer)
        inner = units.inner(outer)
        seen = units.converted(X * UNITS), units.converted(Z * UNITS)
        assert_allclose(inner.block(*seen), outer.block(X * UNITS, Z * UNITS), rtol=1e-9, atol=1e-300)
        learned = clone(inner).set_params(gamma=shares.tolist())
        expected = learned.block(*seen)
        assert_allclose(units.outer(learned).block(X * UNITS, Z * UNITS), expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("chosen", [RBF, Laplacian])
def test_all_kinds_see_the_units_of_the_chosen_one(X, chosen):
    units = Units.of(on(Standardized(chosen()), X * UNITS))
    lengths = units.converted(X * UNITS).std(axis=0)
    assert_allclose(lengths, lengths[0], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("model", [KernelFisherClassifier(), KernelRidgeRegressor()], ids=str)
def test_the_default_does_not_depend_on_units(model):
    X, y = make_banana(120, random_state=0)
    new = make_banana(50, random_state=1)[0]
    scaled = [clone(model).fit(X * units, y).predict(new * units) for units in ([1.0, 1.0], [1e-4, 30.0])]
    plain = [
        clone(model).set_params(kernel="rbf").fit(X * units, y).predict(new * units)
        for units in ([1.0, 1.0], [1.0, 30.0])
    ]
    # Given units are candidates, too, and may be chosen where they happen to be good.
    assert np.mean(np.abs(scaled[0] - scaled[1])) < 0.05
    assert np.mean(np.abs(plain[0] - plain[1])) > np.mean(np.abs(scaled[0] - scaled[1]))


@pytest.mark.slow
def test_given_units_are_kept_where_they_are_better(rng):
    X = rng.normal(size=(300, 12)) * np.repeat([1.0, 0.05], [2, 10])
    model = KernelRidgeRegressor().fit(X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2)
    assert np.ndim(model.kernel_.gamma) == 0


@pytest.mark.slow
def test_ranks_are_taken_where_they_are_better(rng):
    Z = rng.normal(size=(300, 2))
    model = KernelRidgeRegressor().fit(np.exp(3.0 * Z), np.sin(2.0 * Z[:, 0]) + Z[:, 1])
    assert isinstance(model.kernel_, RankNormal)
    assert model.loo_score_ > 0.99


def test_the_default_is_a_choice_with_names():
    names = set(OneOf(as_kernel("auto").kernels).get_params())
    assert {"rbf__gamma", "laplacian__gamma"} <= names
    model = KernelFisherClassifier().set_params(kernel__gamma=0.5)
    assert model.kernel.gamma == 0.5
