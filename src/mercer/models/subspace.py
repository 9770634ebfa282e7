"""What models of directions in feature space share: rows added and removed, and scores."""

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer import validation
from mercer.gram import Budget
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.resolve import without_targets
from mercer.models.base import KernelModel, keep_names, n_columns, read_blocks
from mercer.models.lazy import lazily
from mercer.models.state import from_one_state, in_one_step
from mercer.models.validation import memory_or_none, parameters_of, refuse_changes, row_weight
from mercer.rows import MemoryRows, Rows, feature_names, is_out_of_core
from mercer.rows.table import n_rows
from mercer.tuning.components import EVERY_ROW, Subspace, look_at
from mercer.tuning.passes import Look
from mercer.types import Array, Floats, Indices


class SubspaceModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelModel):
    """Scores of rows along directions of feature space, which follow from moments of rows; abstract."""

    centers: Any
    max_memory: float | None
    random_state: Any
    verbose: int
    gamma_: float | None
    support_: Indices | None
    n_components_: int
    report_: str
    # The sums depend on these parameters: they must not change between batches.
    _fixed: ClassVar[tuple[str, ...]] = ("kernel", "centers")

    @abstractmethod
    def _check(self) -> None:
        """Validate all parameters."""

    @abstractmethod
    def _begun(self, rows: Rows) -> Self:
        """Centers from a sample of the rows, and moments of all of them."""

    @abstractmethod
    def _known_state(self) -> Any:
        """The moments of the fit so far."""

    @abstractmethod
    def _continued(self, state: Any, rows: Rows) -> Self:
        """Store moments, to which rows were added, and what follows from them."""

    @in_one_step
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: the model is that of all rows so far. Centers and kernel are those of the first ones.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
        """
        self._check()
        first = not hasattr(self, "X_fit_")
        rows = self._batch(X, sample_weight, first=first)
        return self._begun(rows) if first else self._continued(self._known_state().added(rows, self.verbose), rows)

    @in_one_step
    def remove(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out again that were passed to ``fit`` or ``partial_fit``: the model is that of the others.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
        """
        check_is_fitted(self, "X_fit_")
        rows = self._batch(X, sample_weight, first=False)
        return self._continued(self._known_state().removed(rows, self.verbose), rows)

    @lazily
    @from_one_state
    def transform(self, X: Any) -> Floats:
        """Scores (n, n_components): coordinates around the mean along the components."""
        return self._outputs(X)

    def _batch(self, X: Any, sample_weight: Any, *, first: bool) -> Rows:
        """Rows to begin with, to add or to remove."""
        if not first:
            refuse_changes(self._begun_with, parameters_of(self, self._fixed))
        if is_out_of_core(X):
            return read_blocks(self, X, None, sample_weight, first=first)
        X = self._read(X, reset=first)
        return MemoryRows(X, None, None if sample_weight is None else row_weight(sample_weight, n_rows(X)))

    def _looked(self, rows: Rows, centers: Any, rng: np.random.Generator) -> Look:
        """One pass for a sample; names and number of columns are stored."""
        looked = look_at(rows, centers, rng, self.verbose)
        keep_names(self, feature_names(looked.rows))
        if as_kernel(self.kernel).takes_vectors:
            self.n_features_in_ = n_columns(looked.drawn.sample().X)
        return looked

    def _store(self, subspace: Subspace, dtype: Any) -> None:
        """Publish the directions; coefficients have the type of the rows."""
        kept = np.float32 if dtype == np.float32 else np.float64
        self._subspace = subspace
        self.kernel_, self.gamma_ = subspace.kernel, subspace.kernel.gamma
        self.X_fit_, self.support_ = subspace.centers, subspace.support
        self.dual_coef_ = subspace.basis.astype(kept)
        self.intercept_ = (-subspace.shift).astype(kept)
        self.n_components_, self.report_ = len(subspace.variance), subspace.words

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
        validation.check_choice("centers", centers, ("auto", "all"))
        return centers == "all" or n <= EVERY_ROW or kernel.takes_values
    return isinstance(centers, Integral) and centers is not True and n <= int(centers)


def refuse_every_row(centers: Any) -> None:
    """Reject centers that need all rows at once."""
    if isinstance(centers, str):
        validation.check_choice("centers", centers, ("auto", "all"))
        if centers == "all":
            raise ValueError('centers="all" needs all rows in memory, at once; set a number of centers, or "auto"')


def require_components(subspace: Subspace) -> None:
    """There is some variance."""
    if len(subspace.variance) == 0:
        raise ValueError(
            f"all rows are equal for this kernel, up to rounding, with n_samples = {subspace.n:g}: there is "
            "no variance; use another width, or scale the features"
        )
