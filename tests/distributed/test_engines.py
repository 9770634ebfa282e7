"""Laws of every engine: the results are those of memory, whatever happens to the workers."""

import os
import pickle
import signal
import threading
import time
from collections import Counter
from itertools import pairwise

import engine_folds
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelFisherClassifier
from mercer.centers import CandidateRows, ForwardSelection, KMeans, RPCholesky
from mercer.kernels import RBF
from mercer.rows import MemoryRows, ParquetRows, as_rows
from mercer.rows._engines.base import EngineRows
from mercer.rows._engines.dask import map_rows
from mercer.rows._resolve import first_block
from mercer.rows._sampling.random_sample import sample
from mercer.rows._sources.repeated import FoldWithChecksums, RepeatedRows

BLOCK_ROWS = 32

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(240),
    # Engines warn of themselves, and leave sockets to the collector.
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def needed(module):
    return pytest.importorskip(module, reason=f"{module} is not installed: none of its rows here")


def dask_threads(request):
    da = needed("dask.array")

    table = request.getfixturevalue("table")
    X = da.from_array(table.X, chunks=(1000, -1))
    return as_rows(X, da.from_array(table.y, chunks=700), table.weight, block_rows=BLOCK_ROWS)


def dask_array(request):
    request.getfixturevalue("client")
    return dask_threads(request)


def dask_frame(request):
    request.getfixturevalue("client")
    dd = needed("dask.dataframe")
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame(request.getfixturevalue("table").columns()), npartitions=4)
    return as_rows(frame[["a", "b", "c", "w"]], frame["y"], "w", block_rows=BLOCK_ROWS)


def dask_delayed(request):
    request.getfixturevalue("client")
    dask = needed("dask")

    return as_rows([dask.delayed(cut) for cut in request.getfixturevalue("table").cuts()], block_rows=BLOCK_ROWS)


def dask_parquet(request):
    request.getfixturevalue("client")
    return as_rows(request.getfixturevalue("folder"), "y", "w", block_rows=BLOCK_ROWS)


def ray_dataset(request):
    ray = request.getfixturevalue("ray_cluster")
    import pandas as pd

    table = request.getfixturevalue("table")
    frames = [pd.DataFrame(table.columns(slice(start, start + 1000))) for start in range(0, len(table.X), 1000)]
    return as_rows(ray.data.from_pandas(frames), "y", "w", block_rows=BLOCK_ROWS)


def ray_references(request):
    ray = request.getfixturevalue("ray_cluster")
    return as_rows([ray.put(cut) for cut in request.getfixturevalue("table").cuts()], block_rows=BLOCK_ROWS)


def ray_parquet(request):
    request.getfixturevalue("ray_cluster")
    return as_rows(request.getfixturevalue("folder"), "y", "w", block_rows=BLOCK_ROWS)


def spark_frame(request):
    return as_rows(request.getfixturevalue("spark_table"), "y", "w", block_rows=BLOCK_ROWS)


def spark_parquet(request):
    session = request.getfixturevalue("spark")
    frame = session.read.parquet(str(request.getfixturevalue("folder")))
    return as_rows(frame, "y", "w", block_rows=BLOCK_ROWS)


KINDS = [
    dask_threads,
    dask_array,
    dask_frame,
    dask_delayed,
    dask_parquet,
    ray_dataset,
    ray_references,
    ray_parquet,
    spark_frame,
    spark_parquet,
]
# Spark has an order of its own for the rows of files and of shuffles.
REORDERED = (spark_frame, spark_parquet)
# One kind of rows for every way to run a task.
ONE_EACH = [dask_array, dask_parquet, ray_references, ray_parquet, spark_frame]


def name(kind):
    return kind.__name__


every_engine = pytest.mark.parametrize("kind", ONE_EACH, ids=name)


@pytest.fixture(params=KINDS, ids=name)
def rows(request):
    return request.param(request)


@pytest.fixture
def in_order(request, rows):
    if request.node.callspec.params["rows"] in REORDERED:
        pytest.skip("the rows are in an order of their own")
    return rows


