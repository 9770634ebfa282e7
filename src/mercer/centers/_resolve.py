"""From user input to a selector of centers."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_array

from mercer import _validation
from mercer.centers._base import CenterSelector
from mercer.centers._forward import ForwardSelection
from mercer.centers._given import Given
from mercer.centers._uniform import Uniform
from mercer.kernels import Kernel
from mercer.rows._columns import NamedColumns, read_columns

# centers="auto" makes every row a center for up to this many rows, and up to the last number if these matter; up
# to the second where it is not asked whether fewer are enough.
EVERY_ROW, EXACT_ROWS, MATTERING_ROWS = 2000, 5000, 10_000
# Up to this many centers are selected by the targets; among thousands it hardly matters how they were selected.
FORWARD_CENTERS = 1000
# centers="auto" takes as many as a pass of this number of multiplications allows, between these bounds.
AUTO_WORK = 4e12
AUTO_CENTERS = (500, 4000)


def selector_for(m: int) -> CenterSelector:
    """The selector for a given number m of centers."""
    return ForwardSelection() if m <= FORWARD_CENTERS else Uniform()


def as_selector(centers: Any) -> CenterSelector:
    """A selector unchanged; rows, as an array, a CSR matrix or a list, as :class:`Given`.

    Examples
    --------
    >>> as_selector([[0.0], [1.0]])
    Given(rows=[[0.0], [1.0]])
    """
    if isinstance(centers, CenterSelector):
        return centers
    if isinstance(centers, str | bytes) or not hasattr(centers, "__getitem__"):
        raise TypeError(
            f"centers={centers!r}; it must be an integer, a selector such as ForwardSelection(), or an array of "
            "centers"
        )
    return Given(centers)


def auto_centers(n: int) -> int:
    """The default number of centers for n rows: at most half of them."""
    least, most = AUTO_CENTERS
    return max(1, min(n // 2, most, max(least, int((AUTO_WORK / max(n, 1)) ** 0.5))))


def requested_centers(centers: Any) -> int:
    """The largest number of centers that the parameter requests; 0 if the centers or a selector determine it."""
    _refuse_truth(centers)
    if isinstance(centers, str):
        return AUTO_CENTERS[1]
    number = centers if isinstance(centers, Integral) else getattr(centers, "n_centers", None)
    return 0 if number is None else int(number)


def as_plan(centers: Any, kernel: Kernel, X: Any, n: int) -> tuple[CenterSelector, int | None]:
    """The selector of centers for n rows like X, and their number; None: the selector determines it."""
    _refuse_truth(centers)
    if isinstance(centers, str):
        _validation.check_choice("centers", centers, ("auto", "all"))
        return Uniform(), auto_centers(n)
    if isinstance(centers, Integral):
        if int(centers) < 1:
            raise ValueError(f"centers={centers}; it must be at least 1")
        return selector_for(int(centers)), min(int(centers), max(n, 1))
    if isinstance(centers, CenterSelector):
        chooses = isinstance(centers, ForwardSelection | Given)
        return centers, centers.n_centers or (None if chooses else auto_centers(n))
    if isinstance(X, NamedColumns):
        return Given(read_columns(centers, list(X.columns))), None
    given = as_selector(_validation.unmasked("centers", centers))
    if isinstance(given, Given) and kernel.takes_vectors and isinstance(X, np.ndarray):
        # Centers in another precision than the rows would make every block slower.
        given = Given(check_array(given.rows, dtype=X.dtype))
        if given.rows.shape[1] != X.shape[1]:
            raise ValueError(
                f"centers have {given.rows.shape[1]} features and X has {X.shape[1]}; pass centers with the "
                "columns of X"
            )
    return given, None


def _refuse_truth(centers: Any) -> None:
    if isinstance(centers, bool | np.bool_):
        raise ValueError(f'centers={centers}; pass a number of centers, a selector, the centers, "auto" or "all"')
