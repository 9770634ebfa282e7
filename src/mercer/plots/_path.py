"""The leave-one-out criterion over kernels and penalties."""

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer._estimators import KernelFisherClassifier, KernelRidgeRegressor
from mercer._fitting import TuningPath
from mercer._types import Array
from mercer.kernels._base import Kernel, kind_of
from mercer.plots._canvas import COLORS, Display, fitted_model

CRITERIA = {
    "brier": "Leave-one-out Brier score",
    "log_loss": "Leave-one-out log-loss",
    "error": "Leave-one-out error rate",
    "squared": "Leave-one-out squared error / variance",
}
# Kernels that differ in more than one number are identified by their position in ``path.kernels``.
POSITION = "kernel number"
# This share of a map has distinct colors; worse values have the brightest, so that the valley is visible.
BRIGHT = 0.7


class LooPathDisplay(Display):
    """The leave-one-out criterion over the kernel's parameter and alpha, with its minimum marked.

    A map, colored by the criterion, if several kernels and several alphas were tried; a curve if one of the two
    was given. The map of a model is its first comparison: all kernels, by default 15. Up to 240 distinct rows are
    all centers, and the minimum is what the model uses. With more rows, kernels are compared with 240 random
    centers and 12 alphas each, and the search continues from the minimum: what the model uses is close by. With a
    given kernel, the curve shows the alphas of fits to all rows; if more than 600 rows are all centers, these are
    a few around the best one.

    Parameters
    ----------
    path : TuningPath
        An element of ``tuning_paths_`` of a fitted model.
    criterion : str, default="Leave-one-out criterion"
        Name of the criterion, for labels.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and figure of the picture.
    colorbar_ : Colorbar or None
        The color scale of a map.

    Examples
    --------
    >>> from mercer import KernelFisherClassifier
    >>> from mercer.datasets import make_banana
    >>> from mercer.plots import LooPathDisplay
    >>> X, y = make_banana(100, random_state=0)
    >>> model = KernelFisherClassifier("rbf").fit(X, y)
    >>> LooPathDisplay.from_estimator(model).ax_.get_ylabel()
    'gamma'
    """

    colorbar_: Any

    def __init__(self, *, path: TuningPath, criterion: str = "Leave-one-out criterion") -> None:
        self.path = path
        self.criterion = criterion

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the criterion of the first comparison in which kernels like the chosen one differ in one number.

        Parameters
        ----------
        estimator : fitted KernelFisherClassifier or KernelRidgeRegressor, alone or as the last step of a pipeline
        ax : Axes, default=None
            Where to draw; None creates a new figure.
        """
        model = fitted_model(cls.__name__, estimator, KernelFisherClassifier, KernelRidgeRegressor)
        criterion = CRITERIA[getattr(model, "criterion", "squared")]
        alike = [_like(model.kernel_, path) for path in model.tuning_paths_]
        paths = [path for path in alike if path.kernels and _kernel_axis(path.kernels)[0] != POSITION]
        return cls(path=(paths or model.tuning_paths_)[0], criterion=criterion).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        kernels: list[Kernel],
        alphas: ArrayLike,
        scores: ArrayLike,
        *,
        criterion: str = "Leave-one-out criterion",
        ax: Any = None,
    ) -> Self:
        """Draw given criterion values.

        Parameters
        ----------
        kernels : list of g kernels
        alphas : array of shape (a,), or (g, a) if every kernel has its own
        scores : array of shape (g, a)
            Lower is better.
        criterion : str, default="Leave-one-out criterion"
            Name of the criterion, for labels.
        ax : Axes, default=None
            Where to draw; None creates a new figure.
        """
        values = np.asarray(scores, dtype=np.float64)
        grid = np.broadcast_to(np.asarray(alphas, dtype=np.float64), values.shape)
        return cls(path=TuningPath(kernels, grid, values, n_points=0), criterion=criterion).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw on the axes, or on those of a new figure."""
        self._draw_on(ax)
        self.colorbar_ = None
        n_kernels, n_alphas = self.path.scores.shape
        if n_kernels > 1 and n_alphas > 1:
            self._map()
        elif n_kernels > 1:
            name, values = _kernel_axis(self.path.kernels)
            self._curve(values, self.path.scores[:, 0], self.path.best[0], name)
        else:
            self._curve(self.path.alphas[0], self.path.scores[0], self.path.best[1], "alpha")
        return self

    def _map(self) -> None:
        name, values = _kernel_axis(self.path.kernels)
        alphas, scores = self.path.alphas, self.path.scores
        kernel = np.broadcast_to(values[:, None], alphas.shape)
        y = _corners(kernel) if name == POSITION else np.exp(_corners(np.log(kernel)))
        top = np.quantile(scores, BRIGHT)
        mesh = self.ax_.pcolormesh(np.exp(_corners(np.log(alphas))), y, scores, cmap="viridis", vmax=top)
        self.ax_.set(xscale="log", yscale=_scale(name), xlabel="alpha", ylabel=name)
        best = self.path.best
        self._minimum(alphas[best], kernel[best], f"{name} = {kernel[best]:.3g}, alpha = {alphas[best]:.3g}")
        self.colorbar_ = self.figure_.colorbar(mesh, ax=self.ax_, label=self.criterion, extend="max")
        # Large alpha with a wide kernel: usually the worst corner, and free.
        self.ax_.legend(loc="lower right")

    def _curve(self, x: Array, scores: Array, best: int, name: str) -> None:
        self.ax_.plot(x, scores, color=COLORS[0], marker=".")
        self._minimum(x[best], scores[best], f"{name} = {x[best]:.3g}")
        self.ax_.set(xscale=_scale(name), xlabel=name, ylabel=self.criterion)
        self.ax_.legend()

    def _minimum(self, x: float, y: float, where: str) -> None:
        self.ax_.plot(x, y, "*", ms=15, mfc=COLORS[1], mec="white", ls="none", label=f"minimum: {where}")


