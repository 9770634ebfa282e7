"""A formula as a C header."""

from typing import Any

from numpy.typing import NDArray

from mercer.export._formula import Formula, formula_of
from mercer.export._literals import c_labels, c_name
from mercer.export._steps import Step
from mercer.export._text import functions


def to_c(model: Any, *, name: str = "model", moderated: bool = True) -> str:
    r"""A C header that computes what a fitted model answers: to 1e-9, unless coefficients reach 1e5.

    The header is C99 and C++11, in double precision, and allocates nothing. It defines

    * ``void name_outputs(const double *x, double *f)``: the q predictions of a regressor at the row x, sorted if
      they are quantiles; the scores of ``KernelPCA``; the ``decision_function`` of a ``KernelNoveltyDetector``; or
      the log-odds of all classes but the first against the first;
    * for classifiers ``void name_probabilities(const double *x, double *p)``: the probabilities of all classes;
      ``int name_predict(const double *x)``: the number of the most probable class; and ``name_label(int number)``:
      its label, a UTF-8 string, ``long long`` or ``double``;
    * for classifiers with ``novelty``, ``double name_novelty(const double *x)``: above zero, less is known of the
      row than is usual, and probabilities tend to the shares of the classes;
    * for a ``KernelNoveltyDetector`` ``int name_predict(const double *x)``: -1 for novel rows, 1 for others.

    A row costs O(m d) for m centers, and with ``novelty`` O(r d + r²) more for r <= 200 training rows.

    Only numbers, ``name`` and escaped labels become source text. x must contain the features on which the model
    was fitted, as finite numbers in the same order: nothing is checked at run time. A model that was fitted to
    float32 rows answers in float32, the source in double precision.

    Parameters
    ----------
    model : fitted model of mercer, or Pipeline
        Any classifier or regressor but ``PairwiseClassifier`` and ``LPBoostClassifier``, ``KernelPCA``,
        ``OrientedKernelPCA`` or ``KernelNoveltyDetector``, with an RBF, Laplacian, Matern (nu = 1/2, 3/2, 5/2,
        inf), Wendland, polynomial or linear kernel, also of normal scores. The steps of a pipeline before it may
        be StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, IncrementalPCA, TruncatedSVD, selections
        of features, and pipelines and ColumnTransformers of them: x is then a row as passed to the pipeline.
    name : str
        Prefix of all names in the header, a C identifier.
    moderated : bool, default=True
        Whether probabilities depend on what is known of a row, as those of the model do. False: as if as much as
        usual were known of every row; the source has no ``novelty`` and up to 45,000 numbers less.

    Raises
    ------
    NotFittedError
        If the model or a step is not fitted.
    ValueError, TypeError, KernelError
        If a model, a step, a kernel, a label (dates, objects, null characters) or ``name`` cannot be exported; the
        message suggests what to do instead.

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
    name, f = c_name(name), formula_of(model, moderated=moderated)
    m, q = f.coef.shape
    words = {"name": name, "steps": _steps(f, name)}
    if f.classes is not None:
        words["kind"], words["labels"] = c_labels(f.classes)
    parts = [
        f"/* {m} centers, {f.n_features} features, {q} outputs. */",
        f"#ifndef MERCER_{name}_H\n#define MERCER_{name}_H\n\n#include <math.h>\n",
        *(_table(f"{name}_{key}", values) for key, values in f.tables().items()),
        *functions(f, _C, words),
        "#endif",
    ]
    return "\n".join(parts) + "\n"


def _steps(f: Formula, name: str) -> str:
    """Statements that compute the array u of features after all steps."""
    steps = "".join(_step(step, number, name) for number, step in enumerate(f.steps, start=1))
    return f"{steps}\n    const double *u = {f'u{len(f.steps)}' if f.steps else 'x'};"


def _step(step: Step, number: int, name: str) -> str:
    """Statements that compute the array u1, u2, ... after a step."""
    u = f"u{number - 1}" if number > 1 else "x"
    entry = step.entry(u, lambda key: f"{name}_{key}_{number}")
    names = {key: f"{name}_{key}_{number}" for key in step.tables()}
    body = _C[type(step).__name__.lower()]
    return body.format(number=number, d=step.n_in, k=step.n_out, entry=entry, u=u, **names)


def _table(name: str, values: NDArray[Any]) -> str:
    kind = "int" if values.dtype.kind == "i" else "double"
    shape = "".join(f"[{size}]" for size in values.shape)
    return f"static const {kind} {name}{shape} = {_braces(values.tolist())};"


def _braces(values: Any) -> str:
    """Nested C initializers, every number with all its digits."""
    return "{" + ", ".join(map(_braces, values)) + "}" if isinstance(values, list) else repr(values)


_C = {
    "scaling": """
    double u{number}[{k}];
    for (int j = 0; j < {k}; j++) u{number}[j] = {entry};""",
    "projection": """
    double u{number}[{k}];
    for (int c = 0; c < {k}; c++) {{
        u{number}[c] = 0.0;
        for (int j = 0; j < {d}; j++) u{number}[c] += {entry};
    }}""",
    "interpolation": """
    double u{number}[{k}];
    for (int j = 0; j < {k}; j++) {{
        int i = {start}[j];
        const int last = {start}[j + 1] - 1;
        while (i < last && {u}[j] >= {knots}[i + 1]) i++;
        u{number}[j] = i == last || {u}[j] <= {knots}[i] ? {scores}[i] : {entry};
    }}""",
    "kernel": """
