"""Fits with the first of some centers are those with these centers alone, and leaving out is refitting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._gram.moments import MomentsOf
from mercer._linalg import factor_spd
from mercer._solvers import leave_one_out
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.moments.nested_centers import CENTER_SHIFT, NestedCenters
from mercer._solvers.moments.ridge import decompose_moments
from mercer._solvers.spectrum import Observations, decompose
from mercer.kernels import RBF
from mercer.rows._base import Block
from mercer.rows._distinct import distinct_rows, every_row

# Narrow enough for a condition of K_zz below 1e3, far from the shift.
KERNEL = RBF(gamma=1.0)
ALPHAS = np.array([1e-4, 1e-2, 1.0, 1e3])
N, M = 50, 12
# The shift moves eigenvalues of K_zz by 1e-10 of the largest: directions of condition 1e3 by at most 1e-7.
SHIFTED = 1e3 * CENTER_SHIFT

LONG = np.longdouble
EPS = np.finfo(np.float64).eps

penalties = pytest.mark.parametrize("penalty", ["rkhs", "coef"])
intercepts = pytest.mark.parametrize("intercept", [True, False])


@pytest.fixture
def rows(rng):
    """Rows, targets, weights and the part of them that is held out with a row."""
    weight = rng.uniform(0.3, 2.0, N)
    return rng.normal(size=(N, 3)), rng.normal(size=(N, 2)), weight, np.minimum(weight, 1.0)


def nested(X, weight, centers, *, penalty="rkhs", intercept=True):
    K = KERNEL.block(X, X[centers])
    return NestedCenters.of(K, K[centers] if penalty == "rkhs" else None, weight, intercept=intercept)


def refitted(K, R, Y, w, alpha, *, intercept):
    """Outputs (n, q) at all rows of the normal equations with penalty alpha c'Rc."""
    K, R = (np.column_stack([K, np.ones(len(K))]), np.pad(R, (0, 1))) if intercept else (K, R)
    return K @ np.linalg.solve(K.T @ (w[:, None] * K) + alpha * R, K.T @ (w[:, None] * Y))


@pytest.mark.sampled(4)
@penalties
@intercepts
@pytest.mark.parametrize("m", [1, 5, M])
@pytest.mark.parametrize("in_folds", [False, True])
def test_leaving_out_with_the_first_centers_equals_refitting(rows, rng, m, in_folds, intercept, penalty):
    X, Y, weight, unit = rows
    centers = rng.permutation(N)[:M]
    fold = np.arange(N) % 7 if in_folds else None
    observations = Observations(Y, weight, unit, every_row(N))
    found = loo_outputs(
        nested(X, weight, centers, penalty=penalty, intercept=intercept).first(m), observations, ALPHAS, fold
    )
    K = KERNEL.block(X, X[centers[:m]])
    R = K[centers[:m]] if penalty == "rkhs" else np.eye(m)
    for a, alpha in enumerate(ALPHAS):
        for i in range(N):
            left = weight - unit * (np.arange(N) == i) if fold is None else weight * (fold != fold[i])
            exact = refitted(K, R, Y, left, alpha, intercept=intercept)[i]
            assert_allclose(found[a, i], exact, atol=SHIFTED)


@penalties
@intercepts
@pytest.mark.parametrize("m", [3, M])
def test_the_first_centers_give_the_outputs_of_moments(rows, m, intercept, penalty):
    X, Y, weight, unit = rows
    Z, centers = X[:m], np.arange(M)
    spectrum = decompose_moments(
        MomentsOf(KERNEL, Z)(Block(X, Y, weight, 0)),
        KERNEL.block(Z, Z) if penalty == "rkhs" else None,
        intercept=intercept,
    )
    fits = nested(X, weight, centers, penalty=penalty, intercept=intercept).first(m)
    found = loo_outputs(fits, Observations(Y, weight, unit, every_row(N)), ALPHAS)
    assert_allclose(found, spectrum.loo_map(ALPHAS)(KERNEL.block(X, Z), Y, unit), atol=SHIFTED)
    assert fits.trace == pytest.approx(spectrum.trace, rel=SHIFTED)


