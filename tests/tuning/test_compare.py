"""Kernels compared with few centers: the same bits always, the best kernel, and as many centers as matter."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mercer._fitting.memory as memory
from mercer._fitting.memory import SearchStage
from mercer._fitting.selection import comparison as comparing
from mercer._fitting.selection.comparison import ComparisonProblem, StageTrials, _more_rows, compare_kernels
from mercer._fitting.selection.path import Trial
from mercer._fitting.selection.problem import ExactProblem
from mercer._gram import Budget
from mercer._linalg import limit_threads
from mercer._scores.criteria import squared_criterion
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.spectrum import Observations, decompose
from mercer.errors import KernelError
from mercer.kernels import RBF, Kernel, Laplacian, Linear
from mercer.rows._distinct import every_row

WORDS = RBF(gamma="loo")
SEARCH_STAGES = SearchStage(150, 40), SearchStage(300, 80), SearchStage(600, 160)


@pytest.fixture
def short(monkeypatch):
    """Few rows and centers on every stage."""
    monkeypatch.setattr(memory, "SEARCH_STAGES", SEARCH_STAGES)


def problem_of(X, Y, *, weight=None, alpha=None, penalty="rkhs", intercept=True, fold=None):
    Y, n = np.atleast_2d(Y.T).T.astype(float), len(X)
    weight = np.ones(n) if weight is None else weight
    return ExactProblem(
        X=X,
        observations=Observations(Y, weight, np.minimum(weight, 1.0), every_row(n)),
        criterion_for=lambda rows: squared_criterion(Y[rows], weight[rows]),
        alpha=alpha,
        penalty=penalty,
        intercept=intercept,
        budget=Budget(2.0**30),
        fold=fold,
        has_classes=False,
    )


def smooth(rng, n, **options):
    X = rng.normal(size=(n, 2))
    return problem_of(X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n), **options)


def checkerboard(rng, n, side=8, **options):
    """More fields than centers on the first stage, with a few rows each."""
    X = rng.uniform(size=(n, 2))
    return problem_of(X, np.where((side * X).astype(int).sum(axis=1) % 2, 1.0, -1.0), **options)


def of(problem, kernel=WORDS, **options):
    return compare_kernels(kernel, problem, np.random.default_rng(3), **options)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", [30, 200, 700])
def test_a_repeated_comparison_is_the_same_whatever_the_number_of_threads(short, rng, n):
    problem = smooth(rng, n)
    found = []
    for threads in (1, 2, 3, 1):
        with limit_threads(threads):
            found.append(of(problem, count_centers=True))
    for other in found[1:]:
        assert (other.best, other.alpha, other.enough_centers) == (
            found[0].best,
            found[0].alpha,
            found[0].enough_centers,
        )
        for a, b in zip(found[0].paths, other.paths, strict=True):
            assert_array_equal(a.scores, b.scores)
            assert_array_equal(a.alphas, b.alphas)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"penalty": "coef"},
        {"intercept": False},
        {"alpha": 0.3},
        {"fold": np.arange(120) % 9},
        {"weight": np.random.default_rng(8).uniform(0.2, 3.0, 120)},
    ],
    ids=["default", "coef", "no intercept", "alpha", "folds", "weights"],
)
def test_where_all_points_are_centers_the_best_kernel_is_that_of_exact_leave_one_out(rng, options):
    problem = smooth(rng, 120, **options)
    found = of(problem, first_stage_only=True)
    path = found.paths[0]
    assert path.n_centers == path.n_points == 120
    w, criterion = problem.observations.point_weight, problem.criterion
    for kernel, alphas, scores in zip(path.kernels, path.alphas, path.scores):
        K = kernel.block(problem.X, problem.X)
        spectrum = decompose(K, w, penalty=problem.penalty, intercept=problem.intercept)
        exact = criterion(loo_outputs(spectrum, problem.observations, alphas, problem.fold))
        # Directions below 1e-10 of K are not used: widths whose best fits need them are not the best.
        certain = alphas > 1e-7 * spectrum.trace
        np.testing.assert_allclose(scores[certain], exact[certain], rtol=1e-3)
    assert found.best == int(path.least.argmin())
    assert found.kernel.gamma == path.kernels[found.best].gamma
    assert found.alpha == path.alphas[path.best]


def test_a_comparison_with_the_alpha_given_tries_no_other(rng):
    found = of(smooth(rng, 100, alpha=0.3))
    assert found.alpha == 0.3
    assert_array_equal(found.paths[0].alphas, np.full((15, 1), 0.3))


def naive_enough(comparison, trial):
    """The least number in steps of sqrt(2) from all downwards, each with losses like those of all centers."""
    m = len(comparison.centers)
    numbers, fine = [m], m
    while numbers[-1] / 2**0.5 >= comparing.FEWEST_CENTERS:
        numbers.append(round(numbers[-1] / 2**0.5))
    for fewer in numbers[1:]:
        few = replace(comparison, centers=comparison.centers[:fewer])
        K = few.values([trial.kernel])(trial.kernel)
        alphas = trial.alpha * 10.0 ** np.array([-0.75, 0.0, 0.75])
        losses = few.losses([few.nested(trial.kernel, K).first()], [alphas])[0]
        least = losses[(losses @ trial.share).argmin()]
        of_all = np.average(trial.losses, weights=trial.share)
        error = np.sqrt((trial.share**2 * (trial.losses - of_all) ** 2).sum())
        if np.average(least, weights=trial.share) - of_all > 0.1 * error:
            break
        fine = fewer
    return fine if fine <= (m + 1) // 2 else None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [smooth, checkerboard])
@pytest.mark.parametrize("gamma", [0.1, 3.0, 100.0])
def test_enough_centers_are_the_least_that_lose_no_more_than_a_tenth_of_a_standard_error(rng, make, gamma):
    problem, kernel = make(rng, 300), RBF(gamma=gamma)
    comparison = ComparisonProblem.at(kernel, problem, rng.permutation(300), SearchStage(300, 200))
    (trial,) = comparison.trials([kernel])
    assert comparison.enough_centers(trial) == naive_enough(comparison, trial)


def test_a_smooth_function_needs_few_centers(short, rng):
    found = of(smooth(rng, 600), count_centers=True)
    assert found.enough_centers <= 40
    assert max(path.n_centers for path in found.paths) < 160


def test_a_checkerboard_needs_all_centers_and_all_rungs(short, rng):
    found = of(checkerboard(rng, 600), count_centers=True)
    assert found.enough_centers is None
    assert [path.n_centers for path in found.paths] == [40, 80, 160]
    assert found.best in found.for_all_points


def step(*trials, count_centers=False, enough_centers=None):
    """A step on the first stage, from the losses of four rows and the criterion with half of the centers."""
    share = np.full(4, 0.25)
    tried = [
        replace(Trial.of(RBF(), np.ones(1), np.array([losses], dtype=float), share), least_with_half=before)
        for losses, before in trials
    ]
    return StageTrials(SEARCH_STAGES[0], dict(enumerate(tried)), enough_centers, count_centers)


BEST = [1.0, 2.0, 3.0, 4.0], 2.5
# Worse by 0.5, in every row.
WORSE = [1.5, 2.5, 3.5, 4.5]


def test_kernels_that_more_centers_may_make_the_best_are_compared_with_more():
    # 3²/3.7 is less than the best criterion, 2.5, and 3²/3.5 is not.
    found = step(BEST, (WORSE, 3.7), (WORSE, 3.5))
    assert found.improvable.keys() == {1}
    assert found.next_candidates == {0, 1}
    assert found.needs_centers
    assert found.is_worth(SEARCH_STAGES[1])
    assert not found.is_worth(SearchStage(600, 40))


def test_kernels_that_are_close_are_compared_on_more_rows_with_as_many_centers():
    found = step(BEST, ([1.5, 1.5, 3.5, 3.6], 2.525), (WORSE, 3.0))
    assert found.indistinguishable == {0, 1}
    assert not found.needs_centers
    assert found.next_candidates == {0, 1}
    assert found.is_worth(SearchStage(600, 40))


def test_close_kernels_come_in_the_order_of_their_promise(short, rng):
    found = step(BEST, (WORSE, 3.4), (WORSE, 3.9), ([1.5, 1.5, 3.5, 3.6], 2.525))
    assert found.by_extrapolation(found.tried) == [2, 0, 3, 1]
    compared = of(smooth(rng, 300), first_stage_only=True)
    assert compared.best in compared.indistinguishable
    assert set(compared.indistinguishable) < set(range(15))


def test_a_kernel_that_is_the_best_beyond_doubt_is_not_compared_again():
    assert not step(BEST, (WORSE, 3.0)).is_worth(SearchStage(600, 40))


def test_all_rows_say_whether_few_centers_are_enough():
    last = step(BEST, (WORSE, 3.0), count_centers=True, enough_centers=28)
    assert last.is_worth(SearchStage(600, 40))
    assert not last.is_worth(SearchStage(200, 40))


def test_as_long_as_all_centers_are_needed_more_are_tried():
    assert step(BEST, (WORSE, 3.0), count_centers=True).is_worth(SEARCH_STAGES[1])


def test_compared_once_means_on_the_first_rung(short, rng):
    found = of(checkerboard(rng, 600), first_stage_only=True)
    assert [(path.n_points, path.n_centers) for path in found.paths] == [(150, 40)]


def test_a_single_kernel_is_tried_only_for_its_alpha(short, rng):
    problem = smooth(rng, 300)
    assert of(problem, RBF(gamma=1.0), try_single=False).alpha is None
    found = of(problem, RBF(gamma=1.0))
    assert found.alpha > 0
    assert found.paths == ()


@pytest.mark.slow
def test_parameters_of_a_sum_are_compared_one_after_the_other(short, rng):
    found = of(smooth(rng, 150), RBF(gamma="loo") + Laplacian(gamma="loo") + Linear())
    assert 15 + 15 - 1 <= len(found.paths[0].kernels) < 15 * 15 / 2


class Overflowing(RBF):
    """NaN for narrow kernels only."""

    def block(self, X, Z):
        return np.full((len(X), len(Z)), np.nan) if self.gamma > 1.0 else super().block(X, Z)


def test_values_that_are_not_finite_raise_an_error_with_the_kernel(rng):
    with pytest.raises(KernelError, match=r"Overflowing\(gamma=[\d.]+\) returned \d+ values that are not finite"):
        of(smooth(rng, 100), Overflowing(gamma="loo"))


class Counting(Kernel):
    """A user's kernel without candidates."""

    def block(self, X, Z):
        return np.asarray(X) @ np.asarray(Z).T

    def diag(self, X):
        return np.einsum("ij,ij->i", X, X)


