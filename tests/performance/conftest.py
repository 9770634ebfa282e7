"""Ratios of processor time, and the table of them that is printed at the end."""

import time

import numpy as np
import pytest

# Times its usual value, a ratio is far from it.
FAR = 1.5
TREND: list[str] = []


@pytest.fixture
def compare(request):
    """The function that measures what one program takes of the other, and fails where that is far from usual."""

    def measure(usual, ours, bare, *, pairs=9, clock=time.process_time):
        ours(), bare()
        times = np.array([[seconds(run, clock) for run in (ours, bare)] for _ in range(pairs)])
        # Of pairs one after the other: the speed of the machine changes between them.
        ratio = np.median(times[:, 0] / times[:, 1])
        line = f"{request.node.name}: {ratio:.2f}, usually {usual:.2f}, of {np.median(times[:, 1]):.2g} s"
        TREND.append(line)
        assert ratio < FAR * usual, line

    return measure


def seconds(run, clock):
    start = clock()
    run()
    return clock() - start


def pytest_terminal_summary(terminalreporter):
    if TREND:
        terminalreporter.section("ratios of processor time")
        for line in TREND:
            terminalreporter.write_line(line)
