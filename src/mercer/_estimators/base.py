"""Base of all kernel models: reading rows from any source in the form their kernel accepts, and evaluating f."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import _validation
from mercer._estimators.estimator import MercerEstimator
from mercer._estimators.fitted import fitted, unfitted
from mercer._estimators.parameters import read_rows, row_weight
from mercer._expansion import Expansion
from mercer._fitting.data import RowSchema, TrainingData, check_names
from mercer._scores.targets import Targets
from mercer._types import Floats
from mercer.kernels import Kernel, OneOf, as_kernel
from mercer.rows import MemoryRows, ParquetRows, Rows, as_rows
from mercer.rows._base import BLOCK_ROWS
from mercer.rows._columns import NamedColumns, has_columns, read_columns
from mercer.rows._encoding.columns import TableEncoding
from mercer.rows._encoding.rule import as_raw, check_kinds, encoding_of, has_numbers_only, is_raw
from mercer.rows._resolve import feature_names, is_out_of_core, parquet_rows
from mercer.rows._sampling.random_sample import Labels
from mercer.rows._table import as_table, holds_numbers, is_sparse, n_rows


@dataclass(frozen=True)
class BlockValidator:
    """Validation of rows in blocks: finite numbers in ``n_features`` columns, None: any number of them.

    ``name`` is for errors.
    """

    n_features: int | None
    dtypes: tuple[Any, ...] = (np.float64, np.float32)
    name: str = "X"

    def __call__(self, X: Any) -> Any:
        _validation.not_dates(self.name, X)
        with _validation.naming_text(self.name, X):
            X = check_array(X, accept_sparse="csr", dtype=list(self.dtypes), input_name=self.name)
        if self.n_features not in (None, X.shape[1]):
            raise ValueError(
                f"{self.name} has {X.shape[1]} features, but the first rows had {self.n_features}; pass the same "
                "columns"
            )
        return X


def read_blocks(model: Any, X: Any, y: Any = None, weight: Any = None) -> Rows:
    """Out-of-core rows; of Parquet files, the columns that the model was fitted on, if it was.

    Other columns than those raise an error before anything is read.
    """
    return blocks_and_schema(model, X, y, weight)[0]


def blocks_and_schema(model: Any, X: Any, y: Any = None, weight: Any = None) -> tuple[Rows, RowSchema]:
    """Out-of-core rows, and the names of their columns, if they are known before a pass."""
    if isinstance(X, str | Path):
        X, y, weight = _files(model, X, y, weight), None, None
    names = feature_names(X, y, weight)
    check_names(_names_read_by(model), names)
    return as_rows(X, y, weight), RowSchema().named(names)


def _files(model: Any, path: str | Path, y: Any, weight: Any) -> ParquetRows:
    """Rows of Parquet files as the kernel takes them; columns by name if it has names for them."""
    kernel = getattr(getattr(model, "estimator", model), "kernel", None)
    known = getattr(model, "feature_names_in_", None)
    form, columns = "array", None if y is not None or known is None else list(known)
    if kernel is not None:
        kernel = as_kernel(kernel)
        # Words such as "names" stand for columns that have names.
        words = kernel.reads is None or any(isinstance(name, str) for name in kernel.reads)
        encoding = getattr(model, "columns_", None)
        if encoding is not None:
            return parquet_rows(path, y, weight, columns=encoding.names, form="columns")
        named = kernel.input_kind == "columns" and words
        form = "columns" if named else "list" if kernel.input_kind == "objects" else "array"
        columns = list(kernel.reads) if named and kernel.reads is not None else columns
    return parquet_rows(path, y, weight, columns=columns, form=form)


def schema_of(model: Any) -> RowSchema:
    """The columns that a model has read, if it has read any."""
    known = (getattr(model, name, None) for name in ("n_features_in_", "feature_names_in_", "columns_"))
    return RowSchema(*known)


def _names_read_by(model: Any) -> Any:
    """The names of the columns that a model reads from files: of a raw table those that are used."""
    encoding: TableEncoding | None = getattr(model, "columns_", None)
    return schema_of(model).names if encoding is None else encoding.names


class KernelModel(MercerEstimator):
    """A model f(x) = sum_j c_j k(x, z_j) + b; abstract."""

    kernel: str | Kernel | Any
    # Whether raw tables become features of numbers.
    _encodes_tables = False
    # What they became already, of a model that is fitted to features.
    _given_encoding: TableEncoding | None = None

    kernel_ = fitted[Kernel]()
    gamma_ = fitted[float | None]()
    X_fit_ = fitted[Any]()
    dual_coef_ = fitted[Any]()
    intercept_ = fitted[Any]()

    @abstractmethod
    def _targets_of(self, y: Any, labels: Labels | None, declared: ArrayLike | None) -> Targets:
        """The targets of rows with these y, or of a sample of them, and these labels; validated."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._row_kernel.takes_values
        tags.input_tags.sparse = not self._row_kernel.takes_values
        tags.input_tags.allow_nan = self._encodes_tables and self._row_kernel.takes_vectors
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__gamma`` and the like also work for a kernel given by name."""
        kernel = params.get("kernel", self.kernel)
        if isinstance(kernel, str) and any(key.startswith("kernel__") for key in params):
            params["kernel"] = as_kernel("rbf" if kernel == "auto" else kernel)
        super().set_params(**params)
        return self

    @property
    def _row_kernel(self) -> Kernel:
        """The kernel that compares the rows X."""
        return as_kernel(self.kernel)

    def _read(self, X: Any, *, reset: bool, weight: ArrayLike | None = None, fill: bool = False) -> Any:
        """Rows in memory in the form the kernel accepts: finite numbers, named columns, or any objects.

        Raw tables become numbers; rows without ``weight`` have no say in how. ``fill``: numbers may be missing in
        rows to predict.
        """
        kernel = self._row_kernel
        kind = kernel.input_kind
        X = _validation.unmasked("X", X)
        encoding = self._encoding_of(X, weight) if reset else getattr(self, "columns_", None)
        if encoding is not None:
            return self._encoded(X, encoding, reset=reset)
        X = as_table(X) if kind == "columns" else X
        if kind == "columns" and (has_columns(X) or not holds_numbers(X)):
            return self._read_columns(X, reset=reset)
        if kind == "objects" and not holds_numbers(X):
            return read_objects(kernel, X)
        _validation.not_dates("X", X)
        inner = "RBF()" if isinstance(kernel, OneOf) else repr(kernel)
        remedy = f'; or give them a meaning: kernel=OnColumns({inner}, "numbers", missing="mean")'
        fill = fill and kind == "vectors" and self._encodes_tables and not is_sparse(X)
        with _validation.naming_text("X", X), _validation.naming_missing("X", remedy if kind == "vectors" else ""):
            X = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr" if kind != "values" else False,
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan" if kind == "columns" or fill else True,
            )
        if fill:
            X = _without_gaps(X, getattr(self, "X_fit_", None))
        if kind == "values" and reset:
            check_square(X)
        return X

    def _encoding_of(self, X: Any, weight: ArrayLike | None) -> TableEncoding | None:
        """What the columns of a raw table become; None: rows are not one."""
        kinds = check_kinds(getattr(self, "columns", None))
        if self._given_encoding is not None:
            return None
        if not (self._encodes_tables and self._row_kernel.takes_vectors):
            _refuse_kinds(kinds, self.kernel)
            return None
        if not kinds and not is_raw(X):
            return None
        X = as_raw(X)
        _check_table(X)
        return encoding_of(X, None if weight is None else row_weight(weight, n_rows(X)), kinds)

    def _encoded(self, X: Any, encoding: TableEncoding, *, reset: bool) -> Floats:
        """The features of a raw table, whose columns are found by their names."""
        X = as_raw(X)
        _check_table(X)
        if reset:
            validate_data(self, X, reset=True, skip_check_array=True)
            self.columns_ = encoding
        return encoding.encode(X)

    def _read_columns(self, X: Any, *, reset: bool) -> NamedColumns:
        """The columns that the kernel needs, found by name; None: those of the first rows."""
        kernel = self._row_kernel
        needed = kernel.reads
        if reset:
            validate_data(self, X, reset=True, skip_check_array=True)
        elif needed is None:
            centers = getattr(self, "X_fit_", None)
            needed = tuple(centers.columns) if isinstance(centers, NamedColumns) else None
        columns = read_columns(X, needed)
        kernel.check_rows(columns)
        return columns

    def _block_validator(self) -> Callable[[int], BlockValidator] | None:
        """From a number of features to the validation of blocks: by position, not by name. None for objects."""
        return BlockValidator if as_kernel(self.kernel).takes_vectors else None

    def _check_of_blocks(self) -> Callable[[Any], Any] | None:
        """From a block of new rows to what the kernel sees; None: the block itself."""
        encoding, check = getattr(self, "columns_", None), self._block_validator()
        if encoding is not None:
            by_columns: Callable[[Any], Any] = encoding.encode
            return by_columns
        return None if check is None else check(self.n_features_in_)

    def _read_training(
        self, X: Any, y: Any, sample_weight: Any, declared: ArrayLike | None = None, block_rows: int = BLOCK_ROWS
    ) -> TrainingData:
        """Rows to fit, whatever the model was fitted on before: they decide on the columns.

        A copy of the model takes what scikit-learn's validation stores, so that the model stays as it was.
        """
        model: Any = unfitted(self)
        rows: Rows
        streamed = is_out_of_core(X)
        if streamed:
            _refuse_kinds(check_kinds(getattr(self, "columns", None)), self.kernel)
            rows, schema = blocks_and_schema(model, X, y, sample_weight)
        else:
            X, y, weight = read_rows(model, X, y, sample_weight, reset=True)
            rows = MemoryRows(X, y, None if sample_weight is None else weight, block_rows=block_rows)
            schema = schema_of(model)
        check = self._block_validator()
        targets_of, has_classes = model._targets_of, is_classifier(self)
        return TrainingData(rows, schema, targets_of, has_classes, check, declared=declared, streamed=streamed)

    def _outputs(self, X: Any) -> Floats:
        """f (n, q) at new rows from any source."""
        check_is_fitted(self)
        return self._evaluated(X, self._expansion())

    def _evaluated(self, X: Any, f: Callable[[Any], Floats]) -> Floats:
        """A function of rows in memory, applied to rows from any source."""
        if not is_out_of_core(X):
            return f(self._read(X, reset=False, fill=True))
        if hasattr(self, "columns_") and not isinstance(X, str | Path):
            raise ValueError(
                "the model was fitted on a raw table, and reads new rows from frames in memory or Parquet files; "
                "pass the frames of a stream one by one"
            )
        rows, check = read_blocks(self, X), self._check_of_blocks()
        outputs = np.concatenate([f(block.X if check is None else check(block.X)) for block in rows.blocks()])
        check_names(_names_read_by(self), getattr(rows, "feature_names", None))
        return outputs

    def _expansion(self) -> Callable[[Any], Floats]:
        """The fitted function."""
        intercept = np.atleast_1d(self.intercept_)
        coef = np.reshape(self.dual_coef_, (-1, len(intercept)))
        return Expansion(self.kernel_, self.X_fit_, coef, intercept)


def _without_gaps(X: Any, centers: Any) -> Any:
    """New rows of a model whose rows were complete: a missing number is as the mean of the centers."""
    if not isinstance(X, np.ndarray) or not isinstance(centers, np.ndarray) or has_numbers_only(X):
        return X
    return np.where(np.isnan(X), centers.mean(axis=0, dtype=X.dtype), X)


def _refuse_kinds(kinds: Mapping[Any, str], kernel: Any) -> None:
    if kinds:
        raise ValueError(
            f"columns={kinds!r} says what raw columns in memory become, for kernels on vectors; pass a frame, "
            f'and kernel="auto" or "rbf" instead of {kernel!r}, or columns=None'
        )


def _check_table(X: Any) -> None:
    """Rows of a table in memory: two dimensions, at least one row."""
    if not has_columns(X) and (is_sparse(X) or np.ndim(X) != 2):
        raise ValueError(
            f"Expected 2D array with the columns of a raw table, got {type(X).__name__}; pass a frame or an array "
            "with a row for each observation. Reshape your data"
        )
    if n_rows(X) == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")


def read_objects(kernel: Kernel, X: Any) -> Any:
    """Rows in memory that are any objects, if the kernel can compare them."""
    objects = X.to_numpy() if hasattr(X, "to_numpy") else X
    kernel.check_rows(objects)
    return objects


def check_square(K: Any) -> None:
    """Kernel values of a fit are those of all pairs of its rows."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            "Precomputed metric requires shape (n_queries, n_indexed): kernel='precomputed' is fitted on the "
            f"square matrix K(train, train), but this one has shape {K.shape}"
        )
