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
    assert kernel.resolved
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
        (BagOfWords(idf=3), "idf=3 is not known"),
    ],
)
def test_parameters_that_make_no_kernel_are_refused(kernel, words):
    with pytest.raises(KernelError, match=words):
        kernel.block(TEXTS, TEXTS)


def test_unknown_words_for_weights_are_refused():
    with pytest.raises(KernelError, match='pass "rows"'):
        BagOfWords(idf="best").candidates(TEXTS)


def counted(**params):
    """The kernel of TEXTS with these parameters, and that of their weighted words alone."""
    (plain,) = BagOfWords().candidates(TEXTS)
    (kernel,) = BagOfWords(idf=plain.idf, **params).candidates(TEXTS)
    return kernel, plain


def test_cooccurrence_kernel_of_training_rows_is_the_squared_matrix():
    kernel, plain = counted(topics="rows")
    new = ["a red cat", "mat zebra"]
    K = plain.block(TEXTS, TEXTS)
    assert_allclose(kernel.block(TEXTS, TEXTS), K @ K, rtol=1e-12, atol=1e-14)
    assert_allclose(kernel.block(new, TEXTS), plain.block(new, TEXTS) @ K, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_latent_semantic_kernel_is_kernel_pca_without_centering(k):
    kernel, plain = counted(topics=k)
    new = ["a red cat", "mat zebra"]
    values, V = np.linalg.eigh(plain.block(TEXTS, TEXTS))
    V = V[:, -k:] / np.sqrt(values[-k:])
    scores, fresh = (plain.block(rows, TEXTS) @ V for rows in (TEXTS, new))
    assert_allclose(kernel.block(TEXTS, TEXTS), scores @ scores.T, rtol=1e-8, atol=1e-12)
    assert_allclose(kernel.block(new, TEXTS), fresh @ scores.T, rtol=1e-8, atol=1e-12)


def test_few_topics_of_many_texts_are_those_of_the_whole_decomposition():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice([f"w{i}" for i in range(60)], 8)) for _ in range(40)]
    (few,) = BagOfWords(topics=3).candidates(texts)
    (many,) = BagOfWords(topics=30).candidates(texts)
    overlap = few.topics.S.T @ many.topics.S
    assert_allclose(np.abs(overlap[:, :3]), np.eye(3), atol=1e-7)
    assert_allclose(overlap[:, 3:], 0.0, atol=1e-7)


def test_as_many_topics_as_directions_change_nothing_between_training_rows():
    kernel, plain = counted(topics=100)
    assert kernel.topics.S.shape[1] <= len(TEXTS)
    assert_allclose(kernel.block(TEXTS, TEXTS), plain.block(TEXTS, TEXTS), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("topics", ["rows", 2])
def test_weight_is_repetition_of_topics(topics):
    weight = [1, 2, 0, 1, 3, 1]
    (weighted,) = BagOfWords(topics=topics).candidates(TEXTS, weight)
    (repeated,) = BagOfWords(topics=topics).candidates(np.repeat(np.array(TEXTS, dtype=object), weight))
    assert_allclose(weighted.block(TEXTS, TEXTS), repeated.block(TEXTS, TEXTS), rtol=1e-10, atol=1e-12)


def test_texts_without_words_have_no_topics():
    (kernel,) = BagOfWords(topics=3).candidates(["", "!"])
    assert_array_equal(kernel.block(["", "cat"], ["cat"]), np.zeros((2, 1)))


def test_one_of_several_text_kernels_is_chosen():
    texts = [f"{a} {b} {c}" for a in ("the", "one") for b in ("cat", "dog") for c in ("sat", "ran", "is red")]
    model = KernelFisherClassifier([BagOfWords(), BagOfWords("char", (1, 2)), BagOfWords(topics=4)])
    assert model.fit(texts, ["cat" in text for text in texts]).kernel_.resolved


@pytest.mark.parametrize(("topics", "words"), [("many", 'topics="many"'), (0, "topics=0"), (1.5, "topics=1.5")])
def test_topics_that_cannot_be_are_refused(topics, words):
    with pytest.raises(KernelError, match=words):
        BagOfWords(topics=topics).candidates(TEXTS)


def test_topics_need_rows():
    with pytest.raises(KernelError, match="topics=3 are determined from data"):
        BagOfWords(idf=None, topics=3).block(TEXTS, TEXTS)


@pytest.mark.parametrize("kernel", [BagOfWords(sublinear=True), BagOfWords(topics=2), BagOfWords(topics="rows")])
def test_texts_taken_apart_are_compared_like_texts(kernel):
    for each in (*kernel.candidates(TEXTS), *Normalized(kernel).candidates(TEXTS)):
        rows, new = each.prepared(TEXTS), ["a new cat sat", "THE mat"]
        some = np.array([4, 0, 2])
        assert each.prepared(rows) is rows
        assert_array_equal(each.diag(rows), each.diag(TEXTS))
        assert_allclose(each.block(rows, rows), each.block(TEXTS, TEXTS), rtol=1e-14)
        assert_allclose(each.block(rows, each.centers(rows, some)), each.block(TEXTS, TEXTS)[:, some], rtol=1e-14)
        assert_allclose(each.block(each.prepared(new), rows), each.block(new, TEXTS), rtol=1e-14)


def test_weights_of_texts_taken_apart_are_those_of_the_texts():
    kernel = BagOfWords(topics="rows")
    (expected,) = kernel.candidates(TEXTS[1:3])
    (found,) = kernel.candidates(kernel.prepared(TEXTS)[1:3])
    assert found.idf.weight == expected.idf.weight
    assert_array_equal(found.block(TEXTS, TEXTS), expected.block(TEXTS, TEXTS))


class Watched(str):
    """A text that counts conversions to lower case, with which every analysis of a text begins."""

    analyses = 0

    def lower(self):
        Watched.analyses += 1
        return super().lower()


def analyses_of(model, texts, y):
    """How many analyses of texts the fit of a model takes, for each text."""
    Watched.analyses = 0
    model.fit([Watched(text) for text in texts], y)
    return Watched.analyses / len(texts)


def random_texts(rng, n, length, n_words=40):
    """Texts of so many words, and labels: whether the first word is one of the first half."""
    words = rng.integers(0, n_words, (n, length))
    return [" ".join(f"word{i}" for i in row) for row in words], words[:, 0] < n_words // 2


def test_a_fit_takes_texts_apart_once_for_all_comparisons(rng):
    texts, y = random_texts(rng, 700, 5)
    model = KernelFisherClassifier(Normalized(BagOfWords()), random_state=0)
    # Once for the fit; then for what is known of new rows, with some of the rows as candidates and as centers.
    assert analyses_of(model, texts, y) <= 4.0
    assert model.X_fit_ == texts


@pytest.mark.slow
def test_texts_taken_apart_are_not_kept_without_memory_for_them(rng):
    texts, y = random_texts(rng, 150, 1000, 3000)
    ample, short = (KernelFisherClassifier(Normalized(BagOfWords()), max_memory=m) for m in (1.0, 0.003))
    assert analyses_of(short, texts, y) > analyses_of(ample, texts, y) + 1.0
    assert_array_equal(short.dual_coef_, ample.dual_coef_)
