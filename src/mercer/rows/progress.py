"""Progress of a pass over the rows."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Advance = Callable[[int], None]

# Seconds between updates of the line on a screen.
PAUSE = 0.5


@contextmanager
def progress(phase: str, n_rows: int | None, *, verbose: int) -> Iterator[Advance]:
    """A function to be called with the number of rows done since the last call.

    ``verbose`` 0 shows nothing. From 1 on, tqdm shows a bar if it is installed; otherwise one line for the phase
    is written to stderr, updated on a terminal and written once, at the end, to a file.
    """
    if verbose <= 0:
        yield _nothing
        return
    bar = _tqdm()
    if bar is None:
        line = _Line(phase, n_rows)
        try:
            yield line.advance
        finally:
            line.close()
    else:
        with bar(total=n_rows, desc=phase or None, unit=" rows", unit_scale=True) as shown:
            yield shown.update


def sentence(phase: str, done: int, n_rows: int | None, seconds: float) -> str:
    """Phase, rows done, seconds, rows per second, and the time left if it is known and not zero.

    Examples
    --------
    >>> sentence("moments", 500_000, 1_000_000, 4.0)
    'moments: 500,000 of 1,000,000 rows in 4.0 s, 125,000 rows/s, 4.0 s left'
    >>> sentence("moments", 500_000, None, 4.0)
    'moments: 500,000 rows in 4.0 s, 125,000 rows/s'
    """
    rate = done / max(seconds, 1e-9)
    of = "" if n_rows is None or done == n_rows else f" of {n_rows:,}"
    left = f", {(n_rows - done) / rate:.1f} s left" if n_rows is not None and 0 < done < n_rows else ""
    return f"{phase or 'pass'}: {done:,}{of} rows in {seconds:.1f} s, {rate:,.0f} rows/s{left}"


@dataclass
class _Line:
    """One line on stderr."""

    phase: str
    n_rows: int | None
    done: int = 0
    start: float = field(default_factory=time.perf_counter)
    shown: float = field(default_factory=time.perf_counter)

    def advance(self, n: int) -> None:
        self.done += n
        now = time.perf_counter()
        if sys.stderr.isatty() and now - self.shown >= PAUSE:
            self.shown = now
            self._write(end="")

    def close(self) -> None:
        self._write(end="\n")

    def _write(self, *, end: str) -> None:
        # Return to the start of the line and clear it, so that a shorter text leaves nothing of a longer one.
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        text = sentence(self.phase, self.done, self.n_rows, time.perf_counter() - self.start)
        sys.stderr.write(start + text + end)
        sys.stderr.flush()


def _nothing(n: int) -> None:
    """Show nothing."""


def _tqdm() -> Any:
    """The class of progress bars, None if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm
