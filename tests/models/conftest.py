"""Small problems of two and three classes, and one of regression, that cannot be changed."""

import numpy as np
import pytest


@pytest.fixture
def two_classes(rng, frozen):
    """X (60, 2) and y in {0, 1}: overlapping."""
    y = np.arange(60) % 2
    return frozen(rng.normal(size=(60, 2)) + y[:, None]), frozen(y)


@pytest.fixture
def three_classes(rng, frozen):
    """X (75, 2) and y in {0, 1, 2}: overlapping, of different sizes."""
    y = np.repeat([0, 1, 2], [20, 25, 30])
    centers = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    return frozen(rng.normal(size=(75, 2)) + centers[y]), frozen(y)


@pytest.fixture(params=["two_classes", "three_classes"])
def classes(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def curve(rng, frozen):
    """X (50, 1) and a noisy sine."""
    X = rng.uniform(-3, 3, size=(50, 1))
    return frozen(X), frozen(np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=50))


@pytest.fixture
def far_rows(rng):
    """Rows near, far, and absurdly far from all others."""
    return np.vstack([rng.normal(size=(30, 2)), 10 * rng.normal(size=(10, 2)), 1e6 * rng.normal(size=(10, 2))])
