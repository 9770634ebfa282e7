r"""Exact leave-one-out of losses made of lines and parabolas: the path of the fit as a row is taken out.

    min over v, b   sum_i w_i loss(y_i, f_i) + ridge / 2 |v|²,    f = Phi v + b,    v = Phi'beta / ridge

Here beta_j is a decreasing function of f_j that consists of flat and sloped segments (vertical at kinks). Let a
row leave, and a force act in its place that shrinks from its beta to zero: the solution moves on a straight line
until a row comes to the end of its segment (Cauwenberghs and Poggio 2001; Hastie et al. 2004). With K = Phi Phi' /
ridge and the sloped rows S, for which f_j + d_j beta_j is constant, the matrix

    [ 0       1'      ]
    [ 1   K_SS + D_S  ]

is inverted once for all rows that leave; rows J whose segment is not that of the fit to all need a system of |J|
equations. So a path costs O(|J|³ + n |J|) for each of its bends, after O(n² m + n² |S|) for all, with memory of
3 n². Paths have at most MOST_BENDS bends each and MEAN_BENDS on average, those with the most to go first; beyond
that they go straight on, which is not exact. At its end every path is checked: f = K beta + b, 1'beta = 0.

If the fit is known with arcs in place of kinks, its segments are moved to the kinks in the same way. Where the
constant is not unique, that in the middle counts (``intercepts``).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer._solvers.programs.losses import Kinks
from mercer._solvers.programs.nonsmooth.intercepts import to_middle
from mercer._solvers.programs.program import Program, Solution
from mercer._types import Array, Indices

# The most bends of the path of a row, and on average over all rows; from there on it is taken to be straight.
MOST_BENDS, MEAN_BENDS = 500, 20
# This number of turns for each row ends the way from arcs to kinks.
MOST_TURNS = 10
# Kinks are arcs of this share of the mean diagonal of K, and the intercept has a penalty of this share of its
# inverse, so that every matrix has an inverse.
TINY_BEND, TINY_PENALTY = 1e-9, 1e-9
# The end of a path is a solution if what f and beta miss of their equations is below this share of f and beta.
PATH_TOLERANCE = 1e-6
# Ends of paths that are checked together.
ENDS_AT_ONCE = 256


@dataclass(frozen=True)
class _Segments:
    """beta as a function of f for each row: flat at w up, sloped to zero, flat at zero, sloped, flat at -w down.

    ``low`` and ``high`` (5, n) are the ends of these, of f where they are flat, of beta where they slope;
    ``edges`` (4, n) are the ends of all in f; some are ``empty`` (5, n).
    """

    low: Array
    high: Array
    edges: Array
    empty: Array

    @classmethod
    def of(cls, form: Kinks, weight: Array, bend: Array) -> "_Segments":
        """For arcs of length ``bend`` (n,)."""
        before, after = form.target - form.epsilon, form.target + form.epsilon
        first, last = before - bend * form.up, after + bend * form.down
        top, zero, bottom = weight * form.up, np.zeros_like(before), -weight * form.down
        infinite, never = np.full_like(before, np.inf), np.zeros(len(before), dtype=bool)
        return cls(
            low=np.stack([-infinite, zero, before, bottom, last]),
            high=np.stack([first, top, after, zero, infinite]),
            edges=np.stack([first, before, after, last]),
            empty=np.stack([never, form.up == 0.0, never | (form.epsilon == 0.0), form.down == 0.0, never]),
        )

    def at(self, f: Array) -> Indices:
        """The segment (n,) of every row by its f (n,)."""
        return np.asarray((f >= self.edges).sum(axis=0))

    def after(self, j: int, segment: int, way: int) -> int:
        """The next segment of row j that is not empty, up or down in f."""
        segment += way
        while self.empty[segment, j]:
            segment += way
        return segment


@dataclass(frozen=True)
class FullFit:
    """The fit to all rows of a loss of some form and weights (n,): segments (n,), beta and f (n,), d (n,), and how
    both answer to changes (n, n).

    Column j of ``answer`` is the change of f of rows on flat segments, and of beta of the others, if beta_j
    changes by one (j on a flat segment), or f_j + d_j beta_j (on a sloped one).
    """

    form: Kinks
    weight: Array
    segments: _Segments
    segment: Indices
    beta: Array
    f: Array
    d: Array
    K: Array
    border: float | None
    answer: Array

    @cached_property
    def slopes(self) -> NDArray[np.bool_]:
        """Which rows (n,) are on sloped segments."""
        return np.asarray(self.segment % 2 == 1)

    @cached_property
    def columns(self) -> Array:
        """The columns of ``answer``, as rows that are contiguous."""
        return np.ascontiguousarray(self.answer.T)

    @classmethod
    def of(cls, program: Program, form: Kinks, found: Solution, bend: float) -> "FullFit":
        """From a solution with arcs of length ``bend`` in place of those of the form, or of its kinks."""
        K = program.Phi @ program.Phi.T / program.ridge
        size = float(K.trace()) / len(K) or 1.0
        arcs = np.maximum(form.bend, TINY_BEND * size * program.weight)
        f = program.outputs(found.coef, found.intercept)
        segments, d = _Segments.of(form, program.weight, arcs), arcs / program.weight
        segment = _Segments.of(form, program.weight, np.maximum(bend, arcs)).at(f)
        border = TINY_PENALTY / size if program.has_intercept else None
        answer = _answer(K, d, segment % 2 == 1, border)
        fit = cls(form, program.weight, segments, segment, found.beta, f, d, K, border, answer)
        fit = fit if bend == form.bend else fit._with_kinks(np.maximum(bend, arcs) / program.weight)
        return fit._refined()

    def _with_kinks(self, d: Array) -> "FullFit":
        """The fit with shorter arcs than those in d (n,)."""
        # Shorter arcs are like the long ones moved by so much of f; now they are moved back.
        path = _Path.of(self, _Drive(-1, 0.0, 0.0, (d - self.d) * self.beta))
        path.follow(1.0, MOST_TURNS * len(d))
        answer = _answer(self.K, self.d, path.segment % 2 == 1, self.border)
        return replace(self, segment=path.segment, beta=path.beta, f=path.f, answer=answer)

    def _refined(self) -> "FullFit":
        """The fit whose sloped rows solve their equations: beta as a difference of y and f would lose digits."""
        if not self.slopes.any():
            return self
        kink = np.where(self.segment == 1, self.segments.edges[1], self.segments.edges[2])
        x = np.where(self.slopes, kink, self.beta)
        beta = np.where(self.slopes, self.answer @ x, x)
        return replace(self, beta=beta, f=np.where(self.slopes, kink - self.d * beta, self.f))

    def outputs_without(self, share: Array, rows: Indices) -> tuple[Array, NDArray[np.bool_]]:
        """Outputs (r,) of some rows, each without a share (n,) of its weight, and whether they are exact (r,).

        They are, but for paths with too many bends, those with little to go, and where K plus d is singular.
        """
        outputs, exact = np.empty(len(rows)), np.zeros(len(rows), dtype=bool)
        far, left = np.abs(share * self.beta * self.K.diagonal())[rows], MEAN_BENDS * len(self.f)
        for places in np.array_split(np.argsort(-far, kind="stable"), -(-len(rows) // ENDS_AT_ONCE)):
            F, beta = np.empty((2, len(places), len(self.f)))
            for end, place in enumerate(places.tolist()):
                i = int(rows[place])
                path = self._path(i, float(share[i]))
                bends, exact[place] = path.follow(abs(share[i] * self.beta[i]), min(left, MOST_BENDS))
                left, F[end], beta[end] = left - bends, path.f, path.beta
                outputs[place] = path.f[i] + self._to_middle(path.f, share, i)
            exact[places] &= self._solves(F, beta)
        return outputs, exact

    def _path(self, i: int, share: float) -> "_Path":
        """The path of row i, at its beginning."""
        return _Path.of(self, _Drive(i, share, -float(np.sign(share * self.beta[i])), np.zeros(len(self.f))))

    def _solves(self, F: Array, beta: Array) -> NDArray[np.bool_]:
        """Whether outputs and beta (r, n) solve their equations."""
        missing = F - beta @ self.K
        if self.border is not None:
            missing -= missing.mean(axis=1, keepdims=True)
        size = np.abs(F - F.mean(axis=1, keepdims=True)).max(axis=1)
        solves = np.abs(missing).max(axis=1) <= PATH_TOLERANCE * size + 1e-9 * np.abs(F).max(axis=1)
        if self.border is not None:
            solves &= np.abs(beta.sum(axis=1)) <= PATH_TOLERANCE * np.abs(beta).sum(axis=1)
        return np.asarray(solves)

    def _to_middle(self, f: Array, share: Array, i: int) -> float:
        """By how much outputs f (n,) without row i are below those with the constant in the middle."""
        if self.border is None or self.form.bend > 0.0:
            return 0.0
        weight = self.weight.copy()
        weight[i] *= 1.0 - share[i]
        return to_middle(self.form, weight, f)


def _answer(K: Array, d: Array, slopes: NDArray[np.bool_], border: float | None) -> Array:
    """Answers (n, n) to changes, by pivots on the sloped rows and the intercept, whose penalty is the border."""
    flat, answer = ~slopes, np.empty_like(K)
    A, across = K[np.ix_(slopes, slopes)], K[np.ix_(slopes, flat)]
    A[np.diag_indices_from(A)] += d[slopes]
    if border is not None:
        A = np.pad(A, ((1, 0), (1, 0)), constant_values=1.0)
        A[0, 0] = -border
        across = np.vstack([np.ones(across.shape[1]), across])
    inverse = np.linalg.inv(A)
    moved = inverse @ across
    own = slice(0 if border is None else 1, None)
    answer[np.ix_(slopes, slopes)] = inverse[own, own]
    answer[np.ix_(slopes, flat)] = -moved[own]
    answer[np.ix_(flat, slopes)] = moved[own].T
    answer[np.ix_(flat, flat)] = K[np.ix_(flat, flat)] - across.T @ moved
    return answer


@dataclass(frozen=True)
class _Drive:
    """What changes along a path, per unit of its length: the force (signed) in place of a share of the weight of
    row i, -1: of none, and how far (n,) the segments of rows are moved in f.
    """

    i: int
    share: float
    force: float
    shift: Array


@dataclass(frozen=True)
class _Path:
    """The way from a fit, as it is driven: segments, whether they slope, and their ends (n,), beta, and f from
    where segments are moved to; beta of the row that leaves is without the force. Arrays are changed on the way.
    """

    start: FullFit
    drive: _Drive
    segment: Indices
    slopes: NDArray[np.bool_]
    low: Array
    high: Array
    beta: Array
    f: Array

    @classmethod
    def of(cls, start: FullFit, drive: _Drive) -> "_Path":
        every, i, kept = np.arange(len(start.f)), drive.i, 1.0 - drive.share
        segment, slopes, beta = start.segment.copy(), start.slopes.copy(), start.beta.copy()
        low, high = start.segments.low[segment, every], start.segments.high[segment, every]
        if i >= 0:
            beta[i] *= kept
            if kept == 0.0:
                segment[i], slopes[i], low[i], high[i] = 0, False, -np.inf, np.inf
            elif slopes[i]:
                low[i], high[i] = kept * low[i], kept * high[i]
        return cls(start, drive, segment, slopes, low, high, beta, start.f + drive.shift)

    def follow(self, length: float, most: int) -> tuple[int, bool]:
        """Go so far, straight on after ``most`` bends; the number of bends, and whether they were enough."""
        for bends in range(most + 1):
            beta, f = self._direction()
            rate, value = np.where(self.slopes, beta, f), np.where(self.slopes, self.beta, self.f)
            room = np.where(rate > 0.0, self.high, self.low)
            room -= value
            # Rates of zero: never.
            room = np.divide(room, rate, out=np.full_like(rate, np.inf), where=rate != 0.0)
            k = int(room.argmin())
            free = max(float(room[k]), 0.0)
            step = length if bends == most else min(free, length)
            self.beta[:] += step * beta
            self.f[:] += step * f
            length -= step
            if length <= 0.0:
                return bends, free >= step
            # beta falls where f rises.
            self._turn(k, 1 if (rate[k] > 0.0) != self.slopes[k] else -1)
        raise AssertionError

    def _turn(self, k: int, way: int) -> None:
        """Row k goes on to its next segment."""
        segments = self.start.segments
        now = segments.after(k, int(self.segment[k]), way)
        part = 1.0 - self.drive.share if k == self.drive.i and now % 2 == 1 else 1.0
        self.segment[k], self.slopes[k] = now, now % 2 == 1
        self.low[k], self.high[k] = part * segments.low[now, k], part * segments.high[now, k]

    def _direction(self) -> tuple[Array, Array]:
        """Changes (n,) of beta and f per unit of length."""
        start, drive, i = self.start, self.drive, self.drive.i
        first, now, shift = start.slopes, self.slopes, drive.shift
        changed = now != first
        x = np.where(first & now, shift, 0.0)
        if i >= 0:
            changed[i] |= first[i]
            x[i] = 0.0 if changed[i] else drive.force
        J = np.flatnonzero(changed)
        y = start.answer @ x if i < 0 else start.columns[i] * x[i]
        if len(J):
            A, right = start.answer[J[:, None], J], np.where(now[J], shift[J], 0.0)
            extra = np.where(now[J], start.d[J], 0.0)
            if i >= 0 and changed[i]:
                place = int(np.searchsorted(J, i))
                extra[place], right[place] = self._own(bool(first[i]), bool(now[i]))
            A.flat[:: len(J) + 1] += extra
            x[J] = np.linalg.solve(A, right - y[J])
            y += x[J] @ start.columns[J]
        beta, f = np.where(first, y, x), np.where(first, x - start.d * y, y)
        if i >= 0:
            beta[i] -= drive.force
        return beta, f - shift

    def _own(self, first: bool, now: bool) -> tuple[float, float]:
        """What the equation of row i has on its diagonal and on its right side, with the weight that it keeps."""
        drive, d = self.drive, float(self.start.d[self.drive.i])
        if not now:
            return 0.0, drive.force
        kept = d / (1.0 - drive.share)
        return (1.0 / (kept - d), drive.force / drive.share) if first else (kept, kept * drive.force)
