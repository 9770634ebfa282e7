"""Input and result of a selection of centers, and the abstract selector."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mercer._gram.moments import Moments
from mercer._types import Array, Indices
from mercer.centers._path import CenterPath
from mercer.kernels import Kernel

# From candidate centers to the moments of all rows of the data against them: one pass.
Pass = Callable[[Any], Moments]
# Bytes per row of a sample while its distinct rows are searched: positions, weights and labels.
POOL_BYTES = 160.0


@dataclass(frozen=True)
class Extent:
    """What the memory of a selection depends on: ``n`` rows of the sample of ``row`` bytes each, bytes of a kernel
    ``value`` while its products are computed, q targets, and the threads of a pass.
    """

    n: int
    row: float
    value: float
    q: int
    threads: int


@dataclass(frozen=True)
class CandidateRows:
    """Rows in memory to select centers from: X, targets Y (c, q), weight (c,), class numbers (c,) or None.

    For kernel values X is the square matrix of the sample with itself. ``means`` are cluster means that may also
    become centers; None: not computed yet.
    """

    X: Any
    Y: Array
    weight: Array
    label: Indices | None = None
    means: Any = None


@dataclass(frozen=True)
class Centers:
    """The selected centers in the order of their selection.

    ``rows`` (m) in the form that the kernel accepts, ``indices`` (m,) their positions in the sample, None if they
    are not rows of it; ``trace`` (m,) the contribution of each in the selector's own measure, None if it has none;
    ``path`` the results of a supervised selector for every other number of centers; ``unseen`` (u,) the positions
    of rows of the sample whose targets were not used in the selection, at which leave-one-out is unbiased; None:
    all.
    """

    rows: Any
    indices: Indices | None = None
    trace: Array | None = None
    path: CenterPath | None = None
    unseen: Indices | None = None


class CenterSelector(BaseEstimator, ABC):
    """Selection of centers; parameters only, never fitted."""

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
        """At most ``n_centers`` distinct centers; fewer if the sample has fewer, or the kernel's rank is lower.

        Rows of weight zero are ignored, and a row of weight 2 counts as two equal rows. ``moments`` are those of
        all rows of the data, if there are more than in the sample. With ``n_centers=None`` the selector chooses
        the number, if it can.
        """

    def most(self, n: int) -> int:
        """Largest number of centers for n rows if no number is given."""
        return n if self.n_centers is None else self.n_centers

    def n_bytes(self, n_centers: int, extent: Extent) -> float:
        """Peak memory of the selection besides the sample: by default that of finding its distinct rows."""
        return extent.n * (4.0 * extent.row + POOL_BYTES)

    def within(self, n_bytes: float, n_centers: int | None, extent: Extent) -> Self:
        """This selector, or a similar one with fewer candidates that needs less memory, if there is one."""
        return self

    def prepared(self, kernel: Kernel, sample: CandidateRows, rng: np.random.Generator) -> CandidateRows:
        """The sample with everything precomputed that does not depend on kernel parameters: by default nothing."""
        return sample


def required(n_centers: int | None, selector: CenterSelector) -> int:
    """The number of centers, at least 1, for a selector that cannot choose it."""
    n_centers = selector.n_centers if n_centers is None else n_centers
    if n_centers is None:
        raise ValueError(
            f"{type(selector).__name__} cannot choose the number of centers; set n_centers, or use "
            "ForwardSelection"
        )
    return at_least_one(n_centers)


def at_least_one(n_centers: int) -> int:
    """The number of centers, validated."""
    if n_centers < 1:
        raise ValueError(f"n_centers={n_centers}; it must be at least 1")
    return n_centers
