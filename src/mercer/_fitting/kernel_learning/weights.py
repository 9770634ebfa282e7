"""Weights of several kernels: how much each counts in their sum.

All kernels have the same variance in feature space to begin with. Weights of zero or more are learned on a sample
of the rows, by one of three rules. Each of three parts of the sample is predicted under weights learned without
it, and leave-one-out outputs of the final fit use these weights, too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from mercer._fitting.kernel_learning.evidence import (
    PARTS_OF_LEARNING,
    Gain,
    LearnedKernel,
    LearningData,
    squared_problem,
)
from mercer._fitting.selection.comparison import compare_kernels
from mercer._gram import Budget
from mercer._gram.blocks import gram
from mercer._linalg.cholesky import factor_spd
from mercer._linalg.eigen import centered, eigen_psd
from mercer._solvers.inverse_root import Projected
from mercer._types import Array, Indices
from mercer.errors import KernelError
from mercer.kernels._algebra.weighted_sum import WeightedSum
from mercer.kernels._base import Kernel
from mercer.rows._progress import progress
from mercer.rows._table import n_rows

# Rows of the sample, fewer if the kernel matrices of all kernels do not fit.
MOST_ROWS_FOR_WEIGHTS = 1000
# A kernel that varies by less, relative to its values, is constant.
CONSTANT = 1e-10
# Penalties of the sum of kernels of variance one, in units of the number of rows.
WEIGHT_PENALTIES = np.logspace(-7.0, 1.0, 13)
WEIGHT_STEPS = 30
# Powers of larger norms would overflow, and weights are nearly equal already.
MOST_NORM = 64.0
# Smaller shares are zero.
LEAST_WEIGHT_SHARE = 1e-4
# Smaller eigenvalues, relative to the largest, of products of matrices in single precision are rounding errors.
SINGLE_EIGENVALUE_ROUNDING = 1e-5
# Matrices of all rows that a step holds, besides those of the kernels, of which there are up to three copies.
MATRICES_OF_WEIGHTS = 6
COPIES_OF_KERNELS = 3
# Standard errors by which weights of another rule must be better; fewer rules are tried than rounds of relevances.
SURE_OF_WEIGHTS = 2.0


@dataclass(frozen=True)
class Weights(LearnedKernel):
    """Shares (p,) of ``kernels``, with numbers as parameters, in a sum of variance one; theirs are ``unit`` (p,).

    ``without`` are the shares learned without each part, empty if shares are equal; ``gain`` is what they gain
    against equal ones, None: it is not known.
    """

    kernel: WeightedSum
    kernels: list[Kernel]
    unit: Array
    shares: Array
    without: tuple[Array, ...] = ()
    gain: Gain | None = None

    @property
    def is_new(self) -> bool:
        return len(self.without) > 0

    @property
    def applied(self) -> Kernel:
        return self._sum(self.shares)

    def kernels_without(self, chosen: Kernel, X: Any) -> list[Kernel]:
        return [self._sum(shares) for shares in self.without]

    @property
    def words(self) -> str:
        names = [name for name, _ in self.kernel.named]
        order = np.argsort(-self.shares, kind="stable")[:5]
        listed = ", ".join(f"{names[k]} {self.shares[k]:.2g}" for k in order if self.shares[k] > 0.0)
        more = np.count_nonzero(self.shares) - len(order)
        listed += f" and {more} others" if more > 0 else ""
        change = "" if self.gain is None else f"{self.gain.words} those of equal weights"
        if not self.is_new:
            return f"weights of kernels: all equal{': at best, ' if change else ''}{change}"
        return f"weights of kernels: {listed}; {change}"

    @property
    def attributes(self) -> dict[str, Any]:
        names = [name for name, _ in self.kernel.named]
        return {"kernel_weights_": dict(zip(names, self.shares.tolist()))}

    def _sum(self, shares: Array) -> Kernel:
        return self.kernel.of(self.kernels, shares / self.unit)


def learn_weights(
    kernel: WeightedSum, data: LearningData, rng: np.random.Generator, budget: Budget, *, most: int, verbose: int
) -> Weights:
    """Weights of the kernels, learned from at most ``most`` of the rows, or from what memory allows.

    For p kernels and n <= 1000 rows: memory of 12 p n² bytes, and O(p n² + n³) for a step, of which there are
    about 30 for all rows and for each two thirds of them.
    """
    p = len(kernel.named)
    n = n_rows(data.X)
    most_rows = int((budget.n_bytes / (4.0 * COPIES_OF_KERNELS * p + 8.0 * MATRICES_OF_WEIGHTS)) ** 0.5)
    used = np.sort(rng.permutation(n)[: min(most, MOST_ROWS_FOR_WEIGHTS, max(2 * PARTS_OF_LEARNING, most_rows))])
    some = data.some(used)
    _check_semidefinite(kernel)
    kernels = [_tuned(each, some, rng, budget) for _, each in kernel.named]
    rows, unit = _Kernels.of(kernels, some, budget)
    equal, every = _equal(rows), np.full(n, -1)
    if some.too_few or kernel.rule == "equal" or not rows.K.any():
        return Weights(every, kernel, kernels, unit, equal)
    part = some.parts(rng)
    with progress("weights of kernels", None, verbose=verbose, unit="fits") as advance:
        first = _Crossed.of(_equal, rows, part)
        tried: list[tuple[_Crossed, Gain]] = []
        for rule in rules_of(kernel.rule):
            crossed = _Crossed.of(rule, rows, part)
            advance(PARTS_OF_LEARNING)
            tried.append((crossed, Gain.of(first.losses, crossed.losses, some)))
        taken, gain = max(tried, key=lambda each: _certain(each[1], kernel.rule))
        if not _certain(gain, kernel.rule)[0]:
            return Weights(every, kernel, kernels, unit, equal, gain=gain)
        shares = taken.rule(rows)
        advance(1)
    every[used] = part
    return Weights(every, kernel, kernels, unit, shares, taken.without, gain)


def _certain(gain: Gain, rule: str | float) -> tuple[bool, float]:
    """Whether weights are certainly better than equal ones, or were asked for; and by how much."""
    return rule != "auto" or gain.mean > SURE_OF_WEIGHTS * gain.error, gain.mean


def _tuned(kernel: Kernel, data: LearningData, rng: np.random.Generator, budget: Budget) -> Kernel:
    """A kernel with the parameters that are best for it alone, by the squared errors of small fits."""
    candidates = kernel.candidates(data.X, data.weight)
    if len(candidates) == 1:
        return candidates[0]
    problem = squared_problem(kernel, data, data.Y, budget)
    return compare_kernels(kernel, problem, rng, first_stage_only=True).kernel


def _check_semidefinite(kernel: WeightedSum) -> None:
    """Matrices plus alpha must have Cholesky factors."""
    for name, part in kernel.named:
        if not part.positive_semidefinite:
            raise KernelError(
                f'the kernel "{name}" of WeightedSum, {part}, may be indefinite; leave it out, or add it to the '
                "others with given weights, such as k + 0.1 * l"
            )


@dataclass(frozen=True)
class _Kernels:
    """Kernel matrices K (p, n, n) of rows with targets Y (n, q), weights (n,) and folds (n,) or None."""

    K: Any
    Y: Array
    weight: Array
    fold: Indices | None = None

    @classmethod
    def of(cls, kernels: list[Kernel], data: LearningData, budget: Budget) -> "tuple[_Kernels, Array]":
        """Matrices around the mean of the rows, in units of their variance, and these units (p,).

        Around the mean, matrices have the digits that single precision keeps; the intercept takes the rest.
        """
        n, share = len(data.Y), data.weight / data.weight.sum()
        budget.require(4.0 * len(kernels) * n * n, f"the ({n}, {n}) matrices of {len(kernels)} kernels")
        matrices, units = np.empty((len(kernels), n, n), dtype=np.float32), np.ones(len(kernels))
        for k, kernel in enumerate(kernels):
            K = np.asarray(gram(kernel, data.X, budget=budget, matrices=MATRICES_OF_WEIGHTS), dtype=np.float64)
            size = float(np.diag(K) @ share)
            K = centered(K, share)
            variance = float(np.diag(K) @ share)
            if variance > CONSTANT * size:
                units[k] = variance
            else:
                K[:] = 0.0
            matrices[k] = K / units[k]
        return cls(matrices, data.Y, data.weight, data.fold), units

    def some(self, rows: Indices) -> "_Kernels":
        fold = None if self.fold is None else self.fold[rows]
        return _Kernels(self.K[:, rows[:, None], rows], self.Y[rows], self.weight[rows], fold)

    def sum(self, shares: Array) -> Array:
        """sum_k shares_k K_k (n, n)."""
        return np.tensordot(shares.astype(np.float32), self.K, 1).astype(np.float64)

    def products(self, W: Array) -> Array:
        """<W, K_k> (p,) for a matrix W (n, n)."""
        return np.tensordot(self.K, W.astype(np.float32), 2).astype(np.float64)

    def inverse(self, shares: Array, alpha: float) -> tuple[Array, Array]:
        """P = (H S K S H + alpha)^-1 on the complement of the intercept (n, n), S roots of weights; and PSY."""
        U = Projected.of(self.sum(shares), self.weight).root(alpha).vectors
        SY = np.sqrt(self.weight)[:, None] * self.Y
        return U @ U.T, U @ (U.T @ SY)

    def solved(self, P: Array, B: Array) -> Array:
        """P_FF^-1 B_F for every fold F of rows, or for single rows, B (n, q)."""
        if self.fold is None:
            return B / np.diag(P)[:, None]
        found = np.empty_like(B)
        for f in np.unique(self.fold):
            rows = np.flatnonzero(self.fold == f)
            found[rows] = factor_spd(P[np.ix_(rows, rows)]).solve(B[rows])
        return found

    def press(self, shares: Array, alpha: float) -> float:
        """The weighted sum of squared residuals of rows held out, together with their fold."""
        return float(np.sum(self.solved(*self.inverse(shares, alpha)) ** 2))

    def alpha(self, shares: Array) -> float:
        """The penalty with the least PRESS."""
        alphas = WEIGHT_PENALTIES * len(self.Y)
        return float(min(alphas, key=lambda alpha: self.press(shares, alpha)))

    def losses(self, shares: Array, used: Indices, new: Indices) -> Array:
        """Squared errors (b,) of new rows for the fit to those that are used."""
        fitted = self.some(used)
        _, C = fitted.inverse(shares, fitted.alpha(shares))
        coef = np.sqrt(fitted.weight)[:, None] * C
        share = fitted.weight / fitted.weight.sum()
        intercept = share @ (fitted.Y - fitted.sum(shares) @ coef)
        across = np.tensordot(shares.astype(np.float32), self.K[:, new[:, None], used], 1)
        losses: Array = ((self.Y[new] - across @ coef - intercept) ** 2).sum(axis=1)
        return losses


Weigh = Callable[[_Kernels], Array]


def rules_of(rule: str | float) -> list[Weigh]:
    """From kernels of variance one to shares (p,) that sum to one: the rules that are tried."""
    rules: dict[str | float, list[Weigh]] = {
        "auto": [_by_alignment, _by_press],
        "loo": [_by_press],
        "alignment": [_by_alignment],
    }
    return rules[rule] if rule in rules else [lambda rows: _by_norm(rows, float(rule))]


@dataclass(frozen=True)
class _Crossed:
    """A rule, the shares it learns without each part of the rows, and the losses (n,) of the parts under these."""

    rule: Weigh
    without: tuple[Array, ...]
    losses: Array

    @classmethod
    def of(cls, rule: Weigh, rows: _Kernels, part: Indices) -> "_Crossed":
        losses, without = np.empty(len(part)), []
        for f in range(PARTS_OF_LEARNING):
            others, own = np.flatnonzero(part != f), np.flatnonzero(part == f)
            without.append(rule(rows.some(others)))
            losses[own] = rows.losses(without[-1], others, own)
        return cls(rule, tuple(without), losses)


def _equal(rows: _Kernels) -> Array:
    """The same share for all kernels that are not constant."""
    varies = np.array([K.any() for K in rows.K], dtype=np.float64)
    return _normalized(varies)


def _normalized(shares: Array) -> Array:
    """Shares (p,) that sum to one, without the smallest."""
    if not shares.any():
        return np.full(len(shares), 1.0 / len(shares))
    shares = np.where(shares < LEAST_WEIGHT_SHARE * shares.sum(), 0.0, shares)
    scaled: Array = shares / shares.sum()
    return scaled


def _by_press(rows: _Kernels) -> Array:
    """The least PRESS over weights of zero or more, whose scale takes the place of alpha."""
    start = np.ones(len(rows.K))
    unit = _equal(rows) / rows.alpha(_equal(rows)) * len(rows.Y)

    def value(factors: Array) -> tuple[float, Array]:
        press, slope = _press_and_slope(rows, unit * factors)
        return press, slope * unit

    # Beyond, single precision cannot tell the sum from an indefinite matrix; constant kernels stay at zero.
    most = np.divide(1.0, WEIGHT_PENALTIES[0] * unit, out=np.zeros(len(unit)), where=unit > 0.0)
    return _normalized(_minimized(value, np.minimum(start, most), most))


def _press_and_slope(rows: _Kernels, shares: Array) -> tuple[float, Array]:
    """PRESS with alpha = n, in units of that of no fit at all, and its derivatives with respect to shares (p,).

    With P the inverse and C = PSY, residuals of a fold F are R_F = P_FF^-1 C_F; dP = -P dK P gives the derivative
    with respect to the matrix, PBP - PU C' with U_F = 2 P_FF^-1 R_F and B made of the blocks U_F R_F'.
    """
    P, C = rows.inverse(shares, float(len(rows.Y)))
    s = np.sqrt(rows.weight)
    R = rows.solved(P, C)
    U = 2.0 * rows.solved(P, R)
    if rows.fold is None:
        PB = P * (U * R).sum(axis=1)
    else:
        PB = P @ np.where(rows.fold[:, None] == rows.fold, U @ R.T, 0.0)
    W = PB @ P - (P @ U) @ C.T
    unit = float((rows.weight[:, None] * (rows.Y - np.average(rows.Y, axis=0, weights=rows.weight)) ** 2).sum())
    unit = unit or 1.0
    return float(np.sum(R**2)) / unit, rows.products(s[:, None] * W * s) / unit


def _by_alignment(rows: _Kernels) -> Array:
    """min v'Mv - 2 a'v over v >= 0, with M_kl = <K_k, K_l> and a_k = <K_k, YY'> of centered matrices."""
    share = rows.weight / rows.weight.sum()
    s = np.sqrt(share)[:, None]
    flat = np.empty((len(rows.K), rows.K[0].size), dtype=np.float32)
    for K, one in zip(rows.K, flat):
        one[:] = (s * centered(K, share) * s.T).ravel()
    SY = s * (rows.Y - share @ rows.Y)
    a = (flat @ (SY @ SY.T).ravel().astype(np.float32)).astype(np.float64)
    # The root of M, in the directions that single precision knows.
    M = eigen_psd((flat @ flat.T).astype(np.float64), noise=float(np.finfo(np.float32).eps) * len(rows.Y))
    known = M.values > SINGLE_EIGENVALUE_ROUNDING * M.values[-1]
    root, V = np.sqrt(M.values[known]), M.vectors[:, known]
    return _normalized(scipy.optimize.nnls(root[:, None] * V.T, (V.T @ a) / root)[0])


