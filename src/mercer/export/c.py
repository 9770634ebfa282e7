"""A formula as a C header."""

from typing import Any

from numpy.typing import NDArray

from mercer.export.formula import Formula, formula_of
from mercer.export.literals import Label, c_labels, c_name
from mercer.export.steps import Projection, Step


def to_c(model: Any, *, name: str = "model") -> str:
    r"""A C header with ``name_outputs(x, f)``, and for classifiers probabilities, classes and labels.

    The header is C99 and C++11, in double precision, allocates nothing and costs O(m d) per row. It defines

    * ``void name_outputs(const double *x, double *f)``: the q predictions of a regressor at the row x, or the
      log-odds of all classes against the first;
    * ``void name_probabilities(const double *x, double *p)``: the probabilities of all classes;
    * ``int name_predict(const double *x)``: the number of the most probable class;
    * ``name_label(int number)``: its label, a UTF-8 string, ``long long`` or ``double``.

    Only numbers, ``name`` and escaped labels become source text. x must contain the features on which the model
    was fitted, as finite numbers in the same order: nothing is checked at run time. Probabilities are those of
    rows of which as much is known as usual: the novelty of a row, which ``KernelFisherClassifier`` takes into
    account, is not exported.

    Parameters
    ----------
    model : fitted model of mercer, or Pipeline
        With an RBF, Laplacian, Matern (nu = 1/2, 3/2, 5/2, inf), Wendland, polynomial or linear kernel; any number
        of centers, although few are most useful. The steps of a pipeline before it may be StandardScaler,
        MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, IncrementalPCA, TruncatedSVD, selections of features, and
        pipelines and ColumnTransformers of them: x is then a row as passed to the pipeline.
    name : str
        Prefix of all names in the header, a C identifier.

    Raises
    ------
    NotFittedError
        If the model or a step is not fitted.
    ValueError, TypeError, KernelError
        If a step, a kernel, isotonic or quadratic probabilities, a label (dates, objects, null characters) or
        ``name`` cannot be exported; the message suggests what to do instead.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mercer import SparseKernelRegressor
    >>> from mercer.datasets import make_sinc
    >>> from mercer.export import to_c
    >>> model = make_pipeline(StandardScaler(), SparseKernelRegressor(max_centers=5))
    >>> to_c(model.fit(*make_sinc(50, random_state=0)), name="sinc").splitlines()[0]
    '/* 5 centers, 1 features, 1 outputs. */'
    """
    name, f = c_name(name), formula_of(model)
    m, q = f.coef.shape
    parts = [
        f"/* {m} centers, {f.n_features} features, {q} outputs. */",
        f"#ifndef MERCER_{name}_H\n#define MERCER_{name}_H\n\n#include <math.h>\n",
        *(_table(f"{name}_{key}", values) for key, values in f.tables().items()),
        _outputs(f, name),
    ]
    if f.classes is not None:
        parts += [_CLASSES.format(name=name, q=q, k=q + 1), _label(f.classes, name)]
    return "\n".join([*parts, "#endif"]) + "\n"


def _outputs(f: Formula, name: str) -> str:
    m, q = f.coef.shape
    steps = "".join(_step(step, number, name) for number, step in enumerate(f.steps, start=1))
    d, last = f.centers.shape[1], f"u{len(f.steps)}" if f.steps else "x"
    bending, how = f.bending, f.moderation
    first = "" if bending is None else _BENT.format(name=name)
    end = "" if bending is None else _BENDING.format(name=name, q=q, k=q + 1, bend=bending.bend)
    end += "" if how is None else _MODERATION.format(name=name, q=q, limit=how.limit, counted=how.counted)
    outputs = _OUTPUTS.format(
        name=name, steps=steps, last=last, m=m, d=d, q=q, term=f.term, value=f.value, end=end
    )
    return first + outputs


