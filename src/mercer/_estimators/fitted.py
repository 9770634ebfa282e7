"""Fitted state: one frozen object that a fit publishes by one assignment, and the attributes read from it.

Whatever changes a model makes a new :class:`Fitted` from the old one and publishes it last, so a call that fails
or is interrupted leaves the model unchanged. Whatever reads a model takes its state once, so an answer belongs to
one state, whatever other threads do to the model meanwhile. A state that waits for its solution is solved once.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, Self, TypeVar, overload
from weakref import WeakKeyDictionary

from mercer._linalg.threads import one_blas_thread
from mercer.errors import MercerError

Value = TypeVar("Value")
Method = TypeVar("Method", bound=Callable[..., Any])

_LOCKS: "WeakKeyDictionary[Any, AbstractContextManager[Any]]" = WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


class Waiting(ABC):
    """Values that are computed when one of them is first read, once, however many threads read them; abstract."""

    found: dict[str, Any] | None

    @abstractmethod
    def solve(self) -> dict[str, Any]:
        """The values by name; after an error, the next access computes them again."""

    def get(self) -> dict[str, Any]:
        """The values by name."""
        if self.found is None:
            with lock_of(self), one_blas_thread():
                self.found = self.solve() if self.found is None else self.found
        return self.found


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit has found, replaced as a whole: public ``attributes`` by name, and those that are ``waiting``,
    None: there are none; and ``details``, what the methods of a family need besides. A lean state can only
    predict.

    ``nested`` is the nested cross-validation of what the fit ``chooses``, or its score; None: there are no rows.
    """

    attributes: Mapping[str, Any]
    details: Any = None
    waiting: Waiting | None = None
    nested: Any = None
    chooses: bool = True
    is_lean: bool = False

    def __getitem__(self, name: str) -> Any:
        """An attribute, solved for if it has to be; KeyError: there is none."""
        if name in self.attributes or self.waiting is None:
            return self.attributes[name]
        return self.waiting.get()[name]

    @property
    def every(self) -> dict[str, Any]:
        """All attributes by name, solved."""
        return dict(self.attributes) | ({} if self.waiting is None else self.waiting.get())


class fitted(Generic[Value]):
    """A public attribute of the state that a fit has published; there is none before.

    ``waits``: a state that has not been solved may have it later.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self.waits = waits

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, model: None, owner: type) -> Self: ...
    @overload
    def __get__(self, model: Any, owner: type | None = None) -> Value: ...
    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        state: Fitted | None = model._fitted
        missing = f"{type(model).__name__!r} object has no attribute {self.name!r}"
        if state is None:
            raise AttributeError(missing)
        try:
            return state[self.name] if self.waits else state.attributes[self.name]
        except KeyError:
            lean = f"a lean copy has no {self.name}; read it from the model it is a copy of"
            raise AttributeError(lean if state.is_lean else missing) from None
        except (ValueError, MercerError) as error:
            # An attribute that cannot be computed is missing: hasattr works, and the message states why.
            raise AttributeError(f"{self.name} of {type(model).__name__}: {error}") from error


def with_state(model: Any, state: Fitted | None) -> Any:
    """Another object with the same parameters, and this state."""
    twin = object.__new__(type(model))
    twin.__dict__.update(model.__dict__)
    twin._fitted = state
    return twin


def unfitted(model: Any) -> Any:
    """Another object with the same parameters, that is not fitted."""
    return with_state(model, None)


def atomic_update(method: Method) -> Method:
    """A method that publishes a new state of a model: calls for one model wait for each other.

    BLAS has one thread meanwhile.
    """

    @wraps(method)
    def call(self: Any, *args: Any, **choices: Any) -> Any:
        with lock_of(self), one_blas_thread():
            return method(self, *args, **choices)

    return call  # type: ignore[return-value]


def reads_one_state(method: Method) -> Method:
    """A method that reads a model: everything it reads belongs to the state at the time of the call, solved."""

    @wraps(method)
    def call(self: Any, *args: Any, **choices: Any) -> Any:
        state = self._fitted
        if state is not None and state.waiting is not None:
            state.waiting.get()
        return method(with_state(self, state), *args, **choices)

    return call  # type: ignore[return-value]


def lock_of(owner: Any) -> AbstractContextManager[Any]:
    """The lock of an object: the same for every call, and not part of its state."""
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(owner, threading.RLock())