@pytest.fixture
def memory(table):
    return MemoryRows(table.X, table.y, table.weight, block_rows=BLOCK_ROWS)


def sums_of(table):
    return engine_folds.SumsOf(RBF(gamma=0.3), table.X[:20])


def assert_same_sums(found, expected):
    assert found.n_rows == expected.n_rows
    for a, b in ((found.G, expected.G), (found.C, expected.C), (found.s, expected.s)):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_rows_are_on_the_engine(rows):
    assert isinstance(rows, EngineRows)
    assert rows.n_rows in (None, 4003)
    assert sum(rows.counted()) == rows.n_rows == 4003
    assert rows.n_parts >= 2


def test_sums_are_those_of_memory_and_can_be_written_to(rows, memory, table):
    found = rows.reduce(sums_of(table))
    assert_same_sums(found, memory.reduce(sums_of(table)))
    assert found.G.flags.writeable


def test_a_second_pass_may_use_the_result_of_the_first(rows, memory, table):
    def twice(source):
        center = source.reduce(sums_of(table)).s[:3] / len(table.X)
        return source.reduce(engine_folds.SumsOf(RBF(gamma=0.3), table.X[:7] + center))

    assert_same_sums(twice(rows), twice(memory))


def test_the_bits_of_a_sum_are_the_same_in_every_pass(rows, table):
    one, two = (rows.reduce(sums_of(table)) for _ in range(2))
    assert_array_equal(one.G, two.G)
    assert_array_equal(one.C, two.C)


def test_rows_are_the_same_in_every_pass(rows, table):
    repeated = RepeatedRows(rows)
    one, two = (repeated.reduce(sums_of(table)) for _ in range(2))
    assert_array_equal(one.G, two.G)
    assert_array_equal(one.G, rows.reduce(sums_of(table)).G)


def test_checksums_are_those_of_memory(in_order, memory):
    checksums = [source.reduce(FoldWithChecksums(engine_folds.firsts)).checksums for source in (in_order, memory)]
    assert checksums[0] == checksums[1]


def test_blocks_brought_here_are_the_rows_that_were_summed(in_order):
    repeated = RepeatedRows(in_order)
    assert len(repeated.reduce(engine_folds.firsts)) == sum(1 for _ in repeated.blocks())


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_rows_drawn_anew_in_every_pass_are_refused(request, where, table):
    da = needed("dask.array")
    if where == "cluster":
        request.getfixturevalue("client")
    X, y = da.from_array(table.X, chunks=(1000, -1)), da.from_array(table.y, chunks=1000)
    model = KernelFisherClassifier(RBF(gamma=0.3), alpha=1.0, centers=table.X[:20], random_state=0)
    with pytest.raises(
        ValueError, match=r"pass 2 over the rows \(moments\) has different values of X in 4003 rows"
    ):
        model.fit(X.map_blocks(engine_folds.disturbed, dtype=float), y)
    assert model.fit(X, y).report_.n_rows == 4003


def test_a_number_of_rows_that_changes_is_refused(client, table, tmp_path):
    dask = needed("dask")
    few = dask.delayed(engine_folds.fewer_each_time, pure=False)(table.X, tmp_path)
    with pytest.raises(ValueError, match="counted 4003 rows, but a pass found 4002"):
        as_rows([few]).reduce(engine_folds.firsts)


def test_results_are_added_in_the_order_of_the_rows(rows):
    found = rows.reduce(engine_folds.firsts)
    assert found[0] == 0
    assert all(0 < b - a <= BLOCK_ROWS for a, b in pairwise(found))


def test_labels_are_counted_where_they_are(rows, table):
    assert rows.reduce(engine_folds.labels) == Counter(table.y.tolist())


def test_a_task_has_one_blas_thread(rows):
    assert set(rows.reduce(engine_folds.blas_threads)) == {1}


def test_blocks_one_after_the_other_are_the_rows(in_order, table):
    blocks = list(in_order.blocks())
    assert_array_equal(np.concatenate([block.X for block in blocks]), table.X)
    assert_array_equal(np.concatenate([block.y for block in blocks]), table.y)
    assert_array_equal(np.concatenate([block.weight for block in blocks]), table.weight)
    assert_array_equal([block.first for block in blocks], in_order.reduce(engine_folds.firsts))


