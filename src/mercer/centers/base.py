"""What a choice of centers is made from, what it gives, and who makes it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mercer.centers.path import CenterPath
from mercer.gram.moments import Moments
from mercer.kernels import Kernel
from mercer.types import Array, Indices

# From candidate centers to the moments of all rows of the data against them: one pass.
Pass = Callable[[Any], Moments]
# Bytes for each row of a sample whose distinct rows are looked for: positions, weights and labels.
POOL_BYTES = 160.0


@dataclass(frozen=True)
class Extent:
    """What the memory of a choice depends on: ``n`` rows of the sample of ``row`` bytes each, bytes of a kernel
    ``value`` while its products are computed, q targets, and the threads of a pass.
    """

    n: int
    row: float
    value: float
    q: int
    threads: int


@dataclass(frozen=True)
class CandidateRows:
    """Rows in memory from which centers are chosen: X, targets Y (c, q), weight (c,), class numbers (c,) or None.

    For kernel values X is the square matrix of the sample with itself. ``means`` are rows that are no rows of the
    sample and may become centers, too; None: not looked for yet.
    """

    X: Any
    Y: Array
    weight: Array
    label: Indices | None = None
    means: Any = None


@dataclass(frozen=True)
class Centers:
    """The chosen centers in the order of their choice.

    ``rows`` (m) as the kernel takes them, ``indices`` (m,) their positions in the sample, None if they are
    not rows of it; ``trace`` (m,) what each contributed in the selector's own measure, None if it has none;
    ``path`` what a supervised selector knows of every other number of centers; ``unseen`` (u,) the positions of
    rows of the sample whose targets had no part in the choice, at which leave-one-out is honest; None: of all.
    """

    rows: Any
    indices: Indices | None = None
    trace: Array | None = None
    path: CenterPath | None = None
    unseen: Indices | None = None


class CenterSelector(BaseEstimator, ABC):
    """Which rows carry the model; parameters only, never fitted."""

    n_centers: int | None

    @abstractmethod
    def select(
        self,
        kernel: Kernel,
        sample: CandidateRows,
        n_centers: int | None,
        rng: np.random.Generator,
        moments: Pass | None = None,
    ) -> Centers:
        """At most ``n_centers`` different centers; fewer where the sample has fewer, or the kernel's rank is less.

        Rows of weight zero are not there, and a row of weight 2 is two equal rows. ``moments`` are those of
        all rows of the data, if they are more than the sample. ``n_centers=None`` leaves the number to a
        selector that can choose it.
        """

    def most(self, n: int) -> int:
        """Centers, at most, of n rows where no number is given."""
        return n if self.n_centers is None else self.n_centers

    def n_bytes(self, n_centers: int, extent: Extent) -> float:
        """Memory of the choice at its peak, beside the sample: by default that of finding its distinct rows."""
        return extent.n * (4.0 * extent.row + POOL_BYTES)

    def within(self, n_bytes: float, n_centers: int | None, extent: Extent) -> Self:
        """This selector, or one like it that looks at less and takes less memory, where there is one."""
        return self

    def prepared(self, kernel: Kernel, sample: CandidateRows, rng: np.random.Generator) -> CandidateRows:
        """The sample with what this selector looks for in it for all kernels like this one: by default nothing."""
        return sample


def required(n_centers: int | None, selector: CenterSelector) -> int:
    """The number of centers, at least 1, for a selector that cannot choose it."""
    n_centers = selector.n_centers if n_centers is None else n_centers
    if n_centers is None:
        raise ValueError(
            f"{type(selector).__name__} cannot choose the number of centers; "
            "give n_centers, or use ForwardSelection"
        )
    return at_least_one(n_centers)


def at_least_one(n_centers: int) -> int:
    """The number of centers, checked."""
    if n_centers < 1:
        raise ValueError(f"n_centers is {n_centers}; at least 1 center is needed")
    return n_centers
