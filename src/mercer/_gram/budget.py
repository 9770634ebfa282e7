"""Memory requirements, checked before allocation."""

import ctypes
import os
import sys
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from mercer.errors import MemoryBudgetError

try:
    import resource
except ImportError:
    # Windows has no such limits.
    resource = None  # type: ignore[assignment]

GIB = 2.0**30
# The rest is left to other parts of the program.
SHARE_OF_FREE_MEMORY = 0.8
MEMORY_IF_UNKNOWN = 4 * GIB
# Where Linux keeps the limit of a container, what it uses, and the name of the part that is cache: two versions.
CGROUP = "/sys/fs/cgroup"
CONTAINERS = (
    (f"{CGROUP}/memory.max", f"{CGROUP}/memory.current", "inactive_file"),
    (f"{CGROUP}/memory/memory.limit_in_bytes", f"{CGROUP}/memory/memory.usage_in_bytes", "total_inactive_file"),
)


@dataclass(frozen=True)
class Budget:
    """How many bytes a computation may allocate, the parameter that sets it, and whether the user has set it."""

    n_bytes: float
    parameter: str = "max_memory"
    given: bool = True

    @classmethod
    def from_parameter(cls, max_memory: float | None) -> "Budget":
        """``max_memory`` in GiB, or None: four fifths of the memory that is free now."""
        if max_memory is None:
            return cls(SHARE_OF_FREE_MEMORY * free_memory(), given=False)
        return cls(max_memory * GIB)

    def less(self, n_bytes: float) -> "Budget":
        """The remaining budget if this many bytes are in use."""
        return replace(self, n_bytes=max(self.n_bytes - n_bytes, 0.0))

    def release(self) -> None:
        """Between stages of a fit with a given budget: return freed memory to the system.

        The C library of Linux would retain up to 64 MiB of it per thread.
        """
        if self.given and sys.platform == "linux":
            getattr(ctypes.CDLL(None), "malloc_trim", int)(0)

    def require(self, n_bytes: float, what: str) -> None:
        """Raise MemoryBudgetError if ``what`` needs more than the budget."""
        if n_bytes <= self.n_bytes:
            return
        raise MemoryBudgetError(
            f"{what} would need {readable_size(n_bytes)} and the budget is {readable_size(self.n_bytes)}; use "
            f"fewer rows or centers, or raise {self.parameter} (in GiB)"
        )


def free_memory() -> float:
    """Bytes that this process could get now: what the system has, and its container and its own limit leave."""
    return max(min(_of_system(), _of_container(), _of_process()), 0.0)


def _of_system() -> float:
    try:
        with open("/proc/meminfo") as lines:
            table = dict(line.split(":", 1) for line in lines)
        return float(table["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return _physical_memory()


def _of_container() -> float:
    """What the limit of a control group of Linux leaves; infinite without one."""
    left = inf
    for limit, used, cache in CONTAINERS:
        try:
            most = Path(limit).read_text().strip()
            stat = dict(line.split() for line in Path(limit).with_name("memory.stat").read_text().splitlines())
            # Pages of files that can be dropped count as used.
            held = float(Path(used).read_text()) - float(stat.get(cache, 0))
        except (OSError, ValueError):
            continue
        left = min(left, inf if most == "max" else float(most) - held)
    return left


def _of_process() -> float:
    """What ``ulimit -v`` leaves; infinite without it."""
    try:
        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (AttributeError, OSError):
        return inf
    return inf if most == resource.RLIM_INFINITY else float(most - pages * resource.getpagesize())


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return MEMORY_IF_UNKNOWN


def readable_size(n_bytes: float) -> str:
    """A number of bytes in the largest suitable unit."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"
