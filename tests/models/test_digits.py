"""The digits that outputs are promised to have: see the page on digits."""

import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.centers import Given
from mercer.errors import NumericalWarning
from mercer.export import to_python
from mercer.kernels import RBF, Linear, Polynomial

# Of the spread of the outputs.
PROMISED = 1e-6
SHARES = (1e-10, 1e-7, 1e-4, 1e-1)


def in_decimals(A):
    return np.vectorize(lambda a: Decimal(float(a)), otypes=[object])(A)


def solved(A, b):
    """A^-1 b by elimination."""
    A = np.column_stack([A, b])
    for k in range(len(A)):
        p = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, p]] = A[[p, k]]
        A[k + 1 :] -= np.outer(A[k + 1 :, k] / A[k, k], A[k])
    x = np.empty(len(A), dtype=object)
    for k in reversed(range(len(A))):
        x[k] = (A[k, -1] - A[k, k + 1 : -1] @ x[k + 1 :]) / A[k, k]
    return x


def exact_outputs(X, Z, y, gamma, alpha):
    """Outputs fitted and left out of the normal equations, in 60 digits from the kernel values on."""
    with localcontext() as context:
        context.prec = 60

        def values(A, B):
            return np.array([[(-Decimal(gamma) * ((a - b) ** 2).sum()).exp() for b in B] for a in A], dtype=object)

        X, Z, y, m = in_decimals(X), in_decimals(Z), in_decimals(y), len(Z)
        F = np.column_stack([values(X, Z), in_decimals(np.ones(len(X)))])
        A, b = F.T @ F, F.T @ y
        A[:m, :m] += Decimal(alpha) * values(Z, Z)
        left = [f @ solved(A - np.outer(f, f), b - f * t) for f, t in zip(F, y)]
        return (F @ solved(A, b)).astype(float), np.array(left, dtype=float)


@pytest.fixture
def noisy(rng, frozen):
    X = rng.normal(size=(40, 2))
    return frozen(X), frozen(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=40))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("distance", "gamma"), [(1e-2, 0.4), (1e-3, 0.4), (1e-4, 0.4), (1e-1, 0.01)])
def test_fits_with_nearly_dependent_centers_are_those_of_sixty_digits(noisy, rng, distance, gamma, share):
    X, y = noisy
    Z = np.vstack([X[:6], X[:6] + distance * rng.normal(size=(6, 2))])
    # The trace of the whitened moments is at most that of forty rows of k(x, x) = 1.
    model = KernelRidgeRegressor(RBF(gamma=gamma), alpha=40 * share, centers=Given(Z)).fit(X, y)
    fitted, left = exact_outputs(X, model.X_fit_, y, gamma, model.alpha_)
    error = np.abs(model.predict(X) - fitted).max() / y.std()
    assert error <= model.report_.error <= PROMISED
    # A row with the leverage h is left out by a division by 1 - h.
    stays = np.abs((y - fitted) / (y - left))
    assert (np.abs(model.loo_prediction_ - left) * stays / y.std() <= PROMISED).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("d", "gamma"), [(2, 0.05), (3, 0.2), (8, 0.1)])
def test_the_same_rows_in_other_blocks_give_the_same_outputs(rng, d, gamma, share):
    X = rng.normal(size=(12_000, d))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=12_000)
    outputs = []
    for order, size in ((np.arange(12_000), 12_000), (rng.permutation(12_000), 777)):
        model = KernelRidgeRegressor(RBF(gamma=gamma), alpha=12_000 * share, centers=Given(X[:150]))
        for start in range(0, 12_000, size):
            model.partial_fit(X[order][start : start + size], y[order][start : start + size])
        outputs.append(model.predict(X[:1000]))
    assert np.abs(outputs[0] - outputs[1]).max() <= PROMISED * y.std()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kernel", "centers"),
    # With fewer centers than rows the origin decides what else 60 centers of a sum span, and which are chosen.
    [(Linear(), "all"), (Linear(), 60), (0.5 * Linear(), 60), (Linear() + RBF(gamma=0.1), "all")],
)
def test_linear_kernels_do_not_see_a_common_offset(rng, kernel, centers):
    X = rng.normal(size=(200, 4))
    y = X[:, 0] + 0.5 * rng.normal(size=200) > 0
    models = [
        KernelFisherClassifier(kernel, alpha=0.1, centers=centers, random_state=0).fit(X + offset, y)
        for offset in (0.0, 1e6)
    ]
    probabilities = [model.predict_proba(X + offset) for model, offset in zip(models, (0.0, 1e6))]
    # The rows themselves are rounded at 1e-10.
    assert np.abs(probabilities[0] - probabilities[1]).max() <= PROMISED
    assert np.abs(models[0].loo_proba_ - models[1].loo_proba_).max() <= PROMISED


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kernel", [Linear(), 2.0 * Linear(), Linear() + RBF(gamma=0.1)], ids=str)
@pytest.mark.parametrize("m", [1, 2, 8])
@pytest.mark.parametrize("first", [1, 20])
def test_the_first_batch_does_not_decide_the_model_of_given_centers(rng, kernel, m, first):
    X = rng.normal(size=(60, 3)) + 30.0
    y = X[:, 0] + 0.5 * rng.normal(size=60)
    model = KernelRidgeRegressor(kernel, alpha=0.1, centers=Given(X[:m]))
    once = model.fit(X, y).predict(X)
    again = KernelRidgeRegressor(kernel, alpha=0.1, centers=Given(X[:m])).partial_fit(X[:first], y[:first])
    error = max(PROMISED, model.report_.error)
    assert np.abs(again.partial_fit(X[first:], y[first:]).predict(X) - once).max() <= error * y.std()


def test_without_an_intercept_the_origin_stays(rng):
    X = rng.normal(size=(50, 2)) + 1e3
    model = KernelRidgeRegressor("linear", alpha=1.0, fit_intercept=False).fit(X, X[:, 0])
    assert model.kernel_.origin is None


def test_an_origin_is_exported(rng):
    X = rng.normal(size=(50, 2)) + 1e3
    model = KernelRidgeRegressor("linear", alpha=1.0).fit(X, X[:, 0])
    assert model.kernel_.origin is not None
    module = {}
    exec(to_python(model), module)
    assert np.allclose([module["outputs"](x)[0] for x in X], model.predict(X), rtol=1e-10)


@pytest.mark.parametrize("centers", ["all", 60])
def test_digits_that_are_lost_are_told(rng, centers):
    X = rng.normal(size=(200, 4)) + 1e6
    y = X[:, 0] + 0.5 * rng.normal(size=200) > 1e6
    with pytest.warns(NumericalWarning, match=r"change outputs by .* StandardScaler") as record:
        model = KernelFisherClassifier(Polynomial(degree=2), alpha=1e10, centers=centers).fit(X, y)
    assert len(record) == 1
    assert model.report_.error > 1e-3
    assert "rounding" in str(model.report_)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("centers", ["all", 60])
def test_smooth_kernels_are_no_reason_to_warn(rng, gamma, centers):
    X = rng.normal(size=(300, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelFisherClassifier(RBF(gamma=gamma), centers=centers).fit(X, X[:, 0] > 0)
    assert model.report_.error < 1e-3
