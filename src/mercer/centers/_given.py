"""Centers given by the user."""

from typing import Any

import numpy as np

from mercer.centers._base import CandidateRows, Centers, CenterSelector, Pass
from mercer.kernels import Kernel
from mercer.rows._distinct import distinct_rows
from mercer.rows._table import n_rows, take


class Given(CenterSelector):
    """The given centers, in this order, each once; ``n_centers`` is ignored.

    Parameters
    ----------
    rows : array (m, d), CSR matrix or list of objects
        Rows that the kernel accepts; for a precomputed kernel, the column positions of the centers.
    """

    # As many as there are.
    n_centers = None

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def most(self, n: int) -> int:
        return n_rows(self.rows)

    def select(
        self,
        kernel: Kernel,
        sample: CandidateRows,
        n_centers: int | None,
        rng: np.random.Generator,
        moments: Pass | None = None,
    ) -> Centers:
        if n_rows(self.rows) == 0:
            raise ValueError("there are no centers; pass at least one")
        once = np.sort(distinct_rows(self.rows).first)
        return Centers(take(self.rows, once))
