"""Every exception and warning of the library."""

import collections.abc
import contextlib
import contextvars
import inspect
import warnings

import numpy as np

__all__ = [
    "IntervalWarning",
    "KernelError",
    "MemoryBudgetError",
    "MemoryWarning",
    "MercerError",
    "NumericalError",
    "NumericalWarning",
    "ScaleWarning",
    "VersionWarning",
    "WeightWarning",
]

# Whether warnings of the library are issued; by thread.
_QUIET: contextvars.ContextVar[bool] = contextvars.ContextVar("quiet", default=False)


class MercerError(Exception):
    """Base class of all errors raised deliberately by the library."""


class MemoryBudgetError(MercerError, MemoryError):
    """A matrix would not fit the memory budget; raised before anything is allocated."""


class KernelError(MercerError, ValueError):
    """Invalid kernel parameters, or kernel values of the wrong shape, not finite, or out of range."""


class NumericalError(MercerError, np.linalg.LinAlgError):
    """A matrix could not be factored, or every criterion is infinite or NaN; also a ``ValueError``."""


class NumericalWarning(UserWarning):
    """A matrix was repaired (clipped, truncated, shifted) by an amount that could matter, or it is constant."""


class WeightWarning(UserWarning):
    """Weights can be read as counts of rows or as importance, and the leave-one-out score depends on it."""


class IntervalWarning(UserWarning):
    """There are too few rows for intervals of the wanted coverage, which are infinite."""


class MemoryWarning(UserWarning):
    """The memory that is free now limits the model: at another time equal rows may give another one."""


class VersionWarning(UserWarning):
    """A stored model was written by another version of the library, and may not be the same here."""


class ScaleWarning(UserWarning):
    """Features differ so much in scale that distances depend on only a few of them."""


class ColumnWarning(UserWarning):
    """A column of new rows has nothing in common with that of the fit, and tells nothing about them."""


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the calling line outside the library."""
    if _QUIET.get():
        return
    frame, level = inspect.currentframe(), 1
    # Cached properties are called by functools.
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("mercer", "functools"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextlib.contextmanager
def without_warnings() -> collections.abc.Iterator[None]:
    """Issue no warnings of the library in this thread: those of a fit that is repeated have been seen."""
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)
