"""A fitted model as a formula: affine steps, a sum of kernel values, and for classifiers log-odds."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.errors import KernelError
from mercer.export.literals import Label, finite, plain_labels
from mercer.export.steps import Step, affine_steps
from mercer.kernels import RBF, Kernel, Laplacian, Linear, Matern, Polynomial, Wendland
from mercer.models.base import KernelModel
from mercer.models.state import snapshot
from mercer.rows.table import dense
from mercer.scores.rule import scores_in
from mercer.types import Array

# The term added to s, and the kernel value as a function of s, in the common syntax of C and Python.
SQUARE, ABSOLUTE, PRODUCT = (
    "g[j] * (u[j] - z[j]) * (u[j] - z[j])",
    "g[j] * fabs(u[j] - z[j])",
    "g[j] * u[j] * z[j]",
)
MATERN = {
    0.5: "exp(-sqrt(2.0 * s))",
    # Beyond 1e6 the exponential is zero, and an infinite s would not be.
    1.5: "(1.0 + sqrt(6.0 * fmin(s, 1e6))) * exp(-sqrt(6.0 * fmin(s, 1e6)))",
    2.5: "(1.0 + sqrt(10.0 * fmin(s, 1e6)) + 10.0 * fmin(s, 1e6) / 3.0) * exp(-sqrt(10.0 * fmin(s, 1e6)))",
    np.inf: "exp(-s)",
}


@dataclass(frozen=True)
class Moderation:
    """From evidence e (q,) of classes against the first one to log-odds: base + counted e, with e shortened if its
    spread is beyond the limit.
    """

    base: Array
    limit: float
    counted: float


@dataclass(frozen=True)
class Bending:
    """From scores (q,) of classes relative to the first one to log-odds: scores that sum to one are divided by
    ``bend`` and become log log(1 + exp(.)); their differences times ``slope`` (q, q) are added to ``offset``.
    """

    bend: float
    slope: Array
    offset: Array


@dataclass(frozen=True)
class Formula:
    """The outputs a(u) (q,) of a model: sum_i coef_i value(w_i sum_j term_j) + intercept; ``classes`` or None.

    u are the features x after the steps. With ``bending`` the outputs are scores that become log-odds by it, with
    ``moderation`` evidence that becomes log-odds by it, after the bending.
    """

    steps: list[Step]
    term: str
    value: str
    feature: Array
    width: Array
    centers: Array
    coef: Array
    intercept: Array
    classes: list[Label] | None
    bending: Bending | None = None
    moderation: Moderation | None = None

    @property
    def n_features(self) -> int:
        """Length of x."""
        return self.steps[0].n_in if self.steps else self.centers.shape[1]

    def tables(self) -> dict[str, NDArray[Any]]:
        """Every number by the name of its table, all of them finite."""
        tables: dict[str, NDArray[Any]] = {}
        for number, step in enumerate(self.steps, start=1):
            tables |= {f"{name}_{number}": values for name, values in step.tables().items()}
        tables |= {name: getattr(self, name) for name in ("feature", "width", "centers", "coef", "intercept")}
        if self.bending is not None:
            tables |= {"slope": self.bending.slope, "offset": self.bending.offset}
        if self.moderation is not None:
            tables["base"] = self.moderation.base
        return {name: finite(name, values) for name, values in tables.items()}


def formula_of(model: Any) -> Formula:
    """The formula of a fitted model; for classifiers its outputs are the log-odds against the first class."""
    if type(model) is Pipeline:
        *before, (_, last) = model.steps
        inner = formula_of(last)
        return replace(inner, steps=affine_steps(before) + inner.steps)
    if not isinstance(model, KernelModel):
        raise TypeError(
            f"{type(model).__name__} cannot be exported; pass a fitted kernel model of mercer, or a scikit-learn "
            "Pipeline that ends with one (for a search, its best_estimator_; for a PairwiseClassifier, one of "
            "its estimators_)"
        )
    check_is_fitted(model)
    model = snapshot(model)
    expansion = _expansion(model)
    if not is_classifier(model):
        return expansion
    posterior = model.rule_.posterior
    if posterior.curves or posterior.curvature is not None:
        raise ValueError(
            'a model with isotonic or quadratic probabilities cannot be exported; fit with calibration="logistic"'
        )
    moderation = _moderation(posterior)
    offset = posterior.offset + (posterior.shift if moderation is None else -posterior.odds)
    scores = replace(
        _relative(expansion, model.rule_), classes=plain_labels(model.classes_), moderation=moderation
    )
    if posterior.bend < np.inf:
        return replace(scores, bending=Bending(posterior.bend, posterior.slope, offset))
    return replace(
        scores, coef=scores.coef @ posterior.slope, intercept=scores.intercept @ posterior.slope + offset
    )


def _expansion(model: Any) -> Formula:
    """The outputs of the model, before they become log-odds."""
    coef = np.asarray(model.dual_coef_, dtype=np.float64)
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    kernels = getattr(model, "kernels_", (model.kernel_,))
    term, value, feature, widths = _kernel_formula(kernels)
    number = getattr(model, "center_kernel_", np.zeros(len(coef), dtype=np.intp))
    centers = dense(model.X_fit_).astype(np.float64)
    coef = coef.reshape(len(coef), len(intercept))
    origin = getattr(kernels[0], "origin", None)
    if origin is not None:
        # (x - o)'(z - o) = x'(z - o) - o'(z - o), of which the second part is a constant.
        centers = centers - origin
        intercept = intercept - (centers @ origin) @ coef
    return Formula(
        steps=[],
        term=term,
        value=value,
        feature=np.broadcast_to(feature, centers.shape[1:]),
        width=_some(widths[number]),
        centers=_some(centers),
        coef=_some(coef),
        intercept=intercept,
        classes=None,
    )


def _some(rows: Array) -> Array:
    """A model without centers gets one with coefficient zero: C has no empty tables."""
    return rows if len(rows) > 0 else np.zeros((1, *rows.shape[1:]))


def _relative(expansion: Formula, rule: Any) -> Formula:
    """The scores of classes relative to the first one, an affine function of the outputs."""
    q = expansion.coef.shape[1]
    R = scores_in(rule.reliable, np.vstack([np.zeros(q), np.eye(q)]))
    A = R[1:] - R[0]
    return replace(expansion, coef=expansion.coef @ A, intercept=expansion.intercept @ A + R[0])


def _moderation(posterior: Any) -> Moderation | None:
    """How evidence becomes log-odds; None: unchanged."""
    if posterior.limit == np.inf and posterior.counted == 1.0:
        return None
    base = np.broadcast_to(posterior.odds + posterior.shift, posterior.offset.shape)
    return Moderation(np.array(base), posterior.limit, posterior.counted)


def _kernel_formula(kernels: tuple[Kernel, ...]) -> tuple[str, str, Array, Array]:
    """Term, value, factor of each feature (d,) or (1,), factor of each kernel (g,)."""
    term, value = _expressions(kernels[0])
    widths = [1.0 if kernel.gamma is None else kernel.gamma for kernel in kernels]
    gammas = [np.atleast_1d(np.asarray(gamma, dtype=np.float64)) for gamma in widths]
    largest = np.array([gamma.max() for gamma in gammas])
    scale = np.where(largest > 0, largest, 1.0)
    return term, value, gammas[0] / scale[0], scale


def _expressions(kernel: Kernel) -> tuple[str, str]:
    """Term and value; s is the sum of the terms times the width. Subclasses may compute something else."""
    if type(kernel) is RBF:
        return SQUARE, "exp(-s)"
    if type(kernel) is Laplacian:
        return ABSOLUTE, "exp(-s)"
    if type(kernel) is Matern and kernel.nu in MATERN:
        return SQUARE, MATERN[kernel.nu]
    if type(kernel) is Wendland:
        return SQUARE, kernel.formula("fmin(sqrt(s), 1.0)")
    if type(kernel) is Polynomial:
        coef0 = finite("coef0", np.array(kernel.coef0, dtype=np.float64)).item()
        return PRODUCT, _power(f"(s + {coef0!r})", int(kernel.degree))
    if type(kernel) is Linear:
        return PRODUCT, "s"
    raise KernelError(
        f"{kernel!r} cannot be exported; use RBF, Laplacian, Matern (nu 0.5, 1.5, 2.5 or inf), Wendland, "
        "Polynomial or Linear"
    )


def _power(base: str, exponent: int) -> str:
    """A power, as a product if it is short."""
    return " * ".join([base] * exponent) if exponent <= 8 else f"pow({base}, {exponent}.0)"
