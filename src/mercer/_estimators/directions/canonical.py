"""Kernel canonical correlation analysis of two or more views of the same rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer import _validation
from mercer._estimators.base import BlockValidator, KernelModel, check_square, read_objects, schema_of
from mercer._estimators.directions.subspace import all_are_centers, budget_of, resolved
from mercer._estimators.fitted import Fitted, atomic_update, fitted, reads_one_state, unfitted
from mercer._estimators.parameters import (
    check_parameters,
    count,
    folds_of_rows,
    generator,
    positive_or_word,
    row_weight,
)
from mercer._expansion import Expansion
from mercer._fitting.subspaces.canonical import (
    CENTERS_OF_VIEWS,
    CanonicalFit,
    CanonicalPlan,
    Paired,
    fit_canonical,
    permutation_p_values,
)
from mercer._solvers.directions.canonical import correlations_of_scores
from mercer._types import Array, Floats, Indices
from mercer.errors import KernelError
from mercer.kernels import Kernel, as_kernel
from mercer.rows._resolve import is_out_of_core
from mercer.rows._table import column_names, has_views, holds_numbers, in_single, is_frame, is_sparse, n_rows

# The names of two views that are passed as two tables.
BOTH = ("X", "y")


@dataclass(frozen=True)
class ViewColumns:
    """Of each view: the number of its columns, and their names if it was a data frame."""

    number: dict[Any, int]
    names: dict[Any, tuple[Any, ...] | None]


class KernelCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelModel):
    r"""Kernel canonical correlation analysis: what two or more views of the same rows have in common.

    ``KernelCCA().fit(X, y)`` needs nothing else; the width is a parameter of the kernel, as in
    ``KernelCCA(kernel=RBF(gamma=0.1))``, and alpha is chosen by held-out rows.

    A row has several views: an image and its caption, genes and lipids of one mouse. Finds functions f_v of each
    view, with variance one, whose correlation is large, penalized by the norm of the functions:

    .. math:: \max \sum_{a \ne b} \mathrm{cov}(f_a, f_b) \quad \text{with} \quad
              \sum_v \mathrm{var}(f_v) + \alpha \, s_v \, |f_v|^2 = 1,

    one component after another; s_v is the variance of view v in the space of its kernel, so that alpha has no
    unit. Without alpha, functions of a flexible kernel agree perfectly on any rows, also on noise:
    ``correlations_`` are of the training rows and too large, ``held_out_correlations_`` are of rows in folds. Up
    to 2000 rows every row is a center, O(n³); beyond, m centers a view (a Nyström approximation), from sums over
    all rows, O(n m²) time and O(m²) memory. All views must be in memory.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs of functions, or of as many as there are views; fewer if the views have fewer.
    kernel : str, Kernel, callable, or a dict or list of these, default="rbf"
        One for all views, or one for each: by the name of the view, or in the order of the views. "rbf" is
        ``RBF(gamma="median")``: the median distance between rows of that view.
    alpha : float or "loo", default="loo"
        Penalty; larger is smoother. "loo" chooses the one with the largest mean correlation of rows that are held
        out in the folds of ``cv``.
    centers : int, "auto", "all", selector, or dict of rows, default="auto"
        Centers of each view: a number, which are means of clusters (:class:`~mercer.centers.KMeans`), or rows
        drawn by :class:`~mercer.centers.RPCholesky` if rows have no means; "auto": all of up to 2000 rows, or 600
        of more; a dict gives each view its own number, selector or centers.
    cv : int, splitter or iterable of splits, default=5
        Folds of held-out rows; a number of folds is dealt at random. Equal rows are in one fold.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of the free memory.
    random_state : int, RandomState or None, default=None
        For folds, samples and centers.
        None is seed 0: equal rows give equal models, to the bit.
    verbose : int, default=0
        Whether passes show their progress.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_components,)
        Canonical correlations of the training rows; of more than two views, the mean over all pairs.
    held_out_correlations_ : ndarray of shape (n_components,)
        The same of rows in folds, along functions of the other rows: what new rows will show. alpha="loo" is
        chosen without the fold, by nested cross-validation; more than ten folds are joined to ten for that.
        With more than 400 rows that are all centers, functions of the folds have 400 random ones, fewer of more
        than two views.
    objective_ : ndarray of shape (n_components,)
        The regularized objective, which is not a correlation.
    alpha_ : float
        The penalty.
    views_ : list
        Names of the views: "X" and "y", or the keys of the dict.
    kernels_, X_fit_, dual_coef_, intercept_ : dict
        By the name of the view: its kernel with numbers as parameters, its centers, and coefficients. Scores of a
        view are ``kernels_[v](x, X_fit_[v]) @ dual_coef_[v] + intercept_[v]``, with variance one over the training
        rows.
    n_components_ : int
    report_ : str
        Which rows are centers, and how alpha was chosen.

    References
    ----------
    F. R. Bach and M. I. Jordan (2002), Kernel independent component analysis. D. R. Hardoon, S. Szedmak and J.
    Shawe-Taylor (2004), Canonical correlation analysis: an overview with application to learning methods. J. R.
    Kettenring (1971), Canonical analysis of several sets of variables.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelCCA
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(-1.0, 1.0, size=300)
    >>> X = np.column_stack([np.sin(3.0 * z), rng.normal(size=300)])
    >>> y = np.column_stack([z**2, rng.normal(size=300), z])
    >>> model = KernelCCA(n_components=1, random_state=0).fit(X, y)
    >>> bool(model.held_out_correlations_[0] > 0.9)
    True
    >>> model.transform(X).shape
    (300, 1)
    """

    # By the name of the view, what other models have for their rows.
    kernels_ = fitted[dict[Any, Kernel]]()
    views_ = fitted[list[Any]]()
    correlations_ = fitted[Array]()
    held_out_correlations_ = fitted[Array]()
    objective_ = fitted[Array]()
    alpha_ = fitted[float]()
    n_components_ = fitted[int]()
    report_ = fitted[str]()

    def __init__(
        self,
        n_components: int = 2,
        kernel: Any = "rbf",
        *,
        alpha: float | str = "loo",
        centers: Any = "auto",
        cv: Any = 5,
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.alpha = alpha
        self.centers = centers
        self.cv = cv
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @atomic_update
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the functions.

        Parameters
        ----------
        X : array, CSR matrix, data frame, list of objects or kernel matrix, n rows; or a dict of these
            The first view; or, as a dict, all views by name.
        y : the same, n rows
            The second view; one column may be an array (n,). Ignored if X is a dict.
        sample_weight : array of shape (n,), default=None
            Weights of the rows; a weight of two is equivalent to repeating the row.
        """
        check_parameters(self)
        most, alpha = count("n_components", self.n_components), positive_or_word("alpha", self.alpha)
        rng, budget = generator(self.random_state), budget_of(self)
        model = unfitted(self)
        tables = views_of(model, X, y)
        kernels = kernels_by_view(self.kernel, list(tables))
        views = model._tables(tables, kernels, list(tables))
        columns = {v: view.shape[1] for v, view in views.items() if len(getattr(view, "shape", ())) == 2}
        names = {v: column_names(table) for v, table in tables.items()}
        weight = row_weight(sample_weight, n_rows(views))
        kernels = {v: resolved(kernels[v], view, weight) for v, view in views.items()}
        paired = Paired.of(kernels, views, weight)
        fold = folds_of(self.cv, paired, len(weight), rng)
        plan = CanonicalPlan(alpha, most, planned(self.centers, paired), fold, budget, self.verbose)
        attributes = _attributes(fit_canonical(paired, plan, rng), paired)
        known = schema_of(model).attributes | {"views_": list(tables)}
        return self._publish(Fitted(known | attributes, ViewColumns(columns, names)))

    @reads_one_state
    def transform(self, X: Any, y: Any = None) -> Any:
        """Scores (n, n_components) of rows along the functions of their view.

        Of one table, those of the first view; with y, a tuple of the scores of both; of a dict with some of the
        views, a dict.
        """
        check_is_fitted(self, "dual_coef_")
        if has_views(X):
            return self._scores(X)
        scores = self._scores({BOTH[0]: X} if y is None else dict(zip(BOTH, (X, y))))
        return scores[BOTH[0]] if y is None else tuple(scores.values())

    @reads_one_state
    def correlations(self, X: Any, y: Any = None) -> Array:
        """Correlations (n_components,) of the scores of these rows, at least two; without bias for new rows.

        Of more than two views, the mean over all pairs.
        """
        check_is_fitted(self, "dual_coef_")
        scores = self._scores(views_of(self, X, y))
        if len(next(iter(scores.values()))) < 2:
            raise ValueError("one row has no correlation; pass at least two rows")
        return correlations_of_scores(list(scores.values()))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean over components of the correlations of these rows."""
        return float(np.mean(self.correlations(X, y)))

    @reads_one_state
    def permutation_test(
        self, X: Any, y: Any = None, *, n_permutations: int = 199, random_state: Any = None
    ) -> Array:
        """P-values (n_components,): how often rows that are matched at random agree as well as these do.

        Pass the training rows. For every random matching the functions are found again, with the kernels and the
        alpha of the fit, and as many centers as in folds. The k-th value says whether there are k components, and
        is no less than those before.
        """
        check_is_fitted(self, "dual_coef_")
        times, rng = count("n_permutations", n_permutations), generator(random_state)
        if any(kernel.takes_values for kernel in self.kernels_.values()):
            raise ValueError("a permutation test needs a kernel and rows, not kernel values; pass these to fit")
        views = self._tables(views_of(self, X, y), self.kernels_)
        paired = Paired.every(self.kernels_, views)
        return permutation_p_values(paired, self.alpha_, self.n_components_, times, rng, budget_of(self))

    def _scores(self, tables: Mapping[Any, Any]) -> dict[Any, Floats]:
        """Scores of some of the views."""
        views = self._tables(tables, self.kernels_)
        return {v: self._function(v)(view) for v, view in views.items()}

    def _function(self, v: Any) -> Expansion:
        """The fitted functions of one view."""
        return Expansion(self.kernels_[v], self.X_fit_[v], self.dual_coef_[v], self.intercept_[v])

    def _tables(
        self, tables: Mapping[Any, Any], kernels: dict[Any, Kernel], first: list[Any] | None = None
    ) -> dict[Any, Any]:
        """Views in memory, in the form that their kernels accept; a ``first`` call decides on the columns."""
        known: ViewColumns | None = None if self._fitted is None else self._fitted.details
        views = self.views_ if first is None else first
        two, found = tuple(views) == BOTH, {}
        for v, table in tables.items():
            check_view(v, table, views)
            if two and v == BOTH[0]:
                found[v] = self._read(table, reset=first is not None)
            else:
                n_features = None if known is None else known.number.get(v)
                name = "y" if two else f"X[{v!r}]"
                found[v] = read_view(name, table, kernels[v], n_features, first=first is not None)
        check_consistent_length(*found.values())
        if known is not None:
            check_columns(known.names, tables)
        return found

    @property
    def _row_kernel(self) -> Kernel:
        """The kernel of the first view."""
        return first_kernel(self.kernel)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _attributes(found: CanonicalFit, paired: Paired) -> dict[str, Any]:
    """The fitted attributes by name; coefficients have the precision of the rows of their view."""
    single = {v for v, view in paired.X.items() if in_single(view)}
    kept = {v: np.float32 if v in single else np.float64 for v in paired.X}
    return {
        "kernels_": paired.kernels,
        "X_fit_": found.centers,
        "dual_coef_": {v: coef.astype(kept[v]) for v, coef in found.coef.items()},
        "intercept_": {v: shift.astype(kept[v]) for v, shift in found.intercept.items()},
        "correlations_": found.correlations,
        "held_out_correlations_": found.held_out,
        "objective_": found.objective,
        "alpha_": found.alpha,
        "n_components_": len(found.objective),
        "report_": found.words,
    }


def views_of(model: KernelCCA, X: Any, y: Any) -> dict[Any, Any]:
    """Tables of all views by name: X and y, or those of the dict X."""
    if has_views(X):
        if len(X) < 2:
            raise ValueError(
                f"X is a dict with {len(X)} views, and correlations need two; pass at least two tables"
            )
        missing = [v for v in getattr(model, "views_", ()) if v not in X]
        if missing:
            raise ValueError(f"X has no view {missing[0]!r}, which the model was fitted on; pass all views")
        return dict(X)
    if has_views(y):
        raise ValueError("y is a dict of tables; pass all views in one dict, as X")
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None: y is the second view; or "
            "pass X as a dict of tables, one for each view"
        )
    return dict(zip(BOTH, (X, y)))


def check_view(name: Any, table: Any, known: Sequence[Any]) -> None:
    """A view that the model has, in memory."""
    if name not in known:
        raise ValueError(
            f"{name!r} is not a view of the model, which was fitted on {', '.join(map(repr, known))}; pass a dict "
            "with these names" + (", or two tables" if tuple(known) == BOTH else "")
        )
    if table is None or is_out_of_core(table):
        raise ValueError(
            f"KernelCCA needs all views in memory, but {name!r} is of type {type(table).__name__}; pass arrays, "
            "sparse matrices or data frames"
        )


def check_columns(known: Mapping[Any, Any], tables: Mapping[Any, Any]) -> None:
    """Columns of data frames, in all views, must be those of the fit, in their order."""
    for v, table in tables.items():
        names = column_names(table)
        if None not in (names, known[v]) and names != known[v]:
            raise ValueError(
                f"the columns of {v!r} are {', '.join(map(str, names or ()))}, but the model was fitted on "
                f"{', '.join(map(str, known[v]))}; pass the same columns in the same order"
            )


def read_view(name: str, X: Any, kernel: Any, n_features: int | None, *, first: bool) -> Any:
    """Rows of one view in the form that its kernel accepts: finite numbers, or any objects; (n,) is a column."""
    kind, X = as_kernel(kernel).input_kind, _validation.unmasked(name, X)
    if kind == "objects" and not holds_numbers(X):
        return read_objects(as_kernel(kernel), X)
    X = BlockValidator(n_features, name=name)(X if is_sparse(X) or is_frame(X) else _as_columns(name, X))
    if kind == "values" and first:
        check_square(X)
    return X


def _as_columns(name: str, X: Any) -> Any:
    """Numbers (n,) as one column (n, 1)."""
    _validation.not_dates(name, X)
    X = np.asarray(X)
    text = _validation.first_text(X) if X.dtype.kind in "UO" else None
    if text is not None:
        raise ValueError(
            f"{name} contains text ({text!r}), but its kernel takes numbers; encode it with a OneHotEncoder, or "
            "give this view a kernel on objects"
        )
    return X[:, None] if X.ndim == 1 else X


def kernels_by_view(kernel: Any, names: Sequence[Any]) -> dict[Any, Any]:
    """The kernel of each view, as the user has written it."""
    if isinstance(kernel, Mapping):
        if set(kernel) != set(names):
            raise KernelError(
                f"kernel has the names {', '.join(map(repr, kernel))}, but the views are "
                f"{', '.join(map(repr, names))}; pass one kernel for each view, or one for all"
            )
        return {v: kernel[v] for v in names}
    if not isinstance(kernel, list | tuple):
        return dict.fromkeys(names, kernel)
    if len(kernel) != len(names):
        raise KernelError(
            f"there are {len(kernel)} kernels and {len(names)} views; pass one for each, or one for all"
        )
    return dict(zip(names, kernel))


def first_kernel(kernel: Any) -> Kernel:
    """The kernel of the first view."""
    if isinstance(kernel, Mapping):
        return as_kernel(kernel[BOTH[0]] if BOTH[0] in kernel else next(iter(kernel.values()), "rbf"))
    several = isinstance(kernel, list | tuple) and len(kernel) > 0
    return as_kernel(kernel[0] if several else kernel)


def folds_of(cv: Any, paired: Paired, n: int, rng: np.random.Generator) -> Indices:
    """The fold (u,) of each distinct row, of n rows; a number of folds is dealt at random."""
    if not isinstance(cv, Integral):
        given = folds_of_rows(cv, np.zeros(n), None, classifier=False)
        if given is None:
            raise ValueError(f"cv={cv!r}; pass a number of folds, a splitter, or an iterable of splits")
        return np.unique(given.fold[paired.row], return_inverse=True)[1]
    folds = _validation.check_int(
        "cv", cv, "an integer of at least 2, a splitter, or an iterable of splits", least=2
    )
    return rng.permutation(paired.n) % min(folds, paired.n)


def planned(centers: Any, paired: Paired) -> Any:
    """Centers of every view; None if all rows are centers."""
    kernels = list(paired.kernels.values())
    if any(kernel.takes_values for kernel in kernels) and not isinstance(centers, str):
        raise ValueError('a kernel matrix is fitted with every row a center: use centers="auto"')
    if isinstance(centers, Mapping):
        if set(centers) != set(paired.kernels):
            names = ", ".join(map(repr, paired.kernels))
            raise ValueError(f"centers has the names {', '.join(map(repr, centers))}, but the views are {names}")
        return dict(centers)
    if any(all_are_centers(centers, kernel, paired.n) for kernel in kernels):
        return None
    return CENTERS_OF_VIEWS if isinstance(centers, str) else centers
