"""The benchmark scripts run, on archives of the right form with next to nothing in them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.datasets import IDA_NAMES

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def run(script, *arguments):
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def ida(tmp_path, rng):
    folder = tmp_path / "ida"
    folder.mkdir()
    for name in IDA_NAMES:
        y = np.resize([-1, 1], 40)
        order = np.array([rng.permutation(40) for _ in range(2)])
        X = rng.normal(size=(40, 3)) + y[:, None]
        np.savez(folder / f"{name}.npz", X=X, y=y, train=order[:, :25], test=order[:, 25:])
    return folder


def test_ida_prints_errors_and_probabilities_beside_stored_scores(ida, tmp_path):
    score = {"error": 1.0, "log_loss": 0.1, "brier": 0.1, "seconds": 1.0}
    stored = tmp_path / "svc.json"
    stored.write_text(json.dumps({name: [score] for name in IDA_NAMES}))
    lines = run("ida.py", "--data", ida, "--svc", stored).splitlines()
    assert {line.split()[0] for line in lines[-14:]} == {*IDA_NAMES, "mean"}
    assert sum(line.startswith("mean of ten") for line in lines) == 1


def test_digits_says_how_many_rows_were_used(tmp_path, rng):
    (tmp_path / "optdigits").mkdir()
    y = np.resize(np.arange(10), 5620)
    X = (rng.integers(0, 3, size=(5620, 64)) + y[:, None]).astype(np.uint8)
    np.savez(tmp_path / "optdigits" / "optdigits.npz", X=X, y=y)
    last = run("digits.py", "--data", tmp_path, "--sets", "optdigits", "--max-rows", 100).splitlines()[-1]
    assert last.startswith("optdigits    100 of 3823")


def test_rounding_prints_what_is_lost_and_kept():
    lines = run("rounding.py", "--rows", 2000).splitlines()
    assert sum(line.startswith("other blocks") for line in lines) == 4
    assert all(float(line.split()[-3]) < 1e-6 for line in lines[-8:])


def test_sparse_prints_its_tables_and_goes_on_where_it_stopped(ida, tmp_path, rng):
    (tmp_path / "regression").mkdir()
    X = rng.normal(size=(500, 4))
    np.savez(tmp_path / "regression" / "boston_housing.npz", X=X, y=X[:, 0])
    out = tmp_path / "sparse.json"
    sets = ("--sets", "banana", "boston", "sinc")
    command = ["sparse_models.py", "--data", tmp_path, "--out", out, "--quick", *sets]
    lines = run(*command).splitlines()
    assert {line.split()[0] for line in lines if line} >= {"banana", "boston", "sinc", "mean"}
    assert set(json.loads(out.read_text())) == {"banana", "boston", "sinc"}
    out.write_text(json.dumps({name: [[7.0, 1.0, 1.0]] for name in ("banana", "boston", "sinc")}))
    assert "banana: 7, 1.0 % kept" in run(*command)


def test_cost_prints_one_line_for_each_size():
    lines = run("cost.py", "--sizes", 30, 50, "--repeats", 1).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["30", "50"]


def test_tuning_speed_prints_one_line_for_each_size():
    last = run("tuning_speed.py", "--sizes", 40, "--repeats", 1, "--quick").splitlines()[-1]
    assert last.split()[0] == "40"


def test_centers_counts_the_centers_others_need(tmp_path):
    arguments = ("--data", tmp_path, "--sets", "ringnorm", "--max-rows", 300, "--quick", "--keep", tmp_path)
    lines = run("centers.py", *arguments).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["ringnorm", "mean"]
    assert (tmp_path / "ringnorm-0.json").exists()
    assert run("centers.py", *arguments).splitlines()[-1] == lines[-1]


def test_threads_finds_no_error_no_torn_answer_and_no_row_lost():
    out = run("threads.py", "--seconds", "0.3", "--calls", "3")
    figures = [line.split()[-7:] for line in out.split("---\n")[1].splitlines()]
    assert len(figures) == 9
    for calls, errors, differ, calls_while, errors_while, torn, lost in figures:
        assert int(calls) > 0
        assert int(calls_while) > 0
        assert {errors, differ, errors_while, torn, lost} <= {"0", "-"}
