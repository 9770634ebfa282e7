"""Transformations of images that do not change what they show.

For the parameter ``invariances`` of models: functions that take rows and return as many transformed rows. Those
here are for rows that are gray images, line by line. They can be pickled, compared and printed.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from mercer import _validation
from mercer._types import Array, Floats
from mercer.rows._table import dense

__all__ = [
    "AffineWarp",
    "ElasticWarp",
    "Thickness",
    "distortions",
    "rotations",
    "scalings",
    "shears",
    "shifts",
    "thicknesses",
]

Shape = tuple[int, int]


@dataclass(frozen=True)
class ImageTransform(ABC):
    """A function of rows (n, d) that are images of a ``shape`` (height, width), None: square; abstract.

    What comes in from outside is ``fill``, None: the least value of each image.
    """

    _: KW_ONLY
    shape: Shape | None = None
    fill: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "shape" and value is not None:
                _validation.check_number(name, value, "a finite number")
        whole = isinstance(self.shape, tuple) and [type(side) for side in self.shape] == [int, int]
        if self.shape is not None and not whole:
            raise ValueError(f"shape={self.shape!r}; pass a tuple (height, width) of integers")

    def __call__(self, X: Any) -> Floats:
        """Rows (n, d) transformed; integers become float64, sparse rows dense."""
        X = dense(X)
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        shape, low = self._shape_of(X), np.full(len(X), self.fill or 0.0, dtype=X.dtype)
        if self.fill is None and len(X):
            low = X.min(axis=1)
        images = X.reshape(len(X), *shape) - low[:, None, None]
        return self.transformed(images).reshape(X.shape) + low[:, None]

    @abstractmethod
    def transformed(self, images: Floats) -> Floats:
        """Images (n, h, w) with a background of zero, in the same type."""

    def _shape_of(self, X: Floats) -> Shape:
        if X.ndim != 2 or X.shape[1] == 0:
            raise ValueError(f"images are rows of pixels (n, h w), but X has the shape {X.shape}; reshape it")
        side = round(X.shape[1] ** 0.5)
        shape = (side, side) if self.shape is None else self.shape
        if shape[0] * shape[1] != X.shape[1]:
            raise ValueError(
                f"rows have {X.shape[1]} columns, which are not images of shape {shape}; set shape=(height, width)"
            )
        return shape


@dataclass(frozen=True)
class Warp(ImageTransform):
    """Pixels come from other places, with linear interpolation; abstract."""

    @abstractmethod
    def sources(self, shape: Shape) -> Array:
        """Where (h w, 2) each pixel comes from: row and column."""

    def transformed(self, images: Floats) -> Floats:
        flat = images.reshape(len(images), images.shape[1] * images.shape[2])
        moved = np.zeros_like(flat)
        for weight, pixel in _corners(self.sources((images.shape[1], images.shape[2])), images.shape[1:]):
            moved += flat[:, pixel] * weight.astype(flat.dtype)
        return moved


def _corners(place: Array, shape: tuple[int, ...]) -> Iterator[tuple[Array, NDArray[np.intp]]]:
    """The four pixels (p,) around places (p, 2), with their weights; those outside have none."""
    low = np.floor(place).astype(np.intp)
    for corner in product((0, 1), repeat=2):
        pixel = low + corner
        inside = ((pixel >= 0) & (pixel < shape)).all(axis=1)
        weight = np.where(inside, (1.0 - np.abs(place - pixel)).prod(axis=1), 0.0)
        yield weight, np.where(inside, pixel[:, 0] * shape[1] + pixel[:, 1], 0)


@dataclass(frozen=True)
class AffineWarp(Warp):
    """Shear, scaling and rotation (degrees, counterclockwise) around the center, then a shift by pixels.

    Examples
    --------
    >>> import numpy as np
    >>> AffineWarp(right=1)(np.array([[0.0, 1.0, 2.0, 3.0]]))
    array([[0., 0., 0., 2.]])
    """

    down: float = 0.0
    right: float = 0.0
    rotation: float = 0.0
    scale: float = 1.0
    shear: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _validation.check_number("scale", self.scale, "a number above 0", above=0.0)

    def sources(self, shape: Shape) -> Array:
        angle = np.deg2rad(self.rotation)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        forth = self.scale * turn @ np.array([[1.0, 0.0], [self.shear, 1.0]])
        center = (np.array(shape) - 1.0) / 2.0
        back = np.linalg.solve(forth, _places(shape) - center[:, None] - [[self.down], [self.right]])
        return back.T + center


@dataclass(frozen=True)
class ElasticWarp(Warp):
    """A random smooth displacement: ``amplitude`` is its standard deviation in pixels, ``width`` that of the
    Gaussian that makes it smooth; the same for all images (Simard, Steinkraus and Platt 2003).
    """

    amplitude: float = 1.0
    width: float = 3.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _validation.check_number("width", self.width, "a number above 0", above=0.0)
        _validation.check_int("seed", self.seed, "an integer of at least 0", least=0)

    def sources(self, shape: Shape) -> Array:
        noise = np.random.default_rng(self.seed).standard_normal((2, *shape))
        field = np.stack([ndimage.gaussian_filter(part, self.width, mode="wrap") for part in noise])
        field *= self.amplitude / max(float(field.std()), 1e-300)
        return np.asarray((_places(shape) + field.reshape(2, -1)).T)


@dataclass(frozen=True)
class Thickness(ImageTransform):
    """Strokes of bright pixels thicker (``amount`` up to 1) or thinner (down to -1), by a pixel at most."""

    amount: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _validation.check_number("amount", self.amount, "between -1 and 1", least=-1.0, most=1.0)

    def transformed(self, images: Floats) -> Floats:
        cross = ndimage.generate_binary_structure(2, 1)[None]
        extreme = ndimage.grey_dilation if self.amount > 0.0 else ndimage.grey_erosion
        changed: Floats = images + abs(self.amount) * (extreme(images, footprint=cross) - images)
        return changed.astype(images.dtype, copy=False)


def _places(shape: Shape) -> Array:
    """Row and column (2, h w) of every pixel."""
    return np.indices(shape).reshape(2, -1).astype(np.float64)


def shifts(pixels: float = 1.0, **image: Any) -> list[AffineWarp]:
    """By a number of pixels up, down, left and right. ``image``: shape and fill, as in all functions here."""
    steps = ((-pixels, 0.0), (pixels, 0.0), (0.0, -pixels), (0.0, pixels))
    return [AffineWarp(down=down, right=right, **image) for down, right in steps]


def rotations(degrees: float = 8.0, **image: Any) -> list[AffineWarp]:
    """By a number of degrees to both sides."""
    return [AffineWarp(rotation=angle, **image) for angle in (-degrees, degrees)]


def scalings(factor: float = 1.1, **image: Any) -> list[AffineWarp]:
    """Larger and smaller by a factor."""
    _validation.check_number("factor", factor, "a number above 0", above=0.0)
    return [AffineWarp(scale=scale, **image) for scale in (factor, 1.0 / factor)]


def shears(amount: float = 0.15, **image: Any) -> list[AffineWarp]:
    """Slanted to both sides by this part of the height."""
    return [AffineWarp(shear=part, **image) for part in (-amount, amount)]


def thicknesses(amount: float = 0.5, **image: Any) -> list[Thickness]:
    """Thicker and thinner strokes."""
    return [Thickness(part, **image) for part in (amount, -amount)]


def distortions(n: int = 2, amplitude: float = 1.0, width: float = 3.0, **image: Any) -> list[ElasticWarp]:
    """n random smooth displacements."""
    _validation.check_int("n", n, "a positive integer", least=1)
    return [ElasticWarp(amplitude, width, seed, **image) for seed in range(n)]
