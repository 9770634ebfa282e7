"""Base of all kernel models: reading rows from any source in the form their kernel accepts, and evaluating f."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from mercer._types import Array, Floats
from mercer.kernels import Kernel, OneOf, as_kernel
from mercer.rows import MemoryRows, ParquetRows, Rows, as_rows
from mercer.rows._base import BLOCK_ROWS, NoRows
from mercer.rows._columns import NamedColumns, has_columns, read_columns
from mercer.rows._encoding.columns import TableEncoding
from mercer.rows._encoding.rows import EncodedRows, encoding_of_rows
from mercer.rows._encoding.rule import (
    RawTable,
    as_raw,
    check_kinds,
    encoding_of,
    has_numbers_only,
    is_raw,
    kept_columns,
)
from mercer.rows._resolve import column_types, feature_names, is_out_of_core, parquet_rows
from mercer.rows._sampling.random_sample import Labels
from mercer.rows._table import as_table, holds_numbers, is_sparse, n_rows

# What can be done about missing numbers of frames whose types do not tell that there are some.
REMEDY_OF_BLOCKS = "; of columns that have names, columns={} gives them a meaning"


@dataclass(frozen=True)
class BlockValidator:
    """Validation of rows in blocks: finite numbers in ``n_features`` columns, None: any number of them.

    ``name`` and what else can be done about missing numbers are for errors.
    """

    n_features: int | None
    dtypes: tuple[Any, ...] = (np.float64, np.float32)
    name: str = "X"
    remedy: str = ""

    def __call__(self, X: Any) -> Any:
        _validation.not_dates(self.name, X)
        with _validation.naming_text(self.name, X), _validation.naming_missing(self.name, self.remedy):
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
    """Out-of-core rows, and their columns, as far as these are known before a pass."""
    encoding = getattr(model, "columns_", None)
    if encoding is not None:
        return EncodedRows(_raw_blocks(X, y, weight, encoding.names), encoding), RowSchema()
    if isinstance(X, str | Path):
        X, y, weight = _files(model, X, y, weight), None, None
    names = feature_names(X, y, weight)
    check_names(schema_of(model).names, names)
    return as_rows(X, y, weight), RowSchema().named(names)


def _raw_blocks(X: Any, y: Any, weight: Any, names: Sequence[Any]) -> Rows:
    """Out-of-core rows with columns of any values, of Parquet files those with these names."""
    if isinstance(X, str | Path):
        X, y, weight = parquet_rows(X, y, weight, columns=names, form="raw"), None, None
    return as_rows(X, y, weight, raw=True)


def _files(model: Any, path: str | Path, y: Any, weight: Any) -> ParquetRows:
    """Rows of Parquet files as the kernel takes them; columns by name if it has names for them."""
    kernel = getattr(getattr(model, "estimator", model), "kernel", None)
    known = getattr(model, "feature_names_in_", None)
    form, columns = "array", None if y is not None or known is None else list(known)
    if kernel is not None:
        kernel = as_kernel(kernel)
        # Words such as "names" stand for columns that have names.
        words = kernel.reads is None or any(isinstance(name, str) for name in kernel.reads)
        named = kernel.input_kind == "columns" and words
        form = "columns" if named else "list" if kernel.input_kind == "objects" else "array"
        columns = list(kernel.reads) if named and kernel.reads is not None else columns
    return parquet_rows(path, y, weight, columns=columns, form=form)


def schema_of(model: Any) -> RowSchema:
    """The columns that a model has read, if it has read any."""
    known = (getattr(model, name, None) for name in ("n_features_in_", "feature_names_in_", "columns_"))
    return RowSchema(*known)


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
        raw = self._raw_table(X) if reset else None
        if raw is not None:
            validate_data(self, as_raw(X), reset=True, skip_check_array=True)
            self.columns_ = encoding_of(raw, _row_weight(weight, X), check_kinds(self.columns))
        if hasattr(self, "columns_"):
            return self.columns_.encode(_as_table(X) if raw is None else raw.table)
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

    def _may_encode(self) -> bool:
        """Whether the columns of a raw table may become features; it is an error to say what, if they cannot."""
        kinds = check_kinds(getattr(self, "columns", None))
        if self._given_encoding is not None:
            return False
        if self._encodes_tables and self._row_kernel.takes_vectors:
            return True
        if kinds:
            raise ValueError(
                f"columns={kinds!r} says what raw columns become, for kernels on vectors; pass a frame, and "
                f'kernel="auto" or "rbf" instead of {self.kernel!r}, or columns=None'
            )
        return False

    def _raw_table(self, X: Any) -> RawTable | None:
        """The columns of rows in memory that are a raw table, or are said to be one; None: they are not."""
        if not self._may_encode() or (self.columns is None and not is_raw(X)):
            return None
        return RawTable.of(_as_table(X), check_kinds(self.columns))

    def _raw_blocks_of(self, X: Any, y: Any, weight: Any) -> tuple[Rows, RowSchema] | None:
        """Out-of-core rows that are a raw table, or are said to be one, and their columns; None: they are not."""
        if not self._may_encode():
            return None
        types = column_types(X, y, weight, ask=self.columns is not None)
        if types is None and self.columns is not None:
            raise ValueError(
                f"columns={self.columns!r} says what named columns become, but X has none; pass files, frames of "
                "an engine or a stream of frames, or columns=None"
            )
        if types is None or (self.columns is None and not types.is_raw):
            return None
        kinds = check_kinds(self.columns)
        rows = _raw_blocks(X, y, weight, kept_columns(types.names, kinds))
        encoding = encoding_of_rows(rows, types, kinds, self.verbose)
        schema = RowSchema(len(types.names)).named(types.names)
        return EncodedRows(rows, encoding), replace(schema, encoding=encoding)

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
        if not as_kernel(self.kernel).takes_vectors:
            return None
        return partial(BlockValidator, remedy=REMEDY_OF_BLOCKS) if self._encodes_tables else BlockValidator

    def _check_of_blocks(self) -> Callable[[Any], Any] | None:
        """From a block of new rows to what the kernel sees; None: the block itself."""
        check = None if hasattr(self, "columns_") else self._block_validator()
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
            raw = model._raw_blocks_of(X, y, sample_weight)
            rows, schema = raw or blocks_and_schema(model, X, y, sample_weight)
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
        encoding: TableEncoding | None = getattr(self, "columns_", None)
        if is_out_of_core(X):
            rows = read_blocks(self, X)
        elif encoding is None:
            return f(self._read(X, reset=False, fill=True))
        else:
            # Features of some rows at a time.
            rows = EncodedRows(MemoryRows(encoding.read(_as_table(X))), encoding)
        check = self._check_of_blocks()
        outputs = [f(block.X if check is None else check(block.X)) for block in rows.blocks()]
        check_names(schema_of(self).names, getattr(rows, "feature_names", None))
        if not outputs:
            raise NoRows("X has no rows; pass at least one")
        return np.concatenate(outputs)

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


def _row_weight(weight: ArrayLike | None, X: Any) -> Array | None:
    return None if weight is None else row_weight(weight, n_rows(as_raw(X)))


def _as_table(X: Any) -> Any:
    """Rows of a raw table in memory: two dimensions, at least one row."""
    X = as_raw(_validation.unmasked("X", X))
    if not has_columns(X) and (is_sparse(X) or np.ndim(X) != 2):
        raise ValueError(
            f"Expected 2D array with the columns of a raw table, got {type(X).__name__}; pass a frame or an array "
            "with a row for each observation. Reshape your data"
        )
    if n_rows(X) == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return X


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
