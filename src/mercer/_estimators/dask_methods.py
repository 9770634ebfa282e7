"""Lazy methods: for a Dask collection they return another one, without computing anything yet."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.rows._engines.dask import is_dask, map_rows


def supports_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a fitted model from rows X to (n,) or (n, q) that also takes Dask arrays and data frames.

    Workers receive a lean copy of the model.
    """
    return _supports_dask(method, lambda model: model.lean() if hasattr(model, "lean") else model)


def supports_dask_whole(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same for methods that need the whole model."""
    return _supports_dask(method, lambda model: model)


def _supports_dask(method: Callable[..., Any], copy: Callable[[Any], Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **choices: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **choices)
        check_is_fitted(self)
        model = copy(self)
        example = method(model, _one_row(self, X), *args, **choices)
        if example.ndim > 2:
            raise ValueError(
                f"{method.__name__} of several targets has {example.ndim} dimensions, but a Dask collection has "
                "two; call it on the blocks of X, or for one target"
            )
        q = None if example.ndim == 1 else example.shape[1]
        function = partial(_on_worker, model, method.__name__, args, choices)
        return map_rows(X, function, q=q, dtype=example.dtype, keep_frames=True)

    return call


def _on_worker(model: Any, name: str, args: tuple[Any, ...], choices: dict[str, Any], X: Any) -> Any:
    """The method of a model at a block of rows."""
    return getattr(model, name)(X, *args, **choices)


def _one_row(model: Any, X: Any) -> Any:
    """A row of zeros like those of X, to find the type and columns of the result."""
    if hasattr(X, "_meta") and hasattr(X._meta, "columns"):
        meta = X._meta
        if hasattr(model, "columns_"):
            return type(meta)({name: [None] for name in meta.columns})
        return type(meta)(np.zeros((1, len(meta.columns))), columns=meta.columns)
    return np.zeros((1, model.n_features_in_), dtype=X.dtype)
