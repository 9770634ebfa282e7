"""Centers that the user brings."""

from typing import Any

import numpy as np

from mercer.centers.base import CandidateRows, Centers, CenterSelector, Pass
from mercer.kernels import Kernel
from mercer.rows.distinct import distinct_rows
from mercer.rows.table import n_rows, take


class Given(CenterSelector):
    """These centers, in this order, each once; ``n_centers`` is not looked at.

    Parameters
    ----------
    rows : array (m, d), CSR matrix or list of objects
        What the kernel takes; for a precomputed kernel the positions of the centers among the columns.
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
            raise ValueError("no centers were given; at least 1 is needed")
        once = np.sort(distinct_rows(self.rows).first)
        return Centers(take(self.rows, once))
