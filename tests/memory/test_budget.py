"""Memory is asked for before it is taken, and predicting takes a bounded amount."""

import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from mercer import KernelFisherClassifier, KernelRidgeRegressor, SparseKernelRegressor
from mercer._gram import Budget, budget, combine, gram
from mercer._gram.budget import free_memory
from mercer.errors import MemoryBudgetError, MercerError
from mercer.kernels import RBF

MIB = 2**20


@contextmanager
def peak_below(n_bytes):
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n_bytes, f"{peak / MIB:.1f} MiB"


def test_matrix_beyond_the_budget_is_refused_before_it_is_allocated():
    X = np.zeros((5000, 2))
    # The matrix alone would be 191 MiB.
    with peak_below(MIB), pytest.raises(MemoryBudgetError):
        gram(RBF(gamma=1.0), X, budget=Budget(100 * MIB))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("max_memory", [1e15, 1e300])
@pytest.mark.parametrize(
    "model",
    [KernelRidgeRegressor(), KernelRidgeRegressor(centers=5, random_state=0), SparseKernelRegressor()],
    ids=str,
)
def test_budgets_beyond_all_machines_are_no_limit(rng, model, max_memory):
    X = rng.normal(size=(30, 2))
    free = clone(model).fit(X, X[:, 0]).predict(X)
    assert_array_equal(model.set_params(max_memory=max_memory).fit(X, X[:, 0]).predict(X), free)


@pytest.mark.parametrize("model", [KernelFisherClassifier, KernelRidgeRegressor])
def test_fit_beyond_the_budget_names_need_budget_and_remedy(rng, model):
    X = rng.normal(size=(2000, 2))
    y = np.arange(2000) % 2
    estimator = model(RBF(gamma=1.0), max_memory=0.05)
    # Three matrices of 2000 x 2000 numbers: 91.6 MiB; one of them would be 30.5.
    with peak_below(4 * MIB), pytest.raises(MemoryBudgetError) as caught:
        estimator.fit(X, y)
    for words in ("(2000, 2000)", "91.6 MiB", "51.2 MiB", "max_memory"):
        assert words in str(caught.value)


def test_memory_error_is_a_memory_error_and_one_of_ours():
    assert issubclass(MemoryBudgetError, MemoryError)
    assert issubclass(MemoryBudgetError, MercerError)


def test_budget_is_in_gib_and_by_default_below_what_is_free():
    assert Budget.from_parameter(2.0).n_bytes == 2 * 2**30
    assert Budget.from_parameter(None).n_bytes > 0
    assert Budget.from_parameter(1e-9).n_bytes < free_memory()


@pytest.mark.parametrize(("limit", "left"), [("max", np.inf), (str(300 * MIB), 210 * MIB), ("0", -90 * MIB)])
def test_a_container_limits_what_is_free(tmp_path, monkeypatch, limit, left):
    for name, text in {
        "memory.max": limit,
        "memory.current": str(100 * MIB),
        "memory.stat": f"anon 5\ninactive_file {10 * MIB}\n",
    }.items():
        (tmp_path / name).write_text(text)
    usual = free_memory()
    monkeypatch.setattr(
        budget, "CONTAINERS", ((tmp_path / "memory.max", tmp_path / "memory.current", "inactive_file"),)
    )
    assert budget._of_container() == left
    # Other programs take and give back memory meanwhile.
    assert free_memory() == pytest.approx(usual if left == np.inf else max(left, 0), rel=0.5)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much a process has mapped")
def test_a_limit_of_the_process_refuses_a_fit_before_kernels_are_compared():
    program = """
import resource, numpy as np
from mercer import KernelFisherClassifier
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
X = np.random.default_rng(0).normal(size=(12_000, 2))
try:
    KernelFisherClassifier(centers="all").fit(X, X[:, 0] > 0)
except MemoryError as error:
    print(type(error).__name__)
"""
    # Five matrices of 12 000 x 12 000 numbers are 5.4 GiB; comparing kernels first would take minutes.
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (said.stdout, said.stderr) == ("MemoryBudgetError\n", "")


@pytest.mark.parametrize(("n_bytes", "words"), [(3, "3 bytes"), (2048, "2.0 KiB"), (5 * 2**30, "5.0 GiB")])
def test_need_is_said_in_fitting_units(n_bytes, words):
    with pytest.raises(MemoryBudgetError, match=f"would need {words} and the budget is 1 bytes"):
        Budget(1.0).require(n_bytes, "this")


def test_what_fits_the_budget_exactly_is_allowed():
    Budget(100.0).require(100.0, "this")


@pytest.fixture(scope="module")
def wide_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    return KernelRidgeRegressor(RBF(gamma=0.5), alpha=1.0).fit(X, X[:, 0])


def test_predicting_many_rows_never_holds_their_kernel_matrix(rng, wide_model):
    X = rng.normal(size=(20_000, 3))
    # All kernel values would be 153 MiB; a block is 32, and the distances behind it at most as much again.
    with peak_below(80 * MIB):
        wide_model.predict(X)


def test_blocks_bound_the_memory_of_many_centers(rng):
    X, Z, coef = rng.normal(size=(30_000, 3)), rng.normal(size=(1000, 3)), rng.normal(size=(1000, 1))
    # All values would be 229 MiB.
    with peak_below(80 * MIB):
        combine(RBF(gamma=0.5), X, Z, coef)


@pytest.mark.slow
def test_intervals_of_many_rows_hold_a_block_at_a_time(rng, monkeypatch):
    monkeypatch.setattr(import_module("mercer._gram.blocks"), "BLOCK_SIZE", 2**17)
    X = rng.normal(size=(200, 3))
    model = KernelRidgeRegressor(RBF(gamma=0.5), alpha=1.0).fit(X, X[:, 0])
    many = rng.normal(size=(20_000, 3))
    # 20 000 x 200 numbers are 30.5 MiB; a block is one, and the sorting holds about ten.
    with peak_below(16 * MIB):
        model.predict_interval(many)


def test_a_stream_is_solved_in_the_memory_of_the_centers_it_has(rng):
    X = rng.normal(size=(6000, 2))
    model = KernelRidgeRegressor(RBF(gamma=0.3), max_memory=0.06, loo_rows=1000, random_state=0)
    model.partial_fit(X[:60], X[:60, 0]).partial_fit(X[60:], X[60:, 0])
    assert len(model.X_fit_) == 30
    assert model.alpha_ > 0
