"""The kernel Fisher discriminant classifier."""

from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets

from mercer.gate import same_type
from mercer.gram.moments import Moments
from mercer.kernels import Kernel
from mercer.models.base import Training
from mercer.models.lazy import lazily
from mercer.models.passes import ClassBlocks, Columns, Encoder
from mercer.models.state import Awaited, from_one_state, in_one_step
from mercer.models.streaming import StreamModel
from mercer.models.validation import (
    check_classes,
    check_parameters,
    class_factors,
    class_labels,
    class_priors,
    component_count,
    consistent,
    decision_words,
    fold_of_rows,
    known_classes,
    row_weight,
    warn_of_weights,
    weight_reading,
)
from mercer.rows import Block, Drawn, elsewhere
from mercer.scores import (
    ClassFit,
    Rule,
    Scatter,
    classification_criterion,
    make_rule,
    odds_shift,
)
from mercer.scores.criteria import Criterion, CriterionFor, accuracy
from mercer.scores.relative import class_numbers, class_targets
from mercer.solvers import variance_shares
from mercer.tuning import Tuned
from mercer.types import Array, Floats, Indices


class KernelFisherClassifier(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, StreamModel):
    r"""Kernel Fisher discriminant with bandwidth and penalty chosen by exact leave-one-out.

    ``KernelFisherClassifier()`` needs no parameters. To give them: gamma belongs to the kernel,
    ``KernelFisherClassifier(RBF(gamma=0.1))``, and ``alpha`` takes the part of 1/C of a support vector
    machine. ``set_params(kernel__gamma=0.1)`` and grids over ``kernel__gamma`` work, too.

    Finds f(x) = sum_j c_j k(x, z_j) + b for the class targets Y (two classes: -1 and +1, more: one
    indicator each) that minimizes

        sum_i w_i |Y_i - f(x_i)|² + alpha c'Kc,

    the least-squares support vector machine, whose direction is the kernel Fisher discriminant with
    the regularizer alpha K (Mika 2002, Eqs. 3.34 and 3.37); for k classes a (k, k) eigenproblem
    turns the one fit into the k - 1 discriminant directions. The leave-one-out outputs of all rows
    are exact and come at no further cost: they choose gamma and alpha, set the threshold and give
    the probabilities.

    Costs one eigendecomposition, O(n³), for each kernel tried: by default 15 on at most 1000
    distinct rows; of more, the best few on at most 3000; the chosen one on all. Memory 5 n²
    numbers. Predicting costs O(n d) a row. With m centers (a Nyström approximation), chosen or
    given, one pass over the rows, wherever they are: O(n m²) time, memory of O(m²) numbers, O(m d)
    a row to predict.

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
    criterion : {"brier", "log_loss", "error", "squared"}, default="brier"
        What leave-one-out minimizes: the Brier score or log-loss of the probabilities, the
        error of the labels, or the squared residuals of the targets.
    penalty : {"rkhs", "coef"}, default="rkhs"
        c'Kc, or c'c (Mika 2002, Eq. 3.33), for which leaving out a row keeps it as a center.
    weights : {"auto", "counts", "importance"}, default="auto"
        What ``sample_weight`` means to leave-one-out, and so to what it chooses. "counts": how many
        equal rows a row stands for, whole numbers; one copy is left out at a time. "importance": how
        much a row matters; it is left out as a whole, and the unit of the weights does not matter.
        "auto": counts where all weights are whole numbers of at most 10, and not all the same above
        1; importance otherwise. Where whole numbers leave a doubt and the score depends on it, a
        :class:`~mercer.errors.WeightWarning` says what was taken, and what to write.
    n_components : int, default=None
        Discriminant directions kept, by transform and by predict; None: classes minus one.
    priors : array of shape (n_classes,), default=None
        Class probabilities where the model will be used; None: as in the training rows.
    class_weight : dict or "balanced", default=None
        Weights of classes, multiplied with the weights of rows.
    threshold : {"bayes", "least_squares", "equal_error", "soft_margin", "error"}, default="bayes"
        Where two classes are parted: at posterior one half, at the intercept of the fit, where
        both classes are missed equally often, by a support vector machine on the projection, or
        at the least leave-one-out error. The odds are shifted so that the probability is one half
        there. With three and more classes only the first two.
    calibration : {"logistic", "gaussian", "isotonic"}, default="logistic"
        How leave-one-out scores become probabilities. Of three and more classes it uses only
        directions in which leave-one-out scores agree with the classes.
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
    classes_ : ndarray of shape (n_classes,)
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        What was chosen.
    loo_decision_ : ndarray of shape (n,) or (n, n_classes)
        ``decision_function`` of every training row for the model fitted without it.
    loo_proba_ : ndarray of shape (n, n_classes)
        Its probabilities.
    loo_outputs_ : ndarray of shape (n, 1) or (n, n_classes)
        f of every training row for the model fitted without it.
    loo_score_ : float
        Accuracy of the labels of rows that were left out, under the weights of rows and classes.
    loo_path_ : TuningPath
        Kernels, alphas and criterion values that were tried.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m, q), ndarray (q,)
        Centers (with ``centers="all"`` the distinct training rows), coefficients, intercept.
    support_ : ndarray of shape (m,) or None
        Which training row each center is; None where they are none.
    loo_index_ : ndarray
        Which training rows were left out: all, or with centers at most ``loo_rows``.
    moments_ : Moments
        With centers: the sums over all rows from which the model follows.
    scalings_, eigenvalues_, explained_variance_ratio_ : ndarray
        Optimal scores of the classes in each direction (n_classes, n_components), squared
        canonical correlations rho², and the shares of rho²/(1 - rho²), between-class over
        within-class variance. Where rho² is not above rounding, it and its column are zero.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities that the decisions assume.
    degrees_of_freedom_ : float
        Trace of the smoother, the intercept counted.
    rule_ : Rule
        What turns outputs into decisions.
    threshold_ : float or None
        Where the projection is cut; None for three and more classes.
    report_ : FitReport
        What was done, in words: ``print(model.report_)``.

    References
    ----------
    S. Mika (2002), Kernel Fisher Discriminants, TU Berlin. T. Hastie, A. Buja, R. Tibshirani
    (1995), Penalized discriminant analysis, Annals of Statistics 23.

    Examples
    --------
    >>> from mercer import KernelFisherClassifier
    >>> from mercer.datasets import make_banana
    >>> X, y = make_banana(200, random_state=0)
    >>> model = KernelFisherClassifier().fit(X, y)
    >>> model.predict(X[:3]).shape, model.predict_proba(X[:3]).shape
    ((3,), (3, 2))

    A width that is known:

    >>> from mercer.kernels import RBF
    >>> KernelFisherClassifier(RBF(gamma=0.1)).fit(X, y).gamma_
    0.1
    """

    loo_decision_: Any = Awaited()
    loo_outputs_: Any = Awaited()
    loo_proba_: Any = Awaited()
    priors_: Any = Awaited()
    rule_: Rule = cast(Any, Awaited())
    scalings_: Any = Awaited()
    eigenvalues_: Any = Awaited()
    explained_variance_ratio_: Any = Awaited()
    threshold_: Any = Awaited()

    def __init__(
        self,
        kernel: str | Kernel | Any = "rbf",
        *,
        alpha: float | str = "loo",
        centers: Any = "auto",
        criterion: str = "brier",
        penalty: str = "rkhs",
        weights: str = "auto",
        n_components: int | None = None,
        priors: ArrayLike | None = None,
        class_weight: Any = None,
        threshold: str = "bayes",
        calibration: str = "logistic",
        cv: Any = None,
        loo_rows: int | None = 10_000,
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.centers = centers
        self.criterion = criterion
        self.penalty = penalty
        self.weights = weights
        self.n_components = n_components
        self.priors = priors
        self.class_weight = class_weight
        self.threshold = threshold
        self.calibration = calibration
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
            Or rows outside memory, which are read block by block: the path of a Parquet file or folder, a
            list of tuples (X, y) or (X, y, weight), or a function that returns an iterator of them.
        y : array of shape (n,)
            Class labels of one type: numbers, strings, truth values or dates. Of a path the name of the
            column; tuples carry it.
        sample_weight : array of shape (n,), default=None
            Weights of the rows; two is the same as the row twice, in leave-one-out if ``weights``
            are counts. Of a path the name of the column.
        groups : array of shape (n,), default=None
            Rows that are held out together.
        """
        check_parameters(self)
        decision_words(self)
        self._start_anew()
        together = self.cv is not None or groups is not None
        if elsewhere(X):
            self._in_passes(X, together=together)
            return self._fit_elsewhere(X, y, sample_weight)
        X, y, weight = self._table(X, y, sample_weight, reset=True)
        fold = fold_of_rows(self.cv, X, y, groups)
        if self._in_passes(X, together=together):
            return self._fit_table(X, y, None if sample_weight is None else weight, fold)
        label = self._classes(y, weight)
        training = self._training(X, label, weight, fold)
        tuned, observations = self._fit(training, self._criterion(training, label), intercept=True)
        self._keep(observations, y, sample_weight, weight)
        share = np.bincount(label, training.weight) / training.weight.sum()
        scatter = Scatter.of(tuned.fitted, training.Y, training.weight)
        self._make_rule(training, tuned, label, share, scatter)
        return self

    @in_one_step
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
        decay: float = 1.0,
    ) -> Self:
        """Add rows to the fit; in any batches the model is that of ``fit`` on all of them.

        The first call chooses kernel and centers on its rows, unless they are given; all calls
        add to the moments, O(b m²) for b rows, and nothing is solved until the model is asked for
        something, O(m³). After a ``fit`` that made every row a center, its rows are the first. Alpha,
        threshold and probabilities come from leaving out rows of a random sample of all rows so far.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
            What the weights of all rows so far mean is decided when the model is asked for something: a
            batch, or ``decay``, may turn counts into importance where ``weights="auto"``.
        classes : array of shape (n_classes,), default=None
            All classes, in the first call; None: those of its rows. They fix the weights of
            ``class_weight="balanced"``, too.
        decay : float, default=1.0
            What was there before counts so many times as much from now on: below one it is
            forgotten slowly, and so are rows of the sample.
        """
        check_parameters(self)
        decision_words(self)
        self._continue(decay, _told_classes=None if classes is None else known_classes(classes))
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
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of largest probability for each row (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @lazily
    @from_one_state
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes (n, n_classes), calibrated on rows that were left out."""
        F = self._outputs(X)
        return self.rule_.probabilities(F)

    @lazily
    @from_one_state
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities (n, n_classes)."""
        F = self._outputs(X)
        return self.rule_.log_probabilities(F)

    @lazily
    @from_one_state
    def decision_function(self, X: Any) -> Floats:
        """Log-odds of ``classes_[1]`` (n,), or log-probabilities of three and more classes (n, n_classes)."""
        F = self._outputs(X)
        return self.rule_.decision(F)

    @lazily
    @from_one_state
    def transform(self, X: Any) -> Floats:
        """Discriminant variates (n, n_components), the best first.

        On the scale of their targets: of two classes one is fitted to -1, the other to +1; of
        more, class c is fitted to row c of ``scalings_``. Columns of directions that carry
        nothing, where the kernel matrix has a rank below classes minus one, are zero.
        """
        F = self._outputs(X)
        return self.rule_.variates(F)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _table(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, NDArray[Any], Array]:
        """Rows in memory, checked."""
        X = self._read(X, reset=reset)
        y = class_labels(y)
        consistent(X, y)
        return X, y, row_weight(sample_weight, X)

    def _classes(self, y: NDArray[Any], weight: Array) -> Indices:
        """Class numbers (n,); a row of weight zero whose class no other row has gets any number."""
        self._set_classes(np.unique(y[weight > 0]))
        return np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)

    def _set_classes(self, classes: NDArray[Any]) -> None:
        """Store the classes, and refuse what does not fit their number before anything is computed."""
        self.classes_ = classes
        check_classes(classes, self.threshold)
        component_count(self.n_components, len(classes))
        class_priors(self.priors, len(classes))

    def _training(self, X: Any, label: Indices, weight: Array, fold: Indices | None) -> Training:
        """Rows with class targets; the weight of a class goes with its rows."""
        factor = class_factors(self.class_weight, self.classes_, label, weight)[label]
        Y = class_targets(label, len(self.classes_))
        return Training(X, Y, weight * factor, weight, weight_reading(self.weights, weight), fold)

    def _criterion(self, training: Training, label: Indices | None) -> CriterionFor:
        weight, numbers = training.evidence, np.asarray(label)

        def for_rows(rows: Indices) -> Criterion:
            return classification_criterion(self.criterion, numbers[rows], weight[rows], training.Y[rows])

        return for_rows

    def _encoder(self, drawn: Drawn, columns: Columns | None) -> ClassBlocks:
        seen = drawn.labels
        check_classification_targets(drawn.sample().y)
        told = getattr(self, "_told_classes", None)
        if told is not None:
            same_type("y", told, seen.values)
        self._set_classes(seen.values if told is None else told)
        factor = np.ones(len(self.classes_))
        if self.class_weight is not None:
            label = np.searchsorted(self.classes_, seen.values)
            factor = class_factors(self.class_weight, self.classes_, label, seen.weight)
        return ClassBlocks(self.classes_, factor, columns)

    def _labels_of(self, encode: Encoder, block: Block) -> Indices:
        return cast(ClassBlocks, encode).label(block.y, block.weight)

    def _conclude(self, training: Training, tuned: Tuned, moments: Moments) -> None:
        label = class_numbers(training.Y)
        t, n = moments.t, moments.n
        share = np.array([n - t[0], n + t[0]]) / (2 * n) if len(t) == 1 else t / n
        self._check_seen(share)
        scatter = Scatter.of_moments(moments, tuned.coef, tuned.intercept)
        self._make_rule(training, tuned, label, share, scatter)

    def _check_seen(self, share: Array) -> None:
        """Every class that was told has rows."""
        unseen = self.classes_[share <= 1e-12].tolist()
        if unseen:
            raise ValueError(
                f"class {unseen[0]!r} has no training rows: none were added yet, or all were removed or have "
                "decayed; add some with partial_fit before predicting"
            )

    @property
    def _has_intercept(self) -> bool:
        return True

    @property
    def _has_classes(self) -> bool:
        return True

    def _make_rule(self, training: Training, tuned: Tuned, label: Indices, share: Array, scatter: Scatter) -> None:
        """Decisions from the rows left out, for classes of these shares (k,)."""
        k = len(self.classes_)
        priors = class_priors(self.priors, k)
        self.priors_ = share if priors is None else priors

        def rule_of(loo: Array) -> Rule:
            return make_rule(
                ClassFit(loo, training.Y, label, training.evidence, scatter),
                n_components=component_count(self.n_components, k),
                calibration=self.calibration,
                threshold=self.threshold,
                prior_shift=odds_shift(share, self.priors_),
            )

        self.rule_ = rule_of(tuned.loo)
        self.scalings_, self.eigenvalues_ = self.rule_.geometry(scatter)
        self.explained_variance_ratio_ = variance_shares(self.eigenvalues_)
        self.threshold_ = self.rule_.posterior.threshold() if k == 2 else None
        self._store_loo(training, tuned, label)
        if tuned.otherwise is not None:
            P = rule_of(tuned.otherwise).probabilities(tuned.otherwise)
            warn_of_weights(training.reading, self.loo_score_, accuracy(P, label, training.evidence))

    def _store_loo(self, training: Training, tuned: Tuned, label: Indices) -> None:
        self.loo_outputs_ = tuned.loo
        self.loo_decision_ = self.rule_.decision(tuned.loo)
        self.loo_proba_ = self.rule_.probabilities(tuned.loo)
        self.loo_score_ = accuracy(self.loo_proba_, label, training.evidence)
        self.report_ = self._report(tuned, training, f"accuracy {self.loo_score_:.4f}", self.criterion)

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])
