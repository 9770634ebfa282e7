"""Kernels on texts: words or short pieces that two of them share."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import svds
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from mercer.errors import KernelError
from mercer.kernels.base import Kernel
from mercer.kernels.features import Counting, Objects
from mercer.kernels.pairs import Matrix, inner_products, scale_columns
from mercer.kernels.parameters import SetByRows, integer
from mercer.kernels.strings import strings
from mercer.rows.table import dense, is_sparse
from mercer.types import Array

ANALYZERS = ("word", "char", "char_wb")
# Topics whose singular value is a smaller share of the largest one are rounding errors of ARPACK.
LEAST_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class TermWeights(SetByRows):
    """Weights of terms by how few rows contain them, and the weight of terms that no row contained."""

    weight: dict[str, float] = field(repr=False)
    unseen: float

    def of(self, terms: NDArray[Any]) -> Array:
        """The weight of each term."""
        return np.array([self.weight.get(term, self.unseen) for term in terms.tolist()], np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class TermTopics(SetByRows):
    """Topics of texts: their v terms, and how much each of them counts in each topic, S (v, k), dense or CSR."""

    terms: list[str]
    S: Matrix

    def __repr__(self) -> str:
        return f"<TermTopics: {self.S.shape[1]} topics of {len(self.terms)} terms>"


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


@dataclass(frozen=True)
class TopicColumns:
    """A column for each topic."""

    columns: TermColumns
    S: Matrix

    def features(self, X: Objects) -> list[Matrix]:
        """The weighted counts of terms times S, (n, k), sparse if S is."""
        (F,) = self.columns.features(X)
        return [(F @ self.S).tocsr() if is_sparse(self.S) else inner_products(F, self.S.T)]


class BagOfWords(Counting):
    """k(d, e) = sum_t w_t² f_t(d) f_t(e) over terms t: words that two texts share, weighted by tf-idf.

    f_t(d) is the number of times that the text d contains t, and w_t = log(n / n_t) if n_t of n training rows
    contain t, so that a word of every text does not count. Terms are words, or short sequences of words or
    characters, in lower case. Long texts have larger values: compare ``Normalized(BagOfWords())``, the cosine of
    tf-idf vectors. As many operations as terms in the texts, and one sparse product.

    With ``topics``, texts are also similar if their words occur in the same training rows (semantic kernels):
    k(d, e) = phi(d)'SS'phi(e), where phi are the terms w_t f_t and S (v, k) is what a term counts in a topic.
    Each training row may be a topic: the co-occurrence kernel, or generalized vector space model. It stores the
    terms of these rows, and a text costs, for each of its terms, the rows that contain it. Or topics are the k
    directions in which the rows have the largest sum of squares: latent semantic indexing, which is kernel PCA
    without centering. It stores v k numbers, and costs k for each term of a text, after O(k) sparse products.

    Joachims (1998), "Text categorization with support vector machines"; Wong, Ziarko and Wong (1985), "Generalized
    vector spaces model in information retrieval"; Cristianini, Shawe-Taylor and Lodhi (2002), "Latent semantic
    kernels"; Shawe-Taylor and Cristianini (2004), section 10.2.

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
    topics : int, "rows", None or TermTopics
        A number k: that of the topics of latent semantic indexing; "rows": each training row is a topic. Both are
        set during the fit, and terms of no topic do not count. None: S is the identity.

    Examples
    --------
    >>> texts = ["the cat sat", "the dog sat", "the cat ran"]
    >>> BagOfWords(idf=None).block(texts[:1], texts)
    array([[3., 2., 2.]])
    >>> (kernel,) = BagOfWords().candidates(texts)
    >>> kernel.block(texts[:1], texts).round(3)
    array([[0.329, 0.164, 0.164]])

    "dog" and "sat" occur in the same row, "dog" and "cat" do not:

    >>> (kernel,) = BagOfWords(idf=None, topics="rows").candidates(texts)
    >>> kernel.block(["dog"], ["cat", "sat"])
    array([[0., 1.]])
    """

    def __init__(
        self,
        analyzer: str = "word",
        ngrams: tuple[int, int] = (1, 1),
        sublinear: bool = False,
        idf: str | TermWeights | None = "rows",
        topics: int | str | TermTopics | None = None,
    ) -> None:
        self.analyzer = analyzer
        self.ngrams = ngrams
        self.sublinear = sublinear
        self.idf = idf
        self.topics = topics

    @property
    def settled(self) -> bool:
        return not isinstance(self.idf, str) and (self.topics is None or isinstance(self.topics, TermTopics))

    def candidates(self, X: Objects, weight: ArrayLike | None = None) -> list[Kernel]:
        """The kernel, with weights and topics of the terms of X if they are to be set."""
        if self.settled:
            return [self]
        w = np.ones(len(X)) if weight is None else np.asarray(weight, np.float64)
        found = clone(self).set_params(idf=self._weights(X, w))
        return [found.set_params(topics=found._topics(X, w))]

    def _vocabulary(self, Z: Objects) -> TermColumns | TopicColumns:
        if isinstance(self.idf, str):
            raise KernelError(f'idf="{self.idf}" is determined from data; call candidates(X) first, or pass None')
        if self.topics is None:
            return self._columns(self._vectorizer(Z))
        if not isinstance(self.topics, TermTopics):
            raise KernelError(
                f"topics={self.topics!r} are determined from data; call candidates(X) first, or pass None"
            )
        vectorizer = self._analyzer().set_params(vocabulary=self.topics.terms)
        return TopicColumns(self._columns(vectorizer), self.topics.S)

    def _columns(self, vectorizer: CountVectorizer) -> TermColumns:
        """Its terms, with their weights."""
        if not (self.idf is None or isinstance(self.idf, TermWeights)):
            raise KernelError(f'idf={self.idf!r} is not known; pass "rows", None or TermWeights')
        weight = None if self.idf is None else self.idf.of(vectorizer.get_feature_names_out())
        return TermColumns(vectorizer, bool(self.sublinear), weight)

    def _weights(self, X: Objects, w: Array) -> TermWeights | None:
        """log(n / n_t), where a row of weight 2 counts like two; unless weights are given."""
        if not isinstance(self.idf, str):
            return self.idf
        if self.idf != "rows":
            raise KernelError(f'idf="{self.idf}" is not known; pass "rows", None or TermWeights')
        vectorizer = self._vectorizer(X)
        contained = (vectorizer.transform(strings(X)) > 0).T @ w
        terms = vectorizer.get_feature_names_out()[contained > 0].tolist()
        weights = np.log(w.sum() / contained[contained > 0])
        return TermWeights(dict(zip(terms, weights.tolist())), float(weights.max(initial=0.0)))

    def _topics(self, X: Objects, w: Array) -> TermTopics | None:
        """S from the rows X with weights w (n,), unless it is given."""
        if self.topics is None or isinstance(self.topics, TermTopics):
            return self.topics
        if isinstance(self.topics, str) and self.topics != "rows":
            raise KernelError(f'topics="{self.topics}" is not known; pass a number, "rows", None or TermTopics')
        vectorizer = self._vectorizer(X)
        (D,) = self._columns(vectorizer).features(X)
        D = scale_columns(D.T, np.sqrt(w)).T.tocsr()[w > 0]
        S = D.T.tocsr() if self.topics == "rows" else _leading(D, integer("topics", self.topics, least=1))
        return TermTopics(vectorizer.get_feature_names_out().tolist(), S)

    def _analyzer(self) -> CountVectorizer:
        """What takes texts apart into terms."""
        if self.analyzer not in ANALYZERS:
            raise KernelError(f'analyzer={self.analyzer!r}; it must be one of "word", "char", "char_wb"')
        shortest, longest = (integer("ngrams", n, least=1) for n in self.ngrams)
        if shortest > longest:
            raise KernelError(f"ngrams={self.ngrams}; the first number must not be more than the second")
        return CountVectorizer(analyzer=self.analyzer, ngram_range=(shortest, longest))

    def _vectorizer(self, Z: Objects) -> CountVectorizer:
        """One that counts the terms of Z."""
        vectorizer = self._analyzer()
        terms = {term for text in strings(Z) for term in vectorizer.build_analyzer()(text)}
        # A vocabulary must have a term; this one is in no text, since texts are converted to lower case.
        return vectorizer.set_params(vocabulary=sorted(terms) or ["A"])


def _leading(D: Matrix, k: int) -> Array:
    """Right singular vectors (v, k) of CSR D (n, v) with the largest singular values; fewer if they are zero."""
    most = min(D.shape)
    if k < most // 2 and D.count_nonzero():
        _, sigma, Vt = svds(D, k, v0=np.ones(most))
    else:
        _, sigma, Vt = np.linalg.svd(dense(D), full_matrices=False)
    order = np.argsort(-sigma)[:k]
    return np.ascontiguousarray(Vt[order[sigma[order] > LEAST_SHARE * sigma.max(initial=0.0)]].T)
