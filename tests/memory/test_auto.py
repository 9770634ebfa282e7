"""The default number of centers stays within the budget, and numbers that a refusal names are accepted."""

import re
import tracemalloc
from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._fitting.memory import LEAST_CENTERS
from mercer.centers import Uniform
from mercer.errors import MemoryBudgetError, MemoryWarning
from mercer.kernels import RBF, Matern

MIB = 2**20
# What Python itself keeps of a fit, such as compiled regular expressions and modules that are imported late.
OBJECTS = 2 * MIB


class Began(Exception):
    """All stages were accepted, and kernels are about to be compared."""


@pytest.fixture
def no_search(monkeypatch):
    """A fit ends where kernels would be compared."""

    def end(*args, **kwargs):
        raise Began

    for module in ("exact", "selection.centers", "kernel_learning.relevance"):
        monkeypatch.setattr(import_module(f"mercer._fitting.{module}"), "compare_kernels", end)


def refused(model, X, y):
    """What the fit says if it is refused before the search; None if it is accepted."""
    try:
        model.fit(X, y)
    except MemoryBudgetError as error:
        return str(error)
    except Began:
        return None
    raise AssertionError("kernels were not compared")


def rows_of(kind, n, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    if kind == "sparse":
        return sparse.csr_matrix(np.where(rng.random(X.shape) < 0.7, 0.0, X)), np.arange(n) % 2
    if kind == "float32":
        return X.astype(np.float32), np.arange(n) % 2
    if kind == "targets":
        return X, X[:, :3]
    return X, np.arange(n) % int(kind)


def test_free_memory_that_changes_the_model_is_a_warning_and_a_given_budget_is_not(monkeypatch, no_search):
    X, y = rows_of("2", 12_000)
    assert refused(KernelFisherClassifier(), X, y) is None
    assert refused(KernelFisherClassifier(max_memory=0.1), X, y) is None
    monkeypatch.setattr("mercer._gram.budget.free_memory", lambda: 0.125 * 2**30)
    with pytest.warns(MemoryWarning, match=r"allows at most \d+ centers.*pass max_memory=0.1 "):
        assert refused(KernelFisherClassifier(), X, y) is None


def model_of(kind, **parameters):
    return (KernelRidgeRegressor if kind == "targets" else KernelFisherClassifier)(random_state=0, **parameters)


KERNELS = {"2": "rbf", "12": RBF(gamma=0.1), "targets": Matern(), "float32": RBF(gamma=0.1), "sparse": Matern()}
BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("kind", "kernel"), KERNELS.items(), ids=str)
@pytest.mark.parametrize(
    ("n", "centers"),
    [(1900, "all"), (4000, "all"), (12_000, "all"), (6000, 3000), (30_000, 4000), (6000, Uniform(2900))],
    ids=str,
)
def test_the_number_of_centers_that_a_refusal_names_is_accepted(no_search, n, centers, kind, kernel):
    X, y = rows_of(kind, n)
    named = []
    for gib in BUDGETS:
        model = model_of(kind, kernel=kernel, centers=centers, max_memory=gib)
        number = re.search(r"centers=(\d+)", refused(model, X, y) or "")
        if number:
            named.append(int(number.group(1)))
            assert refused(model.set_params(centers=named[-1]), X, y) is None, (gib, named[-1])
    assert len(set(named)) > 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("loo_rows", [500, None])
def test_the_number_that_a_refusal_names_is_accepted_for_any_sample(no_search, loo_rows):
    X, y = rows_of("2", 12_000)
    for gib in (0.03, 0.1, 0.3):
        model = model_of("2", centers="all", loo_rows=loo_rows, max_memory=gib)
        m = int(re.search(r"centers=(\d+)", refused(model, X, y)).group(1))
        assert refused(model.set_params(centers=m), X, y) is None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["12", "targets", "sparse"])
@pytest.mark.parametrize("n", [2001, 5000, 10_000, 12_000])
def test_the_default_is_accepted_wherever_the_least_number_of_random_centers_is(no_search, n, kind):
    X, y = rows_of(kind, n)
    accepted = []
    for gib in np.geomspace(0.002, 0.6, 6):
        auto = refused(model_of(kind, max_memory=gib), X, y) is None
        # Fits with given centers keep a sample of as many rows if there are no more than loo_rows.
        least = refused(model_of(kind, centers=Uniform(LEAST_CENTERS), loo_rows=n, max_memory=gib), X, y) is None
        assert auto >= least
        accepted.append(auto)
    assert accepted == sorted(accepted)
    assert accepted[0] is False
    assert accepted[-1] is True


@pytest.mark.parametrize("n", [3000, 12_000])
def test_what_a_refused_default_names_is_accepted(no_search, n):
    X, y = rows_of("2", n)
    said = refused(model_of("2", max_memory=0.002), X, y)
    gib = float(re.search(r"max_memory=([\d.]+)", said).group(1))
    assert refused(model_of("2", max_memory=gib), X, y) is None


def test_all_rows_and_given_numbers_are_not_lowered(no_search):
    X, y = rows_of("2", 5000)
    assert "(5000, 5000) kernel matrix" in refused(model_of("2", centers="all", max_memory=0.1), X, y)
    assert "2400 centers" in refused(model_of("2", centers=2400, max_memory=0.1), X, y)


def test_up_to_two_thousand_rows_the_default_is_all_of_them(no_search):
    X, y = rows_of("2", 2000)
    assert "(2000, 2000) kernel matrix" in refused(model_of("2", max_memory=0.05), X, y)


def hard(n, kind="2"):
    """Rows with more structure than a hundred centers can represent."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(n, 2))
    wave = np.sin(25.0 * X[:, 0]) * np.sin(25.0 * X[:, 1])
    return X, wave if kind == "targets" else (wave > 0).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "mib"), [(3000, 40), (6000, 60)])
@pytest.mark.parametrize("kind", ["2", "targets"])
def test_the_default_within_a_small_budget_keeps_to_it_and_says_so(n, mib, kind):
    X, y = hard(n, kind)
    model = model_of(kind, kernel=RBF(gamma=100.0), max_memory=mib / 1024)
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= mib * MIB + OBJECTS
    limit = int(re.search(r"within max_memory at most (\d+) centers", model.report_.centers).group(1))
    assert LEAST_CENTERS <= len(model.X_fit_) <= limit < n // 2


@pytest.mark.slow
def test_fewer_centers_than_rows_only_because_of_the_budget_are_said_to_be():
    X, y = hard(2200)
    # All rows take 24 n² = 111 MiB, half of them 16 n² = 74 and the rows of a piece 18.
    few, every = (model_of("2", kernel=RBF(gamma=100.0), max_memory=mib / 1024).fit(X, y) for mib in (105, 2000))
    assert "within max_memory at most 1100 centers" in few.report_.centers
    assert len(every.X_fit_) == 2200
    assert "max_memory" not in every.report_.centers


@pytest.mark.slow
def test_a_first_batch_has_half_of_its_rows_as_centers_whatever_there_is_memory_for():
    X, y = hard(600)
    model = model_of("2", kernel=RBF(gamma=100.0)).partial_fit(X, y)
    assert "max_memory" not in model.report_.centers
