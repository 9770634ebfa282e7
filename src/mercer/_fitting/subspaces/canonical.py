"""Canonical correlations of several views: alpha by held-out correlations, all rows or m centers a view."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from mercer._fitting.notices import warn_of_indefinite
from mercer._fitting.subspaces.components import (
    LEAST_SAMPLE,
    NOISE,
    SAMPLED_ROWS_PER_CENTER,
    ExactSubspace,
    selected_centers,
)
from mercer._gram import Budget, cross
from mercer._gram.coordinates import Coordinates
from mercer._gram.joint_moments import JointMomentsOf
from mercer._gram.moments import Moments, MomentsOf
from mercer._gram.precision import DEPENDENT_CENTERS, NEARLY_DEPENDENT_CENTERS, ORIGIN_ROWS, factor_of
from mercer._linalg import blas_threads
from mercer._linalg.eigen import eigen_psd
from mercer._linalg.threads import map_in_threads
from mercer._solvers.directions.canonical import (
    Axes,
    CanonicalDirections,
    axes_of_grams,
    axes_of_moments,
    canonical_directions,
    correlations_of,
    mean_of_pairs,
    products_around,
    rematched,
    scores_along,
    slices,
    with_signs,
)
from mercer._types import Array, Indices
from mercer.centers._resolve import requested_centers
from mercer.errors import KernelError
from mercer.kernels import Kernel
from mercer.rows import Block, MemoryRows
from mercer.rows._distinct import distinct_rows, every_row
from mercer.rows._table import n_rows, take

# Centers of all views in the fits of folds, if all rows are centers in the end; and those of each view with
# centers="auto" beyond that.
CHOICE_CENTERS, CENTERS_OF_VIEWS = 800, 600
# Alphas that are compared, in units of the variance of a view in feature space; then those between the best and
# the next ones.
CANONICAL_ALPHAS = tuple(10.0**power for power in range(1, -8, -1))
# Two alphas in a row whose held-out correlations are worse than the best by this end the comparison: smaller ones
# fit noise, and take the most time.
MUCH_WORSE = 0.03
FINER_ALPHA = 10.0**0.5
# Held-out rows whose correlation counts as one, at least, and how many such correlations have a mean, at most.
LEAST_ROWS_OF_CORRELATION, MOST_GROUPS = 8, 10
# Held-out correlations that differ by less are the same: the largest alpha of them is chosen.
SAME_CORRELATION = 1e-9


@dataclass(frozen=True)
class Paired:
    """Distinct rows X, a dict of views, with a kernel each, and weights (u,); ``row`` (u,) is where each was."""

    kernels: dict[Any, Kernel]
    X: dict[Any, Any]
    weight: Array
    row: Indices

    @classmethod
    def of(cls, kernels: dict[Any, Kernel], X: dict[Any, Any], weight: Array) -> "Paired":
        """Rows of positive weight; those equal in every view are merged, if there are no kernel values."""
        used = np.flatnonzero(weight > 0.0)
        values = any(kernel.takes_values for kernel in kernels.values())
        distinct = every_row(len(used)) if values else distinct_rows(take(X, used))
        row = used[distinct.first]
        views = {name: kernels[name].subset(view, row) for name, view in X.items()}
        return cls(kernels, views, np.bincount(distinct.point, weight[used]).astype(np.float64), row)

    @classmethod
    def every(cls, kernels: dict[Any, Kernel], X: dict[Any, Any]) -> "Paired":
        """All rows, with a weight of one each."""
        return cls(kernels, X, np.ones(n_rows(X)), np.arange(n_rows(X)))

    @property
    def n(self) -> int:
        return len(self.weight)


@dataclass(frozen=True)
class Joint:
    """Coordinates of several views against centers, side by side: how rows are summed, and what is noise."""

    sums: JointMomentsOf
    noise: tuple[float, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(n_rows(fold.centers) for fold in self.sums.folds)

    def moments(self, X: dict[Any, Any], weight: Array, verbose: int = 0) -> Moments:
        """One pass over rows."""
        return MemoryRows(X, None, weight).reduce(self.sums, phase="joint moments", verbose=verbose)

    def axes(self, moments: Moments) -> Axes:
        return axes_of_moments(moments, self.sizes, self.noise)

    def of_kernel_values(self, found: CanonicalDirections) -> CanonicalDirections:
        """Coefficients and intercepts for kernel values of the centers, from those of coordinates."""
        where = [fold.coordinates for fold in self.sums.folds if fold.coordinates is not None]
        coef = tuple(each.inverse @ c for each, c in zip(where, found.coef))
        shift = [each.origin @ c for each, c in zip(where, coef)]
        intercept = tuple(b - s for b, s in zip(found.intercept, shift))
        return with_signs(replace(found, coef=coef, intercept=intercept))


@dataclass(frozen=True)
class HeldOutFolds:
    """Rows in folds, each held out from directions of the others.

    ``by_fold`` are moments of folds by number, ``total`` those of all of them, ``halves`` those of the halves of
    each fold if there are two only. ``outside`` are folds that are held out from everything. ``axes`` of the rows
    without a fold are computed when they are needed; ``found`` keeps directions, by the folds that had no part in
    them and alpha.
    """

    joint: Joint
    by_fold: dict[int, Moments]
    total: Moments
    halves: dict[int, list[Moments]]
    found: dict[tuple[frozenset[int], float], CanonicalDirections]
    outside: frozenset[int] = frozenset()
    axes: dict[int, Axes] = field(default_factory=dict)

    @classmethod
    def of(cls, joint: Joint, paired: Paired, fold: Indices, verbose: int = 0) -> "HeldOutFolds":
        """From one pass over rows (u,) in folds."""

        def moments(rows: Indices) -> Moments:
            return joint.moments(take(paired.X, rows), paired.weight[rows], verbose)

        rows = [np.flatnonzero(fold == number) for number in range(int(fold.max()) + 1)]
        if len(rows) > 2:
            return cls._joined(joint, list(map(moments, rows)))
        halves = {i: [moments(some[h::2]) for h in range(min(len(some), 2))] for i, some in enumerate(rows)}
        return cls._joined(joint, [reduce(add, parts) for parts in halves.values()], halves)

    @classmethod
    def _joined(
        cls, joint: Joint, by_fold: Sequence[Moments], halves: dict[int, list[Moments]] | None = None
    ) -> "HeldOutFolds":
        return cls(joint, dict(enumerate(by_fold)), reduce(add, by_fold), halves or {}, {})

    def correlations(self, alpha: float, most: int) -> Array:
        """Correlations (g, most) of held-out rows along directions of the others, zero where there are none.

        Variates are zero at the mean of the other rows. Each of g folds has its own, since a single row far from
        all others may have large variates in all views, and decide; small folds are joined.
        """
        return self._of_groups(
            map_in_threads(lambda number: self._products(number, alpha, most), list(self.by_fold))
        )

    def path(self, most: int) -> dict[float, Array]:
        """Correlations of held-out rows for every alpha that is compared."""
        path: dict[float, Array] = {}
        for alpha in CANONICAL_ALPHAS:
            path[alpha] = self.correlations(alpha, most)
            means = [float(each.mean()) for each in path.values()]
            if max(means[-2:]) < max(means) - MUCH_WORSE:
                break
        middle = _largest(path)
        return path | {
            alpha: self.correlations(alpha, most) for alpha in (middle / FINER_ALPHA, middle * FINER_ALPHA)
        }

    def nested(self, most: int) -> Array:
        """Correlations (most,) of each fold for the alpha that the others choose among themselves.

        Those of the best alpha are too large: of noise, the best of eleven was 0.12. Nor may a fold have a part in
        the directions by which others choose for it: if two folds agree by chance, each speaks for the other.
        Many folds are joined.
        """
        folds = self if len(self.by_fold) <= MOST_GROUPS else self._fewer()
        alphas = {number: folds._alpha_without(number, most) for number in folds.by_fold}
        products = [folds._products(i, alpha, most) for i, alpha in alphas.items()]
        return np.asarray(folds._of_groups(products).mean(axis=0))

    def _fewer(self) -> "HeldOutFolds":
        """The same rows in fewer folds."""
        groups = np.array_split(np.array(list(self.by_fold)), MOST_GROUPS)
        return self._joined(self.joint, [reduce(add, (self.by_fold[i] for i in group)) for group in groups])

    def _alpha_without(self, number: int, most: int) -> float:
        """The alpha that rows outside of a fold choose; the largest if too few are left to choose."""
        others = {other: by_fold for other, by_fold in self.by_fold.items() if other != number}
        if len(others) > 1:
            total, outside = self.total - self.by_fold[number], self.outside | {number}
            return _largest(replace(self, by_fold=others, total=total, outside=outside, axes={}).path(most))
        halves = [part for other in others for part in self.halves[other]]
        return CANONICAL_ALPHAS[0] if len(halves) < 2 else _largest(self._joined(self.joint, halves).path(most))

    def _directions(self, number: int, alpha: float, most: int) -> CanonicalDirections:
        """Those of the rows outside of a fold."""
        key = self.outside | {number}, alpha
        if key not in self.found:
            if number not in self.axes:
                self.axes[number] = self.joint.axes(self.total - self.by_fold[number])
            self.found[key] = canonical_directions(self.axes[number], alpha, most)
        return self.found[key]

    def _products(self, number: int, alpha: float, most: int) -> Array:
        """Sums (most, V, V) of products of the variates of a fold."""
        found = products_around(self.by_fold[number], self._directions(number, alpha, most), self.joint.sizes)
        return np.concatenate([found, np.zeros((most - len(found), *found.shape[1:]))])

    def _of_groups(self, products: Sequence[Array]) -> Array:
        """Correlations (g, most) from the sums of every fold."""
        n = sum(by_fold.n_rows for by_fold in self.by_fold.values())
        g = max(1, min(len(self.by_fold), MOST_GROUPS, n // LEAST_ROWS_OF_CORRELATION))
        groups = np.array_split(np.stack(list(products)), g)
        return np.stack([mean_of_pairs(correlations_of(group.sum(axis=0))) for group in groups])


@dataclass(frozen=True)
class CanonicalFit:
    """What a fit found: for each view centers, coefficients and intercept, all by name.

    ``correlations`` (k,) are means over pairs of views, of the rows of the fit; ``held_out`` (k,) those of rows in
    folds; ``objective`` (k,) the regularized one.
    """

    centers: dict[Any, Any]
    coef: dict[Any, Array]
    intercept: dict[Any, Array]
    correlations: Array
    objective: Array
    held_out: Array
    alpha: float
    words: str


@dataclass(frozen=True)
class CanonicalPlan:
    """What is asked for: ``alpha`` None is chosen, ``centers`` None: all rows; ``fold`` (u,) of distinct rows."""

    alpha: float | None
    most: int
    centers: Any
    fold: Indices
    budget: Budget
    verbose: int = 0


def fit_canonical(paired: Paired, plan: CanonicalPlan, rng: np.random.Generator) -> CanonicalFit:
    """Directions along which the views agree; of all rows, O(n³), or of m centers a view, O(n m²)."""
    if paired.n < 2:
        raise ValueError(
            f"n_samples = {paired.n} row that differs from others, and correlations need two; pass more rows"
        )
    if plan.centers is None:
        return _exact(paired, plan, rng)
    joint, words = _with_centers(paired, plan, rng)
    folds = HeldOutFolds.of(joint, paired, plan.fold, plan.verbose)
    alpha, held_out, compared = _chosen(folds, plan)
    found = joint.of_kernel_values(canonical_directions(joint.axes(folds.total), alpha, plan.most))
    centers = [fold.centers for fold in joint.sums.folds]
    return _concluded(paired, centers, found, alpha, held_out, f"{words}; {compared}")


def _exact(paired: Paired, plan: CanonicalPlan, rng: np.random.Generator) -> CanonicalFit:
    """All rows are centers; folds are fitted with some of them."""
    names, n = list(paired.X), paired.n
    plan.budget.require(8.0 * n * n * (4 * len(names) + 4), f"{len(names)} kernel matrices of {n} rows")
    joint = some_centers(paired, rng)
    folds = HeldOutFolds.of(joint, paired, plan.fold, plan.verbose)
    alpha, held_out, compared = _chosen(folds, plan)
    points = [ExactSubspace.of(paired.kernels[v], paired.X[v], paired.weight, plan.budget) for v in names]
    noise = [each.noise for each in points]
    axes, negative = axes_of_grams([each.K for each in points], points[0].share, noise)
    for kernel, part in zip(paired.kernels.values(), negative):
        warn_of_indefinite(kernel, part)
    found = canonical_directions(axes, alpha, plan.most)
    centers = [paired.row if each.takes_values else paired.X[v] for v, each in paired.kernels.items()]
    words = f"all {n} distinct rows are centers; {compared}"
    if n > CHOICE_CENTERS // len(names):
        words += f" with {CHOICE_CENTERS // len(names)} centers a view"
    return _concluded(paired, centers, found, alpha, held_out, words)


def _concluded(
    paired: Paired, centers: Sequence[Any], found: CanonicalDirections, alpha: float, held_out: Array, words: str
) -> CanonicalFit:
    names, k = list(paired.X), len(found.objective)
    if k == 0:
        raise ValueError(
            f"no direction of one view is correlated with another, with n_samples = {paired.n} distinct rows: in "
            "at least one view all rows are equal for its kernel, up to rounding; use another width, or scale the "
            "features"
        )
    return CanonicalFit(
        centers=dict(zip(names, centers)),
        coef=dict(zip(names, found.coef)),
        intercept=dict(zip(names, found.intercept)),
        correlations=mean_of_pairs(found.correlations),
        objective=found.objective,
        held_out=held_out[:k],
        alpha=alpha,
        words=words,
    )


def _chosen(folds: HeldOutFolds, plan: CanonicalPlan) -> tuple[float, Array, str]:
    """Alpha, its held-out correlations (most,), and how it was chosen."""
    by = f"held-out correlations in {len(folds.by_fold)} folds"
    if plan.alpha is not None:
        held_out = folds.correlations(plan.alpha, plan.most).mean(axis=0)
        return plan.alpha, held_out, f"alpha = {plan.alpha:.3g} was given; {by}"
    path = folds.path(plan.most)
    alpha = _largest(path)
    return alpha, folds.nested(plan.most), f"alpha = {alpha:.3g}, the best of {len(path)} by {by}"


def _largest(path: dict[float, Array]) -> float:
    """The largest alpha of those with the best mean."""
    best = max(float(each.mean()) for each in path.values())
    return max(alpha for alpha, each in path.items() if each.mean() >= best - SAME_CORRELATION)


def some_centers(paired: Paired, rng: np.random.Generator) -> Joint:
    """Random rows as centers, the same in every view; all, if they are few."""
    m = min(paired.n, CHOICE_CENTERS // len(paired.X))
    some = np.arange(paired.n) if m == paired.n else np.sort(rng.choice(paired.n, m, replace=False))
    found = []
    for name, kernel in paired.kernels.items():
        X = paired.X[name]
        found.append(_coordinates(kernel, take(X, some), kernel.centers(X, some), X))
    return _joint(list(paired.X), found)


def _with_centers(paired: Paired, plan: CanonicalPlan, rng: np.random.Generator) -> tuple[Joint, str]:
    """Centers of each view, selected from a sample of its rows."""
    n, found, words = paired.n, [], []
    for name, kernel in paired.kernels.items():
        centers = plan.centers[name] if isinstance(plan.centers, dict) else plan.centers
        size = max(LEAST_SAMPLE, SAMPLED_ROWS_PER_CENTER * requested_centers(centers))
        some = np.arange(n) if n <= size else np.sort(rng.choice(n, size, replace=False))
        X, weight = take(paired.X[name], some), paired.weight[some]
        chosen, how = selected_centers(kernel, X, weight, centers, n, rng, plan.budget)
        _warn_of_centers(kernel, chosen.rows)
        found.append(_coordinates(kernel, chosen.rows, kernel.centers(chosen.rows), X))
        words.append(f"{n_rows(found[-1][0].centers)} centers of {name!r}, {how}")
    joint = _joint(list(paired.X), found)
    matrices = int(plan.fold.max()) + 2 * blas_threads() + 6
    plan.budget.require(8.0 * sum(joint.sizes) ** 2 * matrices, f"joint moments of {sum(joint.sizes)} centers")
    return joint, "; ".join(words)


def _warn_of_centers(kernel: Kernel, rows: Any) -> None:
    """Warn if the kernel matrix of centers is indefinite, where this is not known to be impossible."""
    if not kernel.positive_semidefinite:
        K = np.array(cross(kernel, rows, kernel.centers(rows)), dtype=np.float64, order="F")
        warn_of_indefinite(kernel, eigen_psd(K).negative)


def _joint(names: list[Any], found: Sequence[tuple[MomentsOf, float]]) -> Joint:
    return Joint(JointMomentsOf(names, tuple(fold for fold, _ in found)), tuple(noise for _, noise in found))


def _coordinates(kernel: Kernel, rows: Any, centers: Any, X: Any) -> tuple[MomentsOf, float]:
    """Coordinates of rows like X against ``centers``, which are ``rows``, and variances that are noise."""
    values = cross(kernel, rows, centers)
    single = values.dtype == np.float32
    K = np.asarray(values, dtype=np.float64)
    factor = factor_of(K, tolerance=DEPENDENT_CENTERS if single else NEARLY_DEPENDENT_CENTERS)
    if len(factor.kept) == 0:
        raise KernelError(f"{kernel!r} is zero at all centers; use another kernel, or scale the features")
    kept = take(centers, factor.kept)
    origin = cross(kernel, take(X, slice(ORIGIN_ROWS)), kept).mean(axis=0, dtype=np.float64)
    noise = NOISE[np.dtype(np.float32 if single else np.float64)] * float(np.abs(K.diagonal()).mean())
    return MomentsOf(kernel, kept, np.float64, Coordinates.at(factor.R, origin)), noise


def permutation_p_values(
    paired: Paired, alpha: float, most: int, times: int, rng: np.random.Generator, budget: Budget
) -> Array:
    """Of each component (k,): how often views that are matched at random have as large an objective.

    (1 + count) / (1 + times), and no less than those of the components before. The model is fitted again to every
    matching, with this alpha and up to 800 / V rows as centers; O(n m²) each.
    """
    joint = some_centers(paired, rng)
    budget.require(8.0 * paired.n * sum(joint.sizes) * 6, f"coordinates of {paired.n} rows")
    phi, share = joint.sums.columns(Block(paired.X, None, None, 0)), paired.weight / paired.weight.sum()
    axes = joint.axes(joint.moments(paired.X, paired.weight))
    scores = scores_along(axes, [phi[:, part] for part in slices(joint.sizes)], share)
    observed = canonical_directions(axes, alpha, most).objective
    count = np.ones(len(observed))
    for _ in range(times):
        orders = [np.arange(paired.n), *(rng.permutation(paired.n) for _ in scores[1:])]
        value = canonical_directions(rematched(axes, scores, orders), alpha, len(observed)).objective
        count[: len(value)] += value >= observed[: len(value)]
    p: Array = np.maximum.accumulate(count / (times + 1.0))
    return p
