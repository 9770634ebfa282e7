"""A formula as text: the templates of a language that it needs, filled with its numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mercer._linalg.tolerance import SMALLEST_FLOAT
from mercer._scores.uncertainty.unexplained_variance import (
    LARGEST_KERNEL_VALUE,
    LEAST_PRIOR_VARIANCE,
    LEAST_TRUST,
)
from mercer.export._formula import Formula

# Bounds of numbers on the way, as the model has them.
BOUNDS = {
    "tiny": SMALLEST_FLOAT,
    "huge": LARGEST_KERNEL_VALUE,
    "most": LARGEST_KERNEL_VALUE**2,
    "least": LEAST_PRIOR_VARIANCE,
    "least_trust": LEAST_TRUST,
}


def functions(f: Formula, templates: Mapping[str, str], words: Mapping[str, Any]) -> list[str]:
    """The functions of a formula, each after those that it calls; ``words`` are those of the language."""
    m, q = f.coef.shape
    sizes = {"m": m, "q": q, "k": q + 1, "d": f.centers.shape[1], "r": len(f.variance.mean) if f.variance else 0}
    values = {"f": f, "e": f.evidence, "v": f.variance, "width": f.width[0].item(), **sizes, **BOUNDS, **words}
    values["own"] = templates["own"].format_map(values) if f.kernel.varies else "1.0"
    values["end"] = "".join(templates[part] for part in _after_the_sum(f)).format_map(values)
    return ["".join(templates[part] for part in parts).format_map(values) for parts in _functions(f)]


def _functions(f: Formula) -> Iterator[list[str]]:
    """Templates of functions, with those that only the function needs."""
    yield ["kernel"]
    if f.variance is not None:
        yield ["novelty"]
    e = f.evidence
    bent, curved = e is not None and e.bend < np.inf, e is not None and e.curves is not None
    yield ["bent"] * bent + ["curve"] * curved + ["outputs"]
    if f.classes is not None:
        yield ["classes"]
    if f.detects:
        yield ["detects"]


def _after_the_sum(f: Formula) -> Iterator[str]:
    """Templates of what becomes of the sums of kernel values, one after the other."""
    e = f.evidence
    if e is not None and not e.linear:
        yield "bending" if e.bend < np.inf else "scores"
        yield "map"
        if e.curvature is not None:
            yield "curvature"
        if e.curves is not None:
            yield "curves"
    if e is not None:
        yield "counted"
        if e.limit != np.inf:
            yield "limit"
        if f.variance is not None:
            yield "trust"
        yield "share"
    if f.ranks is not None:
        yield "ranks"
    if f.minus_own:
        yield "minus_own"
