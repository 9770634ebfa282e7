"""Weights of substrings and words in an expansion."""

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.errors import KernelError
from mercer.kernels import BagOfWords, KmerSpectrum, Normalized, Substrings, feature_weights

Z = ["acgt acg", "", "ccc  c", "gattaca", "tac tac"]
NEW = ["gattacagattaca", "ccc", "t ac  g"]
COEF = np.array([[1.0], [5.0], [-2.0], [0.5], [3.0]])


@pytest.mark.parametrize(
    "kernel", [KmerSpectrum(2), KmerSpectrum(3, min_k=1, decay=0.7), 2.0 * KmerSpectrum(1)], ids=str
)
def test_weights_of_substrings_give_the_function(kernel):
    weights = feature_weights(kernel, Z, COEF, most=None)
    counts = [Counter(s[i : i + l] for l in (1, 2, 3) for i in range(len(s) - l + 1)) for s in NEW]
    found = [sum(w * count[u] for u, w in weights.items()) for count in counts]
    assert_allclose(found, kernel.block(NEW, Z) @ COEF.ravel(), rtol=1e-12)


def test_weights_of_normalized_kernels_are_for_unit_strings():
    kernel = KmerSpectrum(2)
    weights = feature_weights(Normalized(kernel), Z, COEF, most=None)
    counts = [Counter(s[i : i + 2] for i in range(len(s) - 1)) for s in NEW]
    found = [sum(w * count[u] for u, w in weights.items()) for count in counts] / np.sqrt(kernel.diag(NEW))
    assert_allclose(found, Normalized(kernel).block(NEW, Z) @ COEF.ravel(), rtol=1e-12)


def test_weights_of_words_give_the_function():
    texts = ["the cat sat", "the dog sat", "a mat", ""]
    (kernel,) = BagOfWords().candidates(texts)
    weights = feature_weights(kernel, texts, [1.0, -2.0, 0.5, 1.0], most=None)
    assert_allclose(
        sum(weights[word] for word in ("dog", "sat")), kernel.block(["dog sat"], texts) @ [1.0, -2.0, 0.5, 1.0]
    )


def test_the_largest_come_first():
    weights = list(feature_weights(KmerSpectrum(2), Z, COEF, most=3).values())
    assert len(weights) == 3
    assert np.all(np.diff(np.abs(weights)) <= 0.0)
    assert feature_weights(KmerSpectrum(20), Z, COEF) == {}


@pytest.mark.parametrize("kernel", [Substrings(), KmerSpectrum(aligned=True)], ids=str)
def test_other_kernels_have_no_names(kernel):
    with pytest.raises(KernelError, match="have no names"):
        feature_weights(kernel, Z, COEF)


@pytest.mark.parametrize("most", [-1, 1.5, True])
def test_the_number_of_weights_is_a_number_of_them(most):
    with pytest.raises(KernelError, match=f"most={most}"):
        feature_weights(KmerSpectrum(), Z, COEF, most=most)


def test_one_coefficient_for_each_center():
    with pytest.raises(KernelError, match=r"coef has shape \(2,\) for 5 centers"):
        feature_weights(KmerSpectrum(), Z, [1.0, 2.0])
