"""What kind of rows a kernel accepts, and what may be done with them."""

from typing import Any, Literal

import numpy as np

from mercer._types import Indices
from mercer.kernels._matrices import Matrix
from mercer.rows._distinct import Distinct, distinct_rows, every_row
from mercer.rows._table import n_rows, take

InputKind = Literal["vectors", "columns", "objects", "values"]


class AcceptsRows:
    """Properties of the rows of a kernel, and of pairs of rows.

    All follow from ``input_kind``, the only one that a kernel on rows other than vectors must define.
    """

    @property
    def input_kind(self) -> InputKind:
        """What a row is: "vectors" of numbers, named "columns", any "objects", or precomputed kernel "values".

        Kernels on columns also accept vectors, whose columns have positions instead of names.
        """
        return "vectors"

    @property
    def takes_vectors(self) -> bool:
        """Whether rows are vectors of numbers."""
        return self.input_kind == "vectors"

    @property
    def takes_values(self) -> bool:
        """Whether X holds kernel values: one row for each row, one column for each training row."""
        return self.input_kind == "values"

    @property
    def reads(self) -> tuple[Any, ...] | None:
        """The names or positions of the columns that the kernel needs; None: all."""
        return None

    @property
    def symmetric(self) -> bool:
        """Whether k(x, z) = k(z, x) by construction; False if not known."""
        return self.takes_vectors

    @property
    def averages(self) -> bool:
        """Whether the kernel also accepts means of rows."""
        return self.takes_vectors

    def subset(self, X: Matrix, rows: Indices) -> Matrix:
        """Some of the rows X of a fit, to be compared with each other; for kernel values, also their columns."""
        return X[np.ix_(rows, rows)] if self.takes_values else take(X, rows)

    def centers(self, X: Matrix, rows: Indices | None = None) -> Matrix:
        """All or some of the rows X of a fit as centers: themselves, or their positions among kernel values."""
        if self.takes_values:
            return np.arange(n_rows(X)) if rows is None else rows
        return X if rows is None else take(X, rows)

    def check_rows(self, X: Matrix) -> None:
        """Raise an error that names the first of the rows X that the kernel cannot compare, if it can tell; O(n).

        Called with the rows as the user numbers them: a fit merges equal rows, and a prediction cuts them into
        blocks.
        """

    def prepared(self, X: Matrix) -> Matrix:
        """The rows X as a table that this kernel, and its candidates, compare faster, or X itself.

        They accept it wherever they accept rows. It does not refer to X.
        """
        return X

    def distinct(self, X: Matrix) -> Distinct:
        """Which rows are equal, so that they can share one center and one equation; none for kernel values."""
        return every_row(n_rows(X)) if self.takes_values else distinct_rows(X)
