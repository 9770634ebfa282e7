"""A fit by a Cholesky factor for one alpha is the fit by the spectrum, and both are refitting."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._linalg import limit_threads
from mercer._solvers import Observations, decompose
from mercer._solvers.exact_fits import RootFit, SpectrumFit
from mercer._solvers.inverse_root import Projected
from mercer.errors import NumericalError
from mercer.rows._distinct import distinct_rows, every_row

SHARES = np.array([1.0, 1e3, 1e6, 1e9])
EPS = np.finfo(np.float64).eps


def narrow_rbf(rng, u):
    """Condition about ten."""
    X = rng.normal(size=(u, 4))
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2))


def low_rank(rng, u):
    """Half of the eigenvalues are zero."""
    Z = rng.normal(size=(u, max(u // 2, 1)))
    return Z @ Z.T


def wide_rbf(rng, u):
    """Singular in double precision: condition 1e16 and more."""
    x = np.sort(rng.normal(size=(u, 1)), axis=0)
    return np.exp(-0.1 * (x - x.T) ** 2)


MATRICES = [narrow_rbf, low_rank, wide_rbf]


def observed(rng, u, n, q=2):
    """n rows at u points, weights on both sides of one."""
    point = np.r_[np.arange(u), rng.integers(u, size=n - u)]
    weight = rng.uniform(0.2, 3.0, n)
    rows = distinct_rows(point[:, None].astype(float))
    return Observations(rng.normal(size=(n, q)), weight, np.minimum(weight, 1.0), rows)


def counted(observations):
    """Weights are counts; what if they were importance is in doubt."""
    weight = np.ceil(observations.weight)
    return Observations(observations.Y, weight, np.ones_like(weight), observations.rows, weight)


def important(observations):
    return replace(observations, unit=observations.weight)


def both(K, observations, *, intercept=True, fold=None, workers=1):
    w = observations.point_weight
    spectrum = SpectrumFit(decompose(K, w, intercept=intercept), observations, fold)
    return spectrum, RootFit(Projected.of(K, w, intercept=intercept), observations, fold, workers)


def share_lost(K, observations, alphas):
    """Either method solves for S K S + E with |E| of a few eps |S K S|, which changes residuals by |E| / alpha."""
    s = np.sqrt(observations.point_weight)
    return 30 * EPS * (1.0 + np.linalg.norm(K * s * s[:, None], 2) / alphas)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("meaning", [counted, important])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("in_folds", [False, True])
@pytest.mark.parametrize(("u", "n"), [(2, 2), (12, 12), (20, 30)])
def test_roots_give_all_that_the_spectrum_gives(rng, u, n, in_folds, intercept, meaning, matrix):
    K, observations = matrix(rng, u), meaning(observed(rng, u, n))
    fold = np.arange(n) % max(n // 4, 2) if in_folds else None
    spectrum, roots = both(K, observations, intercept=intercept, fold=fold)
    alphas = roots.projected.least_alpha * SHARES
    lost = share_lost(K, observations, alphas)
    assert_relative(roots.loo_outputs(alphas), spectrum.loo_outputs(alphas), lost)
    assert (roots.opposite is None) == (spectrum.opposite is None) == (meaning is important)
    if spectrum.opposite is not None:
        assert_relative(roots.opposite.loo_outputs(alphas), spectrum.opposite.loo_outputs(alphas), lost)
    w = observations.point_weight
    assert roots.spectrum.trace == pytest.approx(spectrum.spectrum.trace, rel=u * EPS)
    assert_allclose(
        roots.degrees_of_freedom(alphas), spectrum.degrees_of_freedom(alphas), atol=u * lost.max(), rtol=0
    )
    for alpha, share in zip(alphas.tolist(), lost):
        fitted, solution = spectrum.fitted(alpha), spectrum.solve(alpha)
        assert_allclose(roots.fitted(alpha), fitted, atol=share * np.abs(observations.Y).max(), rtol=0)
        # Coefficients are weights times residuals over alpha.
        size = w.max() * np.abs(observations.Y).max() / alpha
        assert_allclose(roots.solve(alpha).coef, solution.coef, atol=share * size, rtol=0)
        f = K @ roots.solve(alpha).coef + roots.solve(alpha).intercept
        assert_allclose(f[observations.rows.point], fitted, atol=n * share * np.abs(observations.Y).max(), rtol=0)
        loo = spectrum.loo_outputs(np.array([alpha]))[0]
        assert roots.error(alpha, loo) == pytest.approx(spectrum.error(alpha, loo), rel=1e-3)


def assert_relative(found, exact, tolerance):
    """Errors (a,) for every alpha in units of the largest output, or of the targets, whose size is one."""
    error = np.abs(found - exact).max(axis=(1, 2)) / np.maximum(np.abs(exact).max(axis=(1, 2)), 1.0)
    assert (error <= tolerance).all(), error / tolerance


@pytest.mark.parametrize("q", [1, 3])
def test_the_model_without_a_fold_is_that_of_the_spectrum(rng, q):
    K, observations = narrow_rbf(rng, 15), observed(rng, 15, 20, q=q)
    spectrum, roots = both(K, observations, fold=np.arange(20) % 4)
    loo = spectrum.loo_outputs(np.array([0.1]))[0]
    found, exact = (fits.fold_models((2,), 0.1, loo)[2] for fits in (roots, spectrum))
    assert_allclose(found.coef, exact.coef, atol=1e-12)
    assert_allclose(found.intercept, exact.intercept, atol=1e-12)


def test_equal_rows_merged_give_the_fit_of_rows_apart(rng):
    K, merged = narrow_rbf(rng, 8), observed(rng, 8, 12)
    point = merged.rows.point
    apart = Observations(merged.Y, merged.weight, merged.unit, every_row(12))
    alphas = np.array([1e-3, 1.0])
    found = both(K[np.ix_(point, point)], apart)[1].loo_outputs(alphas)
    # As many roundings as in the spectrum: the matrix of rows apart is singular, and alpha is 1e-3 of it.
    assert_relative(found, both(K, merged)[1].loo_outputs(alphas), 500 * EPS / alphas)


def test_the_number_of_workers_and_threads_changes_no_bit(rng):
    K, observations = narrow_rbf(rng, 40), observed(rng, 40, 50)
    alphas = np.geomspace(1e-3, 1e3, 5)
    outputs = []
    for threads in (1, 2, 3):
        with limit_threads(threads):
            outputs.append(both(K, observations, workers=threads)[1].loo_outputs(alphas))
    assert_array_equal(outputs[1], outputs[0])
    assert_array_equal(outputs[2], outputs[0])


def test_no_alpha_is_factored_twice(rng, monkeypatch):
    K, observations = narrow_rbf(rng, 10), counted(observed(rng, 10, 10))
    _, roots = both(K, observations)
    factored = []
    root = Projected.root
    monkeypatch.setattr(Projected, "root", lambda self, alpha: factored.append(alpha) or root(self, alpha))
    for _ in range(2):
        roots.loo_outputs(np.array([0.1, 1.0]))
        roots.solve(0.1), roots.fitted(1.0), roots.opposite.loo_outputs(np.array([1.0]))
    assert factored == [0.1, 1.0]


def test_a_matrix_that_is_not_definite_is_refused_with_its_alpha():
    K = np.diag([1.0, 1.0, -0.5])
    with pytest.raises(NumericalError, match=r"\(3, 3\) kernel matrix plus alpha=1.0e-01 is not"):
        Projected.of(K, np.ones(3), intercept=False).root(0.1)
    Projected.of(K, np.ones(3), intercept=False).root(0.6)
