"""Contributions of columns to single predictions: exact Shapley values, whatever the model is made of."""

import itertools
import math
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._scores.contributions import (
    FACTOR_ARRAYS,
    FACTOR_NUMBERS,
    Background,
    background_of,
    contributions,
    n_nodes,
    shapley_values,
)
from mercer.errors import KernelError
from mercer.kernels import RBF, KmerSpectrum, Laplacian, Linear, Matern, RankNormal, Standardized
from mercer.kernels._vectors.products import FeatureProduct

N = 60
KERNELS = {
    "rbf": RBF(gamma=0.2),
    "laplacian": Laplacian(gamma=0.2),
    "relevances": RBF(gamma=[0.5, 0.0, 0.1, 0.2]),
    "ranks": RankNormal(Laplacian(gamma=0.3)),
    "standardized": Standardized(RBF(gamma=0.2)),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)) * [1.0, 2.0, 0.5, 1.0]
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=N)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "one": 1.0,
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "street": [f"street {j}" for j in rng.integers(0, 90, n)],
            "color": rng.choice(["red", "blue", "green", None], n),
            "since": pd.date_range("2022-01-01", periods=n, freq="5D"),
        }
    )
    return frame, frame["size"].fillna(0.0) + frame["color"].map({"red": 2.0, "blue": -2.0}).fillna(0.0)


def shapley(value, names):
    """Shapley values of a function of sets of columns, by all of the sets."""
    found, C = [], len(names)
    for c in names:
        others = [e for e in names if e != c]
        sets = itertools.chain.from_iterable(itertools.combinations(others, r) for r in range(C))
        share = [math.factorial(r) * math.factorial(C - r - 1) / math.factorial(C) for r in range(C)]
        found.append(sum(share[len(S)] * (value({*S, c}) - value(set(S))) for S in sets))
    return np.array(found)


def by_sets(f, x, background):
    """Contributions (n_columns, ...) to f at a row of a frame, with columns of each of the background rows."""

    def value(known):
        mixed = background.copy()
        for name in known:
            mixed[name] = [x[name].iloc[0]] * len(background)
        return np.mean(f(mixed), axis=0)

    return shapley(value, list(background))


@pytest.mark.parametrize("name", KERNELS)
def test_contributions_are_those_of_all_sets_of_columns(rows, name):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = KernelRidgeRegressor(KERNELS[name], alpha=0.3).fit(frame, y)
    found = model.contributions(frame[:3], background=frame[10:17])
    assert found.names == list("abcd")
    for i in range(3):
        assert_allclose(found.values[i], by_sets(model.predict, frame[i : i + 1], frame[10:17]), atol=1e-12)
    assert_allclose(found.base, model.predict(frame[10:17]).mean(), rtol=1e-12)


def test_all_that_a_column_of_a_table_has_become_contributes_together(table):
    frame, y = table
    model = KernelRidgeRegressor(RBF("loo")).fit(frame, y)
    new = frame[:2].assign(color=["black", None])
    found = model.contributions(new, background=frame[5:12])
    assert found.names == list(frame)
    for i in range(2):
        assert_allclose(found.values[i], by_sets(model.predict, new[i : i + 1], frame[5:12]), atol=1e-9)
    assert_array_equal(found.values[:, 0], 0.0)


@pytest.mark.parametrize("n_columns", [1, 2, 3, 5, 8])
def test_nodes_are_enough_for_every_number_of_columns(n_columns):
    P, Q = np.random.default_rng(n_columns).random((2, n_columns, 1, 1))
    P[0] = 0.0

    def value(known):
        return np.prod([P[c, 0, 0] if c in known else Q[c, 0, 0] for c in range(n_columns)])

    found = shapley_values(P, Q, np.ones((1, 1)))[:, 0]
    assert_allclose(found, shapley(value, range(n_columns)), atol=1e-14)


