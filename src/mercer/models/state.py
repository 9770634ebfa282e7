"""Consistent fitted state: fits work on a copy and are published atomically, readers see one state of a model.

The attributes of a model are in one dictionary, which is replaced, and not modified while others read it. A fit
works on a copy of the model and publishes the dictionary of the copy by one assignment, so a fit that fails or is
interrupted leaves the model unchanged. A prediction uses the dictionary it started with. If solving is deferred
until a result is needed, each state is solved once.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from mercer.errors import MercerError
from mercer.linalg.threads import one_blas_thread

Method = TypeVar("Method", bound=Callable[..., Any])

# Where a model keeps the solution of a state that is not solved yet.
PENDING = "_pending"

_LOCKS: "WeakKeyDictionary[Any, AbstractContextManager[Any]]" = WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


class Pending:
    """The attributes of a solution, computed on first access: once, however many threads need them."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.solved: dict[str, Any] | None = None

    def get(self, solve: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The attributes; after an error, the next access computes them again."""
        with self._lock:
            if self.solved is None:
                with one_blas_thread():
                    self.solved = solve()
            return self.solved


class Awaited:
    """An attribute of the solution. Access after ``partial_fit`` or ``remove`` solves for it first.

    A descriptor without ``__set__``: if the model has the attribute itself, this one is not used.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        found = {}
        if PENDING in vars(model):
            try:
                found = vars(snapshot(model))
            except (ValueError, MercerError) as error:
                # An attribute that cannot be computed is missing: hasattr works, and the message states why.
                raise AttributeError(f"{self.name} of {type(model).__name__}: {error}") from error
        if self.name not in found and "_lean" in vars(model):
            raise AttributeError(f"a lean copy has no {self.name}; read it from the model it is a copy of")
        if self.name not in found:
            raise AttributeError(f"{type(model).__name__!r} object has no attribute {self.name!r}")
        return found[self.name]


def aside(model: Any) -> Any:
    """A model with the same attributes in a separate dictionary."""
    twin = object.__new__(type(model))
    twin.__dict__ = dict(vars(model))
    return twin


def snapshot(model: Any) -> Any:
    """The model in its current state, solved, whatever happens to the model meanwhile."""
    attributes = vars(model)
    pending = attributes.get(PENDING)
    view = object.__new__(type(model))
    view.__dict__ = attributes
    if pending is not None:
        view.__dict__ = attributes | pending.get(view._solution)
        del view.__dict__[PENDING]
    return view


def in_one_step(method: Method) -> Method:
    """A method that changes a fitted model: it works on a copy and publishes all of its changes or none.

    Calls for one model wait for each other. Parameters set by others in the meantime are kept, nothing else. BLAS
    has one thread meanwhile.
    """

    @wraps(method)
    def call(self: Any, *args: Any, **choices: Any) -> Any:
        with lock_of(self), one_blas_thread():
            twin = aside(self)
            method(twin, *args, **choices)
            # Parameters belong to the user: those set in the meantime are kept.
            parameters = {name: vars(self)[name] for name in self.get_params(deep=False) if name in vars(self)}
            self.__dict__ = vars(twin) | parameters
        return self

    return call  # type: ignore[return-value]


def from_one_state(method: Method) -> Method:
    """A method that reads a fitted model: everything it reads belongs to one state."""

    @wraps(method)
    def call(self: Any, *args: Any, **choices: Any) -> Any:
        return method(snapshot(self), *args, **choices)

    return call  # type: ignore[return-value]


def lock_of(model: Any) -> AbstractContextManager[Any]:
    """The lock of an object: the same for every call, and not part of its state."""
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(model, threading.RLock())
