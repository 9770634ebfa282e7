"""What ``verbose=1`` says in every phase of a fit."""

import re

import numpy as np
import pytest

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.kernels import RBF


@pytest.fixture
def every_phase(monkeypatch):
    """Phases are shown however short they are."""
    monkeypatch.setattr("mercer.rows._progress.SHOWN_AFTER", 0.0)


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(300, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def said(capsys):
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def phases(lines):
    return [line.split(":")[0] for line in lines]


@pytest.mark.slow
def test_a_fit_says_nothing_by_default(every_phase, rows, capsys):
    KernelFisherClassifier(random_state=0).fit(*rows)
    KernelRidgeRegressor(centers=20, random_state=0).fit(*rows)
    assert said(capsys) == []


@pytest.mark.parametrize("centers", ["all", 30])
def test_a_quick_fit_says_one_line(rows, capsys, centers):
    KernelFisherClassifier(RBF(gamma=0.5), centers=centers, verbose=1, random_state=0).fit(*rows)
    (line,) = said(capsys)
    m = 300 if centers == "all" else 30
    assert re.fullmatch(rf"KernelFisherClassifier: 300 rows with {m} centers fitted in \d+\.\d s", line)


def test_a_fit_with_centers_says_every_phase(every_phase, rows, capsys):
    KernelRidgeRegressor(RBF(gamma=0.5), centers=20, verbose=1, random_state=0).fit(*rows)
    assert phases(said(capsys)) == [
        "sample",
        "selection of centers",
        "precision of products",
        "moments",
        "selection of centers without thirds of the rows",
        "decomposition for 20 centers",
        "leave-one-out of 300 rows",
        "KernelRidgeRegressor",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "last"),
    [
        (300, ["decomposition of 300 rows", "leave-one-out of 300 rows"]),
        (900, ["Cholesky factors and leave-one-out of 900 rows"]),
    ],
)
def test_an_exact_fit_says_every_phase(every_phase, capsys, n, last):
    X = np.random.default_rng(0).normal(size=(n, 2))
    KernelRidgeRegressor("rbf", verbose=1, random_state=0).fit(X, np.sin(3.0 * X[:, 0]) + X[:, 1])
    lines = said(capsys)
    assert lines[0].startswith(f"comparison of kernels on {n} rows with")
    assert "15 kernels in" in lines[0]
    assert phases(lines)[-len(last) - 1 :] == [*last, "KernelRidgeRegressor"]


@pytest.mark.parametrize(("alpha", "count"), [("loo", r"[2-9] alphas"), (0.1, "1 alpha")])
def test_cholesky_factors_are_counted_by_alphas(every_phase, capsys, alpha, count):
    X = np.random.default_rng(0).normal(size=(900, 2))
    KernelRidgeRegressor(RBF(gamma=0.5), alpha=alpha, verbose=1, random_state=0).fit(X, np.sin(3.0 * X[:, 0]))
    (line,) = [line for line in said(capsys) if line.startswith("Cholesky")]
    assert re.fullmatch(rf"Cholesky factors and leave-one-out of 900 rows: {count} in \d+\.\d s", line)


def test_kernels_compared_for_a_fit_with_centers_are_counted(every_phase, rows, capsys):
    KernelFisherClassifier("rbf", centers=20, verbose=1, random_state=0).fit(*rows)
    lines = [line for line in said(capsys) if line.startswith("comparison of kernels on 300 rows")]
    assert "15 kernels in" in lines[0]


def test_rows_that_are_added_and_removed_say_their_passes(every_phase, rows, capsys):
    X, y = rows
    model = KernelFisherClassifier(RBF(gamma=0.5), centers=20, random_state=0).partial_fit(X[:200], y[:200])
    model.set_params(verbose=1).partial_fit(X[200:], y[200:])
    model.remove(X[:10], y[:10])
    assert phases(said(capsys)) == ["sample", "moments", "moments"]
