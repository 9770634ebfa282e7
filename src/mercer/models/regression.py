"""Kernel ridge regression with an intercept, leave-one-out, and intervals."""

from collections.abc import Iterator
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score

from mercer.expansion import Expansion
from mercer.gate import in_range
from mercer.gram import gram, kernel_blocks, self_similarity
from mercer.gram.moments import Moments
from mercer.kernels import Kernel
from mercer.models.base import Training
from mercer.models.lazy import lazily
from mercer.models.passes import Columns, Encoder, ValueBlocks
from mercer.models.state import Awaited, from_one_state, in_one_step
from mercer.models.streaming import StreamModel
from mercer.models.validation import (
    check_parameters,
    consistent,
    coverage_of,
    fold_of_rows,
    penalty_of,
    real_targets,
    row_weight,
    warn_of_shift,
    warn_of_weights,
    weight_reading,
)
from mercer.rows import Block, Drawn, elsewhere
from mercer.scores import (
    LeftOut,
    noise_std,
    prediction_intervals,
    predictive_std,
    residual_intervals,
    squared_criterion,
)
from mercer.scores.criteria import Criterion, CriterionFor
from mercer.solvers import CenterVariance, Observations, Smoother, center_variance, make_smoother
from mercer.tuning import Tuned
from mercer.types import Array, Floats, Indices


