"""Kernels compared with few centers: exact leave-one-out of small fits, with more centers only if they matter.

Which width is best can be told from a rough model. All kernels are fitted with a few hundred random centers, one
small decomposition each for all alphas, and once more with the first half of them. Kernels that would become the
best if twice as many centers lowered their criterion by the same factor again are compared with more centers on
more rows; kernels whose paired losses differ by less than one standard error, on more rows. How many centers are
enough for the final fit is found in the same way: the least number that is not worse than all by more than one
paired standard error, or by so little that as many new rows would not show it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain

import numpy as np

from mercer._fitting.memory import (
    MOST_COMPARED_ROWS,
    SearchStage,
    resolving_rows,
    rows_within,
    search_batches,
    search_stages_with_copies,
    search_stages_within,
)
from mercer._fitting.selection.all_points import AllPoints
from mercer._fitting.selection.alternatives import Alternative, best_alternative
from mercer._fitting.selection.path import ALPHAS, COARSE_ALPHAS, NEAR_ALPHA, Trial, TuningPath, path_of
from mercer._fitting.selection.problem import ExactProblem
from mercer._fitting.selection.search import TrialsOf, along_axes, best_of, climb, extrapolated, least
from mercer._gram.blocks import check_finite, cuts
from mercer._linalg import map_in_threads
from mercer._scores.probabilities.logits import NUMBERS_IN_CACHE
from mercer._solvers.leave_one_out import loo_outputs
from mercer._solvers.moments.nested_centers import LowRank, NestedCenters
from mercer._types import Array, Floats, Indices
from mercer.kernels._algebra.choice import distinct_kinds
from mercer.kernels._base import Kernel, grid_shape, kind_of
from mercer.kernels._vectors.units import with_common_scores
from mercer.rows._progress import progress
from mercer.rows._table import in_double, n_rows

# Numbers of centers are compared in steps of this factor, down to the second number.
FEWER_BY = 2.0**0.5
FEWEST_CENTERS = 25
# Kernels are compared again with at least this factor more rows or centers, or not at all.
STAGE_GROWTH = 1.5
# Kernels that are compared again because more centers may make them the best.
MOST_IMPROVABLE = 4
# Kernels that are compared with all points as centers, which is cheap where it is done.
MOST_FOR_ALL_POINTS = 6
# Kinds of kernels are compared with this many centers.
FINER_CENTERS = 600
# Kernels that are compared again because they are hardly worse than the best.
MOST_INDISTINGUISHABLE = 4


@dataclass(frozen=True)
class KernelComparison:
    """The candidates, the position of the best one, its alpha, the comparisons, and how many centers are enough.

    ``alpha`` is None if it was not compared, ``enough_centers`` None if more centers may be better, or it was not
    asked for; ``for_all_points`` are the best kernel and those that may be better with all points as centers,
    empty if these do not matter; ``indistinguishable`` are the positions of the best kernel, of those that the
    rows cannot distinguish from it, and of those that may be better with more centers, in the order of their
    extrapolated criterion.
    """

    candidates: Sequence[Kernel]
    best: int = 0
    alpha: float | None = None
    paths: tuple[TuningPath, ...] = ()
    enough_centers: int | None = None
    for_all_points: Mapping[int, Trial] = field(default_factory=dict)
    indistinguishable: tuple[int, ...] = (0,)

    @property
    def kernel(self) -> Kernel:
        """The best kernel."""
        return self.candidates[self.best]


@dataclass(frozen=True)
class ComparisonProblem:
    """A problem, some of its points (m,) as centers, and the alphas to try; None: multiples of the trace.

    ``halves``: kernels are tried with half of the centers, too.
    """

    problem: ExactProblem
    centers: Indices
    alphas: Array | None
    halves: bool = True

    @classmethod
    def at(cls, kernel: Kernel, problem: ExactProblem, order: Indices, stage: SearchStage) -> "ComparisonProblem":
        """The first points of an order with their copies, and the first of all these as centers."""
        points = problem.with_copies(order[: stage.n_rows])
        at_points = problem.at(kernel, points)
        centers = order if len(points) == stage.n_rows else order[np.isin(order, points)]
        where = np.searchsorted(np.sort(points), centers[: stage.n_centers])
        return cls(at_points, where, None if problem.alpha is None else np.array([problem.alpha]))

    def trials(self, kernels: Sequence[Kernel]) -> list[Trial]:
        """Every kernel for every alpha, several in parallel."""
        if not kernels:
            return []
        problem = self.problem
        values = self.values(kernels)
        words = f"comparison of kernels on {n_rows(problem.X):,} rows with {len(self.centers):,} centers"
        with progress(words, len(kernels), verbose=problem.verbose, unit="kernels") as advance:

            def some_trials(some: slice) -> list[Trial]:
                found = self._trials(kernels[some], values)
                advance(len(found))
                return found

            together = cuts(len(kernels), self._together)
            found = map_in_threads(some_trials, together, most=self._sizes[0])
        problem.budget.release()
        return list(chain.from_iterable(found))

    def trials_at(self, kernels: Sequence[Kernel], some: list[int]) -> list[Trial]:
        """Those of the kernels at some positions."""
        return self.trials([kernels[g] for g in some])

    def values(self, kernels: Sequence[Kernel]) -> Callable[[Kernel], Floats]:
        """kernel -> kernel values (u, m) of the points against the centers, in float64, for these kernels."""
        X = in_double(self.problem.X)
        kinds = {kind_of(kernel): kernel for kernel in kernels}
        values = {kind: one.blocks_for_widths(X, one.centers(X, self.centers)) for kind, one in kinds.items()}
        return lambda kernel: values[kind_of(kernel)](kernel)

    def nested(self, kernel: Kernel, K: Floats) -> NestedCenters:
        """The fits with the first centers, from kernel values K (u, m)."""
        check_finite(kernel, K)
        among = K[self.centers] if self.problem.penalty == "rkhs" else None
        return NestedCenters.of(K, among, self.problem.observations.point_weight, intercept=self.problem.intercept)

    def _trials(self, kernels: Sequence[Kernel], values: Callable[[Kernel], Floats]) -> list[Trial]:
        """Some kernels for every alpha, and perhaps with half of the centers for alphas near the best one."""
        nested = [self.nested(kernel, values(kernel)) for kernel in kernels]
        fits = [each.first() for each in nested]
        alphas = [self._shares * (fit.trace or 1.0) if self.alphas is None else self.alphas for fit in fits]
        losses = self.losses(fits, alphas)
        share = self.problem.criterion.share
        found = [Trial.of(*each, share) for each in zip(kernels, alphas, losses)]
        if self.all_are_centers or not self.halves:
            return found
        half = len(self.centers) // 2
        halves = [self.fewer(trial, each, half).least for trial, each in zip(found, nested)]
        return [replace(trial, least_with_half=least) for trial, least in zip(found, halves)]

    def fewer(self, trial: Trial, nested: NestedCenters, m: int) -> Trial:
        """The same kernel with the first m centers, for alphas near the best one."""
        alphas = trial.alpha * NEAR_ALPHA if self.alphas is None else self.alphas
        return Trial.of(trial.kernel, alphas, self.losses([nested.first(m)], [alphas])[0], trial.share)

    def enough_centers(self, trial: Trial) -> int | None:
        """The least number of the centers that is not worse than all of them; None if half of them is worse."""
        nested = self.nested(trial.kernel, self.values([trial.kernel])(trial.kernel))
        m = least = len(self.centers)
        while least / FEWER_BY >= FEWEST_CENTERS:
            fewer = round(least / FEWER_BY)
            if trial.visibly_worse(self.fewer(trial, nested, fewer).losses):
                break
            least = fewer
        return least if 2 * least <= m + 1 else None

    @property
    def all_are_centers(self) -> bool:
        """Whether all points are centers."""
        return len(self.centers) == n_rows(self.problem.X)

    @property
    def _shares(self) -> Array:
        """Alphas as shares of the trace: more of them if all points are centers, as this is then the final fit."""
        return ALPHAS if self.all_are_centers else COARSE_ALPHAS

    @property
    def _together(self) -> int:
        """Kernels whose few outputs are judged together: calls cost more than the work."""
        a, (n, q) = len(self._shares), self.problem.observations.Y.shape
        return max(1, NUMBERS_IN_CACHE // (a * n * q)) if self._sizes[1] >= a else 1

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Kernels in parallel, and alphas of each at once."""
        return search_batches(self.problem.extent, len(self.centers), self.problem.budget.n_bytes)

    def losses(self, fits: Sequence[LowRank], alphas: Sequence[Array]) -> list[Array]:
        """Leave-one-out losses (a, n) of the rows for the alphas of each fit."""
        problem, step = self.problem, self._sizes[1]
        criterion, given, fold = problem.criterion, problem.observations, problem.fold
        if len(fits) == 1:
            parts = [alphas[0][some] for some in cuts(len(alphas[0]), step)]
            return [np.concatenate([criterion.losses(loo_outputs(fits[0], given, part, fold)) for part in parts])]
        outputs = [loo_outputs(fit, given, some, fold) for fit, some in zip(fits, alphas)]
        ends = np.cumsum([len(some) for some in alphas])
        return np.split(criterion.losses(np.concatenate(outputs)), ends[:-1])


