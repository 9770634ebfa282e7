r"""Directions along which several views of the same rows agree: regularized canonical correlations.

For functions f_v = w_v'phi_v of the views v = 1 ... V, in the feature space of a kernel each,

    max  sum_{a != b} cov(f_a, f_b) / (V - 1)     with     sum_v var(f_v) + alpha s_v |w_v|² = 1,           (1)

one component after another, in the same metric orthogonal to the ones before. Two views: regularized kernel CCA;
more: the sum of correlations under one common constraint (MAXVAR, Kettenring 1971), which for two views is the
same problem. The scale s_v is the variance of view v in feature space, the trace of its centered kernel matrix
over n: so alpha has no unit, and means the same for every kernel and any number of rows. In the notation of the
textbooks, with (1 - tau) K² + tau K of matrices without 1 / n, tau / (1 - tau) = alpha trace K.

Centered kernel matrices are singular, and so is the generalized eigenproblem of (1) in their coefficients. Along
the principal axes of each view, K_v / n = U_v diag(l) U_v', it is an ordinary one in the blocks

    M_ab = D_a U_a'U_b D_b,     D = diag(sqrt(l / (l + alpha s))),                                          (2)

none of which exceeds one. Without alpha and with kernel matrices of full rank all values are one, whatever the
rows: (1) is not a correlation of the variates, which is computed besides, and with alpha the variates of one view
are not uncorrelated. O(n³) for the axes; then, for every alpha, O(r²) for each of few components.

F. R. Bach and M. I. Jordan (2002), Kernel independent component analysis. D. R. Hardoon, S. Szedmak and J.
Shawe-Taylor (2004), Canonical correlation analysis. J. R. Kettenring (1971), Canonical analysis of several sets of
variables.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
from scipy.sparse.linalg import LinearOperator

from mercer._gram.moments import Moments
from mercer._linalg.eigen import centered, signed, singular
from mercer._solvers.directions.rayleigh import NO_VALUE, largest_by_lanczos, rayleigh
from mercer._types import Array, Floats, Indices

# Blocks of (2) up to this size have all of their singular values computed: few of them would not be faster.
SMALL_BLOCK = 250
# A view with less than this part in a component has none.
NO_PART = 1e-9


@dataclass(frozen=True)
class Axes:
    """Principal axes of every view, and how views go together along them.

    Of view v: ``variance`` (r_v,) of rows along unit directions with coefficients ``basis`` (m_v, r_v), and the
    ``mean`` (r_v,) of k'basis. ``cross[a, b]`` (r_a, r_b), a < b, has the correlations of axes of two views.
    """

    variance: tuple[Array, ...]
    basis: tuple[Array, ...]
    mean: tuple[Array, ...]
    cross: dict[tuple[int, int], Array]


@dataclass(frozen=True)
class CanonicalDirections:
    """Variates k'coef_v + intercept_v (k,) of variance one for every view v, the best component first.

    ``objective`` (k,) is the regularized one of (1), at most 1, which is not a correlation. ``correlations``
    (k, V, V) are those of the variates over the rows of the fit. A view without part in a component is zero there.
    """

    objective: Array
    correlations: Array
    coef: tuple[Array, ...]
    intercept: tuple[Array, ...]


def axes_of_grams(grams: Sequence[Array], share: Array, noise: Sequence[float]) -> tuple[Axes, list[float]]:
    """Axes of views from their kernel matrices (n, n) at rows with shares (n,) of the weight; O(n³) each.

    Variances of at most ``noise`` are none. Besides, of every matrix the most negative eigenvalue, in
    units of its largest.
    """
    root = np.sqrt(share)
    found = [rayleigh(root * centered(K, share) * root[:, None], noise=e) for K, e in zip(grams, noise)]
    # Coefficients sum to zero, as they do without rounding.
    vectors = [each.vectors - np.outer(root, root @ each.vectors) for each in found]
    basis = tuple(root[:, None] * U / np.sqrt(each.values) for U, each in zip(vectors, found))
    mean = tuple((K @ share) @ B for K, B in zip(grams, basis))
    axes = Axes(tuple(each.values for each in found), basis, mean, _cross(vectors))
    return axes, [each.negative for each in found]


def axes_of_moments(moments: Moments, sizes: Sequence[int], noise: Sequence[float]) -> Axes:
    """Axes of views from moments of their orthonormal coordinates side by side, ``sizes`` of them for each view.

    Variances of at most ``noise`` are none. O(m³) for m coordinates.
    """
    G, parts = moments.centered()[0] / moments.n, slices(sizes)
    found = [rayleigh(G[part, part], noise=e) for part, e in zip(parts, noise)]
    variance, basis = tuple(each.values for each in found), tuple(each.vectors for each in found)
    white = [B / np.sqrt(values) for B, values in zip(basis, variance)]
    cross = {(a, b): white[a].T @ G[parts[a], parts[b]] @ white[b] for a, b in combinations(range(len(parts)), 2)}
    mean = tuple((moments.s[part] / moments.n) @ B for part, B in zip(parts, basis))
    return Axes(variance, basis, mean, cross)


def scores_along(axes: Axes, coordinates: Sequence[Array], share: Array) -> list[Array]:
    """Orthonormal columns U_v (n, r_v) for coordinates (n, m_v) of rows with shares (n,), as in (2)."""
    root = np.sqrt(share)[:, None]
    parts = zip(coordinates, axes.basis, axes.mean, axes.variance)
    return [root * (phi @ B - mean) / np.sqrt(values) for phi, B, mean, values in parts]


def rematched(axes: Axes, scores: Sequence[Array], orders: Sequence[Indices]) -> Axes:
    """The same axes, for rows of which every view has another order: views that have nothing in common."""
    return replace(axes, cross=_cross([U[order] for U, order in zip(scores, orders)]))


def canonical_directions(axes: Axes, alpha: float, most: int | None) -> CanonicalDirections:
    """The ``most`` best components of (1), None: all with a positive objective; fewer if there are no more.

    The first ones do not depend on how many follow.
    """
    penalty = [alpha * float(values.sum()) for values in axes.variance]
    shrink = [np.sqrt(values / (values + p)) for values, p in zip(axes.variance, penalty)]
    M = {(a, b): shrink[a][:, None] * Q * shrink[b] for (a, b), Q in axes.cross.items()}
    value, parts = _two(M[0, 1], most) if len(shrink) == 2 else _several(M, list(map(len, shrink)), most)
    value, parts = _positive(value, parts, max(float(d.max(initial=0.0)) for d in shrink) ** 2)
    # In units of the standard deviations along the axes.
    variates = [d[:, None] * u for d, u in zip(shrink, parts)]
    inverse = [_inverse_length(g) * (np.linalg.norm(u, axis=0) > NO_PART) for g, u in zip(variates, parts)]
    inner = [
        u * scale / np.sqrt(values + p)[:, None]
        for u, scale, values, p in zip(parts, inverse, axes.variance, penalty)
    ]
    correlations = _correlations([g * scale for g, scale in zip(variates, inverse)], axes.cross)
    coef = tuple(B @ c for B, c in zip(axes.basis, inner))
    intercept = tuple(-mean @ c for mean, c in zip(axes.mean, inner))
    return with_signs(CanonicalDirections(value, correlations, coef, intercept))


def with_signs(found: CanonicalDirections) -> CanonicalDirections:
    """With the largest coefficient of all views positive, each relative to the length of those of its view."""
    stacked = np.vstack([_inverse_length(coef) * coef for coef in found.coef])
    sign = np.where((signed(stacked) == stacked).all(axis=0), 1.0, -1.0)
    coef, intercept = (tuple(sign * each for each in part) for part in (found.coef, found.intercept))
    return replace(found, coef=coef, intercept=intercept)


def products_around(moments: Moments, found: CanonicalDirections, sizes: Sequence[int]) -> Array:
    """Sums (k, V, V) over rows of the products of variates of views, which are zero at the mean of the fit.

    ``moments`` of the coordinates in which the directions have their coefficients, of other rows than in the fit.
    """
    parts, k = slices(sizes), len(found.objective)
    products = np.zeros((k, len(parts), len(parts)))
    sums = [c.T @ moments.s[part] for c, part in zip(found.coef, parts)]
    for a, left in enumerate(found.coef):
        for b, right in enumerate(found.coef):
            inner = np.einsum("ik,ik->k", left, moments.G[parts[a], parts[b]] @ right)
            shift, other = found.intercept[a], found.intercept[b]
            products[:, a, b] = inner + sums[a] * other + shift * sums[b] + moments.n * shift * other
    return products


def correlations_of(products: Array) -> Array:
    """Correlations (k, V, V) from sums of products; zero where a variate is constant."""
    scale = np.sqrt(np.maximum(np.einsum("kaa->ka", products), 0.0))
    size = scale[:, :, None] * scale[:, None, :]
    return np.asarray(np.divide(products, size, out=np.zeros_like(products), where=size > 0.0))


def correlations_of_scores(scores: Sequence[Floats]) -> Array:
    """Correlations (k,) of scores (n, k) of the same rows in several views; means over pairs."""
    around = np.stack(
        [np.asarray(each, dtype=np.float64) - each.mean(axis=0, dtype=np.float64) for each in scores]
    )
    return mean_of_pairs(correlations_of(np.einsum("ank,bnk->kab", around, around)))


def mean_of_pairs(correlations: Array) -> Array:
    """The mean (k,) over pairs of different views."""
    first, second = np.triu_indices(correlations.shape[1], 1)
    return np.asarray(correlations[:, first, second].mean(axis=1))


def slices(sizes: Sequence[int]) -> list[slice]:
    """Where each view is among coordinates side by side."""
    ends = [0, *np.cumsum(sizes).tolist()]
    return [slice(*pair) for pair in pairwise(ends)]


def _cross(vectors: Sequence[Array]) -> dict[tuple[int, int], Array]:
    """U_a'U_b for all pairs of views."""
    return {(a, b): vectors[a].T @ vectors[b] for a, b in combinations(range(len(vectors)), 2)}


