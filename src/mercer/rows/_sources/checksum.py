"""Checksums of rows that add over blocks, to verify that two passes read the same rows."""

import math
from collections.abc import Iterable
from datetime import date, time, timedelta
from hashlib import blake2b
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.rows._columns import NamedColumns
from mercer.rows._table import is_sparse

Words = NDArray[np.uint64]

# Words that are mixed at once: few enough to stay in the cache.
WORDS_AT_ONCE = 2**16
# Starting points of the factors of rows and columns in the sequence of SplitMix64: far apart.
SEED_OF_ROWS, SEED_OF_COLUMNS = 0, 2**63
# Differs from half a word, so that equal changes of two float32 values in one word do not cancel.
MIXING_SHIFT = np.uint64(29)


def checksums(first: int, *parts: Any) -> list[int]:
    """For each part, sum_i r_i sum_j a_j g(v_ij) modulo 2**64 over the 64-bit words v_ij of its rows i.

    Rows are numbered from ``first`` on; the part None has the checksum 0. The odd factors r_i and a_j are derived
    from the row and column numbers, and g(v) = v xor (v >> 29) copies the leading bits of a word, the only ones
    set in small integers stored as floats, to where no product loses them. So checksums of disjoint rows add,
    however they are split into blocks, and any change of one value is detected. Other changes are missed with a
    probability of about 2**-29 (multilinear hashing; Lemire and Kaser 2014, Strongly universal string hashing is
    fast). Values are compared bit by bit; strings, numbers, dates, arrays and lists of them by a digest; other
    objects are only counted. O(n d).
    """
    contents = [None if values is None else _content(values) for values in parts]
    n = max((len(content) for content in contents if content is not None), default=0)
    factor = _factors(np.arange(first, first + n, dtype=np.uint64), SEED_OF_ROWS)
    return [0 if content is None else int(np.dot(factor, content)) for content in contents]


def splitmix64(numbers: Words, seed: int) -> Words:
    """Pseudorandom words for integers.

    Steele, Lea and Flood (2014), Fast splittable pseudorandom number generators.
    """
    z = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _factors(numbers: Words, seed: int) -> Words:
    """Odd words: multiplying by them is invertible."""
    return splitmix64(numbers, seed) | np.uint64(1)


def _content(values: Any) -> Words:
    """sum_j a_j g(v_ij) (b,) of every row; of views or columns the sum over all, with a factor for each name."""
    if isinstance(values, NamedColumns):
        values = values.columns
    if isinstance(values, dict):
        views = [_content(view) * np.uint64(_digest(name) | 1) for name, view in values.items()]
        return np.asarray(np.sum(views, axis=0), dtype=np.uint64)
    if is_sparse(values):
        return _content_of_sparse(values.tocsr())
    array = np.asarray(values) if hasattr(values, "__array__") else _digests(values)
    table = array.reshape(len(array), math.prod(array.shape[1:]))
    if table.dtype.kind in "OV":
        table = _digests(table.ravel().tolist()).reshape(table.shape)
    return _content_of_table(table)


def _content_of_table(table: NDArray[Any]) -> Words:
    """For an array (b, k) of values of fixed size."""
    # Extended-precision types have padding bytes.
    if table.dtype.char in "gG":
        table = table.astype(np.float64 if table.dtype.char == "g" else np.complex128)
    if table.size == 0:
        return np.zeros(len(table), dtype=np.uint64)
    n_words = -(-table.shape[1] * table.dtype.itemsize // 8)
    factor = _factors(np.arange(n_words, dtype=np.uint64), SEED_OF_COLUMNS)
    content = np.empty(len(table), dtype=np.uint64)
    step = max(1, WORDS_AT_ONCE // n_words)
    room = np.empty((min(step, len(table)), n_words), dtype=np.uint64)
    for start in range(0, len(table), step):
        words = _words(table[start : start + step], n_words)
        mixed = np.right_shift(words, MIXING_SHIFT, out=room[: len(words)])
        mixed ^= words
        content[start : start + step] = np.einsum("ij,j->i", mixed, factor)
    return content


def _words(part: NDArray[Any], n_words: int) -> Words:
    """The bytes of each row as words (b, n_words), padded with zeros."""
    content = np.ascontiguousarray(part).view(np.uint8).reshape(len(part), -1)
    missing = 8 * n_words - content.shape[1]
    return (np.pad(content, ((0, 0), (0, missing))) if missing else content).view(np.uint64)


def _content_of_sparse(X: Any) -> Words:
    """For a CSR matrix: values times the factors of their columns, by differences of running sums modulo 2**64."""
    terms = _content_of_table(X.data[:, None]) * _factors(X.indices.astype(np.uint64), SEED_OF_COLUMNS)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]], dtype=np.uint64)


def _digests(items: Iterable[Any]) -> Words:
    """One word (b,) for each object; repeated labels are looked up."""
    known: dict[str, int] = {}
    words = []
    for item in items:
        if isinstance(item, str):
            if item not in known:
                known[item] = _digest(item)
            words.append(known[item])
        else:
            words.append(_digest(item))
    return np.array(words, dtype=np.uint64)


def _digest(item: Any) -> int:
    return int.from_bytes(blake2b(_bytes(item), digest_size=8).digest(), "little")


def _bytes(item: Any) -> bytes:
    """The content of an object, the same in every process; empty for objects of unknown types."""
    item = item.item() if isinstance(item, np.generic) else item
    if isinstance(item, str):
        return b"s" + item.encode("utf-8", "surrogatepass")
    if isinstance(item, bytes | bytearray):
        return b"b" + item
    if item is None or isinstance(item, Number | date | time | timedelta):
        return b"r" + repr(item).encode()
    if isinstance(item, np.ndarray) and item.dtype.kind not in "OV":
        return b"a" + repr((item.dtype.str, item.shape)).encode() + item.tobytes()
    if isinstance(item, list | tuple):
        return b"l" + _digests(item).tobytes()
    return b""