def compare_kernels(
    kernel: Kernel,
    problem: ExactProblem,
    rng: np.random.Generator,
    *,
    choose_origin: bool = True,
    try_single: bool = True,
    count_centers: bool = False,
    first_stage_only: bool = False,
    most: int | None = None,
) -> KernelComparison:
    """The best of the candidates of a kernel, by leave-one-out of fits with few centers.

    ``choose_origin``: the kernel may choose its origin; ``try_single``: even a single kernel is tried, for its
    alpha; ``count_centers``: it is found out how many centers are enough; ``first_stage_only``: kernels are
    compared with the fewest centers only; ``most`` is the largest number of centers. O(u m² + m³) for a kernel, u
    and m from 2000 rows and 240 centers up to 5000 and 1200, or 10,000 and 240.
    """
    if choose_origin and problem.intercept and problem.penalty == "rkhs":
        # The coefficients sum to zero: the origin only affects accuracy.
        kernel = kernel.centered_on(problem.X)
    own, available = problem.own_points, problem.budget.n_bytes
    order = np.concatenate([rng.permutation(own), rng.permutation(problem.copied_points)])
    if problem.orbits is None:
        search_stages = search_stages_within(problem.extent, available, most)[: 1 if first_stage_only else None]
    else:
        search_stages = search_stages_with_copies(problem.extent, len(own), available, most)
    resolving = problem.at(kernel, order[: resolving_rows(len(own), available)])
    weight = resolving.observations.point_weight
    kinds = distinct_kinds(with_common_scores(kernel, resolving.X, weight), resolving.X, weight)
    if len(kinds) == 1 and len(kinds[0]) == 1 and not try_single:
        return KernelComparison(kinds[0])
    if len(kinds) == 1:
        return _compare_in_stages(kinds[0], problem, order, search_stages, count_centers=count_centers, most=most)
    first, *others = search_stages
    finer = _finer(first, problem, len(own) if most is None else most)
    stages = (finer, *(each for each in others if each.n_centers > finer.n_centers))
    rough, better = (ComparisonProblem.at(kinds[0][0], problem, order, each) for each in (first, finer))
    every = AllPoints.within(
        [kind[0] for kind in kinds], problem, order, finer, len(own) if most is None else most
    )
    found = best_alternative(
        kinds,
        replace(rough, halves=False).trials,
        better.trials,
        None if every is None else every.trials,
        n_points=first.n_rows,
        n_centers=(first.n_centers, finer.n_centers),
    )
    return _compare_in_stages(
        found.candidates, problem, order, stages, count_centers=count_centers, most=most, found=found
    )


