"""Names and parameters that go away: they work, with a warning that says until when and what to write instead."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from mercer.errors import warn

Function = TypeVar("Function", bound=Callable[..., Any])


def deprecated(*, until: str, instead: str) -> Callable[[Function], Function]:
    """A function or method that works until a version, and warns what to use instead."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **choices: Any) -> Any:
            warn_of_end(f"{function.__name__}()", until=until, instead=instead)
            return function(*args, **choices)

        return call  # type: ignore[return-value]

    return decorate


def warn_of_end(name: str, *, until: str, instead: str) -> None:
    """Say that a name or a parameter goes away; FutureWarning, which users see by default."""
    warn(f"{name} will be removed in mercer {until}; use {instead}", FutureWarning)
