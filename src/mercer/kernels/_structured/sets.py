"""Kernels on sets of things, and on bags of vectors."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone

from mercer._types import Array, Floats, Indices
from mercer.errors import KernelError
from mercer.kernels._base import Grid, Kernel, Wrapped
from mercer.kernels._matrices import Matrix
from mercer.kernels._parameters import positive
from mercer.kernels._structured.base import Counting, Objects, Ragged, Structured, starts

# Values of the kernel between vectors that are held at a time.
BAG_SLAB = 2**22


@dataclass(frozen=True)
class Elements:
    """A column for each thing that some sets contain."""

    column: dict[Hashable, int]

    @classmethod
    def of(cls, Z: Objects) -> "Elements":
        column: dict[Hashable, int] = {}
        for members in Z:
            for element in _members(members):
                column.setdefault(element, len(column))
        return cls(column)

    def features(self, X: Objects) -> list[Matrix]:
        """1 for the elements of each set, CSR (n, v)."""
        found = [sorted(self.column[e] for e in _members(members) if e in self.column) for members in X]
        pointer = starts([len(columns) for columns in found])
        indices = np.array([column for columns in found for column in columns], np.intp)
        return [
            sparse.csr_matrix((np.ones(len(indices)), indices, pointer), (len(found), max(len(self.column), 1)))
        ]


def _members(row: Any) -> frozenset[Hashable]:
    """The elements of a set, or of any other collection, each once."""
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise KernelError(
            f"a row is a {type(row).__name__}, {row!r:.40}, but a kernel on sets compares sets, tuples or lists; "
            "pass {...} or (...,), or split strings first"
        )
    return frozenset(row.tolist() if isinstance(row, np.ndarray) else row)


class OnSets(Counting):
    """A function of the number of things that two sets have in common; abstract."""

    def _vocabulary(self, Z: Objects) -> Elements:
        return Elements.of(Z)


class Intersection(OnSets):
    """k(A, B) = |A and B|, the number of things that two sets have in common.

    Rows are sets, frozensets, tuples or lists of hashable things, each of which counts once. ``Normalized``, it is
    the cosine (Ochiai) similarity. O(|A|) for each set of a block, and one sparse product.

    Examples
    --------
    >>> Intersection().block([{"a", "b", "c"}], [{"b", "c", "d"}, set()])
    array([[2., 0.]])
    """


class SharedSubsets(OnSets):
    """k(A, B) = (1 + weight)^|A and B|: the subsets that both sets contain; the all-subsets or agreement kernel.

    With weight 1 it is their number, 2^|A and B|, the empty one included; in general a subset of r things counts
    weight^r. Values grow exponentially: compare ``Normalized(SharedSubsets())``, with a small weight for large
    sets.

    Shawe-Taylor and Cristianini (2004), section 9.2 (all-subsets kernel).

    Parameters
    ----------
    weight : float
        Above 0.

    Examples
    --------
    >>> SharedSubsets().block([("a", "b", "c")], [("b", "c", "d"), ()])
    array([[4., 1.]])
    """

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def evaluator(self, Z: Objects) -> Callable[..., Floats]:
        return partial(self._evaluate, super().evaluator(Z))

    def diag(self, X: Objects) -> Floats:
        return self._powers(super().diag(X))

    def _evaluate(self, common: Callable[..., Floats], X: Objects, workspace: Floats | None = None) -> Floats:
        return self._powers(common(X))

    def _powers(self, common: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray((1.0 + positive("weight", self.weight)) ** common)


class Tanimoto(OnSets):
    """k(A, B) = |A and B| / |A or B|, the Jaccard or Tanimoto similarity; 1 for two empty sets.

    Positive definite: Gower (1971), "A general coefficient of similarity and some of its properties". For
    molecules: Ralaivola, Swamidass, Saigo and Baldi (2005), "Graph kernels for chemical informatics".

    Examples
    --------
    >>> Tanimoto().block([{"a", "b", "c"}], [{"b", "c", "d"}, set()])
    array([[0.5, 0. ]])
    """

    def evaluator(self, Z: Objects) -> Callable[..., Floats]:
        return partial(_share, super().evaluator(Z), _sizes(Z))

    def diag(self, X: Objects) -> Floats:
        return np.ones(len(X))


def _share(evaluate: Callable[..., Floats], sizes: Array, X: Objects, workspace: Floats | None = None) -> Floats:
    """|A and B| / |A or B| from the first and the numbers of elements of the centers."""
    common = evaluate(X)
    union = _sizes(X)[:, None] + sizes - common
    return np.divide(common, union, out=np.ones_like(union), where=union > 0)


def _sizes(X: Objects) -> Array:
    """The number of elements of each set."""
    return np.array([len(_members(members)) for members in X], np.float64)


@dataclass(frozen=True)
class Bags(Ragged):
    """The vectors of all bags, one after the other, and where each bag starts (n + 1,)."""

    vectors: Array
    start: Indices

    @classmethod
    def of(cls, X: Objects) -> "Bags":
        bags = _bags(X)
        return cls(np.concatenate(bags) if bags else np.zeros((0, 0)), starts([len(bag) for bag in bags]))

    def means(self, values: Floats, bags: slice = slice(None)) -> Floats:
        """Means (b, ...) over each of some bags of values (n_vectors, ...); zero for an empty one."""
        sizes, start = self.sizes[bags], self.start[:-1][bags]
        found = np.zeros((len(sizes), *values.shape[1:]))
        full = sizes > 0
        if full.any():
            sums = np.add.reduceat(values, start[full] - start[0], axis=0)
            found[full] = sums / sizes[full].reshape(-1, *[1] * (values.ndim - 1))
        return found


def _bags(X: Objects) -> list[NDArray[Any]]:
    """The rows as arrays, if all are bags of vectors."""
    bags = [np.asarray(bag) for bag in X]
    for i, bag in enumerate(bags):
        if bag.ndim != 2 or bag.dtype.kind not in "fiub":
            raise KernelError(
                f"row {i} is a {bag.dtype} array of shape {bag.shape}; a bag is an array of numbers (n_i, d), "
                "one row for each of its vectors"
            )
        if not np.isfinite(bag).all():
            raise KernelError(
                f"row {i} has a vector with NaN or infinity; fill or drop what is missing in its bag"
            )
    return bags


class MeanMap(Structured, Wrapped):
    """k(A, B) = sum_(a in A) sum_(b in B) l(a, b) / (|A| |B|): the inner product of the means of two bags.

    Rows are bags of vectors, arrays (n_i, d) with a different number of vectors in each: the patches of an image,
    the visits of a patient (multiple-instance learning). A bag is represented by its mean in the feature space of
    the kernel l, the kernel mean embedding; zero for an empty bag. Costs a value of l for each pair of vectors.

    Gärtner, Flach, Kowalczyk and Smola (2002), "Multi-instance kernels"; Smola, Gretton, Song and Schölkopf
    (2007), "A Hilbert space embedding for distributions".

    Parameters
    ----------
    kernel : Kernel
        The kernel l on vectors; ``gamma="median"`` and ``gamma="loo"`` refer to the vectors of all bags.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> MeanMap(Linear()).block([[[1.0, 0.0], [0.0, 3.0]]], [[[2.0, 2.0]]])
    array([[4.]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def check_rows(self, X: Objects) -> None:
        _bags(X)

    def candidates(self, X: Objects, weight: ArrayLike | None = None) -> Sequence[Kernel]:
        """One for every candidate of the kernel l on the vectors of all bags."""
        bags = Bags.of(X)
        each = None if weight is None else np.repeat(np.asarray(weight, np.float64), bags.sizes)
        return Grid([self.kernel.candidates(bags.vectors, each)], lambda l: clone(self).set_params(kernel=l[0]))

    def evaluator(self, Z: Objects) -> Callable[..., Floats]:
        centers = Bags.of(Z)
        return partial(
            _mean_values, self.kernel.evaluator(centers.vectors) if len(centers.vectors) else None, centers
        )

    def diag(self, X: Objects) -> Floats:
        values = [self.kernel.block(bag, bag).mean() if len(bag) else 0.0 for bag in _bags(X)]
        return np.array(values, np.float64)


def _mean_values(
    evaluate: Callable[..., Floats] | None, centers: Bags, X: Objects, workspace: Floats | None = None
) -> Floats:
    """Means of l over pairs of vectors, few bags at a time."""
    rows = Bags.of(X)
    K = np.zeros((len(rows.sizes), len(centers.sizes)))
    for some in rows.cuts(BAG_SLAB // max(len(centers.vectors), 1)):
        vectors = rows.vectors[rows.start[some.start] : rows.start[some.stop]]
        if evaluate is not None and len(vectors):
            K[some] = centers.means(rows.means(evaluate(vectors), some).T).T
    return K
