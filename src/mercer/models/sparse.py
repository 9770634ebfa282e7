"""Sparse kernel models: a Fisher classifier and a regressor on few centers, chosen by the targets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from mercer import gate
from mercer.expansion import Expansion
from mercer.gram import Budget
from mercer.kernels import Kernel, as_kernel
from mercer.models.base import KernelModel, Training
from mercer.models.state import from_one_state, in_one_step
from mercer.models.validation import (
    check_classes,
    check_parameters,
    choice,
    class_factors,
    class_labels,
    class_priors,
    consistent,
    count_or_none,
    decision_words,
    generator,
    nonnegative,
    positive,
    positive_or_none,
    positive_or_word,
    real_targets,
    row_weight,
    warn_of_constant,
    warn_of_weights,
    weight_reading,
)
from mercer.rows.table import n_rows, take
from mercer.scores import (
    ClassFit,
    Rule,
    Scatter,
    make_rule,
    odds_shift,
)
from mercer.scores.criteria import Criterion, accuracy, classification_criterion, squared_criterion
from mercer.scores.relative import class_targets
from mercer.solvers import Observations
from mercer.solvers.orthogonal import SELECTIONS, STOPS, SelectionRule
from mercer.tuning.sparse import SparseFit, tune_sparse
from mercer.tuning.sparse_problem import ChosenBy, SparseProblem, SparseSettings, TargetCriterion
from mercer.types import Array, Floats, Indices

PENALTIES = ("rkhs", "coef", "diagonal")


@dataclass(frozen=True)
class SparseReport:
    """Facts about a sparse fit; ``str`` gives them as lines.

    ``longest`` is the number of centers on the longest path; where all were kept, ``end`` says why.
    """

    n_rows: int
    n_centers: int
    longest: int
    end: str
    kernel: Kernel
    alpha: float
    selection: str
    criterion: str
    criterion_value: float
    n_kernels: int
    loo: str

    def __str__(self) -> str:
        lines = {
            "rows": f"{self.n_rows}, of which {self.n_centers} are centers ({self.n_centers / self.n_rows:.1%})",
            "kernel": f"{self.kernel}, of {self.n_kernels}",
            "alpha": f"{self.alpha:.4g}",
            "centers": f"by {self.selection}, {'all ' if self.end else ''}of a path of {self.longest}{self.end}",
            "chosen by": f"{self.criterion} {self.criterion_value:.4g}, leaving out each row with its center",
            "held-out rows": self.loo,
        }
        width = max(map(len, lines)) + 2
        return "\n".join(f"{name + ':':{width}}{text}" for name, text in lines.items())


@dataclass(frozen=True)
class SparseStage:
    """What staged predictions need of one selection: the model with its first s centers, for every s.

    ``position`` (m,) of the centers in ``X_fit_``, ``targets`` they serve, V (m, m), zeta (m, t) and
    ``kernel_mean`` (m,) of the steps, ``target_mean`` (t,).
    """

    position: Indices
    targets: list[int]
    V: Array
    zeta: Array
    kernel_mean: Array
    target_mean: Array

    def model(self, s: int, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        """Write coefficients and intercepts with at most s centers into coef (m, q) and intercept (q,)."""
        s = min(s, len(self.position))
        c = self.V[:s, :s] @ self.zeta[:s]
        coef[np.ix_(self.position[:s], np.array(self.targets))] = c
        intercept[self.targets] = self.target_mean - self.kernel_mean[:s] @ c


class SparseModel(KernelModel):
    """A model f(x) = sum_j c_j k(x, z_j) + b on few centers; abstract."""

    selection: str
    n_candidates: int | None
    stop: str | None
    tol: float
    max_centers: int | None
    cost: float
    prune: bool
    shared: bool
    widths: Any

    def _settings(self) -> SparseSettings:
        """The parameters, checked."""
        choice("selection", self.selection, SELECTIONS)
        choice("penalty", self.penalty, PENALTIES)
        if self.stop is not None:
            choice("stop", self.stop, STOPS)
        penalty = "orthogonal" if self.selection == "orthogonal" else self.penalty
        if self.widths is not None:
            penalty = "orthogonal" if self.selection == "orthogonal" else "coef"
        alpha, chosen_by = _alpha(self.alpha)
        if chosen_by == "evidence" and self.selection != "orthogonal" and isinstance(self, ClassifierMixin):
            raise ValueError('alpha="evidence" of a classifier needs selection="orthogonal"; use "loo" or "gcv"')
        picked = SelectionRule(
            cast(Any, self.selection),
            count_or_none("n_candidates", self.n_candidates),
            cast(Any, penalty),
            "evidence" if chosen_by == "evidence" else "gcv",
            positive("cost", self.cost),
        )
        return SparseSettings(
            rule=picked,
            stop=cast(Any, self.stop),
            tolerance=nonnegative("tol", self.tol),
            # Squared errors of a regression have long tails, and one standard error is much: a tenth on Boston.
            standard_errors=1.0 if isinstance(self, ClassifierMixin) else 0.0,
            max_centers=count_or_none("max_centers", self.max_centers),
            alpha=alpha,
            chosen_by=chosen_by,
            prune=bool(self.prune),
            shared=bool(self.shared),
            widen=self._widen,
        )

    def _widen(self, kernel: Kernel) -> tuple[Kernel, ...]:
        """The kernels a center may have: multiples of gamma."""
        if self.widths is None:
            return (kernel,)
        factors = np.atleast_1d(gate.real("widths", self.widths))
        gamma = getattr(kernel, "gamma", None)
        if gamma is None or factors.ndim != 1 or not (factors.size and ((factors > 0) & (factors < np.inf)).all()):
            raise ValueError(
                f"widths={self.widths!r} multiplies gamma of {kernel!r}; give positive numbers, and a gamma"
            )
        return tuple(clone(kernel).set_params(gamma=np.multiply(gamma, factor).tolist()) for factor in factors)

    def _fit_sparse(self, training: Training, criterion: TargetCriterion) -> tuple[Array, Array | None]:
        """Choose and solve, set what every sparse model has; returns outputs (n, q) of rows left out.

        The second outputs are those if the weights meant the other thing, where that is in doubt. Rows of weight
        zero take no part; being left out is their usual state.
        """
        X, Y, weight = training.X, training.Y, training.weight
        settings, kernel = self._settings(), as_kernel(self.kernel)
        used = np.flatnonzero(weight > 0)
        if len(used) < 2:
            raise ValueError(
                f"leave-one-out needs at least 2 rows of positive weight, and there is n_samples = {len(used)}"
            )
        part = kernel.subset(X, used) if len(used) < len(Y) else X
        rows = kernel.distinct(part)
        doubt = None if training.doubt is None else training.doubt[used]
        observations = Observations(Y[used], weight[used], training.unit[used], rows, doubt)
        points = kernel.subset(part, rows.first)
        rng = generator(self.random_state)
        budget = Budget.from_parameter(positive_or_none("max_memory", self.max_memory))
        problem = SparseProblem(
            points, observations, lambda some, targets: criterion(used[some], targets), settings, budget
        )
        fit = tune_sparse(kernel, problem, rng)
        self._limit = fit.longest if fit.longest < n_rows(points) else None
        self._store_fit(X, fit, observations, used[rows.first])
        fitted = self._sparse_outputs(X) if len(used) < len(Y) else np.empty_like(Y)

        def at_all(outputs: Array) -> Array:
            every = fitted.astype(np.float64)
            every[used] = outputs
            return every

        return at_all(fit.loo), None if fit.otherwise is None else at_all(fit.otherwise)

    def _store_fit(self, X: Any, fit: SparseFit, observations: Observations, first: Indices) -> None:
        """Centers of all parts, once each, with the coefficients of every part."""
        q, dtype = observations.Y.shape[1], np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        chosen = list(dict.fromkeys(int(j) for part in fit.parts for j in part.solution.order))
        if len(fit.candidates.kernels) > 1:
            chosen.sort(key=lambda j: int(fit.candidates.kernel_number(np.array([j]))[0]))
        position = {j: i for i, j in enumerate(chosen)}
        self.dual_coef_ = np.zeros((len(chosen), q), dtype)
        self.intercept_ = np.zeros(q, dtype)
        stages = []
        for part in fit.parts:
            where = np.array([position[int(j)] for j in part.solution.order], dtype=np.intp)
            mean = (
                observations.point_weight @ observations.point_target[:, part.targets] / observations.weight.sum()
            )
            V, zeta = part.steps.V[: part.m, : part.m], part.steps.zeta[: part.m]
            stages.append(SparseStage(where, part.targets, V, zeta, part.steps.kernel_mean[: part.m], mean))
            stages[-1].model(part.m, self.dual_coef_, self.intercept_)
        self.stages_ = tuple(stages)
        numbers = np.array(chosen, dtype=np.intp)
        self.kernels_ = fit.candidates.kernels
        self.kernel_ = fit.candidates.kernels[0]
        self.center_kernel_ = fit.candidates.kernel_number(numbers)
        self.gamma_ = getattr(self.kernel_, "gamma", None)
        warn_of_constant(self.kernel_, X)
        self.alpha_ = float(fit.parts[0].steps.alpha[0])
        self.support_ = first[fit.candidates.point(numbers)]
        self.X_fit_ = self.kernel_.centers(X, self.support_)
        self.path_ = fit.parts[0].path if len(fit.parts) == 1 else tuple(part.path for part in fit.parts)
        self.trials_ = fit.paths
        self.degrees_of_freedom_ = max(
            float(part.path.degrees_of_freedom[min(part.m, len(part.path)) - 1]) for part in fit.parts
        )
        self._criterion_value = float(np.mean([part.score for part in fit.parts]))

    def _outputs(self, X: Any) -> Floats:
        """f at new rows (n, q)."""
        check_is_fitted(self)
        return self._sparse_outputs(self._read(X, reset=False))

    def _sparse_outputs(self, X: Any) -> Floats:
        coef = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        return self._evaluate(X, coef, np.atleast_1d(self.intercept_))

    def _evaluate(self, X: Any, coef: Floats, intercept: Floats) -> Floats:
        """Sum over kernels of the expansions on the centers that have them."""
        F: Any = intercept
        for g in np.unique(self.center_kernel_):
            some = np.flatnonzero(self.center_kernel_ == g)
            centers = self.X_fit_ if len(some) == len(coef) else take(self.X_fit_, some)
            zero = np.zeros(coef.shape[1], coef.dtype)
            F = F + Expansion(self.kernels_[g], centers, coef[some], zero)(X)
        return np.asarray(F)

    def _staged_outputs(self, X: Any) -> Iterator[Floats]:
        """f (n, q) with 1, 2, … centers of each selection."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        shape = len(self.dual_coef_), len(np.atleast_1d(self.intercept_))
        for s in range(1, max(len(stage.position) for stage in self.stages_) + 1):
            coef, intercept = np.zeros(shape), np.zeros(shape[1])
            for stage in self.stages_:
                stage.model(s, coef, intercept)
            yield self._evaluate(X, coef, intercept)

    def _end_of(self, paths: tuple[Any, ...]) -> str:
        """Why there are no more centers, where all of a path were kept."""
        whole = [len(path) for stage, path in zip(self.stages_, paths) if len(stage.position) == len(path)]
        if not whole or self.stop is None:
            return ""
        if self._limit is None or max(whole) < self._limit:
            return ": no other row adds to it"
        return f": stop={self.stop!r} would go on, max_centers above {self._limit} lets it"

    def _report(self, n: int, criterion: str, loo: str) -> SparseReport:
        paths = self.path_ if isinstance(self.path_, tuple) else (self.path_,)
        longest = max(len(path) for path in paths)
        tried = max((len(path.kernels) for path in self.trials_), default=1)
        return SparseReport(
            n,
            len(self.dual_coef_),
            longest,
            self._end_of(paths),
            self.kernel_,
            self.alpha_,
            self.selection,
            criterion,
            self._criterion_value,
            tried,
            loo,
        )


