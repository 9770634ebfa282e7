"""Fitted models as source code: a C header or a Python module that needs nothing but itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import KernelError
from mercer.kernels import RBF, Kernel, Laplacian, Linear, Matern, Polynomial, Wendland

Array = NDArray[np.float64]

# What a term adds to s, and the kernel value of s; both in the syntax that C and Python share.
SQUARE, ABSOLUTE, PRODUCT = (
    "g[j] * (x[j] - z[j]) * (x[j] - z[j])",
    "g[j] * fabs(x[j] - z[j])",
    "g[j] * x[j] * z[j]",
)


@dataclass(frozen=True)
class Formula:
    """The outputs a(x) (q,) of a model: sum_i coef_i value(w_i sum_j term_j) + intercept; ``classes`` or None."""

    term: str
    value: str
    feature: Array
    width: Array
    centers: Array
    coef: Array
    intercept: Array
    classes: list[Any] | None


def to_c(model: Any, *, name: str = "model") -> str:
    r"""A C header with ``name_outputs(x, f)``, and for classifiers ``name_probabilities`` and ``name_predict``.

    For RBF, Laplacian, Matern (nu = 1/2, 3/2, 5/2), Wendland, polynomial and linear kernels on dense rows; any
    number of centers, but of use for few. C99, double precision, no allocation, O(m d) for a row.

    Examples
    --------
    >>> from mercer import SparseKernelRegressor
    >>> from mercer.datasets import make_sinc
    >>> from mercer.export import to_c
    >>> model = SparseKernelRegressor(max_centers=5).fit(*make_sinc(50, random_state=0))
    >>> to_c(model, name="sinc").splitlines()[0]
    '/* 5 centers, 1 features, 1 outputs. */'
    """
    f = formula_of(model)
    m, d, q = len(f.coef), f.centers.shape[1], f.coef.shape[1]
    parts = [
        f"/* {m} centers, {d} features, {q} outputs. */",
        "#include <math.h>\n",
        *(
            f"static const double {name}_{key}{_shape(value)} = {_braces(value)};"
            for key, value in _tables(f).items()
        ),
        _C_OUTPUTS.format(name=name, m=m, d=d, q=q, term=f.term, value=f.value),
    ]
    if f.classes is not None:
        parts += [f"/* Classes: {', '.join(map(repr, f.classes))}. */", _C_CLASSES.format(name=name, q=q, k=q + 1)]
    return "\n".join(parts) + "\n"


def to_python(model: Any) -> str:
    """A Python module with the model: ``outputs(x)``, for classifiers ``probabilities(x)`` and ``predict(x)``.

    x is a sequence of numbers; nothing but the standard library is imported. For the kernels of :func:`to_c`.
    """
    f = formula_of(model)
    lines = ['"""A kernel model."""\n', "from math import exp, fabs, sqrt\n"]
    lines += [f"{key.upper()} = {value.tolist()!r}" for key, value in _tables(f).items()]
    lines.append(_PY_OUTPUTS.format(term=f.term, value=f.value))
    if f.classes is not None:
        lines += [f"CLASSES = {f.classes!r}", _PY_CLASSES]
    return "\n".join(lines)


def formula_of(model: Any) -> Formula:
    """The formula of a fitted model; for classifiers its outputs are the log-odds against the first class."""
    kernels = getattr(model, "kernels_", (model.kernel_,))
    number = getattr(model, "center_kernel_", np.zeros(len(model.dual_coef_), dtype=np.intp))
    term, value, feature, widths = _kernel_formula(kernels)
    coef = np.asarray(model.dual_coef_, dtype=np.float64).reshape(len(model.dual_coef_), -1)
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    centers = np.asarray(model.X_fit_, dtype=np.float64)
    feature = np.broadcast_to(feature, centers.shape[1:]).copy()
    if not hasattr(model, "rule_"):
        return Formula(term, value, feature, widths[number], centers, coef, intercept, None)
    A, b = _logits(model.rule_, coef.shape[1])
    classes = model.classes_.tolist()
    return Formula(term, value, feature, widths[number], centers, coef @ A, intercept @ A + b, classes)


def _logits(rule: Any, q: int) -> tuple[Array, Array]:
    """A (q, k - 1) and b (k - 1,) with logits F A + b of outputs F."""
    if rule.posterior.curves:
        raise ValueError(
            'isotonic probabilities are no formula; fit with calibration="logistic" to export a model'
        )
    log_p = rule.log_probabilities(np.vstack([np.zeros(q), np.eye(q)]))
    logits = log_p[:, 1:] - log_p[:, :1]
    return logits[1:] - logits[0], logits[0]


def _kernel_formula(kernels: tuple[Kernel, ...]) -> tuple[str, str, Array, Array]:
    """Term, value, factor of each feature (d,) or (1,), factor of each kernel (g,)."""
    gammas = [np.atleast_1d(np.asarray(getattr(kernel, "gamma", 1.0), dtype=np.float64)) for kernel in kernels]
    scale = np.array([gamma.max() for gamma in gammas])
    term, value = _expressions(kernels[0])
    return term, value, gammas[0] / scale[0], scale


def _expressions(kernel: Kernel) -> tuple[str, str]:
    """Term and value; s is the sum of the terms times the width."""
    if isinstance(kernel, RBF):
        return SQUARE, "exp(-s)"
    if isinstance(kernel, Laplacian):
        return ABSOLUTE, "exp(-s)"
    if isinstance(kernel, Matern) and kernel.nu in _MATERN:
        return SQUARE, _MATERN[kernel.nu]
    if isinstance(kernel, Wendland):
        return SQUARE, kernel.formula("sqrt(s)")
    if isinstance(kernel, Polynomial):
        return PRODUCT, "*".join([f"(s + {float(kernel.coef0)!r})"] * int(kernel.degree))
    if isinstance(kernel, Linear):
        return PRODUCT, "s"
    raise KernelError(
        f"{kernel!r} can not be exported; RBF, Laplacian, Matern (0.5, 1.5, 2.5), Wendland, Polynomial, Linear can"
    )


_MATERN = {
    0.5: "exp(-sqrt(2.0 * s))",
    1.5: "(1.0 + sqrt(6.0 * s)) * exp(-sqrt(6.0 * s))",
    2.5: "(1.0 + sqrt(10.0 * s) + 10.0 * s / 3.0) * exp(-sqrt(10.0 * s))",
}


def _tables(f: Formula) -> dict[str, Array]:
    return {
        "feature": f.feature,
        "width": f.width,
        "centers": f.centers,
        "coef": f.coef,
        "intercept": f.intercept,
    }


def _shape(values: Array) -> str:
    return "".join(f"[{size}]" for size in values.shape)


def _braces(values: Any) -> str:
    """Nested C initializers, every number with all its digits."""
    if isinstance(values, Iterable):
        return "{" + ", ".join(map(_braces, values)) + "}"
    return repr(float(values))


_C_OUTPUTS = """
static void {name}_outputs(const double *x, double *f) {{
    const double *g = {name}_feature;
    for (int c = 0; c < {q}; c++) f[c] = {name}_intercept[c];
    for (int i = 0; i < {m}; i++) {{
        const double *z = {name}_centers[i];
        double s = 0.0;
        for (int j = 0; j < {d}; j++) s += {term};
        s *= {name}_width[i];
        const double k = {value};
        for (int c = 0; c < {q}; c++) f[c] += {name}_coef[i][c] * k;
    }}
}}
"""

_C_CLASSES = """
static void {name}_probabilities(const double *x, double *p) {{
    double f[{q}], top = 0.0, sum;
    {name}_outputs(x, f);
    for (int c = 0; c < {q}; c++) if (f[c] > top) top = f[c];
    sum = p[0] = exp(-top);
    for (int c = 0; c < {q}; c++) sum += p[c + 1] = exp(f[c] - top);
    for (int c = 0; c < {k}; c++) p[c] /= sum;
}}

/* The number of the class. */
static int {name}_predict(const double *x) {{
    double f[{q}], top = 0.0;
    int best = 0;
    {name}_outputs(x, f);
    for (int c = 0; c < {q}; c++) if (f[c] > top) {{ top = f[c]; best = c + 1; }}
    return best;
}}
"""

_PY_OUTPUTS = '''

def outputs(x):
    """Outputs at one row."""
    f, g = list(INTERCEPT), FEATURE
    for w, z, coef in zip(WIDTH, CENTERS, COEF):
        s = w * sum({term} for j in range(len(g)))
        k = {value}
        for c, value in enumerate(coef):
            f[c] += value * k
    return f

'''

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
