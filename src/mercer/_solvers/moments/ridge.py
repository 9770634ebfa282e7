r"""Penalized least squares with m centers from moments, for every penalty, with leave-one-out.

The problem, over coefficients c (m) and a free intercept b:

    min  sum_i w_i (y_i - k_i'c - b)²  +  alpha c'Kc,      K = k(centers, centers)

has the normal equations (G + alpha K) c = C with the centered moments G and C (Mika 2002, Eq. 3.57 and
section 3.5.1). A pivoted Cholesky factor K = R'R drops centers in the span of others, c = R^-1 a turns the penalty
into a'a, and one eigendecomposition of R'^-1 G R^-1 gives the solution for every alpha, and with one more pass the
leave-one-out output of every row, whose leverage is w (1/n + sum_j phi_j² / (lambda_j + alpha)), phi = B'(k -
mean). For one alpha, a Cholesky factor of R'^-1 G R^-1 + alpha does the same in a third of the time, where it is
certain that no direction would be dropped.

Precision. If G is summed from products in float32, its rounding errors, amplified by one over the eigenvalues of
K, may make the matrix indefinite, and (lambda + alpha)^-1 silently blows up; ``mercer._gram.precision`` checks for
this before the pass. Products in float64 of kernel values in float32 keep G a Gram matrix, of slightly different
features: then it cannot happen. MNIST (gamma 0.02, inputs / 255, centered), test errors in % for alpha = 1e-8,
1e-4, 1e-2, 0.1, 1, 10, and CPU seconds of the pass:

    m      values   products                                             seconds
    2000   float64  float64    2.77   2.77   2.78   2.83   3.18   4.53      8.8
    2000   float32  float64    2.77   2.77   2.78   2.83   3.18   4.53      7.4    the choice: eta = 2.4
    2000   float32  float32    2.78   2.78   2.78   2.82   3.19   4.53      4.5
    6000   float32  float64    1.92   1.92   1.91   2.04   2.42   3.91       54    the choice: eta = 19
    6000   float32  float32   15.78  32.98   5.89   3.80   2.42   3.91       31    G indefinite; by LDL'

Sums of kernel values square the condition number of K. Centers that depend on others to half of the digits are
dropped, since they amplify the errors of G, and so are directions b whose eigenvalue b'Gb is below its own
rounding error: there B'C is also a rounding error, and would be divided by alpha. Three inputs, 300 centers,
float64 and alpha = 1e-12 of the trace: the error of the fit is 657 with these directions and 0.04 without. In such
cases models sum coordinates (``mercer._gram.coordinates``): R'^-1 G R^-1 from the start.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._gram.moments import Moments
from mercer._gram.precision import DEPENDENT_CENTERS
from mercer._linalg import eigen_psd
from mercer._linalg.lapack import PANEL_ROWS, cholesky_upper, inverse_upper, multiply, solve_triangular
from mercer._linalg.rank import (
    RankFactor,
    in_coordinates,
    norms_upper,
    product_upper,
    rank_factor,
    square_upper,
    times_upper,
)
from mercer._linalg.threads import map_in_threads
from mercer._linalg.tolerance import rounding_unit
from mercer._solvers.moments.orbits import Orbit
from mercer._solvers.spectrum import Eigenvalues
from mercer._types import Array, Floats, Indices

# Eigenvalues of this many rounding errors are dropped: with 1 to 10 no fit blows up, with 100 some lose accuracy.
EIGENVALUE_UNIT = rounding_unit(np.float64, 4.0)
# Leave-one-out uses float32 if at most this share of a coordinate is rounding: outputs are 0.1 % off, at worst 1
# %.
MOST_NOISE = 0.1
# Random vectors for the unit of alpha, which only bounds a search: its relative error is at most sqrt(2 / 64).
TRACE_VECTORS = 64
# One alpha is solved for by a Cholesky factor if errors of the sums change the fit by at most this share.
MOST_ROUNDING = 1e-6


@dataclass(frozen=True)
class MomentSpectrum(Eigenvalues):
    """Basis B (m, r) in which G + alpha K is diagonal, with the moments in that basis.

    ``values`` (r,) are b'Gb, ``norms`` (r,) b'Kb: eigenvalues and ones for every alpha; for a single alpha those
    of a B that is ``triangular``, if no center was dropped. ``kept`` are the centers that carry the function;
    ``negative`` is the most negative eigenvalue beyond its rounding error, in units of the largest: 0 proves that
    G was a Gram matrix. ``mean`` (r,) is that of B'k, ``kernel_square`` (m,) are the means of k(., z_j)². Without
    an intercept the other means are zero. ``rounding`` (r,) are errors of the values, ``lost`` those of directions
    dropped from B, ``penalty`` (r,) those of b'Kb.
    """

    values: Array
    norms: Array
    basis: Array
    projected: Array
    mean: Array
    kernel_square: Array
    target_mean: Array
    rounding: Array
    lost: Array
    penalty: Array
    n: float
    kept: Indices
    negative: float
    intercept: bool
    triangular: bool

    @property
    def rank(self) -> int:
        """Number of directions r in which the moments exceed rounding errors."""
        return len(self.values)

    def solve(self, alpha: float) -> tuple[Array, Array]:
        """coef (m, q), zero for centers that were dropped, and intercept (q,)."""
        slopes = self.projected / self.total(alpha)[:, None]
        return self.basis @ slopes, self.target_mean - self.mean @ slopes

    def degrees_of_freedom(self, alphas: Array) -> Array:
        """Traces (a,) of the smoothers, with one for the intercept."""
        shares = self.values[:, None] / self.total(alphas)
        return np.asarray(shares.sum(axis=0) + float(self.intercept))

    def noise(self, alphas: Array, dtype: Any = np.float32) -> float:
        """Share of phi'a / sqrt(lambda + alpha) that is rounding if K B is computed in this type; worst of r.

        An entry of K B is off by about eps |(k_l b_l)_l|, while the n rows have the mean square lambda / n.
        """
        variance = rounding_unit(dtype) ** 2 * self._spread
        return float(np.sqrt((self.n * variance / self.total(np.min(alphas))).max(initial=0.0)))

    def error(self, alpha: float, dtype: Any = np.float64) -> float:
        """Bound on the error of outputs in units of their spread; kernel values in this type.

        That of a leave-one-out output with leverage h is 1 / (1 - h) times as large.
        Errors E of the sums change quadratic forms by at most sum_j E_jj / (lambda_j + alpha), see
        :mod:`mercer._gram.precision`; those of kernel values change coordinates, those of K the penalty.
        """
        total = self.total(alpha)
        sums = (self.rounding / total).sum() + (self.lost / (self.lost + alpha)).sum()
        penalty = (self.penalty * alpha * self.values / total**2).max(initial=0.0)
        return float(sums + 2.0 * self.noise(np.array([alpha]), dtype) + penalty)

    def loo_map(self, alphas: Array, dtype: Any = np.float64) -> "LooMap":
        """The map to leave-one-out outputs, prepared for many blocks of rows."""
        inverse = 1.0 / self.total(alphas)
        slopes = inverse[:, :, None] * self.projected[:, None, :]
        return LooMap(
            basis=self.basis.astype(dtype, copy=False),
            shift=self.mean.astype(dtype),
            inverse=inverse.astype(dtype),
            slopes=slopes.reshape(len(slopes), inverse.shape[1] * len(self.target_mean)).astype(dtype),
            target_mean=self.target_mean.astype(dtype),
            constant=1.0 / self.n if self.intercept else 0.0,
            triangular=self.triangular,
        )

    @cached_property
    def _spread(self) -> Array:
        """Means (r,) of |(k_l b_l)_l|² over the rows."""
        return self.kernel_square @ self.basis**2

    def total(self, alphas: Any) -> Array:
        """b'(G + alpha K)b (r,) for one alpha, (r, a) for several."""
        penalties: Array = np.multiply.outer(self.norms, alphas)
        return penalties + (self.values if np.ndim(alphas) == 0 else self.values[:, None])


