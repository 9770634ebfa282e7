"""Sparse kernel models: a Fisher classifier and a regressor with few centers, selected by the targets."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer import _validation
from mercer._estimators.attributes import attributes_of
from mercer._estimators.base import read_blocks
from mercer._estimators.fitted import atomic_update, fitted, reads_one_state
from mercer._estimators.leave_one_out import LeaveOneOutModel
from mercer._estimators.parameters import common_spec, generator, positive_or_word, refuse_blocks
from mercer._estimators.predictions import (
    DiscriminantPredictions,
    HeldOutProbabilities,
    HeldOutValues,
    RegressorPredictions,
)
from mercer._estimators.report import logs_fit_time
from mercer._expansion import expansion_of
from mercer._fitting.result import FitResult
from mercer._fitting.run import run
from mercer._fitting.sparse.problem import ChosenBy, SparseSettings
from mercer._fitting.spec import FitSpec
from mercer._solvers.orthogonal import STOPS, SelectionRule
from mercer._solvers.orthogonal.stages import SparseStage, staged
from mercer._types import Floats, Indices
from mercer.kernels import Kernel
from mercer.rows._resolve import is_out_of_core

SELECTIONS = ("gain", "residual", "orthogonal")
SPARSE_PENALTIES = ("auto", "rkhs", "coef", "diagonal", "orthogonal")
ALPHA_WORDS = ("loo", "gcv", "evidence")


class SparseModel(LeaveOneOutModel):
    """A model f(x) = sum_j c_j k(x, z_j) + b with few centers; abstract."""

    penalty: str
    selection: str
    n_candidates: int | None
    stop: str | None
    tol: float
    max_centers: int | None
    prune: bool
    shared: bool
    widths: Any

    kernels_ = fitted[tuple[Kernel, ...]]()
    center_kernel_ = fitted[Indices]()
    stages_ = fitted[tuple[SparseStage, ...]]()
    center_path_ = fitted[Any]()

    @logs_fit_time
    @atomic_update
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose kernel, penalty and centers by leave-one-out, and fit.

        Parameters
        ----------
        X : array, data frame, CSR matrix, list of objects or kernel matrix, n rows
        y : array of shape (n,), for a regressor also (n, q)
            Class labels of one type (numbers, strings, Booleans or dates), or real targets.
        sample_weight : array of shape (n,), default=None
            Weights of the rows; ``weights`` sets their meaning.
        """
        spec = replace(common_spec(self, ALPHA_WORDS), alpha=None, sparse=self._settings())
        refuse_blocks(self, X)
        data = self._read_training(X, y, sample_weight)
        result = run(spec, data, generator(self.random_state))
        return self._publish_fit(_attributes(result, spec), spec, data, result)

    def _settings(self) -> SparseSettings:
        """The parameters of the selection, validated."""
        _validation.check_choice("selection", self.selection, SELECTIONS)
        if self.stop is not None:
            _validation.check_choice("stop", self.stop, STOPS)
        penalty = self._penalty()
        alpha, chosen_by = self._alpha(penalty)
        rule = SelectionRule(
            selection="residual" if self.selection == "residual" else "gain",
            n_candidates=self.n_candidates,
            penalty=cast(Any, penalty),
            estimate="evidence" if chosen_by == "evidence" else "gcv",
        )
        return SparseSettings(
            rule=rule,
            stop=cast(Any, self.stop),
            tolerance=self.tol,
            # Squared errors of a regression have long tails, and one standard error is large: a tenth on Boston.
            # Selected by residuals, later centers are no worse than the first.
            standard_errors=1.0 if is_classifier(self) and penalty in ("rkhs", "coef") else 0.0,
            max_centers=self.max_centers,
            alpha=alpha,
            chosen_by=chosen_by,
            prune=bool(self.prune),
            shared=bool(self.shared),
            widen=_widen(self.widths),
        )

    def _penalty(self) -> str:
        """The penalty; selections and widths that support only one raise an error for others."""
        given = _validation.check_choice("penalty", self.penalty, SPARSE_PENALTIES)
        if self.selection == "orthogonal":
            if given not in ("auto", "orthogonal"):
                raise ValueError(
                    f'selection="orthogonal" penalizes the orthogonal coefficients, but penalty={given!r} is '
                    'another penalty; use "auto"'
                )
            return "orthogonal"
        if given == "orthogonal":
            return given
        if self.widths is not None:
            if given not in ("auto", "coef"):
                raise ValueError(
                    f'kernels of several widths have no common norm for penalty={given!r}; use "coef" or "auto"'
                )
            return "coef"
        return "rkhs" if given == "auto" else given

    def _alpha(self, penalty: str) -> tuple[float | None, ChosenBy]:
        """A number, or None and the method that chooses it: "evidence" also decides for "loo" in regression."""
        number = positive_or_word("alpha", self.alpha, ALPHA_WORDS)
        if number is not None:
            return number, "loo"
        if self.alpha == "evidence" and penalty != "orthogonal":
            raise ValueError(
                f'alpha="evidence" is for penalty="orthogonal", not {penalty!r}; use "loo", by which the '
                "evidence decides between fits of a regressor to few rows"
            )
        if self.alpha == "loo" and penalty == "rkhs" and not is_classifier(self):
            return None, "evidence"
        return None, cast(ChosenBy, self.alpha)

    def _expansion(self) -> Callable[[Any], Floats]:
        intercept = np.atleast_1d(self.intercept_)
        coef = np.reshape(self.dual_coef_, (-1, len(intercept)))
        return expansion_of(self.kernels_, self.center_kernel_, self.X_fit_, coef, intercept)

    def _staged_outputs(self, X: Any) -> Iterator[Floats]:
        """f (n, q) with 1, 2, … centers of each selection."""
        check_is_fitted(self)
        # An iterator is read by the first stage, and refused by the second.
        X = read_blocks(self, X) if is_out_of_core(X) else X
        shape = len(self.dual_coef_), len(np.atleast_1d(self.intercept_))
        for s in range(1, max(len(stage.position) for stage in self.stages_) + 1):
            coef, intercept = staged(self.stages_, s, *shape)
            yield self._evaluated(
                X, expansion_of(self.kernels_, self.center_kernel_, self.X_fit_, coef, intercept)
            )


