"""Held-out rows as neighbors: what the sizes of their residuals tell about those near them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer._gram import kernel_blocks, own_values
from mercer._scores.uncertainty.intervals import LooResults
from mercer._scores.uncertainty.residual_scale import LocalScale, choose_scale
from mercer._types import Array, Indices
from mercer.kernels import Kernel
from mercer.rows._table import n_rows, take

# The most held-out rows that are neighbors of others.
MOST_NEIGHBOR_ROWS = 1000


@dataclass(frozen=True)
class NearbyResiduals:
    """Held-out rows X (r rows) with their residuals, in units of the standard deviation ``std`` (r,) of each.

    Choosing neighbors costs O(h² log h) for h rows, at most MOST_NEIGHBOR_ROWS, and O(h log h) for each other row.
    """

    kernel: Kernel
    X: Any
    loo_results: LooResults
    std: Array

    def scale(self, X: Any) -> Array:
        """The size (n, q) of residuals near new rows, relative to the mean."""
        if self._local.constant:
            return np.ones((n_rows(X), self.loo_results.residual.shape[1]))
        return np.concatenate([self._local(D) for _, D in self._distances(X)])

    @cached_property
    def sizes(self) -> Array:
        """Residuals (r, q) in units of the standard deviation and of the size of those near them."""
        sizes, number = np.abs(self.loo_results.residual) / self.std[:, None], np.arange(len(self.std))
        if not self._local.constant:
            for rows, D in self._distances(self.X):
                sizes[rows] /= self._local(D, self._present(number[rows]))
        return sizes

    @cached_property
    def _local(self) -> LocalScale:
        """The number of neighbors, and their sizes."""
        near, loo_results = self._neighbors, self.loo_results
        D = np.concatenate([D for _, D in self._distances(take(self.X, near))])
        size = np.abs(loo_results.residual[near]) / self.std[near, None]
        return choose_scale(D, self._present(near), size, loo_results.independent[near])

    @cached_property
    def _neighbors(self) -> Indices:
        """All rows, or a random part of them: rows may come in an order, every second one of another kind."""
        return np.sort(np.random.default_rng(0).permutation(len(self.std))[:MOST_NEIGHBOR_ROWS])

    def _present(self, rows: Indices) -> Array:
        """What each neighbor counts for (n, h) when one of these rows, or its fold, is held out."""
        count, fold, near = self.loo_results.independent, self.loo_results.fold, self._neighbors
        present = np.repeat(count[None, near], len(rows), axis=0)
        if fold is not None:
            present[fold[rows][:, None] == fold[near]] = 0.0
        else:
            same = rows[:, None] == near
            present[same] = np.maximum(present[same] - 1.0, 0.0)
        return present

    def _distances(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Slices of rows and their squared distances (b, h) to the neighbors, in the distance of the kernel."""
        Z = take(self.X, self._neighbors)
        own = own_values(self.kernel, Z)
        for rows, K in kernel_blocks(self.kernel, X, Z, len(own)):
            D = own_values(self.kernel, take(X, rows))[:, None] + own - 2.0 * K
            yield rows, np.maximum(D, 0.0)