class KernelRidgeRegressor(MultiOutputMixin, RegressorMixin, StreamModel):
    r"""Kernel ridge regression with a free intercept, tuned by exact leave-one-out.

    ``KernelRidgeRegressor()`` needs no parameters. To give them: gamma belongs to the kernel,
    ``KernelRidgeRegressor(RBF(gamma=0.1))``, and ``alpha`` means what it does in scikit-learn's ``KernelRidge``.

    Finds f(x) = sum_j c_j k(x, z_j) + b that minimizes sum_i w_i |y_i - f(x_i)|² + alpha c'Kc, for
    all targets at once. One eigendecomposition, O(n³), for each kernel tried gives the solution,
    the leave-one-out output of every row and the degrees of freedom for every alpha. By default
    15 kernels are tried on at most 1000 distinct rows; of more, the best few on at most 3000; the
    chosen one on all. Memory 5 n² numbers. With m centers, chosen or given, one pass over the rows,
    wherever they are: O(n m²) time, memory of O(m²) numbers.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name, a kernel of :mod:`mercer.kernels`, a function k(X, Z) -> (n, m), or
        "precomputed". "rbf" is ``RBF(gamma="loo")``.
    alpha : float or "loo", default="loo"
        Penalty; larger is smoother. "loo" chooses it by leave-one-out.
    centers : "auto", "all", int, selector or array, default="auto"
        Which rows carry the model. "all": every distinct row. A number of centers chosen by the
        targets, up to 1000, or drawn at random; a selector of :mod:`mercer.centers`; the centers
        themselves, m rows. "auto": all of up to 5000 rows; of more rows so many that a pass takes
        less than a minute or so, 4000 of up to 250,000 rows, 2000 of a million.
        With centers the fit is one pass over the rows: O(n m²) time, O(m²) memory.
    penalty : {"rkhs", "coef"}, default="rkhs"
        c'Kc, or c'c.
    weights : {"auto", "counts", "importance"}, default="auto"
        What ``sample_weight`` means to leave-one-out, and so to what it chooses. "counts": how many
        equal rows a row stands for, whole numbers; one copy is left out at a time. "importance": how
        much a row matters; it is left out as a whole, and the unit of the weights does not matter.
        "auto": counts where all weights are whole numbers of at most 10, and not all the same above
        1; importance otherwise. Where whole numbers leave a doubt and the score depends on it, a
        :class:`~mercer.errors.WeightWarning` says what was taken, and what to write.
    fit_intercept : bool, default=True
        Whether b is free; it is never penalized.
    cv : int, splitter or None, default=None
        Rows that are held out together; None: each alone, or by the ``groups`` given to fit.
    loo_rows : int or None, default=10000
        With centers: rows drawn at random on which the kernel is chosen, and which are then left
        out, one by one, from the fit to all rows. None: all of them. Centers are chosen among
        these rows, or twice as many rows as centers.
    max_memory : float, default=None
        GiB that the fit may allocate beside X and y; None: four fifths of what is free. Checked before
        the search. With centers a small budget costs time, and kernels are compared on fewer rows and
        centers selected among fewer candidates, which ``report_`` states.
    random_state : int, RandomState or None, default=None
        For the choice of rows on which kernels are compared, where there are more than 1000, and
        for the choice of centers.
    verbose : int, default=0
        With centers: whether passes over the rows show how far they are.

    Attributes
    ----------
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        What was chosen.
    loo_prediction_ : ndarray of shape (n,) or (n, q)
        Prediction for every training row by the model fitted without it.
    loo_score_ : float
        Its R².
    loo_path_ : TuningPath
        Kernels, alphas and criterion values that were tried.
    noise_std_ : float or ndarray of shape (q,)
        Standard deviation of the noise, from the residuals and the degrees of freedom.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers (with ``centers="all"`` the distinct training rows), coefficients, intercept.
    support_ : ndarray of shape (m,) or None
        Which training row each center is; None where they are none.
    loo_index_ : ndarray
        Which training rows were left out: all, or with centers at most ``loo_rows``.
    moments_ : Moments
        With centers: the sums over all rows from which the model follows.
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

    left_out_: Any = Awaited()
    loo_prediction_: Any = Awaited()
    noise_std_: Any = Awaited()

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
        self.loo_rows = loo_rows
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @in_one_step
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: ArrayLike | None = None) -> Self:
        """Choose kernel and penalty by leave-one-out, and fit.

        Parameters
        ----------
        X : array, memory map, CSR matrix, frame, list of objects or kernel matrix, n rows
            Or rows elsewhere, which are read block by block: the path of a Parquet file or folder, a
            list of tuples (X, y) or (X, y, weight), or a function that returns an iterator of them.
        y : array of shape (n,) or (n, q)
            Of a path the name of the column, or a list of names; tuples carry it.
        sample_weight : array of shape (n,), default=None
            Weights of the rows; two is the same as the row twice, in leave-one-out if ``weights``
            are counts. Of a path the name of the column.
        groups : array of shape (n,), default=None
            Rows that are held out together.
        """
        check_parameters(self)
        self._start_anew()
        together = self.cv is not None or groups is not None
        if elsewhere(X):
            self._in_passes(X, together=together)
            return self._fit_elsewhere(X, y, sample_weight)
        X, targets, weight = self._table(X, y, sample_weight, reset=True)
        fold = fold_of_rows(self.cv, X, targets, groups, classifier=False)
        if self._in_passes(X, together=together):
            return self._fit_table(X, targets, None if sample_weight is None else weight, fold)
        reading = weight_reading(self.weights, weight)
        training = Training(X, targets.reshape(len(targets), -1), weight, weight, reading, fold)
        tuned, observations = self._fit(training, self._criterion(training, None), intercept=self.fit_intercept)
        self._keep(observations, targets, sample_weight, weight)
        used = training.weight > 0
        self.left_out_ = LeftOut(
            residual=(training.Y - tuned.loo)[used],
            weight=observations.weight,
            count=training.count[used],
            point=observations.rows.point,
            share=_share(observations, fold if fold is None else fold[used]),
            fold=fold if fold is None else fold[used],
        )
        self._store_loo(training, tuned, float(training.count[used].sum()), one_target=targets.ndim == 1)
        return self

    @in_one_step
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, decay: float = 1.0) -> Self:
        """Add rows to the fit; in any batches the model is that of ``fit`` on all of them.

        The first call chooses kernel and centers on its rows, unless they are given; all calls
        add to the moments, O(b m²) for b rows, and nothing is solved until the model is asked for
        something, O(m³). After a ``fit`` that made every row a center, its rows are the first.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
            What the weights of all rows so far mean is decided when the model is asked for something: a
            batch, or ``decay``, may turn counts into importance where ``weights="auto"``.
        decay : float, default=1.0
            What was there before counts so many times as much from now on: below one it is
            forgotten slowly, and so are rows of the sample.
        """
        check_parameters(self)
        self._continue(decay)
        return self._partial_fit(self._batch(X, y, sample_weight), decay=decay)

    @in_one_step
    def remove(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out again that were in ``fit`` or ``partial_fit``, O(b m²): the model is that without them.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
            The rows, with the weight they still have: what ``decay`` left of it. Rows that are not in the model
            are refused where that can be seen.
        """
        return self._remove(X, y, sample_weight)

    @lazily
    @from_one_state
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """f at each row (n,) or (n, q).

        With ``return_std`` also the standard deviation of a new observation there: noise, and
        the posterior of a Gaussian process with this kernel. Costs O(m³ / 3) once a call and O(m²) a row.
        """
        F = self._shaped(self._outputs(X))
        if not return_std:
            return F
        variance = self._variance(self._read(X, reset=False))
        return F, self._shaped(predictive_std(np.atleast_1d(self.noise_std_), variance, self.left_out_))

    @from_one_state
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Lower and upper ends (n, 2), or (n, q, 2), of an interval for a new observation at each row.

        The jackknife+ of the leave-one-out residuals: whatever the noise, it covers at least
        1 - 2 (1 - coverage) of exchangeable rows, and close to ``coverage`` in practice. Kernel and
        alpha are held fixed. Costs O(n³ / 3) once a call and O(n²) a row. With fewer centers than
        rows the jackknife: a row of many hardly changes f, and the interval has the same width everywhere.
        """
        coverage_of(coverage)
        F = self._outputs(X).astype(np.float64)
        if self.left_out_.point is None:
            ends = residual_intervals(F, self.left_out_, coverage)
        else:
            ends = self._jackknife(self._read(X, reset=False), F, coverage)
        return ends[:, 0] if self.dual_coef_.ndim == 1 else ends

    def _jackknife(self, X: Any, F: Array, coverage: float) -> Array:
        smooth, ends = self._smoother(), np.empty((*F.shape, 2))
        for rows, K in self._blocks(X):
            ends[rows] = prediction_intervals(F[rows], smooth.weights(K), self.left_out_, coverage)
        return ends

    def _variance(self, X: Any) -> Array:
        """Variance (n,) of f at rows in memory, in units of that of the noise."""
        with_centers = self.left_out_.point is None
        of_rows = self._variance_with_centers() if with_centers else self._smoother().variance
        parts = []
        for rows, K in self._blocks(X):
            parts.append(of_rows(K, np.asarray(self_similarity(self.kernel_, X[rows]), np.float64)))
        return np.concatenate(parts)

    def _variance_with_centers(self) -> CenterVariance:
        if self.kernel_.takes == "values":
            raise _no_kernel_values()
        K = gram(self.kernel_, self.X_fit_, budget=self._budget()) if penalty_of(self.penalty) == "rkhs" else None
        variance = center_variance(self._moments, K, self.alpha_, intercept=self.fit_intercept)
        warn_of_shift(variance.penalized.shift)
        return variance

    def _smoother(self) -> Smoother:
        """Factor the kernel matrix of the centers: what a prediction takes from each of them."""
        if self.kernel_.takes == "values":
            raise _no_kernel_values()
        if self.report_.negative > 0:
            raise ValueError(f"uncertainty needs a positive semidefinite kernel, and {self.kernel_} is not")
        # Rounding errors of float32 would make the matrix indefinite where alpha is small.
        single = getattr(self.X_fit_, "dtype", None) == np.float32
        X = self.X_fit_.astype(np.float64) if single else self.X_fit_
        K = np.asarray(gram(self.kernel_, X, budget=self._budget()), dtype=np.float64)
        weight = np.bincount(cast(Indices, self.left_out_.point), self.left_out_.weight).astype(np.float64)
        penalty = penalty_of(self.penalty)
        smooth = make_smoother(K, weight, self.alpha_, penalty=penalty, intercept=self.fit_intercept)
        warn_of_shift(smooth.factor.shift)
        return smooth

    def _blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Slices of rows and their kernel rows, so few that weights for all training rows fit, too."""
        n_weights = 0 if self.left_out_.point is None else len(self.left_out_.point)
        width = max(len(self.dual_coef_), n_weights)
        for rows, K in kernel_blocks(self.kernel_, X, self.X_fit_, len(self.dual_coef_), width=width):
            yield rows, np.asarray(K, dtype=np.float64)

    def _store_loo(self, training: Training, tuned: Tuned, n: float, *, one_target: bool) -> None:
        """What follows from the outputs fitted and left out, of ``n`` rows in all."""
        used = training.weight > 0
        residual = (training.Y - tuned.fitted)[used]
        noise = noise_std(residual, training.standing[used], n, self.degrees_of_freedom_)
        self.loo_score_ = float(r2_score(training.Y, tuned.loo, sample_weight=training.standing))
        if tuned.otherwise is not None:
            score = float(r2_score(training.Y, tuned.otherwise, sample_weight=training.standing))
            warn_of_weights(training.reading, self.loo_score_, score)
        self.noise_std_ = float(noise[0]) if one_target else noise
        self.loo_prediction_ = tuned.loo[:, 0] if one_target else tuned.loo
        if one_target:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], self.intercept_[0]
        self.report_ = self._report(tuned, training, f"R² {self.loo_score_:.4f}", "squared")

    def _table(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Array, Array]:
        """Rows in memory, checked."""
        X = self._read(X, reset=reset)
        targets = real_targets(y, self)
        consistent(X, targets)
        return X, targets, row_weight(sample_weight, X)

    def _encoder(self, drawn: Drawn, columns: Columns | None) -> ValueBlocks:
        self._one_target = np.ndim(drawn.sample().y) == 1
        return ValueBlocks(columns, np.shape(drawn.sample().y)[1:])

    def _labels_of(self, encode: Encoder, block: Block) -> None:
        return None

    def _criterion(self, training: Training, label: Indices | None) -> CriterionFor:
        in_range("y", training.Y, getattr(training.X, "dtype", np.float64))

        def for_rows(rows: Indices) -> Criterion:
            return squared_criterion(training.Y[rows], training.standing[rows])

        return for_rows

    def _conclude(self, training: Training, tuned: Tuned, moments: Moments) -> None:
        used, faded = training.weight > 0, training.faded
        weight = training.weight if faded is None else training.weight / faded * training.rows
        self.left_out_ = LeftOut(
            residual=(training.Y - tuned.loo)[used],
            weight=weight[used],
            count=training.rows[used],
            point=None,
            share=None,
            fold=None,
        )
        n = float(max(moments.n_rows, used.sum())) if faded is None else training.n_left
        # Of counted rows each copy is one.
        n = moments.n if training.reading.counts else n
        self._store_loo(training, tuned, n, one_target=self._one_target)

    @property
    def _has_intercept(self) -> bool:
        return self.fit_intercept

    @property
    def _has_classes(self) -> bool:
        return False

    def _expansion(self) -> Expansion:
        intercept = np.atleast_1d(self.intercept_)
        coef: Floats = self.dual_coef_.reshape(len(self.dual_coef_), len(intercept))
        return Expansion(self.kernel_, self.X_fit_, coef, intercept)

    def _shaped(self, F: Floats) -> Floats:
        return F[:, 0] if self.dual_coef_.ndim == 1 else F


def _no_kernel_values() -> ValueError:
    return ValueError(
        'uncertainty needs kernel values among the training rows, which kernel="precomputed" does not '
        "keep; pass the kernel itself"
    )


def _share(observations: Observations, fold: Indices | None) -> Array:
    """The part of its point's weight that leaves with a row: all of it when folds leave."""
    leaving = observations.unit if fold is None else observations.weight
    share: Array = leaving / observations.point_weight[observations.rows.point]
    return share
