r"""Directions w that maximize a ratio w'Sw / w'Nw, one after another: one eigenproblem behind many methods.

S and N (r, r) are symmetric and positive semidefinite, in any coordinates of feature space. Where these are
orthonormal, some choices are (Mika 2002, section 3.4.2):

    kernel PCA                      S the covariance of rows                        N the identity
    oriented kernel PCA             S the covariance of rows                        N that of noise + mu
    latent semantic indexing        S the mean of products, not centered            N the identity
    kernel Fisher discriminant      S the covariance of class means                 N that within classes + mu
    canonical correlations          S the covariances between views                 N those within views + mu

In coordinates of n rows, w = sum_i a_i phi(x_i), the identity becomes the kernel matrix. Directions in which N +
mu vanishes are removed: the ratio says nothing there. Components are nested: the first k do not depend on how many
follow.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from mercer._linalg.eigen import symmetric_eigen
from mercer._linalg.threads import interruptible
from mercer._linalg.tolerance import rounding_unit
from mercer._types import Array

# Matrices up to this size, or of which more than this share of the eigenvectors is wanted, are decomposed whole.
DECOMPOSED_SIZE, MOST_LANCZOS_SHARE = 600, 0.1
# Vectors of the Lanczos method, and its restarts, after which a whole decomposition is faster.
LANCZOS_VECTORS, LANCZOS_RESTARTS = 60, 12
# Values below this many rounding errors of the largest are none.
NO_VALUE = rounding_unit(np.float64, 16.0)
# Eigenvalues of N + mu below this share of the largest are none.
NO_NOISE = 1e-12


@dataclass(frozen=True)
class RatioDirections:
    """Ratios ``values`` (k,), largest first, and ``vectors`` (r, k) with v'(N + mu)v = 1 and v_i'(N + mu)v_j = 0.

    ``n_removed`` directions have no noise. ``negative`` is the most negative ratio in units of the largest, beyond
    rounding errors; 0 if there is none, or only some were computed.
    """

    values: Array
    vectors: Array
    n_removed: int = 0
    negative: float = 0.0


def rayleigh(
    S: Array, N: Array | None = None, *, mu: float = 0.0, most: int | None = None, noise: float = 0.0
) -> RatioDirections:
    """The directions with the largest w'Sw / w'(N + mu)w, N None: the identity; ``most`` of them, None: all.

    Ratios that are rounding errors of the largest, or at most ``noise``, are not returned. O(r³), or O(r²) for
    each of few.
    """
    if N is None:
        return _certain(*_leading(S, most), noise, 0)
    scale, axes = symmetric_eigen(np.array(N, dtype=np.float64, order="F"))
    scale = scale + mu
    kept = scale > NO_NOISE * float(np.abs(scale).max(initial=0.0))
    axes = axes[:, kept] / np.sqrt(scale[kept])
    values, inner = _leading(axes.T @ S @ axes, most)
    return _certain(values, axes @ inner, noise, int(len(S) - kept.sum()))


def _certain(values: Array, vectors: Array, noise: float, n_removed: int) -> RatioDirections:
    """Without values that are rounding errors."""
    largest = float(np.abs(values).max(initial=0.0))
    least = max(NO_VALUE * len(vectors) ** 0.5 * largest, noise)
    certain, lowest = values > least, float(values.min(initial=0.0))
    negative = -lowest / largest if lowest < -least else 0.0
    return RatioDirections(values[certain], vectors[:, certain], n_removed, negative)


def _leading(S: Array, most: int | None) -> tuple[Array, Array]:
    """Eigenvalues, largest first, and eigenvectors; ``most`` of them."""
    r = len(S)
    if r == 0:
        return np.zeros(0), np.zeros((0, 0))
    if (found := largest_by_lanczos(S, most, size=r, whole=DECOMPOSED_SIZE)) is not None:
        return found
    values, vectors = symmetric_eigen(np.array(S, dtype=np.float64, order="F"))
    return values[::-1][:most], vectors[:, ::-1][:, :most]


def largest_by_lanczos(S: Any, most: int | None, *, size: int, whole: int) -> tuple[Array, Array] | None:
    """The ``most`` largest eigenvalues of a symmetric matrix or operator, largest first, and their vectors.

    None where a whole decomposition would be faster: up to a ``size`` of ``whole``, of more than a share of the
    values, and where values hardly differ.
    """
    if most is None or size <= whole or most >= MOST_LANCZOS_SHARE * size:
        return None
    try:
        return interruptible(_lanczos, S, most)
    except ArpackError:
        return None


def _lanczos(S: Any, most: int) -> tuple[Array, Array]:
    """From a first vector that is always the same."""
    n = S.shape[0]
    start, basis = np.random.default_rng(0).normal(size=n), min(n, max(LANCZOS_VECTORS, 2 * most + 1))
    values, vectors = eigsh(S, k=most, which="LA", v0=start, ncv=basis, maxiter=LANCZOS_RESTARTS)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]