def _like(kernel: Kernel, path: TuningPath) -> TuningPath:
    """The part of a comparison with kernels of the same kind."""
    some = [g for g, each in enumerate(path.kernels) if kind_of(each) == kind_of(kernel)]
    if len(some) == len(path.kernels):
        return path
    return TuningPath([path.kernels[g] for g in some], path.alphas[some], path.scores[some], path.n_points)


def _kernel_axis(kernels: list[Kernel]) -> tuple[str, Array]:
    """Name and values (g,) of the one number in which the kernels differ; otherwise their positions."""
    if len({kind_of(kernel) for kernel in kernels}) > 1:
        return POSITION, np.arange(len(kernels), dtype=np.float64)
    params = [_largest_gamma(kernel.get_params(deep=True)) for kernel in kernels]
    numbers = [key for key, value in params[0].items() if isinstance(value, Real)]
    moving = [key for key in numbers if len({p.get(key) for p in params}) > 1]
    if len(moving) == 1:
        return moving[0], np.array([p[moving[0]] for p in params], dtype=np.float64)
    return POSITION, np.arange(len(kernels), dtype=np.float64)


def _largest_gamma(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with one number in place of a gamma for each feature."""
    gammas = {key: np.max(value) for key, value in params.items() if key == "gamma" and np.ndim(value) > 0}
    return {**params, **{f"largest {key}": value for key, value in gammas.items()}}


def _scale(name: str) -> str:
    return "linear" if name == POSITION else "log"


def _corners(V: Array) -> Array:
    """Corners (g + 1, a + 1) of cells around a grid of centers V (g, a): means of four, extended linearly."""
    for axis in (0, 1):
        V = np.moveaxis(V, axis, 0)
        V = np.concatenate([[2 * V[0] - V[1]], V, [2 * V[-1] - V[-2]]])
        V = np.moveaxis((V[:-1] + V[1:]) / 2, 0, axis)
    return V