def _two(M: Array, most: int | None) -> tuple[Array, list[Array]]:
    """Singular values of M (p, q), largest first, and vectors of both sides."""
    least = min(M.shape)
    if (found := largest_by_lanczos(_both_sides(M), most, size=least, whole=SMALL_BLOCK)) is not None:
        return found[0], np.split(found[1], [len(M)])
    if least == 0:
        return np.zeros(0), [np.zeros((size, 0)) for size in M.shape]
    U, values, V, _ = singular(M if M.shape[0] <= M.shape[1] else M.T, noise=0.0)
    sides = [U, V] if M.shape[0] <= M.shape[1] else [V, U]
    return values[:most], [side[:, :most] for side in sides]


def _both_sides(M: Array) -> LinearOperator:
    """The symmetric operator with blocks M and M', whose positive eigenvalues are the singular values of M."""
    p, q = M.shape

    def times(x: Array) -> Array:
        x = x.ravel()
        return np.concatenate([M @ x[p:], x[:p] @ M])

    return LinearOperator((p + q, p + q), matvec=times, dtype=np.float64)


def _several(M: dict[tuple[int, int], Array], ranks: Sequence[int], most: int | None) -> tuple[Array, list[Array]]:
    """Objectives, and eigenvectors of all blocks together, cut into views."""
    parts = slices(ranks)
    R = np.zeros((parts[-1].stop, parts[-1].stop))
    for (a, b), block in M.items():
        R[parts[a], parts[b]] = block
        R[parts[b], parts[a]] = block.T
    found = rayleigh(R, most=most)
    return found.values / (len(ranks) - 1), [found.vectors[part] for part in parts]


def _positive(values: Array, sides: list[Array], most: float) -> tuple[Array, list[Array]]:
    """Without values that are rounding errors of entries of (2), which are at most ``most``."""
    certain = values > NO_VALUE * sum(map(len, sides)) ** 0.5 * most
    return values[certain], [side[:, certain] for side in sides]


def _inverse_length(vectors: Array) -> Array:
    """One over the length (k,) of columns; zero for zero."""
    length = np.linalg.norm(vectors, axis=0)
    return np.asarray(np.divide(1.0, length, out=np.zeros_like(length), where=length > 0.0))


def _correlations(variates: Sequence[Array], cross: dict[tuple[int, int], Array]) -> Array:
    """Correlations (k, V, V) of variates of unit length (r_v, k) in coordinates with these correlations."""
    views, k = len(variates), variates[0].shape[1]
    found = np.zeros((k, views, views))
    for v, g in enumerate(variates):
        found[:, v, v] = (g**2).sum(axis=0)
    for (a, b), Q in cross.items():
        found[:, a, b] = found[:, b, a] = np.einsum("ik,ik->k", variates[a], Q @ variates[b])
    return found
