"""What weights of rows mean: counts of equal rows, of which one leaves at a time, or how much each row matters."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mercer.types import Array, Indices

Meaning = Literal["auto", "counts", "importance"]

# Larger whole numbers are not taken for counts unless asked for. Of bootstrap samples, the usual source of counts,
# one row in 10⁸ comes more than ten times; and of a row of weight ten that is no count nine tenths stay behind.
MOST_COPIES = 10
# From here on every float is a whole number.
ALL_WHOLE = 2.0**53


@dataclass(frozen=True)
class Tally:
    """How many rows have the weights 1, 2, … 10 (10,), a larger whole number, and any other weight but zero.

    Of disjoint rows these add, exactly and in any order. ``odd`` is the largest of the other weights so far.
    """

    small: Indices
    large: int
    other: int
    odd: float

    @classmethod
    def of(cls, weight: Array | None, n_rows: int) -> "Tally":
        """The tally of ``n_rows`` rows of these weights (n,), None: all of weight one."""
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
        """After rows left of which nobody knows whether all of their weight did: none becomes a count by that."""
        small = np.maximum(self.small - less.small, 0)
        return Tally(small, self.large, max(self.other, less.other), max(self.odd, less.odd))

    def faded(self) -> "Tally":
        """After all weights were multiplied by a fraction."""
        n = int(self.small.sum()) + self.large + self.other
        return replace(self, small=np.zeros_like(self.small), large=0, other=n)

    @property
    def whole(self) -> bool:
        """Whether all weights are whole numbers."""
        return self.other == 0

    @property
    def one_value(self) -> bool:
        """Whether all rows have the same weight; of large weights several may be different."""
        return np.count_nonzero(self.small) == 1 and self.large == self.other == 0


@dataclass(frozen=True)
class Reading:
    """Whether weights are counts; ``doubtful``: they may as well have been meant in the other way."""

    counts: bool
    doubtful: bool = False

    @property
    def opposite(self) -> "Reading":
        return replace(self, counts=not self.counts)

    def copies(self, weight: Array) -> Array:
        """As how many rows each counts (n,): of a count one copy leaves, else the whole row."""
        return np.maximum(weight, 1.0) if self.counts else np.ones(len(weight))

    def evidence(self, weight: Array) -> Array:
        """Positive weights (n,) in such a unit that they sum to the number of rows."""
        scaled: Array = weight * (self.copies(weight).sum() / weight.sum())
        return scaled


def reading_of(meaning: Meaning, tally: Tally) -> Reading:
    """How weights are read, in all models.

    "counts" asks for whole numbers, "importance" for nothing. "auto": counts are whole numbers of at most ten, and
    not all the same above one; anything else says how much rows matter. Whole numbers of which some are that small
    and some are above one are doubtful.
    """
    if meaning == "counts":
        if not tally.whole:
            raise ValueError(
                f"sample_weight holds {tally.odd!r}, and counts of rows are whole numbers below 2**53; round the "
                'weights, or use weights="importance" in place of weights="counts"'
            )
        return Reading(True)
    alike = tally.one_value and not tally.small[0]
    if meaning == "importance" or not tally.whole or alike or not tally.small.any():
        return Reading(False)
    return Reading(tally.large == 0, doubtful=tally.large > 0 or not tally.one_value)
