"""The benchmark of streams runs, on next to no rows and without its peers."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "online.py"


@pytest.mark.slow
def test_online_prints_a_table_for_each_stream():
    command = [sys.executable, str(SCRIPT), "--rows", "2000", "--no-peers", "--streams", "clusters-moving"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    models = [line for line in lines if line.startswith("mercer, ")]
    assert [line.split()[-9] for line in models] == ["2000"] * 3
