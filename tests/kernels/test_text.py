"""Words of texts, and weights that the rows give them."""

import pickle
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from mercer import KernelFisherClassifier
from mercer.errors import KernelError
from mercer.kernels import BagOfWords, KmerSpectrum, Normalized, TermWeights

TEXTS = ["the cat sat on the mat", "the dog sat", "", "A dog, a cat!", "cat cat cat", "the mat"]


def test_weights_are_logarithms_of_shares():
    n = len(TEXTS)
    words = [text.replace(",", "").replace("!", "").lower().split() for text in TEXTS]
    # Words of one letter are not counted, as in scikit-learn.
    counts = [Counter(word for word in some if len(word) > 1) for some in words]
    rows = Counter(word for some in counts for word in some)
    expected = [[sum(np.log(n / rows[t]) ** 2 * a[t] * b[t] for t in a) for b in counts] for a in counts]
    (kernel,) = BagOfWords().candidates(TEXTS)
    assert kernel.settled
    assert_allclose(kernel.block(TEXTS, TEXTS), expected, rtol=1e-12)
    assert kernel.idf.weight["dog"] == np.log(3.0)
    assert kernel.idf.unseen == np.log(6.0)


@pytest.mark.parametrize("sublinear", [False, True])
def test_normalized_values_are_cosines_of_scikit_learn(sublinear):
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(2, 3), use_idf=False, sublinear_tf=sublinear)
    F = vectorizer.fit_transform(TEXTS)
    kernel = Normalized(BagOfWords("char", (2, 3), sublinear=sublinear, idf=None))
    assert_allclose(kernel.block(TEXTS, TEXTS), (F @ F.T).toarray(), rtol=1e-12, atol=1e-14)


def test_characters_without_weights_are_the_spectrum():
    rows = ["banana", "bandana", "an", ""]
    found = BagOfWords("char", (2, 3), idf=None).block(rows, rows)
    assert_array_equal(found, KmerSpectrum(k=3, min_k=2).block(rows, rows))


def test_weight_is_repetition():
    weight = [1, 2, 0, 1, 3, 1]
    (weighted,) = BagOfWords().candidates(TEXTS, weight)
    (repeated,) = BagOfWords().candidates(np.repeat(np.array(TEXTS, dtype=object), weight))
    assert weighted.idf.weight.keys() == repeated.idf.weight.keys()
    assert_allclose(list(weighted.idf.weight.values()), list(repeated.idf.weight.values()))
    assert weighted.idf.unseen == repeated.idf.unseen


def test_weights_are_part_of_the_fitted_kernel():
    model = KernelFisherClassifier(Normalized(BagOfWords())).fit(TEXTS[:2] * 3 + TEXTS[4:] * 3, [0, 0, 1, 1] * 3)
    kernel = model.kernel_.kernel
    assert isinstance(kernel.idf, TermWeights)
    assert "cat" not in repr(kernel)
    for twin in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert_array_equal(twin.block(TEXTS, TEXTS), kernel.block(TEXTS, TEXTS))


def test_terms_of_no_row_count_like_the_rarest():
    kernel = BagOfWords(idf=TermWeights({"cat": 1.0}, 2.0))
    assert kernel.block(["cat zebra"], ["cat zebra"]) == 5.0


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (BagOfWords("letters", idf=None), "analyzer='letters'"),
        (BagOfWords(ngrams=(2, 1), idf=None), "must not be more"),
        (BagOfWords(ngrams=(0, 1), idf=None), "ngrams=0"),
        (BagOfWords(), "is determined from data"),
    ],
)
def test_parameters_that_make_no_kernel_are_refused(kernel, words):
    with pytest.raises(KernelError, match=words):
        kernel.block(TEXTS, TEXTS)


def test_unknown_words_for_weights_are_refused():
    with pytest.raises(KernelError, match='pass "rows"'):
        BagOfWords(idf="best").candidates(TEXTS)
