"""Kernel principal component analysis: all rows at once, or m centers in passes over any rows."""

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mercer import gate
from mercer.gram import Budget, cross
from mercer.kernels import RBF, Kernel, Linear, as_kernel
from mercer.kernels.resolve import without_targets
from mercer.models.base import KernelModel, check_names, keep_names, n_columns, read_blocks
from mercer.models.lazy import lazily
from mercer.models.regression import KernelRidgeRegressor
from mercer.models.state import from_one_state, in_one_step
from mercer.models.validation import generator, memory_or_none, row_weight
from mercer.rows import MemoryRows, Rows, feature_names, outside_memory
from mercer.rows.table import n_rows
from mercer.rows.twins import weight_of
from mercer.scores.monitoring import ControlLimits, Statistics
from mercer.tuning.components import (
    EVERY_ROW,
    Subspace,
    SubspaceState,
    begin_subspace,
    exact_subspace,
    left_out,
    look_at,
    statistics_of,
)
from mercer.types import Array, Floats

# Steps of the fixed-point iteration for pre-images, and the change, in units of the width, at which it ends.
MOST_STEPS, STILL = 200, 1e-6


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelModel):
    r"""Principal components in the feature space of a kernel, of rows from any source.

    ``KernelPCA(n_components=2)`` needs nothing else; the width is a parameter of the kernel, as in
    ``KernelPCA(kernel=RBF(gamma=0.1))``.

    Finds directions w_1, w_2, ... of unit length that maximize the variance of w'phi(x) one after another. Up to
    2000 rows they are combinations of all rows, as in scikit-learn's ``KernelPCA``, with which scores agree up to
    rounding, and signs are fixed. Beyond that they are combinations of m centers, from moments of all rows: one
    pass over rows in memory, Parquet files, streams, Dask, Ray or Spark, O(n m²) time and O(m²) memory;
    ``partial_fit`` and ``remove`` add rows and take them out again.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a share of the variance below 1, for which as few as possible are kept; None: all
        with a variance.
    kernel : str, Kernel or callable, default="rbf"
        "rbf" is ``RBF(gamma="median")``: there are no targets by which leave-one-out could choose.
    centers : int, "auto", "all", selector or rows, default="auto"
        Number of centers, which are means of clusters (:class:`~mercer.centers.KMeans`), or rows drawn by
        :class:`~mercer.centers.RPCholesky` if rows have no means; "auto": all of up to 2000 rows, or 500 to 4000.
    fit_inverse_transform : bool, default=False
        Whether pre-images are learned: a kernel ridge regression from scores to rows, everything by leave-one-out.
        Otherwise ``inverse_transform`` finds them by a fixed-point iteration, for the Gaussian kernel only.
    max_memory : float, default=None
        GiB that may be allocated; None: four fifths of the free memory.
    random_state : int, RandomState or None, default=None
        For the sample and the centers.
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
        Scores are k(x, X_fit_) @ dual_coef_ + intercept_.
    support_ : ndarray of shape (m,) or None
        Which rows the centers are.
    kernel_, gamma_ : Kernel, float or None
        The kernel with its parameters.
    n_components_ : int

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

    @in_one_step
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array, CSR matrix, data frame, list of objects or kernel matrix, n rows
            Or rows outside memory: the path of a Parquet file or folder, blocks, a collection of Dask, Ray or
            Spark.
        y : ignored
        sample_weight : array of shape (n,), default=None
            Weights of the rows; a weight of two is equivalent to repeating the row. For a path, the name of the
            column.
        """
        most, _ = wanted(self)
        self.__dict__.pop("_state", None)
        if outside_memory(X):
            rows = read_blocks(self, X, None, sample_weight, first=True)
            return self._begun(rows)
        X = self._read(X, reset=True)
        weight = row_weight(sample_weight, n_rows(X))
        if not _all_are_centers(self.centers, as_kernel(self.kernel), int((weight > 0.0).sum())):
            return self._begun(MemoryRows(X, None, None if sample_weight is None else weight))
        kernel = without_targets(self.kernel, X, weight)
        budget = Budget.from_parameter(memory_or_none("max_memory", self.max_memory))
        subspace, points = exact_subspace(kernel, X, weight, most, budget)
        self._rows = None if kernel.takes_values else subspace.centers
        self._weight = points.share * points.n
        return self._concluded(subspace, getattr(X, "dtype", None))

    @in_one_step
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: the model is that of all rows so far. Centers and kernel are those of the first ones.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
        """
        wanted(self)
        rows = self._batch(X, sample_weight, first=not hasattr(self, "X_fit_"))
        if not hasattr(self, "X_fit_"):
            return self._begun(rows)
        return self._continued(self._known_state().joined(rows, self.verbose), rows)

    @in_one_step
    def remove(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out again that were passed to ``fit`` or ``partial_fit``: the model is that of the others.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
        """
        check_is_fitted(self, "X_fit_")
        rows = self._batch(X, sample_weight, first=False)
        return self._continued(self._known_state().left(rows, self.verbose), rows)

    @lazily
    @from_one_state
    def transform(self, X: Any) -> Floats:
        """Scores (n, n_components): coordinates around the mean along the components."""
        return self._outputs(X)

    @from_one_state
    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows (n, d) whose images are near the points of feature space with these scores (n, n_components).

        Learned if ``fit_inverse_transform``: then they are the rows, where scores determine these. Otherwise exact
        for a linear kernel, and for the Gaussian kernel by the fixed-point iteration of Mika et al. (1999), which
        leaves out what is not along the components: with few of them, noise.
        """
        check_is_fitted(self, "X_fit_")
        scores = check_array(X, dtype=np.float64, input_name="X")
        if scores.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {scores.shape[1]} columns, but there are {self.n_components_} components; pass scores"
            )
        if self._inverse is not None:
            return np.asarray(self._inverse.predict(scores)).reshape(len(scores), -1)
        kernel, Z = self.kernel_, self.X_fit_
        coef = scores @ self._subspace.basis[:, : self.n_components_].T + self._subspace.middle
        if type(kernel) is Linear and isinstance(Z, np.ndarray):
            return np.asarray(coef @ Z)
        if type(kernel) is not RBF or not isinstance(Z, np.ndarray):
            raise ValueError(
                f"there is no fixed-point iteration for kernel={kernel!r} and such rows; set "
                "fit_inverse_transform=True, which learns pre-images of rows of numbers"
            )
        return fixed_point(kernel, Z.astype(np.float64), coef)

    @from_one_state
    def statistics(self, X: Any) -> Statistics:
        """T² (n,), the squared distance from the mean in units of the standard deviation of each component, and
        SPE (n,), the squared length of what the components leave of a row in feature space: its reconstruction
        error.
        """
        check_is_fitted(self, "X_fit_")
        _refuse_values(self.kernel_)
        k, subspace = self.n_components_, self._subspace

        def both(rows: Any) -> Array:
            found = statistics_of(subspace, k, rows)
            return np.column_stack([found.t2, found.spe])

        values = np.asarray(self._evaluated(X, both), dtype=np.float64)
        return Statistics(values[:, 0], values[:, 1])

    @from_one_state
    def control_limits(self, rate: float = 0.01) -> ControlLimits:
        """Limits of T² and SPE that the share ``rate`` of rows like the training rows exceeds, each.

        Quantiles of up to 2000 training rows, each without its fold. Ten decompositions.
        """
        check_is_fitted(self, "X_fit_")
        _refuse_values(self.kernel_)
        rate = gate.number("rate", rate, "between 0 and 1", above=0.0, below=1.0)
        found, weight = left_out(
            self._subspace, self.__dict__.get("_state"), self._rows, self._weight, self.n_components_
        )
        return ControlLimits.of(found, weight, rate)

    def _batch(self, X: Any, sample_weight: Any, *, first: bool) -> Rows:
        """Rows to add or remove."""
        if outside_memory(X):
            return read_blocks(self, X, None, sample_weight, first=first)
        X = self._read(X, reset=first)
        return MemoryRows(X, None, None if sample_weight is None else row_weight(sample_weight, n_rows(X)))

    def _begun(self, rows: Rows) -> Self:
        """Centers from a sample of the rows, and moments of all of them."""
        rng = generator(self.random_state)
        looked = look_at(rows, self.centers, rng, self.verbose)
        keep_names(self, feature_names(looked.rows))
        if as_kernel(self.kernel).takes_vectors:
            self.n_features_in_ = n_columns(looked.drawn.sample().X)
        settle, most = partial(without_targets, self.kernel), wanted(self)[0]
        state = begin_subspace(settle, looked, self._check_block(), self.centers, most, rng, self.verbose)
        return self._continued(state, rows)

    def _known_state(self) -> SubspaceState:
        """The moments of the fit so far; those of a fit with all rows are summed now."""
        if "_state" in self.__dict__:
            return self._state
        if self._rows is None:
            raise ValueError(
                "rows cannot be added to a fit of a kernel matrix, or removed from it; fit the matrix of all rows"
            )
        rows, rng = MemoryRows(self._rows, None, self._weight), generator(self.random_state)
        looked = look_at(rows, self._rows, rng, self.verbose)
        return begin_subspace(lambda X, weight: self.kernel_, looked, None, self._rows, None, rng, self.verbose)

    def _continued(self, state: SubspaceState, rows: Rows) -> Self:
        check_names(self, feature_names(rows))
        self._state = state
        self._rows, self._weight = state.sample.X, weight_of(state.sample)
        return self._concluded(state.solved(), getattr(state.centers, "dtype", None))

    def _concluded(self, subspace: Subspace, dtype: Any) -> Self:
        most, share = wanted(self)
        if len(subspace.variance) == 0:
            raise ValueError(
                f"all rows are equal for this kernel, with n_samples = {subspace.n:g}: there is no variance"
            )
        k = subspace.n_components(most, share)
        kept = np.float32 if dtype == np.float32 else np.float64
        self._subspace = subspace
        self.kernel_, self.gamma_ = subspace.kernel, subspace.kernel.gamma
        self.X_fit_, self.support_ = subspace.centers, subspace.support
        self.dual_coef_ = subspace.basis[:, :k].astype(kept)
        self.intercept_ = (-subspace.shift[:k]).astype(kept)
        self.explained_variance_ = subspace.variance[:k]
        self.explained_variance_ratio_ = self.explained_variance_ / subspace.total
        self.eigenvalues_ = subspace.n * self.explained_variance_
        self.n_components_ = k
        learns = self.fit_inverse_transform
        self._inverse = _learned(self._expansion(), self._rows, self._weight) if learns else None
        return self

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def wanted(model: KernelPCA) -> tuple[int | None, float | None]:
    """The number of components, or the share of the variance, that is wanted; parameters are checked."""
    gate.truth("fit_inverse_transform", model.fit_inverse_transform)
    gate.whole("verbose", int(model.verbose), "an integer of at least 0", least=0)
    n, words = model.n_components, "a positive integer, a share of the variance below 1, or None"
    if n is None:
        return None, None
    if isinstance(n, float | np.floating):
        return None, gate.number("n_components", n, words, above=0.0, below=1.0)
    return gate.whole("n_components", n, words, least=1), None


def _all_are_centers(centers: Any, kernel: Kernel, n: int) -> bool:
    """Whether all of n rows in memory are centers."""
    if isinstance(centers, str):
        gate.choice("centers", centers, ("auto", "all"))
        return centers == "all" or n <= EVERY_ROW or kernel.takes_values
    return isinstance(centers, Integral) and n <= int(centers)


def _learned(scores_of: Callable[[Any], Floats], X: Any, weight: Array) -> KernelRidgeRegressor:
    """Kernel ridge regression from scores to rows."""
    if not isinstance(X, np.ndarray):
        raise ValueError(
            "fit_inverse_transform=True learns dense rows of numbers, and no kernel values; set False"
        )
    scores = np.asarray(scores_of(X), dtype=np.float64)
    return KernelRidgeRegressor(random_state=0).fit(scores, np.asarray(X, dtype=np.float64), weight)


def _refuse_values(kernel: Kernel) -> None:
    if kernel.takes_values:
        raise ValueError("k(x, x) of new rows is not in a kernel matrix; fit a kernel and rows for T² and SPE")


def fixed_point(kernel: RBF, Z: Array, coef: Array) -> Array:
    """Rows (n, d) nearest to sum_i coef_i phi(z_i) in feature space, from coef (n, m): x <- mean of z with weights
    coef k(x, z), beginning at the center that is nearest.
    """
    gamma = float(np.max(kernel.gamma))
    start = (coef @ cross(kernel, Z, Z)).argmax(axis=1)
    found: Array = Z[start]
    moving = np.arange(len(coef))
    for _ in range(MOST_STEPS):
        weight = coef[moving] * cross(kernel, found[moving], Z)
        total = weight.sum(axis=1)
        # Where weights cancel, the iteration has nowhere to go.
        able = np.abs(total) > np.finfo(np.float64).eps * np.abs(weight).sum(axis=1)
        moving, weight, total = moving[able], weight[able], total[able]
        step = (weight @ Z) / total[:, None] - found[moving]
        found[moving] += step
        moving = moving[gamma * (step**2).sum(axis=1) > STILL**2]
        if len(moving) == 0:
            break
    return found
