"""Kernel machines: any loss with any penalty, fitted as one convex program."""

from dataclasses import replace
from typing import Any, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from mercer import _validation
from mercer._estimators.attributes import attributes_of
from mercer._estimators.dask_methods import supports_dask
from mercer._estimators.fitted import atomic_update, fitted, reads_one_state
from mercer._estimators.leave_one_out import LeaveOneOutModel
from mercer._estimators.parameters import common_spec, generator, quantiles_of, real_targets, row_weight, share
from mercer._estimators.predictions import HeldOutProbabilities, NoveltyPredictions, RegressorPredictions
from mercer._estimators.report import logs_fit_time, loss_words
from mercer._fitting.result import FitResult
from mercer._fitting.run import run
from mercer._fitting.spec import AnyPenalty, FitSpec, LossChoice
from mercer._scores.targets import RealTargets, uncrossed
from mercer._types import Array, Floats, Indices
from mercer.kernels import Kernel
from mercer.rows._sampling.random_sample import Labels

CLASS_LOSSES = ("logistic", "squared", "huber", "absolute", "epsilon_insensitive", "hinge", "squared_hinge")
VALUE_LOSSES = ("huber", "squared", "absolute", "epsilon_insensitive", "pinball")
# Rows that are held out of fits in passes.
LOO_ROWS = 10_000


