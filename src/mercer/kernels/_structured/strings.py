"""Kernels on strings that count substrings of fixed lengths (k-mers)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone

from mercer._types import Indices
from mercer.errors import KernelError
from mercer.kernels._base import Kernel
from mercer.kernels._matrices import Matrix
from mercer.kernels._parameters import integer, positive
from mercer.kernels._structured.base import Counting, Objects, Ragged, Structured, pointers, starts

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

# k="loo" tries the lengths up to this one.
LONGEST_KMER = 8
# Up to this number of possible k-mers each has a column; of more, only those of the centers.
KMERS_WITH_COLUMNS = 2**20
# Codes of k-mers stay below this number.
LARGEST_CODE = 2**62
# Neighbors that are generated at a time, and that a k-mer may have.
NEIGHBORS_AT_ONCE, MOST_NEIGHBORS_OF_KMER = 2**22, 20_000


@dataclass(frozen=True)
class Letters(Ragged):
    """Strings one after the other: code points (N,), and where each string starts (n + 1,)."""

    code: NDArray[Any]
    start: Indices

    @classmethod
    def of(cls, X: Objects) -> "Letters":
        texts = strings(X)
        code = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
        return cls(code, starts([len(text) for text in texts]))

    def n_remaining(self) -> Indices:
        """The number of characters (N,) from each to the end of its string."""
        return np.repeat(self.start[1:], self.sizes) - np.arange(len(self.code))

    def in_alphabet(self, alphabet: NDArray[np.uint32]) -> "Letters":
        """Positions of the characters in the alphabet, in place of code points; its size for others."""
        digit, known = digits(self.code, alphabet)
        return Letters(np.where(known, digit, len(alphabet)), self.start)

    def places(self) -> Indices:
        """The number of characters (N,) before each in its string."""
        return np.arange(len(self.code)) - np.repeat(self.start[:-1], self.sizes)

    def distinct(self) -> NDArray[np.uint32]:
        """The characters that occur, ascending; O(N)."""
        return np.flatnonzero(np.bincount(self.code)).astype(np.uint32)

    def padded(self, with_code: int, rows: Indices | None = None) -> NDArray[np.int32]:
        """Code points (b, longest) of some strings, None: of all, with ``with_code`` after the end."""
        sizes, start = self.sizes, self.start[:-1]
        if rows is not None:
            sizes, start = sizes[rows], start[rows]
        place = np.arange(int(sizes.max(initial=0)))
        there = place < sizes[:, None]
        table = np.full(there.shape, with_code, np.int32)
        table[there] = self.code[(start[:, None] + place)[there]]
        return table


def strings(X: Objects) -> list[str]:
    """The rows as a list, if all are strings."""
    if isinstance(X, str):
        raise KernelError(f"X is one string, {X[:20]!r}; pass a list of strings")
    texts = X if isinstance(X, list) else list(X)
    for i, row in enumerate(texts):
        if not isinstance(row, str):
            raise KernelError(
                f"row {i} is a {type(row).__name__}, but a kernel on strings compares str; convert the rows, or "
                "use another kernel"
            )
    return texts


def digits(code: NDArray[np.uint32], alphabet: NDArray[np.uint32]) -> tuple[Codes, Mask]:
    """Positions (N,) of code points in the alphabet, and whether they are there."""
    largest = int(max(code.max(initial=0), alphabet.max(initial=0)))
    place = np.full(largest + 1, -1, np.int64)
    place[alphabet] = np.arange(len(alphabet))
    digit = place[code]
    return digit, digit >= 0


def windows(
    letters: Letters,
    alphabet: NDArray[np.uint32],
    longest: int,
    rank: Callable[[int, Codes, Mask, int], tuple[Codes, Mask, int]],
    places: int | None = None,
) -> Iterator[tuple[Codes, Mask, int]]:
    """Numbers of all substrings of length 1, 2, ..., longest: codes (N - l + 1,), which count, and their bound.

    The code of a window is that of the one shorter by a character, times the size of the alphabet, plus its last
    character. ``rank`` may replace codes by smaller ones before the next character is added. Windows that leave
    their string, or contain characters outside the alphabet, do not count. With ``places``, windows that start at
    different places of their strings have different codes, and those that start later do not count.
    """
    digit, known = digits(letters.code, alphabet)
    remaining = letters.n_remaining()
    code, kept, bound = np.zeros(len(digit) + 1, np.int64), np.ones(len(digit) + 1, bool), 1
    if places is not None:
        code[:-1] = letters.places()
        kept, bound = code < places, places
    for length in range(1, longest + 1):
        n = max(len(digit) - length + 1, 0)
        code = code[:n] * len(alphabet) + digit[length - 1 :]
        kept = kept[:n] & known[length - 1 :] & (remaining[:n] >= length)
        code, kept, bound = rank(length, code, kept, bound * max(len(alphabet), 1))
        yield code, kept, bound


def positions(known: Codes, code: Codes, kept: Mask) -> tuple[Codes, Mask]:
    """Where the codes are in the sorted array ``known``, and which of those that count are there."""
    if len(known) == 0:
        return np.zeros_like(code), np.zeros_like(kept)
    at = np.minimum(np.searchsorted(known, code), len(known) - 1)
    return at, kept & (known[at] == code)


@dataclass(frozen=True)
class KmerColumns:
    """Columns for the substrings of some strings, of the lengths ``shortest`` to ``longest``.

    ``known`` are the sorted codes of those lengths for which codes were replaced by positions among them. With
    ``places`` there is a column for each place where a substring may start.
    """

    alphabet: NDArray[np.uint32]
    known: dict[int, Codes]
    shortest: int
    longest: int
    decay: float
    places: int | None = None

    def of(self, Z: Objects) -> "KmerColumns":
        """With the columns that the strings Z need."""
        letters = Letters.of(Z)
        columns = replace(self, alphabet=letters.distinct(), known={})
        for _ in windows(letters, columns.alphabet, self.longest, columns._found, self.places):
            pass
        return columns

    def features(self, X: Objects) -> list[Matrix]:
        """decay^l times the number of times each substring of length l occurs, CSR (n, v) for each length."""
        letters = Letters.of(X)
        counted = windows(letters, self.alphabet, self.longest, self._looked_up, self.places)
        return [
            _counts(letters, code, kept, bound, self.decay**length)
            for length, (code, kept, bound) in enumerate(counted, start=1)
            if length >= self.shortest
        ]

    def _found(self, length: int, code: Codes, kept: Mask, bound: int) -> tuple[Codes, Mask, int]:
        """Codes of the centers, which become known if there could be too many."""
        if bound > KMERS_WITH_COLUMNS and (length >= self.shortest or bound * len(self.alphabet) > LARGEST_CODE):
            self.known[length] = np.unique(code[kept])
        return self._looked_up(length, code, kept, bound)

    def _looked_up(self, length: int, code: Codes, kept: Mask, bound: int) -> tuple[Codes, Mask, int]:
        if length not in self.known:
            return code, kept, bound
        known = self.known[length]
        return *positions(known, code, kept), len(known)


def _counts(letters: Letters, code: Codes, kept: Mask, n_columns: int, value: float) -> Matrix:
    """How often each code occurs in each string, times ``value``, CSR (n, n_columns)."""
    column = code[kept]
    F = sparse.csr_matrix(
        (np.full(len(column), value), column, pointers(kept, letters.start)), shape=(letters.n_objects, n_columns)
    )
    F.sum_duplicates()
    return F


class OnStrings(Structured):
    """A kernel on strings; abstract."""

    def check_rows(self, X: Objects) -> None:
        strings(X)


class KmerSpectrum(OnStrings, Counting):
    """k(s, t) = sum_l decay^(2l) sum_u |s|_u |t|_u over the substrings u of length l = min_k, ..., k.

    |s|_u is the number of times that u occurs in s. ``min_k=None`` is the spectrum kernel (p-spectrum, n-gram
    kernel), which counts substrings of length k only; with ``min_k`` less than k it is the blended spectrum.
    Longer strings have larger values: compare ``Normalized(KmerSpectrum())``. Exact for every k and alphabet.
    O(k N log N) for the N characters of a block, and one sparse product.

    Leslie, Eskin and Noble (2002), "The spectrum kernel"; Shawe-Taylor and Cristianini (2004), section 11.2.

    Parameters
    ----------
    k : int or "loo"
        The length of the substrings; "loo": leave-one-out chooses among 1 to 8.
    min_k : int, optional
        The shortest length; None: k.
    decay : float
        Weight of each character: below 1, long substrings count less.
    aligned : bool
        Whether substrings count only where they start at the same place of both strings, for strings around a
        common point such as splice sites: the weighted degree kernel (Rätsch and Sonnenburg 2004, "Accurate
        splice site prediction for *Caenorhabditis elegans*").

    Examples
    --------
    >>> KmerSpectrum(k=3).block(["statistics"], ["computation"])
    array([[2.]])
    >>> KmerSpectrum(k=2, aligned=True).block(["barbara"], ["carbide"])
    array([[2.]])
    >>> from mercer.kernels import Normalized
    >>> Normalized(KmerSpectrum(k=2, min_k=1)).block(["bar", "ab"], ["bat"]).round(4)
    array([[0.6   ],
           [0.5164]])
    """

    def __init__(
        self, k: int | str = 3, min_k: int | None = None, decay: float = 1.0, aligned: bool = False
    ) -> None:
        self.k = k
        self.min_k = min_k
        self.decay = decay
        self.aligned = aligned

    @property
    def resolved(self) -> bool:
        return not isinstance(self.k, str)

    def candidates(self, X: Objects, weight: ArrayLike | None = None) -> list[Kernel]:
        """The kernel, or for k="loo" one for every length up to 8 that some string has."""
        least = 1 if self.min_k is None else integer("min_k", self.min_k, least=1)
        return lengths_to_try(self, "k", X, least, LONGEST_KMER)

    def _vocabulary(self, Z: Objects) -> KmerColumns:
        k = resolved_length("k", self.k)
        shortest = k if self.min_k is None else integer("min_k", self.min_k, least=1)
        if shortest > k:
            raise KernelError(f"min_k={shortest} is more than k={k}; it must be at most k")
        decay, longest = positive("decay", self.decay), longest_of(Z)
        places = longest if self.aligned else None
        none = np.zeros(0, np.uint32)
        if shortest > longest:
            return KmerColumns(none, {}, 1, 1, decay, places)
        return KmerColumns(none, {}, shortest, min(k, longest), decay, places).of(Z)


def longest_of(X: Objects) -> int:
    """The number of characters of the longest string."""
    return max(map(len, strings(X)), default=0)


def resolved_length(name: str, value: object) -> int:
    """A length as an integer."""
    if isinstance(value, str):
        raise KernelError(f'{name}="{value}" is chosen from data; call candidates(X) first, or pass an integer')
    return integer(name, value, least=1)


def lengths_to_try(kernel: Kernel, name: str, X: Objects, least: int, most: int) -> list[Kernel]:
    """The kernel, or if its length is "loo" one for every length from ``least`` to ``most`` that a string has."""
    value = getattr(kernel, name)
    if not isinstance(value, str):
        return [kernel]
    if value != "loo":
        raise KernelError(f'{name}="{value}" is not known; pass an integer or "loo"')
    tried = range(least, max(least, min(most, longest_of(X))) + 1)
    return [clone(kernel).set_params(**{name: length}) for length in tried]


@dataclass(frozen=True)
class NeighborColumns:
    """Columns for k-mers that differ from those of some strings in at most ``mismatches`` characters.

    ``known`` are their sorted codes; None: every k-mer has a column.
    """

    alphabet: NDArray[np.uint32]
    k: int
    mismatches: int
    known: Codes | None = None

    @property
    def n_kmers(self) -> int:
        """All strings of length k."""
        return int(len(self.alphabet) ** self.k)

    @property
    def n_neighbors(self) -> int:
        """Strings that differ from one in at most ``mismatches`` characters."""
        others = len(self.alphabet) - 1
        return sum(comb(self.k, r) * others**r for r in range(self.mismatches + 1))

    def of(self, Z: Objects) -> "NeighborColumns":
        """With the columns that the strings Z need."""
        if self.n_kmers <= KMERS_WITH_COLUMNS:
            return self
        near = [np.unique(self._neighbors(np.unique(code))) for _, code, _ in self._pieces(Letters.of(Z))]
        known = np.unique(np.concatenate([np.zeros(0, np.int64), *near]))
        return NeighborColumns(self.alphabet, self.k, self.mismatches, known)

    def features(self, X: Objects) -> list[Matrix]:
        """How many k-mers of each string differ from those of the columns in few characters, CSR (n, v)."""
        parts = [self._features(*piece) for piece in self._pieces(Letters.of(X))]
        v = max(self.n_kmers, 1) if self.known is None else len(self.known)
        return [sparse.vstack([sparse.csr_matrix((0, v)), *parts], format="csr")]

    def _pieces(self, letters: Letters) -> Iterator[tuple[Indices, Codes, int]]:
        """k-mers of few strings at a time: pointers to the first of each string, their codes, and their bound."""
        *_, (code, kept, bound) = windows(letters, self.alphabet, self.k, lambda _, *codes: codes)
        pointer, code = pointers(kept, letters.start), code[kept]
        for some in Letters(code, pointer).cuts(NEIGHBORS_AT_ONCE // self.n_neighbors):
            piece = pointer[some.start : some.stop + 1]
            yield piece - piece[0], code[piece[0] : piece[-1]], bound

    def _features(self, pointer: Indices, code: Codes, bound: int) -> Matrix:
        """Counts (n, u) of the u distinct k-mers of some strings, times their neighbors (u, v)."""
        kmers, place = np.unique(code, return_inverse=True)
        counts = sparse.csr_matrix((np.ones(len(code)), place.ravel(), pointer), (len(pointer) - 1, len(kmers)))
        near = self._neighbors(kmers)
        column, kept = near.ravel(), np.ones(near.size, bool)
        if self.known is not None:
            column, kept = positions(self.known, column, kept)
            bound = len(self.known)
        row = pointers(kept, np.arange(len(kmers) + 1) * near.shape[1])
        found = counts @ sparse.csr_matrix((np.ones(row[-1]), column[kept], row), (len(kmers), bound))
        found.sort_indices()
        return found

    def _neighbors(self, kmers: Codes) -> Codes:
        """Codes (u, n_neighbors) of all k-mers that differ in at most ``mismatches`` characters."""
        A = len(self.alphabet)
        powers = [A**position for position in range(self.k)]
        found = [kmers]
        for r in range(1, self.mismatches + 1):
            for changed in combinations(powers, r):
                old = [kmers // power % A for power in changed]
                for shifts in product(range(1, A), repeat=r):
                    moves = [((d + s) % A - d) * power for d, s, power in zip(old, shifts, changed)]
                    found.append(kmers + sum(moves))
        return np.stack(found, axis=1)


class Mismatch(OnStrings, Counting):
    """k(s, t) = sum_b |s|_b |t|_b, with |s|_b the number of k-mers of s that differ from b in few characters.

    b runs over all strings of length k, also those that occur nowhere, and few is at most ``mismatches``: the
    (k, m)-mismatch kernel. ``mismatches=0`` is :class:`KmerSpectrum`. Substrings with characters outside the
    alphabet do not count. A k-mer has sum_r C(k, r) (a - 1)^r neighbors, r = 0, ..., m, in an alphabet of a
    characters, and costs as many operations.

    Leslie, Eskin, Cohen, Weston and Noble (2004), "Mismatch string kernels for discriminative protein
    classification".

    Parameters
    ----------
    k : int or "loo"
        The length of the substrings; "loo": leave-one-out chooses among ``mismatches`` + 1 to 8.
    mismatches : int
        How many characters may differ, less than k.
    alphabet : str, optional
        All characters, such as "ACGT"; None: those of the training rows, set during the fit.

    Examples
    --------
    >>> Mismatch(k=3, mismatches=1, alphabet="ACGT").block(["ACG"], ["ACG", "ACT", "AGT", "TTT"])
    array([[10.,  4.,  2.,  0.]])
    """

    def __init__(self, k: int | str = 4, mismatches: int = 1, alphabet: str | None = None) -> None:
        self.k = k
        self.mismatches = mismatches
        self.alphabet = alphabet

    @property
    def resolved(self) -> bool:
        return self.alphabet is not None and not isinstance(self.k, str)

    def candidates(self, X: Objects, weight: ArrayLike | None = None) -> list[Kernel]:
        """With the characters of X, and for k="loo" one for every length up to 8 that some string has."""
        letters = "".join(map(chr, Letters.of(X).distinct()))
        known: Any = self if self.alphabet is not None else clone(self).set_params(alphabet=letters)
        return lengths_to_try(known, "k", X, integer("mismatches", self.mismatches, least=0) + 1, LONGEST_KMER)

    def _vocabulary(self, Z: Objects) -> NeighborColumns:
        k, mismatches = resolved_length("k", self.k), integer("mismatches", self.mismatches, least=0)
        if mismatches >= k:
            raise KernelError(f"mismatches={mismatches} must be less than k={k}")
        if not isinstance(self.alphabet, str):
            raise KernelError("alphabet is None; pass all characters, or let a model set those of its rows")
        columns = NeighborColumns(Letters.of([self.alphabet]).distinct(), k, mismatches)
        if columns.n_neighbors > MOST_NEIGHBORS_OF_KMER or columns.n_kmers > LARGEST_CODE:
            raise KernelError(
                f"a substring of k={k} of {len(columns.alphabet)} characters has {columns.n_neighbors:,} "
                f"neighbors with up to {mismatches} mismatches; use smaller numbers, or KmerSpectrum"
            )
        return columns.of(Z)