class SparseFisherClassifier(ClassifierMixin, SparseModel):
    r"""Kernel Fisher discriminant on few centers, chosen one after another by the classes.

    ``SparseFisherClassifier()`` needs no parameters; a width is given with its kernel, as in
    ``SparseFisherClassifier(RBF(gamma=0.1))``.

    Finds f(x) = sum_(j in S) c_j k(x, z_j) + b for the class targets Y (two classes: -1 and +1, more: one
    indicator each) that minimizes

        sum_i w_i |Y_i - f(x_i)|² + alpha c'K_SS c

    over a few rows S, to which one is added after another (Mika 2002, section 3.5.2; Andelić 2007, section 3.4).
    All numbers of centers come from one triangular factor, with the output of every row left out *together with
    its center*: that a row was chosen tells its class, and a leave-one-out that kept it would know the answer.
    These outputs choose gamma, alpha and the number of centers, and give threshold and probabilities.

    Costs O(u c² + c m² + u m²) for u distinct rows, c <= 6000 candidates and a path of m centers; each kernel
    tried costs the same with u <= 3000 and c <= 600. Predicting costs O(m d) a row.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        As in :class:`KernelFisherClassifier`; "rbf" is ``RBF(gamma="loo")``.
    selection : {"gain", "residual", "orthogonal"}, default="gain"
        The next center is the one that lowers the objective most (sparse greedy KFD), the row of the largest
        residual (the nonlinear pseudodiscriminant), or the one that lowers the objective of orthogonal least
        squares most, whose penalty on the orthogonal coefficients is re-estimated at every step (OROLS).
    n_candidates : int, default=None
        How many random rows are compared at each step; None: all. 59 hold one of the best twentieth with
        probability 0.95.
    stop : {"loo", "gcv", "bic", "residual", "improvement"} or None, default="loo"
        What chooses the number of centers: the least number whose criterion (that of held-out rows, generalized
        cross-validation, Bayes information) is within ``tol`` of the least, and for "loo" also the least number
        whose criterion differs from the least by no more than the standard error of the paired difference; the
        first without a residual above ``tol``; the first at which the mean decrease of the objective over five
        steps is below ``tol`` of it. None: all of the path.
    tol : float, default=0.01
    max_centers : int, default=None
        Length of the path; None: half of the distinct rows, at most 3000.
    alpha : float, "loo", "gcv" or "evidence", default="loo"
        Penalty; larger is smoother. Words say how it is chosen; selection="orthogonal" knows "gcv" (also meant by
        "loo") and "evidence".
    penalty : {"rkhs", "coef", "diagonal"}, default="rkhs"
        c'K_SS c, c'c, or none with alpha added to the value of each center at its own row (Andelić's ε). Not
        used by selection="orthogonal".
    weights : {"auto", "counts", "importance"}, default="auto"
        What ``sample_weight`` means to leave-one-out: numbers of equal rows, of which one is left out at a time,
        or how much a row matters; see :class:`KernelFisherClassifier`.
    cost : float, default=1.0
        Degrees of freedom that a chosen center counts for a given one, in "gcv" and "bic".
    prune : bool, default=False
        Whether centers are eliminated backward afterwards, by the same rule.
    shared : bool, default=True
        Whether all classes share the centers; else each class against the rest has its own.
    widths : array of factors, default=None
        Multiples of gamma among which every center chooses its own; the penalty is then c'c.
    criterion : {"brier", "log_loss", "error", "squared"}, default="brier"
        What leave-one-out minimizes.
    priors, class_weight, threshold, calibration
        As in :class:`KernelFisherClassifier`.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of what is free.
    random_state : int, RandomState or None, default=None
        For random candidates, and the rows on which kernels are compared, where there are more than 600.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m, q), ndarray (q,)
        Centers in the order of their choice, coefficients, intercept.
    support_ : ndarray of shape (m,)
        Which training row each center is.
    path_ : SparsePath
        Order, objective, rss, degrees of freedom, gcv, bic and left-out error for every number of centers; one
        for each class if ``shared`` is False.
    trials_ : tuple of TuningPath
        Kernels and alphas that were compared: all kernels, the best of them on more rows where there are more
        than 600, and alphas of the chosen kernel on all rows.
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        What was chosen.
    kernels_, center_kernel_ : tuple of Kernel, ndarray of shape (m,)
        Kernels of ``widths``, and which of them each center has.
    loo_decision_, loo_proba_, loo_outputs_, loo_score_
        Of training rows left out with their center, as in :class:`KernelFisherClassifier`.
    rule_, threshold_, priors_
        As in :class:`KernelFisherClassifier`.
    report_ : SparseReport
        What was done, in words.

    References
    ----------
    S. Mika (2002), Kernel Fisher Discriminants, TU Berlin. E. Andelić (2007), Sparse Nonlinear Discriminants,
    Otto von Guericke University Magdeburg.

    Examples
    --------
    >>> from mercer import SparseFisherClassifier
    >>> from mercer.datasets import make_banana
    >>> X, y = make_banana(400, random_state=0)
    >>> model = SparseFisherClassifier().fit(X, y)
    >>> len(model.support_) < 60
    True
    """

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        selection: str = "gain",
        n_candidates: int | None = None,
        stop: str | None = "loo",
        tol: float = 0.01,
        max_centers: int | None = None,
        alpha: float | str = "loo",
        penalty: str = "rkhs",
        weights: str = "auto",
        cost: float = 1.0,
        prune: bool = False,
        shared: bool = True,
        widths: ArrayLike | None = None,
        criterion: str = "brier",
        priors: ArrayLike | None = None,
        class_weight: Any = None,
        threshold: str = "bayes",
        calibration: str = "logistic",
        max_memory: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.selection = selection
        self.n_candidates = n_candidates
        self.stop = stop
        self.tol = tol
        self.max_centers = max_centers
        self.alpha = alpha
        self.penalty = penalty
        self.weights = weights
        self.cost = cost
        self.prune = prune
        self.shared = shared
        self.widths = widths
        self.criterion = criterion
        self.priors = priors
        self.class_weight = class_weight
        self.threshold = threshold
        self.calibration = calibration
        self.max_memory = max_memory
        self.random_state = random_state

    @in_one_step
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose kernel, penalty and centers by leave-one-out, and fit.

        Parameters
        ----------
        X : array, CSR matrix, list of objects or kernel matrix, n rows
        y : array of shape (n,)
            Class labels of one type: numbers, strings, truth values or dates.
        sample_weight : array of shape (n,), default=None
            Weights of the rows; ``weights`` says what they mean.
        """
        check_parameters(self, words=get_args(ChosenBy))
        decision_words(self)
        X = self._read(X, reset=True)
        y = class_labels(y)
        consistent(X, y)
        weight = row_weight(sample_weight, X)
        label = self._classes(y, weight)
        priors = class_priors(self.priors, len(self.classes_))
        factor = class_factors(self.class_weight, self.classes_, label, weight)[label]
        Y, reading = class_targets(label, len(self.classes_)), weight_reading(self.weights, weight)
        training = Training(X, Y, weight * factor, weight, reading, None)
        evidence = training.evidence
        loo, otherwise = self._fit_sparse(training, self._judge(label, evidence, Y))
        scatter = Scatter.of(self._fitted(X), Y, evidence)
        fit = ClassFit(loo, Y, label, evidence, scatter)
        self._make_rule(X, fit, training.weight, priors)
        if otherwise is not None:
            P = self._rule_of(replace(fit, loo=otherwise), training.weight).probabilities(otherwise)
            warn_of_weights(reading, self.loo_score_, accuracy(P, label, evidence))
        return self

    @from_one_state
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of largest probability for each row (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @from_one_state
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes (n, n_classes), calibrated on rows that were left out."""
        F = self._outputs(X)
        return self.rule_.probabilities(F)

    @from_one_state
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities (n, n_classes)."""
        F = self._outputs(X)
        return self.rule_.log_probabilities(F)

    @from_one_state
    def decision_function(self, X: Any) -> Floats:
        """Log-odds of ``classes_[1]`` (n,), or log-probabilities of three and more classes (n, n_classes)."""
        F = self._outputs(X)
        return self.rule_.decision(F)

    @from_one_state
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Labels (n,) with 1, 2, … centers, under the rule of the whole model."""
        for F in self._staged_outputs(X):
            yield self.classes_[self.rule_.probabilities(F).argmax(axis=1)]

    def _fitted(self, X: Any) -> Array:
        return np.asarray(self._sparse_outputs(X), dtype=np.float64)

    def _classes(self, y: NDArray[Any], weight: Array) -> Indices:
        """Class numbers (n,); a row of weight zero whose class no other row has gets any number."""
        self.classes_ = np.unique(y[weight > 0])
        check_classes(self.classes_, self.threshold)
        return np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)

    def _judge(self, label: Indices, weight: Array, Y: Array) -> TargetCriterion:
        def criterion(rows: Indices, targets: list[int] | None) -> Criterion:
            w, own, targeted = weight[rows], label[rows], Y[rows]
            if targets is not None:
                own, targeted = (own == targets[0]).astype(np.intp), targeted[:, targets]
            return classification_criterion(self.criterion, own, w, targeted)

        return criterion

    def _rule_of(self, fit: ClassFit, weight: Array) -> Rule:
        return make_rule(
            fit,
            n_components=len(self.classes_) - 1,
            calibration=self.calibration,
            threshold=self.threshold,
            prior_shift=odds_shift(np.bincount(fit.label, weight) / weight.sum(), self.priors_),
        )

    def _make_rule(self, X: Any, fit: ClassFit, weight: Array, priors: Array | None) -> None:
        share = np.bincount(fit.label, weight) / weight.sum()
        self.priors_ = share if priors is None else priors
        self.rule_ = self._rule_of(fit, weight)
        self.threshold_ = self.rule_.posterior.threshold() if len(self.classes_) == 2 else None
        self.loo_outputs_ = fit.loo
        self.loo_decision_ = self.rule_.decision(fit.loo)
        self.loo_proba_ = self.rule_.probabilities(fit.loo)
        self.loo_score_ = accuracy(self.loo_proba_, fit.label, weight)
        self.report_ = self._report(n_rows(X), self.criterion, f"accuracy {self.loo_score_:.4f}")


