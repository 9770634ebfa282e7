"""Kernels that are products over features: what each column of two rows contributes as a factor."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Array, Indices
from mercer.errors import KernelError
from mercer.kernels._matrices import Matrix
from mercer.kernels._vectors.gamma import feature_gamma
from mercer.kernels._vectors.stationary import RBF, Laplacian, Stationary
from mercer.kernels._vectors.units import NormalScores, RankNormal
from mercer.rows._table import dense, in_double


@dataclass(frozen=True)
class FeatureProduct:
    """k(x, z) = exp(-sum_j |u_j(x) - u_j(z)|^p), in coordinates u of rows, for p = 1 or 2."""

    kernel: Stationary
    scores: NormalScores | None

    @classmethod
    def of(cls, kernel: Any) -> "FeatureProduct":
        """A kernel with all its numbers as such a product; KernelError if it is none."""
        inner = kernel.kernel if isinstance(kernel, RankNormal) else kernel
        # A class made from one of these may compute anything.
        if type(inner) not in (RBF, Laplacian):
            raise KernelError(
                f"contributions need a kernel that is a product over features, but {kernel} is none; use "
                "kernel=RBF(), Laplacian(), one of them in RankNormal or Standardized, or "
                "sklearn.inspection.partial_dependence"
            )
        return cls(inner, kernel.scores if isinstance(kernel, RankNormal) else None)

    def coordinates(self, X: Matrix) -> Array:
        """u(x) (n, d) of rows."""
        rows = in_double(dense(X))
        rows = rows if self.scores is None else self.scores(rows)
        gamma = feature_gamma(self.kernel, self.kernel.gamma, rows)
        return np.asarray(rows * np.power(gamma, 1.0 / self.kernel._length_power), dtype=np.float64)

    def factors(self, U: Array, V: Array, column: Indices, n_columns: int) -> Array:
        """The factor (n_columns, n, m) of each column, to which the features (d,) belong; U (n, d), V (m, d)."""
        T = np.zeros((n_columns, len(U), len(V)))
        for u, v, c in zip(U.T, V.T, column):
            apart = np.subtract.outer(u, v)
            T[c] += np.abs(apart, out=apart) if self.kernel._length_power == 1 else np.square(apart, out=apart)
        np.negative(T, out=T)
        return np.exp(T, out=T)
