"""Connected words: one chain through the states of all words, by a grammar, and the words along its best path."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mercer import _validation
from mercer._types import Array, Indices
from mercer.sequences._paths.chains import Chain

# What may follow a word: words, or words with probabilities. The key None is the beginning, the word None the end.
Grammar = Mapping[Any, Iterable[Any] | Mapping[Any, float]]


def bigrams(sentences: Iterable[Sequence[Any]], *, discount: float = 0.5) -> dict[Any, dict[Any, float]]:
    """Probabilities of each word after each other, from sentences: a grammar for ``decode``.

    ``discount`` of the count of each pair that was seen goes to all words, in proportion to their own frequency
    (absolute discounting, Ney, Essen and Kneser 1994). None stands for the beginning and the end of a sentence.

    Examples
    --------
    >>> from mercer.sequences import bigrams
    >>> grammar = bigrams([["call", "home"], ["call", "work"]])
    >>> grammar["call"]["home"] > grammar["call"]["call"] > 0
    True
    """
    _validation.check_number("discount", discount, "a number from 0 to 1", least=0.0, most=1.0)
    sentences = list(sentences)
    if any(isinstance(words, str) for words in sentences):
        raise ValueError("a sentence is a list of words, not a string; pass sentence.split()")
    pairs = Counter(pair for words in sentences for pair in zip([None, *words], [*words, None]))
    if not pairs:
        raise ValueError("there are no sentences; pass at least one")
    after = Counter({w: 0 for pair in pairs for w in pair})
    for (_, word), n in pairs.items():
        after[word] += n
    total = sum(after.values())
    grammar: dict[Any, dict[Any, float]] = {}
    for before in after:
        own = {word: n for (first, word), n in pairs.items() if first == before}
        count = sum(own.values())
        free = discount * len(own) / count if count else 1.0
        kept = {word: (n - discount) / count for word, n in own.items()}
        grammar[before] = {word: kept.get(word, 0.0) + free * n / total for word, n in after.items() if n}
    return grammar


def follow(grammar: Grammar | None, words: Sequence[Any]) -> tuple[Array, Array, Array]:
    """Weights of words at the beginning (k,), after each other (k, k), and at the end (k,), from a grammar."""
    k = len(words)
    if grammar is None:
        return np.full(k, 1.0 / k), np.full((k, k), 1.0 / k), np.ones(k)
    if not isinstance(grammar, Mapping):
        raise TypeError(
            f"the grammar is a {type(grammar).__name__}; pass a dict of the words that may follow each word"
        )
    weighted = {before: _weights(before, after) for before, after in grammar.items()}
    number = {word: i for i, word in enumerate(words)}
    unknown = (set(weighted) | _followers(weighted)) - {None, *number}
    if unknown:
        raise ValueError(
            f"the grammar has words without models: {sorted(map(repr, unknown))}; fit them, or drop them"
        )
    table = np.zeros((k + 1, k + 1))
    for before, weights in weighted.items():
        for word, weight in weights.items():
            table[number.get(before, k), number.get(word, k)] = weight
    # Without a word on beginnings or ends, any word may be the first or the last.
    start = table[k, :k] if None in grammar else np.full(k, 1.0 / k)
    end = table[:k, k] if None in _followers(weighted) else np.ones(k)
    return start, table[:k, :k], end


def network(chains: Sequence[Chain], grammar: tuple[Array, Array, Array], penalty: float) -> Chain:
    """The chains of all words in one: from the ends of words to the starts of others, exp(-penalty) times."""
    start, after, end = grammar
    first = np.concatenate([[0], np.cumsum([len(chain.start) for chain in chains])]).astype(np.intp)
    k, price = int(first[-1]), float(np.exp(-penalty))
    whole = Chain(np.zeros(k), np.zeros((k, k)), np.zeros(k))
    for i, chain in enumerate(chains):
        own = slice(first[i], first[i + 1])
        whole.start[own] = price * start[i] * chain.start
        whole.end[own] = end[i] * chain.end
        whole.step[own, own] = chain.step
        for j, other in enumerate(chains):
            # Within a word or to its beginning: the better of the two.
            step = whole.step[own, first[j] : first[j + 1]]
            np.maximum(step, price * after[i, j] * np.outer(chain.end, other.start), out=step)
    return whole


def words_along(path: Indices, sizes: Sequence[int], *, forward: bool = True) -> list[tuple[int, int]]:
    """The words (number, first frame) of a path: a new one where the word changes or begins again.

    ``forward``: states of a word never go back, so that a step back begins it again.
    """
    word = np.repeat(np.arange(len(sizes)), sizes)[path]
    begins = np.flatnonzero(np.r_[True, (word[1:] != word[:-1]) | (forward & (path[1:] < path[:-1]))])
    return [(int(word[t]), int(t)) for t in begins]


def _weights(before: Any, after: Any) -> dict[Any, float]:
    """Words that may follow one, with weights; those of a list are equally likely."""
    if isinstance(after, str) or not isinstance(after, Iterable):
        raise ValueError(f"the grammar has {after!r} after {before!r}; pass a list of words, or a dict of weights")
    if isinstance(after, Mapping):
        name = f"the weight after {before!r}"
        return {
            word: _validation.check_number(name, weight, "a number of at least 0", least=0.0)
            for word, weight in after.items()
        }
    words = list(after)
    return dict.fromkeys(words, 1.0 / max(len(words), 1))


def _followers(grammar: Grammar) -> set[Any]:
    return {word for after in grammar.values() for word in after}
