"""The values of raw columns: as numbers, as days, as distinct values, and words by their letters."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer._types import Array, Indices
from mercer._validation import format_value
from mercer.rows._columns import NamedColumns, is_missing, read_columns

# Texts that stand for a missing number.
MISSING_WORDS = frozenset({"", "?", "-", "na", "n/a", "nan", "none", "null"})
# Lengths of the sequences of letters by which words are compared, and the features of a word.
LETTERS, TEXT_FEATURES = (2, 3, 4), 32
FIRST_DAY, DAY = np.datetime64("2000-01-01T00", "us"), np.timedelta64(1, "D")
Column = NDArray[Any]


def read_raw(X: Any, names: Sequence[Any] | None = None) -> NamedColumns:
    """Columns of a frame or an array, as :func:`read_columns`; those of NumPy's dates stay such."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        table = NamedColumns({j: column.astype(np.float64) for j, column in enumerate(X.T)})
        return table if names is None else table.only(names)
    return read_columns(X, names, keep_dates=True)


def as_numbers(name: Any, column: Column, *, strict: bool = True) -> Array:
    """A column (n,) in float64, NaN where missing, or, unless ``strict``, no number; numbers may be text."""
    if column.dtype.kind in "fb":
        return column.astype(np.float64)
    numbers = [number_of(value) for value in column.tolist()]
    wrong = next((value for value, number in zip(column.tolist(), numbers) if number is None), None)
    if strict and wrong is not None:
        raise ValueError(
            f"column {name!r} holds numbers, but contains {format_value(wrong)}; pass a number, or None where it "
            f'is missing, or fit with columns={{{name!r}: "category"}}'
        )
    found = np.array(numbers, dtype=np.float64)
    if np.isinf(found).any():
        raise ValueError(f"column {name!r} contains infinity; pass None where a number is missing")
    return found


def number_of(value: Any) -> float | None:
    """A number, of a duration its days, NaN if it is missing; None: it is neither."""
    if is_missing(value):
        return float("nan")
    if isinstance(value, str):
        if value.strip().lower() in MISSING_WORDS:
            return float("nan")
        try:
            return float(value)
        except ValueError:
            return None
    if isinstance(value, timedelta | np.timedelta64):
        return float(np.timedelta64(value, "us") / DAY)
    return float(value) if isinstance(value, Real | Decimal) else None


def as_days(name: Any, column: Column) -> Array:
    """A column (n,) of dates as days since 2000, NaN where missing; those with a time zone in UTC."""
    if column.dtype.kind != "M":
        column = np.array([_moment(name, value) for value in column.tolist()], dtype="M8[us]")
    return np.asarray((column.astype("M8[us]") - FIRST_DAY) / DAY)


def is_date(value: Any) -> bool:
    """Whether a value is a date, or the text of one: 2024-02-29, or 2024-02-29 12:30:00."""
    return isinstance(value, date | np.datetime64) or (isinstance(value, str) and _written_date(value) is not None)


def _written_date(text: str) -> datetime | None:
    if not text[:4].isdigit() or text[4:5] != "-":
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _moment(name: Any, value: Any) -> np.datetime64:
    """A date as NumPy has it, in UTC if it has a time zone."""
    if is_missing(value):
        return np.datetime64("NaT", "us")
    found = _written_date(value) if isinstance(value, str) else value
    if isinstance(found, datetime):
        found = found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    if not isinstance(found, date | np.datetime64):
        raise ValueError(
            f"column {name!r} holds dates, but contains {format_value(value)}; pass a date, such as 2024-02-29, "
            f'or None where it is missing, or fit with columns={{{name!r}: "category"}}'
        )
    return np.datetime64(str(found), "us")


def distinct_values(name: Any, column: Column) -> tuple[list[Any], Indices]:
    """The distinct values of a column (n,), None if missing, in the order of their rows, and that of each row."""
    book: dict[Any, int] = {}
    place = [book.setdefault(_plain(name, value), len(book)) for value in column.tolist()]
    return list(book), np.array(place, dtype=np.intp)


def _plain(name: Any, value: Any) -> Any:
    """Text, a Boolean, a number, a date, a duration or None; others as text."""
    if isinstance(value, str | bool):
        return value
    if is_missing(value):
        return None
    if isinstance(value, list | tuple | dict | set | np.ndarray):
        raise TypeError(
            f"column {name!r} contains {format_value(value)}; an argument must be a string, a number, a Boolean "
            "or a date: use a kernel on objects, or give each part a column"
        )
    return value if isinstance(value, Real | Decimal | date | timedelta) else str(value)


def letters_of(words: Sequence[Any]) -> Array:
    """Directions (k, 32) of words, near each other if they have sequences of two to four letters in common.

    Each sequence has a random direction, the same on every machine; zero for a missing word.
    """
    book: dict[str, int] = {}
    found = [[book.setdefault(part, len(book)) for part in _sequences(word)] for word in words]
    ends = np.cumsum([0, *map(len, found)])
    columns = np.array([j for parts in found for j in parts], dtype=np.intp)
    counts = sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(found), max(1, len(book))))
    digests = b"".join(blake2b(part.encode(), digest_size=TEXT_FEATURES // 8).digest() for part in book)
    bits = np.unpackbits(np.frombuffer(digests or bytes(TEXT_FEATURES // 8), dtype=np.uint8))
    sums = np.asarray(counts @ (2.0 * bits.reshape(-1, TEXT_FEATURES) - 1.0))
    lengths = np.sqrt(np.sum(sums**2, axis=1, keepdims=True))
    directions: Array = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0.0)
    return directions


def _sequences(word: Any) -> list[str]:
    """All sequences of letters of a word, with its ends."""
    if word is None:
        return []
    text = f" {str(word).lower()} "
    return [text[i : i + size] for size in LETTERS for i in range(len(text) - size + 1)]