def _by_norm(rows: _Kernels, p: float) -> Array:
    """min over v >= 0 of Y'(sum_k v_k K_k + alpha)^-1 Y + l sum_k v_k^p, which is convex and for p = 1 sparse.

    v is in units of equal weights, alpha the best one of these, and l such that their scale is right.
    """
    equal = _equal(rows)
    alpha, s = rows.alpha(equal), np.sqrt(rows.weight)[:, None]

    def fitted(shares: Array) -> tuple[float, Array]:
        """Y'(...)^-1 Y and minus its derivatives (p,)."""
        _, C = rows.inverse(shares, alpha)
        return float(np.sum(s * rows.Y * C)), rows.products((s * C) @ (s * C).T)

    p = min(p, MOST_NORM)
    unit = float(equal @ fitted(equal)[1]) / (p * len(equal))

    def value(factors: Array) -> tuple[float, Array]:
        objective, slope = fitted(equal * factors)
        total = objective + unit * float(np.sum(factors**p))
        return total, p * unit * factors ** (p - 1.0) - equal * slope

    varies = (equal > 0.0).astype(np.float64)
    return _normalized(_minimized(value, varies, np.where(varies > 0.0, np.inf, 0.0)))


def _minimized(value: Callable[[Array], tuple[float, Array]], start: Array, most: Array) -> Array:
    """Where a function with its gradient is least, from ``start`` (p,), between zero and ``most`` (p,)."""
    bounds = list(zip(np.zeros(len(start)), most))
    found = scipy.optimize.minimize(
        value,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": WEIGHT_STEPS, "maxfun": 2 * WEIGHT_STEPS},
    )
    best: Array = found.x
    return best
