r"""What each column contributes to the outputs of single rows: exact Shapley values of a product kernel.

The value of a set S of columns is the mean of f(x_S, b_others) over background rows b: columns of S are those of
the row x, the others those of b. For one center z and one b it is a product over columns c,

    v(S) = prod_{c in S} p_c prod_{c not in S} q_c,      p_c = k_c(x, z),  q_c = k_c(b, z),

whose multilinear extension is prod_c F_c(t) with F_c(t) = q_c + t (p_c - q_c), so that its Shapley values are

    phi_c = int_0^1 (p_c - q_c) prod_{e != c} F_e(t) dt

(Owen 1972, Multilinear extensions of games, Management Science 18). They sum to prod p - prod q, and those of f
are their sums over centers with the coefficients and means over b.

The integrand is a polynomial of degree C - 1, exact with ceil(C / 2) nodes of Gauss and Legendre. With cos(s) =
2 t - 1 a factor is (p + q) / 2 + (p - q) / 2 cos(s): its Fourier coefficients are, in units of max(p, q) <= 1, at
most the probabilities of a step of variance at most 1/2, so those of N factors beyond J sum to at most
2 exp(-J² / N). With n nodes all below 2 n are integrated exactly, and the error is at most 4 exp(-4 n² / N):
5e-14 with n² = 8 N.

Factors are divided: |p - q| / F(t) is at most 1 / min(t, 1 - t), however small both are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._gram.blocks import cuts
from mercer._linalg.tolerance import smallest
from mercer._types import Array, Floats, Indices
from mercer.kernels._vectors.products import FeatureProduct

# Numbers of one array of factors, for all columns of some pairs of a background row and a center: 512 KiB, and
# there are FACTOR_ARRAYS of them.
FACTOR_NUMBERS = 2**16
FACTOR_ARRAYS = 4
# Squares of numbers of nodes, for each factor, beyond which errors are rounding errors.
NODES_SQUARED = 8.0


@dataclass(frozen=True)
class Contributions:
    """What each column contributes to the outputs of some rows: ``base`` plus the sum over columns is the output.

    ``print`` shows the largest first: of one row the contributions, of several rows their mean sizes.

    Attributes
    ----------
    names : list
        Names of the columns, or their positions.
    values : ndarray of shape (n, n_columns) or (n, n_columns, q)
        The contributions to the output of each row, or to each of q outputs.
    base : float or ndarray of shape (q,)
        The mean output of the background rows.
    output : str
        What is explained.
    """

    names: Sequence[Any]
    values: Array
    base: Any
    output: str

    @property
    def outputs(self) -> Array:
        """The outputs (n,) or (n, q): base plus the sums of contributions."""
        return np.asarray(self.base + self.values.sum(axis=1))

    @property
    def sizes(self) -> Array:
        """The mean over rows of the size of the contributions, (n_columns,) or (n_columns, q)."""
        return np.asarray(np.abs(self.values).mean(axis=0))

    def __str__(self) -> str:
        sizes = self.sizes.reshape(len(self.names), -1)
        order = np.argsort(-sizes.sum(axis=1), kind="stable")
        one = len(self.values) == 1
        shown = self.values[0].reshape(sizes.shape) if one else sizes
        words = [" ".join(f"{value:+.4f}" if one else f"{value:.4f}" for value in shown[j]) for j in order]
        return "\n".join([self.output, *(f"{self.names[j]}: {each}" for j, each in zip(order, words))])


@dataclass(frozen=True)
class Background:
    """Rows (b, d) that stand for columns that are not known, with shares (b,) that sum to one."""

    rows: Array
    share: Array


def background_of(X: Array, weight: Array, most: int, rng: np.random.Generator) -> Background:
    """At most this number of rows X (u, d), drawn in proportion to their weights (u,); all of fewer."""
    share = weight / weight.sum()
    if np.count_nonzero(share) <= most:
        return Background(X[share > 0.0], share[share > 0.0])
    order = rng.permutation(len(X))
    # Systematic: equal weights are drawn without replacement.
    at = (rng.random() + np.arange(most)) / most
    place = np.searchsorted(np.cumsum(share[order]), at, side="right")
    drawn, count = np.unique(order[np.minimum(place, len(X) - 1)], return_counts=True)
    return Background(X[drawn], count / most)


def n_nodes(n_columns: int) -> int:
    """Nodes with which contributions of this number of columns are exact, up to rounding."""
    return int(max(1, min(np.ceil(n_columns / 2), np.ceil(np.sqrt(NODES_SQUARED * max(n_columns - 1, 0))))))


def contributions(
    kernel: FeatureProduct,
    centers: Any,
    coef: Floats,
    X: Any,
    background: Background,
    column: Indices,
    n_columns: int,
) -> Array:
    """Contributions (n, n_columns, q) to sum_j coef_j k(x, z_j) for rows X (n, d) and coef (m, q).

    The features (d,) belong to columns 0 to n_columns - 1. O(n b m C nodes) for b background rows and C columns
    that have a say; memory of a few blocks besides the coordinates of the rows.
    """
    carrying = coef.any(axis=1)
    U, V, Z = (kernel.coordinates(rows) for rows in (X, background.rows, centers[carrying]))
    # What is the same in all rows cannot matter.
    matters = np.any([(rows != V[0]).any(axis=0) for rows in (U, V, Z)], axis=0)
    used, place = np.unique(column[matters], return_inverse=True)
    found = np.zeros((len(U), n_columns, coef.shape[1]))
    if not len(used):
        return found
    U, V, Z, coef = U[:, matters], V[:, matters], Z[:, matters], coef[carrying]
    pairs = max(1, FACTOR_NUMBERS // max(len(used), coef.shape[1]))
    for some in cuts(len(Z), pairs):
        for rows in cuts(len(V), max(1, pairs // len(Z[some]))):
            Q = kernel.factors(V[rows], Z[some], place, len(used))
            W = (background.share[rows, None, None] * coef[some]).reshape(-1, coef.shape[1])
            for i, u in enumerate(U):
                P = kernel.factors(u[None], Z[some], place, len(used))
                found[i, used] += shapley_values(P, Q, W)
    return found


def shapley_values(P: Array, Q: Array, W: Array) -> Array:
    """sum_g W_g phi_c(g) (C, q) of games g = (b, j) with factors P (C, 1, m) and Q (C, b, m), and W (b m, q)."""
    D = P - Q
    F, ratio = np.empty_like(D), np.empty_like(D)
    found = np.zeros((len(D), W.shape[1]))
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes(len(D)))
    for t, w in zip(0.5 * (nodes + 1.0), 0.5 * weights):
        np.multiply(D, t, out=F)
        F += Q
        # Where both factors are zero, so is the product.
        np.maximum(F, smallest(np.float64), out=F)
        np.divide(D, F, out=ratio)
        found += ratio.reshape(len(D), -1) @ (w * F.prod(axis=0).reshape(-1, 1) * W)
    return found
