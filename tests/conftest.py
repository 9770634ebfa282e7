"""Fixtures every test may use: a fixed source of randomness, read-only data, the benchmark archives."""

import os
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")


def pytest_addoption(parser):
    parser.addoption("--long", type=int, metavar="CASES", help="random cases of each law in tests/hostile")


@pytest.fixture
def rng():
    """A Generator with the same seed in every test."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def frozen() -> Callable[[np.ndarray], np.ndarray]:
    """The function that makes an array read-only, so that a test notices who writes to its input."""
    return _freeze


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the benchmark archives, from the variable MERCER_DATA."""
    folder = os.environ.get("MERCER_DATA")
    if folder is None:
        pytest.skip("MERCER_DATA is not set: no benchmark archives here")
    return Path(folder)


def _freeze(array):
    array = np.array(array)
    array.setflags(write=False)
    return array
