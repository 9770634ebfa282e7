"""Kernels on objects, and those among them that are inner products of sparse features."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Kernel
from mercer.kernels.pairs import Matrix, inner_products, mirror, squared_norms
from mercer.kernels.takes import Takes
from mercer.rows.table import dense, is_sparse
from mercer.types import Floats

# A list of objects, or an array of them.
Objects = Any
# Features of which at least this share is not zero are multiplied faster as dense arrays.
DENSE = 0.15


class Structured(Kernel):
    """A kernel on strings, sets, trees or other objects; abstract."""

    @property
    def takes(self) -> Takes:
        return "objects"

    @property
    def symmetric(self) -> bool:
        return True


class Vocabulary(Protocol):
    """The features that some centers have, one column for each."""

    def features(self, X: Objects) -> list[Matrix]:
        """Features of the rows X in these columns, as CSR (n, v), in one or several parts."""


class Counting(Structured):
    """k(x, z) = phi(x)'phi(z) with sparse features phi; abstract.

    Only features of the centers matter. They are found once, and a block costs the features of its rows and one
    product of sparse matrices, which pays for the features that two rows share and not for pairs of rows.
    """

    @abstractmethod
    def _vocabulary(self, Z: Objects) -> Vocabulary:
        """The features of the centers."""

    def block(self, X: Objects, Z: Objects) -> Floats:
        K = self.at(Z)(X)
        return mirror(K) if X is Z else K

    def at(self, Z: Objects) -> Callable[..., Floats]:
        vocabulary = self._vocabulary(Z)
        return partial(_products, vocabulary, [_transposed(F) for F in vocabulary.features(Z)])

    def diag(self, X: Objects) -> Floats:
        return reduce(np.add, map(squared_norms, self._vocabulary(X).features(X)))


def _transposed(F: Matrix) -> Matrix:
    """F' (v, m), dense if many of its entries are not zero."""
    if F.nnz >= DENSE * F.shape[0] * F.shape[1]:
        return np.ascontiguousarray(dense(F).T)
    return F.T.tocsr()


def _products(vocabulary: Vocabulary, right: list[Matrix], X: Objects, room: Floats | None = None) -> Floats:
    """The features of X times those of the centers, ``right`` (v, m) in as many parts."""
    return reduce(np.add, map(_product, vocabulary.features(X), right))


def _product(F: Matrix, right: Matrix) -> Floats:
    return inner_products(F if is_sparse(right) else dense(F), right.T)


def pointers(kept: NDArray[np.bool_], start: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many entries are kept before each of the positions ``start``."""
    before = np.concatenate([np.zeros(1, np.intp), np.cumsum(kept)])
    return np.asarray(before[np.minimum(start, len(kept))])
