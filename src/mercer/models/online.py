"""Estimators that learn from a stream, block by block, with a bounded number of centers (KRLS)."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from mercer import validation
from mercer.gram import check_size, self_similarity
from mercer.gram.moments import pieces
from mercer.kernels import Kernel, as_kernel
from mercer.models.answers import ClassAnswers, ValueAnswers
from mercer.models.base import Columns, KernelModel, check_names, keep_names, read_blocks
from mercer.models.state import in_one_step
from mercer.models.validation import (
    check_declared,
    check_parameters,
    count,
    meaning_of,
    read_rows,
    real_targets,
    under_parameters,
)
from mercer.rows import (
    Block,
    Labels,
    Reading,
    Rows,
    Sampler,
    Tally,
    feature_names,
    is_out_of_core,
    reading_of,
    survey,
)
from mercer.rows.base import join_blocks, of_at_least
from mercer.rows.sampling.row_matching import weight_of
from mercer.rows.table import take
from mercer.scores.class_outputs import class_numbers, class_shares
from mercer.scores.criteria import squared_errors
from mercer.scores.prequential import ONLINE_CALIBRATIONS, Prequential, ScoreWindow, uncalibrated
from mercer.scores.targets import ClassTargets, Targets, warn_of_weights
from mercer.solvers.recursive import ROWS_AT_ONCE, Recursion, RecursiveState, forgetful, learn, start
from mercer.tuning.checks import warn_of_constant
from mercer.tuning.online import SETTLING, left_out_scores, resolved_kernel, scatter_of
from mercer.types import Array


class OnlineModel(KernelModel):
    """A model f(x) = sum_j c_j k(x, z_j) + b that learns row by row; abstract."""

    alpha: float
    nu: float
    max_centers: int
    decay: float
    when_full: str
    weights: str
    window: int
    state_: RecursiveState
    # The targets of all rows.
    _targets: Targets
    # Rows that are learned again with those of the next call, because the kernel may still change; None: it is
    # fixed.
    _held: Block | None

    @abstractmethod
    def _reset(self) -> None:
        """Reset the records of predictions."""

    @abstractmethod
    def _record(self, block: Block, encoded: Block, outputs: Array) -> None:
        """Record outputs (n, q) of rows before they were learned."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def _read(self, X: Any, *, reset: bool) -> Any:
        """X in float64: approximate dependence relies on small differences."""
        if as_kernel(self.kernel).takes_values:
            raise ValueError(f"kernel={self.kernel!r} has no values for future rows; pass the kernel itself")
        X = super()._read(X, reset=reset)
        return X.astype(np.float64, copy=False) if getattr(X, "dtype", None) in (np.float32, np.float64) else X

    def _check_block(self) -> Columns | None:
        check = super()._check_block()
        return None if check is None else replace(check, dtypes=(np.float64,))

    def _add(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        declared: ArrayLike | None,
        *,
        restart: bool,
        labels: Labels | None = None,
    ) -> Block:
        """Learn rows of positive weight with their labels or values, starting over if ``restart``.

        ``labels`` are those of all rows, if these are the first of several blocks.
        """
        first = restart or not hasattr(self, "state_")
        count("max_centers", self.max_centers)
        check_parameters(self, words=())
        if is_out_of_core(X):
            if first:
                self.__dict__.pop("feature_names_in_", None)
            rows = read_blocks(self, X, y, sample_weight)
            block = self._add_blocks(rows, declared, first=first, restart=restart)
            if first:
                keep_names(self, feature_names(X, y, sample_weight))
            return block
        X, y, weight = read_rows(self, X, y, sample_weight, reset=first)
        reading_of(meaning_of(self.weights), Tally.of(weight, len(weight)))
        used = np.flatnonzero(weight > 0)
        block = Block(take(X, used), y[used], weight[used], 0)
        if first:
            if labels is None and is_classifier(self):
                labels = Labels.of(block.y, block.weight)
            self._targets = self._settle(block.y, labels, declared)
            self._held = None
        else:
            self._targets = under_parameters(self, self._targets)
        begins = first or self._held is not None
        block = block if self._held is None else join_blocks([self._held, block])
        encoded = self._targets.encode(block)
        if begins:
            self._begin(block, encoded.y.shape[1], more_to_come=not restart)
        for ends in pieces(block.n_rows, ROWS_AT_ONCE):
            self._learn(block.cut(*ends), encoded.cut(*ends))
        return block

    def _add_blocks(self, rows: Rows, declared: ArrayLike | None, *, first: bool, restart: bool) -> Block:
        """Learn rows outside memory block by block; returns the last ``window`` of them.

        A pass before finds the classes and their weights, unless the classes are declared and not balanced.
        """
        labels = None
        balanced = isinstance(getattr(self, "class_weight", None), str)
        if first and is_classifier(self) and (declared is None or balanced):
            labels = survey(rows, Sampler(1, 0, labels=True)).labels
        # Blocks have no names: those of all rows are compared.
        names, last = self.__dict__.pop("feature_names_in_", None), None
        for block in of_at_least(rows.blocks(), SETTLING):
            begins = restart and last is None
            new = self._add(block.X, block.y, block.weight, declared, restart=begins, labels=labels)
            last = new if last is None else join_blocks([last, new])
            last = last.cut(max(0, last.n_rows - self.window), last.n_rows)
        if last is None:
            raise ValueError("there are no rows to learn; pass at least one row of positive weight")
        if first:
            keep_names(self, feature_names(rows))
        elif names is not None:
            self.feature_names_in_ = names
            check_names(self, feature_names(rows))
        return last

    def _begin(self, block: Block, n_targets: int, *, more_to_come: bool) -> None:
        """Determine the kernel on the first rows, and forget everything learned before."""
        self.kernel_, enough = resolved_kernel(self.kernel, block.X, weight_of(block), more_to_come=more_to_come)
        self.gamma_ = self.kernel_.gamma
        self._held = None if enough else block
        # A single row may be small, or like all others.
        if enough and block.n_rows > 1:
            check_size(self.kernel_, self_similarity(self.kernel_, block.X))
            warn_of_constant(self.kernel_, block.X)
        self.__dict__ |= self._targets.known
        self.state_ = start(n_targets, kept=self.window if is_classifier(self) and not more_to_come else 0)
        self.prequential_ = Prequential()
        self._reset()

    def _recursion(self) -> Recursion:
        return Recursion(self.kernel_, self.alpha, self.nu, self.max_centers, self.decay, self.when_full)

    def _learn(self, block: Block, encoded: Block) -> None:
        """Learn a block, so that later rows benefit from calibration."""
        recursion, weight = self._recursion(), weight_of(encoded)
        self.state_, outputs = learn(recursion, self.state_, encoded.X, encoded.y, weight)
        coef, intercept = self.state_.solve()
        self.dual_coef_, self.intercept_ = self._targets.shaped(coef), self._targets.shaped(intercept)
        # Rows with k(x, x) = 0 do not become centers: the model is the intercept.
        self.X_fit_ = take(encoded.X, slice(0)) if self.state_.m == 0 else self.state_.centers
        self._record(block, encoded, outputs)

    def _remember(self, loss: Array, weight: Array) -> None:
        self.prequential_ = self.prequential_.extended(loss, weight, self.window)
        self.prequential_error_ = self.prequential_.error
        self.recent_error_ = self.prequential_.recent
        self.n_rows_seen_ = self.state_.n_rows


