"""Centers of clusters."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster
from sklearn.exceptions import ConvergenceWarning

from mercer.centers._base import CandidateRows, Centers, CenterSelector, Pass, required
from mercer.centers._pool import Pool, pool_of, shares
from mercer.errors import KernelError
from mercer.kernels import Kernel
from mercer.rows._distinct import distinct_rows

# Beyond this many rows the clusters are found in batches.
ROWS_FOR_BATCHES = 20_000


class KMeans(CenterSelector):
    """Cluster means found by k-means: they cover the rows evenly, and are not rows themselves.

    Good in few dimensions and for clustered rows; ignores the labels unless ``per_class``. Needs dense vectors.
    O(n m d) per round; in batches above 20,000 rows.

    Parameters
    ----------
    n_centers : int or None
        Number of centers, unless passed to ``select``.
    per_class : bool
        Cluster every class separately, each with its share of the centers.
    n_init : int
        Number of restarts; the best clustering is kept.
    max_iter : int
        Maximum number of rounds.
    """

    def __init__(
        self, n_centers: int | None = None, *, per_class: bool = False, n_init: int = 1, max_iter: int = 100
    ) -> None:
        self.n_centers = n_centers
        self.per_class = per_class
        self.n_init = n_init
        self.max_iter = max_iter

    def select(
        self,
        kernel: Kernel,
        sample: CandidateRows,
        n_centers: int | None,
        rng: np.random.Generator,
        moments: Pass | None = None,
    ) -> Centers:
        m = required(n_centers, self)
        X = _dense_vectors(kernel, sample.X)
        pool = pool_of(sample)
        means = np.concatenate([self._means(X, part, k, rng) for part, k in self._parts(pool, m)])
        return Centers(means[np.sort(distinct_rows(means).first)])

    def _parts(self, pool: Pool, m: int) -> list[tuple[Pool, int]]:
        """The points to be clustered together, and the number of their clusters."""
        if not self.per_class:
            return [(pool, m)]
        parts = [_of_class(pool, k) for k in np.unique(pool.label)]
        seats = shares(
            np.array([part.weight.sum() for part in parts]), np.array([part.n_points for part in parts]), m
        )
        return [(part, int(k)) for part, k in zip(parts, seats) if k > 0]

    def _means(self, X: NDArray[Any], pool: Pool, k: int, rng: np.random.Generator) -> NDArray[Any]:
        points = X[pool.index]
        if k >= pool.n_points:
            return points
        kind = cluster.KMeans if pool.n_points <= ROWS_FOR_BATCHES else cluster.MiniBatchKMeans
        seed = int(rng.integers(2**31))
        model = kind(n_clusters=k, n_init=self.n_init, max_iter=self.max_iter, random_state=seed)
        with warnings.catch_warnings():
            # Distinct rows may coincide to working precision: then fewer clusters are found and kept.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(points, sample_weight=pool.weight)
        return np.asarray(model.cluster_centers_)


def _of_class(pool: Pool, k: int) -> Pool:
    here = pool.label == k
    return Pool(pool.index[here], pool.weight[here], pool.label[here], pool.point)


def _dense_vectors(kernel: Kernel, X: Any) -> NDArray[Any]:
    """X, if its rows can be averaged."""
    if not kernel.averages:
        raise KernelError(
            f"KMeans averages vectors, but {kernel!r} may not accept their means; use ForwardSelection, "
            "RPCholesky or Uniform"
        )
    if not isinstance(X, np.ndarray):
        raise KernelError(
            f"KMeans needs a dense array, since means are not sparse, but the rows are {type(X).__name__}; use "
            "ForwardSelection, RPCholesky or Uniform"
        )
    return X
