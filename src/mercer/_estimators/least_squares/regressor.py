"""Kernel ridge regression with an intercept, leave-one-out, and intervals."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import _validation
from mercer._estimators.dask_methods import supports_dask_whole
from mercer._estimators.fitted import Fitted, atomic_update, reads_one_state
from mercer._estimators.least_squares.contributions import ColumnContributions
from mercer._estimators.nested_score import NestedScore
from mercer._estimators.predictions import HeldOutValues, RegressorPredictions
from mercer._fitting.moments import with_changes
from mercer._gram import Budget
from mercer._scores.uncertainty.intervals import selection_bias, warn_of_few_rows
from mercer._scores.uncertainty.regression import Uncertainty
from mercer._types import Array, Floats
from mercer.kernels import Kernel
from mercer.rows._virtual import Copies

# Up to this number of rows it matters for intervals that kernel and alpha were chosen by their residuals.
BIASED_ROWS = 300


class KernelRidgeRegressor(RegressorPredictions, HeldOutValues, ColumnContributions):
    r"""Kernel ridge regression with a free intercept, tuned by exact leave-one-out.

    ``KernelRidgeRegressor()`` needs no parameters. To set them: gamma belongs to the kernel,
    ``KernelRidgeRegressor(RBF(gamma=0.1))``, and ``alpha`` has the same meaning as in scikit-learn's
    ``KernelRidge``.

    Finds f(x) = sum_j c_j k(x, z_j) + b that minimizes sum_i w_i |y_i - f(x_i)|² + alpha c'Kc, for all targets at
    once (a least-squares SVM for regression, or the mean of a Gaussian process). The leave-one-out outputs of all
    rows (PRESS) are exact and come at no extra cost: they are used to choose gamma and alpha, and for intervals.

    Kernels are compared, and centers selected, as by :class:`KernelFisherClassifier`: with every row as a center a
    fit costs O(n³) time and 3 n² to 5 n² numbers of memory; with m centers (Nyström landmarks, inducing points, a
    subset-of-regressors approximation) it is one pass over rows from any source, O(n m²) time and O(m²) memory.

    Parameters
    ----------
    kernel : str, Kernel, callable or a list of these, default="auto"
        A name, a kernel of :mod:`mercer.kernels`, a function k(X, Z) -> (n, m), or
        "precomputed". "rbf" is ``RBF(gamma="loo")``. From a list, leave-one-out chooses: the first one, unless
        another is better by a standard error. "auto" is a Gaussian or a Laplacian kernel of features divided by
        their standard deviations, as they are, or in normal scores of their ranks, so that they may have any
        units: see :class:`~mercer.kernels.Standardized` and :class:`~mercer.kernels.RankNormal`.
    columns : dict, default=None
        What columns of a raw table are, by name, of arrays by position: "number", "category", "text", "date" or
        "drop". Others are what the rule of columns says, see ``columns_``.
    alpha : float or "loo", default="loo"
        Penalty; larger is smoother. "loo" chooses it by exact leave-one-out, or by the rows held out together with
        ``cv`` or ``groups``.
    centers : "auto", "all", int, selector or array, default="auto"
        "all": every distinct row; a number, a selector of :mod:`mercer.centers`, or m rows; "auto": as many as are
        enough, as in :class:`KernelFisherClassifier`.
    weights, cv, invariances, mu, relevance, loo_rows, max_memory, random_state, verbose
        As in :class:`KernelFisherClassifier`.
    penalty : {"rkhs", "coef"}, default="rkhs"
        c'Kc, or c'c.
    fit_intercept : bool, default=True
        Whether to fit b, which is never penalized.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_columns,)
        Shares of the columns in what exchanging each of them costs rows that are held out; zero where that is not
        certain. Computed when it is read, for models with every row a center: see :meth:`importances`.
    columns_ : TableEncoding
        What each column of a raw table has become, as text: ``print(model.columns_)``. Only if X had text,
        categories, dates or missing values.
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        The chosen values.
    mu_, kernel_weights_, relevance_, tuning_paths_, support_, loo_index_, moments_, degrees_of_freedom_
        As in :class:`KernelFisherClassifier`.
    loo_prediction_ : ndarray of shape (n,) or (n, q)
        Prediction for every training row by the model fitted without it.
    loo_score_ : float
        R² of ``loo_prediction_``: a little too high where rows are few, since kernel and alpha are the best of
        many; :meth:`nested_score` is not.
    noise_std_ : float or ndarray of shape (q,)
        Standard deviation of the noise, from the residuals and the degrees of freedom.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers (with ``centers="all"`` the distinct training rows), coefficients, intercept.
    loo_results_ : LooResults
        Leave-one-out residuals, from which intervals are computed.
    report_ : Report
        What the fit did, as text.

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
        kernel: str | Kernel | Any = "auto",
        *,
        columns: Mapping[Any, str] | None = None,
        alpha: float | str = "loo",
        centers: Any = "auto",
        penalty: str = "rkhs",
        weights: str = "auto",
        fit_intercept: bool = True,
        cv: Any = None,
        invariances: Any = None,
        mu: float | str | None = None,
        relevance: Any = "auto",
        loo_rows: int | None = 10_000,
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.columns = columns
        self.alpha = alpha
        self.centers = centers
        self.penalty = penalty
        self.weights = weights
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.invariances = invariances
        self.mu = mu
        self.relevance = relevance
        self.loo_rows = loo_rows
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @atomic_update
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, decay: float = 1.0) -> Self:
        """Add rows to the fit; for any batches, the model is that of ``fit`` on all of them.

        The first call chooses kernel and centers on its rows, unless they are given; all calls add to the moments,
        O(b m²) for b rows, and solving, O(m³), is deferred until a result is needed. After a ``fit`` with every
        row as a center, its rows come first.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
            The meaning of the weights of all rows so far is decided when the model is solved: a batch, or
            ``decay``, may turn counts into importance if ``weights="auto"``.
        decay : float, default=1.0
            Factor by which the weights of all previous rows are multiplied: below one they are gradually
            forgotten, and so are rows of the sample.
        """
        return self._add(X, y, sample_weight, decay)

    @reads_one_state
    def lean(self) -> Self:
        """A copy that can only predict: without leave-one-out results of training rows, and the moments and
        rows from which the fit could be continued.

        For up to 300 rows intervals are those of the model: the selection bias is computed, if it was not
        before. With fewer centers than rows there are no intervals and standard deviations.
        """
        return super().lean()

    def _lean_state(self) -> Fitted:
        lean = super()._lean_state()
        if hasattr(self, "loo_results_") and self.loo_results_.point is not None:
            attributes = dict(lean.attributes) | {"loo_results_": self.loo_results_}
            details = replace(lean.details, selection_bias=self._bias_of_selection())
            return replace(lean, attributes=attributes, details=details)
        return lean

    @supports_dask_whole
    @reads_one_state
    def predict_std(self, X: Any) -> Floats:
        """Standard deviation (n,) or (n, q) of a new observation at each row.

        It includes the noise and the posterior of a Gaussian process with this kernel. Costs O(m³ / 3) once per
        call and O(m²) per row.
        """
        check_is_fitted(self)
        self._refuse_lean()
        uncertainty, noise = self._uncertainty(), np.atleast_1d(self.noise_std_)
        return self._shaped(self._evaluated(X, lambda rows: uncertainty.std(rows, noise)))

    @supports_dask_whole
    @reads_one_state
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Lower and upper ends (n, 2), or (n, q, 2), of an interval for a new observation at each row.

        The jackknife+ of leave-one-out residuals with a local scale: each is divided by its standard deviation for
        the model without its row, and multiplied by that of the new row, so that intervals widen away from the
        data; where the residuals of neighbors are larger or smaller than others, so are intervals. On average over
        training sets they cover close to ``coverage`` of new rows; this is measured, not proved. Ranks of
        residuals are rounded so that few rows cover rather more, and with fewer than 1 / (1 - coverage) - 1 rows
        the ends are infinite, with an :class:`~mercer.errors.IntervalWarning`.

        Residuals of a model that was chosen by them are too small: for up to 300 rows this selection bias is
        found by nested cross-validation, ten fits at the first call. With more rows it is too small to matter.

        Costs O(n³) once per call and O(n²) per row. With m centers the jackknife, because one of many rows hardly
        changes f: O(m³) and O(m²) for each of the rows held out once per call, and O(m²) per row.
        """
        check_is_fitted(self)
        _validation.check_number("coverage", coverage, "a number between 0 and 1", above=0.0, below=1.0)
        self._refuse_lean()
        f, uncertainty = self._expansion(), self._uncertainty()
        warn_of_few_rows(self.loo_results_, coverage)
        ends = self._evaluated(X, lambda rows: uncertainty.intervals(rows, f(rows).astype(np.float64), coverage))
        return self._shaped(ends)

    def _uncertainty(self) -> Uncertainty:
        fit = self._continuation
        return Uncertainty(
            kernel=self.kernel_,
            centers=self.X_fit_,
            alpha=self.alpha_,
            penalty=fit.penalty,
            intercept=fit.intercept,
            loo_results=self.loo_results_,
            negative=self.report_.negative or 0.0,
            moments=lambda: with_changes(self._moments, self._known_sums().additive.changes, self.mu_),
            rows=lambda: self._known_sums().rows_of(self.loo_index_),
            bias=self._bias_of_selection,
            budget=Budget.from_parameter(self.max_memory),
            copies=self._copies,
        )

    @property
    def _copies(self) -> Copies | None:
        """What leaves with a row, if it is not lean."""
        sums = self._continuation.sums
        if sums is None:
            return None
        tangents = sums.spec.tangents
        return replace(tangents, mu=self.mu_) if tangents and self.mu_ else sums.spec.copies

    def _bias_of_selection(self) -> Array:
        """Factor (q,) of leave-one-out residuals; ones if nothing was chosen, or by many rows."""
        assert self._fitted is not None
        nested, known = self._fitted.nested, self._continuation.selection_bias
        if known is not None:
            return known
        if not isinstance(nested, NestedScore) or len(nested.y) > BIASED_ROWS:
            return np.ones(self.loo_results_.residual.shape[1])
        residual = (nested.y - nested.predicted)[nested.outer >= 0]
        return selection_bias(self.loo_results_, residual.reshape(len(residual), -1))

    def _refuse_lean(self) -> None:
        if self._fitted is not None and self._fitted.is_lean and not hasattr(self, "loo_results_"):
            raise ValueError(
                "standard deviations and intervals of a fit with centers need its moments and rows, which a lean "
                "copy does not have; use the model it is a copy of"
            )
