"""Fitted models as source code: a C header or a Python module without dependencies."""

from mercer.export._c import to_c
from mercer.export._python import to_python

__all__ = ["to_c", "to_python"]