static inline double {name}_kernel(const double *u, const double *z, double w) {{
    const double *g = {name}_feature;
    double s = 0.0;
    for (int j = 0; j < {d}; j++) s += {f.kernel.term};
    s *= w;
    return {f.kernel.value};
}}
""",
    "own": "fmin({name}_kernel(u, u, {width!r}), {most!r})",
    "novelty": """
/* Above zero, less is known of the row than is usual. */
static inline double {name}_novelty(const double *x) {{{steps}
    double k[{r}], phi[{r}], inside = 0.0, prior = 0.0, leverage = 0.0;
    const double own = {own}, base = fmax(own, {v.floor!r});
    for (int i = 0; i < {r}; i++) k[i] = {name}_kernel(u, {name}_known_centers[i], {width!r});
    const double *a = {name}_known_inverse, *b = {name}_known_half;
    for (int j = 0; j < {r}; j++) {{
        double v = 0.0;
        for (int i = 0; i <= j; i++) v += k[i] * *a++;
        phi[j] = v != v ? 0.0 : fmin(fmax(v, -{huge!r}), {huge!r});
        inside += phi[j] * phi[j];
    }}
    for (int j = 0; j < {r}; j++) {{
        phi[j] -= {name}_known_mean[j];
        prior += phi[j] * phi[j];
    }}
    for (int j = 0; j < {r}; j++) {{
        double v = 0.0;
        for (int i = 0; i <= j; i++) v += phi[i] * *b++;
        leverage += v * v;
    }}
    const double rest = fmax(own - inside, 0.0), free = leverage + rest / {v.alpha!r};
    const double explained = 1.0 - free * {v.alpha!r} / fmax(prior + rest, {v.typical!r});
    const double known = fmin((base - own + inside) / base, 1.0) * fmax(explained, 0.0);
    return {v.usual!r} - log(fmax(known / fmax(free + {v.constant!r}, {least!r}), {tiny!r}));
}}
""",
    "bent": """
static inline double {name}_bent(double x) {{
    return x < -40.0 ? x : log((x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x))));
}}
""",
    "curve": """
static inline double {name}_curve(int c, double r) {{
    const double *t = {name}_knots, *v = {name}_values;
    int i = {name}_start[c];
    const int last = {name}_start[c + 1] - 1;
    if (r <= t[i]) return v[i];
    if (r >= t[last]) return v[last];
    while (r >= t[i + 1]) i++;
    return v[i] + (v[i + 1] - v[i]) / (t[i + 1] - t[i]) * (r - t[i]);
}}
""",
    "outputs": """