@penalties
@intercepts
@pytest.mark.parametrize("in_folds", [False, True])
def test_all_points_as_centers_give_the_exact_fit(rng, in_folds, intercept, penalty):
    u = 20
    X, point = rng.normal(size=(u, 3)), np.r_[np.arange(u), rng.integers(u, size=10)]
    weight = rng.uniform(0.3, 2.0, u + 10)
    observations = Observations(
        rng.normal(size=(u + 10, 2)), weight, weight, distinct_rows(point[:, None].astype(float))
    )
    fold = np.arange(u + 10) % 4 if in_folds else None
    total = observations.point_weight
    fits = nested(X, total, rng.permutation(u), penalty=penalty, intercept=intercept).first()
    exact = decompose(KERNEL.block(X, X), total, penalty=penalty, intercept=intercept)
    found = loo_outputs(fits, observations, ALPHAS, fold)
    assert_allclose(found, loo_outputs(exact, observations, ALPHAS, fold), atol=SHIFTED)


def refitted_without(fits, observations, alpha, fold):
    """Outputs (n, q) of all rows for the fits to the other folds: normal equations in extended precision."""
    point, w, Y = observations.rows.point, observations.weight.astype(LONG), observations.Y
    F = (fits.Z.astype(LONG) / fits.root_weight.astype(LONG)[:, None])[point]
    F, R = np.column_stack([F, np.full(len(F), fits.has_intercept)]), LONG(alpha) * np.eye(F.shape[1] + 1)
    R[-1, -1] = not fits.has_intercept
    outputs = np.empty(Y.shape, LONG)
    for f in np.unique(fold):
        WF = (w * (fold != f))[:, None] * F
        outputs[fold == f] = F[fold == f] @ eliminated(WF.T @ F + R, WF.T @ Y)
    return outputs


def eliminated(A, B):
    """A^-1 B in the precision of A, definite: no pivots."""
    A = np.column_stack([A, B])
    for j in range(len(A)):
        A[j] /= A[j, j]
        others = np.arange(len(A)) != j
        A[others] -= A[others, j, None] * A[j]
    return A[:, len(A) :]


def copied(rng, u, n):
    """n rows with conflicting targets at u points, the last n - u of them copies."""
    point = np.r_[np.arange(u), rng.integers(u, size=n - u)]
    weight = rng.uniform(0.3, 2.0, n)
    return Observations(rng.normal(size=(n, 2)), weight, weight, distinct_rows(point[:, None].astype(float)))


