"""Estimators that learn from a stream, block by block, with a bounded number of centers (KRLS)."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from mercer import _validation
from mercer._estimators.base import BlockValidator, KernelModel, blocks_and_schema, schema_of
from mercer._estimators.fitted import Fitted, atomic_update, fitted, unfitted, with_state
from mercer._estimators.parameters import (
    check_declared,
    check_parameters,
    count,
    meaning_of,
    read_rows,
    real_targets,
    under_parameters,
)
from mercer._estimators.predictions import DiscriminantPredictions, RegressorPredictions
from mercer._fitting.data import RowSchema
from mercer._fitting.notices import warn_of_constant
from mercer._fitting.online import RESOLVING_ROWS, loo_scores_of_last_rows, resolved_kernel, scatter_of
from mercer._gram import check_size, self_similarity
from mercer._gram.moments import pieces
from mercer._scores.class_outputs import class_numbers, class_shares
from mercer._scores.criteria import squared_errors
from mercer._scores.prequential import ONLINE_CALIBRATIONS, Prequential, ScoreWindow, uncalibrated
from mercer._scores.targets import Targets, warn_of_weights
from mercer._solvers.recursive import ROWS_AT_ONCE, Recursion, RecursiveState, forgetful, learn_rows, start
from mercer._types import Array
from mercer.kernels import Kernel, as_kernel
from mercer.rows import Block
from mercer.rows._base import join_blocks, of_at_least
from mercer.rows._resolve import is_out_of_core
from mercer.rows._sampling.random_sample import Labels, Sampler, survey
from mercer.rows._sampling.row_matching import weight_of
from mercer.rows._sampling.weights import Reading, Tally, reading_of
from mercer.rows._table import take


@dataclass(frozen=True, eq=False)
class OnlineState:
    """All that was learned: the columns, targets and kernel, factors, the function, and records of predictions
    made before rows were learned, with what follows from these by name. ``held`` are rows that are learned again
    with those of the next call, because the kernel may still change; None: it is fixed.
    """

    schema: RowSchema
    targets: Any
    kernel: Kernel
    factors: RecursiveState
    prequential: Prequential
    held: Block | None = None
    X_fit: Any = None
    coef: Any = None
    intercept: Any = None
    scores: Any = None
    decided: dict[str, Any] = field(default_factory=dict)

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes by name."""
        known: dict[str, Any] = self.targets.known
        return (
            self.schema.attributes
            | known
            | self.decided
            | {
                "kernel_": self.kernel,
                "gamma_": self.kernel.gamma,
                "X_fit_": self.X_fit,
                "dual_coef_": self.coef,
                "intercept_": self.intercept,
                "state_": self.factors,
                "prequential_error_": self.prequential.error,
                "recent_error_": self.prequential.recent,
                "n_rows_seen_": self.factors.n_rows,
            }
        )


