"""The values of raw columns: as numbers, as days, as distinct values, and texts by their n-grams."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer._types import Array, Indices
from mercer._validation import EXACT_INTEGERS, format_value
from mercer.rows._columns import NamedColumns, columns_of_array, inexact, is_missing, read_columns

# Texts that stand for a missing number.
MISSING_WORDS = frozenset(
    {"", "?", "-", ".", "na", "n/a", "#n/a", "<na>", "nan", "nil", "none", "null", "missing", "unknown"}
)
# Texts that stand for the same truth.
TRUTHS = (("True", "true", "TRUE", "1"), ("False", "false", "FALSE", "0"))
# Lengths of the sequences of letters (n-grams) by which texts are compared, and the features of a text.
NGRAM_SIZES, TEXT_FEATURES = (2, 3, 4), 32
# This many texts have their n-grams in memory together, each of at most this many first letters.
TEXTS_AT_ONCE, LONGEST_TEXT = 4096, 256
FIRST_DAY, DAY = np.datetime64("2000-01-01T00", "us"), np.timedelta64(1, "D")
Column = NDArray[Any]


def read_raw(X: Any, names: Sequence[Any] | None = None) -> NamedColumns:
    """Columns of a frame or an array, as :func:`read_columns`; those of NumPy's dates stay such."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiubMm":
        table = columns_of_array(X)
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
    whole = [value for value in column.tolist() if isinstance(value, Integral | Decimal) and not is_missing(value)]
    if any(abs(int(value)) > EXACT_INTEGERS for value in whole):
        raise inexact(name)
    if np.isinf(found).any():
        raise infinite(name)
    return found


def infinite(name: Any) -> ValueError:
    """The error for numbers that are infinite, or larger than float64 can hold."""
    return ValueError(f"column {name!r} contains infinity; pass None where a number is missing")


def number_of(value: Any) -> float | None:
    """A number, of a duration its days, NaN if it is missing; None: it is neither."""
    if isinstance(value, str):
        return _written_number(value.strip())
    if is_missing(value):
        return float("nan")
    if isinstance(value, timedelta | np.timedelta64):
        return float(np.timedelta64(value, "us") / DAY)
    return float(value) if isinstance(value, Real | Decimal) else None


def _written_number(text: str) -> float | None:
    """A number that is text; long whole numbers and those with underscores are names."""
    if text.lower() in MISSING_WORDS:
        return float("nan")
    try:
        number = float(text)
    except ValueError:
        return None
    is_name = "_" in text or np.isinf(number) or (abs(number) > EXACT_INTEGERS and text.isdigit())
    return None if is_name else number


def as_days(name: Any, column: Column) -> Array:
    """A column (n,) of dates as days since 2000, NaN where missing; those with a time zone in UTC."""
    if column.dtype.kind != "M":
        column = np.array([_moment(name, value) for value in column.tolist()], dtype="M8[us]")
    return np.asarray((column.astype("M8[us]") - FIRST_DAY) / DAY)


def is_date(text: str) -> bool:
    """Whether a text is a date, such as 2024-02-29 or 2024-02-29 12:30:00."""
    return _written_date(text) is not None


def is_mark(text: str) -> bool:
    """Whether a text stands for a missing value."""
    return text.strip().lower() in MISSING_WORDS


def _written_date(text: str) -> datetime | None:
    text = text.strip()
    if not text[:4].isdigit() or text[4:5] not in ("-", "/"):
        return None
    try:
        return datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None


def _moment(name: Any, value: Any) -> np.datetime64:
    """A date as NumPy has it, in UTC if it has a time zone."""
    if is_missing(value) or (isinstance(value, str) and is_mark(value)):
        return np.datetime64("NaT", "us")
    found = _written_date(value) if isinstance(value, str) else value
    if isinstance(found, datetime) and found.tzinfo is not None:
        found = _in_utc(name, found)
    if not isinstance(found, date | np.datetime64):
        raise ValueError(
            f"column {name!r} holds dates, but contains {format_value(value)}; pass a date, such as 2024-02-29, "
            "or None where it is missing; pandas.to_datetime reads others; or fit with "
            f'columns={{{name!r}: "category"}}'
        )
    return found.astype("M8[us]") if isinstance(found, np.datetime64) else np.datetime64(found.isoformat(), "us")


def _in_utc(name: Any, moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(f"column {name!r} contains {moment}, which has no date in UTC; drop such rows") from None


def distinct_values(name: Any, column: Column) -> tuple[list[str | None], Indices]:
    """The distinct values of a column (n,) as text, None if missing, in the order of rows; that of each row."""
    book: dict[str | None, int] = {}
    place = [book.setdefault(_as_text(name, value), len(book)) for value in column.tolist()]
    return list(book), np.array(place, dtype=np.intp)


def _as_text(name: Any, value: Any) -> str | None:
    """A value as text, the same whatever type it has come in: 1, 1.0 and "1" are equal, 1 and True are not."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, datetime | date | np.datetime64):
        text = str(_moment(name, value))
        return text.removesuffix("T00:00:00.000000")
    if isinstance(value, complex | list | tuple | dict | set | np.ndarray):
        raise TypeError(
            f"column {name!r} contains {format_value(value)}; an argument must be a string, a number, a Boolean "
            "or a date: use a kernel on objects, or give each part a column"
        )
    number = None if isinstance(value, bool | np.bool_) else number_of(value)
    if number is None:
        return str(value)
    if np.isinf(number):
        raise infinite(name)
    return str(int(number)) if number.is_integer() else repr(number)


def same_values(value: str | None) -> tuple[str | None, ...]:
    """The value, and others that mean the same: without spaces at its ends, or the same truth."""
    if value is None:
        return (None,)
    return (value, value.strip(), *next((same for same in TRUTHS if value.strip() in same), ()))


def ngram_directions(words: Sequence[Any]) -> Array:
    """Directions (k, 32) of texts, near each other if they have n-grams of two to four letters in common.

    Each n-gram has a random direction, by its hash the same on every machine; a missing text has none.
    """
    blocks = [_directions_of(words[i : i + TEXTS_AT_ONCE]) for i in range(0, len(words), TEXTS_AT_ONCE)]
    return np.concatenate(blocks) if blocks else np.zeros((0, TEXT_FEATURES))


def _directions_of(words: Sequence[Any]) -> Array:
    book: dict[str, int] = {}
    found = [[book.setdefault(part, len(book)) for part in _ngrams(word)] for word in words]
    ends = np.cumsum([0, *map(len, found)])
    columns = np.array([j for parts in found for j in parts], dtype=np.intp)
    counts = sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(found), max(1, len(book))))
    digests = b"".join(
        blake2b(part.encode(errors="surrogatepass"), digest_size=TEXT_FEATURES // 8).digest() for part in book
    )
    bits = np.unpackbits(np.frombuffer(digests or bytes(TEXT_FEATURES // 8), dtype=np.uint8))
    sums = np.asarray(counts @ (2.0 * bits.reshape(-1, TEXT_FEATURES) - 1.0))
    lengths = np.sqrt(np.sum(sums**2, axis=1, keepdims=True))
    directions: Array = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0.0)
    return directions


def _ngrams(word: Any) -> list[str]:
    """All n-grams of a text, with its ends."""
    if word is None:
        return []
    text = f" {str(word)[:LONGEST_TEXT].lower()} "
    return [text[i : i + size] for size in NGRAM_SIZES for i in range(len(text) - size + 1)]
