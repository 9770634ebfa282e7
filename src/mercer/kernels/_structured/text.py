"""Kernels on texts: words or short pieces that two of them share."""

from array import array
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from mercer._types import Array, Indices
from mercer.errors import KernelError
from mercer.kernels._base import Kernel
from mercer.kernels._matrices import Matrix, inner_products, scale_columns
from mercer.kernels._parameters import SetByRows, integer
from mercer.kernels._structured.base import Counting, Objects, pointers, starts
from mercer.kernels._structured.strings import OnStrings, strings
from mercer.rows._table import dense, is_sparse, n_rows

ANALYZERS = ("word", "char", "char_wb")
# Topics whose singular value is a smaller share of the largest one are rounding errors of ARPACK.
LEAST_TOPIC_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class TermWeights(SetByRows):
    """Weights of terms by how few rows contain them, and the weight of terms that no row contained."""

    weight: dict[str, float] = field(repr=False)
    unseen: float

    def of(self, terms: list[str]) -> Array:
        """The weight of each term."""
        return np.fromiter(map(self.weight.get, terms, repeat(self.unseen)), np.float64, len(terms))


@dataclass(frozen=True, eq=False, repr=False)
class TermTopics(SetByRows):
    """Topics of texts: their v terms, and how much each of them counts in each topic, S (v, k), dense or CSR."""

    terms: list[str]
    S: Matrix

    def __repr__(self) -> str:
        return f"<TermTopics: {self.S.shape[1]} topics of {len(self.terms)} terms>"


@dataclass(frozen=True, eq=False, repr=False)
class Terms:
    """Texts taken apart: a table of how often each of n texts contains each of the v ``names``, CSR (n, v).

    Names are in ascending order. Some of the rows have the same columns.
    """

    names: list[str]
    counts: Matrix

    @classmethod
    def of(cls, X: Objects, vectorizer: CountVectorizer) -> "Terms":
        """The terms of texts, each of which is read once; texts that were taken apart are returned as they are."""
        if isinstance(X, Terms):
            return X
        analyzed, place, column, sizes = vectorizer.build_analyzer(), _Places(), array("q"), []
        for text in strings(X):
            before = len(column)
            column.extend(map(place.__getitem__, analyzed(text)))
            sizes.append(len(column) - before)
        # There is always a column; this term is in no text, since texts are converted to lower case.
        names = sorted(place) or ["A"]
        rank = np.empty(len(names), np.intp)
        rank[[place[name] for name in names]] = np.arange(len(names))
        found = rank[np.frombuffer(column, np.int64)] if len(column) else np.zeros(0, np.intp)
        counts = sparse.csr_matrix((np.ones(len(found)), found, starts(sizes)), (len(sizes), len(names)))
        counts.sum_duplicates()
        return cls(names, counts)

    @property
    def shape(self) -> tuple[int]:
        return (int(self.counts.shape[0]),)

    @property
    def nbytes(self) -> int:
        """Bytes of the counts."""
        return int(self.counts.data.nbytes + self.counts.indices.nbytes + self.counts.indptr.nbytes)

    def __getitem__(self, rows: Indices | slice) -> "Terms":
        return Terms(self.names, self.counts[rows])

    def counts_of(self, names: list[str], place: dict[str, int]) -> Matrix:
        """How often each text contains each of some names, whose columns are their ``place``; CSR (n, v)."""
        if names is self.names:
            return self.counts.copy()
        column = np.array([place.get(name, -1) for name in self.names], np.intp)[self.counts.indices]
        kept = column >= 0
        pointer = pointers(kept, self.counts.indptr)
        return sparse.csr_matrix((self.counts.data[kept], column[kept], pointer), (*self.shape, len(names)))


class _Places(dict[str, int]):
    """Numbers of terms in the order in which they are asked for."""

    def __missing__(self, term: str) -> int:
        return self.setdefault(term, len(self))


@dataclass(frozen=True)
class TermColumns:
    """A column for each of some terms, with its weight; None: 1."""

    vectorizer: CountVectorizer
    names: list[str]
    sublinear: bool
    weight: Array | None

    @cached_property
    def place(self) -> dict[str, int]:
        """The column of each term."""
        return {name: i for i, name in enumerate(self.names)}

    def features(self, X: Objects) -> list[Matrix]:
        """How often each text contains each term, times its weight, CSR (n, v)."""
        terms = Terms.of(X, self.vectorizer)
        counts = terms.counts_of(self.names, {} if terms.names is self.names else self.place)
        if self.sublinear:
            counts.data = 1.0 + np.log(counts.data)
        return [counts if self.weight is None else scale_columns(counts, self.weight)]


