"""Kernels and alphas of sparse fits are compared by rows whose centers were selected without them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer._fitting.selection.path import TuningPath, joined
from mercer._fitting.sparse.kernels import KernelTrial, favorite
from mercer._fitting.sparse.paths import tune_sparse
from mercer._fitting.sparse.problem import SparseProblem, SparseSettings
from mercer._gram import Budget
from mercer._scores.criteria import squared_criterion
from mercer._solvers import Observations
from mercer._solvers.orthogonal import SelectionRule
from mercer._solvers.orthogonal.candidates import CandidateColumns
from mercer._solvers.orthogonal.folds import COMPARED_FOLDS, folds_of, held_out
from mercer._solvers.orthogonal.path import along
from mercer.datasets import make_ringnorm
from mercer.errors import MemoryBudgetError, NumericalError
from mercer.kernels import RBF
from mercer.rows._distinct import distinct_rows

KERNELS = [RBF(gamma=0.01), RBF(gamma=0.05), RBF(gamma=5.0)]
SETTINGS = SparseSettings(
    rule=SelectionRule(),
    stop="loo",
    tolerance=0.01,
    standard_errors=0.0,
    max_centers=30,
    alpha=None,
    chosen_by="loo",
    prune=False,
    shared=True,
    widen=lambda kernel: (kernel,),
)


@pytest.fixture(scope="module")
def problem():
    X, y = make_ringnorm(60, random_state=0)
    Y = np.column_stack([y, X[:, 0] ** 2]).astype(float)
    rows = distinct_rows(X)
    observations = Observations(Y, np.ones(60), np.ones(60), rows)

    def criterion(some, targets):
        return squared_criterion(Y[some] if targets is None else Y[some][:, targets], np.ones(len(some)))

    return SparseProblem(X[rows.first], observations, criterion, SETTINGS, Budget(1e9))


def having(problem, **settings):
    return replace(problem, settings=replace(problem.settings, **settings))


def compared(problem, kernels, rng):
    """One path of all kernels, with all points as candidates."""
    return joined([each.path for each in KernelTrial.drawn(problem, rng).paths(kernels)])


def held_out_scores(problem, kernel, alpha, numbers):
    """The criterion with so many centers, selected without each fold: with this alpha, or a small one for None."""
    rule, observations = problem.settings.rule, problem.observations
    candidates = CandidateColumns((kernel,), problem.X, np.arange(60))
    fits = []
    for fold in folds_of(candidates, observations, COMPARED_FOLDS, np.random.default_rng(0)):
        small = rule.penalty in ("rkhs", "coef")
        order = fold.order(rule, None if small else alpha, 30, np.random.default_rng(0))
        fits.append((fold.rows, along(fold.candidates, observations, order, alpha, rule.penalty)))
    return problem.criterion(held_out(fits, [observations], np.asarray(numbers))[0])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_alphas_are_compared_at_the_end_of_paths_selected_without_each_fold(problem, penalty, rng):
    problem = having(problem, rule=SelectionRule(penalty=penalty))
    path = compared(problem, KERNELS, rng)
    assert path.alphas.shape == path.scores.shape == (3, 18)
    assert (path.n_points, path.n_centers) == (60, 30)
    assert path.kernels[path.best[0]].gamma < 5.0
    for alpha, score in list(zip(path.alphas[1], path.scores[1]))[::4]:
        assert_allclose(score, held_out_scores(problem, KERNELS[1], alpha, [30]), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("penalty", "n_alphas"), [("diagonal", 7), ("orthogonal", 8)])
@pytest.mark.parametrize("selection", ["gain", "residual"])
def test_alphas_on_which_the_selection_depends_select_their_own_centers(
    problem, selection, penalty, n_alphas, rng
):
    problem = having(problem, rule=SelectionRule(selection, penalty=penalty))
    path = compared(problem, KERNELS, rng)
    assert path.alphas.shape == path.scores.shape == (3, n_alphas)
    for alpha, score in zip(path.alphas[1], path.scores[1]):
        assert_allclose(score, held_out_scores(problem, KERNELS[1], alpha, [30]), rtol=1e-8)


@pytest.mark.slow
def test_a_penalty_that_is_re_estimated_is_compared_at_the_end(problem, rng):
    problem = having(problem, rule=SelectionRule("residual", penalty="orthogonal"), chosen_by="gcv")
    path = compared(problem, KERNELS, rng)
    assert path.scores.shape == (3, 1)
    assert_allclose(path.scores[1], held_out_scores(problem, KERNELS[1], None, [30]), rtol=1e-8)


def test_an_alpha_that_is_given_is_the_only_one(problem, rng):
    path = compared(having(problem, alpha=0.3), KERNELS, rng)
    assert_array_equal(path.alphas, np.full((3, 1), 0.3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("settings", [{}, {"chosen_by": "gcv"}, {"chosen_by": "evidence"}], ids=str)
def test_a_kernel_without_columns_is_the_last_choice(problem, settings, rng):
    problem = having(problem, **settings)
    # All rows look alike: nothing is left of a column once it is centered.
    constant = RBF(gamma=1e-300)
    path = compared(problem, [constant, *KERNELS], rng)
    assert np.isinf(path.scores[0]).all()
    assert favorite(path, 60)[0].gamma > 1e-3
    alone = compared(problem, [constant], rng)
    assert favorite(alone, 60) == (constant, 1.0)


def test_scores_that_are_no_numbers_are_refused():
    path = TuningPath(KERNELS, np.ones((3, 2)), np.full((3, 2), np.nan), 60)
    with pytest.raises(NumericalError, match="StandardScaler"):
        favorite(path, 60)


def test_evidence_chooses_among_models_that_left_out_rows_do_not_tell_apart():
    narrow, wide = RBF(gamma=1.0), RBF(gamma=0.1)
    path = TuningPath(
        kernels=[narrow, wide],
        alphas=np.array([[1.0, 2.0], [1.0, 2.0]]),
        scores=np.array([[1.0, 1.5], [1.2, 1.09]]),
        n_points=200,
        marginal_deviance=np.array([[9.0, 1.0], [2.0, 5.0]]),
    )
    assert favorite(path, 200) == (wide, 2.0)
    assert favorite(path, 10**6) == (narrow, 1.0)
    assert favorite(path, 2) == (narrow, 2.0)


def test_gcv_compares_kernels_at_its_own_alpha(problem, rng):
    every = compared(problem, KERNELS, rng)
    best = compared(having(problem, chosen_by="gcv"), KERNELS, rng)
    assert best.alphas.shape == (3, 1)
    for g in range(3):
        assert np.isclose(best.scores[g], every.scores[g], rtol=1e-9).any()


def test_targets_share_their_centers_or_have_their_own(problem, rng):
    shared = tune_sparse(RBF(gamma=0.05), problem, rng)
    own = tune_sparse(RBF(gamma=0.05), having(problem, shared=False), rng)
    assert [part.targets for part in shared.parts] == [[0, 1]]
    assert [part.targets for part in own.parts] == [[0], [1]]
    assert shared.loo.shape == own.loo.shape == (60, 2)
    for fit in (shared, own):
        assert [len(path.kernels) for path in fit.paths] == [1]


@pytest.mark.parametrize(
    ("penalty", "random", "alpha"),
    [("rkhs", "rkhs", 0.3), ("coef", "coef", 0.3), ("diagonal", "rkhs", None), ("orthogonal", "rkhs", None)],
)
def test_random_centers_have_the_same_penalty_unless_it_depends_on_the_order(problem, penalty, random, alpha):
    exact = having(problem, rule=SelectionRule(penalty=penalty), alpha=0.3).with_random_centers
    assert (exact.penalty, exact.alpha) == (random, alpha)


def test_a_comparison_of_kernels_is_refused_before_it_begins(problem, rng, monkeypatch):
    monkeypatch.setattr(
        "mercer._fitting.sparse.kernels.compare_kernels", lambda *args, **options: pytest.fail("work began")
    )
    # A path of 30 centers takes 202 kB, and a comparison with all 60 points as centers 458 kB.
    problem = replace(problem, budget=Budget(210_000.0))
    with pytest.raises(MemoryBudgetError, match="a comparison of kernels on 60 rows"):
        tune_sparse(RBF(gamma="loo"), problem, rng)


def test_memory_is_asked_for_before_kernels_are_compared(problem, rng, monkeypatch):
    monkeypatch.setattr(
        "mercer._fitting.sparse.paths.compare_kernels_by_paths", lambda *args: pytest.fail("work began")
    )
    with pytest.raises(MemoryBudgetError, match="a path of 30 centers on 60 rows"):
        tune_sparse(RBF(gamma="loo"), replace(problem, budget=Budget(1000.0)), rng)
