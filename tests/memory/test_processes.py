"""Peaks of processes of their own: fits to rows of several sources stay within max_memory and 60 MB."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "memory.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the system's mark of the most memory is that of Linux")
def test_fits_in_processes_of_their_own_keep_to_max_memory():
    settings = ("csr", "stream", "refused rows")
    command = [sys.executable, str(SCRIPT), "--rows", "5000", "--settings", *settings]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    verdicts = [line.split()[-1] for line in lines if "n=5000" in line]
    assert verdicts == ["kept"] * 2 + ["refused"]
