"""Kernels on texts: words or short pieces that two of them share."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from mercer.errors import KernelError
from mercer.kernels.base import Kernel
from mercer.kernels.features import Counting, Objects
from mercer.kernels.pairs import Matrix, scale_columns
from mercer.kernels.parameters import integer
from mercer.kernels.strings import strings
from mercer.types import Array

ANALYZERS = ("word", "char", "char_wb")


@dataclass(frozen=True)
class TermWeights:
    """Weights of terms by how few rows contain them, and the weight of terms that no row contained."""

    weight: dict[str, float] = field(repr=False)
    unseen: float

    def of(self, terms: NDArray[Any]) -> Array:
        """The weight of each term."""
        return np.array([self.weight.get(term, self.unseen) for term in terms.tolist()], np.float64)


@dataclass(frozen=True)
class TermColumns:
    """A column for each term that some texts contain, with its weight; None: 1."""

    vectorizer: CountVectorizer
    sublinear: bool
    weight: Array | None

    def features(self, X: Objects) -> list[Matrix]:
        """How often each text contains each term, times its weight, CSR (n, v)."""
        rows = strings(X)
        counts = self.vectorizer.transform(rows or [""]).astype(np.float64)[: len(rows)]
        if self.sublinear:
            counts.data = 1.0 + np.log(counts.data)
        return [counts.tocsr() if self.weight is None else scale_columns(counts, self.weight)]


class BagOfWords(Counting):
    """k(d, e) = sum_t w_t² f_t(d) f_t(e) over terms t: words that two texts share, weighted by tf-idf.

    f_t(d) is the number of times that the text d contains t, and w_t = log(n / n_t) if n_t of n training rows
    contain t, so that a word of every text does not count. Terms are words, or short sequences of words or
    characters, in lower case. Long texts have larger values: compare ``Normalized(BagOfWords())``, the cosine of
    tf-idf vectors. As many operations as terms in the texts, and one sparse product.

    Joachims (1998), "Text categorization with support vector machines"; Shawe-Taylor and Cristianini (2004),
    section 10.2.

    Parameters
    ----------
    analyzer : {"word", "char", "char_wb"}
        What a term is, as in scikit-learn's ``CountVectorizer``: words, sequences of characters, or such within
        words.
    ngrams : (int, int)
        Shortest and longest number of words or characters of a term.
    sublinear : bool
        Whether f_t is 1 + log of the number instead.
    idf : "rows", None or TermWeights
        "rows": weights by the training rows, set during the fit; other terms count like the rarest of these.
        None: all weights are 1.

    Examples
    --------
    >>> texts = ["the cat sat", "the dog sat", "the cat ran"]
    >>> BagOfWords(idf=None).block(texts[:1], texts)
    array([[3., 2., 2.]])
    >>> (kernel,) = BagOfWords().candidates(texts)
    >>> kernel.block(texts[:1], texts).round(3)
    array([[0.329, 0.164, 0.164]])
    """

    def __init__(
        self,
        analyzer: str = "word",
        ngrams: tuple[int, int] = (1, 1),
        sublinear: bool = False,
        idf: str | TermWeights | None = "rows",
    ) -> None:
        self.analyzer = analyzer
        self.ngrams = ngrams
        self.sublinear = sublinear
        self.idf = idf

    @property
    def settled(self) -> bool:
        return not isinstance(self.idf, str)

    def candidates(self, X: Objects, weight: ArrayLike | None = None) -> list[Kernel]:
        """The kernel, with weights of the terms of X if ``idf="rows"``."""
        if not isinstance(self.idf, str):
            return [self]
        if self.idf != "rows":
            raise KernelError(f'idf="{self.idf}" is not known; pass "rows", None or TermWeights')
        return [clone(self).set_params(idf=self._weights(X, weight))]

    def _vocabulary(self, Z: Objects) -> TermColumns:
        if isinstance(self.idf, str):
            raise KernelError(f'idf="{self.idf}" is determined from data; call candidates(X) first, or pass None')
        vectorizer = self._vectorizer(Z)
        weight = None if self.idf is None else self.idf.of(vectorizer.get_feature_names_out())
        return TermColumns(vectorizer, bool(self.sublinear), weight)

    def _weights(self, X: Objects, weight: ArrayLike | None) -> TermWeights:
        """log(n / n_t), where a row of weight 2 counts like two."""
        vectorizer = self._vectorizer(X)
        w = np.ones(len(X)) if weight is None else np.asarray(weight, np.float64)
        contained = (vectorizer.transform(strings(X)) > 0).T @ w
        terms = vectorizer.get_feature_names_out()[contained > 0].tolist()
        weights = np.log(w.sum() / contained[contained > 0])
        return TermWeights(dict(zip(terms, weights.tolist())), float(weights.max(initial=0.0)))

    def _vectorizer(self, Z: Objects) -> CountVectorizer:
        """One that counts the terms of Z."""
        if self.analyzer not in ANALYZERS:
            raise KernelError(f'analyzer={self.analyzer!r}; it must be one of "word", "char", "char_wb"')
        shortest, longest = (integer("ngrams", n, least=1) for n in self.ngrams)
        if shortest > longest:
            raise KernelError(f"ngrams={self.ngrams}; the first number must not be more than the second")
        vectorizer = CountVectorizer(analyzer=self.analyzer, ngram_range=(shortest, longest))
        terms = {term for text in strings(Z) for term in vectorizer.build_analyzer()(text)}
        # A vocabulary must have a term; this one is in no text, since texts are converted to lower case.
        return vectorizer.set_params(vocabulary=sorted(terms) or ["A"])