class SparseFisherClassifier(DiscriminantPredictions, HeldOutProbabilities, SparseModel):
    r"""Kernel Fisher discriminant with few centers, selected one after another by the classes.

    Greedy forward selection: orthogonal least squares (OLS), kernel matching pursuit. ``SparseFisherClassifier()``
    needs no parameters; the width is a parameter of the kernel, as in ``SparseFisherClassifier(RBF(gamma=0.1))``.

    Finds f(x) = sum_(j in S) c_j k(x, z_j) + b for the class targets Y (two classes: -1 and +1, more: one
    indicator each) that minimizes

        sum_i w_i |Y_i - f(x_i)|² + alpha c'K_SS c

    over few rows S, which are added one after another (Mika 2002, section 3.5.2; Andelić 2007, section 3.4). One
    triangular factor gives the fits for all numbers of centers. A row is held out, exactly, with centers that were
    selected *without it and its fold*: a row that took part in the selection has left its class in it. These
    outputs determine gamma, alpha, the number of centers, threshold and probabilities.

    Costs O(u c² + c m² + u m²) for u distinct rows, c <= 6000 candidates and a path of m centers, with all rows
    and without each of five folds (three if u > 2000); each of the few kernels between which sparse fits
    decide costs the same with three folds, u <= 6000 and c <= 1500. Predicting costs O(m d) per row.

    Parameters
    ----------
    kernel : str, Kernel, callable or a list of these, default="rbf"
        As in :class:`KernelFisherClassifier`; "rbf" is ``RBF(gamma="loo")``.
    selection : {"gain", "residual", "orthogonal"}, default="gain"
        The next center is the one that lowers the objective most (sparse greedy KFD), the row with the largest
        residual (the nonlinear pseudodiscriminant), or the one that lowers the objective of orthogonal least
        squares most: "gain" with penalty="orthogonal".
    n_candidates : int, default=None
        Number of random rows compared at each step; None: all. 59 include one of the best twentieth with
        probability 0.95.
    stop : {"loo", "gcv", "bic", "residual", "improvement"} or None, default="loo"
        How the number of centers is chosen: the smallest number whose criterion (leave-one-out, generalized
        cross-validation, Bayesian information criterion) is within ``tol`` of the minimum, and for "loo" with the
        penalties "rkhs" and "coef" also the smallest number whose criterion exceeds the minimum by at most the
        standard error of the paired difference;
        the first without a residual above ``tol``; the first at which the mean relative decrease of the objective
        over five steps is below ``tol``. None: the whole path.
    tol : float, default=0.01
        The tolerance of ``stop``.
    max_centers : int, default=None
        Length of the path; None: half of the distinct rows, at most 3000.
    alpha : float, "loo", "gcv" or "evidence", default="loo"
        Penalty; larger is smoother. "loo" chooses it by leave-one-out, each row with centers that were selected
        without its fold; "gcv" by generalized cross-validation. With penalty="orthogonal", "gcv" and "evidence"
        re-estimate it after each center, as in the thesis; other penalties do not have "evidence".
    penalty : {"auto", "rkhs", "coef", "diagonal", "orthogonal"}, default="auto"
        c'K_SS c, c'c, none with alpha added to the value of each center at its own row (Andelić's ε), or the sum
        of squares of the orthogonal coefficients (OROLS; in the thesis with selection="residual"). "auto" is
        "rkhs", or "coef" with ``widths``.
    weights : {"auto", "counts", "importance"}, default="auto"
        What ``sample_weight`` means for leave-one-out: numbers of equal rows, of which one is held out at a time,
        or importance; see :class:`KernelFisherClassifier`.
    prune : bool, default=False
        Whether backward elimination of centers follows, by the same rule.
    shared : bool, default=True
        Whether all classes share the centers; otherwise each class against the rest has its own.
    widths : array of factors, default=None
        Multiples of gamma from which each center gets the best one, with the penalty "coef".
    criterion : {"brier", "log_loss", "error", "squared"}, default="brier"
        What leave-one-out minimizes.
    priors, class_weight, threshold, calibration
        As in :class:`KernelFisherClassifier`.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of the free memory.
    random_state : int, RandomState or None, default=None
        For random candidates, and the random rows and centers with which kernels are compared.
        None is seed 0: equal rows give equal models, to the bit.
    verbose : int, default=0
        From 1 on, a fit ends with a line of its rows, centers and seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m, q), ndarray (q,)
        Centers in the order of their selection, coefficients, intercept.
    support_ : ndarray of shape (m,)
        Which training row each center is.
    center_path_ : SparsePath
        Order, objective, rss, degrees of freedom, gcv, bic and leave-one-out error for every number of centers,
        the center of the row removed as well; one for each class if ``shared`` is False.
    tuning_paths_ : tuple of TuningPath
        Criterion values of the kernels and alphas that were compared, one comparison after another.
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        The chosen values.
    kernels_, center_kernel_ : tuple of Kernel, ndarray of shape (m,)
        Kernels of ``widths``, and the kernel of each center.
    loo_decision_, loo_proba_, loo_outputs_, loo_score_
        Leave-one-out results with centers selected without the fold of the row, as in
        :class:`KernelFisherClassifier`.
    rule_, threshold_, priors_, scalings_, eigenvalues_, explained_variance_ratio_
        As in :class:`KernelFisherClassifier`.
    degrees_of_freedom_ : float
        Trace of the smoother, intercept included; the largest one if ``shared`` is False.
    report_ : Report
        What the fit did, as text.

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

    _moderates = True

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
        penalty: str = "auto",
        weights: str = "auto",
        prune: bool = False,
        shared: bool = True,
        widths: ArrayLike | None = None,
        criterion: str = "brier",
        priors: ArrayLike | dict[Any, float] | None = None,
        class_weight: Any = None,
        threshold: str = "bayes",
        calibration: str = "logistic",
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
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
        self.verbose = verbose

    @reads_one_state
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Labels (n,) with 1, 2, … centers, under the rule of the whole model."""
        for F in self._staged_outputs(X):
            yield self.classes_[self.rule_.probabilities(F).argmax(axis=1)]


