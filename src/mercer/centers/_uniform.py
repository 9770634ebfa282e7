"""Centers drawn at random."""

import numpy as np

from mercer._types import Indices
from mercer.centers._base import CandidateRows
from mercer.centers._pool import Pool, RowSelector, draw_stratified
from mercer.kernels import Kernel


class Uniform(RowSelector):
    """Distinct rows at random, stratified: every class by its share of the weight, and at least one.

    Costs only the search for equal rows, and is the baseline for other selectors. Works for any kernel.

    Parameters
    ----------
    n_centers : int or None
        Number of centers, unless passed to ``select``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.centers import CandidateRows, Uniform
    >>> from mercer.kernels import RBF
    >>> X, label = np.arange(6.0)[:, None], np.array([0, 0, 0, 0, 1, 1])
    >>> sample = CandidateRows(X, np.eye(2)[label], np.ones(6), label)
    >>> centers = Uniform().select(RBF(gamma=1.0), sample, 3, np.random.default_rng(0))
    >>> label[centers.indices]
    array([0, 1, 0])
    """

    def __init__(self, n_centers: int | None = None) -> None:
        self.n_centers = n_centers

    def _points(
        self, kernel: Kernel, sample: CandidateRows, pool: Pool, m: int, rng: np.random.Generator
    ) -> tuple[Indices, None]:
        return draw_stratified(pool, m, rng), None
