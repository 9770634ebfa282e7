"""Kernel ridge regression with an intercept, leave-one-out, and intervals."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import gate
from mercer.gram import Budget
from mercer.kernels import Kernel
from mercer.models.answers import ValueAnswers
from mercer.models.lazy import lazily, lazily_whole
from mercer.models.resumable import ResumableModel
from mercer.models.state import Awaited, from_one_state, in_one_step
from mercer.models.validation import penalty_of
from mercer.scores.uncertainty import Uncertainty
from mercer.types import Floats


class KernelRidgeRegressor(ValueAnswers, ResumableModel):
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
        return self._add(X, y, sample_weight, decay)

    @lazily_whole
    @from_one_state
    def predict_std(self, X: Any) -> Floats:
        """Standard deviation (n,) or (n, q) of a new observation at each row.

        That of the noise, and of the posterior of a Gaussian process with this kernel. Costs O(m³ / 3) once a call
        and O(m²) a row.
        """
        check_is_fitted(self)
        uncertainty, noise = self._uncertainty(), np.atleast_1d(self.noise_std_)
        return self._shaped(self._evaluated(X, lambda rows: uncertainty.std(rows, noise)))

    @lazily
    @from_one_state
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Lower and upper ends (n, 2), or (n, q, 2), of an interval for a new observation at each row.

        The jackknife+ of the leave-one-out residuals: whatever the noise, it covers at least
        1 - 2 (1 - coverage) of exchangeable rows, and close to ``coverage`` in practice. Kernel and
        alpha are held fixed. Costs O(n³ / 3) once a call and O(n²) a row. With fewer centers than
        rows the jackknife: a row of many hardly changes f, and the interval has the same width everywhere.
        """
        check_is_fitted(self)
        gate.number("coverage", coverage, "a number between 0 and 1", above=0.0, below=1.0)
        f, uncertainty = self._expansion(), self._uncertainty()
        ends = self._evaluated(X, lambda rows: uncertainty.intervals(rows, f(rows).astype(np.float64), coverage))
        return self._shaped(ends)

    def _uncertainty(self) -> Uncertainty:
        return Uncertainty(
            self.kernel_,
            self.X_fit_,
            self.alpha_,
            penalty_of(self.penalty),
            self.fit_intercept,
            self.left_out_,
            self.report_.negative,
            lambda: self._moments,
            Budget.from_parameter(self.max_memory),
        )
