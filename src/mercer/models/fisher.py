"""The kernel Fisher discriminant classifier."""

from typing import Any, Self

from numpy.typing import ArrayLike

from mercer.kernels import Kernel
from mercer.models.answers import ClassAnswers
from mercer.models.resumable import ResumableModel
from mercer.models.state import Awaited, in_one_step


class KernelFisherClassifier(ClassAnswers, ResumableModel):
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
    rule_: Any = Awaited()
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
        return self._add(X, y, sample_weight, decay, classes)
