"""Kernels on vectors that see their features in other units: standard deviations, or normal scores of ranks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import clone

from mercer._types import Array, Floats, Indices
from mercer.errors import KernelError
from mercer.kernels._algebra.choice import OneOf
from mercer.kernels._algebra.compositions import Mapped
from mercer.kernels._base import Grid, Kernel, Wrapped
from mercer.kernels._length_scales import column_lengths, weighted_rows
from mercer.kernels._matrices import Matrix, as_matrix
from mercer.kernels._vectors.stationary import OfUnknownScale, Stationary, Weighted
from mercer.rows._table import dense, is_sparse

# Normal scores of a feature are stored at this many of its values, and straight lines between them.
MOST_KNOTS = 256
# Beyond the rows of the fit curves go on to scores so far outside, where all is new.
FARTHEST = 10.0
# Lengths that differ by less than this share are one unit.
SAME_UNIT = 0.01
# Knots and scores of a feature that is not ranked.
NO_CURVE = (np.zeros(0), np.zeros(0))


class Standardized(OfUnknownScale, Wrapped):
    """A stationary kernel in units of the standard deviation of each feature.

    Its candidates are kernels of the given class with one gamma for each feature. Features that are constant are
    switched off. Sparse rows stay in their units: most of their features are zero.

    Parameters
    ----------
    kernel : Stationary
        Any function of a distance; a number gamma is one for features with standard deviation one.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> Standardized(RBF("median")).candidates([[0.0, 0.0], [2.0, 200.0]])
    [RBF(gamma=[0.125, 1.25e-05])]
    """

    def __init__(self, kernel: Stationary) -> None:
        self.kernel = kernel

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> Sequence[Kernel]:
        """Those of the kernel for rows whose features are divided by their standard deviations."""
        (kernel,) = self._kernels()
        if not isinstance(kernel, Stationary):
            raise KernelError(
                f"Standardized contains {kernel!r}; pass RBF, Matern, Laplacian or another function of a distance"
            )
        if is_sparse(X):
            return self.kernel.candidates(X, weight)
        unit, shares = _inverse_lengths(as_matrix(X), weight)
        shares = shares**self.kernel._length_power
        if not isinstance(self.kernel.gamma, str):
            gamma = np.asarray(self.kernel.gamma) * unit**self.kernel._length_power * shares
            return [clone(self.kernel).set_params(gamma=gamma.tolist())]
        if shares.min() == 1.0:
            return self.kernel.candidates(X, weight)
        return self.kernel.weighted(shares).candidates(X, weight)


def _inverse_lengths(X: Matrix, weight: ArrayLike | None) -> tuple[float, Array]:
    """The largest of 1 / standard deviation of a feature, and all (d,) in units of it, 0 for a constant feature.

    All are 1 if features have the same unit already.
    """
    X, w = weighted_rows(X, weight)
    varies = X.max(axis=0) > X.min(axis=0)
    with np.errstate(over="ignore"):
        lengths = column_lengths(X, w)
    if not varies.any():
        return 1.0, np.ones(len(varies))
    least = float(lengths[varies].min())
    if lengths[varies].max() <= (1.0 + SAME_UNIT) * least:
        return 1.0 / least, np.ones(len(varies))
    return 1.0 / least, np.where(varies, least / lengths, 0.0)


@dataclass(frozen=True, eq=False)
class NormalScores:
    """An increasing curve for each feature: feature j has the ``knots`` from ``start[j]`` to ``start[j + 1] - 1``,
    and ``values`` there; between them lines, beyond them the values at the ends.

    The outermost knots are beyond all rows of the fit: a value so far away is unlike all that is known. A feature
    without knots stays as it is.
    """

    knots: Array
    values: Array
    start: Indices

    @classmethod
    def of(cls, X: Floats, weight: ArrayLike | None, features: Collection[int] | None = None) -> "NormalScores":
        """Normal quantiles of the middle ranks of weighted rows, in units of their standard deviation.

        Of some ``features``, None: of all.
        """
        X, w = weighted_rows(X, weight)
        ranked = range(X.shape[1]) if features is None else features
        curves = [_curve(column, w) if j in ranked else NO_CURVE for j, column in enumerate(X.T)]
        start = np.concatenate([[0], np.cumsum([len(knots) for knots, _ in curves])]).astype(np.intp)
        return cls(np.concatenate([c[0] for c in curves]), np.concatenate([c[1] for c in curves]), start)

    def __call__(self, X: Floats) -> Floats:
        """The scores (n, d) of rows."""
        if X.shape[1] != len(self.start) - 1:
            raise KernelError(
                f"rows have {X.shape[1]} features, but scores are known of {len(self.start) - 1}; pass rows like "
                "those of the fit"
            )
        found = np.empty(X.shape, X.dtype)
        for j, (a, b) in enumerate(zip(self.start[:-1], self.start[1:])):
            found[:, j] = X[:, j] if a == b else np.interp(X[:, j], self.knots[a:b], self.values[a:b])
        return found

    def __deepcopy__(self, memo: Any) -> "NormalScores":
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NormalScores) and all(
            np.array_equal(ours, theirs)
            for ours, theirs in zip(
                (self.knots, self.values, self.start), (other.knots, other.values, other.start)
            )
        )

    def __hash__(self) -> int:
        return hash((len(self.knots), float(self.knots[0]), float(self.knots[-1])))

    def __repr__(self) -> str:
        return f"NormalScores of {len(self.start) - 1} features"


def _curve(column: Array, w: Array) -> tuple[Array, Array]:
    """Knots and normal scores of a feature with weights (n,)."""
    knots, place = np.unique(column, return_inverse=True)
    weight = np.bincount(place, w)
    below = np.cumsum(weight)
    scores = np.asarray(ndtri((below - 0.5 * weight) / below[-1]))
    mean = weight @ scores / below[-1]
    spread = np.sqrt(weight @ (scores - mean) ** 2 / below[-1])
    scores = (scores - mean) / (spread if spread > 0.0 else 1.0)
    if len(knots) > MOST_KNOTS:
        even = np.linspace(scores[0], scores[-1], MOST_KNOTS)
        kept = np.unique(np.clip(np.searchsorted(scores, even), 0, len(knots) - 1))
        knots, scores = knots[kept], scores[kept]
    return _continued(knots, scores)


def _continued(knots: Array, scores: Array) -> tuple[Array, Array]:
    """With one more knot on each side, as far as the tenth there goes on; none if constant, or too far away."""
    if len(knots) < 2:
        return knots, scores
    # Not the last two knots alone, which may happen to be close to each other.
    a = max(1, len(knots) // 10)
    with np.errstate(over="ignore"):
        low = knots[0] - FARTHEST * (knots[a] - knots[0]) / (scores[a] - scores[0])
        high = knots[-1] + FARTHEST * (knots[-1] - knots[-1 - a]) / (scores[-1] - scores[-1 - a])
    ends = [(low, scores[0] - FARTHEST)] if -np.inf < low < knots[0] else []
    others = [(high, scores[-1] + FARTHEST)] if knots[-1] < high < np.inf else []
    found = np.array([*ends, *zip(knots, scores), *others])
    return found[:, 0], found[:, 1]


class RankNormal(Mapped):
    """k(x, z) = l(s(x), s(z)): a kernel l of normal scores, which only depend on the ranks of features.

    The score of a value is the normal quantile of the share of rows that are below it, in units of its standard
    deviation. So neither units nor skew matter, nor single values far away. Beyond the rows of the fit scores go
    on as in the outermost tenth, so that rows far away are new. A fit to sparse rows leaves them in their units.

    Parameters
    ----------
    kernel : Kernel
        The kernel l, on vectors.
    scores : NormalScores, optional
        None: those of the rows of the fit.
    features : sequence of int, optional
        The positions of features that have ranks; None: all. Others, such as indicators of categories, stay as
        they are.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> k = RankNormal(RBF(gamma=1.0)).candidates([[1.0], [2.0], [1000.0]])[0]
    >>> k.block([[1.0]], [[2.0], [1000.0], [5000.0]]).round(4)
    array([[0.2231, 0.0025, 0.    ]])
    """

    def __init__(
        self, kernel: Kernel, scores: NormalScores | None = None, features: Sequence[int] | None = None
    ) -> None:
        self.kernel = kernel
        self.scores = scores
        self.features = features

    @property
    def averages(self) -> bool:
        return self.kernel.averages

    @property
    def gamma(self) -> Any:
        """That of the inner kernel."""
        return self.kernel.gamma

    @property
    def resolved(self) -> bool:
        return self.scores is not None and self.kernel.resolved

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> Sequence[Kernel]:
        """One for every candidate of the inner kernel on the scores of these rows."""
        if is_sparse(X) and self.scores is None:
            return self.kernel.candidates(X, weight)
        X = as_matrix(dense(X))
        scores = NormalScores.of(X, weight, self.features) if self.scores is None else self.scores
        inner = self.kernel.candidates(scores(X), weight)
        return Grid([inner], lambda chosen: RankNormal(chosen[0], scores))

    def as_scores(self, X: Matrix) -> Floats:
        """The normal scores (n, d) of rows."""
        if self.scores is None:
            raise KernelError("RankNormal has no scores yet; call fit, or use one of kernel.candidates(X)")
        return self.scores(as_matrix(dense(X)))

    def _seen(self, X: Matrix) -> Matrix:
        return self.as_scores(X)


def with_common_scores(kernel: Kernel, X: Matrix, weight: ArrayLike | None) -> Kernel:
    """A choice in which all kernels of normal scores share them, so that they are computed and stored once."""
    ranked = [isinstance(each, RankNormal) and each.scores is None for each in getattr(kernel, "kernels", [])]
    if sum(ranked) < 2 or is_sparse(X) or not isinstance(kernel, OneOf):
        return kernel
    unknown = [each for each, rank in zip(kernel.kernels, ranked) if rank]
    common = {repr(each.features): NormalScores.of(as_matrix(X), weight, each.features) for each in unknown}
    return OneOf(
        [RankNormal(k.kernel, common[repr(k.features)]) if rank else k for k, rank in zip(kernel.kernels, ranked)]
    )


def scales_features(kernel: Kernel) -> bool:
    """Whether features have units of their own in a kernel, or in one of a choice."""
    if isinstance(kernel, OneOf):
        return any(scales_features(each) for each in kernel.kernels)
    return isinstance(kernel, Standardized | RankNormal) or np.ndim(kernel.gamma) > 0


@dataclass(frozen=True, eq=False)
class Units:
    """In which units a kernel sees features: multiplied by ``factors`` (d,), as normal ``scores``, or as they are.

    A kernel of features in these units is *inner*, the same kernel of features as they are *outer*.
    """

    factors: Array | None = None
    scores: NormalScores | None = None

    @classmethod
    def of(cls, outer: Any) -> "Units":
        """Those of a kernel whose parameters are numbers."""
        if isinstance(outer, RankNormal):
            return cls(scores=outer.scores)
        gamma = np.asarray(outer.gamma, dtype=np.float64)
        return cls((gamma / gamma.max()) ** (1.0 / outer._length_power) if gamma.ndim > 0 else None)

    @property
    def are_given(self) -> bool:
        """Whether features are seen as they are."""
        return self.factors is None and self.scores is None

    def converted(self, X: Floats) -> Floats:
        """Rows in these units."""
        if self.scores is not None:
            return self.scores(X)
        return X if self.factors is None else X * self.factors

    def inner(self, outer: Any) -> Any:
        """The kernel of features in these units."""
        if self.scores is not None:
            return outer.kernel
        if self.factors is None:
            return outer
        ratios = self.factors**outer._length_power
        gamma = np.divide(outer.gamma, ratios, out=np.zeros(len(ratios)), where=ratios > 0.0)
        return clone(outer).set_params(gamma=gamma.tolist())

    def outer(self, inner: Any) -> Any:
        """The kernel of features as they are, of one with a gamma for each feature, in numbers or ratios."""
        if self.scores is not None:
            return RankNormal(inner, self.scores)
        if self.factors is None:
            return inner
        if isinstance(inner, Weighted):
            return inner.kernel.weighted(np.asarray(inner.relevance) * self.factors**inner.kernel._length_power)
        return clone(inner).set_params(
            gamma=(np.asarray(inner.gamma) * self.factors**inner._length_power).tolist()
        )
