"""Rows from which a kernel is learned, parts of them that are predicted without them, and what was learned."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._expansion import Expansion
from mercer._fitting.selection.problem import ExactProblem, at_points
from mercer._gram import Budget
from mercer._scores.criteria import Criterion
from mercer._types import Array, Indices
from mercer.kernels._base import Kernel
from mercer.rows._table import n_rows, take

# Parts of the rows that are predicted without them.
PARTS_OF_LEARNING = 3
# Fewer rows, or groups of rows, say nothing about features or kernels.
LEAST_ROWS_TO_LEARN = 10


@dataclass(frozen=True)
class LearnedKernel(ABC):
    """A kernel learned from rows with targets; ``part`` (n,) is the part of each row, -1: it had no influence."""

    part: Indices

    @property
    @abstractmethod
    def is_new(self) -> bool:
        """Whether targets had an influence on the kernel."""

    @property
    @abstractmethod
    def applied(self) -> Kernel:
        """The kernel that was learned, perhaps with parameters still to be chosen."""

    @abstractmethod
    def kernels_without(self, chosen: Kernel, X: Any) -> list[Kernel]:
        """The chosen kernel as learned without each part, with the same width on X; none if it is not new."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What was learned, as text."""

    @property
    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """What a model shows of it, by name."""

    @property
    def without_effect(self) -> "LearnedKernel | None":
        """The same if leave-one-out with all centers decides against it; None: that is not asked."""
        return None

    def of_rows(self, part: Indices) -> "LearnedKernel":
        """The same with parts of more rows."""
        return replace(self, part=part)


@dataclass(frozen=True)
class LearningData:
    """Rows X with targets Y (n, q), weights (n,), and folds (n,) held out together, or None.

    Features of one ``group`` (d,) have one relevance; None: each has its own. Each row stands for ``count`` (n,)
    equal ones; None: for itself.
    """

    X: Any
    Y: Array
    weight: Array
    fold: Indices | None = None
    group: Indices | None = None
    count: Array | None = None

    def some(self, rows: Indices) -> "LearningData":
        fold = None if self.fold is None else self.fold[rows]
        count = None if self.count is None else self.count[rows]
        return LearningData(take(self.X, rows), self.Y[rows], self.weight[rows], fold, self.group, count)

    def drawn(self, most: int, rng: np.random.Generator) -> Indices:
        """At most this number of random rows, in their order; whole folds, so that no other row says the same."""
        n = n_rows(self.X)
        if self.fold is None:
            return np.sort(rng.permutation(n)[:most])
        _, fold = np.unique(self.fold, return_inverse=True)
        order = rng.permutation(fold.max() + 1)
        taken = order[np.cumsum(np.bincount(fold)[order]) <= most]
        return np.flatnonzero(np.isin(fold, taken))

    @property
    def share(self) -> Array:
        """The shares (n,) of the rows in their weight."""
        return np.asarray(self.weight / self.weight.sum())

    def losses(self, f: Expansion) -> Array:
        """Squared errors (n,), summed over targets."""
        losses: Array = ((self.Y - f(self.X)) ** 2).sum(axis=1)
        return losses

    @property
    def too_few(self) -> bool:
        """Whether there are fewer than ten rows, or folds."""
        n = len(self.Y) if self.fold is None else len(np.unique(self.fold))
        return n < LEAST_ROWS_TO_LEARN

    def parts(self, rng: np.random.Generator) -> Indices:
        """Parts (n,) of equal size, which do not split folds."""
        if self.fold is None:
            return np.asarray(rng.permutation(n_rows(self.X)) % PARTS_OF_LEARNING)
        _, fold = np.unique(self.fold, return_inverse=True)
        return np.asarray((rng.permutation(fold.max() + 1) % PARTS_OF_LEARNING)[fold])


def squared_problem(kernel: Kernel, data: LearningData, Y: Array, budget: Budget) -> ExactProblem:
    """Targets, and perhaps random signs next to them, at the rows, evaluated by the squared errors of targets."""
    weight, q = data.weight, data.Y.shape[1]
    X, observations = at_points(kernel, data.X, Y, weight, np.minimum(weight, 1.0))

    def criterion(rows: Indices) -> Criterion:
        own = Y[rows, :q]
        share = weight[rows] / weight[rows].sum()
        return Criterion(lambda outputs: ((outputs[..., :q] - own) ** 2).sum(axis=-1), share)

    return ExactProblem(X, observations, criterion, None, "rkhs", True, budget, data.fold)


def in_units(Y: Array, weight: Array) -> Array:
    """Targets (n, q) in units of their spread, so that their squared errors can be added."""
    mean = np.average(Y, axis=0, weights=weight)
    spread = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weight))
    scaled: Array = Y / np.where(spread > 0.0, spread, 1.0)
    return scaled


@dataclass(frozen=True)
class Gain:
    """What was learned against what was there before, by squared errors of rows that had no part in it.

    ``before`` is their mean without, ``mean`` by how much it falls, ``error`` the standard error of that.
    """

    before: float
    mean: float
    error: float

    @classmethod
    def of(cls, before: Array, after: Array, data: LearningData) -> "Gain":
        """From losses (n,) of the rows without and with what was learned; rows of a fold are not independent."""
        share = data.share
        gain: Array = share * (before - after)
        mean = float(gain.sum())
        deviation = gain - share * mean
        if data.fold is None and data.count is not None:
            deviation /= np.sqrt(data.count)
        if data.fold is not None:
            deviation = np.bincount(np.unique(data.fold, return_inverse=True)[1], deviation).astype(float)
        return cls(float(before @ share), mean, float(np.sqrt(deviation @ deviation)))

    @property
    def ratio(self) -> float:
        """Errors with what was learned, in units of those without."""
        return 1.0 - self.mean / self._unit

    @property
    def words(self) -> str:
        return f"errors of other rows {self.ratio:.3g} ± {self.error / self._unit:.2g} times"

    @property
    def _unit(self) -> float:
        return self.before if self.before > 0.0 else 1.0
