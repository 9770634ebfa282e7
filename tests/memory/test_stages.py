"""Every stage of a fit says what it holds before the search, and works with sizes that stay within the budget."""

import re
import tracemalloc
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

from mercer import KernelFisherClassifier, KernelRidgeRegressor, SparseFisherClassifier
from mercer._fitting.memory import MemoryInputs, SearchStage, largest_plan, plan_within
from mercer._gram import Budget
from mercer._linalg import limit_threads
from mercer.centers import ForwardSelection, Leverage, RPCholesky, Uniform
from mercer.errors import MemoryBudgetError
from mercer.kernels import RBF, Matern

MIB = 2**20
INPUTS = MemoryInputs(
    row=40.0, sample=10_000, held_out=10_000, q=1, n_centers=300, selector=ForwardSelection(), threads=2, n=10**6
)
ALL_INPUTS = {
    "two classes": INPUTS,
    "kernels to compare": replace(INPUTS, kernels=15),
    "50 classes": replace(INPUTS, q=50, kernels=15),
    "float32": replace(INPUTS, item=4, row=20.0, n_centers=1000),
    "random centers": replace(INPUTS, selector=Uniform(), n_centers=3000),
    "number not given": replace(INPUTS, n_centers=None),
    "unknown number of rows": replace(INPUTS, n=None, copied=True, row=8000.0),
    "regression": replace(INPUTS, has_classes=False, q=3),
}


@pytest.fixture
def no_search(monkeypatch):
    """Kernels may not be compared."""

    def fail(*args, **kwargs):
        raise AssertionError("work began")

    for module in ("exact", "selection.centers"):
        monkeypatch.setattr(import_module(f"mercer._fitting.{module}"), "compare_kernels", fail)


@pytest.mark.sampled(22)
@pytest.mark.parametrize("mib", [1, 10, 50, 200, 1000, 10**6])
@pytest.mark.parametrize("inputs", ALL_INPUTS.values(), ids=ALL_INPUTS)
def test_stages_stay_within_the_budget_or_the_fit_is_refused(inputs, mib):
    budget = Budget(mib * MIB)
    try:
        plan = plan_within(inputs, budget)
    except MemoryBudgetError:
        assert largest_plan(inputs, budget.n_bytes).largest.n_bytes > budget.n_bytes
    else:
        assert all(stage.n_bytes <= budget.n_bytes for stage in plan.stages)


@pytest.mark.parametrize("inputs", ALL_INPUTS.values(), ids=ALL_INPUTS)
def test_more_memory_never_refuses_what_less_allowed(inputs):
    allowed = []
    for mib in np.geomspace(1, 10_000, 30):
        allowed.append(largest_plan(inputs, mib * MIB).largest.n_bytes <= mib * MIB)
    assert allowed == sorted(allowed)


def test_with_plenty_of_memory_sizes_are_the_usual_ones():
    plan = largest_plan(ALL_INPUTS["kernels to compare"], np.inf)
    assert (plan.threads, plan.sample_threads, plan.alphas) == (2, 2, 35)
    assert plan.search_stages == (SearchStage(2000, 240), SearchStage(5000, 600))
    assert plan.selector is INPUTS.selector
    assert plan.words == ""


@pytest.mark.parametrize("inputs", ALL_INPUTS.values(), ids=ALL_INPUTS)
def test_every_parameter_that_a_refusal_names_is_enough(inputs):
    with pytest.raises(MemoryBudgetError) as caught:
        plan_within(inputs, Budget(2 * MIB))
    said = dict(re.findall(r"(\w+)=([\d.]+)", str(caught.value)))
    plan_within(inputs, Budget(float(said.pop("max_memory")) * 2**30))
    if "centers" in said:
        plan_within(replace(inputs, n_centers=int(said["centers"])), Budget(2 * MIB))
    if "loo_rows" in said:
        rows = int(said["loo_rows"])
        plan_within(replace(inputs, sample=rows, held_out=rows), Budget(2 * MIB))


def test_all_of_five_thousand_rows_at_half_a_gib_are_refused_before_kernels_are_compared(rng, no_search):
    X = rng.normal(size=(5000, 2))
    with pytest.raises(MemoryBudgetError, match=r"\(5000, 5000\) .* need 572.2 MiB and the budget is 512.0 MiB"):
        KernelFisherClassifier("rbf", centers="all", max_memory=0.5).fit(X, np.arange(5000) % 2)


