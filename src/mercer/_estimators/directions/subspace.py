"""What models of directions in feature space share: rows added and removed, and scores."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer import _validation
from mercer._estimators.base import KernelModel, blocks_and_schema, read_blocks, schema_of
from mercer._estimators.dask_methods import supports_dask
from mercer._estimators.fitted import Fitted, atomic_update, fitted, reads_one_state, unfitted
from mercer._estimators.parameters import memory_or_none, parameters_of, refuse_changes, row_weight
from mercer._fitting.data import RowSchema
from mercer._fitting.subspaces.components import MOST_POINTS_AS_CENTERS, Subspace, SubspaceSample
from mercer._gram import Budget
from mercer._types import Array, Floats, Indices
from mercer.kernels import Kernel
from mercer.kernels._resolve import without_targets
from mercer.rows import MemoryRows, Rows
from mercer.rows._resolve import is_out_of_core
from mercer.rows._table import n_columns, n_rows


@dataclass(frozen=True, eq=False)
class SubspaceDetails:
    """The directions; the parameters on which sums depend; and what the fit can go on from: sums, or all ``rows``
    with their weights, None: there are none. ``inverse`` finds rows from scores, None: it is not learned.
    """

    subspace: Subspace
    fixed_parameters: dict[str, Any]
    sums: Any = None
    rows: Any = None
    weight: Array | None = None
    inverse: Any = None


class SubspaceModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelModel):
    """Scores of rows along directions of feature space, which follow from moments of rows; abstract."""

    centers: Any
    max_memory: float | None
    random_state: Any
    verbose: int
    # The sums depend on these parameters: they must not change between batches.
    _fixed: ClassVar[tuple[str, ...]] = ("kernel", "centers")

    support_ = fitted[Indices | None]()
    n_components_ = fitted[int]()
    report_ = fitted[str]()

    @abstractmethod
    def _check(self) -> None:
        """Validate all parameters."""

    @abstractmethod
    def _fit_rows(self, rows: Rows, schema: RowSchema) -> Fitted:
        """What is fitted to rows to which none need to be added."""

    @abstractmethod
    def _start_sums(self, rows: Rows, schema: RowSchema) -> Fitted:
        """Centers from a sample of the rows, moments of all of them, and what follows from these."""

    @abstractmethod
    def _known_sums(self) -> Any:
        """The moments of the fit so far."""

    @abstractmethod
    def _solve_sums(self, sums: Any, schema: RowSchema) -> Fitted:
        """What follows from moments, to which rows were added."""

    @atomic_update
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array, CSR matrix, data frame, list of objects or, for kernel PCA, kernel matrix, n rows
            Or out-of-core rows: the path of a Parquet file or folder, blocks, a collection of Dask, Ray or
            Spark.
        y : ignored
        sample_weight : array of shape (n,), default=None
            Weights of the rows; a weight of two is equivalent to repeating the row. For a path, the name of the
            column.
        """
        self._check()
        return self._publish(self._fit_rows(*self._first_rows(X, sample_weight)))

    @atomic_update
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: the model is that of all rows so far. Centers and kernel are those of the first ones.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
        """
        self._check()
        if self._fitted is None:
            return self._publish(self._start_sums(*self._first_rows(X, sample_weight)))
        rows = self._batch(X, sample_weight)
        sums = self._known_sums().added(rows, self.verbose)
        return self._publish(self._solve_sums(sums, schema_of(self).of_rows(rows)))

    @atomic_update
    def remove(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out again that were passed to ``fit`` or ``partial_fit``: the model is that of the others.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
        """
        check_is_fitted(self, "X_fit_")
        rows = self._batch(X, sample_weight)
        sums = self._known_sums().removed(rows, self.verbose)
        return self._publish(self._solve_sums(sums, schema_of(self).of_rows(rows)))

    @supports_dask
    @reads_one_state
    def transform(self, X: Any) -> Floats:
        """Scores (n, n_components): coordinates around the mean along the components."""
        return self._outputs(X)

    def _first_rows(self, X: Any, sample_weight: Any) -> tuple[Rows, RowSchema]:
        """The rows of a first call, and their columns."""
        model = unfitted(self)
        if is_out_of_core(X):
            return blocks_and_schema(model, X, None, sample_weight)
        X = model._read(X, reset=True)
        weight = None if sample_weight is None else row_weight(sample_weight, n_rows(X))
        return MemoryRows(X, None, weight), schema_of(model)

    def _batch(self, X: Any, sample_weight: Any) -> Rows:
        """Rows to add or to remove."""
        refuse_changes(self._details.fixed_parameters, parameters_of(self, self._fixed))
        if is_out_of_core(X):
            return read_blocks(self, X, None, sample_weight)
        X = self._read(X, reset=False)
        return MemoryRows(X, None, None if sample_weight is None else row_weight(sample_weight, n_rows(X)))

    def _check_of(self, sampled: SubspaceSample) -> Callable[[Any], Any] | None:
        """How blocks with the columns of a sample are validated; None: rows are objects."""
        check = self._block_validator()
        return None if check is None else check(n_columns(sampled.drawn.sample().X))

    def _attributes(self, subspace: Subspace, schema: RowSchema, dtype: Any) -> dict[str, Any]:
        """The fitted attributes; coefficients have the type of the rows."""
        kept = np.float32 if dtype == np.float32 else np.float64
        return schema.attributes | {
            "kernel_": subspace.kernel,
            "gamma_": subspace.kernel.gamma,
            "X_fit_": subspace.centers,
            "support_": subspace.support,
            "dual_coef_": subspace.basis.astype(kept),
            "intercept_": (-subspace.shift).astype(kept),
            "n_components_": len(subspace.variance),
            "report_": subspace.words,
        }

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def budget_of(model: Any) -> Budget:
    return Budget.from_parameter(memory_or_none("max_memory", model.max_memory))


def resolved(kernel: Any, X: Any, weight: Array) -> Kernel:
    """The kernel with numbers as parameters; a linear one around the rows, which changes rounding errors only."""
    return without_targets(kernel, X, weight).centered_on(X)


def all_are_centers(centers: Any, kernel: Kernel, n: int) -> bool:
    """Whether all of n rows in memory are centers."""
    if isinstance(centers, str):
        _validation.check_choice("centers", centers, ("auto", "all"))
        return centers == "all" or n <= MOST_POINTS_AS_CENTERS or kernel.takes_values
    return isinstance(centers, Integral) and centers is not True and n <= int(centers)


def refuse_every_row(centers: Any) -> None:
    """Reject centers that need all rows at once."""
    if isinstance(centers, str):
        _validation.check_choice("centers", centers, ("auto", "all"))
        if centers == "all":
            raise ValueError('centers="all" needs all rows in memory, at once; set a number of centers, or "auto"')


def require_components(subspace: Subspace) -> None:
    """There is some variance."""
    if len(subspace.variance) == 0:
        raise ValueError(
            f"all rows are equal for this kernel, up to rounding, with n_samples = {subspace.n:g}: there is "
            "no variance; use another width, or scale the features"
        )
