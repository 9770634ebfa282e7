"""Kernel ridge regression with an intercept, leave-one-out, and intervals."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import _validation
from mercer._estimators.dask_methods import supports_dask_whole
from mercer._estimators.fitted import Fitted, atomic_update, reads_one_state
from mercer._estimators.least_squares.model import LeastSquaresModel
from mercer._estimators.nested_score import NestedScore
from mercer._estimators.predictions import HeldOutValues, RegressorPredictions
from mercer._fitting.moments import with_changes
from mercer._gram import Budget
from mercer._gram.moments import Moments
from mercer._scores.uncertainty.intervals import selection_bias, warn_of_few_rows
from mercer._scores.uncertainty.regression import Uncertainty
from mercer._types import Array, Floats
from mercer.kernels import Kernel
from mercer.rows._virtual import Copies

# Up to this number of rows it matters for intervals that kernel and alpha were chosen by their residuals.
BIASED_ROWS = 300


class KernelRidgeRegressor(RegressorPredictions, HeldOutValues, LeastSquaresModel):
    r"""Kernel ridge regression with a free intercept, tuned by exact leave-one-out.

    ``KernelRidgeRegressor()`` needs no parameters. To set them: gamma belongs to the kernel,
    ``KernelRidgeRegressor(RBF(gamma=0.1))``, and ``alpha`` has the same meaning as in scikit-learn's
    ``KernelRidge``.

    Finds f(x) = sum_j c_j k(x, z_j) + b that minimizes sum_i w_i |y_i - f(x_i)|² + alpha c'Kc, for all targets at
    once (a least-squares SVM for regression, or the mean of a Gaussian process). The leave-one-out outputs of all
    rows (PRESS) are exact and come at no extra cost: they are used to choose gamma and alpha, and for intervals.

    Kernels, by default 15, are compared by leave-one-out of small fits with 240 random centers to at most 2000
    rows, and the best of them with more if that could change the choice. With every row as a center, the fit
    with the best one costs O(n³): an eigendecomposition for up to 600 distinct rows, for more a Cholesky
    factor for each of a few alphas. Memory is 3 n² to 5 n² numbers (``penalty="coef"``: 10 n²). With m centers
    (Nyström landmarks, inducing points, a subset-of-regressors approximation), selected or given, the fit is
    one pass over rows from any source: O(n m²) time, memory of O(m²) numbers.

    Parameters
    ----------
    kernel : str, Kernel, callable or a list of these, default="rbf"
        A name, a kernel of :mod:`mercer.kernels`, a function k(X, Z) -> (n, m), or
        "precomputed". "rbf" is ``RBF(gamma="loo")``. From a list, leave-one-out chooses one.
    alpha : float or "loo", default="loo"
        Penalty; larger is smoother. "loo" chooses it by exact leave-one-out, or by the rows held out together with
        ``cv`` or ``groups``.
    centers : "auto", "all", int, selector or array, default="auto"
        The centers of the model. "all": every distinct row. A number: up to 1000 centers are selected by the
        targets, more are drawn at random; a selector of :mod:`mercer.centers`; or the centers themselves, m rows.
        "auto": every distinct row for up to 2000 rows; for more, as many centers as are enough by leave-one-out on
        a sample. Up to 10,000 rows these are all rows, unless a quarter or less is enough; beyond, at most 4000
        for up to 250,000 rows, 2000 for a million. With centers the fit is one pass over the rows: O(n m²) time,
        O(m²) memory.
    penalty : {"rkhs", "coef"}, default="rkhs"
        c'Kc, or c'c.
    weights : {"auto", "counts", "importance"}, default="auto"
        What ``sample_weight`` means for leave-one-out and the choices based on it. "counts": integers, the
        number of equal rows that a row represents; one copy is held out at a time. "importance": how
        much a row matters; it is held out as a whole, and the unit of the weights does not matter.
        "auto": counts if all weights are integers of at most 10 that are not all equal to the same number above
        1; importance otherwise. If integers are ambiguous and the score depends on their meaning, a
        :class:`~mercer.errors.WeightWarning` states which one was used, and how to set it.
    fit_intercept : bool, default=True
        Whether to fit b, which is never penalized.
    cv : int, splitter or None, default=None
        Rows that are held out together; None: single rows, or the ``groups`` passed to fit. A number of folds
        does not part groups. Only rows of a group count as dependent, not those of a fold.
    invariances : list of functions, default=None
        Transformations that do not change the target, such as ``mercer.invariances.shifts()`` for images: each
        takes rows, as an array, and returns as many transformed rows, each by itself and always the same.
        Transformed copies (virtual rows) join the fit, may become centers, share the weight of their row, and are
        held out together with it; only rows themselves are evaluated. A number of ``centers`` is then drawn at
        random from rows and copies.
    mu : float, "loo" or None, default=None
        None: copies join the fit. Otherwise changes of f under the ``invariances`` are penalized instead, by mu
        sum_i w_i |f(Tx_i) - f(x_i)|², averaged over the transformations T (tangent covariance, Mika 2002, Eq.
        3.23): one more pass; centers are rows. "loo" chooses among 0, 0.01, 0.1, 1 and 10 by leave-one-out.
    relevance : "diagonal", array-like of shape (n_features,) or None, default=None
        "diagonal": the kernel gets one gamma for each feature (automatic relevance determination, ARD), in
        proportion to the mean squared derivative of the fit, if rows that had no part in it are predicted
        better for that; otherwise all features are alike, as with None. Learned from at most 5000 rows, with
        centers from at most half of the sample, in a few times the time of the fit to 1000 rows. Labels in place
        of "diagonal" name the group of each feature: features of one group, such as the indicators of one
        categorical variable, have one relevance.
    loo_rows : int or None, default=10000
        With centers: number of rows drawn at random on which the kernel is chosen, and for which leave-one-out
        predictions from the fit to all rows are computed. None: all of them. Centers are selected among these
        rows, or among twice as many rows as centers.
    max_memory : float, default=None
        GiB that the fit may allocate besides X and y; None: four fifths of the free memory. Checked before the
        search. With centers, a small budget costs time, kernels are compared on fewer rows, centers selected among
        fewer candidates, and "auto" means fewer centers, as ``report_`` states.
    random_state : int, RandomState or None, default=None
        For the rows and centers with which kernels are compared, and for the selection of centers.
        None is seed 0: equal rows give equal models, to the bit.
    verbose : int, default=0
        From 1 on, phases of a fit that take longer than a second show their progress on stderr: the sample, the
        comparison of kernels, the selection of centers, the pass over the rows, decompositions, leave-one-out.
        On a terminal a line is renewed, or tqdm shows a bar if it is installed; in a file there is a line every 20
        seconds. Every fit ends with a line of its rows and seconds.

    Attributes
    ----------
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        The chosen values.
    mu_ : float or None
        The weight of changes under ``invariances``; None: there is no such penalty.
    kernel_weights_ : dict or None
        Shares of the kernels of a :class:`~mercer.kernels.WeightedSum`, by name; None: the kernel is not one.
    relevance_ : ndarray of shape (n_features,) or None
        Shares of the features in the squared derivatives, which sum to one: all equal if no differences were
        found; None: not learned. gammas are proportional to them.
    loo_prediction_ : ndarray of shape (n,) or (n, q)
        Prediction for every training row by the model fitted without it.
    loo_score_ : float
        R² of ``loo_prediction_``: a little too high where rows are few, since kernel and alpha are the best of
        many; :meth:`nested_score` is not.
    tuning_paths_ : tuple of TuningPath
        Criterion values of the kernels and alphas that were compared, one comparison after another: first of all
        kernels, by fits with few centers, last of the alphas of the final fit.
    noise_std_ : float or ndarray of shape (q,)
        Standard deviation of the noise, from the residuals and the degrees of freedom.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers (with ``centers="all"`` the distinct training rows), coefficients, intercept.
    support_ : ndarray of shape (m,) or None
        Which training row each center is; None if centers are not training rows.
    loo_index_ : ndarray
        Training rows with leave-one-out predictions: all, or with centers at most ``loo_rows``.
    moments_ : Moments
        With centers: the sums over all rows that determine the model (sufficient statistics).
    degrees_of_freedom_ : float
        Trace of the smoother, intercept included.
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
        kernel: str | Kernel | Any = "rbf",
        *,
        alpha: float | str = "loo",
        centers: Any = "auto",
        penalty: str = "rkhs",
        weights: str = "auto",
        fit_intercept: bool = True,
        cv: Any = None,
        invariances: Any = None,
        mu: float | str | None = None,
        relevance: Any = None,
        loo_rows: int | None = 10_000,
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
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
        return Uncertainty(
            self.kernel_,
            self.X_fit_,
            self.alpha_,
            self._continuation.penalty,
            self._continuation.intercept,
            self.loo_results_,
            self.report_.negative or 0.0,
            self._moments_of_rows,
            self._loo_rows,
            self._bias_of_selection,
            Budget.from_parameter(self.max_memory),
            self._copies,
        )

    def _moments_of_rows(self) -> Moments:
        return with_changes(self._moments, self._known_sums().additive.changes, self.mu_)

    @property
    def _copies(self) -> Copies | None:
        """What leaves with a row, if it is not lean."""
        sums = self._continuation.sums
        if sums is None:
            return None
        tangents = sums.spec.tangents
        return replace(tangents, mu=self.mu_) if tangents and self.mu_ else sums.spec.copies

    def _loo_rows(self) -> Any:
        """The rows with leave-one-out predictions, of those with weight."""
        return self._known_sums().rows_of(self.loo_index_)

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