@pytest.mark.parametrize("n_columns", [40, 200])
def test_fewer_nodes_than_the_degree_asks_for_are_enough(n_columns):
    rng = np.random.default_rng(0)
    far = np.exp(-rng.exponential(3.0, (n_columns, 1, 1)))
    near = np.ones((n_columns, 1, 1))
    some = np.where(rng.random((n_columns, 1, 1)) < 0.9, near, 1e-300)
    nodes, weights = np.polynomial.legendre.leggauss(-(-n_columns // 2))
    assert n_nodes(n_columns) < len(nodes)
    for P, Q in ((near, far), (far, near), (near, 0.0 * far), (some, some[::-1]), (far, 0.0 * far)):
        t = 0.5 * (nodes + 1.0)
        F = Q[:, 0] + t * (P - Q)[:, 0]
        others = np.array([np.prod(np.delete(F, c, axis=0), axis=0) for c in range(n_columns)])
        exact = (P - Q)[:, 0, 0] * (others @ (0.5 * weights))
        assert_allclose(shapley_values(P, Q, np.ones((1, 1)))[:, 0], exact, atol=1e-12)


def test_columns_that_say_nothing_contribute_nothing_and_equal_ones_the_same(rows):
    X, y = rows
    X = np.column_stack([X, np.ones(N), X[:, 0]])
    model = KernelRidgeRegressor(RBF(gamma=[0.3, 0.0, 0.1, 0.1, 0.2, 0.3]), alpha=0.3).fit(X, y)
    found = model.contributions(X)
    assert_array_equal(found.values[:, [1, 4]], 0.0)
    assert_allclose(found.values[:, 0], found.values[:, 5], rtol=1e-12, atol=1e-14)
    assert found.sizes[0] > 0.1


def test_with_hundreds_of_columns_contributions_sum_to_predictions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 200))
    y = X[:, 0] + np.sin(X[:, 1])
    for kernel in (RBF(gamma=0.003), Laplacian(gamma=1.0)):
        model = KernelRidgeRegressor(kernel, alpha=1e-3).fit(X, y)
        new = np.vstack([X[:2], X[:1] + 0.1, X[:1] + 9.0])
        found = model.contributions(new, background=20)
        assert_allclose(found.outputs, model.predict(new), atol=1e-10 * np.ptp(y))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"centers": 15},
        {"kernel": "rbf", "relevance": "diagonal"},
        {"fit_intercept": False},
        {"penalty": "coef"},
    ],
    ids=str,
)
def test_contributions_sum_to_predictions_of_every_fit(rows, options):
    X, y = rows
    model = KernelRidgeRegressor(**options).fit(X, y)
    assert_allclose(model.contributions(X[:5]).outputs, model.predict(X[:5]), atol=1e-9)
    both = KernelRidgeRegressor(**options).fit(X, np.column_stack([y, y**2]))
    found = both.contributions(X[:5])
    assert found.values.shape == (5, 4, 2)
    assert found.base.shape == (2,)
    assert_allclose(found.outputs, both.predict(X[:5]), atol=1e-9)


def test_rows_in_single_precision_are_explained_in_their_digits(rows):
    X, y = (each.astype(np.float32) for each in rows)
    model = KernelRidgeRegressor(RBF(gamma=0.2), alpha=0.3).fit(X, y)
    found = model.contributions(X[:5])
    assert found.values.dtype == np.float64
    assert_allclose(found.outputs, model.predict(X[:5]), atol=1e-5)


def test_two_classes_are_explained_in_log_odds(rows):
    X, y = rows
    labels = np.where(y > 0.0, "yes", "no")
    for options in ({}, {"calibration": "gaussian"}, {"priors": [0.9, 0.1]}, {"threshold": "equal_error"}):
        model = KernelFisherClassifier(RBF(gamma=0.1), alpha=0.3, **options).fit(X, labels)
        found = model.contributions(X)
        assert found.output == "log-odds of yes"
        trust = model.unexplained_variance_.trust(X)
        posterior = model.rule_.posterior
        line = found.outputs - posterior.shift[0] - posterior.odds[0]
        alike = (trust == 1.0) & (np.abs(line) < posterior.counted * posterior.limit)
        assert alike.sum() > 30
        assert_allclose(found.outputs[alike], model.decision_function(X)[alike], rtol=1e-9, atol=1e-9)
        # Moderation only takes away.
        moderated = model.decision_function(X) - posterior.shift[0] - posterior.odds[0]
        assert (np.abs(moderated) <= np.abs(line) + 1e-9).all()


