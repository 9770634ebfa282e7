"""A formula as a Python module."""

from typing import Any

import numpy as np

from mercer._linalg.tolerance import SMALLEST_FLOAT
from mercer._scores.uncertainty.unexplained_variance import (
    LARGEST_KERNEL_VALUE,
    LEAST_PRIOR_VARIANCE,
    LEAST_TRUST,
)
from mercer.export._formula import EvidenceMap, Formula, formula_of
from mercer.export._literals import python_labels
from mercer.export._steps import Projection, Step


def to_python(model: Any, *, moderated: bool = True) -> str:
    """A Python module with the functions of :func:`to_c`: ``outputs(x)``, ``probabilities(x)``, ``predict(x)``, …

    x is a sequence of finite numbers, a row as passed to the model or pipeline; only the standard library
    is imported. ``predict`` of a classifier returns the label as a plain Python value. Supports the models, steps
    and labels of :func:`to_c`, and also integers of any size, null characters and surrogate code points in labels.

    Parameters
    ----------
    model : fitted model of mercer, or Pipeline
        As in :func:`to_c`.
    moderated : bool, default=True
        Whether probabilities depend on what is known of a row, as those of the model do.

    Examples
    --------
    >>> from mercer import SparseFisherClassifier
    >>> from mercer.datasets import make_banana
    >>> from mercer.export import to_python
    >>> X, y = make_banana(100, random_state=0)
    >>> model = SparseFisherClassifier(max_centers=10).fit(X, y)
    >>> module = {}
    >>> exec(to_python(model), module)
    >>> module["predict"](X[0].tolist()) == model.predict(X[:1]).item()
    True
    """
    f = formula_of(model, moderated=moderated)
    lines = ['"""A kernel model."""\n', "from math import exp, fabs, log, log1p, sqrt\n"]
    lines += [f"{key.upper()} = {values.tolist()!r}" for key, values in f.tables().items()]
    lines += [_features(f), _novelty(f), _outputs(f)]
    if f.classes is not None:
        lines += [f"CLASSES = {python_labels(f.classes)}", _PY_CLASSES]
    if f.detects:
        lines.append(_PY_DETECTS)
    return "\n".join(filter(None, lines))


def _features(f: Formula) -> str:
    steps = "".join(_step(step, number) for number, step in enumerate(f.steps, start=1))
    # All functions of math.h but this one have the same name in Python.
    value = f.kernel.value.replace("fmin(", "min(")
    return _FEATURES.format(n=f.n_features, steps=steps, term=f.kernel.term, value=value)


def _outputs(f: Formula) -> str:
    end = "" if f.evidence is None else _evidence(f.evidence)
    end += _moderation(f)
    end += "" if f.ranks is None else _PY_RANKS
    end += _PY_MINUS_OWN.format(width=f.width[0].item()) if f.minus_own else ""
    helpers = "" if f.evidence is None else _helpers(f.evidence)
    return helpers + _PY_OUTPUTS.format(end=end)


def _helpers(e: EvidenceMap) -> str:
    """Functions that the map needs."""
    return (_PY_BENT if e.bend < np.inf else "") + (_PY_CURVE if e.curves is not None else "")


def _evidence(e: EvidenceMap) -> str:
    text = _PY_BENDING.format(bend=e.bend) if e.bend < np.inf else "\n    r = f"
    text += _PY_MAP
    text += "" if e.curvature is None else _PY_CURVATURE
    text += "" if e.curves is None else _PY_CURVES.format(smooth=e.curves.smooth, tiny=SMALLEST_FLOAT)
    return text


def _moderation(f: Formula) -> str:
    how = f.moderation
    if how is None:
        return ""
    text = f"\n    share = {how.counted!r}"
    text += "" if how.limit == np.inf else _PY_LIMIT.format(limit=how.limit)
    text += "" if f.variance is None else _PY_TRUST.format(least=LEAST_TRUST)
    return text + _PY_SHARE


def _novelty(f: Formula) -> str:
    v = f.variance
    if v is None:
        return ""
    width = f.width[0].item()
    own = f"min(kernel(u, u, {width!r}), {LARGEST_KERNEL_VALUE**2!r})" if f.kernel.varies else "1.0"
    return _PY_NOVELTY.format(
        width=width,
        own=own,
        huge=LARGEST_KERNEL_VALUE,
        tiny=SMALLEST_FLOAT,
        least=LEAST_PRIOR_VARIANCE,
        alpha=v.alpha,
        constant=v.constant,
        typical=max(v.typical, SMALLEST_FLOAT),
        floor=v.floor,
        usual=float(np.log(max(v.usual, SMALLEST_FLOAT))),
    )


def _step(step: Step, number: int) -> str:
    """A statement that computes the list u after a step."""
    entry = step.entry("u", lambda key: f"{key.upper()}_{number}")
    body = _PY_PROJECTION if isinstance(step, Projection) else _PY_SCALING
    return body.format(d=step.n_in, k=step.n_out, entry=entry)


_PY_SCALING = """
    u = [{entry} for j in range({k})]"""

