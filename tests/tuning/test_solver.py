"""Whatever solver has factored a problem, alpha is chosen alike, and the same problem has the same answers."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._fitting.selection.alpha import alpha_path, choose_alpha
from mercer._gram.moments import MomentsOf
from mercer._scores.criteria import squared_criterion
from mercer._solvers.exact_fits import SpectrumFit
from mercer._solvers.moments.leave_one_out import MomentFit
from mercer._solvers.moments.ridge import decompose_moments
from mercer._solvers.spectrum import Coefficients, Observations, decompose
from mercer.kernels import RBF, Linear
from mercer.rows._base import Block
from mercer.rows._distinct import every_row
from mercer.rows._sources.memory import HeldRows

KERNEL = RBF(gamma=0.3)
ALPHAS = np.array([1e-3, 0.1, 10.0])
N = 40


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    weight = rng.integers(1, 4, N).astype(float)
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.normal(size=(N, 2)), weight


def by_spectrum(X, Y, weight, fold):
    observations = Observations(Y, weight, np.ones(N), every_row(N), weight)
    return SpectrumFit(decompose(KERNEL.block(X, X), weight), observations, fold)


def by_moments(X, Y, weight, fold):
    def moments(some):
        return MomentsOf(KERNEL, X)(Block(X[some], Y[some], weight[some], 0))

    every, K = moments(np.arange(N)), KERNEL.block(X, X)
    return MomentFit(
        kernel=KERNEL,
        centers=X,
        spectrum=decompose_moments(every, K),
        sample=Block(X, Y, weight, 0, np.ones(N)),
        reduce=lambda block, over: HeldRows(block).reduce(over),
        cells=10**4,
        fold=fold,
        spectrum_without=lambda f: decompose_moments(every - moments(np.flatnonzero(fold == f)), K),
        opposite_unit=weight,
    )


every_solver = pytest.mark.parametrize("factor", [by_spectrum, by_moments])


def refitted(X, Y, weight, alpha):
    """Coefficients (n, q), intercept (q,) and the smoother (n, n) of one linear system."""
    n = len(X)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = KERNEL.block(X, X) + alpha * np.diag(1.0 / weight)
    A[:n, n] = A[n, :n] = 1.0
    inverse = np.linalg.inv(A)
    coef = inverse[:, :n] @ Y
    return coef[:n], coef[n], np.column_stack([KERNEL.block(X, X), np.ones(n)]) @ inverse[:, :n]


def refitted_without(X, Y, weight, alpha, leaving):
    """Output (n, q) of each row when leaving[i] (n,) of the weights is gone."""
    outputs = []
    for i, gone in enumerate(leaving):
        left = weight - gone
        stays = left > 0
        coef, intercept, _ = refitted(X[stays], Y[stays], left[stays], alpha)
        outputs.append(KERNEL.block(X[i : i + 1], X[stays])[0] @ coef + intercept)
    return np.array(outputs)


# Sums of products know half of the digits of a kernel matrix, here of condition 1e4: 1e-8 / 1e-3.
@pytest.mark.sampled(1)
@every_solver
def test_a_factored_problem_leaves_out_as_if_refitted(rows, factor):
    X, Y, weight = rows
    fits = factor(*rows, None)
    for alpha, found in zip(ALPHAS, fits.loo_outputs(ALPHAS)):
        assert_allclose(found, refitted_without(X, Y, weight, alpha, np.eye(N)), rtol=1e-5, atol=1e-6)
        opposite = fits.opposite.loo_outputs(np.array([alpha]))[0]
        assert_allclose(opposite, refitted_without(X, Y, weight, alpha, np.diag(weight)), rtol=1e-5, atol=1e-6)
    assert fits.opposite.opposite is None


@pytest.mark.sampled(1)
@every_solver
def test_a_factored_problem_leaves_out_folds_as_if_refitted(rows, factor):
    X, Y, weight = rows
    fold = np.arange(N) % 7
    leaving = (fold[:, None] == fold) * weight
    for alpha, found in zip(ALPHAS, factor(*rows, fold).loo_outputs(ALPHAS)):
        assert_allclose(found, refitted_without(X, Y, weight, alpha, leaving), rtol=1e-5, atol=1e-6)


@every_solver
def test_a_factored_problem_is_solved_for_every_alpha(rows, factor):
    X, Y, weight = rows
    fits = factor(*rows, None)
    assert fits.spectrum.trace == pytest.approx(by_spectrum(*rows, None).spectrum.trace)
    assert fits.spectrum.negative == 0.0
    for alpha in ALPHAS:
        coef, intercept, S = refitted(X, Y, weight, alpha)
        expected = KERNEL.block(X, X) @ coef + intercept
        solution, loo = fits.solve(alpha), fits.loo_outputs(np.array([alpha]))[0]
        assert_allclose(KERNEL.block(X, X) @ solution.coef + solution.intercept, expected, rtol=1e-5, atol=1e-6)
        assert_allclose(fits.fitted(alpha), expected, rtol=1e-5, atol=1e-6)
        assert_allclose(fits.degrees_of_freedom(np.array([alpha])), np.trace(S), rtol=1e-6)
        assert np.abs(fits.fitted(alpha) - expected).max() <= fits.error(alpha, loo) * Y.std(axis=0).max() + 1e-12


@dataclass
class MeanShrunk:
    """A loss, a penalty and rows of its own: y (n, 1) shrunk to its mean by 1 / (1 + alpha); counts its calls."""

    y: np.ndarray
    calls: list
    spectrum = SimpleNamespace(rank=1, negative=0.0)
    opposite = None

    def loo_outputs(self, alphas):
        self.calls.append(len(alphas))
        return (self.y.mean() / (1.0 + alphas))[:, None, None] + np.zeros((len(alphas), *self.y.shape))

    def solve(self, alpha):
        return Coefficients(np.zeros((1, 1)), self.y.mean(axis=0) / (1.0 + alpha))

    def fitted(self, alpha):
        return np.full_like(self.y, self.y.mean() / (1.0 + alpha))

    def degrees_of_freedom(self, alphas):
        return 1.0 / (1.0 + alphas)

    def error(self, alpha, loo):
        return 0.0


@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("again", [False, True])
def test_alpha_is_chosen_for_any_solver_in_any_steps(at_once, again):
    y = np.array([[1.0], [3.0], [2.0]])
    fits, alphas, released = MeanShrunk(y, []), np.array([0.1, 0.5, 3.0]), []
    criterion = squared_criterion(y, np.ones(3))
    tuned = choose_alpha(
        Linear(),
        fits,
        alphas,
        criterion,
        at_once=at_once,
        n_points=3,
        recompute_loo=again,
        release=lambda: released.append(len(fits.calls)),
    )
    assert tuned.alpha == 0.1
    assert_array_equal(tuned.loo, fits.loo_outputs(np.array([0.1]))[0])
    assert_array_equal(tuned.fitted, tuned.loo)
    assert tuned.degrees_of_freedom == 1.0 / 1.1
    path = alpha_path(Linear(), fits, alphas, criterion, at_once=5, n_points=3)
    assert_array_equal(tuned.paths[-1].scores, path.scores)
    # One call a step, and one more for the chosen alpha unless its outputs are held.
    steps = -(-3 // at_once)
    assert released == [steps + (again or steps > 1)]
