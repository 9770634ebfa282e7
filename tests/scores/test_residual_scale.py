"""The scale of residuals near a row: means over neighbors, constant where nothing is gained."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._scores.uncertainty.residual_scale import LocalScale, choose_scale


def squared_distances(A, B):
    return (A[:, None] - B[None]) ** 2


def but_one(count):
    """What rows count for when one of them is held out."""
    return np.repeat(count[None], len(count), axis=0) - np.eye(len(count))


def scale_of(x, size, count=None):
    count = np.ones(len(x)) if count is None else count
    return choose_scale(squared_distances(x, x), but_one(count), size, count)


def test_noise_that_is_the_same_everywhere_has_a_constant_scale(rng):
    found = [scale_of(rng.uniform(size=100), np.abs(rng.normal(size=(100, 1)))).constant for _ in range(20)]
    # The best of eight is better than the constant by the bound in few draws.
    assert sum(found) >= 15


def test_noise_that_grows_along_a_line_is_found(rng):
    x, new = rng.uniform(0, 3, size=200), np.array([0.2, 2.8])
    local = scale_of(x, (0.1 + x[:, None]) * np.abs(rng.normal(size=(200, 1))))
    small, large = local(squared_distances(new, x))[:, 0]
    assert not local.around[0]
    # The true scales, 0.3 and 2.9, are smoothed over an eighth of the rows or so.
    assert 4.0 < large / small < 12.0


def test_noise_that_grows_in_every_direction_is_found(rng):
    X = rng.normal(size=(300, 4))
    size = (X**2).sum(axis=1)[:, None] * np.abs(rng.normal(size=(300, 1)))
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    local = choose_scale(D, but_one(np.ones(300)), size, np.ones(300))
    assert local.around[0]
    new = np.array([[0.1, 0.0, 0.0, 0.0], [2.0, -2.0, 0.0, 0.0]])
    inner, outer = local(((new[:, None] - X[None]) ** 2).sum(axis=2))[:, 0]
    assert outer > 2.0 * inner


@pytest.mark.parametrize("around", [False, True])
def test_scale_is_the_mean_of_neighbors_by_definition(rng, around):
    x, size, new = rng.normal(size=9), rng.uniform(size=(9, 1)), np.array([0.3, 2.0])
    D, own = squared_distances(new, x), squared_distances(x, x)
    outward = own.mean(axis=1)
    local = LocalScale(size, np.ones(9), outward, np.array([4.0]), np.array([around]))
    if around:
        D = squared_distances(D.mean(axis=1), outward)
    for d, found in zip(D, local(squared_distances(new, x))[:, 0]):
        weight = np.exp(-2.0 * d / np.sort(d)[3])
        expected = (weight @ size[:, 0] / size.mean() + 1.0) / (weight.sum() + 1.0)
        assert_allclose(found, expected)


def test_counts_are_repeated_rows(rng):
    x, count = rng.uniform(size=60), np.resize([1.0, 2.0, 1.0], 60)
    size, new = (0.1 + x[:, None]) * np.abs(rng.normal(size=(60, 1))), np.linspace(0, 1, 5)
    rows = np.repeat(np.arange(60), count.astype(int))
    weighted, repeated = scale_of(x, size, count), scale_of(x[rows], size[rows])
    assert_array_equal(weighted.near, repeated.near)
    assert weighted.near[0] > 0
    found, expected = (
        local(squared_distances(new, local_x)) for local, local_x in ((weighted, x), (repeated, x[rows]))
    )
    assert_allclose(found, expected, rtol=1e-12)


def test_targets_have_scales_of_their_own(rng):
    x = rng.uniform(0, 3, size=200)
    size = np.abs(rng.normal(size=(200, 2))) * np.column_stack([x, 3.0 - x])
    both, new = scale_of(x, size), np.array([0.5, 2.5])
    for q in (0, 1):
        alone = scale_of(x, size[:, [q]])
        assert_allclose(both(squared_distances(new, x))[:, [q]], alone(squared_distances(new, x)), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 7, 8, 12])
def test_few_rows_and_residuals_of_zero_have_a_finite_scale(rng, n):
    x = rng.normal(size=n)
    for size in (np.zeros((n, 1)), np.r_[1.0, np.zeros(n - 1)][:, None]):
        local = scale_of(x, size)
        scale = local(squared_distances(np.array([0.0, 50.0]), x))
        assert (scale > 0).all()
        assert np.isfinite(scale).all()


def test_equal_rows_have_a_finite_scale(rng):
    local = scale_of(np.ones(40), np.abs(rng.normal(size=(40, 1))))
    assert local.constant
