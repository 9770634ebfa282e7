"""Every exception and warning of the library."""

import inspect
import warnings

import numpy as np


class MercerError(Exception):
    """Base of all errors raised on purpose by the library."""


class MemoryBudgetError(MercerError, MemoryError):
    """A matrix would not fit the memory budget; raised before anything is allocated."""


class KernelError(MercerError, ValueError):
    """A parameter of a kernel is not allowed, or its values have the wrong shape, are not finite, or are lost."""


class NumericalError(MercerError, np.linalg.LinAlgError):
    """A matrix could not be factored, or every criterion is infinite or not a number; a ``ValueError``, too."""


class NumericalWarning(UserWarning):
    """A matrix was repaired (clipped, truncated, shifted) by an amount that could matter, or it is constant."""


class WeightWarning(UserWarning):
    """Weights can be read in two ways, as counts of rows or as importance, and the leave-one-out score differs."""


class ScaleWarning(UserWarning):
    """Features differ so much in scale that a distance sees only a few of them."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn, and point to the line outside the library that led here."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "mercer":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
