"""The fitted function f(x) = sum_j c_j k(x, z_j) + b."""

from dataclasses import dataclass
from typing import Any

from mercer.gram import combine
from mercer.kernels.base import Kernel
from mercer.types import Floats


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
