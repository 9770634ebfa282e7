"""The problem of a sparse fit: points, targets, and how centers, their number, kernel and alpha are chosen."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mercer._fitting.memory import sparse_path_bytes, sparse_trial_bytes
from mercer._fitting.selection.problem import ExactProblem, some_points
from mercer._gram import Budget
from mercer._scores.criteria import Criterion, TargetCriterion
from mercer._solvers import Observations
from mercer._solvers.orthogonal.orders import SelectionRule
from mercer._solvers.orthogonal.path import SparsePath
from mercer._solvers.orthogonal.stop import Judgement, Stop, number_of_centers
from mercer._solvers.spectrum import Penalty
from mercer._types import Indices
from mercer.kernels._base import Kernel

ChosenBy = Literal["loo", "gcv", "evidence"]

# Sparse fits decide between the best kernels on at most this many points with at most this many of them as
# candidates; alpha is chosen on all. More rows make it reliable at little cost, candidates are expensive.
COMPARED_ROWS_AND_CANDIDATES = 6000, 1500
# The evidence has every point as a center: it is computed for at most this many.
MOST_FOR_EVIDENCE = 600
# Candidate points, unless more than half of them are requested as centers; and centers, if no number is given.
POOL = 3000
MOST_SPARSE_CENTERS = 3000
# The share of the points that become centers on the longest path.
LONGEST_PATH = 0.5


@dataclass(frozen=True)
class SparseSettings:
    """How a sparse fit is made; ``alpha`` None: the best. ``widen`` returns the kernels that a center may have.

    ``chosen_by`` "gcv" compares the alphas of one kernel by generalized cross-validation, "evidence" lets the
    evidence decide between models that leave-one-out hardly distinguishes.
    """

    rule: SelectionRule
    stop: Stop | None
    tolerance: float
    standard_errors: float
    max_centers: int | None
    alpha: float | None
    chosen_by: ChosenBy
    prune: bool
    shared: bool
    widen: Callable[[Kernel], tuple[Kernel, ...]]

    @property
    def reestimated(self) -> bool:
        """Whether alpha is re-estimated after each center."""
        return self.rule.penalty == "orthogonal" and self.alpha is None and self.chosen_by != "loo"

    def n_bytes(self, u: int) -> float:
        """Memory of the path, or of comparing one kernel if that has more candidates than the path."""
        path = sparse_path_bytes(u, self.longest(u), self.pool(u))
        rows, c = COMPARED_ROWS_AND_CANDIDATES
        return max(path, sparse_trial_bytes(min(u, rows), min(u, c)))

    def pool(self, u: int, n_kernels: int = 1) -> int:
        """Number of candidate points, at least twice the number of centers for a single kernel."""
        longest = self.longest(u)
        return min(u, max(POOL, 2 * longest) if n_kernels == 1 else max(POOL // n_kernels, longest))

    def kept(self, path: SparsePath, judgement: Judgement | None) -> int:
        """How many centers of the path are kept; held-out rows are judged for stop="loo" only."""
        if judgement is not None and self.rule.penalty in ("diagonal", "orthogonal"):
            judgement = judgement.smoothed
        return number_of_centers(path, self.stop, self.tolerance, judgement, self.standard_errors)

    def longest(self, u: int) -> int:
        """Centers on the path of u points."""
        most = (
            min(MOST_SPARSE_CENTERS, int(np.ceil(LONGEST_PATH * u)))
            if self.max_centers is None
            else self.max_centers
        )
        return max(1, min(most, u))


@dataclass(frozen=True)
class SparseProblem:
    """Points X (u rows), observations there, how fits are evaluated and made, and the memory for it."""

    X: Any
    observations: Observations
    criterion_for: TargetCriterion
    settings: SparseSettings
    budget: Budget

    @property
    def n_points(self) -> int:
        return self.observations.rows.n_points

    @property
    def criterion(self) -> Criterion:
        """The criterion for all rows."""
        return self.criterion_for(np.arange(len(self.observations.Y)), None)

    @property
    def chosen_by(self) -> ChosenBy:
        """Evidence uses all points as centers, with their kernel as covariance: only for few points."""
        affordable = self.n_points <= MOST_FOR_EVIDENCE and self.settings.rule.penalty == "rkhs"
        return self.settings.chosen_by if affordable or self.settings.chosen_by != "evidence" else "loo"

    @property
    def with_random_centers(self) -> ExactProblem:
        """The problem of fits whose centers are not selected; penalties that depend on the order become "rkhs"."""
        penalty: Penalty = "coef" if self.settings.rule.penalty == "coef" else "rkhs"
        same = self.settings.rule.penalty == penalty
        return ExactProblem(
            X=self.X,
            observations=self.observations,
            criterion_for=self.criterion_for,
            alpha=self.settings.alpha if same else None,
            penalty=penalty,
            intercept=True,
            budget=self.budget,
        )

    def at(self, kernel: Kernel, points: Indices) -> "SparseProblem":
        """The problem at some of its points, with all rows there."""
        if len(points) == self.n_points:
            return self
        X, part, rows = some_points(kernel, self.X, self.observations, points)
        return replace(
            self,
            X=X,
            observations=part,
            criterion_for=lambda some, targets=None: self.criterion_for(rows[some], targets),
        )

    def for_targets(self, targets: list[int]) -> "SparseProblem":
        """The problem for some of the targets."""
        if len(targets) == self.observations.Y.shape[1]:
            return self
        part = replace(self.observations, Y=self.observations.Y[:, targets])
        criterion_for = self.criterion_for
        return replace(self, observations=part, criterion_for=lambda rows, _=None: criterion_for(rows, targets))
