"""Fits that go over the rows in blocks: targets of blocks, and the state from which a fit goes on."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from mercer import gate
from mercer.gram.moments import Moments, MomentsOf
from mercer.gram.precision import Precision
from mercer.linalg.threads import at_most
from mercer.rows import Block, Draw, Drawn, MemoryRows, Rows
from mercer.rows.draw import label_column
from mercer.rows.repeated import RepeatedRows
from mercer.rows.table import shape_of, take
from mercer.rows.twins import ROUNDING
from mercer.scores.relative import class_targets
from mercer.tuning import Choice, Encoded
from mercer.types import Array, Indices

# Sums of squares in float32 may differ by so much of themselves.
SQUARES = 1e-3


@dataclass(frozen=True)
class Columns:
    """Checks of the rows of a block that nobody has looked at: finite numbers in ``n_features`` columns."""

    n_features: int

    def __call__(self, X: Any) -> Any:
        gate.not_dates("X", X)
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, and the first rows had {self.n_features}")
        return X


@dataclass(frozen=True)
class ClassBlocks:
    """Blocks of labels -> blocks of class targets, weighted by class.

    ``factor`` (k,) is the weight of each class.
    """

    classes: NDArray[Any]
    factor: Array
    columns: Columns | None

    def __call__(self, block: Block) -> Block:
        label = self.label(block.y, block.weight)
        return _weighted(
            replace(
                block,
                X=block.X if self.columns is None else self.columns(block.X),
                y=class_targets(label, len(self.classes)),
            ),
            self.factor[label],
        )

    def label(self, y: Any, weight: Array | None) -> Indices:
        """Class numbers (b,); labels never seen are refused, unless their rows have no weight."""
        y = label_column(y)
        gate.same_type("y", self.classes, y)
        label: Indices = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        strange = self.classes[label] != y
        if weight is not None:
            strange &= weight > 0
        if strange.any():
            raise ValueError(
                f"label {y[strange].tolist()[0]!r} is not among the classes {self.classes.tolist()}; rows must be "
                "the same in every pass of a fit, and the first partial_fit takes all labels with classes=[...]"
            )
        return label


@dataclass(frozen=True)
class ValueBlocks:
    """Blocks of numbers -> blocks of targets (b, q) in float64; ``shape`` is that of the targets of one row."""

    columns: Columns | None
    shape: tuple[int, ...]

    def __call__(self, block: Block) -> Block:
        if block.y is None:
            raise ValueError("the rows carry no targets; a regressor requires y to be passed")
        gate.not_dates("y", block.y)
        y = check_array(block.y, ensure_2d=False, dtype=np.float64, input_name="y")
        gate.not_too_large("y", y)
        if y.shape[1:] != self.shape:
            raise ValueError(
                f"y has shape {shape_of(y.shape[1:])}, and that of the first rows {shape_of(self.shape)}; "
                "give the same targets, or call fit to begin anew"
            )
        X = block.X if self.columns is None else self.columns(block.X)
        return replace(block, X=X, y=y.reshape(len(y), -1))


Encoder = ClassBlocks | ValueBlocks


@dataclass(frozen=True)
class Gatherer:
    """Moments of rows: how targets are made of blocks, against which centers, in which precision."""

    choice: Choice
    encode: Encoder
    precision: Precision
    # Side by side, at most; as many as there are if nothing was said.
    threads: int = 2**31

    def __call__(self, rows: Rows, *, verbose: int = 0) -> Moments:
        """Moments of the rows, in one pass."""
        where = self.precision.coordinates
        fold = MomentsOf(self.choice.kernel, self.choice.centers.rows, self.precision.dtype, where)
        with at_most(self.threads):
            moments: Moments = rows.reduce(Encoded(self.encode, fold), phase="moments", verbose=verbose)
        return replace(moments, coordinates=where)


@dataclass(frozen=True)
class Kept:
    """Rows of a fit that made every distinct row a center: which center each is (n,), targets, weights or None."""

    point: Indices
    y: NDArray[Any]
    weight: Array | None

    def rows(self, centers: Any) -> MemoryRows:
        """The rows, from the centers of the fit."""
        return MemoryRows(take(centers, self.point), self.y, self.weight)


@dataclass(frozen=True)
class Stream:
    """Where a fit stands: what was chosen, the moments of all rows so far, and a sample of them.

    ``seen`` are the numbers of rows whose targets had a part in the choice of the centers.
    """

    gather: Gatherer
    moments: Moments
    drawn: Drawn
    draw: Draw
    seen: Indices
    fold: Indices | None = None

    def joined(self, rows: Rows, decay: float) -> "Stream":
        """With more rows; what was there before counts ``decay`` times as much."""
        rows = RepeatedRows(rows)
        drawn = rows.reduce(_Numbered(self.drawn.n_rows, self.draw), phase="sample")
        more = self.gather(rows)
        old, kept = self.moments, self.drawn
        if decay != 1.0:
            old, kept = old.scaled(decay), kept.scaled(decay)
        return replace(self, moments=old + more, drawn=(kept + drawn).least(), fold=None)

    def left(self, rows: Rows, less: Moments) -> "Stream":
        """Without rows that had joined, of these moments."""
        _check_weight(self.moments, less)
        rng = np.random.default_rng([self.draw.seed, self.drawn.n_rows, self.moments.n_rows % 2**32])
        drawn = self.drawn
        for block in rows.blocks():
            drawn = drawn.without(block, rng)
        _check_squares(self.moments, less)
        moments = self.moments - less
        # A row of which a part leaves is still there.
        moments = replace(moments, n_rows=max(moments.n_rows, len(drawn.key)))
        return replace(self, moments=moments, drawn=drawn, fold=None)


def _check_weight(moments: Moments, less: Moments) -> None:
    """Rows that leave have no more weight than all rows."""
    if less.n > moments.n * (1.0 + ROUNDING):
        raise ValueError(
            f"rows of weight {less.n:.6g} cannot be taken out of rows of weight {moments.n:.6g}; remove takes "
            "rows out that were added, with the weight they still have"
        )


def _check_squares(moments: Moments, less: Moments) -> None:
    """Kernel values and targets of rows that leave have no larger sums of squares than those of all rows."""
    for part, whole in ((less.G, moments.G), (less.V, moments.V)):
        if (part.diagonal() - whole.diagonal() > SQUARES * whole.diagonal().max(initial=0.0)).any():
            raise ValueError(
                "the rows have larger sums of squares than all rows of the model, so some of them are not in it; "
                "remove takes rows out that were added, with the weight they still have"
            )


@dataclass(frozen=True)
class _Numbered:
    """The fold on blocks whose rows are numbered from ``first`` on."""

    first: int
    fold: Draw

    def __call__(self, block: Block) -> Drawn:
        return self.fold(replace(block, first=self.first + block.first))


def _weighted(block: Block, factor: Array) -> Block:
    """The block with its weights times the factor (b,) of each row."""
    if (factor == 1.0).all():
        return block
    return replace(block, weight=factor if block.weight is None else block.weight * factor)