class SparseKernelRegressor(MultiOutputMixin, RegressorMixin, SparseModel):
    r"""Kernel regression on few centers, chosen one after another by the targets.

    ``SparseKernelRegressor()`` needs no parameters; a width is given with its kernel, as in
    ``SparseKernelRegressor(RBF(gamma=0.1))``.

    Finds f(x) = sum_(j in S) c_j k(x, z_j) + b that minimizes sum_i w_i |y_i - f(x_i)|² + alpha c'K_SS c over few
    rows S, as :class:`SparseFisherClassifier` does for classes; targets of several columns share the centers.

    Parameters
    ----------
    kernel, selection, n_candidates, stop, max_centers, penalty, weights, cost, prune, widths
        As in :class:`SparseFisherClassifier`.
    tol : float, default=0.003
        As in :class:`SparseFisherClassifier`: here of squared errors, whose standard error has no say.
    alpha : float, "loo", "gcv" or "evidence", default="evidence"
        As in :class:`SparseFisherClassifier`. "evidence" chooses kernel and alpha by the evidence of the model on
        all rows, among those whose left-out error is within one standard error of the least; with more than 600
        distinct rows, or another penalty than "rkhs", it is "loo".
    max_memory, random_state
        As in :class:`SparseFisherClassifier`.
    shared : bool, default=True
        Whether all targets share the centers.

    Attributes
    ----------
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers in the order of their choice, coefficients, intercept.
    support_, path_, trials_, kernel_, gamma_, alpha_, kernels_, center_kernel_, report_
        As in :class:`SparseFisherClassifier`.
    loo_prediction_ : ndarray of shape (n,) or (n, q)
        Prediction for every training row by the model fitted without it and without its center.
    loo_score_ : float
        Its R².

    Examples
    --------
    >>> from mercer import SparseKernelRegressor
    >>> from mercer.datasets import make_sinc
    >>> X, y = make_sinc(100, random_state=0)
    >>> model = SparseKernelRegressor().fit(X, y)
    >>> len(model.support_) < 25
    True
    """

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        selection: str = "gain",
        n_candidates: int | None = None,
        stop: str | None = "loo",
        tol: float = 0.003,
        max_centers: int | None = None,
        alpha: float | str = "evidence",
        penalty: str = "rkhs",
        weights: str = "auto",
        cost: float = 1.0,
        prune: bool = False,
        shared: bool = True,
        widths: ArrayLike | None = None,
        max_memory: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.selection = selection
        self.n_candidates = n_candidates
        self.stop = stop
        self.tol = tol
        self.max_centers = max_centers
        self.alpha = alpha
        self.penalty = penalty
        self.weights = weights
        self.cost = cost
        self.prune = prune
        self.shared = shared
        self.widths = widths
        self.max_memory = max_memory
        self.random_state = random_state

    @in_one_step
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose kernel, penalty and centers by leave-one-out, and fit.

        Parameters
        ----------
        X : array, CSR matrix, list of objects or kernel matrix, n rows
        y : array of shape (n,) or (n, q)
        sample_weight : array of shape (n,), default=None
            Weights of the rows; ``weights`` says what they mean.
        """
        check_parameters(self, words=get_args(ChosenBy))
        X = self._read(X, reset=True)
        targets = real_targets(y, self)
        consistent(X, targets)
        gate.in_range("y", targets, getattr(X, "dtype", np.float64))
        weight = row_weight(sample_weight, X)
        Y = targets.reshape(len(targets), -1)

        def criterion(rows: Indices, columns: list[int] | None) -> Criterion:
            targets = Y[rows] if columns is None else Y[rows][:, columns]
            return squared_criterion(targets, weight[rows])

        training = Training(X, Y, weight, weight, weight_reading(self.weights, weight), None)
        loo, otherwise = self._fit_sparse(training, criterion)
        self.loo_score_ = float(r2_score(Y, loo, sample_weight=weight))
        if otherwise is not None:
            score = float(r2_score(Y, otherwise, sample_weight=weight))
            warn_of_weights(training.reading, self.loo_score_, score)
        self.loo_prediction_ = loo[:, 0] if targets.ndim == 1 else loo
        self.report_ = self._report(n_rows(X), "squared", f"R² {self.loo_score_:.4f}")
        if targets.ndim == 1:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], self.intercept_[0]
        return self

    @from_one_state
    def predict(self, X: Any) -> Floats:
        """f at each row (n,) or (n, q)."""
        return self._shaped(self._outputs(X))

    @from_one_state
    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Predictions with 1, 2, … centers."""
        for F in self._staged_outputs(X):
            yield self._shaped(F)

    def _shaped(self, F: Floats) -> Floats:
        return F[:, 0] if self.dual_coef_.ndim == 1 else F


def _alpha(value: Any) -> tuple[float | None, ChosenBy]:
    """A number, or None and what chooses it."""
    if isinstance(value, str) and value in get_args(ChosenBy):
        return None, cast(ChosenBy, value)
    return positive_or_word("alpha", value, get_args(ChosenBy)), "loo"
