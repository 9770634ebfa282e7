"""Intervals, standard deviations and novelty of models inside pipelines, searches and transformed targets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

# Points between the ends of an interval at which the inverse of a transformation is evaluated.
POINTS = 129


def predict_interval(model: Any, X: Any, coverage: float = 0.9) -> NDArray[Any]:
    """Lower and upper ends (n, 2), or (n, q, 2), of an interval for a new observation at each row.

    Parameters
    ----------
    model : estimator
        A fitted :class:`KernelRidgeRegressor`, or a pipeline, a search over parameters or a
        ``TransformedTargetRegressor``, in any order, that ends in one. Intervals of one transformed target
        are transformed back, to the least and largest value that the inverse takes between their ends.
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
        if ends.ndim > 2 and ends.shape[1] > 1:
            raise ValueError(
                f"intervals of {ends.shape[1]} targets cannot be transformed back one by one; fit a "
                "TransformedTargetRegressor for each target, or transform y before the fit"
            )
        back = _transformed_back(model.transformer_, ends.reshape(-1, 2))
        return back.reshape(ends.shape)
    if inner is not None:
        return predict_interval(inner, _transformed(model, X), coverage)
    found: NDArray[Any] = _method(model, "predict_interval")(X, coverage)
    return found


def _transformed_back(transformer: Any, ends: NDArray[Any]) -> NDArray[Any]:
    """The least and the largest target (n, 2) that the inverse takes between two ends; infinite ones stay so.

    The inverse is evaluated at both ends and at points between them, as it may turn around there; what it is not
    defined for cannot be a target.
    """
    back = np.column_stack([np.full(len(ends), -np.inf), np.full(len(ends), np.inf)])
    known = np.flatnonzero(np.isfinite(ends).all(axis=1))
    if len(known) == 0:
        return back
    between = np.linspace(ends[known, 0], ends[known, 1], POINTS, axis=1)
    with np.errstate(all="ignore"):
        values = transformer.inverse_transform(between.reshape(-1, 1)).reshape(between.shape)
    undefined = int(np.isnan(values).all(axis=1).sum())
    if undefined:
        raise ValueError(
            f"the inverse of the target's transformation is undefined between the ends of {undefined} of "
            f"{len(ends)} intervals; transform the target by a function whose inverse is defined everywhere"
        )
    back[known] = np.column_stack([np.nanmin(values, axis=1), np.nanmax(values, axis=1)])
    return back


def predict_std(model: Any, X: Any) -> NDArray[Any]:
    """Standard deviation (n,) or (n, q) of a new observation at each row.

    Parameters
    ----------
    model : estimator
        A fitted :class:`KernelRidgeRegressor`, or a pipeline, a search over parameters or a
        ``TransformedTargetRegressor``, in any order, that ends in one. Targets must be transformed by a shift
        and a factor: through other functions a standard deviation cannot be transformed back.
    X : rows, as the outermost model takes them
    """
    inner = _entered(model)
    if inner is not None and isinstance(model, TransformedTargetRegressor):
        std = predict_std(inner, X)
        own: NDArray[Any] = std * _factor(model.transformer_, 1 if std.ndim == 1 else std.shape[1])
        return own
    if inner is not None:
        return predict_std(inner, _transformed(model, X))
    found: NDArray[Any] = _method(model, "predict_std")(X)
    return found


def _factor(transformer: Any, q: int) -> NDArray[Any]:
    """The factor of each of q targets by which an affine transformation is undone; others raise an error."""
    with np.errstate(all="ignore"):
        values = transformer.inverse_transform(np.outer([0.0, 1.0, -1.0, 10.0], np.ones(q))).reshape(4, q)
    zero, slope = values[0], values[1] - values[0]
    expected = zero + np.outer([-1.0, 10.0], slope)
    if not np.allclose(values[2:], expected, rtol=1e-6, atol=1e-9 * float(np.abs(values).max())):
        raise ValueError(
            "standard deviations cannot be transformed back, as the transformation of the target is not a shift "
            "and a factor; use predict_interval"
        )
    factor: NDArray[Any] = np.abs(slope) if q > 1 else np.abs(slope[0])
    return factor


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
    if getattr(model, "refit", True) is False:
        raise TypeError(f"{type(model).__name__}(refit=False) keeps no fitted model; search with refit=True")
    if not hasattr(model, name):
        which = (
            "KernelFisherClassifier or KernelMachineClassifier" if name == "novelty" else "KernelRidgeRegressor"
        )
        raise TypeError(
            f"{type(model).__name__} has no {name}; pass a fitted {which}, or a pipeline or a search that ends in "
            "one"
        )
    return getattr(model, name)
