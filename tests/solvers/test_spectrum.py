"""The solution, its degrees of freedom and its limits, against the equations written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge

from mercer._solvers.spectrum import Observations, decompose, fitted, solve
from mercer.kernels import RBF
from mercer.rows._distinct import distinct_rows, every_row

ALPHAS = 10.0 ** np.arange(-8, 7, 2)


@pytest.fixture
def K(rng, frozen):
    X = rng.normal(size=(25, 3))
    return frozen(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)))


@pytest.fixture
def Y(rng, frozen):
    return frozen(rng.normal(size=(25, 2)))


@pytest.fixture
def weight(rng, frozen):
    return frozen(rng.uniform(0.2, 3.0, 25))


def observations_of(Y, weight):
    return Observations(Y, weight, np.minimum(weight, 1.0), every_row(len(Y)))


def bordered(K, weight, alpha):
    """[[K + alpha / w, 1], [1', 0]], whose unknowns are coefficients and intercept."""
    n = len(K)
    return np.block([[K + alpha * np.diag(1 / weight), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])


def smoother_matrix(K, weight, alpha, *, intercept):
    """S with fitted values S y, column by column."""
    n = len(K)
    if not intercept:
        return K @ np.linalg.inv(K + alpha * np.diag(1 / weight))
    solution = np.linalg.solve(bordered(K, weight, alpha), np.eye(n + 1)[:, :n])
    return K @ solution[:n] + solution[n]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_solution_satisfies_the_normal_equations(K, Y, weight, alpha):
    found = solve(decompose(K, weight), observations_of(Y, weight), alpha)
    residual = bordered(K, weight, alpha) @ np.vstack([found.coef, found.intercept])
    residual[:-1] -= Y
    # Backward error: eps times matrix times solution, with room for the sums over 25 rows.
    size = (np.linalg.norm(K, 2) + alpha / weight.min()) * np.abs(found.coef).max() + np.abs(Y).max()
    assert np.abs(residual).max() <= 1e-13 * size


@pytest.mark.parametrize("alpha", ALPHAS)
def test_solution_without_intercept_is_that_of_kernel_ridge(K, Y, weight, alpha):
    found = solve(decompose(K, weight, intercept=False), observations_of(Y, weight), alpha)
    exact = KernelRidge(alpha=alpha, kernel="precomputed").fit(K, Y, sample_weight=weight)
    assert_allclose(found.intercept, 0.0)
    assert_allclose(K @ found.coef, exact.predict(K), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_solution_is_kernel_ridge_on_centered_values_and_targets(K, Y, alpha):
    C = np.eye(25) - 1 / 25
    exact = KernelRidge(alpha=alpha, kernel="precomputed").fit(C @ K @ C, C @ Y)
    found = solve(decompose(K, np.ones(25)), observations_of(Y, np.ones(25)), alpha)
    assert_allclose(K @ found.coef + found.intercept, C @ K @ C @ exact.dual_coef_ + Y.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 100.0])
def test_solution_is_the_linear_system_of_the_dual(K, Y, C):
    # Mika (2002), Eq. (3.63): [[K/C + I, 1], [1', 0]] [a; b] = [y; 0], coefficients a / C.
    exact = np.linalg.solve(bordered(K / C, np.ones(25), 1.0), np.vstack([Y, np.zeros((1, 2))]))
    found = solve(decompose(K, np.ones(25)), observations_of(Y, np.ones(25)), C)
    assert_allclose(found.coef, exact[:-1] / C, rtol=1e-9, atol=1e-9 * np.abs(exact / C).max())
    assert_allclose(found.intercept, exact[-1], rtol=1e-9)


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_solution_with_the_penalty_on_coefficients_is_its_linear_system(K, Y, C):
    # Mika (2002), Eq. (3.64): K'K in place of K, coefficients K b / C.
    exact = np.linalg.solve(bordered(K.T @ K / C, np.ones(25), 1.0), np.vstack([Y, np.zeros((1, 2))]))
    found = solve(decompose(K, np.ones(25), penalty="coef"), observations_of(Y, np.ones(25)), C)
    assert_allclose(found.coef, K @ exact[:-1] / C, rtol=1e-9, atol=1e-9 * np.abs(found.coef).max())
    assert_allclose(found.intercept, exact[-1], rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_fitted_values_are_those_of_the_coefficients(K, Y, weight, penalty, intercept):
    spectrum = decompose(K, weight, penalty=penalty, intercept=intercept)
    for alpha in ALPHAS[2:]:
        found = solve(spectrum, observations_of(Y, weight), alpha)
        f = fitted(spectrum, observations_of(Y, weight), alpha)
        assert_allclose(K @ found.coef + found.intercept, f, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_degrees_of_freedom_are_the_trace_of_the_smoother(K, weight, penalty, intercept):
    G = K if penalty == "rkhs" else K @ K.T
    exact = [np.trace(smoother_matrix(G, weight, a, intercept=intercept)) for a in ALPHAS]
    spectrum = decompose(K, weight, penalty=penalty, intercept=intercept)
    assert_allclose(spectrum.degrees_of_freedom(ALPHAS), exact, rtol=1e-7)


def test_small_penalty_interpolates(K, Y, weight):
    f = fitted(decompose(K, weight), observations_of(Y, weight), 1e-12)
    # The residual is alpha / w times coefficients below |y| / (least eigenvalue).
    assert_allclose(f, Y, atol=1e-12 / weight.min() * np.abs(Y).sum() / np.linalg.eigvalsh(K)[0])


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_large_penalty_leaves_the_weighted_mean(K, Y, weight, penalty):
    spectrum = decompose(K, weight, penalty=penalty)
    f = fitted(spectrum, observations_of(Y, weight), 1e14)
    assert_allclose(f, np.tile(weight @ Y / weight.sum(), (25, 1)), atol=1e-10)
    without = decompose(K, weight, penalty=penalty, intercept=False)
    assert_allclose(fitted(without, observations_of(Y, weight), 1e14), 0.0, atol=1e-10)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("intercept", [True, False])
def test_singular_matrix_fits_the_means_of_its_copies(K, Y, penalty, intercept):
    twice = np.r_[np.arange(10), np.arange(10)]
    spectrum = decompose(K[np.ix_(twice, twice)], np.ones(20), penalty=penalty, intercept=intercept)
    assert spectrum.rank == 10 - intercept
    assert spectrum.negative == 0.0
    f = fitted(spectrum, observations_of(Y[:20], np.ones(20)), 1e-9)
    assert_allclose(f, ((Y[:10] + Y[10:20]) / 2)[twice], atol=1e-6)


def test_negative_part_of_an_indefinite_matrix_is_reported_and_clipped(K, Y):
    values, vectors = np.linalg.eigh(K)
    values[0] = -0.25 * values[-1]
    spectrum = decompose((vectors * values) @ vectors.T, np.ones(25), intercept=False)
    assert_allclose(spectrum.negative, 0.25, rtol=1e-10)
    assert (spectrum.values >= 0).all()
    clipped = decompose((vectors * values.clip(0)) @ vectors.T, np.ones(25), intercept=False)
    observations = observations_of(Y, np.ones(25))
    assert clipped.negative == 0.0
    assert_allclose(fitted(spectrum, observations, 0.1), fitted(clipped, observations, 0.1), rtol=1e-10)


def test_rounding_of_a_semidefinite_matrix_is_no_negative_part(rng):
    Z = rng.normal(size=(40, 3))
    for dtype in (np.float64, np.float32):
        spectrum = decompose((Z @ Z.T).astype(dtype), np.ones(40))
        assert spectrum.negative == 0.0
        assert spectrum.rank == 3


@pytest.mark.slow
def test_rounding_errors_that_conspire_are_no_negative_part(rng):
    # An error of |x|² is one of a whole row and column: with n of them the norm grows with n, not with its root.
    X = rng.normal(size=(1600, 3))
    assert decompose(RBF(gamma=1e-6).block(X, X), np.ones(1600)).negative == 0.0


def test_trace_is_that_of_the_centered_weighted_matrix(K, weight):
    s = np.sqrt(weight)
    H = np.eye(25) - np.outer(s, s) / weight.sum()
    exact = np.trace(H @ (K * np.outer(s, s)) @ H)
    assert_allclose(decompose(K, weight).trace, exact, rtol=1e-12)


def test_part_of_the_points_carries_all_their_rows(rng):
    point = np.array([0, 1, 2, 1, 0, 3])
    everything = Observations(
        rng.normal(size=(6, 1)), np.arange(1.0, 7), np.ones(6), distinct_rows(point[:, None])
    )
    part, rows = everything.at_points(np.array([1, 3]))
    assert rows.tolist() == [1, 3, 5]
    assert part.rows.point.tolist() == [0, 0, 1]
    assert_allclose(part.point_weight, everything.point_weight[[1, 3]])
    assert_allclose(part.point_target, everything.point_target[[1, 3]])
