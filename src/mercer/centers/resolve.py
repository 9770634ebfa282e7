"""What users write for centers, as a selector."""

from typing import Any

from mercer.centers.base import CenterSelector
from mercer.centers.given import Given


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
            f"centers is {centers!r}; it must be a selector such as ForwardSelection(), or an array of centers"
        )
    return Given(centers)
