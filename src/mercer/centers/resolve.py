"""From user input to a selector of centers."""

from typing import Any

from mercer.centers.base import CenterSelector
from mercer.centers.forward import ForwardSelection
from mercer.centers.given import Given
from mercer.centers.uniform import Uniform

# Up to this many centers are selected by the targets; among thousands it hardly matters how they were selected.
FORWARD_CENTERS = 1000


def selector_for(m: int) -> CenterSelector:
    """The default selector for m centers."""
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