class MachineModel(LeaveOneOutModel):
    """A model f(x) = sum_j c_j k(x, z_j) + b with any loss and penalty; abstract."""

    loss: str
    penalty: str
    l1_ratio: float
    delta: float | None
    epsilon: float | None
    centers: Any

    gap_ = fitted[float]()
    loo_index_ = fitted[Indices]()

    @logs_fit_time
    @atomic_update
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose kernel and alpha by leave-one-out, and solve the program.

        Parameters
        ----------
        X : array, data frame, CSR matrix, list of objects or kernel matrix, n rows
            Or, for smooth losses, out-of-core rows, as in :meth:`KernelFisherClassifier.fit`.
        y : array of shape (n,), for a regressor also (n, q)
            Class labels of one type (numbers, strings, Booleans or dates), or real targets; for a path, the name
            of the column.
        sample_weight : array of shape (n,), default=None
            Weights of the rows in the loss; ``weights`` sets their meaning for leave-one-out.
        """
        spec, rng = self._spec(), generator(self.random_state)
        data = self._read_training(X, y, sample_weight)
        result = run(spec, data, rng)
        return self._publish_fit(self._attributes(result, spec), spec, data, result)

    def _spec(self) -> FitSpec:
        _validation.check_choice("penalty", self.penalty, get_args(AnyPenalty))
        l1_share = {"l1": 1.0, "elastic_net": share("l1_ratio", self.l1_ratio)}.get(self.penalty, 0.0)
        return replace(
            common_spec(self),
            penalty=cast(Any, self.penalty),
            loo_rows=LOO_ROWS,
            loss=self._loss(),
            l1_share=l1_share,
        )

    def _loss(self) -> LossChoice:
        _validation.check_choice("loss", self.loss, CLASS_LOSSES if is_classifier(self) else VALUE_LOSSES)
        return LossChoice(self.loss, {"huber": self.delta, "epsilon_insensitive": self.epsilon}.get(self.loss))

    def _attributes(self, result: FitResult, spec: FitSpec) -> dict[str, Any]:
        """The fitted attributes by name."""
        program = result.program
        assert program is not None
        words = f"{loss_words(self.loss, program.losses)} with the penalty {self.penalty}"
        return attributes_of(result, spec, words) | {"gap_": program.gap, "loo_index_": result.index}


class KernelMachineClassifier(NoveltyPredictions, HeldOutProbabilities, MachineModel):
    r"""Classifier with any loss and penalty: support vector machine, logistic regression, robust and sparse KFD.

    ``KernelMachineClassifier()`` needs no parameters; the width is a parameter of the kernel, as in
    ``KernelMachineClassifier(RBF(gamma=0.1))``.

    Finds f(x) = sum_j c_j k(x, z_j) + b for labels y = -1, +1 (more classes: each against the rest) that minimizes

        sum_i w_i loss(y_i, f(x_i)) + alpha penalty(f),

    the program behind kernel Fisher discriminants, support vector machines and their relatives (Mika 2002,
    sections 3.4.7 to 3.6). Kernel and alpha are chosen by leave-one-out, found from the fit to all rows, with the
    logistic loss by held-out folds. Where leave-one-out is not exact at the chosen alpha, with "l1" or
    "elastic_net" and for non-smooth losses with "coef", rows are fitted without, one at a time, or of many in ten
    folds. That of the logistic loss is approximate. It also gives the probabilities. Solutions carry their duality
    gap.

    ==================  ==============  ==================================
    loss                penalty         what it is
    ==================  ==============  ==================================
    "squared"           "rkhs"          kernel Fisher discriminant, LS-SVM
    "squared"           "l1"            sparse KFD (SKFD)
    "absolute"          "l1"            linear sparse KFD (LSKFD)
    "absolute"          "rkhs"          robust KFD
    "huber"             "rkhs"          robust KFD with Huber's loss
    "hinge"             "rkhs"          support vector machine
    "hinge"             "l1"            linear programming machine
    "squared_hinge"     "rkhs"          L2-SVM
    "logistic"          "rkhs"          kernel logistic regression
    "logistic"          "l1"            sparse kernel logistic regression
    ==================  ==============  ==================================

    Costs O(n m² + m³) for every step of a solver with n rows and m centers, some hundred of them in all, and
    memory of 4 n m numbers; with the logistic loss some thousand gradients of O(n m) and a few such steps. With
    the losses "logistic", "squared", "huber" and "squared_hinge" and the penalties "rkhs" and "coef", more than
    2000 rows, and out-of-core rows, are fitted in few passes instead, a Newton step each, with memory for m²
    numbers; with the logistic loss only if there are ten times as many rows as centers, or more than 10⁷ kernel
    values. Rows cannot be added later: the losses' moments change with f.

    Parameters
    ----------
    kernel : str, Kernel, callable or a list of these, default="rbf"
        As in :class:`KernelFisherClassifier`; "rbf" is ``RBF(gamma="loo")``.
    loss : {"logistic", "squared", "huber", "absolute", "epsilon_insensitive", "hinge", "squared_hinge"}
        log(1 + exp(-y f)) (the default); (y - f)²/2; the same up to |y - f| = delta, linear beyond, divided by
        delta; |y - f|; max(0, |y - f| - epsilon); max(0, 1 - y f); its square / 2.
    penalty : {"rkhs", "coef", "l1", "elastic_net"}, default="rkhs"
        Half of the squared norm c'Kc, half of c'c, sum_j \|c_j\|, or a mixture of the last two. The last two make
        coefficients zero: the model keeps few centers.
    alpha : float or "loo", default="loo"
        Penalty; larger is smoother, 1/C of a support vector machine. "loo": chosen by leave-one-out, with the
        logistic loss by held-out folds; of sparse models the largest one that is not worse than the best by more
        than half a standard error.
    l1_ratio : float, default=0.5
        The part of sum_j \|c_j\| in "elastic_net".
    delta, epsilon : float or None, default=None
        Width of Huber's loss, and the tolerance; None: 1.345 and 0.612.
    centers : "auto", "all", int, selector or rows, default="auto"
        Rows that may have coefficients. "auto": all up to 1000 rows ("rkhs") or 2000 (other penalties), and so
        many random ones of more.
    weights, criterion, priors, class_weight, threshold, calibration
        As in :class:`KernelFisherClassifier`.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of the free memory.
    random_state : int, RandomState or None, default=None
        For random centers, and the rows on which kernels are compared.
        None is seed 0: equal rows give equal models, to the bit.
    verbose : int, default=0
        From 1 on, phases that take longer than a second show their progress on stderr, and a fit ends with a line
        of its rows, centers and seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m, q), ndarray (q,)
        Centers with coefficients, these, and intercepts; q = 1 for two classes.
    support_ : ndarray of shape (m,) or None
        Which training row each center is; None if centers were given.
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        The chosen values.
    tuning_paths_ : tuple of TuningPath
        Criterion values of the kernels and alphas that were compared, one comparison after another: last of the
        alphas of the final fit.
    gap_ : float
        The duality gap, recomputed, as a share of the objective of f = 0; after passes, what the last step gains.
    loo_index_ : ndarray
        Training rows with leave-one-out predictions: all, or in passes at most 10,000.
    loo_decision_, loo_proba_, loo_outputs_, loo_score_
        Leave-one-out results, as in :class:`KernelFisherClassifier`. Up to 2000 rows those of refitting for
        "squared", and with the penalty "rkhs" for "huber", "squared_hinge" and non-smooth losses: the path of the
        fit is followed as a row leaves, with at most 500 bends for a row and 20 on average, and straight on from
        there. Otherwise approximate, by Newton steps: several for up to 100 rows with the logistic loss, one for
        the others; with other penalties, and for more rows, non-smooth losses have small arcs for their kinks. If
        targets selected the centers, each row is held out of a fit whose centers were selected without its fold, a
        fifth of the rows.
    rule_, threshold_, priors_, unexplained_variance_, degrees_of_freedom_
        As in :class:`KernelFisherClassifier`.
    report_ : Report
        What the fit did, as text.

    References
    ----------
    S. Mika (2002), Kernel Fisher Discriminants, TU Berlin. K. Rad and A. Maleki (2020), A scalable estimate of the
    out-of-sample prediction error via approximate leave-one-out cross-validation, JRSS B 82.

    Examples
    --------
    >>> from mercer import KernelMachineClassifier
    >>> from mercer.datasets import make_banana
    >>> X, y = make_banana(200, random_state=0)
    >>> sparse = KernelMachineClassifier(loss="squared", penalty="l1", random_state=0).fit(X, y)
    >>> len(sparse.support_) < 40
    True
    """

    _moderates = True
    _has_directions = False

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        loss: str = "logistic",
        penalty: str = "rkhs",
        alpha: float | str = "loo",
        l1_ratio: float = 0.5,
        delta: float | None = None,
        epsilon: float | None = None,
        centers: Any = "auto",
        weights: str = "auto",
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
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.delta = delta
        self.epsilon = epsilon
        self.centers = centers
        self.weights = weights
        self.criterion = criterion
        self.priors = priors
        self.class_weight = class_weight
        self.threshold = threshold
        self.calibration = calibration
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose


class KernelMachineRegressor(RegressorPredictions, MachineModel):
    r"""Regression with any loss and penalty: robust, sparse and quantile regression, support vector regression.

    ``KernelMachineRegressor()`` needs no parameters; the width is a parameter of the kernel, as in
    ``KernelMachineRegressor(RBF(gamma=0.1))``.

    Finds f(x) = sum_j c_j k(x, z_j) + b that minimizes sum_i w_i loss(y_i, f(x_i)) + alpha penalty(f), as
    :class:`KernelMachineClassifier` does; kernel and alpha are chosen by leave-one-out.

    ======================  ==============  ======================================================
    loss                    penalty         what it is
    ======================  ==============  ======================================================
    "huber"                 "rkhs"          robust regression: outliers pull with a bounded force
    "squared"               "rkhs"          kernel ridge regression
    "squared"               "l1"            lasso on kernel values
    "absolute"              "rkhs"          median regression
    "epsilon_insensitive"   "rkhs"          support vector regression
    "epsilon_insensitive"   "l1"            linear programming regression
    "pinball"               any             quantile regression
    ======================  ==============  ======================================================

    Parameters
    ----------
    kernel : str, Kernel, callable or a list of these, default="rbf"
        As in :class:`KernelRidgeRegressor`; "rbf" is ``RBF(gamma="loo")``.
    loss : {"huber", "squared", "absolute", "epsilon_insensitive", "pinball"}, default="huber"
        Leave-one-out minimizes squared errors for "squared", the pinball loss for "pinball", otherwise absolute
        errors.
    penalty, alpha, l1_ratio, centers, weights, max_memory, random_state, verbose
        As in :class:`KernelMachineClassifier`.
    delta, epsilon : float or None, default=None
        Width of Huber's loss, and the tolerance; None: 1.345 and 0.612 standard deviations of the noise, estimated
        from leave-one-out residuals of a least-squares fit.
    quantile : float or list of floats, default=0.5
        For "pinball": between 0 and 1. Several quantiles are several outputs with one kernel and alpha;
        predictions are in the order of the quantiles, sorted so that they do not cross (Chernozhukov et al. 2010).

    Attributes
    ----------
    X_fit_, dual_coef_, intercept_, support_, kernel_, gamma_, alpha_, tuning_paths_, gap_, loo_index_
        As in :class:`KernelMachineClassifier`; so is ``degrees_of_freedom_``.
    loo_prediction_ : ndarray of shape (n,) or (n, q)
        Leave-one-out predictions.
    loo_score_ : float
        Their R²; for "pinball", the share of the loss of constant quantiles that is saved (D²).
    report_ : Report
        What the fit did, as text.

    Examples
    --------
    >>> from mercer import KernelMachineRegressor
    >>> from mercer.datasets import make_sinc
    >>> X, y = make_sinc(100, random_state=0)
    >>> bands = KernelMachineRegressor(loss="pinball", quantile=[0.1, 0.5, 0.9], random_state=0).fit(X, y)
    >>> bands.predict(X[:2]).shape
    (2, 3)
    """

    loo_prediction_ = fitted[Array]()

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        loss: str = "huber",
        penalty: str = "rkhs",
        alpha: float | str = "loo",
        l1_ratio: float = 0.5,
        delta: float | None = None,
        epsilon: float | None = None,
        quantile: float | list[float] = 0.5,
        centers: Any = "auto",
        weights: str = "auto",
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.delta = delta
        self.epsilon = epsilon
        self.quantile = quantile
        self.centers = centers
        self.weights = weights
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @supports_dask
    @reads_one_state
    def predict(self, X: Any) -> Floats:
        """f at each row (n,) or (n, q); quantiles in ascending order do not cross."""
        F, levels = self._outputs(X), quantiles_of(self.quantile)
        if self.loss == "pinball" and len(levels) > 1:
            F = uncrossed(F, levels)
        return self._shaped(F)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions; for "pinball" the share of the loss of constant quantiles that is saved (D²)."""
        if self.loss != "pinball":
            return float(super().score(X, y, sample_weight))
        y = real_targets(y, self)
        return self._saved(y, self.predict(X), row_weight(sample_weight, len(y)))

    def _expected_score(
        self, y: NDArray[Any], predicted: Floats, weight: Array, fold: Indices | None = None
    ) -> float:
        if self.loss == "pinball":
            return self._saved(y, predicted, weight)
        return super()._expected_score(y, predicted, weight, fold)

    def _saved(self, y: NDArray[Any], predicted: Floats, weight: Array) -> float:
        """The share of the loss of constant quantiles that predictions save."""
        targets = self._targets_of(y, None, None)
        return targets.score(targets.repeated(y), predicted.reshape(len(y), -1).astype(np.float64), weight)

    def _targets_of(self, y: Any, labels: Labels | None, declared: ArrayLike | None) -> RealTargets:
        """Real targets in the shape of y, and what is minimized."""
        if self.loss != "pinball":
            if np.any(np.asarray(self.quantile) != 0.5):
                raise ValueError(
                    f"quantile={self.quantile} is for loss='pinball', not loss={self.loss!r}; write loss='pinball'"
                )
            return RealTargets(np.shape(y)[1:], "squared" if self.loss == "squared" else "absolute")
        levels, shape = quantiles_of(self.quantile), np.shape(y)[1:]
        if shape != () and len(levels) > 1:
            raise ValueError(
                f"y has shape {np.shape(y)}, but several quantiles are those of one target; pass y of shape "
                f"({len(y)},), or one quantile"
            )
        return RealTargets(shape, "pinball", levels * (shape[0] if shape else 1))

    def _loss(self) -> LossChoice:
        choice = super()._loss()
        if self.loss != "pinball":
            return choice
        return LossChoice("pinball", None, quantiles_of(self.quantile))