@dataclass(frozen=True)
class LooMap:
    """The map from kernel rows (b, m) to the outputs of the models without these rows, for a alphas.

    With phi = B'k - shift the fitted outputs are phi'slopes and the leverages of a unit of weight
    constant + phi²'inverse: three products for all alphas and targets, in the precision of the basis.
    """

    basis: Floats
    shift: Floats
    inverse: Floats
    slopes: Floats
    target_mean: Floats
    constant: float
    triangular: bool

    def __call__(self, K: Floats, Y: Array, unit: Array) -> Floats:
        """Outputs (a, b, q) at targets Y (b, q) if ``unit`` (b,) of each row's weight is held out; 0: fitted.

        f_(-i)(x_i) = y_i - (y_i - f(x_i)) / (1 - u_i h_i), from the rank-one downdate of the normal
        equations by u_i, whatever weight of the row remains. O(b m r) and one (b, r) matrix.
        """
        dtype = self.basis.dtype
        phi = self._product(np.asarray(K, dtype=dtype))
        phi -= self.shift
        residual = (phi @ self.slopes).reshape(len(phi), self.inverse.shape[1], Y.shape[1])
        residual += self.target_mean
        targets = Y.astype(dtype)[:, None, :]
        np.subtract(targets, residual, out=residual)
        phi *= phi
        stays = phi @ self.inverse
        stays += self.constant
        stays *= -unit[:, None].astype(dtype)
        stays += 1.0
        # A row that alone determines a direction: its leverage is 1 up to rounding.
        np.maximum(stays, rounding_unit(dtype), out=stays)
        residual /= stays[:, :, None]
        return np.ascontiguousarray(np.subtract(targets, residual, out=residual).transpose(1, 0, 2))

    def together(self, K: Floats, Y: Array, unit: Array, orbit: Orbit) -> Floats:
        """Outputs (a, f, q) of the rows of f orbits, with kernel rows K (f size, m), if each leaves as a whole.

        O(f size m r + a f size² r).
        """
        phi, H = self._orbits(K, orbit)
        (f, size), q = phi.shape[:2], Y.shape[1]
        counts = orbit.counts[:, :, None]
        fitted = (phi.reshape(f * size, -1) @ self.slopes).reshape(f, size, -1, q)
        residual = counts * (Y.reshape(f, size, 1, q) - self.target_mean) - fitted
        outputs = np.empty((residual.shape[2], f, q), dtype=phi.dtype)
        for i, own in enumerate(H):
            e = residual[:, :, i]
            moved = e[:, 0] + np.einsum("fs,fsq->fq", orbit.pull(own, unit.reshape(f, size)), e)
            outputs[i] = Y[::size] - moved
        return outputs

    def influence(self, K: Floats, weight: Array, orbit: Orbit) -> Array:
        """df(x)/dy (a, f) for rows of f orbits with weights (f size,): what each target moves its own output."""
        phi, H = self._orbits(K, orbit)
        w = weight.reshape(phi.shape[:2]) * orbit.counts[:, 0]
        return np.array([np.einsum("fs,fs->f", own[:, 0], w) for own in H])

    def _orbits(self, K: Floats, orbit: Orbit) -> tuple[Floats, Iterator[Floats]]:
        """Features (f, size, r), and for every alpha the leverages (f, size, size) of a unit of weight."""
        phi = orbit.features(self._product(np.asarray(K, dtype=self.basis.dtype)), self.shift)
        constant = self.constant * (orbit.counts @ orbit.counts.T)
        return phi, ((phi * inverse) @ phi.transpose(0, 2, 1) + constant for inverse in self.inverse.T)

    def _product(self, K: Floats) -> Floats:
        """K B (b, r)."""
        return times_upper(K, self.basis) if self.triangular else K @ self.basis