def test_log_odds_are_those_of_the_function_from_which_probabilities_come():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.random(300) < 1.0 / (1.0 + np.exp(-6.0 * X[:, 0]))
    model = KernelFisherClassifier(RBF(gamma=0.1), alpha=0.1, probabilities="logistic").fit(X, y)
    assert model.logit_coef_ is not None
    found = model.contributions(X[:20])
    slope, offset = model.rule_.posterior.line
    assert_allclose(found.outputs, slope * model._scored()(X[:20])[:, 0] + offset, atol=1e-9)
    assert np.argmax(found.sizes) == 0


def test_other_classifiers_are_explained_by_their_outputs(rows):
    X, y = rows
    two = KernelFisherClassifier(RBF(gamma=0.1), alpha=0.3, calibration="isotonic").fit(X, y > 0.0)
    found = two.contributions(X[:5])
    assert found.output == "output: -1 for False, +1 for True"
    assert_allclose(found.outputs[:, None], two.transform(X[:5]), atol=1e-9)
    three = KernelFisherClassifier(RBF(gamma=0.1), alpha=0.3).fit(X, np.digitize(y, [-0.5, 0.5]))
    found = three.contributions(X[:5])
    assert found.output == "outputs of the 3 classes"
    assert found.values.shape == (5, 4, 3)
    assert_allclose(found.outputs, three._expansion()(X[:5]), atol=1e-9)
    # Indicators of classes sum to one for every row.
    assert_allclose(found.values.sum(axis=2), 0.0, atol=1e-9)


def test_a_column_of_noise_contributes_little():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    model = KernelRidgeRegressor().fit(X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=400))
    sizes = model.contributions(X[:50]).sizes
    assert sizes[2:].max() < 0.2 * sizes[:2].min()


def test_gaps_of_new_rows_are_filled_as_in_predict(rows):
    X, y = rows
    model = KernelRidgeRegressor(RBF(gamma=0.2), alpha=0.3).fit(X, y)
    new = X[:2].copy()
    new[0, 1] = np.nan
    assert_allclose(model.contributions(new).outputs, model.predict(new), atol=1e-10)
    assert_allclose(
        model.contributions(sparse.csr_matrix(X[:2])).values, model.contributions(X[:2]).values, atol=1e-12
    )


def test_rows_of_a_file_are_explained_as_those_in_memory(table, tmp_path):
    pytest.importorskip("pyarrow")
    frame, y = table
    model = KernelRidgeRegressor(RBF("loo")).fit(frame, y)
    frame.to_parquet(tmp_path / "rows.parquet")
    found = model.contributions(tmp_path / "rows.parquet", background=10)
    assert_allclose(found.values, model.contributions(frame, background=10).values, atol=1e-12)


def test_background_rows_are_drawn_by_their_weights(rows):
    X, y = rows
    weight = np.where(np.arange(N) < 6, 3.0, 1.0)
    model = KernelRidgeRegressor(RBF(gamma=0.2), alpha=0.3, weights="counts")
    model.fit(X, y, sample_weight=weight)
    given = model.contributions(X[:2], background=N)
    assert_allclose(given.base, weight @ model.predict(X) / weight.sum())
    drawn = background_of(X, np.arange(1.0, N + 1.0), 20, np.random.default_rng(0))
    assert_allclose(drawn.share.sum(), 1.0)
    assert len(drawn.rows) <= 20
    # In the mean over draws the shares are those of the weights.
    mean = np.zeros(N)
    for seed in range(400):
        one = background_of(np.arange(N)[:, None], np.arange(1.0, N + 1.0), 20, np.random.default_rng(seed))
        mean[one.rows[:, 0]] += one.share / 400
    assert_allclose(mean, np.arange(1.0, N + 1.0) / (N * (N + 1) / 2), atol=0.005)
    equal = background_of(X, np.ones(N), 20, np.random.default_rng(0))
    assert_array_equal(equal.share, 0.05)


