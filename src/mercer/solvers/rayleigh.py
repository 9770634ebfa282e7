r"""Directions w that maximize a ratio w'Sw / w'Nw, one after another: one eigenproblem behind many methods.

S and N (r, r) are symmetric and positive semidefinite, in any coordinates of feature space. Where these are
orthonormal, the choices are (Mika 2002, section 3.4.2):

    kernel PCA                      S the covariance of rows                        N the identity
    latent semantic indexing        S the mean of products, not centered            N the identity
    kernel Fisher discriminant      S the covariance of class means                 N that within classes + mu
    oriented kernel PCA             S the covariance of rows                        N that of noise + mu
    invariance to transformations   S any of these                                  N that of differences + mu

Solved by a Cholesky factor of N + mu, from which directions without noise are removed, and an eigendecomposition;
N is never inverted. Components are nested: the first k do not depend on how many follow.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from mercer.linalg.eigen import symmetric_eigen
from mercer.linalg.lapack import solve_triangular
from mercer.linalg.rank import in_coordinates, rank_factor
from mercer.linalg.threads import interruptible
from mercer.types import Array

# Matrices up to this size, or of which more than this share of the eigenvectors is wanted, are decomposed whole.
SMALL, FEW = 600, 0.1
# Values below this many rounding errors of the largest are none.
ROUNDING = 16.0 * np.finfo(np.float64).eps
# Directions of which N + mu leaves less than this share of the largest have no noise, and are removed.
NO_NOISE = 1e-10


@dataclass(frozen=True)
class RatioDirections:
    """Ratios ``values`` (k,), largest first, and ``vectors`` (r, k) with v'(N + mu)v = 1 and v_i'(N + mu)v_j = 0.

    ``n_removed`` directions had no noise.
    """

    values: Array
    vectors: Array
    n_removed: int = 0


def rayleigh(S: Array, N: Array | None = None, *, mu: float = 0.0, most: int | None = None) -> RatioDirections:
    """The directions with the largest w'Sw / w'(N + mu)w, N None: the identity; ``most`` of them, None: all.

    Ratios that are rounding errors of the largest are not returned. O(r³), or O(r²) for each of few.
    """
    if N is None:
        values, vectors = _leading(S, most)
        return _certain(values / (1.0 + mu), vectors / np.sqrt(1.0 + mu), 0)
    H = N + mu * np.eye(len(N))
    factor = rank_factor(H, tolerance=NO_NOISE)
    kept = factor.kept
    values, inner = _leading(in_coordinates(factor.R, S[np.ix_(kept, kept)]), most)
    vectors = np.zeros((len(S), len(values)))
    vectors[kept] = solve_triangular(factor.R, inner)
    return _certain(values, vectors, len(S) - len(kept))


def _certain(values: Array, vectors: Array, n_removed: int) -> RatioDirections:
    """Without values that are rounding errors."""
    certain = values > ROUNDING * len(vectors) ** 0.5 * float(values.max(initial=0.0))
    return RatioDirections(values[certain], vectors[:, certain], n_removed)


def _leading(S: Array, most: int | None) -> tuple[Array, Array]:
    """Eigenvalues, largest first, and eigenvectors; ``most`` of them."""
    r = len(S)
    if most is not None and r > SMALL and most < FEW * r:
        try:
            values, vectors = interruptible(_lanczos, S, most)
        except ArpackError:
            pass
        else:
            return values[::-1], vectors[:, ::-1]
    values, vectors = symmetric_eigen(np.array(S, dtype=np.float64, order="F"))
    return values[::-1][:most], vectors[:, ::-1][:, :most]


def _lanczos(S: Array, most: int) -> tuple[Array, Array]:
    """The ``most`` largest eigenvalues, ascending; the first vector is always the same."""
    start = np.random.default_rng(0).normal(size=len(S))
    values, vectors = eigsh(S, k=most, which="LA", v0=start)
    order = np.argsort(values)
    return values[order], vectors[:, order]
