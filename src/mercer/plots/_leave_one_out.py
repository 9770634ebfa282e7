"""Scores of training rows, with the row in the training set and without it."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._estimators import KernelFisherClassifier
from mercer._types import Array, Indices
from mercer.plots._canvas import Display, classes_of, color, curve, fitted_model, legend_inside, span_of
from mercer.rows._table import take

# Height of a curve if classes are drawn one above the other.
RIDGE = 0.85


class LeaveOneOutDisplay(Display):
    """Distributions of training scores and of leave-one-out scores of the same rows, class by class.

    Training scores depend on the label of their own row and lie too close to the targets; leave-one-out scores
    behave like those of new rows. The gap between line and area is the optimism of training outputs: Mika (2002),
    Figures 5.6 and 5.7, compares training with test rows.

    Two classes share one pair of axes and are scored by their outputs, fitted to -1 and +1. Three or more are
    drawn one above the other, with curves of equal height, and scored by their margin, the log-odds of the true
    class against the best other: a row with a margin below zero is misclassified.

    Parameters
    ----------
    train_scores, loo_scores : ndarray of shape (n,)
        Scores of the training rows from the full fit, and from the fits without the row.
    label : ndarray of shape (n,)
        Class numbers.
    classes : ndarray of shape (n_classes,)
        Names of the classes.
    threshold : float, default=None
        Threshold on the outputs of two classes; None draws no line.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and figure of the picture.

    Examples
    --------
    >>> from mercer import KernelFisherClassifier
    >>> from mercer.datasets import make_ringnorm
    >>> from mercer.plots import LeaveOneOutDisplay
    >>> X, y = make_ringnorm(100, random_state=0)
    >>> model = KernelFisherClassifier().fit(X, y)
    >>> LeaveOneOutDisplay.from_estimator(model, X, y).ax_.get_xlabel()
    'Output (targets -1 and +1)'
    """

    def __init__(
        self,
        *,
        train_scores: Array,
        loo_scores: Array,
        label: Indices,
        classes: NDArray[Any],
        threshold: float | None = None,
    ) -> None:
        self.train_scores = train_scores
        self.loo_scores = loo_scores
        self.label = label
        self.classes = classes
        self.threshold = threshold

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, kind: str = "density", ax: Any = None
    ) -> Self:
        """Draw the scores of a fitted model for its training rows.

        Parameters
        ----------
        estimator : fitted KernelFisherClassifier, alone or as the last step of a pipeline
        X, y : the training rows and their classes, in the order of ``fit``
        kind : {"density", "histogram"}, default="density"
            How distributions are drawn.
        ax : Axes, default=None
            Where to draw; None creates a new figure.
        """
        model = fitted_model(cls.__name__, estimator, KernelFisherClassifier)
        if len(model.loo_index_) < len(np.asarray(y)):
            X, y = (take(part, model.loo_index_) for part in (X, y))
        two = len(model.classes_) == 2
        train = np.asarray(estimator.transform(X))[:, 0] if two else estimator.decision_function(X)
        loo = model.loo_outputs_[:, 0] if two else model.loo_decision_
        return cls.from_predictions(y, train, loo, threshold=model.threshold_ if two else None, kind=kind, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        train_scores: ArrayLike,
        loo_scores: ArrayLike,
        *,
        threshold: float | None = None,
        kind: str = "density",
        ax: Any = None,
    ) -> Self:
        """Draw given scores.

        Parameters
        ----------
        y_true : array of shape (n,)
            Classes.
        train_scores, loo_scores : array of shape (n,), or (n, n_classes) with three or more classes
            Outputs for two classes, or log-probabilities for more.
        threshold : float, default=None
            Threshold on the outputs of two classes.
        kind : {"density", "histogram"}, default="density"
            How distributions are drawn.
        ax : Axes, default=None
            Where to draw; None creates a new figure.
        """
        train, loo = np.asarray(train_scores, dtype=np.float64), np.asarray(loo_scores, dtype=np.float64)
        if train.shape != loo.shape:
            raise ValueError(
                f"training scores have shape {train.shape}, leave-one-out scores {loo.shape}; pass the rows on "
                "which the model was fitted"
            )
        classes, label = classes_of(y_true, train)
        if train.ndim == 2:
            train, loo = _margins(train, label), _margins(loo, label)
        display = cls(train_scores=train, loo_scores=loo, label=label, classes=classes, threshold=threshold)
        return display.plot(kind=kind, ax=ax)

    def plot(self, *, kind: str = "density", ax: Any = None) -> Self:
        """Draw on the axes, or on those of a new figure."""
        self._draw_on(ax)
        if len(self.classes) == 2:
            self._two(kind)
        else:
            self._more(kind)
        return self

    def _two(self, kind: str) -> None:
        span = span_of(self.train_scores, self.loo_scores)
        for c, name in enumerate(self.classes):
            self._pair(c, span, kind, f"class {name}, ")
        self.ax_.set(xlabel="Output (targets -1 and +1)", ylabel="Density within the class")
        self.ax_.set_ylim(bottom=0)
        title = None
        if self.threshold is not None:
            self.ax_.axvline(self.threshold, color="black", ls="--", lw=1, label="threshold")
            sign = np.where(self.label == 1, 1.0, -1.0)
            title = _accuracies(
                sign * (self.train_scores - self.threshold), sign * (self.loo_scores - self.threshold)
            )
        legend_inside(self.ax_, title=title)

    def _more(self, kind: str) -> None:
        span = span_of(self.train_scores, self.loo_scores)
        for c in range(len(self.classes)):
            self._pair(c, span, kind, "" if c == 0 else "_", base=float(c))
        self.ax_.axvline(0.0, color="black", ls="--", lw=1, label="wrong label left of it")
        self.ax_.set_yticks(range(len(self.classes)), [str(name) for name in self.classes])
        self.ax_.set(xlabel="Margin (log-odds of the own class against the best other)", ylabel="Class")
        legend_inside(self.ax_, title=_accuracies(self.train_scores, self.loo_scores))

    def _pair(self, c: int, span: tuple[float, float], kind: str, prefix: str, base: float | None = None) -> None:
        """Both curves of one class; with a base they start from it, each with the height of a ridge."""
        rows = self.label == c
        x, train = curve(self.train_scores[rows], span, kind)
        x, loo = curve(self.loo_scores[rows], span, kind)
        if base is not None:
            train, loo = base + RIDGE * train / train.max(), base + RIDGE * loo / loo.max()
        self.ax_.plot(x, train, color=color(c), lw=1.5, label=f"{prefix}training")
        self.ax_.fill_between(
            x, base or 0.0, loo, color=color(c), alpha=0.35, lw=0, label=f"{prefix}leave-one-out"
        )


def _margins(scores: Array, label: Indices) -> Array:
    """The score of the true class minus the best of the others (n,), from scores (n, k)."""
    rows = np.arange(len(label))
    others = scores.copy()
    others[rows, label] = -np.inf
    margins: Array = scores[rows, label] - others.max(axis=1)
    return margins


def _accuracies(train_margin: Array, loo_margin: Array) -> str:
    """Accuracies as text."""
    return f"accuracy: training {(train_margin > 0).mean():.1%}, leave-one-out {(loo_margin > 0).mean():.1%}"
