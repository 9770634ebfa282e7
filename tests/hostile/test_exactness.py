"""Closed forms against what they stand for, on random problems: refitting, one fit of all rows, rows never added.

Refitting is done by an independent solver, orthogonal and dense. The tolerance is what the library promises: 1e-6
of the size of the outputs, or the error in the report where that is larger, times what a row that leaves grows by.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._scores.class_outputs import class_targets
from mercer.kernels import RBF, Laplacian, Linear, Matern, Polynomial

# Where rounding matters a warning says so, and the report by how much: the tolerance follows it.
pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.NumericalWarning")
CASES = settings(settings.get_profile("hostile"))
TOLERANCE = 1e-6
KERNELS = [RBF(gamma=0.3), RBF(gamma=3.0), Laplacian(gamma=0.5), Matern(gamma=0.4, nu=1.5), Linear()]
KERNELS = [*KERNELS, Polynomial(degree=2, gamma=0.5, coef0=1.0), RBF(gamma=0.1) + Linear()]


@st.composite
def problems(draw, least=8):
    """A model with kernel and alpha, rows with copies among them, targets, weights or None."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, q = draw(st.integers(least, 24)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    X = rng.normal(size=(n, d)) * 10.0 ** draw(st.integers(-1, 1))
    if draw(st.booleans()):
        X[rng.integers(n, size=n // 4)] = X[0]
    alpha = 10.0 ** draw(st.floats(-6, 3))
    penalty = draw(st.sampled_from(["rkhs", "coef"]))
    kernel = draw(st.sampled_from(KERNELS))
    weight = draw(st.sampled_from([None, rng.uniform(0.2, 3.0, n), rng.integers(1, 4, n).astype(float)]))
    choices = {"alpha": alpha, "penalty": penalty, "weights": draw(st.sampled_from(["auto", "importance"]))}
    if weight is not None and (weight == np.round(weight)).all():
        choices["weights"] = draw(st.sampled_from(["counts", "importance"]))
    if draw(st.booleans()):
        model = KernelFisherClassifier(kernel, **choices)
        return model, X, np.resize(np.arange(q + 1), n), weight, rng
    intercept = draw(st.booleans())
    model = KernelRidgeRegressor(kernel, fit_intercept=intercept, **choices)
    return model, X, rng.normal(size=n if q == 1 else (n, q)), weight, rng


def outputs(model, X):
    """f (n, q), whatever the model makes of it."""
    return np.asarray(model._expansion()(X))


def left_out(model):
    return (
        model.loo_outputs_
        if hasattr(model, "classes_")
        else model.loo_prediction_.reshape(len(model.loo_index_), -1)
    )


def without(row, model, weight, n):
    """The weights that are left (n,) when this row leaves, or of counted copies one of them."""
    weight = np.ones(n) if weight is None else weight.copy()
    weight[row] = weight[row] - 1.0 if model.weights == "counts" else 0.0
    return weight


def solved(model, X, y, weight, centers, rows):
    """Outputs (b, q) at rows, by orthogonal least squares on the rows on top of a root of the penalty."""
    basis = np.eye(len(centers)) if model.penalty == "coef" else whitening(model.kernel.block(centers, centers))
    intercept = float(getattr(model, "fit_intercept", True))

    def features(Z):
        return np.column_stack([np.full(len(Z), intercept), model.kernel.block(Z, centers) @ basis])

    m, s = basis.shape[1], np.sqrt(weight)[:, None]
    penalty = np.sqrt(model.alpha) * np.eye(1 + m)[1:]
    A, b = np.vstack([s * features(X), penalty]), np.vstack([s * y, np.zeros((m, y.shape[1]))])
    return features(rows) @ np.linalg.lstsq(A, b, rcond=None)[0]


def whitening(K):
    """B with B'KB = I on what is no rounding error of K."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 4.0 * len(K) * np.finfo(float).eps * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def fit(model, X, y, weight, **parameters):
    return type(model)(**{**model.get_params(deep=False), **parameters}).fit(X, y, sample_weight=weight)


def targets(model, y):
    if isinstance(model, KernelFisherClassifier):
        return class_targets(y, len(np.unique(y)))
    return y.reshape(len(y), -1)


def tolerance(*models):
    """What the models promise, in the unit of their outputs."""
    return max(TOLERANCE, *(model.report_.error for model in models))


def check_left_out(model, case, centers):
    _, X, y, weight, _ = case
    Y, F, loo = targets(model, y), outputs(model, X), left_out(model)
    # One over one minus the leverage: what the residual of a row grows by when it leaves.
    enlarged = np.linalg.norm(Y - loo, axis=1) / np.maximum(np.linalg.norm(Y - F, axis=1), 1e-12)
    for row in range(0, len(X), 3):
        exact = solved(model, X, Y, without(row, model, weight, len(X)), centers, X[row : row + 1])[0]
        size = (1.0 + np.abs(exact).max()) * max(1.0, enlarged[row])
        assert_allclose(loo[row], exact, atol=tolerance(model) * size, rtol=0)


@pytest.mark.slow
@given(problems())
@CASES
def test_leave_one_out_equals_refitting(case):
    model, X, y, weight, _ = case
    # Rows that leave are no longer centers, which the penalty c'c notices; the closed form keeps them.
    check_left_out(fit(model, X, y, weight), case, np.unique(X, axis=0))


@pytest.mark.slow
@given(problems(), st.integers(1, 6))
@CASES
def test_leave_one_out_with_centers_equals_refitting(case, m):
    model, X, y, weight, rng = case
    centers = X[rng.choice(len(X), m, replace=False)]
    full = fit(model, X, y, weight, centers=centers)
    check_left_out(full, case, full.X_fit_)


@pytest.mark.slow
@given(problems(), st.integers(1, 6), st.lists(st.integers(1, 23), max_size=4))
@CASES
def test_batches_equal_one_fit(case, m, cuts):
    model, X, y, weight, rng = case
    centers = X[rng.choice(len(X), m, replace=False)]
    full = fit(model, X, y, weight, centers=centers)
    parts = np.split(np.arange(len(X)), sorted({cut for cut in cuts if cut < len(X)}))
    model = type(model)(**{**model.get_params(deep=False), "centers": centers})
    known = {"classes": np.unique(y)} if isinstance(model, KernelFisherClassifier) else {}
    for part in parts:
        weights = {} if weight is None else {"sample_weight": weight[part]}
        model.partial_fit(X[part], y[part], **weights, **known)
        known = {}
    size = tolerance(model, full) * (1.0 + np.abs(outputs(full, X)).max())
    assert_allclose(outputs(model, X), outputs(full, X), atol=size, rtol=0)
    check_left_out(model, case, model.X_fit_)


@pytest.mark.slow
@given(problems(least=12), st.integers(1, 6), st.integers(1, 4))
@CASES
def test_rows_removed_are_rows_never_added(case, m, n_gone):
    model, X, y, weight, rng = case
    centers = X[rng.choice(len(X), m, replace=False)]
    stay = np.sort(rng.choice(len(X), len(X) - n_gone, replace=False))
    gone = np.setdiff1d(np.arange(len(X)), stay)
    if isinstance(model, KernelFisherClassifier) and len(np.unique(y[stay])) < len(np.unique(y)):
        return
    some = (lambda rows: None) if weight is None else (lambda rows: weight[rows])
    never = fit(model, X[stay], y[stay], some(stay), centers=centers)
    removed = fit(model, X, y, weight, centers=centers).remove(X[gone], y[gone], sample_weight=some(gone))
    size = tolerance(removed, never) * (1.0 + np.abs(outputs(never, X)).max())
    assert_allclose(outputs(removed, X[stay]), outputs(never, X[stay]), atol=size, rtol=0)
