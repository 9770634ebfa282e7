"""Rows along their discriminant directions."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._estimators import KernelFisherClassifier, OnlineFisherClassifier, SparseFisherClassifier
from mercer._types import Array, Indices
from mercer.plots._canvas import (
    MARGIN,
    Display,
    classes_of,
    color,
    curve,
    fitted_model,
    free_spots,
    inches,
    legend_inside,
    marker,
    span_of,
)


class DiscriminantDisplay(Display):
    """The discriminant projection: class densities along one variate, or a scatter of the first two.

    With one variate, each class is a density whose area is the share of the class, so that for well-calibrated
    scores the densities cross near the threshold. With more variates the first two are drawn as points, with the
    mean of each class and its name next to its points.

    Parameters
    ----------
    variates : ndarray of shape (n, r)
        Discriminant variates, best first.
    label : ndarray of shape (n,)
        Class numbers.
    classes : ndarray of shape (n_classes,)
        Names of the classes.
    threshold : float, default=None
        Threshold on the projection; None draws no line.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and figure of the picture.

    Examples
    --------
    >>> from mercer import KernelFisherClassifier
    >>> from mercer.datasets import make_ringnorm
    >>> from mercer.plots import DiscriminantDisplay
    >>> X, y = make_ringnorm(100, random_state=0)
    >>> model = KernelFisherClassifier().fit(X, y)
    >>> DiscriminantDisplay.from_estimator(model, X, y).ax_.get_xlabel()
    'Discriminant variate 1'
    """

    def __init__(
        self,
        *,
        variates: Array,
        label: Indices,
        classes: NDArray[Any],
        threshold: float | None = None,
    ) -> None:
        self.variates = variates
        self.label = label
        self.classes = classes
        self.threshold = threshold

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, kind: str = "density", ax: Any = None
    ) -> Self:
        """Project rows with a fitted model, and draw them.

        Parameters
        ----------
        estimator : fitted classifier with ``transform``, alone or as the last step of a pipeline
        X : rows, from the training data or new
        y : array of shape (n,)
            Their classes.
        kind : {"density", "histogram"}, default="density"
            How the distribution along one variate is drawn.
        ax : Axes, default=None
            Where to draw; None creates a new figure.
        """
        fisher = KernelFisherClassifier, SparseFisherClassifier, OnlineFisherClassifier
        model = fitted_model(cls.__name__, estimator, *fisher, method="transform")
        threshold, variates = getattr(model, "threshold_", None), np.asarray(estimator.transform(X))
        return cls.from_predictions(y, variates, threshold=threshold, kind=kind, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        variates: ArrayLike,
        *,
        threshold: float | None = None,
        kind: str = "density",
        ax: Any = None,
    ) -> Self:
        """Draw given variates (n,) or (n, r).

        Parameters
        ----------
        y_true : array of shape (n,)
            Classes.
        variates : array of shape (n,) or (n, r)
            Result of ``transform``.
        threshold : float, default=None
            Threshold on the projection.
        kind : {"density", "histogram"}, default="density"
            How the distribution along one variate is drawn.
        ax : Axes, default=None
            Where to draw; None creates a new figure.
        """
        Z = np.asarray(variates, dtype=np.float64)
        classes, label = classes_of(y_true, Z)
        display = cls(variates=Z.reshape(len(Z), -1), label=label, classes=classes, threshold=threshold)
        return display.plot(kind=kind, ax=ax)

    def plot(self, *, kind: str = "density", ax: Any = None) -> Self:
        """Draw on the axes, or on those of a new figure."""
        self._draw_on(ax)
        self.ax_.set_xlabel("Discriminant variate 1")
        if self.variates.shape[1] == 1:
            self._densities(kind)
        else:
            self._scatter()
        return self

    def _densities(self, kind: str) -> None:
        span = span_of(self.variates)
        for c, name in enumerate(self.classes):
            rows = self.label == c
            x, height = curve(self.variates[rows, 0], span, kind)
            self.ax_.plot(x, rows.mean() * height, color=color(c))
            self.ax_.fill_between(x, rows.mean() * height, color=color(c), alpha=0.3, lw=0, label=f"class {name}")
        if self.threshold is not None:
            self.ax_.axvline(self.threshold, color="black", ls="--", lw=1, label=f"threshold {self.threshold:.2g}")
        self.ax_.set_ylabel("Density times class share")
        self.ax_.set_ylim(bottom=0)
        legend_inside(self.ax_)

    def _scatter(self) -> None:
        Z = self.variates[:, :2]
        for c in range(len(self.classes)):
            x, y = Z[self.label == c].T
            self.ax_.scatter(x, y, s=14, color=color(c), marker=marker(c), alpha=0.5, lw=0)
        self.ax_.margins(MARGIN)
        self.ax_.set_ylabel("Discriminant variate 2")
        spots = free_spots(Z, self.label, [str(name) for name in self.classes], inches(self.ax_))
        for c, name in enumerate(self.classes):
            self._name(str(name), Z[self.label == c].mean(axis=0), spots[c], c)

    def _name(self, name: str, mean: Array, spot: Array, c: int) -> None:
        """The mean of a class as a large marker, its name next to its points, and a line between them."""
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=3, foreground="white")]
        line = {"arrowstyle": "-", "color": color(c), "lw": 0.8, "shrinkA": 0, "shrinkB": 4}
        text = self.ax_.annotate(
            name, _pair(mean), _pair(spot), color=color(c), arrowprops=line, path_effects=halo
        )
        text.set(ha="center", va="center", weight="bold", zorder=4)
        self.ax_.scatter(*_pair(mean), s=60, color=color(c), marker=marker(c), edgecolor="white", lw=1, zorder=3)


def _pair(place: Array) -> tuple[float, float]:
    """A position (2,) in the type that matplotlib expects."""
    return float(place[0]), float(place[1])
