"""Shared by all displays: the model to draw, axes, colors for all kinds of color vision, densities of scores."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer._types import Array, Indices
from mercer._validation import check_choice
from mercer.rows._optional import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


# Okabe and Ito (2008), Color universal design, without yellow, which is too pale for lines; then the colors
# farthest from white and from the previous ones, in CIELAB and as seen without green cones (Machado et al. 2009).
COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#0000FF", "#00D200", "#FF2DFF",
    "#4B0096", "#78001E", "#5A5A00", "#FF005A", "#F0A587", "#69005A", "#0078FF", "#A5C35A", "#2D5A5A", "#C396FF",
)  # fmt: skip
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
KINDS = ("density", "histogram")
GRID_SIZE = 300
N_BINS = 30
# Axes with a legend inside are higher than their content by this factor.
HEADROOM = 1.4
# Margin around points for names on each side, as a share of the range of the points.
MARGIN = 0.15
# Width of a bold letter and height of a line in inches, at the default size of labels.
LETTER = np.array([0.1, 0.18])
# Names are tried in these directions from the mean of a class, and this much farther out if there is no room.
ANGLES = 2 * np.pi * np.arange(16) / 16
PLOT_STEPS = (0.0, 0.06, 0.12, 0.2)
# This many points are enough to find free space.
N_OBSTACLES = 5000


class Display:
    """A picture on axes; abstract."""

    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def _draw_on(self, ax: Any) -> None:
        """From now on, draw on these axes, None: on those of a new figure."""
        self.ax_ = _new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure


def _new_axes() -> "Axes":
    with optional("plots", "plotting needs matplotlib"):
        import matplotlib.pyplot as plt
    return plt.subplots(layout="constrained")[1]


def legend_inside(ax: "Axes", *, title: str | None = None) -> None:
    """A legend in a strip added on top of the axes, where it covers nothing."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, low + HEADROOM * (high - low))
    frame = {"framealpha": 1.0, "edgecolor": "none", "fontsize": "small", "title_fontsize": "small"}
    ax.legend(loc="upper center", ncols=3, title=title, **frame)


def color(position: int) -> str:
    """The color of the class at this position."""
    return COLORS[position % len(COLORS)]


def marker(position: int) -> str:
    """The marker of the class at this position: colors repeat after 20, pairs of color and marker after 140."""
    return MARKERS[position % len(MARKERS)]


def fitted_model(display: str, estimator: Any, *classes: type, method: str | None = None) -> Any:
    """The fitted model inside a pipeline or a search, or the estimator itself, if a display applies to it.

    Displays apply to models of some classes, and to all classifiers that have a ``method``, if one is named.
    """
    model = _last_step(estimator)
    if not isinstance(model, classes) and (method is None or not _is_classifier_with(method, model)):
        *others, last = [each.__name__ for each in classes] + [f"another classifier with {method}"] * bool(method)
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise TypeError(
            f"{display} does not apply to {type(model).__name__}; pass a fitted {allowed}, alone or as the last "
            "step of a pipeline"
        )
    check_is_fitted(model)
    return model


def _last_step(estimator: Any) -> Any:
    """The model inside a pipeline or a search; of a search without a fit, the one that it would fit."""
    while True:
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        # Searches have a parameter ``refit``; classifiers of pairs and of sequences have an ``estimator``, too.
        elif hasattr(estimator, "refit"):
            estimator = clone(estimator.estimator)
        elif isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        else:
            return estimator


def _is_classifier_with(method: str, model: Any) -> bool:
    return isinstance(model, BaseEstimator) and is_classifier(model) and hasattr(model, method)


def classes_of(y: ArrayLike, scores: Array) -> tuple[NDArray[Any], Indices]:
    """The distinct classes and the class number of every row (n,), one for each of the scores."""
    y = np.asarray(y)
    if len(y) != len(scores):
        raise ValueError(
            f"there are {len(y)} labels and {len(scores)} rows of scores; pass one label for each row"
        )
    classes, label = np.unique(y, return_inverse=True)
    return classes, label


def curve(values: Array, span: tuple[float, float], kind: str) -> tuple[Array, Array]:
    """Points x and heights (g,) of the distribution of values (n,) over a span; the area is one."""
    check_choice("kind", kind, KINDS)
    if kind == "density":
        grid = np.linspace(*span, GRID_SIZE)
        return grid, density(values, grid)
    height, edges = np.histogram(values, bins=N_BINS, range=span, density=True)
    return np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(height, 2), [0.0]])


def density(values: Array, grid: Array) -> Array:
    """Gaussian kernel density of values (n,) at a grid (g,); O(n g). Width: Silverman (1986), Eq. (3.31)."""
    quartiles = np.quantile(values, [0.25, 0.75])
    spread = min(values.std(), np.diff(quartiles)[0] / 1.34) or values.std()
    # Scores that are all equal become a narrow peak.
    width = max(0.9 * spread * len(values) ** -0.2, 0.005 * np.ptp(grid))
    bumps = np.exp(-0.5 * ((grid[:, None] - values) / width) ** 2)
    heights: Array = bumps.mean(axis=1) / (width * np.sqrt(2 * np.pi))
    return heights


def span_of(*scores: Array) -> tuple[float, float]:
    """The range of nearly all scores: between their percentiles 1 and 99, and a fifth more on both sides."""
    ends = np.quantile([np.quantile(s, [0.01, 0.99]) for s in scores], [0.0, 1.0])
    margin = 0.2 * (ends[1] - ends[0]) or 1.0
    return float(ends[0] - margin), float(ends[1] + margin)


def inches(ax: "Axes") -> Array:
    """Width and height of the axes (2,)."""
    return np.array(ax.get_window_extent().size) / ax.figure.dpi


def free_spots(Z: Array, label: Indices, names: list[str], size: Array) -> Array:
    """Positions (k, 2) where names (k,) cover few points Z (n, 2) and no other name; axes of size (2,) inches."""
    low, span = Z.min(axis=0), np.ptp(Z, axis=0)
    scale = np.where(span > 0, span, 1.0) * (1 + 2 * MARGIN) / size
    points = (Z - low) / scale
    obstacles = points[:: 1 + len(points) // N_OBSTACLES]
    halves = [0.5 * LETTER * [len(name) + 1, 1] for name in names]
    spots: list[Array] = []
    for c, half in enumerate(halves):
        spots.append(_free_spot(obstacles, points[label == c], half, list(zip(spots, halves)), points.max(axis=0)))
    places: Array = low + np.array(spots) * scale
    return places


def _free_spot(points: Array, own: Array, half: Array, taken: list[tuple[Array, Array]], top: Array) -> Array:
    """The center (2,) of a box of half sizes (2,) near the class's own points, in inches: the best one tried."""
    mean = own.mean(axis=0)
    away = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
    reach = np.quantile((own - mean) @ away.T, 0.98, axis=0) + np.abs(away) @ half
    tried = [mean + (reach + step * top.max())[:, None] * away for step in PLOT_STEPS]
    spots = np.concatenate(tried)
    hidden = np.array([np.all(np.abs(points - spot) < half, axis=1).sum() for spot in spots])
    names = sum(np.all(np.abs(spots - spot) < half + other, axis=1).astype(int) for spot, other in taken)
    outside = np.any((spots - half < -MARGIN * top) | (spots + half > (1 + MARGIN) * top), axis=1)
    best: Array = spots[np.argmin(hidden + len(points) * (names + outside))]
    return best
