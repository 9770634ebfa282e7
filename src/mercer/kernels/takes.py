"""What a kernel takes as rows, and what may be done with them."""

from typing import Literal

import numpy as np

from mercer.kernels.pairs import Matrix
from mercer.rows.distinct import Distinct, distinct_rows, every_row
from mercer.rows.table import n_rows, take
from mercer.types import Indices

Takes = Literal["vectors", "objects", "values"]


class TakesRows:
    """What is asked about the rows of a kernel, and about pairs of them.

    All answers follow from ``takes``, the only one that a kernel on other rows than vectors must give.
    """

    @property
    def takes(self) -> Takes:
        """What a row is: "vectors" of numbers, any "objects", or kernel "values" known already."""
        return "vectors"

    @property
    def takes_vectors(self) -> bool:
        """Whether rows are vectors of numbers."""
        return self.takes == "vectors"

    @property
    def takes_values(self) -> bool:
        """Whether X holds kernel values: a row for each row, and a column for each row of the fit."""
        return self.takes == "values"

    @property
    def symmetric(self) -> bool:
        """Whether k(x, z) = k(z, x) by construction; False means: not known."""
        return self.takes_vectors

    @property
    def averages(self) -> bool:
        """Whether means of rows are rows that the kernel takes, too."""
        return self.takes_vectors

    def subset(self, X: Matrix, rows: Indices) -> Matrix:
        """Some of the rows X of a fit, to be compared among themselves: of kernel values their columns, too."""
        return X[np.ix_(rows, rows)] if self.takes_values else take(X, rows)

    def centers(self, X: Matrix, rows: Indices | None = None) -> Matrix:
        """All or some of the rows X of a fit as centers: themselves, or their positions among kernel values."""
        if self.takes_values:
            return np.arange(n_rows(X)) if rows is None else rows
        return X if rows is None else take(X, rows)

    def distinct(self, X: Matrix) -> Distinct:
        """Which rows are equal, so that one center and one equation do for them; of kernel values none are."""
        return every_row(n_rows(X)) if self.takes_values else distinct_rows(X)
