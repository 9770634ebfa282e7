"""Removed rows, and which of the rows in the sample are equal to them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Indices
from mercer.rows._base import Block, join_blocks
from mercer.rows._distinct import distinct_rows
from mercer.rows._table import holds_objects

# Weights are sums: the removed weight may exceed the stored one by rounding.
WEIGHT_ROUNDING = 1e-9


@dataclass(frozen=True)
class RowMatches:
    """Rows in the sample, removed rows, and which of them are equal, in rows and targets.

    ``held`` (h,) and ``gone`` (b,) number the distinct rows among both; ``weight`` (h,), ``less`` (b,).
    """

    held: Indices
    gone: Indices
    weight: Array
    less: Array

    @classmethod
    def of(cls, held: Block, block: Block) -> "RowMatches":
        pair = _pairs(held, block)
        return cls(pair[: held.n_rows], pair[held.n_rows :], weight_of(held), weight_of(block))

    @property
    def n_pairs(self) -> int:
        return int(max(self.held.max(initial=-1), self.gone.max(initial=-1))) + 1

    def missing(self) -> NDArray[np.bool_]:
        """Whether more weight is removed (b,) than equal rows have."""
        there, less = (self._sums(*each) for each in ((self.held, self.weight), (self.gone, self.less)))
        too_much: NDArray[np.bool_] = (less > there * (1.0 + WEIGHT_ROUNDING))[self.gone]
        return too_much

    def remaining_weight(self, probability: Array, rng: np.random.Generator) -> Array:
        """Remaining weights (h,) of the rows in the sample, which were drawn with this probability (h,).

        If all equal rows are in the sample, those whose weight equals the removed one are removed.
        """
        count = np.bincount(self.held, minlength=self.n_pairs)
        mean = self._sums(self.held, probability) / np.maximum(count, 1)
        copies = _copies(count, mean)
        held, gone = self._of_same_weight(copies <= count)
        less_of_pair = self._sums(self.gone[~gone], self.less[~gone])
        taken = less_of_pair * count / np.maximum(copies, 1)
        weight = np.where(held, 0.0, self.weight)
        for i in np.flatnonzero((taken[self.held] > 0) & ~held):
            pair = self.held[i]
            less = min(taken[pair], weight[i])
            taken[pair] -= less
            if copies[pair] > count[pair]:
                less = weight[i] if rng.random() * weight[i] < less else 0.0
            weight[i] -= less
        return np.where(weight > WEIGHT_ROUNDING * self.weight, weight, 0.0)

    def _of_same_weight(self, known: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Rows of the sample (h,) and removed rows (b,) matched one to one by equal weight, in known pairs."""
        pair, h = np.concatenate([self.held, self.gone]), len(self.held)
        size = _sizes(np.concatenate([self.weight, self.less]))
        _, kind = np.unique(np.column_stack([pair, size]), axis=0, return_inverse=True)
        kind = kind.ravel()
        n_held, n_gone = (np.bincount(part, minlength=kind.max(initial=-1) + 1) for part in (kind[:h], kind[h:]))
        held, gone = rank_within(kind[:h]) < n_gone[kind[:h]], rank_within(kind[h:]) < n_held[kind[h:]]
        return held & known[self.held], gone & known[self.gone]

    def _sums(self, pair: Indices, weight: Array) -> Array:
        return np.bincount(pair, weight, minlength=self.n_pairs).astype(np.float64)


def _sizes(weight: Array) -> Indices:
    """Numbers (n,) of the distinct weights; weights that differ by rounding count as equal."""
    order = np.argsort(weight)
    larger = np.diff(weight[order], prepend=0.0) > WEIGHT_ROUNDING * weight[order]
    size = np.empty(len(weight), dtype=np.intp)
    size[order] = np.cumsum(larger)
    return size


def rank_within(kind: Indices) -> Indices:
    """How many rows of the same kind come before each row (n,)."""
    order = np.argsort(kind, kind="stable")
    first = np.flatnonzero(np.diff(kind[order], prepend=-1))
    rank = np.empty(len(kind), dtype=np.intp)
    rank[order] = np.arange(len(kind)) - np.repeat(first, np.diff(first, append=len(kind)))
    return rank


def _copies(count: Indices, probability: Array) -> Array:
    """Number of copies of a row of which ``count`` (u,) are in the sample, each with this probability (u,).

    For several in the sample, count / probability. For one, the expectation from the numbers of rows that occur
    once and twice, which is one if rows do not repeat: E(N - 1) = 2 (1 - p) / p f_2 / f_1 (Robbins 1956, An
    empirical Bayes approach to statistics). An expectation of less than one further copy counts as none: rows that
    do not repeat are removed with certainty.
    """
    p = np.where(count > 0, probability, 1.0)
    once, twice = (count == 1).sum(), (count == 2).sum()
    others = 2.0 * (1.0 - p) / p * twice / max(once, 1)
    one = np.where(others < 1.0, 1.0, 1.0 + others)
    copies: Array = np.where(count > 1, count / p, one)
    return copies


def check_held(matches: RowMatches, block: Block, bound: Array) -> None:
    """If the sample holds all rows, it must contain the removed ones; equal objects may not compare equal."""
    if holds_objects(block.X):
        return
    strange = np.flatnonzero(matches.missing() & np.isinf(bound) & (matches.less > 0))
    if len(strange):
        raise ValueError(
            f"row {block.first + strange[0]} with weight {matches.less[strange[0]]:.6g} is not in the model, or "
            "has less weight there; remove only rows that were added before, with their current weight"
        )


def _pairs(one: Block, two: Block) -> Indices:
    """Numbers (b + c,) of the rows of both blocks, equal if both the rows and their targets, if any, are equal.

    Rows in float32 and in float64 are compared as float32.
    """
    X = _same_precision(one.X, two.X)
    if one.y is None and two.y is None:
        return distinct_rows(join_blocks([Block(part, None, None, 0) for part in X]).X).point
    y = _same_precision(np.asarray(one.y), np.asarray(two.y))
    both = join_blocks([Block(X[i], y[i], None, 0) for i in (0, 1)])
    _, target = np.unique(both.y, axis=0, return_inverse=True)
    point = distinct_rows(both.X).point
    _, pair = np.unique(np.column_stack([point, target.ravel()]), axis=0, return_inverse=True)
    return np.asarray(pair.ravel(), dtype=np.intp)


def _same_precision(a: Any, b: Any) -> tuple[Any, Any]:
    """Both unchanged, or in the lower precision if both are floating-point."""
    if all(getattr(getattr(x, "dtype", None), "kind", "") == "f" for x in (a, b)):
        dtype = min(a.dtype, b.dtype, key=lambda kind: kind.itemsize)
        return a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    return a, b


def weight_of(block: Block) -> Array:
    """Weights (b,), a copy."""
    return np.ones(block.n_rows) if block.weight is None else block.weight.copy()
