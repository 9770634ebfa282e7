"""Training rows with their targets, and what each row counts for as evidence."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.rows import Reading
from mercer.types import Array, Indices


@dataclass(frozen=True)
class Training:
    """Rows X, targets Y (n, q), weights (n,), those ``given`` (n,) without weights of classes, folds (n,) or None.

    ``reading`` says what the given weights mean. ``represents`` (n,) are factors of the weights where the rows are
    a sample that is not uniform, ``faded`` (n,) what decay has left of each row.
    """

    X: Any
    Y: Array
    weight: Array
    given: Array
    reading: Reading
    fold: Indices | None
    represents: Array | None = None
    faded: Array | None = None

    @property
    def count(self) -> Array:
        """How many rows each row stands for (n,)."""
        return self.reading.copies(self.given)

    @property
    def unit(self) -> Array:
        """The weight (n,) that leaves with a row: of several copies one."""
        unit: Array = self.weight / self.count
        return unit

    @property
    def doubt(self) -> Array | None:
        """What would leave with a row (n,) if the weights meant the other thing, where they may; None in folds."""
        if not self.reading.doubtful or self.fold is not None:
            return None
        unit: Array = self.weight / self.reading.opposite.copies(self.given)
        return unit

    @property
    def evidence(self) -> Array:
        """The weights (n,) in such a unit that they sum to the number of rows."""
        scaled: Array = self.standing * (self.rows[self.weight > 0].sum() / self.standing.sum())
        return scaled

    @property
    def standing(self) -> Array:
        """The weight (n,) of all the rows that each row stands for."""
        return self.weight if self.represents is None else self.weight * self.represents

    @property
    def rows(self) -> Array:
        """How many rows each is as evidence (n,): of rows that fade the sum is (sum w)² / sum w² (Kish 1965)."""
        if self.faded is None or self.represents is None:
            return self.count
        left = np.where(self.weight > 0, self.faded * self.represents, 0.0)
        rows: Array = left * (left.sum() / (left @ left))
        return rows

    @property
    def n_left(self) -> float:
        """As how many rows of one weight all rows count, those of the sample and others, after they faded."""
        if self.faded is None or self.represents is None:
            return float(self.count[self.weight > 0].sum())
        left = np.where(self.weight > 0, self.faded * self.represents, 0.0)
        return float(left.sum() ** 2 / (left @ self.faded))

    def used(self, kernel: Kernel) -> tuple["Training", Indices]:
        """The rows with weight, and their positions."""
        rows = np.flatnonzero(self.weight > 0)
        if len(rows) == len(self.Y):
            return self, rows
        fold = None if self.fold is None else self.fold[rows]
        X = kernel.subset(self.X, rows)
        return Training(X, self.Y[rows], self.weight[rows], self.given[rows], self.reading, fold), rows
