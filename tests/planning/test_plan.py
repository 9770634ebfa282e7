"""What a plan says, and whether it comes true."""

import time

import numpy as np
import pytest

from mercer._gram.moments import MomentsOf
from mercer.errors import MemoryBudgetError
from mercer.kernels import RBF
from mercer.planning import Rates, plan
from mercer.rows import MemoryRows

RATES = Rates(block=1e10, exp=2e8, gram=4e10, side=4e9, eigen=1e9, copy=5e9)


def planned(n=10**6, d=20, m=1000, **options):
    return plan(n, d, m, cores=options.pop("cores", 8), rates=RATES, **options)


def test_twice_the_cores_halve_the_pass_and_nothing_else():
    few, many = planned(cores=8, engine="dask"), planned(cores=16, engine="dask")
    assert many.pass_seconds == pytest.approx(few.pass_seconds / 2)
    assert many.solve_seconds == few.solve_seconds


def test_memory_and_solution_do_not_depend_on_the_number_of_rows():
    few, many = planned(n=10**6), planned(n=10**9)
    assert (few.worker_bytes, few.driver_bytes, few.solve_seconds) == (
        many.worker_bytes,
        many.driver_bytes,
        many.solve_seconds,
    )


def test_without_workers_the_driver_holds_the_blocks_of_all_cores():
    alone, driver = planned(cores=64, engine="memory"), planned(cores=64, engine="dask")
    assert alone.driver_bytes > 64 * (alone.worker_bytes - planned(m=1).worker_bytes)
    assert driver.driver_bytes == planned(cores=1, engine="dask").driver_bytes


def test_a_plan_has_the_stages_of_the_fit_and_is_refused_where_the_fit_is():
    usual, small = planned(m=300), planned(m=300, max_memory=0.05)
    assert usual.driver_bytes - small.driver_bytes == usual.fit_bytes - small.fit_bytes > 0
    assert small.fit_bytes <= 0.05 * 2**30
    assert small.largest.name in str(small)
    with pytest.raises(MemoryBudgetError, match=r"2000 centers.*write centers=\d+"):
        planned(m=2000, max_memory=0.05)


def test_a_plan_without_search_needs_no_comparison_of_kernels():
    names = [stage.name for stage in planned(search=False).stages]
    assert not any("kernels" in name for name in names)
    assert any("kernels" in stage.name for stage in planned().stages)


def test_few_rows_are_all_of_the_sample():
    assert planned(n=100).solve_seconds < planned(n=10_000).solve_seconds == planned(n=10**6).solve_seconds


def test_only_an_engine_uses_the_network_and_sends_a_sum_for_each_task():
    assert planned(engine="memory").network_bytes == 0
    found = planned(engine="ray")
    assert found.network_bytes / found.n_parts == pytest.approx(8 * 1000**2, rel=0.02)


def test_the_table_has_the_total():
    assert f"together                       {planned().seconds:.1f} s" in str(planned())


@pytest.mark.parametrize(("sizes", "said"), [((0, 1, 1), "n=0"), ((1, 1, 0), "m=0"), ((1, -2, 1), "d=-2")])
def test_sizes_below_one_are_refused(sizes, said):
    with pytest.raises(ValueError, match=said):
        plan(*sizes, rates=RATES)


def test_an_unknown_engine_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="engine='mpi'; it must be one of memory, dask, ray, spark"):
        planned(engine="mpi")


@pytest.mark.ratio
@pytest.mark.parametrize(("d", "m", "dtype"), [(20, 500, np.float32), (100, 1000, np.float64)])
def test_a_pass_takes_what_was_planned_up_to_a_third(rng, d, m, dtype):
    n = 16 * 4096
    X = rng.standard_normal((n, d)).astype(dtype)
    rows, fold = MemoryRows(X, np.ones(n)), MomentsOf(RBF(gamma=0.05), X[:m].copy())
    rows.reduce(fold)
    said, took = [], []
    for _ in range(7):
        said.append(plan(n, d, m, cores=1, dtype=dtype).pass_seconds)
        # Processor time: what else runs on the machine is not the plan's matter.
        start = time.process_time()
        rows.reduce(fold)
        took.append(time.process_time() - start)
    # Of pairs: the speed of the machine changes between them.
    assert 0.7 < np.median(np.divide(said, took)) < 1.3
