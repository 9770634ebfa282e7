"""The meaning of sample weights: counts of equal rows, of which one is held out at a time, or importance."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mercer._types import Array, Indices

Meaning = Literal["auto", "counts", "importance"]

# Larger integers are not read as counts unless weights="counts". In bootstrap samples, the usual source of counts,
# one row in 10⁸ occurs more than ten times; and if an importance of ten were read as a count, nine tenths of the
# row would stay in the model that predicts it.
MOST_COPIES = 10
# From here on every float is an integer.
ALL_WHOLE = 2.0**53


@dataclass(frozen=True)
class Tally:
    """How many rows have the weights 1, 2, … 10 (10,), a larger integer, and any other weight but zero.

    Tallies of disjoint rows add, exactly and in any order. ``odd`` is the largest of the other weights so far.
    """

    small: Indices
    large: int
    other: int
    odd: float

    @classmethod
    def of(cls, weight: Array | None, n_rows: int) -> "Tally":
        """The tally of ``n_rows`` rows with these weights (n,), None: all of weight one."""
        if weight is None:
            return cls(np.array([n_rows, *[0] * (MOST_COPIES - 1)], dtype=np.intp), 0, 0, 0.0)
        whole = (weight == np.round(weight)) & (weight < ALL_WHOLE)
        few = whole & (weight <= MOST_COPIES)
        small = np.bincount(weight[few].astype(np.intp), minlength=MOST_COPIES + 1)[1:]
        odd = weight[~whole]
        return cls(small, int((whole & ~few).sum()), len(odd), float(odd.max(initial=0.0)))

    def __add__(self, more: "Tally") -> "Tally":
        large, other = self.large + more.large, self.other + more.other
        return Tally(self.small + more.small, large, other, max(self.odd, more.odd))

    def __sub__(self, less: "Tally") -> "Tally":
        """After removing rows, possibly only part of their weight: no remaining weight becomes a count by that."""
        small = np.maximum(self.small - less.small, 0)
        return Tally(small, self.large, max(self.other, less.other), max(self.odd, less.odd))

    def faded(self) -> "Tally":
        """After all weights were multiplied by a fraction."""
        n = int(self.small.sum()) + self.large + self.other
        return replace(self, small=np.zeros_like(self.small), large=0, other=n)

    @property
    def whole(self) -> bool:
        """Whether all weights are integers."""
        return self.other == 0

    @property
    def one_value(self) -> bool:
        """Whether all rows have the same weight; large weights are not distinguished."""
        return np.count_nonzero(self.small) == 1 and self.large == self.other == 0


@dataclass(frozen=True)
class Reading:
    """Whether weights are counts; ``doubtful``: they may also have been meant the other way."""

    counts: bool
    doubtful: bool = False

    @property
    def opposite(self) -> "Reading":
        return replace(self, counts=not self.counts)

    def copies(self, weight: Array) -> Array:
        """As how many rows each counts (n,): of a count one copy is held out, otherwise the whole row."""
        return np.maximum(weight, 1.0) if self.counts else np.ones(len(weight))

    def evidence(self, weight: Array) -> Array:
        """Positive weights (n,) scaled to sum to the number of rows."""
        scaled: Array = weight * (self.copies(weight).sum() / weight.sum())
        return scaled


def reading_of(meaning: Meaning, tally: Tally) -> Reading:
    """How weights are read, in all models.

    "counts" requires integers, "importance" accepts any weights. "auto": integers of at most ten that are not all
    equal to the same number above one are counts; anything else is importance. Integers of which some are that
    small and some are above one are doubtful.
    """
    if meaning == "counts":
        if not tally.whole:
            raise ValueError(
                f'sample_weight contains {tally.odd!r}, but with weights="counts" weights must be integers below '
                '2**53; round them, or use weights="importance"'
            )
        return Reading(True)
    alike = tally.one_value and not tally.small[0]
    if meaning == "importance" or not tally.whole or alike or not tally.small.any():
        return Reading(False)
    return Reading(tally.large == 0, doubtful=tally.large > 0 or not tally.one_value)
