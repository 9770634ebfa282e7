"""A second pass gives every row the output of the model without it."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._gram.moments import MomentsOf
from mercer._gram.products import Parts
from mercer._solvers.moments.leave_one_out import LooOutputsOf
from mercer._solvers.moments.ridge import MOST_NOISE, decompose_moments
from mercer.errors import KernelError
from mercer.kernels import RBF, Linear
from mercer.rows import MemoryRows
from mercer.rows._base import Block
from mercer.rows._sources.memory import HeldRows

KERNEL = RBF(gamma=0.4)
ALPHAS = np.array([1e-6, 1e-2, 1.0, 1e2])


def fitted(X, Y, w, Z, kernel=KERNEL, dtype=np.float64, intercept=True):
    moments = MomentsOf(kernel, Z, dtype)(Block(X, Y, w, 0))
    return decompose_moments(moments, kernel.block(Z.astype(float), Z.astype(float)), intercept=intercept)


def output_at(x, spectrum, Z, alpha):
    coef, offset = spectrum.solve(alpha)
    return (KERNEL.block(x[None], Z) @ coef + offset)[0]


@pytest.fixture
def problem(rng, frozen):
    return frozen(rng.normal(size=(40, 3))), frozen(rng.normal(size=(40, 2))), frozen(rng.uniform(0.3, 2.0, 40))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("counts", [True, False])
def test_rows_left_out_are_those_of_refitting(problem, rng, counts, intercept):
    X, Y, w = problem
    w = rng.integers(0, 4, 40).astype(float) if counts else w
    Z, unit = X[:9], np.minimum(w, 1.0) if counts else w
    fold = LooOutputsOf(KERNEL, Z, fitted(X, Y, w, Z, intercept=intercept), ALPHAS)
    found = HeldRows(Block(X, Y, w, 0, unit), block_rows=7).reduce(fold).joined
    assert found.shape == (4, 40, 2)
    for i in range(40):
        without = fitted(X, Y, w - unit * (np.arange(40) == i), Z, intercept=intercept)
        expected = [output_at(X[i], without, Z, alpha) for alpha in ALPHAS]
        assert_allclose(found[:, i], expected, rtol=1e-8, atol=1e-8)


def test_counted_rows_are_repeated_rows(problem, rng):
    X, Y, _ = problem
    count = rng.integers(1, 4, 40)
    once = Block(X, Y, count.astype(float), 0, unit=np.ones(40))
    repeated = Block(X.repeat(count, 0), Y.repeat(count, 0), None, 0)
    spectrum = fitted(X, Y, count.astype(float), X[:9])
    one = LooOutputsOf(KERNEL, X[:9], spectrum, ALPHAS)(once).joined
    assert_allclose(
        one.repeat(count, 1), LooOutputsOf(KERNEL, X[:9], spectrum, ALPHAS)(repeated).joined, rtol=1e-10
    )


def test_one_column_of_targets_may_be_a_vector(problem):
    X, Y, w = problem
    spectrum = fitted(X, Y[:, 0], w, X[:9])
    fold = LooOutputsOf(KERNEL, X[:9], spectrum, ALPHAS)
    assert_array_equal(fold(Block(X, Y[:, 0], w, 0)).joined, fold(Block(X, Y[:, :1], w, 0)).joined)


def test_row_that_alone_holds_a_center_stays_finite(rng):
    X = np.vstack([rng.normal(size=(30, 2)), [[50.0, 50.0]]])
    y = rng.normal(size=31)
    spectrum = fitted(X, y, None, X[25:])
    outputs = LooOutputsOf(KERNEL, X[25:], spectrum, np.array([1e-18]))(Block(X, y, None, 0)).joined
    assert np.isfinite(outputs).all()


def test_fold_can_be_pickled(problem):
    X, Y, w = problem
    fold = LooOutputsOf(KERNEL, X[:9], fitted(X, Y, w, X[:9]), ALPHAS)
    before = fold(Block(X, Y, w, 0)).joined
    assert_array_equal(pickle.loads(pickle.dumps(fold))(Block(X, Y, w, 0)).joined, before)


def test_adding_appends_rows_and_changes_no_operand():
    parts = [Parts([np.full((2, n, 1), float(n))], axis=1) for n in (1, 2, 3)]
    total = parts[0] + parts[1]
    total += parts[2]
    assert_array_equal(total.joined[0, :, 0], [1, 2, 2, 3, 3, 3])
    assert [len(part.parts) for part in parts] == [1, 1, 1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("gamma", [0.02, 0.1, 1.0])
def test_float32_rows_leave_as_float64_rows_do(rng, gamma):
    X = rng.normal(size=(3000, 3)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=3000)
    Z, kernel = X[:200], RBF(gamma=gamma)
    spectrum = fitted(X, y, None, Z, kernel)
    alphas = spectrum.trace * 10.0 ** np.arange(-8, 0)
    single = LooOutputsOf(kernel, Z, spectrum, alphas)(Block(X, y, None, 0)).joined
    K = kernel.block(X, Z).astype(float)
    double = spectrum.loo_map(alphas)(K, y[:, None], np.ones(3000))
    assert np.abs(single - double).max() < 5e-3 * y.std()


def test_products_too_noisy_for_float32_are_computed_in_float64(rng):
    X = rng.normal(size=(3000, 2)).astype(np.float32)
    spectrum = fitted(X, X[:, 0], None, X[:300], RBF(gamma=0.3))
    alphas = np.array([1e-12, 1e3])
    assert spectrum.noise(alphas) > MOST_NOISE > spectrum.noise(alphas[1:])
    kinds = [
        LooOutputsOf(RBF(gamma=0.3), X[:300], spectrum, some)(Block(X, X[:, 0], None, 0)).joined.dtype
        for some in (alphas, alphas[1:])
    ]
    assert kinds == [np.float64, np.float32]


class Hole(Linear):
    """No number where a product is large."""

    def _profile(self, G):
        return np.where(np.abs(G) > 100.0, np.nan, G)


def test_values_that_are_no_numbers_are_named_with_their_rows(problem):
    X, Y, w = problem
    spectrum = fitted(X, Y, w, X[:9])
    far = np.where(np.arange(40)[:, None] == 20, 1e6, X)
    with pytest.raises(KernelError, match="9 values that are not finite") as caught:
        MemoryRows(far, Y, w, block_rows=15).reduce(LooOutputsOf(Hole(), X[:9], spectrum, ALPHAS))
    assert caught.value.__notes__ == ["in rows 15 to 29"]
