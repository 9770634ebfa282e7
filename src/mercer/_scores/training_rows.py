"""Training rows with their targets, and their effective number as evidence."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Array, Indices
from mercer.kernels import Kernel
from mercer.rows import Block
from mercer.rows._sampling.weights import Reading
from mercer.rows._table import take
from mercer.rows._virtual import Copies


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """The least of the values (n,) with at least this share of the weight (n,) at or below it."""
    order = np.argsort(values)
    reached = np.cumsum(weight[order]) >= share * weight.sum() * (1.0 - 1e-12)
    return float(values[order][reached.argmax()])


def design_effect(values: Array, weight: Array, count: Array, fold: Indices | None) -> float:
    """By what factor weights (n,) and folds increase the variance of the mean of values (n, q), at least one.

    With folds the mean size of one if all values in it are equal, one if they are like any others (Kish 1965).
    ``count`` (n,) are the rows that each row stands for, to whose number the weights sum.
    """
    around = weight[:, None] * (values - weight @ values / weight.sum())
    square = (around**2).sum(axis=1)
    plain = float(square @ (1.0 / np.where(weight > 0.0, weight, np.inf)))
    found = float(square @ (1.0 / count))
    if fold is not None:
        totals = np.zeros((int(fold.max()) + 1, values.shape[1]))
        np.add.at(totals, fold, around)
        found = max(found, float((totals**2).sum()))
    return max(found / plain, 1.0) if plain > 0.0 else 1.0


@dataclass(frozen=True)
class Folds:
    """Rows with one number ``fold`` (n,) are held out together; those of one ``group`` (n,) may say the same."""

    fold: Indices
    group: Indices | None = None

    def some(self, rows: Indices) -> "Folds":
        return Folds(self.fold[rows], take(self.group, rows))


@dataclass(frozen=True)
class Training:
    """Rows X, targets Y (n, q), weights (n,), those ``given`` (n,) without weights of classes, folds (n,) or None.

    ``reading`` is the meaning of the given weights. ``represents`` (n,) are factors of the weights if the rows are
    a nonuniform sample, ``faded`` (n,) the decay factor of each row. ``trust`` (n,) is the share of the evidence
    that counts for each row when it is held out, None: all of it. Rows of one ``group`` (n,) may say the same;
    folds are ways to leave them out.
    """

    X: Any
    Y: Array
    weight: Array
    given: Array
    reading: Reading
    fold: Indices | None
    represents: Array | None = None
    faded: Array | None = None
    trust: Array | None = None
    group: Indices | None = None

    @property
    def count(self) -> Array:
        """How many rows each row represents (n,)."""
        return self.reading.copies(self.given)

    @property
    def unit(self) -> Array:
        """The weight (n,) that is held out with a row: one of several copies."""
        return self.weight / self.count

    @property
    def opposite_unit(self) -> Array | None:
        """The unit (n,) of each row under the opposite reading of the weights, if ambiguous; None with folds."""
        if not self.reading.doubtful or self.fold is not None:
            return None
        return self.weight / self.reading.opposite.copies(self.given)

    @property
    def evidence(self) -> Array:
        """The weights (n,) scaled to sum to the effective number of rows: those of a group may say the same."""
        scaled: Array = self.represented_weight * (
            self.rows[self.weight > 0].sum() / self.represented_weight.sum()
        )
        return scaled if self.faded is not None else scaled / design_effect(self.Y, scaled, self.count, self.group)

    @property
    def represented_weight(self) -> Array:
        """The weight (n,) of all rows that each row represents."""
        return self.weight if self.represents is None else self.weight * self.represents

    @property
    def rows(self) -> Array:
        """Effective number of rows of each (n,): with decay they sum to (sum w)² / sum w² (Kish 1965)."""
        if self.faded is None or self.represents is None:
            return self.count
        left = np.where(self.weight > 0, self.faded * self.represents, 0.0)
        return np.asarray(left * (left.sum() / (left @ left)))

    @property
    def n_effective_rows(self) -> float:
        """Effective number of all rows, those of the sample and others, after decay."""
        if self.faded is None or self.represents is None:
            return float(self.count[self.weight > 0].sum())
        left = np.where(self.weight > 0, self.faded * self.represents, 0.0)
        return float(left.sum() ** 2 / (left @ self.faded))

    def used(self, kernel: Kernel) -> tuple["Training", Indices]:
        """The rows with weight, and their positions."""
        rows = np.flatnonzero(self.weight > 0)
        return (self if len(rows) == len(self.Y) else self.some(kernel, rows)), rows

    def with_copies(self, copies: Copies) -> "Training":
        """Each row followed by its copies, in one group."""
        block = copies(Block(self.X, self.Y, self.weight, 0))
        number = copies.orbits(len(self.Y)).number
        represents, faded, trust = (take(part, number) for part in (self.represents, self.faded, self.trust))
        fold, group = (number if each is None else each[number] for each in (self.fold, self.group))
        weight, given = np.asarray(block.weight), self.given[number]
        return Training(block.X, block.y, weight, given, self.reading, fold, represents, faded, trust, group)

    def some(self, kernel: Kernel, rows: Indices) -> "Training":
        """Some of the rows."""
        X, weight, given = kernel.subset(self.X, rows), self.weight[rows], self.given[rows]
        parts = (self.fold, self.represents, self.faded, self.group)
        fold, represents, faded, group = (take(part, rows) for part in parts)
        return Training(X, self.Y[rows], weight, given, self.reading, fold, represents, faded, group=group)
