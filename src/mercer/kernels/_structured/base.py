"""Kernels on objects, and those among them that are inner products of sparse features."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer._types import Floats, Indices
from mercer.kernels._base import Kernel
from mercer.kernels._input_kinds import InputKind
from mercer.kernels._matrices import Matrix, inner_products, mirror, squared_norms
from mercer.rows._table import dense, is_sparse

# A list of objects, or an array of them.
Objects = Any
# Features of which at least this share is not zero are multiplied faster as dense arrays.
DENSE_SHARE = 0.15


class Structured(Kernel):
    """A kernel on strings, sets, trees or other objects; abstract."""

    @property
    def input_kind(self) -> InputKind:
        return "objects"

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def averages(self) -> bool:
        return False

    @abstractmethod
    def evaluator(self, Z: Objects) -> Callable[..., Floats]:
        """(X, workspace=None) -> block(X, Z), with the centers prepared once; picklable."""

    def block(self, X: Objects, Z: Objects) -> Floats:
        centers = self.prepared(Z)
        return mirror(self.evaluator(centers)(centers)) if X is Z else self.evaluator(centers)(X)


class Vocabulary(Protocol):
    """The features that some centers have, one column for each."""

    def features(self, X: Objects) -> list[Matrix]:
        """Features (n, v) of the rows X in these columns, CSR or dense, in one or several parts."""


class Counting(Structured):
    """k(x, z) = phi(x)'phi(z) with features phi that can be listed, mostly sparse; abstract.

    Only features of the centers matter. They are found once, and a block costs the features of its rows and one
    product of sparse matrices, which pays for the features that two rows share and not for pairs of rows.
    """

    @abstractmethod
    def _vocabulary(self, Z: Objects) -> Vocabulary:
        """The features of the centers."""

    def evaluator(self, Z: Objects) -> Callable[..., Floats]:
        Z = self.prepared(Z)
        vocabulary = self._vocabulary(Z)
        return partial(_products, vocabulary, [_transposed(F) for F in vocabulary.features(Z)])

    def diag(self, X: Objects) -> Floats:
        X = self.prepared(X)
        return reduce(np.add, map(squared_norms, self._vocabulary(X).features(X)))


def _transposed(F: Matrix) -> Matrix:
    """F' (v, m), dense if many of its entries are not zero."""
    if not is_sparse(F) or F.nnz >= DENSE_SHARE * F.shape[0] * F.shape[1]:
        return np.ascontiguousarray(dense(F).T)
    return F.T.tocsr()


def _products(vocabulary: Vocabulary, right: list[Matrix], X: Objects, workspace: Floats | None = None) -> Floats:
    """The features of X times those of the centers, ``right`` (v, m) in as many parts."""
    return reduce(np.add, map(_product, vocabulary.features(X), right))


def _product(F: Matrix, right: Matrix) -> Floats:
    return inner_products(F if is_sparse(right) else dense(F), right.T)


class Ragged:
    """Objects of different sizes whose parts are stored one after the other; abstract.

    ``start`` (n + 1,) are the positions of their first parts, and the number of all parts.
    """

    start: Indices

    @property
    def n_objects(self) -> int:
        return len(self.start) - 1

    @property
    def sizes(self) -> Indices:
        return np.diff(self.start)

    def cuts(self, most: int) -> Iterator[slice]:
        """Slices of objects with at most ``most`` parts together, at least one object."""
        first = 0
        while first < self.n_objects:
            last = int(np.searchsorted(self.start, self.start[first] + most, side="right")) - 1
            yield slice(first, max(last, first + 1))
            first = max(last, first + 1)


def starts(sizes: list[int]) -> Indices:
    """Where each object starts (n + 1,), from the sizes of n objects."""
    return np.concatenate([np.zeros(1, np.intp), np.cumsum(np.array(sizes, np.intp))])


def pointers(kept: NDArray[np.bool_], start: Indices) -> Indices:
    """How many entries are kept before each of the positions ``start``."""
    before = np.concatenate([np.zeros(1, np.intp), np.cumsum(kept)])
    return np.asarray(before[np.minimum(start, len(kept))])
