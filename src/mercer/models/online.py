"""Estimators that learn from a stream, one block of rows after the other, with a bounded number of centers."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.expansion import Expansion
from mercer.gate import in_range, same_type
from mercer.gram import check_size, self_similarity
from mercer.kernels import Kernel, as_kernel
from mercer.models.base import KernelModel
from mercer.models.state import from_one_state, in_one_step
from mercer.models.validation import (
    check_parameters,
    choice,
    class_labels,
    consistent,
    count,
    known_classes,
    positive,
    real_targets,
    row_weight,
    share,
    warn_of_constant,
    warn_of_weights,
    weight_reading,
)
from mercer.rows import Reading, distinct_rows
from mercer.rows.table import take
from mercer.scores.prequential import ONLINE_CALIBRATIONS, Prequential, ScoreWindow, uncalibrated
from mercer.scores.relative import class_numbers, class_targets, relative
from mercer.solvers.recursive import (
    CHUNK,
    WHEN_FULL,
    LabeledRows,
    Recursion,
    StreamState,
    appended,
    learn,
    left_out,
    start,
)
from mercer.types import Array, Floats, Indices

# Rows that settle words of the kernel, where the first call of partial_fit has fewer.
SETTLING = 100
# Rows that may be held because they are all equal.
MOST_HELD = 1000


class OnlineModel(KernelModel):
    """A model f(x) = sum_j c_j k(x, z_j) + b that learns row by row; abstract."""

    kernel: str | Kernel | Any
    alpha: float
    nu: float
    budget: int
    forget: float
    when_full: str
    weights: str
    window: int
    state_: StreamState
    # Rows that are learned anew with those of the next call, because the kernel may still change.
    _held: LabeledRows | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def _read_block(self, X: Any, *, reset: bool) -> Any:
        """X in float64: approximate dependence is a matter of small differences."""
        if reset:
            check_parameters(self, words=())
        if as_kernel(self.kernel).takes == "values":
            raise ValueError(f"kernel={self.kernel!r} knows no values for rows to come; pass the kernel itself")
        X = self._read(X, reset=reset)
        return X.astype(np.float64, copy=False) if getattr(X, "dtype", None) in (np.float32, np.float64) else X

    def _begin(self, rows: LabeledRows, *, more_to_come: bool) -> None:
        """Settle the kernel on the first rows, and forget all that was learned before."""
        self.kernel_, enough = _settled(self.kernel, rows.X, rows.weight, more_to_come=more_to_come)
        self.gamma_ = getattr(self.kernel_, "gamma", None)
        self._held = None if enough else rows
        # One row alone may be small, or like all others.
        if enough and len(rows.weight) > 1:
            check_size(self.kernel_, self_similarity(self.kernel_, rows.X))
            warn_of_constant(self.kernel_, rows.X)
        # Parameters are refused even if no row comes.
        self._recursion()
        self.state_ = start(rows.Y.shape[1])
        self.prequential_ = Prequential()

    def _first_rows(self, rows: LabeledRows) -> LabeledRows | None:
        """The rows that learning begins with, in the first call or once more; None where it goes on."""
        if not hasattr(self, "state_"):
            return rows
        return None if self._held is None else appended(self._held, rows)

    def _recursion(self) -> Recursion:
        """The parameters, checked."""
        choice("when_full", self.when_full, WHEN_FULL)
        count("window", self.window)
        return Recursion(
            kernel=self.kernel_,
            alpha=positive("alpha", self.alpha),
            nu=share("nu", self.nu),
            budget=count("budget", self.budget),
            forget=share("forget", self.forget),
            when_full=self.when_full,
        )

    def _learn(self, X: Any, Y: Array, weight: Array) -> Array:
        """Learn rows of positive weight; what each was predicted before (n, q)."""
        self.state_, outputs = learn(self._recursion(), self.state_, X, Y, weight)
        self.dual_coef_, self.intercept_ = self.state_.solve()
        # Rows that are all zero to the kernel make no centers: the intercept is the model.
        self.X_fit_ = take(X, slice(0)) if self.state_.m == 0 else self.state_.centers
        return outputs

    def _record(self, loss: Array, weight: Array) -> None:
        self.prequential_ = self.prequential_.extended(loss, weight, self.window)
        self.prequential_error_ = self.prequential_.error
        self.recent_error_ = self.prequential_.recent
        self.n_rows_seen_ = self.state_.n_rows

    def _outputs(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._expansion()(self._read_block(X, reset=False))


class OnlineFisherClassifier(ClassifierMixin, OnlineModel):
    r"""Kernel Fisher discriminant that learns from a stream, in time and memory that do not grow.

    A width is given with its kernel, ``OnlineFisherClassifier(RBF(gamma=0.1))``.

    Minimizes, after n rows and over coefficients c of at most ``budget`` centers and a free intercept b,

        sum_i forget^(n - i) w_i |Y_i - f(x_i)|² + alpha c'Kc,     f(x) = sum_j c_j k(x, z_j) + b,

    with the class targets Y of :class:`KernelFisherClassifier`. A row becomes a center where the centers do not
    span it in feature space to a squared distance of nu k(x, x): approximate linear dependence. Where every row
    becomes one, the fit is that of ``KernelFisherClassifier`` with this kernel and alpha; else a row says
    nothing of centers that come after it, which neglects at most nu of it while the budget is not reached.

    Every row is predicted before it is learned, which gives honest errors and, from a window of the last scores,
    calibrated probabilities. O(m²) time a row and O(m²) memory for m <= budget centers: at 500 centers about 0.15
    milliseconds a row in blocks of some hundred, 4 in calls of one row. Predicting costs O(m d) a row.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name, a kernel of :mod:`mercer.kernels`, or a function k(X, Z) -> (n, m). Words such as gamma="median"
        are settled by the rows of the first call, or by the first 100 rows where the first calls have fewer, and
        "rbf" is ``RBF(gamma="median")``: so give a few hundred rows first, or a number.
    alpha : float, default=0.1
        Penalty; larger is smoother.
    nu : float, default=1e-3
        How much of a row, as a share of k(x, x), may be neglected before it becomes a center.
    budget : int, default=500
        The most centers there may be.
    forget : float, default=1.0
        Factor by which all that was learned fades with each row: 1 - 1/n remembers about n rows.
    when_full : {"replace", "refuse"}, default="replace"
        With the budget reached, exchange the least useful centers for recent rows that serve better, every 256
        rows; or keep those there are, which is faster and slightly better where nothing changes.
    weights : {"auto", "counts", "importance"}, default="auto"
        What ``sample_weight`` means where probabilities are calibrated, as in :class:`KernelFisherClassifier`: of
        counts one copy is left out at a time, of importance the whole row, and its unit does not matter.
        ``partial_fit`` calibrates on rows predicted before they were learned, and looks at the last ``window``.
    calibration : {"logistic", "isotonic"}, default="logistic"
        How scores become probabilities.
    window : int, default=1000
        Rows whose scores are kept, for probabilities and for ``recent_error_``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_, gamma_ : Kernel, float or None
        What was settled.
    prequential_error_ : float
        Share of rows, by weight, that were labeled wrongly before they were learned. The first row does not count.
    recent_error_ : float
        The same of the last ``window`` rows.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m, q), ndarray (q,)
        Centers, coefficients, intercept.
    n_rows_seen_ : int
        Rows of positive weight so far.
    state_ : StreamState
        The factors that learning goes on from.
    rule_ : Rule
        What turns outputs into decisions.

    See Also
    --------
    OnlineKernelRegressor : the same for real targets.

    References
    ----------
    Y. Engel, S. Mannor, R. Meir (2004), The kernel recursive least-squares algorithm, IEEE Transactions on Signal
    Processing 52. E. Andelić (2007), Sparse Nonlinear Discriminants, Magdeburg, section 3.4.3.

    Examples
    --------
    >>> from mercer import OnlineFisherClassifier
    >>> from mercer.datasets import make_banana
    >>> X, y = make_banana(1000, random_state=0)
    >>> model = OnlineFisherClassifier()
    >>> for first in range(0, 1000, 100):
    ...     rows = slice(first, first + 100)
    ...     model = model.partial_fit(X[rows], y[rows], classes=[-1, 1])
    >>> model.n_rows_seen_, model.recent_error_ < 0.15, model.predict_proba(X[:3]).shape
    (1000, True, (3, 2))
    """

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        alpha: float = 0.1,
        nu: float = 1e-3,
        budget: int = 500,
        forget: float = 1.0,
        when_full: str = "replace",
        weights: str = "auto",
        calibration: str = "logistic",
        window: int = 1000,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.nu = nu
        self.budget = budget
        self.forget = forget
        self.when_full = when_full
        self.weights = weights
        self.calibration = calibration
        self.window = window

    @in_one_step
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Start anew and learn the rows in one pass, in their order.

        Probabilities come from the last ``window`` rows as the model of all others sees them, in closed form.

        Parameters
        ----------
        X : array, CSR matrix or list of objects, n rows
        y : array of shape (n,)
            Class labels of one type: numbers, strings, truth values or dates.
        sample_weight : array of shape (n,), default=None
            A row of weight zero is not learned.
        """
        X, y, weight = self._labeled(X, y, sample_weight, reset=True)
        classes = np.unique(y)
        label = _class_numbers(classes, y)
        rows = LabeledRows(X, class_targets(label, len(classes)), weight)
        self._begin_classes(rows, classes, more_to_come=False)
        self._learn_blocks(rows)
        self._calibrate_left_out(X, label, weight)
        return self

    @in_one_step
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn more rows, one or many.

        Where the kernel has words and the first calls have fewer than 100 rows, these are held, and each call
        begins anew with all of them: the model is that of one call with all rows so far. From 100 rows on the
        kernel stays, and nothing is held.

        Parameters
        ----------
        X : array, CSR matrix or list of objects, n rows
        y : array of shape (n,)
        classes : array of shape (n_classes,), default=None
            All labels there will be; needed by the first call where its rows do not show them all.
        sample_weight : array of shape (n,), default=None
        """
        first = not hasattr(self, "state_")
        X, y, weight = self._labeled(X, y, sample_weight, reset=first)
        known = self._known_classes(y, classes, first=first)
        rows = LabeledRows(X, class_targets(_class_numbers(known, y), len(known)), weight)
        begun = self._first_rows(rows)
        if begun is not None:
            self._begin_classes(begun, known, more_to_come=True)
        self._learn_blocks(rows if begun is None else begun)
        return self

    @from_one_state
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of largest probability for each row (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @from_one_state
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes (n, n_classes), calibrated on rows predicted before they were learned."""
        F = self._outputs(X)
        return self.rule_.probabilities(relative(F))

    @from_one_state
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities (n, n_classes)."""
        F = self._outputs(X)
        return self.rule_.log_probabilities(relative(F))

    @from_one_state
    def decision_function(self, X: Any) -> Floats:
        """Log-odds of ``classes_[1]`` (n,), or log-probabilities of three and more classes (n, n_classes)."""
        F = self._outputs(X)
        return self.rule_.decision(F) if F.shape[1] == 1 else self.rule_.log_probabilities(relative(F))

    def _labeled(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Any, NDArray[Any], Array]:
        """Rows of positive weight, with their labels."""
        X = self._read_block(X, reset=reset)
        labels = class_labels(y)
        consistent(X, labels)
        weight = row_weight(sample_weight, X)
        weight_reading(self.weights, weight)
        used = np.flatnonzero(weight > 0)
        return take(X, used), labels[used], weight[used]

    def _known_classes(self, y: NDArray[Any], classes: ArrayLike | None, *, first: bool) -> NDArray[Any]:
        """All labels there will be, in order: those of the first call."""
        if first:
            return np.unique(y) if classes is None else known_classes(classes)
        if classes is not None and not np.array_equal(self.classes_, known_classes(classes)):
            raise ValueError(f"classes={classes!r} differ from those of the first call, {self.classes_.tolist()}")
        return np.asarray(self.classes_)

    def _begin_classes(self, rows: LabeledRows, classes: NDArray[Any], *, more_to_come: bool) -> None:
        choice("calibration", self.calibration, ONLINE_CALIBRATIONS)
        if len(classes) < 2:
            raise ValueError(f"there is one class, {classes.tolist()[0]!r}; a classifier needs at least 2 classes")
        self._begin(rows, more_to_come=more_to_come)
        self.classes_ = classes
        self.scores_ = ScoreWindow.empty(rows.Y.shape[1])
        self.rule_ = uncalibrated(rows.Y.shape[1])

    def _learn_blocks(self, rows: LabeledRows) -> None:
        """Learn block by block, so that later rows profit from calibration."""
        for first in range(0, len(rows.Y), CHUNK):
            some = slice(first, first + CHUNK)
            self._learn_block(take(rows.X, some), rows.Y[some], rows.weight[some])

    def _learn_block(self, X: Any, Y: Array, weight: Array) -> None:
        outputs = self._learn(X, Y, weight)
        known = ~np.isnan(outputs[:, 0])
        outputs, label, weight = outputs[known], class_numbers(Y[known]), weight[known]
        guess = self.rule_.probabilities(relative(outputs)).argmax(axis=1)
        self._record((guess != label).astype(np.float64), weight)
        self.scores_ = self.scores_.extended(outputs, label, weight, self.window)
        if self.scores_.due:
            reading = weight_reading(self.weights, self.scores_.weight)
            self.scores_, self.rule_ = self.scores_.calibrated(self.calibration, reading)

    def _calibrate_left_out(self, X: Any, label: Indices, weight: Array) -> None:
        """Calibrate on the last rows as they are without themselves, which does not depend on their order."""
        last = slice(max(0, len(label) - self.window), len(label))
        Y = class_targets(label[last], len(self.classes_))
        faded = self.forget ** np.arange(len(Y) - 1.0, -1.0, -1.0)
        reading = weight_reading(self.weights, weight)

        def scores(reading: Reading) -> ScoreWindow:
            unit = (weight / reading.copies(weight))[last] * faded
            outputs = left_out(self._recursion(), self.state_, X[last], Y, unit)
            known = ~np.isnan(outputs[:, 0])
            return ScoreWindow(outputs[known], label[last][known], weight[last][known], 0)

        taken = scores(reading)
        if len(taken.label) == 0:
            return
        self.scores_, self.rule_ = taken.calibrated(self.calibration, reading)
        if reading.doubtful:
            other, rule = scores(reading.opposite).calibrated(self.calibration, reading)
            warn_of_weights(reading, taken.accuracy(self.rule_), other.accuracy(rule))


class OnlineKernelRegressor(RegressorMixin, OnlineModel):
    r"""Kernel ridge regression that learns from a stream, in time and memory that do not grow.

    A width is given with its kernel, ``OnlineKernelRegressor(RBF(gamma=0.1))``.

    Minimizes, after n rows and over coefficients c of at most ``budget`` centers and a free intercept b,

        sum_i forget^(n - i) w_i |y_i - f(x_i)|² + alpha c'Kc,     f(x) = sum_j c_j k(x, z_j) + b.

    Centers are chosen by approximate linear dependence, as in :class:`OnlineFisherClassifier`; where every row
    becomes one, the fit is that of ``KernelRidgeRegressor`` with this kernel and alpha. O(m²) time a row and
    O(m²) memory for m <= budget centers.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name, a kernel of :mod:`mercer.kernels`, or a function k(X, Z) -> (n, m). Words such as gamma="median"
        are settled by the rows of the first call, or by the first 100 rows where the first calls have fewer, and
        "rbf" is ``RBF(gamma="median")``: so give a few hundred rows first, or a number.
    alpha : float, default=0.1
        Penalty; larger is smoother.
    nu : float, default=1e-3
        How much of a row, as a share of k(x, x), may be neglected before it becomes a center.
    budget : int, default=500
        The most centers there may be.
    forget : float, default=1.0
        Factor by which all that was learned fades with each row: 1 - 1/n remembers about n rows.
    when_full : {"replace", "refuse"}, default="replace"
        With the budget reached, exchange the least useful centers for recent rows that serve better, every 256
        rows; or keep those there are.
    weights : {"auto", "counts", "importance"}, default="auto"
        As in :class:`OnlineFisherClassifier`. Nothing of a regressor depends on it: "counts" refuses weights that
        are not whole numbers.
    window : int, default=1000
        Rows of which ``recent_error_`` is the mean.

    Attributes
    ----------
    kernel_, gamma_ : Kernel, float or None
        What was settled.
    prequential_error_ : float
        Mean squared error, by weight, of rows predicted before they were learned; of several targets their mean.
        The first row does not count.
    recent_error_ : float
        The same of the last ``window`` rows.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers, coefficients, intercept.
    n_rows_seen_ : int
        Rows of positive weight so far.
    state_ : StreamState
        The factors that learning goes on from.

    See Also
    --------
    OnlineFisherClassifier : the same for classes.

    References
    ----------
    Y. Engel, S. Mannor, R. Meir (2004), The kernel recursive least-squares algorithm, IEEE Transactions on Signal
    Processing 52. E. Andelić (2007), Sparse Nonlinear Discriminants, Magdeburg, section 3.4.3.

    Examples
    --------
    >>> from mercer import OnlineKernelRegressor
    >>> from mercer.datasets import make_sinc
    >>> X, y = make_sinc(2000, random_state=0)
    >>> model = OnlineKernelRegressor()
    >>> for first in range(0, 2000, 200):
    ...     model = model.partial_fit(X[first : first + 200], y[first : first + 200])
    >>> len(model.X_fit_) < 20, model.recent_error_ < 0.012
    (True, True)
    """

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        alpha: float = 0.1,
        nu: float = 1e-3,
        budget: int = 500,
        forget: float = 1.0,
        when_full: str = "replace",
        weights: str = "auto",
        window: int = 1000,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.nu = nu
        self.budget = budget
        self.forget = forget
        self.when_full = when_full
        self.weights = weights
        self.window = window

    @in_one_step
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Start anew and learn the rows in one pass, in their order.

        Parameters
        ----------
        X : array, CSR matrix or list of objects, n rows
        y : array of shape (n,) or (n, q)
        sample_weight : array of shape (n,), default=None
            A row of weight zero is not learned.
        """
        in_range("y", real_targets(y, self))
        return self._learn_targets(X, y, sample_weight, anew=True)

    @in_one_step
    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows: one or many. Of first calls with few rows as in :class:`OnlineFisherClassifier`.

        Parameters
        ----------
        X : array, CSR matrix or list of objects, n rows
        y : array of shape (n,) or (n, q)
        sample_weight : array of shape (n,), default=None
        """
        return self._learn_targets(X, y, sample_weight, anew=False)

    @from_one_state
    def predict(self, X: Any) -> Floats:
        """f at each row, of the shape of the targets."""
        F = self._outputs(X)
        return F[:, 0] if np.ndim(self.dual_coef_) == 1 else F

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _learn_targets(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, *, anew: bool) -> Self:
        first = anew or not hasattr(self, "state_")
        X = self._read_block(X, reset=first)
        targets = real_targets(y, self)
        consistent(X, targets)
        weight = row_weight(sample_weight, X)
        weight_reading(self.weights, weight)
        Y = targets.reshape(len(targets), -1)
        used = np.flatnonzero(weight > 0)
        rows = LabeledRows(take(X, used), Y[used], weight[used])
        if not first and Y.shape[1] != self.state_.a.shape[1]:
            raise ValueError(f"y has {Y.shape[1]} targets, and the rows before had {self.state_.a.shape[1]}")
        begun = rows if anew else self._first_rows(rows)
        if begun is not None:
            self._begin(begun, more_to_come=not anew)
            rows = begun
        outputs = self._learn(rows.X, rows.Y, rows.weight)
        known = ~np.isnan(outputs[:, 0])
        self._record(((rows.Y - outputs)[known] ** 2).mean(axis=1), rows.weight[known])
        if targets.ndim == 1:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], self.intercept_[0]
        return self

    def _expansion(self) -> Expansion:
        coef: Floats = self.dual_coef_.reshape(-1, self.state_.a.shape[1])
        return Expansion(self.kernel_, self.X_fit_, coef, np.atleast_1d(self.intercept_))


def _settled(kernel: Any, X: Any, weight: Array, *, more_to_come: bool) -> tuple[Kernel, bool]:
    """The kernel with numbers for words, and whether they stay; of a kernel given by name gamma is "median"."""
    chosen = as_kernel(kernel)
    if isinstance(kernel, str) and getattr(chosen, "gamma", None) == "loo":
        chosen = chosen.set_params(gamma="median")
    if chosen.settled:
        return chosen, True
    n, different = len(weight), len(distinct_rows(X).first)
    if different < 2 and (not more_to_come or n == 0 or n >= MOST_HELD):
        raise ValueError(
            f"{chosen!r} finds its numbers in the first rows, and of these, n_samples = {n}, only {different} are "
            "different; give the numbers, or begin with other rows"
        )
    candidates = chosen.candidates(X, weight)
    if len(candidates) > 1:
        raise ValueError(
            f"{chosen!r} stands for {len(candidates)} kernels, and a stream has no second pass to choose by; pass "
            "kernel_ of a model fitted to the first rows"
        )
    return candidates[0], not more_to_come or (n >= SETTLING and different >= 2)


def _class_numbers(classes: NDArray[Any], y: NDArray[Any]) -> Indices:
    """Positions of labels among the classes."""
    same_type("y", classes, y)
    position = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = np.flatnonzero(classes[position] != y)
    if len(unknown) > 0:
        raise ValueError(
            f"y holds {y[unknown[0]]!r}, which is not among the classes of the first call, {classes.tolist()}; "
            "pass all labels as classes to the first partial_fit"
        )
    return position