def _finer(stage: SearchStage, problem: ExactProblem, most: int) -> SearchStage:
    """The stage with as many centers as kinds of kernels are compared with, if there is memory for them."""
    finer = replace(stage, n_centers=min(max(FINER_CENTERS, stage.n_centers), stage.n_rows, most))
    within = rows_within(problem.extent, finer, problem.budget.n_bytes) >= stage.n_rows
    return finer if within else stage


def _compare_in_stages(
    kernels: Sequence[Kernel],
    problem: ExactProblem,
    order: Indices,
    search_stages: tuple[SearchStage, ...],
    *,
    count_centers: bool,
    most: int | None,
    found: Alternative | None = None,
) -> KernelComparison:
    """All kernels in the first stage, unless that was ``found`` before, and those that may become best in the next
    ones, as long as more centers or rows matter.
    """
    shape = grid_shape(kernels)

    def step(stage: SearchStage, search: Callable[[TrialsOf[Trial]], dict[int, Trial]]) -> StageTrials:
        comparison = ComparisonProblem.at(kernels[0], problem, order, stage)
        tried = search(partial(comparison.trials_at, kernels))
        return StageTrials(
            stage,
            tried,
            comparison.enough_centers(tried[best_of(tried)]) if count_centers else None,
            count_centers,
        )

    steps = [step(search_stages[0], partial(along_axes, shape) if found is None else lambda _: found.tried)]
    for higher in search_stages[1:]:
        last = steps[-1]
        stage = higher if last.needs_centers else _more_rows(last, problem, search_stages[0].n_centers)
        if not last.is_worth(stage):
            break
        value = extrapolated if last.needs_centers else least
        steps.append(step(stage, partial(climb, last.next_candidates, shape, value=value)))
    u = n_rows(problem.X)
    compared = _conclude(kernels, steps, u, u if most is None else min(most, u))
    return compared if found is None else replace(compared, paths=(*found.paths, *compared.paths[1:]))