def decompose_moments(
    moments: Moments, K: Floats | RankFactor | None, *, intercept: bool = True, alpha: float | None = None
) -> MomentSpectrum:
    """The spectrum for the penalty c'Kc, K (m, m) of the centers or its factor, or c'c if K is None.

    O(m³) once for every alpha and target, or, a third of it, for one ``alpha``. Without an intercept nothing is
    centered. Moments with coordinates already include the penalty c'Kc, and K is ignored.
    """
    return MomentProblem(moments, K, intercept).spectrum(alpha)


@dataclass(frozen=True)
class MomentProblem:
    """Moments and K as in :func:`decompose_moments`, with what is the same for all alphas computed once."""

    moments: Moments
    K: Floats | RankFactor | None
    intercept: bool = True
    # The largest share by which errors of the sums may change a fit by a Cholesky factor.
    rounding: float = MOST_ROUNDING

    def spectrum(self, alpha: float | None = None) -> MomentSpectrum:
        """For every alpha, or for one."""
        found = None if alpha is None else self.factored(alpha)
        if found is None:
            found = self._spectrum(_for_every_alpha(self._centered[0], self._penalty, self._diagonal))
        return found

    def _spectrum(self, found: "_Directions") -> MomentSpectrum:
        penalty, used, C = self._penalty, self._used, self._centered[1]
        certain = found.certain
        basis = found.basis if certain.all() else found.basis[:, certain]
        of_values, mean = _of_kernel_values(self.moments, penalty.kept, basis, found.triangular)
        return MomentSpectrum(
            values=found.values[certain],
            norms=found.norms[certain],
            basis=of_values,
            projected=basis.T @ C,
            mean=mean + (used.s[penalty.kept] / used.n) @ basis,
            kernel_square=self._kernel_square,
            target_mean=used.t / used.n,
            rounding=found.error[certain],
            lost=found.error[~certain],
            penalty=EIGENVALUE_UNIT * (penalty.diagonal @ of_values[penalty.kept] ** 2),
            n=used.n,
            kept=penalty.kept,
            negative=found.negative,
            intercept=self.intercept,
            triangular=found.triangular and np.array_equal(penalty.kept, np.arange(len(used.s))),
        )

    def factored(self, alpha: float) -> MomentSpectrum | None:
        """For one alpha by a Cholesky factor; None if it does not have enough digits."""
        found = _for_one_alpha(self._centered[0], alpha, self._penalty, self._diagonal, self.rounding)
        return None if found is None else self._spectrum(found)

    @cached_property
    def scale(self) -> float:
        """About the sum of the eigenvalues, the unit of alpha, from random vectors; O(m²)."""
        G, R = self._centered[0], self._penalty.R
        if R is None:
            return float(np.trace(G))
        a = solve_triangular(R, np.random.default_rng(0).choice([-1.0, 1.0], size=(len(R), TRACE_VECTORS)))
        return max(float(np.einsum("ij,ij->", a, G @ a)) / TRACE_VECTORS, 0.0)

    @cached_property
    def _penalty(self) -> "_Penalty":
        """The part of the penalty that the sums do not include yet."""
        K, where, every = self.K, self.moments.coordinates, np.arange(len(self.moments.s))
        if where is not None:
            return _Penalty(None, every, where.kernel_diagonal)
        if K is None:
            return _Penalty(None, every, np.zeros(len(every)))
        if not isinstance(K, RankFactor):
            K = rank_factor(np.asarray(K, dtype=np.float64), tolerance=DEPENDENT_CENTERS)
        return _Penalty(K.R, K.kept, (K.R**2).sum(axis=0))

    @cached_property
    def _used(self) -> Moments:
        return self.moments if self.intercept else self.moments.without_means()

    @cached_property
    def _centered(self) -> tuple[Array, Array]:
        """G (r, r) and C (r, q) of the centers kept."""
        G, C, _ = self._used.restricted(self._penalty.kept).centered()
        return G, C

    @cached_property
    def _diagonal(self) -> Array:
        """That of G before centering (r,)."""
        return self.moments.G.diagonal()[self._penalty.kept]

    @cached_property
    def _kernel_square(self) -> Array:
        """Means (m,) of k(., z_j)²."""
        moments, where = self.moments, self.moments.coordinates
        sums = moments.G.diagonal() if where is None else where.kernel_square(moments.n, moments.s, moments.G)
        return np.asarray(sums / moments.n)