def test_equal_calls_have_equal_results_and_seeds_matter(rows):
    X, y = rows
    model = KernelRidgeRegressor(RBF(gamma=0.2), alpha=0.3).fit(X, y)
    one, again, other = (model.contributions(X[:3], background=10, random_state=s) for s in (None, 0, 1))
    assert_array_equal(one.values, again.values)
    assert one.base != other.base
    assert_allclose(other.outputs, one.outputs, atol=1e-12)


def test_stored_and_lean_models_have_the_same_contributions(rows):
    X, y = rows
    model = KernelRidgeRegressor(RBF(gamma=0.2), alpha=0.3).fit(X, y)
    expected = model.contributions(X[:3], background=X)
    for other in (pickle.loads(pickle.dumps(model)), model.lean(), clone(model).fit(X, y)):
        assert_array_equal(other.contributions(X[:3], background=X).values, expected.values)


def test_results_are_printed_largest_first(rows):
    X, y = rows
    model = KernelRidgeRegressor(RBF(gamma=[0.5, 0.0, 0.1, 0.2]), alpha=0.3).fit(X, y)
    one, many = model.contributions(X[:1]), model.contributions(X)
    lines = str(one).splitlines()
    assert lines[0] == "prediction"
    assert lines[-1] == "1: +0.0000"
    largest = int(np.abs(one.values[0]).argmax())
    assert lines[1] == f"{largest}: {one.values[0, largest]:+.4f}"
    assert str(many).splitlines()[1] == f"{many.sizes.argmax()}: {many.sizes.max():.4f}"


def test_memory_does_not_grow_with_background_and_centers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    background, column = Background(X[:400], np.full(400, 1.0 / 400)), np.arange(6)
    tracemalloc.start()
    contributions(FeatureProduct.of(RBF(gamma=0.1)), X, X[:, :1], X[:2], background, column, 6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The arrays of one block, and copies of centers; all factors at once would be 29 MB.
    assert peak < 8 * ((FACTOR_ARRAYS + 2) * FACTOR_NUMBERS + 3 * X.size)


@pytest.mark.parametrize(
    "kernel", [Matern(gamma=0.2), Linear(), RBF(gamma=0.1) + RBF(gamma=1.0), RankNormal(Linear())]
)
def test_kernels_that_are_no_products_are_refused_with_a_remedy(rows, kernel):
    model = KernelRidgeRegressor(kernel, alpha=1.0).fit(*rows)
    with pytest.raises(KernelError, match=r"product over features, but .* is none; use kernel=RBF\(\)"):
        model.contributions(rows[0][:1])


def test_rows_that_have_no_columns_are_refused(rows):
    X, y = rows
    for model, Z in (
        (KernelRidgeRegressor("precomputed", alpha=1.0).fit(X @ X.T, y), X @ X.T),
        (KernelRidgeRegressor(KmerSpectrum(2), alpha=1.0).fit(["abab", "bbba", "aabb"], [1.0, 2.0, 3.0]), ["ab"]),
    ):
        with pytest.raises(KernelError, match="product over features"):
            model.contributions(Z)
    with pytest.raises(ValueError, match=r"dense rows, but the centers of the model are csr_.*toarray"):
        KernelRidgeRegressor(RBF(gamma=0.2), alpha=0.3).fit(sparse.csr_matrix(X), y).contributions(X)


def test_what_cannot_be_explained_is_refused(rows, table):
    X, y = rows
    model = KernelRidgeRegressor(RBF(gamma=0.2), alpha=0.3)
    with pytest.raises(ValueError, match="not fitted"):
        model.contributions(X)
    model.fit(X, y)
    for wrong in (0, 1.5, None, True, "all"):
        with pytest.raises(ValueError, match=f"background={wrong!r}; it must be a number of rows, at least 1, or"):
            model.contributions(X, background=wrong)
    with pytest.raises(ValueError, match="4 features"):
        model.contributions(X[:, :3])
    with pytest.raises(ValueError, match="4 features"):
        model.contributions(X, background=X[:, :3])
    raw = KernelRidgeRegressor(RBF("loo")).fit(*table)
    with pytest.raises(ValueError, match="color"):
        raw.contributions(table[0].drop(columns="color"))
