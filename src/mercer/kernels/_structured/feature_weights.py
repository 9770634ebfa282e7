"""Which features with names weigh most in f(x) = sum_j c_j k(x, z_j)."""

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.feature_extraction.text import CountVectorizer

from mercer._types import Array
from mercer.errors import KernelError
from mercer.kernels._base import Kernel, Normalized, Scaled
from mercer.kernels._parameters import integer
from mercer.kernels._structured.base import Objects
from mercer.kernels._structured.strings import KmerSpectrum, resolved_length, strings
from mercer.kernels._structured.text import BagOfWords, TermColumns


def feature_weights(kernel: Kernel, Z: Objects, coef: ArrayLike, *, most: int | None = 10) -> dict[str, float]:
    """The weights w_u in f(x) = sum_j c_j k(x, z_j) = sum_u w_u f_u(x) of substrings or words u, largest first.

    f_u(x) is how often x contains u, or for ``BagOfWords(sublinear=True)`` 1 + the logarithm of it; for normalized
    kernels, divided by the norm of x. Costs as much as the features of the centers.

    Parameters
    ----------
    kernel : KmerSpectrum, BagOfWords, or one of these normalized or multiplied
        Not ``aligned``, and without ``topics``; such as ``kernel_`` of a fitted model.
    Z : list of str
        The m centers, such as ``X_fit_``.
    coef : array of shape (m,) or (m, 1)
        Their coefficients, such as ``dual_coef_``, or one column of it.
    most : int, optional
        How many are given, those with the largest absolute values; None: all.

    Examples
    --------
    >>> feature_weights(KmerSpectrum(k=2), ["abab", "bb"], [1.0, -3.0])
    {'bb': -3.0, 'ab': 2.0, 'ba': 1.0}
    """
    c = np.asarray(coef, np.float64)
    if c.size != len(Z) or c.ndim > 2:
        raise KernelError(f"coef has shape {c.shape} for {len(Z)} centers; pass one number each, coef[:, [i]]")
    names, weights = _weighted(kernel, Z, c.ravel())
    first = None if most is None else integer("most", most, least=0)
    order = np.argsort(-np.abs(weights), kind="stable")[:first]
    return {str(names[i]): float(weights[i]) for i in order}


def _weighted(kernel: Kernel, Z: Objects, c: Array) -> tuple[Any, Array]:
    """Names of features, and their weights."""
    if isinstance(kernel, Scaled):
        return _weighted(kernel.kernel, Z, c * kernel.scale)
    if isinstance(kernel, Normalized):
        norms = np.sqrt(kernel.kernel.diag(Z))
        return _weighted(kernel.kernel, Z, np.divide(c, norms, out=np.zeros_like(c), where=norms > 0.0))
    if isinstance(kernel, KmerSpectrum) and not kernel.aligned:
        return _of_substrings(kernel, strings(Z), c)
    if isinstance(kernel, BagOfWords) and isinstance(columns := kernel._vocabulary(Z), TermColumns):
        (F,) = columns.features(Z)
        factor = 1.0 if columns.weight is None else columns.weight
        return columns.names, factor * (F.T @ c)
    raise KernelError(
        f"features of {kernel} have no names; use KmerSpectrum(aligned=False), or BagOfWords without topics, or "
        "one of them normalized or multiplied"
    )


def _of_substrings(kernel: KmerSpectrum, texts: list[str], c: Array) -> tuple[Any, Array]:
    k = resolved_length("k", kernel.k)
    lengths = range(k if kernel.min_k is None else kernel.min_k, k + 1)

    def pieces(text: str) -> list[str]:
        return reduce(add, ([text[i : i + l] for i in range(len(text) - l + 1)] for l in lengths))

    terms = sorted({piece for text in texts for piece in pieces(text)})
    if not terms:
        return [], np.zeros(0)
    counts = CountVectorizer(analyzer=pieces, vocabulary=terms).transform(texts)
    return terms, (counts.T @ c) * np.array([kernel.decay ** (2 * len(term)) for term in terms])