def test_the_first_block_is_the_first(in_order, table):
    found = first_block(in_order)
    assert found.n_rows == BLOCK_ROWS
    assert_array_equal(found.X, table.X[:BLOCK_ROWS])


@pytest.mark.parametrize("n", [1, 60, 5000])
def test_a_sample_is_the_one_of_memory(in_order, memory, n):
    found, expected = (sample(source, n, np.random.default_rng(5)) for source in (in_order, memory))
    assert_array_equal(found.index, expected.index)
    assert_array_equal(found.X, expected.X)
    assert_array_equal(found.y, expected.y)
    assert_array_equal(found.weight, expected.weight)


@every_engine
def test_centers_from_a_sample_give_sums_of_all_rows(request, kind, memory):
    rows = kind(request)
    drawn = sample(rows, 300, np.random.default_rng(1))
    few = CandidateRows(drawn.X, np.eye(3)[drawn.y.astype(int)], drawn.weight, drawn.y.astype(int))
    for selector in (KMeans(), RPCholesky(), ForwardSelection(n_candidates=100)):
        centers = selector.select(RBF(gamma=0.3), few, 12, np.random.default_rng(2))
        fold = engine_folds.SumsOf(RBF(gamma=0.3), centers.rows)
        assert_same_sums(rows.reduce(fold), memory.reduce(fold))


@every_engine
def test_workers_killed_twice_in_each_of_two_passes_change_nothing(request, kind, table, tmp_path):
    rows = kind(request)
    undisturbed = rows.reduce(sums_of(table))
    for i, row in enumerate((1500, 3900)):
        deaths = tmp_path / f"pass-{i}"
        deaths.mkdir()
        found = rows.reduce(engine_folds.Killing(sums_of(table), deaths, row, 2))
        assert len(list(deaths.iterdir())) == 2
        assert_array_equal(found.G, undisturbed.G)
        assert found.n_rows == undisturbed.n_rows


@every_engine
def test_a_disk_that_is_away_for_a_moment_is_read_again(request, kind, tmp_path, monkeypatch):
    rows = kind(request)
    monkeypatch.setattr("mercer.rows._engines.base.SECONDS_BETWEEN_RETRIES", 0.0)
    if kind is spark_frame:
        pytest.skip("a stream of Spark can not be read again: Spark tries the task anew")
    fold = engine_folds.UnreadableOnce(tmp_path)
    assert rows.reduce(fold) == 4003
    assert (tmp_path / "tried").exists()


@every_engine
def test_an_error_comes_back_as_it_was(request, kind):
    with pytest.raises(ValueError, match="no such rows"):
        kind(request).reduce(engine_folds.refused)


@every_engine
def test_progress_ends_with_all_rows(request, kind, capsys, monkeypatch):
    rows = kind(request)
    monkeypatch.setattr("mercer.rows._progress.SHOWN_AFTER", 0.0)
    rows.reduce(engine_folds.rows_of, phase="moments", verbose=1)
    assert "moments: 4,003 rows in " in capsys.readouterr().err