@dataclass(frozen=True)
class _Directions:
    """A basis (r, p) with b'Gb (p,), b'Kb (p,), the errors (p,) of b'Gb, and which (p,) exceed them."""

    basis: Array
    values: Array
    norms: Array
    error: Array
    certain: NDArray[np.bool_]
    negative: float
    triangular: bool


def _for_every_alpha(G: Array, penalty: "_Penalty", diagonal: Array) -> _Directions:
    """Directions from the eigenvectors of R'^-1 G R^-1; ``diagonal`` (r,) of G before centering."""
    eigen = eigen_psd(penalty.in_coordinates(G))
    basis = penalty.basis(eigen.vectors)
    error = _rounding(basis, diagonal)
    negative = 0.0 if _nonnegative(basis, G, error) else eigen.negative
    return _Directions(basis, eigen.values, np.ones(len(basis)), error, eigen.values > error, negative, False)


def _for_one_alpha(
    G: Array, alpha: float, penalty: "_Penalty", diagonal: Array, rounding: float
) -> _Directions | None:
    """Directions U^-1, G + alpha K = U'U, or None if it is not certain that eigenvectors would all be kept.

    The errors e_j of the eigenvectors, with eigenvalues lambda_j, have the sum S of e_j / (lambda_j + alpha), the
    same in every basis. So e_j <= S (lambda_j + alpha), and all lambda_j exceed their e_j if the least one exceeds
    alpha S / (1 - S): if G - 2 alpha S K has a Cholesky factor, too, or the same with ``rounding``, the
    bound on S, in its place.
    """
    # Both column-major, as LAPACK takes them, which reads only their upper triangles.
    G, K = G.T, penalty.upper()
    U = G + alpha * K
    K *= -2.0 * alpha * rounding
    K += G
    # Large factors use all threads themselves.
    if any(map_in_threads(cholesky_upper, [U, K], most=None if len(U) <= PANEL_ROWS else 1)):
        return None
    del K
    basis = inverse_upper(U)
    del U
    error = _rounding(basis, diagonal)
    if not error.sum() <= rounding:
        return None
    norms = penalty.squares(basis)
    values = np.maximum(1.0 - alpha * norms, 0.0)
    return _Directions(basis, values, norms, error, np.ones(len(basis), dtype=bool), 0.0, True)


