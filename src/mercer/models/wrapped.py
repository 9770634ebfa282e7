"""Intervals, standard deviations and novelty of models inside pipelines, searches and transformed targets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def predict_interval(model: Any, X: Any, coverage: float = 0.9) -> NDArray[Any]:
    """Lower and upper ends (n, 2), or (n, q, 2), of an interval for a new observation at each row.

    Parameters
    ----------
    model : estimator
        A fitted :class:`KernelRidgeRegressor`, or a pipeline, a search over parameters or a
        ``TransformedTargetRegressor``, in any order, that ends in one. Ends of intervals of one transformed target
        are transformed back.
    X : rows, as the outermost model takes them
    coverage : float, default=0.9
        As in :meth:`KernelRidgeRegressor.predict_interval`.

    Examples
    --------
    >>> import mercer
    >>> from mercer.datasets import make_sinc
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = make_sinc(60, random_state=0)
    >>> model = make_pipeline(StandardScaler(), mercer.KernelRidgeRegressor()).fit(X, y)
    >>> mercer.predict_interval(model, X[:3]).shape
    (3, 2)
    """
    inner = _entered(model)
    if inner is not None and isinstance(model, TransformedTargetRegressor):
        ends = predict_interval(inner, X, coverage)
        if ends.ndim > 2:
            raise ValueError(
                f"intervals of {ends.shape[1]} targets cannot be transformed back one by one; fit a "
                "TransformedTargetRegressor for each target, or transform y before the fit"
            )
        return _transformed_back(model.transformer_, ends)
    if inner is not None:
        return predict_interval(inner, _transformed(model, X), coverage)
    found: NDArray[Any] = _method(model, "predict_interval")(X, coverage)
    return found


def _transformed_back(transformer: Any, ends: NDArray[Any]) -> NDArray[Any]:
    """Ends (n, 2) of intervals in units of the target; infinite ones, which no transformer takes, stay so."""
    back = np.column_stack([np.full(len(ends), -np.inf), np.full(len(ends), np.inf)])
    for place, end in enumerate(ends.T):
        known = np.flatnonzero(np.isfinite(end))
        if len(known):
            back[known, place] = transformer.inverse_transform(end[known, None]).reshape(len(known))
    # A decreasing function exchanges the ends.
    return np.sort(back, axis=1)


def predict_std(model: Any, X: Any) -> NDArray[Any]:
    """Standard deviation (n,) or (n, q) of a new observation at each row.

    Parameters
    ----------
    model : estimator
        A fitted :class:`KernelRidgeRegressor`, or a pipeline or a search over parameters, in any order, that ends
        in one. A ``TransformedTargetRegressor`` is refused: a standard deviation cannot be transformed back.
    X : rows, as the outermost model takes them
    """
    inner = _entered(model)
    if inner is not None and isinstance(model, TransformedTargetRegressor):
        raise ValueError(
            "standard deviations of a transformed target cannot be transformed back; use predict_interval"
        )
    if inner is not None:
        return predict_std(inner, _transformed(model, X))
    found: NDArray[Any] = _method(model, "predict_std")(X)
    return found


def novelty(model: Any, X: Any) -> NDArray[Any]:
    """How little the training rows say about each row (n,); above zero, less than is usual.

    Parameters
    ----------
    model : estimator
        A fitted :class:`KernelFisherClassifier` or :class:`KernelMachineClassifier`, or a pipeline, a search over
        parameters or a classifier with another threshold, in any order, that ends in one.
    X : rows, as the outermost model takes them
    """
    inner = _entered(model)
    if inner is not None:
        return novelty(inner, _transformed(model, X))
    found: NDArray[Any] = _method(model, "novelty")(X)
    return found


def _entered(model: Any) -> Any:
    """The fitted model by which a pipeline, a search or another wrapper predicts; None: it is not one of these."""
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        return model[-1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if isinstance(model, TransformedTargetRegressor):
        return model.regressor_
    if isinstance(model, FixedThresholdClassifier | TunedThresholdClassifierCV):
        return model.estimator_
    return getattr(model, "best_estimator_", None)


def _transformed(model: Any, X: Any) -> Any:
    """Rows as the model inside takes them."""
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X


def _method(model: Any, name: str) -> Any:
    if not hasattr(model, name):
        which = "KernelFisherClassifier" if name == "novelty" else "KernelRidgeRegressor"
        raise TypeError(
            f"{type(model).__name__} has no {name}; pass a fitted {which}, or a pipeline or a search that ends in "
            "one"
        )
    return getattr(model, name)
