"""Sums over rows of products of the derivatives of expansions: they add, over blocks of rows from any source."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._gram.blocks import BLOCK_SIZE, cuts
from mercer._types import Array
from mercer.kernels._base import Kernel, gradient_of
from mercer.rows._base import Block
from mercer.rows._table import in_double, take


@dataclass(frozen=True)
class Gradients:
    """For functions f_1 ... f_c, ``products`` (d, c, c) are sum_i w_i df_a/dx_l df_b/dx_l, ``n`` is sum_i w_i."""

    n: float
    products: Array

    def __add__(self, other: "Gradients") -> "Gradients":
        return Gradients(self.n + other.n, self.products + other.products)


@dataclass(frozen=True)
class GradientsOf:
    """The fold block -> Gradients of f_a(x) = sum_j coef_ja k(x, z_j) for centers z (m rows) and coef (m, c).

    b m d c operations for b rows, in float64. Picklable.
    """

    kernel: Kernel
    centers: Any
    coef: Array

    def __call__(self, block: Block) -> Gradients:
        weight = np.ones(block.n_rows) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        m, c = self.coef.shape
        d = block.X.shape[1]
        total = Gradients(float(weight.sum()), np.zeros((d, c, c)))
        for rows in cuts(block.n_rows, max(1, BLOCK_SIZE // (4 * (m + c * d)))):
            total += Gradients(0.0, self._products(take(block.X, rows), weight[rows]))
        return total

    def _products(self, X: Any, weight: Array) -> Array:
        slopes = gradient_of(self.kernel, in_double(X), in_double(self.centers), self.coef)
        by_feature = np.ascontiguousarray(slopes.transpose(2, 0, 1))
        products: Array = (by_feature * weight) @ by_feature.transpose(0, 2, 1)
        return products
