"""How much worse held-out rows are predicted if a column comes from other rows: permutation importance.

A fit by least squares without row i differs from the one to all rows by the weight that the row has in a
prediction (`_solvers/smoother.py`): with its share s_i of the weight of its point and its residual r_i without it,

    f_-i(x) = f(x) - s_i l_i(x) r_i,      r_i = (y_i - f(x_i)) / (1 - s_i l_i(x_i)),

at any x, so that a row may be predicted without itself also where some of its values are those of another row.
What a column gains for rows that were fitted does not count.

Of a column of noise the growth is, in the mean over samples, zero: a sum over pairs of rows, each of which is
predicted by the other. Such a sum has twice the variance that it would have if the rows were independent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._gram import cross
from mercer._solvers.smoother import Smoother
from mercer._types import Array, Floats, Indices
from mercer.kernels import Kernel

# A column whose mean is not above this many standard errors has no share.
CERTAIN_ERRORS = 2.0
# Rows predict each other: see above.
PAIRED = 2.0
# One minus the weight of a row in its own prediction, of a row that determines it alone.
LEAST_REST = 1e-12


@dataclass(frozen=True)
class Importances:
    """How much the mean squared error of held-out rows grows if a column comes from other rows.

    In units of the variance of the targets; of classes, of their indicators. ``print`` shows the largest first.

    Attributes
    ----------
    names : list
        Names of the columns, or their positions.
    mean, error : ndarray of shape (d,)
        The growth, and its standard error over the rows.
    """

    names: Sequence[Any]
    mean: Array
    error: Array

    @property
    def shares(self) -> Array:
        """Shares (d,) that sum to one, zero where the mean is not above two standard errors; zero if none is."""
        certain = np.where(self.mean > CERTAIN_ERRORS * self.error, self.mean, 0.0)
        total = certain.sum()
        return certain / total if total > 0.0 else certain

    def __str__(self) -> str:
        order = np.argsort(-self.mean, kind="stable")
        return "\n".join(f"{self.names[j]}: {self.mean[j]:.4f} ± {self.error[j]:.4f}" for j in order)


@dataclass(frozen=True)
class HeldOutFunctions:
    """The functions of fits without each of some rows X (r, d), targets Y (r, q).

    f (q outputs) has every row as one of its ``centers`` (u, d): those rows the number ``point`` (r,), of whose
    weight each is the ``share`` (r,).
    """

    f: Callable[[Any], Floats]
    kernel: Kernel
    centers: Any
    smoother: Smoother
    X: Array
    Y: Array
    point: Indices
    share: Array

    def __call__(self, X: Array) -> Array:
        """f_-i (r, q) at other rows X (r, d), one for each."""
        own = self.share * self.smoother.weights_of(self._rows(X), self._columns, self.point)
        return np.asarray(self.f(X) - own[:, None] * self._residual)

    @cached_property
    def _residual(self) -> Array:
        """The residual (r, q) of each row without it."""
        own = self.share * self.smoother.weights_of(self._rows(self.X), self._columns, self.point)
        return np.asarray((self.Y - self.f(self.X)) / np.maximum(1.0 - own, LEAST_REST)[:, None])

    @cached_property
    def _columns(self) -> Array:
        return self.smoother.inverse_columns(self.point)

    def _rows(self, X: Array) -> Array:
        return np.asarray(cross(self.kernel, X, self.kernel.centers(self.centers)), dtype=np.float64)


def importances(
    held_out: HeldOutFunctions,
    weight: Array,
    column: Indices,
    names: Sequence[Any],
    rng: np.random.Generator,
    repeats: int,
) -> Importances:
    """Of columns 0 to d - 1, to which the features (p,) belong, for rows with weights (r,)."""
    share = weight / weight.sum()
    scale = held_out.Y - share @ held_out.Y
    variance = float(np.sum(share @ scale**2))
    mean, error = np.zeros(len(names)), np.zeros(len(names))
    before = np.sum((held_out.Y - held_out(held_out.X)) ** 2, axis=1)
    for j in np.unique(column):
        growth = np.zeros(len(share))
        for _ in range(repeats):
            X = held_out.X.copy()
            X[:, column == j] = X[rng.permutation(len(X))][:, column == j]
            growth += np.sum((held_out.Y - held_out(X)) ** 2, axis=1) - before
        growth /= repeats * (variance or 1.0)
        mean[j] = share @ growth
        error[j] = np.sqrt(PAIRED * (share**2 @ (growth - mean[j]) ** 2))
    return Importances(names, mean, error)
