"""Two statistics of a process around the principal directions of its usual rows, and how large they may be.

Hotelling's T² is the squared distance from the mean within the first k directions, each in units of its standard
deviation; the squared prediction error (SPE, Q) is the squared length of what these directions leave. A fault may
show in one and not in the other (Jackson and Mudholkar 1979, Control procedures for residuals associated with
principal component analysis). Their limits are quantiles of held-out rows, not of a distribution that
nobody has verified: of training rows, k directions of n rows explain more than of new ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._scores.training_rows import weighted_quantile
from mercer._types import Array


@dataclass(frozen=True)
class Statistics:
    """T² (n,) and SPE (n,) of rows."""

    t2: Array
    spe: Array

    @classmethod
    def of(cls, scores: Array, distance: Array, variance: Array) -> "Statistics":
        """From scores (n, k), squared distances (n,) from the mean, and variances (k,) of the directions."""
        square = scores**2
        return cls(square @ (1.0 / variance), np.maximum(distance - square.sum(axis=1), 0.0))


@dataclass(frozen=True)
class ControlLimits:
    """Limits that the share ``rate`` of usual rows exceeds, each."""

    t2: float
    spe: float
    rate: float

    @classmethod
    def of(cls, held_out: Statistics, weight: Array, rate: float) -> "ControlLimits":
        """From the statistics of held-out rows with weights (n,)."""
        # Of n + 1 rows that are exchanged the new one is the largest with probability 1 / (n + 1).
        n = float(weight.sum() ** 2 / (weight**2).sum())
        share = (1.0 - rate) * (1.0 + 1.0 / n)
        if share > 1.0 + 1e-9:
            raise ValueError(
                f"rate={rate:g}: {n:.4g} rows show no limit that less than {1.0 / (n + 1.0):.3g} of rows exceed; "
                "ask for more, or fit more rows"
            )
        t2, spe = (weighted_quantile(values, weight, min(share, 1.0)) for values in (held_out.t2, held_out.spe))
        return cls(t2, spe, rate)

    def exceeded(self, found: Statistics) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where T² and where SPE are too large, both (n,)."""
        return found.t2 > self.t2, found.spe > self.spe
