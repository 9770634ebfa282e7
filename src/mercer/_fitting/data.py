"""The rows of a fit, wherever they are, with what has to be known of them to encode their targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer._scores.targets import Targets
from mercer._scores.training_rows import Folds
from mercer._types import Array
from mercer.rows import Block, MemoryRows, Rows
from mercer.rows._encoding.columns import TableEncoding
from mercer.rows._resolve import feature_names
from mercer.rows._sampling.random_sample import Labels
from mercer.rows._table import n_columns

# The targets of rows with these y, or of a sample of them, with these labels, and the classes that are declared.
TargetsOf = Callable[[Any, Labels | None, ArrayLike | None], Targets]
# From a number of features to the validation of blocks.
CheckOf = Callable[[int], Callable[[Any], Any]]


@dataclass(frozen=True)
class RowSchema:
    """The columns of the first rows: their number, None: rows are objects; their names, None: there are none; and
    what those of a raw table become, None: rows are not one.
    """

    n_features: int | None = None
    names: Any = None
    encoding: TableEncoding | None = None

    @property
    def feature_names(self) -> Sequence[Any] | None:
        """The names of the features that kernels see."""
        names: Sequence[Any] | None = self.names if self.encoding is None else self.encoding.feature_names
        return names

    @property
    def attributes(self) -> dict[str, Any]:
        """What scikit-learn knows of the columns, by name, and what they become."""
        found = {"n_features_in_": self.n_features, "feature_names_in_": self.names, "columns_": self.encoding}
        return {name: value for name, value in found.items() if value is not None}

    def named(self, names: tuple[Any, ...] | None) -> "RowSchema":
        """With the names of the columns of rows that are not in memory, if they have any."""
        if names is None or not all(isinstance(name, str) for name in names):
            return self
        return replace(self, names=np.array(names, dtype=object))

    def of_sample(self, rows: Rows, X: Any, *, vectors: bool) -> "RowSchema":
        """After a pass over rows, some of which are X, with a number of features if they are vectors."""
        schema = self.of_rows(rows)
        return replace(schema, n_features=n_columns(X)) if vectors and self.encoding is None else schema

    def of_rows(self, rows: Rows) -> "RowSchema":
        """With the names that rows have after a pass over them; other names than those before are an error."""
        names = feature_names(rows)
        check_names(self.names, names)
        return self.named(names)


@dataclass(frozen=True)
class TrainingData:
    """Rows with targets and weights, their columns, and how their targets are found; rows of ``folds`` are held
    out together.

    ``has_classes``: targets are classes, and ``declared`` are classes besides those that occur. ``check`` makes
    the validation of blocks from a number of features, None unless rows are vectors. ``streamed`` rows are read
    block by block, and have not been validated.
    """

    rows: Rows
    schema: RowSchema
    targets_of: TargetsOf
    has_classes: bool
    check: CheckOf | None = None
    folds: Folds | None = None
    declared: ArrayLike | None = None
    streamed: bool = False

    @property
    def in_memory(self) -> MemoryRows | None:
        """The rows, if they are in memory and validated; those that a user gives as rows in blocks are not."""
        return self.rows if isinstance(self.rows, MemoryRows) and not self.streamed else None

    @property
    def block(self) -> Block:
        """All rows as one block, of those in memory."""
        rows = self.rows
        assert isinstance(rows, MemoryRows)
        weight = np.ones(rows.n_rows) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
        return Block(rows.X, np.asarray(rows.y), weight, 0)

    @property
    def targets(self) -> Targets:
        """The targets of rows in memory."""
        block = self.block
        weight: Array = np.asarray(block.weight)
        return self.targets_of(block.y, Labels.of(block.y, weight) if self.has_classes else None, self.declared)


def check_names(known: Any, names: tuple[Any, ...] | None) -> None:
    """Columns of out-of-core rows, if they have names, must be those of the first rows."""
    known = () if known is None else tuple(known)
    if names is not None and known and names != known:
        raise ValueError(
            f"the columns are {', '.join(map(str, names))}, but the model was fitted on {', '.join(known)}; pass "
            "the same columns in the same order: frame[[...]], or ParquetRows(path, columns=[...])"
        )
