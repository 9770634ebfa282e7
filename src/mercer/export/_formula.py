"""A fitted model as a formula: affine steps, a sum of kernel values, and what becomes of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer._estimators import (
    KernelCCA,
    KernelFisherClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelNoveltyDetector,
    KernelPCA,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    OrientedKernelPCA,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer._estimators.fitted import with_state
from mercer._estimators.parameters import quantiles_of
from mercer._linalg.tolerance import SMALLEST_FLOAT
from mercer._scores.decision_rule import scores_in
from mercer._scores.probabilities.calibration import Posterior, StepCurve
from mercer._scores.targets import ascending
from mercer._scores.uncertainty.unexplained_variance import UnexplainedVariance
from mercer._types import Array, Indices
from mercer.export._kernels import KernelFormula, kernel_formula
from mercer.export._literals import Label, finite, plain_labels
from mercer.export._steps import Interpolation, Scaling, Step, affine_steps
from mercer.kernels import RankNormal
from mercer.rows._table import dense


@dataclass(frozen=True)
class Curves:
    """Increasing curves of several classes, one after the other: class c has the knots ``start[c]`` to
    ``start[c + 1] - 1`` and the values there. Smooth probabilities have the weight ``smooth``.
    """

    knots: Array
    values: Array
    start: Indices
    smooth: float

    @classmethod
    def of(cls, curves: tuple[StepCurve, ...], smooth: float) -> "Curves":
        kept = [_bends(curve) for curve in curves]
        knots = [curve.knots[some] for curve, some in zip(curves, kept)]
        values = [curve.values[some] for curve, some in zip(curves, kept)]
        start = np.concatenate([[0], np.cumsum([len(some) for some in kept])])
        return cls(np.concatenate(knots), np.concatenate(values), start, smooth)


def _bends(curve: StepCurve) -> Indices:
    """The knots between different values, and both ends: the others change nothing."""
    v = curve.values
    inner = (v[1:-1] != v[:-2]) | (v[1:-1] != v[2:])
    return np.flatnonzero(np.concatenate([[True], inner, [True]])[: len(v)])


@dataclass(frozen=True)
class EvidenceMap:
    """From scores (q,) of classes relative to the first one to evidence: bent scores r if ``bend`` is finite, r @
    slope + offset, plus r' curvature_c r for each class c; mixed with ``curves``, from which the ``odds`` of the
    classes are subtracted.

    Then from evidence e to log-odds: base + share e. The share is ``counted``, less where the spread of e is
    beyond the ``limit``, and less where little is known of a row.
    """

    slope: Array
    offset: Array
    bend: float
    curvature: Array | None
    curves: Curves | None
    odds: Array
    base: Array
    limit: float
    counted: float

    @classmethod
    def of(cls, posterior: Posterior) -> "EvidenceMap":
        """The map of scores, from whose logits the odds are subtracted at its end."""
        odds = np.broadcast_to(posterior.odds, posterior.offset.shape)
        curves = Curves.of(posterior.curves, posterior.smooth) if posterior.curves else None
        return cls(
            posterior.slope,
            posterior.offset if curves is not None else posterior.offset - odds,
            posterior.bend,
            posterior.curvature,
            curves,
            odds,
            odds + np.broadcast_to(posterior.shift, odds.shape),
            posterior.limit,
            posterior.counted,
        )

    @property
    def linear(self) -> bool:
        """Whether evidence is linear in the scores, and can be in the coefficients."""
        return self.bend == np.inf and self.curvature is None and self.curves is None

    def tables(self) -> dict[str, NDArray[Any]]:
        """Numbers by name."""
        if self.linear:
            return {}
        found: dict[str, NDArray[Any]] = {"slope": self.slope, "offset": self.offset}
        if self.curvature is not None:
            found["curvature"] = self.curvature
        if self.curves is not None:
            found |= {name: getattr(self.curves, name) for name in ("knots", "values", "start")}
            found["odds"] = self.odds
        return found


@dataclass(frozen=True)
class Variance:
    """What is known of a row, `scores/uncertainty/unexplained_variance.py`, with the kernel of the model.

    ``inverse`` and ``half`` are upper triangles (r (r + 1) / 2,), column by column; ``floor`` is the least
    k(x, x) of which shares are taken, and ``usual`` a logarithm.
    """

    centers: Array
    inverse: Array
    mean: Array
    half: Array
    alpha: float
    constant: float
    typical: float
    floor: float
    usual: float

    @classmethod
    def of(cls, unexplained: UnexplainedVariance) -> "Variance":
        numbers = {
            name: finite(name, np.array(getattr(unexplained, name))).item()
            for name in ("alpha", "constant", "typical", "usual", "floor")
        }
        numbers["typical"] = max(numbers["typical"], SMALLEST_FLOAT)
        numbers["usual"] = float(np.log(max(numbers["usual"], SMALLEST_FLOAT)))
        return cls(
            centers=_converted(unexplained.centers, unexplained.kernel),
            inverse=_packed(unexplained.inverse),
            mean=unexplained.mean,
            half=_packed(unexplained.half),
            **numbers,
        )

    def tables(self) -> dict[str, NDArray[Any]]:
        """Numbers by name."""
        return {f"known_{name}": getattr(self, name) for name in ("centers", "inverse", "mean", "half")}


def _packed(A: Array) -> Array:
    """The upper triangle of A (r, r), column by column."""
    packed: Array = A.T[np.tril_indices(len(A))]
    return packed


@dataclass(frozen=True)
class Formula:
    """The outputs f (q,) of a model: sum_i coef_i k(u, z_i) + intercept, where u are the features after the steps.

    Of classifiers (``classes``), f are scores, or evidence if that is linear in them, that ``evidence`` turns into
    log-odds against the first class, also by the novelty that follows from ``variance``.
    ``ranks`` (q,) are the places of quantiles in ascending order. With ``minus_own``, k(u, u) is subtracted.
    ``detects``: rows with f < 0 are novel.
    """

    steps: list[Step]
    kernel: KernelFormula
    width: Array
    centers: Array
    coef: Array
    intercept: Array
    classes: list[Label] | None = None
    evidence: EvidenceMap | None = None
    variance: Variance | None = None
    ranks: Indices | None = None
    minus_own: bool = False
    detects: bool = False

    @property
    def n_features(self) -> int:
        """Length of x."""
        return self.steps[0].n_in if self.steps else self.centers.shape[1]

    def tables(self) -> dict[str, NDArray[Any]]:
        """Every number by the name of its table, all of them finite."""
        tables: dict[str, NDArray[Any]] = {}
        for number, step in enumerate(self.steps, start=1):
            tables |= {f"{name}_{number}": values for name, values in step.tables().items()}
        tables["feature"] = np.broadcast_to(self.kernel.feature, self.centers.shape[1:])
        tables |= {name: getattr(self, name) for name in ("width", "centers", "coef", "intercept")}
        for part in (self.evidence, self.variance):
            tables |= {} if part is None else part.tables()
        if self.evidence is not None:
            tables["base"] = self.evidence.base
        if self.ranks is not None:
            tables["ranks"] = self.ranks
        return {name: finite(name, values) for name, values in tables.items()}


def formula_of(model: Any, *, moderated: bool = True) -> Formula:
    """The formula of a fitted model; ``moderated``: its probabilities depend on what is known of a row."""
    if type(model) is Pipeline:
        *before, (_, last) = model.steps
        inner = formula_of(last, moderated=moderated)
        return replace(inner, steps=[*affine_steps(before), *inner.steps])
    kind: Any = type(model)
    if kind not in _FORMULAS:
        raise _not_exported(model)
    check_is_fitted(model)
    if hasattr(model, "columns_"):
        raise TypeError(
            f"{kind.__name__} was fitted on a raw table, and the source takes numbers; fit the model on the "
            "features model.columns_.encode(X), and export that one"
        )
    model = with_state(model, model._fitted)
    formula = _FORMULAS[kind](model, _expansion(model))
    return formula if moderated else replace(formula, variance=None)


def _not_exported(model: Any) -> TypeError:
    name = type(model).__name__
    if isinstance(model, KernelCCA):
        return TypeError(
            f"{name} cannot be exported: it has functions of several views, and the source takes one row; use its "
            "transform, or export a model of one table"
        )
    parents = [parent.__name__ for parent in _FORMULAS if isinstance(model, parent)]
    if parents:
        return TypeError(
            f"{name} cannot be exported: a subclass of {parents[0]} may compute something else; fit "
            f"{parents[0]} itself"
        )
    return TypeError(
        f"{name} cannot be exported; pass a fitted kernel model of mercer, or a scikit-learn Pipeline that ends "
        "with one (for a search, its best_estimator_; for a PairwiseClassifier, one of its estimators_)"
    )


def _expansion(model: Any) -> Formula:
    """The outputs of the model before anything becomes of them, of a classifier those for its probabilities."""
    logits = getattr(model, "logit_coef_", None)
    coef = np.asarray(model.dual_coef_ if logits is None else logits, dtype=np.float64)
    constant = model.intercept_ if logits is None else model.logit_intercept_
    intercept = np.atleast_1d(np.asarray(constant, dtype=np.float64))
    kernels = getattr(model, "kernels_", (model.kernel_,))
    number = getattr(model, "center_kernel_", np.zeros(len(coef), dtype=np.intp))
    centers = _converted(model.X_fit_, kernels[0])
    kernel = kernel_formula(tuple(each.kernel if isinstance(each, RankNormal) else each for each in kernels))
    return Formula(
        steps=_own_steps(kernels[0]),
        kernel=kernel,
        width=_some(kernel.widths[number]),
        centers=_some(centers),
        coef=_some(coef.reshape(len(coef), len(intercept))),
        intercept=intercept,
    )


def _origin(kernel: Any) -> Array | float:
    """What a linear kernel subtracts from rows and centers."""
    origin = getattr(kernel, "origin", None)
    return 0.0 if origin is None else np.asarray(origin, dtype=np.float64)


def _own_steps(kernel: Any) -> list[Step]:
    """What a kernel does with rows before it compares them."""
    if isinstance(kernel, RankNormal) and kernel.scores is not None:
        if (np.diff(kernel.scores.start) == 0).any():
            raise TypeError("RankNormal of some features only cannot be exported; pass features=None")
        return [Interpolation(kernel.scores.knots, kernel.scores.values, kernel.scores.start)]
    origin = _origin(kernel)
    return [] if np.ndim(origin) == 0 else [Scaling.of(np.size(origin), shift=origin)]


def _converted(rows: Any, kernel: Any) -> Array:
    """Rows after that, in float64."""
    found = dense(rows).astype(np.float64)
    return np.asarray(kernel.as_scores(found) if isinstance(kernel, RankNormal) else found - _origin(kernel))


def _some(rows: Array) -> Array:
    """A model without centers gets one with coefficient zero: C has no empty tables."""
    return rows if len(rows) > 0 else np.zeros((1, *rows.shape[1:]))


def _classifier(model: Any, f: Formula) -> Formula:
    """Scores become log-odds as :class:`mercer._scores.decision_rule.Rule` does it."""
    known = getattr(model, "unexplained_variance_", None)
    f = replace(_relative(f, model.rule_), classes=plain_labels(model.classes_))
    if known is not None:
        f = replace(f, variance=Variance.of(known))
    e = EvidenceMap.of(model.rule_.posterior)
    f = replace(f, evidence=e)
    return replace(f, coef=f.coef @ e.slope, intercept=f.intercept @ e.slope + e.offset) if e.linear else f


def _relative(f: Formula, rule: Any) -> Formula:
    """The scores of classes relative to the first one, an affine function of the outputs."""
    q = f.coef.shape[1]
    R = scores_in(rule.reliable, np.vstack([np.zeros(q), np.eye(q)]))
    A = R[1:] - R[0]
    return replace(f, coef=f.coef @ A, intercept=f.intercept @ A + R[0])


def _outputs(model: Any, f: Formula) -> Formula:
    """Outputs are what the model answers."""
    return f


def _machine_regressor(model: Any, f: Formula) -> Formula:
    """Several quantiles are sorted."""
    levels = quantiles_of(model.quantile)
    return replace(f, ranks=ascending(levels)) if model.loss == "pinball" and len(levels) > 1 else f


def _detector(model: Any, f: Formula) -> Formula:
    """``decision_function``: minus the squared distance to the center of a ball, or the distance from a plane."""
    known = model._details
    if known.form == "plane":
        return replace(f, intercept=f.intercept - model.offset_, detects=True)
    varies = f.kernel.varies
    constant = known.square + model.offset_ + (0.0 if varies else 1.0)
    return replace(f, coef=2.0 * f.coef, intercept=f.intercept - constant, minus_own=varies, detects=True)


# Subclasses may do something else.
_FORMULAS: dict[type, Callable[[Any, Formula], Formula]] = {
    KernelFisherClassifier: _classifier,
    KernelMachineClassifier: _classifier,
    SparseFisherClassifier: _classifier,
    OnlineFisherClassifier: _classifier,
    KernelRidgeRegressor: _outputs,
    SparseKernelRegressor: _outputs,
    OnlineKernelRegressor: _outputs,
    KernelMachineRegressor: _machine_regressor,
    KernelPCA: _outputs,
    OrientedKernelPCA: _outputs,
    KernelNoveltyDetector: _detector,
}
