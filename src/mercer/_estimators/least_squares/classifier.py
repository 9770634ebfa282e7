"""The kernel Fisher discriminant classifier."""

from collections.abc import Callable, Mapping
from typing import Any, Self

from numpy.typing import ArrayLike

from mercer._estimators.fitted import atomic_update, fitted
from mercer._estimators.least_squares.contributions import ColumnContributions
from mercer._estimators.parameters import check_declared
from mercer._estimators.predictions import DiscriminantPredictions, HeldOutProbabilities, NoveltyPredictions
from mercer._expansion import Expansion
from mercer._types import Array, Floats
from mercer.kernels import Kernel


class KernelFisherClassifier(
    NoveltyPredictions, DiscriminantPredictions, HeldOutProbabilities, ColumnContributions
):
    r"""Kernel Fisher discriminant with bandwidth and penalty chosen by exact leave-one-out.

    ``KernelFisherClassifier()`` needs no parameters. To set them: gamma belongs to the kernel,
    ``KernelFisherClassifier(RBF(gamma=0.1))``, and ``alpha`` corresponds to 1/C of a support vector machine.
    ``set_params(kernel__gamma=0.1)`` and grids over ``kernel__gamma`` also work.

    Finds f(x) = sum_j c_j k(x, z_j) + b for the class targets Y (two classes: -1 and +1, more: one
    indicator each) that minimizes

        sum_i w_i |Y_i - f(x_i)|² + alpha c'Kc,

    the least-squares support vector machine (LS-SVM), or kernel ridge regression on the labels, whose direction is
    the kernel Fisher discriminant (kernel LDA) with the regularizer alpha K (Mika 2002, Eqs. 3.34 and 3.37); for k
    classes a (k, k) eigenproblem turns the single fit into the k - 1 discriminant directions. The leave-one-out
    outputs of all rows (PRESS) are exact and come at no extra cost: they are used to choose gamma and alpha, to
    set the threshold and to calibrate the probabilities (Platt scaling).

    Kernels, by default 15, are compared by leave-one-out of small fits with 240 random centers to at most 2000
    rows, and the best of them with more if that could change the choice. With every row as a center, the fit
    with the best one costs O(n³): an eigendecomposition for up to 600 distinct rows, for more a Cholesky
    factor for each of a few alphas. Memory is 3 n² to 5 n² numbers (``penalty="coef"``: 10 n²). Predicting
    costs O(n d) per row. With m centers (Nyström landmarks, inducing points, a subset-of-regressors
    approximation), selected or given, the fit is one pass over rows from any source: O(n m²) time, memory of
    O(m²) numbers, O(m d) per row to predict.

    Parameters
    ----------
    kernel : str, Kernel, callable or a list of these, default="auto"
        A name, a kernel of :mod:`mercer.kernels`, a function k(X, Z) -> (n, m), or
        "precomputed". "rbf" is ``RBF(gamma="loo")``. From a list, leave-one-out chooses: the first one, unless
        another is better by a standard error. "auto" is a Gaussian or a Laplacian kernel of features divided by
        their standard deviations, as they are, or in normal scores of their ranks, so that they may have any
        units: see :class:`~mercer.kernels.Standardized` and :class:`~mercer.kernels.RankNormal`. From 1000 rows
        on it also learns which features matter, see ``relevance``. Features of a raw table have one unit already,
        or normal scores of quantities.
    columns : dict, default=None
        What columns of a raw table are, by name, of arrays by position: "number", "category", "text", "date" or
        "drop". Others are what the rule of columns says, see ``columns_``.
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
    criterion : {"brier", "log_loss", "error", "squared"}, default="brier"
        What leave-one-out minimizes: the Brier score or log-loss of the probabilities, the error of the labels, or
        the squared residuals of the targets (PRESS).
    penalty : {"rkhs", "coef"}, default="rkhs"
        c'Kc, or c'c (Mika 2002, Eq. 3.33), for which leave-one-out keeps the row as a center.
    weights : {"auto", "counts", "importance"}, default="auto"
        What ``sample_weight`` means for leave-one-out and the choices based on it. "counts": integers, the
        number of equal rows that a row represents; one copy is held out at a time. "importance": how
        much a row matters; it is held out as a whole, and the unit of the weights does not matter.
        "auto": counts if all weights are integers of at most 10 that are not all equal to the same number above
        1; importance otherwise. If integers are ambiguous and the score depends on their meaning, a
        :class:`~mercer.errors.WeightWarning` states which one was used, and how to set it.
    n_components : int, default=None
        Number of discriminant directions used by transform and predict; None: classes minus one.
    priors : array of shape (n_classes,) or dict, default=None
        Class probabilities where the model will be used, in the order of the classes or by label; None: those of
        the training rows.
    class_weight : dict or "balanced", default=None
        Weights of classes, multiplied with the weights of rows.
    threshold : {"bayes", "least_squares", "equal_error", "soft_margin", "error"}, default="bayes"
        Where two classes are separated: at posterior one half, at the intercept of the fit, where both classes
        have the same error rate, by a support vector machine on the projection, or at the minimum of the
        leave-one-out error. The odds are shifted so that the probability is one half there. With three or more
        classes only the first two are available.
    calibration : {"logistic", "gaussian", "quadratic", "isotonic"}, default="logistic"
        How leave-one-out scores become probabilities: Platt scaling, normal densities with a common covariance or
        one for each class, or isotonic regression. With three or more classes, "logistic" is Platt scaling, of
        bent scores or with a matrix in place of the slope if that has a lower cross-fitted log-loss, and only
        directions in which leave-one-out scores agree with the classes are used. "quadratic" probabilities may
        turn around far from the training rows.
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
    relevance : "auto", "diagonal", array-like of shape (n_features,) or None, default="auto"
        Of a raw table, features are columns here, and what is said of each besides, such as that it is missing.
        "diagonal": the kernel gets one gamma for each feature (automatic relevance determination, ARD), in
        proportion to the mean squared derivative of the fit, if rows that had no part in it are predicted
        better for that; otherwise all features are alike, as with None. Learned from at most 5000 rows, with
        centers from at most half of the sample. Labels in place of "diagonal" name the group of each feature:
        features of one group, such as the indicators of one categorical variable, have one relevance. "auto":
        with ``kernel="auto"`` the same from at most 2000 rows where every row is a center, of at least 1000 dense
        ones, and from at most 5000 where there are more rows than are compared; a fit takes two to three times as
        long. With other kernels, another penalty or ``invariances`` as None.
    probabilities : {"auto", "logistic", "discriminant"}, default="auto"
        Where probabilities, and with them labels and ``decision_function``, come from. "discriminant": from f.
        "logistic": with two classes and every row, at least 100, a center, from a second function of the same
        kernel and centers, fitted with the logistic loss (kernel logistic regression), if leave-one-out shows that
        its log-loss is lower by more than its standard error; otherwise from f. "auto": with ``kernel="auto"`` the
        same. Directions, ``transform`` and ``loo_outputs_`` are those of the discriminant in any case. Not after
        ``partial_fit``.
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
    classes_ : ndarray of shape (n_classes,)
    feature_importances_ : ndarray of shape (n_columns,)
        Shares of the columns in what exchanging each of them costs rows that are held out; zero where that is not
        certain. Computed when it is read, for models with every row a center: see :meth:`importances`.
    columns_ : TableEncoding
        What each column of a raw table has become, as text: ``print(model.columns_)``. Only if X had text,
        categories, dates or missing values.
    kernel_, gamma_, alpha_ : Kernel, float or None, float
        The chosen values.
    mu_ : float or None
        The weight of changes under ``invariances``; None: there is no such penalty.
    kernel_weights_ : dict or None
        Shares of the kernels of a :class:`~mercer.kernels.WeightedSum`, by name; None: the kernel is not one.
    relevance_ : ndarray of shape (n_features,) or None
        Shares of the features (of a raw table those that ``columns_`` makes) in the squared derivatives, which sum
        to one: all equal if no differences were
        found; None: not learned. gammas are proportional to them.
    loo_decision_ : ndarray of shape (n,) or (n, n_classes)
        ``decision_function`` of every training row for the model fitted without it, calibrated by the rows of the
        other four fifths.
    loo_proba_ : ndarray of shape (n, n_classes)
        Its probabilities.
    loo_outputs_ : ndarray of shape (n, 1) or (n, n_classes)
        f of every training row for the model fitted without it.
    logit_coef_, logit_intercept_ : ndarray (m, q) and (q,), or None
        Coefficients and intercept of the function with the logistic loss, from which probabilities come; None:
        they come from f.
    loo_score_ : float
        Leave-one-out accuracy with the chosen kernel, alpha and centers, weighted by the weights of rows and
        classes: a little too high where rows are few, since they are the best of many; :meth:`nested_score` is
        not.
    tuning_paths_ : tuple of TuningPath
        Criterion values of the kernels and alphas that were compared, one comparison after another: first of all
        kernels, by fits with few centers, last of the alphas of the final fit.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m, q), ndarray (q,)
        Centers (with ``centers="all"`` the distinct training rows), coefficients, intercept.
    support_ : ndarray of shape (m,) or None
        Which training row each center is; None if centers are not training rows.
    loo_index_ : ndarray
        Training rows with leave-one-out predictions: all, or with centers at most ``loo_rows``.
    moments_ : Moments
        With centers: the sums over all rows that determine the model (sufficient statistics).
    scalings_, eigenvalues_, explained_variance_ratio_ : ndarray
        Optimal scores of the classes in each direction (n_classes, n_components), squared
        canonical correlations rho², and the shares of rho²/(1 - rho²), between-class over
        within-class variance. If rho² is not above rounding errors, it and its column are zero.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities that the decisions assume.
    degrees_of_freedom_ : float
        Trace of the smoother, intercept included.
    unexplained_variance_ : UnexplainedVariance or None
        What is known of rows, which moderates probabilities far from the training rows; None for indefinite
        kernels.
    rule_ : Rule
        The rule that turns outputs into decisions.
    threshold_ : float or None
        The threshold on the projection; None for three or more classes.
    report_ : Report
        What the fit did, as text: ``print(model.report_)``.

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

    With a given width:

    >>> from mercer.kernels import RBF
    >>> KernelFisherClassifier(RBF(gamma=0.1)).fit(X, y).gamma_
    0.1
    """

    logit_coef_ = fitted[Array | None]()
    logit_intercept_ = fitted[Array | None]()

    _moderates = True

    def __init__(
        self,
        kernel: str | Kernel | Any = "auto",
        *,
        columns: Mapping[Any, str] | None = None,
        alpha: float | str = "loo",
        centers: Any = "auto",
        criterion: str = "brier",
        penalty: str = "rkhs",
        weights: str = "auto",
        n_components: int | None = None,
        priors: ArrayLike | dict[Any, float] | None = None,
        class_weight: Any = None,
        threshold: str = "bayes",
        calibration: str = "logistic",
        cv: Any = None,
        invariances: Any = None,
        mu: float | str | None = None,
        relevance: Any = "auto",
        probabilities: str = "auto",
        loo_rows: int | None = 10_000,
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.columns = columns
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
        self.invariances = invariances
        self.mu = mu
        self.relevance = relevance
        self.probabilities = probabilities
        self.loo_rows = loo_rows
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @atomic_update
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
        decay: float = 1.0,
    ) -> Self:
        """Add rows to the fit; for any batches, the model is that of ``fit`` on all of them.

        The first call chooses kernel and centers on its rows, unless they are given; all calls add to the moments,
        O(b m²) for b rows, and solving, O(m³), is deferred until a result is needed. After a ``fit`` with every
        row as a center, its rows come first. Alpha, threshold and probabilities come from leave-one-out on a
        random sample of all rows so far.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
            The meaning of the weights of all rows so far is decided when the model is solved: a batch, or
            ``decay``, may turn counts into importance if ``weights="auto"``.
        classes : array of shape (n_classes,), default=None
            All classes, in the first call; None: those of its rows. They also determine the weights of
            ``class_weight="balanced"``. Later the same, or None.
        decay : float, default=1.0
            Factor by which the weights of all previous rows are multiplied: below one they are gradually
            forgotten, and so are rows of the sample.
        """
        if classes is not None and hasattr(self, "_moments"):
            check_declared(classes, self.classes_)
        return self._add(X, y, sample_weight, decay, classes)

    def _scored(self) -> Callable[[Any], Floats]:
        if self.logit_coef_ is None or self.logit_intercept_ is None:
            return self._expansion()
        return Expansion(self.kernel_, self.X_fit_, self.logit_coef_, self.logit_intercept_)
