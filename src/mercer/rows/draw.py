"""A random sample of rows, and what the rows are, in one pass that any source can make."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.rows.base import Block, Rows, join
from mercer.rows.distinct import distinct_rows

Array = NDArray[np.float64]

# Held parts of blocks are joined when they are this many.
MOST_PARTS = 64
# Rows beyond the expected number that the first draw lets through, in standard deviations.
SLACK = 6.0
# Above all keys.
NO_BOUND = 2.0
# Rows of every label that are drawn even if the label is rare.
OF_EACH = 10


@dataclass(frozen=True)
class Sample:
    """Some of the rows, in their order: X, y, weight as in a block, and their numbers ``index``."""

    X: Any
    y: Any
    weight: Array | None
    index: NDArray[np.intp]

    @property
    def n_rows(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class Labels:
    """Different labels (k,) among rows of positive weight, and the weight (k,) of each."""

    values: NDArray[Any]
    weight: Array

    @classmethod
    def of(cls, y: Any, weight: Array | None) -> "Labels":
        y = np.asarray(y)
        w = np.ones(len(y)) if weight is None else weight
        return cls._merged(y[w > 0], w[w > 0])

    def __add__(self, other: "Labels") -> "Labels":
        values = np.concatenate([self.values, other.values])
        return self._merged(values, np.concatenate([self.weight, other.weight]))

    def without(self, other: "Labels") -> "Labels":
        """Less the weights of the other; a label stays though its rows are gone."""
        weight = self.weight.copy()
        weight[np.searchsorted(self.values, other.values)] -= other.weight
        return Labels(self.values, np.maximum(weight, 0.0))

    @classmethod
    def _merged(cls, values: NDArray[Any], weight: Array) -> "Labels":
        distinct, position = np.unique(values, return_inverse=True)
        return cls(distinct, np.bincount(position, weight, minlength=len(distinct)).astype(np.float64))


@dataclass(frozen=True)
class Drawn:
    """Rows still in the draw, parts of blocks with keys (h,) and numbers (h,), and what all rows were.

    Of disjoint rows these add: the ``size`` least keys win, and the least few of every label.
    """

    size: int
    parts: tuple[Block, ...]
    key: Array
    index: NDArray[np.intp]
    n_rows: int
    weight: float
    # Whether all weights were whole numbers, and so counts.
    whole: bool
    labels: Labels | None

    def __add__(self, other: "Drawn") -> "Drawn":
        both = Drawn(
            self.size,
            (*self.parts, *other.parts),
            np.concatenate([self.key, other.key]),
            np.concatenate([self.index, other.index]),
            self.n_rows + other.n_rows,
            self.weight + other.weight,
            self.whole and other.whole,
            self.labels + other.labels if self.labels and other.labels else None,
        )
        return both.least() if len(both.key) >= 2 * self.size or len(both.parts) > MOST_PARTS else both

    def least(self) -> "Drawn":
        """With the rows of the ``size`` least keys only, in the order in which they came, in one part."""
        if not self.parts:
            return self
        block = join(self.parts)
        if len(self.key) <= self.size:
            return replace(self, parts=(block,))
        keep = np.argpartition(self.key, self.size - 1)[: self.size]
        if self.labels is not None:
            keep = np.union1d(keep, _of_each(block.y, self.key))
        keep = np.sort(keep)
        return replace(self, parts=(block.take(keep),), key=self.key[keep], index=self.index[keep])

    def scaled(self, factor: float) -> "Drawn":
        """With all weights times ``factor``."""
        parts = tuple(replace(part, weight=factor * _weight(part)) for part in self.parts)
        labels = self.labels and Labels(self.labels.values, factor * self.labels.weight)
        return replace(self, parts=parts, weight=factor * self.weight, whole=False, labels=labels)

    def without(self, block: Block) -> "Drawn":
        """Less the weights of rows equal to those of the block; what is left without weight is gone."""
        won = self.least()
        if not won.parts:
            raise ValueError("no rows are held any more for leave-one-out; fit anew")
        held = won.parts[0]
        weight = _weight(held)
        pairs = _pairs(join([_bare(held), _bare(block)]))
        gone = np.bincount(pairs[held.n_rows :], _weight(block), minlength=pairs.max() + 1)
        for i in np.flatnonzero(gone[pairs[: held.n_rows]] > 0):
            taken = min(gone[pairs[i]], weight[i])
            gone[pairs[i]] -= taken
            weight[i] -= taken
        keep = np.flatnonzero(weight > 0)
        whole = block.weight is None and held.weight is None
        part = replace(held.take(keep), weight=None if whole else weight[keep])
        return replace(
            self,
            parts=(part,) if len(keep) else (),
            key=won.key[keep],
            index=won.index[keep],
            weight=self.weight - float(_weight(block).sum()),
            labels=self.labels and self.labels.without(Labels.of(block.y, block.weight)),
        )

    def sample(self) -> Sample:
        """The rows that won."""
        won = self.least()
        if not won.parts:
            raise ValueError("all rows held for leave-one-out were taken out; fit anew, or with a larger loo_rows")
        block = won.parts[0]
        return Sample(block.X, block.y, block.weight, won.index)


@dataclass(frozen=True)
class Draw:
    """The fold block -> Drawn. Every row has a key from the seed and its number; keys from ``bound`` on lose.

    Which rows win depends on the seed and the order of the rows, not on their source, its blocks or threads.
    """

    size: int
    seed: int
    bound: float = NO_BOUND
    labels: bool = False

    def __call__(self, block: Block) -> Drawn:
        key = row_keys(self.seed, block.first, block.n_rows)
        if block.weight is not None:
            _check_weight(block)
            # Rows without weight lose to all others.
            key = np.where(block.weight > 0, key, 1.0 + key)
        chosen = np.flatnonzero(key < self.bound)
        if self.labels and self.bound < 1.0 and block.y is not None:
            chosen = np.union1d(chosen, _of_each(block.y, key))
        weight = block.weight
        return Drawn(
            self.size,
            # A copy: a view would keep the whole block.
            (block.take(chosen),) if len(chosen) else (),
            key[chosen],
            block.first + chosen,
            block.n_rows,
            float(block.n_rows if weight is None else weight.sum()),
            weight is None or bool((weight == np.round(weight)).all()),
            _labels(block) if self.labels else None,
        )


def _of_each(y: Any, key: Array) -> NDArray[np.intp]:
    """Positions of the rows with the OF_EACH least keys of every label."""
    _, label = np.unique(np.asarray(y), return_inverse=True)
    order = np.lexsort((key, label))
    first = np.flatnonzero(np.diff(label[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    return order[rank < OF_EACH]


def _labels(block: Block) -> Labels:
    if block.y is None:
        raise ValueError("the rows carry no labels; a classifier requires y to be passed")
    return Labels.of(block.y, block.weight)


def _check_weight(block: Block) -> None:
    w = np.asarray(block.weight)
    if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(
            f"weights of rows have shape {w.shape} and span {w.min()} to {w.max()}; "
            "they must be finite, nonnegative, and one for each row"
        )


def _weight(block: Block) -> Array:
    """Weights (b,), a copy."""
    return np.ones(block.n_rows) if block.weight is None else block.weight.copy()


def _bare(block: Block) -> Block:
    """Rows and targets only."""
    return Block(block.X, block.y, None, 0)


def _pairs(block: Block) -> NDArray[np.intp]:
    """Numbers (b,) that are equal where both the rows and their targets are."""
    y = np.asarray(block.y)
    _, target = np.unique(y, axis=0, return_inverse=True)
    point = distinct_rows(block.X).point
    _, pair = np.unique(np.column_stack([point, target.ravel()]), axis=0, return_inverse=True)
    return np.asarray(pair.ravel(), dtype=np.intp)


def row_keys(seed: int, first: int, n: int) -> Array:
    """Uniform numbers in [0, 1) for n rows from number ``first`` on: SplitMix64, Steele, Lea, Flood (2014)."""
    z = np.arange(first, first + n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def survey(rows: Rows, draw: Draw, *, verbose: int = 0) -> Drawn:
    """Rows drawn uniformly without replacement, and facts about all rows, in one pass; memory of the sample.

    All rows are drawn if there are no more than the size of the sample.
    """
    if draw.size < 1:
        raise ValueError(f"a sample of {draw.size} rows was asked for; it has at least one")
    bounded = replace(draw, bound=_bound(draw.size, rows.n_rows))
    drawn = rows.reduce(bounded, phase="sample", verbose=verbose).least()
    if len(drawn.key) < min(draw.size, drawn.n_rows):
        drawn = rows.reduce(draw, phase="sample", verbose=verbose).least()
    return drawn


def sample(rows: Rows, n: int, rng: np.random.Generator) -> Sample:
    """n rows drawn uniformly without replacement in one pass; all of them if there are no more than n."""
    return survey(rows, Draw(n, int(rng.integers(2**63)))).sample()


def _bound(n: int, n_rows: int | None) -> float:
    """A key that more than n of n_rows rows stay below, almost surely."""
    share = 1.0 if not n_rows else float(n + SLACK * n**0.5 + SLACK**2) / n_rows
    return share if share < 1.0 else NO_BOUND
