"""What the columns of a raw table become: features of numbers, categories, texts, dates and missing values.

What a column says in all, and each period of a date, has a variance of at most one: neither units nor numbers of
categories matter.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mercer._types import Array, Indices
from mercer.errors import ColumnWarning, warn
from mercer.rows._columns import NamedColumns
from mercer.rows._encoding.values import (
    TEXT_FEATURES,
    Column,
    as_days,
    as_numbers,
    distinct_values,
    ngram_directions,
    read_raw,
    same_values,
)

# Kinds of columns as a report counts them.
KIND_WORDS = {
    "number": "of numbers",
    "category": "of categories",
    "text": "of texts",
    "date": "of dates",
    "drop": "not used",
}
# Days of the periods of dates, by name.
PERIODS = {"time of year": 365.2425, "day of week": 7.0, "time of day": 1.0}
# Numbers are cut off here, in standard deviations: squares of distances stay finite.
FARTHEST_NUMBER = 1e100
# Where nearly all rows are of one category, the others are not farther from it than this allows.
LEAST_VARIANCE_OF_CATEGORIES = 1e-4
# As many rows with unknown categories only are no accident.
LEAST_ROWS_TO_WARN = 20
# A missing number is this far from others, in standard deviations.
MISSING_LENGTH = 0.5


@dataclass(frozen=True)
class EncodedColumn(ABC):
    """One column as features (n, width); abstract."""

    name: Any
    kind: ClassVar[str] = ""

    @property
    @abstractmethod
    def parts(self) -> tuple[tuple[str, int], ...]:
        """What its features say, each with their number: they matter together."""

    @property
    def feature_names(self) -> list[str]:
        """What each feature says."""
        return [name if width == 1 else f"{name} [{i}]" for name, width in self.parts for i in range(width)]

    @property
    @abstractmethod
    def words(self) -> str:
        """What becomes of the column."""

    @abstractmethod
    def encode(self, column: Column) -> Array:
        """The features (n, width) of its values."""

    @property
    def n_numbers(self) -> int:
        """How many of its features, the first ones, are quantities, of which ranks make sense."""
        return 0


@dataclass(frozen=True)
class NumberColumn(EncodedColumn):
    """(x - mean) / spread, zero where missing; if some are missing, one more feature that says so.

    Of ``written`` numbers others are missing, too: text that is none was to be expected.
    """

    mean: float
    spread: float
    missing: bool
    written: bool
    kind: ClassVar[str] = "number"

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        return ((f"{self.name}", 1), *([(f"{self.name} is missing", 1)] if self.missing else []))

    @property
    def words(self) -> str:
        return ("a written number" if self.written else "a number") + (", or missing" if self.missing else "")

    @property
    def n_numbers(self) -> int:
        return 1

    def encode(self, column: Column) -> Array:
        numbers = as_numbers(self.name, column, strict=not self.written)
        with np.errstate(over="ignore"):
            x = np.clip((numbers - self.mean) / self.spread, -FARTHEST_NUMBER, FARTHEST_NUMBER)
        absent = np.isnan(x)
        x[absent] = 0.0
        return np.column_stack([x, MISSING_LENGTH * absent]) if self.missing else x[:, None]


@dataclass(frozen=True)
class CategoryColumn(EncodedColumn):
    """One feature for each category, zero unless it is the value; another value is as the ``shares`` of all rows.

    Missing is a category. Two categories are one feature.
    """

    categories: tuple[str | None, ...]
    shares: tuple[float, ...]
    kind: ClassVar[str] = "category"

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        return ((f"{self.name}", 1 if len(self.categories) == 2 else len(self.categories)),)

    @property
    def feature_names(self) -> list[str]:
        names = [f"{self.name} is missing" if each is None else f"{self.name}={each}" for each in self.categories]
        return names[:1] if len(names) == 2 else names

    @property
    def words(self) -> str:
        missing = ", one of them missing" if None in self.categories else ""
        return f"{len(self.categories)} categories{missing}"

    def encode(self, column: Column) -> Array:
        values, place = distinct_values(self.name, column)
        position = {value: j for j, value in enumerate(self.categories)}
        shares = np.asarray(self.shares)
        rows = np.tile(shares, (len(values), 1))
        n_known = 0
        for i, value in enumerate(values):
            places = [position[same] for same in same_values(value) if same in position]
            if places:
                n_known += 1
                rows[i] = np.arange(len(shares)) == places[0]
        if n_known == 0 and len(column) >= LEAST_ROWS_TO_WARN:
            warn(
                f"none of the {len(values)} values of column {self.name!r}, such as {values[0]!r}, is one of the "
                f"fit, such as {self.categories[0]!r}; check its type and spelling",
                ColumnWarning,
            )
        # The variance of all features together is one; rows of other values are as the shares.
        known, square = shares.sum(), shares @ shares
        variance = known + (1.0 - known) * square - (2.0 - known) ** 2 * square
        rows /= max(variance, LEAST_VARIANCE_OF_CATEGORIES) ** 0.5
        # Of two, one says all: sqrt(2) times as long for the same distance.
        return np.asarray((np.sqrt(2.0) * rows[:, :1] if len(shares) == 2 else rows)[place])


@dataclass(frozen=True)
class TextColumn(EncodedColumn):
    """Texts, near each other if they have n-grams in common; there were ``n_texts`` of them."""

    scale: float
    n_texts: int
    kind: ClassVar[str] = "text"

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        return ((f"{self.name}", TEXT_FEATURES),)

    @property
    def words(self) -> str:
        return f"{self.n_texts} texts, compared by their letters"

    def encode(self, column: Column) -> Array:
        values, place = distinct_values(self.name, column)
        return np.asarray((self.scale * ngram_directions(values))[place])


@dataclass(frozen=True)
class DateColumn(EncodedColumn):
    """Days, in units of their spread, and where in each of some periods they are; all zero where missing."""

    mean: float
    spread: float
    periods: tuple[str, ...]
    missing: bool
    kind: ClassVar[str] = "date"

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        periods = [(f"{period} of {self.name}", 2) for period in self.periods]
        missing = [(f"{self.name} is missing", 1)] if self.missing else []
        return ((f"{self.name}", 1), *periods, *missing)

    @property
    def words(self) -> str:
        found = ["days", *self.periods, *(["missing"] if self.missing else [])]
        return " and ".join(filter(None, [", ".join(found[:-1]), found[-1]]))

    @property
    def n_numbers(self) -> int:
        return 1

    def encode(self, column: Column) -> Array:
        days = as_days(self.name, column)
        absent = np.isnan(days)
        angles = [2.0 * np.pi / PERIODS[period] * days for period in self.periods]
        circles = [wave(angle) for angle in angles for wave in (np.cos, np.sin)]
        found = np.column_stack([(days - self.mean) / self.spread, *circles])
        found[absent] = 0.0
        return np.column_stack([found, MISSING_LENGTH * absent]) if self.missing else found


@dataclass(frozen=True)
class DroppedColumn(EncodedColumn):
    """No features, for a ``reason``."""

    reason: str
    kind: ClassVar[str] = "drop"

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        return ()

    @property
    def words(self) -> str:
        return f"not used: {self.reason}"

    def encode(self, column: Column) -> Array:
        return np.zeros((len(column), 0))


@dataclass(frozen=True, repr=False)
class TableEncoding:
    """What each column of a table becomes, in their order; ``print`` shows it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidgeRegressor
    >>> X = np.array([[1.5, "red"], [2.0, "blue"], [None, "red"], [3.0, None]], dtype=object)
    >>> print(KernelRidgeRegressor().fit(X, [1.0, 2.0, 3.0, 4.0]).columns_)
    0: a number, or missing
    1: 3 categories, one of them missing
    """

    columns: tuple[EncodedColumn, ...]

    @property
    def names(self) -> list[Any]:
        """The names of the columns that are used."""
        return [column.name for column in self.columns if not isinstance(column, DroppedColumn)]

    @property
    def part_names(self) -> list[str]:
        """What the features of each part say together."""
        return [name for name, _ in self._parts]

    @cached_property
    def feature_names(self) -> list[str]:
        """What each feature says."""
        return [name for column in self.columns for name in column.feature_names]

    @cached_property
    def groups(self) -> Indices:
        """The number (d,) of the part of a column to which each feature belongs: they matter together."""
        return np.repeat(np.arange(len(self._parts)), [width for _, width in self._parts])

    @cached_property
    def of_column(self) -> Indices:
        """The number (d,) of the column of each feature, among all of them."""
        widths = [sum(width for _, width in column.parts) for column in self.columns]
        return np.repeat(np.arange(len(self.columns)), widths)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The positions of features that are quantities."""
        first = np.searchsorted(self.of_column, np.arange(len(self.columns)))
        counts = [column.n_numbers for column in self.columns]
        return tuple(int(j + i) for j, count in zip(first, counts) for i in range(count))

    @property
    def _parts(self) -> list[tuple[str, int]]:
        return [part for column in self.columns for part in column.parts]

    def by_part(self, relevance: Array) -> Array:
        """Shares of the parts of columns from those of features (d,): a part has a variance of one in all."""
        shares = np.bincount(self.groups, relevance) / np.bincount(self.groups)
        return np.asarray(shares / shares.sum())

    @property
    def summary(self) -> str:
        """How many columns are of each kind."""
        kinds = [column.kind for column in self.columns]
        return ", ".join(f"{kinds.count(kind)} {words}" for kind, words in KIND_WORDS.items() if kind in kinds)

    def encode(self, X: Any) -> Array:
        """The features (n, d) of the rows of a data frame or an array."""
        table = self.read(X)
        found, end = np.empty((table.shape[0], len(self.groups))), 0
        for column in self.columns:
            width = sum(width for _, width in column.parts)
            if width:
                found[:, end : end + width] = column.encode(table.columns[column.name])
            end += width
        return found

    def read(self, X: Any) -> NamedColumns:
        """The columns that are used; an array has all of them, since its positions are no names."""
        if isinstance(X, np.ndarray) and X.shape[1] != len(self.columns):
            raise ValueError(
                f"X has {X.shape[1]} columns, but the table of the fit had {len(self.columns)}; pass the same ones"
            )
        return read_raw(X, self.names)

    def __repr__(self) -> str:
        return "\n".join(f"{column.name}: {column.words}" for column in self.columns)
