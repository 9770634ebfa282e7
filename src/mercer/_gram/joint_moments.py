"""Moments of rows with several views: the coordinates of all views side by side, as if of one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from mercer._gram.moments import PRODUCT_ROWS, Moments, MomentsOf, pieces
from mercer._types import Array
from mercer.rows._base import Block
from mercer.rows._table import n_rows


@dataclass(frozen=True)
class JointMomentsOf:
    """The fold block -> Moments of rows (phi_1, ..., phi_V): G holds the moments of every view, and of all pairs.

    X of a block is a dict with ``names`` of views; ``folds`` have the kernel, centers and coordinates of each. The
    moments of disjoint rows add, like those of one view. O(b (m_1 + ... + m_V)²) for b rows.
    """

    names: Sequence[Any]
    folds: tuple[MomentsOf, ...]

    def __call__(self, block: Block) -> Moments:
        """Moments of the block, in pieces of the fastest size for products."""
        return reduce(add, [self._piece(block.cut(*ends)) for ends in pieces(block.n_rows, PRODUCT_ROWS)])

    def columns(self, block: Block) -> Array:
        """Coordinates (b, m_1 + ... + m_V) of all views of a block."""
        views = [replace(block, X=block.X[name]) for name in self.names]
        return np.hstack([fold.columns(view) for fold, view in zip(self.folds, views)])

    def _piece(self, block: Block) -> Moments:
        """Moments of few rows, as copies."""
        first = self.folds[0]
        found = first.sums(self.columns(block), np.empty((block.n_rows, 0)), block.weight)
        self._check(found, block)
        return found.in_double()

    def _check(self, found: Moments, block: Block) -> None:
        """Raise KernelError for the view whose sums are not finite."""
        ends = np.cumsum([n_rows(fold.centers) for fold in self.folds])[:-1]
        for fold, name, part in zip(self.folds, self.names, np.split(found.G.diagonal(), ends)):
            if not np.isfinite(part).all():
                fold.check(found, replace(block, X=block.X[name]))
