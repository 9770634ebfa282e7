"""Memory that threads use again for block after block."""

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.rows._table import n_rows


class Workspace(threading.local):
    """Arrays by name, each thread its own; requesting memory for every block costs up to a sixth of a pass.

    Memory is held as long as the object exists.
    """

    def __init__(self) -> None:
        self._held: dict[str, NDArray[Any]] = {}

    def space(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An uninitialized array; the next call with the same name returns the same memory."""
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._held[name] = np.empty(size, dtype=dtype)
        return held[:size].reshape(shape)

    def for_values(self, X: Any, m: int) -> NDArray[Any] | None:
        """The same space (n, m) for kernel values of rows each time, if the rows are dense and numeric."""
        if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
            return None
        return self.space("values", (n_rows(X), m), X.dtype)