@dataclass(frozen=True)
class TopicColumns:
    """A column for each topic."""

    columns: TermColumns
    S: Matrix

    def features(self, X: Objects) -> list[Matrix]:
        """The weighted counts of terms times S, (n, k), sparse if S is."""
        (F,) = self.columns.features(X)
        return [(F @ self.S).tocsr() if is_sparse(self.S) else inner_products(F, self.S.T)]


class BagOfWords(OnStrings, Counting):
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
    def resolved(self) -> bool:
        return not isinstance(self.idf, str) and (self.topics is None or isinstance(self.topics, TermTopics))

    def candidates(self, X: Objects, weight: ArrayLike | None = None) -> list[Kernel]:
        """The kernel, with weights and topics of the terms of X if they are to be set."""
        if self.resolved:
            return [self]
        w = np.ones(n_rows(X)) if weight is None else np.asarray(weight, np.float64)
        terms = self.prepared(X)
        found = clone(self).set_params(idf=self._weights(terms, w))
        return [found.set_params(topics=found._topics(terms, w))]

    def prepared(self, X: Objects) -> Terms:
        """The terms of the texts."""
        return Terms.of(X, self._analyzer())

    def _vocabulary(self, Z: Objects) -> TermColumns | TopicColumns:
        if isinstance(self.idf, str):
            raise KernelError(f'idf="{self.idf}" is determined from data; call candidates(X) first, or pass None')
        if self.topics is None:
            return self._columns(self.prepared(Z).names)
        if not isinstance(self.topics, TermTopics):
            raise KernelError(
                f"topics={self.topics!r} are determined from data; call candidates(X) first, or pass None"
            )
        return TopicColumns(self._columns(self.topics.terms), self.topics.S)

    def _columns(self, names: list[str]) -> TermColumns:
        """Terms with their weights."""
        if not (self.idf is None or isinstance(self.idf, TermWeights)):
            raise KernelError(f'idf={self.idf!r} is not known; pass "rows", None or TermWeights')
        weight = None if self.idf is None else self.idf.of(names)
        return TermColumns(self._analyzer(), names, bool(self.sublinear), weight)

    def _weights(self, found: Terms, w: Array) -> TermWeights | None:
        """log(n / n_t), where a row of weight 2 counts like two; unless weights are given."""
        if not isinstance(self.idf, str):
            return self.idf
        if self.idf != "rows":
            raise KernelError(f'idf="{self.idf}" is not known; pass "rows", None or TermWeights')
        contained = (found.counts > 0).T @ w
        terms = [found.names[i] for i in np.flatnonzero(contained > 0)]
        weights = np.log(w.sum() / contained[contained > 0])
        return TermWeights(dict(zip(terms, weights.tolist())), float(weights.max(initial=0.0)))

    def _topics(self, found: Terms, w: Array) -> TermTopics | None:
        """S from the terms of rows with weights w (n,), unless it is given."""
        if self.topics is None or isinstance(self.topics, TermTopics):
            return self.topics
        if isinstance(self.topics, str) and self.topics != "rows":
            raise KernelError(f'topics="{self.topics}" is not known; pass a number, "rows", None or TermTopics')
        (D,) = self._columns(found.names).features(found)
        D = scale_columns(D.T, np.sqrt(w)).T.tocsr()[w > 0]
        S = D.T.tocsr() if self.topics == "rows" else _leading(D, integer("topics", self.topics, least=1))
        return TermTopics(found.names, S)

    def _analyzer(self) -> CountVectorizer:
        """What takes texts apart into terms."""
        if self.analyzer not in ANALYZERS:
            raise KernelError(f'analyzer={self.analyzer!r}; it must be one of "word", "char", "char_wb"')
        shortest, longest = (integer("ngrams", n, least=1) for n in self.ngrams)
        if shortest > longest:
            raise KernelError(f"ngrams={self.ngrams}; the first number must not be more than the second")
        return CountVectorizer(analyzer=self.analyzer, ngram_range=(shortest, longest))


def _leading(D: Matrix, k: int) -> Array:
    """Right singular vectors (v, k) of CSR D (n, v) with the largest singular values; fewer if they are zero."""
    most = min(D.shape)
    if k < most // 2 and D.count_nonzero():
        _, sigma, Vt = svds(D, k, v0=np.ones(most))
    else:
        _, sigma, Vt = np.linalg.svd(dense(D), full_matrices=False)
    order = np.argsort(-sigma)[:k]
    return np.ascontiguousarray(Vt[order[sigma[order] > LEAST_TOPIC_SHARE * sigma.max(initial=0.0)]].T)