@every_engine
def test_ctrl_c_cancels_the_pass_and_leaves_the_engine_usable(request, kind, tmp_path):
    rows = kind(request)
    assert rows.reduce(engine_folds.rows_of) == 4003
    timer = threading.Thread(target=interrupt_once_begun, args=(tmp_path,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        rows.reduce(engine_folds.Slow(tmp_path, 0.1))
    timer.join()
    # A part that runs is not interrupted; those that wait never start.
    assert rows.reduce(engine_folds.rows_of) == 4003
    assert len(list(tmp_path.iterdir())) < len(rows.reduce(engine_folds.firsts))


def interrupt_once_begun(folder):
    deadline = time.monotonic() + 60
    while not any(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    # To the main thread of this process, as the keyboard would.
    os.kill(os.getpid(), signal.SIGINT)


def test_a_chunk_that_splits_columns_is_refused_with_the_remedy(table):
    da = needed("dask.array")

    with pytest.raises(ValueError, match=r"2 chunks of columns, \(2, 1\); .* pass X.rechunk\(\{1: -1\}\)"):
        as_rows(da.from_array(table.X, chunks=(1000, 2)), table.y)


def test_targets_that_do_not_fit_the_rows_are_refused(table):
    da = needed("dask.array")

    X = da.from_array(table.X, chunks=(1000, -1))
    for y in (table.y[:-1], da.from_array(table.y[:-1], chunks=500)):
        with pytest.raises(ValueError, match="y has 4002 values for 4003 rows"):
            as_rows(X, y)


def test_there_is_no_sum_over_no_rows(client, tmp_path):
    pa, pq = needed("pyarrow"), needed("pyarrow.parquet")
    pq.write_table(pa.table({"a": np.empty(0)}), tmp_path / "empty.parquet")
    da = needed("dask.array")
    for rows in (as_rows(tmp_path), as_rows(da.zeros((0, 3), chunks=(1, 3)))):
        assert list(rows.blocks()) == []
        with pytest.raises(ValueError, match="no rows to sum over"):
            rows.reduce(engine_folds.rows_of)


def test_parts_without_rows_do_not_matter(client, table):
    dask = needed("dask")
    cuts = [(table.X[:0], table.y[:0]), (table.X[:50], table.y[:50]), (table.X[:0], table.y[:0])]
    rows = as_rows([dask.delayed(cut) for cut in cuts], block_rows=BLOCK_ROWS)
    assert rows.reduce(engine_folds.firsts) == [0, 32]
    assert [block.n_rows for block in rows.blocks()] == [32, 18]


def test_a_frame_of_dask_says_which_columns_there_are(table):
    dd = needed("dask.dataframe")
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame(table.columns()), npartitions=2)
    with pytest.raises(ValueError, match="no column 'label'; the columns are a, b, c, y, w"):
        as_rows(frame, "label")
    with pytest.raises(ValueError, match="y has 3 partitions and X has 2"):
        as_rows(frame, frame["y"].repartition(npartitions=1).repartition(npartitions=3))


def test_outputs_are_lazy_and_those_of_memory(table):
    da = needed("dask.array")
    dd = needed("dask.dataframe")
    import pandas as pd

    calls = []

    def scores(X):
        calls.append(len(X))
        return np.column_stack([X.sum(axis=1), X[:, 0]])

    frame = dd.from_pandas(pd.DataFrame(table.X, columns=list("abc")), npartitions=4)
    for X in (da.from_array(table.X, chunks=(1000, -1)), frame):
        both = map_rows(X, scores, q=2)
        one = map_rows(X, lambda X: scores(X)[:, 0] > 0, dtype=bool)
        assert (both.ndim, both.dtype, one.ndim, one.dtype) == (2, np.float64, 1, bool)
        assert calls == []
        assert_array_equal(both.compute(scheduler="threads"), scores(table.X))
        assert_array_equal(one.compute(scheduler="threads"), table.X.sum(axis=1) > 0)
        calls.clear()


def test_workers_with_less_memory_than_data_are_enough():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: no Dask cluster here")
    da = needed("dask.array")

    # 40 chunks of 32 MB: three times what the worker may hold, of which Python takes half.
    X = da.random.default_rng(0).standard_normal((40 * 40_000, 100), chunks=(40_000, -1))
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit="450MB",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster),
    ):
        found = max(as_rows(X).reduce(engine_folds.largest_memory))
    assert X.nbytes > 2.5 * 450e6
    assert found < 450e6


@pytest.mark.parametrize("kind", [dask_threads, dask_array, dask_frame, dask_delayed, dask_parquet], ids=name)
def test_rows_of_dask_can_be_pickled(request, kind, memory, table):
    rows = pickle.loads(pickle.dumps(kind(request)))
    assert_same_sums(rows.reduce(sums_of(table)), memory.reduce(sums_of(table)))


def test_what_a_task_of_parquet_files_needs_is_small(folder):
    assert len(pickle.dumps(ParquetRows(folder, target="y", weight="w").between(5, 900))) < 2000
