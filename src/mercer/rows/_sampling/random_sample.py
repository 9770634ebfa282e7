"""A random sample of rows, and facts about all rows, in one pass over any source."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _validation
from mercer._types import Array, Indices
from mercer.rows._base import Block, Rows, join_blocks
from mercer.rows._sampling.row_matching import WEIGHT_ROUNDING, RowMatches, check_held, rank_within, weight_of
from mercer.rows._sampling.weights import Tally
from mercer.rows._sources.checksum import splitmix64

# Parts of blocks in the sample are joined when there are this many.
MOST_PARTS = 64
# Rows beyond the expected number that the first draw admits, in standard deviations.
SLACK_OF_FIRST_DRAW = 6.0
# Rows of every label that are drawn even if the label is rare.
ROWS_OF_EACH_LABEL = 10
# Rows without weight are drawn last: their keys are as if this fraction of a row were left.
WEIGHT_OF_WEIGHTLESS = 1e-200
# Rows decayed to less than this are dropped, before their keys overflow.
LEAST_DECAY = 1e-100


@dataclass(frozen=True)
class Sample:
    """Some of the rows, in order: X, y, weight as in a block, and their row numbers ``index``."""

    X: Any
    y: Any
    weight: Array | None
    index: Indices


@dataclass(frozen=True)
class Labels:
    """Distinct labels (k,) among rows of positive weight, and the weight (k,) of each.

    ``bound`` (k,) is the smallest key of a dropped row of the label: all rows with smaller keys are in the sample.
    Rows without labels all have label 0.
    """

    values: NDArray[Any]
    weight: Array
    bound: Array

    @classmethod
    def of(cls, y: NDArray[Any], weight: Array | None) -> "Labels":
        w = np.ones(len(y)) if weight is None else weight
        return cls._merged(y[w > 0], w[w > 0], np.full(int((w > 0).sum()), np.inf))

    def __add__(self, other: "Labels") -> "Labels":
        values = _validation.joined("y", [self.values, other.values])
        return self._merged(values, *map(np.concatenate, ((self.weight, other.weight), (self.bound, other.bound))))

    def without(self, other: "Labels") -> "Labels":
        """Minus the weights of the other; a label stays even if all its rows are removed."""
        _validation.same_type("y", self.values, other.values)
        place = np.minimum(self.position(other.values), len(self.values) - 1)
        there = np.where(self.values[place] == other.values, self.weight[place], 0.0)
        for value, less, most in zip(other.values.tolist(), other.weight, there):
            if less > most * (1.0 + WEIGHT_ROUNDING):
                raise ValueError(
                    f"cannot remove rows of label {value!r} with weight {less:.6g}: the model contains weight "
                    f"{most:.6g} of this label; remove only rows that were added before, with their current weight"
                )
        weight = self.weight.copy()
        weight[place] -= other.weight
        return replace(self, weight=np.maximum(weight, 0.0))

    def scaled(self, factor: float) -> "Labels":
        """With all weights multiplied by ``factor``, and keys divided by it."""
        return Labels(self.values, factor * self.weight, self.bound / factor)

    def bounded(self, y: NDArray[Any], key: Array) -> "Labels":
        """After dropping rows with these labels and keys."""
        bound = self.bound.copy()
        if len(bound):
            np.minimum.at(bound, np.minimum(self.position(y), len(bound) - 1), key)
        return replace(self, bound=bound)

    def bound_of(self, y: NDArray[Any]) -> Array:
        """The bound (b,) of each label; infinite for labels without weight."""
        bound: Array = np.append(self.bound, np.inf)[self.position(y)]
        return bound

    def position(self, y: NDArray[Any]) -> Indices:
        """Positions (b,) of labels among the values."""
        return np.searchsorted(self.values, y)

    @classmethod
    def _merged(cls, values: NDArray[Any], weight: Array, bound: Array) -> "Labels":
        distinct, position = np.unique(values, return_inverse=True)
        least = np.full(len(distinct), np.inf)
        np.minimum.at(least, position, bound)
        return cls(distinct, np.bincount(position, weight, minlength=len(distinct)).astype(np.float64), least)


@dataclass(frozen=True)
class RunningSample:
    """Rows still in the draw, parts of blocks with keys (h,) and row numbers (h,), and statistics of all rows.

    Draws from disjoint rows add: the ``size`` smallest keys are kept, and the ``of_each`` smallest of every label.
    A key is E / d with E from the exponential distribution and d, in ``faded`` (h,), the decay factor of the row,
    so that rows are drawn in proportion to d (Efraimidis and Spirakis 2006, Weighted random sampling with a
    reservoir); uniformly without decay.
    """

    size: int
    of_each: int
    parts: tuple[Block, ...]
    key: Array
    faded: Array
    index: Indices
    n_rows: int
    tally: Tally
    labels: Labels

    def __add__(self, other: "RunningSample") -> "RunningSample":
        both = RunningSample(
            self.size,
            self.of_each,
            (*self.parts, *other.parts),
            np.concatenate([self.key, other.key]),
            np.concatenate([self.faded, other.faded]),
            np.concatenate([self.index, other.index]),
            self.n_rows + other.n_rows,
            self.tally + other.tally,
            self.labels + other.labels,
        )
        return both.least() if len(both.key) >= 2 * self.size or len(both.parts) > MOST_PARTS else both

    def least(self) -> "RunningSample":
        """With only the rows of the ``size`` smallest keys, in their original order, in one part.

        After rows were removed, fewer may be left. Rows with keys from the bound of their label on do not replace
        them, because other rows with such keys were dropped.
        """
        if not self.parts:
            return self
        block = join_blocks(self.parts)
        y = self._label_of(block)
        among = np.flatnonzero(self.key < self.labels.bound_of(y))
        keep = among
        if len(among) > self.size:
            keep = among[np.argpartition(self.key[among], self.size - 1)[: self.size]]
            if self.of_each:
                keep = np.union1d(keep, among[_of_each(y[among], self.key[among], self.of_each)])
        return self._keep(np.sort(keep), block)

    def _keep(self, rows: Indices, block: Block) -> "RunningSample":
        """With some of the rows in the sample, all of which are in the block; the others are dropped."""
        if len(rows) == len(self.key):
            return replace(self, parts=(block,))
        lost = np.ones(len(self.key), dtype=bool)
        lost[rows] = False
        labels = self.labels.bounded(self._label_of(block)[lost], self.key[lost])
        return replace(self._some(rows, block), labels=labels)

    def _some(self, rows: Indices, block: Block) -> "RunningSample":
        # A copy: a view would keep the whole block.
        parts = (block.take(rows),) if len(rows) else ()
        return replace(self, parts=parts, key=self.key[rows], faded=self.faded[rows], index=self.index[rows])

    def _label_of(self, block: Block) -> NDArray[Any]:
        return np.asarray(block.y) if self.of_each else np.zeros(block.n_rows, dtype=np.intp)

    def scaled(self, factor: float) -> "RunningSample":
        """With all weights multiplied by ``factor``, so that rows are drawn with lower probability."""
        parts = tuple(replace(part, weight=factor * weight_of(part)) for part in self.parts)
        key, faded, labels = self.key / factor, self.faded * factor, self.labels.scaled(factor)
        weaker = replace(self, parts=parts, key=key, faded=faded, tally=self.tally.faded(), labels=labels)
        kept = np.flatnonzero(faded >= LEAST_DECAY)
        return weaker._keep(kept, join_blocks(parts)) if len(kept) < len(key) else weaker

    def probability(self) -> Array:
        """Probability (h,) that each row of the sample is drawn, given the keys of all others."""
        if not self.parts:
            return np.empty(0)
        held: Array = -np.expm1(-self.faded * self.labels.bound_of(self._label_of(join_blocks(self.parts))))
        return held

    def represents(self) -> Array:
        """The weight of all rows (h,) that a unit of weight of each row in the sample represents.

        One over the probability of being drawn, scaled so that every label has its weight among all rows (Horvitz
        and Thompson 1952).
        """
        block = join_blocks(self.parts)
        y, factor = self._label_of(block), 1.0 / self.probability()
        held = Labels.of(y, weight_of(block) * factor)
        share = np.append(self.labels.weight[self.labels.position(held.values)] / held.weight, 1.0)
        represents: Array = factor * share[held.position(y)]
        return represents

    def without(self, block: Block, rng: np.random.Generator) -> "RunningSample":
        """Without rows equal to those of the block; rows left without weight are dropped.

        If only some of several equal rows are in the sample, each is dropped with the probability that it is the
        one that was removed.
        """
        if self.of_each:
            block = replace(block, y=label_column(block.y))
        labels = self.labels.without(Labels.of(self._label_of(block), block.weight))
        tally = self.tally - Tally.of(block.weight, block.n_rows)
        won = self.least()
        if not won.parts:
            return replace(self, labels=labels, tally=tally)
        held = won.parts[0]
        matches = RowMatches.of(held, block)
        check_held(matches, block, self.labels.bound_of(self._label_of(block)))
        weight = matches.remaining_weight(won.probability(), rng)
        keep = np.flatnonzero(weight > 0)
        if block.weight is not None or held.weight is not None:
            held = replace(held, weight=weight)
        if np.isinf(self.labels.bound).all():
            # No row was dropped: the remaining rows are known.
            tally = Tally.of(weight[keep], len(keep))
        return replace(won._some(keep, held), labels=labels, tally=tally)

    def sample(self) -> Sample:
        """The rows that were drawn."""
        won = self.least()
        if not won.parts:
            raise ValueError(
                "all rows of the leave-one-out sample were removed; fit again, with a larger loo_rows"
            )
        block = won.parts[0]
        return Sample(block.X, block.y, block.weight, won.index)


@dataclass(frozen=True)
class Sampler:
    """The fold block -> RunningSample. Every row has a key from the seed and its number.

    Rows with keys from ``bound`` on drop out.
    Which rows are drawn depends on the seed and the order of the rows, not on their source, its blocks or threads.
    """

    size: int
    seed: int
    bound: float = np.inf
    labels: bool = False

    def __call__(self, block: Block) -> RunningSample:
        key = row_keys(self.seed, block.first, block.n_rows)
        weight = block.weight
        if weight is not None:
            _validation.weights_in_range("sample_weight", weight)
            key = np.where(weight > 0, key, key / WEIGHT_OF_WEIGHTLESS)
        if self.labels:
            block = replace(block, y=label_column(block.y))
        y = block.y if self.labels else np.zeros(block.n_rows, dtype=np.intp)
        every = RunningSample(
            self.size,
            ROWS_OF_EACH_LABEL if self.labels else 0,
            (block,),
            key,
            np.ones(block.n_rows),
            np.arange(block.first, block.first + block.n_rows),
            block.n_rows,
            Tally.of(weight, block.n_rows),
            Labels.of(y, weight),
        )
        chosen = np.flatnonzero(key < self.bound)
        if self.labels and self.bound < np.inf:
            values, count = np.unique(y[chosen], return_counts=True)
            # If a label has this many rows below the bound, its smallest keys are among them.
            rest = np.flatnonzero(~np.isin(y, values[count >= ROWS_OF_EACH_LABEL]))
            chosen = np.union1d(chosen, rest[_of_each(y[rest], key[rest], ROWS_OF_EACH_LABEL)])
        # Always a copy: the caller may overwrite the block.
        return every._keep(chosen, block) if len(chosen) < block.n_rows else every._some(chosen, block)


def _of_each(y: NDArray[Any], key: Array, n: int) -> Indices:
    """Positions of the rows with the n smallest keys of every label."""
    _, label = np.unique(y, return_inverse=True)
    order = np.argsort(key, kind="stable")
    return order[rank_within(label[order]) < n]


def label_column(y: Any) -> NDArray[Any]:
    """Labels (b,) of one type, also from one column (b, 1)."""
    return _validation.label_column("y", y)


def row_keys(seed: int, first: int, n: int) -> Array:
    """Exponential numbers for n rows from number ``first`` on: -log(1 - u), u from SplitMix64."""
    z = splitmix64(np.arange(first, first + n, dtype=np.uint64), seed)
    u = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    # Above zero: keys are divided by the decay factor.
    key: Array = -np.log1p(-np.maximum(u, 2.0**-54))
    return key


def survey(rows: Rows, draw: Sampler, *, verbose: int = 0) -> RunningSample:
    """Rows drawn uniformly without replacement, and facts about all rows, in one pass; memory of the sample.

    All rows are drawn if there are no more than the size of the sample.
    """
    if draw.size < 1:
        raise ValueError(f"the sample size is {draw.size}; it must be at least 1")
    bounded = replace(draw, bound=_bound(draw.size, rows.n_rows))
    drawn = rows.reduce(bounded, phase="sample", verbose=verbose).least()
    if len(drawn.key) < min(draw.size, drawn.n_rows):
        drawn = rows.reduce(draw, phase="sample", verbose=verbose).least()
    _validation.enough_weight("sample_weight", float(drawn.labels.weight.sum()))
    return drawn


def sample(rows: Rows, n: int, rng: np.random.Generator) -> Sample:
    """n rows drawn uniformly without replacement in one pass; all of them if there are no more than n."""
    return survey(rows, Sampler(n, int(rng.integers(2**63)))).sample()


def _bound(n: int, n_rows: int | None) -> float:
    """A key such that, almost surely, more than n of n_rows rows have smaller keys."""
    share = 1.0 if not n_rows else float(n + SLACK_OF_FIRST_DRAW * n**0.5 + SLACK_OF_FIRST_DRAW**2) / n_rows
    return float(-np.log1p(-share)) if share < 1.0 else np.inf
