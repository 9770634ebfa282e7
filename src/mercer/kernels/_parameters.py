"""Validation of single parameters; done when a kernel is used, because constructors only store."""

from typing import Any, Self

from mercer import _validation
from mercer.errors import KernelError


class SetByRows:
    """A parameter that rows have set once, and that nobody changes: copies of a kernel share it; abstract."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def integer(name: str, value: object, *, least: int) -> int:
    """The value as an int >= least."""
    return _validation.check_int(name, value, f"an integer >= {least}", least=least, error=KernelError)


def finite(name: str, value: object) -> float:
    """The value as a finite float."""
    return _validation.check_number(name, value, "a finite number", error=KernelError)


def nonnegative(name: str, value: object) -> float:
    """The value as a finite float >= 0."""
    return _validation.check_number(name, value, "a finite number >= 0", least=0.0, error=KernelError)


def positive(name: str, value: object) -> float:
    """The value as a finite float > 0."""
    return _validation.check_number(name, value, "a finite number > 0", above=0.0, error=KernelError)
