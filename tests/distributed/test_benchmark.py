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


def test_rows_beyond_memory_say_what_was_resident_and_sum_to_the_same():
    n, _, peak, _, apart = last_lines("--out-of-core", "0.01")[-1].split()
    assert n.replace(",", "").isdigit()
    assert 0 < float(peak) < 600
    assert float(apart) < 1e-10


def test_fits_on_workers_and_in_threads_err_alike_and_are_drawn(tmp_path):
    picture = tmp_path / "fits.png"
    on_dask, in_threads = (line.split() for line in last_lines("--rows", "5e4", "--picture", str(picture))[-2:])
    assert (on_dask[0], in_threads[0]) == ("dask", "threads")
    # Twenty centers are few; their error is not that of a coin.
    assert float(on_dask[-2]) == pytest.approx(float(in_threads[-2]), abs=1.0)
    assert float(on_dask[-2]) < 40
    assert picture.stat().st_size > 0