static inline void {name}_outputs(const double *x, double *f) {{{steps}
    for (int c = 0; c < {q}; c++) f[c] = {name}_intercept[c];
    for (int i = 0; i < {m}; i++) {{
        const double k = {name}_kernel(u, {name}_centers[i], {name}_width[i]);
        for (int c = 0; c < {q}; c++) f[c] += {name}_coef[i][c] * k;
    }}{end}
}}
""",
    "scores": """
    double r[{q}];
    for (int c = 0; c < {q}; c++) r[c] = f[c];""",
    "bending": """
    double r[{q}], first = 1.0;
    for (int c = 0; c < {q}; c++) first -= f[c];
    first /= {k}.0;
    const double s0 = {name}_bent(first / {e.bend!r});
    for (int c = 0; c < {q}; c++) r[c] = {name}_bent((f[c] + first) / {e.bend!r}) - s0;""",
    "map": """
    for (int c = 0; c < {q}; c++) {{
        f[c] = {name}_offset[c];
        for (int j = 0; j < {q}; j++) f[c] += r[j] * {name}_slope[j][c];
    }}""",
    "curvature": """
    for (int c = 0; c < {q}; c++)
        for (int i = 0; i < {q}; i++)
            for (int j = 0; j < {q}; j++) f[c] += r[i] * {name}_curvature[c][i][j] * r[j];""",
    "curves": """
    double p[{k}], steps[{k}], most = 0.0, sum = 0.0, total = 0.0;
    for (int c = 0; c < {q}; c++) if (f[c] > most) most = f[c];
    for (int c = 0; c < {k}; c++) {{
        double others = -INFINITY;
        for (int j = 0; j < {k}; j++) if (j != c) others = fmax(others, j ? r[j - 1] : 0.0);
        steps[c] = {name}_curve(c, (c ? r[c - 1] : 0.0) - others);
        p[c] = exp((c ? f[c - 1] : 0.0) - most);
        sum += p[c];
        total += steps[c];
    }}
    for (int c = 0; c < {k}; c++) {{
        const double step = total > 0.0 ? steps[c] / total : 1.0 / {k}.0;
        p[c] = log(fmax({e.curves.smooth!r} * p[c] / sum + (1.0 - {e.curves.smooth!r}) * step, {tiny!r}));
    }}
    for (int c = 0; c < {q}; c++) f[c] = p[c + 1] - p[0] - {name}_odds[c];""",
    "counted": "\n    double share = {e.counted!r};",
    "limit": """
    double low = 0.0, high = 0.0;
    for (int c = 0; c < {q}; c++) {{
        if (f[c] < low) low = f[c];
        if (f[c] > high) high = f[c];
    }}
    const double spread = high - low, limit = {e.limit!r};
    if (spread > limit) share *= (limit + log1p(spread - limit)) / spread;""",
    "trust": """
    share *= fmax(exp(-fmax({name}_novelty(x), 0.0)), {least_trust!r});""",
    "share": """
    for (int c = 0; c < {q}; c++) f[c] = {name}_base[c] + share * f[c];""",
    "ranks": """
    double sorted[{q}];
    for (int c = 0; c < {q}; c++) {{
        int i = c;
        for (; i > 0 && sorted[i - 1] > f[c]; i--) sorted[i] = sorted[i - 1];
        sorted[i] = f[c];
    }}
    for (int c = 0; c < {q}; c++) f[c] = sorted[{name}_ranks[c]];""",
    "minus_own": """
    f[0] -= {name}_kernel(u, u, {width!r});""",
    "classes": """
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


/* The label of the class with this number. */
static inline {kind}{name}_label(int number) {{
    static {kind}const labels[{k}] = {labels};
    return labels[number];
}}
""",
    "detects": """
/* -1 for novel rows, 1 for others. */
static inline int {name}_predict(const double *x) {{
    double f[1];
    {name}_outputs(x, f);
    return f[0] < 0.0 ? -1 : 1;
}}
""",
}
