"""A formula as a Python module."""

from typing import Any

from mercer.export._formula import formula_of
from mercer.export._literals import python_labels
from mercer.export._steps import Step
from mercer.export._text import functions


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
    words = {
        "steps": "".join(_step(step, number) for number, step in enumerate(f.steps, start=1)),
        # All functions of math.h but this one have the same name in Python.
        "value": f.kernel.value.replace("fmin(", "min("),
        "labels": python_labels(f.classes or []),
    }
    lines = ['"""A kernel model."""\n', "from math import exp, fabs, log, log1p, sqrt\n"]
    lines += [f"{key.upper()} = {values.tolist()!r}" for key, values in f.tables().items()]
    return "\n".join([*lines, *functions(f, _PYTHON, words)])


def _step(step: Step, number: int) -> str:
    """A statement that computes the list u after a step."""
    entry = step.entry("u", lambda key: f"{key.upper()}_{number}")
    names = {key: f"{key.upper()}_{number}" for key in step.tables()}
    body = _PYTHON[type(step).__name__.lower()]
    return body.format(d=step.n_in, k=step.n_out, entry=entry, **names)


_PYTHON = {
    "scaling": """
    u = [{entry} for j in range({k})]""",
    "projection": """
    u = [sum({entry} for j in range({d})) for c in range({k})]""",
    "interpolation": """
    v = []
    for j in range({k}):
        i, last = {start}[j], {start}[j + 1] - 1
        while i < last and u[j] >= {knots}[i + 1]:
            i += 1
        v.append({scores}[i] if i == last or u[j] <= {knots}[i] else {entry})
    u = v""",
    "kernel": '''

def features(x):
    """What the kernel sees of one row."""
    if len(x) != {f.n_features}:
        raise ValueError("x has %d features; the model takes {f.n_features}" % len(x))
    u = x{steps}
    return u


def kernel(u, z, w):
    """k(u, z)."""
    g = FEATURE
    s = w * sum({f.kernel.term} for j in range(len(g)))
    return {value}

''',
    "own": "min(kernel(u, u, {width!r}), {most!r})",
    "novelty": '''

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
    free = sum(v * v for v in times(phi, KNOWN_HALF)) + rest / {v.alpha!r}
    explained = 1.0 - free * {v.alpha!r} / max(sum(v * v for v in phi) + rest, {v.typical!r})
    base = max(own, {v.floor!r})
    known = min((base - own + inside) / base, 1.0) * max(explained, 0.0)
    return {v.usual!r} - log(max(known / max(free + {v.constant!r}, {least!r}), {tiny!r}))

''',
    "bent": '''

def bent(x):
    """log log(1 + exp(x))."""
    return x if x < -40.0 else log(max(x, 0.0) + log1p(exp(-fabs(x))))

''',
    "curve": '''

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

''',
    "outputs": '''

def outputs(x):
    """Outputs at one row."""
    u = features(x)
    f = list(INTERCEPT)
    for w, z, coef in zip(WIDTH, CENTERS, COEF):
        k = kernel(u, z, w)
        for c, value in enumerate(coef):
            f[c] += value * k{end}
    return f

''',
    "scores": "\n    r = f",
    "bending": """
    first = (1.0 - sum(f)) / (len(f) + 1)
    r = [bent((value + first) / {e.bend!r}) - bent(first / {e.bend!r}) for value in f]""",
    "map": """
    f = [b + sum(s * a[c] for s, a in zip(r, SLOPE)) for c, b in enumerate(OFFSET)]""",
    "curvature": """
    squares = [sum(a * sum(w * b for w, b in zip(row, r)) for a, row in zip(r, A)) for A in CURVATURE]
    f = [value + square for value, square in zip(f, squares)]""",
    "curves": """
    r, f = [0.0, *r], [0.0, *f]
    steps = [curve(c, r[c] - max(r[:c] + r[c + 1:])) for c in range(len(r))]
    total = sum(steps)
    steps = [step / total if total > 0.0 else 1.0 / len(r) for step in steps]
    p = [exp(value - max(f)) for value in f]
    p = [{e.curves.smooth!r} * value / sum(p) + (1.0 - {e.curves.smooth!r}) * step \
for value, step in zip(p, steps)]
    p = [log(max(value, {tiny!r})) for value in p]
    f = [value - p[0] - odds for value, odds in zip(p[1:], ODDS)]""",
    "counted": "\n    share = {e.counted!r}",
    "limit": """
    spread, limit = max(0.0, *f) - min(0.0, *f), {e.limit!r}
    if spread > limit:
        share *= (limit + log1p(spread - limit)) / spread""",
    "trust": """
    share *= max(exp(-max(novelty(x), 0.0)), {least_trust!r})""",
    "share": """
    f = [base + share * value for base, value in zip(BASE, f)]""",
    "ranks": """
    f.sort()
    f = [f[rank] for rank in RANKS]""",
    "minus_own": """
    f[0] -= kernel(u, u, {width!r})""",
    "classes": '''CLASSES = {labels}


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
''',
    "detects": '''

def predict(x):
    """-1 for a novel row, 1 for others."""
    return -1 if outputs(x)[0] < 0.0 else 1
''',
}
