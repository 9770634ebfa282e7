"""Rows, wherever they are: something that yields blocks of rows, again and again, and sums over them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Block:
    """Some rows in sequence: X (b rows), y (b, ...) or None, weight (b,) or None, the number of the first."""

    X: Any
    y: Any
    weight: NDArray[np.float64] | None
    first: int

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)


class Summable(Protocol):
    """What can be added up."""

    def __add__(self, other: Self, /) -> Self: ...


Sum = TypeVar("Sum", bound=Summable)


class Rows(ABC):
    """Blocks of rows that can be gone through any number of times; abstract."""

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """How many rows there are, None if that is not known before they were gone through."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The blocks in the order of the rows; each call starts anew."""

    @abstractmethod
    def reduce(self, fold: Callable[[Block], Sum], *, phase: str = "", verbose: int = 0) -> Sum:
        """fold(block) summed over all blocks, in the order of the blocks whatever finishes first.

        ``fold`` can be pickled. ``phase`` names the pass where ``verbose`` shows progress.
        """
