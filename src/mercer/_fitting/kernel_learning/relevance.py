"""Which features matter: one gamma for each, from the derivatives of the fit itself.

A fit f with the gammas so far shows how much its output changes with each feature, the mean of (df/dx_l)² over the
rows: the next gammas are proportional to it (the diagonal of the average gradient outer product, Radhakrishnan et
al. 2024, Science 383). Three things keep noise from being learned:

* The fit is linear in the targets, so that of targets that are noise is known: random signs, of the size of
  leave-one-out residuals, have derivatives as well, and their mean square is subtracted.
* The variance of what remains, over such draws, tells how much of the differences between features is noise:
  differences are multiplied by the remaining share, their reliability (shrinkage toward equal features).
* Each of three parts of the rows is predicted by fits whose relevances were learned without it. The round with the
  least squared error there is taken if it is better than none by two and a half standard errors of paired losses.
  The relevances are the means of those of its three fits, which saves fits to all rows.

Fits have a few hundred random centers: which features matter can be told from a rough model. Where there is a
choice of kernels, one is chosen before, with its units; but each kind learns relevances, since a rough one may
find what a smooth one cannot use, and the other way around. The parts decide whose the chosen kernel takes: its
own, unless those of another are better by a standard error; where the final fit has few centers, too, another kind
with its own may be better than both. With few centers few features help more than with many: where all rows are
centers, leave-one-out decides once more.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._expansion import Expansion
from mercer._fitting.kernel_learning.evidence import (
    PARTS_OF_LEARNING,
    Gain,
    LearnedKernel,
    LearningData,
    squared_problem,
)
from mercer._fitting.selection.comparison import compare_kernels
from mercer._fitting.selection.preliminary import MORE_CENTERS, PRELIMINARY_CENTERS, RoughFit, fit_roughly
from mercer._gram import Budget
from mercer._gram.gradients import GradientsOf
from mercer._types import Array, Indices
from mercer.kernels._algebra.choice import OneOf
from mercer.kernels._base import Kernel
from mercer.kernels._vectors.stationary import Stationary
from mercer.kernels._vectors.units import RankNormal, Standardized, Units, scales_features
from mercer.rows._base import Block
from mercer.rows._progress import progress
from mercer.rows._table import in_double, is_sparse, n_rows

# The most rounds, and the number of rounds without better predictions of other rows that ends them.
RELEVANCE_ROUNDS = 6
ROUNDS_WITHOUT_GAIN = 2
# Of enough rows, other widths are tried in the first rounds, for the first part: later relevances change the best
# width by little, and the parts by less.
ROUNDS_OF_WIDTHS = 2
# Targets of random signs.
RANDOM_TARGETS = 8
# Standard errors by which relevances must be better than none.
SURE_OF_RELEVANCE = 2.5
# Features whose relevances differ by at most this share of their mean are alike.
ALIKE = 0.1
# Smaller shares of the largest relevance are zero.
LEAST_RELEVANCE = 1e-9
LEAST_NORMAL = float(np.finfo(np.float64).tiny)
# Smaller gains, relative to the mean square of targets, are rounding errors.
GAIN_ROUNDING = float((1e3 * np.finfo(np.float64).eps) ** 2)
# Rows from which relevances are learned, and as many as take little time if they are not asked for.
MOST_ROWS_FOR_RELEVANCE, QUICK_ROWS_FOR_RELEVANCE = 5000, 2000
# Fewer rows seldom tell features apart: they are not worth the time unless relevances are asked for.
ENOUGH_ROWS = 1000
# Matrices of kernel values of all rows against the centers that a fit holds.
MATRICES_OF_RELEVANCE = 8


@dataclass(frozen=True)
class Features:
    """Which features have one relevance: those of one ``group`` (d,), counted from zero; None: each its own.

    ``if_enough``: they are learned if there are enough dense rows to tell, and otherwise alike.
    """

    group: Indices | None = None
    if_enough: bool = False

    @property
    def most_rows(self) -> int:
        """The most rows from which they are learned."""
        return QUICK_ROWS_FOR_RELEVANCE if self.if_enough else MOST_ROWS_FOR_RELEVANCE

    def learned_from(self, X: Any, most: int, budget: Budget) -> bool:
        """Whether they are learned from ``most`` of rows X, or from what memory allows."""
        if not self.if_enough:
            return True
        return not is_sparse(X) and X.shape[1] > 1 and min(most, _rows_within(budget)) >= ENOUGH_ROWS


@dataclass(frozen=True)
class Relevance(LearnedKernel):
    """Shares (d,) of the features, which sum to one; all equal after 0 ``rounds``; for a ``kernel``.

    ``without`` are the shares learned without each part, ``gain`` what they gain, None: there were too few rows to
    tell; ``plain`` is the kernel without them, perhaps a choice; ``refuted``: that is as good with all centers.
    """

    kernel: Kernel
    shares: Array
    without: tuple[Array, ...]
    rounds: int
    gain: Gain | None
    plain: Kernel
    units: Units = field(default_factory=Units)
    refuted: bool = False

    @property
    def is_new(self) -> bool:
        return self.rounds > 0

    @property
    def applied(self) -> Kernel:
        """The kernel with gammas in these ratios; itself, perhaps still a choice, if all features are alike."""
        return self.kernel if not self.is_new else self.units.outer(self.kernel.weighted(self.shares))

    @property
    def without_effect(self) -> "Relevance | None":
        if not self.is_new:
            return None
        alike = np.full(len(self.shares), 1.0 / len(self.shares))
        return replace(self, kernel=self.plain, shares=alike, without=(), rounds=0, refuted=True)

    def kernels_without(self, chosen: Kernel, X: Any) -> list[Kernel]:
        """The chosen kernel with relevances learned without each part, as wide for rows X; none if all alike."""
        if not self.is_new:
            return []
        inner = self.units.inner(chosen)
        total = float(np.sum(inner.gamma))
        one, X = clone(inner).set_params(gamma="median"), self.units.converted(X)
        here = np.sum(one.weighted(self.shares).candidates(X)[0].gamma)
        there = [one.weighted(shares).candidates(X)[0] for shares in self.without]
        return [self.units.outer(kernel.narrowed(total / here)) for kernel in there]

    @property
    def words(self) -> str:
        if self.gain is None:
            return f"all {len(self.shares)} features alike: there are too few rows to tell"
        change = f"{self.gain.words} those of equal features"
        if self.refuted:
            return f"all {len(self.shares)} features alike: with few centers {change}, but not better with more"
        if not self.is_new:
            return f"all {len(self.shares)} features alike: at best, {change}"
        most = np.cumsum(np.sort(self.shares)[::-1])
        count = int(np.searchsorted(most, 0.9)) + 1
        return f"90 % of relevance in {count} of {len(self.shares)} features, after {self.rounds} rounds; {change}"

    @property
    def attributes(self) -> dict[str, Any]:
        return {"relevance_": self.shares}


def data_for(features: Features, data: LearningData) -> LearningData:
    """Dense rows, with groups of features."""
    X, group = data.X, features.group
    if is_sparse(X):
        raise ValueError("relevance needs dense rows; pass X.toarray(), or relevance=None")
    if group is not None and len(group) != X.shape[1]:
        raise ValueError(f"relevance names the groups of {len(group)} features, but X has {X.shape[1]}")
    return replace(data, X=in_double(X), group=group)


def learn_relevance(
    kernel: Kernel,
    data: LearningData,
    rng: np.random.Generator,
    budget: Budget,
    *,
    most: int,
    verbose: int,
    best: Kernel | None = None,
    few_centers: bool = False,
) -> Relevance:
    """Relevances of the features, learned from at most ``most`` of the rows, or from what memory allows.

    ``best`` is the kernel that is chosen without them, None: that is found out here. ``few_centers``: the final
    fit has few centers, too, so that these fits tell whether another kind with relevances of its own is better.

    O(rounds n m²) for n rows and m = 300 or 600 centers: three fits to two thirds of the rows in each of three to
    seven rounds for each kind of kernels, and three more with what another kind has learned. What is taken is the
    mean of the shares learned without each part.
    """
    most = min(most, max(2 * PARTS_OF_LEARNING, _rows_within(budget)))
    n, used = n_rows(data.X), data.drawn(most, rng)
    some = data.some(used)
    if some.too_few:
        return Relevance(np.full(n, -1), kernel, _alike(data), (), 0, None, kernel)
    part = some.parts(rng)
    kinds, units = _in_units(kernel, best or _compared(kernel, some, rng, budget), some)
    with progress("relevance of features", None, verbose=verbose, unit="fits") as advance:
        viewed = replace(some, X=units.converted(some.X))
        first, *others = [_Learner(kind, viewed, part, rng, budget, advance) for kind in kinds]
        own = first.learned()
        apart = [other.learned() for other in others]
        crossed = [first.crossed(own, other) for other in apart]
        # Fits to all rows as centers would gain more by a rough kernel than these.
        rivals = [other for other in apart if other.surely] if few_centers else []
        taken = _best([own, *crossed, *rivals], some)
    every = np.full(n, -1)
    every[used] = part
    rounds = taken.rounds if taken.surely else 0
    without = tuple(shares[rounds] for shares in taken.shares)
    chosen = taken.kernel if taken.surely else kernel
    return Relevance(every, chosen, np.mean(without, axis=0), without, rounds, taken.gain, kernel, units)


def _rows_within(budget: Budget) -> int:
    """Rows for whose kernel values against the centers there is memory."""
    values = budget.n_bytes / (8.0 * MATRICES_OF_RELEVANCE)
    return int(min(max(values / MORE_CENTERS, min(values**0.5, MORE_CENTERS)), MOST_ROWS_FOR_RELEVANCE))


def _compared(kernel: Kernel, data: LearningData, rng: np.random.Generator, budget: Budget) -> Kernel:
    """The best kernel without relevances, if there is a choice of kinds or units."""
    if len(kinds_of(kernel)) == 1 and not scales_features(kernel):
        return kernel
    problem = squared_problem(kernel, data, data.Y, budget)
    return compare_kernels(kernel, problem, rng, first_stage_only=True).kernel


def _in_units(kernel: Kernel, best: Kernel, data: LearningData) -> tuple[list[Stationary], Units]:
    """The kinds of kernels, that of the best one first, and the units in which relevances are learned.

    These are its units, or standard deviations if it has none and the choice knows them: in other units equal
    gammas are no good beginning.
    """
    kinds = kinds_of(kernel)
    if len(kinds) == 1 and not scales_features(kernel):
        return kinds, Units()
    units = Units.of(best)
    scaled = [kind for kind in kinds if isinstance(kind, Standardized)]
    if scaled and units.are_given:
        units = Units.of(scaled[0].candidates(data.X, data.weight)[0])
    inner = {_form(each): each for each in map(inner_kind, kinds)}
    return sorted(inner.values(), key=lambda each: _form(each) != _form(units.inner(best))), units


def inner_kind(kind: Any) -> Any:
    """A kernel without its units."""
    return kind.kernel if isinstance(kind, Standardized | RankNormal) else kind


def _form(kernel: Any) -> str:
    """Its class and parameters, but for gamma."""
    return repr(clone(kernel).set_params(gamma="loo"))


def kinds_of(kernel: Kernel) -> list[Any]:
    """The kernels of a choice, or the kernel itself."""
    return list(kernel.kernels) if isinstance(kernel, OneOf) else [kernel]


def _alike(data: LearningData) -> Array:
    d = data.X.shape[1]
    return np.full(d, 1.0 / d)


def _is_over(losses: list[Array], weight: Array) -> bool:
    """Whether the last rounds were not better than those before."""
    means = [loss @ weight for loss in losses]
    return len(means) > ROUNDS_WITHOUT_GAIN and int(np.argmin(means)) < len(means) - ROUNDS_WITHOUT_GAIN


@dataclass(frozen=True)
class _Tried:
    """A kernel, losses (n,) of rows with equal features and with relevances learned without them, their gain, and
    how large that may be by rounding.

    ``shares`` are those learned without each part, round after round, of which this many ``rounds`` are best;
    ``fits`` the last ones without each part.
    """

    kernel: Stationary
    alike: Array
    learned: Array
    shares: list[list[Array]]
    rounds: int
    gain: Gain
    rounding: float
    fits: list[RoughFit | None]

    @property
    def surely(self) -> bool:
        """Whether relevances are certainly better than none."""
        return self.gain.mean > max(SURE_OF_RELEVANCE * self.gain.error, self.rounding)

    @property
    def losses(self) -> Array:
        """With relevances only if they are certainly better."""
        return self.learned if self.surely else self.alike


def _best(tried: list[_Tried], data: LearningData) -> _Tried:
    """The kernel with the least loss of those better than the first by a standard error, or the first."""
    first = tried[0]
    gains = [Gain.of(first.losses, other.losses, data) for other in tried]
    return max(zip(gains, tried), key=lambda each: each[0].mean if each[0].mean > each[0].error else 0.0)[1]


@dataclass(frozen=True)
class _Learner:
    """What a kernel learns from all parts (n,) of the data but one; ``advance`` counts fits."""

    kernel: Stationary
    data: LearningData
    part: Indices
    rng: np.random.Generator
    budget: Budget
    advance: Callable[[int], None]

    def learned(self) -> _Tried:
        """Rounds of relevances, and the best of them."""
        weight, losses = self.data.weight, list[Array]()
        shares: list[list[Array]] = [[_alike(self.data)] for _ in range(PARTS_OF_LEARNING)]
        fits: list[RoughFit | None] = [None] * PARTS_OF_LEARNING
        while len(losses) <= RELEVANCE_ROUNDS and not _is_over(losses, weight):
            found = np.empty(len(self.part))
            for f in range(PARTS_OF_LEARNING):
                climbs = self._is_small or (f == 0 and len(losses) < ROUNDS_OF_WIDTHS)
                fits[f], function, further = self._extended(f, shares[f][-1], self._last(fits, f), climbs=climbs)
                shares[f].append(further)
                found[self.part == f] = self._held_out(f).losses(function)
            losses.append(found)
            if all(np.ptp(each[-1]) <= ALIKE * each[-1].mean() for each in shares):
                # The next rounds would find the same with other centers.
                losses.append(found)
                break
        best = 1 + int(np.argmin([loss @ weight for loss in losses[1:]]))
        return self._tried(losses[0], losses[best], shares, best, fits)

    @property
    def _is_small(self) -> bool:
        """Whether parts differ, and fits cost little: each searches its own width in every round."""
        return len(self.part) < ENOUGH_ROWS

    def _last(self, fits: list[RoughFit | None], f: int) -> RoughFit | None:
        """The fit from which one without a part goes on."""
        return fits[f if self._is_small else 0]

    def crossed(self, own: _Tried, other: _Tried) -> _Tried:
        """This kernel, after what it has learned on its ``own``, with the relevances of another."""
        learned = self._losses([shares[other.rounds] for shares in other.shares], own.fits)
        return self._tried(own.alike, learned, other.shares, other.rounds, own.fits)

    def _tried(
        self, alike: Array, learned: Array, shares: list[list[Array]], rounds: int, fits: list[RoughFit | None]
    ) -> _Tried:
        rounding = GAIN_ROUNDING * float(np.mean(np.sum(self.data.Y**2, axis=1)))
        gain = Gain.of(alike, learned, self.data)
        return _Tried(self.kernel, alike, learned, shares, rounds, gain, rounding, fits)

    def _losses(self, shares: list[Array], fits: list[RoughFit | None]) -> Array:
        """Losses (n,) of rows for fits without their part, with the shares learned there, and widths as before."""
        losses, fits = np.empty(len(self.part)), list(fits)
        for f, share in enumerate(shares):
            data = self._without(f)
            fits[f] = fit = self._fit(data, share, data.Y, self._last(fits, f), climbs=self._is_small or f == 0)
            losses[self.part == f] = self._held_out(f).losses(fit.expansion)
        return losses

    def _without(self, f: int) -> LearningData:
        return self.data.some(np.flatnonzero(self.part != f))

    def _held_out(self, f: int) -> LearningData:
        return self.data.some(np.flatnonzero(self.part == f))

    def _extended(
        self, f: int, share: Array, last: RoughFit | None, *, climbs: bool
    ) -> tuple[RoughFit, Expansion, Array]:
        """The fit without a part and with these shares, and what it makes of them."""
        data = self._without(f)
        n, q = data.Y.shape
        signs = self.rng.choice([-1.0, 1.0], size=(n, RANDOM_TARGETS))
        fit = self._fit(data, share, np.column_stack([data.Y, signs]), last, climbs=climbs)
        e = fit.expansion
        sums = GradientsOf(e.kernel, e.centers, np.asarray(e.coef, dtype=np.float64))(
            Block(data.X, None, data.weight, 0)
        )
        size = data.weight @ (data.Y - fit.loo[:, :q]) ** 2 / data.weight.sum()
        products = _shared(sums.products / sums.n, data.group)
        return fit, Expansion(e.kernel, e.centers, e.coef[:, :q], e.intercept[:q]), _next(products, np.sqrt(size))

    def _fit(self, data: LearningData, share: Array, Y: Array, last: RoughFit | None, *, climbs: bool) -> RoughFit:
        """Of targets Y, and perhaps random signs next to them, with other centers every time.

        Where features hardly show, some centers show them when others do not.
        """
        problem = squared_problem(self.kernel, data, Y, self.budget)
        order = self.rng.permutation(n_rows(problem.X))
        few = self.kernel.subset(problem.X, np.sort(order[:PRELIMINARY_CENTERS]))
        self.advance(1)
        return fit_roughly(self.kernel.weighted(share).candidates(few), problem, order, last, climbs=climbs)


def _shared(products: Array, group: Indices | None) -> Array:
    """Products (d, c, c) with their means over groups in place of single features."""
    if group is None:
        return products
    mean = np.array([products[group == g].mean(axis=0) for g in range(group.max() + 1)])
    return mean[group]


def _next(products: Array, size: Array) -> Array:
    """Shares (d,) from products (d, q + s, q + s) of derivatives: q functions with noise of size (q,), s signs.

    M_l is the sum over targets of the mean of (df/dx_l)² minus that of noise; draws of noise around f give its
    variance. Differences between features are multiplied by the share of their variance that is not noise.
    """
    q = len(size)
    squares = np.einsum("lcc->lc", products)
    noise = squares[:, q:] @ np.full(RANDOM_TARGETS, 1.0 / RANDOM_TARGETS)
    M = squares[:, :q].sum(axis=1) - noise * (size**2).sum()
    # Different draws for different targets.
    draws = sum(
        2.0 * s * np.roll(products[:, c, q:], c, axis=1) + s**2 * np.roll(squares[:, q:], c, axis=1)
        for c, s in enumerate(size)
    )
    positive = np.maximum(M, 0.0)
    if not positive.any():
        return np.full(len(M), 1.0 / len(M))
    reliability = _reliability(M, np.var(draws, axis=1, ddof=1))
    mixed = reliability * positive + (1.0 - reliability) * positive.mean()
    # Gammas far below the others do nothing, but could underflow in float32.
    mixed[mixed < LEAST_RELEVANCE * mixed.max()] = 0.0
    shares: Array = mixed / mixed.sum()
    return shares


def _reliability(M: Array, variance: Array) -> Array:
    """The share (d,) of each difference M_l - mean that is not noise of this variance (d,), by all or by itself.

    All: what noise leaves of the variance between features. Itself: 1 - variance / difference², the factor of
    James and Stein for a single feature, so that few features far above the others count however many these are.
    """
    difference = (M - M.mean()) ** 2
    together = 1.0 - variance.mean() / max(float(difference.mean()), LEAST_NORMAL)
    # So few draws may miss the variance of a feature.
    alone = 1.0 - np.maximum(variance, np.median(variance)) / np.maximum(difference, LEAST_NORMAL)
    reliability: Array = np.maximum(np.maximum(alone, together), 0.0)
    return reliability
