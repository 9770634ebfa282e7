"""Which features matter, as bars."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from mercer._estimators import KernelFisherClassifier, KernelRidgeRegressor
from mercer._validation import check_int
from mercer.plots._canvas import COLORS, Display, fitted_model
from mercer.rows._encoding.columns import TableEncoding

GRAY = "0.7"


class RelevanceDisplay(Display):
    """Bars of the relevances of features, the largest on top, and of what is left to all others.

    A dotted line marks the share of each feature if all were alike.

    Parameters
    ----------
    relevance : array-like of shape (n_features,)
        ``relevance_`` of a fitted model: shares that sum to one.
    names : sequence of str, default=None
        Names of the features; None: their numbers.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and figure of the picture.
    bars_ : BarContainer
        The bars, from top to bottom.

    Examples
    --------
    >>> from mercer.plots import RelevanceDisplay
    >>> display = RelevanceDisplay(relevance=[0.1, 0.6, 0.3], names=["age", "dose", "time"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['dose', 'time', 'age']
    """

    bars_: Any

    def __init__(self, *, relevance: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.relevance = relevance
        self.names = names

    @classmethod
    def from_estimator(cls, estimator: Any, *, most: int = 10, ax: Any = None) -> Self:
        """Draw the relevances of a model that was fitted with ``relevance``, of a raw table those of its columns.

        Parameters
        ----------
        estimator : fitted KernelFisherClassifier or KernelRidgeRegressor, alone or as the last step of a pipeline
        most : int, default=10
            Features that have a bar of their own.
        ax : Axes, default=None
            Where to draw; None creates a new figure.
        """
        model = fitted_model(cls.__name__, estimator, KernelFisherClassifier, KernelRidgeRegressor)
        if model.relevance_ is None:
            raise ValueError('the model has no relevances; fit it with relevance="diagonal"')
        encoding: TableEncoding | None = getattr(model, "columns_", None)
        if encoding is not None:
            shares, names = encoding.by_part(model.relevance_), encoding.part_names
            return cls(relevance=shares, names=names).plot(most=most, ax=ax)
        return cls(relevance=model.relevance_, names=_names(estimator, model)).plot(most=most, ax=ax)

    def plot(self, *, most: int = 10, ax: Any = None) -> Self:
        """Draw on the axes, or on those of a new figure."""
        check_int("most", most, "a number of features, at least 1", least=1)
        shares = np.asarray(self.relevance, dtype=np.float64)
        order = np.argsort(-shares, kind="stable")[:most]
        words = [str(j) if self.names is None else str(self.names[j]) for j in order]
        values, others = shares[order], len(shares) - len(order)
        if others:
            values = np.append(values, 1.0 - values.sum())
            words.append(f"{others} others, together" if others > 1 else "the other one")
        self._draw_on(ax)
        colors = [COLORS[0]] * len(order) + [GRAY] * (others > 0)
        place = np.arange(len(values))
        self.bars_ = self.ax_.barh(place, values, color=colors)
        self.ax_.axvline(
            1.0 / len(shares), color="k", linewidth=1.0, linestyle=":", label="each, if all were alike"
        )
        self.ax_.set_yticks(place, labels=words)
        self.ax_.invert_yaxis()
        self.ax_.set(xlabel="relevance", ylabel="feature" if self.names is None else "")
        self.ax_.legend(loc="lower right")
        return self


def _names(estimator: Any, model: Any) -> Sequence[str] | None:
    """Names of the features of a model, from the steps before it if there are any; None: there are none."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    named = getattr(model, "feature_names_in_", None)
    if (
        named is None
        and isinstance(estimator, Pipeline)
        and len(estimator) > 1
        and hasattr(estimator, "feature_names_in_")
    ):
        try:
            named = estimator[:-1].get_feature_names_out()
        except AttributeError:
            # A step without names.
            return None
    return None if named is None else list(named)