class OnlineFisherClassifier(ClassAnswers, OnlineModel):
    r"""Kernel Fisher discriminant that learns from a stream, with constant time per row and memory.

    Kernel recursive least squares (KRLS) with a bounded dictionary. The width is a parameter of the kernel,
    ``OnlineFisherClassifier(RBF(gamma=0.1))``.

    Minimizes, after n rows and over coefficients c of at most ``max_centers`` centers and a free intercept b,

        sum_i decay^(n - i) w_i |Y_i - f(x_i)|² + alpha c'Kc,     f(x) = sum_j c_j k(x, z_j) + b,

    with the class targets Y of :class:`KernelFisherClassifier`. A row becomes a center if its squared distance
    from the span of the centers in feature space exceeds nu k(x, x): approximate linear dependence (ALD). If every
    row becomes one, the fit is that of ``KernelFisherClassifier`` with this kernel and alpha; otherwise a row
    contributes nothing to centers added later, which neglects at most a fraction nu of it while there are fewer
    than ``max_centers``.

    Every row is predicted before it is learned (test-then-train), which gives honest errors and, from a window of
    the last scores, calibrated probabilities. O(m²) time per row and O(m²) memory for m <= max_centers: with 500
    centers about 0.15 milliseconds per row in blocks of a few hundred, 4 in calls with one row. Predicting costs
    O(m d) per row.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name, a kernel of :mod:`mercer.kernels`, or a function k(X, Z) -> (n, m). Strings such as gamma="median"
        are resolved on the rows of the first call, or on the first 100 rows if the first calls, or
        blocks of rows outside memory, have fewer, and "rbf" is ``RBF(gamma="median")``: so pass a few hundred rows
        first, or a number.
    alpha : float, default=0.1
        Penalty; larger is smoother.
    nu : float, default=1e-3
        The part of a row, as a share of k(x, x), that may be neglected before it becomes a center.
    max_centers : int, default=500
        Largest number of centers.
    decay : float, default=1.0
        Forgetting factor: the weight of everything learned is multiplied by it with each row; 1 - 1/n remembers
        about n rows.
    when_full : {"replace", "refuse"}, default="replace"
        Once there are ``max_centers``, replace the least useful centers by more useful recent rows, every 256
        rows; or keep the current centers, which is faster and slightly better on stationary streams.
    weights : {"auto", "counts", "importance"}, default="auto"
        What ``sample_weight`` means for the calibration of probabilities, as in :class:`KernelFisherClassifier`:
        for counts one copy is held out at a time, for importance the whole row, and its unit does not matter.
        ``partial_fit`` calibrates on the last ``window`` rows, predicted before they were learned.
    priors, class_weight, threshold
        As in :class:`KernelFisherClassifier`; "balanced" weights are those of the first call.
    calibration : {"logistic", "isotonic"}, default="logistic"
        How scores become probabilities.
    window : int, default=1000
        Number of rows whose scores are kept, for probabilities and for ``recent_error_``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_, gamma_ : Kernel, float or None
        The values in use.
    prequential_error_ : float
        Weighted share of rows that were misclassified before they were learned. The first row does not count.
    recent_error_ : float
        The same for the last ``window`` rows.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m, q), ndarray (q,)
        Centers, coefficients, intercept.
    n_rows_seen_ : int
        Rows of positive weight so far.
    state_ : RecursiveState
        The factors from which learning continues.
    rule_, threshold_, priors_, scalings_, eigenvalues_, explained_variance_ratio_
        As in :class:`KernelFisherClassifier`, updated with every calibration.

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

    _targets: ClassTargets
    _preserved = ("float64",)

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        alpha: float = 0.1,
        nu: float = 1e-3,
        max_centers: int = 500,
        decay: float = 1.0,
        when_full: str = "replace",
        weights: str = "auto",
        priors: ArrayLike | dict[Any, float] | None = None,
        class_weight: Any = None,
        threshold: str = "bayes",
        calibration: str = "logistic",
        window: int = 1000,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.nu = nu
        self.max_centers = max_centers
        self.decay = decay
        self.when_full = when_full
        self.weights = weights
        self.priors = priors
        self.class_weight = class_weight
        self.threshold = threshold
        self.calibration = calibration
        self.window = window

    @in_one_step
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start over and learn the rows in one pass, in their order.

        Probabilities come from leave-one-out scores of the last ``window`` rows, in closed form: shuffle rows that
        are sorted by class.

        Parameters
        ----------
        X : array, data frame, CSR matrix or list of objects, n rows
            Or rows outside memory, learned block by block: as in :class:`KernelFisherClassifier`.
        y : array of shape (n,)
            Class labels of one type: numbers, strings, Booleans or dates.
        sample_weight : array of shape (n,), default=None
            A row of weight zero is not learned.
        """
        validation.check_choice("calibration", self.calibration, ONLINE_CALIBRATIONS)
        block = self._add(X, y, sample_weight, None, restart=True)
        self._calibrate_left_out(block)
        self.state_ = forgetful(self.state_)
        return self

    @in_one_step
    def partial_fit(
        self, X: Any, y: Any = None, classes: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn more rows, one or many.

        If kernel parameters are strings and the first calls have fewer than 100 rows, these are kept, and each
        call starts over with all of them: the model is that of one call with all rows so far. From 100 rows on the
        kernel is fixed, and no rows are kept.

        Parameters
        ----------
        X : array, data frame, CSR matrix or list of objects, n rows
            Or rows outside memory, learned block by block: as in :class:`KernelFisherClassifier`.
        y : array of shape (n,)
        classes : array of shape (n_classes,), default=None
            All labels that will occur; needed in the first call if its rows do not contain them all.
        sample_weight : array of shape (n,), default=None
        """
        validation.check_choice("calibration", self.calibration, ONLINE_CALIBRATIONS)
        if classes is not None and hasattr(self, "state_"):
            check_declared(classes, self.classes_)
        self._add(X, y, sample_weight, classes, restart=False)
        return self

    def _reset(self) -> None:
        k, q = len(self.classes_), self.state_.a.shape[1]
        self.scores_, self.rule_, self.scalings_ = ScoreWindow.empty(q), uncalibrated(q), np.zeros((k, k - 1))

    def _record(self, block: Block, encoded: Block, outputs: Array) -> None:
        new = ScoreWindow(outputs, class_numbers(encoded.y), weight_of(encoded), weight_of(block)).known()
        self._remember(new.errors(self.rule_), new.given)
        self.scores_ = self.scores_.extended(new, self.window)
        if self.scores_.due:
            self._calibrate(self.scores_, self._reading(self.scores_.given))

    def _reading(self, weight: Array) -> Reading:
        return reading_of(meaning_of(self.weights), Tally.of(weight, len(weight)))

    def _calibrate(self, scores: ScoreWindow, reading: Reading) -> None:
        scatter = scatter_of(self.state_)
        rule = scores.calibrated(self._targets, reading, scatter)
        self.scores_ = replace(scores, new=0)
        self.__dict__ |= self._targets.attributes(rule, class_shares(scatter.Y, scatter.n), scatter)

    def _calibrate_left_out(self, block: Block) -> None:
        """Calibrate on leave-one-out scores of the last rows, which do not depend on their order."""
        last = block.cut(max(0, block.n_rows - self.window), block.n_rows)
        encoded, reading = self._targets.encode(last), self._reading(weight_of(block))
        taken = left_out_scores(self._recursion(), self.state_, last, encoded, reading)
        if len(taken.label) == 0:
            return
        self._calibrate(taken, reading)
        if reading.doubtful:
            other = left_out_scores(self._recursion(), self.state_, last, encoded, reading.opposite)
            rule = other.calibrated(self._targets, reading, scatter_of(self.state_))
            warn_of_weights(reading, taken.accuracy(self.rule_), other.accuracy(rule))


class OnlineKernelRegressor(ValueAnswers, OnlineModel):
    r"""Kernel ridge regression that learns from a stream, with constant time per row and memory.

    Kernel recursive least squares (KRLS) with a bounded dictionary. The width is a parameter of the kernel,
    ``OnlineKernelRegressor(RBF(gamma=0.1))``.

    Minimizes, after n rows and over coefficients c of at most ``max_centers`` centers and a free intercept b,

        sum_i decay^(n - i) w_i |y_i - f(x_i)|² + alpha c'Kc,     f(x) = sum_j c_j k(x, z_j) + b.

    Centers are selected by approximate linear dependence (ALD), as in :class:`OnlineFisherClassifier`; if every
    row becomes one, the fit is that of ``KernelRidgeRegressor`` with this kernel and alpha. O(m²) time per row and
    O(m²) memory for m <= max_centers centers.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name, a kernel of :mod:`mercer.kernels`, or a function k(X, Z) -> (n, m). Strings such as gamma="median"
        are resolved on the rows of the first call, or on the first 100 rows if the first calls, or
        blocks of rows outside memory, have fewer, and "rbf" is ``RBF(gamma="median")``: so pass a few hundred rows
        first, or a number.
    alpha : float, default=0.1
        Penalty; larger is smoother.
    nu : float, default=1e-3
        The part of a row, as a share of k(x, x), that may be neglected before it becomes a center.
    max_centers : int, default=500
        Largest number of centers.
    decay : float, default=1.0
        Forgetting factor: the weight of everything learned is multiplied by it with each row; 1 - 1/n remembers
        about n rows.
    when_full : {"replace", "refuse"}, default="replace"
        Once there are ``max_centers``, replace the least useful centers by more useful recent rows, every 256
        rows; or keep the current centers.
    weights : {"auto", "counts", "importance"}, default="auto"
        As in :class:`OnlineFisherClassifier`. Results of a regressor do not depend on it; "counts" only rejects
        weights that are not integers.
    window : int, default=1000
        Number of rows over which ``recent_error_`` is averaged.

    Attributes
    ----------
    kernel_, gamma_ : Kernel, float or None
        The values in use.
    prequential_error_ : float
        Weighted mean squared error of rows predicted before they were learned, averaged over targets. The first
        row does not count.
    recent_error_ : float
        The same for the last ``window`` rows.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers, coefficients, intercept.
    n_rows_seen_ : int
        Rows of positive weight so far.
    state_ : RecursiveState
        The factors from which learning continues.

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
        max_centers: int = 500,
        decay: float = 1.0,
        when_full: str = "replace",
        weights: str = "auto",
        window: int = 1000,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.nu = nu
        self.max_centers = max_centers
        self.decay = decay
        self.when_full = when_full
        self.weights = weights
        self.window = window

    @in_one_step
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start over and learn the rows in one pass, in their order.

        Parameters
        ----------
        X : array, data frame, CSR matrix or list of objects, n rows
            Or rows outside memory, learned block by block: as in :class:`KernelFisherClassifier`.
        y : array of shape (n,) or (n, q)
        sample_weight : array of shape (n,), default=None
            A row of weight zero is not learned.
        """
        if not is_out_of_core(X):
            validation.in_range("y", real_targets(y, self))
        self._add(X, y, sample_weight, None, restart=True)
        return self

    @in_one_step
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, one or many; for first calls with few rows see :class:`OnlineFisherClassifier`.

        Parameters
        ----------
        X : array, data frame, CSR matrix or list of objects, n rows
            Or rows outside memory, learned block by block: as in :class:`KernelFisherClassifier`.
        y : array of shape (n,) or (n, q)
        sample_weight : array of shape (n,), default=None
        """
        self._add(X, y, sample_weight, None, restart=False)
        return self

    def _reset(self) -> None:
        """Reset the records; nothing is calibrated."""

    def _record(self, block: Block, encoded: Block, outputs: Array) -> None:
        losses = squared_errors(encoded.y, outputs)
        self._remember(losses[~np.isnan(losses)], weight_of(block)[~np.isnan(losses)])
