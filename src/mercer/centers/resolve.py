"""What users write for centers, as a selector."""

from typing import Any

from mercer.centers.base import CenterSelector
from mercer.centers.forward import ForwardSelection
from mercer.centers.given import Given
from mercer.centers.uniform import Uniform

# Up to so many centers are chosen by the targets; among thousands of centers it hardly matters who chose them.
FORWARD_CENTERS = 1000


def selector_for(m: int) -> CenterSelector:
    """Who selects m centers where nothing else is said."""
    return ForwardSelection() if m <= FORWARD_CENTERS else Uniform()


def as_selector(centers: Any) -> CenterSelector:
    """A selector as it is; rows, as an array, a CSR matrix or a list, as :class:`Given`.

    Examples
    --------
    >>> as_selector([[0.0], [1.0]])
    Given(rows=[[0.0], [1.0]])
    """
    if isinstance(centers, CenterSelector):
        return centers
    if isinstance(centers, str | bytes) or not hasattr(centers, "__getitem__"):
        raise TypeError(
            f"centers is {centers!r}; it must be a whole number, a selector such as ForwardSelection(), or an "
            "array of centers"
        )
    return Given(centers)
