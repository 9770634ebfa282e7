"""The points of a sample that may become centers, and random draws from them."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer._types import Array, Indices
from mercer.centers._base import CandidateRows, Centers, CenterSelector, Pass, required
from mercer.kernels import Kernel
from mercer.rows._distinct import distinct_rows
from mercer.rows._table import n_rows, take


@dataclass(frozen=True)
class Pool:
    """Distinct rows with weight: first position in the sample, total weight, class (all (u,)).

    ``point`` (c,) is the number of the point of each row of the sample, -1 for rows without weight.
    """

    index: Indices
    weight: Array
    label: Indices
    point: Indices

    @property
    def n_points(self) -> int:
        return len(self.index)

    def members(self, points: Indices) -> Indices:
        """The rows of the sample at these points."""
        return np.flatnonzero(np.isin(self.point, points))


def pool_of(sample: CandidateRows) -> Pool:
    """The points of a sample; without classes, all have class 0."""
    if n_rows(sample.X) != len(sample.weight):
        raise ValueError(
            f"the sample has {n_rows(sample.X)} rows and {len(sample.weight)} weights; pass one weight for each "
            "row"
        )
    kept = np.flatnonzero(sample.weight > 0)
    if not len(kept):
        raise ValueError("all weights of the sample are zero; at least one row must have positive weight")
    rows = distinct_rows(take(sample.X, kept))
    weight = np.bincount(rows.point, sample.weight[kept], minlength=rows.n_points).astype(np.float64)
    index = kept[rows.first]
    label = np.zeros(len(index), dtype=np.intp) if sample.label is None else sample.label[index]
    point = np.full(len(sample.weight), -1, dtype=np.intp)
    point[kept] = rows.point
    return Pool(index, weight, label, point)


class RowSelector(CenterSelector):
    """Selection of rows of the sample; abstract."""

    def select(
        self,
        kernel: Kernel,
        sample: CandidateRows,
        n_centers: int | None,
        rng: np.random.Generator,
        moments: Pass | None = None,
    ) -> Centers:
        pool = pool_of(sample)
        m = min(required(n_centers, self), pool.n_points)
        points, trace = self._points(kernel, sample, pool, m, rng)
        indices = pool.index[points]
        return Centers(kernel.centers(sample.X, indices), indices, trace)

    @abstractmethod
    def _points(
        self, kernel: Kernel, sample: CandidateRows, pool: Pool, m: int, rng: np.random.Generator
    ) -> tuple[Indices, Array | None]:
        """Numbers of at most m points of the pool, and what is told of each."""


def draw_stratified(pool: Pool, m: int, rng: np.random.Generator) -> Indices:
    """Numbers of m points of the pool in random order, with each class represented by its share of the weight."""
    members = [np.flatnonzero(pool.label == k) for k in np.unique(pool.label)]
    seats = shares(np.array([pool.weight[i].sum() for i in members]), np.array([len(i) for i in members]), m)
    drawn = [rng.permutation(points)[:n] for points, n in zip(members, seats)]
    return rng.permutation(np.concatenate(drawn))


def shares(weight: Array, capacity: Indices, m: int) -> Indices:
    """How many of m places each class gets: by weight (k,), at most capacity (k,), at least one if possible.

    The highest quotients weight / (places + 1/2) win (Sainte-Laguë), classes without a place before others.
    """
    seats = np.zeros(len(weight), dtype=np.intp)
    for _ in range(min(m, int(capacity.sum()))):
        quotient = np.where(seats == 0, weight + 2.0 * weight.sum(), weight / (seats + 0.5))
        seats[np.where(seats < capacity, quotient, -1.0).argmax()] += 1
    return seats
