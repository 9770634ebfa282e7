"""A formula as a Python module."""

from typing import Any

from mercer.export.formula import Formula, formula_of
from mercer.export.literals import python_labels
from mercer.export.steps import Projection, Step


def to_python(model: Any) -> str:
    """A Python module with the model: ``outputs(x)``, for classifiers ``probabilities(x)`` and ``predict(x)``.

    x is a sequence of finite numbers, a row as passed to the model or pipeline; only the standard library
    is imported. ``predict`` returns the label as a plain Python value. Supports the models, steps and labels of
    :func:`to_c`, and also integers of any size, null characters and surrogate code points in labels.

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
    f = formula_of(model)
    lines = ['"""A kernel model."""\n', "from math import exp, fabs, log, log1p, sqrt\n"]
    lines += [f"{key.upper()} = {values.tolist()!r}" for key, values in f.tables().items()]
    lines.append(_outputs(f))
    if f.classes is not None:
        lines += [f"CLASSES = {python_labels(f.classes)}", _CLASSES]
    return "\n".join(lines)


def _outputs(f: Formula) -> str:
    steps = "".join(_step(step, number) for number, step in enumerate(f.steps, start=1))
    # All functions of math.h but this one have the same name in Python.
    value = f.value.replace("fmin(", "min(")
    bending, how = f.bending, f.moderation
    first = "" if bending is None else _BENT
    end = "" if bending is None else _BENDING.format(bend=bending.bend)
    end += "" if how is None else _MODERATION.format(limit=how.limit, counted=how.counted)
    return first + _OUTPUTS.format(n=f.n_features, steps=steps, term=f.term, value=value, end=end)


def _step(step: Step, number: int) -> str:
    """A statement that computes the list u after a step."""
    entry = step.entry("u", lambda key: f"{key.upper()}_{number}")
    body = _PROJECTION if isinstance(step, Projection) else _SCALING
    return body.format(d=step.n_in, k=step.n_out, entry=entry)


_SCALING = """
    u = [{entry} for j in range({k})]"""

_PROJECTION = """
    u = [sum({entry} for j in range({d})) for c in range({k})]"""

_OUTPUTS = '''

def outputs(x):
    """Outputs at one row."""
    if len(x) != {n}:
        raise ValueError("x has %d features; the model takes {n}" % len(x))
    u = x{steps}
    f, g = list(INTERCEPT), FEATURE
    for w, z, coef in zip(WIDTH, CENTERS, COEF):
        s = w * sum({term} for j in range(len(g)))
        k = {value}
        for c, value in enumerate(coef):
            f[c] += value * k{end}
    return f

'''

_BENT = '''

def bent(x):
    """log log(1 + exp(x))."""
    return x if x < -40.0 else log(max(x, 0.0) + log1p(exp(-fabs(x))))

'''

_BENDING = """
    first = (1.0 - sum(f)) / (len(f) + 1)
    r = [bent((value + first) / {bend!r}) - bent(first / {bend!r}) for value in f]
    f = [b + sum(s * a[c] for s, a in zip(r, SLOPE)) for c, b in enumerate(OFFSET)]"""

_MODERATION = """
    spread, limit = max(0.0, *f) - min(0.0, *f), {limit!r}
    share = {counted!r} * ((limit + log1p(spread - limit)) / spread if spread > limit else 1.0)
    f = [base + share * value for base, value in zip(BASE, f)]"""

_CLASSES = '''

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
