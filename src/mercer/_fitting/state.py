"""What a fit can go on from: sums over all rows so far and a sample of them, which rows join, leave and fade."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercer._gram.moments import Moments
from mercer.rows import Block, Rows
from mercer.rows._sampling.random_sample import RunningSample, Sampler
from mercer.rows._sampling.row_matching import WEIGHT_ROUNDING
from mercer.rows._sources.repeated import RepeatedRows

# Sums over rows: moments, and those of what transformations change, None: there are none.
Summed = tuple[Moments, Moments | None]
# Relative error of sums of squares in float32.
SQUARES = 1e-3


@dataclass(frozen=True)
class AdditiveState:
    """Moments of all rows so far, of what transformations change in them, and a sample that ``draw`` draws."""

    moments: Moments
    changes: Moments | None
    drawn: RunningSample
    draw: Sampler

    def scaled(self, factor: float) -> "AdditiveState":
        """With the weights of all rows multiplied by a factor."""
        if factor == 1.0:
            return self
        changes = None if self.changes is None else self.changes.scaled(factor)
        return replace(self, moments=self.moments.scaled(factor), changes=changes, drawn=self.drawn.scaled(factor))

    def added(self, rows: Rows, sums: Callable[[Rows], Summed], verbose: int) -> "AdditiveState":
        """With more rows, of which ``sums`` are made; in two passes."""
        rows = RepeatedRows(rows)
        drawn: RunningSample = rows.reduce(
            _Numbered(self.drawn.n_rows, self.draw), phase="sample", verbose=verbose
        )
        more, changed = sums(rows)
        changes = None if self.changes is None or changed is None else self.changes + changed
        return replace(self, moments=self.moments + more, changes=changes, drawn=(self.drawn + drawn).least())

    def removed(self, rows: Rows, sums: Callable[[Rows], Summed]) -> "AdditiveState":
        """Without rows, of which ``sums`` are made; rows that were never added are refused."""
        rows, moments, drawn = RepeatedRows(rows), self.moments, self.drawn
        less, changed = sums(rows)
        _check_weight(moments, less)
        rng = np.random.default_rng([self.draw.seed, drawn.n_rows, moments.n_rows % 2**32])
        for block in rows.blocks():
            drawn = drawn.without(block, rng)
        _check_squares(moments, less)
        remaining = moments - less
        # A row that is removed only in part remains.
        remaining = replace(remaining, n_rows=max(remaining.n_rows, len(drawn.key)))
        changes = None if self.changes is None or changed is None else self.changes - changed
        return replace(self, moments=remaining, changes=changes, drawn=drawn)


def _check_weight(moments: Moments, less: Moments) -> None:
    """Removed rows must not have more weight than all rows."""
    if less.n > moments.n * (1.0 + WEIGHT_ROUNDING):
        raise ValueError(
            f"cannot remove rows of weight {less.n:.6g} from rows of weight {moments.n:.6g}; remove only rows "
            "that were added before, with their current weight"
        )


def _check_squares(moments: Moments, less: Moments) -> None:
    """Kernel values and targets of removed rows must not have larger sums of squares than those of all rows."""
    for part, whole in ((less.G, moments.G), (less.V, moments.V)):
        if (part.diagonal() - whole.diagonal() > SQUARES * whole.diagonal().max(initial=0.0)).any():
            raise ValueError(
                "the rows have larger sums of squares than all rows of the model, so some of them are not in it; "
                "remove only rows that were added before, with their current weight"
            )


@dataclass(frozen=True)
class _Numbered:
    """The fold on blocks whose rows are numbered from ``first`` on."""

    first: int
    fold: Sampler

    def __call__(self, block: Block) -> RunningSample:
        return self.fold(replace(block, first=self.first + block.first))
