"""Alignments: which state of its word each frame of a sequence belongs to.

The first one is made by Gaussian mixtures, one hidden Markov model for each word, from an equal division of the
frames (Baum-Welch); later ones by the discriminants that were trained on the alignment before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from mercer._types import Array, Indices
from mercer.rows._table import in_double
from mercer.sequences._emissions import Emissions, MixtureEmissions, Mixtures, batches
from mercer.sequences._frames import constant
from mercer.sequences._paths.chains import Chain, allowed, counted, divided, hasty
from mercer.sequences._paths.hmm import baum_welch, best_path, log_likelihood

# Variances are at least this share of the variance of all frames of a word.
LEAST_VARIANCE = 1e-3
# Frames of a word from which its mixtures are learned: a mixture has few parameters.
MOST_FRAMES = 50_000


@dataclass(frozen=True)
class States:
    """The states of all words, numbered one after another: how many of each word, and their topology."""

    sizes: tuple[int, ...]
    topology: str

    @classmethod
    def of(cls, sequences: Sequence[Array], word: Indices, most: Sequence[int], topology: str) -> "States":
        """At most ``most`` states for each word, and no more than frames in its longest sequence."""
        lengths = np.array([len(X) for X in sequences])
        return cls(tuple(min(n, int(lengths[word == w].max())) for w, n in enumerate(most)), topology)

    @property
    def total(self) -> int:
        return sum(self.sizes)

    def first(self, w: int) -> int:
        """The number of the first state of word w."""
        return sum(self.sizes[:w])

    def columns(self, w: int) -> slice:
        """The states of word w."""
        return slice(self.first(w), self.first(w) + self.sizes[w])

    def limits(self, w: int) -> Chain:
        """What is allowed within word w."""
        return allowed(self.topology, self.sizes[w])

    def chains(self, paths: Sequence[Indices], word: Indices) -> tuple[Chain, ...]:
        """The chain of each word, from the paths of its sequences that visit as many frames as it has states."""
        of_words: list[list[Indices]] = [[] for _ in self.sizes]
        for path, w in zip(paths, word):
            if len(path) >= self.sizes[w]:
                of_words[w].append(path - self.first(w))
        return tuple(counted(own, self.limits(w)) for w, own in enumerate(of_words))


@dataclass(frozen=True)
class WordModels:
    """Hidden Markov models of words: their states, chains and emissions."""

    states: States
    chains: tuple[Chain, ...]
    emissions: Emissions

    def align(self, sequences: Sequence[Array], word: Indices) -> list[Indices]:
        """The most likely path (T_i,) of each sequence through the states of its word, numbered over all words."""
        first = self.states.first
        return [
            first(w) + best_path(self._chain(w, len(L)), self._own(L, w))[1]
            for L, w in zip(self._emitted(sequences), word)
        ]

    def log_likelihoods(self, sequences: Sequence[Array]) -> Array:
        """log p(X | word) (n, words), up to a constant of each sequence."""
        words = range(len(self.chains))
        return np.array(
            [
                [log_likelihood(self._chain(w, len(L)), self._own(L, w)) for w in words]
                for L in self._emitted(sequences)
            ]
        )

    def log_posteriors(self, sequences: Sequence[Array], slope: float, priors: Array) -> Array:
        """slope log p(X | word) + log P(word) (n, words), up to a constant of each sequence."""
        return np.asarray(slope * self.log_likelihoods(sequences) + np.log(priors))

    def _emitted(self, sequences: Sequence[Array]) -> Iterator[Array]:
        """Log-emissions (T_i, states) of one sequence after another; those of few are in memory."""
        for some in batches(sequences):
            yield from self.emissions(some)

    def _own(self, L: Array, w: int) -> Array:
        return np.ascontiguousarray(L[:, self.states.columns(w)])

    def _chain(self, w: int, T: int) -> Chain:
        return self.chains[w] if self.states.sizes[w] <= T else hasty(self.states.sizes[w])


def mixture_models(
    sequences: Sequence[Array],
    word: Indices,
    states: States,
    *,
    n_mixtures: int,
    n_iter: int,
    rng: np.random.Generator,
) -> WordModels:
    """Hidden Markov models with Gaussian mixtures, one for each word; chains from their best paths."""
    words = range(len(states.sizes))
    some = [
        _few(_long_enough([X for X, v in zip(sequences, word) if v == w], states.sizes[w]), rng) for w in words
    ]
    least, columns = _least_variances(some)
    found = []
    for w in words:
        X = np.concatenate(some[w])
        X = in_double(X if columns is None else X[:, columns])
        lengths = np.array([len(each) for each in some[w]])
        found.append(_fit_mixtures(X, lengths, states.limits(w), n_mixtures, n_iter, least[w], rng))
    emissions = MixtureEmissions(tuple(found), columns)
    uncounted = tuple(counted([], states.limits(w)) for w in words)
    paths = WordModels(states, uncounted, emissions).align(sequences, word)
    return WordModels(states, states.chains(paths, word), emissions)


def _long_enough(sequences: list[Array], k: int) -> list[Array]:
    """Sequences that can visit k states; if there are none, the longest one with its frames repeated."""
    found = [X for X in sequences if len(X) >= k]
    longest = max(sequences, key=len)
    return found or [longest[divided(k, len(longest))]]


def _few(sequences: list[Array], rng: np.random.Generator) -> list[Array]:
    """Some of these sequences at random, with about ``MOST_FRAMES`` frames, or all if they have fewer."""
    share = MOST_FRAMES / sum(map(len, sequences))
    if share >= 1.0:
        return sequences
    n = max(1, round(share * len(sequences)))
    return [sequences[i] for i in np.sort(rng.permutation(len(sequences))[:n])]


def _least_variances(words: Sequence[Sequence[Array]]) -> tuple[Array, Indices | None]:
    """The least variances (w, f) of words, and the f features that are not constant in all of them, None: all.

    They are shares of the variances of a word. Features that are constant in a word count with the variance within
    the other words, and if there is none, with that of the constants.
    """
    low, high, mean, variance = (np.stack(each) for each in zip(*map(_moments, words)))
    kind = words[0][0].dtype
    varies = np.flatnonzero(~constant(low.min(axis=0), high.max(axis=0), kind))
    variance = np.where(constant(low, high, kind), 0.0, variance)[:, varies]
    share = np.array([sum(map(len, own)) for own in words], dtype=np.float64)
    within = np.average(variance, axis=0, weights=share)
    fallback = np.where(within > 0.0, within, mean[:, varies].var(axis=0))
    least = LEAST_VARIANCE * np.where(variance > 0.0, variance, fallback)
    return least, None if len(varies) == low.shape[1] else varies


def _moments(sequences: Sequence[Array]) -> tuple[Array, ...]:
    """Least and largest values, means and variances (d,) of the frames of a word."""
    X = in_double(np.concatenate(sequences))
    return X.min(axis=0), X.max(axis=0), X.mean(axis=0), X.var(axis=0)


def _fit_mixtures(
    X: Array,
    lengths: Indices,
    limits: Chain,
    n_mixtures: int,
    n_iter: int,
    least: Array,
    rng: np.random.Generator,
) -> Mixtures:
    """Mixtures of the states of a word, from an equal division of its sequences, joined in X.

    Around the mean of its frames, where sums of squares keep their digits.
    """
    k, middle = len(limits.start), X.mean(axis=0)
    if X.shape[1] == 0:
        return Mixtures(np.ones((k, 1)), np.empty((k, 1, 0)), np.empty((k, 1, 0)))
    X = X - middle
    state = np.concatenate([divided(T, k) for T in lengths])
    first = _first_mixtures([X[state == i] for i in range(k)], n_mixtures, least, rng)
    found = baum_welch(X, lengths, limits, first, least=least, n_iter=n_iter)
    return Mixtures(found.weights, found.means + middle, found.variances)


def _first_mixtures(parts: Sequence[Array], most: int, least: Array, rng: np.random.Generator) -> Mixtures:
    """For each state, from its part of the frames: equal weights, means of clusters, the variances of the part."""
    M = min(most, *(len(np.unique(part, axis=0)) for part in parts))
    means = np.stack([_means(part, M, rng) for part in parts])
    spread = np.stack([np.maximum(part.var(axis=0), least) for part in parts])
    return Mixtures(np.full((len(parts), M), 1.0 / M), means, np.repeat(spread[:, None, :], M, axis=1))


def _means(X: Array, M: int, rng: np.random.Generator) -> Array:
    if M == 1:
        return np.asarray(X.mean(axis=0, keepdims=True))
    found = KMeans(M, n_init=1, random_state=int(rng.integers(2**31))).fit(X)
    return np.asarray(found.cluster_centers_, dtype=np.float64)