def _more_rows(last: "StageTrials", problem: ExactProblem, fewest: int) -> SearchStage:
    """A stage with the centers that the last one needs and the most rows that there is memory for."""
    m = last.stage.n_centers
    if last.enough_centers is not None:
        m = min(m, max(fewest, 2 * last.enough_centers))
    n = rows_within(problem.extent, SearchStage(MOST_COMPARED_ROWS, m), problem.budget.n_bytes)
    return SearchStage(n * len(problem.own_points) // n_rows(problem.X), m)


def _conclude(kernels: Sequence[Kernel], steps: "list[StageTrials]", u: int, final: int) -> KernelComparison:
    """The best kernel of the last step, and what is to be compared again with all u points as centers.

    ``final`` is the largest number of centers of the final fit.
    """
    last = steps[-1]
    all_are_centers = last.stage.n_centers == u
    doublings = float(np.log2(final / last.stage.n_centers))
    # Where the final fit has more centers, kernels are expected to gain by them.
    many = doublings >= 1.0 and last.needs_centers
    best = best_of(last.tried, lambda trial: trial.extrapolated_to(doublings)) if many else last.best
    for_all_points = {g: last.tried[g] for g in (best, last.best)}
    for_all_points |= last.better_if_extrapolated(MOST_FOR_ALL_POINTS, 0.0)
    mattered = last.stage.n_centers > steps[0].stage.n_centers or len(for_all_points) > 1
    paths = tuple(step.path for step in steps) if len(kernels) > 1 else ()
    return KernelComparison(
        kernels,
        best,
        last.tried[best].alpha,
        paths,
        None if last.improvable else last.enough_centers,
        for_all_points if mattered and not all_are_centers else {},
        tuple(last.by_extrapolation(last.next_candidates | {best})),
    )


@dataclass(frozen=True)
class StageTrials:
    """Trials of kernels, by their positions, in a stage; how many centers are enough, if that is asked for."""

    stage: SearchStage
    tried: dict[int, Trial]
    enough_centers: int | None
    count_centers: bool

    @property
    def best(self) -> int:
        return best_of(self.tried)

    @property
    def indistinguishable(self) -> set[int]:
        """The best kernel, and the best of those not worse by more than one standard error."""
        best = self.tried[self.best]
        order = sorted(self.tried, key=lambda g: self.tried[g].least)
        return {self.best} | {g for g in order[:MOST_INDISTINGUISHABLE] if not best.worse(self.tried[g].losses)}

    def better_if_extrapolated(self, most: int, errors: float) -> dict[int, Trial]:
        """Kernels that twice as many centers could make better than the best, by this many standard errors."""
        best = self.tried[self.best]
        some = {g: self.tried[g] for g in self.by_extrapolation(self.tried)[:most] if g != self.best}
        return {g: t for g, t in some.items() if t.extrapolated + errors * best.error(t.losses) < best.least}

    @property
    def improvable(self) -> dict[int, Trial]:
        """Kernels worth a comparison with more centers."""
        return self.better_if_extrapolated(MOST_IMPROVABLE, 1.0)

    @property
    def needs_centers(self) -> bool:
        """Whether more centers could change the result."""
        return bool(self.improvable) or (self.count_centers and self.enough_centers is None)

    def by_extrapolation(self, some: Iterable[int]) -> list[int]:
        """Positions, in the order of their extrapolated criterion."""
        return sorted(some, key=lambda g: (self.tried[g].extrapolated, g))

    @property
    def next_candidates(self) -> set[int]:
        """Kernels to be compared with more centers or, if these are enough, on more rows."""
        return {self.best} | self.improvable.keys() if self.needs_centers else self.indistinguishable

    @property
    def path(self) -> TuningPath:
        return path_of((self.tried[g] for g in sorted(self.tried)), self.stage.n_rows, self.stage.n_centers)

    def is_worth(self, stage: SearchStage) -> bool:
        """Whether a comparison in this stage can tell more."""
        if self.needs_centers:
            return stage.n_centers >= STAGE_GROWTH * self.stage.n_centers
        # Whether few centers are enough is for all rows to say.
        open_question = len(self.indistinguishable) > 1 or self.count_centers
        return open_question and stage.n_rows >= STAGE_GROWTH * self.stage.n_rows
