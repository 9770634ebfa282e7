"""How far a long computation has come, on stderr: a renewed line on a terminal, a line now and then in a file."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Advance = Callable[[int], None]

# Phases that take fewer seconds are not shown.
SHOWN_AFTER = 1.0
# Seconds between two states of a phase, on a terminal and in a file.
LINE_PAUSE = 0.5
LOG_PAUSE = 20.0


@contextmanager
def progress(phase: str, total: int | None, *, verbose: int, unit: str = "rows") -> Iterator[Advance]:
    """A function to be called with the number of rows, or other units, done since the last call, from any thread.

    ``verbose`` 0 shows nothing, and phases of less than a second are never shown. From 1 on, tqdm shows a bar on a
    terminal or in a notebook if it is installed; otherwise a line is written to stderr: on a terminal renewed
    twice a second, in a file a new one every 20 seconds and one at the end.
    """
    if verbose <= 0:
        yield nothing
        return
    bar = _tqdm()
    if bar is None:
        with _shown(_Line(phase or "pass", total, unit)) as advance:
            yield advance
    else:
        scaled, lock = unit == "rows", threading.Lock()
        with bar(total=total, desc=phase or None, unit=f" {unit}", unit_scale=scaled, delay=SHOWN_AFTER) as shown:

            def advance(n: int) -> None:
                with lock:
                    shown.update(n)

            yield advance


@contextmanager
def stage(phase: str, *, verbose: int) -> Iterator[None]:
    """Show the time of a computation that cannot say how far it has come; as in :func:`progress`."""
    if verbose <= 0:
        yield
        return
    with _shown(_Line(phase, None, "")):
        yield


def say(line: str) -> None:
    """Write a line, at once."""
    _write(line + "\n")


def sentence(phase: str, done: int, total: int | None, seconds: float, unit: str = "rows") -> str:
    """Phase, units done, seconds, units per second, and the time left if it is known and not zero.

    Examples
    --------
    >>> sentence("moments", 500_000, 1_000_000, 4.0)
    'moments: 500,000 of 1,000,000 rows in 4.0 s, 125,000 rows/s, 4.0 s left'
    >>> sentence("moments", 500_000, None, 4.0)
    'moments: 500,000 rows in 4.0 s, 125,000 rows/s'
    >>> sentence("comparison of kernels", 5, 15, 2.0, "kernels")
    'comparison of kernels: 5 of 15 kernels in 2.0 s, 4.0 s left'
    >>> sentence("Cholesky factors", 1, None, 2.0, "alphas")
    'Cholesky factors: 1 alpha in 2.0 s'
    >>> sentence("decomposition", 0, None, 2.0, "")
    'decomposition: 2.0 s'
    """
    if not unit:
        return f"{phase}: {seconds:.1f} s"
    rate = done / max(seconds, 1e-9)
    of = "" if total is None or done == total else f" of {total:,}"
    speed = f", {rate:,.0f} {unit}/s" if unit == "rows" else ""
    left = f", {(total - done) / rate:.1f} s left" if total is not None and 0 < done < total else ""
    noun = unit.removesuffix("s") if done == 1 and not of else unit
    return f"{phase}: {done:,}{of} {noun} in {seconds:.1f} s{speed}{left}"


@dataclass
class _Line:
    """The state of a phase, and when it was last shown."""

    phase: str
    total: int | None
    unit: str
    done: int = 0
    start: float = field(default_factory=time.perf_counter)
    shown: float | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def advance(self, n: int) -> None:
        with self.lock:
            self.done += n

    def renew(self) -> None:
        """Show the state again and again, until the phase has ended."""
        while not self.ended.wait(LINE_PAUSE):
            now, terminal = time.perf_counter(), sys.stderr.isatty()
            last = self.start if self.shown is None else self.shown
            if now - last >= (
                SHOWN_AFTER if terminal and self.shown is None else LINE_PAUSE if terminal else LOG_PAUSE
            ):
                self.shown = now
                self._show(now, " so far" if not self.unit else "", "" if terminal else "\n")

    def close(self) -> None:
        self.ended.set()
        now = time.perf_counter()
        if self.shown is not None or now - self.start >= SHOWN_AFTER:
            self._show(now, "", "\n")

    def _show(self, now: float, more: str, end: str) -> None:
        # Return to the start of the line and clear it, so that a shorter text leaves nothing of a longer one.
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        _write(start + sentence(self.phase, self.done, self.total, now - self.start, self.unit) + more + end)


@contextmanager
def _shown(line: _Line) -> Iterator[Advance]:
    """The line, shown by a thread of its own: nothing else happens during a long call of LAPACK."""
    clock = threading.Thread(target=line.renew, daemon=True)
    clock.start()
    try:
        yield line.advance
    finally:
        line.ended.set()
        clock.join()
        line.close()


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def nothing(n: int) -> None:
    """Show nothing."""


def _tqdm() -> Any:
    """The class of progress bars, None if tqdm is not installed, or bars would be written to a file."""
    if not sys.stderr.isatty() and "ipykernel" not in sys.modules:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm
