"""Models that know transformations: copies of rows join the fit, and leave it with their row."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.datasets import make_banana
from mercer.invariances import shifts
from mercer.kernels import RBF


def raised(X):
    return X + [0.3, 0.0]


def lowered(X):
    return X - [0.3, 0.0]


MOVED = [raised, lowered]


@pytest.fixture(scope="module")
def data():
    return make_banana(60, random_state=0)


def with_copies(X, y):
    """Rows and copies, written out."""
    return np.concatenate([X, raised(X), lowered(X)]), np.concatenate([y, y, y])


@pytest.mark.parametrize("estimator", [KernelFisherClassifier, KernelRidgeRegressor])
def test_the_fit_is_that_to_rows_and_copies_with_a_third_of_the_weight(data, estimator):
    X, y = data
    model = estimator(RBF(gamma=0.5), alpha=0.1, centers=X[:30], invariances=MOVED).fit(X, y)
    rows, targets = with_copies(X, y)
    plain = estimator(RBF(gamma=0.5), alpha=0.1, centers=X[:30], weights="importance")
    plain.fit(rows, targets, np.full(len(targets), 1 / 3))
    assert_allclose(model.dual_coef_, plain.dual_coef_, atol=1e-8 * np.abs(plain.dual_coef_).max())
    assert len(model.loo_index_) == len(y)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_penalty_of_changes_is_part_of_the_normal_equations(data, intercept):
    X, y = data
    Z, w, kernel, mu = X[:30], np.linspace(0.5, 2.0, len(y)), RBF(gamma=0.5), 0.7
    model = KernelRidgeRegressor(kernel, alpha=0.1, centers=Z, invariances=MOVED, mu=mu, fit_intercept=intercept)
    model.fit(X, y, w)
    K, F = kernel.block(Z, Z), kernel.block(X, Z)
    D = [kernel.block(f(X), Z) - F for f in MOVED]
    N = mu * sum(d.T @ (w[:, None] * d) for d in D) / 2
    one = np.ones((len(y), 1)) * intercept
    A = np.hstack([F, one])
    P = np.zeros((31, 31))
    P[:30, :30] = 0.1 * K + N
    S = A.T @ (w[:, None] * A)
    c = np.linalg.lstsq(S + P, A.T @ (w * y), rcond=1e-15)[0]
    new = make_banana(50, random_state=1)[0]
    expected = kernel.block(new, Z) @ c[:30] + intercept * c[30]
    assert_allclose(model.predict(new), expected, atol=1e-7)
    trace = np.trace(np.linalg.lstsq(S + P, S, rcond=1e-15)[0])
    assert_allclose(model.degrees_of_freedom_, trace, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [None, 0.5])
def test_degrees_of_freedom_count_what_targets_move_their_own_outputs(data, mu):
    X, y = data
    model = KernelRidgeRegressor(RBF(gamma=0.5), alpha=0.1, centers=X[:30], invariances=MOVED, mu=mu)
    fits = [clone(model).fit(X, y + np.eye(len(y))[i]).predict(X[i : i + 1])[0] for i in range(len(y))]
    model.fit(X, y)
    assert_allclose(model.degrees_of_freedom_, np.sum(fits - model.predict(X)), rtol=1e-6)
    assert model.degrees_of_freedom_ < len(y)


@pytest.mark.parametrize("mu", [None, 0.5])
def test_the_variance_without_a_row_is_that_of_a_fit_without_it_and_its_copies(data, mu):
    X, y = data
    model = KernelRidgeRegressor(RBF(gamma=0.5), alpha=0.1, centers=X, invariances=MOVED, mu=mu)
    keep = np.arange(len(y)) != 7
    less = clone(model).fit(X[keep], y[keep])._uncertainty()
    expected = less._relative_std(X[7:8], less.kernel.block(X[7:8], less.centers))
    every = model.fit(X, y)._uncertainty()
    K = every.kernel.block(X[7:8], every.centers)
    assert_allclose(np.sqrt(1.0 + every._without(X[7:8], K, np.ones(1))), expected, rtol=1e-6)
    width = np.diff(model.predict_interval(X, 0.8), axis=1)
    assert np.median(width) > 0.5 * np.std(model.loo_prediction_ - y)


def test_classes_have_their_weight_in_the_penalty(data):
    X, y = data
    model = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=X[:30], invariances=MOVED, mu=0.5)
    label = np.unique(y)
    heavy = clone(model).set_params(class_weight={label[0]: 1.0, label[1]: 7.0}).fit(X, y)
    weighted = clone(model).set_params(weights="importance").fit(X, y, np.where(y == label[1], 7.0, 1.0))
    assert_allclose(heavy.dual_coef_, weighted.dual_coef_, atol=1e-8)
    assert_allclose(heavy.loo_outputs_, weighted.loo_outputs_, atol=1e-8)


def test_a_large_penalty_makes_outputs_invariant(data):
    X, y = data
    changes = []
    for mu in (None, 1.0, 1e4):
        given = {} if mu is None else {"invariances": MOVED, "mu": mu}
        f = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=X, **given).fit(X, y)._outputs
        changes.append(float(np.std(f(raised(X)) - f(X)) / np.std(f(X))))
    assert changes[2] < 0.1 * changes[1] < 0.1 * changes[0]


@pytest.mark.slow
def test_the_weight_of_changes_is_chosen_by_leave_one_out(data):
    X, y = data
    model = KernelFisherClassifier(RBF(gamma=0.5), invariances=MOVED, mu="loo", random_state=0).fit(X, y)
    given = clone(model)
    best = {}
    for mu in (0.01, 0.1, 1.0, 10.0):
        best[mu] = given.set_params(mu=mu).fit(X, y).tuning_paths_[0].least[0]
    assert model.mu_ in (0.0, min(best, key=best.get))
    assert model.tuning_paths_[0].least[0] <= min(best.values()) * (1.0 + 1e-6)
    assert KernelFisherClassifier(RBF(gamma=0.5)).fit(X, y).mu_ is None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mu", [None, 0.5])
@pytest.mark.parametrize("estimator", [KernelFisherClassifier, KernelRidgeRegressor])
def test_leave_one_out_equals_refitting_without_the_row_and_its_copies(data, estimator, mu, dtype):
    X, y = data[0][:40].astype(dtype), data[1][:40]
    model = estimator(RBF(gamma=0.5), alpha=0.1, centers=X[:30], invariances=MOVED, mu=mu)
    some, outputs = range(0, len(y), 5), []
    for i in some:
        keep = np.arange(len(y)) != i
        outputs.append(model.fit(X[keep], y[keep])._outputs(X[i : i + 1])[0])
    found = model.fit(X, y)
    loo = found.loo_outputs_ if estimator is KernelFisherClassifier else found.loo_prediction_[:, None]
    assert_allclose(loo[some], outputs, atol=1e-8 if dtype is np.float64 else 1e-3)


def test_weights_that_count_rows_equal_repeated_rows(data):
    X, y = data
    count = np.where(np.arange(len(y)) < 20, 2.0, 1.0)
    model = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=X[:30], invariances=MOVED)
    weighted, again = (
        clone(model).fit(X, y, count),
        clone(model).fit(np.repeat(X, count.astype(int), 0), np.repeat(y, count.astype(int))),
    )
    assert_allclose(weighted.loo_outputs_, again.loo_outputs_[np.cumsum(count).astype(int) - 1], atol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mu", [None, 0.5])
def test_groups_leave_with_the_copies_of_all_their_rows(data, mu):
    X, y = data
    groups = np.arange(len(y)) // 4
    model = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=X[:30], invariances=MOVED, mu=mu)
    out = groups == 3
    outputs = clone(model).fit(X[~out], y[~out])._outputs(X[out])
    assert_allclose(model.fit(X, y, groups=groups).loo_outputs_[out], outputs, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [None, 0.5])
def test_rows_with_copies_are_added_and_removed(data, mu):
    X, y = data
    model = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=X[:20], invariances=[*MOVED], mu=mu)
    every = clone(model).fit(X, y)
    parts = clone(model).partial_fit(X[:25], y[:25]).partial_fit(X[25:], y[25:])
    assert_allclose(parts.dual_coef_, every.dual_coef_, atol=1e-9 * np.abs(every.dual_coef_).max())
    assert_allclose(parts.loo_outputs_, every.loo_outputs_, atol=1e-9)
    fewer = clone(model).fit(X[:50], y[:50])
    assert_allclose(parts.remove(X[50:], y[50:]).dual_coef_, fewer.dual_coef_, atol=1e-7)
    assert parts.moments_.n_rows == 50
    with pytest.raises(ValueError, match="mu was"):
        parts.set_params(mu=1.0 if mu is None else None).partial_fit(X, y)
    parts.set_params(mu=mu).invariances.append(raised)
    with pytest.raises(ValueError, match="invariances was"):
        parts.partial_fit(X, y)


def test_rows_outside_memory_have_copies_too(data):
    X, y = data
    model = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=X[:20], invariances=MOVED)
    blocks = [(X[:30], y[:30]), (X[30:], y[30:])]
    assert_allclose(clone(model).fit(blocks).dual_coef_, model.fit(X, y).dual_coef_, rtol=1e-8)


@pytest.mark.slow
def test_a_default_fit_makes_rows_and_copies_centers_and_scores_rows_alone(data):
    X, y = data
    model = KernelFisherClassifier(invariances=MOVED, random_state=0).fit(X, y)
    copies = [x for x in model.X_fit_.tolist() if x not in X.tolist()]
    assert 0 < len(copies) < len(model.X_fit_)
    assert model.support_ is None
    assert model.report_.n_rows == 60
    assert model.loo_proba_.shape == (60, 2)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.slow
def test_small_shifts_help_with_digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16.0, y[order]
    plain = KernelFisherClassifier(RBF(gamma=0.05), random_state=0).fit(X[:200], y[:200])
    moved = clone(plain).set_params(invariances=shifts(0.5), centers=800).fit(X[:200], y[:200])
    error, less = (1.0 - model.score(X[200:], y[200:]) for model in (plain, moved))
    assert less < 0.8 * error


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"invariances": "shift"}, TypeError, "pass a list of functions"),
        ({"invariances": MOVED, "kernel": "precomputed"}, ValueError, "a kernel matrix has none"),
        ({"mu": 1.0}, ValueError, "there are none; pass some"),
        ({"invariances": MOVED, "mu": -1.0}, ValueError, "mu=-1.0"),
        ({"invariances": MOVED, "centers": "all"}, ValueError, 'use "auto", or a number of centers'),
        (
            {"invariances": [lambda X: X[:, :1]]},
            ValueError,
            r"invariances\[0\] \(<lambda>\) returned an array of shape",
        ),
    ],
)
def test_errors_name_the_invariances(data, change, error, message):
    X, y = data
    X = X @ X.T if change.get("kernel") else X
    with pytest.raises(error, match=message):
        KernelFisherClassifier(**change).fit(X, y)
