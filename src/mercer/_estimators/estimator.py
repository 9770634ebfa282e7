"""What every estimator does: unknown parameters are named with a remedy, and files with their version."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mercer._estimators.fitted import Fitted, fitted
from mercer._estimators.parameters import check_stored
from mercer._version import __version__
from mercer.errors import VersionWarning, warn

# Where a stored model keeps the version that wrote it.
VERSION = "_mercer_version"
# Parameters of kernels that other libraries take as parameters of models, and a kernel that has them.
OF_KERNELS = {"gamma": "RBF", "degree": "Polynomial", "coef0": "Polynomial"}
# Parameters of other libraries: the one of ours that stands for them, and what to write.
OTHER_LIBRARIES = {
    "C": ("alpha", "it is 1 / alpha, and alpha is chosen unless given"),
    "probability": ("calibration", "predict_proba needs none"),
    "length_scale": ("kernel", "gamma of a kernel is 1 / (2 length_scale**2), and is chosen unless given"),
    "sigma": ("kernel", "gamma of a kernel is 1 / (2 sigma**2), and is chosen unless given"),
}


class MercerEstimator(BaseEstimator):
    """An estimator of the library: parameters as they were passed, and one fitted state; abstract."""

    _fitted: Fitted | None = None
    n_features_in_ = fitted[int](waits=False)
    feature_names_in_ = fitted[NDArray[Any]](waits=False)

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    @property
    def _details(self) -> Any:
        """What the methods of a family need of a fit besides its attributes."""
        if self._fitted is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted")
        return self._fitted.details

    def _publish(self, state: Fitted) -> Self:
        """The model with this state, and nothing of the one before."""
        self._fitted = state
        return self

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _naming_unknown(cls.__init__)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        """What is stored in a file, and the version that wrote it."""
        return dict(super().__getstate__()) | {VERSION: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a model from a file or another process."""
        check_stored(state)
        written = state.get(VERSION, "an earlier version")
        if written != __version__:
            warn(
                f"this {type(self).__name__} was stored by mercer {written} and is loaded by {__version__}: it "
                "may fail, or predict something else; fit it again, or load it with the version that stored it",
                VersionWarning,
            )
        super().__setstate__({name: value for name, value in state.items() if name != VERSION})


def _naming_unknown(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that names unknown parameters with a remedy, instead of Python; its signature is the same."""
    known = list(signature(init).parameters)[1:]

    @wraps(init)
    def call(self: Any, *args: Any, **params: Any) -> None:
        for name in params.keys() - known:
            model = type(self).__name__
            raise TypeError(f"{model} has no parameter {name!r}; {_remedy(model, name, params[name], known)}")
        init(self, *args, **params)

    return call


def _remedy(model: str, name: str, value: Any, known: list[str]) -> str:
    """What to write instead of an unknown parameter."""
    if name in OF_KERNELS and "kernel" in known:
        word = "" if known[0] == "kernel" else "kernel="
        return f"it belongs to the kernel: {model}({word}{OF_KERNELS[name]}({name}={value!r}))"
    ours, words = OTHER_LIBRARIES.get(name, ("", ""))
    if ours in known:
        return words
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"its parameters are {', '.join(known)}"
