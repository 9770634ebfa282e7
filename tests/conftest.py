"""Fixtures every test may use: a fixed source of randomness, read-only data, the benchmark archives.

And the limit that keeps ``make test`` quick.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

# Tests without one of these marks belong to ``make test``.
LONG = ("slow", "ratio", "engine")
# Processor time of one of them: hardly any takes more than one, and a busy machine doubles what it measures.
MOST_SECONDS = 20.0


def pytest_addoption(parser):
    parser.addoption("--long", type=int, metavar="CASES", help="random cases of each law in tests/hostile")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a law with many cases ``make test`` runs as many as its mark says, from the first to the last."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.parent, item.originalname].append(item)
    for same in cases.values():
        (most,) = same[0].get_closest_marker("sampled").args
        kept = set(np.linspace(0, len(same) - 1, most).round().astype(int))
        for i, item in enumerate(same):
            if i not in kept:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    start = time.process_time()
    result = yield
    spent = time.process_time() - start
    if spent > MOST_SECONDS and is_quick(item):
        pytest.fail(f"{spent:.1f} s of processor time; at most {MOST_SECONDS:g} s, or mark the test as slow")
    return result


def is_quick(item):
    """Whether ``make test`` runs the test, with as many cases as it has there."""
    return not any(map(item.get_closest_marker, LONG)) and item.config.getoption("--long") is None


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
