"""Rows of raw tables that are read block by block, as features."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mercer.rows._base import Block, Rows, Sum
from mercer.rows._columns import NamedColumns
from mercer.rows._encoding.columns import TableEncoding
from mercer.rows._encoding.rule import RULE_DRAW, RawTable, encoding_of, kept_columns
from mercer.rows._engines.base import Accumulating
from mercer.rows._resolve import ColumnTypes
from mercer.rows._sampling.random_sample import survey


@dataclass(frozen=True, eq=False)
class EncodedRows(Rows):
    """Rows with named columns, as the features that these become; encoded where they are read."""

    rows: Rows
    encoding: TableEncoding

    @property
    def n_rows(self) -> int | None:
        return self.rows.n_rows

    def blocks(self) -> Iterator[Block]:
        return (_encoded(self.encoding, block) for block in self.rows.blocks())

    def reduce(self, fold: Callable[[Block], Sum], *, phase: str = "", verbose: int = 0) -> Sum:
        """The sum of a fold over blocks of features."""
        kind = _AccumulatingFold if isinstance(fold, Accumulating) else _Fold
        total: Sum = self.rows.reduce(kind(self.encoding, fold), phase=phase, verbose=verbose)
        return total


def encoding_of_rows(rows: Rows, types: ColumnTypes, kinds: Mapping[Any, str], verbose: int) -> TableEncoding:
    """What the columns of rows become, in one pass for a sample of them; see :func:`encoding_of`."""
    sample = survey(rows, RULE_DRAW, verbose=verbose).sample()
    table = sample.X.only(kept_columns(types.names, kinds))
    return encoding_of(RawTable(list(types.names), table, types.categorical), sample.weight, kinds)


def _encoded(encoding: TableEncoding, block: Block) -> Block:
    if not isinstance(block.X, NamedColumns):
        raise ValueError(
            f"a raw table has named columns, but X of a block is {type(block.X).__name__}; pass frames, or "
            'ParquetRows(path, form="raw")'
        )
    return replace(block, X=encoding.encode(block.X))


@dataclass(frozen=True)
class _Fold:
    """A fold over blocks of features, for blocks of columns."""

    encoding: TableEncoding
    fold: Any

    def __call__(self, block: Block) -> Any:
        return self.fold(_encoded(self.encoding, block))


class _AccumulatingFold(_Fold):
    """The same that adds to its sum in place."""

    def onto(self, total: Any, block: Block) -> Any:
        return self.fold.onto(total, _encoded(self.encoding, block))
