"""The fitted function f(x) = sum_j c_j k(x, z_j) + b."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._gram import combine
from mercer._types import Floats, Indices
from mercer.kernels._base import Kernel
from mercer.rows._table import take


@dataclass(frozen=True)
class Expansion:
    """Kernel, centers (m rows), coef (m, q), intercept (q,)."""

    kernel: Kernel
    centers: Any
    coef: Floats
    intercept: Floats

    def __call__(self, X: Any) -> Floats:
        """f at rows X (n, q); O(n m d), in blocks of bounded memory."""
        return combine(self.kernel, X, self.centers, self.coef) + self.intercept


@dataclass(frozen=True)
class SumExpansion:
    """A sum of expansions whose centers have different kernels."""

    parts: tuple[Expansion, ...]

    def __call__(self, X: Any) -> Floats:
        """f at rows X (n, q)."""
        total = self.parts[0](X)
        for part in self.parts[1:]:
            total = total + part(X)
        return total


def expansion_of(
    kernels: Sequence[Kernel], number: Indices, centers: Any, coef: Floats, intercept: Floats
) -> Expansion | SumExpansion:
    """The function whose center j has the kernel of ``number`` j (m,)."""
    if len(kernels) == 1 or len(number) == 0:
        return Expansion(kernels[0], centers, coef, intercept)
    parts: list[Expansion] = []
    for g in np.unique(number):
        some = np.flatnonzero(number == g)
        constant = intercept if not parts else np.zeros_like(intercept)
        parts.append(Expansion(kernels[g], take(centers, some), coef[some], constant))
    return SumExpansion(tuple(parts))