class OnlineModel(KernelModel):
    """A model f(x) = sum_j c_j k(x, z_j) + b that learns row by row; abstract."""

    alpha: float
    nu: float
    max_centers: int
    decay: float
    when_full: str
    weights: str
    window: int

    state_ = fitted[RecursiveState]()
    prequential_error_ = fitted[float]()
    recent_error_ = fitted[float]()
    n_rows_seen_ = fitted[int]()

    @abstractmethod
    def _with_records(self, state: OnlineState) -> OnlineState:
        """With empty records of predictions."""

    @abstractmethod
    def _with_outputs(self, state: OnlineState, block: Block, encoded: Block, outputs: Array) -> OnlineState:
        """With outputs (n, q) of rows before they were learned."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def _read(self, X: Any, *, reset: bool, weight: ArrayLike | None = None, fill: bool = False) -> Any:
        """X in float64: approximate dependence relies on small differences."""
        if as_kernel(self.kernel).takes_values:
            raise ValueError(f"kernel={self.kernel!r} has no values for future rows; pass the kernel itself")
        X = super()._read(X, reset=reset, weight=weight, fill=fill)
        return X.astype(np.float64, copy=False) if getattr(X, "dtype", None) in (np.float32, np.float64) else X

    def _block_validator(self) -> Callable[[int], BlockValidator] | None:
        check = super()._block_validator()
        return None if check is None else partial(BlockValidator, dtypes=(np.float64,))

    @property
    def _known(self) -> OnlineState | None:
        """What was learned so far."""
        return None if self._fitted is None else self._fitted.details

    def _publish_state(self, state: OnlineState) -> Self:
        return self._publish(Fitted(state.attributes, state))

    def _add(
        self,
        state: OnlineState | None,
        X: Any,
        y: Any,
        sample_weight: Any,
        declared: ArrayLike | None,
        *,
        more_to_come: bool,
        labels: Labels | None = None,
    ) -> tuple[OnlineState, Block]:
        """Learn rows of positive weight with their labels or values, the first ones if there is no ``state``.

        ``labels`` are those of all rows, if these are the first of several blocks. Returns the last rows, too.
        """
        count("max_centers", self.max_centers)
        check_parameters(self, words=())
        if is_out_of_core(X):
            return self._add_source(state, X, y, sample_weight, declared, more_to_come=more_to_come)
        X, y, weight, schema = self._read_batch(state, X, y, sample_weight)
        reading_of(meaning_of(self.weights), Tally.of(weight, len(weight)))
        used = np.flatnonzero(weight > 0)
        block = Block(take(X, used), y[used], weight[used], 0)
        if state is None:
            if labels is None and is_classifier(self):
                labels = Labels.of(block.y, block.weight)
            targets, held = self._targets_of(block.y, labels, declared), None
        else:
            targets, held = under_parameters(self, state.targets), state.held
        block = block if held is None else join_blocks([held, block])
        encoded = targets.encode(block)
        if state is None or held is not None:
            state = self._start(schema, targets, block, encoded.y.shape[1], more_to_come=more_to_come)
        else:
            state = replace(state, targets=targets)
        for ends in pieces(block.n_rows, ROWS_AT_ONCE):
            state = self._learn(state, block.cut(*ends), encoded.cut(*ends))
        return state, block

    def _read_batch(
        self, state: OnlineState | None, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[Any], Array, RowSchema]:
        """Rows in memory with targets and weights, and their columns: those of the state, if there is one."""
        if state is None:
            reader = unfitted(self)
            return *read_rows(reader, X, y, sample_weight, reset=True), schema_of(reader)
        reader = with_state(self, Fitted(state.schema.attributes | {"X_fit_": state.X_fit}))
        return *read_rows(reader, X, y, sample_weight, reset=False), state.schema

    def _add_source(
        self, state: OnlineState | None, X: Any, y: Any, sample_weight: Any, declared: Any, *, more_to_come: bool
    ) -> tuple[OnlineState, Block]:
        """Learn out-of-core rows block by block; returns the last ``window`` of them, too.

        A pass before finds the classes and their weights, unless the classes are declared and not balanced.
        """
        rows, named = blocks_and_schema(unfitted(self) if state is None else self, X, y, sample_weight)
        schema = named if state is None else state.schema
        labels = None
        balanced = isinstance(getattr(self, "class_weight", None), str)
        if state is None and is_classifier(self) and (declared is None or balanced):
            labels = survey(rows, Sampler(1, 0, labels=True)).labels
        # Blocks have no names: those of all rows are compared.
        state = None if state is None else replace(state, schema=replace(schema, names=None))
        last = None
        for block in of_at_least(rows.blocks(), RESOLVING_ROWS):
            state, new = self._add(
                state, block.X, block.y, block.weight, declared, more_to_come=more_to_come, labels=labels
            )
            last = new if last is None else join_blocks([last, new])
            last = last.cut(max(0, last.n_rows - self.window), last.n_rows)
        if last is None or state is None:
            raise ValueError("there are no rows to learn; pass at least one row of positive weight")
        return replace(state, schema=replace(schema.of_rows(rows), n_features=state.schema.n_features)), last

    def _start(
        self, schema: RowSchema, targets: Targets, block: Block, n_targets: int, *, more_to_come: bool
    ) -> OnlineState:
        """The kernel determined on the first rows, and nothing learned yet."""
        kernel, enough = resolved_kernel(self.kernel, block.X, weight_of(block), more_to_come=more_to_come)
        # A single row may be small, or like all others.
        if enough and block.n_rows > 1:
            check_size(kernel, self_similarity(kernel, block.X))
            warn_of_constant(kernel, block.X)
        factors = start(n_targets, kept=self.window if is_classifier(self) and not more_to_come else 0)
        held = None if enough else block
        return self._with_records(OnlineState(schema, targets, kernel, factors, Prequential(), held))

    def _recursion(self, kernel: Kernel) -> Recursion:
        return Recursion(kernel, self.alpha, self.nu, self.max_centers, self.decay, self.when_full)

    def _learn(self, state: OnlineState, block: Block, encoded: Block) -> OnlineState:
        """With a block, so that later rows benefit from calibration."""
        recursion, weight = self._recursion(state.kernel), weight_of(encoded)
        factors, outputs = learn_rows(recursion, state.factors, encoded.X, encoded.y, weight)
        coef, intercept = factors.solve()
        # Rows with k(x, x) = 0 do not become centers: the model is the intercept.
        X_fit = take(encoded.X, slice(0)) if factors.m == 0 else factors.centers
        shaped = state.targets.shaped
        state = replace(state, factors=factors, X_fit=X_fit, coef=shaped(coef), intercept=shaped(intercept))
        return self._with_outputs(state, block, encoded, outputs)

    def _with_losses(self, state: OnlineState, loss: Array, weight: Array) -> OnlineState:
        return replace(state, prequential=state.prequential.extended(loss, weight, self.window))


class OnlineFisherClassifier(DiscriminantPredictions, OnlineModel):
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

    Every row is predicted before it is learned (test-then-train), which gives errors as of new rows and, from a
    window of the last scores, calibrated probabilities. O(m²) time per row and O(m²) memory for m <= max_centers:
    with 500 centers about 0.15 milliseconds per row in blocks of a few hundred, 4 in calls with one row.
    Predicting costs O(m d) per row.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name, a kernel of :mod:`mercer.kernels`, or a function k(X, Z) -> (n, m). Strings such as gamma="median"
        are resolved on the rows of the first call, or on the first 100 rows if the first calls, or
        blocks of out-of-core rows, have fewer, and "rbf" is ``RBF(gamma="median")``: so pass a few hundred rows
        first, or a number.
    alpha : float, default=0.1
        Penalty; larger is smoother. A number: a stream is read once, and alpha is not chosen from it.
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

    @atomic_update
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start over and learn the rows in one pass, in their order.

        Probabilities come from leave-one-out scores of the last ``window`` rows, in closed form: shuffle rows that
        are sorted by class.

        Parameters
        ----------
        X : array, data frame, CSR matrix or list of objects, n rows
            Or out-of-core rows, learned block by block: as in :class:`KernelFisherClassifier`.
        y : array of shape (n,)
            Class labels of one type: numbers, strings, Booleans or dates.
        sample_weight : array of shape (n,), default=None
            A row of weight zero is not learned.
        """
        _validation.check_choice("calibration", self.calibration, ONLINE_CALIBRATIONS)
        state, block = self._add(None, X, y, sample_weight, None, more_to_come=False)
        state = self._calibrated_left_out(state, block)
        return self._publish_state(replace(state, factors=forgetful(state.factors)))

    @atomic_update
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
            Or out-of-core rows, learned block by block: as in :class:`KernelFisherClassifier`.
        y : array of shape (n,)
        classes : array of shape (n_classes,), default=None
            All labels that will occur; needed in the first call if its rows do not contain them all.
        sample_weight : array of shape (n,), default=None
        """
        _validation.check_choice("calibration", self.calibration, ONLINE_CALIBRATIONS)
        if classes is not None and self._fitted is not None:
            check_declared(classes, self.classes_)
        return self._publish_state(self._add(self._known, X, y, sample_weight, classes, more_to_come=True)[0])

    def _with_records(self, state: OnlineState) -> OnlineState:
        k, q = len(state.targets.classes), state.factors.a.shape[1]
        decided = {"rule_": uncalibrated(q), "scalings_": np.zeros((k, k - 1))}
        return replace(state, scores=ScoreWindow.empty(q), decided=decided)

    def _with_outputs(self, state: OnlineState, block: Block, encoded: Block, outputs: Array) -> OnlineState:
        new = ScoreWindow(outputs, class_numbers(encoded.y), weight_of(encoded), weight_of(block)).known()
        state = self._with_losses(state, new.errors(state.decided["rule_"]), new.given)
        scores = state.scores.extended(new, self.window)
        state = replace(state, scores=scores)
        return self._calibrated(state, scores, self._reading(scores.given)) if scores.due else state

    def _reading(self, weight: Array) -> Reading:
        return reading_of(meaning_of(self.weights), Tally.of(weight, len(weight)))

    def _calibrated(self, state: OnlineState, scores: ScoreWindow, reading: Reading) -> OnlineState:
        scatter, targets = scatter_of(state.factors), state.targets
        rule = scores.calibrated(targets, reading, scatter)
        decided = targets.attributes(rule, class_shares(scatter.Y, scatter.n), scatter)
        return replace(state, scores=replace(scores, new=0), decided=decided)

    def _calibrated_left_out(self, state: OnlineState, block: Block) -> OnlineState:
        """Calibrated on leave-one-out scores of the last rows, which do not depend on their order."""
        last = block.cut(max(0, block.n_rows - self.window), block.n_rows)
        encoded, reading = state.targets.encode(last), self._reading(weight_of(block))
        recursion = self._recursion(state.kernel)
        taken = loo_scores_of_last_rows(recursion, state.factors, last, encoded, reading)
        if len(taken.label) == 0:
            return state
        found = self._calibrated(state, taken, reading)
        if reading.doubtful:
            other = loo_scores_of_last_rows(recursion, state.factors, last, encoded, reading.opposite)
            rule = other.calibrated(state.targets, reading, scatter_of(state.factors))
            warn_of_weights(reading, taken.accuracy(found.decided["rule_"]), other.accuracy(rule))
        return found


class OnlineKernelRegressor(RegressorPredictions, OnlineModel):
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
    kernel, alpha, nu, max_centers, decay, when_full
        As in :class:`OnlineFisherClassifier`.
    weights : {"auto", "counts", "importance"}, default="auto"
        As in :class:`OnlineFisherClassifier`. Results of a regressor do not depend on it; "counts" only rejects
        weights that are not integers.
    window : int, default=1000
        Number of rows over which ``recent_error_`` is averaged.

    Attributes
    ----------
    kernel_, gamma_, n_rows_seen_, state_
        As in :class:`OnlineFisherClassifier`.
    prequential_error_ : float
        Weighted mean squared error of rows predicted before they were learned, averaged over targets. The first
        row does not count.
    recent_error_ : float
        The same for the last ``window`` rows.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m,) or (m, q), float or ndarray (q,)
        Centers, coefficients, intercept.

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

    @atomic_update
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start over and learn the rows in one pass, in their order.

        Parameters
        ----------
        X : array, data frame, CSR matrix or list of objects, n rows
            Or out-of-core rows, learned block by block: as in :class:`KernelFisherClassifier`.
        y : array of shape (n,) or (n, q)
        sample_weight : array of shape (n,), default=None
            A row of weight zero is not learned.
        """
        if not is_out_of_core(X):
            _validation.in_range("y", real_targets(y, self))
        return self._publish_state(self._add(None, X, y, sample_weight, None, more_to_come=False)[0])

    @atomic_update
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, one or many; for first calls with few rows see :class:`OnlineFisherClassifier`.

        Parameters
        ----------
        X : array, data frame, CSR matrix or list of objects, n rows
            Or out-of-core rows, learned block by block: as in :class:`KernelFisherClassifier`.
        y : array of shape (n,) or (n, q)
        sample_weight : array of shape (n,), default=None
        """
        return self._publish_state(self._add(self._known, X, y, sample_weight, None, more_to_come=True)[0])

    def _with_records(self, state: OnlineState) -> OnlineState:
        return state

    def _with_outputs(self, state: OnlineState, block: Block, encoded: Block, outputs: Array) -> OnlineState:
        losses = squared_errors(encoded.y, outputs)
        known = ~np.isnan(losses)
        return self._with_losses(state, losses[known], weight_of(block)[known])