def test_all_of_sixty_thousand_rows_are_refused_before_kernels_are_compared(rng, no_search):
    X = rng.normal(size=(60_000, 2))
    with pytest.raises(
        MemoryBudgetError, match=r'80.5 GiB .* write centers="auto" or centers=\d+ or max_memory=81'
    ):
        KernelFisherClassifier("rbf", centers="all", max_memory=16.0).fit(X, np.arange(60_000) % 2)


def test_the_default_centers_that_a_refused_fit_names_are_enough(rng, monkeypatch):
    for module in ("_fitting.run", "_fitting.memory"):
        monkeypatch.setattr(import_module(f"mercer.{module}"), "EXACT_ROWS", 1000)
    X, y = rng.normal(size=(1200, 2)), np.arange(1200) % 2
    model = KernelFisherClassifier(Matern(gamma=1.0), centers="all", max_memory=0.05, random_state=0)
    with pytest.raises(MemoryBudgetError, match='write centers="auto" or centers='):
        model.fit(X, y)
    model.set_params(centers="auto").fit(X, y)


def test_default_centers_are_not_named_where_they_are_all_rows(rng):
    X, y = rng.normal(size=(1600, 2)), np.arange(1600) % 2
    with pytest.raises(MemoryBudgetError) as caught:
        KernelFisherClassifier(RBF(gamma=1.0), max_memory=0.05).fit(X, y)
    assert "auto" not in str(caught.value)


@pytest.mark.slow
def test_centers_that_a_refused_fit_names_are_enough(rng):
    X, y = rng.normal(size=(1200, 2)), np.arange(1200) % 2
    model = KernelFisherClassifier(RBF(gamma=1.0), max_memory=0.02, random_state=0)
    with pytest.raises(MemoryBudgetError) as caught:
        model.fit(X, y)
    m = int(re.search(r"centers=(\d+)", str(caught.value)).group(1))
    assert m >= 100
    model.set_params(centers=m).fit(X, y)


def test_too_many_centers_are_refused_before_kernels_are_compared(rng, no_search):
    X = rng.normal(size=(6000, 2))
    with pytest.raises(MemoryBudgetError, match=r"2000 centers.*write centers=\d+.* or max_memory=0\.\d+"):
        KernelFisherClassifier(centers=2000, max_memory=0.05).fit(X, np.arange(6000) % 2)


def test_many_classes_are_refused_before_kernels_are_compared(rng, no_search):
    X, y = rng.normal(size=(8000, 2)), np.arange(8000) % 200
    with pytest.raises(MemoryBudgetError, match="200 targets"):
        KernelFisherClassifier(centers=50, max_memory=0.02).fit(X, y)


def traced_peak(fit):
    tracemalloc.start()
    try:
        model = fit()
        return model, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def has_classes(rng, n, d, k):
    y = np.arange(n) % k
    return rng.normal(size=(n, d)) + np.random.default_rng(1).normal(size=(k, d))[y], y


# What Python itself keeps of a fit, such as compiled regular expressions and modules that are imported late.
OBJECTS = 2 * MIB


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "k", "mib", "parameters"),
    [
        (6000, 5, 2, 10, {"kernel": RBF(gamma=0.1), "centers": 50}),
        (6000, 5, 2, 10, {"centers": 50}),
        (6000, 5, 2, 25, {"kernel": RBF(gamma=0.1), "centers": 300}),
        (4000, 5, 30, 20, {"kernel": RBF(gamma=0.1), "centers": 60, "loo_rows": 2000}),
        (3000, 200, 2, 40, {"kernel": RBF(gamma=0.001), "centers": 100}),
        (3000, 5, 2, 40, {"kernel": RBF(gamma=0.1), "centers": RPCholesky(200)}),
        (3000, 5, 2, 80, {"kernel": RBF(gamma=0.1), "centers": Leverage(200)}),
        (3000, 5, 2, 20, {"kernel": RBF(gamma=0.1), "centers": ForwardSelection()}),
        (700, 5, 2, 20, {}),
        (600, 5, 20, 16, {"kernel": RBF(gamma=0.1)}),
        (1500, 5, 2, 55, {"kernel": "rbf"}),
        (1500, 5, 2, 90, {}),
        (1500, 5, 2, 88, {"cv": 2}),
    ],
)
def test_a_fit_allocates_no_more_than_its_budget(rng, n, d, k, mib, parameters):
    X, y = has_classes(rng, n, d, k)
    model = KernelFisherClassifier(max_memory=mib / 1024, random_state=0, **parameters)
    _, peak = traced_peak(lambda: model.fit(X, y))
    assert peak <= mib * MIB + OBJECTS