class SparseKernelRegressor(RegressorPredictions, HeldOutValues, SparseModel):
    r"""Kernel regression with few centers, selected one after another by the targets.

    Greedy forward selection: orthogonal least squares (OLS), kernel matching pursuit. ``SparseKernelRegressor()``
    needs no parameters; the width is a parameter of the kernel, as in ``SparseKernelRegressor(RBF(gamma=0.1))``.

    Finds f(x) = sum_(j in S) c_j k(x, z_j) + b that minimizes sum_i w_i |y_i - f(x_i)|² + alpha c'K_SS c over few
    rows S, as :class:`SparseFisherClassifier` does for classes; targets of several columns share the centers.

    Parameters
    ----------
    kernel, selection, n_candidates, stop, max_centers, penalty, weights, prune, widths
        As in :class:`SparseFisherClassifier`.
    tol : float, default=0.003
        As in :class:`SparseFisherClassifier`, but for squared errors, and without the rule of one standard error.
    alpha : float, "loo", "gcv" or "evidence", default="loo"
        As in :class:`SparseFisherClassifier`. With the penalty "rkhs" and up to 600 distinct rows, which cannot
        tell similar fits apart, "loo" takes those whose leave-one-out error is within one standard error of the
        minimum, and of these the one with the largest evidence (marginal likelihood) of kernel and alpha.
    max_memory, random_state, verbose
        As in :class:`SparseFisherClassifier`.
    shared : bool, default=True
        Whether all targets share the centers.

    Attributes
    ----------
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers in the order of their selection, coefficients, intercept.
    support_, center_path_, tuning_paths_, kernel_, gamma_, alpha_, kernels_, center_kernel_
        As in :class:`SparseFisherClassifier`.
    degrees_of_freedom_, report_
        As in :class:`SparseFisherClassifier`.
    noise_std_, loo_results_
        As in :class:`KernelRidgeRegressor`; in ``loo_results_`` centers were selected without the fold of the row.
    loo_prediction_ : ndarray of shape (n,) or (n, q)
        Prediction for every training row by the model fitted without it, with centers selected without its fold.
    loo_score_ : float
        Its R²: a little too high where rows are few, since kernel, alpha and centers are the best of many;
        :meth:`nested_score` is not.

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
        alpha: float | str = "loo",
        penalty: str = "auto",
        weights: str = "auto",
        prune: bool = False,
        shared: bool = True,
        widths: ArrayLike | None = None,
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
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
        self.prune = prune
        self.shared = shared
        self.widths = widths
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @reads_one_state
    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Predictions with 1, 2, … centers."""
        for F in self._staged_outputs(X):
            yield self._shaped(F)


def _attributes(result: FitResult, spec: FitSpec) -> dict[str, Any]:
    """The fitted attributes by name."""
    details = result.sparse
    assert details is not None
    return attributes_of(result, spec) | {
        "kernels_": details.kernels,
        "center_kernel_": details.number,
        "stages_": details.stages,
        "center_path_": details.paths[0] if len(details.paths) == 1 else details.paths,
    }


def _widen(widths: Any) -> Callable[[Kernel], tuple[Kernel, ...]]:
    """From a kernel to those that a center may have: multiples of gamma."""

    def widened(kernel: Kernel) -> tuple[Kernel, ...]:
        if widths is None:
            return (kernel,)
        factors = np.atleast_1d(_validation.real("widths", widths))
        if (
            kernel.gamma is None
            or factors.ndim != 1
            or not (factors.size and ((factors > 0) & (factors < np.inf)).all())
        ):
            raise ValueError(
                f"widths={widths!r} multiplies gamma of {kernel!r}; pass positive numbers, and a kernel with gamma"
            )
        return tuple(kernel.narrowed(float(factor)) for factor in factors)

    return widened
