"""The benchmark of engines runs in all of its modes, on next to no rows."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cluster.py"

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]


def last_lines(*arguments):
    pytest.importorskip("distributed", reason="distributed is not installed: no Dask cluster here")
    command = [sys.executable, str(SCRIPT), "--m", "20", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_engines_are_compared_with_memory():
    line = last_lines("--n", "4e5", "--m", "100", "--engines", "dask", "--repeats", "1")[-1].split()
    assert line[0] == "dask"
    assert float(line[3]) == pytest.approx(float(line[1]) / float(line[2]), rel=0.05)
    # Four tasks; each sends its sum at most once, and the centers are small beside it.
    assert float(line[-1]) <= 1.1


def test_rows_beyond_memory_say_what_was_resident():
    n, _, resident = last_lines("--out-of-core", "0.01")[-1].split()
    assert n.replace(",", "").isdigit()
    assert 0 < float(resident) < 600


def test_rows_are_made_on_the_workers():
    assert last_lines("--rows", "2e4")[-1].split()[0] == "20,000"
