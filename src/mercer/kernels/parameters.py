"""Checks of single parameters; they run when a kernel is used, because constructors only store."""

from numbers import Integral, Real

import numpy as np

from mercer.errors import KernelError


def integer(name: str, value: object, *, least: int) -> int:
    """The value as an int >= least."""
    if not isinstance(value, Integral) or int(value) < least:
        raise KernelError(f"{name} is {value!r}; it must be an integer >= {least}")
    return int(value)


def finite(name: str, value: object) -> float:
    """The value as a finite float."""
    if not isinstance(value, Real) or not np.isfinite(float(value)):
        raise KernelError(f"{name} is {value!r}; it must be a finite number")
    return float(value)


def nonnegative(name: str, value: object) -> float:
    """The value as a finite float >= 0."""
    number = finite(name, value)
    if number < 0:
        raise KernelError(f"{name} is {value!r}; it must not be negative")
    return number