def _step(step: Step, number: int, name: str) -> str:
    """Statements that compute the array u1, u2, ... after a step."""
    u = f"u{number - 1}" if number > 1 else "x"
    entry = step.entry(u, lambda key: f"{name}_{key}_{number}")
    body = _PROJECTION if isinstance(step, Projection) else _SCALING
    return body.format(number=number, d=step.n_in, k=step.n_out, entry=entry)


def _table(name: str, values: NDArray[Any]) -> str:
    kind = "int" if values.dtype.kind == "i" else "double"
    shape = "".join(f"[{size}]" for size in values.shape)
    return f"static const {kind} {name}{shape} = {_braces(values.tolist())};"


def _braces(values: Any) -> str:
    """Nested C initializers, every number with all its digits."""
    return "{" + ", ".join(map(_braces, values)) + "}" if isinstance(values, list) else repr(values)


def _label(classes: list[Label], name: str) -> str:
    kind, labels = c_labels(classes)
    return _LABEL.format(name=name, kind=kind, k=len(classes), labels=labels)


_SCALING = """
    double u{number}[{k}];
    for (int j = 0; j < {k}; j++) u{number}[j] = {entry};"""

_PROJECTION = """
    double u{number}[{k}];
    for (int c = 0; c < {k}; c++) {{
        u{number}[c] = 0.0;
        for (int j = 0; j < {d}; j++) u{number}[c] += {entry};
    }}"""

_OUTPUTS = """
static inline void {name}_outputs(const double *x, double *f) {{{steps}
    const double *u = {last}, *g = {name}_feature;
    for (int c = 0; c < {q}; c++) f[c] = {name}_intercept[c];
    for (int i = 0; i < {m}; i++) {{
        const double *z = {name}_centers[i];
        double s = 0.0;
        for (int j = 0; j < {d}; j++) s += {term};
        s *= {name}_width[i];
        const double k = {value};
        for (int c = 0; c < {q}; c++) f[c] += {name}_coef[i][c] * k;
    }}{end}
}}
"""

_BENT = """
static inline double {name}_bent(double x) {{
    return x < -40.0 ? x : log((x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x))));
}}
"""

_BENDING = """
    double r[{q}], first = 1.0;
    for (int c = 0; c < {q}; c++) first -= f[c];
    first /= {k}.0;
    const double s0 = {name}_bent(first / {bend!r});
    for (int c = 0; c < {q}; c++) r[c] = {name}_bent((f[c] + first) / {bend!r}) - s0;
    for (int c = 0; c < {q}; c++) {{
        f[c] = {name}_offset[c];
        for (int j = 0; j < {q}; j++) f[c] += r[j] * {name}_slope[j][c];
    }}"""

_MODERATION = """
    double low = 0.0, high = 0.0;
    for (int c = 0; c < {q}; c++) {{
        if (f[c] < low) low = f[c];
        if (f[c] > high) high = f[c];
    }}
    const double spread = high - low, limit = {limit!r};
    const double share = {counted!r} * (spread > limit ? (limit + log1p(spread - limit)) / spread : 1.0);
    for (int c = 0; c < {q}; c++) f[c] = {name}_base[c] + share * f[c];"""

_CLASSES = """
static inline void {name}_probabilities(const double *x, double *p) {{
    double f[{q}], top = 0.0, sum;
    {name}_outputs(x, f);
    for (int c = 0; c < {q}; c++) if (f[c] > top) top = f[c];
    sum = p[0] = exp(-top);
    for (int c = 0; c < {q}; c++) sum += p[c + 1] = exp(f[c] - top);
    for (int c = 0; c < {k}; c++) p[c] /= sum;
}}

/* The number of the class. */
static inline int {name}_predict(const double *x) {{
    double f[{q}], top = 0.0;
    int best = 0;
    {name}_outputs(x, f);
    for (int c = 0; c < {q}; c++) if (f[c] > top) {{ top = f[c]; best = c + 1; }}
    return best;
}}
"""

_LABEL = """
/* The label of the class with this number. */
static inline {kind}{name}_label(int number) {{
    static {kind}const labels[{k}] = {labels};
    return labels[number];
}}
"""
