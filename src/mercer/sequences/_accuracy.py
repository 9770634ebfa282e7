"""Word accuracy: substitutions, deletions and insertions between what was said and what was recognized."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class WordErrors:
    """Numbers of words and of errors, over all sentences."""

    words: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def errors(self) -> int:
        """All errors."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def accuracy(self) -> float:
        """1 - errors / words: Andelić (2007), Eq. (4.5); below zero if there are more errors than words."""
        return 1.0 - self.errors / self.words


def word_errors(said: Sequence[Sequence[Any]], recognized: Sequence[Sequence[Any]]) -> WordErrors:
    """Errors of recognized sentences, each a list of words: the fewest edits that make them what was said.

    Of edits of the same number, those with most substitutions. Costs O(n m) for sentences of n and m words.

    Examples
    --------
    >>> from mercer.sequences import word_errors
    >>> errors = word_errors([["one", "two", "three"]], [["one", "three", "three", "four"]])
    >>> errors.substitutions, errors.deletions, errors.insertions
    (1, 0, 1)
    >>> round(errors.accuracy, 2)
    0.33
    """
    if len(said) != len(recognized):
        raise ValueError(f"{len(said)} sentences were said and {len(recognized)} recognized; pass pairs of them")
    if any(isinstance(sentence, str) for sentence in (*said, *recognized)):
        raise TypeError("a sentence is a list of words, and one of these is a string; split it: text.split()")
    words = sum(map(len, said))
    if words == 0:
        raise ValueError("no words were said; there is no accuracy without words")
    counts = np.sum([_edits(a, b) for a, b in zip(said, recognized)], axis=0)
    return WordErrors(words, *counts.tolist())


def _edits(said: Sequence[Any], recognized: Sequence[Any]) -> tuple[int, int, int]:
    """Substitutions, deletions and insertions of one sentence (Levenshtein distance)."""
    # (errors, deletions + insertions, substitutions, deletions, insertions): compared by the first two.
    above = [(j, j, 0, 0, j) for j in range(len(recognized) + 1)]
    for i, word in enumerate(said, 1):
        row = [(i, i, 0, i, 0)]
        for j, other in enumerate(recognized, 1):
            e, moves, s, d, n = above[j - 1]
            wrong = int(word != other)
            same = (e + wrong, moves, s + wrong, d, n)
            e, moves, s, d, n = above[j]
            deleted = (e + 1, moves + 1, s, d + 1, n)
            e, moves, s, d, n = row[j - 1]
            inserted = (e + 1, moves + 1, s, d, n + 1)
            row.append(min(same, deleted, inserted))
        above = row
    return above[-1][2:]