def _rounding(basis: Array, diagonal: Array) -> Array:
    """Errors (p,) of b'Gb, which centering does not reduce."""
    return np.asarray(EIGENVALUE_UNIT * (diagonal @ basis**2))


@dataclass(frozen=True)
class _Penalty:
    """c'Kc = |R c|² of the centers ``kept`` (r,), R None: the identity; ``diagonal`` (r,) of the kernel matrix."""

    R: Array | None
    kept: Indices
    diagonal: Array

    def upper(self) -> Array:
        """The upper triangle of K (r, r), column-major."""
        return np.eye(len(self.kept), order="F") if self.R is None else square_upper(self.R)

    def squares(self, basis: Array) -> Array:
        """b'Kb (r,) for upper triangular B (r, r)."""
        return norms_upper(basis) if self.R is None else norms_upper(self.R, basis)

    def in_coordinates(self, G: Array) -> Array:
        """R'^-1 G R^-1, as a copy."""
        return np.array(G, order="F") if self.R is None else in_coordinates(self.R, G)

    def basis(self, vectors: Array) -> Array:
        """R^-1 V."""
        if self.R is None:
            return vectors
        return solve_triangular(self.R, vectors)


def _of_kernel_values(moments: Moments, kept: Indices, basis: Array, triangular: bool) -> tuple[Array, Array]:
    """The basis (m, r) for kernel rows k, zero for centers not kept, and its coordinates (r,) of the origin."""
    where = moments.coordinates
    if where is not None:
        full = product_upper(where.inverse, basis) if triangular else multiply(where.inverse, basis)
        return full, where.origin @ full
    if not np.array_equal(kept, np.arange(len(moments.s))):
        full = np.zeros((len(moments.s), basis.shape[1]))
        full[kept] = basis
        basis = full
    return basis, np.zeros(basis.shape[1])


def _nonnegative(basis: Array, G: Array, error: Array) -> bool:
    """Whether b'Gb may be zero for the first direction b, that of the smallest eigenvalue."""
    b = basis[:, :1]
    return bool((b.T @ G @ b >= -10.0 * error[:1]).all())
