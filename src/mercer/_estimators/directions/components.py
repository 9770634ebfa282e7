"""Kernel principal component analysis: all rows at once, or m centers in passes over any rows."""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from mercer import _validation
from mercer._estimators.directions.subspace import (
    SubspaceDetails,
    SubspaceModel,
    all_are_centers,
    budget_of,
    refuse_every_row,
    require_components,
    resolved,
)
from mercer._estimators.fitted import Fitted, fitted, reads_one_state, with_state
from mercer._estimators.least_squares.regressor import KernelRidgeRegressor
from mercer._estimators.parameters import check_parameters, generator, parameters_of
from mercer._fitting.data import RowSchema
from mercer._fitting.subspaces.components import (
    SubspaceState,
    exact_subspace,
    held_out_statistics_of_points,
    held_out_statistics_of_state,
    sample_rows,
    start_subspace,
)
from mercer._scores.monitoring import ControlLimits, Statistics
from mercer._solvers.preimages import preimages
from mercer._types import Array
from mercer.errors import NumericalWarning, warn
from mercer.kernels import RBF, Kernel, Linear, as_kernel
from mercer.rows import MemoryRows, Rows
from mercer.rows._sampling.row_matching import weight_of
from mercer.rows._table import n_rows


class KernelPCA(SubspaceModel):
    r"""Principal components in the feature space of a kernel, of rows from any source.

    ``KernelPCA(n_components=2)`` needs nothing else; the width is a parameter of the kernel, as in
    ``KernelPCA(kernel=RBF(gamma=0.1))``.

    Finds directions w_1, w_2, ... of unit length that maximize the variance of w'phi(x) one after another. Up to
    2000 rows they are combinations of all rows, as in scikit-learn's ``KernelPCA``, with which scores agree up to
    rounding, and signs are fixed. Beyond that they are combinations of m centers, from moments of all rows, in a
    pass for a sample and one for the moments: over rows in memory, Parquet files, streams, Dask, Ray or Spark, O(n
    m²) time and O(m²) memory. ``partial_fit`` and ``remove`` add rows and take them out again, O(m³) each.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a share of the variance below 1, for which as few as possible are kept; None: all
        with a variance.
    kernel : str, Kernel or callable, default="rbf"
        "rbf" is ``RBF(gamma="median")``: there are no targets by which leave-one-out could choose.
    centers : int, "auto", "all", selector or rows, default="auto"
        Number of centers, which are means of clusters (:class:`~mercer.centers.KMeans`), or rows drawn by
        :class:`~mercer.centers.RPCholesky` if rows have no means; "auto": all of up to 2000 rows, or 500 to 4000
        of more; "all": all rows, which must be in memory.
    fit_inverse_transform : bool, default=False
        Whether pre-images are learned: a kernel ridge regression from scores to rows, everything by leave-one-out.
        Otherwise ``inverse_transform`` finds them by a fixed-point iteration, for the Gaussian kernel only.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of the free memory.
    random_state : int, RandomState or None, default=None
        For the sample and the centers.
        None is seed 0: equal rows give equal models, to the bit.
    verbose : int, default=0
        Whether passes show their progress.

    Attributes
    ----------
    explained_variance_ : ndarray of shape (n_components,)
        The variance of each component.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as a share of the variance in feature space, also of what centers cannot express.
    eigenvalues_ : ndarray of shape (n_components,)
        The variances times the number of rows: eigenvalues of the centered kernel matrix.
    X_fit_, dual_coef_, intercept_ : rows, ndarray (m, n_components), ndarray (n_components,)
        Scores are ``k(x, X_fit_) @ dual_coef_ + intercept_``.
    support_ : ndarray of shape (m,) or None
        Which rows the centers are.
    kernel_, gamma_ : Kernel, float or None
        The kernel with its parameters.
    n_components_ : int
    report_ : str
        Which rows carry the components, and in which precision their products were summed.

    References
    ----------
    B. Schölkopf, A. Smola and K.-R. Müller (1998), Nonlinear component analysis as a kernel eigenvalue problem. S.
    Mika et al. (1999), Kernel PCA and de-noising in feature spaces.

    Examples
    --------
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import make_banana
    >>> X, _ = make_banana(300, random_state=0)
    >>> model = KernelPCA(n_components=0.9).fit(X)
    >>> bool(model.explained_variance_ratio_.sum() >= 0.9)
    True
    >>> model.transform(X[:3]).shape == (3, model.n_components_)
    True
    """

    explained_variance_ = fitted[Array]()
    explained_variance_ratio_ = fitted[Array]()
    eigenvalues_ = fitted[Array]()

    def __init__(
        self,
        n_components: int | float | None = None,
        kernel: str | Kernel | Any = "rbf",
        *,
        centers: Any = "auto",
        fit_inverse_transform: bool = False,
        max_memory: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.centers = centers
        self.fit_inverse_transform = fit_inverse_transform
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @reads_one_state
    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows (n, d) whose images are near the points of feature space with these scores (n, n_components).

        Learned if ``fit_inverse_transform``: then they are the rows, where scores determine these. Otherwise exact
        for a linear kernel, and for the Gaussian kernel by the fixed-point iteration of Mika et al. (1999), which
        drops what is not along the components: with few of them, noise.
        """
        check_is_fitted(self, "X_fit_")
        scores = check_array(X, dtype=np.float64, input_name="X")
        if scores.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {scores.shape[1]} columns, but there are {self.n_components_} components; pass scores"
            )
        if self._details.inverse is not None:
            return np.asarray(self._details.inverse.predict(scores)).reshape(len(scores), -1)
        kernel, Z, subspace = self.kernel_, self.X_fit_, self._details.subspace
        if not isinstance(Z, np.ndarray) or kernel.takes_values:
            raise ValueError("there are no pre-images of sparse rows, objects and kernel values; pass dense rows")
        if type(kernel) not in (RBF, Linear):
            raise ValueError(
                f"there is no fixed-point iteration for kernel={kernel!r}; set fit_inverse_transform=True, which "
                "learns pre-images"
            )
        return preimages(kernel, Z.astype(np.float64), scores @ subspace.basis.T + subspace.middle)

    @reads_one_state
    def statistics(self, X: Any) -> Statistics:
        """T² (n,), the squared distance from the mean in units of the standard deviation of each component, and
        SPE (n,), the squared length of what the components leave of a row in feature space: its reconstruction
        error.
        """
        check_is_fitted(self, "X_fit_")
        _refuse_values(self.kernel_)
        subspace = self._details.subspace

        def both(rows: Any) -> Array:
            found = subspace.statistics(rows)
            return np.column_stack([found.t2, found.spe])

        values = np.asarray(self._evaluated(X, both), dtype=np.float64)
        return Statistics(values[:, 0], values[:, 1])

    @reads_one_state
    def control_limits(self, rate: float = 0.01) -> ControlLimits:
        """Limits of T² and SPE that the share ``rate`` of rows like the training rows exceeds, each.

        Quantiles of the training rows, or of a sample of 2000, each without its fold. Ten decompositions.
        """
        check_is_fitted(self, "X_fit_")
        _refuse_values(self.kernel_)
        rate = _validation.check_number("rate", rate, "between 0 and 1", above=0.0, below=1.0)
        known = self._details
        if known.sums is not None:
            found, weight = held_out_statistics_of_state(known.sums, self.n_components_)
        else:
            assert known.weight is not None
            weight = known.weight
            found = held_out_statistics_of_points(known.subspace, known.rows, weight, budget_of(self))
        return ControlLimits.of(found, weight, rate)

    def _check(self) -> None:
        requested_components(self)

    def _fit_rows(self, rows: Rows, schema: RowSchema) -> Fitted:
        """The components in the span of all rows in memory, if these are to be centers."""
        if not isinstance(rows, MemoryRows):
            return self._start_sums(rows, schema)
        X, weight = rows.X, np.ones(rows.n_rows) if rows.weight is None else np.asarray(rows.weight)
        if not all_are_centers(self.centers, as_kernel(self.kernel), int((weight > 0.0).sum())):
            return self._start_sums(rows, schema)
        kernel, (most, _) = resolved(self.kernel, X, weight), requested_components(self)
        subspace, points = exact_subspace(kernel, X, weight, most, budget_of(self))
        kept = None if kernel.takes_values else subspace.centers
        details = SubspaceDetails(
            subspace, parameters_of(self, self._fixed), rows=kept, weight=points.share * points.n
        )
        return self._with_components(details, schema, getattr(X, "dtype", None))

    def _start_sums(self, rows: Rows, schema: RowSchema) -> Fitted:
        """Centers from a sample of the rows, and moments of all of them."""
        _refuse_parts(self.centers, as_kernel(self.kernel))
        rng = generator(self.random_state)
        sampled = sample_rows(rows, self.centers, rng, self.verbose)
        resolve = partial(resolved, self.kernel)
        check, most = self._check_of(sampled), requested_components(self)[0]
        schema = schema.of_sample(sampled.rows, sampled.drawn.sample().X, vectors=check is not None)
        sums = start_subspace(resolve, sampled, check, self.centers, most, rng, budget_of(self), self.verbose)
        return self._solve_sums(sums, schema)

    def _known_sums(self) -> SubspaceState:
        """The moments of the fit so far; those of a fit with all rows are summed now."""
        known = self._details
        if known.sums is not None:
            return cast(SubspaceState, known.sums)
        _refuse_parts("auto", self.kernel_)
        rng, kernel, centers = generator(self.random_state), self.kernel_, known.rows
        sampled = sample_rows(MemoryRows(centers, None, known.weight), centers, rng, self.verbose)
        budget, check = budget_of(self), self._check_of(sampled)
        return start_subspace(lambda X, w: kernel, sampled, check, centers, None, rng, budget, self.verbose)

    def _solve_sums(self, sums: SubspaceState, schema: RowSchema) -> Fitted:
        details = SubspaceDetails(sums.solved(), parameters_of(self, self._fixed), sums)
        return self._with_components(details, schema, getattr(sums.centers, "dtype", None))

    def _with_components(self, details: SubspaceDetails, schema: RowSchema, dtype: Any) -> Fitted:
        """The components that are wanted."""
        most, share = requested_components(self)
        subspace = details.subspace
        require_components(subspace)
        k = subspace.n_components(most, share)
        reached = float(subspace.variance[:k].sum())
        if share is not None and reached < share * subspace.total:
            warn(
                f"n_components={share:g}, but {n_rows(subspace.centers)} centers express "
                f"{reached / subspace.total:.3g} of the variance; use more of them",
                NumericalWarning,
            )
        variance = subspace.variance[:k]
        attributes = self._attributes(subspace.first(k), schema, dtype) | {
            "explained_variance_": variance,
            "explained_variance_ratio_": variance / subspace.total,
            "eigenvalues_": subspace.n * variance,
        }
        state = Fitted(attributes, replace(details, subspace=subspace.first(k)))
        if not self.fit_inverse_transform:
            return state
        inverse = _learned(with_state(self, state))
        return replace(state, details=replace(state.details, inverse=inverse))


def requested_components(model: KernelPCA) -> tuple[int | None, float | None]:
    """The number of components, or the share of the variance, that is wanted; all parameters are checked."""
    check_parameters(model)
    generator(model.random_state)
    n, words = model.n_components, "a positive integer, a share of the variance below 1, or None"
    if n is None:
        return None, None
    if isinstance(n, float | np.floating):
        return None, _validation.check_number("n_components", n, words, above=0.0, below=1.0)
    return _validation.check_int("n_components", n, words, least=1), None


def _learned(model: KernelPCA) -> KernelRidgeRegressor:
    """Kernel ridge regression from scores to rows, or to some of them."""
    known = model._details
    if known.sums is None:
        X, weight = known.rows, known.weight
    else:
        block, _ = known.sums.sample
        X, weight = block.X, weight_of(block)
    if not isinstance(X, np.ndarray):
        raise ValueError(
            "pre-images are learned of dense rows of numbers, not of sparse rows, objects and kernel values; set "
            "fit_inverse_transform=False"
        )
    scores = np.asarray(model._expansion()(X), dtype=np.float64)
    inverse = KernelRidgeRegressor(max_memory=model.max_memory, random_state=0)
    return inverse.fit(scores, np.asarray(X, dtype=np.float64), weight)


def _refuse_values(kernel: Kernel) -> None:
    if kernel.takes_values:
        raise ValueError("k(x, x) of new rows is not in a kernel matrix; fit a kernel and rows for T² and SPE")


def _refuse_parts(centers: Any, kernel: Kernel) -> None:
    """Reject what needs all rows at once."""
    if kernel.takes_values:
        raise ValueError(
            'a kernel matrix is fitted at once, with every row a center: use fit, and centers="auto"; rows cannot '
            "be added or removed"
        )
    refuse_every_row(centers)
