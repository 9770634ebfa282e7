"""The fitted function f(x) = sum_j c_j k(x, z_j) + b, and nothing else."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import combine
from mercer.kernels.base import Kernel


@dataclass(frozen=True)
class Expansion:
    """Kernel, centers (m rows), coef (m, q), intercept (q,)."""

    kernel: Kernel
    centers: Any
    coef: NDArray[np.floating]
    intercept: NDArray[np.floating]

    def __call__(self, X: Any) -> NDArray[np.floating]:
        """f at rows X (n, q); O(n m d), in blocks of bounded memory."""
        return combine(self.kernel, X, self.centers, self.coef) + self.intercept
