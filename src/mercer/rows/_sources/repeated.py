"""Rows that are read several times, and must be the same each time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic

from mercer import _validation
from mercer.rows._base import Block, NoRows, Rows, Sum
from mercer.rows._sources.checksum import checksums
from mercer.rows._sources.stream import StreamRows

SAME_ROWS_REMEDY = (
    "all passes of a fit must find the same rows in the same order: store rows that are computed or drawn at "
    "random, let a function return a new iterator each time, and do not change files until the fit is done"
)
PARTS_OF_ROWS = ("X", "y", "weight")


@dataclass(frozen=True)
class RowChecksums:
    """Result of a pass: the number of rows, and checksums of X, y and weight. They add over disjoint rows."""

    n_rows: int = 0
    X: int = 0
    y: int = 0
    weight: int = 0

    @classmethod
    def of(cls, block: Block) -> "RowChecksums":
        return cls(block.n_rows, *checksums(block.first, *(getattr(block, part) for part in PARTS_OF_ROWS)))

    def __add__(self, other: "RowChecksums") -> "RowChecksums":
        sums = ((getattr(self, part) + getattr(other, part)) % 2**64 for part in PARTS_OF_ROWS)
        return RowChecksums(self.n_rows + other.n_rows, *sums)

    def unlike(self, first: "RowChecksums") -> str:
        """Description of the difference from the first pass, empty if there is none."""
        if self.n_rows != first.n_rows:
            return f"{self.n_rows} rows, but there were {first.n_rows} in"
        parts = [part for part in PARTS_OF_ROWS if getattr(self, part) != getattr(first, part)]
        if not parts:
            return ""
        return f"different values of {' and '.join(parts)} in {self.n_rows} rows from"


@dataclass(frozen=True)
class SumWithChecksums(Generic[Sum]):
    """A sum over rows, and the checksums of these rows."""

    value: Sum
    checksums: RowChecksums

    def __add__(self, other: "SumWithChecksums[Sum]") -> "SumWithChecksums[Sum]":
        return SumWithChecksums(self.value + other.value, self.checksums + other.checksums)

    def __iadd__(self, other: "SumWithChecksums[Sum]") -> "SumWithChecksums[Sum]":
        value = self.value
        value += other.value
        return SumWithChecksums(value, self.checksums + other.checksums)


@dataclass(frozen=True)
class FoldWithChecksums(Generic[Sum]):
    """The fold block -> fold(block) with the checksums of the block; weights out of range raise an error."""

    fold: Callable[[Block], Sum]

    def __call__(self, block: Block) -> SumWithChecksums[Sum]:
        _check_weight(block)
        return SumWithChecksums(self.fold(block), RowChecksums.of(block))


@dataclass(eq=False)
class RepeatedRows(Rows):
    """The same rows; a pass that differs from the first raises an error.

    Number of rows and checksums are computed along with the sums: no further pass, and the same on every engine.
    An iterator, which cannot be restarted, raises an error before anything is read.

    Examples
    --------
    >>> counts = iter([3, 2])
    >>> rows = RepeatedRows(StreamRows(lambda: [([[1.0]] * next(counts),)]))
    >>> rows.reduce(lambda block: block.n_rows, phase="count")
    3
    >>> rows.reduce(lambda block: block.n_rows)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: pass 2 over the rows has 2 rows, but there were 3 in pass 1 (count); all passes of a fit must ...
    """

    rows: Rows
    _n_passes: int = field(default=0, init=False, repr=False)
    # Name and result of the first pass.
    _first: tuple[str, RowChecksums] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.rows, StreamRows) and self.rows.once:
            raise ValueError(
                "a fit reads the rows several times, but an iterator can be consumed only once; pass a function "
                "that returns the iterator, or a list of the tuples"
            )

    @property
    def n_rows(self) -> int | None:
        return self.rows.n_rows

    @property
    def feature_names(self) -> tuple[Any, ...] | None:
        """Column names, if known."""
        names: tuple[Any, ...] | None = getattr(self.rows, "feature_names", None)
        return names

    def blocks(self) -> Iterator[Block]:
        checksums = RowChecksums()
        for block in self.rows.blocks():
            yield block
            checksums += RowChecksums.of(block)
        self._compare(checksums, "")

    def reduce(self, fold: Callable[[Block], Sum], *, phase: str = "", verbose: int = 0) -> Sum:
        """fold(block) summed over all blocks; an error if the rows are not those of the first pass."""
        try:
            passed = self.rows.reduce(FoldWithChecksums(fold), phase=phase, verbose=verbose)
        except NoRows:
            self._compare(RowChecksums(), phase)
            raise
        self._compare(passed.checksums, phase)
        return passed.value

    def _compare(self, checksums: RowChecksums, phase: str) -> None:
        self._n_passes += 1
        if self._first is None:
            self._first = phase, checksums
        first_phase, first = self._first
        difference = checksums.unlike(first)
        if difference:
            here, there = _named(self._n_passes, " over the rows", phase), _named(1, "", first_phase)
            raise ValueError(f"{here} has {difference} {there}; {SAME_ROWS_REMEDY}")


def _named(number: int, words: str, phase: str) -> str:
    """The text "pass 2 over the rows (moments)"."""
    return f"pass {number}{words}{f' ({phase})' if phase else ''}"


def _check_weight(block: Block) -> None:
    """Weights, if any, are in range and one for each row."""
    if block.weight is None:
        return
    if block.weight.shape != (block.n_rows,):
        raise ValueError(f"weights of {block.n_rows} rows have shape {block.weight.shape}; pass one for each row")
    _validation.weights_in_range("sample_weight", block.weight)
