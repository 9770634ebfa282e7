"""Second moments of what transformations of rows change in feature space: the tangent covariance, in blocks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from mercer._gram.moments import PRODUCT_ROWS, Moments, MomentsOf, pieces
from mercer._types import Floats
from mercer.rows._base import Block
from mercer.rows._virtual import transformed


@dataclass(frozen=True)
class Transformation:
    """x -> Tx, a function from rows (b, d) to rows (b, d), row by row; its weight; and its name in errors."""

    function: Callable[[Any], Any]
    weight: float
    name: str

    def __call__(self, X: Any) -> Any:
        """Transformed rows, of the type of X."""
        return transformed(self.function, X, self.name)


@dataclass(frozen=True)
class DifferencesOf:
    """The fold block -> Moments of differences d_i = k(T x_i, centers) - k(x_i, centers), not centered.

    With weights w of rows and a_T of transformations, G = sum_T a_T sum_i w_i d_i d_i', s is the same sum of d_i,
    and n = sum_i w_i: G / n is the tangent covariance of Mika (2002), Eq. (3.23), divided by the number of rows.
    ``fold`` has the kernel and the centers, and coordinates without an origin, which differences do not have.
    ``prepare`` validates blocks, None: they are valid. b m² operations and b m kernel values for each
    transformation of b rows. Picklable if the functions are.
    """

    transformations: tuple[Transformation, ...]
    fold: MomentsOf
    prepare: Callable[[Block], Block] | None = None

    def __call__(self, block: Block) -> Moments:
        return reduce(add, (self._piece(block.cut(*ends)) for ends in pieces(block.n_rows, PRODUCT_ROWS)))

    def _piece(self, block: Block) -> Moments:
        """The sum over transformations, of which each counts the rows once."""
        block = block if self.prepare is None else self.prepare(block)
        here = self.fold.values(block.X)
        total, *others = (self._moved(T, block, here) for T in self.transformations)
        for part in others:
            total += replace(part, n=0.0, n_rows=0)
        return total

    def _moved(self, T: Transformation, block: Block, here: Floats) -> Moments:
        """Moments of one transformation, times its weight; ``here`` are kernel values of the rows."""
        moved, no_targets = replace(block, X=T(block.X)), np.empty((len(here), 0))
        columns = self.fold.columns_of(self.fold.values(moved.X) - here)
        found = self.fold.sums(columns, no_targets, block.weight)
        self.fold.check(found, moved)
        return replace(found.in_double(), s=T.weight * found.s, G=T.weight * found.G)