_PY_PROJECTION = """
    u = [sum({entry} for j in range({d})) for c in range({k})]"""

_FEATURES = '''

def features(x):
    """What the kernel sees of one row."""
    if len(x) != {n}:
        raise ValueError("x has %d features; the model takes {n}" % len(x))
    u = x{steps}
    return u


def kernel(u, z, w):
    """k(u, z)."""
    g = FEATURE
    s = w * sum({term} for j in range(len(g)))
    return {value}

'''

_PY_NOVELTY = '''

def times(v, triangle):
    """A row times an upper triangle, which is given column by column."""
    found, start = [], 0
    for j in range(len(v)):
        found.append(sum(a * b for a, b in zip(v, triangle[start:start + j + 1])))
        start += j + 1
    return found


def novelty(x):
    """Above zero, less is known of the row than is usual."""
    u = features(x)
    own = {own}
    phi = times([kernel(u, z, {width!r}) for z in KNOWN_CENTERS], KNOWN_INVERSE)
    phi = [0.0 if v != v else min(max(v, -{huge!r}), {huge!r}) for v in phi]
    inside = sum(v * v for v in phi)
    phi = [v - mean for v, mean in zip(phi, KNOWN_MEAN)]
    rest = max(own - inside, 0.0)
    free = sum(v * v for v in times(phi, KNOWN_HALF)) + rest / {alpha!r}
    explained = 1.0 - free * {alpha!r} / max(sum(v * v for v in phi) + rest, {typical!r})
    base = max(own, {floor!r})
    known = min((base - own + inside) / base, 1.0) * max(explained, 0.0)
    return {usual!r} - log(max(known / max(free + {constant!r}, {least!r}), {tiny!r}))

'''

_PY_OUTPUTS = '''

def outputs(x):
    """Outputs at one row."""
    u = features(x)
    f = list(INTERCEPT)
    for w, z, coef in zip(WIDTH, CENTERS, COEF):
        k = kernel(u, z, w)
        for c, value in enumerate(coef):
            f[c] += value * k{end}
    return f

'''

_PY_BENT = '''

def bent(x):
    """log log(1 + exp(x))."""
    return x if x < -40.0 else log(max(x, 0.0) + log1p(exp(-fabs(x))))

'''

_PY_CURVE = '''

def curve(c, r):
    """The increasing curve of a class."""
    i, last = START[c], START[c + 1] - 1
    if r <= KNOTS[i]:
        return VALUES[i]
    if r >= KNOTS[last]:
        return VALUES[last]
    while r >= KNOTS[i + 1]:
        i += 1
    return VALUES[i] + (VALUES[i + 1] - VALUES[i]) / (KNOTS[i + 1] - KNOTS[i]) * (r - KNOTS[i])

'''

_PY_BENDING = """
    first = (1.0 - sum(f)) / (len(f) + 1)
    r = [bent((value + first) / {bend!r}) - bent(first / {bend!r}) for value in f]"""

_PY_MAP = """
    f = [b + sum(s * a[c] for s, a in zip(r, SLOPE)) for c, b in enumerate(OFFSET)]"""

_PY_CURVATURE = """
    squares = [sum(a * sum(w * b for w, b in zip(row, r)) for a, row in zip(r, A)) for A in CURVATURE]
    f = [value + square for value, square in zip(f, squares)]"""

_PY_CURVES = """
    r, f = [0.0, *r], [0.0, *f]
    steps = [curve(c, r[c] - max(r[:c] + r[c + 1:])) for c in range(len(r))]
    total = sum(steps)
    steps = [step / total if total > 0.0 else 1.0 / len(r) for step in steps]
    p = [exp(value - max(f)) for value in f]
    p = [{smooth!r} * value / sum(p) + (1.0 - {smooth!r}) * step for value, step in zip(p, steps)]
    p = [log(max(value, {tiny!r})) for value in p]
    f = [value - p[0] - odds for value, odds in zip(p[1:], ODDS)]"""

_PY_LIMIT = """
    spread, limit = max(0.0, *f) - min(0.0, *f), {limit!r}
    if spread > limit:
        share *= (limit + log1p(spread - limit)) / spread"""

_PY_TRUST = """
    share *= max(exp(-max(novelty(x), 0.0)), {least!r})"""

_PY_SHARE = """
    f = [base + share * value for base, value in zip(BASE, f)]"""

_PY_RANKS = """
    f.sort()
    f = [f[rank] for rank in RANKS]"""

_PY_MINUS_OWN = """
    f[0] -= kernel(u, u, {width!r})"""

_PY_CLASSES = '''

def probabilities(x):
    """Probabilities of the classes at one row."""
    f = [0.0, *outputs(x)]
    top = max(f)
    p = [exp(value - top) for value in f]
    return [value / sum(p) for value in p]


def predict(x):
    """The class of largest probability at one row."""
    f = [0.0, *outputs(x)]
    return CLASSES[f.index(max(f))]
'''

_PY_DETECTS = '''

def predict(x):
    """-1 for a novel row, 1 for others."""
    return -1 if outputs(x)[0] < 0.0 else 1
'''
