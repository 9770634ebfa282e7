"""Ctrl-C ends a fit within two seconds, in whatever phase it is."""

import os
import signal
import subprocess
import sys
import time
from subprocess import PIPE

import pytest

# Each starts a program that fits many rows.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="no KeyboardInterrupt from other processes on Windows"),
]

# A program that announces a function when it is called for the first time, and then calls it.
PROGRAM = """
import signal, sys, threading, time
# A shell lets programs in the background ignore Ctrl-C, and these inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from mercer import KernelFisherClassifier, KernelRidgeRegressor, SparseFisherClassifier
from mercer.kernels import RBF
from mercer._linalg import lapack
from mercer.rows._base import LocalRows
from mercer._solvers import exact_fits
from mercer._solvers.moments.leave_one_out import MomentFit
from mercer._solvers.orthogonal import path
from mercer._fitting.selection.comparison import ComparisonProblem

def announce(owner, name, when=lambda *args, **kwargs: True):
    original = getattr(owner, name)
    def called(*args, **kwargs):
        if when(*args, **kwargs):
            print("now", flush=True)
        return original(*args, **kwargs)
    setattr(owner, name, called)

def rows(n, d=5):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)

def lapack_call(name):
    announce(lapack, "run", lambda called, args: called == name and next(a for a in args if type(a) is int) > 100)

rbf = RBF(gamma=0.1)
"""

PHASES = {
    "comparison of kernels": (
        'announce(ComparisonProblem, "trials"); KernelFisherClassifier(centers="all").fit(*rows(5000))'
    ),
    "Cholesky factor": (
        'lapack_call("dpotrf"); KernelFisherClassifier(rbf, alpha=1, centers="all").fit(*rows(6000))'
    ),
    "pass": (
        'announce(LocalRows, "reduce", lambda *args, phase="", **kwargs: phase == "moments");'
        "KernelFisherClassifier(rbf, centers=rows(1000)[0]).fit(*rows(100_000))"
    ),
    "its inverse": 'lapack_call("dtrtri"); KernelFisherClassifier(rbf, alpha=1, centers="all").fit(*rows(6000))',
    "singular values": (
        'lapack_call("dgesdd"); KernelRidgeRegressor(rbf, penalty="coef", centers="all").fit(*rows(2500))'
    ),
    "leave-one-out": (
        'announce(exact_fits, "loo_outputs"); KernelFisherClassifier(rbf, centers="all").fit(*rows(6000))'
    ),
    "eigenvectors": 'lapack_call("dsyevd"); KernelFisherClassifier(rbf, centers=3000).fit(*rows(6000))',
    "path of a sparse fit": (
        'announce(path, "orthogonalized", lambda A: len(A) > 4000);'
        "SparseFisherClassifier(rbf, alpha=1, max_centers=2000).fit(*rows(5000))"
    ),
    "leave-one-out with centers": (
        'announce(MomentFit, "loo_outputs"); KernelFisherClassifier(rbf, centers=rows(2000)[0]).fit(*rows(20_000))'
    ),
}


# The program that a user interrupts, and goes on with.
GOING_ON = """
from threadpoolctl import threadpool_info, threadpool_limits
threadpool_limits(2, user_api="blas")
lapack_call("dsyevd")
try:
    KernelFisherClassifier(rbf, centers=rows(1800)[0]).fit(*rows(3600))
except KeyboardInterrupt:
    assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {2}
    assert any(thread.daemon for thread in threading.enumerate())
    assert KernelFisherClassifier(rbf).fit(*rows(50)).score(*rows(50)) > 0.5
    sys.exit(7)
"""


def interrupted(source):
    """Seconds from Ctrl-C, after the source has said "now", to its end; its text on stderr and its return code."""
    start = time.perf_counter()
    source = f'{PROGRAM}\nprint("ready", flush=True)\n{source}'
    with subprocess.Popen([sys.executable, "-c", source], stdout=PIPE, stderr=PIPE, text=True) as program:
        try:
            assert program.stdout.readline() == "ready\n"
            started = time.perf_counter() - start
            assert program.stdout.readline() == "now\n"
            time.sleep(0.3)
            program.send_signal(signal.SIGINT)
            start = time.perf_counter()
            _, errors = program.communicate(timeout=60)
            seconds = time.perf_counter() - start
        finally:
            program.kill()
    # Where other programs use the machine, everything takes longer, starting as well as ending.
    return seconds / max(1.0, started), errors.rstrip(), program.returncode


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_ends_a_fit_within_two_seconds(phase):
    seconds, errors, code = interrupted(PHASES[phase])
    assert errors.endswith("KeyboardInterrupt")
    assert code == -signal.SIGINT
    assert seconds < 2.0


@pytest.mark.slow
def test_a_program_goes_on_after_ctrl_c_with_all_threads_and_ends_as_it_wants():
    """An abandoned call of LAPACK is still computing when the program ends, which waits for it."""
    _, errors, code = interrupted(GOING_ON)
    assert (errors, code) == ("", 7)
