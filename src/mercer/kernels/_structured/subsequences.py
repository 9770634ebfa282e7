"""Kernels on strings by dynamic programming over pairs of positions, for many pairs of strings at a time."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._types import Array, Floats, Indices
from mercer._validation import check_number
from mercer.errors import KernelError
from mercer.kernels._base import Kernel, Normable, cosines_from_logs
from mercer.kernels._matrices import mirror
from mercer.kernels._parameters import finite, positive
from mercer.kernels._structured.base import Objects
from mercer.kernels._structured.strings import (
    Letters,
    OnStrings,
    lengths_to_try,
    longest_of,
    resolved_length,
)

Codes = NDArray[np.int32]

# length="loo" tries the lengths up to this one.
LONGEST_SUBSEQUENCE = 5
# Up to the first number of possible subsequences each is a feature; up to the second, if a pair of strings costs
# more: as much as the third number of features for each pair of positions.
FEATURES, MOST_FEATURES, FEATURES_PER_CELL = 4096, 2**17, 100
# Numbers in the tables of a slab of pairs, in the features of a slab of rows, and in those kept of the centers.
PAIR_SLAB, FEATURE_SLAB, KEPT_NUMBERS = 2**16, 2**22, 2**24
# Rows whose features are computed at a time.
FEATURE_ROWS = 256
# Characters of padding that cost nothing.
FREE_PADDING = 16
# Codes after the end of strings: those of rows differ from those of centers.
ROW_END, CENTER_END = -1, -2
# One match counts at most the exponential of this.
MOST_MATCH = 500.0


class PairwiseStrings(OnStrings):
    """A kernel by a recursion over pairs of positions of two strings; abstract.

    Strings are sorted by length and compared in slabs of pairs, one array operation for all pairs of a slab.
    """

    @abstractmethod
    def _values(self, S: Codes, T: Codes) -> Array:
        """k (...) of strings S (length, ...) and T (length, ...), whose other axes are broadcast."""

    def evaluator(self, Z: Objects) -> Callable[..., Floats]:
        return partial(self._compared, self._values, Z)

    def _compared(
        self, values: Callable[[Codes, Codes], Array], Z: Objects, X: Objects, workspace: Floats | None = None
    ) -> Floats:
        """A function of all pairs, slab by slab; if X is Z, only those of the upper triangle."""
        rows, centers = Letters.of(X), Letters.of(Z)
        i, j = (np.argsort(letters.sizes, kind="stable") for letters in (rows, centers))
        K = np.zeros((len(i), len(j)))
        for part, others in _slabs(rows.sizes[i], centers.sizes[j], upper=Z is X):
            s, t = rows.padded(ROW_END, i[part]).T, centers.padded(CENTER_END, j[others]).T
            K[part, others] = values(s[:, :, None], t[:, None, :])
        found = np.empty_like(K)
        found[np.ix_(i, j)] = mirror(K) if Z is X else K
        return found

    def diag(self, X: Objects) -> Floats:
        return self._with_itself(self._values, X)

    def _with_itself(self, values: Callable[[Codes, Codes], Array], X: Objects) -> Floats:
        """A function of each string and itself."""
        letters = Letters.of(X)
        order = np.argsort(letters.sizes, kind="stable")
        found = np.zeros(len(order))
        for some in _cuts(letters.sizes[order], PAIR_SLAB):
            s, t = (letters.padded(end, order[some]).T for end in (ROW_END, CENTER_END))
            found[order[some]] = values(s, t)
        return found


def _slabs(rows: Indices, centers: Indices, *, upper: bool) -> Iterator[tuple[slice, slice]]:
    """Slices of rows and centers of ascending lengths; with ``upper``, those that meet the upper triangle."""
    for others in _cuts(centers, PAIR_SLAB // 8):
        longest = max(int(centers[others].max(initial=0)), 1)
        for some in _cuts(np.full(len(rows), longest * (others.stop - others.start)), PAIR_SLAB):
            for part in _alike(rows, some):
                if not upper or part.start < others.stop:
                    yield part, others


def _alike(lengths: Indices, some: slice) -> Iterator[slice]:
    """Slices of ascending lengths of which the longest is at most twice the shortest, and a few characters."""
    start = some.start
    while start < some.stop:
        most = 2 * lengths[start] + FREE_PADDING
        stop = min(int(np.searchsorted(lengths, most, side="right")), some.stop)
        yield slice(start, stop)
        start = stop


def _cuts(lengths: Indices, most: int) -> Iterator[slice]:
    """Slices of ascending lengths, each of at most ``most`` characters with padding, at least one string."""
    start = 0
    while start < len(lengths):
        widths = np.maximum(lengths[start:], 1) * np.arange(1, len(lengths) - start + 1)
        stop = start + max(int(np.searchsorted(widths, most, side="right")), 1)
        yield slice(start, stop)
        start = stop


def _equal(s: Codes, T: Codes) -> Array:
    """1.0 where the characters s (...) and T (length, ...) are equal, else 0.0."""
    return np.equal(s, T).astype(np.float64)


class Subsequence(PairwiseStrings):
    """k(s, t) = sum_u phi_u(s) phi_u(t) over all u of p characters, phi_u(s) = sum_i decay^(i_p - i_1 + 1).

    The sum for phi_u runs over all positions i_1 < ... < i_p at which s has the characters of u, with gaps: the
    gap-weighted subsequences or string subsequence kernel. O(p |s| |t|) for a pair of strings, by dynamic
    programming. If fewer different u are possible than that, a^p for a characters, all phi_u are computed instead,
    O(|s| a^p) for a string, and multiplied. Values increase with length: compare ``Normalized(Subsequence())``.

    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins (2002), "Text classification using string kernels";
    Shawe-Taylor and Cristianini (2004), section 11.5.

    Parameters
    ----------
    length : int or "loo"
        The number p of characters; "loo": leave-one-out chooses among 1 to 5.
    decay : float
        Weight of each position spanned, above 0 and at most 1; small values penalize gaps.

    Examples
    --------
    >>> Subsequence(length=2, decay=0.5).block(["cat"], ["cat", "car", "bar"])
    array([[0.140625, 0.0625  , 0.      ]])
    """

    def __init__(self, length: int | str = 3, decay: float = 0.5) -> None:
        self.length = length
        self.decay = decay

    @property
    def resolved(self) -> bool:
        return not isinstance(self.length, str)

    def candidates(self, X: Objects, weight: ArrayLike | None = None) -> list[Kernel]:
        """The kernel, or for length="loo" one for every length up to 5 that some string has."""
        return lengths_to_try(self, "length", X, 1, LONGEST_SUBSEQUENCE)

    def evaluator(self, Z: Objects) -> Callable[..., Floats]:
        p, decay = resolved_length("length", self.length), _share("decay", self.decay)
        letters = Letters.of(Z)
        alphabet = letters.distinct()
        cells = max(p - 1, 1) * (len(letters.code) / max(letters.n_objects, 1)) ** 2
        if p > longest_of(Z) or len(alphabet) ** p > max(FEATURES, min(FEATURES_PER_CELL * cells, MOST_FEATURES)):
            return super().evaluator(Z)
        return partial(_multiplied, GapFeatures(alphabet, p, decay).of(Z))

    def _values(self, S: Codes, T: Codes) -> Array:
        """D_1 = [s_i = t_j]; D_q(i, j) = [s_i = t_j] sum_(i' < i, j' < j) decay^(i - i' + j - j') D_(q-1)(i', j').

        The kernel is decay^2 times the sum of D_p. ``before[q - 1]`` holds the sums of D_q over i' < i.
        """
        p, decay = resolved_length("length", self.length), _share("decay", self.decay)
        shape = np.broadcast_shapes(S.shape[1:], T.shape[1:])
        if p > min(len(S), len(T)):
            return np.zeros(shape)
        before = np.zeros((p - 1, len(T), *shape))
        total, running, workspace = np.zeros((3, *shape))
        for s in S:
            before *= decay
            same = np.broadcast_to(_equal(s, T), (len(T), *shape))
            for q in range(p - 1, 0, -1):
                running[:] = 0.0
                for j in range(len(T)):
                    np.multiply(running, same[j], out=workspace)
                    target = total if q == p - 1 else before[q, j]
                    target += workspace
                    running += before[q - 1, j]
                    running *= decay
            if p > 1:
                before[0] += same
            else:
                total += same.sum(axis=0)
        return np.asarray(decay * decay * total)


def _multiplied(centers: "GapFeatures", X: Objects, workspace: Floats | None = None) -> Floats:
    """The kernel by products of features of X with those of the centers, some last characters at a time."""
    digit = centers.digits(X)
    K = np.zeros((len(digit), len(centers.digit)))
    for part, last in enumerate(centers.lasts):
        right = centers.right(part)
        for rows in centers.cuts(digit):
            K[rows] += centers.phi(digit[rows], last) @ right.T
    return K


def _share(name: str, value: object) -> float:
    """The value as a number above 0 and at most 1."""
    return check_number(name, value, "a number above 0 and at most 1", above=0.0, most=1.0, error=KernelError)


@dataclass(frozen=True)
class GapFeatures:
    """phi_u for all u of p characters of an alphabet, and the centers (m, length) as positions in it.

    Features of few last characters are computed at a time, to bound memory; those of few centers are ``kept``.
    """

    alphabet: NDArray[np.uint32]
    p: int
    decay: float
    digit: Codes = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    kept: tuple[Array, ...] = ()

    def of(self, Z: Objects) -> "GapFeatures":
        """With the centers Z."""
        digit = self.digits(Z)
        kept = len(digit) * len(self.alphabet) ** self.p <= KEPT_NUMBERS
        return replace(self, digit=digit, kept=tuple(self.phi(digit, last) for last in self.lasts) if kept else ())

    @property
    def lasts(self) -> list[range]:
        """The alphabet in parts, each with few features."""
        a = len(self.alphabet)
        step = max(FEATURE_SLAB // (FEATURE_ROWS * max(a, 1) ** (self.p - 1)), 1)
        return [range(start, min(start + step, a)) for start in range(0, a, step)]

    def right(self, part: int) -> Array:
        """Features of the centers for one part of the alphabet, (m, v)."""
        return self.kept[part] if self.kept else self.phi(self.digit, self.lasts[part])

    def digits(self, X: Objects) -> Codes:
        """Positions (n, length) of the characters in the alphabet; its size for others, and after the end."""
        return Letters.of(X).in_alphabet(self.alphabet).padded(len(self.alphabet))

    def cuts(self, digit: Codes) -> list[slice]:
        """Slices of rows with few features."""
        return [slice(start, start + FEATURE_ROWS) for start in range(0, len(digit), FEATURE_ROWS)]

    def phi(self, digit: Codes, last: range) -> Array:
        """phi_u (n, v) for all u that end in one of the characters ``last``.

        growing[q - 1] (n, a^q) holds sums over subsequences of q characters so far, of decay to the number of
        positions from the first to the current one, included.
        """
        n, a, p = len(digit), len(self.alphabet), self.p
        growing = [np.zeros((n, a**q)) for q in range(1, p)]
        phi = np.zeros((n, len(last), a ** (p - 1)))
        for column in digit.T:
            shorter = [np.ones((n, 1)), *growing]
            rows = np.flatnonzero((column >= last.start) & (column < last.stop))
            phi[rows, column[rows] - last.start] += self.decay * shorter[p - 1][rows]
            rows = np.flatnonzero(column < a)
            for q in range(p - 1, 0, -1):
                grown = self.decay * shorter[q - 1][rows]
                growing[q - 1] *= self.decay
                growing[q - 1].reshape(n, a, a ** (q - 1))[rows, column[rows]] += grown
        return phi.reshape(n, len(last) * a ** (p - 1))


class Substrings(PairwiseStrings):
    """k(s, t) = sum_u decay^(2 |u|) |s|_u |t|_u over substrings u of every length: the all-substrings kernel.

    |s|_u is the number of times that u occurs in s. With substrings of bounded length it is the blended spectrum,
    :class:`KmerSpectrum`, which costs much less. O(|s| |t|) for a pair of strings.

    Vishwanathan and Smola (2003), "Fast kernels for string and tree matching".

    Parameters
    ----------
    decay : float
        Weight of each character, above 0 and at most 1.

    Examples
    --------
    >>> Substrings(decay=1.0).block(["abab"], ["ab", "ba"])
    array([[6., 5.]])
    """

    def __init__(self, decay: float = 0.5) -> None:
        self.decay = decay

    def _values(self, S: Codes, T: Codes) -> Array:
        """D(i, j) = [s_i = t_j] decay^2 (1 + D(i - 1, j - 1)); the kernel is the sum of D."""
        weight = _share("decay", self.decay) ** 2
        shape = np.broadcast_shapes(S.shape[1:], T.shape[1:])
        ending, total = np.zeros((len(T) + 1, *shape)), np.zeros((len(T), *shape))
        for s in S:
            longer = ending[:-1] + 1.0
            longer *= weight
            np.multiply(longer, _equal(s, T), out=ending[1:])
            total += ending[1:]
        return np.asarray(total.sum(axis=0))


class LocalAlignment(Normable, PairwiseStrings):
    """k(s, t) = sum over local alignments of exp(beta score): the local alignment kernel.

    An alignment pairs characters of s and t in order; its score is ``match`` or ``mismatch`` for each pair, minus
    ``gap`` for each gap and ``extension`` for each further character of it. For large beta, log(k) / beta is the
    Smith-Waterman score. Values grow exponentially with length: compare ``Normalized(LocalAlignment())``, which is
    computed from logarithms and works for every length. O(|s| |t|) for a pair of strings, several times as long
    where values are too large for floating point.

    Saigo, Vert, Ueda and Akutsu (2004), "Protein homology detection using string alignment kernels".

    Parameters
    ----------
    beta : float
        Above 0; small values count many alignments, large ones only the best.
    match, mismatch : float
        Scores of equal and of different characters, ``match`` >= ``mismatch``.
    gap, extension : float
        Costs of the first and of each further character of a gap.

    Examples
    --------
    >>> LocalAlignment(beta=1.0, match=1.0).block(["ab"], ["ab", "ba"]).round(3)
    array([[14.561,  7.308]])
    """

    def __init__(
        self,
        beta: float = 0.5,
        match: float = 2.0,
        mismatch: float = -1.0,
        gap: float = 2.0,
        extension: float = 1.0,
    ) -> None:
        self.beta = beta
        self.match = match
        self.mismatch = mismatch
        self.gap = gap
        self.extension = extension

    def cosine_evaluator(self, Z: Objects) -> Callable[..., Floats]:
        return partial(self._cosines, Z, self.log_diag(Z))

    def _cosines(self, Z: Objects, right: Floats, X: Objects, workspace: Floats | None = None) -> Floats:
        return cosines_from_logs(self._compared(self._log_values, Z, X), self.log_diag(X), right)

    def log_diag(self, X: Objects) -> Floats:
        return self._with_itself(self._log_values, X)

    def _values(self, S: Codes, T: Codes) -> Array:
        """M(i, j) = exp(beta score) (1 + M + U + V)(i - 1, j - 1), and the kernel is 1 + the sum of M.

        U(i, j) = g M(i - 1, j) + e U(i - 1, j) ends in a gap of t, V(i, j) = g (M + U)(i, j - 1) + e V(i, j - 1)
        in one of s, with g and e the exponentials of -beta times the costs. Infinite where it is too large.
        """
        equal, other, g, e = map(exp, self._scores())
        shape = np.broadcast_shapes(S.shape[1:], T.shape[1:])
        M, U, V = np.zeros((3, len(T) + 1, *shape))
        total, inside = np.ones(shape), (T != CENTER_END).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            for s in S:
                before = 1.0 + M[:-1] + U[:-1] + V[:-1]
                U *= e
                U += g * M
                M[1:] = before * (other + (equal - other) * _equal(s, T)) * (inside * (s != ROW_END))
                total += M[1:].sum(axis=0)
                for j in range(1, len(T) + 1):
                    V[j] = g * (M[j - 1] + U[j - 1]) + e * V[j - 1]
        # Only infinite sums make others that are not defined.
        return np.where(np.isnan(total), np.inf, total)

    def _log_values(self, S: Codes, T: Codes) -> Array:
        """log k, by sums of logarithms for the pairs whose values are too large."""
        logs = np.log(self._values(S, T))
        large = np.isinf(logs)
        if large.any():
            logs[large] = self._sums_of_logs(
                *(np.broadcast_to(C, (len(C), *large.shape))[:, large] for C in (S, T))
            )
        return logs

    def _sums_of_logs(self, S: Codes, T: Codes) -> Array:
        """The logarithms of the same sums for p pairs, (p,).

        V(i, j) = sum_(l < j) g e^(j - 1 - l) (M + U)(i, l) for all j at once.
        """
        equal, other, g, e = self._scores()
        M, U, V = np.full((3, len(T) + 1, T.shape[1]), -np.inf)
        total, later = np.zeros(T.shape[1]), -e * np.arange(len(T))[:, None]
        for s in S:
            before = np.logaddexp(np.logaddexp(0.0, M[:-1]), np.logaddexp(U[:-1], V[:-1]))
            U = np.logaddexp(U + e, M + g)
            score = np.where(_equal(s, T), equal, other)
            M[1:] = np.where((T != CENTER_END) & (s != ROW_END), before + score, -np.inf)
            total = np.logaddexp(total, np.logaddexp.reduce(M[1:], axis=0))
            V[1:] = np.logaddexp.accumulate(np.logaddexp(M[:-1], U[:-1]) + later, axis=0) + g - later
        return total

    def _scores(self) -> tuple[float, float, float, float]:
        """beta times the scores of a match, a mismatch, a gap and its extension."""
        beta, match, mismatch = (
            positive("beta", self.beta),
            finite("match", self.match),
            finite("mismatch", self.mismatch),
        )
        if mismatch > match:
            raise KernelError(f"mismatch={mismatch} is more than match={match}; equal characters must score most")
        if beta * match > MOST_MATCH:
            raise KernelError(
                f"beta={beta} times match={match} is more than {MOST_MATCH:g}; sums of alignments are too "
                "large for floating point: pass a smaller beta"
            )
        gap, extension = finite("gap", self.gap), finite("extension", self.extension)
        if min(gap, extension) < 0.0:
            raise KernelError(f"gap={gap} and extension={extension} are costs; they must not be negative")
        return beta * match, beta * mismatch, -beta * gap, -beta * extension