EXACT = {
    "default": {},
    "one alpha": {"kernel": RBF(gamma=0.1), "alpha": 1.0},
    "another kernel": {"kernel": Matern(gamma=0.1)},
    "folds": {"kernel": RBF(gamma=0.1), "cv": 2},
    "singular values": {"kernel": RBF(gamma=0.1), "penalty": "coef"},
}


@pytest.mark.slow
@pytest.mark.parametrize("parameters", EXACT.values(), ids=EXACT)
def test_the_memory_that_a_refused_exact_fit_asks_for_is_enough_and_most_of_it_is_needed(rng, parameters):
    X, y = has_classes(rng, 800, 5, 2)
    model = KernelFisherClassifier(max_memory=0.001, random_state=0, **parameters)
    with pytest.raises(MemoryBudgetError) as caught:
        model.fit(X, y)
    gib = float(re.search(r"max_memory=([\d.]+)", str(caught.value)).group(1))
    with limit_threads(2):
        _, peak = traced_peak(lambda: model.set_params(max_memory=gib).fit(X, y))
    assert 0.5 * gib * 2**30 <= peak <= gib * 2**30 + OBJECTS


@pytest.mark.slow
def test_a_fit_to_sparse_float32_rows_allocates_no_more_than_its_budget(rng):
    X, y = has_classes(rng, 6000, 30, 2)
    X[rng.random(X.shape) < 0.9] = 0.0
    model = KernelFisherClassifier(RBF(gamma=0.1), centers=100, max_memory=30 / 1024, random_state=0)
    _, peak = traced_peak(lambda: model.fit(sparse.csr_matrix(X.astype(np.float32)), y))
    assert peak <= 30 * MIB + OBJECTS


@pytest.mark.slow
def test_a_regression_allocates_no_more_than_its_budget(rng):
    X = rng.normal(size=(6000, 5)).astype(np.float32)
    model = KernelRidgeRegressor(RBF(gamma=0.1), centers=200, max_memory=30 / 1024, random_state=0)
    _, peak = traced_peak(lambda: model.fit(X, X[:, :3]))
    assert peak <= 30 * MIB + OBJECTS


@pytest.mark.slow
def test_kernels_of_a_sparse_fit_are_tried_one_by_one_where_the_budget_has_room_for_one(rng):
    X, y = has_classes(rng, 700, 5, 2)
    # 4 x 700² sums over candidates and six columns for each of 10 centers: 15.3 MiB; three kernels would be 39.
    model = SparseFisherClassifier(max_centers=10, max_memory=16 / 1024, random_state=0)
    with limit_threads(3):
        _, peak = traced_peak(lambda: model.fit(X, y))
    assert peak <= 16 * MIB + OBJECTS


def test_blas_of_more_threads_takes_no_more_than_its_share_of_the_budget():
    for mib in (10, 100, 1000, 10_000):
        plan = largest_plan(replace(INPUTS, threads=64), mib * MIB)
        assert (plan.threads - 1) * 32 <= mib / 4
    assert largest_plan(replace(INPUTS, threads=64), np.inf).threads == 64


@pytest.mark.slow
def test_the_budget_changes_a_fit_by_rounding_only_where_kernel_and_centers_are_given(rng):
    X, y = has_classes(rng, 6000, 3, 4)
    few, many = (
        KernelFisherClassifier(RBF(gamma=0.3), centers=X[:80], max_memory=gib).fit(X, y) for gib in (0.009, None)
    )
    # The same pieces of rows, summed in the same order.
    assert (few.moments_.G == many.moments_.G).all()
    assert few.alpha_ == pytest.approx(many.alpha_, rel=1e-12)
    # Alphas held_out out in steps are other matrix products: a few roundings of outputs of size one.
    np.testing.assert_allclose(few.loo_outputs_, many.loo_outputs_, atol=1e-10)


@pytest.mark.slow
def test_the_report_says_what_is_less_within_max_memory(rng):
    X, y = has_classes(rng, 6000, 3, 2)
    few = KernelFisherClassifier(centers=50, max_memory=0.008, random_state=0).fit(X, y)
    assert re.search(r"within max_memory \d+ candidates, \d+ rows to compare kernels", few.report_.centers)
    usual = KernelFisherClassifier(RBF(gamma=0.3), centers=50, random_state=0).fit(X, y)
    assert "max_memory" not in str(usual.report_)