FOLDS = {
    "halves": lambda point: np.arange(len(point)) % 2,
    "unequal": lambda point: np.minimum(np.arange(len(point)) // 5, 3),
    "most rows": lambda point: (np.arange(len(point)) % 10 == 0).astype(int),
    "copies together": lambda point: point % 3,
}


@pytest.mark.sampled(12)
@penalties
@intercepts
@pytest.mark.parametrize("n", [N, N + 25, 4 * N])
@pytest.mark.parametrize("folds", FOLDS)
def test_leaving_out_folds_with_more_points_than_centers_equals_refitting(rng, folds, n, intercept, penalty):
    observations = copied(rng, N, n)
    fold = FOLDS[folds](observations.rows.point)
    X, centers = rng.normal(size=(N, 3)), rng.permutation(N)[:M]
    fits = nested(X, observations.point_weight, centers, penalty=penalty, intercept=intercept).first()
    alphas = np.r_[1e-10, 1e-7, ALPHAS]
    found = loo_outputs(fits, observations, alphas, fold)
    for outputs, alpha in zip(found, alphas):
        exact = refitted_without(fits, observations, alpha, fold)
        assert_allclose(outputs, exact.astype(float), rtol=0, atol=1e-9 * np.abs(exact).max())


@intercepts
def test_leaving_out_large_folds_loses_what_a_small_alpha_leaves_open(rng, intercept):
    x, observations = rng.normal(size=(N, 1)), copied(rng, N, N)
    # Wide: eigenvalues down to rounding, all of them far below the smallest alpha or far above.
    K = np.exp(-0.1 * (x - x[:M].T) ** 2)
    fits = NestedCenters.of(K, K[:M], observations.point_weight, intercept=intercept).first()
    for alpha in fits.trace * np.array([1e-8, 1e-5, 1e-2]):
        found = loo_outputs(fits, observations, np.array([alpha]), np.arange(N) % 2)[0]
        exact = refitted_without(fits, observations, alpha, np.arange(N) % 2).astype(float)
        # An error of the sums that is eps times the trace moves the solution by eps trace / alpha.
        assert_allclose(found, exact, rtol=0, atol=50 * EPS * (1 + fits.trace / alpha) * np.abs(exact).max())


@intercepts
@pytest.mark.parametrize("n", [N, 4 * N])
def test_no_system_is_larger_than_the_number_of_centers(rng, monkeypatch, n, intercept):
    sizes = []

    def counting(solver):
        def counted(A, *rest):
            sizes.append(A.shape[-1])
            return solver(A, *rest)

        return counted

    monkeypatch.setattr(np.linalg, "solve", counting(np.linalg.solve))
    monkeypatch.setattr(leave_one_out, "factor_spd", counting(factor_spd), raising=False)
    observations, X = copied(rng, N, n), rng.normal(size=(N, 3))
    fits = nested(X, observations.point_weight, np.arange(M), intercept=intercept).first()
    loo_outputs(fits, observations, ALPHAS, np.arange(n) % 2)
    assert 0 < max(sizes) <= M


def test_centers_that_depend_on_each_other_change_nothing(rows):
    X, Y, weight, unit = rows
    observations = Observations(Y, weight, unit, every_row(N))
    once, twice = (
        loo_outputs(nested(X, weight, centers).first(), observations, ALPHAS)
        for centers in (np.arange(M), np.r_[np.arange(M), np.arange(M)])
    )
    # The second copy of a center is a direction of length 1e-5, penalized as if it were one of the kernel's.
    assert_allclose(twice, once, atol=1e-5)


def test_directions_in_which_a_kernel_is_negative_are_not_used(rows):
    X, Y, *_ = rows
    K = np.tanh(X @ X.T - 1.0)
    assert np.linalg.eigvalsh(K)[0] < -1.0
    ones = np.ones(N)
    observations = Observations(Y, ones, ones, every_row(N))
    found = loo_outputs(NestedCenters.of(K, K, ones, intercept=False).first(), observations, ALPHAS)
    exact = loo_outputs(decompose(K, ones, intercept=False), observations, ALPHAS)
    # The shift of 1e-10 against alpha = 1e-4.
    assert_allclose(found, exact, atol=1e-5 * np.abs(exact).max())


def test_a_kernel_that_is_zero_fits_the_mean(rows):
    _, Y, weight, _ = rows
    fits = NestedCenters.of(np.zeros((N, M)), np.zeros((M, M)), weight).first()
    found = loo_outputs(fits, Observations(Y, weight, weight, every_row(N)), ALPHAS)
    rest = weight @ Y - weight[:, None] * Y
    assert_allclose(found, np.broadcast_to(rest / (weight.sum() - weight)[:, None], found.shape), rtol=1e-12)
    first = np.arange(N) < N // 2
    halves = loo_outputs(fits, Observations(Y, weight, weight, every_row(N)), ALPHAS, first)
    mean = np.average(Y[~first], axis=0, weights=weight[~first])
    assert_allclose(halves[:, first], np.broadcast_to(mean, halves[:, first].shape), rtol=1e-12)


def test_fits_do_not_write_to_the_kernel_values(rows, frozen):
    X, _, weight, _ = rows
    K = frozen(KERNEL.block(X, X[:M]))
    before = K.copy()
    for among in (frozen(K[:M]), None):
        NestedCenters.of(K, among, weight).first(3)
    assert_array_equal(K, before)
