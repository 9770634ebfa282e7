"""Novelty detection: the smallest soft ball around rows, or the plane that separates them from the origin."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._gram import Budget, gram, own_values
from mercer._linalg.eigen import centered
from mercer._scores.training_rows import weighted_quantile
from mercer._solvers.programs.nonsmooth.sequential_minimal_optimization import PairSolution, solve_pairs
from mercer._types import Array, Indices
from mercer.kernels import Kernel

NOVELTY_FORMS = ("ball", "plane")
# Folds in which training rows are held out to find how far away new rows are.
NOVELTY_FOLDS = 10
# Weights below this share of the largest are zero.
NO_WEIGHT = 1e-9
# Diagonals that differ by less than this share are constant.
CONSTANT_DIAGONAL = 1e-9


@dataclass(frozen=True)
class Distances:
    """What distances from a ball or a plane depend on besides <phi(x), w>: its ``form``, the ``square`` of the
    length of w, and k(x, x) of all rows if the kernel is precomputed.
    """

    form: str
    square: float
    diagonal: float | None

    def of_rows(self, kernel: Kernel, X: Any, inner: Array) -> Array:
        """The scores of rows with <phi(x), w> (n,): minus the squared distance to the center w, or the first."""
        if self.form == "plane":
            return inner
        own = own_values(kernel, X) if self.diagonal is None else np.full(len(inner), self.diagonal)
        return self.scores(inner, own)

    def scores(self, inner: Array, own: Array) -> Array:
        """The same with k(x, x) (n,)."""
        return 2.0 * inner - own - self.square if self.form == "ball" else inner


@dataclass(frozen=True)
class WeightedGram:
    """Kernel values (u, u) of distinct rows, and their weights (u,)."""

    K: Array
    weight: Array

    def solve(self, form: str, nu: float) -> PairSolution:
        """Weights of the smallest soft ball (Tax and Duin 1999), or of the plane (Schölkopf et al. 2001)."""
        ball = form == "ball"
        return solve_pairs(2.0 * self.K if ball else self.K, self.K.diagonal() * float(ball), self.bound(nu))

    def bound(self, nu: float) -> Array:
        """The largest weight (u,) of each row in the program."""
        bound: Array = np.minimum(self.weight / (nu * self.weight.sum()), 1.0)
        return bound

    def radius(self, a: Array, nu: float) -> float:
        """Of the ball with weights a (u,): no row inside is farther away, none outside nearer."""
        distance = self.K.diagonal() - 2.0 * self.K @ a + float(a @ self.K @ a)
        inside = distance[a < self.bound(nu)].max(initial=0.0)
        outside = distance[a > 0.0].min(initial=np.inf)
        return float(np.sqrt(max(0.5 * (inside + outside), 0.0)))

    def held_out_scores(self, form: str, nu: float) -> Array:
        """Scores (u,) of rows for solutions without their fold, which are dealt at random."""
        u = len(self.K)
        fold = np.random.default_rng(0).permutation(u) % min(NOVELTY_FOLDS, u)
        scores = np.empty(u)
        for number in range(int(fold.max()) + 1):
            rest, rows = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            others = WeightedGram(self.K[np.ix_(rest, rest)], self.weight[rest])
            a = others.solve(form, nu).weight
            inner, own = self.K[np.ix_(rows, rest)] @ a, self.K.diagonal()[rows]
            scores[rows] = Distances(form, float(a @ others.K @ a), None).scores(inner, own)
        return scores


@dataclass(frozen=True)
class NoveltyFit:
    """Rows ``support`` (m,) with weights ``coef`` (m,), the threshold of scores, and how far away rows are.

    ``held_out`` (n,) are scores of rows, each without its fold, NaN for those without weight; ``radius`` is that
    of the ball, None for a plane; ``gap`` how much better other weights could be.
    """

    support: Indices
    coef: Array
    offset: float
    held_out: Array
    radius: float | None
    gap: float
    distances: Distances


def fit_novelty(
    kernel: Kernel, X: Any, weight: Array, *, form: str, nu: float, rate: float, budget: Budget
) -> NoveltyFit:
    """The ball or the plane around rows with weights (n,), and the threshold that a share ``rate`` is beyond.

    O(n²) memory.
    """
    used = np.flatnonzero(weight > 0.0)
    distinct = kernel.distinct(kernel.subset(X, used))
    first = used[distinct.first]
    if len(first) < 2:
        raise ValueError(f"novelty detection needs 2 distinct rows at least, but n_samples = {len(first)}")
    K = np.asarray(gram(kernel, kernel.subset(X, first), budget=budget, matrices=4), dtype=np.float64)
    if form == "ball" and kernel.takes_values:
        _check_diagonal(K.diagonal())
    counts = np.bincount(distinct.point, weight[used]).astype(np.float64)
    # Distances are the same around the mean, and more accurate.
    rows = WeightedGram(centered(K) if form == "ball" else K, counts)
    found, scores = rows.solve(form, nu), rows.held_out_scores(form, nu)
    kept = np.flatnonzero(found.weight > NO_WEIGHT * found.weight.max())
    held_out = np.full(len(weight), np.nan)
    held_out[used] = scores[distinct.point]
    diagonal = float(K.diagonal().mean()) if kernel.takes_values else None
    return NoveltyFit(
        support=first[kept],
        coef=found.weight[kept],
        offset=weighted_quantile(scores, counts, rate),
        held_out=held_out,
        radius=rows.radius(found.weight, nu) if form == "ball" else None,
        gap=found.gap,
        distances=Distances(form, float(found.weight @ K @ found.weight), diagonal),
    )


def _check_diagonal(own: Array) -> None:
    """k(x, x) of new rows is that of the training rows, if these have one."""
    if np.ptp(own) > CONSTANT_DIAGONAL * float(np.abs(own).max()):
        raise ValueError(
            f"k(x, x) of the kernel matrix varies between {own.min():.3g} and {own.max():.3g}, and that of "
            'new rows is not known; normalize the matrix, or use form="plane"'
        )
