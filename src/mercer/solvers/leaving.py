"""One more pass over the rows: the output of each for the model without it, for every alpha."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.gram.blocks import check_finite, evaluator, overflow
from mercer.gram.moments import columns, pieces
from mercer.kernels.base import Kernel
from mercer.rows.base import Block
from mercer.solvers.ridge import MOST_NOISE, Leaving, MomentSpectrum
from mercer.types import Array, Floats

# Rows whose kernel values and coordinates exist at a time.
PIECE = 2048


@dataclass(frozen=True)
class LeftOutputs:
    """Outputs (a, b, q) of rows left out, block by block; ``+`` appends those of the other."""

    parts: list[Floats]

    def __add__(self, other: "LeftOutputs") -> "LeftOutputs":
        return LeftOutputs([*self.parts, *other.parts])

    def __iadd__(self, other: "LeftOutputs") -> "LeftOutputs":
        """Append to the list of this object, which must belong to nobody else."""
        self.parts.extend(other.parts)
        return self

    @property
    def outputs(self) -> Floats:
        """All of them (a, n, q), in the order of the rows; a copy."""
        return np.concatenate(self.parts, axis=1)


@dataclass(frozen=True)
class LeftOutOf:
    """The fold block -> LeftOutputs: exact left-out outputs of its rows (a, b, q) for every alpha.

    A row leaves with the ``unit`` of its weight that the block says. A row of weight zero has its plain output.
    Kernel values in float64 are multiplied in float64, those in float32 in float32 where the spectrum's
    ``noise`` allows it. O(b m (m + a q)): twice the work of the moments.
    """

    kernel: Kernel
    centers: Any
    spectrum: MomentSpectrum
    alphas: Array

    def __call__(self, block: Block) -> LeftOutputs:
        """Outputs of the rows of the block, in pieces of few rows: two matrices (b, m) exist at a time."""
        return LeftOutputs([self._piece(block.cut(*ends)) for ends in pieces(block.n_rows, PIECE)])

    def _piece(self, block: Block) -> Floats:
        K, Y = self.values(block.X), columns(block.y)
        leaving = self._single if K.dtype == np.float32 else self._double
        outputs = leaving(K, Y, leaving_weight(block))
        if not np.isfinite(outputs).all():
            check_finite(self.kernel, K)
            raise overflow(self.kernel, outputs.dtype)
        return outputs

    @cached_property
    def values(self) -> Callable[[Any], Floats]:
        """X -> k(X, centers)."""
        return evaluator(self.kernel, self.centers)

    @cached_property
    def _single(self) -> Leaving:
        accurate = self.spectrum.noise(self.alphas) <= MOST_NOISE
        return self.spectrum.leaving(self.alphas, np.float32) if accurate else self._double

    @cached_property
    def _double(self) -> Leaving:
        return self.spectrum.leaving(self.alphas)


def leaving_weight(block: Block) -> Array:
    """The weight (b,) that leaves with each row: its unit, else all of it."""
    if block.weight is None:
        return np.ones(block.n_rows)
    return block.weight if block.unit is None else block.unit
