"""The memory a matrix needs is said before it is paid."""

import os
from dataclasses import dataclass

from mercer.errors import MemoryBudgetError

GIB = 2.0**30
# What the rest of the program may need is left alone.
SHARE = 0.8
FALLBACK = 4 * GIB


@dataclass(frozen=True)
class Budget:
    """How many bytes a computation may allocate, and the parameter with which the user sets it."""

    n_bytes: float
    parameter: str = "max_memory"

    @classmethod
    def from_parameter(cls, max_memory: float | None) -> "Budget":
        """``max_memory`` in GiB, or None: four fifths of the memory that is free now."""
        return cls(SHARE * free_memory() if max_memory is None else max_memory * GIB)

    def less(self, n_bytes: float) -> "Budget":
        """What is left when so many bytes are held."""
        return Budget(max(self.n_bytes - n_bytes, 0.0), self.parameter)

    def require(self, n_bytes: float, what: str) -> None:
        """Raise MemoryBudgetError if ``what`` needs more than the budget."""
        if n_bytes <= self.n_bytes:
            return
        raise MemoryBudgetError(
            f"{what} would need {in_words(n_bytes)} and the budget is {in_words(self.n_bytes)}; "
            f"use fewer rows or centers, or raise {self.parameter} (in GiB)"
        )


def free_memory() -> float:
    """Bytes the operating system could give to this process now."""
    try:
        with open("/proc/meminfo") as lines:
            table = dict(line.split(":", 1) for line in lines)
        return float(table["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return _physical_memory()


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return FALLBACK


def in_words(n_bytes: float) -> str:
    """In the largest unit of which there is one."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"
