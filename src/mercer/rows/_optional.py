"""Optional packages, each imported where it is used."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def optional(extra: str, need: str) -> Iterator[None]:
    """Say how to install what an import inside did not find; ``need`` names what needs the package."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{need}, which is not installed: pip install mercer[{extra}]") from error