def test_a_kernel_of_the_user_has_one_candidate(rng):
    found = of(smooth(rng, 50), Counting())
    assert len(found.candidates) == 1
    assert found.alpha > 0


def test_differences_of_a_ten_thousandth_do_not_matter_however_certain_they_are():
    found = Trial.of(RBF(), np.ones(1), np.full((1, 4), 1.0), np.full(4, 0.25))
    assert not found.worse(np.full(4, 1.00009))
    assert found.worse(np.full(4, 1.0002))


def test_a_certain_difference_that_new_rows_would_not_show_is_not_visible():
    # The standard error of the criterion is 0.56, that of any of these differences zero.
    found = Trial.of(RBF(), np.ones(1), np.array([[1.0, 2.0, 3.0, 4.0]]), np.full(4, 0.25))
    assert found.worse(found.losses + 0.05)
    assert not found.visibly_worse(found.losses + 0.05)
    assert found.visibly_worse(found.losses + 0.06)


def test_comparisons_on_more_rows_have_the_centers_that_are_needed(rng):
    problem = smooth(rng, 3000)
    last = StageTrials(SearchStage(2000, 600), {}, 200, True)
    assert _more_rows(last, problem, 240) == SearchStage(3000, 400)
    assert _more_rows(replace(last, enough_centers=25), problem, 240) == SearchStage(3000, 240)
    assert _more_rows(replace(last, enough_centers=None), problem, 240) == SearchStage(3000, 600)


def test_each_doubling_of_the_centers_is_expected_to_help_half_as_much_as_the_one_before():
    trial = replace(Trial.of(RBF(), np.ones(1), np.full((1, 4), 0.8), np.full(4, 0.25)), least_with_half=1.0)
    assert trial.extrapolated_to(0.0) == 0.8
    assert trial.extrapolated_to(1.0) == pytest.approx(0.8 * 0.8**0.5)
    assert trial.extrapolated_to(2.0) == pytest.approx(0.8 * 0.8**0.5 * 0.8**0.25)
    assert trial.extrapolated_to(100.0) == pytest.approx(trial.extrapolated)
