"""What columns contribute to a prediction, as bars from the mean output to the prediction."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._estimators import KernelFisherClassifier, KernelRidgeRegressor
from mercer._scores.contributions import Contributions
from mercer._validation import check_int
from mercer.plots._canvas import COLORS, Display
from mercer.rows._columns import is_missing
from mercer.rows._encoding.rule import as_raw
from mercer.rows._encoding.values import read_raw
from mercer.rows._table import n_rows, take

# The bar of the other columns has the color of none.
GRAY_OF_OTHERS = "0.7"


class ContributionsDisplay(Display):
    """Bars of the contributions of columns to one prediction, the largest on top, and of all others together.

    A bar begins where that above it ends: the first at the mean output of the background, the last ends at the
    prediction. Lines mark both.

    Parameters
    ----------
    contributions : Contributions
        As returned by ``contributions()`` of a model.
    labels : sequence of str, default=None
        A label for each column, in place of its name.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and figure of the picture.
    bars_ : BarContainer
        The bars, from top to bottom.

    Examples
    --------
    >>> from mercer import KernelRidgeRegressor
    >>> from mercer.datasets import make_sinc
    >>> from mercer.plots import ContributionsDisplay
    >>> X, y = make_sinc(60, random_state=0)
    >>> model = KernelRidgeRegressor("rbf").fit(X, y)
    >>> display = ContributionsDisplay(contributions=model.contributions(X[:1]), labels=["x"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['x']
    """

    bars_: Any

    def __init__(self, *, contributions: Contributions, labels: Sequence[str] | None = None) -> None:
        self.contributions = contributions
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int = 0,
        target: int = 0,
        background: Any = 100,
        random_state: Any = None,
        most: int = 10,
        ax: Any = None,
    ) -> Self:
        """Compute the contributions to the prediction of one of the rows X, and draw them with its values.

        Parameters
        ----------
        estimator : fitted KernelFisherClassifier or KernelRidgeRegressor
        X : array, list of rows, or data frame of pandas or polars
        row, target : int, default=0
            Which of the rows, and of several outputs which.
        background, random_state : as in ``contributions``
        most : int, default=10
            Columns that have a bar of their own.
        ax : Axes, default=None
            Where to draw; None creates a new figure.
        """
        if not isinstance(estimator, KernelFisherClassifier | KernelRidgeRegressor):
            raise TypeError(
                f"{cls.__name__} does not apply to {type(estimator).__name__}; pass a fitted "
                "KernelFisherClassifier or KernelRidgeRegressor, of a pipeline its last step with the rows that "
                "it sees"
            )
        check_is_fitted(estimator)
        _check_place("row", row, n_rows(X))
        one = take(X, np.array([row]))
        found = estimator.contributions(one, background=background, random_state=random_state)
        return cls(contributions=found, labels=_labels(found.names, one)).plot(target=target, most=most, ax=ax)

    def plot(self, *, row: int = 0, target: int = 0, most: int = 10, ax: Any = None) -> Self:
        """Draw on the axes, or on those of a new figure."""
        found = self.contributions
        check_int("most", most, "a number of columns, at least 1", least=1)
        values = found.values.reshape(*found.values.shape[:2], -1)
        n, _, q = values.shape
        _check_place("row", row, n)
        _check_place("target", target, q)
        base = float(np.atleast_1d(found.base)[target])
        self._draw_on(ax)
        self._draw(values[row, :, target], base, most)
        return self

    def _draw(self, values: Any, base: float, most: int) -> None:
        """Bars of the contributions (n_columns,) to one output."""
        labels = [str(name) for name in (self.contributions.names if self.labels is None else self.labels)]
        order = np.argsort(-np.abs(values), kind="stable")[:most]
        widths, words = values[order], [labels[j] for j in order]
        others = len(values) - len(order)
        if others:
            widths = np.append(widths, values.sum() - widths.sum())
            words.append(f"{others} others, together" if others > 1 else "the other one")
        ends = base + np.cumsum(widths)
        colors = [COLORS[0] if width >= 0.0 else COLORS[1] for width in widths]
        colors[len(order) :] = [GRAY_OF_OTHERS] * bool(others)
        place = np.arange(len(widths))
        self.bars_ = self.ax_.barh(place, widths, left=ends - widths, color=colors)
        # On the line of the prediction numbers stay legible.
        frame = {"facecolor": "w", "edgecolor": "none", "pad": 0.5}
        numbers = [f"{width:+.3g}" for width in widths]
        self.ax_.bar_label(self.bars_, labels=numbers, padding=3, fontsize="small", bbox=frame)
        self.ax_.axvline(base, color="k", linewidth=1.0, linestyle=":", label=f"mean: {base:.4g}")
        self.ax_.axvline(ends[-1], color="k", linewidth=1.0, label=f"this row: {ends[-1]:.4g}")
        self.ax_.set_yticks(place, labels=words)
        self.ax_.invert_yaxis()
        # Room for numbers at the ends of bars, also at the first one.
        self.ax_.use_sticky_edges = False
        self.ax_.margins(x=0.15)
        self.ax_.set(xlabel=self.contributions.output)
        self.ax_.legend(loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=2, frameon=False)


def _check_place(name: str, place: Any, size: int) -> None:
    """A position among ``size``."""
    allowed = f"a number from 0 to {size - 1}"
    if check_int(name, place, allowed, least=0) >= size:
        raise ValueError(f"{name}={place}; it must be {allowed}")


def _labels(names: Sequence[Any], row: Any) -> list[str]:
    """Names of columns with the values of a single row."""
    columns = read_raw(as_raw(row)).columns
    known = columns if set(names) <= set(columns) else dict(zip(names, columns.values()))
    values = [known[name][0] for name in names]
    return [f"{name} = {_word(value)}" for name, value in zip(names, values)]


def _word(value: Any) -> str:
    """A number with four digits, a date without a time of zero, anything else as it is printed."""
    if is_missing(value):
        return "missing"
    if isinstance(value, np.datetime64):
        return str(np.datetime_as_string(value, unit="auto"))
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
