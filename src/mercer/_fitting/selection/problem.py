"""The problem of a fit with every row a center: points, observations there, and how fits are evaluated."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._fitting.memory import ExactShape, row_bytes
from mercer._fitting.selection.path import ALPHAS
from mercer._gram import Budget
from mercer._scores.criteria import Criterion, CriterionFor
from mercer._solvers import Observations
from mercer._solvers.spectrum import Penalty
from mercer._types import Array, Indices
from mercer.kernels._base import Kernel
from mercer.rows._table import n_rows
from mercer.rows._virtual import Orbits


@dataclass(frozen=True)
class ExactProblem:
    """Points X (u rows), observations there, and how a fit is evaluated.

    ``criterion_for`` returns the criterion for some of the rows, with or without classes; ``alpha`` is a number,
    or None for leave-one-out; ``fold`` (n,) numbers the rows that are held out together. For ``weightless_folds``,
    which have rows without weight, the model without them is also returned. ``orbits`` tell which rows are copies
    of others, which the criterion ignores; None: there are no copies.
    """

    X: Any
    observations: Observations
    criterion_for: CriterionFor
    alpha: float | None
    penalty: Penalty
    intercept: bool
    budget: Budget
    fold: Indices | None = None
    weightless_folds: tuple[int, ...] = ()
    has_classes: bool = True
    verbose: int = 0
    orbits: Orbits | None = None

    @property
    def extent(self) -> ExactShape:
        """What its memory depends on."""
        n, q = self.observations.Y.shape
        alphas = len(ALPHAS) if self.alpha is None else 1
        return ExactShape(n, n_rows(self.X), q, row_bytes(self.X), alphas, self.has_classes)

    @property
    def criterion(self) -> Criterion:
        """The criterion for all rows."""
        return self.criterion_for(np.arange(len(self.observations.Y)))

    def at(self, kernel: Kernel, points: Indices) -> "ExactProblem":
        """The problem at some of its points, with all rows there."""
        if len(points) == n_rows(self.X):
            return self
        X, observations, rows = some_points(kernel, self.X, self.observations, points)
        fold = None if self.fold is None else self.fold[rows]
        orbits = None if self.orbits is None else self.orbits.some(rows)
        return replace(
            self,
            X=X,
            observations=observations,
            criterion_for=lambda some: self.criterion_for(rows[some]),
            fold=fold,
            orbits=orbits,
        )

    @property
    def own_points(self) -> Indices:
        """The points at which there are rows that are not copies."""
        if self.orbits is None:
            return np.arange(n_rows(self.X))
        return np.unique(self.observations.rows.point[self.orbits.own])

    @property
    def copied_points(self) -> Indices:
        """The others: points at which there are copies only."""
        return np.setdiff1d(np.arange(n_rows(self.X)), self.own_points)

    def with_copies(self, points: Indices) -> Indices:
        """Points, and after them those of the copies of the rows there."""
        if self.orbits is None:
            return points
        own, number = self.observations.rows.point, self.orbits.number
        there = np.isin(number, number[np.isin(own, points) & self.orbits.own])
        return np.concatenate([points, np.setdiff1d(own[there], points)])


def some_points(
    kernel: Kernel, X: Any, observations: Observations, points: Indices
) -> tuple[Any, Observations, Indices]:
    """Some of the points X in their order, the observations there, and the numbers of their rows."""
    points = np.sort(points)
    return kernel.subset(X, points), *observations.at_points(points)


def at_points(
    kernel: Kernel, X: Any, Y: Array, weight: Array, unit: Array, opposite_unit: Array | None = None
) -> tuple[Any, Observations]:
    """The distinct rows of X, and the observations there; kernel values are not merged."""
    rows = kernel.distinct(X)
    return kernel.subset(X, rows.first), Observations(Y, weight, unit, rows, opposite_unit)
