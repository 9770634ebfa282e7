"""Kernel ridge regression with an intercept, leave-one-out, and intervals."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.expansion import Expansion
from mercer.gram import Budget, gram, kernel_blocks, n_rows, self_similarity
from mercer.kernels import Kernel
from mercer.models.base import Fit, KernelModel, Training
from mercer.models.report import fit_report
from mercer.models.validation import (
    consistent,
    coverage_of,
    fold_of_rows,
    penalty_of,
    positive_or_none,
    row_count,
    row_weight,
    warn_of_shift,
)
from mercer.scores import LeftOut, noise_std, prediction_intervals, predictive_std, squared_criterion
from mercer.scores.criteria import Criterion, CriterionFor
from mercer.solvers import Observations, Smoother, make_smoother

Array = NDArray[np.float64]


class KernelRidgeRegressor(MultiOutputMixin, RegressorMixin, KernelModel):
    r"""Kernel ridge regression with a free intercept, tuned by exact leave-one-out.

    Finds f(x) = sum_j c_j k(x, z_j) + b that minimizes sum_i w_i |y_i - f(x_i)|² + alpha c'Kc, for
    all targets at once. One eigendecomposition, O(n³), for each kernel tried gives the solution,
    the leave-one-out output of every row and the degrees of freedom for every alpha. By default
    15 kernels are tried on at most 1000 distinct rows; of more, the best few on at most 3000; the
    chosen one on all. Memory 5 n² numbers.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name, a kernel of :mod:`mercer.kernels`, a function k(X, Z) -> (n, m), or
        "precomputed". "rbf" is ``RBF(gamma="loo")``.
    alpha : float or "loo", default="loo"
        Penalty; larger is smoother. "loo" chooses it by leave-one-out.
    penalty : {"rkhs", "coef"}, default="rkhs"
        c'Kc, or c'c.
    fit_intercept : bool, default=True
        Whether b is free; it is never penalized.
    cv : int, splitter or None, default=None
        Rows that leave together; None: each alone, or by the ``groups`` given to fit.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of what is free.
    random_state : int, RandomState or None, default=None
        For the choice of rows on which kernels are compared, where there are more than 1000.

    Attributes
    ----------
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        What was chosen.
    loo_prediction_ : ndarray of shape (n,) or (n, q)
        Prediction for every training row by the model fitted without it.
    loo_score_ : float
        Its R².
    loo_path_ : Path
        Kernels, alphas and criterion values that were tried.
    noise_std_ : float or ndarray of shape (q,)
        Standard deviation of the noise, from the residuals and the degrees of freedom.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers (the distinct training rows), coefficients, intercept.
    support_ : ndarray of shape (m,)
        Which training row each center is.
    degrees_of_freedom_ : float
        Trace of the smoother, the intercept counted.
    left_out_ : LeftOut
        Residuals of rows left out, from which intervals are made.
    report_ : FitReport
        What was done, in words.

    Examples
    --------
    >>> from mercer import KernelRidgeRegressor
    >>> from mercer.datasets import make_sinc
    >>> X, y = make_sinc(100, random_state=0)
    >>> model = KernelRidgeRegressor().fit(X, y)
    >>> model.predict_interval(X[:3], coverage=0.8).shape
    (3, 2)
    """

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        alpha: float | str = "loo",
        penalty: str = "rkhs",
        fit_intercept: bool = True,
        cv: Any = None,
        max_memory: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.max_memory = max_memory
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Choose kernel and penalty by leave-one-out, and fit.

        Parameters
        ----------
        X : array, CSR matrix, list of objects or kernel matrix, n rows
        y : array of shape (n,) or (n, q)
        sample_weight : array of shape (n,), default=None
            Where all weights are whole numbers they are counts: two is the same as the row twice,
            also in leave-one-out. Other weights say how much a row matters; it leaves as a whole.
        groups : array of shape (n,), default=None
            Rows that leave together.
        """
        X = self._read(X, reset=True)
        targets = _targets(y)
        consistent(X, targets)
        weight = row_weight(sample_weight, X)
        fold = fold_of_rows(self.cv, X, targets, groups, classifier=False)
        training = Training(X, targets.reshape(len(targets), -1), weight, row_count(weight), fold)
        fit = self._fit(training, _criterion(training), intercept=self.fit_intercept)
        self._store_loo(training, fit, one_target=targets.ndim == 1)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """f at each row (n,) or (n, q).

        With ``return_std`` also the standard deviation of a new observation there: noise, and
        the posterior of a Gaussian process with this kernel. Costs O(n³ / 3) once a call and O(n²) a row.
        """
        check_is_fitted(self)
        X = self._read(X, reset=False)
        F = self._shaped(self._expansion()(X))
        if not return_std:
            return F
        variance = np.empty(n_rows(X))
        smooth = self._smoother()
        for rows, K in self._blocks(X):
            variance[rows] = smooth.variance(K, np.asarray(self_similarity(self.kernel_, X[rows]), np.float64))
        return F, self._shaped(predictive_std(np.atleast_1d(self.noise_std_), variance, self.left_out_))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Lower and upper ends (n, 2), or (n, q, 2), of an interval for a new observation at each row.

        The jackknife+ of the leave-one-out residuals: whatever the noise, it covers at least
        1 - 2 (1 - coverage) of exchangeable rows, and close to ``coverage`` in practice. Kernel and
        alpha are held fixed. Costs O(n³ / 3) once a call and O(n²) a row.
        """
        coverage_of(coverage)
        check_is_fitted(self)
        X = self._read(X, reset=False)
        smooth, F = self._smoother(), self._expansion()(X).astype(np.float64)
        ends = np.empty((*F.shape, 2))
        for rows, K in self._blocks(X):
            ends[rows] = prediction_intervals(F[rows], smooth.weights(K), self.left_out_, coverage)
        return ends[:, 0] if self.dual_coef_.ndim == 1 else ends

    def _smoother(self) -> Smoother:
        """Factor the kernel matrix of the centers: what a prediction takes from each of them."""
        if self.kernel_.takes == "values":
            raise ValueError(
                'uncertainty needs kernel values among the training rows, which kernel="precomputed" does not '
                "keep; pass the kernel itself"
            )
        if self.report_.negative > 0:
            raise ValueError(f"uncertainty needs a positive semidefinite kernel, and {self.kernel_!r} is none")
        budget = Budget.from_parameter(positive_or_none("max_memory", self.max_memory))
        K = np.asarray(gram(self.kernel_, self.X_fit_, budget=budget), dtype=np.float64)
        weight = np.bincount(self.left_out_.point, self.left_out_.weight).astype(np.float64)
        penalty = penalty_of(self.penalty)
        smooth = make_smoother(K, weight, self.alpha_, penalty=penalty, intercept=self.fit_intercept)
        warn_of_shift(smooth.factor.shift)
        return smooth

    def _blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Slices of rows and their kernel rows, so few that weights for all training rows fit, too."""
        width = max(len(self.dual_coef_), len(self.left_out_.point))
        for rows, K in kernel_blocks(self.kernel_, X, self.X_fit_, len(self.dual_coef_), width=width):
            yield rows, np.asarray(K, dtype=np.float64)

    def _store_loo(self, training: Training, fit: Fit, *, one_target: bool) -> None:
        used = training.weight > 0
        observations = fit.tuned.observations
        self.left_out_ = LeftOut(
            residual=(training.Y - fit.loo)[used],
            weight=observations.weight,
            count=training.count[used],
            point=observations.rows.point,
            share=_share(observations, fit.tuned.fold),
            fold=fit.tuned.fold,
        )
        residual = (training.Y - fit.fitted)[used]
        noise = noise_std(residual, observations.weight, training.count[used], self.degrees_of_freedom_)
        self.loo_score_ = float(r2_score(training.Y, fit.loo, sample_weight=training.weight))
        self.report_ = fit_report(self, fit.tuned, f"R² {self.loo_score_:.4f}", "squared")
        self.noise_std_ = float(noise[0]) if one_target else noise
        self.loo_prediction_ = fit.loo[:, 0] if one_target else fit.loo
        if one_target:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], self.intercept_[0]

    def _expansion(self) -> Expansion:
        coef: NDArray[np.floating] = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        return Expansion(self.kernel_, self.X_fit_, coef, np.atleast_1d(self.intercept_))

    def _shaped(self, F: NDArray[np.floating]) -> NDArray[np.floating]:
        return F[:, 0] if self.dual_coef_.ndim == 1 else F


def _criterion(training: Training) -> CriterionFor:
    def for_rows(rows: NDArray[np.intp]) -> Criterion:
        return squared_criterion(training.Y[rows], training.weight[rows])

    return for_rows


def _share(observations: Observations, fold: NDArray[np.intp] | None) -> Array:
    """The part of its point's weight that leaves with a row: all of it when folds leave."""
    leaving = observations.unit if fold is None else observations.weight
    share: Array = leaving / observations.point_weight[observations.rows.point]
    return share


def _targets(y: ArrayLike) -> Array:
    """Finite real targets of one or two dimensions."""
    if y is None:
        raise ValueError("KernelRidgeRegressor requires y to be passed, but the target y is None")
    targets: Array = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return targets
